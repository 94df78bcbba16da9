"""Elastic stations: processor sharing, and first come, first served at a speed that changes.

The service V that a visit could have attained is kept as whole ticks and parts of one; see decision record 6.
"""

from __future__ import annotations

import numpy as np

from capplan.simulator.kernel.agenda import look_at, push_step
from capplan.simulator.kernel.attained import PARTS, grown, ticks_until
from capplan.simulator.kernel.compiling import part
from capplan.simulator.kernel.layout import (
    F_ASIDE,
    F_JOINED,
    F_PARTS,
    F_THREAD,
    F_WHOLE,
    H_BUSY,
    H_CORES,
    H_COUNT,
    H_STATIONS,
    IN_WINDOW,
    INTERVAL,
    MARGIN,
    N_A,
    N_B,
    N_C,
    NEVER,
    NONE,
    NOW,
    P_BACKGROUND,
    P_RUNS,
    PACES,
    QUEUED,
    RESUME,
    S_DOWN,
    S_EXPIRY,
    S_HEAD,
    S_HOST,
    S_KIND,
    S_LEAF,
    S_PARTS,
    S_PAUSED,
    S_PLAIN,
    S_PROCESS_COUNT,
    S_PROCESSES,
    S_RATE_COUNT,
    S_RATES,
    S_SERVED,
    S_SERVERS,
    S_SIGMA,
    S_SINCE,
    S_WAITING,
    S_WHOLE,
    SERVICE,
    SHARED,
    SHORT,
    STEP,
    T_DROPPED,
    T_PC,
    T_REQUEST,
    WINDOW_END,
    WINDOW_START,
    Ints,
    Program,
    State,
)
from capplan.simulator.kernel.records import append, drop_head
from capplan.simulator.kernel.rigid import BUSY_TICKS, QUEUED_TICKS, REFUSED, RESPONDED, VISITS, WAITED

FASTEST = 512


@part
def bring_up_to_date(s: State, station: int) -> None:
    """Let the service attained, and the sums of the interval, reach this tick."""
    row = s.stations[station]
    elapsed = s.header[NOW] - row[S_SINCE]
    if elapsed == 0:
        return
    row[S_SINCE] += elapsed
    served = row[S_SERVED]
    if served == 0:
        return
    if row[S_SIGMA] == PARTS:
        row[S_WHOLE] += elapsed
    elif row[S_SIGMA] > 0:
        row[S_WHOLE], row[S_PARTS] = grown(row[S_WHOLE], row[S_PARTS], row[S_SIGMA], elapsed)
    busy = min(served, row[S_SERVERS])
    interval = s.header[INTERVAL]
    s.station_series[interval, station, BUSY_TICKS] += busy * elapsed
    s.station_series[interval, station, QUEUED_TICKS] += (served - busy + row[S_WAITING]) * elapsed


@part
def set_pace(p: Program, s: State, station: int) -> None:
    """Set the speed that follows from what is inside now, and the next look. V must be up to date."""
    row = s.stations[station]
    served, leaf = row[S_SERVED], row[S_LEAF]
    if served == 0:
        look_at(s, leaf, NEVER)
        return
    sigma = _sigma(p, s, station)
    row[S_SIGMA] = sigma
    whole = s.finishes[leaf, 0, F_WHOLE] - row[S_WHOLE]
    parts = s.finishes[leaf, 0, F_PARTS] - row[S_PARTS]
    if sigma == PARTS:
        look_at(s, leaf, row[S_SINCE] + whole + (parts > 0))
    elif sigma == 0:
        look_at(s, leaf, NEVER)
    else:
        look_at(s, leaf, min(NEVER, row[S_SINCE] + ticks_until(whole, parts, sigma)))


@part
def _sigma(p: Program, s: State, station: int) -> int:
    row = s.stations[station]
    base = PARTS
    if row[S_KIND] == SHARED and row[S_SERVED] > row[S_SERVERS]:
        base = PARTS * row[S_SERVERS] // row[S_SERVED]
    if row[S_PLAIN]:
        return base
    if row[S_PAUSED] > 0 or row[S_DOWN]:
        return 0
    host = row[S_HOST]
    if host >= 0 and s.hosts[host, H_BUSY] > s.hosts[host, H_CORES]:
        base = base * s.hosts[host, H_CORES] // s.hosts[host, H_BUSY]
    factor = _factor(p, s, station)
    if factor == 1.0:
        return base
    if factor == 0.0:
        return 0
    return min(max(np.int64(base * factor + 0.5), 1), FASTEST * PARTS)


@part
def _factor(p: Program, s: State, station: int) -> float:
    row = s.stations[station]
    factor = 1.0
    if row[S_RATES] >= 0:
        inside = row[S_SERVED] + row[S_WAITING]
        factor *= p.numbers[row[S_RATES] + min(inside, row[S_RATE_COUNT]) - 1]
    taken = 0.0
    for process in range(row[S_PROCESSES], row[S_PROCESSES] + row[S_PROCESS_COUNT]):
        if s.processes[process, P_RUNS] and s.processes[process, P_BACKGROUND] >= 0:
            taken += p.numbers[s.processes[process, P_BACKGROUND]]
    factor *= max(0.0, 1.0 - taken)
    for pace in range(PACES):
        factor *= s.paces[station, pace]
    return factor


@part
def running(s: State, station: int) -> int:
    """Return how many servers run, as far as a host is concerned."""
    row = s.stations[station]
    if row[S_PAUSED] > 0 or row[S_DOWN]:
        return 0
    return min(row[S_SERVED], row[S_SERVERS])


@part
def before_change(s: State, station: int) -> int:
    """Bring a station, or all on its host, up to date; return how many of its servers run."""
    host = s.stations[station, S_HOST]
    if host == NONE:
        bring_up_to_date(s, station)
        return 0
    for place in range(s.hosts[host, H_COUNT]):
        bring_up_to_date(s, s.hosts[host, H_STATIONS + place])
    return running(s, station)


@part
def after_change(p: Program, s: State, station: int, ran: int) -> None:
    """Set the pace of a station, or of all on its host when it now runs more or fewer servers than `ran`."""
    host = s.stations[station, S_HOST]
    if host == NONE:
        set_pace(p, s, station)
        return
    s.hosts[host, H_BUSY] += running(s, station) - ran
    for place in range(s.hosts[host, H_COUNT]):
        set_pace(p, s, s.hosts[host, H_STATIONS + place])


@part
def join_elastic(p: Program, s: State, station: int, thread: int, demand: int) -> None:
    """Let a visit join; `thread` (if any) goes on at a SERVICE event of its own."""
    row = s.stations[station]
    if row[S_KIND] == QUEUED and row[S_SERVED] >= row[S_SERVERS]:
        ran = before_change(s, station)
        row[S_WAITING] += 1
        append(s, s.stations, station, S_HEAD, thread, demand, s.header[NOW])
        if row[S_RATES] >= 0:
            after_change(p, s, station, ran)
        return
    if demand == 0:
        book_visit(s, station, s.header[NOW], 0)
        serve(p, s, thread)
        return
    ran = before_change(s, station)
    begin(s, station, thread, demand, s.header[NOW])
    after_change(p, s, station, ran)


@part
def serve(p: Program, s: State, thread: int) -> None:
    """Let a visit's thread go on at a SERVICE event at this tick."""
    if thread != NONE:
        step = p.code[s.threads[thread, T_PC], STEP]
        push_step(s, s.header[NOW], SERVICE, s.threads[thread, T_REQUEST], step, thread)


@part
def begin(s: State, station: int, thread: int, demand: int, joined: int) -> None:
    """Begin a service that ends when V has grown by `demand`."""
    row = s.stations[station]
    leaf, place = row[S_LEAF], row[S_SERVED]
    row[S_SERVED] = place + 1
    heap = s.finishes[leaf]
    if place + s.header[MARGIN] >= heap.shape[0]:
        s.header[SHORT] = 1
    whole, parts = row[S_WHOLE] + demand, row[S_PARTS]
    while place > 0:
        parent = (place - 1) >> 1
        if heap[parent, F_WHOLE] < whole or (heap[parent, F_WHOLE] == whole and heap[parent, F_PARTS] <= parts):
            break
        for column in range(5):
            heap[place, column] = heap[parent, column]
        place = parent
    heap[place, F_WHOLE] = whole
    heap[place, F_PARTS] = parts
    heap[place, F_THREAD] = thread
    heap[place, F_JOINED] = joined
    heap[place, F_ASIDE] = demand if row[S_KIND] == SHARED else s.header[NOW] - joined


@part
def look(p: Program, s: State, station: int) -> None:
    """Let all visits leave whose service is complete, and those who wait take their places."""
    ran = before_change(s, station)
    row = s.stations[station]
    leaf = row[S_LEAF]
    while row[S_SERVED] > 0:
        first = s.finishes[leaf, 0]
        if first[F_WHOLE] > row[S_WHOLE] or (first[F_WHOLE] == row[S_WHOLE] and first[F_PARTS] > row[S_PARTS]):
            break
        book_visit(s, station, first[F_JOINED], first[F_ASIDE])
        serve(p, s, first[F_THREAD])
        _drop_first(s, station)
    while row[S_WAITING] > 0 and row[S_SERVED] < row[S_SERVERS]:
        _take_next(p, s, station)
    after_change(p, s, station, ran)


@part
def _take_next(p: Program, s: State, station: int) -> None:
    row, node, now = s.stations[station], s.stations[station, S_HEAD], s.header[NOW]
    thread, demand, joined = s.nodes[node, N_A], s.nodes[node, N_B], s.nodes[node, N_C]
    drop_head(s, s.stations, station, S_HEAD)
    row[S_WAITING] -= 1
    if now - joined > row[S_EXPIRY]:
        if s.header[IN_WINDOW]:
            s.station_totals[station, REFUSED] += 1
        drop_at_resume(p, s, thread)
    elif demand == 0:
        book_visit(s, station, joined, now - joined)
        serve(p, s, thread)
    else:
        begin(s, station, thread, demand, joined)


@part
def drop_at_resume(p: Program, s: State, thread: int) -> None:
    """Let a thread find itself dropped, at a RESUME event at this tick."""
    if thread != NONE:
        s.threads[thread, T_DROPPED] = 1
        step = p.code[s.threads[thread, T_PC], STEP]
        push_step(s, s.header[NOW], RESUME, s.threads[thread, T_REQUEST], step, thread)


@part
def book_visit(s: State, station: int, joined: int, aside: int) -> None:
    """Count a visit that ends now, if it joined in the window; `aside` is its wait, or its demand when shared."""
    if joined < s.header[WINDOW_START] or joined >= s.header[WINDOW_END]:
        return
    responded = s.header[NOW] - joined
    s.station_totals[station, VISITS] += 1
    s.station_totals[station, RESPONDED] += responded
    s.station_totals[station, WAITED] += responded - aside if s.stations[station, S_KIND] == SHARED else aside


@part
def _drop_first(s: State, station: int) -> None:
    """Take the first of the services off its heap."""
    row = s.stations[station]
    heap = s.finishes[row[S_LEAF]]
    count = row[S_SERVED] - 1
    row[S_SERVED] = count
    whole, parts = heap[count, F_WHOLE], heap[count, F_PARTS]
    place = 0
    while True:
        child = 2 * place + 1
        if child >= count:
            break
        if child + 1 < count and _earlier(heap, child + 1, child):
            child += 1
        if whole < heap[child, F_WHOLE] or (whole == heap[child, F_WHOLE] and parts <= heap[child, F_PARTS]):
            break
        for column in range(5):
            heap[place, column] = heap[child, column]
        place = child
    for column in range(5):
        heap[place, column] = heap[count, column]


@part
def _earlier(heap: Ints, one: int, other: int) -> bool:
    if heap[one, F_WHOLE] != heap[other, F_WHOLE]:
        return heap[one, F_WHOLE] < heap[other, F_WHOLE]
    return heap[one, F_PARTS] < heap[other, F_PARTS]
