"""How far a layout lies from every measured one."""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from capplan.calibration.about import About, Outside
from capplan.calibration.study import Experiment
from capplan.planner.predict.prediction import Extrapolation

_NEAR = 0.6  # doublings: four data centres instead of three are near, twice the nodes are far


@dataclass(frozen=True)
class Reach:
    """Distance from the measured layouts.

    Attributes
    ----------
    distance : float
        Doublings outside the measured range, added up over the axes.
    of_times : float
        The same without what only rates are outside of.
    verdict : str
        `inside`, `near` or `far`.
    why : str
        One plain sentence that names the axes.
    """

    distance: float
    of_times: float
    verdict: Extrapolation
    why: str

    def factors(self, widening: float) -> dict[str, float]:
        """Return how much wider the discrepancies of rates and of times are, when each doubling adds `widening`."""
        return {"rate": 1 + widening * self.distance, "time": 1 + widening * self.of_times}


def reach(scenario: Any, tests: Sequence[Experiment], about: About, load: Outside = ()) -> Reach:
    """Measure how far `scenario` lies from the layouts of `tests`; `load` is how far its load does."""
    outside: list[tuple[float, str]] = []
    for axis, words in about.axes.items():
        measured = [getattr(test.scenario, axis) for test in tests]
        outside += _outside(float(getattr(scenario, axis)), min(measured), max(measured), words)
    outside += [*about.outside(scenario, tests), *load]
    of_rates = about.outside_of_rates(scenario, tests)
    of_times = sum(each for each, _ in outside)
    distance = of_times + sum(each for each, _ in of_rates)
    outside += of_rates
    if not outside:
        return Reach(0.0, 0.0, "inside", _inside(scenario, tests, about))
    verdict: Extrapolation = "near" if distance <= _NEAR else "far"
    why = "; ".join(words for _, words in outside)
    return Reach(distance, of_times, verdict, why[0].upper() + why[1:] + ".")


def _inside(scenario: Any, tests: Sequence[Experiment], about: About) -> str:
    """Say whether a layout within the measured range has only measured numbers, or some between measured ones."""
    between = []
    for axis, words in about.axes.items():
        value, measured = getattr(scenario, axis), sorted({getattr(test.scenario, axis) for test in tests})
        if value not in measured:
            below, above = measured[(place := bisect(measured, value)) - 1], measured[place]
            between.append(f"{value:g} {words} ({below:g} and {above:g} were measured)")
    if not between:
        return "Every part of the layout lies within the measured range."
    return f"The layout lies between the measured ones: {', '.join(between)}."


def _outside(value: float, low: float, high: float, words: str) -> list[tuple[float, str]]:
    if low <= value <= high:
        return []
    direction, edge = ("above", high) if value > high else ("below", low)
    return [(abs(math.log2(value / edge)), f"{value:g} {words}: none measured {direction} {edge:g}")]
