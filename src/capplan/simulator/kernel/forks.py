"""Instructions that start branches or wait for them: forks, latches, hedges, batches."""

from __future__ import annotations

from capplan.simulator.kernel.agenda import push_step
from capplan.simulator.kernel.compiling import part
from capplan.simulator.kernel.layout import (
    B_COUNT,
    B_HEAD,
    B_STARTED,
    B_USERS,
    DELAY,
    J_NEEDED,
    J_OWNER,
    J_SPARE,
    J_USERS,
    K_USERS,
    L_MISSING,
    L_NEEDED,
    L_OUTER,
    L_OWNER,
    L_USERS,
    L_WORKING,
    N_A,
    NONE,
    NOW,
    R_TALK,
    R_THREADS,
    RESUME,
    STEP,
    T_BATCH,
    T_DROPPED,
    T_JOIN,
    T_LATCH,
    T_PC,
    T_REQUEST,
    T_WAIT,
    UNWIND,
    A,
    B,
    C,
    D,
    Program,
    State,
)
from capplan.simulator.kernel.records import (
    append,
    drop_head,
    free_batch,
    free_join,
    free_latch,
    free_request,
    free_talk,
    free_thread,
    make_ready,
    new_batch,
    new_join,
    new_latch,
    new_thread,
)


@part
def resume_waiting(p: Program, s: State, thread: int, dropped: int) -> None:
    """Let a thread go on, or find itself dropped, at a RESUME event at this tick."""
    s.threads[thread, T_DROPPED] = dropped
    step = p.code[s.threads[thread, T_PC], STEP]
    push_step(s, s.header[NOW], RESUME, s.threads[thread, T_REQUEST], step, thread)


@part
def watch(s: State, latch: int, levels: int) -> None:
    """Count a branch that may signal the latches of these levels (bits, from the innermost outwards)."""
    while levels:
        s.latches[latch, L_WORKING] += levels & 1
        s.latches[latch, L_USERS] += 1  # all on the way out: the branch may need them to find the outer ones
        levels >>= 1
        latch = s.latches[latch, L_OUTER]


@part
def unwatch(p: Program, s: State, latch: int, levels: int) -> None:
    """Count a branch that has ended; with the last one gone, a latch that is not full never will be."""
    while levels:
        outer = s.latches[latch, L_OUTER]
        if levels & 1:
            s.latches[latch, L_WORKING] -= 1
            if s.latches[latch, L_WORKING] == 0 and s.latches[latch, L_NEEDED] > 0 and s.latches[latch, L_OWNER] >= 0:
                resume_waiting(p, s, s.latches[latch, L_OWNER], 1)
                s.latches[latch, L_OWNER] = NONE
        release_latch(s, latch)
        levels >>= 1
        latch = outer


@part
def release_latch(s: State, latch: int) -> None:
    """Count one user of a latch less."""
    s.latches[latch, L_USERS] -= 1
    if s.latches[latch, L_USERS] == 0:
        free_latch(s, latch)


@part
def start_branch(s: State, thread: int, pc: int, join: int, levels: int) -> int:
    """Return a new thread for a branch of a thread's request."""
    latch = s.threads[thread, T_LATCH]
    watch(s, latch, levels)
    return new_thread(s, s.threads[thread, T_REQUEST], pc, join, latch)


@part
def open_join(s: State, needed: int, branches: int) -> int:
    """Return the join of a fork: used by its branches and by the thread that waits."""
    join = new_join(s)
    s.joins[join, J_NEEDED] = needed
    s.joins[join, J_SPARE] = branches - needed
    s.joins[join, J_OWNER] = NONE
    s.joins[join, J_USERS] = branches + 1
    return join


@part
def release_join(s: State, join: int) -> None:
    """Count one user of a join less."""
    s.joins[join, J_USERS] -= 1
    if s.joins[join, J_USERS] == 0:
        free_join(s, join)


@part
def fork(p: Program, s: State, thread: int, pc: int) -> int:
    """Start the branches; the thread goes on after them, within the same event."""
    first, count, needed = p.code[pc, A], p.code[pc, B], p.code[pc, C]
    join = NONE
    if needed > 0:
        join = open_join(s, needed, count)
        s.threads[thread, T_WAIT] = join
    s.threads[thread, T_PC] = pc + 1
    make_ready(s, thread)
    for branch in range(count - 1, -1, -1):
        place = first + 2 * branch
        make_ready(s, start_branch(s, thread, p.table[place], join, p.table[place + 1]))
    return NONE


@part
def join_branches(p: Program, s: State, thread: int, pc: int) -> int:
    """Go on when enough branches are done; be dropped when too few can be."""
    join = s.threads[thread, T_WAIT]
    if s.joins[join, J_NEEDED] > 0 and s.joins[join, J_SPARE] >= 0:
        s.joins[join, J_OWNER] = thread
        s.threads[thread, T_PC] = pc
        return NONE
    failed = s.joins[join, J_NEEDED] > 0
    release_join(s, join)
    return p.code[pc, UNWIND] if failed else pc + 1


@part
def end_branch(p: Program, s: State, thread: int, pc: int, dropped: bool) -> int:
    """End a branch: tell the join and the latches that count it."""
    join, latch = s.threads[thread, T_JOIN], s.threads[thread, T_LATCH]
    if join >= 0:
        _tell_join(p, s, join, dropped)
    unwatch(p, s, latch, p.code[pc, A])
    end_thread(s, thread)
    return NONE


@part
def end_thread(s: State, thread: int) -> None:
    """Take a thread out of use, and its request with the last one."""
    request = s.threads[thread, T_REQUEST]
    free_thread(s, thread)
    s.requests[request, R_THREADS] -= 1
    if s.requests[request, R_THREADS] == 0:
        release_talk(s, s.requests[request, R_TALK])
        free_request(s, request)


@part
def release_talk(s: State, talk: int) -> None:
    """Count one user of a session's record less."""
    s.talks[talk, K_USERS] -= 1
    if s.talks[talk, K_USERS] == 0:
        free_talk(s, talk)


@part
def _tell_join(p: Program, s: State, join: int, dropped: bool) -> None:
    if dropped:
        s.joins[join, J_SPARE] -= 1
        over = s.joins[join, J_SPARE] == -1 and s.joins[join, J_NEEDED] > 0
    else:
        s.joins[join, J_NEEDED] -= 1
        over = s.joins[join, J_NEEDED] == 0
    owner = s.joins[join, J_OWNER]
    if over and owner >= 0:
        resume_waiting(p, s, owner, 1 if dropped else 0)
        s.joins[join, J_OWNER] = NONE
        release_join(s, join)
    release_join(s, join)


@part
def open_latch(p: Program, s: State, thread: int, pc: int) -> int:
    """Open a latch around what follows."""
    latch = new_latch(s)
    s.latches[latch, L_OUTER] = s.threads[thread, T_LATCH]
    s.latches[latch, L_NEEDED] = p.code[pc, C]
    s.latches[latch, L_WORKING] = 0
    s.latches[latch, L_OWNER] = NONE
    s.latches[latch, L_USERS] = 1
    for group in range(p.code[pc, B]):
        s.latches[latch, L_MISSING + group] = p.table[p.code[pc, A] + group]
    s.threads[thread, T_LATCH] = latch
    return pc + 1


@part
def signal(p: Program, s: State, thread: int, pc: int) -> int:
    """Count one for a group of a latch around; late signals change nothing."""
    latch = s.threads[thread, T_LATCH]
    for _ in range(p.code[pc, A]):
        latch = s.latches[latch, L_OUTER]
    group = L_MISSING + p.code[pc, B]
    s.latches[latch, group] -= 1
    if s.latches[latch, group] == 0:
        s.latches[latch, L_NEEDED] -= 1
        if s.latches[latch, L_NEEDED] == 0 and s.latches[latch, L_OWNER] >= 0:
            resume_waiting(p, s, s.latches[latch, L_OWNER], 0)
            s.latches[latch, L_OWNER] = NONE
    return pc + 1


@part
def await_latch(p: Program, s: State, thread: int, pc: int) -> int:
    """Go on when the latch is full; be dropped when it can no longer be."""
    latch = s.threads[thread, T_LATCH]
    if s.latches[latch, L_NEEDED] <= 0:
        return pc + 1
    if s.latches[latch, L_WORKING] == 0:
        return p.code[pc, UNWIND]
    s.latches[latch, L_OWNER] = thread
    s.threads[thread, T_PC] = pc
    return NONE


@part
def close_latch(s: State, thread: int, pc: int) -> int:
    """Leave the latch."""
    latch = s.threads[thread, T_LATCH]
    s.threads[thread, T_LATCH] = s.latches[latch, L_OUTER]
    release_latch(s, latch)
    return pc + 1


@part
def hedge(p: Program, s: State, thread: int, pc: int) -> int:
    """Start the first step as a branch; its spare counts for the latches from now on."""
    join = open_join(s, 1, 2)
    s.threads[thread, T_WAIT] = join
    s.threads[thread, T_PC] = pc + 1
    make_ready(s, thread)
    place = p.code[pc, A]
    make_ready(s, start_branch(s, thread, p.table[place], join, p.table[place + 1]))
    watch(s, s.threads[thread, T_LATCH], p.table[place + 3])
    return NONE


@part
def hedge_spare(p: Program, s: State, thread: int, pc: int) -> int:
    """Start the spare, or let it wait for its time, unless the first step is done already."""
    join, place = s.threads[thread, T_WAIT], p.code[pc, A]
    if s.joins[join, J_NEEDED] <= 0:
        unwatch(p, s, s.threads[thread, T_LATCH], p.table[place + 3])
        release_join(s, join)
        return pc + 1
    request, latch = s.threads[thread, T_REQUEST], s.threads[thread, T_LATCH]
    spare = new_thread(s, request, p.table[place + 2], join, latch)
    if p.code[pc, C] == 0:
        s.threads[thread, T_PC] = pc + 1
        make_ready(s, thread)
        make_ready(s, spare)
        return NONE
    s.threads[spare, T_PC] -= 2  # one before `SPARE_DUE`: resuming goes to the next
    push_step(s, s.header[NOW] + p.code[pc, C], DELAY, request, p.code[pc, STEP], spare)
    return pc + 1


@part
def spare_due(p: Program, s: State, thread: int, pc: int) -> int:
    """Start the spare if its time has come and it is still needed."""
    join = s.threads[thread, T_JOIN]
    if s.joins[join, J_NEEDED] > 0:
        return pc + 1
    release_join(s, join)
    unwatch(p, s, s.threads[thread, T_LATCH], p.code[pc, A])
    end_thread(s, thread)
    return NONE


@part
def gather(p: Program, s: State, thread: int, pc: int) -> int:
    """Wait for the batch's end; open one if there is none, start it if it is full."""
    place, start = p.code[pc, A], p.code[pc, D]
    batch = s.gathering[place]
    if batch == NONE:
        batch = new_batch(s)
        s.gathering[place] = batch
        s.batches[batch, B_COUNT] = 0
        s.batches[batch, B_HEAD] = NONE
        s.batches[batch, B_STARTED] = 0
        s.batches[batch, B_USERS] = 1
        if p.code[pc, B] > 1:
            _set_batch_timer(p, s, thread, pc, batch)
    s.threads[thread, T_PC] = pc
    append(s, s.batches, batch, B_HEAD, thread, 0, 0)
    s.batches[batch, B_COUNT] += 1
    if s.batches[batch, B_COUNT] < p.code[pc, B]:
        return NONE
    s.batches[batch, B_STARTED] = 1
    s.gathering[place] = NONE
    first = s.nodes[s.batches[batch, B_HEAD], N_A]
    runner = new_thread(s, s.threads[first, T_REQUEST], start + 1, NONE, NONE)
    s.threads[runner, T_BATCH] = batch
    make_ready(s, runner)
    return NONE


@part
def _set_batch_timer(p: Program, s: State, thread: int, pc: int, batch: int) -> None:
    request = s.threads[thread, T_REQUEST]
    timer = new_thread(s, request, p.code[pc, D] - 1, NONE, NONE)
    s.threads[timer, T_BATCH] = batch
    s.batches[batch, B_USERS] = 2
    push_step(s, s.header[NOW] + p.code[pc, C], DELAY, request, p.code[pc, STEP], timer)


@part
def batch_due(p: Program, s: State, thread: int, pc: int) -> int:
    """Start the batch if nobody has filled it by now."""
    batch = s.threads[thread, T_BATCH]
    _release_batch(s, batch)
    if s.batches[batch, B_STARTED]:
        end_thread(s, thread)
        return NONE
    s.batches[batch, B_STARTED] = 1
    s.gathering[p.code[pc, A]] = NONE
    return pc + 1


@part
def batch_done(p: Program, s: State, thread: int, pc: int) -> int:
    """Let all members go on, or be dropped."""
    batch = s.threads[thread, T_BATCH]
    while s.batches[batch, B_HEAD] >= 0:
        resume_waiting(p, s, s.nodes[s.batches[batch, B_HEAD], N_A], p.code[pc, D])
        drop_head(s, s.batches, batch, B_HEAD)
    _release_batch(s, batch)
    end_thread(s, thread)
    return NONE


@part
def _release_batch(s: State, batch: int) -> None:
    s.batches[batch, B_USERS] -= 1
    if s.batches[batch, B_USERS] == 0:
        free_batch(s, batch)
