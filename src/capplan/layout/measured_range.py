"""What load tests covered of a system, beyond the numeric fields of its layouts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from capplan.layout.component import Component
from capplan.layout.extrapolation import Excess
from capplan.layout.observations import LoadTest
from capplan.layout.uncertainty import NO_OFFSET, Offset
from capplan.models.condition import Unmeasured
from capplan.models.language.parameter import Values
from capplan.models.language.scenario import Scenario

S = TypeVar("S", bound=Scenario)


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
