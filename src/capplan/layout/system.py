"""The contract of a system: what its author implements and other layers use.

A name, a summary, a scenario, parameters and a network are required. Everything else has a default: observations come
from `evidence.csv` beside the system's code, there are no outages to report, and so on.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from types import MappingProxyType
from typing import Any, Generic, TypeVar

import numpy as np

from capplan.evidence.table import Evidence, Source, read_rows, read_sources, rows_hash
from capplan.layout.basis import FigureBasis
from capplan.layout.ensemble import SMALL_ENSEMBLE, Places, Representatives, at_draws, representatives
from capplan.layout.extrapolation import RATE, Excess, Extrapolation, Layout, Responses, extrapolation, responses
from capplan.layout.fitted_file import Expected, Fitted, read_fitted
from capplan.layout.observations import LoadTest, Observations
from capplan.layout.situations import Loss, Machine, Remainder, Situation
from capplan.layout.solution import ClosedForm, Figures, Pausing, Solution, Varying
from capplan.layout.uncertainty import NO_OFFSET, ModelErrors, Offset, Uncertainty, model_errors
from capplan.models.condition import Unmeasured
from capplan.models.errors import InputError
from capplan.models.language.network import Network
from capplan.models.language.parameter import Parameter, Values, defaults
from capplan.models.language.per_dc import per_dc_text
from capplan.models.language.scenario import Scenario, axes_of, changed, options_of
from capplan.models.language.units import FloatArray, Number
from capplan.models.objective import Objective, parse
from capplan.models.results import Band, SessionNotFound
from capplan.models.solver.analytic import Analysis
from capplan.models.solver.pauses import NodePauses, RareDelay

S = TypeVar("S", bound=Scenario)
DEFAULT_BUDGET_S = 0.4  # more would hardly narrow a band, whose other parts dominate
"""Default computing time of a simulation on a nominal machine, seconds."""


class Notes(Generic[S]):
    """Notes for the reader besides the figures, in plain sentences.

    Parameters
    ----------
    evidence : tuple of Evidence
        Evidence about the system, which notes may quote.

    Attributes
    ----------
    rates : str
        How rates and latencies of this system are defined.
    accuracy : str
        How far the analytic solver is off, compared with a simulation.
    assignment : str
        What the evidence says about how requests are assigned to cores.
    """

    rates: str = "Rates are requests per second over the whole layout; latencies are those of a client."
    accuracy: str = "Percentiles are approximations; --engine compiled simulates them."
    assignment: str = "No load test shows which is right."

    def __init__(self, evidence: tuple[Evidence, ...] = ()) -> None:
        self.evidence = evidence

    def claims(self, scenario: S) -> tuple[str, ...]:
        """Return what documents claim about such a layout without having measured it, one sentence each."""
        del scenario
        return ()

    def cautions(self, case: Case[S], capacity: Band, figures: Figures) -> list[str]:
        """Return what may change the decision, in short sentences; the default screen shows them.

        Parameters
        ----------
        case : Case
            What was asked.
        capacity : Band
            The highest peak rate, requests per second.
        figures : Figures
            Its figures at the offered rate.
        """
        del case, capacity, figures
        return []

    def notes(self, case: Case[S], capacity: Band, figures: Figures) -> list[str]:
        """Return further notes for the reader, in plain sentences; `--explain` shows them.

        Parameters
        ----------
        case, capacity, figures
            As for `cautions`.
        """
        del case, capacity, figures
        return []

    def cautions_on_ratios(self, case: Case[S]) -> list[str]:
        """Return what may change the decision, for a system that is documented as ratios only."""
        del case
        return []

    def notes_on_ratios(self, case: Case[S]) -> list[str]:
        """Return notes on a prediction of a system that is documented as ratios only."""
        del case
        return []


class System(ABC, Generic[S]):
    """A system: scenario, parameters, network, and its observations.

    Subclass it, set the first four attributes and implement `network`; override other methods where their defaults do
    not fit. Export one instance as `SYSTEM`.

    Attributes
    ----------
    name : str
        Name on the command line.
    summary : str
        What is modelled, in one sentence.
    scenario : type
        Class of its scenarios; see `capplan.models.language.scenario`.
    parameters : tuple of Parameter
        Parameters of its network.
    budget_s : float
        Default computing time of a simulation on a nominal machine, seconds.
    widening : float
        Growth of the model error per doubling outside the measured range, as a share of itself.
    ratios_only : bool
        Whether its documents have only ratios of throughput; see `ratios`.
    from_tables : bool
        Whether it is fitted to load-test tables of its users, and has no evidence of its own.
    losses : mapping of str
        What can be lost, by word of `--lose`, with its meaning; see `outages`.
    assumed : collection of str
        Resources that no measurement shows to limit the capacity.
    tails_not_modelled : tuple of str
        Mechanisms that are known to make tails of latency, and that the network lacks.
    situations : mapping of Situation
        Conditions to size for besides losses, by word of `--survive`.
    machines : mapping of Machine
        Kinds of machines, by their word in a price list; see `machine_counts`.
    sized : mapping of (int, int)
        Fields of the scenario that `size` varies, with their lowest and highest values: numbers of machines, of which
        more never carry less.
    families : mapping of (int, int)
        The same for fields of which no value is better in every way, such as the number of data centres.
    """

    name: str
    summary: str
    scenario: type[S]
    parameters: tuple[Parameter, ...]
    budget_s: float = DEFAULT_BUDGET_S
    widening: float = 1.0
    ratios_only: bool = False
    from_tables: bool = False
    losses: Mapping[str, str] = MappingProxyType({})
    assumed: Collection[str] = ()
    tails_not_modelled: tuple[str, ...] = ()
    situations: Mapping[str, Situation] = MappingProxyType({})
    machines: Mapping[str, Machine] = MappingProxyType({})
    sized: Mapping[str, tuple[int, int]] = MappingProxyType({})
    families: Mapping[str, tuple[int, int]] = MappingProxyType({})

    def __init__(self) -> None:
        missing = [name for name in ("name", "summary", "scenario", "parameters") if not hasattr(self, name)]
        if missing:
            raise TypeError(f"a system needs {', '.join(missing)}: give its class these attributes")

    @abstractmethod
    def network(self, scenario: S, values: Values, rate_per_s: Number) -> Network:
        """Compose the queueing network of a layout, with open traffic.

        Parameters
        ----------
        scenario : Scenario
            The layout.
        values : mapping
            Parameter values by name, SI; numbers, or arrays (draws,) for the analytic solver.
        rate_per_s : number
            Offered peak rate, requests per second over the whole layout.

        Returns
        -------
        Network
            The network.
        """

    def other_assignment(self, scenario: S, values: Values) -> Network | None:
        """Return the network with the alternative assignment of requests to cores, for one request per second.

        By default requests are assigned to the servers of a station at random, or share one queue if they do not so
        far. The difference shows how far latencies between idle and full are a guess.

        Parameters
        ----------
        scenario, values
            As for `network`.

        Returns
        -------
        Network or None
            None if no station has several servers.
        """
        own = self.network(scenario, values, 1.0)
        some = next((each for each in own.stations if each.servers > 1 and each.rate is None), None)
        return None if some is None else own.with_assignment("pooled" if some.has_lanes else "random")

    def unmeasured(self, scenario: S) -> tuple[Unmeasured, ...]:
        """Return what a plan of a layout depends on and no load test measured, the dearest first."""
        del scenario
        return ()

    # In words

    def layout(self, scenario: S, values: Values) -> str:
        """Return the layout in a few words, such as `3 DCs x 6 nodes, RF 3`.

        Parameters
        ----------
        scenario, values
            As for `network`.
        """
        del values
        given, options = scenario.given(), options_of(type(scenario))
        return ", ".join(
            f"{per_dc_text(value) if isinstance(value, tuple) else value} {options[name].label or name}"
            for name, value in given.items()
            if name in options and name not in ("tps", "slo")
        )

    def resource_name(self, scenario: S, resource: str) -> str:
        """Return a resource's name for sentences, with the number if it matters, such as `2 masters`.

        Parameters
        ----------
        scenario : Scenario
            The layout.
        resource : str
            A kind of station, `workers` or `native-transport`.
        """
        del scenario
        return resource

    # Machines

    def machine_counts(self, scenario: S) -> Mapping[str, int]:
        """Return how many machines of each kind a layout has, by word of `machines`."""
        del scenario
        return {}

    def machines_by_dc(self, scenario: S) -> Sequence[Mapping[str, int]]:
        """Return the number of machines of each kind in each data centre; by default all are in one."""
        return (self.machine_counts(scenario),)

    def round_trips_by_dc(self, scenario: S, values: Values) -> Sequence[Sequence[float]]:
        """Return the round trips between data centres, seconds (dcs, dcs), medians over draws; empty for a single one.

        Parameters
        ----------
        scenario, values
            As for `network`.
        """
        del scenario, values
        return ()

    # Request classes

    @cached_property
    def reported(self) -> Mapping[str, tuple[str, ...]]:
        """Network classes by the request class that reports combine them into."""
        default = self.network(self.scenario(), defaults(self.parameters), 1.0)
        return {each.name: (each.name,) for each in default.classes}

    def traffic_mix(self, scenario: S) -> Collection[str]:
        """Return the reported classes in the traffic of a scenario."""
        del scenario
        return self.reported

    def classes(self, scenario: S) -> tuple[str, ...]:
        """Return the reported classes in the traffic of a scenario, in the order of `reported`."""
        mix = self.traffic_mix(scenario)
        return tuple(name for name in self.reported if name in mix)

    def offered_per_s(self, scenario: S, values: Values) -> float | None:
        """Return the offered peak rate, requests per second over the whole layout; None if none is given.

        Parameters
        ----------
        scenario, values
            As for `network`.
        """
        del values
        given = scenario.offered_per_s()
        return None if given is None else float(np.max(given))

    # Closed forms

    def response_s(self, scenario: S, values: Values, rate_per_s: FloatArray, level: float | None) -> FloatArray:
        """Return the response time in closed form; override it where a closed form is more accurate than the solver.

        Parameters
        ----------
        scenario, values
            As for `network`.
        rate_per_s : array (..., draws)
            Offered rates, requests per second.
        level : float or None
            Level of a percentile; None for the mean.

        Returns
        -------
        array (..., draws)
            Response times, seconds.
        """
        raise NotImplementedError

    def variation(self, values: Values, utilisation: FloatArray) -> FloatArray | None:
        """Return how much node speed varies during a run; by default it is constant.

        As pauses, it widens percentiles, simulated or not, by what requests spend at stations. Means of open traffic
        stay as they are.

        Parameters
        ----------
        values : mapping
            Parameter values.
        utilisation : array (..., draws)
            Utilisation of the busiest station.

        Returns
        -------
        array (..., draws) or None
            Standard deviation of the logarithm of the speed.
        """
        del values, utilisation
        return None

    def paused_network(self, scenario: S, values: Values, rate_per_s: float) -> Network:
        """Compose the network for a simulation, whose nodes pause; the plain network unless overridden.

        Parameters
        ----------
        scenario, values, rate_per_s
            As for `network`; numbers.

        Returns
        -------
        Network
        """
        return self.network(scenario, values, rate_per_s)

    def pauses(
        self, scenario: S, values: Values, analysis: Analysis, rate_per_s: FloatArray, place: Places | None
    ) -> Mapping[str, Sequence[RareDelay]]:
        """Return the delays caused by pauses of nodes, such as garbage collection; none unless overridden.

        Percentiles contain them, simulated or not. Means stay as they are, because load tests that a system is
        fitted to report means with pauses.

        Parameters
        ----------
        scenario, values
            As for `network`; the values of the draws that delays are returned for.
        analysis : Analysis
            The analysed network.
        rate_per_s : array (..., solved draws)
            Mean rates, requests per second.
        place : array of int (draws,) or None
            For each draw, the solved one that represents it; None if all are solved.

        Returns
        -------
        mapping of sequences of RareDelay
            By class of the network, of which a request has one at most; classes without an entry have no delay.
        """
        del scenario, values, analysis, rate_per_s, place
        return {}

    def node_pauses(self, scenario: S, values: Values, rate_per_s: Number) -> NodePauses | None:
        """Return the pauses of a mean node; None for a system whose nodes do not pause.

        Parameters
        ----------
        scenario, values
            As for `network`.
        rate_per_s : number
            Mean rate, requests per second.
        """
        del scenario, values, rate_per_s
        return None

    def settling_s(self, scenario: S, values: Values, rate_per_s: FloatArray) -> FloatArray:
        """Return the settling time from an empty system, seconds.

        Parameters
        ----------
        scenario, values
            As for `network`.
        rate_per_s : array (draws,)
            Offered rate, requests per second.

        Returns
        -------
        array
            One value, or one per draw.
        """
        del scenario, values, rate_per_s
        return np.array(0.5)

    def clients(self, scenario: S) -> int | None:
        """Return the number of clients that wait for their answers; None for open traffic."""
        del scenario
        return None

    def bounded(self, scenario: S) -> bool:
        """Whether clients wait for their answers, so that latency stays finite beyond capacity."""
        return self.clients(scenario) is not None

    def ratios(self, scenario: S, values: Values) -> Mapping[str, FloatArray]:
        """Return the ratios of throughput to reference layouts, for a system with `ratios_only`.

        Parameters
        ----------
        scenario, values
            As for `network`.

        Returns
        -------
        mapping of arrays (draws,)
            Ratios by name of the reference; the reference of the scenario comes first.
        """
        raise NotImplementedError

    # Parameter values

    def values(self, fitted: Fitted, scenario: S) -> dict[str, Number]:
        """Return all parameter values of a layout, SI.

        Parameters
        ----------
        fitted : Fitted
            The calibration.
        scenario : Scenario
            The layout.

        Returns
        -------
        dict
            By name: arrays (draws,) for free parameters, numbers for the others.
        """
        del scenario
        return fitted.values(self.parameters)

    def median_values(self, fitted: Fitted, scenario: S) -> dict[str, float]:
        """Return one value of each parameter, SI: the draw nearest to the centre of the ensemble."""
        del scenario
        return fitted.median_values(self.parameters)

    def prior_values(self, scenario: S) -> Values:
        """Return the prior median of each parameter, SI."""
        del scenario
        return defaults(self.parameters)

    # Observations and notes

    @cached_property
    def observations(self) -> Observations[S]:
        """Load tests, and predictions of their figures."""
        return Observations(self)

    @cached_property
    def notes(self) -> Notes[S]:
        """Notes for the reader besides the figures."""
        return Notes(self.evidence)

    def outages(self, case: Case[S], losses: Sequence[Loss]) -> tuple[Remainder, ...]:
        """Return what remains of the layout after nodes or data centres are lost.

        Parameters
        ----------
        case : Case
            The layout with its calibration.
        losses : sequence of Loss
            What is lost; if empty, what a planner should know of.

        Returns
        -------
        tuple of Remainder
            At least one for each loss; another where lower consistency levels restore service.
        """
        del case, losses
        return ()

    def sessions_not_found(self, case: Case[S], figures: Figures) -> tuple[SessionNotFound, ...]:
        """Return the probability that a read in another data centre misses a session that has just started.

        Parameters
        ----------
        case : Case
            The layout with its calibration.
        figures : Figures
            Its figures at the offered rate.
        """
        del case, figures
        return ()

    def workers(self, scenario: S) -> Mapping[str, Number]:
        """Return the number of units of each outermost pool, by the kind of station that the units work on."""
        del scenario
        return {}

    # Uncertainty

    def excess(self, scenario: S, tests: Sequence[LoadTest[S]]) -> Sequence[Excess]:
        """Return how far a layout lies outside the tested range on axes other than its numeric fields.

        A band widens only for figures that respond to an excess. `Excess.inside` is the layout to compare with; without
        it, all figures are taken to respond.

        Parameters
        ----------
        scenario : Scenario
            The layout.
        tests : sequence of LoadTest
            The load tests that count as measured.
        """
        del scenario, tests
        return ()

    def excess_of_rates(self, scenario: S, tests: Sequence[LoadTest[S]]) -> Sequence[Excess]:
        """Return `excess` for axes that only affect rates, because times were measured there."""
        del scenario, tests
        return ()

    def highest_measured_rate(self, scenario: S, tests: Sequence[LoadTest[S]]) -> float | None:
        """Return the highest rate measured for such a layout, requests per second; None if capacities were measured."""
        del scenario, tests
        return None

    def offset(self, scenario: S, values: Values) -> Offset:
        """Return the part of every latency that is exempt from the model error of times, such as a round trip."""
        del scenario, values
        return NO_OFFSET

    def upper_bound(self, scenario: S) -> S | None:
        """Return a layout with certainly no lower throughput; its capacity caps the band of this one."""
        del scenario
        return None

    # Provided for every system

    @cached_property
    def folder(self) -> Traversable:
        """The folder of the system's package: code, `evidence.csv`, `source.toml`, `fitted.json`."""
        spec = sys.modules[type(self).__module__].__spec__
        if spec is None or spec.parent is None:
            raise InputError(f"system {self.name!r} is not in a package: move its code into one, beside its evidence")
        return files(spec.parent)

    @cached_property
    def evidence(self) -> tuple[Evidence, ...]:
        """All rows of evidence about the system, in file order."""
        return read_rows(self.folder / "evidence.csv", self.name)

    @cached_property
    def sources(self) -> tuple[Source, ...]:
        """Sources of the evidence, in file order."""
        return read_sources(self.folder / "source.toml")

    @cached_property
    def data_hash(self) -> str:
        """SHA-256 of the evidence; a fitted file stores the hash of the evidence that it was fitted to."""
        return rows_hash(self.evidence)

    @property
    def fitted_path(self) -> Path:
        """Path of the packaged calibration."""
        return Path(str(self.folder / "fitted.json"))

    def fitted(self) -> Fitted:
        """Return the packaged calibration.

        Raises
        ------
        InputError
            If there is none, or it does not match the evidence or the parameters.
        """
        if not self.fitted_path.is_file():
            raise InputError(f"system {self.name!r} is not calibrated: run `capplan calibrate {self.name}`")
        return self.checked(read_fitted(self.fitted_path), self.fitted_path.name)

    def checked(self, fitted: Fitted, where: str) -> Fitted:
        """Return a calibration if it matches this system's evidence and parameters.

        Parameters
        ----------
        fitted : Fitted
            The calibration.
        where : str
            Name of its file, for messages.

        Raises
        ------
        InputError
            If it was fitted to other evidence or with other parameters.
        """
        names = tuple(parameter.name for parameter in self.parameters if parameter.free)
        folds = {row.id: row.fold for test in self.observations.load_tests() for row in test.rows}
        fitted.check(where, Expected(self.name, self.data_hash, names, folds, len(self.observations.choices)))
        return fitted

    def of(self, fitted: Fitted) -> System[S]:
        """Return the system for a calibration: itself, unless the calibration brings its own load tests."""
        del fitted
        return self

    def usual_scenario(self, fitted: Fitted) -> S:
        """Return the default scenario to ask about: the field defaults, or the layout of the load tests."""
        del fitted
        return self.scenario()

    def solution(
        self, scenario: S, values: Values, place: Places | None = None, every: Values | None = None
    ) -> Solution:
        """Analyse a layout once; figures at any rate follow from it.

        Parameters
        ----------
        scenario : Scenario
            The layout.
        values : mapping
            Parameter values by name, SI; numbers, or arrays (draws,).
        place : array of int (draws,), optional
            For each draw of the ensemble, the index of its representative among `values`; by default `values` has all
            draws.
        every : mapping, optional
            Parameter values of all draws of the ensemble, where others represent them.

        Returns
        -------
        Solution
            The analysed layout.
        """
        network, closed = self.network(scenario, values, 1.0), self._closed_form(scenario, values)
        return Solution(
            network,
            self.reported,
            closed,
            self.bounded(scenario),
            place,
            self._pausing(scenario, values, values if every is None else every),
            self._varying(values),
        )

    def _varying(self, values: Values) -> Varying | None:
        if type(self).variation is System.variation:
            return None
        return partial(self.variation, values)

    def _pausing(self, scenario: S, values: Values, every: Values) -> Pausing | None:
        if type(self).pauses is System.pauses:
            return None
        return lambda analysis, rate_per_s, place: self.pauses(
            scenario, values if place is None else every, analysis, rate_per_s, place
        )

    def _closed_form(self, scenario: S, values: Values) -> ClosedForm | None:
        if type(self).response_s is System.response_s:
            return None
        return lambda rate_per_s, level: self.response_s(scenario, values, rate_per_s, level)

    def extrapolation(
        self, scenario: S, rate_per_s: float | None = None, tests: Sequence[LoadTest[S]] | None = None
    ) -> Extrapolation:
        """Measure how far a layout and a rate lie outside the tested range.

        Parameters
        ----------
        scenario : Scenario
            The layout.
        rate_per_s : float, optional
            Offered rate, requests per second; by default only the layout counts.
        tests : sequence of LoadTest, optional
            The load tests that count as measured; all by default.

        Returns
        -------
        Extrapolation
            The distance, and its reasons.
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

    def responses(self, fitted: Fitted, scenario: S, far: Extrapolation) -> Responses:
        """Measure how much each axis outside the tested range changes each figure, at one value of each parameter.

        Parameters
        ----------
        fitted : Fitted
            The calibration.
        scenario : Scenario
            The layout.
        far : Extrapolation
            Its distance from the measured layouts.
        """

        def solved(layout: S) -> Layout:
            if self.ratios_only:
                values = self.median_values(fitted, layout)
                return Layout(np.array([float(np.max(each)) for each in self.ratios(layout, values).values()]), None)
            solution = _middle(self, layout, fitted)
            return Layout(solution.capacity, solution)

        return responses((*far.excess, *far.excess_of_rates), solved, scenario)

    def model_errors(self, fitted: Fitted, unseen: str | None = None) -> ModelErrors:
        """Estimate the model errors; see `capplan.layout.uncertainty.model_errors`."""
        return model_errors(self.observations, fitted, unseen)

    def uncertainty(self, fitted: Fitted, scenario: S, seed: int) -> Uncertainty:
        """Return the uncertainty of figures of a measured layout.

        Parameters
        ----------
        fitted : Fitted
            The calibration.
        scenario : Scenario
            The layout.
        seed : int
            Seed of the pairing of parameter draws with model errors.
        """
        known = self.model_errors(fitted)
        groups = {name: self.observations.group(scenario, name) for name in self.reported}
        by_class = {name: known.by_group[group] for name, group in groups.items() if group in known.by_group}
        return Uncertainty(known.rate, known.time, seed, by_class)

    def basis_of_figures(self, scenario: S, fitted: Fitted, capacity: FloatArray) -> FigureBasis:
        """Return the basis of each figure of a layout.

        Parameters
        ----------
        scenario : Scenario
            The layout.
        fitted : Fitted
            The calibration.
        capacity : array (draws,)
            Its capacity, requests per second.
        """
        return FigureBasis(self, scenario, fitted, capacity)

    def citations(self) -> tuple[str, ...]:
        """Return the citations of all sources."""
        return tuple(source.citation for source in self.sources)


@lru_cache(maxsize=32)  # many layouts are compared with the same tested one, and each is needed several times
def _middle(system: System[Any], scenario: Scenario, fitted: Fitted) -> Solution:
    """Return a layout analysed at one value per parameter."""
    return system.solution(scenario, system.median_values(fitted, scenario))


@lru_cache(maxsize=256)  # a layout is needed with few and many draws, and under several conditions
def _responses(system: System[Any], scenario: Scenario, fitted: Fitted) -> Responses:
    """Return how much each axis outside the tested range changes each figure."""
    return system.responses(fitted, scenario, system.extrapolation(scenario))


_KEPT = (
    "representatives",
    "values",
    "solution",
    "along",
    "objectives",
    "basis",
    "_near",
    "_offset",
)  # independent of the offered rate


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

    def at(self, offered_per_s: float) -> Case[S]:
        """Return the case at an offered rate, requests per second; keeps the results that do not depend on the rate."""
        case = replace(self, offered_per_s=offered_per_s)
        vars(case).update({name: vars(self)[name] for name in _KEPT if name in vars(self)})
        return case

    def asked(self, scenario: S) -> Case[S]:
        """Return the case for the same layout with another rate or other objectives; keeps results that stay valid."""
        case = replace(self, scenario=scenario, offered_per_s=None)
        vars(case).update({name: vars(self)[name] for name in _KEPT if name in vars(self) and name != "objectives"})
        return case

    def changed(self, scenario: S) -> Case[S]:
        """Return a case for another scenario of the same system, without an offered rate."""
        return replace(self, scenario=scenario, offered_per_s=None, axes_of=None)

    def beside(self, scenario: S) -> Case[S]:
        """Return a case for the same layout under other conditions; axes outside the tested range count as here."""
        return replace(self, scenario=scenario, offered_per_s=None, axes_of=self._layout)

    @cached_property
    def representatives(self) -> Representatives | None:
        """The solved draws; None if all draws are solved."""
        if self.draws is None:
            return None
        return representatives(self.system.values(self.fitted, self.scenario), self.draws)

    @cached_property
    def values(self) -> dict[str, Number]:
        """All parameter values by name, SI; arrays (solved draws,) for free parameters."""
        every = self.system.values(self.fitted, self.scenario)
        return every if self.representatives is None else at_draws(every, self.representatives.chosen)

    @cached_property
    def solution(self) -> Solution:
        """The analysed layout."""
        few = self.representatives
        if few is None:
            return self.system.solution(self.scenario, self.values)
        return self.system.solution(
            self.scenario, self.values, few.place, self.system.values(self.fitted, self.scenario)
        )

    @cached_property
    def along(self) -> Solution:
        """The layout for figures at many shares of its capacity; with few draws if each rate is slow to solve."""
        slow = self.draws is None and len(self.solution.analysis.groups) > 1
        return replace(self, draws=2 * SMALL_ENSEMBLE).solution if slow else self.solution

    @property
    def middle(self) -> Solution:
        """The layout analysed at one value per parameter."""
        return _middle(self.system, self._layout, self.fitted)

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
        return tuple(parse(text, classes, self.middle.resources) for text in self.scenario.slo)

    @cached_property
    def given_per_s(self) -> float | None:
        """Offered peak rate from the scenario, requests per second; None if it has none."""
        return self.system.offered_per_s(self.scenario, self.values)

    @cached_property
    def basis(self) -> FigureBasis:
        """The basis of each figure."""
        return self.system.basis_of_figures(self.scenario, self.fitted, self.solution.capacity)

    @cached_property
    def extrapolation(self) -> Extrapolation:
        """How far the layout and the offered rate lie outside the tested range."""
        return self.system.extrapolation(self.scenario, self.offered_per_s)

    @property
    def responses(self) -> Responses:
        """How much each axis outside the tested range changes each figure."""
        return _responses(self.system, self._layout, self.fitted)

    @cached_property
    def _layout(self) -> S:
        """The scenario without load and objectives, whose axes outside the tested range count."""
        return self.axes_of or changed(self.scenario, tps=None, slo=())

    @property
    def uncertainty(self) -> Uncertainty:
        """Uncertainty of the figures: rates as at the capacity, times as at the offered rate."""
        return replace(self._widened, offset=self._offset)

    @property
    def uncertainty_as_tested(self) -> Uncertainty:
        """Uncertainty of the figures if the layout were a tested one."""
        return replace(self.system.uncertainty(self.fitted, self.scenario, self.seed), offset=self._offset)

    def uncertainty_beside(self, other: Case[S]) -> Uncertainty:
        """Return the uncertainty, with the correlation between the model errors of this layout and another one."""
        common = {name: self._factor(self.extrapolation, name, other.extrapolation) for name in self.system.reported}
        common[RATE] = self._factor(self._at_capacity, RATE, other._at_capacity)
        factors = {name: self._factor(self.extrapolation, name) for name in self.system.reported}
        return self.uncertainty_as_tested.widened(self._factor(self._at_capacity, RATE), factors, common)

    @cached_property
    def _widened(self) -> Uncertainty:
        return self._near.widened(times={name: self._factor(self.extrapolation, name) for name in self.system.reported})

    @cached_property
    def _offset(self) -> Offset:
        every = self.values if self.draws is None else self.system.values(self.fitted, self.scenario)
        return self.system.offset(self.scenario, every)

    def _factor(self, far: Extrapolation, figure: str, beside: Extrapolation | None = None) -> float:
        return far.factor(self.system.widening, figure, self.responses, beside)

    @cached_property
    def _near(self) -> Uncertainty:
        """Uncertainty with rates as at the capacity and times as in a measured layout."""
        measured = self.system.uncertainty(self.fitted, self.scenario, self.seed)
        return measured.widened(rate=self._factor(self._at_capacity, RATE))

    @property
    def _at_capacity(self) -> Extrapolation:
        """How far the layout at its capacity lies outside the tested range."""
        its, tests = self.system, self.system.observations.load_tests()
        if its.highest_measured_rate(self.scenario, tests) is None:  # then the capacity need not be known
            return its.extrapolation(self.scenario)
        return its.extrapolation(self.scenario, float(np.median(self.solution.capacity)))

    @cached_property
    def upper_bound(self) -> Case[S] | None:
        """A case with certainly no lower throughput; None if there is none."""
        bound = self.system.upper_bound(self.scenario)
        return None if bound is None else self.changed(bound)
