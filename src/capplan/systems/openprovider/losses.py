"""Outages of nodes and data centres, round trips between data centres, and what remains."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

from capplan.layout.ensemble import Places
from capplan.layout.situations import Loss, Remainder
from capplan.layout.solution import Solution
from capplan.layout.system import Case
from capplan.layout.uncertainty import NO_OFFSET, ModelError, Offset
from capplan.models.cassandra.consistency import always_found, answers, available, lower_levels
from capplan.models.errors import InputError
from capplan.models.language.parameter import Values
from capplan.models.language.per_dc import proportions
from capplan.models.language.scenario import changed
from capplan.models.language.units import FloatArray
from capplan.models.results import STATISTICS
from capplan.models.solver.analytic import Analysis
from capplan.models.solver.pauses import RareDelay
from capplan.systems.openprovider.network import REPORTED, build_cluster, network, pauses
from capplan.systems.openprovider.priors import PARAMETERS
from capplan.systems.openprovider.scenario import OpenproviderScenario

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


_OPERATIONS = {"consistency_read": "read", "consistency_write": "write"}
_USUAL = (Loss({"node": 1}), Loss({"front": 1}), Loss({"dc": 1}), Loss({"dc": 2}))


def outages(case: Case[OpenproviderScenario], losses: Sequence[Loss]) -> tuple[Remainder, ...]:
    """Return what each loss leaves, and what lower levels would leave if the given levels fail.

    Survivors take over all clients. Hints for the lost replicas are not modelled.

    Parameters
    ----------
    case : Case
        The layout with its calibration.
    losses : sequence of Loss
        What is lost. If empty: one Cassandra node of each data centre, one RADIUS server of each, one data centre, and
        two where three or more stand.

    Returns
    -------
    tuple of Remainder
        Of unequal data centres, those are lost whose loss leaves the lowest capacity, one after the other.
    """
    usual = [loss for loss in _USUAL if _possible(case.scenario, loss)]
    return tuple(left for loss in losses or usual for left in _remainders(case, _worst(case, loss)))


def _possible(scenario: OpenproviderScenario, loss: Loss) -> bool:
    """Whether a default loss leaves anything, and so is worth reporting."""
    if "node" in loss.counts:
        return max(scenario.nodes_by_dc()) > 1
    if "front" in loss.counts:
        return max(scenario.fronts_by_dc()) > 1
    return loss.counts["dc"] < scenario.dcs


@dataclass(frozen=True)
class _Lost:
    """Lost nodes, RADIUS servers and data centres.

    Attributes
    ----------
    dcs
        The lost data centres, from 0.
    nodes, fronts
        Cassandra nodes and RADIUS servers that each other data centre loses.
    counts
        As it was asked.
    named
        Whether it matters which data centres they are.
    """

    dcs: tuple[int, ...]
    nodes: int
    fronts: int
    counts: Mapping[str, int]
    named: bool

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the lost data centres if they matter."""
        return tuple(f"dc{dc + 1}" for dc in self.dcs) if self.named else ()

    def in_words(self, dcs: int) -> str:
        """Return the loss in words."""
        each = "/DC" if dcs > 1 else ""
        parts = [f"{self.nodes} node{'s' * (self.nodes > 1)}{each}"] if self.nodes else []
        parts += [f"{self.fronts} RADIUS server{'s' * (self.fronts > 1)}{each}"] if self.fronts else []
        count = f"{len(self.dcs)} DC{'s' * (len(self.dcs) > 1)}"
        if self.named:
            named = ",".join(self.names)
            return "+".join([f"{count} ({named})" if self.counts.get("dc") else named, *parts])
        return "+".join([count] * bool(self.dcs) + parts)

    def alive_replicas(self, scenario: OpenproviderScenario) -> list[int]:
        """Return the live replicas by data centre, for the row that has lost the most."""
        return [
            0 if dc in self.dcs else max(replicas - self.nodes, 0) for dc, replicas in enumerate(scenario.rf_by_dc())
        ]

    def down(self, scenario: OpenproviderScenario) -> tuple[int, ...]:
        """Return the number of lost Cassandra nodes in each data centre."""
        nodes = scenario.nodes_by_dc()
        return tuple(count if dc in self.dcs else min(self.nodes, count) for dc, count in enumerate(nodes))

    def fronts_left(self, scenario: OpenproviderScenario) -> tuple[int, ...]:
        """Return the remaining RADIUS servers in each data centre; data centres without Cassandra use none."""
        fronts = scenario.fronts_by_dc()
        return tuple(0 if dc in self.dcs else max(count - self.fronts, 0) for dc, count in enumerate(fronts))

    def serving(self, scenario: OpenproviderScenario) -> list[int]:
        """Return the data centres that have clients after the loss; the remaining ones take over other clients."""
        down, fronts = self.down(scenario), self.fronts_left(scenario)
        nodes = scenario.nodes_by_dc()
        left = [dc for dc in range(scenario.dcs) if fronts[dc] and nodes[dc] > down[dc]]
        return list(proportions(scenario.shares_by_dc(), left)) if left else []


def _worst(case: Case[OpenproviderScenario], loss: Loss) -> _Lost:
    """Return a loss with its worst data centres, chosen one by one by the least remaining capacity."""
    scenario = case.scenario
    count = loss.counts.get("dc", 0)
    nodes, fronts = loss.counts.get("node", 0), loss.counts.get("front", 0)
    rest = [dc for dc in range(scenario.dcs) if dc not in loss.dcs]

    def lost(more: tuple[int, ...], named: bool) -> _Lost:
        return _Lost(tuple(sorted((*loss.dcs, *more))), nodes, fronts, loss.counts, named)

    if not count or not scenario.unequal:
        return lost(tuple(rest[len(rest) - count :]), bool(loss.dcs))
    values, chosen = case.system.median_values(case.fitted, scenario), tuple[int, ...]()
    for _ in range(count):
        every = [lost((*chosen, dc), True) for dc in rest if dc not in chosen]
        worst = min(every, key=lambda each: _rank(scenario, values, each))
        chosen = tuple(dc for dc in worst.dcs if dc not in loss.dcs)
    return lost(chosen, True)


def _rank(scenario: OpenproviderScenario, values: Values, lost: _Lost) -> tuple[bool, float]:
    """Return a sort key: losses that no level of the scenario survives first, then by remaining capacity."""
    survived = _survived(scenario, lost)
    if survived is None:
        return False, 0.0
    return survived == scenario, float(_left(survived, lost, values, values, None).capacity[0])


def _remainders(case: Case[OpenproviderScenario], lost: _Lost) -> Iterator[Remainder]:
    scenario, survived = case.scenario, _survived(case.scenario, lost)
    loss = {**lost.counts, **({"dc": len(lost.dcs)} if lost.dcs else {})}

    def remainder(assumed: str, left: OpenproviderScenario | None, cost: str = "") -> Remainder:
        return Remainder(
            name=lost.in_words(scenario.dcs),
            lost=loss,
            lost_dcs=lost.names,
            assumed=assumed,
            solved=None if left is None else partial(_left, left, lost, case.system.values(case.fitted, scenario)),
            offset=None if left is None else partial(_offset, left, lost),
            lowered={} if left is None else _lowered(scenario, left),
            cost=cost,
        )

    if survived == scenario:
        yield remainder(_levels(scenario), scenario)
        return
    yield remainder(_why_unavailable(scenario, lost), None)
    if survived is not None:
        yield remainder(_lowered_in_words(scenario, survived), survived, _cost(scenario, survived, lost))


def _survived(scenario: OpenproviderScenario, lost: _Lost) -> OpenproviderScenario | None:
    """Return the layout with the smallest reduction of its levels that survives a loss; None if there is none."""
    fields = {}
    for field in _OPERATIONS:
        asked = getattr(scenario, field)
        met = (level for level in (asked, *lower_levels(asked)) if _met(scenario, level, lost))
        fields[field] = next(met, None)
    if None in fields.values():
        return None
    try:
        return changed(scenario, **fields)
    except InputError:
        return None


def _met(scenario: OpenproviderScenario, level: str, lost: _Lost) -> bool:
    """Whether a level is met in every data centre that has clients after the loss."""
    alive, serving = lost.alive_replicas(scenario), lost.serving(scenario)
    return bool(serving) and all(available(level, scenario.rf_by_dc(), alive, dc) for dc in serving)


def _left(scenario: OpenproviderScenario, lost: _Lost, every: Values, values: Values, place: Places | None) -> Solution:
    """Analyse what remains of a layout; `every` contains all draws, `values` the solved ones."""
    fronts = tuple(max(count - lost.fronts, 0) for count in scenario.fronts_by_dc())
    left = scenario
    if lost.fronts:
        serving = proportions(scenario.shares_by_dc(), lost.serving(scenario))
        shares = tuple(serving.get(dc, 0.0) for dc in range(scenario.dcs))
        even = len({share for share in shares if share}) == 1 and all(shares)
        left = changed(scenario, front_nodes=fronts, client_share=None if even else shares)
    down = lost.down(scenario)

    def pausing(analysis: Analysis, rate_per_s: FloatArray, place: Places | None) -> dict[str, tuple[RareDelay, ...]]:
        return pauses(left, values if place is None else every, analysis, rate_per_s, place, down)

    return Solution(network(left, values, 1.0, down), REPORTED, place=place, pausing=pausing)


def _offset(scenario: OpenproviderScenario, lost: _Lost, values: Values) -> Offset:
    return offset(scenario, values, lost.down(scenario))


def _levels(scenario: OpenproviderScenario) -> str:
    return f"reads {scenario.consistency_read}, writes {scenario.consistency_write}"


def _failing(scenario: OpenproviderScenario, lost: _Lost) -> list[str]:
    levels = dict.fromkeys(getattr(scenario, field) for field in _OPERATIONS)
    return [level for level in levels if not _met(scenario, level, lost)]


def _why_unavailable(scenario: OpenproviderScenario, lost: _Lost) -> str:
    if not lost.serving(scenario):
        return "no DC is left with RADIUS servers and Cassandra"
    return f"unavailable at {' and '.join(_failing(scenario, lost))}"


def _lowered(scenario: OpenproviderScenario, survived: OpenproviderScenario) -> dict[str, str]:
    """Return the levels below the requested ones, by operation."""
    return {
        operation: getattr(survived, field)
        for field, operation in _OPERATIONS.items()
        if getattr(survived, field) != getattr(scenario, field)
    }


def _lowered_in_words(scenario: OpenproviderScenario, survived: OpenproviderScenario) -> str:
    return ", ".join(f"{operation}s at {level}" for operation, level in _lowered(scenario, survived).items())


def _cost(scenario: OpenproviderScenario, survived: OpenproviderScenario, lost: _Lost) -> str:
    """Return in words how many replicas confirm a write, and whether reads find later writes."""
    serving, alive, rf = lost.serving(scenario), lost.alive_replicas(scenario), scenario.rf_by_dc()
    before = min(answers(scenario.consistency_write, rf, dc) for dc in serving)
    after = min(answers(survived.consistency_write, rf, dc) for dc in serving)
    found = all(
        always_found(survived.consistency_read, survived.consistency_write, rf, alive, reader, writer)
        for reader in serving
        for writer in serving
    )
    reads = "reads still find them" if found else "reads may miss them"
    return f"confirmed by {after} replica{'s' * (after > 1)}, not {before}; {reads}"
