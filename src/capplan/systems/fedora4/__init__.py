"""`fedora4`: a repository of fully replicated nodes behind a load balancer."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType

from capplan.layout.situations import RETRY_STORM, Factor, Machine, Situation
from capplan.layout.system import System
from capplan.models.language.parameter import Values
from capplan.systems.components.machines import machines_in_words
from capplan.systems.fedora4.network import REPORTED, network, traffic_mix
from capplan.systems.fedora4.notes import Fedora4Notes, excess_of_rates, offset, outages, workers
from capplan.systems.fedora4.observations import Fedora4Observations
from capplan.systems.fedora4.priors import PARAMETERS
from capplan.systems.fedora4.scenario import Fedora4Scenario

_SITUATIONS = {
    "cold": Situation(
        name="cold caches", meaning="reads go to disk after a restart", factors={"read_s": Factor(2.0, 0.35)}
    ),
    "retries": RETRY_STORM,
}


class Fedora4(System[Fedora4Scenario]):
    """A repository cluster with reads, creates and deletes from four regions."""

    name = "fedora4"
    summary = (
        "Repository of fully replicated nodes behind a load balancer: reads, creates and deletes from four regions"
    )
    scenario = Fedora4Scenario
    parameters = PARAMETERS
    reported = REPORTED
    widening = 2.0  # scaling laws that fit the measured sizes equally well differ by more than one doubling
    losses = MappingProxyType({"node": "a repository node"})
    tails_not_modelled = ("GC pauses", "write locks")
    situations = MappingProxyType(_SITUATIONS)
    machines = MappingProxyType({"node": Machine("repository node", "node_cores", "node_speed")})
    sized = MappingProxyType({"nodes": (1, 64)})

    network = staticmethod(network)
    observations = cached_property(Fedora4Observations)
    notes = cached_property(lambda self: Fedora4Notes(self.evidence))
    traffic_mix = staticmethod(traffic_mix)
    outages = staticmethod(outages)
    workers = staticmethod(workers)
    excess_of_rates = staticmethod(excess_of_rates)
    offset = staticmethod(offset)

    def layout(self, scenario: Fedora4Scenario, values: Values) -> str:
        """Return nodes, writes and region in a few words."""
        del values
        nodes = f"{scenario.nodes} node{'s' * (scenario.nodes > 1)}"
        parts = [nodes, *machines_in_words(scenario, node="nodes")]
        return ", ".join((*parts, f"{100 * scenario.write_share:g} % writes", f"clients in {scenario.region}"))

    def resource_name(self, scenario: Fedora4Scenario, resource: str) -> str:
        """Return what a resource is called in a sentence."""
        nodes = f"the CPUs of the {scenario.nodes} nodes" if scenario.nodes > 1 else "the node's CPU"
        return {"repository": nodes, "workers": "the nodes' threads"}.get(resource, resource)

    def machine_counts(self, scenario: Fedora4Scenario) -> Mapping[str, int]:
        """Return the number of nodes."""
        return {"node": scenario.nodes}


SYSTEM = Fedora4()
