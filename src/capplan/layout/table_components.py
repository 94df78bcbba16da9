"""Components of a table system: how it reads rows, what a fit searches, what layouts and loads differ in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from capplan.evidence.load_test_row import LoadTestRow
from capplan.layout.components import Component
from capplan.layout.table_rows import TableRow
from capplan.models.language.network import Network
from capplan.models.language.parameter import Parameter, Values
from capplan.models.language.scenario import Scenario
from capplan.models.language.units import FloatArray, Number
from capplan.models.solver.analytic import Analysis
from capplan.models.solver.pauses import RareDelay

S = TypeVar("S", bound=Scenario)


@dataclass(frozen=True)
class Rows(Component, Generic[S]):
    """How a system reads rows of load tests.

    Attributes
    ----------
    request_class : function or None
        Returns the reported class of a row, or None if it is one of all requests; None: as the row names it.
    group : function
        Returns what a row tested; groups are fitted separately, because rows of one group do not inform another.
    closed_clients : function
        Returns the clients of a layout whose answer is a throughput, as for a closed row; None: it is asked for a rate.
    copies : function
        Returns how many copies of a row a layout stores; 0 if the system does not define it.
    undecided : function
        Returns why the trained rows do not identify a row, and which row would help; empty if they do. By default
        nothing is said of what differs; `predict_table` speaks of ceilings and tiers.
    unstated : function
        Returns what the rows do not state and the model has to assume, in sentences.
    """

    request_class: Callable[[LoadTestRow], str | None] | None = None
    group: Callable[[LoadTestRow], str] = lambda _: ""
    closed_clients: Callable[[S], int | None] = lambda _: None
    copies: Callable[[S], int] = lambda _: 0
    undecided: Callable[[TableRow, Sequence[TableRow]], str] = lambda _row, _trained: ""
    unstated: Callable[[Iterable[LoadTestRow]], tuple[str, ...]] = lambda _: ()


@dataclass(frozen=True)
class Search(Component):
    """What a fit to rows searches.

    Attributes
    ----------
    priors : function or None
        Returns the parameters with priors for the rows to fit; None: those of the system.
    starts : function
        Returns starts of the search for these rows, as factors on the prior medians by name; the medians are always
        tried.
    structures : mapping of sequences of float
        Parameters that say how a request flows, with their values in order. All draws have the same one: the fit tries
        them, and takes the one that the rows make most probable.
    shared : sequence of mappings
        What several parameters have in common, such as the speed of the machines: for each such thing, the standard
        deviation by which it moves the logarithm of each parameter, in addition to that of the parameter's own prior.
    times : sequence of str
        Parameters that the unloaded time of a request is the sum of; see `Coordinates`.
    unseen : str
        The parameter that lowers the ceiling, and leaves the unloaded time as it is.
    """

    priors: Callable[[Sequence[TableRow]], tuple[Parameter, ...]] | None = None
    starts: Callable[[Sequence[TableRow]], Sequence[Mapping[str, float]]] = lambda _: ()
    structures: Mapping[str, Sequence[float]] = field(default_factory=dict)
    shared: Sequence[Mapping[str, float]] = ()
    times: Sequence[str] = ()
    unseen: str = ""


@dataclass(frozen=True)
class LayoutFactors(Component, Generic[S]):
    """What layouts differ in beyond the model: factors on parameters, of each layout its own.

    Attributes
    ----------
    log_sd : mapping of float
        Standard deviation of the logarithm of each factor over layouts, by its name.
    affected : mapping of sequences of str
        Parameters that each factor multiplies.
    scaled : sequence of sequences of str
        Fields of a layout over which its factors change little by little, such as the number of nodes, by axis: those
        of several tiers are one. The fit itself says how figures change along them, so that their scatter does not
        widen.
    alike : function
        Returns the layout that shares its factors with another one; by default the layout itself.
    clusters : function
        Returns the values of the cluster that a layout names, where several share one fit; by default it names none.
    """

    log_sd: Mapping[str, float] = field(default_factory=dict)
    affected: Mapping[str, Sequence[str]] = field(default_factory=dict)
    scaled: Sequence[Sequence[str]] = ()
    alike: Callable[[S], S] = lambda layout: layout
    clusters: Callable[[S, Values], Values] = lambda _layout, values: values

    def applied(self, values: Values, factors: Mapping[str, Number]) -> Values:
        """Return parameter values multiplied by a layout's factors."""
        multiplied = {name: values[name] * factors[each] for each in factors for name in self.affected[each]}
        return {**values, **multiplied}


@dataclass(frozen=True)
class Contention(Component):
    """How the clients, or the open requests in flight, change the work of each request.

    Attributes
    ----------
    matters : function
        Whether values depend on them; `on_timer` is true for open requests, which a timer sends.
    may_fall : function
        Whether throughput may fall with more clients.
    at_clients : function
        Returns the values at a number of them for each draw; `on_timer` as above.
    """

    matters: Callable[[Values, bool], bool] = lambda _values, _on_timer: False
    may_fall: Callable[[Values], bool] = lambda _: False
    at_clients: Callable[[Values, FloatArray, bool], dict[str, Number]] = lambda values, _clients, _on_timer: {**values}


@dataclass(frozen=True)
class ClosedLoadTests(Component, Generic[S]):
    """What a load test with closed clients sees differently.

    Attributes
    ----------
    network : function or None
        Composes the network as a load test sees it, whose load generator may be a limit; takes the same as
        `System.network`. None: that network.
    delays : function or None
        Returns the delays that pauses of nodes cause to closed clients, who hide them, by class: from the same as
        `Pauses.delays`, with the mean time from one request of a client to its next (..., draws), seconds, in place of
        the representatives.
    throughput_left : function or None
        Returns the throughput of closed clients whom pauses hold, over that without pauses (..., draws): from the same,
        and the mean response time without pauses (..., draws), seconds.
    """

    network: Callable[[S, Values, Number], Network] | None = None
    delays: Callable[[S, Values, Analysis, FloatArray, FloatArray], Mapping[str, Sequence[RareDelay]]] | None = None
    throughput_left: Callable[[S, Values, Analysis, FloatArray, FloatArray, FloatArray], FloatArray] | None = None


@dataclass(frozen=True)
class NodeCpu(Component, Generic[S]):
    """The CPU of nodes, where it is an observation: the column `node_cpu_percent`.

    Attributes
    ----------
    metered : sequence of str
        Kinds of stations whose CPU it is.
    percent : function or None
        Returns it (draws,), from the layout, parameter values, the utilisation of each kind of station (draws,) and the
        requests under way (draws,).
    """

    metered: Sequence[str] = ()
    percent: Callable[[S, Values, Mapping[str, FloatArray], FloatArray], FloatArray] | None = None
