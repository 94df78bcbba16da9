"""`fedora4`: a repository of fully replicated nodes behind a load balancer."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property

from capplan.calibration.case.extrapolation import Excess
from capplan.calibration.case.uncertainty import Offset
from capplan.calibration.observations import LoadTest, Observations
from capplan.calibration.system import Case, Notes, System
from capplan.models.language.network import Network
from capplan.models.language.parameter import Values
from capplan.models.language.units import Number
from capplan.models.results import Outage
from capplan.systems.fedora4.network import PARAMETERS, REPORTED, folded, network, traffic_mix
from capplan.systems.fedora4.notes import Fedora4Notes, excess_of_rates, offset, outages, workers
from capplan.systems.fedora4.observations import Fedora4Observations
from capplan.systems.fedora4.scenario import Fedora4Scenario


class Fedora4(System[Fedora4Scenario]):
    """Repository cluster with reads, creates and deletes from four regions."""

    name = "fedora4"
    summary = (
        "Repository of fully replicated nodes behind a load balancer: reads, creates and deletes from four regions"
    )
    scenario = Fedora4Scenario
    parameters = PARAMETERS
    reported = REPORTED
    widening = 2.0  # scaling laws that fit the measured sizes equally well differ by more than one doubling
    budget_s = 0.4

    def network(self, scenario: Fedora4Scenario, values: Values, rate_per_s: Number) -> Network:
        """Compose the network; see `capplan.systems.fedora4.network`."""
        return network(scenario, values, rate_per_s)

    def folded(self, scenario: Fedora4Scenario, values: Values, rate_per_s: Number) -> Network | None:
        """Compose a network with one node that represents all."""
        return folded(scenario, values, rate_per_s)

    def traffic_mix(self, scenario: Fedora4Scenario) -> Collection[str]:
        """Return the request classes in the traffic."""
        return traffic_mix(scenario)

    @cached_property
    def observations(self) -> Observations[Fedora4Scenario]:
        """The documented load tests, by test objective."""
        return Fedora4Observations(self)

    @cached_property
    def notes(self) -> Notes[Fedora4Scenario]:
        """Notes for the reader."""
        return Fedora4Notes(self.evidence)

    def outages(self, case: Case[Fedora4Scenario], offered_per_s: float) -> tuple[Outage, ...]:
        """Return the outage of one node."""
        return outages(case, offered_per_s)

    def workers(self, scenario: Fedora4Scenario) -> Mapping[str, Number]:
        """Return the threads of a node."""
        return workers(scenario)

    def excess_of_rates(
        self, scenario: Fedora4Scenario, tests: Sequence[LoadTest[Fedora4Scenario]]
    ) -> Sequence[Excess]:
        """Return how far the share of writes is above those with a measured capacity."""
        return excess_of_rates(scenario, tests)

    def offset(self, scenario: Fedora4Scenario, values: Values) -> Offset:
        """Return the round trip of the clients."""
        return offset(scenario, values)


SYSTEM = Fedora4()
