"""`arion`: gRPC masters that answer the lookups of many clients from Hazelcast."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from capplan.calibration.case.extrapolation import Excess
from capplan.calibration.observations import LoadTest, Observations
from capplan.calibration.system import Case, Notes, System
from capplan.models.language.network import Network
from capplan.models.language.parameter import Values
from capplan.models.language.units import FloatArray, Number
from capplan.models.results import Outage
from capplan.systems.arion.network import PARAMETERS, REPORTED, folded, latency_s, network, settling_s
from capplan.systems.arion.notes import ArionNotes, excess, excess_of_rates, outages
from capplan.systems.arion.observations import ArionObservations
from capplan.systems.arion.scenario import ArionScenario


class Arion(System[ArionScenario]):
    """gRPC masters in front of Hazelcast, and their clients."""

    name = "arion"
    summary = (
        "gRPC masters in front of Hazelcast: lookups from many clients, each waiting for its answer (unary calls) or "
        "streaming"
    )
    scenario = ArionScenario
    parameters = PARAMETERS
    reported = REPORTED
    budget_s = 0.2

    def network(self, scenario: ArionScenario, values: Values, rate_per_s: Number) -> Network:
        """Compose the network; see `capplan.systems.arion.network`."""
        return network(scenario, values, rate_per_s)

    def folded(self, scenario: ArionScenario, values: Values, rate_per_s: Number) -> Network | None:
        """Compose a network with one master that represents all; None if masters differ."""
        return folded(scenario, values, rate_per_s)

    def response_s(
        self, scenario: ArionScenario, values: Values, rate_per_s: FloatArray, level: float | None
    ) -> FloatArray:
        """Return the response time of clients that wait for their answers, seconds."""
        return latency_s(scenario, values, rate_per_s, level)

    def settling_s(self, scenario: ArionScenario, values: Values, rate_per_s: FloatArray) -> FloatArray:
        """Return the settling time of the slowest draw, seconds."""
        return settling_s(scenario, values, rate_per_s)

    def bounded(self, scenario: ArionScenario) -> bool:
        """Whether clients wait for their answers, as they do with unary calls."""
        return scenario.stream_messages == 1

    @cached_property
    def observations(self) -> Observations[ArionScenario]:
        """The documented tests."""
        return ArionObservations(self)

    @cached_property
    def notes(self) -> Notes[ArionScenario]:
        """Notes for the reader."""
        return ArionNotes(self.evidence)

    def outages(self, case: Case[ArionScenario], offered_per_s: float) -> tuple[Outage, ...]:
        """Return the outage of one master."""
        return outages(case, offered_per_s)

    def excess(self, scenario: ArionScenario, tests: Sequence[LoadTest[ArionScenario]]) -> Sequence[Excess]:
        """Return how far many clients per master, and streaming, are outside the documented tests."""
        return excess(scenario, tests)

    def excess_of_rates(self, scenario: ArionScenario, tests: Sequence[LoadTest[ArionScenario]]) -> Sequence[Excess]:
        """Return how far few clients per master are outside the documented tests; they limit the rate."""
        return excess_of_rates(scenario, tests)


SYSTEM = Arion()
