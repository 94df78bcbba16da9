"""The basis of each figure in a prediction: load tests that measured such a figure, or only the model.

A figure that was measured somewhere is `measured`, `interpolated` or `extrapolated` by the layouts and the loads of the
tests that measured it. A load is a rate relative to the capacity that the model gives that layout.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from capplan.answers.results import Basis
from capplan.evidence.table import Evidence
from capplan.layout.components import Component
from capplan.layout.fitted_file import Fitted
from capplan.layout.observations import Figure, LoadTest
from capplan.layout.system import System
from capplan.models.language.scenario import Scenario
from capplan.models.language.units import FloatArray

_SAME_LOAD = 0.05  # loads within this relative distance count as the same; repeats of a load test differ as much


class FigureBasis:
    """The basis of each figure of one layout.

    Parameters
    ----------
    system : System
        The system.
    scenario : Scenario
        The layout.
    fitted : Fitted
        The calibration.
    capacity : array (draws,)
        Capacity of the layout, requests per second.
    """

    def __init__(self, system: System[Any], scenario: Scenario, fitted: Fitted, capacity: FloatArray) -> None:
        self.system, self.scenario, self.fitted = system, scenario, fitted
        self.capacity = float(np.median(capacity))

    def of_capacity(self) -> Basis:
        """Return the basis of the capacity."""
        tests = self._measured_by(Figure("capacity"))
        return self.system.extrapolation(self.scenario, self.capacity, tests).basis if tests else "model only"

    def of_latency(self, name: str, statistic: str, rate_per_s: float) -> Basis:
        """Return the basis of a latency statistic of a reported request class at an offered peak rate."""
        return self._at(Figure("latency", name, statistic), rate_per_s)

    def of_utilisation(self, resource: str, rate_per_s: float) -> Basis:
        """Return the basis of the utilisation of a resource at an offered peak rate."""
        return self._at(Figure("utilisation", resource, "mean"), rate_per_s)

    def _at(self, figure: Figure, rate_per_s: float) -> Basis:
        tests = self._measured_by(figure)
        if not tests:
            return "model only"
        loads = [self._loads[test.name, test.scenario] for test in tests]
        load = rate_per_s / max(self.capacity, 1e-9)
        if not min(loads) * (1 - _SAME_LOAD) <= load <= max(loads) * (1 + _SAME_LOAD):
            return "extrapolated"
        layout = self.system.extrapolation(self.scenario, rate_per_s, tests).basis
        here = [test for test in tests if self._alike(test)] if layout == "measured" else []
        same = any(abs(load / self._loads[test.name, test.scenario] - 1) <= _SAME_LOAD for test in here)
        return "interpolated" if layout == "measured" and not same else layout

    def _alike(self, test: LoadTest[Any]) -> bool:
        """Whether a test used this layout."""
        return self.system.extrapolation(self.scenario, None, [test]).basis == "measured"

    def _measured_by(self, figure: Figure) -> Sequence[LoadTest[Any]]:
        """Return the load tests that measured a figure."""
        return [test for test in self._tests if any(self._is(row, figure) for row in test.rows)]

    def _is(self, row: Evidence, figure: Figure) -> bool:
        its = self.system.observations.figure_of(row)
        if its is None or row.status != "measured":
            return False
        return (its.quantity, its.statistic) == (figure.quantity, figure.statistic) and its.subject in (
            "",
            figure.subject,
        )

    @cached_property
    def _tests(self) -> Sequence[LoadTest[Any]]:
        return self.system.observations.load_tests()

    @cached_property
    def _loads(self) -> Mapping[tuple[str, Scenario], float]:
        """The loads of the tests; 1 for tests that searched for the highest rate."""
        return {(test.name, test.scenario): self._load(test) for test in self._tests}

    def _load(self, test: LoadTest[Any]) -> float:
        values = self.system.median_values(self.fitted, test.scenario)
        offered = self.system.offered_per_s(test.scenario, values)
        if offered is None:
            return 1.0
        return offered / float(self.system.solution(test.scenario, values).capacity[0])


@dataclass(frozen=True)
class Bases(Component):
    """Where the basis of figures comes from.

    Attributes
    ----------
    kind : type
        The class of the basis of a layout's figures.
    """

    kind: type[FigureBasis] = FigureBasis
