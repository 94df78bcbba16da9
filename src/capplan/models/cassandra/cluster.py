"""A Cassandra cluster as steps: what its coordinators, replicas and forwarders do for a read and for a write.

Facts of the 3.11 line (Apache Cassandra documentation and cassandra.yaml of 3.11): a read contacts as many replicas as
its level needs, nearest first, and with `dclocal_read_repair_chance` (a table's default: 0.1) all local ones; a write
goes to all replicas, to another data centre through one of its replicas, which forwards it while its peers answer the
coordinator directly; the coordinator holds one of `native_transport_max_threads` (128) for the whole wait.

Not modelled, and so not hidden in a parameter either: speculative retry, digest mismatches, hints, timeouts.
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
STAGES = 2  # of every service's Erlang law: SCV 0.5, a guess


@dataclass(frozen=True)
class Costs:
    """What operations cost a node, in seconds of one core (numbers or arrays over draws).

    Attributes
    ----------
    coordinator, read, mutation
        Work on the response path: parsing and coordinating one statement, reading one replica, applying one mutation.
    unseen
        Work that nobody waits for (garbage collection, flush and compaction, the kernel), as a share of the work above.
    storage
        Seconds of the storage path (commit log, flush, compaction) per mutation, detached.
    links
        What encrypting links costs at each of their ends by operation (`read`, `write`), in seconds for an exchange.
    """

    coordinator: Number
    read: Number
    mutation: Number
    unseen: Number
    storage: Number
    links: Mapping[str, Exchanges] = field(default_factory=dict)

    def with_links(self, shares: Exchanges) -> Costs:
        """Return them with encrypted links that cost shares of a plain operation: with one replica, all its work."""
        by_operation = {
            operation: shares.in_seconds(self.coordinator + replica * (1 + self.unseen))
            for operation, replica in (("read", self.read), ("write", self.mutation))
        }
        return replace(self, links=by_operation)


@dataclass(frozen=True)
class Cluster:
    """Where the replicas are.

    Attributes
    ----------
    nodes : tuple of int
        Nodes of each living data centre.
    rf : int
        Replicas in each data centre.
    cores : int
        Cores of each node.
    lan_s : number
        One-way time between two machines of a data centre, seconds.
    wan_s : tuple of tuples of numbers
        One-way time between data centres, seconds.
    down : set of names
        Nodes that do not answer. The ring and the consistency levels still count them.
    """

    nodes: tuple[int, ...]
    rf: int
    cores: int
    lan_s: Number
    wan_s: tuple[tuple[Number, ...], ...]
    down: frozenset[str] = frozenset()

    def replicas(self, dc: int, first: int) -> tuple[str, ...]:
        """Names of the living replicas in `dc` of the token range that starts at node `first`: the next on the ring."""
        names = (node_name(dc, (first + k) % self.nodes[dc]) for k in range(self.rf))
        return tuple(name for name in names if name not in self.down)

    def living(self, dc: int) -> tuple[str, ...]:
        """Names of the nodes of `dc` that answer."""
        names = (node_name(dc, node) for node in range(self.nodes[dc]))
        return tuple(name for name in names if name not in self.down)

    def nearest_first(self, dc: int) -> list[int]:
        """Other data centres; those equally near come in turn, so that no one gets the reads of all."""
        count = len(self.nodes)
        others = [(dc + step) % count for step in range(1, count)]
        return sorted(others, key=lambda other: _scalar(self.wan_s[dc][other]))

    def need(self, level: str, dc: int) -> Need:
        """Answers that `level` needs of a coordinator in `dc`."""
        return need(level, [self.rf] * len(self.nodes), dc)


def node_name(dc: int, node: int) -> str:
    """Name of a node's cores as a station."""
    return f"cassandra/dc{dc + 1}/{node + 1}"


def stations(cluster: Cluster) -> tuple[Station, ...]:
    """Return the cores and the storage path of each living node."""
    names = _all_living(cluster)
    cores = [Station(name, cluster.cores, discipline="ps") for name in names]
    return (*cores, *(Station(_storage(name), 1) for name in names))


def pools(cluster: Cluster) -> tuple[Pool, ...]:
    """Return each living node's native-transport threads."""
    return tuple(Pool(_native(name), NATIVE_TRANSPORT_THREADS) for name in _all_living(cluster))


def _all_living(cluster: Cluster) -> list[str]:
    return [name for dc in range(len(cluster.nodes)) for name in cluster.living(dc)]


def statement(
    cluster: Cluster, costs: Costs, dc: int, level: str, operation: str, coordinators: int | None = None
) -> Step:
    """Return one read or write of one row, from a client in `dc`, by a coordinator there that need not be a replica.

    With `coordinators` only so many of the nodes there coordinate, the first ones.

    Raises
    ------
    RefusedError
        For any other operation or a level that is not modelled, by name.
    InputError
        When some token range has too few living replicas for the level.
    """
    if operation not in ("read", "write"):
        raise RefusedError(
            f"{operation!r} is refused: reads and writes of one row are modelled; no plain write costs it"
        )
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
    """Token ranges, by their first node in each data centre (modulo its nodes): one when every node has every row."""
    return range(1) if all(count == cluster.rf for count in cluster.nodes) else range(lcm(*cluster.nodes))


def _check_living(cluster: Cluster, wanted: Need, dc: int, level: str) -> None:
    for first in _ranges(cluster):
        alive = [len(cluster.replicas(each, first)) for each in range(len(cluster.nodes))]
        short = [each for each, count in wanted.by_dc.items() if alive[each] < count]
        if short or sum(alive) < wanted.total or not cluster.living(dc):
            where = f" in data centre {short[0] + 1}" if short else ""
            raise InputError(f"{level} cannot be met with these nodes down: too few replicas of a row answer{where}")


class _Statement:
    """Builds the steps of one kind of statement; what several token ranges do alike is built once and shared."""

    def __init__(self, cluster: Cluster, costs: Costs, dc: int, wanted: Need, exchange_s: Number | None) -> None:
        self.cluster, self.costs, self.dc, self.wanted = cluster, costs, dc, wanted
        self.exchange_s = exchange_s  # of an encrypted link between nodes, at one end
        self.built: dict[tuple[object, ...], Step] = {}

    def _once(self, key: tuple[object, ...], build: Callable[[], Step]) -> Step:
        if key not in self.built:
            self.built[key] = build()
        return self.built[key]

    def read(self, me: str, first: int) -> Step:
        """Return a read of the range that starts at node `first`, coordinated by `me`: nearest replicas first."""
        count = self.wanted.total or self.wanted.by_dc[self.dc]
        local = _from(me, self.cluster.replicas(self.dc, first))
        asked = local if count <= len(local) else (*local, *self._remote(_number(me) + first, first))
        return self._once(
            ("read", asked, self._seen(me, me in local)), lambda: self._read(asked, (me, len(local)), count)
        )

    def _read(self, asked: tuple[str, ...], place: tuple[str, int], count: int) -> Step:
        """Return a read that asks `count` replicas; `place` is the coordinator and how many of `asked` are near it."""
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
        """Replicas elsewhere, nearest data centres first."""
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
        """Return what tells coordinators apart: each, where it works on encrypted messages, or only what it is."""
        return otherwise if self.exchange_s is None else me

    def _busy_s(self, work_s: Number, messages: int) -> Number:
        """Return a node's work with that on so many messages, sent or received, where they are encrypted."""
        return work_s if self.exchange_s is None or not messages else work_s + self.exchange_s * (messages / MESSAGES)

    def _with_own(self, name: str, messages: int, step: Step) -> Step:
        """Return a step after a node's own work on so many messages; the step itself where they are plain."""
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
            self._with_own(me, 1 + len(chosen[0]), self._forwarded(other, *chosen))  # one there, an answer from each
            for other, chosen in forwarders.items()
        ]
        groups = [Group("all", self.wanted.total)] if self.wanted.total else []
        groups += [Group(f"dc{d + 1}", count) for d, count in self.wanted.by_dc.items()]
        return CountdownLatch(tuple(groups), ForkJoin(tuple(branches), 0, name="replicas"), name="answers")

    def _forwarded(self, other: int, replicas: tuple[str, ...], forwarder: str) -> Step:
        """Return a write's way to another data centre: one replica takes it and passes it on to its peers."""

        def build() -> Step:
            away, hop = _hop(self.cluster.wan_s[self.dc][other]), _hop(self.cluster.lan_s)
            branches = [
                self._apply(name, other, (), (away,), 1)
                if name == forwarder
                else self._apply(name, other, (hop,), (away,), MESSAGES)
                for name in _from(forwarder, replicas)
            ]
            passed = self._with_own(forwarder, len(replicas), ForkJoin(tuple(branches), 0))  # got, and sent to peers
            return Steps((away, passed), name=f"to-dc{other + 1}")

        return self._once(("forwarded", replicas, forwarder), build)

    def _apply(self, name: str, dc: int, there: tuple[Step, ...], back: tuple[Step, ...], messages: int = 0) -> Step:
        """Return one replica's mutation, the work that nobody waits for, and its answer where the level counts it.

        `messages` is how many it works on, where they are encrypted.
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
    """Order names so that `first`, if among them, comes first and the rest follow on the ring."""
    start = names.index(first) if first in names else 0
    return (*names[start:], *names[:start])


def _turned(names: tuple[str, ...], by: int) -> tuple[str, ...]:
    """Start the ring elsewhere, so that coordinators ask different replicas of another data centre."""
    return tuple(names[(place + by) % len(names)] for place in range(len(names)))


def _number(name: str) -> int:
    return int(name.rsplit("/", 1)[1])


def _dc_of(name: str) -> int:
    return int(name.split("/")[1].removeprefix("dc")) - 1


def _work(mean_s: Number) -> Erlang:
    return Erlang(mean_s, STAGES)


def stays_local(cluster: Cluster, level: str, dc: int) -> bool:
    """Whether reads at `level` ask replicas of the coordinator's data centre only, when all live."""
    wanted = cluster.need(level, dc)
    return (wanted.total or wanted.by_dc[dc]) <= cluster.rf


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
