"""Stations, hosts and pools of the SimPy engine, and their statistics."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from heapq import heappop, heappush, heapreplace
from typing import NamedTuple

import numpy as np
import simpy

from capplan.models.language.station import Host, Pool, Station
from capplan.simulator.reference.events import (
    Dropped,
    OrderedEnvironment,
    OrderedEvent,
    resume_rank,
)
from capplan.simulator.results.histogram import IntArray
from capplan.simulator.results.tally import (
    BUSY,
    HELD,
    MOST_MARKS,
    PAUSED,
    POOL_DROPS,
    POOL_TOTALS,
    POOL_WAITED,
    QUEUED,
    RESPONDED,
    STATION_DROPS,
    STATION_TOTALS,
    TAKEN,
    VISITS,
    WAITED,
    Tally,
    add_pair,
    units_shift,
)
from capplan.simulator.specification.clock import LONGEST_TICKS, to_ticks
from capplan.simulator.specification.streams import uniform
from capplan.simulator.specification.timeline import OperatingState

MOST_TICKS = (1 << 63) - 1


class Window:
    """The period that statistics cover: from the start to the end of the traffic.

    `boundaries` are those of the intervals. `marks` are the first pauses and periods of background work that started in
    the window.
    """

    def __init__(self, boundaries: IntArray) -> None:
        self.boundaries: list[int] = boundaries.tolist()
        self.end = self.boundaries[-1]
        self.marks: list[tuple[int, int, str, str]] = []

    def interval(self, tick: int) -> int:
        """Return the number of a tick's interval; ticks after the end of the traffic have an interval of their own."""
        return bisect_right(self.boundaries, tick) - 1

    def mark(self, since: int, until: int, kind: str, name: str) -> None:
        """Record a pause or a period of background work, unless it starts after the end of the traffic."""
        if since < self.end and len(self.marks) < MOST_MARKS:
            self.marks.append((since, until, kind, name))


class TimeIntegral:
    """The time integral of a number (of visits, of busy servers) by interval; it stops at `MOST_TICKS`."""

    def __init__(self, window: Window) -> None:
        self.boundaries = window.boundaries
        self.sums = [0] * len(self.boundaries)

    def add(self, since: int, until: int, number: int) -> None:
        """Count `number` from `since` to `until`; periods may come in any order."""
        until = min(until, self.boundaries[-1])
        if not number or since >= until:
            return
        place = bisect_right(self.boundaries, since) - 1
        while since < until:
            end = min(until, self.boundaries[place + 1])
            self.sums[place] = min(self.sums[place] + number * (end - since), MOST_TICKS)
            since, place = end, place + 1


class StationRecord:
    """Counts of a station by interval: visits that joined and were served, visits that were dropped, and the queue."""

    def __init__(self, window: Window) -> None:
        self.window = window
        self.queued, self.busy, self.pauses = TimeIntegral(window), TimeIntegral(window), TimeIntegral(window)
        self.totals = np.zeros((len(window.boundaries), STATION_TOTALS), dtype=np.int64)

    def served(self, joined: int, wait: int, response: int) -> None:
        """Count a visit that is served, in the interval in which it joined."""
        totals = self.totals[self.window.interval(joined)]
        totals[VISITS] += 1
        add_pair(totals, WAITED, wait)
        add_pair(totals, RESPONDED, response)

    def dropped(self, tick: int) -> None:
        """Count a dropped visit."""
        self.totals[self.window.interval(tick), STATION_DROPS] += 1

    def paused(self, since: int, until: int) -> None:
        """Count the time of a pause."""
        self.pauses.add(since, until, 1)

    def fill(self, tally: Tally, index: int) -> None:
        """Write the counts into a tally as those of station number `index`."""
        tally.station_series[:, index, QUEUED] = self.queued.sums
        tally.station_series[:, index, BUSY] = self.busy.sums
        tally.station_totals[:, index] = self.totals
        tally.station_totals[:, index, PAUSED] = self.pauses.sums


class PoolRecord:
    """Counts of a pool by interval: units that were acquired, requests that were dropped, and the queue."""

    def __init__(self, window: Window, size: int) -> None:
        self.window = window
        self.queued, self.busy = TimeIntegral(window), TimeIntegral(window)
        self.shift = units_shift(size)
        # Time with 0, 1, ... busy units, shifted.
        self.busy_ticks = [TimeIntegral(window) for _ in range((size >> self.shift) + 1)]
        self.totals = np.zeros((len(window.boundaries), POOL_TOTALS), dtype=np.int64)

    def acquired(self, requested: int, now: int) -> None:
        """Count a unit that is acquired now and was requested at tick `requested`."""
        self.queued.add(requested, now, 1)
        totals = self.totals[self.window.interval(now)]
        totals[TAKEN] += 1
        add_pair(totals, POOL_WAITED, now - requested)

    def released(self, acquired: int, now: int) -> None:
        """Count a unit that is released now and was acquired at tick `acquired`."""
        add_pair(self.totals[self.window.interval(acquired)], HELD, now - acquired)

    def units(self, busy: int, since: int, until: int) -> None:
        """Count a period with `busy` busy units."""
        self.busy_ticks[busy >> self.shift].add(since, until, 1)
        self.busy.add(since, until, busy)

    def dropped(self, tick: int) -> None:
        """Count a request that found the queue full."""
        self.totals[self.window.interval(tick), POOL_DROPS] += 1

    def fill(self, tally: Tally, index: int) -> None:
        """Write the counts into a tally as those of pool number `index`."""
        tally.pool_series[:, index, QUEUED] = self.queued.sums
        tally.pool_series[:, index, BUSY] = self.busy.sums
        tally.pool_totals[:, index] = self.totals
        for units, times in enumerate(self.busy_ticks):
            tally.pool_busy[:, index, units] = times.sums


class SharedHost:
    """A running host: its stations, and the number of busy servers."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.state = OperatingState()
        self.stations: list[ProcessorSharingStation] = []
        self.running = 0

    def shared(self, pace: int) -> int:
        """Return a server's pace when the busy servers share the cores."""
        return pace * self.host.cores // self.running if self.running > self.host.cores else pace

    def recount(self) -> bool:
        """Count the busy servers; if that changes the speed, recompute all stations' pace and return True."""
        before, self.running = self.running, sum(station.running for station in self.stations)
        if max(before, self.host.cores) == max(self.running, self.host.cores):
            return False
        self.settle()
        for station in self.stations:
            station.go_on()
        return True

    def settle(self) -> None:
        """Update all stations to now; call it before any change."""
        for station in self.stations:
            station.settle()

    def changed(self) -> None:
        """Continue at the new speed on all stations; call it after any change."""
        if not self.recount():
            for station in self.stations:
                station.go_on()


class FixedRateStation:
    """Servers with a fixed speed and the visits that wait for them, in joining order.

    A visit begins when the first server is free for it, so its times are known, and counted, when it joins (Kiefer and
    Wolfowitz 1955).
    """

    known_down = False

    def __init__(self, station: Station, env: OrderedEnvironment, record: StationRecord) -> None:
        self.env = env
        self.free = [0] * station.servers  # a heap: the tick from which each server is free
        self.record = record

    def visit(self, demand: int, rank: int) -> OrderedEvent:
        """Join; the event returned is the end of the service."""
        joined, record = self.env.tick, self.record
        begun = max(joined, self.free[0])
        ended = begun + demand
        heapreplace(self.free, ended)
        record.queued.add(joined, begun, 1)
        record.busy.add(begun, ended, 1)
        record.served(joined, begun - joined, ended - joined)
        return OrderedEvent(self.env).at(ended, rank)

    def fill(self, tally: Tally, index: int) -> None:
        """Write the counts into a tally under station number `index`."""
        self.record.fill(tally, index)


class UnitPool:
    """The units of a pool, and the requests that wait for one, first come, first served."""

    def __init__(self, pool: Pool, env: OrderedEnvironment, window: Window) -> None:
        self.pool, self.env = pool, env
        self.free = pool.size
        self.queue: deque[tuple[int, int, OrderedEvent]] = deque()
        self.record = PoolRecord(window, pool.size)
        self._counted_to = 0

    def acquire(self, rank: int) -> OrderedEvent | None:
        """Acquire a unit: None when one is free, else the event of getting one.

        Raises
        ------
        Dropped
            When the queue is full.
        """
        now = self.env.tick
        if self.free:
            self._count(now)
            self.free -= 1
            self.record.acquired(now, now)
            return None
        if self.pool.queue_limit is not None and len(self.queue) >= self.pool.queue_limit:
            self.record.dropped(now)
            raise Dropped
        acquired = OrderedEvent(self.env)
        self.queue.append((now, rank, acquired))
        return acquired

    def release(self, since: int) -> None:
        """Release a unit held since that tick: to the first request that waits, else to the pool."""
        now = self.env.tick
        self.record.released(since, now)
        if self.queue:
            requested, rank, acquired = self.queue.popleft()
            self.record.acquired(requested, now)
            acquired.now(rank)
        else:
            self._count(now)
            self.free += 1

    def _count(self, until: int) -> None:
        self.record.units(self.pool.size - self.free, self._counted_to, until)
        self._counted_to = until

    def fill(self, tally: Tally, index: int) -> None:
        """Write the counts into a tally under pool number `index`.

        Requests that still wait count for the queue only.
        """
        self._count(max(self._counted_to, tally.end_ticks))
        for requested, *_ in self.queue:
            self.record.queued.add(requested, tally.end_ticks, 1)
        self.record.fill(tally, index)


PARTS = math.lcm(*range(1, 29))  # 80 313 433 200, a little above 2**36
FASTEST = 512 * PARTS


class VisitInService(NamedTuple):
    """A visit in service, ordered by completion: it ends when V is `end`."""

    end: int
    rank: int
    joined: int
    begun: int
    demand: int
    completion: OrderedEvent


class WaitingVisit(NamedTuple):
    """A visit that waits for a server."""

    joined: int
    demand: int
    rank: int
    completion: OrderedEvent


class ProcessorSharingStation:
    """Servers of one speed, the visits in service and, under `fcfs`, the waiting visits in joining order."""

    def __init__(
        self, station: Station, number: int, env: OrderedEnvironment, record: StationRecord, host: SharedHost | None
    ) -> None:
        self.station, self.env, self.record, self.host = station, env, record, host
        self.state, self.counts_pauses = OperatingState(), True
        self.sharing = station.discipline == "ps"
        self.expiry = LONGEST_TICKS if station.expiry_s is None else to_ticks(float(station.expiry_s))
        self.rank = -1 - number  # of its checks
        self.pauses, self.background = ([False] * len(kind) for kind in (station.pauses, station.background))
        self.inside: list[VisitInService] = []  # a heap
        self.queue: deque[WaitingVisit] = deque()
        self.checks: set[int] = set()
        self.attained = self.since = self.pace = 0  # V at tick `since`, and its growth per tick
        if host is not None:
            host.stations.append(self)

    @property
    def known_down(self) -> bool:
        """Whether others know that the station, or its host, is down."""
        return self.state.known_down or (self.host is not None and self.host.state.known_down)

    @property
    def down(self) -> bool:
        """Whether the station, or its host, is down."""
        return self.state.down or (self.host is not None and self.host.state.down)

    @property
    def busy(self) -> int:
        """The number of servers that serve a visit."""
        return min(len(self.inside), self.station.servers)

    @property
    def number_inside(self) -> int:
        """The number of visits, including those that wait."""
        return len(self.inside) + len(self.queue)

    @property
    def running(self) -> int:
        """The number of servers that use a core of the host."""
        return 0 if self.down or any(self.pauses) else self.busy

    @property
    def service_continues(self) -> bool:
        """Whether a visit may still complete if only the processes of stations still run."""
        return bool(self.inside) and not self.down

    def visit(self, demand: int, rank: int) -> OrderedEvent:
        """Join; the event returned is the end of the service.

        Raises
        ------
        Dropped
            When the station is known to be down. The event raises it when the visit has waited for too long.
        """
        now, completion = self.env.tick, OrderedEvent(self.env)
        if self.known_down:
            self.record.dropped(now)
            raise Dropped
        if not self.sharing and len(self.inside) == self.station.servers:
            self.settle()
            self.queue.append(WaitingVisit(now, demand, rank, completion))
            self.changed()
        elif demand == 0:
            self._serve_at_once(now, rank, completion)
        else:
            self.settle()
            self._begin(WaitingVisit(now, demand, rank, completion))
            self.changed()
        return completion

    def _serve_at_once(self, joined: int, rank: int, completion: OrderedEvent) -> None:
        now = self.env.tick
        self.record.served(joined, now - joined, now - joined)
        completion.at(now, rank)

    def _begin(self, visit: WaitingVisit) -> None:
        joined, demand, rank, completion = visit
        end = self.attained + demand * PARTS
        heappush(self.inside, VisitInService(end, rank, joined, self.env.tick, demand, completion))

    def settle(self) -> None:
        """Update V and the sums to now; call it before any change here."""
        now = self.env.tick
        self._note(now)
        self.attained += self.pace * (now - self.since)
        self.since = now

    def _note(self, until: int) -> None:
        """Add the queue and busy servers since the last change to the statistics."""
        if until <= self.since:
            return
        busy = self.busy
        self.record.busy.add(self.since, until, busy)
        self.record.queued.add(self.since, until, self.number_inside - busy)
        if self.counts_pauses and any(self.pauses):
            self.record.paused(self.since, until)

    def turn(self, process: int, on: bool) -> None:
        """Turn a pause or background work on or off; pauses have the first numbers."""
        self.settle()
        first = len(self.pauses)
        if process < first:
            self.pauses[process] = on
        else:
            self.background[process - first] = on
        self.changed()

    def changed(self) -> None:
        """Continue at the new speed, here and elsewhere on the host; call it after any change here."""
        if self.host is None or not self.host.recount():
            self.go_on()

    def go_on(self) -> None:
        """Recompute the pace and schedule a check for the next completion."""
        self.pace = self._pace()
        if self.inside and self.pace > 0:
            now = self.env.tick
            tick = max(now, now - (self.attained - self.inside[0].end) // self.pace)
            if tick not in self.checks:
                self.checks.add(tick)
                self.env.background_entries += 1
                OrderedEvent(self.env, self._check).at(tick, self.rank)

    def _share(self) -> int:
        """Return a visit's share of a server, in parts."""
        inside, servers = len(self.inside), self.station.servers
        return PARTS * servers // inside if inside > servers else PARTS

    def _pace(self) -> int:
        if self.down or any(self.pauses):
            return 0
        pace = self._share() if self.host is None else self.host.shared(self._share())
        factor = self._factor()
        if factor in (0.0, 1.0):
            return pace if factor else 0
        return int(min(max(pace * factor + 0.5, 1.0), FASTEST))

    def _factor(self) -> float:
        """Return the speed factor of every server, in float64 arithmetic with this order of operations."""
        factor, taken = 1.0, 0.0
        if self.station.rate is not None and (inside := self.number_inside):
            speeds = self.station.rate.speeds
            factor *= float(speeds[min(inside, len(speeds)) - 1])
        for work, runs in zip(self.station.background, self.background, strict=True):
            taken += work.share if runs else 0.0
        factor *= max(0.0, 1.0 - taken)
        for state in (self.state, *((self.host.state,) if self.host else ())):
            factor *= state.speed
            factor *= state.cold_factor
        return factor

    def _check(self, _: simpy.Event) -> None:
        """Complete all visits whose service has ended, and let waiting visits take the free servers."""
        now = self.env.tick
        self.checks.remove(now)
        self.env.background_entries -= 1
        self.settle()
        if not self.inside or self.inside[0].end > self.attained:
            return
        while self.inside and self.inside[0].end <= self.attained:
            self._leave(heappop(self.inside))
        while self.queue and len(self.inside) < self.station.servers:
            self._take(self.queue.popleft())
        self.changed()

    def _leave(self, visit: VisitInService) -> None:
        now = self.env.tick
        response = now - visit.joined
        wait = response - visit.demand if self.sharing else visit.begun - visit.joined
        self.record.served(visit.joined, wait, response)
        visit.completion.at(now, visit.rank)

    def _take(self, visit: WaitingVisit) -> None:
        """Give the first waiting visit a free server."""
        now = self.env.tick
        if now - visit.joined > self.expiry:
            self.record.dropped(now)
            visit.completion.now(resume_rank(visit.rank), Dropped())
        elif visit.demand == 0:
            self._serve_at_once(visit.joined, visit.rank, visit.completion)
        else:
            self._begin(visit)

    def fill(self, tally: Tally, index: int) -> None:
        """Write the counts into a tally as those of station number `index`.

        Visits still inside count for the queue and the busy servers only.
        """
        self._note(tally.end_ticks)
        self.record.fill(tally, index)


RunningLane = FixedRateStation | ProcessorSharingStation


class RunningStation:
    """A station without a count, or a member, while it runs: its lanes (a single one if it is pooled)."""

    def __init__(self, station: Station, lanes: Sequence[RunningLane], state: OperatingState) -> None:
        self.station, self.lanes, self.state = station, lanes, state
        self.assigned = 0
        self.changeable = [lane for lane in lanes if isinstance(lane, ProcessorSharingStation)]
        for number, lane in enumerate(self.changeable):  # they go down, and pause, together
            lane.state, lane.counts_pauses = state, number == 0

    def lane(self, key: int, draw: int) -> RunningLane:
        """Assign the next visit to a lane; `key` and `draw` identify its random number."""
        match self.station.assignment:
            case "pooled":
                return self.lanes[0]
            case "random":
                return self.lanes[int(uniform(key, draw) * len(self.lanes))]
            case "round_robin":
                self.assigned += 1
                return self.lanes[(self.assigned - 1) % len(self.lanes)]
            case "least_loaded":
                return min(self.changeable, key=lambda lane: lane.number_inside)

    @property
    def known_down(self) -> bool:
        """Whether others know that the station, or its host, is down."""
        return self.lanes[0].known_down

    @property
    def service_continues(self) -> bool:
        """Whether a visit may still complete if only the processes of stations still run."""
        return any(lane.service_continues for lane in self.changeable)

    def settle(self) -> None:
        """Update the attained service to now; call it before any change."""
        for lane in self.changeable:
            lane.settle()

    def changed(self) -> None:
        """Continue at the new speed; call it after any change."""
        for lane in self.changeable:
            lane.changed()

    def turn(self, process: int, on: bool) -> None:
        """Turn a pause or background work on or off; pauses have the first numbers."""
        for lane in self.changeable:
            lane.turn(process, on)

    def fill(self, tally: Tally, index: int) -> None:
        """Write the counts into a tally under station number `index`."""
        for lane in self.lanes:
            lane.fill(tally, index)
