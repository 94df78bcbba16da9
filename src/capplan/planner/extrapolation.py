"""How far a layout lies from every measured one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from capplan.calibration.openprovider_figures import Experiment
from capplan.models.scenario import Scenario
from capplan.planner.prediction import Extrapolation

_NEAR = 0.6  # doublings: four data centres instead of three are near, twice the nodes are far
_AXES = {
    "dcs": "data centres",
    "cass_nodes": "Cassandra nodes per data centre",
    "rf": "replicas per data centre",
    "front_nodes": "policing nodes per data centre",
    "front_workers": "workers per policing node",
    "data_factor": "times the test's service times",
}


@dataclass(frozen=True)
class Reach:
    """Distance from the measured layouts.

    Attributes
    ----------
    distance : float
        Doublings outside the measured range, added up over the axes.
    verdict : str
        `inside`, `near` or `far`.
    why : str
        One plain sentence that names the axes.
    """

    distance: float
    verdict: Extrapolation
    why: str


def reach(scenario: Scenario, tests: Sequence[Experiment]) -> Reach:
    """Measure how far `scenario` lies from the layouts of `tests`."""
    outside: list[tuple[float, str]] = []
    for axis, words in _AXES.items():
        measured = [getattr(test.scenario, axis) for test in tests]
        outside += _outside(float(getattr(scenario, axis)), min(measured), max(measured), words)
    if scenario.dcs > 1:
        outside += _wan(scenario, tests)
    levels = (scenario.consistency_read, scenario.consistency_write)
    if levels != (Scenario().consistency_read, Scenario().consistency_write):
        outside.append(
            (0.3, f"reads at {levels[0]} and writes at {levels[1]}: not the levels that fit the evidence best")
        )
    distance = sum(each for each, _ in outside)
    if not outside:
        return Reach(0.0, "inside", "Every part of the layout lies within the measured range.")
    verdict: Extrapolation = "near" if distance <= _NEAR else "far"
    why = "; ".join(words for _, words in outside)
    return Reach(distance, verdict, why[0].upper() + why[1:] + ".")


def _outside(value: float, low: float, high: float, words: str) -> list[tuple[float, str]]:
    if low <= value <= high:
        return []
    direction, edge = ("above", high) if value > high else ("below", low)
    return [(abs(math.log2(value / edge)), f"{value:g} {words}: none measured {direction} {edge:g}")]


def _wan(scenario: Scenario, tests: Sequence[Experiment]) -> list[tuple[float, str]]:
    known = tests[0].scenario.distance_m()
    given = scenario.given_rtt_s()
    if given is not None:
        return [(0.3, "round trips were given, the test's are known by distance only")]
    distance = scenario.distance_m()
    if math.isclose(distance, known):
        return []
    away = min(abs(math.log2(max(distance, 1000.0) / known)), 3.0)
    return [(away, f"data centres {distance / 1000:g} km apart: the test had {known / 1000:g} km")]
