"""What the conditions of a sizing need: up to where its layout is safe, and what to reserve for the expected values."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from capplan.answers.condition import Condition, Consequence, Unmeasured
from capplan.layout.components import Machines
from capplan.models.language.scenario import changed
from capplan.planner.conditions import by_risk, decisive, spare_of_rate, unmeasured
from capplan.planner.node_needs import limited
from capplan.planner.size.search import Candidate, Family, FamilyResult, SizingTarget, confirmed, search_of
from capplan.planner.size.sizing import SizedLayout
from capplan.planner.sustained import JudgingEngine, nodes_of
from capplan.systems.registry import system


def of_sizing(
    target: SizingTarget, layout: SizedLayout, its: FamilyResult, engine: JudgingEngine
) -> Iterator[Condition]:
    """Yield the conditions of a safe layout: up to where it is safe, and what is cheapest at the expected values.

    Parameters
    ----------
    target : SizingTarget
        What the layout must do.
    layout : SizedLayout
        The layout.
    its : FamilyResult
        The result of its family.
    engine : str
        That of the sizing.
    """
    numbers = tuple(layout.fields[name] for name in its.family.sized)
    for about in _unmeasured(target, its.family, numbers):
        ends = partial(_ends, target, about, its, numbers, engine)
        yield from decisive(about, partial(_margin, target, about, its, numbers), ends)


def of_miss(target: SizingTarget, miss: SizedLayout, its: FamilyResult, engine: JudgingEngine) -> Iterator[Condition]:
    """Yield the drawn conditions of the cheapest layout that is safe at their lowest values, where none is safe.

    Parameters are those of `of_sizing`, with the nearest layout.
    """
    numbers = tuple(miss.fields[name] for name in its.family.sized)
    for assumed in filter(lambda each: each.drawn, _unmeasured(target, its.family, numbers)):
        search = search_of(_target_at(target, assumed, assumed.looked_at[0]), its.family)
        best, relations = confirmed(search, search.cheapest(), engine)
        if best is None:
            continue
        safe = replace(its, relations=relations)
        for about in filter(lambda each: each.drawn, _unmeasured(target, its.family, best.numbers)):
            margin = partial(_margin, target, about, safe, best.numbers)
            yield from decisive(about, margin, partial(_at_break_even, target, its.family, best))


def _unmeasured(target: SizingTarget, family: Family, numbers: tuple[int, ...]) -> Iterator[Unmeasured]:
    """Yield what nobody measured about a layout; its family may state what the base leaves open."""
    own = target.in_cells(family.cells)
    case = own.case(changed(target.base, **family.fields(numbers)))
    return unmeasured(case, own.offered_per_s)


def _at_break_even(
    target: SizingTarget, family: Family, best: Candidate, break_even: float | None
) -> tuple[Consequence, ...]:
    return () if break_even is None else (_consequence(target, family, best, break_even),)


def _ends(
    target: SizingTarget,
    about: Unmeasured,
    its: FamilyResult,
    numbers: tuple[int, ...],
    engine: JudgingEngine,
    break_even: float | None,
) -> Iterator[Consequence]:
    """Yield the cheapest layout of a family at each expected value.

    Beyond the highest value at which a layout is enough, it extends the layout, near that many times its nodes, as
    conditions are about nodes. For a drawn condition, it is found with the simulated latencies of the layout, as pauses
    do not change them.
    """
    more = {name: (number, its.family.sized[name][1]) for name, number in zip(its.family.sized, numbers, strict=True)}
    enough = break_even if about.drawn and break_even is not None else about.value
    for value in about.expected:
        extended = value > enough
        search = search_of(
            _target_at(target, about, value), replace(its.family, sized=more) if extended else its.family
        )
        search.relations = its.relations if about.drawn else {}
        start = (math.ceil(value / enough * numbers[0]), *numbers[1:]) if extended else None
        best, _ = confirmed(search, search.cheapest(start), "analytic" if about.drawn else engine)
        if extended and best is not None:
            enough, numbers = value, best.numbers
        yield _consequence(target, its.family, best, value)


def _target_at(target: SizingTarget, about: Unmeasured, value: float) -> SizingTarget:
    return replace(target, base=changed(target.base, **{about.field: about.as_field(value)}))


def _margin(
    target: SizingTarget, about: Unmeasured, its: FamilyResult, numbers: tuple[int, ...], value: float
) -> float:
    """Return how far a layout is from being unsafe at a value."""
    search = search_of(_target_at(target, about, value), its.family)
    search.relations = its.relations
    layout = search.strains(numbers)
    if isinstance(layout, str):
        return -math.inf
    strains = layout[1]
    alone = spare_of_rate(strains, limited(nodes_of(strains)), target.confidence) if target.disks is None else None
    if alone is not None:
        return alone
    candidate = search.at(numbers)
    if isinstance(candidate, str):
        return -math.inf
    return by_risk(candidate.risk, target.accepted_risk, same=search.safe(candidate))


def _consequence(target: SizingTarget, family: Family, best: Candidate | None, value: float) -> Consequence:
    if best is None:
        return Consequence(value=value)
    its = system(target.base.system)
    machines = {kind: family.cells * count for kind, count in its.component(Machines).counts(best.scenario).items()}
    words = its.layout(best.scenario, its.values(target.fitted, best.scenario))
    return Consequence(value=value, layout=words, machines=machines, cost=best.cost)
