"""The kernel's loop: it takes the next event, lets work run until it waits, and tells the client what has ended."""

from __future__ import annotations

import numpy as np

from capplan.simulator.compiled.kernel import layout as at
from capplan.simulator.compiled.kernel.agenda import drop_first, first_look, later_in_list
from capplan.simulator.compiled.kernel.arrivals import draw_phase, next_arrival
from capplan.simulator.compiled.kernel.clients import answer, arrive, beat, start, think, time_out
from capplan.simulator.compiled.kernel.compiling import entry, part
from capplan.simulator.compiled.kernel.draws import request_key, uniform
from capplan.simulator.compiled.kernel.elastic import bring_up_to_date, count_interval, look, running, set_pace
from capplan.simulator.compiled.kernel.layout import NEVER, NONE, Program, State
from capplan.simulator.compiled.kernel.processes import anything_moves, start_processes, turn
from capplan.simulator.compiled.kernel.run_thread import run
from capplan.simulator.compiled.kernel.steps import count_pool
from capplan.simulator.specification.streams import name_key

NOTHING, STOPPED = -1, -2  # instead of the kind of an event
_BURST = np.uint64(name_key("burst"))


@entry
def begin(p: Program, s: State) -> None:
    """Set the first arrival, let clients think or wait for their beat, and start the stations' processes."""
    kind = p.traffic[at.A_KIND]
    if kind == at.BURSTY:
        u = uniform(request_key(np.uint64(p.traffic[at.A_KEY]), 0, 1, 0), _BURST)
        s.header[at.BURSTING] = 1 if u < p.rates[at.Z_FRACTION] else 0
        draw_phase(p, s)
    if kind == at.CLOSED:
        for unit in range(p.traffic[at.A_CLIENTS]):
            think(p, s, unit, 0, 0, 0)
    elif kind == at.THROTTLED:
        for unit in range(p.traffic[at.A_CLIENTS]):
            beat(p, s, unit, 0, 0)
    else:
        next_arrival(p, s)
    start_processes(p, s)


@entry
def settle(p: Program, s: State, tick: int) -> None:
    """Let the sums of stations and pools reach a tick, and compute all speeds anew from there."""
    s.header[at.NOW] = tick
    for host in range(len(s.hosts)):
        s.hosts[host].busy = 0
    for station in p.leaves:
        bring_up_to_date(s, station)
        count_interval(s, station)
        host = s.stations[station].host
        if host >= 0:
            s.hosts[host].busy += running(s, station)
    for station in p.leaves:
        set_pace(p, s, station)
    for pool in range(len(s.pools)):
        count_pool(s, pool)


@entry
def advance(p: Program, s: State, until: int, until_rank: int) -> int:
    """Let everything happen that comes before the key (`until`, `until_rank`); say why it stopped."""
    h = s.header
    while True:
        if h[at.SHORT]:
            return at.ROOM_NEEDED
        if len(s.trace) > 0 and h[at.TRACED] >= len(s.trace):
            return at.TRACE_FULL
        looking = s.look[1]
        if looking <= min(s.heap[0].tick, h[at.ARRIVAL_AT]):
            if looking == NEVER:
                return at.FINISHED
            kind, load = _look_before(p, s, until, until_rank)
        else:
            kind, load = _next_before(p, s, until, until_rank)
        if kind >= 0:
            _happen(p, s, kind, load)
        elif kind < NOTHING:
            return load


@part
def _look_before(p: Program, s: State, until: int, until_rank: int) -> tuple[int, int]:
    """Look at a station, if that comes before the key; return the kind and load of the event that follows from it."""
    looking = s.look[1]
    if looking > until or (looking == until and until_rank < 0):
        return STOPPED, at.REACHED
    s.header[at.NOW] = looking
    thread = look(p, s, p.leaves[first_look(s)], looking < until)
    return (at.SERVICE if thread >= 0 else NOTHING), thread


@part
def _next_before(p: Program, s: State, until: int, until_rank: int) -> tuple[int, int]:
    """Take the next event or arrival, if it comes before the key; return its kind and load."""
    h, first = s.header, s.heap[0]
    tick, rank = first.tick, first.rank
    arriving = at.START << at.KIND_SHIFT | h[at.UNIT] << at.STEP_BITS
    arrives = h[at.ARRIVAL_AT] < tick or (h[at.ARRIVAL_AT] == tick and arriving < rank)
    if arrives:
        tick, rank = h[at.ARRIVAL_AT], arriving
    if tick > until or (tick == until and rank >= until_rank):
        return STOPPED, at.REACHED
    kind = rank >> at.KIND_SHIFT
    if h[at.STOP_IDLE] and kind == at.PROCESS and not anything_moves(p, s):
        return STOPPED, at.FINISHED
    h[at.NOW] = tick
    if arrives:
        return kind, arrive(p, s)
    load = first.load
    drop_first(s)
    return kind, load


@part
def _happen(p: Program, s: State, kind: int, load: int) -> None:
    """Let an event happen: `load` is a thread, or what the kind of event is about."""
    h = s.header
    h[at.EVENTS] += 1
    thread, pc = NONE, NONE
    if kind == at.START:
        thread = start(p, s, load)
        if thread >= 0:
            pc = s.threads[thread].pc
    elif kind == at.PROCESS:
        turn(p, s, load)
    elif kind == at.TIMEOUT:
        h[at.OVER_REQUEST] = time_out(s, load)
        h[at.OVER] = at.TIMED_OUT if h[at.OVER_REQUEST] >= 0 else 0
        h[at.OVER_TICK] = h[at.NOW]
    else:
        thread = later_in_list(s, load) if kind == at.DELAY else load
        pc = _resumed(p, s, thread)
    if thread >= 0:
        run(p, s, thread, pc)
    if h[at.OVER] > 0:
        answer(p, s, h[at.OVER_REQUEST], h[at.OVER], h[at.OVER_TICK])
        h[at.OVER] = 0


@part
def _resumed(p: Program, s: State, thread: int) -> int:
    """Return where a thread goes on that has waited."""
    pc = s.threads[thread].pc
    if s.threads[thread].dropped:
        s.threads[thread].dropped = 0
        return p.code[pc].unwind
    return pc + 1
