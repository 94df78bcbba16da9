"""Outages of nodes and data centres of a fitted cluster: the consistency levels that survive, and what remains."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from capplan.layout.ensemble import Places
from capplan.layout.situations import DC, Loss, Remainder
from capplan.layout.solution import Solution
from capplan.layout.system import Case
from capplan.models.cassandra.consistency import always_found, answers, available, lower_levels
from capplan.models.errors import InputError
from capplan.models.language.parameter import Values
from capplan.models.language.per_dc import proportions
from capplan.models.language.scenario import changed
from capplan.models.language.units import FloatArray
from capplan.models.solver.analytic import Analysis
from capplan.models.solver.pauses import RareDelay
from capplan.systems.cassandra.network import REPORTED, network, pauses, variation, waiting
from capplan.systems.cassandra.scenario import CassandraScenario

NODE = "node"
LOSSES = {NODE: "a Cassandra node in each DC", DC: "the worst DC to lose"}
_USUAL = (Loss({NODE: 1}), Loss({DC: 1}), Loss({DC: 2}))


def outages(case: Case[CassandraScenario], losses: Sequence[Loss]) -> tuple[Remainder, ...]:
    """Return what each loss leaves, and what lower levels would leave if the given levels fail.

    The survivors have the work and the delays that the load tests show of the whole layout, and take over all clients.
    No load test shows them with nodes down. Hints for the lost replicas are not modelled.

    Parameters
    ----------
    case : Case
        The layout with its calibration.
    losses : sequence of Loss
        What is lost. If empty: one node of each data centre, one data centre, and two where three or more stand.

    Returns
    -------
    tuple of Remainder
        Of unequal data centres, those are lost whose loss leaves the lowest capacity, one after the other.
    """
    usual = [loss for loss in _USUAL if _possible(case.scenario, loss)]
    return tuple(left for loss in losses or usual for left in _remainders(case, _worst(case, loss)))


def _possible(scenario: CassandraScenario, loss: Loss) -> bool:
    """Whether a default loss leaves anything, and so is worth reporting."""
    if NODE in loss.counts:
        return max(scenario.nodes_by_dc()) > 1
    return loss.counts[DC] < scenario.dcs


@dataclass(frozen=True)
class _Lost:
    """Lost nodes and data centres.

    Attributes
    ----------
    scenario
        The whole layout.
    dcs
        The lost data centres, from 0.
    nodes
        Nodes that each other data centre loses.
    named
        Whether it matters which data centres they are.
    """

    scenario: CassandraScenario
    dcs: tuple[int, ...]
    nodes: int
    named: bool

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the lost data centres if they matter."""
        return tuple(f"dc{dc + 1}" for dc in self.dcs) if self.named else ()

    @property
    def counts(self) -> Mapping[str, int]:
        """Numbers of lost machines of each kind."""
        counts = {NODE: self.nodes, DC: len(self.dcs)}
        return {word: count for word, count in counts.items() if count}

    def in_words(self) -> str:
        """Return the loss in words."""
        named = f" ({','.join(self.names)})" if self.named else ""
        dcs = [f"{len(self.dcs)} DC{'s' * (len(self.dcs) > 1)}{named}"] if self.dcs else []
        each = "/DC" if self.scenario.dcs > 1 else ""
        nodes = [f"{self.nodes} node{'s' * (self.nodes > 1)}{each}"] if self.nodes else []
        return "+".join((*dcs, *nodes))

    @property
    def alive_replicas(self) -> tuple[int, ...]:
        """Live replicas by data centre, for the row that has lost the most."""
        found = enumerate(self.scenario.rf_by_dc())
        return tuple(0 if dc in self.dcs else max(replicas - self.nodes, 0) for dc, replicas in found)

    @property
    def down(self) -> tuple[int, ...]:
        """Number of lost nodes in each data centre."""
        found = enumerate(self.scenario.nodes_by_dc())
        return tuple(count if dc in self.dcs else min(self.nodes, count) for dc, count in found)

    @property
    def serving(self) -> tuple[int, ...]:
        """The data centres that have clients after the loss; the remaining ones take over the others' clients."""
        nodes = enumerate(self.scenario.nodes_by_dc())
        left = [dc for dc, count in nodes if count > self.down[dc]]
        return tuple(proportions(self.scenario.shares_by_dc(), left)) if left else ()

    def met(self, level: str) -> bool:
        """Return whether a level is met in every data centre that has clients after the loss."""
        replicas = self.scenario.rf_by_dc()
        return bool(self.serving) and all(available(level, replicas, self.alive_replicas, dc) for dc in self.serving)


def _worst(case: Case[CassandraScenario], loss: Loss) -> _Lost:
    """Return a loss with its worst data centres, chosen one by one by the least remaining capacity."""
    scenario = case.scenario
    count, rest = loss.counts.get(DC, 0), [dc for dc in range(scenario.dcs) if dc not in loss.dcs]

    def lost(more: tuple[int, ...], named: bool) -> _Lost:
        return _Lost(scenario, tuple(sorted((*loss.dcs, *more))), loss.counts.get(NODE, 0), named)

    if not count or not scenario.unequal:
        return lost(tuple(rest[len(rest) - count :]), bool(loss.dcs))
    values, chosen = case.system.median_values(case.fitted, scenario), tuple[int, ...]()
    for _ in range(count):
        every = [lost((*chosen, dc), True) for dc in rest if dc not in chosen]
        worst = min(every, key=lambda each: _rank(values, each))
        chosen = tuple(dc for dc in worst.dcs if dc not in loss.dcs)
    return lost(chosen, True)


def _rank(values: Values, lost: _Lost) -> tuple[bool, float]:
    """Return a sort key: losses that no level of the scenario survives first, then by remaining capacity."""
    survived = _survived(lost)
    if survived is None:
        return False, 0.0
    return survived == lost.scenario, float(_left(survived, lost.down, values, values, None).capacity[0])


def _remainders(case: Case[CassandraScenario], lost: _Lost) -> Iterator[Remainder]:
    scenario, survived = case.scenario, _survived(lost)

    def remainder(assumed: str, left: CassandraScenario | None, cost: str = "") -> Remainder:
        return Remainder(
            name=lost.in_words(),
            lost=lost.counts,
            lost_dcs=lost.names,
            assumed=assumed,
            solved=None if left is None else partial(_left, left, lost.down, case.system.values(case.fitted, scenario)),
            lowered={} if left is None else _lowered(scenario, left),
            cost=cost,
        )

    if survived == scenario:
        yield remainder(", ".join(f"{name}s {level}" for name, level in scenario.levels().items()), scenario)
        return
    yield remainder(_why_unavailable(lost), None)
    if survived is not None:
        lowered = _lowered(scenario, survived)
        words = ", ".join(f"{operation}s at {level}" for operation, level in lowered.items())
        yield remainder(words, survived, _cost(lost, survived))


def _survived(lost: _Lost) -> CassandraScenario | None:
    """Return the layout with the smallest reduction of its levels that survives a loss; None if there is none."""
    fields = {}
    for operation, asked in lost.scenario.levels().items():
        fields[f"consistency_{operation}"] = next(filter(lost.met, (asked, *lower_levels(asked))), None)
    if None in fields.values():
        return None
    try:
        return changed(lost.scenario, **fields)
    except InputError:
        return None


def _left(
    scenario: CassandraScenario, down: tuple[int, ...], every: Values, values: Values, place: Places | None
) -> Solution:
    """Analyse what remains of a layout; `every` contains all draws, `values` the solved ones."""

    def pausing(analysis: Analysis, rate_per_s: FloatArray, place: Places | None) -> dict[str, tuple[RareDelay, ...]]:
        return pauses(scenario, values if place is None else every, analysis, rate_per_s, place, down)

    left = network(scenario, values, 1.0, down)
    return waiting(Solution(left, REPORTED, place=place, pausing=pausing, varying=partial(variation, values)))


def _why_unavailable(lost: _Lost) -> str:
    if not lost.serving:
        return "no Cassandra node is left"
    failing = dict.fromkeys(level for level in lost.scenario.levels().values() if not lost.met(level))
    return f"unavailable at {' and '.join(failing)}"


def _lowered(scenario: CassandraScenario, survived: CassandraScenario) -> dict[str, str]:
    """Return the levels below the requested ones, by operation."""
    asked = scenario.levels()
    return {operation: level for operation, level in survived.levels().items() if level != asked[operation]}


def _cost(lost: _Lost, survived: CassandraScenario) -> str:
    """Return in words how many replicas answer at lower levels, and whether reads find later writes."""
    scenario, serving, replicas = lost.scenario, lost.serving, lost.scenario.rf_by_dc()
    parts = []
    for operation in _lowered(scenario, survived):
        verb = "confirmed" if operation == "write" else "read"
        before, after = (
            min(answers(each.levels()[operation], replicas, dc) for dc in serving) for each in (scenario, survived)
        )
        parts.append(f"{verb} by {after} replica{'s' * (after > 1)}, not {before}")
    found = all(
        always_found(
            survived.consistency_read, survived.consistency_write, replicas, lost.alive_replicas, reader, writer
        )
        for reader in serving
        for writer in serving
    )
    reads = "reads still find what is written" if found else "reads may miss what is written"
    return "; ".join((*parts, *([reads] if len(scenario.levels()) > 1 else [])))
