"""What a sizing chose, as a scenario; and why it chose nothing, in the sentence of an error."""

from __future__ import annotations

from typing import Any

from capplan.models.language.scenario import Scenario, changed
from capplan.models.number_words import rate, share, tenths_of_percent
from capplan.planner.explore.sweep_table import rate_fields
from capplan.planner.size.sizing import SizedLayout, Sizing


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


def nothing_found(sizing: Sizing) -> str:
    """Return why there is no layout, and which one comes nearest."""
    nearest = max(sizing.near_misses, key=lambda each: each.held_tps, default=None)
    text = f"{none_holds(sizing)} for {rate(sizing.planned_tps)} TPS"
    if nearest is None:
        *most, last = dict.fromkeys(each.reason for each in sizing.impossible) or [""]
        reasons = f"{', '.join(most)} and {last}" if most else last
        return f"{text}: {reasons}." if reasons else f"{text}."
    if nearest.held_tps > 0:
        return f"{text}; the nearest, {nearest.layout}, holds {rate(nearest.held_tps)}."
    return f"{text}; the nearest, {nearest.layout}, has a risk of {tenths_of_percent(nearest.binding.risk)}."


def none_holds(sizing: Sizing) -> str:
    """Return how many layouts were evaluated, none of which is safe; nothing is said about the others."""
    if not sizing.solved:
        return "No layout serves"
    evaluated = "The only layout" if sizing.solved == 1 else f"None of the {sizing.solved:,} layouts evaluated"
    return f"{evaluated} {'does not hold' if sizing.solved == 1 else 'holds'} at {share(sizing.confidence)} confidence"
