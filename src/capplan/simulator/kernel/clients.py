"""Those who ask: when requests start, when their clients give up or try again, and what follows an answer."""

from __future__ import annotations

import numpy as np

from capplan.simulator.kernel.agenda import push
from capplan.simulator.kernel.arrivals import multiplier, operational_tick, segment_at
from capplan.simulator.kernel.compiling import part
from capplan.simulator.kernel.draws import fold, request_key, rounded, ticks, uniform
from capplan.simulator.kernel.forks import release_talk
from capplan.simulator.kernel.layout import (
    A_CLIENTS,
    A_END,
    A_KEY,
    A_KIND,
    A_THINK,
    ATTEMPTS,
    CLOSED,
    COMPLETED,
    IN_WINDOW,
    INTERVAL,
    K_ATTEMPT,
    K_BEAT,
    K_BEGAN,
    K_FIRST,
    K_INTENDED,
    K_KEY,
    K_OPEN,
    K_PLACE,
    K_ROW,
    K_SOURCE,
    K_START,
    K_STICKY,
    K_TOKEN,
    K_UNIT,
    K_USERS,
    KIND_SHIFT,
    MOST_ROWS,
    N_A,
    N_B,
    NEVER,
    NONE,
    NOW,
    O_CLASSES,
    O_COUNT,
    O_GAPS,
    O_KEY,
    O_STICKY,
    R_CLASS,
    R_ENDED,
    R_KEY,
    R_RANK,
    R_TALK,
    R_THREADS,
    ROWS,
    START,
    STARTED,
    STEP_BITS,
    THROTTLED,
    TIMEOUT,
    X_ATTEMPTS,
    X_BACKOFFS,
    X_START,
    X_TIMEOUT,
    Z_BEAT,
    Program,
    State,
)
from capplan.simulator.kernel.records import append, drop_head, new_request, new_talk, new_thread
from capplan.simulator.kernel.tallies import book_request
from capplan.simulator.streams import name_key

_GAP, _THINK, _MIX = (np.uint64(name_key(name)) for name in ("gap", "think", "mix"))


@part
def open_talk(p: Program, s: State, unit: int, first: int, tick: int) -> int:
    """Return a new session of the traffic, whose kind is drawn with the weights of `tick`."""
    talk = new_talk(s)
    key = request_key(np.uint64(p.traffic[A_KEY]), unit, first, 0)
    edges = len(p.sources)
    segment = segment_at(p, tick)
    source = pick_source(p, segment, edges, uniform(key, _MIX))
    row = s.talks[talk]
    row[K_USERS] = 1
    row[K_SOURCE] = source
    row[K_UNIT] = unit
    row[K_FIRST] = first
    row[K_PLACE] = 0
    row[K_ATTEMPT] = 0
    row[K_BEAT] = NONE
    row[K_BEGAN] = NONE
    row[K_OPEN] = 0
    row[K_TOKEN] = np.int64(request_key(np.uint64(p.sources[source, O_KEY]), unit, first, 0))
    row[K_STICKY] = p.sources[source, O_STICKY]
    for place in range(K_STICKY + 1, len(row)):
        row[place] = NONE
    return talk


@part
def pick_source(p: Program, segment: int, count: int, u: float) -> int:
    """Return the source of an arrival in a segment of the traffic's time."""
    chosen = 0
    while chosen < count - 1 and p.multipliers[segment, 2 + chosen] <= u:
        chosen += 1
    return chosen


@part
def start_at(p: Program, s: State, talk: int, tick: int) -> bool:
    """Let the next request of a session start at `tick`, unless the traffic has ended by then."""
    if tick >= p.traffic[A_END]:
        return False
    position = s.talks[talk, K_FIRST] + s.talks[talk, K_PLACE]
    rank = START << KIND_SHIFT | s.talks[talk, K_UNIT] << STEP_BITS | (position & ((1 << STEP_BITS) - 1))
    push(s, tick, rank, talk)
    return True


@part
def start(p: Program, s: State, talk: int) -> int:
    """Start a request, or another attempt at it; return the thread that does its flow, if it may."""
    row, now = s.talks[talk], s.header[NOW]
    source, place = row[K_SOURCE], row[K_PLACE]
    request_class = p.table[p.sources[source, O_CLASSES] + place]
    if row[K_ATTEMPT] == 0:
        if s.header[ROWS] >= s.header[MOST_ROWS]:
            release_talk(s, talk)
            return NONE
        _open_row(p, s, talk, request_class)
    request = new_request(s)
    s.requests[request, R_RANK] = s.header[ATTEMPTS] << STEP_BITS
    s.header[ATTEMPTS] += 1
    s.requests[request, R_KEY] = np.int64(fold(np.uint64(row[K_KEY]), row[K_ATTEMPT]))
    s.requests[request, R_TALK] = talk
    s.requests[request, R_CLASS] = request_class
    s.requests[request, R_THREADS] = 0
    s.requests[request, R_ENDED] = 0
    row[K_USERS] += 1
    patience = p.classes[request_class, X_TIMEOUT]
    if patience != NEVER:
        _set_timeout(s, request_class, now + patience, request)
    return new_thread(s, request, p.classes[request_class, X_START], NONE, NONE)


@part
def _open_row(p: Program, s: State, talk: int, request_class: int) -> None:
    row, now = s.talks[talk], s.header[NOW]
    row[K_ROW] = s.header[ROWS]
    s.header[ROWS] += 1
    row[K_OPEN] = 1
    row[K_START] = now
    row[K_INTENDED] = now
    if row[K_BEGAN] == NONE:
        row[K_BEGAN] = now
        if row[K_BEAT] != NONE:
            row[K_INTENDED] = row[K_BEAT]
    key = np.uint64(p.sources[row[K_SOURCE], O_KEY])
    row[K_KEY] = np.int64(fold(fold(key, row[K_UNIT]), row[K_FIRST] + row[K_PLACE]))
    s.class_series[s.header[INTERVAL], request_class, STARTED] += 1
    s.class_totals[request_class, STARTED] += s.header[IN_WINDOW]


@part
def _set_timeout(s: State, request_class: int, tick: int, request: int) -> None:
    """Keep the timeouts of a class in a list, as they come in order; only the first is on the agenda."""
    if s.timeouts[request_class, 0] == NONE:
        push(s, tick, TIMEOUT << KIND_SHIFT | s.requests[request, R_RANK], request_class)
    append(s, s.timeouts, request_class, 0, tick, s.requests[request, R_RANK], request)


@part
def time_out(s: State, request_class: int) -> int:
    """Take the first timeout of a class off its list; return its request if it still waits for its answer."""
    found = _waiting(s, request_class)
    drop_head(s, s.timeouts, request_class, 0)
    while s.timeouts[request_class, 0] != NONE and _waiting(s, request_class) == NONE:
        drop_head(s, s.timeouts, request_class, 0)
    node = s.timeouts[request_class, 0]
    if node != NONE:
        push(s, s.nodes[node, N_A], TIMEOUT << KIND_SHIFT | s.nodes[node, N_B], request_class)
    return found


@part
def _waiting(s: State, request_class: int) -> int:
    node = s.timeouts[request_class, 0]
    rank, request = s.nodes[node, N_B], s.nodes[node, N_B + 1]
    if s.requests[request, R_RANK] == rank and not s.requests[request, R_ENDED]:
        return request
    return NONE


@part
def answer(p: Program, s: State, request: int, status: int, tick: int) -> None:
    """Tell the client how its request has ended; it tries again, goes on with its session, or is done."""
    talk, request_class = s.requests[request, R_TALK], s.requests[request, R_CLASS]
    s.requests[request, R_ENDED] = 1
    row = s.talks[talk]
    attempt = row[K_ATTEMPT]
    if status != COMPLETED and attempt + 1 < p.classes[request_class, X_ATTEMPTS]:
        again = tick + p.table[p.classes[request_class, X_BACKOFFS] + attempt]
        if again < p.traffic[A_END]:
            row[K_ATTEMPT] = attempt + 1
            start_at(p, s, talk, again)
            return
    book_request(p, s, talk, request_class, status, tick)
    row[K_OPEN] = 0
    source, place = row[K_SOURCE], row[K_PLACE]
    if status == COMPLETED and place + 1 < p.sources[source, O_COUNT]:
        first_key = fold(np.uint64(row[K_KEY]), 0)
        gap = ticks(p, p.table[p.sources[source, O_GAPS] + place], uniform(first_key, _GAP))
        row[K_PLACE] = place + 1
        row[K_ATTEMPT] = 0
        if not start_at(p, s, talk, tick + gap):
            release_talk(s, talk)
        return
    unit, position = row[K_UNIT], row[K_FIRST] + place + 1
    at_once = row[K_BEGAN] == tick
    release_talk(s, talk)
    if p.traffic[A_KIND] == CLOSED:
        think(p, s, unit, position, tick, 1 if at_once else 0)
    elif p.traffic[A_KIND] == THROTTLED:
        beat(p, s, unit, position, tick)


@part
def think(p: Program, s: State, unit: int, position: int, tick: int, least: int) -> None:
    """Let a closed client think, from `tick` on, for at least so many ticks."""
    talk = open_talk(p, s, unit, position, tick)
    key = request_key(np.uint64(p.traffic[A_KEY]), unit, position, 0)
    pause = ticks(p, p.traffic[A_THINK], uniform(key, _THINK))
    factor = multiplier(p, tick)
    if factor != 1.0:
        pause = rounded(pause / factor)
    if not start_at(p, s, talk, tick + max(pause, least)):
        release_talk(s, talk)


@part
def beat(p: Program, s: State, unit: int, position: int, tick: int) -> None:
    """Let a throttled client start on its next beat, or at `tick` when that has passed."""
    number = s.beats[unit]
    s.beats[unit] = number + 1
    due = operational_tick(p, (number * p.traffic[A_CLIENTS] + unit) * p.rates[Z_BEAT])
    talk = open_talk(p, s, unit, position, due)
    s.talks[talk, K_BEAT] = due
    if not start_at(p, s, talk, max(due, tick)):
        release_talk(s, talk)
