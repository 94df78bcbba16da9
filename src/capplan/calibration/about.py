"""What a prediction needs to know of a system beside its model: the axes of its layouts, what to tell of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from capplan.calibration.case.solution import Figures, Layout
from capplan.calibration.case.uncertainty import NOTHING_APART, Apart, Uncertainty
from capplan.calibration.fit.fitted_file import Fitted
from capplan.calibration.study import Experiment
from capplan.models.language.parameter import Values
from capplan.models.language.scenario import Scenario
from capplan.models.language.units import Number
from capplan.planner.predict.budget import DEFAULT_BUDGET_S
from capplan.planner.predict.prediction import Outage, SessionNotFound
from capplan.systems.components.encryption_costs import values_of

Outside = Sequence[tuple[float, str]]
"""Doublings outside what was measured, and what is, in words."""


@dataclass(frozen=True)
class Case:
    """A layout with all that a prediction is put together from."""

    scenario: Any
    fitted: Fitted
    layout: Layout
    uncertainty: Uncertainty

    @property
    def values(self) -> dict[str, Number]:
        """All parameter values of the layout, the free ones as arrays (draws,)."""
        return values_of(self.fitted, self.scenario)


def _nothing_else(scenario: Any, tests: Sequence[Experiment]) -> Outside:
    del scenario, tests
    return ()


def _no_outages(case: Case, offered_tps: float) -> tuple[Outage, ...]:
    del case, offered_tps
    return ()


def _no_sessions(case: Case, figures: Figures) -> tuple[SessionNotFound, ...]:
    del case, figures
    return ()


@dataclass(frozen=True)
class About:
    """What a prediction needs to know of a system.

    Attributes
    ----------
    axes : mapping of str
        Numbers of a layout that may lie outside the measured range: fields of the scenario, in words.
    rates : str
        What rates and latencies are, for the reader.
    approximate : str
        How far the solver is off without a simulation, for the reader.
    claims : function
        What documents say of such a layout without a measurement, in plain sentences.
    notes : function
        What else a reader must know, in plain sentences: of a case, its capacity and its figures at the offered rate;
        of the case alone where the system is documented as ratios only.
    outside : function
        How far a layout lies outside in other ways than by its axes.
    outside_of_rates : function
        The same of what matters to rates only: times were measured there.
    outages : function
        What is left when parts of the layout are lost, at an offered rate.
    sessions : function
        How likely a session that was just started is not found elsewhere, for a layout solved at its offered rate.
    apart : function
        The part of every latency that the discrepancy of times is not about, from a scenario and parameter values.
    budget_s : float
        How long is simulated where nobody says: what the other parts of the bands leave worth while.
    measured_per_s : function
        Highest rate that was measured with such a layout, where capacities were not; None: capacities were.
    widening : float
        How much the discrepancy grows with each doubling outside what was measured, as a share of itself.
    bounded_by : function
        A layout that surely carries as much or more, where there is one: no band of a capacity ends above that one's.
    workers : function
        Units that each of the outermost pools has, by what they are workers of; empty without pools.
    """

    axes: Mapping[str, str]
    rates: str
    approximate: str
    claims: Callable[[Any], tuple[str, ...]]
    notes: Callable[..., list[str]]
    outside: Callable[[Any, Sequence[Experiment]], Outside] = _nothing_else
    outside_of_rates: Callable[[Any, Sequence[Experiment]], Outside] = _nothing_else
    outages: Callable[[Case, float], tuple[Outage, ...]] = _no_outages
    sessions: Callable[[Case, Figures], tuple[SessionNotFound, ...]] = _no_sessions
    apart: Callable[[Any, Values], Apart] = lambda *_: NOTHING_APART
    measured_per_s: Callable[[Any, Sequence[Experiment]], float | None] = lambda *_: None
    widening: float = 1.0
    budget_s: float = DEFAULT_BUDGET_S
    bounded_by: Callable[[Any], Scenario | None] = lambda _: None
    workers: Callable[[Any], Mapping[str, Number]] = lambda _: {}
