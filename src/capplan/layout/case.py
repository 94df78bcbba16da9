"""A case: a scenario with its system and calibration, resolved once and passed on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Generic, TypeVar

import numpy as np

from capplan.answers.objective import Objective, parse
from capplan.layout.basis import Bases, FigureBasis
from capplan.layout.components import MeasuredRange
from capplan.layout.ensemble import SMALL_ENSEMBLE, Representatives, at_draws, representatives
from capplan.layout.extrapolation import RATE, Extrapolation, Responses
from capplan.layout.fitted_file import Fitted
from capplan.layout.solution import Solution
from capplan.layout.system import System, middle_solution
from capplan.layout.table_components import Rows
from capplan.layout.uncertainty import Offset, Uncertainty
from capplan.models.language.scenario import Scenario, changed
from capplan.models.language.units import Number

S = TypeVar("S", bound=Scenario)


@dataclass(frozen=True)
class SolvedLayout(Generic[S]):
    """A layout with its system and calibration, and what is solved of it: the same at every rate and objective.

    Attributes
    ----------
    system : System
        The system.
    scenario : Scenario
        The layout.
    fitted : Fitted
        The calibration.
    seed : int
        Seed of all random numbers.
    draws : int or None
        Number of representative draws to solve instead of the whole ensemble; None: all draws.
    axes_of : Scenario
        The layout whose axes outside the tested range widen the bands, without load and objectives.
    """

    system: System[S]
    scenario: S
    fitted: Fitted
    seed: int
    draws: int | None
    axes_of: S

    @cached_property
    def every_value(self) -> dict[str, Number]:
        """All parameter values by name, SI; arrays of all draws for free parameters."""
        return self.system.values(self.fitted, self.scenario)

    @cached_property
    def representatives(self) -> Representatives | None:
        """The solved draws; None if all draws are solved."""
        return None if self.draws is None else representatives(self.every_value, self.draws)

    @cached_property
    def values(self) -> dict[str, Number]:
        """All parameter values by name, SI; arrays (solved draws,) for free parameters."""
        few = self.representatives
        return self.every_value if few is None else at_draws(self.every_value, few.chosen)

    @cached_property
    def solution(self) -> Solution:
        """The analysed layout."""
        few = self.representatives
        if few is None:
            return self.system.solution(self.scenario, self.values)
        return self.system.solution(self.scenario, self.values, few.place, self.every_value)

    @cached_property
    def along(self) -> Solution:
        """The layout for figures at many shares of its capacity; with few draws if each rate is slow to solve."""
        slow = self.draws is None and len(self.solution.analysis.groups) > 1
        return replace(self, draws=2 * SMALL_ENSEMBLE).solution if slow else self.solution

    @cached_property
    def basis(self) -> FigureBasis:
        """The basis of each figure."""
        return self.system.component(Bases).kind(self.system, self.scenario, self.fitted, self.solution.capacity)

    @property
    def middle(self) -> Solution:
        """The layout analysed at one value per parameter."""
        return middle_solution(self.system, self.axes_of, self.fitted)

    @property
    def responses(self) -> Responses:
        """How much each axis outside the tested range changes each figure."""
        return _responses(self.system, self.axes_of, self.fitted)

    def widening(self, far: Extrapolation, figure: str, beside: Extrapolation | None = None) -> float:
        """Return the factor of the model error of a figure; beside another layout, that of the part they share."""
        return far.factor(self.system.component(MeasuredRange).widening, figure, self.responses, beside)

    @property
    def at_capacity(self) -> Extrapolation:
        """How far the layout at its capacity lies outside the tested range."""
        its, tests = self.system, self.system.observations.load_tests()
        if (
            its.component(MeasuredRange).highest_rate(self.scenario, tests) is None
        ):  # then the capacity need not be known
            return its.extrapolation(self.scenario)
        return its.extrapolation(self.scenario, float(np.median(self.solution.capacity)))

    @cached_property
    def as_tested(self) -> Uncertainty:
        """Uncertainty of the figures if the layout were a tested one."""
        return replace(self.system.uncertainty(self.fitted, self.scenario, self.seed), offset=self._offset)

    @cached_property
    def near(self) -> Uncertainty:
        """Uncertainty with rates as at the capacity and times as in a measured layout."""
        return self.as_tested.widened(rate=self.widening(self.at_capacity, RATE))

    @cached_property
    def _offset(self) -> Offset:
        return self.system.component(MeasuredRange).offset(self.scenario, self.every_value)


@dataclass(frozen=True)
class Case(Generic[S]):
    """A scenario with its system and calibration, resolved once and passed on.

    Attributes
    ----------
    system : System
        The system.
    scenario : Scenario
        The layout and its traffic.
    fitted : Fitted
        The calibration.
    seed : int
        Seed of all random numbers.
    offered_per_s : float or None
        Offered peak rate of the figures, requests per second; None: not decided yet.
    draws : int or None
        Number of representative draws to solve instead of the whole ensemble, which is faster; None: all draws, as a
        simulation needs.
    axes_of : Scenario or None
        The layout whose axes outside the tested range widen the bands; None: this one.
    """

    system: System[S]
    scenario: S
    fitted: Fitted
    seed: int = 1
    offered_per_s: float | None = None
    draws: int | None = None
    axes_of: S | None = None

    @cached_property
    def layout(self) -> SolvedLayout[S]:
        """The layout, and what is solved of it."""
        axes_of = self.axes_of or changed(self.scenario, tps=None, slo=())
        return SolvedLayout(self.system, self.scenario, self.fitted, self.seed, self.draws, axes_of)

    def at(self, offered_per_s: float) -> Case[S]:
        """Return the case at an offered rate, requests per second."""
        return self._of_same_layout(replace(self, offered_per_s=offered_per_s))

    def asked(self, scenario: S) -> Case[S]:
        """Return the case for the same layout with another rate or other objectives."""
        return self._of_same_layout(replace(self, scenario=scenario, offered_per_s=None))

    def _of_same_layout(self, case: Case[S]) -> Case[S]:
        vars(case)["layout"] = self.layout  # it is solved once
        return case

    def changed(self, scenario: S) -> Case[S]:
        """Return a case for another scenario of the same system, without an offered rate."""
        return replace(self, scenario=scenario, offered_per_s=None, axes_of=None)

    def beside(self, scenario: S) -> Case[S]:
        """Return a case for the same layout under other conditions; axes outside the tested range count as here."""
        return replace(self, scenario=scenario, offered_per_s=None, axes_of=self.layout.axes_of)

    @property
    def representatives(self) -> Representatives | None:
        """The solved draws; None if all draws are solved."""
        return self.layout.representatives

    @property
    def values(self) -> dict[str, Number]:
        """All parameter values by name, SI; arrays (solved draws,) for free parameters."""
        return self.layout.values

    @property
    def solution(self) -> Solution:
        """The analysed layout."""
        return self.layout.solution

    @property
    def basis(self) -> FigureBasis:
        """The basis of each figure."""
        return self.layout.basis

    @cached_property
    def objectives(self) -> tuple[Objective, ...]:
        """The objectives of the scenario.

        Raises
        ------
        InputError
            If an objective cannot be parsed, or names a request class or a resource that the layout does not have.
        """
        if not self.scenario.slo:
            return ()
        classes = self.system.classes(self.scenario)
        return tuple(parse(text, classes, self.layout.middle.resources) for text in self.scenario.slo)

    @cached_property
    def given_per_s(self) -> float | None:
        """Offered peak rate from the scenario, requests per second; None if it has none."""
        return self.system.offered_per_s(self.scenario, self.values)

    @property
    def closed_clients(self) -> int | None:
        """The clients whose throughput is the answer, as for a closed row of a table; None: it is asked for a rate."""
        return self.system.component(Rows).closed_clients(self.scenario)

    @cached_property
    def extrapolation(self) -> Extrapolation:
        """How far the layout and the offered rate lie outside the tested range."""
        return self.system.extrapolation(self.scenario, self.offered_per_s)

    @cached_property
    def _factors(self) -> dict[str, float]:
        """Factors of the model errors of times, by reported class."""
        return {name: self.layout.widening(self.extrapolation, name) for name in self.system.reported}

    @cached_property
    def uncertainty(self) -> Uncertainty:
        """Uncertainty of the figures: rates as at the capacity, times as at the offered rate."""
        return self.layout.near.widened(times=self._factors)

    def uncertainty_beside(self, other: Case[S]) -> Uncertainty:
        """Return the uncertainty, with the correlation between the model errors of this layout and another one."""
        layout, rate = self.layout, self.layout.at_capacity
        common = {name: layout.widening(self.extrapolation, name, other.extrapolation) for name in self._factors}
        common[RATE] = layout.widening(rate, RATE, other.layout.at_capacity)
        return layout.as_tested.widened(layout.widening(rate, RATE), self._factors, common)

    @cached_property
    def upper_bound(self) -> Case[S] | None:
        """A case with certainly no lower throughput; None if there is none."""
        bound = self.system.component(MeasuredRange).upper_bound(self.scenario)
        return None if bound is None else self.changed(bound)


@lru_cache(maxsize=256)  # a layout is needed with few and many draws, and under several conditions
def _responses(system: System[Any], scenario: Scenario, fitted: Fitted) -> Responses:
    """Return how much each axis outside the tested range changes each figure."""
    return system.responses(fitted, scenario, system.extrapolation(scenario))
