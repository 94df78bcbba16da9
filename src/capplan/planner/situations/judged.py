"""The verdict on a layout at a rate: the same question has the same verdict, whichever verb asks it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from capplan.layout.losses import Loss
from capplan.layout.system import Case
from capplan.models.language.units import FloatArray
from capplan.models.objective import Metric, Objective
from capplan.models.verdict import CONFIDENCE, NORMAL, OVERLOAD, JudgedSituation, Verdict, answer, verdict
from capplan.planner.predict.capacity import Relations, objectives_at_a_rate, repeated_at_rate
from capplan.planner.situations.sustained import NONE, Conditions, Strained, strained


class Judged:
    """A layout at an offered rate, under all conditions that count.

    Parameters
    ----------
    case : Case
        The layout, whole, with its objectives.
    conditions : sequence of Conditions
        Normal conditions first.
    offered_per_s : float
        Offered peak rate, requests per second.
    confidence : float
        Confidence of the verdict.
    given : bool
        Whether somebody gave the rate. A default one is only where objectives are judged: whether it is carried does
        not count by itself.
    """

    def __init__(
        self,
        case: Case[Any],
        conditions: Sequence[Conditions],
        offered_per_s: float,
        confidence: float = CONFIDENCE,
        *,
        given: bool = True,
    ) -> None:
        self.case, self.offered_per_s, self.confidence, self.given = case, offered_per_s, confidence, given
        self.relations: dict[str, Relations] = {}
        self.strains = strained(case.at(offered_per_s), conditions, offered_per_s)

    def simulate(self, seed: int, known: Mapping[str, Relations] = MappingProxyType({})) -> None:
        """Simulate the latencies of the objectives under each condition; nothing if no objective is about a latency.

        Parameters
        ----------
        seed : int
            Seed of the simulation: the same for all conditions (common random numbers).
        known : mapping
            Simulated over analytic latencies that are known already, by the word of the conditions.
        """
        timed = any(metric.kind == "duration" for each in self.case.objectives for metric in each.metrics())
        for word, strain in self.strains.items() if timed else ():
            self.relations[word] = known[word] if word in known else strain.simulated(seed)

    @property
    def normal(self) -> Strained:
        """The layout with nothing lost."""
        return self.strains[NORMAL]

    def verdict(self) -> Verdict:
        """Return the verdict over all conditions."""
        conditions = [each.conditions for each in self.strains.values()]
        return verdict(
            [self.situation(each) for each in self.strains.values()],
            self.confidence,
            data=self.case.system.assumed_data(self.case.scenario),
            not_asked=not_asked(self.case, conditions),
        )

    def situation(self, strain: Strained) -> JudgedSituation:
        """Return the verdict under one of the conditions: that the rate is carried and all objectives hold at once."""
        risks = self.risks(strain)
        if not self.given and len(risks) > 1 and not strain.why:
            del risks[OVERLOAD]
        counted = self.given or bool(strain.objectives)
        risk = max(strain.risk(self._relations(strain)) if counted else 0.0, *risks.values())
        return JudgedSituation(
            situation=strain.conditions.word,
            answer=answer(risk, self.confidence),
            risk=risk,
            limit=strain.why or max(risks, key=lambda name: (risks[name], name == OVERLOAD)),
            available=not strain.why,
            guessed=strain.conditions.guessed,
        )

    def risks(self, strain: Strained) -> dict[str, float]:
        """Return the risk of overload and of missing each objective alone, under one of the conditions."""
        of_capacity = {each.text: self._risk_of_capacity(each, strain) for each in self._of_capacity}
        return {**strain.risks(self._relations(strain)), **of_capacity}

    @property
    def _of_capacity(self) -> list[Objective]:
        at_a_rate = objectives_at_a_rate(self.case)
        return [each for each in self.case.objectives if each not in at_a_rate]

    def _relations(self, strain: Strained) -> Relations:
        return self.relations.get(strain.conditions.word, NONE)

    def _risk_of_capacity(self, objective: Objective, strain: Strained) -> float:
        if strain.why:
            return 1.0
        held = objective.holds(lambda metric: self._draws(metric, strain))
        return float(1 - np.mean(np.broadcast_to(held, strain.solution.capacity.shape)))

    def _draws(self, metric: Metric, strain: Strained) -> FloatArray:
        """Return what repeats of the load test would measure of a figure at the offered rate, SI (draws,)."""
        relations = self._relations(strain)
        if metric.name == "capacity":
            return strain.sustained_rates(relations)
        rate = self.offered_per_s * strain.rate_factor
        if metric.kind == "duration":
            return repeated_at_rate(strain.solution, strain.uncertainty, metric, rate, relations)
        return np.asarray(strain.solution.at(rate).value(metric))


def not_asked(case: Case[Any], conditions: Sequence[Conditions]) -> tuple[str, ...]:
    """Return the kinds of loss that a system models and no condition has."""
    asked = {kind for each in conditions if each.loss is not None for kind in _kinds(each.loss)}
    return tuple(kind for kind in case.system.losses if kind not in asked)


def _kinds(loss: Loss) -> set[str]:
    return {*loss.counts, *(["dc"] if loss.dcs else [])}


def conditions_of(losses: Mapping[str, Loss]) -> tuple[Conditions, ...]:
    """Return the conditions that count: normal ones, and each loss that was asked for, by its words."""
    return (Conditions(NORMAL), *(Conditions(word, loss) for word, loss in losses.items()))
