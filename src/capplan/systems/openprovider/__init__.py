"""`openprovider`: an AAA policy server that keeps its sessions in Cassandra."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from capplan.calibration.case.extrapolation import Excess
from capplan.calibration.case.solution import Figures
from capplan.calibration.observations import LoadTest, Observations
from capplan.calibration.system import Case, Notes
from capplan.models.language.network import Network
from capplan.models.language.parameter import Values
from capplan.models.language.units import Number
from capplan.models.results import Outage, SessionNotFound
from capplan.systems.components.encrypted_links import EncryptedLinks
from capplan.systems.openprovider.network import PARAMETERS, REPORTED, network
from capplan.systems.openprovider.notes import OpenproviderNotes, excess
from capplan.systems.openprovider.observations import OpenproviderObservations
from capplan.systems.openprovider.outages import outages
from capplan.systems.openprovider.scenario import OpenproviderScenario
from capplan.systems.openprovider.session_visibility import sessions_not_found


class Openprovider(EncryptedLinks[OpenproviderScenario]):
    """AAA (RADIUS) policy server on one or more data centres."""

    name = "openprovider"
    summary = (
        "AAA (RADIUS) policy server on Cassandra 3.11: front nodes with worker pools, sessions of one authorization "
        "and seven accounting requests in any data centre, local coordinators, inter-DC round trips, accounting "
        "proxy, LDAP"
    )
    scenario = OpenproviderScenario
    parameters = PARAMETERS
    reported = REPORTED

    def network(self, scenario: OpenproviderScenario, values: Values, rate_per_s: Number) -> Network:
        """Compose the network; see `capplan.systems.openprovider.network`."""
        return network(scenario, values, rate_per_s)

    @cached_property
    def observations(self) -> Observations[OpenproviderScenario]:
        """The load tests TS1 to TS4."""
        return OpenproviderObservations(self)

    @cached_property
    def notes(self) -> Notes[OpenproviderScenario]:
        """Notes for the reader."""
        return OpenproviderNotes(self.evidence)

    def outages(self, case: Case[OpenproviderScenario], offered_per_s: float) -> tuple[Outage, ...]:
        """Return what is left without a node in each data centre, and without data centres."""
        return outages(case, offered_per_s)

    def sessions_not_found(self, case: Case[OpenproviderScenario], figures: Figures) -> tuple[SessionNotFound, ...]:
        """Return the probability that an interim message finds no session in another data centre."""
        return sessions_not_found(case, figures)

    def workers(self, scenario: OpenproviderScenario) -> Mapping[str, Number]:
        """Return the worker threads of a policing node."""
        return {"front": scenario.front_workers}

    def excess(
        self, scenario: OpenproviderScenario, tests: Sequence[LoadTest[OpenproviderScenario]]
    ) -> Sequence[Excess]:
        """Return how far distance, consistency levels and encryption are outside the load tests."""
        return excess(scenario, tests)


SYSTEM = Openprovider()
