"""Rigid stations and pools of the SimPy engine."""

from __future__ import annotations

from collections import deque
from heapq import heapreplace

from capplan.models.language.station import Pool, Station
from capplan.simulator.reference.events import Clockwork, Dropped, Moment
from capplan.simulator.reference.records import PoolRecord, StationRecord, Window
from capplan.simulator.results.tally import Tally


class RigidStation:
    """Servers whose speed never changes, and the visits that wait for them, in order of joining.

    A visit begins when the first server is free for it, so its times are known when it joins (Kiefer and Wolfowitz
    1955) and are noted then.
    """

    known_down = False

    def __init__(self, station: Station, clockwork: Clockwork, window: Window) -> None:
        self.clockwork = clockwork
        self.free = [0] * station.servers  # a heap: from when on each server is free
        self.record = StationRecord(window)

    def visit(self, demand: int, rank: int) -> Moment:
        """Join; the moment returned is the end of the service."""
        joined, record = self.clockwork.tick, self.record
        begun = max(joined, self.free[0])
        ended = begun + demand
        heapreplace(self.free, ended)
        record.queued.add(joined, begun, 1)
        record.busy.add(begun, ended, 1)
        record.served(joined, begun - joined, ended - joined)
        return Moment(self.clockwork).at(ended, rank)

    def fill(self, tally: Tally, index: int) -> None:
        """Enter what station number `index` has done."""
        self.record.fill(tally, index)


class HeldPool:
    """Units that are held across steps, and the requests that wait for one, in order of asking."""

    def __init__(self, pool: Pool, clockwork: Clockwork, window: Window) -> None:
        self.pool, self.clockwork = pool, clockwork
        self.free = pool.size
        self.queue: deque[tuple[int, int, Moment]] = deque()
        self.record = PoolRecord(window, pool.size)
        self._counted_to = 0

    def take(self, rank: int) -> Moment | None:
        """Take a unit: None when one is free, else the moment when one is handed over.

        Raises
        ------
        Dropped
            When the queue is full.
        """
        now = self.clockwork.tick
        if self.free:
            self._count(now)
            self.free -= 1
            self.record.handed_over(now, now)
            return None
        if self.pool.queue_limit is not None and len(self.queue) >= self.pool.queue_limit:
            self.record.dropped(now)
            raise Dropped
        handed_over = Moment(self.clockwork)
        self.queue.append((now, rank, handed_over))
        return handed_over

    def give(self, since: int) -> None:
        """Give back a unit held since that tick: to the first who waits, else to the pool."""
        now = self.clockwork.tick
        self.record.given_back(since, now)
        if self.queue:
            asked, rank, handed_over = self.queue.popleft()
            self.record.handed_over(asked, now)
            handed_over.now(rank)
        else:
            self._count(now)
            self.free += 1

    def _count(self, until: int) -> None:
        self.record.units(self.pool.size - self.free, self._counted_to, until)
        self._counted_to = until

    def fill(self, tally: Tally, index: int) -> None:
        """Enter what pool number `index` has done; those who still wait count for the queue only."""
        self._count(max(self._counted_to, tally.end_ticks))
        for asked, *_ in self.queue:
            self.record.queued.add(asked, tally.end_ticks, 1)
        self.record.fill(tally, index)
