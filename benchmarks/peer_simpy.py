"""Hand-written SimPy: the way its tutorials do it, and the fastest way that is still a simulation.

The fast variants use events and callbacks only: no process, no resource, one event per arrival and one per service.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator
from statistics import fmean

import simpy
from settings import (
    MM4_BUSY_RATE_PER_S,
    MM4_RATE_PER_S,
    MM4_SERVERS,
    MM4_SERVICE_S,
    QUORUM_NEEDED,
    QUORUM_RATE_PER_S,
    QUORUM_REPLICAS,
    QUORUM_SERVICE_S,
)
from simpy import Environment, Event, Timeout

Found = tuple[list[float], Environment]


def mm4(requests: int, seed: int) -> dict[str, float]:
    """M/M/4: one process per request and a Resource."""
    return _mean(*_mm4(requests, seed, MM4_RATE_PER_S))


def mm4_p99(requests: int, seed: int) -> dict[str, float]:
    """M/M/4 with its percentile."""
    return _mean_and_p99(*_mm4(requests, seed, MM4_RATE_PER_S))


def busy_p99(requests: int, seed: int) -> dict[str, float]:
    """M/M/4 at 95 % load with its percentile."""
    return _mean_and_p99(*_mm4(requests, seed, MM4_BUSY_RATE_PER_S))


def mm4_fast(requests: int, seed: int) -> dict[str, float]:
    """M/M/4: callbacks, a counter of free servers and a deque of those who wait."""
    return _mean(*_mm4_fast(requests, seed, MM4_RATE_PER_S))


def mm4_fast_p99(requests: int, seed: int) -> dict[str, float]:
    """M/M/4 by callbacks with its percentile."""
    return _mean_and_p99(*_mm4_fast(requests, seed, MM4_RATE_PER_S))


def busy_fast_p99(requests: int, seed: int) -> dict[str, float]:
    """M/M/4 at 95 % load by callbacks with its percentile."""
    return _mean_and_p99(*_mm4_fast(requests, seed, MM4_BUSY_RATE_PER_S))


def _mm4(requests: int, seed: int, rate_per_s: float) -> Found:
    draw = random.Random(seed).expovariate
    environment = Environment()
    server = simpy.Resource(environment, MM4_SERVERS)
    responses: list[float] = []

    def request() -> Iterator[Event]:
        start = environment.now
        with server.request() as turn:
            yield turn
            yield environment.timeout(draw(1 / MM4_SERVICE_S))
        responses.append(environment.now - start)

    def traffic() -> Iterator[Event]:
        for _ in range(requests):
            yield environment.timeout(draw(rate_per_s))
            environment.process(request())

    environment.process(traffic())
    environment.run()
    return responses, environment


def _mm4_fast(requests: int, seed: int, rate_per_s: float) -> Found:
    draw, environment = random.Random(seed).expovariate, Environment()
    waiting: deque[float] = deque()
    responses: list[float] = []
    free, left = MM4_SERVERS, requests
    speed = 1 / MM4_SERVICE_S

    def arrive(_: Event) -> None:
        nonlocal free, left
        if free:
            free -= 1
            Timeout(environment, draw(speed), environment.now).callbacks.append(done)
        else:
            waiting.append(environment.now)
        left -= 1
        if left:
            Timeout(environment, draw(rate_per_s)).callbacks.append(arrive)

    def done(service: Event) -> None:
        nonlocal free
        responses.append(environment.now - service.value)
        if waiting:
            Timeout(environment, draw(speed), waiting.popleft()).callbacks.append(done)
        else:
            free += 1

    Timeout(environment, draw(rate_per_s)).callbacks.append(arrive)
    environment.run()
    return responses, environment


def quorum(requests: int, seed: int) -> dict[str, float]:
    """2-of-3 quorum: one process per request and per replica visit, a Resource per replica."""
    draw, environment = random.Random(seed).expovariate, Environment()
    replicas = [simpy.Resource(environment, 1) for _ in range(QUORUM_REPLICAS)]
    responses: list[float] = []

    def visit(replica: simpy.Resource, answers: list[int], full: Event) -> Iterator[Event]:
        with replica.request() as turn:
            yield turn
            yield environment.timeout(draw(1 / QUORUM_SERVICE_S))
        answers[0] += 1
        if answers[0] == QUORUM_NEEDED:
            full.succeed()

    def request() -> Iterator[Event]:
        start, answers, full = environment.now, [0], environment.event()
        for replica in replicas:
            environment.process(visit(replica, answers, full))
        yield full
        responses.append(environment.now - start)

    def traffic() -> Iterator[Event]:
        for _ in range(requests):
            yield environment.timeout(draw(QUORUM_RATE_PER_S))
            environment.process(request())

    environment.process(traffic())
    environment.run()
    return _mean_and_p99(responses, environment)


def quorum_fast(requests: int, seed: int) -> dict[str, float]:
    """2-of-3 quorum: callbacks and a deque per replica."""
    draw, environment = random.Random(seed).expovariate, Environment()
    queues: list[deque[list[float]]] = [deque() for _ in range(QUORUM_REPLICAS)]  # the first one is being served
    responses: list[float] = []
    left, speed = requests, 1 / QUORUM_SERVICE_S

    def arrive(_: Event) -> None:
        nonlocal left
        request = [environment.now, 0]
        for queue in queues:
            queue.append(request)
            if len(queue) == 1:
                Timeout(environment, draw(speed), queue).callbacks.append(answer)
        left -= 1
        if left:
            Timeout(environment, draw(QUORUM_RATE_PER_S)).callbacks.append(arrive)

    def answer(service: Event) -> None:
        queue = service.value
        request = queue.popleft()
        request[1] += 1
        if request[1] == QUORUM_NEEDED:
            responses.append(environment.now - request[0])
        if queue:
            Timeout(environment, draw(speed), queue).callbacks.append(answer)

    Timeout(environment, draw(QUORUM_RATE_PER_S)).callbacks.append(arrive)
    environment.run()
    return _mean_and_p99(responses, environment)


def _mean(responses: list[float], environment: Environment) -> dict[str, float]:
    return {"mean_s": fmean(responses), "events": events(environment)}


def _mean_and_p99(responses: list[float], environment: Environment) -> dict[str, float]:
    return {**_mean(responses, environment), "p99_s": percentile(responses)}


def events(environment: Environment) -> int:
    """Return how many events SimPy has put on its agenda."""
    return next(environment._eid)  # it keeps no public count


def percentile(values: list[float], level: float = 0.99) -> float:
    """Return the smallest value that this share of the values does not exceed."""
    return sorted(values)[max(0, -int(-len(values) * level // 1) - 1)]
