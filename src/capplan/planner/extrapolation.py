"""How far a layout lies from every measured one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from capplan.calibration.openprovider_figures import Experiment
from capplan.models.openprovider import PARAMETERS
from capplan.models.parameter import defaults
from capplan.models.scenario import Scenario
from capplan.models.wan import round_trip_s
from capplan.planner.prediction import Extrapolation

_NEAR = 0.6  # doublings: four data centres instead of three are near, twice the nodes are far
_GIVEN = 0.3  # of round trips that were given: the test's were not measured
_LEVELS = 0.3  # of consistency levels other than those of the calibration
_LEAST_DISTANCE_M, _LEAST_ROUND_TRIP_S = 1e3, 1e-5  # what is shorter takes no time in either case
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
    usual = (Scenario().consistency_read, Scenario().consistency_write)
    if levels != usual:
        words = f"reads at {levels[0]} and writes at {levels[1]}: calibrated with {usual[0]} and {usual[1]}"
        outside.append((_LEVELS, words))
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
        return _round_trips(max(map(max, given)), float(round_trip_s(known, 1 + defaults(PARAMETERS)["route_excess"])))
    distance = scenario.distance_m()
    if math.isclose(distance, known):
        return []
    words = f"data centres {distance / 1000:g} km apart: the test had {known / 1000:g} km"
    return [(_doublings(distance, known, _LEAST_DISTANCE_M), words)]


def _round_trips(longest_s: float, known_s: float) -> list[tuple[float, str]]:
    """Return how far given round trips lie from those of the test, which are known by their distance only."""
    words = f"round trips of up to {longest_s * 1e3:g} ms: the test's distance makes them about {known_s * 1e3:.1f} ms"
    return [(max(_doublings(longest_s, known_s, _LEAST_ROUND_TRIP_S), _GIVEN), words)]


def _doublings(value: float, known: float, least: float) -> float:
    return min(abs(math.log2(max(value, least) / known)), 3.0)
