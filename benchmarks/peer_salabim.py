"""salabim, with `yield` or yieldless (greenlets): a component per customer, or components for the servers only.

Creating a component costs far more than anything that it then does, so the second way is several times faster; it is
also the way in which Cimba's own benchmark is written. Monitors of the queues are off.
"""

from __future__ import annotations

import random
from collections import deque
from statistics import fmean
from typing import Any

import salabim as sim
from settings import (
    MM4_RATE_PER_S,
    MM4_SERVERS,
    MM4_SERVICE_S,
    QUORUM_NEEDED,
    QUORUM_RATE_PER_S,
    QUORUM_REPLICAS,
    QUORUM_SERVICE_S,
)


def mm4_customers(requests: int, seed: int) -> dict[str, float]:
    """M/M/4 as in salabim's manual: every customer is a component that claims a resource."""
    sim.yieldless(False)
    draw = random.Random(seed).expovariate
    environment = sim.Environment(trace=False)
    server = sim.Resource("server", capacity=MM4_SERVERS, monitor=False)
    responses: list[float] = []

    class Customer(sim.Component):
        def process(self) -> Any:
            start = environment.now()
            yield self.request(server)
            yield self.hold(draw(1 / MM4_SERVICE_S))
            self.release()
            responses.append(environment.now() - start)

    class Traffic(sim.Component):
        def process(self) -> Any:
            for _ in range(requests):
                yield self.hold(draw(MM4_RATE_PER_S))
                Customer()

    Traffic()
    environment.run()
    return {"mean_s": fmean(responses)}


def mm4_yieldless(requests: int, seed: int) -> dict[str, float]:
    """M/M/4 with a component per customer, in yieldless mode."""
    sim.yieldless(True)
    draw = random.Random(seed).expovariate
    environment = sim.Environment(trace=False)
    server = sim.Resource("server", capacity=MM4_SERVERS, monitor=False)
    responses: list[float] = []

    class Customer(sim.Component):
        def process(self) -> None:
            start = environment.now()
            self.request(server)
            self.hold(draw(1 / MM4_SERVICE_S))
            self.release()
            responses.append(environment.now() - start)

    class Traffic(sim.Component):
        def process(self) -> None:
            for _ in range(requests):
                self.hold(draw(MM4_RATE_PER_S))
                Customer()

    Traffic()
    environment.run()
    return {"mean_s": fmean(responses)}


def mm4_servers(requests: int, seed: int) -> dict[str, float]:
    """M/M/4 with the servers as components; customers are the times of their arrivals."""
    sim.yieldless(False)
    draw = random.Random(seed).expovariate
    environment = sim.Environment(trace=False)
    waiting: deque[float] = deque()
    idle: list[Any] = []
    responses: list[float] = []

    class Server(sim.Component):
        def process(self) -> Any:
            while True:
                while not waiting:
                    idle.append(self)
                    yield self.passivate()
                start = waiting.popleft()
                yield self.hold(draw(1 / MM4_SERVICE_S))
                responses.append(environment.now() - start)

    class Traffic(sim.Component):
        def process(self) -> Any:
            for _ in range(requests):
                yield self.hold(draw(MM4_RATE_PER_S))
                waiting.append(environment.now())
                if idle:
                    idle.pop().activate()

    for _ in range(MM4_SERVERS):
        Server()
    Traffic()
    environment.run()
    return {"mean_s": fmean(responses)}


def quorum(requests: int, seed: int) -> dict[str, float]:
    """2-of-3 quorum with the replicas as components."""
    sim.yieldless(False)
    draw = random.Random(seed).expovariate
    environment = sim.Environment(trace=False)
    responses: list[float] = []

    class Replica(sim.Component):
        def setup(self) -> None:
            self.waiting: deque[list[float]] = deque()

        def process(self) -> Any:
            while True:
                while not self.waiting:
                    yield self.passivate()
                request = self.waiting.popleft()
                yield self.hold(draw(1 / QUORUM_SERVICE_S))
                request[1] += 1
                if request[1] == QUORUM_NEEDED:
                    responses.append(environment.now() - request[0])

    class Traffic(sim.Component):
        def process(self) -> Any:
            for _ in range(requests):
                yield self.hold(draw(QUORUM_RATE_PER_S))
                request = [environment.now(), 0]
                for replica in replicas:
                    replica.waiting.append(request)
                    if replica.ispassive():
                        replica.activate()

    replicas = [Replica() for _ in range(QUORUM_REPLICAS)]
    Traffic()
    environment.run()
    return {"mean_s": fmean(responses)}
