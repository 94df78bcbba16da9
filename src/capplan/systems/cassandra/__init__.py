"""`cassandra`: any Cassandra cluster, fitted to its user's load tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType

import numpy as np

from capplan.calibration.tables.node_cpu import cpu_percent
from capplan.calibration.tables.priors import COMMON_LOG_SD
from capplan.layout.ensemble import Places
from capplan.layout.machines import Machine, Machines
from capplan.layout.measured_range import MeasuredRange
from capplan.layout.notes import Notes
from capplan.layout.simulations import Simulations
from capplan.layout.situations import Losses
from capplan.layout.solution import Pauses, Solution
from capplan.layout.table_rows import TableRow, request_class
from capplan.layout.table_system import TableSystem, table_cautions
from capplan.models.language.parameter import Parameter, Values
from capplan.models.language.per_dc import per_dc_text
from capplan.models.language.scenario import changed
from capplan.models.language.units import FloatArray, Number
from capplan.systems.cassandra.losses import LOSSES, outages
from capplan.systems.cassandra.network import (
    DRIVER,
    HOST,
    NATIVE,
    NODES,
    REPORTED,
    UNDER_WAY,
    WORK,
    closed_pauses,
    left_by_pauses,
    limit_in_words,
    load_test_network,
    network,
    node_pauses,
    paused_network,
    pauses,
    values_of_cluster,
    variation,
    waiting,
)
from capplan.systems.cassandra.priors import PARAMETERS
from capplan.systems.cassandra.rows import TIMES, excess, priors, row_scenario, undecided, unstated
from capplan.systems.cassandra.scenario import USUAL_ROW_BYTES, CassandraScenario
from capplan.systems.components.losses import NODE

_RESOURCES = {DRIVER: "the drivers' requests in flight", NATIVE: "the nodes' native-transport threads"}
_NOT_OF_NODES = (
    "encryption",
    "data_gib",
    "cache_gib",
    "connections",
    "in_flight",
    "native_threads",
    "speculative_retry",
    "gc",
    "heap",
    "collector",
)
_STARTS = (
    {"generator_s": 4.0, "unseen_work": 0.5},
    {"coordinator_s": 0.5, "mutation_s": 2.0, "read_s": 2.0},
    {"coordinator_s": 2.0, "mutation_s": 0.5, "read_s": 0.5},
)


def tails_not_modelled(scenario: CassandraScenario) -> tuple[str, ...]:
    """Return causes of tail latency that a layout's network does not model."""
    stalls = ("compaction stalls", "hints")
    return stalls if scenario.retries_reads() else ("speculative retries", *stalls)


class Cassandra(TableSystem[CassandraScenario]):
    """A Cassandra cluster and its clients."""

    name = "cassandra"
    summary = "any Cassandra cluster, fitted to your own load tests: nodes, replication, levels, mix, clients"
    scenario = CassandraScenario
    parameters = PARAMETERS
    reported = REPORTED
    traffic_mix = staticmethod(CassandraScenario.mix)
    components = (
        Notes(cautions=table_cautions, resource_names=lambda _: _RESOURCES, tails_not_modelled=tails_not_modelled),
        Losses(LOSSES, outages),
        Machines[CassandraScenario](
            {NODE: Machine("Cassandra node", "node_cores", holds_data=True)},
            by_dc=lambda scenario: tuple({NODE: nodes} for nodes in scenario.nodes_by_dc()),
            sized={"cass_nodes": (1, 64)},
            round_trips_s=lambda scenario, _values: scenario.round_trips_s() if scenario.dcs > 1 else (),
        ),
        MeasuredRange(excess=excess),
        Pauses(pauses, node_pauses, variation),
        Simulations(paused_network=paused_network),
    )
    effects = MappingProxyType({"work": 0.08, "delay": 0.1})
    scaled = (("cass_nodes",), ("node_cores",))
    metered = (NODES, HOST)
    times = (*TIMES, "generator_s")
    unseen = "unseen_work"
    shared = (dict.fromkeys(TIMES, COMMON_LOG_SD),)

    network = staticmethod(network)
    load_test_network = staticmethod(load_test_network)
    closed_pauses = staticmethod(closed_pauses)
    left_by_pauses = staticmethod(left_by_pauses)
    row_scenario = staticmethod(row_scenario)
    request_class = staticmethod(request_class)
    priors = staticmethod(priors)
    values_for = staticmethod(values_of_cluster)
    unstated = staticmethod(unstated)
    undecided = staticmethod(undecided)

    def solution(
        self, scenario: CassandraScenario, values: Values, place: Places | None = None, every: Values | None = None
    ) -> Solution:
        """Analyse a layout once; see `System.solution`."""
        return waiting(super().solution(scenario, values, place, every))

    def starts(self, rows: Sequence[TableRow], parameters: Sequence[Parameter]) -> Sequence[Mapping[str, float]]:
        """Return further starts of the search, with the generator, the replicas or the coordinators as the limit.

        One layout cannot tell them apart.
        """
        del parameters
        return _STARTS if len({row.tested_layout for row in rows}) > 1 else ()

    def alike(self, layout: CassandraScenario) -> CassandraScenario:
        """Return the layout that shares its factors with this one; see `_of_same_nodes`."""
        return _of_same_nodes(layout)

    def with_effects(self, values: Values, effects: Mapping[str, Number]) -> Values:
        """Return values with a layout's own factors on its nodes' work and on its delay."""
        if not effects:
            return values
        work = {name: values[name] * effects["work"] for name in WORK}
        return {**values, **work, "delay_s": values["delay_s"] * effects["delay"]}

    def contends(self, values: Values, *, on_timer: bool = False) -> bool:
        """Whether the number of requests in flight changes the work of each."""
        woken = any(np.any(np.asarray(values[name]) > 0) for name in ("wake_s", "exchange_s"))
        return woken if on_timer else woken or self.may_fall(values)

    def may_fall(self, values: Values) -> bool:
        """Whether each further client slows down all clients."""
        return bool(np.any(np.asarray(values["contention"]) > 0))

    def at_clients(self, values: Values, clients: FloatArray, *, on_timer: bool = False) -> dict[str, Number]:
        """Return the values at a number of clients per draw, or of requests in flight that a timer sends."""
        slower = 1 + (0.0 if on_timer else np.asarray(values["contention"]) * clients)
        found = {name: value * slower if name in WORK else value for name, value in values.items()}
        return {**found, UNDER_WAY: clients}

    def node_cpu_percent(
        self, layout: CassandraScenario, values: Values, busy: Mapping[str, FloatArray], under_way: FloatArray
    ) -> FloatArray:
        """Return the CPU of nodes; on one host, that of the machine."""
        if layout.one_host:
            cores = layout.node_cores / sum(layout.nodes_by_dc())
            return cpu_percent(values, busy[HOST], under_way, cores, woken=False)
        return cpu_percent(values, busy[NODES], under_way, layout.node_cores, woken=True)

    def layout(self, scenario: CassandraScenario, values: Values) -> str:
        """Return nodes, replication and levels in a few words."""
        del values
        dcs = f"{scenario.dcs} DCs x " if scenario.dcs > 1 else ""
        levels = ", ".join(f"{name}s at {level}" for name, level in scenario.levels().items())
        nodes = f"{dcs}{per_dc_text(scenario.cass_nodes)} nodes"
        return ", ".join(filter(None, (nodes, f"RF {per_dc_text(scenario.rf)}", levels, limit_in_words(scenario))))

    def copies(self, layout: CassandraScenario) -> int:
        """Return the replicas of a row in all data centres."""
        return sum(layout.rf_by_dc())


@lru_cache(maxsize=1024)
def _of_same_nodes(layout: CassandraScenario) -> CassandraScenario:
    """Return a layout without what leaves nodes alike: rows, data, TLS, limits, pauses, a round trip of one DC."""
    rtt = CassandraScenario.rtt if layout.dcs == 1 else layout.rtt
    return changed(layout, row_bytes=USUAL_ROW_BYTES, rtt=rtt, tcp_nodelay=False, **dict.fromkeys(_NOT_OF_NODES))


SYSTEM = Cassandra()
