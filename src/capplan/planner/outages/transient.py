"""The simulated minutes around a loss: rates, latencies and the time until they are back to normal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from capplan.answers.number_words import significant
from capplan.errors import InputError
from capplan.models.language.network import Network
from capplan.models.language.traffic import Timeline
from capplan.models.language.units import FloatArray
from capplan.planner.outages.outages_answer import Duration, Phase, SeriesBand, Transient
from capplan.planner.outages.places import Return, with_loss
from capplan.simulator.engine import simulate
from capplan.simulator.output import CONFIDENCE, interval
from capplan.simulator.replications import ReplicationPlan, replicate
from capplan.simulator.results.histogram import IntArray, bin_middles
from capplan.simulator.results.run import Run
from capplan.simulator.results.tally import COMPLETED, DROPPED, INTERVALS, RETRIES, STARTED, TIMED_OUT
from capplan.simulator.specification.clock import TICKS_PER_S

LOOK_S = 5.0
"""Seconds that are looked at together: a percentile of one second may rest on few requests."""
P50, P99 = 0.5, 0.99
PARTS = 8
_MOST = 0.75  # of the windows after a run is back to normal; single ones may exceed a limit by chance
_ROUNDING = 1e-6  # seconds
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Course:
    """The results of one run by interval; arrays have the shape (intervals,) unless stated otherwise.

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
class Normal:
    """The limits of normal operation in each window of `LOOK_S`.

    Attributes
    ----------
    rate_per_s
        The lowest rate of completed requests.
    p99_ms
        The highest p99.
    """

    rate_per_s: float
    p99_ms: float


def normal_of(courses: Sequence[Course], normal_s: tuple[float, float], within: float) -> Normal | None:
    """Return the limits of normal operation: the worst windows of all runs before a loss, and a tolerance.

    None if no request is answered before the loss, as far above the capacity: then nothing is normal.

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
    return Normal((1 - within) * min(rates), (1 + within) * max(p99)) if p99 else None


def back_to_normal(
    course: Course, times_s: tuple[float, float], limits: Normal | None
) -> tuple[float | None, float | None]:
    """Return the seconds from a loss, and from the return, until a run was back to normal; None if it never was.

    It is back at the start of the first two successive windows of `LOOK_S` that are normal, if three of four are from
    then on.

    Parameters
    ----------
    course : Course
        The run.
    times_s : (float, float)
        When the loss and the return happened.
    limits : Normal or None
        What is normal; None: nothing.
    """
    if limits is None:
        return None, None
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
    return after_loss, after_return


def _windows(course: Course) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return start, end, rate of completed requests and p99 of every window of `LOOK_S`."""
    look = max(1, round(LOOK_S / course.width_s))
    rates = _moving_sum(course.completed, look) / (look * course.width_s)
    starts = course.boundaries_s[: len(rates)]
    return starts, starts + look * course.width_s, rates, course.percentile_ms(P99, look)


def _first(times_s: FloatArray, normal: BoolArray, twice: BoolArray) -> float | None:
    """Return the start of the first two successive normal windows after which most windows are normal."""
    if not len(times_s):
        return None
    on = np.cumsum(normal[::-1])[::-1] / np.arange(len(normal), 0, -1)
    found = np.flatnonzero(twice & (on >= _MOST))
    return max(float(times_s[found[0]]), 0.0) if len(found) else None


def usual_share(course: Course, from_s: float) -> float:
    """Return the usual ratio of completed to started requests from a time on: the median of `PARTS` equal parts.

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


def _band(each: Sequence[FloatArray]) -> SeriesBand:
    """Return median, 5th and 95th percentile over runs at each interval; nan where no run has a value."""
    stacked = np.stack(each)
    found = np.full((3, stacked.shape[1]), np.nan)
    some = np.isfinite(stacked).any(axis=0)
    found[:, some] = np.nanquantile(stacked[:, some], (0.5, 0.05, 0.95), axis=0)
    return SeriesBand(*(tuple(part) for part in found.tolist()))


EVENT_S = 300e-9
"""Nominal time for which one of two threads simulates an event."""
RUN_S = 5e-3
"""Nominal time to begin and to report a run."""
THREADS = 2
LONGEST_UNASKED_S = 20.0
"""Longest nominal time to simulate a loss that takes longer than the budget, however short its times are made."""
_PILOT_EVENTS = 20_000
_MOST_PILOT_S = 1000.0


@dataclass(frozen=True)
class Effort:
    """How much to simulate.

    Attributes
    ----------
    budget_s
        Seconds of a nominal machine for each loss or table.
    seed
        Seed of every random number.
    replications
        Number of replications; None: what the budget pays for.
    """

    budget_s: float = 10.0
    seed: int = 1
    replications: int | None = None


def run_cost_s(network: Network, duration_s: float, seed: int) -> float:
    """Return the cost of a run in seconds of the nominal machine, from the events of a short run.

    The rule has no clock, so the same budget gives the same figures on every machine.
    """
    length_s, events = 0.05, 0
    while events < _PILOT_EVENTS and length_s < _MOST_PILOT_S:
        length_s *= 4
        events = simulate(network, length_s, seed=seed).events
    return events / length_s * duration_s * EVENT_S / THREADS


SETTLES = 1 / 3
"""Share of the time before the loss in which the network fills up."""
SHORTEST_BEFORE_S = 2 * LOOK_S / (1 - SETTLES)
_PARTS = 20  # of a simulation: the loss comes after the first
MOST_REPLICATIONS, FEWEST_REPLICATIONS = 20, 3


@dataclass(frozen=True)
class Times:
    """The times of a simulated loss, in seconds.

    Attributes
    ----------
    at_s
        Time of the loss.
    lasts_s
        How long it lasts.
    after_s
        How long the simulation goes on after the return.
    """

    at_s: float
    lasts_s: float
    after_s: float

    @property
    def returned_s(self) -> float:
        """Time of the return."""
        return self.at_s + self.lasts_s

    @property
    def duration_s(self) -> float:
        """Length of the simulation."""
        return self.returned_s + self.after_s

    def check(self) -> None:
        """Check the times.

        Raises
        ------
        InputError
            If there is not enough time before the loss to know what is normal, or after the return to see it again.
        """
        least = max(SHORTEST_BEFORE_S, self.duration_s / _PARTS)
        if self.at_s < least:
            raise InputError(
                f"a loss at {self.at_s:g} s leaves too little time to see what is normal: give at least "
                f"--at {math.ceil(least)}s"
            )
        if self.lasts_s <= 0:
            raise InputError(f"a loss of {self.lasts_s:g} s is none: give --for more than 0, such as 60s")
        if self.after_s < 2 * LOOK_S:
            raise InputError(
                f"{self.after_s:g} s after the return are too few to see whether it recovers: give at least "
                f"--after {2 * LOOK_S:g}s"
            )


@dataclass(frozen=True)
class SimulatedLoss:
    """The lost places, and how the loss is detected and ends.

    Attributes
    ----------
    name
        What is lost, in words.
    places
        The stations, members of stations or hosts that go down.
    how
        How the loss is noticed, and how what was lost comes back.
    """

    name: str
    places: tuple[str, ...]
    how: Return


def transient(
    network: Network, loss: SimulatedLoss, times: Times, effort: Effort, within: float, processes: int = 1
) -> Transient:
    """Simulate the minutes around a loss.

    Parameters
    ----------
    network : Network
        The network with its clients; its own timeline is replaced.
    loss : SimulatedLoss
        What is lost.
    times : Times
        When. If the budget does not pay for three replications, all times are shortened alike, down to what is needed
        to see anything.
    effort : Effort
        Budget, seed and replications.
    within : float
        Tolerance of what counts as normal, as a share.
    processes : int
        How many replications run at a time; the answer does not depend on it.

    Raises
    ------
    InputError
        If the times make no sense, or the shortest that do would take much longer than the budget.
    """
    times.check()
    fitting, count, why = _fitted(network, times, effort, loss.how.detection_s)
    span = fitting.at_s, fitting.returned_s
    named = with_loss(network, loss.places, span, loss.how)
    plan = ReplicationPlan(named, fitting.duration_s, 0.0, effort.seed, count)
    courses = replicate(plan, course_of, processes=processes)
    margin_s = _margin_s(network, fitting)
    limits = normal_of(courses, (SETTLES * fitting.at_s, fitting.at_s - margin_s), within)
    after_loss, after_return = zip(*(back_to_normal(each, span, limits) for each in courses), strict=True)
    ended = _rows(courses[0], fitting.at_s, fitting.duration_s)
    lost = sum(int(each.unanswered[ended].sum()) for each in courses)
    answered = sum(int(each.completed[ended].sum()) for each in courses)
    return Transient(
        name=loss.name,
        places=loss.places,
        lost_s=fitting.at_s,
        returned_s=fitting.returned_s,
        duration_s=fitting.duration_s,
        **vars(loss.how),
        shortened=why,
        replications=count,
        started=sum(int(each.started.sum()) for each in courses),
        unanswered_share=lost / max(lost + answered, 1),
        within=within,
        back_after_loss_s=_duration(after_loss, courses[0].width_s),
        back_after_return_s=_duration(after_return, courses[0].width_s),
        phases=tuple(_phases(courses, fitting, loss.how.detection_s, margin_s)),
        boundaries_s=tuple(courses[0].boundaries_s.tolist()),
        series=_series(courses),
    )


def _fitted(network: Network, times: Times, effort: Effort, detection_s: float) -> tuple[Times, int, str]:
    """Return times that fit the budget, the number of replications, and in words why times are shorter."""
    second_s = run_cost_s(replace(network, timeline=Timeline()), 1.0, effort.seed)
    cost_s = second_s * times.duration_s
    most = effort.replications or MOST_REPLICATIONS
    count = min(most, int(effort.budget_s / cost_s)) if cost_s > 0 else most
    fitting, why = times, ""
    if effort.replications is not None:
        count = effort.replications
    elif count < FEWEST_REPLICATIONS:
        count, share = FEWEST_REPLICATIONS, effort.budget_s / (FEWEST_REPLICATIONS * cost_s)
        fitting = Times(
            float(round(max(times.at_s * share, SHORTEST_BEFORE_S))),
            float(round(max(times.lasts_s * share, min(times.lasts_s, detection_s + 2 * LOOK_S)))),
            float(round(max(times.after_s * share, min(times.after_s, 3 * LOOK_S)))),
        )
        asked = (
            f"{times.lasts_s:g} s of loss in {times.duration_s:g} s would take {significant(3 * cost_s)} s to compute"
        )
        why = f"{asked}: --budget {math.ceil(3 * cost_s)}s simulates them"
    _check_cost(second_s * fitting.duration_s * count, fitting.duration_s * count, effort.budget_s)
    return fitting, count, why


def _check_cost(cost_s: float, simulated_s: float, budget_s: float) -> None:
    if cost_s > max(budget_s, LONGEST_UNASKED_S):
        raise InputError(
            f"simulating the {simulated_s:g} s that a loss needs takes about {significant(cost_s)} s, and the budget "
            f"is {budget_s:g} s: add --budget {math.ceil(cost_s)}s, or ask at a lower rate"
        )


def _margin_s(network: Network, times: Times) -> float:
    """Return how long before the loss requests may start and still be affected: the time of one attempt."""
    timeouts = [float(np.max(each.timeout_s)) for each in network.classes if each.timeout_s is not None]
    room_s = (1 - SETTLES) * times.at_s - LOOK_S - 2 * times.duration_s / INTERVALS
    return max(min(max(timeouts, default=0.0), room_s), 0.0)


def _duration(each: Sequence[float | None], width_s: float) -> Duration:
    """Return the mean duration and its interval, which is at least as wide as the resolution of the times."""
    known = np.array([value for value in each if value is not None])
    if not len(known):
        return Duration(None, None, 0)
    if len(known) == 1:
        return Duration(float(known[0]), None, 1)
    found = interval(float(known.mean()), float(known.var(ddof=1)) / len(known), len(known) - 1, CONFIDENCE)
    return Duration(found.value, max(found.half_width or 0.0, width_s / 2), len(known))


def _rows(course: Course, from_s: float, to_s: float) -> slice:
    """Return the intervals within a period."""
    first = int(np.searchsorted(course.boundaries_s, from_s - course.width_s / 2))
    last = int(np.searchsorted(course.boundaries_s, to_s - course.width_s / 2))
    return slice(first, max(last, first + 1))


def _phases(courses: Sequence[Course], times: Times, detection_s: float, margin_s: float) -> list[Phase]:
    noticed = min(times.at_s + detection_s, times.returned_s)
    ends = {
        "before": (SETTLES * times.at_s, times.at_s - margin_s),
        "undetected": (times.at_s, noticed),
        "detected": (noticed, times.returned_s),
        "after": (times.returned_s, times.duration_s),
    }
    return [_phase(name, courses, *between) for name, between in ends.items() if between[1] > between[0]]


def _phase(name: str, courses: Sequence[Course], from_s: float, to_s: float) -> Phase:
    rows = _rows(courses[0], from_s, to_s)
    bounds, inside = courses[0].boundaries_s, [replace(each, counts=each.counts[rows]) for each in courses]
    seconds = float(bounds[rows.stop] - bounds[rows.start]) * len(courses)
    p50, p99 = (
        [float(each.percentile_ms(level, rows.stop - rows.start)[0]) for each in inside] for level in (P50, P99)
    )
    return Phase(
        name=name,
        from_s=from_s,
        to_s=to_s,
        completed_per_s=sum(int(each.completed[rows].sum()) for each in courses) / seconds,
        unanswered_per_s=sum(int(each.unanswered[rows].sum()) for each in courses) / seconds,
        retries_per_s=sum(int(each.retries[rows].sum()) for each in courses) / seconds,
        p50_ms=_mean(p50),
        p99_ms=_mean(p99),
    )


def _mean(values: Sequence[float]) -> float | None:
    known = [value for value in values if np.isfinite(value)]
    return float(np.mean(known)) if known else None


def _series(courses: Sequence[Course]) -> dict[str, SeriesBand]:
    width = np.diff(courses[0].boundaries_s)
    figures = {
        "completed_per_s": [each.completed / width for each in courses],
        "unanswered_per_s": [each.unanswered / width for each in courses],
        "retries_per_s": [each.retries / width for each in courses],
        "p50_ms": [each.percentile_ms(P50) for each in courses],
        "p99_ms": [each.percentile_ms(P99) for each in courses],
    }
    return {name: _band(each) for name, each in figures.items()}
