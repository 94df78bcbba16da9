"""Points of a sweep by the compiled engine: the analytic point, with its latencies simulated to a precision.

Latencies are those of `predict`: draws of the ensemble are simulated and carried over to all of them. Here draws are
added, in rounds, until the simulation's part of the band is narrow enough. What comes next depends on the results
alone, so a point does not depend on where or beside what it is computed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from capplan.calibration.case.ensemble import evenly_along
from capplan.calibration.system import Case
from capplan.models.results import STATISTICS, Band, Latency, plain, rounded
from capplan.planner.explore.sweep_analytic import verdict_cells
from capplan.planner.explore.sweep_table import SweepPoint, band_cells
from capplan.planner.predict.simulated_latency import (
    ChosenDraws,
    DrawPhases,
    RateSimulation,
    SimulationSettings,
    enough_requests,
    extended_to_all,
    is_too_slow,
    mean_response_s,
    relations_of,
    settling_s,
)
from capplan.planner.simulate.precision_target import PrecisionTarget

REQUESTS = 20_000  # measured at each draw
FIRST_DRAWS = 8
FEWEST_MORE = 2  # draws of a further round
GROWTH = 3.0  # times as many draws from round to round, at most: the width itself is an estimate
USUAL_LOAD = 0.8  # of the capacity, at which draws are put in order
MAX_DRAWS = 128  # beside saturation no number that anybody would wait for is enough


def simulated_points(points: Sequence[SweepPoint], case: Case[Any], target: PrecisionTarget) -> Iterator[SweepPoint]:
    """Yield analytic points of one layout with their latencies simulated.

    Points where `predict` does not simulate keep the solver's: where a queue grows without bound, where full buffers
    push back, and where it takes too long to settle.

    Parameters
    ----------
    points : sequence of SweepPoint
        Analytic points of the layout.
    case : Case
        The layout, with all draws.
    target : PrecisionTarget
        How precise the simulation must be.
    """
    limit = float(np.median(case.solution.capacity))
    for point in points:
        found: SweepPoint = {"engine": "compiled"}
        if case.solution.finite_at_capacity or point["offered_tps"] <= limit:
            found |= _latencies(case, point["offered_tps"], target)
        yield point | found


def _latencies(case: Case[Any], rate: float, target: PrecisionTarget) -> SweepPoint:
    """Return the simulated latencies at a rate, and how precise they are; nothing where none can be simulated."""
    solved, drawn = _drawn(case)
    figures, uncertainty = solved.solution.at(rate), solved.at(rate).uncertainty
    requests, settles_s = enough_requests(REQUESTS, case, figures), settling_s(case, figures)
    if figures.is_pushed_back or is_too_slow(figures, requests, settles_s):
        return {}
    if figures.closed is None:
        requests = max(requests, int(settles_s * rate))
    course = RateSimulation(drawn, figures.peak_rate, requests, SimulationSettings(case.seed, "compiled", threads=1))
    names = [name for name in target.classes if name in figures.asked] or figures.asked
    count, phases = FIRST_DRAWS, list[DrawPhases]()
    while count > len(phases):
        phases += course.run(range(len(phases), count))
        relations = relations_of(phases, drawn.chosen[:count], figures)
        latency = extended_to_all(relations, figures, uncertainty)
        width = max(_width(latency[name], target) for name in names)
        count = _next_count(width, count, target)
    known = {key: each for key, each in relations.items() if each is not None}
    return _cells(latency) | {"simulation": rounded(plain(width))} | verdict_cells(case, rate, known)


def _width(latency: Latency, target: PrecisionTarget) -> float:
    """Return the simulation's part of the statistic's band, as a share of the figure."""
    band: Band | None = getattr(latency, target.statistic)
    if band is None or band.parts.simulation is None:
        return math.inf
    return band.parts.simulation / band.value


def _next_count(width: float, count: int, target: PrecisionTarget) -> int:
    """Return how many draws there must be, as the width falls with the root of their number."""
    if width <= target.relative:
        return count
    times = min((width / target.relative) ** 2, GROWTH)
    return min(max(math.ceil(count * times), count + FEWEST_MORE), MAX_DRAWS)


@lru_cache(maxsize=2)  # rates of a layout come one after another
def _drawn(case: Case[Any]) -> tuple[Case[Any], ChosenDraws]:
    """Return a solved layout, and it with the draws that may be simulated."""
    busy = case.solution.at(USUAL_LOAD * float(np.median(case.solution.capacity)))
    return case, ChosenDraws(case, evenly_along(mean_response_s(busy), MAX_DRAWS, in_rounds=True))


def _cells(latency: dict[str, Latency]) -> SweepPoint:
    cells: SweepPoint = {}
    for name, statistics in latency.items():
        for statistic in STATISTICS:
            band: Band | None = getattr(statistics, statistic)
            figures = (math.nan,) * 3 if band is None else (band.value, band.low, band.high)
            cells |= band_cells(f"{name}_{statistic}_ms", figures)
    return cells
