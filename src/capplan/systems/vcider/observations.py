"""What the model of `vcider` says of each documented ratio, and what a good fit of them is.

A cell of the document's tables is the mean of ten trials with one replication factor, one native reference and one
column width. Cells are independent of one another as far as the document tells, but they say the same thing at every
width: no trend stands out of their scatter. What a model can be asked to predict without having seen it is therefore
one replication factor beside one reference, at all widths: six scenarios. (The runs on the virtual network beside two
encrypted references may have been the same ones: then four.) The averages are the document's own means of the cells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from capplan.calibration.evidence.table import Evidence
from capplan.calibration.observations import Goal, Kind, LoadTest, Observations, Scored
from capplan.models.language.parameter import Values
from capplan.models.language.scenario import changed
from capplan.models.language.units import FloatArray
from capplan.systems.vcider.network import ratio
from capplan.systems.vcider.scenario import VIRTUAL, VciderScenario

WIDTHS = (32, 64, 128, 192, 256)  # bytes of a column, of the document's tables
REPEATABILITY = {1: 0.036, 3: 0.016}
"""Relative standard deviation of a cell, by the replication factor: how the cells of one reference scatter around their
mean over the column widths, all references together (a test recomputes it)."""
AVERAGE, CELL = 0.02, {1: 0.04, 3: 0.02}
"""The goals: points of an average, and root mean square of the points of the cells by the replication factor."""


def _layout(row: Evidence) -> VciderScenario:
    """Return the layout of a row; an average stands at the middle width, over which it makes no difference."""
    told = row.layout
    width = int(told["column_bytes"]) if is_cell(row) else WIDTHS[len(WIDTHS) // 2]
    return VciderScenario(rf=int(told["rf"]), column_bytes=width, encryption=told["encryption"])


def is_cell(row: Evidence) -> bool:
    """Whether a ratio is one of the tables' cells, not an average of some."""
    return "column_bytes" in row.layout


def _name(layout: VciderScenario) -> str:
    return f"RF {layout.rf}, {layout.column_bytes} bytes, beside {layout.encryption}"


def _predicted(row: Evidence, layout: VciderScenario, values: Values) -> FloatArray:
    if is_cell(row):
        return ratio(layout, values, layout.encryption)
    every = [ratio(changed(layout, column_bytes=width), values, layout.encryption) for width in WIDTHS]
    return np.asarray(np.mean(every, axis=0))


class VciderObservations(Observations[VciderScenario]):
    """The load tests of `vcider`."""

    goals_in_words = (
        "Goals: averages within 2 points of the ratio; root mean square error of the cells of 4 points with one "
        "replica and of 2 points with three. (Ten trials of rented machines each: the cells scatter by as much.) "
        "Scenarios beside the two encrypted references may share runs of the virtual network: then four are "
        "independent, not six."
    )
    choices = tuple({"virtual_encrypts": each} for each in VIRTUAL)

    def load_tests(self, choice: Mapping[str, str] | None = None) -> tuple[LoadTest[VciderScenario], ...]:
        """Return the documented comparisons, one for each replication factor, reference and column width.

        Parameters
        ----------
        choice
            What the document leaves open (`choices`); the scenario's defaults when left out.
        """
        groups: dict[tuple[str, VciderScenario], list[Evidence]] = {}
        for row in self.system.evidence:
            if row.use in ("fit", "check") and row.quantity == "throughput_ratio" and row.fold:
                groups.setdefault((row.fold, changed(_layout(row), **(choice or {}))), []).append(row)
        return tuple(LoadTest(_name(layout), fold, layout, tuple(rows)) for (fold, layout), rows in groups.items())

    def predicted(self, tests: Sequence[LoadTest[VciderScenario]], values: Values) -> dict[str, FloatArray]:
        """Predict the ratios of some experiments by row id, arrays over draws (draws,)."""
        draws = max(np.size(value) for value in values.values())
        return {
            row.id: np.broadcast_to(_predicted(row, test.scenario, values), (draws,))
            for test in tests
            for row in test.rows
        }

    def repeatability(self, row: Evidence) -> float:
        """Return the relative standard deviation of a repeat of a figure, beside the rounding."""
        alone = REPEATABILITY[int(row.layout["rf"])]
        return alone if is_cell(row) else alone / np.sqrt(len(WIDTHS))

    def bounds_of(self, row: Evidence) -> tuple[float, float] | None:
        """Return what meets the goal: averages within two points or their rounding. Cells share a goal."""
        if is_cell(row):
            return None
        return min(row.value - AVERAGE, row.low), max(row.value + AVERAGE, row.high)

    def goals(self, medians: Mapping[str, float]) -> tuple[Goal, ...]:
        """Return the root mean square errors of the cells in points, by the replication factor; `medians` by row id."""
        errors: dict[int, list[float]] = {rf: [] for rf in CELL}
        for row in self.system.evidence:
            if row.id in medians and is_cell(row):
                errors[int(row.layout["rf"])].append(medians[row.id] - row.value)
        return tuple(
            Goal(
                f"cells of RF {rf}, root mean square of errors of the ratio",
                float(np.sqrt(np.mean(np.square(each)))),
                most,
            )
            for (rf, each), most in zip(errors.items(), CELL.values(), strict=True)
            if each
        )

    def kind_of(self, row: Evidence) -> Kind | None:
        """Return what a left-out figure tells of: a cell of rates, an average of nothing that its cells do not."""
        return "rate" if is_cell(row) else None

    def scored(self, row: Evidence) -> Scored | None:
        """Rules learn from the same reference at the other replication factor: all that the document has beside it."""
        if not is_cell(row):
            return None
        encryption = row.layout["encryption"]
        return Scored(encryption, float(row.layout["rf"]), f"ratios (encryption: {encryption})")
