"""`vcider`: four Cassandra nodes on an encrypted virtual network, beside the same on native interfaces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from capplan.calibration.case.extrapolation import Excess
from capplan.calibration.observations import LoadTest, Observations
from capplan.calibration.system import Notes, System
from capplan.models.language.network import Network
from capplan.models.language.parameter import Values
from capplan.models.language.units import FloatArray, Number
from capplan.systems.vcider.network import PARAMETERS, REPORTED, network, ratios
from capplan.systems.vcider.notes import VciderNotes, excess
from capplan.systems.vcider.observations import VciderObservations
from capplan.systems.vcider.scenario import VciderScenario


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
    ratios_only = True

    def network(self, scenario: VciderScenario, values: Values, rate_per_s: Number) -> Network:
        """Compose the network; see `capplan.systems.vcider.network`."""
        return network(scenario, values, rate_per_s)

    def ratios(self, scenario: VciderScenario, values: Values) -> Mapping[str, FloatArray]:
        """Return the ratios of throughput on the virtual network to that of each native reference."""
        return ratios(scenario, values)

    @cached_property
    def observations(self) -> Observations[VciderScenario]:
        """The documented comparisons."""
        return VciderObservations(self)

    @cached_property
    def notes(self) -> Notes[VciderScenario]:
        """Notes for the reader."""
        return VciderNotes(self.evidence)

    def excess(self, scenario: VciderScenario, tests: Sequence[LoadTest[VciderScenario]]) -> Sequence[Excess]:
        """Return how far another interpretation of the document is from the fitted one."""
        return excess(scenario, tests)


SYSTEM = Vcider()
