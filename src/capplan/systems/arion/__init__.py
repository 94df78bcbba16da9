"""`arion`: gRPC masters that answer the lookups of many clients from Hazelcast."""

from __future__ import annotations

from functools import cached_property

from capplan.layout.components import Machine, Machines, MeasuredRange, ResponseTimes, Simulations
from capplan.layout.situations import RETRY_STORM, Factor, Losses, Situation
from capplan.layout.system import System
from capplan.models.language.parameter import Values
from capplan.systems.arion.network import REPORTED, latency_s, network, settling_s
from capplan.systems.arion.notes import NOTES, counted, excess, excess_of_rates, outages
from capplan.systems.arion.observations import ArionObservations
from capplan.systems.arion.priors import PARAMETERS
from capplan.systems.arion.scenario import ArionScenario

_SITUATIONS = {
    "reattach": Situation(
        name="mass re-attach", meaning="all clients restart and look up at once", rate=Factor(2.0, 0.25)
    ),
    "retries": RETRY_STORM,
}


def waiting_clients(scenario: ArionScenario) -> int | None:
    """Return the number of clients with unary calls; streaming clients do not wait for their answers."""
    return scenario.clients if scenario.stream_messages == 1 else None


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
    components = (
        NOTES,
        Losses({"master": "a gRPC master"}, outages, _SITUATIONS),
        Machines[ArionScenario](
            {"master": Machine("master")},
            by_dc=lambda scenario: ({"master": scenario.servers},),
            sized={"servers": (1, 64)},
        ),
        MeasuredRange(excess=excess, excess_of_rates=excess_of_rates),
        ResponseTimes(latency_s, waiting_clients),
        Simulations(budget_s=0.2, settling_s=settling_s),
    )

    network = staticmethod(network)
    observations = cached_property(ArionObservations)

    def layout(self, scenario: ArionScenario, _values: Values) -> str:
        """Return masters, clients and streams in a few words."""
        text = f"{counted(scenario.servers, 'master')}, {counted(scenario.clients, 'client')}"
        return f"{text}, streams of {scenario.stream_messages:,}" if scenario.stream_messages > 1 else text


SYSTEM = Arion()
