"""What is left when nodes or data centres are lost: availability by consistency level first, then capacity."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from capplan.calibration.case.ensemble import thinned
from capplan.calibration.system import Case
from capplan.models.cassandra.cluster import node_name
from capplan.models.cassandra.consistency import available
from capplan.models.errors import InputError
from capplan.models.language.parameter import Values
from capplan.models.language.scenario import changed
from capplan.models.results import Band, Outage
from capplan.systems.openprovider.scenario import OpenproviderScenario

_LOWER = ("LOCAL_QUORUM", "LOCAL_ONE")


def outages(case: Case[OpenproviderScenario], offered_per_s: float) -> tuple[Outage, ...]:
    """Return a row for each loss that the layout can suffer, and another with the levels lowered where they fail.

    Survivors take the whole offered rate; the low end of the band decides whether they carry it. Hints that pile up
    for the lost replicas are not modelled.
    """
    asked = _Asked(case, thinned(case.values), offered_per_s)
    return tuple(row for lost in _losses(case.scenario) for row in _rows(asked, lost))


class _Asked(NamedTuple):
    """A case with the parameter draws that are solved, and the offered rate."""

    case: Case[OpenproviderScenario]
    values: Values
    offered_per_s: float


def _losses(scenario: OpenproviderScenario) -> list[dict[str, int]]:
    found = [{"node": 1}] if scenario.cass_nodes > 1 else []
    if scenario.dcs > 1:
        found.append({"dc": 1})
    if scenario.dcs > 2:
        found.append({"dc": scenario.dcs - 1})
    return found


def _rows(asked: _Asked, lost: dict[str, int]) -> Iterator[Outage]:
    scenario = asked.case.scenario
    alive = _alive_replicas(scenario, lost)
    levels = f"{_levels(scenario)} as asked"
    if _meets(scenario, alive):
        yield _row(asked, scenario, lost, levels)
        return
    yield Outage(lost, False, levels, Band.exactly(0.0), False)
    for level in _LOWER:
        lowered = _lowered(scenario, alive, level)
        if lowered is not None and _meets(lowered, alive):
            yield _row(asked, lowered, lost, f"levels lowered to {_levels(lowered)}")
            return


def _row(asked: _Asked, scenario: OpenproviderScenario, lost: dict[str, int], assumed: str) -> Outage:
    solution = asked.case.system.solution(scenario, asked.values, _lost_nodes(scenario, lost))
    capacity = asked.case.uncertainty.of_rate(solution.capacity)
    return Outage(lost, True, assumed, capacity, capacity.low >= asked.offered_per_s)


def _lowered(scenario: OpenproviderScenario, alive: list[int], level: str) -> OpenproviderScenario | None:
    """Lower only the operations whose level fails."""
    fields = {}
    for field in ("consistency_read", "consistency_write"):
        if not _level_met(scenario, getattr(scenario, field), alive):
            fields[field] = level
    try:
        return changed(scenario, **fields)
    except InputError:
        return None


def _levels(scenario: OpenproviderScenario) -> str:
    return f"reads {scenario.consistency_read}, writes {scenario.consistency_write}"


def _meets(scenario: OpenproviderScenario, alive: list[int]) -> bool:
    return all(_level_met(scenario, level, alive) for level in (scenario.consistency_read, scenario.consistency_write))


def _level_met(scenario: OpenproviderScenario, level: str, alive: list[int]) -> bool:
    return available(level, [scenario.rf] * scenario.dcs, alive, 0)


def _alive_replicas(scenario: OpenproviderScenario, lost: dict[str, int]) -> list[int]:
    """Living replicas by data centre in the token range that suffers most; the first data centre survives."""
    if "node" in lost:
        return [scenario.rf - 1] * scenario.dcs
    return [scenario.rf if dc < scenario.dcs - lost["dc"] else 0 for dc in range(scenario.dcs)]


def _lost_nodes(scenario: OpenproviderScenario, lost: dict[str, int]) -> frozenset[str]:
    if "node" in lost:
        return frozenset(node_name(dc, 0) for dc in range(scenario.dcs))
    gone = range(scenario.dcs - lost["dc"], scenario.dcs)
    return frozenset(node_name(dc, node) for dc in gone for node in range(scenario.cass_nodes))
