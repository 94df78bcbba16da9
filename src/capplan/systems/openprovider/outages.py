"""Outages of nodes and data centres: availability by consistency level first, then capacity."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from capplan.calibration.case.ensemble import thinned
from capplan.calibration.case.solution import Solution
from capplan.calibration.system import Case
from capplan.models.cassandra.consistency import available
from capplan.models.errors import InputError
from capplan.models.language.parameter import Values
from capplan.models.language.scenario import changed
from capplan.models.results import Band, Outage
from capplan.systems.openprovider.network import REPORTED, network
from capplan.systems.openprovider.scenario import OpenproviderScenario

_LOWER = ("LOCAL_QUORUM", "LOCAL_ONE")


def outages(case: Case[OpenproviderScenario], offered_per_s: float) -> tuple[Outage, ...]:
    """Return one row per outage of the layout, and another with lower levels if the given levels fail.

    Survivors take over the whole offered rate; they sustain it if the low end of their capacity's band is at least this
    rate. Hints for the lost replicas are not modelled.

    Parameters
    ----------
    case : Case
        The layout with its calibration.
    offered_per_s : float
        Offered peak rate, requests per second.

    Returns
    -------
    tuple of Outage
        One node lost per data centre, one data centre lost, and all but one data centre lost.
    """
    question = _Question(case, thinned(case.values), offered_per_s)
    return tuple(row for lost in _losses(case.scenario) for row in _rows(question, lost))


class _Question(NamedTuple):
    """A case with the parameter draws that are solved, and the offered rate."""

    case: Case[OpenproviderScenario]
    values: Values
    offered_per_s: float


def _losses(scenario: OpenproviderScenario) -> list[dict[str, int]]:
    losses = [{"node": 1}] if scenario.cass_nodes > 1 else []
    if scenario.dcs > 1:
        losses.append({"dc": 1})
    if scenario.dcs > 2:
        losses.append({"dc": scenario.dcs - 1})
    return losses


def _rows(question: _Question, lost: dict[str, int]) -> Iterator[Outage]:
    scenario = question.case.scenario
    alive = _alive_replicas(scenario, lost)
    levels = f"{_levels(scenario)} as asked"
    if _meets(scenario, alive):
        yield _row(question, scenario, lost, levels)
        return
    yield Outage(lost, False, levels, Band.exactly(0.0), False)
    for level in _LOWER:
        lowered = _lowered(scenario, alive, level)
        if lowered is not None and _meets(lowered, alive):
            yield _row(question, lowered, lost, f"levels lowered to {_levels(lowered)}")
            return


def _row(question: _Question, scenario: OpenproviderScenario, lost: dict[str, int], assumed: str) -> Outage:
    left = Solution(network(scenario, question.values, 1.0, _nodes_down(scenario, lost)), REPORTED)
    capacity = question.case.uncertainty.of_rate(left.capacity)
    return Outage(lost, True, assumed, capacity, capacity.low >= question.offered_per_s)


def _lowered(scenario: OpenproviderScenario, alive: list[int], level: str) -> OpenproviderScenario | None:
    """Lower the levels of the operations whose level fails; None if the result is invalid."""
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
    """Return the live replicas by data centre in the most affected token range; the first data centre survives."""
    if "node" in lost:
        return [scenario.rf - 1] * scenario.dcs
    return [scenario.rf if dc < scenario.dcs - lost["dc"] else 0 for dc in range(scenario.dcs)]


def _nodes_down(scenario: OpenproviderScenario, lost: dict[str, int]) -> tuple[int, ...]:
    """Return the number of lost nodes in each data centre."""
    if "node" in lost:
        return (1,) * scenario.dcs
    return tuple(scenario.cass_nodes if dc >= scenario.dcs - lost["dc"] else 0 for dc in range(scenario.dcs))
