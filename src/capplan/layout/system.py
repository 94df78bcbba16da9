"""The contract of a system: what its author implements and other layers use.

A name, a summary, a scenario, parameters and a network are required. Everything else has a default: observations come
from `evidence.csv` beside the system's code, there are no outages to report, and so on.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property, lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

from capplan.errors import InputError
from capplan.evidence.table import Evidence, Source, read_rows, read_sources, rows_hash
from capplan.layout.components import Component, MeasuredRange, Pauses, Ratios, ResponseTimes
from capplan.layout.ensemble import Places
from capplan.layout.extrapolation import Extrapolation, Layout, Responses, extrapolation, responses
from capplan.layout.fitted_file import Expected, Fitted, read_fitted
from capplan.layout.observations import LoadTest, Observations
from capplan.layout.solution import Solution
from capplan.layout.uncertainty import Uncertainty, model_errors
from capplan.models.language.network import Network
from capplan.models.language.parameter import Parameter, Values, defaults
from capplan.models.language.per_dc import per_dc_text
from capplan.models.language.scenario import Scenario, axes_of, options_of
from capplan.models.language.units import Number

S = TypeVar("S", bound=Scenario)
C = TypeVar("C", bound=Component)


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
    components : tuple of Component
        What the system has besides: machines, losses, notes and so on; see `component`.
    traffic_mix : function or None
        Returns the reported classes in the traffic of a scenario; None: all.
    """

    name: str
    summary: str
    scenario: type[S]
    parameters: tuple[Parameter, ...]
    components: tuple[Component, ...] = ()
    traffic_mix: Callable[[S], Collection[str]] | None = None

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

    def component(self, kind: type[C]) -> C:
        """Return the system's component of a kind, such as `Machines`; without one, an empty component of that kind."""
        return next((each for each in self.components if isinstance(each, kind)), kind())

    def layout(self, scenario: S, _values: Values, /) -> str:
        """Return the layout in a few words, such as `3 DCs x 6 nodes, RF 3`.

        Parameters
        ----------
        scenario, values
            As for `network`.
        """
        given, options = scenario.given(), options_of(type(scenario))
        return ", ".join(
            f"{per_dc_text(value) if isinstance(value, tuple) else value} {options[name].label or name}"
            for name, value in given.items()
            if name in options and name not in ("tps", "slo")
        )

    @cached_property
    def reported(self) -> Mapping[str, tuple[str, ...]]:
        """Network classes by the request class that reports combine them into."""
        default = self.network(self.scenario(), defaults(self.parameters), 1.0)
        return {each.name: (each.name,) for each in default.classes}

    def classes(self, scenario: S) -> tuple[str, ...]:
        """Return the reported classes in the traffic of a scenario, in the order of `reported`."""
        mix = self.reported if self.traffic_mix is None else self.traffic_mix(scenario)
        return tuple(name for name in self.reported if name in mix)

    def offered_per_s(self, scenario: S, _values: Values, /) -> float | None:
        """Return the offered peak rate, requests per second over the whole layout; None if none is given.

        Parameters
        ----------
        scenario, values
            As for `network`.
        """
        given = scenario.offered_per_s()
        return None if given is None else float(np.max(given))

    def values(self, fitted: Fitted, _scenario: S, /) -> dict[str, Number]:
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
        return fitted.values(self.parameters)

    def median_values(self, fitted: Fitted, _scenario: S, /) -> dict[str, float]:
        """Return one value of each parameter, SI: the draw nearest to the centre of the ensemble."""
        return fitted.median_values(self.parameters)

    @cached_property
    def observations(self) -> Observations[S]:
        """Load tests, and predictions of their figures."""
        return Observations(self)

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

    def of(self, _fitted: Fitted, /) -> System[S]:
        """Return the system for a calibration: itself, unless the calibration brings its own load tests."""
        return self

    def usual_scenario(self, _fitted: Fitted, /) -> S:
        """Return the default scenario to ask about: the field defaults, or the layout of the load tests."""
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
        times, pauses = self.component(ResponseTimes), self.component(Pauses)
        return Solution(
            self.network(scenario, values, 1.0),
            self.reported,
            times.of(scenario, values),
            times.waiting_clients(scenario) is not None,
            place,
            pauses.of(scenario, values, values if every is None else every),
            pauses.varying(values),
        )

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
        measured = self.component(MeasuredRange)
        return extrapolation(
            scenario,
            [test.scenario for test in known],
            axes_of(self.scenario),
            [*measured.excess(scenario, known), *measured.excess_of_load(scenario, rate_per_s, known)],
            measured.excess_of_rates(scenario, known),
        )

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
        ratios = self.component(Ratios).of

        def solved(layout: S) -> Layout:
            if ratios is not None:
                values = self.median_values(fitted, layout)
                return Layout(np.array([float(np.max(each)) for each in ratios(layout, values).values()]), None)
            solution = middle_solution(self, layout, fitted)
            return Layout(solution.capacity, solution)

        return responses((*far.excess, *far.excess_of_rates), solved, scenario)

    def uncertainty(self, fitted: Fitted, scenario: S, seed: int, /) -> Uncertainty:
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
        known = model_errors(self.observations, fitted)
        groups = {name: self.observations.group(scenario, name) for name in self.reported}
        by_class = {name: known.by_group[group] for name, group in groups.items() if group in known.by_group}
        return Uncertainty(known.rate, known.time, seed, by_class)


@lru_cache(maxsize=32)  # many layouts are compared with the same tested one, and each is needed several times
def middle_solution(system: System[Any], scenario: Scenario, fitted: Fitted) -> Solution:
    """Return a layout analysed at one value per parameter."""
    return system.solution(scenario, system.median_values(fitted, scenario))
