"""Observations of `vcider`: documented ratios, their predictions, and the goals of a good fit.

A cell of the document's tables is the mean of ten trials with one replication factor, one native reference and one
column width. Cells seem to be independent, but they show no trend over column widths. An independent scenario is
therefore one replication factor with one reference, at all widths; there are six. (The two encrypted references may
share runs of the virtual network; then there are four.) The averages are the document's own means of cells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from capplan.evidence.table import Evidence
from capplan.layout.observations import Goal, Kind, LoadTest, Observations, Scored
from capplan.models.language.parameter import Values
from capplan.models.language.scenario import changed
from capplan.models.language.units import FloatArray
from capplan.systems.vcider.network import ratio
from capplan.systems.vcider.scenario import VIRTUAL, VciderScenario

WIDTHS = (32, 64, 128, 192, 256)  # bytes of a column in the document's tables
REPEATABILITY = {1: 0.036, 3: 0.016}
"""Relative standard deviation of a cell, by replication factor: the scatter of a reference's cells around their mean
over column widths, pooled over references (a test recomputes it)."""
AVERAGE, CELL = 0.02, {1: 0.04, 3: 0.02}
"""Goals: error of an average of the ratio, and root mean square error of cells by replication factor."""


def _layout(row: Evidence) -> VciderScenario:
    """Return the layout of a row; for an average with the middle width, which makes no difference."""
    width = int(row.layout["column_bytes"]) if is_cell(row) else WIDTHS[len(WIDTHS) // 2]
    return VciderScenario(rf=int(row.layout["rf"]), column_bytes=width, encryption=row.layout["encryption"])


def is_cell(row: Evidence) -> bool:
    """Whether a ratio is a table cell rather than an average of cells."""
    return "column_bytes" in row.layout


def _name(layout: VciderScenario) -> str:
    return f"RF {layout.rf}, {layout.column_bytes} bytes, beside {layout.encryption}"


def _predicted(row: Evidence, layout: VciderScenario, values: Values) -> FloatArray:
    if is_cell(row):
        return ratio(layout, values, layout.encryption)
    every = [ratio(changed(layout, column_bytes=width), values, layout.encryption) for width in WIDTHS]
    return np.asarray(np.mean(every, axis=0))


class VciderObservations(Observations[VciderScenario]):
    """The documented ratios of `vcider`."""

    goals_in_words = (
        "Goals: averages within 2 points of the ratio; root mean square error of cells at most 4 points with one "
        "replica and 2 points with three, which is the scatter of cells (each is the mean of ten trials on rented "
        "machines). The comparisons with the two encrypted references may share runs of the virtual network; four "
        "scenarios are then independent, not six."
    )
    choices = tuple({"virtual_encrypts": each} for each in VIRTUAL)

    def load_tests(self, choice: Mapping[str, str] | None = None) -> tuple[LoadTest[VciderScenario], ...]:
        """Return the documented comparisons, one for each replication factor, reference and column width."""
        groups: dict[tuple[str, VciderScenario], list[Evidence]] = {}
        for row in self.system.evidence:
            if row.use in ("fit", "check") and row.quantity == "throughput_ratio" and row.fold:
                groups.setdefault((row.fold, changed(_layout(row), **(choice or {}))), []).append(row)
        return tuple(LoadTest(_name(layout), fold, layout, tuple(rows)) for (fold, layout), rows in groups.items())

    def predicted(self, tests: Sequence[LoadTest[VciderScenario]], values: Values) -> dict[str, FloatArray]:
        """Predict the ratios of some comparisons; arrays (draws,) by row id."""
        draws = max(np.size(value) for value in values.values())
        return {
            row.id: np.broadcast_to(_predicted(row, test.scenario, values), (draws,))
            for test in tests
            for row in test.rows
        }

    def repeatability(self, row: Evidence) -> float:
        """Return the relative standard deviation of a figure between repeats, without the rounding."""
        of_cell = REPEATABILITY[int(row.layout["rf"])]
        return of_cell if is_cell(row) else of_cell / np.sqrt(len(WIDTHS))

    def bounds_of(self, row: Evidence) -> tuple[float, float] | None:
        """Return the goal of an average: within two points, or inside its rounding. Cells share a goal."""
        if is_cell(row):
            return None
        return min(row.value - AVERAGE, row.low), max(row.value + AVERAGE, row.high)

    def goals(self, medians: Mapping[str, float]) -> tuple[Goal, ...]:
        """Return the goals of cells: root mean square errors by replication factor."""
        errors: dict[int, list[float]] = {rf: [] for rf in CELL}
        for row in self.system.evidence:
            if row.id in medians and is_cell(row):
                errors[int(row.layout["rf"])].append(medians[row.id] - row.value)
        return tuple(
            Goal(
                f"cells of RF {rf}: root mean square error of the ratio",
                float(np.sqrt(np.mean(np.square(each)))),
                limit,
            )
            for (rf, each), limit in zip(errors.items(), CELL.values(), strict=True)
            if each
        )

    def kind_of(self, row: Evidence) -> Kind | None:
        """Return rate for a cell; None for an average, which adds nothing to its cells."""
        return "rate" if is_cell(row) else None

    def scored(self, row: Evidence) -> Scored | None:
        """Compare a cell with rules over the replication factor, for the same reference."""
        if not is_cell(row):
            return None
        encryption = row.layout["encryption"]
        return Scored(encryption, float(row.layout["rf"]), f"ratios (encryption: {encryption})")
