"""`cassandra`: any Cassandra cluster, fitted to its user's load tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

from capplan.answers.condition import Unmeasured
from capplan.calibration.tables.node_cpu import cpu_percent
from capplan.calibration.tables.priors import COMMON_LOG_SD
from capplan.layout.basis import Bases
from capplan.layout.components import Machine, Machines, MeasuredRange, NodeLimits, Pauses, Simulations
from capplan.layout.ensemble import Places
from capplan.layout.notes import Notes
from capplan.layout.situations import Losses
from capplan.layout.solution import Solution
from capplan.layout.table_components import ClosedLoadTests, Contention, LayoutFactors, NodeCpu, Rows, Search
from capplan.layout.table_rows import TableRow, request_class
from capplan.layout.table_system import TableBasis, TableSystem, table_cautions
from capplan.models.language.parameter import Values
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
from capplan.systems.cassandra.scenario import NODE_LIMITS, USUAL_ROW_BYTES, CassandraScenario
from capplan.systems.components import data_factor
from capplan.systems.components.losses import NODE

_RESOURCES = {DRIVER: "the drivers' requests in flight", NATIVE: "the nodes' native-transport threads"}
_NOT_OF_NODES = (
    "encryption",
    "data_gib",
    "cache_gib",
    "keep",
    "compaction",
    "compression",
    "headroom",
    "usable",
    *NODE_LIMITS,
    "busiest",
    "data_factor",
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


_SKEW = Unmeasured(  # of 16 random tokens a node and RF 3, 1.1 to 1.5 on 4 to 48 nodes; hot partitions are a guess
    name="load of the busiest node",
    field="busiest",
    value=1.0,
    expected=(1.1, 1.5),
    source="tokens of 16 vnodes, and a guess of hot partitions",
    as_tested="nodes are as evenly busy as tested",
    where="on nodes as evenly busy as tested",
    unit="times the mean on the busiest",
    otherwise="the busiest node has {} to {} times the mean",
    measurement="CPU or requests of every node",
)


_AGED = Unmeasured(  # docs/reference/data-volume.md, full nodes; beyond the page cache, disk reads come on top
    name="work of a request on aged data",
    field="data_factor",
    value=1.0,
    expected=(1.1, 2.3),
    source="reads of a lab from its page cache, compacted and aged",
    as_tested="data are as fresh as in load tests",
    where="on data as fresh as in load tests",
    unit="times the work of a request",
    otherwise="aged data make the work of a request {} to {} times",
    measurement="CPU per request on aged data",
)


def unmeasured(scenario: CassandraScenario) -> tuple[Unmeasured, ...]:
    """Return what a plan of rows that are kept leaves open: what aged data cost, and how unevenly nodes are busy."""
    if scenario.keep is None:
        return ()
    skewed = scenario.busiest is None and not scenario.one_host
    return (*[_AGED] * (scenario.data_factor is None), *[_SKEW] * skewed)


def resource_names(scenario: CassandraScenario) -> Mapping[str, str]:
    """Return words for resources; where disks and memory limit nodes, too, for the work of nodes."""
    return _RESOURCES if scenario.keep is None else {**_RESOURCES, NODES: "node CPU"}


def tails_not_modelled(scenario: CassandraScenario) -> tuple[str, ...]:
    """Return causes of tail latency that a layout's network does not model."""
    stalls = ("compaction stalls", "hints")
    return stalls if scenario.retries_reads() else ("speculative retries", *stalls)


def starts(rows: Sequence[TableRow]) -> Sequence[Mapping[str, float]]:
    """Return further starts of the search, with the generator, the replicas or the coordinators as the limit.

    One layout cannot tell them apart.
    """
    return _STARTS if len({row.tested_layout for row in rows}) > 1 else ()


def contends(values: Values, on_timer: bool) -> bool:
    """Whether the number of requests in flight changes the work of each."""
    woken = any(np.any(np.asarray(values[name]) > 0) for name in ("wake_s", "exchange_s"))
    return woken if on_timer else woken or may_fall(values)


def may_fall(values: Values) -> bool:
    """Whether each further client slows down all clients."""
    return bool(np.any(np.asarray(values["contention"]) > 0))


def at_clients(values: Values, clients: FloatArray, on_timer: bool) -> dict[str, Number]:
    """Return the values at a number of clients per draw, or of requests in flight that a timer sends."""
    slower = 1 + (0.0 if on_timer else np.asarray(values["contention"]) * clients)
    found = {name: value * slower if name in WORK else value for name, value in values.items()}
    return {**found, UNDER_WAY: clients}


def node_cpu_percent(
    layout: CassandraScenario, values: Values, busy: Mapping[str, FloatArray], under_way: FloatArray
) -> FloatArray:
    """Return the CPU of nodes; on one host, that of the machine."""
    if layout.one_host:
        cores = layout.node_cores / sum(layout.nodes_by_dc())
        return cpu_percent(values, busy[HOST], under_way, cores, woken=False)
    return cpu_percent(values, busy[NODES], under_way, layout.node_cores, woken=True)


@lru_cache(maxsize=1024)
def of_same_nodes(layout: CassandraScenario) -> CassandraScenario:
    """Return a layout without what leaves nodes alike: rows, data, TLS, limits, pauses, a round trip of one DC."""
    rtt = CassandraScenario.rtt if layout.dcs == 1 else layout.rtt
    return changed(layout, row_bytes=USUAL_ROW_BYTES, rtt=rtt, tcp_nodelay=False, **dict.fromkeys(_NOT_OF_NODES))


class Cassandra(TableSystem[CassandraScenario]):
    """A Cassandra cluster and its clients."""

    name = "cassandra"
    summary = "any Cassandra cluster, fitted to your own load tests: nodes, replication, levels, mix, clients"
    scenario = CassandraScenario
    parameters = PARAMETERS
    reported = REPORTED
    traffic_mix = staticmethod(CassandraScenario.mix)
    components = (
        Bases(TableBasis),
        Notes(cautions=table_cautions, resource_names=resource_names, tails_not_modelled=tails_not_modelled),
        Losses(LOSSES, outages),
        Machines[CassandraScenario](
            {NODE: Machine("Cassandra node", "node_cores", holds_data=True, **{name: name for name in NODE_LIMITS})},
            by_dc=lambda scenario: tuple({NODE: nodes} for nodes in scenario.nodes_by_dc()),
            sized={"cass_nodes": (1, 64)},
            round_trips_s=lambda scenario, _values: scenario.round_trips_s() if scenario.dcs > 1 else (),
        ),
        MeasuredRange(excess=excess, unmeasured=unmeasured),
        NodeLimits(CassandraScenario.node_load),
        Pauses(pauses, node_pauses, variation),
        Simulations(paused_network=paused_network),
        Rows[CassandraScenario](
            request_class,
            closed_clients=lambda scenario: scenario.clients,
            copies=lambda layout: sum(layout.rf_by_dc()),
            undecided=undecided,
            unstated=unstated,
        ),
        Search(
            priors,
            starts,
            shared=(dict.fromkeys(TIMES, COMMON_LOG_SD),),
            times=(*TIMES, "generator_s"),
            unseen="unseen_work",
        ),
        LayoutFactors(
            {"work": 0.08, "delay": 0.1},
            {"work": WORK, "delay": ("delay_s",)},
            (("cass_nodes",), ("node_cores",)),
            of_same_nodes,
            values_of_cluster,
        ),
        Contention(contends, may_fall, at_clients),
        ClosedLoadTests(load_test_network, closed_pauses, left_by_pauses),
        NodeCpu((NODES, HOST), node_cpu_percent),
    )

    network = staticmethod(network)
    row_scenario = staticmethod(row_scenario)

    def values_in(self, layout: CassandraScenario, values: Values) -> Values:
        """Return the values of a layout; of a data factor that is a range, one by draw."""
        count = max(np.size(each) for each in values.values())
        return {**super().values_in(layout, values), **data_factor.with_draws(layout.data_factor, count)}

    def solution(
        self, scenario: CassandraScenario, values: Values, place: Places | None = None, every: Values | None = None
    ) -> Solution:
        """Analyse a layout once; see `System.solution`."""
        return waiting(super().solution(scenario, values, place, every))

    def layout(self, scenario: CassandraScenario, _values: Values) -> str:
        """Return nodes, replication and levels in a few words."""
        dcs = f"{scenario.dcs} DCs x " if scenario.dcs > 1 else ""
        levels = ", ".join(f"{name}s at {level}" for name, level in scenario.levels().items())
        nodes = f"{dcs}{per_dc_text(scenario.cass_nodes)} nodes"
        return ", ".join(filter(None, (nodes, f"RF {per_dc_text(scenario.rf)}", levels, limit_in_words(scenario))))


SYSTEM = Cassandra()
