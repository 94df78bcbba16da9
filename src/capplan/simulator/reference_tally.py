"""How stations and pools of the SimPy engine count: sums over the window, and time integrals by interval."""

from __future__ import annotations

from bisect import bisect_right

from capplan.simulator.histogram import IntArray
from capplan.simulator.tally import (
    BUSY,
    HELD,
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
)


class Window:
    """The part of the run that statistics are about: from the end of the warm-up to the end of the traffic."""

    def __init__(self, tally: Tally) -> None:
        self.start, self.end = tally.warmup_ticks, tally.end_ticks

    def overlap(self, since: int, until: int) -> int:
        """Return how many ticks from `since` to `until` lie inside."""
        return max(0, min(until, self.end) - max(since, self.start))

    def has(self, tick: int) -> bool:
        """Tell whether `tick` lies inside."""
        return self.start <= tick < self.end


class Integrals:
    """Time integrals of what is queued and what is busy at one station or pool; `series` has a row an interval."""

    def __init__(self, boundaries: IntArray, series: IntArray) -> None:
        self._boundaries: list[int] = boundaries.tolist()
        self._series = series

    def add(self, since: int, until: int, queued: int, busy: int) -> None:
        """Count that so many were queued and busy from tick `since` to tick `until`."""
        place = bisect_right(self._boundaries, since) - 1
        while since < until and place < len(self._series):
            end = min(until, self._boundaries[place + 1])
            self._series[place, QUEUED] += queued * (end - since)
            self._series[place, BUSY] += busy * (end - since)
            since, place = end, place + 1


class StationTally:
    """What is counted at station `number`."""

    def __init__(self, tally: Tally, number: int) -> None:
        self.window = Window(tally)
        self.integrals = Integrals(tally.boundaries, tally.station_series[:, number])
        self._totals = tally.station_totals[number]

    def served(self, joined: int, wait: int, response: int) -> None:
        """Count a visit that is served, if it joined in the window."""
        if self.window.has(joined):
            self._totals[VISITS] += 1
            self._totals[WAITED] += wait
            self._totals[RESPONDED] += response

    def dropped(self, tick: int) -> None:
        """Count a visit that is dropped, if that is in the window."""
        self._totals[STATION_DROPS] += self.window.has(tick)

    def paused(self, since: int, until: int) -> None:
        """Count what of a pause lies in the window."""
        self._totals[PAUSED] += self.window.overlap(since, until)


class PoolTally:
    """What is counted at pool `number`."""

    def __init__(self, tally: Tally, number: int) -> None:
        self.window = Window(tally)
        self._integrals = Integrals(tally.boundaries, tally.pool_series[:, number])
        self._totals, self._busy = tally.pool_totals[number], tally.pool_busy[number]

    def was(self, since: int, until: int, queued: int, busy: int) -> None:
        """Count that so many waited and so many units were busy from tick `since` to tick `until`."""
        self._integrals.add(since, until, queued, busy)
        self._busy[busy] += self.window.overlap(since, until)

    def taken(self, asked: int, tick: int) -> None:
        """Count a unit that is taken at `tick`, if that is in the window."""
        if self.window.has(tick):
            self._totals[TAKEN] += 1
            self._totals[POOL_WAITED] += tick - asked

    def given(self, since: int, tick: int) -> None:
        """Count a unit that is given back at `tick`, if it was taken in the window."""
        if self.window.has(since):
            self._totals[HELD] += tick - since

    def dropped(self, tick: int) -> None:
        """Count a request that found the queue full, if that is in the window."""
        self._totals[POOL_DROPS] += self.window.has(tick)
