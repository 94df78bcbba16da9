"""What the SimPy engine counts at stations and pools, in the terms of a `Tally`."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np

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

MOST_TICKS = (1 << 63) - 1


class Window:
    """The time that statistics cover: from the start to the end of the traffic.

    `boundaries` are those of the intervals. `marks` are the first pauses and periods of background work that started in
    the window.
    """

    def __init__(self, boundaries: IntArray) -> None:
        self.boundaries: list[int] = boundaries.tolist()
        self.end = self.boundaries[-1]
        self.marks: list[tuple[int, int, str, str]] = []

    def interval(self, tick: int) -> int:
        """Return the number of the interval of a tick; a tick after the end of the traffic is in one of its own."""
        return bisect_right(self.boundaries, tick) - 1

    def mark(self, since: int, until: int, kind: str, name: str) -> None:
        """Record a pause or a period of background work, unless it starts after the end of the traffic."""
        if since < self.end and len(self.marks) < MOST_MARKS:
            self.marks.append((since, until, kind, name))


class TimeIntegral:
    """The integral over time of a number (of visits, of busy servers), by interval; it stops at `MOST_TICKS`."""

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
