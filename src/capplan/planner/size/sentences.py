"""The answer of `size` in sentences: what to buy, what it does, and how sure that is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from capplan.calibration.system import System
from capplan.models.language.scenario import Scenario, changed
from capplan.models.number_words import rate, share, tenths_of_percent
from capplan.models.results import Band, Basis
from capplan.planner.explore.sweep_table import rate_fields
from capplan.planner.size.disks import DATA
from capplan.planner.size.in_words import (
    MONTHS,
    clause,
    cost_in_words,
    counted,
    fits_for,
    guess,
    in_words,
    inside_sentence,
    limited_by,
    listed,
    lost_of,
    objective,
    situation,
    years_in_words,
)
from capplan.planner.size.prices import MACHINES
from capplan.systems.registry import documented_names, resolve, scenario, system

if TYPE_CHECKING:
    from capplan.planner.size.sizing import SizedLayout, Sizing

_BASIS = {
    "measured": "such a layout was load-tested",
    "interpolated": "the layout lies between load-tested ones",
    "extrapolated": "the layout lies beyond the load tests",
}


def sentences(sizing: Sizing, basis: Basis | None = None) -> tuple[str, ...]:
    """Return what to buy, what it does, and how sure that is; one sentence that says why if there is no layout.

    Parameters
    ----------
    sizing : Sizing
        The answer of `size`.
    basis : str, optional
        What the layout rests on. By default it is looked up for a system that has documents, and else left out.

    Returns
    -------
    tuple of str
        Three sentences, or one.
    """
    chosen = sizing.chosen
    if chosen is None:
        return (nothing_found(sizing),)
    its: System[Any] = system(sizing.system)
    if basis is None and its.name in documented_names():
        basis = resolve(_scenario(sizing, chosen)).at(sizing.planned_tps / chosen.cells).extrapolation.basis
    return _what_to_buy(sizing, chosen, its), _what_it_does(sizing, its), _how_sure(sizing, chosen, its, basis)


def nothing_found(sizing: Sizing) -> str:
    """Return why there is no layout, and which one comes nearest."""
    nearest = max(sizing.near_misses, key=lambda each: each.held_tps, default=None)
    text = f"{none_holds(sizing)} for {rate(sizing.planned_tps)} TPS"
    if nearest is None:
        reasons = dict.fromkeys(each.reason for each in sizing.impossible)
        return f"{text}: {listed(tuple(reasons))}." if reasons else f"{text}."
    if nearest.held_tps > 0:
        return f"{text}; the nearest, {nearest.layout}, holds {rate(nearest.held_tps)}."
    return f"{text}; the nearest, {nearest.layout}, has a risk of {tenths_of_percent(nearest.binding.risk)}."


def none_holds(sizing: Sizing) -> str:
    """Return how many layouts were evaluated, none of which is safe; nothing is said about the others."""
    if not sizing.solved:
        return "No layout serves"
    evaluated = "The only layout" if sizing.solved == 1 else f"None of the {sizing.solved:,} layouts evaluated"
    return f"{evaluated} {'does not hold' if sizing.solved == 1 else 'holds'} at {share(sizing.confidence)} confidence"


def layouts(sizing: Sizing) -> pd.DataFrame:
    """Return a row for each layout of a sizing; see `Sizing.to_frame`."""
    its: System[Any] = system(sizing.system)
    chosen = [] if sizing.chosen is None else [sizing.chosen]
    every = sorted([*chosen, *sizing.alternatives, *sizing.near_misses], key=lambda each: each.cost)
    return pd.DataFrame(
        [
            {
                "layout": in_words(each, its),
                "cost": each.cost,
                "risk": each.binding.risk,
                "held_tps": each.held_tps,
                "binding": situation(each.binding.conditions, its),
                "limit": limited_by(each.binding.limit),
                "regret": _regret(each, sizing),
            }
            for each in every
        ]
    )


def _regret(layout: SizedLayout, sizing: Sizing) -> str:
    """Return what is regretted with a layout: what it costs more, or how often it fails."""
    if layout is sizing.chosen:
        return "proposed"
    more = layout.cost - (sizing.chosen or layout).cost
    worth = f"{cost_in_words(abs(more), sizing.currency)}{' machines' * (sizing.currency == MACHINES)}"
    if layout.safe:
        return f"costs {worth} more" if more > 0 else "costs the same"
    fails = f"misses the plan in {tenths_of_percent(layout.binding.risk)} of load tests"
    return f"saves {worth}, and {fails}" if more < 0 else fails


def chosen_scenario(base: Scenario, sizing: Sizing, layout: SizedLayout) -> Scenario:
    """Return the scenario of a sized layout, or of one of its cells, at the planned rate.

    Parameters
    ----------
    base : Scenario
        The fields that are not sized.
    sizing : Sizing
        The answer of `size`.
    layout : SizedLayout
        One of its layouts.
    """
    rates: dict[str, Any] = dict.fromkeys(rate_fields(type(base)))
    return changed(base, **{**rates, **layout.fields, "tps": sizing.planned_tps / layout.cells})


def _scenario(sizing: Sizing, layout: SizedLayout) -> Scenario:
    kept = {name: value for name, value in sizing.scenario.items() if name not in ("system", *layout.fields)}
    base = scenario(sizing.system)
    kept = {name: value for name, value in kept.items() if name not in rate_fields(type(base))}
    return chosen_scenario(changed(base, **kept), sizing, layout)


def _what_to_buy(sizing: Sizing, chosen: SizedLayout, its: System[Any]) -> str:
    places = its.machines_by_dc(_scenario(sizing, chosen))
    machines = counted(chosen.machines, its, chosen.shapes)
    cost = "" if sizing.currency == MACHINES else f", for {cost_in_words(chosen.cost, sizing.currency)}"
    alike = all(each == places[0] for each in places)
    if chosen.cells > 1:
        each_has = counted({kind: count // chosen.cells for kind, count in chosen.machines.items()}, its)
        spread = f" in {len(places)} data centres" if len(places) > 1 else ""
        return f"We propose {chosen.cells} cells with {each_has}{spread} each: {machines} in all{cost}."
    if len(places) == 1:
        return f"We propose {machines}{cost}."
    if alike:
        return f"We propose {len(places)} data centres with {counted(places[0], its)} each: {machines} in all{cost}."
    return f"We propose {machines} in {len(places)} data centres{cost}."


def _what_it_does(sizing: Sizing, its: System[Any]) -> str:
    held = [clause(each, its) for each in sizing.conditions]
    goal = f" with the {listed([objective(each) for each in sizing.objectives])}" if sizing.objectives else ""
    when = f" in {years_in_words(sizing.years)}" if sizing.growth_per_year and sizing.years else ""
    return (
        f"With at least {share(sizing.confidence)} confidence this layout carries the {rate(sizing.planned_tps)} "
        f"requests per second that are planned{when}{goal}, {listed(held)}."
    )


def _how_sure(sizing: Sizing, chosen: SizedLayout, its: System[Any], basis: Basis | None) -> str:
    binding, until = chosen.binding, _until(sizing, chosen)
    lasts = f" and is full after {fits_for(until)} of growth" if until is not None else ""
    evidence = "" if basis is None else f"; {_BASIS.get(basis, 'no load test of such a layout exists')}"
    tightest = inside_sentence(situation(binding.conditions, its))
    tightest = guess(f"the {tightest}" if lost_of(binding.conditions, its) else tightest, binding)
    left = share(sizing.capacity_remaining or 0.0)
    return f"The tightest situation is {tightest}: it holds {left} more than the planned rate{lasts}{evidence}."


def _until(sizing: Sizing, chosen: SizedLayout) -> Band | None:
    """Return the months until growth fills the layout; None without growth."""
    if chosen.binding.conditions == DATA:
        return chosen.months_of_data
    if sizing.months_of_rate is not None:
        return sizing.months_of_rate
    return None if sizing.years_remaining is None else Band.exactly(MONTHS * sizing.years_remaining)
