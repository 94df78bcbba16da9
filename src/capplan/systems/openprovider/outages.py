"""Outages of nodes and data centres: availability by consistency level first, then capacity."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from capplan.calibration.case.ensemble import thinned
from capplan.calibration.case.solution import Solution
from capplan.calibration.system import Case
from capplan.models.cassandra.consistency import available
from capplan.models.errors import InputError
from capplan.models.language.parameter import Values
from capplan.models.language.per_dc import proportions
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
        One node lost per data centre, one data centre lost, and all but one data centre lost. Of unequal data centres,
        those are lost whose loss leaves the lowest capacity.
    """
    question = _Question(case, thinned(case.values), offered_per_s)
    return tuple(row for loss in _losses(case) for row in _rows(question, loss))


class _Question(NamedTuple):
    """A case with the parameter draws that are solved, and the offered rate."""

    case: Case[OpenproviderScenario]
    values: Values
    offered_per_s: float


@dataclass(frozen=True)
class _Loss:
    """What is lost: whole data centres, or a node of each.

    Attributes
    ----------
    dcs
        The lost data centres, from 0; empty if each loses a node.
    named
        Whether it matters which ones they are.
    """

    dcs: tuple[int, ...] = ()
    named: bool = False

    @property
    def counted(self) -> dict[str, int]:
        return {"dc": len(self.dcs)} if self.dcs else {"node": 1}

    @property
    def remark(self) -> str:
        """Say which data centres are lost, if they are not equal."""
        if not self.named:
            return ""
        return f"; lost: {', '.join(f'dc{dc + 1}' for dc in self.dcs)}, the worst"

    def alive_replicas(self, scenario: OpenproviderScenario) -> list[int]:
        """Return the live replicas by data centre of the row that has lost the most."""
        if not self.dcs:
            return [replicas - 1 for replicas in scenario.rf_by_dc()]
        return [0 if dc in self.dcs else replicas for dc, replicas in enumerate(scenario.rf_by_dc())]

    def nodes(self, scenario: OpenproviderScenario) -> tuple[int, ...]:
        """Return the number of lost nodes in each data centre."""
        if not self.dcs:
            return (1,) * scenario.dcs
        return tuple(count if dc in self.dcs else 0 for dc, count in enumerate(scenario.nodes_by_dc()))

    def serving(self, scenario: OpenproviderScenario) -> list[int]:
        """Return the data centres that have clients after the loss; those that are left take over the others."""
        nodes, fronts, lost = scenario.nodes_by_dc(), scenario.fronts_by_dc(), self.nodes(scenario)
        left = [dc for dc in range(scenario.dcs) if fronts[dc] and nodes[dc] > lost[dc]]
        return list(proportions(scenario.shares_by_dc(), left))


def _losses(case: Case[OpenproviderScenario]) -> list[_Loss]:
    scenario = case.scenario
    losses = [_Loss()] if max(scenario.nodes_by_dc()) > 1 else []
    counts = [1] if scenario.dcs > 1 else []
    counts += [scenario.dcs - 1] if scenario.dcs > 2 else []
    return losses + [_worst(case, count) for count in counts]


def _worst(case: Case[OpenproviderScenario], count: int) -> _Loss:
    """Return the loss of `count` data centres that leaves the least; of equal ones, that of the last."""
    scenario = case.scenario
    if not scenario.unequal:
        return _Loss(tuple(range(scenario.dcs - count, scenario.dcs)))
    every = range(scenario.dcs)
    lost = [(dc,) for dc in every] if count == 1 else [tuple(each for each in every if each != dc) for dc in every]
    values = case.system.median_values(case.fitted, scenario)

    def left(dcs: tuple[int, ...]) -> tuple[bool, float]:
        loss = _Loss(dcs)
        survived = _survived(scenario, loss)
        if survived is None:
            return False, 0.0
        return survived == scenario, float(_left(survived, values, loss).capacity[0])

    return _Loss(min(lost, key=left), named=True)


def _survived(scenario: OpenproviderScenario, loss: _Loss) -> OpenproviderScenario | None:
    """Return the layout with the levels that survive a loss, lowered if necessary; None if none do."""
    if _meets(scenario, loss):
        return scenario
    lowered = (_lowered(scenario, loss, level) for level in _LOWER)
    return next((each for each in lowered if each is not None and _meets(each, loss)), None)


def _rows(question: _Question, loss: _Loss) -> Iterator[Outage]:
    scenario = question.case.scenario
    asked, survived = f"{_levels(scenario)} as asked", _survived(scenario, loss)
    if survived == scenario:
        yield _row(question, scenario, loss, asked)
        return
    yield Outage(loss.counted, False, asked + loss.remark, Band.exactly(0.0), False)
    if survived is not None:
        yield _row(question, survived, loss, f"levels lowered to {_levels(survived)}")


def _row(question: _Question, scenario: OpenproviderScenario, loss: _Loss, assumed: str) -> Outage:
    capacity = question.case.uncertainty.of_rate(_left(scenario, question.values, loss).capacity)
    return Outage(loss.counted, True, assumed + loss.remark, capacity, capacity.low >= question.offered_per_s)


def _left(scenario: OpenproviderScenario, values: Values, loss: _Loss) -> Solution:
    """Analyse what is left of a layout."""
    return Solution(network(scenario, values, 1.0, loss.nodes(scenario)), REPORTED)


def _lowered(scenario: OpenproviderScenario, loss: _Loss, level: str) -> OpenproviderScenario | None:
    """Lower the levels of the operations whose level fails; None if the result is invalid."""
    fields = {}
    for field in ("consistency_read", "consistency_write"):
        if not _level_met(scenario, getattr(scenario, field), loss):
            fields[field] = level
    try:
        return changed(scenario, **fields)
    except InputError:
        return None


def _levels(scenario: OpenproviderScenario) -> str:
    return f"reads {scenario.consistency_read}, writes {scenario.consistency_write}"


def _meets(scenario: OpenproviderScenario, loss: _Loss) -> bool:
    return all(_level_met(scenario, level, loss) for level in (scenario.consistency_read, scenario.consistency_write))


def _level_met(scenario: OpenproviderScenario, level: str, loss: _Loss) -> bool:
    """Whether a level is met in every data centre that has clients after the loss."""
    alive, serving = loss.alive_replicas(scenario), loss.serving(scenario)
    return bool(serving) and all(available(level, scenario.rf_by_dc(), alive, dc) for dc in serving)
