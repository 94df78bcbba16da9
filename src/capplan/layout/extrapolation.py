"""How far a layout lies outside the tested range, in doublings per axis, and how much each axis changes each figure."""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from capplan.errors import InputError
from capplan.layout.solution import Figures, Solution
from capplan.models.language.per_dc import per_dc_text
from capplan.models.language.scenario import Scenario, changed, options_of
from capplan.models.language.units import FloatArray, parse_share

Basis = Literal["measured", "interpolated", "population", "extrapolated"]


class Excess(NamedTuple):
    """One axis on which a layout lies outside the tested range.

    Attributes
    ----------
    doublings : float
        How far outside, in doublings.
    words : str
        In what way, as a clause for the reader.
    inside : Scenario or None
        The layout as it would be without this excess, everything else the same: the figures of both show whether a
        figure responds to it. None: every figure is taken to respond.
    axis : str
        The axis and the side of it, where another layout may lie less far outside in the same way; empty: only one with
        the same words does.
    """

    doublings: float
    words: str
    inside: Scenario | None = None
    axis: str = ""

    @property
    def way(self) -> str:
        """The key that this excess shares with another layout's excess on the same axis and side."""
        return self.axis or self.words


Responses = Mapping[Excess, Mapping[str, float]]
"""By way of being outside: how far it moves each figure, in doublings; what is not named responds fully."""
RATE = "rate"
"""Name of the capacity among the figures; the others are reported request classes, whose times they are."""
_FULL = 0.1
"""Doublings of a figure per doubling of an axis from which the excess counts fully; below, it counts in proportion."""


@dataclass(frozen=True)
class Extrapolation:
    """How far a layout lies outside the tested range.

    Attributes
    ----------
    excess : tuple of Excess
        Ways in which the layout lies outside, for every figure.
    excess_of_rates : tuple of Excess
        Ways that matter to rates only.
    basis : str
        `measured`: every axis has a measured value; `interpolated`: between measured values; `population`: the values
        of other people's clusters, or between them; `extrapolated`: outside.
    why : str
        One sentence that names the axes.
    """

    excess: tuple[Excess, ...]
    excess_of_rates: tuple[Excess, ...]
    basis: Basis
    why: str

    @property
    def doublings(self) -> float:
        """Doublings outside the tested range, summed over all axes."""
        return sum(each.doublings for each in (*self.excess, *self.excess_of_rates))

    def factor(self, widening: float, figure: str, responses: Responses, beside: Extrapolation | None = None) -> float:
        """Return the factor that widens a figure's model error.

        Parameters
        ----------
        widening : float
            Growth of a model error per doubling, as a share of itself.
        figure : str
            `RATE` for the capacity, or a reported request class for its times.
        responses : mapping
            How far each excess moves each figure.
        beside : Extrapolation, optional
            That of another layout: count only the doublings that both have. By default all count.

        Returns
        -------
        float
            The factor, at least 1.
        """
        ways = (*self.excess, *self.excess_of_rates) if figure == RATE else self.excess
        own = [_counted(each, responses.get(each, {}).get(figure)) for each in ways]
        if beside is not None:
            known = {each.way: each.doublings for each in (*beside.excess, *beside.excess_of_rates)}
            own = [min(counted, known.get(each.way, 0.0)) for each, counted in zip(ways, own, strict=True)]
        return 1 + widening * sum(own)

    def without_effect(self, responses: Responses) -> tuple[Excess, ...]:
        """Return the axes that change no figure."""
        return tuple(each for each in self.excess if each in responses and not any(responses[each].values()))


def _counted(excess: Excess, response: float | None) -> float:
    """Return the doublings that count, limited by the change of the figure; all of them if the change is unknown."""
    return excess.doublings if response is None else min(excess.doublings, response / _FULL)


def extrapolation(
    scenario: Scenario,
    measured: Sequence[Scenario],
    axes: Mapping[str, str],
    outside: Sequence[Excess] = (),
    outside_of_rates: Sequence[Excess] = (),
) -> Extrapolation:
    """Measure how far a scenario lies outside the tested range.

    Parameters
    ----------
    scenario : Scenario
        The layout in question.
    measured : sequence of Scenario
        The measured layouts.
    axes : mapping of str
        Labels of the fields with a measured range, by field name.
    outside, outside_of_rates : sequence of Excess
        Other ways in which the layout lies outside: for every figure, and for rates only.

    Returns
    -------
    Extrapolation
        The distance, and its reasons.
    """
    excess = [each for axis, label in axes.items() for each in _outside(scenario, measured, axis, label)]
    excess += outside
    ways = [*excess, *outside_of_rates]
    if not ways:
        return _inside(scenario, measured, axes)
    why = "; ".join(each.words for each in ways)
    return Extrapolation(tuple(excess), tuple(outside_of_rates), "extrapolated", why[0].upper() + why[1:] + ".")


def _inside(scenario: Scenario, measured: Sequence[Scenario], axes: Mapping[str, str]) -> Extrapolation:
    between = []
    for axis, label in axes.items():
        values = sorted({number for each in measured for number in _numbers(each, axis)})
        new = next((number for number in _numbers(scenario, axis) if number not in values), None)
        if new is not None:
            below, above = values[(place := bisect(values, new)) - 1], values[place]
            between.append(f"{_written(scenario, axis)} {label} ({below:g} and {above:g} were measured)")
    if not between:
        return Extrapolation((), (), "measured", "Every part of the layout was measured.")
    return Extrapolation((), (), "interpolated", f"The layout lies between measured ones: {', '.join(between)}.")


def _numbers(scenario: Scenario, axis: str) -> tuple[float, ...]:
    """Return a field's numbers: one, or one for each data centre that has any; none if the field is not set."""
    value = getattr(scenario, axis)
    if value is None:
        return ()
    return tuple(float(each) for each in value if each) if isinstance(value, tuple) else (float(value),)


def _written(scenario: Scenario, axis: str) -> str:
    value = getattr(scenario, axis)
    return per_dc_text(value) if isinstance(value, tuple) else f"{value:g}"


def _outside(scenario: Scenario, measured: Sequence[Scenario], axis: str, label: str) -> list[Excess]:
    """Return how far a field lies outside the range on each side; the farthest data centre counts."""
    values = _numbers(scenario, axis)
    if not values:
        return []
    known = [number for each in measured for number in _numbers(each, axis)]
    written, low, high = _written(scenario, axis), min(known), max(known)
    what = f"{written} {label.replace('s per DC', ' per DC') if written == '1' else label}"
    found = []
    if min(values) < low:
        inside, far = _limited(scenario, axis, low, math.inf), _doublings(scenario, axis, min(values), low)
        found.append(Excess(far, f"{what}: none measured below {low:g}", inside, f"{axis} <"))
    if max(values) > high:
        inside, far = _limited(scenario, axis, 0.0, high), _doublings(scenario, axis, high, max(values))
        found.append(Excess(far, f"{what}: none measured above {high:g}", inside, f"{axis} >"))
    return found


def _doublings(scenario: Scenario, axis: str, low: float, high: float) -> float:
    """Return the distance of two values in doublings; 0 to 1 counts as one, and two shares differ by one at most."""
    if not low:
        return 1 + max(math.log2(high), 0.0)
    far = math.log2(high / low)
    return min(far, 1.0) if options_of(type(scenario))[axis].read is parse_share else far


def _limited(scenario: Scenario, axis: str, low: float, high: float) -> Scenario | None:
    """Return a scenario with one field's numbers clipped to a range; None if no such layout exists."""
    value = getattr(scenario, axis)
    limited = [
        type(number)(min(max(number, low), high)) for number in (value if isinstance(value, tuple) else (value,))
    ]
    try:
        return changed(scenario, **{axis: tuple(limited) if isinstance(value, tuple) else limited[0]})
    except InputError:  # such as more replicas than nodes
        return None


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
    """Measure how much each axis outside the tested range changes each figure, as far as it counts.

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
        By excess and figure, the change in doublings. Loads that change enough to count fully stand for times, which
        are slower to solve.
    """
    inside = {each: each.inside for each in ways if each.inside is not None}
    if not inside:
        return {}
    here = figures(layout)
    return {each: _moved(here, figures(its), _FULL * each.doublings) for each, its in inside.items()}


def _moved(here: Layout, inside: Layout, enough: float) -> dict[str, float]:
    """Return how far the figures of two layouts differ, in doublings; from `enough` on by at least so much."""
    moved = {RATE: _shift(here.rates, inside.rates)}
    if here.solution is None or inside.solution is None:
        return moved
    rates = _LOADS[:, None] * np.minimum(here.rates, inside.rates)
    one, other = here.solution.at(rates), inside.solution.at(rates)
    loads, of_others = _loads(here.solution, one), _loads(inside.solution, other)
    load = max((_shift(loads[name], of_others[name]) for name in loads.keys() & of_others.keys()), default=0.0)
    for name in set(one.asked) & set(other.asked):
        moved[name] = load if load >= enough else _shift(one.latencies_s(name), other.latencies_s(name))
    return {name: max(each, load) for name, each in moved.items()}


def _loads(solution: Solution, figures: Figures) -> dict[str, FloatArray]:
    """Return the utilisation of each kind of station and of the outermost pools, by name."""
    loads = {name: figures.utilisation(name) for name in solution.resources}
    pool = solution.analysis.pool
    return loads if pool is None else {**loads, _POOLS: figures.point.busy_units / pool[0]}


def _shift(one: FloatArray, other: FloatArray) -> float:
    """Return the largest absolute logarithm of the ratios, to base 2; infinite where a ratio is not defined."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.max(np.nan_to_num(np.abs(np.log2(one / other)), nan=np.inf)))
