"""`fedora4`: a repository of fully replicated nodes behind a load balancer."""

from __future__ import annotations

from functools import cached_property

from capplan.layout.components import Machine, Machines, MeasuredRange
from capplan.layout.situations import RETRY_STORM, Factor, Losses, Situation
from capplan.layout.system import System
from capplan.models.language.parameter import Values
from capplan.systems.components.machines import machines_in_words
from capplan.systems.fedora4.network import REPORTED, THREADS, network, traffic_mix
from capplan.systems.fedora4.notes import NOTES, excess_of_rates, offset, outages
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
    traffic_mix = staticmethod(traffic_mix)
    components = (
        NOTES,
        Losses({"node": "a repository node"}, outages, _SITUATIONS),
        Machines[Fedora4Scenario](
            {"node": Machine("repository node", "node_cores", "node_speed")},
            by_dc=lambda scenario: ({"node": scenario.nodes},),
            sized={"nodes": (1, 64)},
            workers=lambda _: {"repository": THREADS},
        ),
        MeasuredRange(
            widening=2.0,  # scaling laws that fit the measured sizes equally well differ by more than one doubling
            excess_of_rates=excess_of_rates,
            offset=offset,
        ),
    )

    network = staticmethod(network)
    observations = cached_property(Fedora4Observations)

    def layout(self, scenario: Fedora4Scenario, _values: Values) -> str:
        """Return nodes, writes and region in a few words."""
        nodes = f"{scenario.nodes} node{'s' * (scenario.nodes > 1)}"
        parts = [nodes, *machines_in_words(scenario, node="nodes")]
        return ", ".join((*parts, f"{100 * scenario.write_share:g} % writes", f"clients in {scenario.region}"))


SYSTEM = Fedora4()
