"""`arion`: gRPC masters that answer the lookups of many clients from Hazelcast."""

from __future__ import annotations

from functools import cached_property

from capplan.calibration.system import System
from capplan.systems.arion.network import PARAMETERS, REPORTED, latency_s, network, settling_s
from capplan.systems.arion.notes import ArionNotes, excess, excess_of_rates, outages
from capplan.systems.arion.observations import ArionObservations
from capplan.systems.arion.scenario import ArionScenario


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

    network = staticmethod(network)
    observations = cached_property(ArionObservations)
    notes = cached_property(lambda self: ArionNotes(self.evidence))
    response_s = staticmethod(latency_s)
    settling_s = staticmethod(settling_s)
    outages = staticmethod(outages)
    excess = staticmethod(excess)
    excess_of_rates = staticmethod(excess_of_rates)

    def bounded(self, scenario: ArionScenario) -> bool:
        """Whether clients wait for their answers, as they do with unary calls."""
        return scenario.stream_messages == 1


SYSTEM = Arion()
