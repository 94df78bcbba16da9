"""What capplan knows of a system: the fields of its layout, its parameters, and how it is composed as a network."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from capplan.models.language.network import Network
from capplan.models.language.parameter import Parameter, Values
from capplan.models.language.scenario import Scenario
from capplan.models.language.units import FloatArray, Number


@dataclass(frozen=True)
class System:
    """A system that can be asked about.

    Attributes
    ----------
    name : str
        Its name.
    models : str
        What is modelled of it, in one sentence.
    scenario : type
        The scenario that lays it out.
    parameters : tuple of Parameter
        What its network is made from beside the layout.
    reported : mapping of tuples of str
        Request classes as its documents report them, by the classes of the network.
    network : function
        Composes the network from a scenario, parameter values (SI; numbers, or arrays over draws for the analytic
        solver) and the offered rate (requests per second over the whole layout), as open traffic. Where Cassandra nodes
        can be lost, a fourth argument names those that are down.
    folded : function
        Composes it as one of its entries sees it, for an `Analysis` with `alike=kind_of`; None where they differ.
    response : function or None
        Response time in closed form, where a system has a better one than the analytic solver: from a scenario,
        parameter values, the offered rate, and the level of a percentile or None for the mean; seconds, over draws.
    settling : function
        How long the system takes to settle from empty, from a scenario, parameter values and the offered rate; seconds,
        over draws. Half a second unless given: at 95 % of capacity openprovider's mean response has settled by then.
    bounded : function
        Whether the clients of a scenario wait for their answers, so that the closed form holds beyond what is carried;
        else nothing bounds the response there.
    mix : function or None
        Reported classes that the traffic of a scenario has; None: all.
    ratios : function or None
        For a system that is documented as ratios only: throughput over that of a reference layout, by what the
        reference is, the one that was asked about first; from a scenario and parameter values, arrays over draws.
    """

    name: str
    models: str
    scenario: type[Scenario]
    parameters: tuple[Parameter, ...]
    reported: Mapping[str, tuple[str, ...]]
    network: Callable[..., Network]
    folded: Callable[[Any, Values, Number], Network | None] = lambda *_: None
    response: Callable[[Any, Values, FloatArray, float | None], FloatArray] | None = None
    settling: Callable[[Any, Values, FloatArray], FloatArray] = lambda *_: np.array(0.5)
    bounded: Callable[[Any], bool] = lambda _: False
    mix: Callable[[Any], Collection[str]] | None = None
    ratios: Callable[[Any, Values], Mapping[str, FloatArray]] | None = None

    def asked(self, scenario: Scenario) -> tuple[str, ...]:
        """Return the reported classes that the traffic of a scenario has."""
        mix = self.reported if self.mix is None else self.mix(scenario)
        return tuple(name for name in self.reported if name in mix)


def kind_of(name: str) -> str:
    """Return the kind of a station or pool, such as `cassandra`: its name up to the first stroke."""
    return name.split("/", 1)[0]
