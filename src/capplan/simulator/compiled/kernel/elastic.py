"""Elastic stations: processor sharing, and first come, first served at a speed that changes.

The service V that a visit could have attained is kept as whole ticks and parts of one; see decision record 6.
"""

from __future__ import annotations

import numpy as np

from capplan.simulator.compiled.kernel.agenda import look_at, push_step
from capplan.simulator.compiled.kernel.attained import PARTS, grown, ticks_until
from capplan.simulator.compiled.kernel.compiling import part
from capplan.simulator.compiled.kernel.draws import ticks, uniform
from capplan.simulator.compiled.kernel.finishes import add_finish, drop_finish, first_finish
from capplan.simulator.compiled.kernel.layout import (
    ARRIVAL_AT,
    INTERVAL,
    MARGIN,
    NEVER,
    NONE,
    NOW,
    PACES,
    QUEUED,
    RESUME,
    SERVICE,
    SHARED,
    SHORT,
    Program,
    State,
)
from capplan.simulator.compiled.kernel.records import append, drop_head
from capplan.simulator.compiled.kernel.tallies import add_pair, past_interval
from capplan.simulator.results.tally import BUSY, RESPONDED, STATION_DROPS, VISITS, WAITED
from capplan.simulator.results.tally import QUEUED as QUEUED_TICKS

FASTEST = 512


@part
def bring_up_to_date(s: State, station: int) -> None:
    """Let the service attained, and the sums since the last interval, reach this tick."""
    row = s.stations[station]
    elapsed = s.header[NOW] - row.since
    if elapsed == 0:
        return
    row.since += elapsed
    served = row.served
    if served == 0:
        return
    if row.sigma == PARTS:
        row.whole += elapsed
    elif row.sigma > 0:
        row.whole, row.parts = grown(row.whole, row.parts, row.sigma, elapsed)
    row.busy_ticks += min(served, row.servers) * elapsed
    row.inside_ticks += (served + row.waiting) * elapsed


@part
def count_interval(s: State, station: int) -> None:
    """Let the sums of the interval have what a station has summed up."""
    row, interval = s.stations[station], s.header[INTERVAL]
    s.station_series[interval, station, BUSY] += row.busy_ticks
    s.station_series[interval, station, QUEUED_TICKS] += row.inside_ticks - row.busy_ticks
    row.busy_ticks = 0
    row.inside_ticks = 0


@part
def set_pace(p: Program, s: State, station: int) -> None:
    """Set the speed that follows from what is inside now, and the next look. V must be up to date."""
    row = s.stations[station]
    served, leaf = row.served, row.leaf
    if served == 0:
        look_at(s, leaf, NEVER)
        return
    sigma = _sigma(p, s, station)
    row.sigma = sigma
    first = s.finishes[leaf, first_finish(s, station)]
    whole, parts = first.whole - row.whole, first.parts - row.parts
    if sigma == PARTS:
        look_at(s, leaf, row.since + whole + (parts > 0))
    elif sigma == 0:
        look_at(s, leaf, NEVER)
    else:
        look_at(s, leaf, min(NEVER, row.since + ticks_until(whole, parts, sigma)))


@part
def _sigma(p: Program, s: State, station: int) -> int:
    row = s.stations[station]
    base = PARTS
    if row.kind == SHARED and row.served > row.servers:
        base = PARTS * row.servers // row.served
    if row.plain:
        return base
    if row.paused > 0 or row.down:
        return 0
    host = row.host
    if host >= 0 and s.hosts[host].busy > s.hosts[host].cores:
        base = base * s.hosts[host].cores // s.hosts[host].busy
    factor = _factor(p, s, station)
    if factor == 1.0:
        return base
    if factor == 0.0:
        return 0
    if base * factor >= FASTEST * PARTS:
        return FASTEST * PARTS
    return max(int(base * factor + 0.5), 1)


@part
def _factor(p: Program, s: State, station: int) -> float:
    row = s.stations[station]
    factor = 1.0
    if row.rates >= 0:
        inside = row.served + row.waiting
        factor *= p.numbers[row.rates + min(inside, row.rate_count) - 1]
    taken = 0.0
    for process in range(row.processes, row.processes + row.process_count):
        if s.processes[process].runs and s.processes[process].background >= 0:
            taken += p.numbers[s.processes[process].background]
    factor *= max(0.0, 1.0 - taken)
    for pace in range(PACES):
        factor *= s.paces[station, pace]
    return factor


@part
def running(s: State, station: int) -> int:
    """Return how many servers run, as far as a host is concerned."""
    row = s.stations[station]
    if row.paused > 0 or row.down:
        return 0
    return min(row.served, row.servers)


@part
def before_change(p: Program, s: State, station: int) -> int:
    """Bring a station, or all on its host, up to date; return how many of its servers run."""
    host = s.stations[station].host
    if host == NONE:
        bring_up_to_date(s, station)
        return 0
    for place in range(s.hosts[host].count):
        bring_up_to_date(s, p.host_stations[host, place])
    return running(s, station)


@part
def after_change(p: Program, s: State, station: int, ran: int) -> None:
    """Set the pace of a station, or of all on its host when it now runs more or fewer servers than `ran`."""
    host = s.stations[station].host
    if host == NONE:
        set_pace(p, s, station)
        return
    s.hosts[host].busy += running(s, station) - ran
    for place in range(s.hosts[host].count):
        set_pace(p, s, p.host_stations[host, place])


@part
def join_elastic(p: Program, s: State, station: int, thread: int, demand: int) -> None:
    """Let a visit join; `thread` (if any) goes on at a SERVICE event of its own."""
    row = s.stations[station]
    if row.kind == QUEUED and row.served >= row.servers:
        ran = before_change(p, s, station)
        row.waiting += 1
        append(s, station, thread, demand, s.header[NOW])
        if row.rates >= 0:
            after_change(p, s, station, ran)
        return
    if demand == 0:
        book_visit(p, s, station, s.header[NOW], 0)
        serve(p, s, thread)
        return
    ran = before_change(p, s, station)
    begin(s, station, thread, demand, s.header[NOW])
    after_change(p, s, station, ran)


@part
def serve(p: Program, s: State, thread: int) -> None:
    """Let a visit's thread go on at a SERVICE event at this tick."""
    if thread != NONE:
        step = p.code[s.threads[thread].pc].step
        push_step(s, s.header[NOW], SERVICE, s.threads[thread].request, step, thread)


@part
def begin(s: State, station: int, thread: int, demand: int, joined: int) -> None:
    """Begin a service that ends when V has grown by `demand`."""
    row = s.stations[station]
    aside = demand if row.kind == SHARED else s.header[NOW] - joined
    if row.served + s.header[MARGIN] >= s.finishes.shape[1]:
        s.header[SHORT] = 1
    add_finish(s, station, row.whole + demand, row.parts, thread, joined, aside)


@part
def look(p: Program, s: State, station: int, undisturbed: bool) -> int:
    """Let all visits leave whose service is complete, and those who wait take their places.

    A thread that is alone to go on at this tick is returned, so that it need not be put on the agenda first; but only
    when the tick is `undisturbed` by changes of the timeline, which come before.
    """
    ran = before_change(p, s, station)
    row = s.stations[station]
    alone = NONE
    while row.served > 0:
        first = s.finishes[row.leaf, first_finish(s, station)]
        if first.whole > row.whole or (first.whole == row.whole and first.parts > row.parts):
            break
        book_visit(p, s, station, first.joined, first.aside)
        serve(p, s, alone)
        alone = first.thread
        drop_finish(s, station)
        if alone != NONE and row.plain and row.kind == SHARED and p.code[s.threads[alone].pc].c:
            _send_after(p, s, station, alone)
    while row.waiting > 0 and row.served < row.servers:
        _take_next(p, s, station)
    after_change(p, s, station, ran)
    now = s.header[NOW]
    if undisturbed and s.heap[0].tick > now and s.look[1] > now and s.header[ARRIVAL_AT] > now:
        return alone
    serve(p, s, alone)
    return NONE


@part
def _send_after(p: Program, s: State, station: int, thread: int) -> None:
    """Do at once what follows a visit: one at the same station that nobody waits for.

    Nothing else that happens at this tick can tell: at a shared station only what is inside matters, not its order.
    """
    pc = s.threads[thread].pc + 1
    s.threads[thread].pc = pc
    key = np.uint64(s.requests[s.threads[thread].request].key)
    demand = ticks(p, p.code[pc].b, uniform(key, p.code[pc].key))
    if demand > 0:
        begin(s, station, NONE, demand, s.header[NOW])
    else:
        book_visit(p, s, station, s.header[NOW], 0)


@part
def _take_next(p: Program, s: State, station: int) -> None:
    row, node, now = s.stations[station], s.lists[station].head, s.header[NOW]
    thread, demand, joined = s.nodes[node].a, s.nodes[node].b, s.nodes[node].c
    drop_head(s, station)
    row.waiting -= 1
    if now - joined > row.expiry:
        s.station_totals[s.header[INTERVAL], station, STATION_DROPS] += 1
        drop_at_resume(p, s, thread)
    elif demand == 0:
        book_visit(p, s, station, joined, now - joined)
        serve(p, s, thread)
    else:
        begin(s, station, thread, demand, joined)


@part
def drop_at_resume(p: Program, s: State, thread: int) -> None:
    """Let a thread find itself dropped, at a RESUME event at this tick."""
    if thread != NONE:
        s.threads[thread].dropped = 1
        step = p.code[s.threads[thread].pc].step
        push_step(s, s.header[NOW], RESUME, s.threads[thread].request, step, thread)


@part
def book_visit(p: Program, s: State, station: int, joined: int, aside: int) -> None:
    """Count a visit that ends now, when it joined; `aside` is its wait, or its demand when shared."""
    interval = past_interval(p, s, joined)
    responded = s.header[NOW] - joined
    s.station_totals[interval, station, VISITS] += 1
    waited = responded - aside if s.stations[station].kind == SHARED else aside
    add_pair(s.station_totals, interval, station, RESPONDED, responded)
    add_pair(s.station_totals, interval, station, WAITED, waited)
