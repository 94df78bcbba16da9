"""What an answer says of a system besides the figures that all systems have."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from capplan.answers.results import Band, SessionNotFound
from capplan.layout.case import Case
from capplan.layout.components import Component
from capplan.layout.solution import Figures
from capplan.models.language.network import Network
from capplan.models.language.parameter import Values
from capplan.models.language.scenario import Scenario

S = TypeVar("S", bound=Scenario)


@dataclass(frozen=True)
class Notes(Component, Generic[S]):
    """Notes for the reader besides the figures, in plain sentences.

    Attributes
    ----------
    rates : str
        How rates and latencies of this system are defined.
    accuracy : str
        How far the analytic solver is off, compared with a simulation.
    assignment : str
        What the evidence says about how requests are assigned to cores.
    other_assignment : function or None
        Returns the network with the alternative assignment of requests to cores, for one request per second, from the
        layout and parameter values; None if no station has several servers. Without the function, requests are assigned
        to the servers of a station at random, or share one queue if they do not so far. The difference shows how far
        latencies between idle and full are a guess.
    resource_names : function
        Returns the names of resources for sentences, with the number if it matters, such as `2 masters`, by kind of
        station, `workers` or `native-transport`.
    assumed : collection of str
        Resources that no measurement shows to limit the capacity.
    tails_not_modelled : function
        Returns the mechanisms that are known to make tails of latency, and that the network of a layout lacks.
    claims : function
        Returns what documents claim about such a layout without having measured it, one sentence each.
    cautions : function
        Returns what may change the decision, in short sentences, given the case, its capacity (the band of the highest
        peak rate, requests per second) and its figures at the offered rate. The default screen shows them.
    further : function
        Returns further notes from the same, in plain sentences; `--explain` shows them.
    sessions_not_found : function
        Returns how likely a read in another data centre misses a session that has just started, given the case and its
        figures at the offered rate.
    """

    rates: str = "Rates are requests per second over the whole layout; latencies are those of a client."
    accuracy: str = "Percentiles are approximations; --engine compiled simulates them."
    assignment: str = "No load test shows which is right."
    other_assignment: Callable[[S, Values], Network | None] | None = None
    resource_names: Callable[[S], Mapping[str, str]] = lambda _: {}
    assumed: Collection[str] = ()
    tails_not_modelled: Callable[[S], tuple[str, ...]] = lambda _: ()
    claims: Callable[[Case[S]], tuple[str, ...]] = lambda _: ()
    cautions: Callable[[Case[S], Band, Figures], Sequence[str]] = lambda _case, _capacity, _figures: ()
    further: Callable[[Case[S], Band, Figures], Sequence[str]] = lambda _case, _capacity, _figures: ()
    sessions_not_found: Callable[[Case[S], Figures], tuple[SessionNotFound, ...]] = lambda _case, _figures: ()

    def resource_name(self, scenario: S, resource: str) -> str:
        """Return the name of a resource for sentences."""
        return self.resource_names(scenario).get(resource, resource)
