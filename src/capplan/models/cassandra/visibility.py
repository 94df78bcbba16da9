"""The probability that a read in one data centre misses a row that was just written in another, by sampling (WARS)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import factorial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from capplan.errors import RefusedError
from capplan.models.cassandra.cluster import STAGES, Cluster, Costs
from capplan.models.cassandra.consistency import Need
from capplan.models.cassandra.encryption import MESSAGES, Exchanges
from capplan.models.language.units import FloatArray, Number
from capplan.models.solver.single_station import erlang_c

Survival = Callable[[FloatArray], FloatArray]
"""Probability that W exceeds a time in seconds; shape (..., used)."""


def without(answers_s: FloatArray, used: NDArray[np.intp]) -> FloatArray:
    """Return the answer times of a write, with the replicas that the read uses excluded.

    Parameters
    ----------
    answers_s : array (..., replicas)
        W + A of each replica, in seconds from the start of the write.
    used : array of int (..., used)
        Replicas whose answers the read uses.

    Returns
    -------
    array (..., replicas)
        Answer times in seconds; infinite for the replicas that the read uses.
    """
    others = answers_s.copy()
    np.put_along_axis(others, np.broadcast_to(used, (*others.shape[:-1], used.shape[-1])), np.inf, axis=-1)
    return others


def committed_s(answers_s: FloatArray, needed: int) -> FloatArray:
    """Return the time when `needed` replicas along the last axis have answered a write; infinite if they never do."""
    if needed > answers_s.shape[-1]:
        return np.full(answers_s.shape[:-1], np.inf)
    return np.asarray(np.partition(answers_s, needed - 1, axis=-1)[..., needed - 1])


def not_found(gaps_s: ArrayLike, commit_s: FloatArray, asked_s: FloatArray, survival: Survival) -> FloatArray:
    """Return the conditional probability that a read misses the row, for each sample.

    Parameters
    ----------
    gaps_s : array (gaps,)
        Times from the commit to the start of the read, in seconds.
    commit_s : array (...)
        Commit time of a write that uses only the other replicas, in seconds; infinite if they cannot make up the level.
    asked_s : array (..., used)
        Time at which the read arrives at each replica that it uses, in seconds from its start.
    survival : callable
        Survival function of W at these replicas.

    Returns
    -------
    array (gaps, ...)
        Probabilities; their mean over samples is the probability of a miss. They fall with the gap in every sample.
    """
    known = np.isfinite(commit_s)
    start = np.where(known, commit_s, 0.0)[..., None] + asked_s
    chances = [np.where(known, np.prod(survival(start + gap), axis=-1), 0.0) for gap in np.asarray(gaps_s).flat]
    return np.stack(chances)


MOST_BUSY = 0.99  # utilisation of the cores; above it there is no steady state, and mutations are dropped

IndexArray = NDArray[np.intp]


@dataclass(frozen=True)
class Load:
    """Utilisation of the cores of a node in each phase of the traffic.

    Attributes
    ----------
    share : array (phases, draws)
        Share of the requests that arrive in each phase; adds up to 1.
    utilisation : array (phases, draws) or (phases, draws, dcs)
        Utilisation of the cores in each phase, the same everywhere or by data centre; limited to `MOST_BUSY`.
    """

    share: FloatArray
    utilisation: FloatArray


@dataclass(frozen=True)
class Question:
    """The consistency level of the write, and that of the read in another data centre.

    Attributes
    ----------
    write, read : str
        Consistency levels.
    client_s : number
        Mean of the exponential time until the reading client queries Cassandra, in seconds.
    client_share : tuple of float (dcs,) or None
        Share of the messages in each data centre, independent of each other; None: all pairs are equally likely.
    """

    write: str
    read: str
    client_s: Number
    client_share: tuple[float, ...] | None = None


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
    """The random numbers of a sample, reused for other samples with the same load, read level and size.

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
        """Return the numbers at a position in the drawing order; draw them on first use."""
        if place == len(self._known):
            self._known.append(draw(self._rng))
        return self._known[place]

    def slowdown(self, rng: np.random.Generator, where: IndexArray) -> FloatArray:
        """Draw slowdowns of jobs at nodes of given data centres, an array (samples, ...): (draws, samples, ...)."""
        busy, crowded = (_at(each, where) for each in (self._busy, self._crowded))
        return slowed(rng.random((self.shape[0], *where.shape)), busy, crowded, self.cores)


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
    if any(cluster.down):
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
    asked = np.where(places.repeated(question.read), -np.inf, asked)  # repeats do not count: sure to be late
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
    """Data centres of writer and reader for each sample; `begin` is the index of each data centre's first replica.

    Replica 0 of a data centre is the forwarder. In the writer's data centre it is the coordinator if that is a replica.
    """

    def __init__(self, cluster: Cluster, question: Question, sampling: Sampling) -> None:
        self.cluster, self.dcs, self.rf = cluster, len(cluster.nodes), np.array(cluster.rf)
        self.client_s = _by_draw(question.client_s, 1)
        rng = np.random.default_rng([sampling.seed, 1])
        number = rng.permutation(sampling.samples)  # all pairs equally often, in random order
        self.writer, self.reader = _pairs(number, self.dcs, question.client_share)
        share = self.rf / np.array(cluster.nodes)
        self.writer_holds = rng.random(sampling.samples) < share[self.writer]
        self.reader_holds = rng.random(sampling.samples) < share[self.reader]
        equal = len(set(cluster.rf)) == 1  # other random numbers than with an array of equal bounds
        self.turn = rng.integers(cluster.rf[0] if equal else self.rf, size=(sampling.samples, self.dcs))
        ways = np.broadcast_arrays(*(np.atleast_1d(cell) for row in cluster.wan_s for cell in row))
        mean = 1 + np.atleast_1d(cluster.wan_extra)[:, None, None]
        self.ways_s = np.stack(ways, axis=-1).reshape(-1, self.dcs, self.dcs) * mean
        self.lan_s = _by_draw(cluster.lan_s, 2)

        self.dc_of = np.repeat(np.arange(self.dcs), self.rf)
        self.begin = np.cumsum(self.rf) - self.rf
        self.own, self.hops = self._own_and_hops()

    def _own_and_hops(self) -> tuple[FloatArray, FloatArray]:
        """Return indicators: replicas in the writer's data centre, and replicas reached by a hop from a local node."""
        own = np.where(self.dc_of == self.writer[:, None], 1.0, 0.0)
        hops = np.ones_like(own)
        hops[:, self.begin] = 0.0
        hops[np.arange(len(own)), self.begin[self.writer]] = ~self.writer_holds
        return own, hops

    @property
    def messages(self) -> FloatArray:
        """Messages of a write that each replica processes (samples, replicas); at a forwarder only the answer."""
        return MESSAGES * self.hops + (1 - self.hops) * (1 - self.own)

    def there_and_back_s(self) -> tuple[FloatArray, FloatArray]:
        """Return the network times of a write to each replica and of its answer (1 or draws, samples, replicas)."""
        far = self.ways_s[:, self.writer][..., self.dc_of]
        return far + self.lan_s * self.hops, far + self.lan_s * (self.hops * self.own)

    def asked(self, level: str) -> tuple[IndexArray, IndexArray]:
        """Return the data centre and local rank of each replica that a read contacts (samples, asked).

        If reads in some data centres contact fewer replicas than in others, they repeat the first one.
        """
        by_dc = [self._asked_from(dc, level) for dc in range(self.dcs)]
        most = max(map(len, by_dc))
        filled = [each + each[:1] * (most - len(each)) for each in by_dc]
        found = np.array(filled, dtype=np.intp)[self.reader]
        return found[..., 0], found[..., 1]

    def repeated(self, level: str) -> NDArray[np.bool_]:
        """Return which of the contacted replicas are duplicates (samples, asked)."""
        counts = np.array([len(self._asked_from(dc, level)) for dc in range(self.dcs)])
        return np.asarray(np.arange(counts.max()) >= counts[self.reader, None])

    def _asked_from(self, dc: int, level: str) -> list[tuple[int, int]]:
        wanted = self.cluster.need(level, dc)
        near = [dc, *self.cluster.nearest_first(dc)]
        if wanted.by_dc:
            return [(other, turn) for other in near for turn in range(wanted.by_dc.get(other, 0))]
        every = [(other, turn) for other in near for turn in range(self.cluster.rf[other])]
        return every[: wanted.total]

    def used(self, level: str) -> IndexArray:
        """Return the replicas whose answers a read uses: all that it contacts (samples, asked)."""
        dc, turn = self.asked(level)
        begin = np.take_along_axis(self.turn, dc, axis=-1)
        return np.asarray(self.begin[dc] + (begin + turn) % self.rf[dc])

    def reach_s(self, level: str) -> FloatArray:
        """Return network times from the reading coordinator to the replicas (1 or draws, samples, asked)."""
        dc, _ = self.asked(level)
        local = dc == self.reader[:, None]
        return np.asarray(self.ways_s[:, self.reader[:, None], dc] + self.lan_s * (local & ~self.asks_itself(level)))

    def asks_itself(self, level: str) -> NDArray[np.bool_]:
        """Return which of the contacted replicas is the coordinator itself (samples, asked)."""
        dc, turn = self.asked(level)
        return np.asarray((dc == self.reader[:, None]) & (turn == 0) & self.reader_holds[:, None])

    def may_miss(self, level: str, used: IndexArray) -> bool:
        """Return whether a write can commit without the replicas that the read uses."""
        others = without(np.zeros((1, *self.own.shape)), used)
        return bool(np.isfinite(self.committed_s(level, others)).any())

    def committed_s(self, level: str, answers_s: FloatArray) -> FloatArray:
        """Return the commit times of a write in seconds (draws, samples)."""
        wanted = [self.cluster.need(level, dc) for dc in range(self.dcs)]
        if wanted[0].total:
            return committed_s(answers_s, wanted[0].total)
        needed = np.array([_counts(each, self.dcs) for each in wanted])[self.writer]
        last = np.zeros(answers_s.shape[:-1])
        for dc, count in enumerate(needed.T):
            there = np.sort(answers_s[..., self.dc_of == dc], axis=-1)
            found = np.take_along_axis(there, np.maximum(count - 1, 0)[None, :, None], axis=-1)[..., 0]
            last = np.maximum(last, np.where(count > 0, found, 0.0))
        return last


def _pairs(number: IndexArray, dcs: int, client_share: tuple[float, ...] | None) -> tuple[IndexArray, IndexArray]:
    """Return the data centres of writer and reader for each sample, with every pair at its expected frequency."""
    if client_share is None:
        writer = number % dcs
        return writer, (writer + 1 + number * (dcs - 1) // len(number)) % dcs
    both = np.outer(client_share, client_share) * (1 - np.eye(dcs))
    limits = np.cumsum(both) / both.sum()
    place = np.searchsorted(limits, (number + 0.5) / len(number))
    return place // dcs, place % dcs


class _Times:
    """Sampled times in seconds (draws, samples, ...)."""

    def __init__(self, costs: Costs, numbers: RandomNumbers, places: _Places) -> None:
        self.numbers, self.shape, self.drawn = numbers, numbers.shape, 0
        read, write = (costs.links.get(operation, Exchanges()) for operation in ("read", "write"))
        parse = self.work_s(_sum(costs.coordinator, read.client), places.reader)
        client = places.client_s * self._draw(lambda rng: rng.standard_exponential(self.shape))
        self.before_s = 2 * places.lan_s[..., 0] + parse + client
        mean = _by_draw(costs.mutation, 2)
        if write.internode is not None:
            mean = mean + _by_draw(write.internode, 2) / MESSAGES * places.messages
        there = np.broadcast_to(places.dc_of, places.own.shape)
        self.mutation_s = np.asarray(mean * self._draw(lambda rng: numbers.slowdown(rng, there)))
        took = self._draw(lambda rng: rng.standard_gamma(STAGES, (self.shape[0], *there.shape)) / STAGES)
        out, back = places.there_and_back_s()
        if write.internode is not None:
            out = out + self._encrypted_s(places, write.internode)
        self.there_s = np.broadcast_to(out, took.shape)
        self.answers_s = out + self.mutation_s * took + back
        self.read_exchange_s = read.internode

    def _draw(self, draw: Callable[[np.random.Generator], FloatArray]) -> FloatArray:
        self.drawn += 1
        return self.numbers.number(self.drawn - 1, draw)

    def work_s(self, mean_s: Number, where: IndexArray) -> FloatArray:
        """Sample response times of work with a given mean at nodes of some data centres (samples, ...).

        Returns an array (draws, samples, ...).
        """
        shape = (self.shape[0], *where.shape)
        amounts = self._draw(lambda rng: rng.standard_gamma(STAGES, shape) / STAGES * self.numbers.slowdown(rng, where))
        return np.asarray(_by_draw(mean_s, where.ndim) * amounts)

    def asked_s(self, places: _Places, level: str) -> FloatArray:
        """Return the times from the start of a read to its arrival at its replicas (draws, samples, asked)."""
        asked = self.before_s[..., None] + places.reach_s(level)
        if self.read_exchange_s is None:
            return asked
        reader = np.broadcast_to(places.reader[:, None], asked.shape[1:])
        messages = self.work_s(self.read_exchange_s, reader)  # at the coordinator, for each other node
        return np.asarray(asked + messages * ~places.asks_itself(level))

    def _encrypted_s(self, places: _Places, exchange_s: Number) -> FloatArray:
        """Sample the time that encryption takes before a mutation reaches its replica.

        As in `capplan.models.cassandra.cluster`, the coordinator processes one message to each data centre and the
        answers from there, and a forwarder processes the message that it receives and those that it forwards. All of
        this happens before the messages are sent.
        """
        samples, writer = len(places.writer), places.writer[:, None]
        to_each, to_dc = np.broadcast_to(writer, places.own.shape), np.broadcast_to(writer, (samples, places.dcs))
        near = self.work_s(exchange_s, to_each) * places.hops
        coordinator = self.work_s(exchange_s, to_dc) * (1 + places.rf) / MESSAGES
        there = np.broadcast_to(np.arange(places.dcs), to_dc.shape)
        forwarder = self.work_s(exchange_s, there) * places.rf / MESSAGES
        return np.where(places.own > 0, near, (coordinator + forwarder)[..., places.dc_of])


def _met(load: Load, chance: FloatArray, cores: int) -> tuple[FloatArray, FloatArray]:
    """Return the utilisation and Erlang C in the traffic phase of each sample (draws, samples, dcs or 1)."""
    phase = (chance > np.cumsum(load.share, axis=0)[:-1, :, None]).sum(axis=0)[..., None]
    busy = np.minimum(load.utilisation.reshape(*load.share.shape, -1), MOST_BUSY)
    crowded = erlang_c(cores, cores * busy)
    one, other = (np.take_along_axis(np.moveaxis(each, 0, 1), phase, axis=1) for each in (busy, crowded))
    return one, other


def _at(values: FloatArray, where: IndexArray) -> FloatArray:
    """Return values (draws, samples, dcs or 1) at the data centres of samples (samples, ...)."""
    if values.shape[-1] == 1:
        return values.reshape(*values.shape[:2], *(1,) * (where.ndim - 1))
    chosen = where.reshape(1, len(where), -1)
    return np.take_along_axis(values, chosen, axis=-1).reshape(len(values), *where.shape)


def _by_draw(value: Number, inner: int) -> FloatArray:
    """Reshape a value over draws to (1 or draws, 1, ...) with `inner` axes of length 1."""
    return np.atleast_1d(np.asarray(value, dtype=float)).reshape(-1, *(1,) * inner)


def _counts(wanted: Need, dcs: int) -> list[int]:
    return [wanted.by_dc.get(dc, 0) for dc in range(dcs)]


def _sum(value: Number, other: Number | None) -> Number:
    return value if other is None else value + other
