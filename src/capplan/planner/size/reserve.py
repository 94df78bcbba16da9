"""What the conditions of a sizing need: up to where its layout is safe, and what to reserve for the expected values."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from capplan.models.condition import Condition, Consequence, Unmeasured, condition
from capplan.models.language.scenario import changed
from capplan.planner.conditions import break_even, sign
from capplan.planner.size.search import Family, FamilyResult, SizingTarget, confirmed, search_of
from capplan.planner.size.sizing import SizedLayout
from capplan.planner.sustained import JudgingEngine
from capplan.systems.registry import system


def of_sizing(
    target: SizingTarget, chosen: SizedLayout, its: FamilyResult, engine: JudgingEngine
) -> Iterator[Condition]:
    """Yield the conditions of a sizing: up to where its layout is safe, and what extends it to the expected values.

    Parameters
    ----------
    target : SizingTarget
        What the layout must do.
    chosen : SizedLayout
        The layout.
    its : FamilyResult
        The result of its family.
    engine : str
        That of the sizing.
    """
    numbers = tuple(chosen.fields[name] for name in its.family.sized)
    more = {name: (number, its.family.sized[name][1]) for name, number in zip(its.family.sized, numbers, strict=True)}
    layout = changed(target.base, **chosen.fields)  # its family may state what the base leaves open
    for about in system(target.base.system).unmeasured(layout):
        most = break_even(partial(_margin, target, about, its, numbers), about.value)
        ends = (_cheapest(target, about, value, replace(its.family, sized=more), engine) for value in about.expected)
        yield condition(about, most, *ends)


def _target_at(target: SizingTarget, about: Unmeasured, value: float) -> SizingTarget:
    return replace(target, base=changed(target.base, **{about.field: value}))


def _margin(
    target: SizingTarget, about: Unmeasured, its: FamilyResult, numbers: tuple[int, ...], value: float
) -> float:
    """Return how far a layout is from being unsafe at a value."""
    search = search_of(_target_at(target, about, value), its.family)
    search.relations = its.relations
    layout = search.strains(numbers)
    if not target.base.slo and target.disks is None and not isinstance(layout, str):
        return -max(each.shortfall(target.confidence) for each in layout[1].values())
    return sign(search.safe(search.at(numbers)))


def _cheapest(
    target: SizingTarget, about: Unmeasured, value: float, family: Family, engine: JudgingEngine
) -> Consequence:
    """Return the cheapest layout of a family at a value; it may lie near the fewest machines, times the value."""
    search, its = search_of(_target_at(target, about, value), family), system(target.base.system)
    start = tuple(math.ceil(value / about.value * fewest) for fewest, _ in family.sized.values())
    best, _ = confirmed(search, search.cheapest(start), engine)
    if best is None:
        return Consequence(value=value)
    machines = {kind: family.cells * count for kind, count in its.machine_counts(best.scenario).items()}
    words = its.layout(best.scenario, its.values(target.fitted, best.scenario))
    return Consequence(value=value, layout=words, machines=machines, cost=best.cost)
