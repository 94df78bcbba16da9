"""What the SimPy engine notes of stations and pools while it runs, in the terms of a `Tally`."""

from __future__ import annotations

from bisect import bisect_right

from capplan.simulator.histogram import IntArray
from capplan.simulator.tally import (
    BUSY,
    HELD,
    MOST_MARKS,
    PAUSED,
    POOL_DROPS,
    POOL_WAITED,
    QUEUED,
    RESPONDED,
    STATION_DROPS,
    TAKEN,
    VISITS,
    WAITED,
    Tally,
    add_pair,
)


class Window:
    """The part of the run that statistics are about: from the end of the warm-up to the end of the traffic.

    `boundaries` are those of the intervals, from tick 0 to the end of the traffic. `marks` are the first pauses and
    background work that started there.
    """

    def __init__(self, boundaries: IntArray, start: int) -> None:
        self.boundaries: list[int] = boundaries.tolist()
        self.start, self.end = start, int(boundaries[-1])
        self.marks: list[tuple[int, int, str, str]] = []

    def overlap(self, since: int, until: int) -> int:
        """Return how many ticks from `since` to `until` lie inside."""
        return max(0, min(until, self.end) - max(since, self.start))

    def has(self, tick: int) -> bool:
        """Tell whether `tick` lies inside."""
        return self.start <= tick < self.end

    def mark(self, since: int, until: int, kind: str, name: str) -> None:
        """Note a pause or background work that starts, unless that is after the end of the traffic."""
        if since < self.end and len(self.marks) < MOST_MARKS:
            self.marks.append((since, until, kind, name))


class TimeIntegral:
    """The integral over time of a number (of visits, of busy servers) in each interval."""

    def __init__(self, window: Window) -> None:
        self.boundaries = window.boundaries
        self.sums = [0] * (len(self.boundaries) - 1)

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
    """Of visits that joined a station in the window and were served, those that were dropped in it, and the queue."""

    def __init__(self, window: Window) -> None:
        self.window = window
        self.queued, self.busy = TimeIntegral(window), TimeIntegral(window)
        self.visits = self.waited = self.responded = self.drops = self.paused = 0

    def served(self, joined: int, wait: int, response: int) -> None:
        """Count a visit that is served, if it joined in the window."""
        if self.window.has(joined):
            self.visits += 1
            self.waited += wait
            self.responded += response

    def dropped(self, tick: int) -> None:
        """Count a visit that is dropped, if that is in the window."""
        self.drops += self.window.has(tick)

    def fill(self, tally: Tally, index: int) -> None:
        """Enter what has been noted as that of station number `index`."""
        tally.station_series[:, index, QUEUED] = self.queued.sums
        tally.station_series[:, index, BUSY] = self.busy.sums
        tally.station_totals[index, VISITS] = self.visits
        add_pair(tally.station_totals[index], WAITED, self.waited)
        add_pair(tally.station_totals[index], RESPONDED, self.responded)
        tally.station_totals[index, [STATION_DROPS, PAUSED]] = self.drops, self.paused


class PoolRecord:
    """Of units of a pool taken in the window, requests that were dropped in it, and the queue."""

    def __init__(self, window: Window, size: int) -> None:
        self.window = window
        self.queued, self.busy = TimeIntegral(window), TimeIntegral(window)
        self.busy_ticks = [0] * (size + 1)  # how long 0, 1, ... units were busy
        self.taken = self.waited = self.held = self.drops = 0

    def handed_over(self, asked: int, now: int) -> None:
        """Count a unit that is taken now, by someone who asked for it then."""
        self.queued.add(asked, now, 1)
        if self.window.has(now):
            self.taken += 1
            self.waited += now - asked

    def given_back(self, taken: int, now: int) -> None:
        """Count a unit that is given back now."""
        if self.window.has(taken):
            self.held += now - taken

    def units(self, busy: int, since: int, until: int) -> None:
        """Count that so many units were busy."""
        self.busy_ticks[busy] += self.window.overlap(since, until)
        self.busy.add(since, until, busy)

    def dropped(self, tick: int) -> None:
        """Count a request that found the queue full, if that is in the window."""
        self.drops += self.window.has(tick)

    def fill(self, tally: Tally, index: int) -> None:
        """Enter what has been noted as that of pool number `index`."""
        tally.pool_series[:, index, QUEUED] = self.queued.sums
        tally.pool_series[:, index, BUSY] = self.busy.sums
        tally.pool_totals[index, [TAKEN, POOL_DROPS]] = self.taken, self.drops
        add_pair(tally.pool_totals[index], POOL_WAITED, self.waited)
        add_pair(tally.pool_totals[index], HELD, self.held)
        tally.pool_busy[index, : len(self.busy_ticks)] = self.busy_ticks
