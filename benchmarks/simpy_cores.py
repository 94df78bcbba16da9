"""The cores of a machine in SimPy, as efficiently as one can: shared by all inside, or first come, first served.

`serve(demand, done)` calls `done` when the work is complete (`None`: nobody waits). Both cost one SimPy event per
completion and no process.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush, heapreplace
from itertools import count
from math import inf

from simpy import Environment, Event, Timeout

Done = Callable[[Event | None], object]
ROUNDING_S = 1e-11


class SharedCores:
    """Processor sharing by virtual time: the next completion is the only event, and a new one only if it is earlier."""

    def __init__(self, environment: Environment, cores: int) -> None:
        self.environment, self.cores = environment, cores
        self.inside: list[tuple[float, int, Done | None]] = []  # a heap, by the service attained at the end
        self.attained = self.since = self.busy_s = 0.0
        self.next_look = inf
        self.number = count().__next__

    def serve(self, demand_s: float, done: Done | None) -> None:
        """Add work."""
        self._bring_up_to_date()
        heappush(self.inside, (self.attained + demand_s, self.number(), done))
        self._look_ahead()

    def _bring_up_to_date(self) -> None:
        now, inside = self.environment.now, len(self.inside)
        passed = now - self.since
        if inside <= self.cores:
            self.attained += passed
            self.busy_s += passed * inside
        else:
            self.attained += passed * self.cores / inside
            self.busy_s += passed * self.cores
        self.since = now

    def _look_ahead(self) -> None:
        inside = len(self.inside)
        missing = self.inside[0][0] - self.attained
        delay = missing if inside <= self.cores else missing * inside / self.cores
        delay = max(delay, 0.0)
        at = self.environment.now + delay
        if at < self.next_look:
            self.next_look = at
            Timeout(self.environment, delay).callbacks.append(self._look)

    def _look(self, _: Event) -> None:
        if self.environment.now != self.next_look:
            return  # a later visit has brought the look forward
        self.next_look = inf
        self._bring_up_to_date()
        ended, inside, until = [], self.inside, self.attained + ROUNDING_S
        while inside and inside[0][0] <= until:
            ended.append(heappop(inside)[2])
        if inside:
            self._look_ahead()
        for done in ended:
            if done is not None:
                done(None)


class QueuedCores:
    """First come, first served: each visit takes the core that is free first."""

    def __init__(self, environment: Environment, cores: int) -> None:
        self.environment, self.cores = environment, cores
        self.free_at = [0.0] * cores
        heapify(self.free_at)
        self.busy_s = 0.0

    def serve(self, demand_s: float, done: Done | None) -> None:
        """Add work."""
        now = self.environment.now
        end = max(now, self.free_at[0]) + demand_s
        heapreplace(self.free_at, end)
        self.busy_s += demand_s
        if done is not None:
            Timeout(self.environment, end - now).callbacks.append(done)


CORES = {"ps": SharedCores, "fcfs": QueuedCores}
