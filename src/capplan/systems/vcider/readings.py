"""Readings that the vcider document leaves open, tried: how cells scatter, and what its comparisons have in common.

Cells are means of ten trials whose spread is not printed, so their repeatability is read off their scatter over the
column widths. Intervals here are those of that scatter, 90 %, not those of the rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtri, fdtri, stdtrit

from capplan.calibration.audit.finding import Finding, compare
from capplan.calibration.evidence.interval import Interval
from capplan.calibration.evidence.table import Evidence, by_id
from capplan.models.language.units import FloatArray
from capplan.systems.vcider.laws import FACTORS, REFERENCES, Rows, cells

LEVEL = 0.9
"""Of every interval: 5 % lie below and 5 % above it."""
TAIL = (1 - LEVEL) / 2
SHARED = 0.5
"""Correlation of two ratios that share their numerator, where it varies as much as their denominators."""


@dataclass(frozen=True)
class Scatter:
    """What the cells of a replication factor leave around a constant, or a line, for each of its three comparisons.

    Attributes
    ----------
    deviation : float
        Standard deviation of a cell, as a ratio.
    freedom : int
        Degrees of freedom behind it.
    slopes : array
        Slope of each comparison, per byte of column width.
    slope_error : float
        Standard error of each slope.
    """

    deviation: float
    freedom: int
    slopes: FloatArray
    slope_error: float

    @property
    def interval(self) -> Interval:
        """The standard deviation with the interval that its degrees of freedom allow."""
        low, high = (
            self.deviation * float(np.sqrt(self.freedom / chdtri(self.freedom, tail))) for tail in (TAIL, 1 - TAIL)
        )
        return Interval(self.deviation, low, high)

    def around(self, value: float, error: float) -> Interval:
        """Return the interval of Student's t around `value` for a standard error of the same degrees of freedom."""
        width = float(stdtrit(self.freedom, 1 - TAIL)) * error
        return Interval(value, value - width, value + width)


def ratios(rows: Rows, factor: str) -> FloatArray:
    """Return the cells of a replication factor: by comparison and column width."""
    return np.array([[cell.value for cell in cells(rows, factor, reference)] for reference in REFERENCES])


def widths(rows: Rows, factor: str) -> FloatArray:
    """Return the column widths of the cells, in bytes."""
    return np.array([float(cell.layout["column_bytes"]) for cell in cells(rows, factor, "none")])


def scatter(rows: Rows, factor: str, line: bool = False) -> Scatter:
    """Estimate the repeatability of a cell, around a constant or a line for each comparison, pooled over the three."""
    table, centred = ratios(rows, factor), widths(rows, factor)
    centred = centred - centred.mean()
    left = table - table.mean(axis=1, keepdims=True)
    slopes = left @ centred / (centred @ centred)
    if line:
        left = left - np.outer(slopes, centred)
    freedom = table.size - len(table) * (2 if line else 1)
    deviation = float(np.sqrt((left**2).sum() / freedom))
    return Scatter(deviation, freedom, slopes, deviation / float(np.sqrt(centred @ centred)))


def mean_of(rows: Rows, factor: str, reference: str) -> Interval:
    """Return the mean of the cells of a comparison, with what their scatter allows."""
    values = [cell.value for cell in cells(rows, factor, reference)]
    spread = scatter(rows, factor)
    return spread.around(float(np.mean(values)), spread.deviation / len(values) ** 0.5)


def column_effect(rows: Rows, factor: str) -> tuple[float, int, int]:
    """Return the F statistic of what cells of one column width have in common, and its degrees of freedom."""
    table = ratios(rows, factor)
    left = table - table.mean(axis=1, keepdims=True)
    comparisons, columns = table.shape
    common = comparisons * float((left.mean(axis=0) ** 2).sum())
    above, below = columns - 1, (columns - 1) * (comparisons - 1)
    return common / above / ((float((left**2).sum()) - common) / below), above, below


def _used(rows: Rows, *factors: str) -> tuple[Evidence, ...]:
    return tuple(cell for factor in factors for reference in REFERENCES for cell in cells(rows, factor, reference))


def _points(number: float) -> str:
    return f"{number * 100:.1f} points"


def _repeatability(rows: Rows) -> list[Finding]:
    """Say how cells scatter around a constant, hold a line against it, and one replication factor against the other."""
    findings = []
    for factor in FACTORS:
        constant, line = scatter(rows, factor), scatter(rows, factor, line=True)
        allowed = constant.interval
        sentence = (
            f"{factor.upper()}: around a constant for each comparison a cell has a standard deviation of "
            f"{_points(allowed.value)} ({allowed.low * 100:.1f} to {allowed.high * 100:.1f}), around a line "
            f"{_points(line.deviation)}: the line explains nothing."
        )
        left = Interval.exactly(line.deviation)
        law = "cells scatter around a constant as around a line"
        findings.append(compare(f"scatter.{factor}", law, _used(rows, factor), allowed, left, sentence))
    one, three = (scatter(rows, factor) for factor in FACTORS)
    bound = float(fdtri(one.freedom, three.freedom, 1 - TAIL)) ** 0.5
    expected = Interval(three.deviation, three.deviation / bound, three.deviation * bound)
    sentence = (
        f"One repeatability for both: with R3's {_points(three.deviation)}, R1 would show "
        f"{expected.low * 100:.1f} to {expected.high * 100:.1f} points; it shows {_points(one.deviation)}."
    )
    left, law = Interval.exactly(one.deviation), "both replication factors repeat equally well"
    return [*findings, compare("scatter.one", law, _used(rows, *FACTORS), expected, left, sentence)]


def _column_width(rows: Rows) -> list[Finding]:
    """Ask whether the column width matters: a line through the cells of each comparison, errors pooled over three."""
    findings = []
    for factor in FACTORS:
        line = scatter(rows, factor, line=True)
        for (reference, words), slope in zip(REFERENCES.items(), line.slopes, strict=True):
            per = 100.0
            noise = line.around(0.0, line.slope_error * per)
            found = Interval.exactly(float(slope) * per)
            sentence = (
                f"{factor.upper()} over {words}: {slope * per * 100:+.1f} points per 100 bytes, standard error "
                f"{line.slope_error * per * 100:.1f}."
            )
            used, law = cells(rows, factor, reference), "the column width does not matter"
            findings.append(compare(f"slope.{factor}.{reference}", law, used, noise, found, sentence))
    return findings


def _shared_run(rows: Rows) -> list[Finding]:
    """Ask whether one run on the virtual network serves the three comparisons of a column width.

    Cells of one column would then go up and down together; independent ones have an F statistic of about one.
    """
    findings = []
    for factor in FACTORS:
        found, above, below = column_effect(rows, factor)
        if_shared = (1 + SHARED * (len(REFERENCES) - 1)) / (1 - SHARED)
        low, high = (float(fdtri(above, below, tail)) for tail in (TAIL, 1 - TAIL))
        expected = {
            "independent": ("runs of its own for each comparison", Interval(1.0, 0.0, high)),
            "shared": ("one run for all comparisons", Interval.exactly(if_shared) * Interval(1.0, low, high)),
        }
        for name, (words, interval) in expected.items():
            sentence = (
                f"{factor.upper()}: with {words}, cells of one column width have an F statistic of "
                f"{interval.low:.2g} to {interval.high:.2g}; they have {found:.2g}."
            )
            law = f"the virtual network had {words}"
            documented = Interval.exactly(found)
            findings.append(compare(f"runs.{name}.{factor}", law, _used(rows, factor), interval, documented, sentence))
    return findings


def _change_by_scatter(rows: Rows) -> list[Finding]:
    """Ask whether the averages of R3 differ from those of R1 by more than their scatter (degrees of freedom: Welch)."""
    one, three = (scatter(rows, factor) for factor in FACTORS)
    parts = [each.deviation**2 / len(widths(rows, "r1")) for each in (one, three)]
    freedom = sum(parts) ** 2 / (parts[0] ** 2 / one.freedom + parts[1] ** 2 / three.freedom)
    width = float(stdtrit(freedom, 1 - TAIL)) * sum(parts) ** 0.5
    findings = []
    for reference, words in REFERENCES.items():
        change = mean_of(rows, "r3", reference).value - mean_of(rows, "r1", reference).value
        sentence = (
            f"From R1 to R3 the average over {words} changes by {change * 100:+.1f} points; scatter alone makes up to "
            f"{_points(width)}."
        )
        used = (*cells(rows, "r1", reference), *cells(rows, "r3", reference))
        law = "R1 and R3 differ by no more than their scatter"
        noise, found = Interval(0.0, -width, width), Interval.exactly(change)
        findings.append(compare(f"change.{reference}", law, used, noise, found, sentence))
    return findings


def encryption_cost(rows: Rows, factor: str, reference: str) -> Interval:
    """Return what encryption adds to a native operation, as a share of the plain one at this replication factor.

    `both` is what clients add beyond nodes. Holds if the virtual network's work is the same in every comparison.
    """
    plain, node = mean_of(rows, factor, "none"), mean_of(rows, factor, "internode")
    if reference == "internode":
        return node / plain - Interval.exactly(1.0)
    return (mean_of(rows, factor, "both") - node) / plain


def _one_cost(rows: Rows) -> list[Finding]:
    """Ask whether one cost of a client's message, and one of a replica's, explain both replication factors."""
    clients = [encryption_cost(rows, factor, "both") for factor in FACTORS]
    work = clients[0] / clients[1]
    sentence = (
        f"Client encryption adds {clients[0].value:.2f} of a plain operation with R1 and {clients[1].value:.2f} with "
        "R3; if that is the same work, an operation with R3 costs {documented} of those with R1, where the work of one "
        "to three replicas is {expected}."
    )
    law, used = "client encryption costs the same at every replication factor", _used(rows, *FACTORS)
    found = [compare("cost.client", law, used, Interval(2.0, 1.0, 3.0), work, sentence)]
    one, three = (encryption_cost(rows, factor, "internode") for factor in FACTORS)
    sentence = (
        f"Node encryption adds {one.value:.3f} of a plain operation with R1; three times the remote replicas of an "
        "operation so much larger make it {expected} with R3, which has {documented}."
    )
    law, used = "node encryption costs the same for each remote replica", _used(rows, *FACTORS)
    return [*found, compare("cost.node", law, used, one * 3.0 / work, Interval.exactly(three.value), sentence)]


_READINGS: tuple[Callable[[Rows], list[Finding]], ...] = (
    _repeatability,
    _column_width,
    _shared_run,
    _change_by_scatter,
    _one_cost,
)


def readings(rows: Iterable[Evidence]) -> tuple[Finding, ...]:
    """Try the readings on `rows`, which must be all rows of the document."""
    known = by_id(rows)
    return tuple(finding for reading in _READINGS for finding in reading(known))
