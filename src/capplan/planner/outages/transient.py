"""The simulated time around a loss: rates, latencies and the time until they are back to normal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from capplan.models.errors import InputError
from capplan.models.language.network import Network
from capplan.models.language.traffic import Timeline
from capplan.models.language.units import FloatArray
from capplan.models.number_words import significant
from capplan.planner.outages.answer import Duration, Phase, SeriesBand, Transient
from capplan.planner.outages.course import LOOK_S, P50, P99, Course, back_to_normal, course_of, normal_of, quantiles
from capplan.planner.outages.effort import Effort, run_cost_s
from capplan.planner.outages.places import Return, with_loss
from capplan.simulator.analysis.output import CONFIDENCE, interval
from capplan.simulator.experiments.replications import ReplicationPlan, replicate
from capplan.simulator.results.tally import INTERVALS

SETTLES = 1 / 3
"""Share of the time before the loss in which the network fills up."""
SHORTEST_BEFORE_S = 2 * LOOK_S / (1 - SETTLES)
_PARTS = 20  # of a simulation: the loss comes after the first
MOST_REPLICATIONS, FEWEST_REPLICATIONS = 20, 3


@dataclass(frozen=True)
class Times:
    """When things happen, in seconds.

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
class Loss:
    """What is lost, and how it is noticed and comes back.

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
    network: Network, loss: Loss, times: Times, effort: Effort, within: float, processes: int = 1
) -> Transient:
    """Simulate the time around a loss.

    Parameters
    ----------
    network : Network
        The network with its clients; its own timeline is replaced.
    loss : Loss
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
        If the times make no sense.
    """
    times.check()
    fitting, count, why = _fitted(network, times, effort, loss.how.detection_s)
    named = with_loss(network, loss.places, (fitting.at_s, fitting.returned_s), loss.how)
    plan = ReplicationPlan(named, fitting.duration_s, 0.0, effort.seed, count)
    courses = replicate(plan, course_of, processes=processes)
    span = fitting.at_s, fitting.returned_s
    margin_s = _margin_s(network, fitting)
    limits = normal_of(courses, (SETTLES * fitting.at_s, fitting.at_s - margin_s), within)
    backs = [back_to_normal(each, span, limits) for each in courses]
    since = fitting.at_s
    ended = _rows(courses[0], since, fitting.duration_s)
    lost = sum(int(each.unanswered[ended].sum()) for each in courses)
    begun = sum(int(each.started[ended].sum()) for each in courses)
    return Transient(
        name=loss.name,
        places=loss.places,
        lost_s=fitting.at_s,
        returned_s=fitting.returned_s,
        duration_s=fitting.duration_s,
        detection_s=loss.how.detection_s,
        cold_s=loss.how.cold_s,
        cold_speed=loss.how.cold_speed,
        shortened=why,
        replications=count,
        started=sum(int(each.started.sum()) for each in courses),
        unanswered_share=lost / max(begun, 1),
        within=within,
        back_after_loss_s=_duration([each.after_loss_s for each in backs], courses[0].width_s),
        back_after_return_s=_duration([each.after_return_s for each in backs], courses[0].width_s),
        phases=tuple(_phases(courses, fitting, loss.how.detection_s, margin_s)),
        boundaries_s=tuple(courses[0].boundaries_s.tolist()),
        series=_series(courses),
    )


def _fitted(network: Network, times: Times, effort: Effort, detection_s: float) -> tuple[Times, int, str]:
    """Return times that fit the budget, the number of replications, and why times are shorter, in words."""
    second_s = run_cost_s(replace(network, timeline=Timeline()), 1.0, effort.seed)
    cost_s = second_s * times.duration_s
    most = effort.replications or MOST_REPLICATIONS
    count = min(most, int(effort.budget_s / cost_s)) if cost_s > 0 else most
    if effort.replications is not None or count >= FEWEST_REPLICATIONS:
        return times, max(count, effort.replications or 0), ""
    share = effort.budget_s / (FEWEST_REPLICATIONS * cost_s)
    fitting = Times(
        float(round(max(times.at_s * share, SHORTEST_BEFORE_S))),
        float(round(max(times.lasts_s * share, min(times.lasts_s, detection_s + 2 * LOOK_S)))),
        float(round(max(times.after_s * share, min(times.after_s, 3 * LOOK_S)))),
    )
    asked = f"{times.lasts_s:g} s of loss in {times.duration_s:g} s would take {significant(3 * cost_s)} s to compute"
    return fitting, FEWEST_REPLICATIONS, f"{asked}: --budget {math.ceil(3 * cost_s)}s simulates them"


def _margin_s(network: Network, times: Times) -> float:
    """Return the time before the loss in which requests may start that the loss still reaches: that of one attempt."""
    timeouts = [float(np.max(each.timeout_s)) for each in network.classes if each.timeout_s is not None]
    room_s = (1 - SETTLES) * times.at_s - LOOK_S - 2 * times.duration_s / INTERVALS
    return max(min(max(timeouts, default=0.0), room_s), 0.0)


def _duration(each: Sequence[float | None], width_s: float) -> Duration:
    """Return the mean of times that are known to an interval's width, and its interval, which is no narrower."""
    known = np.array([value for value in each if value is not None])
    if not len(known):
        return Duration(None, None, 0)
    if len(known) == 1:
        return Duration(float(known[0]), None, 1)
    found = interval(float(known.mean()), float(known.var(ddof=1)) / len(known), len(known) - 1, CONFIDENCE)
    return Duration(found.value, max(found.half_width or 0.0, width_s / 2), len(known))


def _rows(course: Course, from_s: float, to_s: float) -> slice:
    """Return the intervals that lie in a time."""
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
    bounds = courses[0].boundaries_s
    seconds = float(bounds[rows.stop] - bounds[rows.start]) * len(courses)
    p50, p99 = (
        [float(_within(each, rows).percentile_ms(level, rows.stop - rows.start)[0]) for each in courses]
        for level in (P50, P99)
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


def _within(course: Course, rows: slice) -> Course:
    return replace(course, counts=course.counts[rows])


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


def _band(each: Sequence[FloatArray]) -> SeriesBand:
    middle, low, high = (tuple(part.tolist()) for part in quantiles(each))
    return SeriesBand(middle, low, high)
