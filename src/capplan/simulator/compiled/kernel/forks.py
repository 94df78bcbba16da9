"""Instructions that start branches or wait for them: forks, latches, hedges, batches."""

from __future__ import annotations

from capplan.simulator.compiled.kernel.agenda import push_fixed, push_step
from capplan.simulator.compiled.kernel.compiling import part
from capplan.simulator.compiled.kernel.layout import (
    BATCH_LISTS,
    DELAY,
    KIND_SHIFT,
    NONE,
    NOW,
    RESUME,
    WAIT_FIXED,
    Program,
    State,
)
from capplan.simulator.compiled.kernel.records import (
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
    s.threads[thread].dropped = dropped
    step = p.code[s.threads[thread].pc].step
    push_step(s, s.header[NOW], RESUME, s.threads[thread].request, step, thread)


@part
def watch(s: State, latch: int, levels: int) -> None:
    """Count a branch that may signal the latches of these levels (bits, from the innermost outwards)."""
    while levels:
        s.latches[latch].working += levels & 1
        s.latches[latch].users += 1  # all on the way out: the branch may need them to find the outer ones
        levels >>= 1
        latch = s.latches[latch].outer


@part
def unwatch(p: Program, s: State, latch: int, levels: int) -> None:
    """Count a branch that has ended; with the last one gone, a latch that is not full never will be."""
    while levels:
        outer = s.latches[latch].outer
        if levels & 1:
            s.latches[latch].working -= 1
            if s.latches[latch].working == 0 and s.latches[latch].needed > 0 and s.latches[latch].owner >= 0:
                resume_waiting(p, s, s.latches[latch].owner, 1)
                s.latches[latch].owner = NONE
        release_latch(s, latch)
        levels >>= 1
        latch = outer


@part
def release_latch(s: State, latch: int) -> None:
    """Count one user of a latch less."""
    s.latches[latch].users -= 1
    if s.latches[latch].users == 0:
        free_latch(s, latch)


@part
def start_branch(s: State, thread: int, pc: int, join: int, levels: int) -> int:
    """Return a new thread for a branch of a thread's request."""
    latch = s.threads[thread].latch
    watch(s, latch, levels)
    return new_thread(s, s.threads[thread].request, pc, join, latch)


@part
def open_join(s: State, needed: int, branches: int) -> int:
    """Return the join of a fork: used by its branches and by the thread that waits."""
    join = new_join(s)
    s.joins[join].needed = needed
    s.joins[join].spare = branches - needed
    s.joins[join].owner = NONE
    s.joins[join].users = branches + 1
    return join


@part
def release_join(s: State, join: int) -> None:
    """Count one user of a join less."""
    s.joins[join].users -= 1
    if s.joins[join].users == 0:
        free_join(s, join)


@part
def fork(p: Program, s: State, thread: int, pc: int) -> int:
    """Start the branches; the thread goes on after them, within the same event."""
    first, count, needed = p.code[pc].a, p.code[pc].b, p.code[pc].c
    join = NONE
    if needed > 0:
        join = open_join(s, needed, count)
        s.threads[thread].wait = join
    s.threads[thread].pc = pc + 1
    make_ready(s, thread)
    for place in range(first, first + 2 * count, 2):  # waits of one length in order, so that their list takes them
        start = p.table[place]
        if _only_waits(p, start):
            until = s.header[NOW] + p.table[p.code[start].a]
            rank = DELAY << KIND_SHIFT | s.requests[s.threads[thread].request].rank | p.code[start].step
            push_fixed(s, until, rank, start_branch(s, thread, start, join, p.table[place + 1]), p.code[start].b)
    for place in range(first + 2 * count - 2, first - 2, -2):
        start = p.table[place]
        if not _only_waits(p, start):
            make_ready(s, start_branch(s, thread, start, join, p.table[place + 1]))
    return NONE


@part
def _only_waits(p: Program, start: int) -> bool:
    """Tell whether all that a branch does at first is to wait a fixed time."""
    return p.code[start].op == WAIT_FIXED and not p.code[start].c


@part
def join_branches(p: Program, s: State, thread: int, pc: int) -> int:
    """Go on when enough branches are done; be dropped when too few can be."""
    join = s.threads[thread].wait
    if s.joins[join].needed > 0 and s.joins[join].spare >= 0:
        s.joins[join].owner = thread
        s.threads[thread].pc = pc
        return NONE
    failed = s.joins[join].needed > 0
    release_join(s, join)
    return p.code[pc].unwind if failed else pc + 1


@part
def end_branch(p: Program, s: State, thread: int, pc: int, dropped: bool) -> int:
    """End a branch: tell the join and the latches that count it."""
    join, latch = s.threads[thread].join, s.threads[thread].latch
    if join >= 0:
        _tell_join(p, s, join, dropped)
    unwatch(p, s, latch, p.code[pc].a)
    end_thread(s, thread)
    return NONE


@part
def end_thread(s: State, thread: int) -> None:
    """Take a thread out of use, and its request with the last one."""
    request = s.threads[thread].request
    free_thread(s, thread)
    s.requests[request].threads -= 1
    if s.requests[request].threads == 0:
        release_talk(s, s.requests[request].talk)
        free_request(s, request)


@part
def release_talk(s: State, talk: int) -> None:
    """Count one user of a session's record less."""
    s.talks[talk].users -= 1
    if s.talks[talk].users == 0:
        free_talk(s, talk)


@part
def _tell_join(p: Program, s: State, join: int, dropped: bool) -> None:
    if dropped:
        s.joins[join].spare -= 1
        over = s.joins[join].spare == -1 and s.joins[join].needed > 0
    else:
        s.joins[join].needed -= 1
        over = s.joins[join].needed == 0
    owner = s.joins[join].owner
    if over and owner >= 0:
        resume_waiting(p, s, owner, 1 if dropped else 0)
        s.joins[join].owner = NONE
        release_join(s, join)
    release_join(s, join)


@part
def open_latch(p: Program, s: State, thread: int, pc: int) -> int:
    """Open a latch around what follows."""
    latch = new_latch(s)
    s.latches[latch].outer = s.threads[thread].latch
    s.latches[latch].needed = p.code[pc].c
    s.latches[latch].working = 0
    s.latches[latch].owner = NONE
    s.latches[latch].users = 1
    for group in range(p.code[pc].b):
        s.missing[latch, group] = p.table[p.code[pc].a + group]
    s.threads[thread].latch = latch
    return pc + 1


@part
def signal(p: Program, s: State, thread: int, pc: int) -> int:
    """Count one for a group of a latch around; late signals change nothing."""
    latch = s.threads[thread].latch
    for _ in range(p.code[pc].a):
        latch = s.latches[latch].outer
    group = p.code[pc].b
    s.missing[latch, group] -= 1
    if s.missing[latch, group] == 0:
        s.latches[latch].needed -= 1
        if s.latches[latch].needed == 0 and s.latches[latch].owner >= 0:
            resume_waiting(p, s, s.latches[latch].owner, 0)
            s.latches[latch].owner = NONE
    return pc + 1


@part
def is_open(s: State, latch: int, outwards: int) -> bool:
    """Tell whether a latch around needs no more signals."""
    for _ in range(outwards):
        latch = s.latches[latch].outer
    return s.latches[latch].needed <= 0


@part
def await_latch(p: Program, s: State, thread: int, pc: int) -> int:
    """Go on when the latch is full; be dropped when it can no longer be."""
    latch = s.threads[thread].latch
    if s.latches[latch].needed <= 0:
        return pc + 1
    if s.latches[latch].working == 0:
        return p.code[pc].unwind
    s.latches[latch].owner = thread
    s.threads[thread].pc = pc
    return NONE


@part
def close_latch(s: State, thread: int, pc: int) -> int:
    """Leave the latch."""
    latch = s.threads[thread].latch
    s.threads[thread].latch = s.latches[latch].outer
    release_latch(s, latch)
    return pc + 1


@part
def hedge(p: Program, s: State, thread: int, pc: int) -> int:
    """Start the first step as a branch; its spare counts for the latches from now on."""
    join = open_join(s, 1, 2)
    s.threads[thread].wait = join
    s.threads[thread].pc = pc + 1
    make_ready(s, thread)
    place = p.code[pc].a
    make_ready(s, start_branch(s, thread, p.table[place], join, p.table[place + 1]))
    watch(s, s.threads[thread].latch, p.table[place + 3])
    return NONE


@part
def hedge_spare(p: Program, s: State, thread: int, pc: int) -> int:
    """Start the spare, or let it wait for its time, unless the first step is done already."""
    join, place = s.threads[thread].wait, p.code[pc].a
    if s.joins[join].needed <= 0:
        unwatch(p, s, s.threads[thread].latch, p.table[place + 3])
        release_join(s, join)
        return pc + 1
    request, latch = s.threads[thread].request, s.threads[thread].latch
    spare = new_thread(s, request, p.table[place + 2], join, latch)
    after = p.table[place + 4]
    if after == 0:
        s.threads[thread].pc = pc + 1
        make_ready(s, thread)
        make_ready(s, spare)
        return NONE
    s.threads[spare].pc -= 2  # one before `SPARE_DUE`: resuming goes to the next
    push_step(s, s.header[NOW] + after, DELAY, request, p.code[pc].step, spare)
    return pc + 1


@part
def spare_due(p: Program, s: State, thread: int, pc: int) -> int:
    """Start the spare if its time has come and it is still needed."""
    join = s.threads[thread].join
    if s.joins[join].needed > 0:
        return pc + 1
    release_join(s, join)
    unwatch(p, s, s.threads[thread].latch, p.code[pc].a)
    end_thread(s, thread)
    return NONE


@part
def gather(p: Program, s: State, thread: int, pc: int) -> int:
    """Wait for the batch's end; open one if there is none, start it if it is full."""
    place, start = p.code[pc].a, p.code[pc].d
    batch = s.gathering[place]
    if batch == NONE:
        batch = new_batch(s)
        s.gathering[place] = batch
        s.batches[batch].count = 0
        s.lists[s.header[BATCH_LISTS] + batch].head = NONE
        s.batches[batch].started = 0
        s.batches[batch].users = 1
        if p.code[pc].b > 1:
            _set_batch_timer(p, s, thread, pc, batch)
    s.threads[thread].pc = pc
    append(s, s.header[BATCH_LISTS] + batch, thread, 0, 0)
    s.batches[batch].count += 1
    if s.batches[batch].count < p.code[pc].b:
        return NONE
    s.batches[batch].started = 1
    s.gathering[place] = NONE
    first = s.nodes[s.lists[s.header[BATCH_LISTS] + batch].head].a
    runner = new_thread(s, s.threads[first].request, start + 1, NONE, NONE)
    s.threads[runner].batch = batch
    make_ready(s, runner)
    return NONE


@part
def _set_batch_timer(p: Program, s: State, thread: int, pc: int, batch: int) -> None:
    request = s.threads[thread].request
    timer = new_thread(s, request, p.code[pc].d - 1, NONE, NONE)
    s.threads[timer].batch = batch
    s.batches[batch].users = 2
    push_step(s, s.header[NOW] + p.table[p.code[pc].c], DELAY, request, p.code[pc].step, timer)


@part
def batch_due(p: Program, s: State, thread: int, pc: int) -> int:
    """Start the batch if nobody has filled it by now."""
    batch = s.threads[thread].batch
    _release_batch(s, batch)
    if s.batches[batch].started:
        end_thread(s, thread)
        return NONE
    s.batches[batch].started = 1
    s.gathering[p.code[pc].a] = NONE
    return pc + 1


@part
def batch_done(p: Program, s: State, thread: int, pc: int) -> int:
    """Let all members go on, or be dropped."""
    batch = s.threads[thread].batch
    members = s.header[BATCH_LISTS] + batch
    while s.lists[members].head >= 0:
        resume_waiting(p, s, s.nodes[s.lists[members].head].a, p.code[pc].d)
        drop_head(s, members)
    _release_batch(s, batch)
    end_thread(s, thread)
    return NONE


@part
def _release_batch(s: State, batch: int) -> None:
    s.batches[batch].users -= 1
    if s.batches[batch].users == 0:
        free_batch(s, batch)
