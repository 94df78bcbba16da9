"""Cimba: model methods compiled by numba that run as coroutines of a C engine, in the style of its own benchmark."""

from __future__ import annotations

import cimba as cb
from settings import (
    MM4_BUSY_RATE_PER_S,
    MM4_RATE_PER_S,
    MM4_SERVERS,
    MM4_SERVICE_S,
    QUORUM_NEEDED,
    QUORUM_RATE_PER_S,
    QUORUM_SERVICE_S,
)

QUORUM_GAP_S = 1 / QUORUM_RATE_PER_S
RING = 1 << 20
"""Places for requests under way in the quorum: far more than are ever inside at once."""


class FourServers(cb.Model):
    """M/M/4: arrivals put their times into a store, four server processes take them."""

    requests: cb.Param[int] = 1
    gap_s: cb.Param[float] = 1 / MM4_RATE_PER_S
    waiting: cb.Store[float]
    total: float = 0.0
    served: int = 0
    mean: cb.Output[float]

    @cb.process
    def traffic(self):
        """Arrive."""
        for _ in range(self.requests):
            cb.hold(cb.random.exponential(self.gap_s))
            self.waiting.put(cb.now())

    @cb.process(copies=MM4_SERVERS)
    def server(self):
        """Serve."""
        while True:
            start = self.waiting.get()
            cb.hold(cb.random.exponential(MM4_SERVICE_S))
            self.total += cb.now() - start
            self.served += 1

    @cb.on_end
    def measure(self):
        """Sum up."""
        self.mean = self.total / self.served


class Quorum(cb.Model):
    """2-of-3 quorum: a store and a process per replica."""

    requests: cb.Param[int] = 1
    first: cb.Store[int]
    second: cb.Store[int]
    third: cb.Store[int]
    started: cb.Array[float] = cb.Array(RING)
    answers: cb.Array[int] = cb.Array(RING)
    total: float = 0.0
    served: int = 0
    mean: cb.Output[float]

    @cb.process
    def traffic(self):
        """Arrive at all three replicas at once."""
        for number in range(self.requests):
            cb.hold(cb.random.exponential(QUORUM_GAP_S))
            place = number % RING
            self.started[place] = cb.now()
            self.answers[place] = 0
            self.first.put(place)
            self.second.put(place)
            self.third.put(place)

    @cb.process
    def replica_1(self):
        """Serve at the first replica."""
        while True:
            place = self.first.get()
            cb.hold(cb.random.exponential(QUORUM_SERVICE_S))
            self.answers[place] += 1
            if self.answers[place] == QUORUM_NEEDED:
                self.total += cb.now() - self.started[place]
                self.served += 1

    @cb.process
    def replica_2(self):
        """Serve at the second replica."""
        while True:
            place = self.second.get()
            cb.hold(cb.random.exponential(QUORUM_SERVICE_S))
            self.answers[place] += 1
            if self.answers[place] == QUORUM_NEEDED:
                self.total += cb.now() - self.started[place]
                self.served += 1

    @cb.process
    def replica_3(self):
        """Serve at the third replica."""
        while True:
            place = self.third.get()
            cb.hold(cb.random.exponential(QUORUM_SERVICE_S))
            self.answers[place] += 1
            if self.answers[place] == QUORUM_NEEDED:
                self.total += cb.now() - self.started[place]
                self.served += 1

    @cb.on_end
    def measure(self):
        """Sum up."""
        self.mean = self.total / self.served


def mm4(requests: int, seed: int) -> dict[str, float]:
    """M/M/4."""
    return _run(FourServers(), requests, seed)


def busy(requests: int, seed: int) -> dict[str, float]:
    """M/M/4 at 95 % load."""
    model = FourServers()
    model.gap_s = 1 / MM4_BUSY_RATE_PER_S
    return _run(model, requests, seed)


def quorum(requests: int, seed: int) -> dict[str, float]:
    """2-of-3 quorum."""
    return _run(Quorum(), requests, seed)


def _run(model: cb.Model, requests: int, seed: int) -> dict[str, float]:
    model.requests = requests
    results = cb.Experiment(model, seed=seed).run(workers=1)
    if results.failed.any():
        raise RuntimeError(str(results.failure_reasons))
    return {"mean_s": float(results[model].mean.values[0, 0])}
