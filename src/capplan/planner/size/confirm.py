"""The best layout of a family, confirmed: simulated in each situation, and searched for again with those latencies.

All layouts are simulated with the same random numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from capplan.models.errors import InputError
from capplan.models.language.scenario import Scenario, changed
from capplan.planner.size.search import DATA, DISK, Candidate, Family, Numbers, Search, Simulated, SizingTarget
from capplan.planner.size.sizing import Refusal, Safety, SizedLayout, steady
from capplan.planner.sustained import NONE, Strained, at_confidence, band_of_rates
from capplan.systems.registry import system

SizingEngine = Literal["compiled", "analytic"]
_ROUNDS = 4
_LOCAL = "LOCAL_QUORUM"


@dataclass(frozen=True)
class FamilyResult:
    """What was found of a family.

    Attributes
    ----------
    family : Family
        The family.
    best : SizedLayout or None
        The cheapest layout that is safe enough; None if there is none.
    miss : SizedLayout or None
        The next smaller layout; without a safe one the layout with the lowest risk. None if it is safe, or none is
        possible.
    refused : Refusal or None
        Why no layout serves; None if some does.
    solved : int
        How many layouts were solved.
    relations : dict
        Simulated over analytic latencies that its figures rest on, by situation.
    """

    family: Family
    best: SizedLayout | None
    miss: SizedLayout | None
    refused: Refusal | None
    solved: int
    relations: Simulated = field(default_factory=dict)


def best_of(target: SizingTarget, family: Family, engine: SizingEngine) -> FamilyResult:
    """Find the cheapest safe layout of a family.

    Parameters
    ----------
    target : SizingTarget
        What the layout must do.
    family : Family
        The layouts to choose from.
    engine : str
        `compiled` confirms the layout by simulation; `analytic` does not.
    """
    target = target.in_cells(family.cells)
    search = Search(target, family)
    best, relations = search.cheapest(), Simulated()
    if best is not None and engine == "compiled" and target.base.slo:
        best, relations = _simulated_until_stable(search, best)
    sizes = _Sizes(search, relations)
    chosen = None if best is None else sizes.at(best.numbers)
    if best is None:
        nearest = search.nearest()
        miss = None if nearest is None else sizes.at(nearest.numbers)
    else:
        first, *others = best.numbers
        miss = sizes.at((first - 1, *others))
    refused = None if search.refused is None else Refusal(family.fixed, *search.refused)
    miss = None if miss is None or miss.safe else miss
    return FamilyResult(family, chosen, miss, refused, len(search.evaluated), relations)


def would_help(target: SizingTarget, results: Sequence[FamilyResult]) -> dict[str, str]:
    """Return values of fields outside the families with which the nearest layout, or the largest, is safe, by field.

    Tried are more machines of each kind, one data centre more, and the local level for writes and for reads.
    """
    nearest = max(
        (each for each in results if each.miss is not None),
        key=lambda each: each.miss.held_tps if each.miss is not None else 0.0,
        default=None,
    )
    family, found = (results[0] if nearest is None else nearest).family, dict[str, str]()
    most = {**family.fixed, **{name: high for name, (_, high) in family.sized.items()}}
    fields = most if nearest is None or nearest.miss is None else nearest.miss.fields
    try:
        base, own = changed(target.base, **fields), target.in_cells(family.cells)
    except InputError:  # the largest layout is none, such as with more replicas than nodes
        return {}
    for name, (_, high) in family.sized.items():
        more = [high * factor for factor in (2, 4, 8)]
        enough = next((number for number in more if _is_safe(own, base, **{name: number})), None)
        if enough is not None:
            found[name] = f"{high}..{enough}"
    if "dcs" in family.fixed and _is_safe(own, base, dcs=(dcs := family.fixed["dcs"] + 1)):
        found["dcs"] = str(dcs)
    for name in ("consistency_write", "consistency_read"):
        if getattr(base, name, _LOCAL) not in (_LOCAL, "LOCAL_ONE", "ONE") and _is_safe(own, base, **{name: _LOCAL}):
            found[name] = _LOCAL
    return found


def _is_safe(target: SizingTarget, base: Scenario, **fields: Any) -> bool:
    """Whether a layout is safe enough; not if it is none."""
    search = Search(replace(target, base=base), Family(fields, {}))
    return search.safe(search.at(()))


def _simulated_until_stable(search: Search, best: Candidate) -> tuple[Candidate | None, Simulated]:
    relations: Simulated = {}
    for _ in range(_ROUNDS):
        relations = simulated(search.target, best.scenario)
        again = search.cheapest_near(best, relations)
        if again is None or again.numbers == best.numbers:
            return again, relations
        best = again
    return best, relations


def simulated(target: SizingTarget, scenario: Scenario) -> Simulated:
    """Return simulated over analytic latencies of a layout at the rate of the target, by the word of the conditions."""
    every = target.strains(scenario)
    return {word: strain.simulated(target.seed) for word, strain in every.items()}


def sized(target: SizingTarget, family: Family, numbers: Numbers, relations: Simulated) -> SizedLayout | None:
    """Return a layout of a family with its final figures under all conditions of a target; None if it is none."""
    return _Sizes(Search(target, family), relations).at(numbers)


class _Sizes:
    """Layouts of a family with their figures, from all draws."""

    def __init__(self, search: Search, relations: Simulated) -> None:
        self.search, self.target, self.family, self.relations = search, search.target, search.family, relations
        self.system, self.disks = system(self.target.base.system), search.disks

    def at(self, numbers: Numbers) -> SizedLayout | None:
        """Return a layout with its figures; None if it is none."""
        layout = self.search.strains(numbers)
        if isinstance(layout, str):
            return None
        scenario, every = layout
        safety = (*(self._safety(each) for each in every.values()), *self._data(scenario))
        need = None if self.disks is None else self.disks.need_gib(scenario, self.family.cells)
        return SizedLayout(
            layout=self.system.layout(scenario, self.system.values(self.target.fitted, scenario)),
            fields=self.family.fields(numbers),
            machines={kind: self.family.cells * count for kind, count in self.system.machine_counts(scenario).items()},
            shapes=self.family.shapes,
            cells=self.family.cells,
            cost=self.family.cost(scenario),
            safe=all(each.risk <= self.target.accepted_risk for each in safety),
            safety=safety,
            confirmed=any(self.relations.values()),
            disk_gib_per_node=None if need is None else -at_confidence(-need, self.target.confidence),
            months_of_data=None if self.disks is None else self.disks.months(scenario, self.family.cells),
        )

    def _data(self, scenario: Scenario) -> Iterator[Safety]:
        """Yield how safe the disks are, where data must fit on them."""
        disks, cells = self.disks, self.family.cells
        need = None if disks is None else disks.need_gib(scenario, cells)
        if disks is None or disks.disk_gib is None or need is None:
            return
        rates = self.target.offered_per_s * cells * disks.disk_gib / need
        yield Safety(
            conditions=DATA,
            risk=disks.risk(scenario, cells),
            held_tps=steady(at_confidence(rates, self.target.confidence)),
            capacity_tps=band_of_rates(rates),
            reached_ms={},
            limit=f"{DISK} of {disks.disk_gib:,.0f} GiB",
            bottleneck=DISK,
            guessed=False,
        )

    def _safety(self, strain: Strained) -> Safety:
        bottleneck, confidence = None, self.target.confidence
        relations = self.relations.get(strain.conditions.word, NONE)
        if not strain.why:
            bottleneck = self.system.resource_name(strain.case.scenario, strain.solution.bottleneck)
        rates = self.family.cells * strain.sustained_rates(relations)
        return Safety(
            conditions=strain.conditions.word,
            risk=strain.risk(relations),
            held_tps=steady(at_confidence(rates, confidence)),
            capacity_tps=band_of_rates(rates),
            reached_ms={
                name: None if value is None else steady(value)
                for name, value in strain.reached_ms(confidence, relations).items()
            },
            limit=strain.limit(confidence, relations),
            bottleneck=bottleneck,
            guessed=strain.conditions.guessed,
        )
