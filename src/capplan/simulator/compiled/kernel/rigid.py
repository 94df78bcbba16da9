"""Rigid stations: first come, first served at one speed. The end of a visit is known when it joins.

The servers of a station are a heap of the times at which they are free (Kiefer and Wolfowitz 1955).
"""

from __future__ import annotations

from capplan.simulator.compiled.kernel.compiling import part
from capplan.simulator.compiled.kernel.layout import (
    INTERVAL,
    INTERVAL_END,
    NOW,
    Program,
    State,
)
from capplan.simulator.compiled.kernel.tallies import add_pair
from capplan.simulator.results.tally import BUSY, QUEUED, RESPONDED, VISITS, WAITED


@part
def join_rigid(p: Program, s: State, station: int, demand: int) -> int:
    """Let a visit join; return when it will end."""
    now = s.header[NOW]
    first, servers = s.stations[station].free, s.stations[station].servers
    begun = max(now, s.free[first])
    end = begun + demand
    _replace_first(s, first, servers, end)
    if begun > now:
        add_span(p, s, station, QUEUED, now, begun)
    add_span(p, s, station, BUSY, begun, end)
    interval = s.header[INTERVAL]
    s.station_totals[interval, station, VISITS] += 1
    add_pair(s.station_totals, interval, station, WAITED, begun - now)
    add_pair(s.station_totals, interval, station, RESPONDED, end - now)
    return end


@part
def _replace_first(s: State, first: int, count: int, tick: int) -> None:
    """Replace the smallest of the heap of `count` times at `first` by `tick`."""
    free = s.free
    place = 0
    while True:
        child = 2 * place + 1
        if child >= count:
            break
        if child + 1 < count and free[first + child + 1] < free[first + child]:
            child += 1
        if tick <= free[first + child]:
            break
        free[first + place] = free[first + child]
        place = child
    free[first + place] = tick


@part
def add_span(p: Program, s: State, station: int, column: int, since: int, until: int) -> None:
    """Count a time that begins in this interval or later and may reach into further ones."""
    interval = s.header[INTERVAL]
    series = s.station_series
    if until <= s.header[INTERVAL_END]:
        series[interval, station, column] += until - since
        return
    bounds = p.bounds
    last = len(bounds) - 1
    until = min(until, bounds[last])
    while since < until:
        while bounds[interval + 1] <= since:
            interval += 1
        end = min(until, bounds[interval + 1])
        series[interval, station, column] += end - since
        since = end
