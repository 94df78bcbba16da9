"""Scatter of the cells in vcider's tables: the statistics that its audit uses.

A cell is the mean of ten trials. The document does not print their spread, so the repeatability of a cell is estimated
from the scatter of cells over column widths. Intervals are 90 % intervals of this scatter, not those of the rounding.

Functions take the 15 cells of a replication factor as one group: five column widths relative to native without
encryption, then relative to native with node encryption, then to native with client and node encryption.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import chdtri, fdtri, stdtrit

from capplan.evidence.audit.expression import Group
from capplan.evidence.interval import Interval
from capplan.models.language.units import FloatArray

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
    """Return the standard deviation that `cells` would have if they repeated as well as `others` (F distribution)."""
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
    """Return the mean of the five cells of one comparison, with the interval that the scatter of all cells allows."""
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
