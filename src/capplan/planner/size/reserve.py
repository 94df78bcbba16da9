"""What the conditions of a sizing need: up to where its layout is safe, and what to reserve for the expected values."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from capplan.models.condition import Condition, Consequence, Unmeasured, condition
from capplan.models.language.scenario import changed
from capplan.planner.conditions import break_even, sign
from capplan.planner.size.search import Family, FamilyResult, SizingTarget, best_of, search_of
from capplan.planner.size.sizing import SizedLayout
from capplan.planner.sustained import JudgingEngine
from capplan.systems.registry import system


def of_sizing(
    target: SizingTarget, chosen: SizedLayout, its: FamilyResult, chosen_from: Sequence[Family], engine: JudgingEngine
) -> Iterator[Condition]:
    """Yield the conditions of a sizing: up to where its layout is safe, and what is cheapest at the expected values.

    Parameters
    ----------
    target : SizingTarget
        What the layout must do.
    chosen : SizedLayout
        The layout.
    its : FamilyResult
        The result of its family.
    chosen_from : sequence of Family
        The families to choose from.
    engine : str
        That of the sizing.
    """
    numbers = tuple(chosen.fields[name] for name in its.family.sized)
    layout = changed(target.base, **chosen.fields)  # its family may state what the base leaves open
    for about in system(target.base.system).unmeasured(layout):
        most = break_even(partial(_margin, target, about, its, numbers), about.value)
        ends = (_cheapest(target, about, value, chosen_from, engine, numbers) for value in about.expected)
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
    target: SizingTarget,
    about: Unmeasured,
    value: float,
    chosen_from: Sequence[Family],
    engine: JudgingEngine,
    numbers: tuple[int, ...],
) -> Consequence:
    start = tuple(math.ceil(value / about.value * number) for number in numbers)
    wanted = _target_at(target, about, value)
    found = (best_of(wanted, family, engine, start).best for family in chosen_from)
    best = min(filter(None, found), key=lambda each: each.cost, default=None)
    if best is None:
        return Consequence(value=value)
    return Consequence(value=value, layout=best.layout, machines=best.machines, cost=best.cost)
