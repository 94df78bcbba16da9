"""What each instruction of a flow does: it returns the next instruction, or `NONE` when the thread waits or has ended."""

from __future__ import annotations

import numpy as np

from capplan.simulator.kernel.agenda import push_step
from capplan.simulator.kernel.compiling import part
from capplan.simulator.kernel.draws import pick, rounded, ticks, uniform
from capplan.simulator.kernel.elastic import join_elastic
from capplan.simulator.kernel.forks import end_thread
from capplan.simulator.kernel.layout import (
    COMPLETED,
    DELAY,
    IN_WINDOW,
    INTERVAL,
    K_STICKY,
    K_TOKEN,
    LEAST_LOADED,
    N_A,
    NONE,
    NOW,
    OVER,
    OVER_REQUEST,
    OVER_TICK,
    Q_FREE,
    Q_HEAD,
    Q_LIMIT,
    Q_SINCE,
    Q_SIZE,
    Q_WAITING,
    R_ENDED,
    R_KEY,
    R_TALK,
    RANDOM,
    RESUME,
    ROUND_ROBIN,
    S_KNOWN,
    SERVICE,
    STEP,
    T_LOCALS,
    T_PC,
    T_REQUEST,
    T_SINCE,
    TOKEN_AWARE,
    UNWIND,
    W_AVOID,
    W_COUNT,
    W_DOWN,
    W_INSIDE,
    W_PASSED,
    W_POLICY,
    W_SMOOTHED,
    W_STICKY,
    W_TARGET,
    W_TARGETS,
    WINDOW_END,
    WINDOW_START,
    A,
    B,
    C,
    D,
    Program,
    State,
)
from capplan.simulator.kernel.records import append, drop_head
from capplan.simulator.kernel.rigid import BUSY_TICKS, QUEUED_TICKS, REFUSED, join_rigid

TAKEN, POOL_DROPS, POOL_WAITED, POOL_HELD, POOL_TOTALS = range(5)
SMOOTHING_BITS = 3


@part
def drawn(p: Program, s: State, request: int, pc: int) -> float:
    """Return the uniform number of an instruction's draw."""
    return uniform(np.uint64(s.requests[request, R_KEY]), p.keys[pc])


@part
def visit_rigid(p: Program, s: State, thread: int, pc: int) -> int:
    """Join a rigid station; go on when served."""
    request = s.threads[thread, T_REQUEST]
    demand = ticks(p, p.code[pc, B], drawn(p, s, request, pc))
    end = join_rigid(p, s, p.code[pc, A], demand)
    s.threads[thread, T_PC] = pc
    push_step(s, end, SERVICE, request, p.code[pc, STEP], thread)
    return NONE


@part
def visit_last(p: Program, s: State, thread: int, pc: int) -> int:
    """Join a rigid station as the last thing that the request does: its end is known, without an event."""
    request = s.threads[thread, T_REQUEST]
    end = join_rigid(p, s, p.code[pc, A], ticks(p, p.code[pc, B], drawn(p, s, request, pc)))
    return end_request(s, thread, COMPLETED, end)


@part
def wait_last(p: Program, s: State, thread: int, pc: int) -> int:
    """Let time pass as the last thing that the request does."""
    duration = ticks(p, p.code[pc, A], drawn(p, s, s.threads[thread, T_REQUEST], pc))
    return end_request(s, thread, COMPLETED, s.header[NOW] + duration)


@part
def end_request(s: State, thread: int, status: int, tick: int) -> int:
    """End a request's own thread; the client, unless it has given up, is told when the event is over."""
    request = s.threads[thread, T_REQUEST]
    if not s.requests[request, R_ENDED]:
        s.header[OVER] = status
        s.header[OVER_REQUEST] = request
        s.header[OVER_TICK] = tick
    end_thread(s, thread)
    return NONE


@part
def send_rigid(p: Program, s: State, thread: int, pc: int) -> int:
    """Let a visit join a rigid station; nobody waits for it."""
    join_rigid(p, s, p.code[pc, A], ticks(p, p.code[pc, B], drawn(p, s, s.threads[thread, T_REQUEST], pc)))
    return pc + 1


@part
def visit_elastic(p: Program, s: State, thread: int, pc: int, waits: bool) -> int:
    """Join an elastic station; go on when served (if the thread `waits`), or dropped when it is known to be down."""
    station = p.code[pc, A]
    if s.stations[station, S_KNOWN]:
        if s.header[IN_WINDOW]:
            s.station_totals[station, REFUSED] += 1
        return p.code[pc, UNWIND] if waits else pc + 1
    demand = ticks(p, p.code[pc, B], drawn(p, s, s.threads[thread, T_REQUEST], pc))
    if waits:
        s.threads[thread, T_PC] = pc
    join_elastic(p, s, station, thread if waits else NONE, demand)
    return NONE if waits else pc + 1


@part
def wait(p: Program, s: State, thread: int, pc: int) -> int:
    """Let time pass."""
    request = s.threads[thread, T_REQUEST]
    duration = ticks(p, p.code[pc, A], drawn(p, s, request, pc))
    scale = p.code[pc, B]
    if scale >= 0 and s.scales[scale] != 1.0:
        duration = rounded(duration * s.scales[scale])
    s.threads[thread, T_PC] = pc
    push_step(s, s.header[NOW] + duration, DELAY, request, p.code[pc, STEP], thread)
    return NONE


@part
def count_pool(s: State, pool: int) -> None:
    """Let the sums of a pool reach this tick."""
    row = s.pools[pool]
    elapsed = s.header[NOW] - row[Q_SINCE]
    if elapsed == 0:
        return
    row[Q_SINCE] += elapsed
    busy = row[Q_SIZE] - row[Q_FREE]
    interval = s.header[INTERVAL]
    s.pool_series[interval, pool, QUEUED_TICKS] += row[Q_WAITING] * elapsed
    s.pool_series[interval, pool, BUSY_TICKS] += busy * elapsed
    if s.header[IN_WINDOW]:
        s.pool_busy[pool, busy] += elapsed


@part
def take(p: Program, s: State, thread: int, pc: int) -> int:
    """Take a unit of a pool, wait for one, or be dropped when too many wait."""
    pool = p.code[pc, A]
    row = s.pools[pool]
    now = s.header[NOW]
    if row[Q_FREE] > 0:
        count_pool(s, pool)
        row[Q_FREE] -= 1
        s.threads[thread, T_LOCALS + p.code[pc, B]] = now
        s.pool_totals[pool, TAKEN] += s.header[IN_WINDOW]
        return pc + 1
    if row[Q_WAITING] >= row[Q_LIMIT]:
        s.pool_totals[pool, POOL_DROPS] += s.header[IN_WINDOW]
        return p.code[pc, UNWIND]
    count_pool(s, pool)
    row[Q_WAITING] += 1
    s.threads[thread, T_PC] = pc
    s.threads[thread, T_SINCE] = now
    append(s, s.pools, pool, Q_HEAD, thread, 0, 0)
    return NONE


@part
def give(p: Program, s: State, thread: int, pc: int) -> int:
    """Give a unit back: to the first who waits, else to the pool."""
    pool = p.code[pc, A]
    row = s.pools[pool]
    now = s.header[NOW]
    since = s.threads[thread, T_LOCALS + p.code[pc, B]]
    if held_in_window(s, since):
        s.pool_totals[pool, POOL_HELD] += now - since
    count_pool(s, pool)
    if row[Q_WAITING] == 0:
        row[Q_FREE] += 1
        return pc + 1
    next_one = s.nodes[row[Q_HEAD], N_A]
    drop_head(s, s.pools, pool, Q_HEAD)
    row[Q_WAITING] -= 1
    taking = s.threads[next_one, T_PC]
    s.threads[next_one, T_LOCALS + p.code[taking, B]] = now
    if s.header[IN_WINDOW]:
        s.pool_totals[pool, TAKEN] += 1
        s.pool_totals[pool, POOL_WAITED] += now - s.threads[next_one, T_SINCE]
    push_step(s, now, RESUME, s.threads[next_one, T_REQUEST], p.code[taking, STEP], next_one)
    return pc + 1


@part
def held_in_window(s: State, since: int) -> bool:
    """Tell whether a tick lies in the window of the statistics."""
    return s.header[WINDOW_START] <= since < s.header[WINDOW_END]


@part
def choose(p: Program, s: State, thread: int, pc: int) -> int:
    """Go on with one of several, at random."""
    chosen = pick(p, p.code[pc, A], p.code[pc, B] - 1, drawn(p, s, s.threads[thread, T_REQUEST], pc))
    return p.table[p.code[pc, C] + chosen]


@part
def route(p: Program, s: State, thread: int, pc: int) -> int:
    """Go on with one of several targets, as the policy says."""
    first, request = p.code[pc, A], s.threads[thread, T_REQUEST]
    target = NONE
    sticky = s.routes[first + W_STICKY]
    talk = s.requests[request, R_TALK]
    remembers = sticky >= 0 and s.talks[talk, K_STICKY] >= 0
    if remembers:
        target = s.talks[talk, K_STICKY + 1 + sticky]
        if target >= 0 and avoided(s, first, target):
            target = NONE
    if target == NONE:
        target = _picked(p, s, first, request, pc)
    if remembers:
        s.talks[talk, K_STICKY + 1 + sticky] = target
    s.routes[first + W_TARGETS + W_TARGET * target + W_INSIDE] += 1
    s.threads[thread, T_LOCALS + p.code[pc, D]] = s.header[NOW]
    return p.table[p.code[pc, C] + target]


@part
def avoided(s: State, first: int, target: int) -> bool:
    """Tell whether a target is known to be down while another is not."""
    return s.routes[first + W_AVOID] > 0 and s.routes[first + W_TARGETS + W_TARGET * target + W_DOWN] > 0


@part
def _picked(p: Program, s: State, first: int, request: int, pc: int) -> int:
    policy, count = s.routes[first + W_POLICY], s.routes[first + W_COUNT]
    if policy == ROUND_ROBIN:
        target = s.routes[first + W_PASSED] % count
        s.routes[first + W_PASSED] += 1
    elif policy == RANDOM:
        target = np.int64(drawn(p, s, request, pc) * count)
    elif policy == TOKEN_AWARE:
        token = np.uint64(s.talks[s.requests[request, R_TALK], K_TOKEN])
        target = np.int64(uniform(token, np.uint64(0)) * count)
    else:
        return _least(s, first, count, W_INSIDE if policy == LEAST_LOADED else W_SMOOTHED)
    while avoided(s, first, target):
        target = target + 1 if target + 1 < count else 0
    return target


@part
def _least(s: State, first: int, count: int, column: int) -> int:
    least = NONE
    for target in range(count):
        place = first + W_TARGETS + W_TARGET * target + column
        if avoided(s, first, target):
            continue
        if least == NONE or s.routes[place] < s.routes[first + W_TARGETS + W_TARGET * least + column]:
            least = target
    return least


@part
def leave(p: Program, s: State, thread: int, pc: int) -> int:
    """Count a request out of its target."""
    place = p.code[pc, A] + W_TARGETS + W_TARGET * p.code[pc, B]
    s.routes[place + W_INSIDE] -= 1
    if not p.code[pc, D]:
        took = s.header[NOW] - s.threads[thread, T_LOCALS + p.code[pc, C]]
        before = s.routes[place + W_SMOOTHED]
        s.routes[place + W_SMOOTHED] = took if before < 0 else before + ((took - before) >> SMOOTHING_BITS)
    return pc + 1
