"""How far an excess of a layout moves its figures, measured by solving the layout with it and without it.

Both layouts are solved at the same rates, shares of the smaller capacity from nearly idle to nearly full. The largest
change counts: over the rates, and for times over the mean and the percentiles.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from capplan.calibration.case.extrapolation import RATE, Excess, Responses
from capplan.calibration.case.solution import Figures, Solution
from capplan.models.language.units import FloatArray


class Layout(NamedTuple):
    """A solved layout.

    Attributes
    ----------
    rates : array (figures,)
        Its capacity, requests per second; of a system that is documented as ratios only, its ratios.
    solution : Solution or None
        Its times follow from this; None: it has no times.
    """

    rates: FloatArray
    solution: Solution | None


_POOLS = "pools"
_LOADS = np.array([0.05, 0.8, 0.95])  # shares of the smaller capacity: queues respond where nothing else does


def responses(ways: Sequence[Excess], figures: Callable[[Any], Layout], layout: Any) -> Responses:
    """Measure how far each excess moves each figure.

    Parameters
    ----------
    ways : sequence of Excess
        The excesses; those without a layout inside are left out of the result.
    figures : function
        Solves a layout.
    layout : Scenario
        The layout with all excesses.

    Returns
    -------
    mapping
        By excess and figure, the change in doublings.
    """
    inside = {each: each.inside for each in ways if each.inside is not None}
    if not inside:
        return {}
    here = figures(layout)
    return {each: _moved(here, figures(its)) for each, its in inside.items()}


def _moved(here: Layout, inside: Layout) -> dict[str, float]:
    """Return how far the figures of two layouts are apart, in doublings."""
    moved = {RATE: _doublings(here.rates, inside.rates)}
    if here.solution is None or inside.solution is None:
        return moved
    rates = _LOADS[:, None] * np.minimum(here.rates, inside.rates)
    one, other = here.solution.at(rates), inside.solution.at(rates)
    for name in set(one.asked) & set(other.asked):
        moved[name] = _doublings(one.latencies_s(name), other.latencies_s(name))
    loads, of_others = _loads(here.solution, one), _loads(inside.solution, other)
    load = max((_doublings(loads[name], of_others[name]) for name in loads.keys() & of_others.keys()), default=0.0)
    return {name: max(each, load) for name, each in moved.items()}


def _loads(solution: Solution, figures: Figures) -> dict[str, FloatArray]:
    """Return the shares of time that the kinds of stations and the outermost pools are busy, by name."""
    loads = {name: figures.utilisation(name) for name in solution.resources}
    pool = solution.analysis.pool
    return loads if pool is None else {**loads, _POOLS: figures.point.busy_units / pool[0]}


def _doublings(one: FloatArray, other: FloatArray) -> float:
    """Return the largest absolute logarithm of the ratios, to base 2; infinite where a ratio is not defined."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.max(np.nan_to_num(np.abs(np.log2(one / other)), nan=np.inf)))
