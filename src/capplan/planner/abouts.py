"""What a prediction needs to know of each system, by name."""

from __future__ import annotations

from collections.abc import Mapping

from capplan.calibration.studies import study
from capplan.models.scenario import Scenario
from capplan.planner import about_fedora4, about_openprovider, about_rhino_shcm
from capplan.planner.about import About
from capplan.planner.extrapolation import Reach, reach

ABOUTS: Mapping[str, About] = {
    "openprovider": about_openprovider.ABOUT,
    "rhino-shcm": about_rhino_shcm.ABOUT,
    "fedora4": about_fedora4.ABOUT,
}


def reach_of(scenario: Scenario) -> Reach:
    """Measure how far a layout lies from those of its system that were measured."""
    return reach(scenario, study(scenario.system).experiments(), ABOUTS[scenario.system])
