"""What a prediction needs to know of each system, by name."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from capplan.calibration.about import About, Outside
from capplan.calibration.case.extrapolation import Reach, reach
from capplan.calibration.study import Experiment
from capplan.models.language.scenario import Scenario
from capplan.systems.studies import Lazy, study

ABOUTS: Mapping[str, About] = Lazy("notes", "ABOUT")


def reach_of(scenario: Scenario, load: Outside = ()) -> Reach:
    """Measure how far a layout lies from those of its system that were measured; `load` is how far its load does."""
    return reach(scenario, study(scenario.system).experiments(), ABOUTS[scenario.system], load)


def beyond_measured(scenario: Scenario, rate_per_s: float, tests: Sequence[Experiment] | None = None) -> Outside:
    """Return how far a rate lies above those that were measured with such a layout, where it matters.

    `tests` are the experiments that count; all of the system when left out.
    """
    known = study(scenario.system).experiments() if tests is None else tests
    highest = ABOUTS[scenario.system].measured_per_s(scenario, known)
    if highest is None or rate_per_s <= highest:
        return ()
    return (
        (math.log2(rate_per_s / highest), f"{rate_per_s:,.0f} requests per second: none measured above {highest:,.0f}"),
    )
