"""`rhino-shcm`: the Sh cache microservice, a JVM that keeps subscriber data in Cassandra."""

from __future__ import annotations

from functools import cached_property

from capplan.systems.components.encrypted_links import EncryptedLinks
from capplan.systems.rhino_shcm.network import (
    PARAMETERS,
    REPORTED,
    network,
    other_assignment,
    response_s,
    settling_s,
)
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
    budget_s = 2.0  # stalls are rare, and percentiles depend on them

    network = staticmethod(network)
    other_assignment = staticmethod(other_assignment)
    observations = cached_property(RhinoShcmObservations)
    notes = cached_property(lambda self: RhinoShcmNotes(self.evidence))
    response_s = staticmethod(response_s)
    settling_s = staticmethod(settling_s)
    outages = staticmethod(outages)
    excess = staticmethod(excess)
    highest_measured_rate = staticmethod(highest_measured_rate)


SYSTEM = RhinoShcm()
