"""Those who ask: when requests start, when their clients give up or try again, and what follows an answer."""

from __future__ import annotations

import numpy as np

from capplan.simulator.compiled.kernel.agenda import push
from capplan.simulator.compiled.kernel.arrivals import multiplier, next_arrival, operational_tick, segment_at
from capplan.simulator.compiled.kernel.compiling import part
from capplan.simulator.compiled.kernel.draws import fold, request_key, rounded, ticks, uniform
from capplan.simulator.compiled.kernel.forks import release_talk
from capplan.simulator.compiled.kernel.layout import (
    A_CLIENTS,
    A_END,
    A_KEY,
    A_KIND,
    A_THINK,
    ARRIVAL_AT,
    ARRIVAL_KEY,
    ATTEMPTS,
    CLASS_LISTS,
    CLOSED,
    COMPLETED,
    INTERVAL,
    KIND_SHIFT,
    MOST_ROWS,
    NEVER,
    NONE,
    NOW,
    ROWS,
    START,
    STARTED,
    STEP_BITS,
    THROTTLED,
    TIMEOUT,
    UNIT,
    Z_BEAT,
    Program,
    State,
)
from capplan.simulator.compiled.kernel.records import append, drop_head, new_request, new_talk, new_thread
from capplan.simulator.compiled.kernel.tallies import book_request
from capplan.simulator.specification.streams import name_key

_GAP, _THINK, _MIX = (np.uint64(name_key(name)) for name in ("gap", "think", "mix"))


@part
def open_talk(p: Program, s: State, unit: int, first: int, tick: int, key: np.uint64) -> int:
    """Return a new session of the traffic, whose kind is drawn with the weights of `tick`."""
    talk = new_talk(s)
    source = 0
    if len(p.sources) > 1:
        source = pick_source(p, segment_at(p, tick), len(p.sources), uniform(key, _MIX))
    row = s.talks[talk]
    row.users = 1
    row.source = source
    row.unit = unit
    row.first = first
    row.place = 0
    row.attempt = 0
    row.beat = NONE
    row.began = NONE
    row.open = 0
    row.sticky = p.sources[source].sticky
    for place in range(s.sticky.shape[1]):
        s.sticky[talk, place] = NONE
    return talk


@part
def arrive(p: Program, s: State) -> int:
    """Return the session that arrives now; set the time of the next."""
    unit = s.header[UNIT]
    talk = open_talk(p, s, unit, 0, s.header[NOW], np.uint64(s.header[ARRIVAL_KEY]))
    s.header[UNIT] = unit + 1
    next_arrival(p, s)
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
    position = s.talks[talk].first + s.talks[talk].place
    rank = START << KIND_SHIFT | s.talks[talk].unit << STEP_BITS | (position & ((1 << STEP_BITS) - 1))
    push(s, tick, rank, talk)
    return True


@part
def start(p: Program, s: State, talk: int) -> int:
    """Start a request, or another attempt at it; return the thread that does its flow, if it may."""
    row, now = s.talks[talk], s.header[NOW]
    source, place = row.source, row.place
    request_class = p.table[p.sources[source].classes + place]
    if row.attempt == 0:
        if s.header[ROWS] >= s.header[MOST_ROWS]:
            release_talk(s, talk)
            return NONE
        _open_row(p, s, talk, request_class)
    request = new_request(s)
    s.requests[request].rank = s.header[ATTEMPTS] << STEP_BITS
    s.header[ATTEMPTS] += 1
    s.requests[request].key = np.int64(fold(np.uint64(row.key), row.attempt))
    if row.place == 0 and row.attempt == 0:
        row.token = s.requests[request].key
    s.requests[request].talk = talk
    s.requests[request].request_class = request_class
    s.requests[request].threads = 0
    s.requests[request].ended = 0
    row.users += 1
    patience = p.classes[request_class].timeout
    if patience != NEVER:
        _set_timeout(s, request_class, now + patience, request)
    return new_thread(s, request, p.classes[request_class].start, NONE, NONE)


@part
def _open_row(p: Program, s: State, talk: int, request_class: int) -> None:
    row, now = s.talks[talk], s.header[NOW]
    row.row = s.header[ROWS]
    s.header[ROWS] += 1
    if s.header[ROWS] == s.header[MOST_ROWS]:
        s.header[ARRIVAL_AT] = NEVER  # whoever else comes would not start
    row.open = 1
    row.start = now
    row.intended = now
    if row.began == NONE:
        row.began = now
        if row.beat != NONE:
            row.intended = row.beat
    key = np.uint64(p.sources[row.source].key)
    row.key = np.int64(fold(fold(key, row.unit), row.first + row.place))
    s.class_series[s.header[INTERVAL], request_class, STARTED] += 1
    s.class_totals[s.header[INTERVAL], request_class, STARTED] += 1


@part
def _set_timeout(s: State, request_class: int, tick: int, request: int) -> None:
    """Keep the timeouts of a class in a list, as they come in order; only the first is on the agenda."""
    timeouts = s.header[CLASS_LISTS] + request_class
    if s.lists[timeouts].head == NONE:
        push(s, tick, TIMEOUT << KIND_SHIFT | s.requests[request].rank, request_class)
    append(s, timeouts, tick, s.requests[request].rank, request)


@part
def time_out(s: State, request_class: int) -> int:
    """Take the first timeout of a class off its list; return its request if it still waits for its answer."""
    timeouts = s.header[CLASS_LISTS] + request_class
    found = _waiting(s, timeouts)
    drop_head(s, timeouts)
    while s.lists[timeouts].head != NONE and _waiting(s, timeouts) == NONE:
        drop_head(s, timeouts)
    node = s.lists[timeouts].head
    if node != NONE:
        push(s, s.nodes[node].a, TIMEOUT << KIND_SHIFT | s.nodes[node].b, request_class)
    return found


@part
def _waiting(s: State, timeouts: int) -> int:
    node = s.lists[timeouts].head
    rank, request = s.nodes[node].b, s.nodes[node].c
    if s.requests[request].rank == rank and not s.requests[request].ended:
        return request
    return NONE


@part
def answer(p: Program, s: State, request: int, status: int, tick: int) -> None:
    """Tell the client how its request has ended; it tries again, goes on with its session, or is done."""
    talk, request_class = s.requests[request].talk, s.requests[request].request_class
    s.requests[request].ended = 1
    row = s.talks[talk]
    attempt = row.attempt
    if status != COMPLETED and attempt + 1 < p.classes[request_class].attempts:
        again = tick + p.table[p.classes[request_class].backoffs + attempt]
        if again < p.traffic[A_END]:
            row.attempt = attempt + 1
            start_at(p, s, talk, again)
            return
    book_request(p, s, talk, request_class, status, tick)
    row.open = 0
    source, place = row.source, row.place
    if status == COMPLETED and place + 1 < p.sources[source].count:
        first_key = fold(np.uint64(row.key), 0)
        gap = ticks(p, p.table[p.sources[source].gaps + place], uniform(first_key, _GAP))
        row.place = place + 1
        row.attempt = 0
        if not start_at(p, s, talk, tick + gap):
            release_talk(s, talk)
        return
    unit, position = row.unit, row.first + place + 1
    at_once = row.began == tick
    release_talk(s, talk)
    if p.traffic[A_KIND] == CLOSED:
        think(p, s, unit, position, tick, 1 if at_once else 0)
    elif p.traffic[A_KIND] == THROTTLED:
        beat(p, s, unit, position, tick)


@part
def think(p: Program, s: State, unit: int, position: int, tick: int, least: int) -> None:
    """Let a closed client think, from `tick` on, for at least so many ticks."""
    key = request_key(np.uint64(p.traffic[A_KEY]), unit, position, 0)
    talk = open_talk(p, s, unit, position, tick, key)
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
    talk = open_talk(p, s, unit, position, due, request_key(np.uint64(p.traffic[A_KEY]), unit, position, 0))
    s.talks[talk].beat = due
    if not start_at(p, s, talk, max(due, tick)):
        release_talk(s, talk)
