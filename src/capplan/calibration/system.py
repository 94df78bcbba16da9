"""The contract of a system: what every layer may ask of it, and what its author has to provide.

Required are a name, a summary, a scenario, parameters and a network. Everything else has a default that works: the
observations read `evidence.csv` beside the system's code, a system without outages has none to report, and so on.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np

from capplan.calibration.case.ensemble import Places, Representatives, at_draws, representatives
from capplan.calibration.case.extrapolation import Excess, Extrapolation, extrapolation
from capplan.calibration.case.model_error import ModelErrors, model_errors
from capplan.calibration.case.solution import ClosedForm, Figures, Solution
from capplan.calibration.case.uncertainty import NO_OFFSET, Offset, Uncertainty
from capplan.calibration.evidence.table import Evidence, Source, read_rows, read_sources, rows_hash
from capplan.calibration.fit.fitted_file import Expected, Fitted, read_fitted
from capplan.calibration.observations import LoadTest, Observations
from capplan.models.errors import InputError
from capplan.models.language.network import Network
from capplan.models.language.parameter import Parameter, Values, defaults
from capplan.models.language.scenario import Scenario, axes_of
from capplan.models.language.units import FloatArray, Number
from capplan.models.objective import Objective, parse
from capplan.models.results import Capacity, Outage, SessionNotFound

S = TypeVar("S", bound=Scenario)
DEFAULT_BUDGET_S = 0.8
"""Seconds of simulation on a nominal machine, unless a system says otherwise."""


class Notes(Generic[S]):
    """What a reader must know besides the figures, in plain sentences.

    Attributes
    ----------
    rates : str
        What rates and latencies of this system are.
    accuracy : str
        How far the analytic solver is off without a simulation.
    """

    rates: str = "Rates are requests per second over the whole layout; latencies are those of a client."
    accuracy: str = "Percentiles are approximations; --engine compiled simulates them."

    def __init__(self, evidence: tuple[Evidence, ...] = ()) -> None:
        self.evidence = evidence

    def claims(self, scenario: S) -> tuple[str, ...]:
        """Return what documents claim about such a layout without a measurement."""
        del scenario
        return ()

    def notes(self, case: Case[S], capacity: Capacity, figures: Figures) -> list[str]:
        """Return what else a reader must know of a case, its capacity and its figures at the offered rate."""
        del case, capacity, figures
        return []

    def notes_on_ratios(self, case: Case[S]) -> list[str]:
        """Return the same for a system that is documented as ratios only."""
        del case
        return []


class System(ABC, Generic[S]):
    """A system that can be asked about.

    Attributes
    ----------
    name : str
        Its name on the command line.
    summary : str
        What is modelled, in one sentence.
    scenario : type
        The scenario that lays it out; see `capplan.models.language.scenario`.
    parameters : tuple of Parameter
        What its network is composed from besides the layout.
    budget_s : float
        Default time of simulation on a nominal machine, seconds.
    widening : float
        Growth of the model error with each doubling outside the measured range, as a share of itself.
    ratios_only : bool
        Whether its documents have ratios of throughput only; see `ratios`.
    """

    name: str
    summary: str
    scenario: type[S]
    parameters: tuple[Parameter, ...]
    budget_s: float = DEFAULT_BUDGET_S
    widening: float = 1.0
    ratios_only: bool = False

    @abstractmethod
    def network(self, scenario: S, values: Values, rate_per_s: Number, lost: frozenset[str] = frozenset()) -> Network:
        """Compose the system as a queueing network with open traffic.

        Parameters
        ----------
        scenario : Scenario
            The layout.
        values : mapping
            Parameter values by name, SI; numbers, or arrays over draws for the analytic solver.
        rate_per_s : number
            Offered peak rate, requests per second over the whole layout.
        lost : set of str
            Stations that are down, by name.
        """

    # Request classes

    @cached_property
    def reported(self) -> Mapping[str, tuple[str, ...]]:
        """Request classes as reported to people, each with the classes of the network that it sums up."""
        usual = self.network(self.scenario(), defaults(self.parameters), 1.0)
        return {each.name: (each.name,) for each in usual.classes}

    def traffic_mix(self, scenario: S) -> Collection[str]:
        """Return the reported classes that the traffic of a scenario has."""
        del scenario
        return self.reported

    def classes(self, scenario: S) -> tuple[str, ...]:
        """Return the reported classes of a scenario in the order of `reported`."""
        mix = self.traffic_mix(scenario)
        return tuple(name for name in self.reported if name in mix)

    # Closed forms

    def folded(self, scenario: S, values: Values, rate_per_s: Number) -> Network | None:
        """Compose the network as one of its like entries sees it, for `Analysis`; None where entries differ."""
        del scenario, values, rate_per_s
        return None

    def response_s(self, scenario: S, values: Values, rate_per_s: FloatArray, level: float | None) -> FloatArray:
        """Return the response time in closed form, seconds over draws; override where one beats the solver.

        Parameters
        ----------
        scenario, values
            The layout and the parameters.
        rate_per_s : array
            Offered rate, requests per second.
        level : float or None
            Level of a percentile, or None for the mean.
        """
        raise NotImplementedError

    def settling_s(self, scenario: S, values: Values, rate_per_s: FloatArray) -> FloatArray:
        """Return how long the system takes to settle from empty, seconds over draws."""
        del scenario, values, rate_per_s
        return np.array(0.5)

    def bounded(self, scenario: S) -> bool:
        """Whether clients wait for their answers, so that latency stays finite beyond capacity."""
        del scenario
        return False

    def ratios(self, scenario: S, values: Values) -> Mapping[str, FloatArray]:
        """Return throughput over that of reference layouts, for a system with `ratios_only`.

        The reference that was asked about comes first; arrays are over draws.
        """
        raise NotImplementedError

    # Parameter values

    def values(self, fitted: Fitted, scenario: S) -> dict[str, Number]:
        """Return all parameter values of a layout, the free ones as arrays (draws,)."""
        del scenario
        return fitted.values(self.parameters)

    def median_values(self, fitted: Fitted, scenario: S) -> dict[str, float]:
        """Return one value of each parameter: the draw nearest to the centre of the ensemble."""
        del scenario
        return fitted.median_values(self.parameters)

    def prior_values(self, scenario: S) -> Values:
        """Return the prior medians of a layout's parameters."""
        del scenario
        return defaults(self.parameters)

    # What was observed, and what to tell of it

    @cached_property
    def observations(self) -> Observations[S]:
        """What load tests measured, and what the model says of it."""
        return Observations(self)

    @cached_property
    def notes(self) -> Notes[S]:
        """What a reader must know besides the figures."""
        return Notes(self.evidence)

    def outages(self, case: Case[S], offered_per_s: float) -> tuple[Outage, ...]:
        """Return what is left when parts of the layout are lost, at an offered rate in requests per second."""
        del case, offered_per_s
        return ()

    def sessions_not_found(self, case: Case[S], figures: Figures) -> tuple[SessionNotFound, ...]:
        """Return how likely a session that just started is not found elsewhere, at the offered rate."""
        del case, figures
        return ()

    def workers(self, scenario: S) -> Mapping[str, Number]:
        """Return the units of each outermost pool, by what they are workers of."""
        del scenario
        return {}

    # How sure a figure is

    def excess(self, scenario: S, tests: Sequence[LoadTest[S]]) -> Sequence[Excess]:
        """Return how far a layout lies outside the measured ones in other ways than along its numeric fields."""
        del scenario, tests
        return ()

    def excess_of_rates(self, scenario: S, tests: Sequence[LoadTest[S]]) -> Sequence[Excess]:
        """Return the same for what matters to rates only, since times were measured there."""
        del scenario, tests
        return ()

    def highest_measured_rate(self, scenario: S, tests: Sequence[LoadTest[S]]) -> float | None:
        """Return the highest measured rate of such a layout, where capacities were not measured; else None."""
        del scenario, tests
        return None

    def offset(self, scenario: S, values: Values) -> Offset:
        """Return the part of every latency that the model error of times does not cover, such as a round trip."""
        del scenario, values
        return NO_OFFSET

    def upper_bound(self, scenario: S) -> S | None:
        """Return a layout that certainly completes as much or more; no band of a capacity ends above its own."""
        del scenario
        return None

    # Provided by the contract

    @cached_property
    def folder(self) -> Traversable:
        """The folder of the system's package: code, `evidence.csv`, `source.toml`, `fitted.json`."""
        spec = sys.modules[type(self).__module__].__spec__
        if spec is None or spec.parent is None:
            raise InputError(f"system {self.name!r} stands in no package, so it has no evidence")
        return files(spec.parent)

    @cached_property
    def evidence(self) -> tuple[Evidence, ...]:
        """Every row of evidence about the system, in the order of its file."""
        return read_rows(self.folder / "evidence.csv", self.name)

    @cached_property
    def sources(self) -> tuple[Source, ...]:
        """Where the evidence comes from."""
        return read_sources(self.folder / "source.toml")

    @cached_property
    def data_hash(self) -> str:
        """SHA-256 of the evidence; a fit stores it to show what it has seen."""
        return rows_hash(self.evidence)

    @property
    def fitted_path(self) -> Path:
        """Where the system's own calibration stands."""
        return Path(str(self.folder / "fitted.json"))

    def fitted(self) -> Fitted:
        """Return the system's own calibration.

        Raises
        ------
        InputError
            When there is none, or the evidence has changed since.
        """
        if not self.fitted_path.is_file():
            raise InputError(f"system {self.name!r} is not calibrated: run `capplan calibrate {self.name}`")
        return self.checked(read_fitted(self.fitted_path), self.fitted_path.name)

    def checked(self, fitted: Fitted, where: str) -> Fitted:
        """Return a calibration if it belongs to this system's evidence and parameters; `where` names it.

        Raises
        ------
        InputError
            When it was fitted to other evidence or with other parameters.
        """
        names = tuple(parameter.name for parameter in self.parameters if parameter.free)
        folds = {row.id: row.fold for test in self.observations.load_tests() for row in test.rows}
        fitted.check(where, Expected(self.name, self.data_hash, names, folds, len(self.observations.choices)))
        return fitted

    def solution(
        self,
        scenario: S,
        values: Values,
        lost: frozenset[str] = frozenset(),
        *,
        folded: bool = False,
        place: Places | None = None,
    ) -> Solution:
        """Analyse a layout once; figures at any rate follow from it.

        Parameters
        ----------
        scenario, values
            The layout and its parameters, numbers or arrays over draws.
        lost : set of str
            Stations that are down.
        folded : bool
            Analyse one entry for all where they see the same: faster, equal to rounding, but not for a simulation.
        place : array of int (draws,), optional
            For each draw of the ensemble, the place of its representative among the values; left out, values have all.
        """
        whole = self.folded(scenario, values, 1.0) if folded and not lost else None
        network = whole or self.network(scenario, values, 1.0, lost)
        return Solution(
            network,
            self.reported,
            self._closed_form(scenario, values),
            self.bounded(scenario),
            whole is not None,
            place,
        )

    def _closed_form(self, scenario: S, values: Values) -> ClosedForm | None:
        if type(self).response_s is System.response_s:
            return None
        return lambda rate_per_s, level: self.response_s(scenario, values, rate_per_s, level)

    def extrapolation(
        self, scenario: S, rate_per_s: float | None = None, tests: Sequence[LoadTest[S]] | None = None
    ) -> Extrapolation:
        """Measure how far a layout, and a rate on it, lie from the measured ones.

        Parameters
        ----------
        scenario : Scenario
            The layout.
        rate_per_s : float, optional
            The offered rate; left out, only the layout counts.
        tests : sequence of LoadTest, optional
            The load tests that count; all when left out.
        """
        known = self.observations.load_tests() if tests is None else tests
        outside = [*self.excess(scenario, known), *self._excess_of_load(scenario, rate_per_s, known)]
        return extrapolation(
            scenario,
            [test.scenario for test in known],
            axes_of(self.scenario),
            outside,
            self.excess_of_rates(scenario, known),
        )

    def _excess_of_load(self, scenario: S, rate_per_s: float | None, tests: Sequence[LoadTest[S]]) -> list[Excess]:
        highest = None if rate_per_s is None else self.highest_measured_rate(scenario, tests)
        if rate_per_s is None or highest is None or rate_per_s <= highest:
            return []
        words = f"{rate_per_s:,.0f} requests per second: none measured above {highest:,.0f}"
        return [Excess(math.log2(rate_per_s / highest), words)]

    def model_errors(self, fitted: Fitted, unseen: str | None = None) -> ModelErrors:
        """Estimate the model errors from scenarios that were left out of a refit; see `model_errors`."""
        return model_errors(self.observations, fitted, unseen)

    def uncertainty(self, fitted: Fitted, scenario: S, seed: int) -> Uncertainty:
        """Return how wide bands are among the measured layouts, besides the parameters."""
        known = self.model_errors(fitted)
        groups = {name: self.observations.group(scenario, name) for name in self.reported}
        by_class = {name: known.by_group[group] for name, group in groups.items() if group in known.by_group}
        return Uncertainty(known.rate, known.time, seed, by_class)

    def citations(self) -> tuple[str, ...]:
        """Return the citations of all sources."""
        return tuple(source.citation for source in self.sources)


_KEPT = ("representatives", "values", "solution", "objectives", "_near")  # of a case, whatever the offered rate


@dataclass(frozen=True)
class Case(Generic[S]):
    """A scenario with its system and its calibration: resolved once, then passed on.

    Attributes
    ----------
    system : System
        The system.
    scenario : Scenario
        What is asked about.
    fitted : Fitted
        The calibration.
    seed : int
        Seed of every random number.
    offered_per_s : float or None
        Offered peak rate at which figures are wanted, requests per second; None: not decided yet.
    draws : int or None
        How many draws of the ensemble are solved, each for those near it: fast, and never for a simulation; None: all.
    """

    system: System[S]
    scenario: S
    fitted: Fitted
    seed: int = 1
    offered_per_s: float | None = None
    draws: int | None = None

    def at(self, offered_per_s: float) -> Case[S]:
        """Return the case at an offered rate; what was solved already is kept."""
        found = replace(self, offered_per_s=offered_per_s)
        vars(found).update({name: vars(self)[name] for name in _KEPT if name in vars(self)})
        return found

    def changed(self, scenario: S) -> Case[S]:
        """Return the same question about another scenario of the system."""
        return replace(self, scenario=scenario, offered_per_s=None)

    @cached_property
    def representatives(self) -> Representatives | None:
        """The draws that are solved; None: all are."""
        if self.draws is None:
            return None
        return representatives(self.system.values(self.fitted, self.scenario), self.draws)

    @cached_property
    def values(self) -> dict[str, Number]:
        """All parameter values, the free ones as arrays (solved draws,)."""
        every = self.system.values(self.fitted, self.scenario)
        return every if self.representatives is None else at_draws(every, self.representatives.chosen)

    @cached_property
    def solution(self) -> Solution:
        """The analysed layout."""
        few = self.representatives
        return self.system.solution(
            self.scenario, self.values, folded=few is not None, place=None if few is None else few.place
        )

    @cached_property
    def objectives(self) -> tuple[Objective, ...]:
        """The objectives of the scenario.

        Raises
        ------
        InputError
            When one cannot be read, or names a request class or a resource that the layout does not have.
        """
        if not self.scenario.slo:
            return ()
        classes = self.system.classes(self.scenario)
        return tuple(parse(text, classes, self.solution.resources) for text in self.scenario.slo)

    @cached_property
    def extrapolation(self) -> Extrapolation:
        """How far the layout and the offered rate lie from the measured ones."""
        return self.system.extrapolation(self.scenario, self.offered_per_s)

    @cached_property
    def uncertainty(self) -> Uncertainty:
        """How wide bands are, besides the parameters.

        Rates are as uncertain as at the capacity, times as uncertain as at the offered rate.
        """
        return self._near.widened(time=self.extrapolation.factors(self.system.widening)["time"])

    @cached_property
    def _near(self) -> Uncertainty:
        """The uncertainty with rates as at the capacity, and times as among the measured layouts."""
        its = self.system
        near = its.uncertainty(self.fitted, self.scenario, self.seed)
        every = self.values if self.draws is None else its.values(self.fitted, self.scenario)
        at_capacity = its.extrapolation(self.scenario, float(np.median(self.solution.capacity)))
        return replace(near, offset=its.offset(self.scenario, every)).widened(
            rate=at_capacity.factors(its.widening)["rate"]
        )

    @cached_property
    def upper_bound(self) -> Case[S] | None:
        """A case that certainly completes as much or more, where there is one."""
        bound = self.system.upper_bound(self.scenario)
        return None if bound is None else self.changed(bound)
