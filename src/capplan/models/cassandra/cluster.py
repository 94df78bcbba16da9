"""A Cassandra cluster: stations, pools, and the steps of reads and writes at coordinators, replicas and forwarders.

The model follows Apache Cassandra 3.11 (documentation and cassandra.yaml):

- A read contacts as many replicas as its consistency level needs, nearest first. With probability
  `dclocal_read_repair_chance` (0.1 by default) it contacts all local replicas.
- A write goes to all replicas. In another data centre one replica receives it and forwards it to its peers, which
  answer the coordinator directly.
- The coordinator occupies one of `native_transport_max_threads` (128) threads until it answers.

Speculative retries, digest mismatches, hints and timeouts are not modelled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import lcm

from capplan.models.cassandra.consistency import Need, check_level, need
from capplan.models.cassandra.encryption import MESSAGES, Exchanges
from capplan.models.errors import InputError, RefusedError
from capplan.models.language.distribution import Deterministic, Erlang
from capplan.models.language.station import Pool, Station
from capplan.models.language.step import (
    Acquire,
    Choice,
    CountdownLatch,
    Delay,
    ForkJoin,
    Group,
    Route,
    Signal,
    Step,
    Visit,
)
from capplan.models.language.step import (
    Sequence as Steps,
)
from capplan.models.language.units import Number

NATIVE_TRANSPORT_THREADS = 128
LOCAL_READ_REPAIR_CHANCE = 0.1
STAGES = 2  # of the Erlang distribution of all service times: SCV 0.5, a guess


@dataclass(frozen=True)
class Costs:
    """CPU costs of operations at a node, in seconds of one core.

    Attributes
    ----------
    coordinator, read, mutation : number or array (draws,)
        Costs on the response path: coordinating one statement, reading at one replica, applying one mutation.
    unseen : number or array (draws,)
        Costs that no request waits for (garbage collection, flush, compaction, kernel), as a share of the costs above.
    storage : number or array (draws,)
        Time of the storage path (commit log, flush, compaction) per mutation, detached; seconds.
    links : mapping of Exchanges
        Encryption costs of one exchange at each end of a link, by operation (`read`, `write`); seconds.
    """

    coordinator: Number
    read: Number
    mutation: Number
    unseen: Number
    storage: Number
    links: Mapping[str, Exchanges] = field(default_factory=dict)

    def with_links(self, shares: Exchanges) -> Costs:
        """Add the costs of encrypted links.

        Parameters
        ----------
        shares : Exchanges
            Costs of one exchange, as shares of a plain operation with one replica, unseen costs included.

        Returns
        -------
        Costs
        """
        by_operation = {
            operation: shares.in_seconds(self.coordinator + replica * (1 + self.unseen))
            for operation, replica in (("read", self.read), ("write", self.mutation))
        }
        return replace(self, links=by_operation)


@dataclass(frozen=True)
class Cluster:
    """The layout of a Cassandra cluster.

    Attributes
    ----------
    nodes : tuple of int
        Number of nodes in each data centre.
    rf : tuple of int
        Replicas of each row in each data centre.
    cores : int
        Cores of each node.
    lan_s : number or array (draws,)
        One-way time between two machines of a data centre, in seconds.
    wan_s : tuple of tuples of number or array (draws,)
        One-way times between data centres, in seconds.
    down : frozenset of str
        Names of nodes that are down. The ring and the consistency levels still count them.
    """

    nodes: tuple[int, ...]
    rf: tuple[int, ...]
    cores: int
    lan_s: Number
    wan_s: tuple[tuple[Number, ...], ...]
    down: frozenset[str] = frozenset()

    def replicas(self, dc: int, first: int) -> tuple[str, ...]:
        """Return the live replicas in `dc` of the token range that starts at node `first`, in ring order."""
        names = (node_name(dc, (first + k) % self.nodes[dc]) for k in range(self.rf[dc]))
        return tuple(name for name in names if name not in self.down)

    def living(self, dc: int) -> tuple[str, ...]:
        """Return the names of the live nodes of `dc`."""
        names = (node_name(dc, node) for node in range(self.nodes[dc]))
        return tuple(name for name in names if name not in self.down)

    def nearest_first(self, dc: int) -> list[int]:
        """Return the other data centres, nearest first; ties rotate with `dc` to spread the reads."""
        count = len(self.nodes)
        others = [(dc + step) % count for step in range(1, count)]
        return sorted(others, key=lambda other: _scalar(self.wan_s[dc][other]))

    def need(self, level: str, dc: int) -> Need:
        """Return the answers that a coordinator in `dc` needs for a consistency level."""
        return need(level, self.rf, dc)


def node_name(dc: int, node: int) -> str:
    """Return the name of a node, which is that of its station; `dc` and `node` count from 0."""
    return f"cassandra/dc{dc + 1}/{node + 1}"


def stations(cluster: Cluster) -> tuple[Station, ...]:
    """Return the stations of a cluster: the cores and the storage path of each live node.

    Parameters
    ----------
    cluster : Cluster
        The layout.

    Returns
    -------
    tuple of Station
        All cores first, as processor-sharing stations, then all storage paths, with one fixed-rate server each.
    """
    names = _all_living(cluster)
    cores = [Station(name, cluster.cores, discipline="ps") for name in names]
    return (*cores, *(Station(_storage(name), 1) for name in names))


def pools(cluster: Cluster) -> tuple[Pool, ...]:
    """Return the pools of a cluster: the native transport threads of each live node.

    Parameters
    ----------
    cluster : Cluster
        The layout.

    Returns
    -------
    tuple of Pool
    """
    return tuple(Pool(_native(name), NATIVE_TRANSPORT_THREADS) for name in _all_living(cluster))


def _all_living(cluster: Cluster) -> list[str]:
    return [name for dc in range(len(cluster.nodes)) for name in cluster.living(dc)]


def statement(
    cluster: Cluster, costs: Costs, dc: int, level: str, operation: str, coordinators: int | None = None
) -> Step:
    """Return the steps of one read or write of one row.

    A client in `dc` sends it to the coordinators there in turn; a coordinator need not be a replica.

    Parameters
    ----------
    cluster : Cluster
        The layout.
    costs : Costs
        CPU costs of operations.
    dc : int
        Data centre of the client, from 0.
    level : str
        Consistency level.
    operation : {"read", "write"}
        What the statement does.
    coordinators : int, optional
        Number of nodes that coordinate, the first ones of the data centre; all if left out.

    Returns
    -------
    Step

    Raises
    ------
    RefusedError
        If the operation or the level is not modelled.
    InputError
        If a token range has too few live replicas for the level.
    """
    if operation not in ("read", "write"):
        raise RefusedError(f"operation {operation!r} is refused: only reads and writes of one row are modelled")
    wanted = cluster.need(check_level(level, operation), dc)
    _check_living(cluster, wanted, dc, level)
    links = costs.links.get(operation, Exchanges())
    parse_s = costs.coordinator if links.client is None else costs.coordinator + links.client
    builder = _Statement(cluster, costs, dc, wanted, links.internode)
    build = builder.read if operation == "read" else builder.write
    by_coordinator = []
    for name in cluster.living(dc)[:coordinators]:
        ranges = tuple(build(name, first) for first in _ranges(cluster))
        inside = Steps((Visit(name, _work(parse_s), name="parse"), Route("token_aware", ranges, name="range")))
        by_coordinator.append(Steps((_hop(cluster.lan_s), Acquire(_native(name), inside), _hop(cluster.lan_s))))
    return Route("round_robin", tuple(by_coordinator), name=operation)


def _ranges(cluster: Cluster) -> range:
    """Return the token ranges by their first node, modulo the nodes of each DC; one range if all nodes own all rows."""
    return range(1) if cluster.nodes == cluster.rf else range(lcm(*cluster.nodes))


def _check_living(cluster: Cluster, wanted: Need, dc: int, level: str) -> None:
    for first in _ranges(cluster):
        alive = [len(cluster.replicas(each, first)) for each in range(len(cluster.nodes))]
        short = [each for each, count in wanted.by_dc.items() if alive[each] < count]
        if short or sum(alive) < wanted.total or not cluster.living(dc):
            where = f" in data centre {short[0] + 1}" if short else ""
            raise InputError(f"{level} cannot be met with these nodes down: a row has too few live replicas{where}")


class _Statement:
    """Builds the steps of one kind of statement; token ranges share equal parts."""

    def __init__(self, cluster: Cluster, costs: Costs, dc: int, wanted: Need, exchange_s: Number | None) -> None:
        self.cluster, self.costs, self.dc, self.wanted = cluster, costs, dc, wanted
        self.exchange_s = exchange_s  # encryption cost at one end of a link between nodes
        self.built: dict[tuple[object, ...], Step] = {}

    def _once(self, key: tuple[object, ...], build: Callable[[], Step]) -> Step:
        if key not in self.built:
            self.built[key] = build()
        return self.built[key]

    def read(self, me: str, first: int) -> Step:
        """Return a read of the range that starts at node `first`, coordinated by `me`."""
        count = self.wanted.total or self.wanted.by_dc[self.dc]
        local = _from(me, self.cluster.replicas(self.dc, first))
        asked = local if count <= len(local) else (*local, *self._remote(_number(me) + first, first))
        return self._once(
            ("read", asked, self._seen(me, me in local)), lambda: self._read(asked, (me, len(local)), count)
        )

    def _read(self, asked: tuple[str, ...], place: tuple[str, int], count: int) -> Step:
        """Return a read from `count` replicas; `place` is the coordinator and the number of local replicas."""
        me, near = place
        contacted = tuple(
            self._read_at(name, True) if name == me else self._with_own(me, MESSAGES, self._read_at(name, False))
            for name in asked
        )
        plain = ForkJoin(contacted[:count], count, name="replicas")
        if count >= near:
            return plain
        repaired = ForkJoin(contacted, count, name="replicas")
        return Choice((1 - LOCAL_READ_REPAIR_CHANCE, LOCAL_READ_REPAIR_CHANCE), (plain, repaired), name="repair")

    def _remote(self, turn: int, first: int) -> tuple[str, ...]:
        """Return the replicas in other data centres, nearest first."""
        return tuple(
            name
            for other in self.cluster.nearest_first(self.dc)
            for name in _turned(self.cluster.replicas(other, first), turn)
        )

    def _read_at(self, name: str, here: bool) -> Step:
        def build() -> Step:
            way = () if here else (Delay(Deterministic(2 * self._one_way_s(name))),)
            read, unseen = self.costs.read, self.costs.read * self.costs.unseen
            work = Visit(name, _work(self._busy_s(read, 0 if here else MESSAGES)), name=_slot(name))
            return Steps((*way, work, _unseen(name, unseen)))

        return self._once(("read at", name, here), build)

    def _seen(self, me: str, otherwise: object) -> object:
        """Return what distinguishes coordinators: the node itself if it encrypts messages, otherwise `otherwise`."""
        return otherwise if self.exchange_s is None else me

    def _busy_s(self, work_s: Number, messages: int) -> Number:
        """Add the cost of encrypting messages, sent or received, to a node's work."""
        return work_s if self.exchange_s is None or not messages else work_s + self.exchange_s * (messages / MESSAGES)

    def _with_own(self, name: str, messages: int, step: Step) -> Step:
        """Put a node's encryption of messages before a step; without encryption return the step itself."""
        if self.exchange_s is None:
            return step
        return Steps((Visit(name, _work(self.exchange_s * (messages / MESSAGES)), name="messages"), step))

    def _one_way_s(self, name: str) -> Number:
        other = _dc_of(name)
        return self.cluster.lan_s if other == self.dc else self.cluster.wan_s[self.dc][other]

    def write(self, me: str, first: int) -> Step:
        """Return a write to the range that starts at node `first`, coordinated by `me`."""
        local = _from(me, self.cluster.replicas(self.dc, first))
        rings = {dc: self.cluster.replicas(dc, first) for dc in range(len(self.cluster.nodes)) if dc != self.dc}
        turn = _number(me) + first
        forwarders = {dc: (ring, ring[turn % len(ring)]) for dc, ring in rings.items() if ring}
        key = ("write", local, self._seen(me, me in local), *forwarders.values())
        return self._once(key, lambda: self._write(me, local, forwarders))

    def _write(self, me: str, local: tuple[str, ...], forwarders: Mapping[int, tuple[tuple[str, ...], str]]) -> Step:
        hop = _hop(self.cluster.lan_s)
        branches = [
            self._apply(name, self.dc, (), ())
            if name == me
            else self._with_own(me, MESSAGES, self._apply(name, self.dc, (hop,), (hop,), MESSAGES))
            for name in local
        ]
        branches += [
            self._with_own(me, 1 + len(chosen[0]), self._forwarded(other, *chosen))  # one sent, one answer per replica
            for other, chosen in forwarders.items()
        ]
        groups = [Group("all", self.wanted.total)] if self.wanted.total else []
        groups += [Group(f"dc{d + 1}", count) for d, count in self.wanted.by_dc.items()]
        return CountdownLatch(tuple(groups), ForkJoin(tuple(branches), 0, name="replicas"), name="answers")

    def _forwarded(self, other: int, replicas: tuple[str, ...], forwarder: str) -> Step:
        """Return a write in another data centre: one replica receives it and forwards it to its peers."""

        def build() -> Step:
            away, hop = _hop(self.cluster.wan_s[self.dc][other]), _hop(self.cluster.lan_s)
            branches = [
                self._apply(name, other, (), (away,), 1)
                if name == forwarder
                else self._apply(name, other, (hop,), (away,), MESSAGES)
                for name in _from(forwarder, replicas)
            ]
            passed = self._with_own(forwarder, len(replicas), ForkJoin(tuple(branches), 0))  # received and forwarded
            return Steps((away, passed), name=f"to-dc{other + 1}")

        return self._once(("forwarded", replicas, forwarder), build)

    def _apply(self, name: str, dc: int, there: tuple[Step, ...], back: tuple[Step, ...], messages: int = 0) -> Step:
        """Return the mutation at one replica, its detached work, and its answer if the level counts it.

        The replica encrypts or decrypts `messages` messages if the links are encrypted.
        """
        costs = self.costs

        def build() -> Step:
            later = ForkJoin((Visit(_storage(name), Deterministic(costs.storage), name="storage"),), 0)
            work = Visit(name, _work(self._busy_s(costs.mutation, messages)), name=_slot(name))
            unseen = _unseen(name, costs.mutation * costs.unseen)
            return Steps((*there, work, unseen, later, *self._answer(dc, back)))

        return self._once(("apply", name, len(there)), build)

    def _answer(self, dc: int, back: tuple[Step, ...]) -> tuple[Step, ...]:
        if self.wanted.total:
            return (*back, Signal("all"))
        return (*back, Signal(f"dc{dc + 1}")) if dc in self.wanted.by_dc else ()


def _unseen(name: str, demand_s: Number) -> Step:
    return ForkJoin((Visit(name, _work(demand_s), name="unseen"),), 0)


def _from(first: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """Rotate ring-ordered names so that `first` comes first, if it is among them."""
    start = names.index(first) if first in names else 0
    return (*names[start:], *names[:start])


def _turned(names: tuple[str, ...], by: int) -> tuple[str, ...]:
    """Rotate the ring, so that coordinators read from different replicas of another data centre."""
    return tuple(names[(place + by) % len(names)] for place in range(len(names)))


def _number(name: str) -> int:
    return int(name.rsplit("/", 1)[1])


def _dc_of(name: str) -> int:
    return int(name.split("/")[1].removeprefix("dc")) - 1


def _work(mean_s: Number) -> Erlang:
    return Erlang(mean_s, STAGES)


def stays_local(cluster: Cluster, level: str, dc: int) -> bool:
    """Whether reads at `level` need only replicas of the coordinator's data centre, if all are up."""
    wanted = cluster.need(level, dc)
    return (wanted.total or wanted.by_dc[dc]) <= cluster.rf[dc]


def _hop(one_way_s: Number) -> Delay:
    return Delay(Deterministic(one_way_s))


def _slot(name: str) -> str:
    return name.replace("/", "-")


def _storage(name: str) -> str:
    return name.replace("cassandra/", "cassandra-storage/", 1)


def _native(name: str) -> str:
    return name.replace("cassandra/", "native-transport/", 1)


def _scalar(value: Number) -> float:
    return float(value if isinstance(value, (int, float)) else value.flat[0])
