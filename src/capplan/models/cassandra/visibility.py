"""The probability that a read in one data centre misses a row that was just written in another, by sampling.

Messages take the paths of `capplan.models.cassandra.cluster`: a write reaches another data centre through one of its
replicas, whose peers answer the coordinator directly; a read contacts as many replicas as its level needs, nearest
first. A row is visible when its mutation is complete. A read looks it up at its start, because Cassandra 3.11 reads the
memtables first (`SinglePartitionReadCommand.queryMemtableAndDiskInternal`). A read that first waits for a thread finds
more rows, so in this respect the probabilities are upper bounds.

Replicas are assumed to be independent. Other jobs at its node slow a mutation down. Under processor sharing the number
of jobs at a node does not depend on the distribution of their demands, and a Poisson arrival sees the stationary number
(PASTA). This makes the mean response exact. It is an approximation that the number stays the same during the job.

Pauses, dropped mutations (a hint applies them much later), nodes that are down, replicas chosen by latency and
speculative reads are not modelled.
"""

from __future__ import annotations

from collections.abc import Callable
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

MOST_BUSY = 0.99  # utilisation of the cores; above it there is no steady state, and mutations are dropped

IndexArray = NDArray[np.intp]


@dataclass(frozen=True)
class Load:
    """Utilisation of the cores of a node in each phase of the traffic.

    Attributes
    ----------
    share : array (phases, draws)
        Share of the requests that arrive in each phase; adds up to 1.
    utilisation : array (phases, draws)
        Utilisation of the cores in each phase, limited to `MOST_BUSY`.
    """

    share: FloatArray
    utilisation: FloatArray


@dataclass(frozen=True)
class Question:
    """The consistency levels of the write and of the read in another data centre (each with equal probability).

    Attributes
    ----------
    write, read : str
        Consistency levels.
    client_s : number
        Mean of the exponential time until the reading client queries Cassandra, in seconds.
    """

    write: str
    read: str
    client_s: Number


@dataclass(frozen=True)
class Sampling:
    """Sample sizes and seed.

    Attributes
    ----------
    draws, samples : int
        Number of parameter draws, and of samples for each draw.
    seed : int
        Seed. Levels and loads do not change the random numbers, so differences between scenarios are precise.
    """

    draws: int
    samples: int
    seed: int


class RandomNumbers:
    """The random numbers of a sample, which are kept for other samples of the same load, read level and size.

    Parameters
    ----------
    load : Load
        Utilisation of the nodes.
    sampling : Sampling
        Sample sizes and seed.
    cores : int
        Cores of a node.
    """

    def __init__(self, load: Load, sampling: Sampling, cores: int) -> None:
        self.shape, self.cores = (sampling.draws, sampling.samples), cores
        self._rng = np.random.default_rng([sampling.seed, 2])
        self._busy, self._crowded = _met(load, self._rng.random(self.shape), cores)
        self._known: list[FloatArray] = []

    def number(self, place: int, draw: Callable[[np.random.Generator], FloatArray]) -> FloatArray:
        """Return the numbers at a place in the order of drawing; draw them the first time."""
        if place == len(self._known):
            self._known.append(draw(self._rng))
        return self._known[place]

    def slowdown(self, rng: np.random.Generator, *inner: int) -> FloatArray:
        """Draw the slowdown of a job at a node (draws, samples, *inner)."""
        busy, crowded = (each.reshape(*self.shape, *(1,) * len(inner)) for each in (self._busy, self._crowded))
        return slowed(rng.random((*self.shape, *inner)), busy, crowded, self.cores)


def chances_not_found(
    cluster: Cluster,
    costs: Costs,
    load: Load,
    question: Question,
    gaps_s: ArrayLike,
    sampling: Sampling,
    numbers: RandomNumbers | None = None,
) -> FloatArray:
    """Sample the probability that a read misses a row that was just written.

    Parameters
    ----------
    cluster : Cluster
        The layout, with all nodes up.
    costs : Costs
        CPU costs of operations.
    load : Load
        Utilisation of the nodes.
    question : Question
        Consistency levels of write and read.
    gaps_s : array (gaps,)
        Times from the answer to the writing client until the reading client starts, in seconds.
    sampling : Sampling
        Sample sizes and seed.
    numbers : RandomNumbers, optional
        Those of a call with the same load, read level and sampling, which saves drawing them again.

    Returns
    -------
    array (gaps, draws, samples)
        Conditional probabilities; their mean over samples is the probability of a miss. They are exactly 0 if write and
        read quorums always overlap, as with QUORUM for both.

    Raises
    ------
    RefusedError
        If nodes are down.
    InputError
        If the cluster has fewer replicas than a level needs.
    """
    if cluster.down:
        raise RefusedError("the visibility of writes is not modelled while nodes are down, since it depends on hints")
    places = _Places(cluster, question, sampling)
    used = places.used(question.read)
    if not places.may_miss(question.write, used):
        return np.zeros((np.size(gaps_s), sampling.draws, sampling.samples))
    times = _Times(costs, numbers or RandomNumbers(load, sampling, cluster.cores), places)
    mean = np.take_along_axis(times.mutation_s, used[None], axis=-1)
    commit = places.committed_s(question.write, without(times.answers_s, used))
    there = np.take_along_axis(times.there_s, used[None], axis=-1)
    asked = times.asked_s(places, question.read) - there
    return not_found(gaps_s, commit, asked, lambda time_s: erlang_survival(time_s, mean))


def erlang_survival(time_s: FloatArray, mean_s: FloatArray) -> FloatArray:
    """Return the survival function of the Erlang distribution with `STAGES` stages; 1 for times of at most 0."""
    stage = np.maximum(time_s, 0.0) * (STAGES / mean_s)
    return np.asarray(np.exp(-stage) * sum(stage**k / factorial(k) for k in range(STAGES)))


def slowed(chance: FloatArray, utilisation: FloatArray, crowded: FloatArray, cores: int) -> FloatArray:
    """Sample the slowdown of a job that arrives at processor-sharing cores: the number of jobs per core.

    Parameters
    ----------
    chance : array
        Uniform random numbers from 0 to 1.
    utilisation : array
        Utilisation of the cores, below 1; broadcasts against `chance`.
    crowded : array
        Probability that all cores are busy: Erlang C.
    cores : int
        Cores of the node.

    Returns
    -------
    array
        1 if a core is free, otherwise (n + 1) / cores, where the number n of other jobs exceeds the cores by a
        geometric variate. The mean is ``1 + C / (cores - cores * utilisation)``: the mean response over the demand.
    """
    waits = chance < crowded
    level = np.maximum(chance[waits], 1e-300) / np.broadcast_to(crowded, chance.shape)[waits]
    beyond = np.floor(np.log(level) / np.log(np.broadcast_to(utilisation, chance.shape)[waits]))
    found = np.ones(chance.shape)
    found[waits] += (beyond + 1) / cores
    return found


class _Places:
    """Data centres of writer and reader for each sample; replica `k` of data centre `d` has the number `d * rf + k`.

    Replica 0 of a data centre is the forwarder. In the writer's data centre it is the coordinator if that is a replica.
    """

    def __init__(self, cluster: Cluster, question: Question, sampling: Sampling) -> None:
        self.cluster, self.dcs, self.rf = cluster, len(cluster.nodes), cluster.rf
        self.client_s = _by_draw(question.client_s, 1)
        rng = np.random.default_rng([sampling.seed, 1])
        number = rng.permutation(sampling.samples)  # all pairs equally often, in random order
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
        """Return indicators: replicas in the writer's data centre, and replicas reached by a hop from a local node."""
        samples = np.arange(len(self.writer))
        own = np.zeros((len(samples), self.dcs, self.rf))
        own[samples, self.writer] = 1.0
        hops = np.ones_like(own)
        hops[:, :, 0] = 0.0
        hops[samples, self.writer, 0] = ~self.writer_holds
        return own.reshape(len(samples), -1), hops.reshape(len(samples), -1)

    @property
    def messages(self) -> FloatArray:
        """Messages of a write that each replica processes (samples, replicas); only the answer at a forwarder."""
        return MESSAGES * self.hops + (1 - self.hops) * (1 - self.own)

    def there_and_back_s(self) -> tuple[FloatArray, FloatArray]:
        """Return the network times of a write to each replica and of its answer (1 or draws, samples, replicas)."""
        far = np.repeat(self.ways_s[:, self.writer], self.rf, axis=-1)
        return far + self.lan_s * self.hops, far + self.lan_s * (self.hops * self.own)

    def asked(self, level: str) -> tuple[IndexArray, IndexArray]:
        """Return the data centre and the rank there of each replica that a read contacts (samples, asked)."""
        by_dc = [self._asked_from(dc, level) for dc in range(self.dcs)]
        found = np.array(by_dc, dtype=np.intp)[self.reader]
        return found[..., 0], found[..., 1]

    def _asked_from(self, dc: int, level: str) -> list[tuple[int, int]]:
        wanted = self.cluster.need(level, dc)
        near = [dc, *self.cluster.nearest_first(dc)]
        every = [(other, turn) for other in near for turn in range(self.rf)]
        return every[: wanted.total or wanted.by_dc[dc]]

    def used(self, level: str) -> IndexArray:
        """Return the replicas whose answers a read uses: all that it contacts (samples, asked)."""
        dc, turn = self.asked(level)
        begin = np.take_along_axis(self.turn, dc, axis=-1)
        return np.asarray(dc * self.rf + (begin + turn) % self.rf)

    def reach_s(self, level: str) -> FloatArray:
        """Return network times from the reading coordinator to the replicas (1 or draws, samples, asked)."""
        dc, _ = self.asked(level)
        local = dc == self.reader[:, None]
        return np.asarray(self.ways_s[:, self.reader[:, None], dc] + self.lan_s * (local & ~self.asks_itself(level)))

    def asks_itself(self, level: str) -> NDArray[np.bool_]:
        """Tell which of the contacted replicas is the coordinator itself (samples, asked)."""
        dc, turn = self.asked(level)
        return np.asarray((dc == self.reader[:, None]) & (turn == 0) & self.reader_holds[:, None])

    def may_miss(self, level: str, used: IndexArray) -> bool:
        """Tell whether a write can commit without the replicas that the read uses."""
        others = without(np.zeros((1, len(used), self.dcs * self.rf)), used)
        return bool(np.isfinite(self.committed_s(level, others)).any())

    def committed_s(self, level: str, answers_s: FloatArray) -> FloatArray:
        """Return the commit times of a write in seconds (draws, samples)."""
        wanted = [self.cluster.need(level, dc) for dc in range(self.dcs)]
        if wanted[0].total:
            return committed_s(answers_s, wanted[0].total)
        by_dc = np.sort(answers_s.reshape(*answers_s.shape[:-1], self.dcs, self.rf), axis=-1)
        needed = np.array([_counts(each, self.dcs) for each in wanted])[self.writer]
        last = np.take_along_axis(by_dc, np.maximum(needed - 1, 0)[None, ..., None], axis=-1)[..., 0]
        return np.asarray(np.where(needed > 0, last, 0.0).max(axis=-1))


class _Times:
    """Sampled times in seconds (draws, samples, ...)."""

    def __init__(self, costs: Costs, numbers: RandomNumbers, places: _Places) -> None:
        self.numbers, self.shape, self.drawn = numbers, numbers.shape, 0
        read, write = (costs.links.get(operation, Exchanges()) for operation in ("read", "write"))
        parse = self.work_s(_sum(costs.coordinator, read.client))
        client = places.client_s * self._draw(lambda rng: rng.standard_exponential(self.shape))
        self.before_s = 2 * places.lan_s[..., 0] + parse + client
        mean = _by_draw(costs.mutation, 2)
        if write.internode is not None:
            mean = mean + _by_draw(write.internode, 2) / MESSAGES * places.messages
        self.mutation_s = np.asarray(mean * self._draw(lambda rng: numbers.slowdown(rng, places.replicas)))
        took = self._draw(lambda rng: rng.standard_gamma(STAGES, (*self.shape, places.replicas)) / STAGES)
        there, back = places.there_and_back_s()
        if write.internode is not None:
            there = there + self._encrypted_s(places, write.internode)
        self.there_s = np.broadcast_to(there, took.shape)
        self.answers_s = there + self.mutation_s * took + back
        self.read_exchange_s = read.internode

    def _draw(self, draw: Callable[[np.random.Generator], FloatArray]) -> FloatArray:
        self.drawn += 1
        return self.numbers.number(self.drawn - 1, draw)

    def work_s(self, mean_s: Number, *inner: int) -> FloatArray:
        """Sample response times of work with a given mean at a node (draws, samples, *inner)."""
        amounts = self._draw(
            lambda rng: rng.standard_gamma(STAGES, (*self.shape, *inner)) / STAGES * self.numbers.slowdown(rng, *inner)
        )
        return np.asarray(_by_draw(mean_s, 1 + len(inner)) * amounts)

    def asked_s(self, places: _Places, level: str) -> FloatArray:
        """Return times from the start of a read until it arrives at its replicas (draws, samples, asked)."""
        asked = self.before_s[..., None] + places.reach_s(level)
        if self.read_exchange_s is None:
            return asked
        messages = self.work_s(self.read_exchange_s, asked.shape[-1])  # at the coordinator, for each other node
        return np.asarray(asked + messages * ~places.asks_itself(level))

    def _encrypted_s(self, places: _Places, exchange_s: Number) -> FloatArray:
        """Sample the time that encryption takes before a mutation reaches its replica.

        As in `capplan.models.cassandra.cluster`, the coordinator processes one message to each data centre and the
        answers from there, and a forwarder processes the message that it receives and those that it forwards. All of
        this happens before the messages are sent.
        """
        near = self.work_s(exchange_s, places.replicas) * places.hops
        coordinator = self.work_s(exchange_s, places.dcs) * (1 + places.rf) / MESSAGES
        forwarder = self.work_s(exchange_s, places.dcs) * places.rf / MESSAGES
        return np.where(places.own > 0, near, np.repeat(coordinator + forwarder, places.rf, axis=-1))


def _met(load: Load, chance: FloatArray, cores: int) -> tuple[FloatArray, FloatArray]:
    """Return the utilisation in the phase of each sample, and its Erlang C (draws, samples)."""
    phase = (chance > np.cumsum(load.share, axis=0)[:-1, :, None]).sum(axis=0)
    busy = np.minimum(load.utilisation, MOST_BUSY)
    crowded = erlang_c(cores, cores * busy)
    return np.take_along_axis(busy.T, phase, axis=-1), np.take_along_axis(crowded.T, phase, axis=-1)


def _by_draw(value: Number, inner: int) -> FloatArray:
    """Reshape a value over draws to (1 or draws, 1, ...) with `inner` axes of length 1."""
    return np.atleast_1d(np.asarray(value, dtype=float)).reshape(-1, *(1,) * inner)


def _counts(wanted: Need, dcs: int) -> list[int]:
    return [wanted.by_dc.get(dc, 0) for dc in range(dcs)]


def _sum(value: Number, other: Number | None) -> Number:
    return value if other is None else value + other
