"""Whether a row that was just written in one data centre is found by a read in another: sampled on a Cassandra cluster.

The ways are those of `capplan.models.cassandra.cluster`: a write goes to each other data centre through one of its replicas,
whose peers answer the coordinator directly; a read asks as many replicas as its level needs, nearest first. A row is
there once the mutation is over. A read looks it up when it begins: Cassandra 3.11 asks the memtables before anything
else (`SinglePartitionReadCommand.queryMemtableAndDiskInternal`). A read that begins later, because it waits for a
thread, finds more, so the probabilities are upper bounds in this respect.

Replicas are taken as independent. The work of a mutation is slowed by what it finds at its node: with processor
sharing the number of jobs there does not depend on the law of their work, and a Poisson arrival sees it as it is on
average. The mean of the response is exact then; that the number stays as found while the job lasts is an approximation.
Not modelled: pauses, mutations that are dropped (a hint brings them much later), nodes that are down, replicas chosen
by their speed, speculative reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import factorial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from capplan.models.cassandra.cluster import STAGES, Cluster, Costs
from capplan.models.cassandra.consistency import Need
from capplan.models.cassandra.encryption import MESSAGES, Exchanges
from capplan.models.cassandra.wars import committed_s, not_found, without
from capplan.models.errors import RefusedError
from capplan.models.language.units import FloatArray, Number
from capplan.models.solver.erlang import erlang_c

MOST_BUSY = 0.99  # of the cores: beyond it nothing settles, and mutations are dropped

IndexArray = NDArray[np.intp]


@dataclass(frozen=True)
class Load:
    """How busy the cores of a node are, by phase of the traffic; arrays (phases, draws).

    Attributes
    ----------
    share : array
        Share of the requests that come in the phase; sums to 1 over phases.
    utilisation : array
        Share of the cores that is busy then; taken as at most `MOST_BUSY`.
    """

    share: FloatArray
    utilisation: FloatArray


@dataclass(frozen=True)
class Question:
    """Who writes, and who reads afterwards, in another data centre: each other one as likely.

    Attributes
    ----------
    write, read : str
        Consistency levels.
    client_s : number
        Mean of the exponential time that the reader takes before it asks Cassandra, seconds.
    """

    write: str
    read: str
    client_s: Number


@dataclass(frozen=True)
class Sampling:
    """How much is sampled, and with which random numbers.

    Attributes
    ----------
    draws, samples : int
        Parameter draws, and samples at each.
    seed : int
        The same seed gives the same random numbers whatever the levels and the loads: differences are sharp.
    """

    draws: int
    samples: int
    seed: int


def chances_not_found(
    cluster: Cluster, costs: Costs, load: Load, question: Question, gaps_s: ArrayLike, sampling: Sampling
) -> FloatArray:
    """Sample the probability that a read does not find the row that was written before.

    Parameters
    ----------
    cluster : Cluster
        Where the replicas are; all nodes live. Times are numbers or arrays (draws,).
    costs : Costs
        What operations cost, numbers or arrays (draws,).
    load : Load
        How busy the nodes are.
    question : Question
        Levels, and who reads where.
    gaps_s : array (gaps,)
        Seconds from the answer to the writing client until the reading client is asked.
    sampling : Sampling
        How much.

    Returns
    -------
    array (gaps, draws, samples)
        Probabilities given what was sampled; their mean over samples is the probability. Where a read always meets a
        replica that has answered the write, as with QUORUM for both, they are exactly 0.

    Raises
    ------
    RefusedError
        When nodes are down.
    InputError
        When the cluster has fewer replicas than a level needs.
    """
    if cluster.down:
        raise RefusedError("what is found while nodes are down is not modelled: hints would decide it")
    places = _Places(cluster, question, sampling)
    used = places.used(question.read)
    if not places.may_miss(question.write, used):
        return np.zeros((np.size(gaps_s), sampling.draws, sampling.samples))
    times = _Times(cluster, costs, load, sampling, places)
    mean = np.take_along_axis(times.mutation_s, used[None], axis=-1)
    commit = places.committed_s(question.write, without(times.answers_s, used))
    there = np.take_along_axis(times.there_s, used[None], axis=-1)
    asked = times.asked_s(places, question.read) - there
    return not_found(gaps_s, commit, asked, lambda time_s: erlang_survival(time_s, mean))


def erlang_survival(time_s: FloatArray, mean_s: FloatArray) -> FloatArray:
    """Return the probability that an Erlang time of `STAGES` stages is longer; 1 for times of 0 and less."""
    stage = np.maximum(time_s, 0.0) * (STAGES / mean_s)
    return np.asarray(np.exp(-stage) * sum(stage**k / factorial(k) for k in range(STAGES)))


def slowed(chance: FloatArray, utilisation: FloatArray, crowded: FloatArray, cores: int) -> FloatArray:
    """Return by how much a job is slowed that comes to processor-sharing cores: how many share each.

    Parameters
    ----------
    chance : array
        Uniform random numbers from 0 to 1.
    utilisation : array
        Share of the cores that is busy, below 1; broadcast against `chance`.
    crowded : array
        Probability that all cores are busy: Erlang's C.
    cores : int
        Cores of the node.

    Returns
    -------
    array
        1 where a core is free. The job finds n others, n beyond the cores by a geometric law: (n + 1) / cores. The mean
        is ``1 + C / (cores - cores * utilisation)`` with Erlang's C, as is that of the response over the work.
    """
    waits = chance < crowded
    level = np.maximum(chance[waits], 1e-300) / np.broadcast_to(crowded, chance.shape)[waits]
    beyond = np.floor(np.log(level) / np.log(np.broadcast_to(utilisation, chance.shape)[waits]))
    found = np.ones(chance.shape)
    found[waits] += (beyond + 1) / cores
    return found


class _Places:
    """Who writes and who reads, sample by sample; replica `k` of data centre `d` is number `d * rf + k`.

    In each data centre replica 0 is the one that forwards, or in the writer's own the coordinator, if it is a replica.
    """

    def __init__(self, cluster: Cluster, question: Question, sampling: Sampling) -> None:
        self.cluster, self.dcs, self.rf = cluster, len(cluster.nodes), cluster.rf
        self.client_s = _by_draw(question.client_s, 1)
        rng = np.random.default_rng([sampling.seed, 1])
        number = rng.permutation(sampling.samples)  # every pair as often, in no order
        self.writer = number % self.dcs
        step = 1 + number * (self.dcs - 1) // sampling.samples
        self.reader = (self.writer + step) % self.dcs
        share = self.rf / np.array(cluster.nodes)
        self.writer_holds = rng.random(sampling.samples) < share[self.writer]
        self.reader_holds = rng.random(sampling.samples) < share[self.reader]
        self.turn = rng.integers(self.rf, size=(sampling.samples, self.dcs))
        ways = np.broadcast_arrays(*(np.atleast_1d(cell) for row in cluster.wan_s for cell in row))
        self.ways_s = np.stack(ways, axis=-1).reshape(-1, self.dcs, self.dcs)
        self.lan_s = _by_draw(cluster.lan_s, 2)

        self.replicas = self.dcs * self.rf
        self.own, self.hops = self._own_and_hops()

    def _own_and_hops(self) -> tuple[FloatArray, FloatArray]:
        """Return 1 where a replica is in the writer's data centre, and 1 where it is reached by a hop from a peer."""
        samples = np.arange(len(self.writer))
        own = np.zeros((len(samples), self.dcs, self.rf))
        own[samples, self.writer] = 1.0
        hops = np.ones_like(own)
        hops[:, :, 0] = 0.0
        hops[samples, self.writer, 0] = ~self.writer_holds
        return own.reshape(len(samples), -1), hops.reshape(len(samples), -1)

    @property
    def messages(self) -> FloatArray:
        """Messages of a write that each replica works on (samples, replicas); of a forwarder, the answer only."""
        return MESSAGES * self.hops + (1 - self.hops) * (1 - self.own)

    def there_and_back_s(self) -> tuple[FloatArray, FloatArray]:
        """Return the ways of a write to each replica and of its answer (1 or draws, samples, replicas)."""
        far = np.repeat(self.ways_s[:, self.writer], self.rf, axis=-1)
        return far + self.lan_s * self.hops, far + self.lan_s * (self.hops * self.own)

    def asked(self, level: str) -> tuple[IndexArray, IndexArray]:
        """Return the data centre of each replica that a read asks, and its turn there (samples, asked)."""
        by_dc = [self._asked_from(dc, level) for dc in range(self.dcs)]
        found = np.array(by_dc, dtype=np.intp)[self.reader]
        return found[..., 0], found[..., 1]

    def _asked_from(self, dc: int, level: str) -> list[tuple[int, int]]:
        wanted = self.cluster.need(level, dc)
        near = [dc, *self.cluster.nearest_first(dc)]
        every = [(other, turn) for other in near for turn in range(self.rf)]
        return every[: wanted.total or wanted.by_dc[dc]]

    def used(self, level: str) -> IndexArray:
        """Return the replicas whose answers a read uses: all that it asks (samples, asked)."""
        dc, turn = self.asked(level)
        begin = np.take_along_axis(self.turn, dc, axis=-1)
        return np.asarray(dc * self.rf + (begin + turn) % self.rf)

    def reach_s(self, level: str) -> FloatArray:
        """Return the way from the reading coordinator to each replica it asks (1 or draws, samples, asked)."""
        dc, _ = self.asked(level)
        local = dc == self.reader[:, None]
        return np.asarray(self.ways_s[:, self.reader[:, None], dc] + self.lan_s * (local & ~self.asks_itself(level)))

    def asks_itself(self, level: str) -> NDArray[np.bool_]:
        """Return whether each replica that a read asks is the coordinator (samples, asked)."""
        dc, turn = self.asked(level)
        return np.asarray((dc == self.reader[:, None]) & (turn == 0) & self.reader_holds[:, None])

    def may_miss(self, level: str, used: IndexArray) -> bool:
        """Whether a write may have its answers without any of the replicas that the read uses."""
        others = without(np.zeros((1, len(used), self.dcs * self.rf)), used)
        return bool(np.isfinite(self.committed_s(level, others)).any())

    def committed_s(self, level: str, answers_s: FloatArray) -> FloatArray:
        """Return when a write has the answers that its level needs (draws, samples)."""
        wanted = [self.cluster.need(level, dc) for dc in range(self.dcs)]
        if wanted[0].total:
            return committed_s(answers_s, wanted[0].total)
        by_dc = np.sort(answers_s.reshape(*answers_s.shape[:-1], self.dcs, self.rf), axis=-1)
        needed = np.array([_counts(each, self.dcs) for each in wanted])[self.writer]
        last = np.take_along_axis(by_dc, np.maximum(needed - 1, 0)[None, ..., None], axis=-1)[..., 0]
        return np.asarray(np.where(needed > 0, last, 0.0).max(axis=-1))


class _Times:
    """Random times, sample by sample (draws, samples, ...): seconds."""

    def __init__(self, cluster: Cluster, costs: Costs, load: Load, sampling: Sampling, places: _Places) -> None:
        self.rng, self.shape = np.random.default_rng([sampling.seed, 2]), (sampling.draws, sampling.samples)
        self.cores = cluster.cores
        self.busy, self.crowded = _met(load, self.rng.random(self.shape), self.cores)
        read, write = (costs.links.get(operation, Exchanges()) for operation in ("read", "write"))
        parse = self.work_s(_sum(costs.coordinator, read.client))
        client = places.client_s * self.rng.standard_exponential(self.shape)
        self.before_s = 2 * places.lan_s[..., 0] + parse + client
        mean = _by_draw(costs.mutation, 2)
        if write.internode is not None:
            mean = mean + _by_draw(write.internode, 2) / MESSAGES * places.messages
        self.mutation_s = np.asarray(mean * self._slower(places.replicas))
        took = self.rng.standard_gamma(STAGES, (*self.shape, places.replicas)) / STAGES
        there, back = places.there_and_back_s()
        if write.internode is not None:
            there = there + self._encrypted_s(places, write.internode)
        self.there_s = np.broadcast_to(there, took.shape)
        self.answers_s = there + self.mutation_s * took + back
        self.read_exchange_s = read.internode

    def work_s(self, mean_s: Number, *inner: int) -> FloatArray:
        """Sample times that work of a mean takes at a node (draws, samples, *inner)."""
        amounts = self.rng.standard_gamma(STAGES, (*self.shape, *inner)) / STAGES
        return np.asarray(_by_draw(mean_s, 1 + len(inner)) * amounts * self._slower(*inner))

    def asked_s(self, places: _Places, level: str) -> FloatArray:
        """Return when a read looks the row up at each replica it asks (draws, samples, asked), from the commit on."""
        asked = self.before_s[..., None] + places.reach_s(level)
        if self.read_exchange_s is None:
            return asked
        messages = self.work_s(self.read_exchange_s, asked.shape[-1])  # the coordinator's, for each other node
        return np.asarray(asked + messages * ~places.asks_itself(level))

    def _slower(self, *inner: int) -> FloatArray:
        busy, crowded = (each.reshape(*self.shape, *(1,) * len(inner)) for each in (self.busy, self.crowded))
        return slowed(self.rng.random((*self.shape, *inner)), busy, crowded, self.cores)

    def _encrypted_s(self, places: _Places, exchange_s: Number) -> FloatArray:
        """Sample the work on encrypted messages before a mutation is at its replica.

        As in `capplan.models.cassandra.cluster`: a coordinator works for each data centre on the message there and the answer
        of each replica, a forwarder on the message it gets and those it passes on, all before they are sent.
        """
        near = self.work_s(exchange_s, places.replicas) * places.hops
        coordinator = self.work_s(exchange_s, places.dcs) * (1 + places.rf) / MESSAGES
        forwarder = self.work_s(exchange_s, places.dcs) * places.rf / MESSAGES
        return np.where(places.own > 0, near, np.repeat(coordinator + forwarder, places.rf, axis=-1))


def _met(load: Load, chance: FloatArray, cores: int) -> tuple[FloatArray, FloatArray]:
    """Return the utilisation that each sample meets (draws, samples), that of its phase, and Erlang's C of it."""
    phase = (chance > np.cumsum(load.share, axis=0)[:-1, :, None]).sum(axis=0)
    busy = np.minimum(load.utilisation, MOST_BUSY)
    crowded = erlang_c(cores, cores * busy)
    return np.take_along_axis(busy.T, phase, axis=-1), np.take_along_axis(crowded.T, phase, axis=-1)


def _by_draw(value: Number, inner: int) -> FloatArray:
    """Return a value by draw (1 or draws, 1, ...) with so many inner axes."""
    return np.atleast_1d(np.asarray(value, dtype=float)).reshape(-1, *(1,) * inner)


def _counts(wanted: Need, dcs: int) -> list[int]:
    return [wanted.by_dc.get(dc, 0) for dc in range(dcs)]


def _sum(value: Number, other: Number | None) -> Number:
    return value if other is None else value + other
