"""Backlog drift: whether a system is overloaded, or its backlog merely fluctuates."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from capplan.models.errors import InputError
from capplan.models.language.units import FloatArray
from capplan.simulator.analysis.output import CONFIDENCE, ConfidenceInterval, float_array, of_replications

Verdict = Literal["steady", "overloaded", "unclear"]
TOLERANCE = 0.005  # of the offered rate; less growth is irrelevant to load tests of minutes and to sizing
SLOPES = 10  # of pieces of runs, at least; Student's factor is then 2.26
_FEWEST_INTERVALS = 3  # for a slope


@dataclass(frozen=True)
class Drift:
    """Whether a backlog grows.

    Attributes
    ----------
    verdict
        `overloaded`, `steady`, or `unclear` where the runs are too short to tell.
    growth
        Growth of the backlog per second, as a share of the offered rate.
    """

    verdict: Verdict
    growth: ConfidenceInterval


def backlog_drift(
    backlogs: ArrayLike,
    interval_s: float,
    offered_per_s: float,
    *,
    tolerance: float = TOLERANCE,
    confidence: float = CONFIDENCE,
) -> Drift:
    """Distinguish an overloaded system from a fluctuating one by the growth of its backlog.

    Parameters
    ----------
    backlogs : array of shape (replications, intervals)
        Mean number of requests in the system (or waiting at a station) in every equal interval after the warm-up.
    interval_s : float
        Length of an interval, in seconds.
    offered_per_s : float
        Offered rate, per second.
    tolerance : float
        Growth that matters, as a share of the offered rate.
    confidence : float
        Of the interval of the growth; above 0, below 1.

    Returns
    -------
    Drift
        `overloaded` when the interval of the growth is above 0 and the growth above `tolerance`, over all and in the
        second half alone (a warm-up fades, an overload does not). `steady` when the upper end of the interval is below
        `tolerance`. Otherwise `unclear`: simulate longer.

    Raises
    ------
    InputError
        When `backlogs` does not have two dimensions, a length, rate or tolerance is not above 0, or `confidence` is out
        of range.

    Notes
    -----
    The growth is the mean of least-squares slopes of whole replications, or of equal pieces of them where there are
    fewer than ten replications, with Student's interval between the slopes. In an overloaded system the backlog is a
    random walk with drift, so slopes of pieces are independent, and their mean is as good as the slope of the whole. In
    a stable system a high end of one piece is a high start of the next, so slopes are negatively correlated and the
    interval is too wide, never too narrow.

    Both error rates, at the defaults: a stable system is called overloaded in at most 2.5 % of the cases, for runs of
    any length (the upper tail of the interval), and hardly ever once 2.26 standard errors are below the tolerance; and
    a system whose growth is above the tolerance is called steady in at most 2.5 %. For M/M/1 at a load near 1, the
    standard error of the growth is ``sqrt(2.4 / arrivals)``: an overload of 2 % is found in 95 % of the cases with
    100,000 arrivals in all. Backlogs that still fill up from an empty start count as growth, so leave the warm-up out:
    ten runs of M/M/1 at load 0.95, from empty, are called overloaded in 17 % of the cases with 1,000 arrivals each,
    3 % with 3,000, none with 10,000.
    """
    table = float_array(backlogs, "backlogs", dimensions=2)
    for number, what in ((interval_s, "length in seconds"), (offered_per_s, "rate per second"), (tolerance, "share")):
        if not number > 0:
            raise InputError(f"{number:g} is not a {what}: it must be above 0")
    unit = interval_s * offered_per_s
    growth = of_replications(_slopes(_pieces(table)) / unit, confidence=confidence)
    late = float(_slopes(table[:, table.shape[1] // 2 :]).mean()) / unit if growth.half_width is not None else 0.0
    return Drift(_verdict(growth, late, tolerance), growth)


def _verdict(growth: ConfidenceInterval, late: float, tolerance: float) -> Verdict:
    if math.isnan(growth.value):
        return "unclear"
    if growth.low > 0 and min(growth.value, late) > tolerance:
        return "overloaded"
    return "steady" if growth.high < tolerance else "unclear"


def _pieces(table: FloatArray) -> FloatArray:
    """Cut replications into equal pieces, at least ten in all; the earliest intervals that fit in none are left out."""
    count, length = table.shape
    wanted = -(-SLOPES // max(count, 1))
    pieces = max(1, min(wanted, length // _FEWEST_INTERVALS))
    piece = length // pieces
    return table[:, length - pieces * piece :].reshape(count * pieces, piece)


def _slopes(rows: FloatArray) -> FloatArray:
    """Return the least-squares slope of every row, per interval; nan for rows of one interval."""
    if rows.shape[1] < 2:
        return np.full(len(rows), np.nan)
    places = np.arange(rows.shape[1]) - (rows.shape[1] - 1) / 2
    return np.asarray(rows @ places / (places @ places))
