"""Stations and pools of the SimPy engine: first come, first served, and what their queues looked like."""

from __future__ import annotations

from collections import deque

import numpy as np
import simpy

from capplan.models.station import Pool, Station
from capplan.simulator.clock import to_seconds
from capplan.simulator.reference_events import Clockwork, Dropped, Moment
from capplan.simulator.run import PoolReport, StationReport


class Window:
    """The part of the run that statistics are about: from the end of the warm-up to the end of the traffic."""

    def __init__(self, start: int, end: int) -> None:
        self.start, self.end, self.length = start, end, end - start

    def overlap(self, since: int, until: int) -> int:
        """Return how many ticks from `since` to `until` lie inside."""
        return max(0, min(until, self.end) - max(since, self.start))

    def has(self, tick: int) -> bool:
        """Tell whether `tick` lies inside."""
        return self.start <= tick < self.end


class Visits:
    """Sums over the visits that joined a station in the window."""

    def __init__(self, window: Window) -> None:
        self.window = window
        self.count = self.waited = self.responded = 0

    def book(self, joined: int, wait: int, response: int) -> None:
        """Count a visit, if it joined in the window."""
        if self.window.has(joined):
            self.count += 1
            self.waited += wait
            self.responded += response

    def report(self, station: Station, queued: int, busy: int) -> StationReport:
        """Sum up the window; `queued` and `busy` are visits that waited and servers that were busy, in ticks."""
        mean_queue, mean_busy = queued / self.window.length, busy / self.window.length
        return StationReport(
            name=station.name,
            servers=station.servers,
            utilisation=mean_busy / station.servers,
            mean_queue=mean_queue,
            mean_number=mean_queue + mean_busy,
            visits=self.count,
            mean_wait_s=to_seconds(self.waited / self.count) if self.count else float("nan"),
            mean_response_s=to_seconds(self.responded / self.count) if self.count else float("nan"),
        )


class ServingStation:
    """Servers and the visits that wait for them, in order of joining.

    A server that becomes free takes the next visit before the one it has served goes on: whoever comes back at once
    goes to the end of the queue. All times of a visit are known when its service begins and are booked then.
    """

    def __init__(self, station: Station, clockwork: Clockwork, window: Window) -> None:
        self.station, self.clockwork, self.window = station, clockwork, window
        self.free = station.servers
        self.queue: deque[tuple[int, int, int, Moment]] = deque()
        self.queued = self.busy = 0
        self.visits = Visits(window)

    def visit(self, demand: int, rank: int) -> Moment:
        """Join; the moment returned is the end of the service."""
        served = Moment(self.clockwork, self._served)
        if self.free:
            self.free -= 1
            self._begin(self.clockwork.tick, demand, rank, served)
        else:
            self.queue.append((self.clockwork.tick, demand, rank, served))
        return served

    def _begin(self, joined: int, demand: int, rank: int, served: Moment) -> None:
        begun, window = self.clockwork.tick, self.window
        served.at(begun + demand, rank)
        self.queued += window.overlap(joined, begun)
        self.busy += window.overlap(begun, begun + demand)
        self.visits.book(joined, begun - joined, begun + demand - joined)

    def _served(self, _: simpy.Event) -> None:
        if self.queue:
            self._begin(*self.queue.popleft())
        else:
            self.free += 1

    def report(self) -> StationReport:
        """Sum up the window; visits that still wait when the run stops count for the queue only."""
        waiting = sum(self.window.overlap(joined, self.window.end) for joined, *_ in self.queue)
        return self.visits.report(self.station, self.queued + waiting, self.busy)


class HeldPool:
    """Units that are held across steps, and the requests that wait for one, in order of asking."""

    def __init__(self, pool: Pool, clockwork: Clockwork, window: Window) -> None:
        self.pool, self.clockwork, self.window = pool, clockwork, window
        self.free = pool.size
        self.queue: deque[tuple[int, int, Moment]] = deque()
        self.queued = self.taken = self.waited = self.held = self.drops = 0
        self.busy_ticks = [0] * (pool.size + 1)  # how long 0, 1, ... units were busy
        self._counted_to = 0

    def take(self, rank: int) -> Moment | None:
        """Take a unit: None when one is free, else the moment when one is handed over.

        Raises
        ------
        Dropped
            When the queue is full.
        """
        if self.free:
            self._count()
            self.free -= 1
            self._book(self.clockwork.tick)
            return None
        if self.pool.queue_limit is not None and len(self.queue) >= self.pool.queue_limit:
            self.drops += self.window.has(self.clockwork.tick)
            raise Dropped
        handed_over = Moment(self.clockwork)
        self.queue.append((self.clockwork.tick, rank, handed_over))
        return handed_over

    def give(self, since: int) -> None:
        """Give back a unit held since that tick: to the first who waits, else to the pool."""
        if self.window.has(since):
            self.held += self.clockwork.tick - since
        if self.queue:
            asked, rank, handed_over = self.queue.popleft()
            self._book(asked)
            handed_over.now(rank)
        else:
            self._count()
            self.free += 1

    def _book(self, asked: int) -> None:
        now = self.clockwork.tick
        self.queued += self.window.overlap(asked, now)
        if self.window.has(now):
            self.taken += 1
            self.waited += now - asked

    def _count(self) -> None:
        now = self.clockwork.tick
        self.busy_ticks[self.pool.size - self.free] += self.window.overlap(self._counted_to, now)
        self._counted_to = now

    def report(self) -> PoolReport:
        """Sum up the window."""
        length = self.window.length
        ticks = np.array(self.busy_ticks)
        ticks[self.pool.size - self.free] += self.window.overlap(self._counted_to, self.window.end)
        waiting = sum(self.window.overlap(asked, self.window.end) for asked, *_ in self.queue)
        return PoolReport(
            name=self.pool.name,
            size=self.pool.size,
            mean_busy=float(ticks @ np.arange(ticks.size)) / length,
            mean_queue=(self.queued + waiting) / length,
            taken=self.taken,
            drops=self.drops,
            mean_wait_s=to_seconds(self.waited / self.taken) if self.taken else float("nan"),
            mean_hold_s=to_seconds(self.held / self.taken) if self.taken else float("nan"),
            busy_share=ticks / length,
        )
