"""Distance of a layout from the measured ones, in doublings of its axes."""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from capplan.models.language.per_dc import per_dc_text
from capplan.models.language.scenario import Scenario

Basis = Literal["measured", "interpolated", "extrapolated"]


class Excess(NamedTuple):
    """One way in which a layout lies outside the measured ones.

    Attributes
    ----------
    doublings : float
        How far outside, in doublings.
    words : str
        In what way, as a clause for the reader.
    """

    doublings: float
    words: str


@dataclass(frozen=True)
class Extrapolation:
    """Distance of a layout from the measured ones.

    Attributes
    ----------
    doublings : float
        Doublings outside the measured range, summed over the axes.
    doublings_of_times : float
        The same sum for times, without the ways that matter to rates only.
    basis : str
        `measured`: every axis has a measured value; `interpolated`: between measured values; `extrapolated`: outside.
    why : str
        One sentence that names the axes.
    """

    doublings: float
    doublings_of_times: float
    basis: Basis
    why: str

    def factors(self, widening: float) -> dict[str, float]:
        """Return the factors that widen the model errors.

        Parameters
        ----------
        widening : float
            Growth of a model error per doubling, as a share of itself.

        Returns
        -------
        dict of float
            Factors of `rate` and of `time`.
        """
        return {"rate": 1 + widening * self.doublings, "time": 1 + widening * self.doublings_of_times}


def extrapolation(
    scenario: Scenario,
    measured: Sequence[Scenario],
    axes: Mapping[str, str],
    outside: Sequence[Excess] = (),
    outside_of_rates: Sequence[Excess] = (),
) -> Extrapolation:
    """Measure how far a scenario lies from the measured ones.

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
    excess: list[Excess] = []
    for axis, label in axes.items():
        values = [number for each in measured for number in _numbers(each, axis)]
        excess += _outside(_numbers(scenario, axis), min(values), max(values), f"{_written(scenario, axis)} {label}")
    excess += outside
    of_times = sum(each.doublings for each in excess)
    total = of_times + sum(each.doublings for each in outside_of_rates)
    excess += outside_of_rates
    if not excess:
        return _inside(scenario, measured, axes)
    why = "; ".join(each.words for each in excess)
    return Extrapolation(total, of_times, "extrapolated", why[0].upper() + why[1:] + ".")


def _inside(scenario: Scenario, measured: Sequence[Scenario], axes: Mapping[str, str]) -> Extrapolation:
    between = []
    for axis, label in axes.items():
        values = sorted({number for each in measured for number in _numbers(each, axis)})
        new = next((number for number in _numbers(scenario, axis) if number not in values), None)
        if new is not None:
            below, above = values[(place := bisect(values, new)) - 1], values[place]
            between.append(f"{_written(scenario, axis)} {label} ({below:g} and {above:g} were measured)")
    if not between:
        return Extrapolation(0.0, 0.0, "measured", "Every part of the layout was measured.")
    return Extrapolation(0.0, 0.0, "interpolated", f"The layout lies between measured ones: {', '.join(between)}.")


def _numbers(scenario: Scenario, axis: str) -> tuple[float, ...]:
    """Return the numbers of a field: one, or those of the data centres that have any."""
    value = getattr(scenario, axis)
    return tuple(float(each) for each in value if each) if isinstance(value, tuple) else (float(value),)


def _written(scenario: Scenario, axis: str) -> str:
    value = getattr(scenario, axis)
    return per_dc_text(value) if isinstance(value, tuple) else f"{value:g}"


def _outside(values: Sequence[float], low: float, high: float, what: str) -> list[Excess]:
    """Return how far the values lie outside on each side; of several data centres, the farthest counts."""
    found = []
    if min(values) < low:
        found.append(Excess(abs(math.log2(min(values) / low)), f"{what}: none measured below {low:g}"))
    if max(values) > high:
        found.append(Excess(math.log2(max(values) / high), f"{what}: none measured above {high:g}"))
    return found
