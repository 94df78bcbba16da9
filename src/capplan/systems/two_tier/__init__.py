"""`two-tier`: stateless front nodes over a replicated store, calibrated to load-test tables."""

from __future__ import annotations

from collections.abc import Mapping

from capplan.calibration.tables.priors import COMMON_LOG_SD
from capplan.layout.basis import Bases
from capplan.layout.components import Machine, Machines, ResponseTimes
from capplan.layout.notes import Notes
from capplan.layout.situations import Losses
from capplan.layout.table_components import LayoutFactors, Rows, Search
from capplan.layout.table_system import TableBasis, TableSystem, table_cautions
from capplan.models.language.parameter import Values
from capplan.systems.two_tier.losses import LOSSES, outages
from capplan.systems.two_tier.network import FRONT, LOG, REPORTED, STORE, network
from capplan.systems.two_tier.priors import PARAMETERS
from capplan.systems.two_tier.rows import ROUNDS, TIMES, group, priors, row_scenario, undecided
from capplan.systems.two_tier.scenario import TwoTierScenario

_AFFECTED = {
    "work": ("front_read_s", "front_write_s", "store_read_s", "store_write_s", "append_s"),
    "delay": ("delay_s", "commit_s"),
}
"""Times that the factors of a layout change."""


def resource_names(scenario: TwoTierScenario) -> Mapping[str, str]:
    """Return what the tiers are called in a sentence."""
    return {
        FRONT: f"the {scenario.front_nodes} front nodes",
        STORE: f"the {scenario.store_nodes} store nodes",
        LOG: f"the logs of the {scenario.store_nodes} store nodes",
    }


class TwoTier(TableSystem[TwoTierScenario]):
    """Stateless front nodes over a replicated store."""

    name = "two-tier"
    summary = "Stateless front nodes over a replicated store, such as a SQL layer over a key-value store."
    scenario = TwoTierScenario
    parameters = PARAMETERS
    reported = REPORTED
    traffic_mix = staticmethod(TwoTierScenario.mix)
    components = (
        Bases(TableBasis),
        Notes(
            cautions=table_cautions,
            resource_names=resource_names,
            tails_not_modelled=lambda _: ("elections", "copying of rows after a loss"),
        ),
        Losses(LOSSES, outages),
        Machines[TwoTierScenario](
            {"front": Machine("front node", "front_cores"), "node": Machine("store node", "node_cores")},
            by_dc=lambda scenario: ({"front": scenario.front_nodes, "node": scenario.store_nodes},),
            sized={"front_nodes": (1, 64), "store_nodes": (1, 64)},
        ),
        ResponseTimes[TwoTierScenario](waiting_clients=lambda scenario: scenario.clients),
        Rows[TwoTierScenario](
            group=group,
            closed_clients=lambda scenario: scenario.clients,
            copies=lambda layout: layout.rf,
            undecided=undecided,
        ),
        Search(
            priors,
            structures={"rounds": ROUNDS},
            shared=tuple(dict.fromkeys(names, COMMON_LOG_SD) for names in TIMES.values()),
            times=tuple(name for names in TIMES.values() for name in names),
            unseen="unseen",
        ),
        LayoutFactors[TwoTierScenario](
            {"work": 0.08, "delay": 0.1}, _AFFECTED, (("front_nodes", "store_nodes"), ("front_cores", "node_cores"))
        ),
    )

    network = staticmethod(network)
    row_scenario = staticmethod(row_scenario)

    def layout(self, scenario: TwoTierScenario, _values: Values) -> str:
        """Return both tiers in a few words."""
        front = f"{scenario.front_nodes} front nodes x {scenario.front_cores} cores"
        where = front if scenario.front_nodes else "the front on the store's nodes"
        store = f"{scenario.store_nodes} store nodes x {scenario.node_cores} cores, RF {scenario.rf}"
        return f"{where}, {store}, {100 * scenario.read_fraction:g} % reads"


SYSTEM = TwoTier()
