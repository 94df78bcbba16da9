"""How much of each latency is round trips between data centres, which the model error does not cover."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from capplan.calibration.case.model_error import ModelError
from capplan.calibration.case.solution import Solution
from capplan.calibration.case.uncertainty import NO_OFFSET, Offset
from capplan.models.language.parameter import Values
from capplan.models.language.scenario import changed
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
    length = 1.0 if scenario.rtt is not None else (1 + values["route_excess"]) / (1 + middle["route_excess"])
    times = {
        name: {statistic: each * length for statistic, each in zip(STATISTICS, row, strict=True)}
        for name, row in _idle_times_s(*_alike(scenario, down), tuple(middle.items())).items()
    }
    return Offset(times, ModelError(0.0))


def _alike(scenario: OpenproviderScenario, down: tuple[int, ...]) -> tuple[OpenproviderScenario, tuple[int, ...]]:
    """Return the smallest layout with the same round trips, and its lost nodes.

    The number of nodes does not matter where all of a data centre are alive or all are lost. TLS handshakes keep their
    time in an instant system, and how many a request waits for does depend on the nodes.
    """
    plain = changed(scenario, tps=None, tps_mean=None, slo=())
    nodes = scenario.nodes_by_dc()
    if scenario.unequal or scenario.encryption is not None or any(0 < lost < nodes[dc] for dc, lost in enumerate(down)):
        return plain, down
    fewest = scenario.rf_by_dc()
    return changed(plain, cass_nodes=fewest[0], front_nodes=1), tuple(
        fewest[dc] if lost else 0 for dc, lost in enumerate(down)
    )


@lru_cache(maxsize=64)  # layouts that differ in numbers of machines share them
def _idle_times_s(
    scenario: OpenproviderScenario, down: tuple[int, ...], middle: tuple[tuple[str, float], ...]
) -> dict[str, tuple[float, ...]]:
    """Return mean and percentiles by request class where only round trips take time, at one value of each parameter."""
    instant = {name: value * (_NOTHING if name in _TIMES else 1.0) for name, value in middle}
    figures = Solution(network(scenario, instant, 1.0, down), REPORTED).idle
    return {name: tuple(float(row[0]) for row in figures.latencies_s(name)) for name in figures.asked}


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
