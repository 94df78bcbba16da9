"""How much of each latency is round trips between data centres, which the model error does not cover."""

from __future__ import annotations

import numpy as np

from capplan.calibration.case.model_error import ModelError
from capplan.calibration.case.solution import Solution
from capplan.calibration.case.uncertainty import NO_OFFSET, Offset
from capplan.models.language.parameter import Values
from capplan.models.results import STATISTICS
from capplan.systems.openprovider.network import PARAMETERS, REPORTED, build_cluster, network
from capplan.systems.openprovider.scenario import OpenproviderScenario

_NOTHING = 1e-6
_TIMES = {each.name for each in PARAMETERS if each.unit == "s"}


def offset(scenario: OpenproviderScenario, values: Values, down: tuple[int, ...] = ()) -> Offset:
    """Return the latencies of an idle system in which everything but the round trips takes no time.

    Their length is known where it is given. Where it follows from the distance, draws of the fibre's detour vary it.
    As many Cassandra nodes of each data centre as `down` says are lost.
    """
    if scenario.dcs == 1:
        return NO_OFFSET
    middle = {name: float(np.median(value)) for name, value in values.items()}
    instant = {name: value * (_NOTHING if name in _TIMES else 1.0) for name, value in middle.items()}
    figures = Solution(network(scenario, instant, 1.0, down), REPORTED).idle
    length = 1.0 if scenario.rtt is not None else (1 + values["route_excess"]) / (1 + middle["route_excess"])
    times = {
        name: {
            statistic: float(row[0]) * length
            for statistic, row in zip(STATISTICS, figures.latencies_s(name), strict=True)
        }
        for name in figures.asked
    }
    return Offset(times, ModelError(0.0))


def round_trips_by_dc(scenario: OpenproviderScenario, values: Values) -> tuple[tuple[float, ...], ...]:
    """Return the round trips between data centres, seconds (dcs, dcs), medians over draws; empty with one."""
    one_way_s, dcs = build_cluster(scenario, values).wan_s, range(scenario.dcs)
    if scenario.dcs == 1:
        return ()
    return tuple(tuple(0.0 if a == b else 2 * float(np.median(one_way_s[a][b])) for b in dcs) for a in dcs)


def round_trips_s(scenario: OpenproviderScenario, values: Values) -> tuple[float, float]:
    """Return the shortest and the longest round trip between data centres, seconds, 0 in one; medians over draws."""
    rows = round_trips_by_dc(scenario, values)
    found = [each for a, row in enumerate(rows) for b, each in enumerate(row) if a != b]
    return min(found, default=0.0), max(found, default=0.0)
