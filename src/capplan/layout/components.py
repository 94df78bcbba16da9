"""Components: the optional parts of a system that need no case."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from capplan.answers.condition import Unmeasured
from capplan.errors import InputError
from capplan.layout.ensemble import Places
from capplan.layout.extrapolation import Excess
from capplan.layout.fitted_file import Fitted
from capplan.layout.observations import LoadTest
from capplan.layout.solution import ClosedForm, Pausing, Varying
from capplan.layout.uncertainty import NO_OFFSET, Offset
from capplan.models.cassandra.storage import NodeLoad
from capplan.models.language.network import Network
from capplan.models.language.parameter import Values
from capplan.models.language.scenario import Scenario
from capplan.models.language.units import FloatArray, Number
from capplan.models.solver.analytic import Analysis
from capplan.models.solver.pauses import NodePauses, RareDelay

S = TypeVar("S", bound=Scenario)


@dataclass(frozen=True)
class Component:
    """An optional part of a system, such as its losses or its machines; see `capplan.layout.system.System.component`.

    Every field of a component has a default, and all defaults together are the component of a system without this part.
    """


class Machine(NamedTuple):
    """A kind of machine that a layout consists of and a planner pays for.

    Attributes
    ----------
    name : str
        In words, such as `Cassandra node`.
    cores, speed : str or None
        Fields of the scenario with its cores and their speed relative to the load tests'; None: not modelled.
    memory_gib, disk_gib, disk_iops, network_gbit : str or None
        Fields of the scenario with what else it has; None: not modelled.
    holds_data : bool
        Whether its disk holds the data.
    """

    name: str
    cores: str | None = None
    speed: str | None = None
    holds_data: bool = False
    memory_gib: str | None = None
    disk_gib: str | None = None
    disk_iops: str | None = None
    network_gbit: str | None = None

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields of the scenario that say what it has."""
        each = (self.cores, self.speed, self.memory_gib, self.disk_gib, self.disk_iops, self.network_gbit)
        return tuple(name for name in each if name is not None)


@dataclass(frozen=True)
class Machines(Component, Generic[S]):
    """The machines of a system.

    Attributes
    ----------
    kinds : mapping of Machine
        Kinds of machines, by their word in a price list.
    by_dc : function
        Returns the number of machines of each kind in each data centre of a layout.
    sized : mapping of (int, int)
        Fields of the scenario that `size` varies, with their lowest and highest values: numbers of machines, of which
        more never carry less.
    families : mapping of (int, int)
        The same for fields of which no value is better in every way, such as the number of data centres.
    round_trips_s : function
        Returns the round trips between the data centres of a layout, seconds (dcs, dcs), medians over draws of the
        parameter values; empty for a single one.
    workers : function
        Returns the number of units of each outermost pool, by the kind of station that the units work on.
    """

    kinds: Mapping[str, Machine] = field(default_factory=dict)
    by_dc: Callable[[S], Sequence[Mapping[str, int]]] = lambda _: ()
    sized: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    families: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    round_trips_s: Callable[[S, Values], Sequence[Sequence[float]]] = lambda _scenario, _values: ()
    workers: Callable[[S], Mapping[str, Number]] = lambda _: {}

    def counts(self, scenario: S) -> Mapping[str, int]:
        """Return how many machines of each kind a layout has."""
        counts: Counter[str] = Counter()
        for machines in self.by_dc(scenario):
            counts.update(machines)
        return counts


@dataclass(frozen=True)
class NodeLimits(Component, Generic[S]):
    """What limits nodes besides their CPU.

    Attributes
    ----------
    of : function
        Returns what the busiest node of a layout stores and moves, from the layout, the offered rate, requests per
        second, draws of how well data compress, and the nodes of each data centre that are down (none if empty); None
        if nothing is known of it.
    """

    of: Callable[[S, float, Number, Sequence[int]], NodeLoad | None] = lambda _scenario, _rate_per_s, _ratio, _down: (
        None
    )


@dataclass(frozen=True)
class MeasuredRange(Component, Generic[S]):
    """How far a layout lies outside the load tests, and what they say nothing of.

    `tests` are the load tests that count as measured.

    Attributes
    ----------
    widening : float
        Growth of the model error per doubling outside the measured range, as a share of itself.
    excess : function
        Returns how far a layout lies outside on axes other than its numeric fields, from the layout and the tests. A
        band widens only for figures that respond to an excess. `Excess.inside` is the layout to compare with; without
        it, all figures are taken to respond.
    excess_of_rates : function
        Returns the same for axes that only affect rates, because times were measured there.
    highest_rate : function
        Returns the highest rate measured for such a layout, requests per second; None if capacities were measured.
    upper_bound : function
        Returns a layout with certainly no lower throughput, whose capacity caps the band of this one; None: no such
        layout is known.
    offset : function
        Returns the part of every latency that is exempt from the model error of times, such as a round trip, from the
        layout and parameter values.
    unmeasured : function
        Returns what a plan of a layout depends on and no load test measured, the dearest first.
    """

    widening: float = 1.0
    excess: Callable[[S, Sequence[LoadTest[S]]], Sequence[Excess]] = lambda _scenario, _tests: ()
    excess_of_rates: Callable[[S, Sequence[LoadTest[S]]], Sequence[Excess]] = lambda _scenario, _tests: ()
    highest_rate: Callable[[S, Sequence[LoadTest[S]]], float | None] = lambda _scenario, _tests: None
    upper_bound: Callable[[S], S | None] = lambda _: None
    offset: Callable[[S, Values], Offset] = lambda _scenario, _values: NO_OFFSET
    unmeasured: Callable[[S], tuple[Unmeasured, ...]] = lambda _: ()

    def excess_of_load(self, scenario: S, rate_per_s: float | None, tests: Sequence[LoadTest[S]]) -> tuple[Excess, ...]:
        """Return how far a rate, requests per second, lies above the highest that was measured for such a layout."""
        highest = None if rate_per_s is None else self.highest_rate(scenario, tests)
        if rate_per_s is None or highest is None or rate_per_s <= highest:
            return ()
        words = f"{rate_per_s:,.0f} requests per second: none measured above {highest:,.0f}"
        return (Excess(math.log2(rate_per_s / highest), words),)


@dataclass(frozen=True)
class ResponseTimes(Component, Generic[S]):
    """What is known of response times beyond the network.

    Attributes
    ----------
    closed_form : function or None
        Returns the response time in closed form, seconds (..., draws), from the layout, parameter values, offered rates
        (..., draws), requests per second, and the level of a percentile (None: the mean).
    waiting_clients : function
        Returns the number of clients that wait for their answers, so that latency stays finite beyond capacity; None
        for open traffic.
    """

    closed_form: Callable[[S, Values, FloatArray, float | None], FloatArray] | None = None
    waiting_clients: Callable[[S], int | None] = lambda _: None

    def of(self, scenario: S, values: Values) -> ClosedForm | None:
        """Return the closed form of a layout."""
        return None if self.closed_form is None else partial(self.closed_form, scenario, values)


@dataclass(frozen=True)
class Pauses(Component, Generic[S]):
    """What slows nodes down for a while, such as garbage collection.

    Percentiles contain it, simulated or not. Means stay as they are, because load tests that a system is fitted to
    report means with pauses.

    Attributes
    ----------
    delays : function or None
        Returns the delays caused by pauses, by class of the network, of which a request has one at most; classes
        without an entry have no delay. It takes the layout, the values of the draws that delays are returned for, the
        analysed network, mean rates (..., solved draws), and for each draw the solved one that represents it (None: all
        are solved).
    of_node : function or None
        Returns the pauses of a mean node, from the layout, parameter values and the mean rate, requests per second.
    variation : function or None
        Returns how much node speed varies during a run, as the standard deviation of its logarithm (..., draws), from
        parameter values and the utilisation of the busiest station.
    """

    delays: Callable[[S, Values, Analysis, FloatArray, Places | None], Mapping[str, Sequence[RareDelay]]] | None = None
    of_node: Callable[[S, Values, Number], NodePauses] | None = None
    variation: Callable[[Values, FloatArray], FloatArray] | None = None

    def of(self, scenario: S, values: Values, every: Values) -> Pausing | None:
        """Return the delays of a layout; `every` has the values of all draws, `values` those of the solved ones."""
        delays = self.delays
        if delays is None:
            return None
        return lambda analysis, rate_per_s, place: delays(
            scenario, values if place is None else every, analysis, rate_per_s, place
        )

    def varying(self, values: Values) -> Varying | None:
        """Return how much the speed of nodes varies with these values."""
        return None if self.variation is None else partial(self.variation, values)


@dataclass(frozen=True)
class Ratios(Component, Generic[S]):
    """Ratios of throughput to reference layouts, of a system without documented rates and times.

    Attributes
    ----------
    of : function or None
        Returns the ratios (draws,) by name of the reference, from the layout and parameter values; the reference of
        the scenario comes first. None: the system has rates and times.
    cautions : sequence of str
        What may change the decision, one sentence each.
    notes : function
        Returns the assumptions behind the ratios of a layout, with a calibration.
    """

    of: Callable[[S, Values], Mapping[str, FloatArray]] | None = None
    cautions: Sequence[str] = ()
    notes: Callable[[S, Fitted], Sequence[str]] = lambda _scenario, _fitted: ()

    def refuse(self, why: str) -> None:
        """Refuse with a sentence what needs rates or times; do nothing if the system has them.

        Raises
        ------
        InputError
            If it has ratios only.
        """
        if self.of is not None:
            raise InputError(why)


DEFAULT_BUDGET_S = 0.4  # more would hardly narrow a band, whose other parts dominate
"""Default computing time of a simulation on a nominal machine, seconds."""


@dataclass(frozen=True)
class Simulations(Component, Generic[S]):
    """How a system is simulated.

    Attributes
    ----------
    budget_s : float
        Default computing time of a simulation on a nominal machine, seconds.
    settling_s : function
        Returns the settling time from an empty system, seconds, one value or one per draw, from the layout, parameter
        values and the offered rate (draws,), requests per second.
    paused_network : function or None
        Composes the network for a simulation whose nodes pause; takes the same as `System.network`. None: its nodes do
        not pause.
    """

    budget_s: float = DEFAULT_BUDGET_S
    settling_s: Callable[[S, Values, FloatArray], FloatArray] = lambda _scenario, _values, _rate_per_s: np.array(0.5)
    paused_network: Callable[[S, Values, float], Network] | None = None
