"""`rhino-shcm`: the Sh cache microservice, a JVM that keeps subscriber data in Cassandra."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from capplan.calibration.case.extrapolation import Excess
from capplan.calibration.observations import LoadTest, Observations
from capplan.calibration.system import Case, Notes
from capplan.models.language.network import Network
from capplan.models.language.parameter import Values
from capplan.models.language.units import FloatArray, Number
from capplan.models.results import Outage
from capplan.systems.components.encrypted_links import EncryptedLinks
from capplan.systems.rhino_shcm.network import PARAMETERS, REPORTED, network, response_s, settling_s
from capplan.systems.rhino_shcm.notes import RhinoShcmNotes, excess, highest_measured_rate, outages
from capplan.systems.rhino_shcm.observations import RhinoShcmObservations
from capplan.systems.rhino_shcm.scenario import RhinoShcmScenario


class RhinoShcm(EncryptedLinks[RhinoShcmScenario]):
    """Cache microservice with Cassandra on dedicated servers or on the application's server."""

    name = "rhino-shcm"
    summary = (
        "Sh cache microservice (a JVM) on Cassandra: one application server with occasional stalls and optional "
        "caches; Cassandra on its own servers with quorum operations, or on the application's server"
    )
    scenario = RhinoShcmScenario
    parameters = PARAMETERS
    reported = REPORTED

    def network(self, scenario: RhinoShcmScenario, values: Values, rate_per_s: Number) -> Network:
        """Compose the network; see `capplan.systems.rhino_shcm.network`."""
        return network(scenario, values, rate_per_s)

    def response_s(
        self, scenario: RhinoShcmScenario, values: Values, rate_per_s: FloatArray, level: float | None
    ) -> FloatArray:
        """Return the response time with a server that stalls, in closed form, seconds."""
        return response_s(scenario, values, rate_per_s, level)

    def settling_s(self, scenario: RhinoShcmScenario, values: Values, rate_per_s: FloatArray) -> FloatArray:
        """Return the settling time, four relaxation times, seconds."""
        return settling_s(scenario, values, rate_per_s)

    @cached_property
    def observations(self) -> Observations[RhinoShcmScenario]:
        """The seven load tests."""
        return RhinoShcmObservations(self)

    @cached_property
    def notes(self) -> Notes[RhinoShcmScenario]:
        """Notes for the reader."""
        return RhinoShcmNotes(self.evidence)

    def outages(self, case: Case[RhinoShcmScenario], offered_per_s: float) -> tuple[Outage, ...]:
        """Return the outage of one Cassandra node."""
        return outages(case, offered_per_s)

    def excess(self, scenario: RhinoShcmScenario, tests: Sequence[LoadTest[RhinoShcmScenario]]) -> Sequence[Excess]:
        """Return how far a layout is outside the two measured ones."""
        return excess(scenario, tests)

    def highest_measured_rate(
        self, scenario: RhinoShcmScenario, tests: Sequence[LoadTest[RhinoShcmScenario]]
    ) -> float | None:
        """Return the highest measured rate with Cassandra on the same kind of server."""
        return highest_measured_rate(scenario, tests)


SYSTEM = RhinoShcm()
