"""`arion`: gRPC masters that answer the lookups of many clients from Hazelcast."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType

from capplan.layout.situations import RETRY_STORM, Factor, Machine, Situation
from capplan.layout.system import System
from capplan.models.language.parameter import Values
from capplan.systems.arion.network import REPORTED, latency_s, network, settling_s
from capplan.systems.arion.notes import ArionNotes, excess, excess_of_rates, outages
from capplan.systems.arion.observations import ArionObservations
from capplan.systems.arion.priors import PARAMETERS
from capplan.systems.arion.scenario import ArionScenario

_SITUATIONS = {
    "reattach": Situation(
        name="mass re-attach", meaning="all clients restart and look up at once", rate=Factor(2.0, 0.25)
    ),
    "retries": RETRY_STORM,
}


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
    losses = MappingProxyType({"master": "a gRPC master"})
    tails_not_modelled = ("GC pauses", "repartitioning of Hazelcast")
    situations = MappingProxyType(_SITUATIONS)
    machines = MappingProxyType({"master": Machine("master")})
    sized = MappingProxyType({"servers": (1, 64)})

    network = staticmethod(network)
    observations = cached_property(ArionObservations)
    notes = cached_property(lambda self: ArionNotes(self.evidence))
    response_s = staticmethod(latency_s)
    settling_s = staticmethod(settling_s)
    outages = staticmethod(outages)
    excess = staticmethod(excess)
    excess_of_rates = staticmethod(excess_of_rates)

    def layout(self, scenario: ArionScenario, values: Values) -> str:
        """Return masters, clients and streams in a few words."""
        del values
        text = f"{_counted(scenario.servers, 'master')}, {_counted(scenario.clients, 'client')}"
        return f"{text}, streams of {scenario.stream_messages:,}" if scenario.stream_messages > 1 else text

    def resource_name(self, scenario: ArionScenario, resource: str) -> str:
        """Return what a resource is called in a sentence, with its number."""
        if resource == "clients":
            return _counted(scenario.clients, "client")
        return _counted(scenario.servers, "master") if resource == "master" else resource

    def machine_counts(self, scenario: ArionScenario) -> Mapping[str, int]:
        """Return the number of masters."""
        return {"master": scenario.servers}

    def clients(self, scenario: ArionScenario) -> int | None:
        """Return the number of clients with unary calls; streaming clients do not wait for their answers."""
        return scenario.clients if scenario.stream_messages == 1 else None


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


SYSTEM = Arion()
