"""Processes of stations: pauses and background work, which come and go whatever the requests do."""

from __future__ import annotations

import numpy as np

from capplan.simulator.compiled.kernel.agenda import push
from capplan.simulator.compiled.kernel.compiling import part
from capplan.simulator.compiled.kernel.draws import fold, ticks, uniform
from capplan.simulator.compiled.kernel.elastic import after_change, before_change
from capplan.simulator.compiled.kernel.layout import (
    ARRIVAL_AT,
    HEAP,
    INTERVAL,
    MARKED,
    NEVER,
    NOW,
    Program,
    State,
)
from capplan.simulator.compiled.kernel.tallies import past_interval
from capplan.simulator.results.tally import PAUSED


@part
def start_processes(p: Program, s: State) -> None:
    """Put the first start of every process on the agenda."""
    for process in range(len(s.processes)):
        _push_start(p, s, process)


@part
def _push_start(p: Program, s: State, process: int) -> None:
    row = s.processes[process]
    every = _drawn(p, s, process, row.every, row.every_key)
    push(s, s.header[NOW] + max(1, every), s.processes[process].rank, process)


@part
def _drawn(p: Program, s: State, process: int, law: int, key: int) -> int:
    row = s.processes[process]
    u = uniform(fold(fold(np.uint64(row.key), row.number), 0), np.uint64(key))
    return ticks(p, law, u)


@part
def turn(p: Program, s: State, process: int) -> None:
    """Let a process start or end."""
    row, now = s.processes[process], s.header[NOW]
    station = row.station
    ran = before_change(p, s, station)
    change = -1 if row.runs else 1
    row.runs += change
    if row.background < 0:
        _pause(p, s, station, change)
    after_change(p, s, station, ran)
    if change > 0:
        length = _drawn(p, s, process, row.length, row.length_key)
        _mark(p, s, now + length, process)
        push(s, now + length, row.rank, process)
    else:
        row.number += 1
        _push_start(p, s, process)


@part
def _pause(p: Program, s: State, station: int, change: int) -> None:
    row, now = s.stations[station], s.header[NOW]
    row.paused += change
    if change > 0 and row.paused == 1:
        row.paused_since = now
    elif row.paused == 0:
        _book_pause(p, s, station, row.paused_since, now)


@part
def _book_pause(p: Program, s: State, station: int, since: int, until: int) -> None:
    """Count the time of a pause in each interval that it reaches into."""
    bounds, interval = p.bounds, past_interval(p, s, since)
    until = min(until, bounds[len(bounds) - 1])
    while since < until:
        end = min(until, bounds[interval + 1])
        s.station_totals[interval, station, PAUSED] += end - since
        since = end
        interval += 1


@part
def _mark(p: Program, s: State, until: int, process: int) -> None:
    place = s.header[MARKED]
    if place < len(s.marks) and s.header[INTERVAL] < len(p.bounds) - 1:
        s.marks[place, 0] = s.header[NOW]
        s.marks[place, 1] = until
        s.marks[place, 2] = process
        s.header[MARKED] += 1


@part
def anything_moves(p: Program, s: State) -> bool:
    """Tell whether anything but processes is left that could move a request; the first event is a process."""
    if s.header[HEAP] > len(s.processes) or s.header[ARRIVAL_AT] < NEVER:
        return True
    for station in p.leaves:  # noqa: SIM110 - a generator in `any` is beyond numba
        if s.stations[station].served > 0 and not s.stations[station].down:
            return True
    return False
