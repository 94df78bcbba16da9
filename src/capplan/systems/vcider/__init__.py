"""`vcider`: four Cassandra nodes on an encrypted virtual network, compared with native interfaces."""

from __future__ import annotations

from functools import cached_property

from capplan.layout.components import MeasuredRange, Ratios
from capplan.layout.system import System
from capplan.models.language.parameter import Values
from capplan.systems.vcider.network import REPORTED, network, ratios
from capplan.systems.vcider.notes import CAUTIONS, NOTES, excess, ratio_notes
from capplan.systems.vcider.observations import VciderObservations
from capplan.systems.vcider.priors import PARAMETERS
from capplan.systems.vcider.scenario import NODES, VciderScenario


class Vcider(System[VciderScenario]):
    """Cassandra on a virtual network; its document has only ratios of throughput."""

    name = "vcider"
    summary = (
        "Four Cassandra nodes on a virtual network that encrypts in the kernel: throughput relative to native "
        "interfaces, with and without encryption in user space"
    )
    scenario = VciderScenario
    parameters = PARAMETERS
    reported = REPORTED
    components = (NOTES, Ratios(ratios, CAUTIONS, ratio_notes), MeasuredRange(excess=excess))

    network = staticmethod(network)
    observations = cached_property(VciderObservations)

    def layout(self, scenario: VciderScenario, _values: Values) -> str:
        """Return the two networks in a few words."""
        return (
            f"{NODES} Cassandra nodes on a virtual network instead of native interfaces, RF {scenario.rf}, "
            f"{scenario.column_bytes}-byte columns"
        )


SYSTEM = Vcider()
