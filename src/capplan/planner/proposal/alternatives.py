"""Alternatives to a proposal: the cheapest layouts that survive less or more.

All options have the proposal's data centres and levels, and differ in numbers of machines. One search remembers what
another has solved: the choice of situations does not change the risk in one of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from capplan.answers.verdict import NORMAL, RESOURCES
from capplan.errors import InputError
from capplan.layout.components import Machines
from capplan.layout.fitted_file import Fitted
from capplan.layout.situations import Losses
from capplan.layout.system import System
from capplan.layout.uncertainty import Uncertainty
from capplan.models.language.scenario import Scenario, changed
from capplan.planner.predict.capacity import Relations
from capplan.planner.proposal.proposal import Option
from capplan.planner.size.search import (
    Family,
    FamilyResult,
    Numbers,
    Search,
    Simulated,
    SizingTarget,
    disks_of,
    simulated,
    sized,
)
from capplan.planner.size.size import SizingQuestion
from capplan.planner.size.sizing import Safety, Sizing
from capplan.planner.sustained import NONE, Strained, Strains, read_conditions
from capplan.systems.registry import system

_MORE_OF_OTHERS = 2  # machines of the other kinds that an option may have more than the proposal


def survival(
    base: Scenario, question: SizingQuestion, fitted: Fitted, sizing: Sizing, result: FamilyResult
) -> tuple[tuple[Option, ...], tuple[Safety, ...]]:
    """Return alternatives at the same confidence, from surviving nothing to all losses, and the safety under each loss.

    Parameters
    ----------
    base, question, fitted
        As for `size`.
    sizing : Sizing
        Its answer.
    result : FamilyResult
        What was found of the family of the chosen layout.
    """
    return _Options(base, question, fitted, sizing, result).survival()


class _Options:
    def __init__(
        self, base: Scenario, question: SizingQuestion, fitted: Fitted, sizing: Sizing, result: FamilyResult
    ) -> None:
        if result.best is None:
            raise ValueError("a family without a safe layout has no options")
        chosen = result.best
        self.sizing, self.chosen = sizing, chosen
        self.its: System[Any] = system(base.system)
        self.own = tuple(word for word in sizing.situations if word not in (NORMAL, *RESOURCES))
        self.every = (*self.own, *(word for word in self.its.component(Losses).kinds if word not in self.own))
        self.target = SizingTarget(
            base,
            fitted,
            read_conditions(self.every, self.its, fitted),
            sizing.planned_tps / chosen.cells,
            sizing.confidence,
            question.seed,
            disks_of(question.demand, question.seed, base),
        )
        self.family = self._family(result.family)
        self.known: dict[Numbers, tuple[Scenario, Strains]] = {}
        numbers = tuple(int(chosen.fields[name]) for name in self.family.sized)
        self.answers: list[tuple[set[str], Numbers]] = [(set(self.own), numbers)]
        self.relations = self._relations(result.relations)

    def _family(self, own: Family) -> Family:
        """Return the proposal's family, with at most a few more machines of the other kinds than the proposal."""
        first, *others = own.sized.items()
        few = {name: (low, min(high, self.chosen.fields[name] + _MORE_OF_OTHERS)) for name, (low, high) in others}
        return replace(own, sized=dict([first, *few.items()]))

    def _relations(self, known: Simulated) -> Simulated:
        """Return the relations of simulated to analytic latency in every situation, simulating those not yet known."""
        others = tuple(each for each in self.target.conditions if each.word not in known)
        if not known or not others:
            return known
        layout = changed(self.target.base, **self.chosen.fields)
        return {**known, **simulated(replace(self.target, conditions=others), layout)}

    def strained(self, fields: Mapping[str, Any]) -> tuple[Scenario, Strains]:
        """Return a layout under every condition that an alternative may have to survive."""
        scenario = changed(self.target.base, **fields)
        every = self.target.strains(scenario)
        return scenario, {
            word: _Known(each.case, each.conditions, each.offered_per_s, self.relations.get(word, NONE))
            for word, each in every.items()
        }

    def survival(self) -> tuple[tuple[Option, ...], tuple[Safety, ...]]:
        """Return what the proposal survives, and the alternatives from surviving nothing to surviving all losses."""
        survived = sorted(
            dict.fromkeys([(), *((word,) for word in self.its.component(Losses).kinds), self.own, self.every]), key=len
        )
        return tuple(map(self._option, survived)), tuple(self._failures())

    def _failures(self) -> Iterator[Safety]:
        """Yield the safety of the proposal under each condition, from the sizing where it has the condition."""
        known = {each.conditions: each for each in self.chosen.safety}
        more = tuple(each for each in self.target.conditions if each.word not in known)
        if more:
            found = sized(replace(self.target, conditions=more), self.family, self.answers[0][1], self.relations)
            known |= {} if found is None else {each.conditions: each for each in found.safety}
        yield from (known[each.word] for each in self.target.conditions if each.word in known and each.word != NORMAL)

    def _option(self, survive: Sequence[str]) -> Option:
        if tuple(survive) == self.own:
            return Option(self.own, dict(self.chosen.machines), self.chosen.cost, proposed=True)
        conditions = tuple(each for each in self.target.conditions if each.word in {NORMAL, *survive})
        search = _Search(replace(self.target, conditions=conditions), self._nested(set(survive)), self)
        smallest = search.at(tuple(low for low, _ in search.family.sized.values()))
        found = smallest if search.safe(smallest) else search.cheapest()
        if found is None:
            return Option(tuple(survive), {}, None, self._why_not(search))
        self.answers.append((set(survive), found.numbers))
        counts = self.its.component(Machines).counts(found.scenario)
        machines = {kind: self.chosen.cells * count for kind, count in counts.items()}
        return Option(tuple(survive), machines, found.cost)

    def _nested(self, survive: set[str]) -> Family:
        """Return the family: at least answers to weaker questions and, for a weaker question, at most the proposal."""
        ends = {name: [low, high] for name, (low, high) in self.family.sized.items()}
        for known, numbers in self.answers:
            for name, number in zip(ends, numbers, strict=True):
                if survive >= known:
                    ends[name][0] = max(ends[name][0], number)
        if survive <= set(self.own):
            for name, (_, high) in self.family.sized.items():
                ends[name][1] = min(high, self.chosen.fields[name])
        return replace(self.family, sized={name: (low, max(low, high)) for name, (low, high) in ends.items()})

    def _why_not(self, search: Search) -> str:
        if search.refused is not None:
            return search.refused[1]
        machine, most = next(iter(self.its.component(Machines).kinds.values())).name, self.family.first[1]
        where = " in a data centre" if "dcs" in self.family.fixed else ""
        return f"not certain enough with up to {most} {machine}s{where}"


class _Search(Search):
    """A search that shares its solved layouts with the other searches of a proposal."""

    def __init__(self, target: SizingTarget, family: Family, shared: _Options) -> None:
        super().__init__(target, family)
        self.shared, self.relations = shared, shared.relations

    def _strained(self, numbers: Numbers) -> tuple[Scenario, Strains] | str:
        known = self.shared.known
        if numbers not in known:
            try:
                known[numbers] = self.shared.strained(self.family.fields(numbers))
            except InputError as error:
                return str(error)
        scenario, strains = known[numbers]
        return scenario, {each.word: strains[each.word] for each in self.target.conditions}


@dataclass(frozen=True)
class _Known(Strained):
    """A layout under some conditions, with its risk cached."""

    relations: Relations = field(default_factory=dict)

    def risk(self, relations: Relations = NONE, errors: Uncertainty | None = None) -> float:
        """Return the risk; all searches of a proposal use the same relations."""
        del relations
        return self._risk if errors is None else super().risk(self.relations, errors)

    @cached_property
    def _risk(self) -> float:
        return super().risk(self.relations)
