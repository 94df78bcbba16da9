"""`fedora4`: a repository of fully replicated nodes behind a load balancer."""

from __future__ import annotations

from functools import cached_property

from capplan.calibration.system import System
from capplan.systems.fedora4.network import PARAMETERS, REPORTED, network, traffic_mix
from capplan.systems.fedora4.notes import Fedora4Notes, excess_of_rates, offset, outages, workers
from capplan.systems.fedora4.observations import Fedora4Observations
from capplan.systems.fedora4.scenario import Fedora4Scenario


class Fedora4(System[Fedora4Scenario]):
    """Repository cluster with reads, creates and deletes from four regions."""

    name = "fedora4"
    summary = (
        "Repository of fully replicated nodes behind a load balancer: reads, creates and deletes from four regions"
    )
    scenario = Fedora4Scenario
    parameters = PARAMETERS
    reported = REPORTED
    widening = 2.0  # scaling laws that fit the measured sizes equally well differ by more than one doubling
    budget_s = 0.4

    network = staticmethod(network)
    observations = cached_property(Fedora4Observations)
    notes = cached_property(lambda self: Fedora4Notes(self.evidence))
    traffic_mix = staticmethod(traffic_mix)
    outages = staticmethod(outages)
    workers = staticmethod(workers)
    excess_of_rates = staticmethod(excess_of_rates)
    offset = staticmethod(offset)


SYSTEM = Fedora4()
