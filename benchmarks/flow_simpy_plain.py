"""The three-data-centre flow in SimPy as a good programmer writes it: a process per session and per replica.

Draws come in blocks from numpy. Waiting for several answers is a counter and an event; the storage path, for which
nobody waits, is a recursion without events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import cycle, permutations, product
from typing import Any

import numpy as np
import simpy
from flow_statistics import figures
from networks import CLASSES, FlowNumbers, flow_numbers
from simpy import Event
from simpy_cores import CORES

WARM_UP = 0.1  # of the run
Steps = Iterator[Event]
Rows = list[tuple[int, ...]]  # replicas by data centre


class Draws:
    """Random numbers with mean 1, drawn in blocks."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.exponential = self._blocks(self.random.standard_exponential)
        self.erlang = self._blocks(lambda size: self.random.standard_gamma(2.0, size) / 2)
        self.uniform = self._blocks(self.random.random)

    def _blocks(self, draw: Callable[[int], Any]) -> Callable[[], float]:
        def stream() -> Iterator[float]:
            while True:
                yield from draw(4096).tolist()

        return stream().__next__


class Answers:
    """Counts answers; `full` happens with the last one needed."""

    def __init__(self, environment: simpy.Environment, needed: int) -> None:
        self.missing, self.full = needed, environment.event()

    def count(self) -> None:
        """Count one."""
        self.missing -= 1
        if self.missing == 0:
            self.full.succeed()


class Node:
    """A Cassandra node: cores, threads, and a storage path of which only the backlog matters."""

    def __init__(self, environment: simpy.Environment, numbers: FlowNumbers, discipline: str) -> None:
        self.environment = environment
        self.cores = CORES[discipline](environment, numbers.node_cores)
        self.threads = simpy.Resource(environment, numbers.threads)
        self.storage_free_at = self.storage_busy_s = 0.0

    def store(self, demand_s: float) -> None:
        """Write to the storage path; nobody waits for it."""
        self.storage_free_at = max(self.environment.now, self.storage_free_at) + demand_s
        self.storage_busy_s += demand_s


def own_first(me: int, row: tuple[int, ...]) -> list[int]:
    """Return the replicas of a row with the coordinator first."""
    return [me, *(number for number in row if number != me)]


class Flow:
    """Everything of one run."""

    def __init__(self, numbers: FlowNumbers, discipline: str, seed: int, until_s: float) -> None:
        self.numbers, self.until_s = numbers, until_s
        self.environment = simpy.Environment()
        self.draws = Draws(seed)
        dcs, fronts, nodes = range(numbers.dcs), range(numbers.fronts), range(numbers.nodes)
        self.nodes = [[Node(self.environment, numbers, discipline) for _ in nodes] for _ in dcs]
        self.fronts = [[CORES[discipline](self.environment, numbers.front_cores) for _ in fronts] for _ in dcs]
        self.workers = [[simpy.Resource(self.environment, numbers.workers) for _ in fronts] for _ in dcs]
        self.orders = list(permutations(nodes))  # of the replicas of a row, all equally likely
        self.next_dc = {name: cycle(dcs).__next__ for name in CLASSES}
        self.next_front = {key: cycle(fronts).__next__ for key in product(CLASSES, dcs)}
        places = product(CLASSES, dcs, fronts, ("read", "write"))
        self.next_node = {key: cycle(nodes).__next__ for key in places}
        self.latencies_s: dict[str, list[float]] = {name: [] for name in CLASSES}
        self.dropped = 0

    def traffic(self) -> Steps:
        """Let sessions arrive."""
        environment, length = self.environment, 2 + self.numbers.updates
        mean_s = length / self.numbers.rate_per_s
        while True:
            yield environment.timeout(mean_s * self.draws.exponential())
            if environment.now >= self.until_s:
                return
            environment.process(self.session())

    def session(self) -> Steps:
        """One session: each message when the one before it has been answered."""
        rows = [self.orders[int(self.draws.uniform() * len(self.orders))] for _ in range(self.numbers.dcs)]
        for position in range(2 + self.numbers.updates):
            if position:
                yield self.environment.timeout(self.numbers.gap_s * self.draws.exponential())
            start = self.environment.now
            if start >= self.until_s:
                return
            name = CLASSES[min(position, 2)]
            dc = self.next_dc[name]()
            front = self.next_front[name, dc]()
            workers = self.workers[dc][front]
            if workers.count == workers.capacity and len(workers.queue) >= self.numbers.queue_limit:
                self.dropped += 1
                return
            with workers.request() as worker:
                yield worker
                yield self.work(self.fronts[dc][front], self.numbers.front_s * self.draws.exponential())
                if name != "start":
                    yield from self.read(dc, self.next_node[name, dc, front, "read"](), rows)
                if name != "auth":
                    yield from self.write(dc, self.next_node[name, dc, front, "write"](), rows)
            if start >= WARM_UP * self.until_s:
                self.latencies_s[name].append(self.environment.now - start)

    def work(self, cores: Any, demand_s: float) -> Event:
        """Return the event of this work being done."""
        done = self.environment.event()
        cores.serve(demand_s, done.succeed)
        return done

    def read(self, dc: int, me: int, rows: Rows) -> Steps:
        """Read at LOCAL_QUORUM through node `me`, which asks itself first."""
        numbers, environment, node = self.numbers, self.environment, self.nodes[dc][me]
        yield environment.timeout(numbers.lan_s)
        with node.threads.request() as thread:
            yield thread
            yield self.work(node.cores, numbers.parse_s * self.draws.erlang())
            repair = self.draws.uniform() < numbers.repair_chance
            answers = Answers(environment, numbers.read_needed)
            for number in own_first(me, rows[dc])[: numbers.nodes if repair else numbers.read_needed]:
                away_s = 0.0 if number == me else 2 * numbers.lan_s
                environment.process(self.read_at(self.nodes[dc][number], away_s, answers))
            yield answers.full
        yield environment.timeout(numbers.lan_s)

    def read_at(self, replica: Node, away_s: float, answers: Answers) -> Steps:
        """Read at one replica."""
        if away_s:
            yield self.environment.timeout(away_s)
        yield self.work(replica.cores, self.numbers.read_s * self.draws.erlang())
        replica.cores.serve(self.numbers.read_s * self.numbers.unseen * self.draws.erlang(), None)
        answers.count()

    def write(self, dc: int, me: int, rows: Rows) -> Steps:
        """Write at QUORUM through node `me`: to all replicas, elsewhere through one that passes it on."""
        numbers, environment, node = self.numbers, self.environment, self.nodes[dc][me]
        yield environment.timeout(numbers.lan_s)
        with node.threads.request() as thread:
            yield thread
            yield self.work(node.cores, numbers.parse_s * self.draws.erlang())
            answers = Answers(environment, numbers.write_needed)
            for number in own_first(me, rows[dc]):
                hop = 0.0 if number == me else numbers.lan_s
                environment.process(self.write_at(self.nodes[dc][number], hop, hop, answers))
            for other in range(numbers.dcs):
                if other != dc:
                    environment.process(self.forwarded(other, rows[other], answers))
            yield answers.full
        yield environment.timeout(numbers.lan_s)

    def forwarded(self, dc: int, row: tuple[int, ...], answers: Answers) -> Steps:
        """Take a write in another data centre and pass it on."""
        numbers = self.numbers
        yield self.environment.timeout(numbers.wan_s)
        for place, number in enumerate(row):
            there_s = numbers.lan_s if place else 0.0
            self.environment.process(self.write_at(self.nodes[dc][number], there_s, numbers.wan_s, answers))

    def write_at(self, replica: Node, there_s: float, back_s: float, answers: Answers) -> Steps:
        """Write at one replica and answer."""
        numbers = self.numbers
        if there_s:
            yield self.environment.timeout(there_s)
        yield self.work(replica.cores, numbers.mutation_s * self.draws.erlang())
        replica.cores.serve(numbers.mutation_s * numbers.unseen * self.draws.erlang(), None)
        replica.store(numbers.storage_s)
        if back_s:
            yield self.environment.timeout(back_s)
        answers.count()


def run(flow: Any, requests: int) -> dict[str, Any]:
    """Run a flow to its end and sum up; `requests` is what was asked for, the result says how many there were."""
    flow.environment.process(flow.traffic())
    used: list[tuple[float, float, float]] = []
    flow.environment.timeout(flow.until_s).callbacks.append(lambda _: used.append(_busy(flow)))
    flow.environment.run()
    measured = sum(map(len, flow.latencies_s.values()))
    return {
        "requests": round(measured / (1 - WARM_UP)) if measured else requests,
        "events": next(flow.environment._eid),  # SimPy keeps no public count
        "drops": flow.dropped,
        "classes": {name: figures(values) for name, values in flow.latencies_s.items()},
        "utilisation": dict(zip(("front", "cassandra", "storage"), used[0], strict=True)),
    }


def _busy(flow: Any) -> tuple[float, float, float]:
    numbers, nodes = flow.numbers, [node for dc in flow.nodes for node in dc]
    fronts = [cores for dc in flow.fronts for cores in dc]
    until = flow.until_s
    return (
        sum(cores.busy_s for cores in fronts) / (len(fronts) * numbers.front_cores * until),
        sum(node.cores.busy_s for node in nodes) / (len(nodes) * numbers.node_cores * until),
        sum(node.storage_busy_s for node in nodes) / (len(nodes) * until),
    )


def shared(requests: int, seed: int) -> dict[str, Any]:
    """Cores shared by all inside, as capplan's calibrated model has them."""
    numbers = flow_numbers()
    return run(Flow(numbers, "ps", seed, requests / numbers.rate_per_s), requests)


def queued(requests: int, seed: int) -> dict[str, Any]:
    """Cores that serve first come, first served: less work for SimPy."""
    numbers = flow_numbers()
    return run(Flow(numbers, "fcfs", seed, requests / numbers.rate_per_s), requests)
