"""A Cassandra cluster: stations, pools, round trips, and the steps of reads and writes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from capplan.errors import InputError, RefusedError
from capplan.models.cassandra.consistency import Need, available, check_level, need
from capplan.models.cassandra.encryption import MESSAGES, Exchanges
from capplan.models.language.distribution import Deterministic, Erlang
from capplan.models.language.station import Assignment, Differs, Pool, Station
from capplan.models.language.step import (
    Acquire,
    Choice,
    CountdownLatch,
    Delay,
    FanOut,
    ForkJoin,
    Group,
    If,
    Pick,
    ReplicaSet,
    Route,
    Signal,
    Step,
    Visit,
)
from capplan.models.language.step import Sequence as Steps
from capplan.models.language.units import Number

NATIVE_TRANSPORT_THREADS = 128
MEMTABLE_MUTATIONS = 100_000
"""Mutations that the memtables of a node hold before writers block: a guess, 20 thousand to 2 million.

`memtable_heap_space_in_mb` is a quarter of the heap by default, and the heap at most 8 GiB. A flush begins when a third
of that space is taken, 1 / (`memtable_flush_writers` + 1). Mutations during the flush therefore have 340 MiB (with a
heap of 2 GiB) to 1.3 GiB (8 GiB). One of them takes 0.7 to 16 KiB there, as its row has one or many cells. The guess
decides how long an overload lasts until writers block, but not at which rate they do.
"""
LOCAL_READ_REPAIR_CHANCE = 0.1
STAGES = 2  # of the Erlang distribution of all service times: SCV 0.5, a guess

_COORDINATOR, _REPLICA, _FORWARDER = "coordinator", "replica", "forwarder"  # bound names of nodes
_LOCAL, _REMOTE = "replicas", "remote-replicas"  # bound names of sets of nodes


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
    message : number or array (draws,)
        Cost of a message between nodes at each of them, on the response path: serialise and send it, or receive and
        deserialise it; seconds.
    unseen_coordinator : number or array (draws,)
        Costs at the coordinator that no request waits for, as a share of `coordinator`.
    links : mapping of Exchanges
        Encryption costs of one exchange at each end of a link, by operation (`read`, `write`); seconds.
    """

    coordinator: Number
    read: Number
    mutation: Number
    unseen: Number
    storage: Number
    message: Number = 0.0
    unseen_coordinator: Number = 0.0
    links: Mapping[str, Exchanges] = field(default_factory=dict)

    def exchange_s(self, operation: str) -> Number:
        """Return the cost at one node of a message to another node and its answer, encryption included."""
        encryption = self.links.get(operation, Exchanges()).internode
        return MESSAGES * self.message + (0.0 if encryption is None else encryption)


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
        Shortest one-way times between data centres, in seconds.
    down : tuple of int
        Number of nodes in each data centre that are down; none if left out. Consistency levels still count them.
    assignment : Assignment
        How requests are assigned to the cores of a node.
    token_aware : bool
        Whether clients send each statement to one of the replicas of its row.
    read_repair : float
        Probability that a read contacts all local replicas; Cassandra 4.0 abolished it.
    unlimited : bool
        Whether neither native-transport threads nor the space for memtables limit the requests at a node.
    wan_extra : number or array (draws,)
        Mean of what an answer from another data centre takes beyond the shortest round trip, as a share of it: two
        exponential times, one for each way, independent between replicas.
    """

    nodes: tuple[int, ...]
    rf: tuple[int, ...]
    cores: int
    lan_s: Number
    wan_s: tuple[tuple[Number, ...], ...]
    down: tuple[int, ...] = ()
    assignment: Assignment = "pooled"
    token_aware: bool = False
    read_repair: float = LOCAL_READ_REPAIR_CHANCE
    unlimited: bool = False
    wan_extra: Number = 0.0

    def own_share(self, dc: int) -> float:
        """Return the probability that a coordinator in `dc` is a replica of the row."""
        return 1.0 if self.token_aware else self.rf[dc] / self.nodes[dc]

    @property
    def alive(self) -> tuple[int, ...]:
        """Number of live nodes in each data centre."""
        down = self.down or (0,) * len(self.nodes)
        return tuple(count - lost for count, lost in zip(self.nodes, down, strict=True))

    @property
    def living(self) -> list[int]:
        """The data centres with live nodes."""
        return [dc for dc, count in enumerate(self.alive) if count]

    def fewest_replicas(self, dc: int) -> int:
        """Return the number of live replicas in `dc` of the row that has lost the most replicas."""
        return max(self.rf[dc] - (self.nodes[dc] - self.alive[dc]), 0)

    def most_replicas(self, dc: int) -> int:
        """Return the number of live replicas in `dc` of the row that has lost the fewest replicas."""
        return min(self.rf[dc], self.alive[dc])

    def mean_replicas(self, dc: int) -> float:
        """Return the mean number of live replicas of a row in `dc`."""
        return self.rf[dc] * self.alive[dc] / self.nodes[dc]

    def taking_part(self, dc: int, level: str, operation: str) -> float:
        """Return the mean number of nodes at which a statement of a coordinator in `dc` has work as a replica."""
        if operation == "write":
            return sum(self.mean_replicas(each) for each in self.living)
        wanted = self.need(level, dc)
        count = wanted.total or sum(wanted.by_dc.values())
        if len(wanted.by_dc) > 1:  # reads at EACH_QUORUM repair nothing
            return count
        return count + self.read_repair * max(self.mean_replicas(dc) - count, 0.0)

    def nearest_first(self, dc: int) -> list[int]:
        """Return the other data centres, nearest first; ties rotate with `dc` to spread the reads."""
        count = len(self.nodes)
        others = [(dc + step) % count for step in range(1, count)]
        return sorted(others, key=lambda other: _scalar(self.wan_s[dc][other]))

    def need(self, level: str, dc: int) -> Need:
        """Return the answers that a consistency level requires from a coordinator in `dc`."""
        return need(level, self.rf, dc)


def with_standbys(
    shares: Mapping[int, float], cluster: Cluster, among: Iterable[int], levels: Iterable[str]
) -> dict[int, float]:
    """Return the shares of clients by data centre, and 0 for each other one that could serve all of them.

    Parameters
    ----------
    shares : mapping of float
        Shares of the data centres that have clients.
    cluster : Cluster
        The layout.
    among : iterable of int
        Data centres that may serve, from 0.
    levels : iterable of str
        Consistency levels that a data centre must meet.
    """
    fewest = [cluster.fewest_replicas(dc) for dc in range(len(cluster.nodes))]
    able = {dc: 0.0 for dc in among if all(available(level, cluster.rf, fewest, dc) for level in levels)}
    return dict(sorted({**able, **shares}.items()))


def to_dcs(shares: Mapping[int, float], steps: Iterable[Step], in_turn: bool) -> Step:
    """Return what requests do in each data centre as one step; clients of one that is down go to the others.

    Parameters
    ----------
    shares : mapping of float
        Shares of clients by data centre; those with 0 serve only when no other is up.
    steps : iterable of Step
        What a request does, by data centre.
    in_turn : bool
        Whether requests take the data centres in turn, and not at random.
    """
    targets = tuple(steps)
    if len(targets) == 1:
        return targets[0]
    if in_turn:
        return Route("round_robin", targets, name="dc")
    return Route("random", targets, "dc", tuple(shares.values()))


def stations(cluster: Cluster) -> tuple[Station, ...]:
    """Return the stations of a cluster: cores and storage paths of the nodes in each data centre.

    Parameters
    ----------
    cluster : Cluster
        The layout.

    Returns
    -------
    tuple of Station
        All cores first, as processor-sharing stations, then all storage paths, with one fixed-rate server each. Nodes
        that are down are members that are down; a data centre without live nodes has no stations.
    """
    living = [
        (dc, cluster.nodes[dc], tuple(Differs(1 + node, down=True) for node in range(count - cluster.alive[dc])))
        for dc, count in enumerate(cluster.nodes)
        if cluster.alive[dc]
    ]
    cores = (
        Station(_cores(dc), cluster.cores, "ps", count=count, exceptions=down, assignment=cluster.assignment)
        for dc, count, down in living
    )
    return (*cores, *(Station(_storage(dc), 1, count=count, exceptions=down) for dc, count, down in living))


def pools(cluster: Cluster) -> tuple[Pool, ...]:
    """Return the pools of a cluster: the native transport threads and the memtable space of the nodes.

    Parameters
    ----------
    cluster : Cluster
        The layout.

    Returns
    -------
    tuple of Pool
    """
    if cluster.unlimited:
        return ()
    threads = (Pool(_native(dc), NATIVE_TRANSPORT_THREADS, count=cluster.nodes[dc]) for dc in cluster.living)
    memtables = (Pool(_memtable(dc), MEMTABLE_MUTATIONS, count=cluster.nodes[dc]) for dc in cluster.living)
    return (*threads, *memtables)


def statement(cluster: Cluster, costs: Costs, dc: int, level: str, operation: str) -> Step:
    """Return the steps of one read or write of one row.

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

    Returns
    -------
    Step

    Raises
    ------
    RefusedError
        If the operation or the level is not modelled.
    InputError
        If a row may have too few live replicas for the level.
    """
    if operation not in ("read", "write"):
        raise RefusedError(f"operation {operation!r} is refused: only reads and writes of one row are modelled")
    wanted = cluster.need(check_level(level), dc)
    _check_living(cluster, wanted, dc, level)
    links = costs.links.get(operation, Exchanges())
    builder = _Statement(cluster, costs, dc, wanted, links.internode)
    messages = builder.coordinator_messages(operation)
    parse_s = _parse_s(costs, messages, links)
    replicated = builder.read() if operation == "read" else builder.write()
    found = ReplicaSet(_LOCAL, _cores(dc), cluster.rf[dc], replicated, first=_COORDINATOR)
    parse = Visit(_cores(dc), _work(parse_s), name="parse", member=_COORDINATOR)
    further = _beside(dc, costs.message * max(messages - MESSAGES, 0.0))
    unseen_s = costs.coordinator * costs.unseen_coordinator
    unseen = (_unseen(dc, unseen_s, _COORDINATOR),) if _scalar(unseen_s) else ()
    parsed = Steps((parse, *further, *unseen, found))
    hop = _hop(cluster.lan_s)
    asked = Steps((hop, *_held(cluster, _native(dc), (parsed,), _COORDINATOR), hop))
    if not cluster.token_aware:
        return Pick(_COORDINATOR, _cores(dc), "round_robin", asked, name=operation)
    to_replica = Pick(_COORDINATOR, _LOCAL, "random", asked, name=operation)
    return ReplicaSet(_LOCAL, _cores(dc), cluster.rf[dc], to_replica)


def _parse_s(costs: Costs, messages: float, links: Exchanges) -> Number:
    """Return the coordinator's work before it asks replicas, in seconds."""
    parse_s = costs.coordinator + costs.message * min(messages, MESSAGES)
    return parse_s if links.client is None else parse_s + links.client


def needed_nodes(cluster: Cluster, dc: int, level: str, operation: str) -> float:
    """Return the mean number of nodes that delay a statement when any one of them pauses.

    The coordinator does. A replica does if the statement waits for all that it contacts.
    """
    replicas, own = _needed_replicas(cluster, dc, level, operation)
    return 1 + replicas - own


def work_at_needed_nodes_s(cluster: Cluster, costs: Costs, dc: int, level: str, operation: str) -> Number:
    """Return what a statement waits for at all nodes of `needed_nodes`, in core-seconds."""
    replicas, own = _needed_replicas(cluster, dc, level, operation)
    links = costs.links.get(operation, Exchanges())
    builder = _Statement(cluster, costs, dc, cluster.need(level, dc), links.internode)
    alone_s = costs.read if operation == "read" else costs.mutation
    parse_s = _parse_s(costs, builder.coordinator_messages(operation), links)
    return parse_s + replicas * alone_s + (replicas - own) * costs.exchange_s(operation)


def _needed_replicas(cluster: Cluster, dc: int, level: str, operation: str) -> tuple[float, float]:
    """Return the mean number of replicas of which each alone delays a statement, and how many are the coordinator."""
    wanted, own = cluster.need(level, dc), cluster.own_share(dc)
    if operation == "read":
        count = wanted.total or sum(wanted.by_dc.values())
        repaired = cluster.read_repair if len(wanted.by_dc) < 2 and count < cluster.most_replicas(dc) else 0.0
        return (1 - repaired) * count, (1 - repaired) * own
    if wanted.total:
        every = cluster.living
        spare = sum(map(cluster.mean_replicas, every)) - wanted.total
        short = sum(map(cluster.fewest_replicas, every)) <= wanted.total
        exact = max(1 - spare, 0.0) if short else 0.0
        return exact * wanted.total, exact * own
    exact_in = {each: _without_spare(cluster, each, count) for each, count in wanted.by_dc.items()}
    return sum(exact_in[each] * count for each, count in wanted.by_dc.items()), exact_in.get(dc, 0.0) * own


def _without_spare(cluster: Cluster, dc: int, count: int) -> float:
    """Return the share of rows that have no more than `count` live replicas in a data centre."""
    return min(max(1 - (cluster.mean_replicas(dc) - count), 0.0), 1.0)


def _check_living(cluster: Cluster, wanted: Need, dc: int, level: str) -> None:
    fewest = [cluster.fewest_replicas(each) for each in range(len(cluster.nodes))]
    short = [each for each, count in wanted.by_dc.items() if fewest[each] < count]
    if short or sum(fewest) < wanted.total or not cluster.alive[dc]:
        where = f" in data centre {short[0] + 1}" if short else ""
        raise InputError(f"{level} cannot be met with these nodes down: a row has too few live replicas{where}")


class _Statement:
    """Builds the steps of one kind of statement, with the names of the coordinator and the local replicas bound."""

    def __init__(self, cluster: Cluster, costs: Costs, dc: int, wanted: Need, exchange_s: Number | None) -> None:
        self.cluster, self.costs, self.dc, self.wanted = cluster, costs, dc, wanted
        self.exchange_s = exchange_s  # encryption cost at one end of a link between nodes

    def coordinator_messages(self, operation: str) -> float:
        """Return the mean number of messages that a coordinator sends to other nodes and receives from them.

        One message and its answer are on the response path, together with parsing; other threads handle the rest
        meanwhile. So messages need no visits of their own, which would cost simulations a fifth of their speed.
        """
        cluster, own = self.cluster, self.cluster.own_share(self.dc)
        if operation == "read":
            count = self.wanted.total or sum(self.wanted.by_dc.values())
            spare = 0.0 if len(self.wanted.by_dc) > 1 else max(cluster.mean_replicas(self.dc) - count, 0.0)
            return MESSAGES * (count - own + cluster.read_repair * spare)
        away = sum(1 + cluster.mean_replicas(dc) for dc in cluster.living if dc != self.dc)
        return MESSAGES * (cluster.mean_replicas(self.dc) - own) + away

    def read(self) -> Step:
        """Return a read."""
        if len(self.wanted.by_dc) > 1:
            return self._read_from_each()
        count, local = self.wanted.total or self.wanted.by_dc[self.dc], self._read_locally()
        if count > self.cluster.fewest_replicas(self.dc):
            return self._read_from_several(count, local)
        plain = FanOut(_LOCAL, _REPLICA, local, count, contacted=count, name="replicas")
        chance = self.cluster.read_repair
        if count >= self.cluster.most_replicas(self.dc) or not chance:
            return plain
        repaired = FanOut(_LOCAL, _REPLICA, local, count, name="replicas")
        return Choice((1 - chance, chance), (plain, repaired), name="repair")

    def _read_from_each(self) -> Step:
        """Return a read of a quorum of replicas in each data centre."""
        branches: list[Step] = []
        for dc, count in self.wanted.by_dc.items():
            if dc == self.dc:
                branches.append(FanOut(_LOCAL, _REPLICA, self._read_locally(), count, count, name="replicas"))
            else:
                there = FanOut(_REMOTE, _REPLICA, self._read_remotely(dc), count, count)
                branches.append(self._replicas_of(dc, there, f"from-dc{dc + 1}"))
        return ForkJoin(tuple(branches), len(branches), name="quorums")

    def _read_from_several(self, count: int, local: Step) -> Step:
        """Return a read of replicas in several data centres, nearest first.

        With nodes down it contacts as many replicas as it needs for the row that has lost the most.
        """
        cluster, answer = self.cluster, Signal("answers")
        contacted = min(count, cluster.rf[self.dc])
        branches: list[Step] = [FanOut(_LOCAL, _REPLICA, Steps((local, answer)), 0, contacted, name="replicas")]
        missing = count - cluster.fewest_replicas(self.dc)
        for other in cluster.nearest_first(self.dc):
            if missing > 0 and cluster.alive[other]:
                asked, read = min(missing, cluster.rf[other]), Steps((self._read_remotely(other), answer))
                there = FanOut(_REMOTE, _REPLICA, read, 0, asked)
                branches.append(self._replicas_of(other, there, f"from-dc{other + 1}"))
                missing -= min(asked, cluster.fewest_replicas(other))
        return CountdownLatch((Group("answers", count),), ForkJoin(tuple(branches), 0), name="answers")

    def _replicas_of(self, other: int, step: Step, name: str) -> Step:
        return ReplicaSet(_REMOTE, _cores(other), self.cluster.rf[other], step, name=name)

    def _read_locally(self) -> Step:
        here = Steps(self._read_at(self.dc, ()), name="here")
        return If(_REPLICA, _COORDINATOR, here, self._read_remotely(self.dc))

    def _read_remotely(self, other: int) -> Step:
        """Return a read of a replica that is not the coordinator."""
        one_way_s = self.cluster.lan_s if other == self.dc else self.cluster.wan_s[self.dc][other]
        varying = () if other == self.dc else self._varying(other)
        read = self._read_at(other, (_hop(2 * one_way_s), *varying), MESSAGES)
        return Steps((*self._messages(_COORDINATOR, self.dc, MESSAGES), *read), name="there")

    def _read_at(self, dc: int, way: tuple[Step, ...], messages: int = 0) -> tuple[Step, ...]:
        busy_s = self._busy_s(self.costs.read, messages) + self.costs.message * messages
        work = Visit(_cores(dc), _work(busy_s), name="read", member=_REPLICA)
        return (*way, work, _unseen(dc, self.costs.read * self.costs.unseen))

    def _varying(self, other: int) -> tuple[Step, ...]:
        """Return what an answer from another data centre takes beyond the shortest round trip."""
        mean_s = 2 * self.cluster.wan_s[self.dc][other] * self.cluster.wan_extra
        return (Delay(Erlang(mean_s, 2), name="wan"),) if _scalar(mean_s) else ()

    def _busy_s(self, work_s: Number, messages: int) -> Number:
        """Return a node's work plus the cost of encrypting the messages that it sends or receives."""
        return work_s if self.exchange_s is None or not messages else work_s + self.exchange_s * (messages / MESSAGES)

    def _messages(self, member: str, dc: int, messages: float) -> tuple[Step, ...]:
        """Return a node's work for encrypting messages; no steps without encryption."""
        if self.exchange_s is None:
            return ()
        return (Visit(_cores(dc), _work(self.exchange_s * (messages / MESSAGES)), name="messages", member=member),)

    def write(self) -> Step:
        """Return a write."""
        hop = _hop(self.cluster.lan_s)
        here = Steps(self._apply(self.dc, (), ()), name="here")
        there = (*self._messages(_COORDINATOR, self.dc, MESSAGES), *self._apply(self.dc, (hop,), (hop,), MESSAGES))
        local = If(_REPLICA, _COORDINATOR, here, Steps(there, name="there"))
        others = [self._forwarded(other) for other in self.cluster.living if other != self.dc]
        groups = [Group("all", self.wanted.total)] if self.wanted.total else []
        groups += [Group(f"dc{d + 1}", count) for d, count in self.wanted.by_dc.items()]
        replicas = ForkJoin((FanOut(_LOCAL, _REPLICA, local, 0, name="replicas"), *others), 0)
        return CountdownLatch(tuple(groups), replicas, name="answers")

    def _forwarded(self, other: int) -> Step:
        """Return a write in another data centre: one replica receives it and forwards it to its peers."""
        away, hop = _hop(self.cluster.wan_s[self.dc][other]), _hop(self.cluster.lan_s)
        back = (away, *self._varying(other))
        replicas = self.cluster.mean_replicas(other)
        first = Steps(self._apply(other, (), back, 1, forwarded=replicas), name="here")
        peer = Steps(self._apply(other, (hop,), back, MESSAGES), name="there")
        steps = (
            *self._messages(_COORDINATOR, self.dc, 1 + replicas),  # one sent, one answer from each replica
            away,
            *self._messages(_FORWARDER, other, replicas),  # one received, one sent to each peer
            FanOut(_REMOTE, _REPLICA, If(_REPLICA, _FORWARDER, first, peer), 0, name="replicas"),
        )
        forwarded = FanOut(_REMOTE, _FORWARDER, Steps(steps), 0, contacted=1)  # nothing is sent if no replica is up
        return self._replicas_of(other, forwarded, f"to-dc{other + 1}")

    def _apply(
        self, dc: int, there: tuple[Step, ...], back: tuple[Step, ...], messages: int = 0, forwarded: float = 0.0
    ) -> tuple[Step, ...]:
        """Return the mutation at one replica, its detached work, and its answer if the level counts that answer.

        The replica sends or receives `messages` messages, and `forwarded` before it applies the mutation.
        """
        costs = self.costs
        stored = (
            (Visit(_storage(dc), Deterministic(costs.storage), name="storage", member=_REPLICA),)
            if _scalar(costs.storage)
            else ()
        )
        busy_s = self._busy_s(costs.mutation, messages) + costs.message * (messages + forwarded)
        work = Visit(_cores(dc), _work(busy_s), name="mutation", member=_REPLICA)
        unseen = _unseen(dc, costs.mutation * costs.unseen)
        # The answer is detached, so that the mutation keeps its place in the memtables until it is stored.
        kept = (work, unseen, *self._answer(dc, back), *stored)
        return (*there, *_held(self.cluster, _memtable(dc), kept, _REPLICA))

    def _answer(self, dc: int, back: tuple[Step, ...]) -> tuple[Step, ...]:
        if not self.wanted.total and dc not in self.wanted.by_dc:
            return ()
        signal = Signal("all" if self.wanted.total else f"dc{dc + 1}")
        return (ForkJoin((Steps((*back, signal), name="answer"),), 0),) if back else (signal,)


def _held(cluster: Cluster, pool: str, steps: tuple[Step, ...], member: str) -> tuple[Step, ...]:
    """Return the steps inside an acquired unit of a pool; unchanged if nothing limits the requests at a node."""
    if cluster.unlimited:
        return steps
    return (Acquire(pool, steps[0] if len(steps) == 1 else Steps(steps), member=member),)


def _beside(dc: int, demand_s: Number) -> tuple[Step, ...]:
    """Return a coordinator's detached work on further messages; no steps if there are none."""
    if not _scalar(demand_s):
        return ()
    return (ForkJoin((Visit(_cores(dc), _work(demand_s), name="further", member=_COORDINATOR),), 0),)


def _unseen(dc: int, demand_s: Number, member: str = _REPLICA) -> Step:
    return ForkJoin((Visit(_cores(dc), _work(demand_s), name="unseen", member=member),), 0)


def _work(mean_s: Number) -> Erlang:
    return Erlang(mean_s, STAGES)


def _hop(one_way_s: Number) -> Delay:
    return Delay(Deterministic(one_way_s))


def _cores(dc: int) -> str:
    return f"cassandra/dc{dc + 1}"


def _storage(dc: int) -> str:
    return f"cassandra-storage/dc{dc + 1}"


def _native(dc: int) -> str:
    return f"native-transport/dc{dc + 1}"


def _memtable(dc: int) -> str:
    return f"memtable/dc{dc + 1}"


def _scalar(value: Number) -> float:
    return float(value if isinstance(value, (int, float)) else value.flat[0])


# Speed of light in vacuum (exact, SI) over the group index of silica fibre at 1550 nm (ITU-T G.652).
FIBRE_SPEED_M_PER_S = 299_792_458 / 1.468


def round_trip_s(distance_m: float, route_factor: Number) -> Number:
    """Return the round trip time over fibre.

    Parameters
    ----------
    distance_m : float
        Straight-line distance in metres.
    route_factor : number or array (draws,)
        Length of the fibre over the straight-line distance, at least 1.

    Returns
    -------
    number or array (draws,)
        Propagation time in seconds, without queueing and equipment.
    """
    return 2 * distance_m * route_factor / FIBRE_SPEED_M_PER_S
