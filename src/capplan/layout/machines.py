"""Machines that a layout consists of and a planner pays for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from capplan.layout.component import Component
from capplan.models.language.parameter import Values
from capplan.models.language.scenario import Scenario
from capplan.models.language.units import Number

S = TypeVar("S", bound=Scenario)


class Machine(NamedTuple):
    """A kind of machine that a layout consists of and a planner pays for.

    Attributes
    ----------
    name : str
        In words, such as `Cassandra node`.
    cores, speed : str or None
        Fields of the scenario with its cores and their speed relative to the load tests'; None: not modelled.
    holds_data : bool
        Whether its disk holds the data.
    """

    name: str
    cores: str | None = None
    speed: str | None = None
    holds_data: bool = False


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
