"""Limits on requests under way: those of drivers and of native-transport threads, and how requests wait for them.

A driver has connections to each node, and each carries so many requests at a time: `connection.pool.local.size` and
`connection.max-requests-per-connection` of the Java driver 4, `coreConnectionsPerHost` and `maxRequestsPerConnection`
of the Node.js driver. If the connections to a node are full, the driver goes on to the next node. So the requests under
way in a data centre are limited by all its nodes together, and a request that goes elsewhere than to a replica is not
modelled. A node coordinates as many requests as it has native-transport threads, each from its arrival to its answer.

Beyond a limit requests wait, as threads do that block, and those behind a throttler of the Java driver. Without one,
drivers fail a request that finds no node: an open rate above the capacity then has errors instead of a queue.

Of both limits the tighter one counts. Drivers that send a node no more requests than it has threads never make them
wait there; drivers that send more move the wait to the node, which changes no total.

The solver takes the threads of all nodes as one pool. Beside the engine, throughput and means were 2 % off with 32
threads or more, and up to 16 % with 2. Clients beyond the threads wait unevenly: percentiles were up to 35 % off.

References
----------
DataStax, *Java Driver* 4, "Connection pooling" and "Request throttling"; *Node.js Driver* 4, "Connection pooling".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from functools import cached_property

import numpy as np

from capplan.calibration.case.solution import Figures, Solution, kind_of
from capplan.models.cassandra.cluster import Cluster, pools
from capplan.models.language.scenario import MOST_CLIENTS
from capplan.models.language.station import Pool
from capplan.models.language.units import FloatArray
from capplan.models.solver.operating_point import MAX_DROP_RATE, OperatingPoint, SteadyState
from capplan.systems.cassandra.scenario import CassandraScenario

DRIVER, NATIVE = "driver", "native-transport"
_ENDLESS = 1.01 * MAX_DROP_RATE  # share of the requests that never get a turn, from which the queue grows for ever


def limit_of_drivers(scenario: CassandraScenario) -> int | None:
    """Return the requests that drivers may have under way at each node; None if nothing or its threads limit them."""
    each, threads = scenario.in_flight_at_node(), scenario.native_threads
    return None if each is None or (threads is not None and threads < each) else each


def limit_of_threads(scenario: CassandraScenario) -> int | None:
    """Return the requests that a node coordinates at once; None if nothing or drivers limit them."""
    return scenario.native_threads if limit_of_drivers(scenario) is None else None


def may_wait(scenario: CassandraScenario) -> bool:
    """Whether requests may wait at a limit: at any rate, or with more closed clients than it lets through at least.

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


def driver_pools(scenario: CassandraScenario, cluster: Cluster, dcs: Sequence[int]) -> dict[int, Pool]:
    """Return the requests that drivers may have under way, by data centre of the clients; none without a limit.

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
    # More than clients can be is as good as no limit, and the solver needs a queue that ends somewhere.
    sizes = {dc: min(each * cluster.alive[dc], MOST_CLIENTS) for dc in dcs}
    return {dc: Pool(f"{DRIVER}/dc{dc + 1}", size, MOST_CLIENTS) for dc, size in sizes.items()}


def node_pools(scenario: CassandraScenario, cluster: Cluster) -> tuple[Pool, ...]:
    """Return the native-transport threads of the nodes, and the space of their memtables; none without a limit."""
    threads = limit_of_threads(scenario)
    if threads is None:
        return ()
    return tuple(
        replace(pool, size=threads, queue_limit=MOST_CLIENTS) if kind_of(pool.name) == NATIVE else pool
        for pool in pools(cluster)
    )


def limit_in_words(scenario: CassandraScenario) -> str:
    """Return the limit of a layout in words; empty without one."""
    each, threads = limit_of_drivers(scenario), limit_of_threads(scenario)
    if each is not None:
        return f"at most {each:,} request{'s' * (each > 1)} in flight per node"
    return "" if threads is None else f"{threads:,} native-transport thread{'s' * (threads > 1)} per node"


class WaitingFigures(Figures):
    """Figures of requests that wait for their turn however long it takes: none are dropped."""

    @cached_property
    def point(self) -> OperatingPoint:
        """The solved operating point; beyond the capacity, times have no bound."""
        found = super().point
        return replace(found, states=tuple(map(_unbounded, found.states)))

    @property
    def drop_rate(self) -> FloatArray:
        """Share of the requests that are dropped (..., draws): none."""
        return np.zeros_like(super().drop_rate)

    @property
    def is_pushed_back(self) -> bool:
        """Whether a station pushes back once its buffer is full; the queue of clients is never full."""
        return False


class WaitingSolution(Solution):
    """A layout whose requests wait for their turn however long it takes."""

    @classmethod
    def of(cls, solution: Solution) -> WaitingSolution:
        """Return an analysed layout as one of this kind."""
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
    """Return a solution whose requests wait for their turn, if anything limits them."""
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
