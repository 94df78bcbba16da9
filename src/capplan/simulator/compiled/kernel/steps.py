"""What each instruction of a flow does. It returns the next one, or `NONE` when the thread waits or has ended."""

from __future__ import annotations

import numpy as np

from capplan.simulator.compiled.kernel.agenda import push_fixed, push_step
from capplan.simulator.compiled.kernel.compiling import part
from capplan.simulator.compiled.kernel.draws import pick, rounded, ticks, uniform
from capplan.simulator.compiled.kernel.elastic import join_elastic
from capplan.simulator.compiled.kernel.forks import end_thread, is_open
from capplan.simulator.compiled.kernel.layout import (
    COMPLETED,
    DELAY,
    INTERVAL,
    KIND_SHIFT,
    LEAST_LOADED,
    NONE,
    NOW,
    OVER,
    OVER_REQUEST,
    OVER_TICK,
    POOL_LISTS,
    RANDOM,
    RESUME,
    ROUND_ROBIN,
    SERVICE,
    TOKEN_AWARE,
    WAIT_FIXED,
    Program,
    State,
)
from capplan.simulator.compiled.kernel.records import append, drop_head
from capplan.simulator.compiled.kernel.rigid import join_rigid
from capplan.simulator.compiled.kernel.tallies import add_pair, past_interval
from capplan.simulator.results.tally import BUSY, HELD, POOL_DROPS, POOL_WAITED, QUEUED, STATION_DROPS, TAKEN

SMOOTHING_BITS = 3


@part
def drawn(p: Program, s: State, request: int, pc: int) -> float:
    """Return the uniform number of an instruction's draw."""
    return uniform(np.uint64(s.requests[request].key), p.code[pc].key)


@part
def visit_rigid(p: Program, s: State, thread: int, pc: int) -> int:
    """Join a rigid station; go on when served."""
    request = s.threads[thread].request
    demand = ticks(p, p.code[pc].b, drawn(p, s, request, pc))
    end = join_rigid(p, s, p.code[pc].a, demand)
    s.threads[thread].pc = pc
    push_step(s, end, SERVICE, request, p.code[pc].step, thread)
    return NONE


@part
def visit_last(p: Program, s: State, thread: int, pc: int) -> int:
    """Join a rigid station as the last thing that the request does: its end is known, without an event."""
    request = s.threads[thread].request
    end = join_rigid(p, s, p.code[pc].a, ticks(p, p.code[pc].b, drawn(p, s, request, pc)))
    return end_request(s, thread, COMPLETED, end)


@part
def wait_last(p: Program, s: State, thread: int, pc: int) -> int:
    """Let time pass as the last thing that the request does."""
    duration = ticks(p, p.code[pc].a, drawn(p, s, s.threads[thread].request, pc))
    return end_request(s, thread, COMPLETED, s.header[NOW] + duration)


@part
def end_request(s: State, thread: int, status: int, tick: int) -> int:
    """End a request's own thread; the client, unless it has given up, is told when the event is over."""
    request = s.threads[thread].request
    if not s.requests[request].ended:
        s.header[OVER] = status
        s.header[OVER_REQUEST] = request
        s.header[OVER_TICK] = tick
    end_thread(s, thread)
    return NONE


@part
def send_rigid(p: Program, s: State, thread: int, pc: int) -> int:
    """Let a visit join a rigid station; nobody waits for it."""
    join_rigid(p, s, p.code[pc].a, ticks(p, p.code[pc].b, drawn(p, s, s.threads[thread].request, pc)))
    return pc + 1


@part
def visit_elastic(p: Program, s: State, thread: int, pc: int, waits: bool) -> int:
    """Join an elastic station; go on when served (if the thread `waits`), or dropped when it is known to be down."""
    station = p.code[pc].a
    if s.stations[station].known:
        s.station_totals[s.header[INTERVAL], station, STATION_DROPS] += 1
        return p.code[pc].unwind if waits else pc + 1
    demand = ticks(p, p.code[pc].b, drawn(p, s, s.threads[thread].request, pc))
    if waits:
        s.threads[thread].pc = pc
    join_elastic(p, s, station, thread if waits else NONE, demand)
    return NONE if waits else pc + 1


@part
def wait(p: Program, s: State, thread: int, pc: int) -> int:
    """Let time pass; before a signal for a latch that is open already there is nothing to wait for."""
    if p.code[pc].c and is_open(s, s.threads[thread].latch, p.code[pc + 1].a):
        return pc + 2
    request = s.threads[thread].request
    s.threads[thread].pc = pc
    if p.code[pc].op == WAIT_FIXED:
        rank = DELAY << KIND_SHIFT | s.requests[request].rank | p.code[pc].step
        push_fixed(s, s.header[NOW] + p.table[p.code[pc].a], rank, thread, p.code[pc].b)
        return NONE
    duration = ticks(p, p.code[pc].a, drawn(p, s, request, pc))
    scale = p.code[pc].b
    if scale >= 0 and s.scales[scale] != 1.0:
        duration = rounded(duration * s.scales[scale])
    push_step(s, s.header[NOW] + duration, DELAY, request, p.code[pc].step, thread)
    return NONE


@part
def count_pool(s: State, pool: int) -> None:
    """Let the sums of a pool reach this tick."""
    row = s.pools[pool]
    elapsed = s.header[NOW] - row.since
    if elapsed == 0:
        return
    row.since += elapsed
    busy = row.size - row.free
    interval = s.header[INTERVAL]
    s.pool_series[interval, pool, QUEUED] += row.waiting * elapsed
    s.pool_series[interval, pool, BUSY] += busy * elapsed
    s.pool_busy[interval, pool, busy] += elapsed


@part
def take(p: Program, s: State, thread: int, pc: int) -> int:
    """Take a unit of a pool, wait for one, or be dropped when too many wait."""
    pool = p.code[pc].a
    row = s.pools[pool]
    now = s.header[NOW]
    if row.free > 0:
        count_pool(s, pool)
        row.free -= 1
        s.locals[thread, p.code[pc].b] = now
        s.pool_totals[s.header[INTERVAL], pool, TAKEN] += 1
        return pc + 1
    if row.waiting >= row.limit:
        s.pool_totals[s.header[INTERVAL], pool, POOL_DROPS] += 1
        return p.code[pc].unwind
    count_pool(s, pool)
    row.waiting += 1
    s.threads[thread].pc = pc
    s.threads[thread].since = now
    append(s, s.header[POOL_LISTS] + pool, thread, 0, 0)
    return NONE


@part
def give(p: Program, s: State, thread: int, pc: int) -> int:
    """Give a unit back: to the first who waits, else to the pool."""
    pool = p.code[pc].a
    row = s.pools[pool]
    now = s.header[NOW]
    since = s.locals[thread, p.code[pc].b]
    add_pair(s.pool_totals, past_interval(p, s, since), pool, HELD, now - since)
    count_pool(s, pool)
    if row.waiting == 0:
        row.free += 1
        return pc + 1
    next_one = s.nodes[s.lists[s.header[POOL_LISTS] + pool].head].a
    drop_head(s, s.header[POOL_LISTS] + pool)
    row.waiting -= 1
    taking = s.threads[next_one].pc
    s.locals[next_one, p.code[taking].b] = now
    interval = s.header[INTERVAL]
    s.pool_totals[interval, pool, TAKEN] += 1
    add_pair(s.pool_totals, interval, pool, POOL_WAITED, now - s.threads[next_one].since)
    push_step(s, now, RESUME, s.threads[next_one].request, p.code[taking].step, next_one)
    return pc + 1


@part
def choose(p: Program, s: State, thread: int, pc: int) -> int:
    """Go on with one of several, at random."""
    chosen = pick(p, p.code[pc].a, p.code[pc].b - 1, drawn(p, s, s.threads[thread].request, pc))
    return p.table[p.code[pc].c + chosen]


@part
def route(p: Program, s: State, thread: int, pc: int) -> int:
    """Go on with one of several targets, as the policy says."""
    number, request = p.code[pc].a, s.threads[thread].request
    row, target = s.routes[number], NONE
    talk = s.requests[request].talk
    remembers = row.sticky >= 0 and s.talks[talk].sticky >= 0
    if remembers:
        target = s.sticky[talk, row.sticky]
        if target >= 0 and s.targets[row.first + target].down:
            target = NONE
    if target == NONE:
        target = _picked(p, s, number, request, pc)
    if remembers:
        s.sticky[talk, row.sticky] = target
    s.targets[row.first + target].inside += 1
    s.locals[thread, p.code[pc].d] = s.header[NOW]
    return p.table[p.code[pc].c + target]


@part
def avoided(s: State, number: int, target: int) -> bool:
    """Tell whether a target is known to be down while another is not."""
    row = s.routes[number]
    return row.avoid > 0 and s.targets[row.first + target].down > 0


@part
def _picked(p: Program, s: State, number: int, request: int, pc: int) -> int:
    row = s.routes[number]
    if row.policy == ROUND_ROBIN:
        target = row.passed % row.count
        row.passed += 1
    elif row.policy == RANDOM:
        target = np.int64(drawn(p, s, request, pc) * row.count)
    elif row.policy == TOKEN_AWARE:
        token = np.uint64(s.talks[s.requests[request].talk].token)
        target = np.int64(uniform(token, np.uint64(0)) * row.count)
    else:
        return _least(s, number, row.policy == LEAST_LOADED)
    while avoided(s, number, target):
        target = target + 1 if target + 1 < row.count else 0
    return target


@part
def _least(s: State, number: int, loaded: bool) -> int:
    row = s.routes[number]
    found, least = NONE, 0
    for target in range(row.count):
        value = s.targets[row.first + target].inside if loaded else s.targets[row.first + target].smoothed
        if not avoided(s, number, target) and (found == NONE or value < least):
            found, least = target, value
    return found


@part
def leave(p: Program, s: State, thread: int, pc: int) -> int:
    """Count a request out of its target."""
    row = s.targets[s.routes[p.code[pc].a].first + p.code[pc].b]
    row.inside -= 1
    if not p.code[pc].d:
        took = s.header[NOW] - s.locals[thread, p.code[pc].c]
        row.smoothed = took if row.smoothed < 0 else row.smoothed + ((took - row.smoothed) >> SMOOTHING_BITS)
    return pc + 1
