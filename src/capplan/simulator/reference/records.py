"""What the SimPy engine notes of stations and pools while it runs, in the terms of a `Tally`."""

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
)


class Window:
    """The time that statistics are about: from the beginning to the end of the traffic.

    `boundaries` are those of the intervals. `marks` are the first pauses and background work that started there.
    """

    def __init__(self, boundaries: IntArray) -> None:
        self.boundaries: list[int] = boundaries.tolist()
        self.end = self.boundaries[-1]
        self.marks: list[tuple[int, int, str, str]] = []

    def interval(self, tick: int) -> int:
        """Return the number of the interval of a tick; after the end of the traffic it is that after the last."""
        return bisect_right(self.boundaries, tick) - 1

    def mark(self, since: int, until: int, kind: str, name: str) -> None:
        """Note a pause or background work that starts, unless that is after the end of the traffic."""
        if since < self.end and len(self.marks) < MOST_MARKS:
            self.marks.append((since, until, kind, name))


class TimeIntegral:
    """The integral over time of a number (of visits, of busy servers) in each interval."""

    def __init__(self, window: Window) -> None:
        self.boundaries = window.boundaries
        self.sums = [0] * len(self.boundaries)

    def add(self, since: int, until: int, number: int) -> None:
        """Count `number` from `since` to `until`, in whatever order such times come."""
        until = min(until, self.boundaries[-1])
        if not number or since >= until:
            return
        place = bisect_right(self.boundaries, since) - 1
        while since < until:
            end = min(until, self.boundaries[place + 1])
            self.sums[place] += number * (end - since)
            since, place = end, place + 1


class StationRecord:
    """By interval, visits that joined a station and were served, those that were dropped, and the queue."""

    def __init__(self, window: Window) -> None:
        self.window = window
        self.queued, self.busy, self.pauses = TimeIntegral(window), TimeIntegral(window), TimeIntegral(window)
        self.totals = np.zeros((len(window.boundaries), STATION_TOTALS), dtype=np.int64)

    def served(self, joined: int, wait: int, response: int) -> None:
        """Count a visit that is served, when it joined."""
        totals = self.totals[self.window.interval(joined)]
        totals[VISITS] += 1
        add_pair(totals, WAITED, wait)
        add_pair(totals, RESPONDED, response)

    def dropped(self, tick: int) -> None:
        """Count a visit that is dropped."""
        self.totals[self.window.interval(tick), STATION_DROPS] += 1

    def paused(self, since: int, until: int) -> None:
        """Count the time of a pause."""
        self.pauses.add(since, until, 1)

    def fill(self, tally: Tally, index: int) -> None:
        """Enter what has been noted as that of station number `index`."""
        tally.station_series[:, index, QUEUED] = self.queued.sums
        tally.station_series[:, index, BUSY] = self.busy.sums
        tally.station_totals[:, index] = self.totals
        tally.station_totals[:, index, PAUSED] = self.pauses.sums


class PoolRecord:
    """By interval, units of a pool that were taken, requests that were dropped, and the queue."""

    def __init__(self, window: Window, size: int) -> None:
        self.window = window
        self.queued, self.busy = TimeIntegral(window), TimeIntegral(window)
        self.busy_ticks = [TimeIntegral(window) for _ in range(size + 1)]  # how long 0, 1, ... units were busy
        self.totals = np.zeros((len(window.boundaries), POOL_TOTALS), dtype=np.int64)

    def handed_over(self, asked: int, now: int) -> None:
        """Count a unit that is taken now, by someone who asked for it then."""
        self.queued.add(asked, now, 1)
        totals = self.totals[self.window.interval(now)]
        totals[TAKEN] += 1
        add_pair(totals, POOL_WAITED, now - asked)

    def given_back(self, taken: int, now: int) -> None:
        """Count a unit that is given back now."""
        add_pair(self.totals[self.window.interval(taken)], HELD, now - taken)

    def units(self, busy: int, since: int, until: int) -> None:
        """Count that so many units were busy."""
        self.busy_ticks[busy].add(since, until, 1)
        self.busy.add(since, until, busy)

    def dropped(self, tick: int) -> None:
        """Count a request that found the queue full."""
        self.totals[self.window.interval(tick), POOL_DROPS] += 1

    def fill(self, tally: Tally, index: int) -> None:
        """Enter what has been noted as that of pool number `index`."""
        tally.pool_series[:, index, QUEUED] = self.queued.sums
        tally.pool_series[:, index, BUSY] = self.busy.sums
        tally.pool_totals[:, index] = self.totals
        for units, times in enumerate(self.busy_ticks):
            tally.pool_busy[:, index, units] = times.sums
