"""The three-data-centre flow in SimPy as fast as it gets: callbacks of events, no process and no resource.

Every wait is one event whose callback goes on. Sessions and replica visits are small objects whose methods are the
callbacks. This is the fairest opponent and the least readable program.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import cycle, permutations, product
from typing import Any

from flow_simpy_plain import WARM_UP, Draws, own_first, run
from networks import CLASSES, FlowNumbers, flow_numbers
from simpy import Environment, Event, Timeout
from simpy_cores import CORES

Then = Callable[[Any], object]


class Units:
    """Units of a pool: `take` goes on at once when one is free."""

    __slots__ = ("free", "waiting")

    def __init__(self, size: int) -> None:
        self.free, self.waiting = size, deque()

    def take(self, then: Then) -> None:
        """Go on with `then` as soon as there is a unit."""
        if self.free:
            self.free -= 1
            then(None)
        else:
            self.waiting.append(then)

    def give(self) -> None:
        """Give a unit back."""
        if self.waiting:
            self.waiting.popleft()(None)
        else:
            self.free += 1


class Node:
    """A Cassandra node."""

    __slots__ = ("cores", "environment", "storage_busy_s", "storage_free_at", "threads")

    def __init__(self, environment: Environment, numbers: FlowNumbers, discipline: str) -> None:
        self.environment, self.cores = environment, CORES[discipline](environment, numbers.node_cores)
        self.threads = Units(numbers.threads)
        self.storage_free_at = self.storage_busy_s = 0.0

    def store(self, demand_s: float) -> None:
        """Write to the storage path; nobody waits for it."""
        self.storage_free_at = max(self.environment.now, self.storage_free_at) + demand_s
        self.storage_busy_s += demand_s


class Answers:
    """Counts answers and goes on with the last one needed."""

    __slots__ = ("missing", "then")

    def __init__(self, needed: int, then: Then) -> None:
        self.missing, self.then = needed, then

    def count(self, _: Event | None) -> None:
        """Count one."""
        self.missing -= 1
        if self.missing == 0:
            self.then(None)


class Mutation:
    """A write at one replica."""

    __slots__ = ("answers", "back_s", "flow", "node")

    def __init__(self, flow: Flow, node: Node, back_s: float, answers: Answers) -> None:
        self.flow, self.node, self.back_s, self.answers = flow, node, back_s, answers

    def arrive(self, _: Event | None) -> None:
        """Begin."""
        self.node.cores.serve(self.flow.mutation_s * self.flow.erlang(), self.done)

    def done(self, _: Event | None) -> None:
        """Leave work for later, and answer."""
        flow, node = self.flow, self.node
        node.cores.serve(flow.later_s * flow.erlang(), None)
        node.store(flow.numbers.storage_s)
        if self.back_s:
            Timeout(flow.environment, self.back_s).callbacks.append(self.answers.count)
        else:
            self.answers.count(None)


class Reading:
    """A read at one replica."""

    __slots__ = ("answers", "flow", "node")

    def __init__(self, flow: Flow, node: Node, answers: Answers) -> None:
        self.flow, self.node, self.answers = flow, node, answers

    def arrive(self, _: Event | None) -> None:
        """Begin."""
        self.node.cores.serve(self.flow.numbers.read_s * self.flow.erlang(), self.done)

    def done(self, _: Event | None) -> None:
        """Leave work for later, and answer."""
        flow = self.flow
        self.node.cores.serve(flow.read_later_s * flow.erlang(), None)
        self.answers.count(None)


class Session:
    """A session and the request that it has under way."""

    __slots__ = ("dc", "flow", "front", "me", "name", "position", "rows", "start")

    def __init__(self, flow: Flow) -> None:
        self.flow, self.position = flow, 0
        self.rows = [flow.orders[int(flow.uniform() * len(flow.orders))] for _ in flow.nodes]

    def ask(self, _: Event | None) -> None:
        """Start the next request."""
        flow = self.flow
        self.start = flow.environment.now
        if self.start >= flow.until_s:
            return
        name = self.name = CLASSES[min(self.position, 2)]
        dc = self.dc = flow.next_dc[name]()
        front = self.front = flow.next_front[name, dc]()
        workers = flow.workers[dc][front]
        if not workers.free and len(workers.waiting) >= flow.numbers.queue_limit:
            flow.dropped += 1
            return
        workers.take(self.think)

    def think(self, _: Event | None) -> None:
        """Do the RADIUS server's own work."""
        flow, then = self.flow, self.write if self.name == "start" else self.read
        flow.fronts[self.dc][self.front].serve(flow.numbers.front_s * flow.exponential(), then)

    def read(self, _: Event | None) -> None:
        """Send a read to the next coordinator."""
        self._send("read", self.read_arrives)

    def write(self, _: Event | None) -> None:
        """Send a write to the next coordinator."""
        self._send("write", self.write_arrives)

    def _send(self, operation: str, then: Then) -> None:
        flow = self.flow
        self.me = flow.next_node[self.name, self.dc, self.front, operation]()
        Timeout(flow.environment, flow.numbers.lan_s).callbacks.append(then)

    def read_arrives(self, _: Event | None) -> None:
        """Take a thread of the coordinator."""
        self.flow.nodes[self.dc][self.me].threads.take(self.parse_read)

    def write_arrives(self, _: Event | None) -> None:
        """Take a thread of the coordinator."""
        self.flow.nodes[self.dc][self.me].threads.take(self.parse_write)

    def parse_read(self, _: Event | None) -> None:
        """Parse the read."""
        self.flow.nodes[self.dc][self.me].cores.serve(self.flow.numbers.parse_s * self.flow.erlang(), self.ask_replicas)

    def parse_write(self, _: Event | None) -> None:
        """Parse the write."""
        self.flow.nodes[self.dc][self.me].cores.serve(
            self.flow.numbers.parse_s * self.flow.erlang(), self.tell_replicas
        )

    def ask_replicas(self, _: Event | None) -> None:
        """Read at two replicas, or at all three."""
        flow, numbers = self.flow, self.flow.numbers
        count = numbers.nodes if flow.uniform() < numbers.repair_chance else numbers.read_needed
        answers, nodes = Answers(numbers.read_needed, self.read_full), flow.nodes[self.dc]
        for number in own_first(self.me, self.rows[self.dc])[:count]:
            reading = Reading(flow, nodes[number], answers)
            if number != self.me:
                Timeout(flow.environment, 2 * numbers.lan_s).callbacks.append(reading.arrive)
            else:
                reading.arrive(None)

    def tell_replicas(self, _: Event | None) -> None:
        """Write at all replicas; in other data centres one takes the write and passes it on."""
        flow, numbers, environment = self.flow, self.flow.numbers, self.flow.environment
        answers = Answers(numbers.write_needed, self.write_full)
        for number in own_first(self.me, self.rows[self.dc]):
            node = flow.nodes[self.dc][number]
            if number != self.me:
                there = Timeout(environment, numbers.lan_s)
                there.callbacks.append(Mutation(flow, node, numbers.lan_s, answers).arrive)
            else:
                Mutation(flow, node, 0.0, answers).arrive(None)
        for other in range(numbers.dcs):
            if other == self.dc:
                continue
            for place, number in enumerate(self.rows[other]):
                node = flow.nodes[other][number]
                there = Timeout(environment, numbers.wan_s + numbers.lan_s if place else numbers.wan_s)
                there.callbacks.append(Mutation(flow, node, numbers.wan_s, answers).arrive)

    def read_full(self, _: Event | None) -> None:
        """Give the thread back; the answer travels."""
        self.flow.nodes[self.dc][self.me].threads.give()
        then = self.write if self.name == "update" else self.answered
        Timeout(self.flow.environment, self.flow.numbers.lan_s).callbacks.append(then)

    def write_full(self, _: Event | None) -> None:
        """Give the thread back; the answer travels."""
        self.flow.nodes[self.dc][self.me].threads.give()
        Timeout(self.flow.environment, self.flow.numbers.lan_s).callbacks.append(self.answered)

    def answered(self, _: Event | None) -> None:
        """Book the request; the next one follows after a gap."""
        flow = self.flow
        flow.workers[self.dc][self.front].give()
        if self.start >= flow.measured_from_s:
            flow.latencies_s[self.name].append(flow.environment.now - self.start)
        self.position += 1
        if self.position < flow.length:
            Timeout(flow.environment, flow.numbers.gap_s * flow.exponential()).callbacks.append(self.ask)


class Flow:
    """Everything of one run."""

    def __init__(self, numbers: FlowNumbers, discipline: str, seed: int, until_s: float) -> None:
        self.numbers, self.until_s, self.measured_from_s = numbers, until_s, WARM_UP * until_s
        environment = self.environment = Environment()
        draws = Draws(seed)
        self.exponential, self.erlang, self.uniform = draws.exponential, draws.erlang, draws.uniform
        self.length = 2 + numbers.updates
        self.mutation_s, self.later_s = numbers.mutation_s, numbers.mutation_s * numbers.unseen
        self.read_later_s = numbers.read_s * numbers.unseen
        dcs, fronts, nodes = range(numbers.dcs), range(numbers.fronts), range(numbers.nodes)
        self.nodes = [[Node(environment, numbers, discipline) for _ in nodes] for _ in dcs]
        self.fronts = [[CORES[discipline](environment, numbers.front_cores) for _ in fronts] for _ in dcs]
        self.workers = [[Units(numbers.workers) for _ in fronts] for _ in dcs]
        self.orders = list(permutations(nodes))
        self.next_dc = {name: cycle(dcs).__next__ for name in CLASSES}
        self.next_front = {key: cycle(fronts).__next__ for key in product(CLASSES, dcs)}
        places = product(CLASSES, dcs, fronts, ("read", "write"))
        self.next_node = {key: cycle(nodes).__next__ for key in places}
        self.latencies_s: dict[str, list[float]] = {name: [] for name in CLASSES}
        self.dropped = 0

    def traffic(self) -> Any:
        """Let sessions arrive."""
        mean_s = self.length / self.numbers.rate_per_s
        while True:
            yield self.environment.timeout(mean_s * self.exponential())
            if self.environment.now >= self.until_s:
                return
            Session(self).ask(None)


def shared(requests: int, seed: int) -> dict[str, Any]:
    """Cores shared by all inside, as capplan's calibrated model has them."""
    numbers = flow_numbers()
    return run(Flow(numbers, "ps", seed, requests / numbers.rate_per_s), requests)


def queued(requests: int, seed: int) -> dict[str, Any]:
    """Cores that serve first come, first served: less work for SimPy."""
    numbers = flow_numbers()
    return run(Flow(numbers, "fcfs", seed, requests / numbers.rate_per_s), requests)
