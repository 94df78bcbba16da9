"""A Cassandra cluster as steps: what its coordinators, replicas and forwarders do for a read and for a write.

Facts of the 3.11 line (Apache Cassandra documentation and cassandra.yaml of 3.11): a read contacts as many replicas as
its level needs, nearest first, and with `dclocal_read_repair_chance` (a table's default: 0.1) all local ones; a write
goes to all replicas, to another data centre through one of its replicas, which forwards it while its peers answer the
coordinator directly; the coordinator holds one of `native_transport_max_threads` (128) for the whole wait.

Not modelled, and so not hidden in a parameter either: speculative retry, digest mismatches, hints, timeouts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from capplan.models.consistency import Need, need
from capplan.models.distribution import Deterministic, Erlang
from capplan.models.errors import RefusedError
from capplan.models.quantity import Number
from capplan.models.station import Pool, Station
from capplan.models.step import (
    Choice,
    Delay,
    ForkJoin,
    Group,
    Hold,
    Latch,
    Route,
    Signal,
    Step,
    Visit,
)
from capplan.models.step import (
    Sequence as Steps,
)

NATIVE_TRANSPORT_THREADS = 128
LOCAL_READ_REPAIR_CHANCE = 0.1
_STAGES = 2  # of every service's Erlang law: SCV 0.5, a guess


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
    """

    coordinator: Number
    read: Number
    mutation: Number
    unseen: Number
    storage: Number


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


def statement(cluster: Cluster, costs: Costs, dc: int, level: str, operation: str) -> Step:
    """Return one read or write of one row, from a client in `dc`, by a coordinator there that need not be a replica.

    Raises
    ------
    RefusedError
        For any other operation, by name.
    """
    if operation not in ("read", "write"):
        raise RefusedError(
            f"{operation!r} is refused: reads and writes of one row are modelled; no plain write costs it"
        )
    build = _read if operation == "read" else _write
    by_coordinator = []
    for name in cluster.living(dc):
        ranges = tuple(build(cluster, costs, dc, name, first, level) for first in _ranges(cluster, dc))
        inside = Steps(
            (Visit(name, _work(costs.coordinator), name="parse"), Route("token_aware", ranges, name="range"))
        )
        by_coordinator.append(Steps((_hop(cluster.lan_s), Hold(_native(name), inside), _hop(cluster.lan_s))))
    return Route("round_robin", tuple(by_coordinator), name=operation)


def _ranges(cluster: Cluster, dc: int) -> range:
    """Token ranges, by their first node: one when every node has every row."""
    return range(1) if cluster.nodes[dc] == cluster.rf else range(cluster.nodes[dc])


def _read(cluster: Cluster, costs: Costs, dc: int, me: str, first: int, level: str) -> Step:
    wanted = cluster.need(level, dc)
    count = wanted.total or wanted.by_dc[dc]
    local = _from(me, cluster.replicas(dc, first))
    contacted = [_read_at(costs, name, _away(name == me, cluster.lan_s)) for name in local]
    for other in _nearest_first(cluster, dc):
        remote = cluster.replicas(other, first % cluster.nodes[other])
        contacted += [_read_at(costs, name, _away(False, cluster.wan_s[dc][other])) for name in remote]
    plain = ForkJoin(tuple(contacted[:count]), count, name="replicas")
    if count >= len(local):
        return plain
    repaired = ForkJoin(tuple(contacted[: len(local)]), count, name="replicas")
    return Choice((1 - LOCAL_READ_REPAIR_CHANCE, LOCAL_READ_REPAIR_CHANCE), (plain, repaired), name="repair")


def _nearest_first(cluster: Cluster, dc: int) -> list[int]:
    others = [other for other in range(len(cluster.nodes)) if other != dc]
    return sorted(others, key=lambda other: _scalar(cluster.wan_s[dc][other]))


def _away(here: bool, one_way_s: Number) -> tuple[Step, ...]:
    """Return the way there and back, as one delay before the work."""
    return () if here else (Delay(Deterministic(2 * one_way_s)),)


def _read_at(costs: Costs, name: str, way: tuple[Step, ...]) -> Step:
    return Steps((*way, Visit(name, _work(costs.read), name=_slot(name)), *_unseen(name, costs.read * costs.unseen)))


def _write(cluster: Cluster, costs: Costs, dc: int, me: str, first: int, level: str) -> Step:
    wanted = cluster.need(level, dc)
    branches: list[Step] = []
    for name in _from(me, cluster.replicas(dc, first)):
        hop = () if name == me else (_hop(cluster.lan_s),)
        branches.append(Steps((*hop, *_apply(costs, name, _answer(wanted, dc, hop)))))
    place = int(me.rsplit("/", 1)[1]) + first
    others = [other for other in range(len(cluster.nodes)) if other != dc and cluster.living(other)]
    branches += [_forwarded(cluster, costs, (dc, other), (place, first), wanted) for other in others]
    groups = [Group("all", wanted.total)] if wanted.total else []
    groups += [Group(f"dc{d + 1}", count) for d, count in wanted.by_dc.items()]
    return Latch(tuple(groups), ForkJoin(tuple(branches), 0, name="replicas"), name="answers")


def _forwarded(cluster: Cluster, costs: Costs, between: tuple[int, int], place: tuple[int, int], wanted: Need) -> Step:
    """Return a write's way to another data centre: one replica takes it and passes it on to its peers."""
    dc, other = between
    chosen, first = place
    away = _hop(cluster.wan_s[dc][other])
    replicas = cluster.replicas(other, first % cluster.nodes[other])
    forwarder = replicas[chosen % len(replicas)]
    branches = []
    for name in _from(forwarder, replicas):
        hop = () if name == forwarder else (_hop(cluster.lan_s),)
        branches.append(Steps((*hop, *_apply(costs, name, _answer(wanted, other, (away,))))))
    return Steps((away, ForkJoin(tuple(branches), 0)), name=f"to-dc{other + 1}")


def _answer(wanted: Need, dc: int, back: Sequence[Step]) -> tuple[Step, ...]:
    """Return the acknowledgement of a replica in `dc`; nothing where the level does not count it."""
    if wanted.total:
        return (*back, Signal("all"))
    return (*back, Signal(f"dc{dc + 1}")) if dc in wanted.by_dc else ()


def _apply(costs: Costs, name: str, answer: tuple[Step, ...]) -> tuple[Step, ...]:
    """Return one replica's mutation, the work that nobody waits for, and its answer."""
    later = ForkJoin((Visit(_storage(name), Deterministic(costs.storage), name="storage"),), 0)
    work = Visit(name, _work(costs.mutation), name=_slot(name))
    return (work, *_unseen(name, costs.mutation * costs.unseen), later, *answer)


def _unseen(name: str, demand_s: Number) -> tuple[Step, ...]:
    return (ForkJoin((Visit(name, _work(demand_s), name="unseen"),), 0),)


def _from(first: str, names: Sequence[str]) -> list[str]:
    """Order names so that `first`, if among them, comes first and the rest follow on the ring."""
    start = names.index(first) if first in names else 0
    return [*names[start:], *names[:start]]


def _work(mean_s: Number) -> Erlang:
    return Erlang(mean_s, _STAGES)


def _hop(one_way_s: Number) -> Delay:
    return Delay(Deterministic(one_way_s))


def _slot(name: str) -> str:
    return name.replace("/", "-")


def _storage(name: str) -> str:
    return name.replace("cassandra/", "storage/", 1)


def _native(name: str) -> str:
    return name.replace("cassandra/", "native-transport/", 1)


def _scalar(value: Number) -> float:
    return float(value if isinstance(value, (int, float)) else value.flat[0])
