"""Outages of nodes and data centres, round trips between data centres, and what remains."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import ClassVar

import numpy as np

from capplan.answers.results import STATISTICS
from capplan.layout.case import Case
from capplan.layout.ensemble import Places
from capplan.layout.situations import Loss, Remainder
from capplan.layout.solution import Solution
from capplan.layout.uncertainty import NO_OFFSET, ModelError, Offset
from capplan.models.language.parameter import Values
from capplan.models.language.scenario import changed
from capplan.models.language.units import FloatArray
from capplan.models.solver.analytic import Analysis
from capplan.models.solver.pauses import RareDelay
from capplan.systems.components.losses import NODE, ClusterLosses, Lost
from capplan.systems.openprovider.network import REPORTED, build_cluster, network, pauses
from capplan.systems.openprovider.priors import PARAMETERS
from capplan.systems.openprovider.scenario import OpenproviderScenario

FRONT = "front"
_NOTHING = 1e-6
_TIMES = {each.name for each in PARAMETERS if each.unit == "s"}


def offset(scenario: OpenproviderScenario, values: Values, down: tuple[int, ...] = ()) -> Offset:
    """Return the latencies of an idle system in which only round trips take time.

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
    """Return mean and percentiles by request class if only round trips take time, at one value per parameter."""
    instant = {name: value * (_NOTHING if name in _TIMES else 1.0) for name, value in middle}
    figures = Solution(network(scenario, instant, 1.0, down), REPORTED).idle
    return {name: tuple(float(row[0]) for row in figures.latencies_s(name)) for name in figures.asked}


def round_trips_by_dc(scenario: OpenproviderScenario, values: Values) -> tuple[tuple[float, ...], ...]:
    """Return the round trips between data centres, seconds (dcs, dcs), medians over draws; empty for a single one."""
    one_way_s, dcs = build_cluster(scenario, values).wan_s, range(scenario.dcs)
    if scenario.dcs == 1:
        return ()
    return tuple(tuple(0.0 if a == b else 2 * float(np.median(one_way_s[a][b])) for b in dcs) for a in dcs)


def round_trips_s(scenario: OpenproviderScenario, values: Values) -> tuple[float, float]:
    """Return the shortest and longest round trip between data centres, seconds, medians over draws; 0 for one DC."""
    rows = round_trips_by_dc(scenario, values)
    found = [each for a, row in enumerate(rows) for b, each in enumerate(row) if a != b]
    return min(found, default=0.0), max(found, default=0.0)


def outages(case: Case[OpenproviderScenario], losses: Sequence[Loss]) -> tuple[Remainder, ...]:
    """Return what each loss leaves, as `Losses.remainders`."""
    return _Losses(case).remainders(losses)


class _Losses(ClusterLosses[OpenproviderScenario]):
    words: ClassVar = {NODE: "node", FRONT: "RADIUS server"}
    nothing_left = "no DC is left with RADIUS servers and Cassandra"

    def machines_by_dc(self, kind: str) -> tuple[int, ...]:
        return self.scenario.fronts_by_dc() if kind == FRONT else self.scenario.nodes_by_dc()

    def left(
        self, survived: OpenproviderScenario, lost: Lost, every: Values, values: Values, place: Places | None
    ) -> Solution:
        left, fronts, down = survived, lost.counts.get(FRONT, 0), self.down(lost)
        if fronts:
            serving = self.serving(lost)
            shares = tuple(serving.get(dc, 0.0) for dc in range(survived.dcs))
            even = len({share for share in shares if share}) == 1 and all(shares)
            numbers = tuple(max(count - fronts, 0) for count in survived.fronts_by_dc())
            left = changed(survived, front_nodes=numbers, client_share=None if even else shares)

        def pausing(
            analysis: Analysis, rate_per_s: FloatArray, place: Places | None
        ) -> dict[str, tuple[RareDelay, ...]]:
            return pauses(left, values if place is None else every, analysis, rate_per_s, place, down=down)

        return Solution(network(left, values, 1.0, down), REPORTED, place=place, pausing=pausing)

    def offset(self, survived: OpenproviderScenario, lost: Lost) -> Callable[[Values], Offset]:
        return partial(offset, survived, down=self.down(lost))
