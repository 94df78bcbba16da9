"""Conditions under which the analytic solver is measurably less accurate.

Elsewhere, the mean is within 5 % of simulation in 19 of 20 random layouts with open, closed and throttled traffic, the
median within 12 % and the 99th percentile within 15 % in as many. Under each of the conditions below, a tenth of the
layouts or more are not.
Their figures are ninth deciles of the errors where no other condition holds, of 800 random layouts
(`docs/generate/random_layouts.py`, seeds 15 and 16, 400 each; docs/reference/accuracy.md has those of the first 200).
Those of clients at one station are of a grid of such stations (`tests/models/solver/test_known_errors.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from capplan.models.language.step import CountdownLatch, ForkJoin, Step, children
from capplan.models.language.traffic import Closed, Throttled
from capplan.models.solver.analytic import Analysis

MEAN, P50, P99 = 0.05, 0.12, 0.15
"""Relative errors of the mean, the median and the 99th percentile that are not exceeded elsewhere."""
_USUAL_LOAD = 0.801  # and a little more than 80 %, from rounding
_REGULAR, _EXPONENTIAL, _IRREGULAR = 0.25, 1.001, 4.0  # squared coefficients of variation


@dataclass(frozen=True)
class KnownError:
    """A condition under which the solver is less accurate.

    Attributes
    ----------
    where
        The condition, in words.
    mean
        Relative error that the mean does not exceed in nine of ten layouts with this condition alone; null if it is as
        accurate as elsewhere.
    p50
        The same for the median.
    p99
        The same for the 99th percentile.
    """

    where: str
    mean: float | None
    p50: float | None
    p99: float | None


Condition = Callable[[Analysis, float], bool]


def _is_loaded(_: Analysis, load: float) -> bool:
    return load > _USUAL_LOAD


def _varies(analysis: Analysis, _: float) -> bool:
    return _scv(analysis) > _IRREGULAR


def _shares_regular_lanes(analysis: Analysis, _: float) -> bool:
    station = analysis.stations[_main_station(analysis)]
    return station.discipline == "ps" and station.has_lanes and _scv(analysis) < _REGULAR


def _has_quorum_of_lanes(analysis: Analysis, _: float) -> bool:
    lanes = analysis.stations[_main_station(analysis)].has_lanes
    return lanes and _scv(analysis) > _EXPONENTIAL and any(map(_waits, analysis.flows.values()))


def _scv(analysis: Analysis) -> float:
    """Return the squared coefficient of variation of the services at the main station."""
    demand = analysis.demands[_main_station(analysis)]
    return float(np.median(demand.second_moment_s2 * demand.visits / np.maximum(demand.mean_s, 1e-300) ** 2) - 1)


def _has_clients_at_one_regular_station(kind: type[Closed | Throttled]) -> Condition:
    def holds(analysis: Analysis, _: float) -> bool:
        name = _main_station(analysis)
        station = analysis.stations[name]
        alone = analysis.members[name] == 1 and station.discipline == "fcfs" and not station.has_lanes
        return alone and isinstance(analysis.traffic, kind) and _scv(analysis) < _REGULAR

    return holds


CONDITIONS: tuple[tuple[KnownError, Condition], ...] = (
    (KnownError("load above 80 % of the capacity", 0.12, 0.12, 0.23), _is_loaded),
    (KnownError(f"services with an SCV above {_IRREGULAR:g}", 0.14, 0.32, 0.25), _varies),
    (KnownError("processor sharing in lanes by services that hardly vary", None, None, 0.22), _shares_regular_lanes),
    (
        KnownError("quorums of lanes whose services vary more than exponential ones", None, 0.15, None),
        _has_quorum_of_lanes,
    ),
    (
        KnownError("closed clients at one station whose services hardly vary", 0.40, 0.43, 0.46),
        _has_clients_at_one_regular_station(Closed),
    ),
    (
        KnownError("throttled clients at one station whose services hardly vary", 0.81, None, 7.6),
        _has_clients_at_one_regular_station(Throttled),
    ),
)
"""The conditions, and the errors under them."""


def known_errors(analysis: Analysis, load: float) -> tuple[KnownError, ...]:
    """Return the conditions that make the figures of an analysed network less accurate.

    Parameters
    ----------
    analysis : Analysis
        The analysed network. What counts is the station at which a request spends most of its time on the response
        path.
    load : float
        Offered rate over the capacity; with clients, their rate over that of saturation.

    Returns
    -------
    tuple of KnownError
    """
    return tuple(error for error, holds in CONDITIONS if holds(analysis, load))


def _main_station(analysis: Analysis) -> str:
    times = analysis.path_times_s
    return max(times, key=lambda names: float(np.median(times[names])))[0]


def _waits(flow: Step) -> bool:
    """Whether a flow waits for two or more of several parallel branches."""
    left, seen = [flow], set[int]()
    while left:
        step = left.pop()
        if id(step) in seen:
            continue
        seen.add(id(step))
        if isinstance(step, ForkJoin) and step.needed > 1:
            return True
        if isinstance(step, CountdownLatch) and any(group.needed > 1 for group in step.groups):
            return True
        left.extend(children(step))
    return False
