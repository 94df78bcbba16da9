"""The course of a run around a loss: rates and latencies in each interval, and when they are back to normal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from capplan.models.language.units import FloatArray
from capplan.simulator.results.histogram import IntArray, bin_middles
from capplan.simulator.results.run import Run
from capplan.simulator.results.tally import COMPLETED, DROPPED, RETRIES, STARTED, TIMED_OUT
from capplan.simulator.specification.clock import TICKS_PER_S

LOOK_S = 5.0
"""Seconds that are looked at together: a percentile of one second may rest on few requests."""
P50, P99 = 0.5, 0.99
PARTS = 8
_MOST = 0.75  # of the windows after a run is back: single ones may exceed a limit by chance
_ROUNDING = 1e-6  # seconds
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Course:
    """What one run did in each interval; arrays have a row for each (intervals,), unless said otherwise.

    Attributes
    ----------
    boundaries_s
        Where intervals start, and the end of the last one (intervals + 1,).
    started, completed, unanswered
        Requests that started, completed, and ended without an answer (dropped or timed out) after their last attempt.
    retries
        Further attempts of the requests that started in the interval, whenever they came.
    counts
        Latencies of the completed requests that started in the interval, by bin of the histogram (intervals, bins).
    bins_ms
        Middles of the bins, milliseconds (bins,).
    """

    boundaries_s: FloatArray
    started: IntArray
    completed: IntArray
    unanswered: IntArray
    retries: IntArray
    counts: IntArray
    bins_ms: FloatArray

    @property
    def width_s(self) -> float:
        """Length of an interval, seconds."""
        return float(self.boundaries_s[1] - self.boundaries_s[0])

    def percentile_ms(self, level: float, look: int = 1) -> FloatArray:
        """Return a percentile of the latencies in each `look` successive intervals; nan where none completed."""
        summed = _moving_sum(self.counts, look)
        cumulated = np.cumsum(summed, axis=1)
        totals = cumulated[:, -1]
        ranks = np.maximum(np.ceil(level * totals), 1)
        places = (cumulated < ranks[:, None]).sum(axis=1)
        found = self.bins_ms[np.minimum(places, len(self.bins_ms) - 1)]
        return np.where(totals > 0, found, np.nan)


def course_of(run: Run) -> Course:
    """Return the course of a run."""
    tally = run.tally
    series = tally.class_series[:-1].sum(axis=1)
    counts = tally.histograms[:-1, :, 0].sum(axis=1)
    if not counts.shape[1]:
        counts = np.zeros((len(counts), 1), dtype=np.int64)
    middles = bin_middles()[tally.first_bin : tally.first_bin + counts.shape[1]]
    return Course(
        boundaries_s=tally.boundaries / TICKS_PER_S,
        started=series[:, STARTED],
        completed=series[:, COMPLETED],
        unanswered=series[:, DROPPED] + series[:, TIMED_OUT],
        retries=tally.class_totals[:-1, :, RETRIES].sum(axis=1),
        counts=counts,
        bins_ms=middles / (TICKS_PER_S / 1e3),
    )


@dataclass(frozen=True)
class Back:
    """When a run was back to normal, in seconds; None where it was not until its end.

    Attributes
    ----------
    after_loss_s
        Time from the loss.
    after_return_s
        Time from the return.
    """

    after_loss_s: float | None
    after_return_s: float | None


@dataclass(frozen=True)
class Normal:
    """What counts as normal in each window of `LOOK_S`.

    Attributes
    ----------
    rate_per_s
        The lowest rate of completed requests.
    p99_ms
        The highest p99.
    """

    rate_per_s: float
    p99_ms: float


def normal_of(courses: Sequence[Course], normal_s: tuple[float, float], within: float) -> Normal:
    """Return what is normal: the worst windows of all runs in a time before a loss, and a tolerance.

    Parameters
    ----------
    courses : sequence of Course
        The runs.
    normal_s : (float, float)
        From when to when they were normal: they had filled up, and no request was reached by the loss.
    within : float
        Tolerance, as a share.
    """
    rates, p99 = [], []
    for each in courses:
        starts, ends, rate, slow = _windows(each)
        before = (starts >= normal_s[0] - _ROUNDING) & (ends <= normal_s[1] + _ROUNDING)
        rates += rate[before].tolist()
        p99 += slow[before & np.isfinite(slow)].tolist()
    if not rates or not p99:
        raise ValueError(f"no {LOOK_S:g} s with an answer between {normal_s[0]:g} and {normal_s[1]:g} s")
    return Normal((1 - within) * min(rates), (1 + within) * max(p99))


def back_to_normal(course: Course, times_s: tuple[float, float], limits: Normal) -> Back:
    """Return when a run was back to normal after a loss and after the return.

    It is back at the start of the first two successive windows of `LOOK_S` that are normal, if three of four are from
    then on.

    Parameters
    ----------
    course : Course
        The run.
    times_s : (float, float)
        When the loss and the return happened.
    limits : Normal
        What is normal.
    """
    starts, ends, rates, p99 = _windows(course)
    look = len(course.completed) - len(rates) + 1
    lost_s, returned_s = times_s
    normal = (rates >= limits.rate_per_s) & (p99 <= limits.p99_ms)
    twice = np.append(normal[:-look] & normal[look:], np.zeros(look, dtype=bool))
    still_lost = (starts >= lost_s - _ROUNDING) & (ends <= returned_s + _ROUNDING)
    returned = starts >= returned_s - _ROUNDING
    after_return = _first(starts[returned] - returned_s, normal[returned], twice[returned])
    after_loss = _first(starts[still_lost] - lost_s, normal[still_lost], twice[still_lost])
    if after_loss is None and after_return is not None:
        after_loss = returned_s - lost_s + after_return
    return Back(after_loss, after_return)


def _windows(course: Course) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return start, end, rate of completed requests and p99 of every window of `LOOK_S`."""
    look = max(1, round(LOOK_S / course.width_s))
    rates = _moving_sum(course.completed, look) / (look * course.width_s)
    starts = course.boundaries_s[: len(rates)]
    return starts, starts + look * course.width_s, rates, course.percentile_ms(P99, look)


def _first(times_s: FloatArray, normal: BoolArray, twice: BoolArray) -> float | None:
    """Return the first time with two normal windows from which on most windows are normal."""
    if not len(times_s):
        return None
    on = np.cumsum(normal[::-1])[::-1] / np.arange(len(normal), 0, -1)
    found = np.flatnonzero(twice & (on >= _MOST))
    return max(float(times_s[found[0]]), 0.0) if len(found) else None


def usual_share(course: Course, from_s: float) -> float:
    """Return completed over started requests from a time on: the median of `PARTS` equal parts.

    A single long busy period, as they come by chance, does not count for much; a lasting overload does.
    """
    first = min(int(np.searchsorted(course.boundaries_s, from_s - _ROUNDING)), len(course.started) - 1)
    parts = zip(*(np.array_split(each[first:], PARTS) for each in (course.completed, course.started)), strict=True)
    shares = [completed.sum() / started.sum() for completed, started in parts if started.sum()]
    return float(np.median(shares)) if shares else 0.0


def _moving_sum(values: IntArray, look: int) -> IntArray:
    """Return sums of `look` successive rows (rows - look + 1, ...)."""
    zero = np.zeros((1, *values.shape[1:]), dtype=values.dtype)
    sums = np.concatenate([zero, np.cumsum(values, axis=0)])
    found: IntArray = sums[look:] - sums[:-look]
    return found


def quantiles(each: Sequence[FloatArray]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return median, 5th and 95th percentile over runs at each interval; nan where no run has a value."""
    stacked = np.stack(each)
    found = np.full((3, stacked.shape[1]), np.nan)
    some = np.isfinite(stacked).any(axis=0)
    found[:, some] = np.nanquantile(stacked[:, some], (0.5, 0.05, 0.95), axis=0)
    return found[0], found[1], found[2]
