"""Any Cassandra cluster as a queueing network: limits on requests, coordinators, replicas."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from functools import cached_property, partial
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from capplan.layout.solution import Figures, Solution, kind_of
from capplan.models.cassandra.cluster import Cluster, Costs, pools, statement, stations, to_dcs, with_standbys
from capplan.models.cassandra.consistency import answers
from capplan.models.cassandra.encryption import LINKS, Exchanges
from capplan.models.language.distribution import Erlang, Exponential
from capplan.models.language.network import Network
from capplan.models.language.parameter import Values
from capplan.models.language.per_dc import proportions
from capplan.models.language.scenario import MOST_CLIENTS
from capplan.models.language.station import Pool, Station
from capplan.models.language.step import Acquire, Delay, ForkJoin, Sequence, Step, Visit
from capplan.models.language.traffic import Open, RequestClass
from capplan.models.language.units import FloatArray, Number
from capplan.models.solver.analytic import Analysis
from capplan.models.solver.held_clients import ClosedLoad, lost_by_holding
from capplan.models.solver.operating_point import MAX_DROP_RATE, OperatingPoint, SteadyState
from capplan.models.solver.pauses import NodePauses, RareDelay, pause_delays, sent_by_clients
from capplan.systems.cassandra.retries import has_spare, level_of, longest_wait_s
from capplan.systems.cassandra.scenario import USUAL_ROW_BYTES, CassandraScenario
from capplan.systems.components import data_factor
from capplan.systems.components.pauses.nodes import needed_by_operation, paused, pauses_of, relative_needs

DRIVER, NATIVE = "driver", "native-transport"
_ROUNDS = 3  # of a fixed point
_ENDLESS = 1.01 * MAX_DROP_RATE  # the queue grows without bound from this share of requests that never get a turn


def limit_of_drivers(scenario: CassandraScenario) -> int | None:
    """Return the drivers' limit on requests in flight per node; None if there is no limit or threads limit them."""
    each, threads = scenario.in_flight_at_node(), scenario.native_threads
    return None if each is None or (threads is not None and threads < each) else each


def limit_of_threads(scenario: CassandraScenario) -> int | None:
    """Return how many requests a node coordinates at once; None if there is no limit or drivers limit them."""
    return scenario.native_threads if limit_of_drivers(scenario) is None else None


def may_wait(scenario: CassandraScenario) -> bool:
    """Whether requests may wait at a limit: always for open traffic, with too many clients for closed traffic.

    Drivers send what a full node does not take to the others of its data centre. A coordinator may have all clients.
    """
    at_drivers, at_node = limit_of_drivers(scenario), limit_of_threads(scenario)
    if at_drivers is None and at_node is None:
        return False
    if scenario.clients is None:
        return True
    nodes = min(
        count for count, share in zip(scenario.nodes_by_dc(), scenario.shares_by_dc(), strict=True) if count and share
    )
    return scenario.clients > (at_node or 0 if at_drivers is None else at_drivers * nodes)


def driver_pools(scenario: CassandraScenario, cluster: Cluster, dcs: Iterable[int]) -> dict[int, Pool]:
    """Return the drivers' limits as pools, by data centre of the clients; none without a limit.

    Parameters
    ----------
    scenario : CassandraScenario
        The layout.
    cluster : Cluster
        Its nodes, of which some may be down: drivers have no connections to those.
    dcs : sequence of int
        The data centres with clients, from 0.
    """
    each = limit_of_drivers(scenario)
    if each is None:
        return {}
    # A limit above the possible number of clients has no effect, and the solver needs a finite queue.
    sizes = {dc: min(each * cluster.alive[dc], MOST_CLIENTS) for dc in dcs}
    return {dc: Pool(f"{DRIVER}/dc{dc + 1}", size, MOST_CLIENTS) for dc, size in sizes.items()}


def node_pools(scenario: CassandraScenario, cluster: Cluster) -> tuple[Pool, ...]:
    """Return the nodes' native-transport threads and memtable space as pools; none without a limit."""
    threads = limit_of_threads(scenario)
    if threads is None:
        return ()
    return tuple(
        replace(pool, size=threads, queue_limit=MOST_CLIENTS) if kind_of(pool.name) == NATIVE else pool
        for pool in pools(cluster)
    )


def limit_in_words(scenario: CassandraScenario) -> str:
    """Return a layout's limit in words; empty without one."""
    each, threads = limit_of_drivers(scenario), limit_of_threads(scenario)
    if each is not None:
        return f"at most {each:,} request{'s' * (each > 1)} in flight per node"
    return "" if threads is None else f"{threads:,} native-transport thread{'s' * (threads > 1)} per node"


class WaitingFigures(Figures):
    """Figures of requests that wait as long as necessary: none is dropped."""

    @cached_property
    def point(self) -> OperatingPoint:
        """The solved operating point; times are unbounded beyond the capacity."""
        found = super().point
        return replace(found, states=tuple(map(_unbounded, found.states)))

    @property
    def drop_rate(self) -> FloatArray:
        """Share of the requests that are dropped (..., draws): none."""
        return np.zeros_like(super().drop_rate)

    @property
    def is_pushed_back(self) -> bool:
        """Whether a station pushes back once its buffer is full; never, because the client queue cannot fill up."""
        return False


class WaitingSolution(Solution):
    """A layout whose requests wait as long as necessary."""

    @classmethod
    def of(cls, solution: Solution) -> WaitingSolution:
        """Return an analysed layout as a `WaitingSolution`."""
        found = cls.__new__(cls)
        vars(found).update(vars(solution))
        return found

    def at(self, peak_rate: float | FloatArray) -> Figures:
        """Return the figures at offered peak rates; see `Solution.at`."""
        found = super().at(peak_rate)
        return WaitingFigures(**{each.name: getattr(found, each.name) for each in fields(found)})

    @property
    def finite_at_capacity(self) -> bool:
        """Whether latency stays finite at the capacity."""
        return self.bounded

    @property
    def bottleneck(self) -> str:
        """The resource that limits the capacity: a kind of station or of pool."""
        found = super().bottleneck
        return kind_of(self.analysis.outer_pools[0].name) if found == "workers" else found


def waiting(solution: Solution) -> Solution:
    """Return a solution whose requests wait, if anything limits them."""
    return WaitingSolution.of(solution) if solution.network.pools else solution


def _unbounded(state: SteadyState) -> SteadyState:
    endless = state.drop_rate > _ENDLESS

    def unbounded(values: FloatArray) -> FloatArray:
        return np.where(endless if values.ndim == endless.ndim else endless[..., None], np.inf, values)

    return replace(
        state,
        response_s={name: unbounded(values) for name, values in state.response_s.items()},
        mean_s={name: unbounded(values) for name, values in state.mean_s.items()},
    )


LANES_PER_CORE = 4
"""Requests that a node works on at once, per core: many, as `unseen_work` has what they leave of a lane."""
HOST_LANES_PER_CORE = 2
"""The same of a machine that all nodes share, where few requests wait for anything but cores."""
GENERATOR_LANES = 8
"""Requests that a load generator works on at once."""
LAN_S = 0.02e-3
"""One way between two nodes of a data centre."""
REPORTED = {"read": ("read",), "write": ("write",)}
GENERATOR = "generator"
NODES = "cassandra"
"""The kind of station that the nodes are."""
HOST = "host"
"""The one machine of a layout on one host."""
UNDER_WAY = "under_way"
"""The value that has the number of requests under way, where it is known."""
_USUALLY_UNDER_WAY = 32.0  # near the capacity
_STEPS = get_args(get_args(Step)[0])
_MOST_VARIATION = 1.5  # beyond this the quadrature is wrong; no cluster goes this far

WORK = ("coordinator_s", "mutation_s", "read_s", "cold_s")
"""Times of the nodes, which differ between clusters, and which clients that contend lengthen."""


def network(
    scenario: CassandraScenario,
    values: Values,
    rate_per_s: Number,
    down: tuple[int, ...] = (),
    *,
    of_load_test: bool = False,
) -> Network:
    """Compose the network of a service, whose clients have enough machines of their own; see `load_test_network`.

    Parameters
    ----------
    scenario : CassandraScenario
        The layout.
    values : mapping
        Parameter values by name (SI; numbers, or arrays over draws for the analytic solver).
    rate_per_s : number
        Offered rate, requests per second over all data centres.
    down : tuple of int
        Nodes of each data centre that are down; none by default. The other data centres take over the clients of one
        that has no node left.
    of_load_test : bool
        Whether one load generator sends all requests, which may be the limit.

    Returns
    -------
    Network
        Request classes read and write, as far as they are in the traffic.

    Raises
    ------
    InputError
        If a row may have too few live replicas for a level.
    """
    busy = Exponential(values["generator_s"])
    client = Visit(GENERATOR, busy, name="client") if of_load_test else Delay(busy, name="client")
    generator = (Station(GENERATOR, GENERATOR_LANES, "ps", assignment="random"),) if of_load_test else ()
    cluster = build_cluster(scenario, values, down)
    shares = served(scenario, cluster)
    costs = build_costs(scenario, values, retried(scenario, cluster))
    in_turn = scenario.client_share is None
    homes = shares if in_turn else with_standbys(shares, cluster, cluster.living, scenario.levels().values())
    in_flight = driver_pools(scenario, cluster, homes)
    classes = []
    for operation, level in scenario.levels().items():
        asked = {dc: statement(cluster, costs[operation], dc, level, operation) for dc in homes}
        shared = _shared_work(scenario, values, operation, cluster, shares) if scenario.one_host else ()
        first = Delay(Erlang(values["delay_s"], 2), name="network")
        way = (first, client, *shared)
        if in_flight:
            held = {dc: Acquire(in_flight[dc].name, Sequence((*way, step))) for dc, step in asked.items()}
            flow = to_dcs(homes, held.values(), in_turn)
        else:
            flow = Sequence((*way, to_dcs(homes, asked.values(), in_turn)))
        classes.append(RequestClass(operation, flow))
    lanes = HOST_LANES_PER_CORE * scenario.node_cores
    host = (Station(HOST, lanes, "ps", assignment="random"),) if scenario.one_host else ()
    found = Network(
        name=scenario.system,
        stations=(*generator, *host, *stations(cluster)),
        classes=tuple(classes),
        traffic=Open(rate_per_s, scenario.mix()),
        pools=(*in_flight.values(), *node_pools(scenario, cluster)),
    )
    return _on_one_host(found) if scenario.one_host else found


def load_test_network(scenario: CassandraScenario, values: Values, rate_per_s: Number) -> Network:
    """Compose the network as a load test sees it: its load generator may be the limit; see `network`."""
    return network(scenario, values, rate_per_s, of_load_test=True)


def _shared_work(
    scenario: CassandraScenario, values: Values, operation: str, cluster: Cluster, shares: Mapping[int, float]
) -> tuple[Step, ...]:
    """Return a request's work for wake-ups, here and at replicas that it waits for, and for nodes that poll meanwhile.

    A write to a replica that no client waits for joins others in a batch: measured, it adds little.
    """
    others, level = _nodes_in_use(scenario, operation) - 1, scenario.levels()[operation]
    exchanges = sum(
        share * (cluster.taking_part(dc, level, "read") - cluster.own_share(dc)) for dc, share in shares.items()
    )
    woken_s = values["wake_s"] + values["exchange_s"] * max(exchanges, 0.0)
    work_s = woken_s / np.sqrt(values.get(UNDER_WAY, _USUALLY_UNDER_WAY)) + values["neighbour_s"] * others
    if not np.any(np.asarray(work_s) > 0):
        return ()
    unseen = Visit(HOST, Exponential(work_s * values["unseen_work"]), name="other threads")
    return Visit(HOST, Exponential(work_s), name="wake-ups"), ForkJoin((unseen,), 0)


def _nodes_in_use(scenario: CassandraScenario, operation: str) -> int:
    """Return the number of nodes that work on requests: all for writes, the clients' own for local reads."""
    nodes = scenario.nodes_by_dc()
    level = scenario.levels()[operation]
    if operation == "write" or not (level.startswith("LOCAL") or level == "ONE"):
        return sum(nodes)
    return sum(count for count, share in zip(nodes, scenario.shares_by_dc(), strict=True) if share)


def _on_one_host(network: Network) -> Network:
    """Return a network whose nodes' work runs on the cores of one machine; requests still pick their nodes."""
    return replace(network, classes=tuple(replace(each, flow=_at_host(each.flow)) for each in network.classes))


def _at_host(step: Any) -> Any:
    """Return a step with all visits but those to the load generator moved to the host."""
    if isinstance(step, Visit) and step.station == GENERATOR:
        return step
    if isinstance(step, Visit):
        return replace(step, station=HOST, member=None)
    inside = {each.name: getattr(step, each.name) for each in fields(step)}
    moved = {
        name: tuple(map(_at_host, value)) if isinstance(value, tuple) else _at_host(value)
        for name, value in inside.items()
        if isinstance(value[0] if isinstance(value, tuple) and value else value, _STEPS)
    }
    return replace(step, **moved)


def values_of_cluster(layout: CassandraScenario, values: Values) -> Values:
    """Return the values of one of several clusters or versions; those of the first where no other is named."""
    work, delay = (values.get(f"{name}[{layout.cluster}]") for name in ("cluster_work", "cluster_delay"))
    if work is None or delay is None:
        return values
    return {**values, **{name: values[name] * work for name in WORK}, "delay_s": values["delay_s"] * delay}


def served(scenario: CassandraScenario, cluster: Cluster) -> dict[int, float]:
    """Return the share of clients by data centre, after taking over those of data centres without live nodes."""
    return proportions(scenario.shares_by_dc(), cluster.living)


def build_cluster(scenario: CassandraScenario, values: Values, down: tuple[int, ...] = ()) -> Cluster:
    """Return the cluster of a scenario.

    A driver that finds no live replica of a row in its data centre asks any node there.
    """
    wan = tuple(tuple(cell / 2 for cell in row) for row in scenario.round_trips_s())
    cluster = Cluster(
        nodes=scenario.nodes_by_dc(),
        rf=scenario.rf_by_dc(),
        cores=_lanes(scenario)[0],
        lan_s=LAN_S,
        wan_s=wan,
        wan_extra=values["wan_extra"] * (SENT_AT_ONCE if scenario.tcp_nodelay else 1.0),
        down=down,
        assignment="random",
        token_aware=scenario.token_aware,
        read_repair=0.0,
        unlimited=limit_of_threads(scenario) is None,
    )
    each_found = all(cluster.fewest_replicas(dc) for dc in served(scenario, cluster))
    return cluster if each_found else replace(cluster, token_aware=False)


def retried(scenario: CassandraScenario, cluster: Cluster) -> float:
    """Return the share of reads that go to one more replica."""
    retry = scenario.speculative_retry
    return 0.0 if retry is None else (1 - level_of(retry)) * _with_spare(scenario, cluster)


def _with_spare(scenario: CassandraScenario, cluster: Cluster) -> float:
    """Return the share of reads whose coordinators have a spare replica."""
    level, replicas = scenario.consistency_read, scenario.rf_by_dc()
    return sum(
        share
        for dc, share in served(scenario, cluster).items()
        if has_spare(level, replicas, dc, cluster.fewest_replicas(dc))
    )


def build_costs(scenario: CassandraScenario, values: Values, retried: float = 0.0) -> Mapping[str, Costs]:
    """Return the costs of reads and writes at a node; retries are detached work."""
    slower = _slower(scenario, values)
    size = 1 + values["kib_share"] * scenario.row_bytes / 1024
    size = slower * size / (1 + values["kib_share"] * USUAL_ROW_BYTES / 1024)
    coordinator, unseen = values["coordinator_s"] * size, values["unseen_work"]
    on_data = size * data_factor.of_values(scenario.data_factor, values)
    found = {}
    for operation, level in (("read", scenario.consistency_read), ("write", scenario.consistency_write)):
        read = values["read_s"] * on_data * _data_share(scenario, level, values["digest_share"])
        waited = read + scenario.cold_share() * slower * values["cold_s"]
        at_replica = unseen * values["replica_unseen"]
        at_read = at_replica * read / waited
        if retried:
            at_read = at_read + (1 + at_read) * retried / answers(level, scenario.rf_by_dc(), 0)
        found[operation] = Costs(
            coordinator=coordinator,
            read=waited,
            mutation=values["mutation_s"] * on_data,
            unseen=at_read if operation == "read" else at_replica,
            storage=0.0,
            message=values["message_share"] * coordinator,
            unseen_coordinator=unseen,
            links={operation: _links(scenario, values)},
        )
    return found


SENT_AT_ONCE = 0.03
"""What an answer takes beyond its round trip if messages are sent at once, over the same where Nagle's algorithm holds
them: 0.02 to 0.03 of 40 ms on a lab (QUORUM and EACH_QUORUM, Cassandra 5.0.9)."""
USUAL_NODES, USUAL_CORES = 3, 8
"""Nodes of a data centre and cores of a node for which the work of the parameters is."""


def _slower(scenario: CassandraScenario, values: Values) -> Number:
    """Return the factor on work by the nodes of a data centre, in the geometric mean, and by the cores of a node.

    Nodes on one host have its cores, so that more of them are no larger cluster. Beside a busiest node, it has the
    factor of `_lanes`.
    """
    nodes = np.array([each for each in scenario.nodes_by_dc() if each])
    doublings = 0.0 if scenario.one_host else float(np.mean(np.log2(nodes / USUAL_NODES)))
    by_cores = (scenario.node_cores / USUAL_CORES) ** (1 - values["core_exponent"])
    return np.asarray(2 ** (doublings * (1 - values["node_exponent"])) * by_cores) * _lanes(scenario)[1]


def _lanes(scenario: CassandraScenario) -> tuple[int, float]:
    """Return the requests that a node works on at once, and a factor on their work, so that all are like the busiest.

    A node with 1.3 times the load is as full as one with 1.3 times fewer lanes. Lanes are whole, so work has the rest.
    """
    lanes, busiest = LANES_PER_CORE * scenario.node_cores, scenario.busiest
    if busiest is None or scenario.one_host:
        return lanes, 1.0
    fewer = math.ceil(lanes / busiest)
    return fewer, fewer * busiest / lanes


def _data_share(scenario: CassandraScenario, level: str, digest: Number) -> Number:
    """Return a replica's mean read cost relative to a data read: one replica sends data, the others a digest."""
    count = answers(level, scenario.rf_by_dc(), 0)
    return (1 + (count - 1) * digest) / count


def _links(scenario: CassandraScenario, values: Values) -> Exchanges:
    if scenario.encryption is None:
        return Exchanges()
    from capplan.systems.components.tls.prior import draws  # reads tables, and most layouts have no TLS

    work = draws(1)
    exchange = (2 * float(np.median(work.message_s)) + scenario.row_bytes * float(np.median(work.byte_s))) * values[
        "tls_factor"
    ]
    links = LINKS[scenario.encryption]
    return Exchanges(exchange if "client" in links else None, exchange if "internode" in links else None)


def pauses(
    scenario: CassandraScenario,
    values: Values,
    analysis: Analysis,
    rate_per_s: FloatArray,
    place: NDArray[np.intp] | None,
    down: tuple[int, ...] = (),
    cycle_s: FloatArray | None = None,
) -> dict[str, tuple[RareDelay, ...]]:
    """Return the delays by garbage-collection pauses of nodes, by class of the network; `down` as for `network`."""
    cluster = build_cluster(scenario, values, down)
    shares = served(scenario, cluster)
    utilisation = _utilisation(scenario, shares, analysis, rate_per_s)
    spare = _with_spare(scenario, cluster) if scenario.speculative_retry and "read" in scenario.levels() else 0.0
    wait_s = longest_wait_s(analysis, rate_per_s, scenario.speculative_retry or "") if spare else None
    if place is not None:
        rate_per_s, utilisation = rate_per_s[..., place], utilisation[..., place]
        wait_s = None if wait_s is None else wait_s[..., place]
    stops = pauses_of(scenario, cluster, shares, values, rate_per_s)
    needed, kind = needed_by_operation(scenario, cluster, shares), HOST if scenario.one_host else NODES
    costs = build_costs(scenario, values)
    asked = {operation: {operation: costs[operation]} for operation in needed}
    relative_need = relative_needs(scenario, cluster, shares, asked, analysis, kind, place)
    found: dict[str, tuple[RareDelay, ...]] = {}
    for operation, nodes in needed.items():
        # Replicas whose reads can go elsewhere; the coordinator is one of the nodes that are needed.
        spared = (nodes - 1) * spare if operation == "read" else 0.0
        again_s = np.inf if cycle_s is None else cycle_s * sum(cluster.alive) / nodes
        sent = sent_by_clients(again_s, stops)
        delays = partial(
            pause_delays,
            stops,
            utilisation,
            work=sent,
            sent=sent,
            relative_need=relative_need[operation],
            again_s=again_s,
        )
        found[operation] = delays(nodes - spared)
        if wait_s is not None and spared:
            found[operation] += tuple(each.at_most(wait_s) for each in delays(spared))
    return found


def closed_pauses(
    scenario: CassandraScenario, values: Values, analysis: Analysis, rate_per_s: FloatArray, cycle_s: FloatArray
) -> dict[str, tuple[RareDelay, ...]]:
    """Return the delays that pauses cause to closed clients; see `ClosedLoadTests`."""
    return pauses(scenario, values, analysis, rate_per_s, None, cycle_s=cycle_s)


def _utilisation(
    scenario: CassandraScenario, shares: Mapping[int, float], analysis: Analysis, rate_per_s: FloatArray
) -> FloatArray:
    """Return the mean utilisation of a node (..., draws)."""
    stations = [HOST] if scenario.one_host else [f"cassandra/dc{dc + 1}" for dc in shares]
    return np.asarray(np.minimum(rate_per_s * np.average([analysis.load(each) for each in stations], axis=0), 1.0))


def left_by_pauses(
    scenario: CassandraScenario,
    values: Values,
    analysis: Analysis,
    rate_per_s: FloatArray,
    cycle_s: FloatArray,
    response_s: FloatArray,
) -> FloatArray:
    """Return the throughput of closed clients whom pauses hold; see `ClosedLoadTests`."""
    cluster = build_cluster(scenario, values)
    shares = served(scenario, cluster)
    needed, statements = needed_by_operation(scenario, cluster, shares), scenario.statements()
    spare = _with_spare(scenario, cluster) if scenario.speculative_retry and "read" in needed else 0.0
    if spare:  # these replicas hold nobody for long
        needed["read"] -= (needed["read"] - 1) * spare
    alone_s = analysis.averaged(analysis.unloaded)
    far_s = sum((analysis.share[name] * each[:, 0] for name, each in analysis.delays.items()), np.zeros(1))
    load = ClosedLoad(
        nodes=sum(cluster.alive),
        needed=sum(often * needed[operation] for operation, often in statements.items()),
        cycle_s=cycle_s,
        queueing_s=np.maximum(response_s - alone_s, 0.0),
        utilisation=_utilisation(scenario, shares, analysis, rate_per_s),
        fullest=np.minimum(rate_per_s / analysis.drift_per_s, 1.0),
        at_nodes_s=np.maximum(alone_s - far_s, 0.0),
    )
    stops = pauses_of(scenario, cluster, shares, values, rate_per_s)
    lost, left = lost_by_holding(stops, load), np.ones(rate_per_s.shape)
    for _ in range(_ROUNDS):  # fewer requests make fewer pauses: x = 1 / (1 + c x), where c hardly depends on x
        share = pauses_of(scenario, cluster, shares, values, rate_per_s * left).share
        left = 2 / (1 + np.sqrt(1 + 4 * lost * share / np.maximum(stops.share * left, 1e-12)))
    return left


def node_pauses(scenario: CassandraScenario, values: Values, rate_per_s: Number) -> NodePauses:
    """Return the pauses of a mean node at a mean rate."""
    cluster = build_cluster(scenario, values)
    return pauses_of(scenario, cluster, served(scenario, cluster), values, rate_per_s)


def paused_network(scenario: CassandraScenario, values: Values, rate_per_s: float) -> Network:
    """Compose the network for a simulation, with the pauses of nodes."""
    stops = node_pauses(scenario, values, rate_per_s)
    return paused(network(scenario, values, rate_per_s), HOST if scenario.one_host else NODES, stops)


def variation(values: Values, utilisation: FloatArray) -> FloatArray:
    """Return how much node speed varies during a run, as a standard deviation of its log; busy nodes vary more."""
    return np.asarray(np.minimum(values["variation"] * utilisation, _MOST_VARIATION))
