"""Observations of `vcider`: documented ratios, their predictions, and the goals of a good fit.

A cell of the document's tables is the mean of ten trials with one replication factor, one native reference and one
column width. Cells seem to be independent, but they show no trend over column widths. An independent scenario is
therefore one replication factor with one reference, at all widths; there are six. (The two encrypted references may
share runs of the virtual network; then there are four.) The averages are the document's own means of cells.

Scatter of the cells in vcider's tables: the statistics that its audit uses.

A cell is the mean of ten trials. The document does not print their spread, so the repeatability of a cell is estimated
from the scatter of cells over column widths. Intervals are 90 % intervals of this scatter, not those of the rounding.

Functions take the 15 cells of a replication factor as one group: five column widths relative to native without
encryption, then relative to native with node encryption, then to native with client and node encryption.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtri, fdtri, stdtrit

from capplan.evidence.audit.expression import Group
from capplan.evidence.interval import Interval
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


LEVEL = 0.9
"""Level of every interval: 5 % are below and 5 % above it."""
TAIL = (1 - LEVEL) / 2
COMPARISONS = 3
SHARED = 0.5
"""Correlation of two ratios that share their numerator, if it varies as much as their denominators."""
SLOPE_PER_BYTES = 100.0
"""Column width, in bytes, that slopes are per."""


@dataclass(frozen=True)
class ReferenceScatter:
    """Residual scatter of the cells of a replication factor around a constant, or a line, for each comparison.

    Attributes
    ----------
    deviation : float
        Standard deviation of a cell, as a ratio.
    freedom : int
        Its degrees of freedom.
    slope_error : float
        Standard error of the slope of a comparison, per byte of column width.
    """

    deviation: float
    freedom: int
    slope_error: float

    def around(self, value: float, error: float) -> Interval:
        """Return the interval of Student's t around `value` for the standard error `error`."""
        width = float(stdtrit(self.freedom, 1 - TAIL)) * error
        return Interval(value, value - width, value + width)


def ratios(cells: Group) -> FloatArray:
    """Return the cells as an array, by comparison and column width."""
    return np.array([cell.value for cell in cells]).reshape(COMPARISONS, -1)


def centred_widths(cells: Group) -> FloatArray:
    """Return the column widths of one comparison's cells minus their mean, bytes."""
    widths = np.array([float(cell.rows[0].layout["column_bytes"]) for cell in cells])
    centred: FloatArray = widths - widths.mean()
    return centred


def slopes(cells: Group) -> FloatArray:
    """Return the slope of each comparison over column width by least squares, per byte."""
    table = ratios(cells)
    centred = centred_widths(cells[: table.shape[1]])
    slope: FloatArray = (table - table.mean(axis=1, keepdims=True)) @ centred / (centred @ centred)
    return slope


def scatter(cells: Group, line: bool = False) -> ReferenceScatter:
    """Estimate the scatter of a cell around a constant or a line for each comparison, pooled over the three."""
    table = ratios(cells)
    centred = centred_widths(cells[: table.shape[1]])
    residuals = table - table.mean(axis=1, keepdims=True)
    if line:
        residuals = residuals - np.outer(slopes(cells), centred)
    freedom = table.size - len(table) * (2 if line else 1)
    deviation = float(np.sqrt((residuals**2).sum() / freedom))
    return ReferenceScatter(deviation, freedom, deviation / float(np.sqrt(centred @ centred)))


def deviation(cells: Group) -> Interval:
    """Return the standard deviation of a cell around a constant for each comparison, with its chi-squared interval."""
    spread = scatter(cells)
    low, high = (
        spread.deviation * float(np.sqrt(spread.freedom / chdtri(spread.freedom, tail))) for tail in (TAIL, 1 - TAIL)
    )
    return Interval(spread.deviation, low, high)


def deviation_around_lines(cells: Group) -> float:
    """Return the standard deviation of a cell around a line for each comparison."""
    return scatter(cells, line=True).deviation


def deviation_if_as(others: Group, cells: Group) -> Interval:
    """Return the standard deviation that `cells` would have with the repeatability of `others` (F distribution)."""
    reference, compared = scatter(others), scatter(cells)
    bound = float(fdtri(compared.freedom, reference.freedom, 1 - TAIL)) ** 0.5
    return Interval(reference.deviation, reference.deviation / bound, reference.deviation * bound)


def slope(cells: Group, comparison: Group) -> float:
    """Return the slope of the five cells of one comparison over column width, per 100 bytes."""
    place = cells.index(comparison[0]) // len(comparison)
    return float(slopes(cells)[place]) * SLOPE_PER_BYTES


def slope_error(cells: Group) -> float:
    """Return the standard error of a comparison's slope, pooled over the three comparisons, per 100 bytes."""
    return scatter(cells, line=True).slope_error * SLOPE_PER_BYTES


def slope_by_chance(cells: Group) -> Interval:
    """Return the slopes per 100 bytes that scatter alone would cause."""
    return scatter(cells, line=True).around(0.0, slope_error(cells))


def mean_of(cells: Group, comparison: Group) -> Interval:
    """Return the mean of a comparison's five cells, with the interval that the scatter of all cells implies."""
    spread = scatter(cells)
    return spread.around(float(np.mean([cell.value for cell in comparison])), spread.deviation / len(comparison) ** 0.5)


def change_by_chance(cells: Group, others: Group) -> Interval:
    """Return the difference between the means of two replication factors by scatter alone (Welch's t)."""
    spreads = [scatter(each) for each in (cells, others)]
    parts = [each.deviation**2 / (len(cells) // COMPARISONS) for each in spreads]
    freedom = sum(parts) ** 2 / (parts[0] ** 2 / spreads[0].freedom + parts[1] ** 2 / spreads[1].freedom)
    width = float(stdtrit(freedom, 1 - TAIL)) * sum(parts) ** 0.5
    return Interval(0.0, -width, width)


def column_effect(cells: Group) -> float:
    """Return the F statistic of the effect of column width (two-way analysis of variance)."""
    table = ratios(cells)
    residuals = table - table.mean(axis=1, keepdims=True)
    between, within = _freedoms(cells)
    common = len(table) * float((residuals.mean(axis=0) ** 2).sum())
    return common / between / ((float((residuals**2).sum()) - common) / within)


def column_effect_if_independent(cells: Group) -> Interval:
    """Return the F statistics of independent cells: about one."""
    return Interval(1.0, 0.0, float(fdtri(*_freedoms(cells), 1 - TAIL)))


def column_effect_if_shared(cells: Group) -> Interval:
    """Return the F statistics if the three comparisons of a column width share one run on the virtual network."""
    low, high = (float(fdtri(*_freedoms(cells), tail)) for tail in (TAIL, 1 - TAIL))
    return Interval.exactly((1 + SHARED * (COMPARISONS - 1)) / (1 - SHARED)) * Interval(1.0, low, high)


def _freedoms(cells: Group) -> tuple[int, int]:
    comparisons, columns = ratios(cells).shape
    return columns - 1, (columns - 1) * (comparisons - 1)
