"""`rhino-shcm`: the Sh cache microservice, a JVM that keeps subscriber data in Cassandra."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType

from capplan.layout.situations import RETRY_STORM, Factor, Machine, Situation
from capplan.models.language.parameter import Values
from capplan.systems.components.encrypted_links import EncryptedLinks
from capplan.systems.rhino_shcm.network import REPORTED, network, other_assignment, response_s, settling_s
from capplan.systems.rhino_shcm.notes import RhinoShcmNotes, excess, highest_measured_rate, outages
from capplan.systems.rhino_shcm.observations import RhinoShcmObservations
from capplan.systems.rhino_shcm.priors import PARAMETERS
from capplan.systems.rhino_shcm.scenario import RhinoShcmScenario

_SITUATIONS = {
    "compaction": Situation(
        name="repair or compaction",
        meaning="repair or compaction runs on every Cassandra node",
        factors={"cassandra_s": Factor(1.4, 0.25)},
    ),
    "gc": Situation(
        name="GC-heavy hour",
        meaning="long stalls come three times as often, and each lasts twice as long",
        factors={"long_stall_requests": Factor(1 / 3, 0.4), "long_stall_s": Factor(2.0, 0.4)},
    ),
    "retries": RETRY_STORM,
}


class RhinoShcm(EncryptedLinks[RhinoShcmScenario]):
    """A cache microservice with Cassandra on dedicated servers or on the application's server."""

    name = "rhino-shcm"
    summary = (
        "Sh cache microservice (a JVM) on Cassandra: one application server with occasional stalls and optional "
        "caches; Cassandra on its own servers with quorum operations, or on the application's server"
    )
    scenario = RhinoShcmScenario
    parameters = PARAMETERS
    reported = REPORTED
    budget_s = 2.0  # stalls are rare, and percentiles depend on them
    losses = MappingProxyType({"node": "a Cassandra node"})
    tails_not_modelled = ("compaction", "speculative retry", "hints")
    situations = MappingProxyType(_SITUATIONS)
    machines = MappingProxyType(
        {"server": Machine("application server"), "node": Machine("Cassandra node", holds_data=True)}
    )
    sized = MappingProxyType({"cass_nodes": (1, 50)})

    network = staticmethod(network)
    other_assignment = staticmethod(other_assignment)
    observations = cached_property(RhinoShcmObservations)
    notes = cached_property(lambda self: RhinoShcmNotes(self.evidence))
    response_s = staticmethod(response_s)
    settling_s = staticmethod(settling_s)
    outages = staticmethod(outages)
    excess = staticmethod(excess)
    highest_measured_rate = staticmethod(highest_measured_rate)

    def layout(self, scenario: RhinoShcmScenario, values: Values) -> str:
        """Return servers, replicas and caches in a few words."""
        del values
        nodes = f"{scenario.nodes} Cassandra node{'s' * (scenario.nodes > 1)}"
        where = " (one on the application's server)" if scenario.colocated else ""
        parts = [f"1 application server, {nodes}{where}", f"RF {scenario.replicas}"]
        parts += [] if scenario.cache else ["no caches"]
        parts += [] if scenario.encryption is None else [f"{scenario.encryption} links encrypted"]
        return ", ".join(parts)

    def resource_name(self, scenario: RhinoShcmScenario, resource: str) -> str:
        """Return what a resource is called in a sentence."""
        nodes = f"the {scenario.nodes} Cassandra nodes" if scenario.nodes > 1 else "the Cassandra node"
        return {"server": "the application server", "cassandra": nodes}.get(resource, resource)

    def machine_counts(self, scenario: RhinoShcmScenario) -> Mapping[str, int]:
        """Return the numbers of application servers and of Cassandra nodes on their own servers."""
        return {"server": 1, "node": scenario.nodes - scenario.colocated}


SYSTEM = RhinoShcm()
