"""`rhino-shcm`: the Sh cache microservice, a JVM that keeps subscriber data in Cassandra."""

from __future__ import annotations

from functools import cached_property

from capplan.layout.components import Machine, Machines, MeasuredRange, ResponseTimes, Simulations
from capplan.layout.situations import RETRY_STORM, Factor, Losses, Situation
from capplan.models.language.parameter import Values
from capplan.systems.components.encrypted_links import EncryptedLinks, unencrypted
from capplan.systems.rhino_shcm.network import REPORTED, network, response_s, settling_s
from capplan.systems.rhino_shcm.notes import NOTES, excess, highest_measured_rate, outages
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
    components = (
        NOTES,
        Losses({"node": "a Cassandra node"}, outages, _SITUATIONS),
        Machines[RhinoShcmScenario](
            {"server": Machine("application server"), "node": Machine("Cassandra node", holds_data=True)},
            by_dc=lambda scenario: ({"server": 1, "node": scenario.nodes - scenario.colocated},),
            sized={"cass_nodes": (1, 50)},
        ),
        MeasuredRange[RhinoShcmScenario](excess=excess, highest_rate=highest_measured_rate, upper_bound=unencrypted),
        ResponseTimes(response_s),
        Simulations(budget_s=2.0, settling_s=settling_s),  # stalls are rare, and percentiles depend on them
    )

    network = staticmethod(network)
    observations = cached_property(RhinoShcmObservations)

    def layout(self, scenario: RhinoShcmScenario, _values: Values) -> str:
        """Return servers, replicas and caches in a few words."""
        nodes = f"{scenario.nodes} Cassandra node{'s' * (scenario.nodes > 1)}"
        where = " (one on the application's server)" if scenario.colocated else ""
        parts = [f"1 application server, {nodes}{where}", f"RF {scenario.replicas}"]
        parts += [] if scenario.cache else ["no caches"]
        parts += [] if scenario.encryption is None else [f"{scenario.encryption} links encrypted"]
        return ", ".join(parts)


SYSTEM = RhinoShcm()
