"""Runs a thread, and those that it makes ready, until all of them wait or have ended."""

from __future__ import annotations

from capplan.simulator.compiled.kernel import layout as at
from capplan.simulator.compiled.kernel.compiling import part
from capplan.simulator.compiled.kernel.forks import (
    await_latch,
    batch_done,
    batch_due,
    close_latch,
    end_branch,
    fork,
    gather,
    hedge,
    hedge_spare,
    join_branches,
    open_latch,
    signal,
    spare_due,
)
from capplan.simulator.compiled.kernel.layout import Program, State
from capplan.simulator.compiled.kernel.steps import (
    choose,
    end_request,
    give,
    leave,
    route,
    send_rigid,
    take,
    visit_elastic,
    visit_last,
    visit_rigid,
    wait,
    wait_last,
)


@part
def run(p: Program, s: State, thread: int, pc: int) -> None:
    """Run `thread` from `pc` on, then the threads made ready meanwhile, the latest first."""
    while True:
        while pc >= 0:
            pc = _step(p, s, thread, pc)
        thread = s.header[at.READY]
        if thread < 0:
            return
        s.header[at.READY] = s.threads[thread].next
        pc = s.threads[thread].pc


@part
def _step(p: Program, s: State, thread: int, pc: int) -> int:  # noqa: C901, PLR0912 - one branch an instruction
    op = p.code[pc].op
    if op == at.VISIT_ELASTIC:
        return visit_elastic(p, s, thread, pc, True)
    if op == at.SEND_ELASTIC:
        return visit_elastic(p, s, thread, pc, False)
    if op == at.VISIT_RIGID:
        return visit_rigid(p, s, thread, pc)
    if op == at.SEND_RIGID:
        return send_rigid(p, s, thread, pc)
    if op == at.VISIT_LAST:
        return visit_last(p, s, thread, pc)
    if op in (at.WAIT, at.WAIT_FIXED):
        return wait(p, s, thread, pc)
    if op == at.WAIT_LAST:
        return wait_last(p, s, thread, pc)
    if op == at.TAKE:
        return take(p, s, thread, pc)
    if op == at.GIVE:
        return give(p, s, thread, pc)
    if op == at.FORK:
        return fork(p, s, thread, pc)
    if op == at.JOIN:
        return join_branches(p, s, thread, pc)
    if op == at.LATCH:
        return open_latch(p, s, thread, pc)
    if op == at.SIGNAL:
        return signal(p, s, thread, pc)
    if op == at.AWAIT:
        return await_latch(p, s, thread, pc)
    if op == at.UNLATCH:
        return close_latch(s, thread, pc)
    if op == at.CHOICE:
        return choose(p, s, thread, pc)
    if op == at.ROUTE:
        return route(p, s, thread, pc)
    if op == at.LEAVE:
        return leave(p, s, thread, pc)
    if op == at.JUMP:
        return p.code[pc].a
    if op == at.HEDGE:
        return hedge(p, s, thread, pc)
    if op == at.HEDGE_SPARE:
        return hedge_spare(p, s, thread, pc)
    if op == at.SPARE_DUE:
        return spare_due(p, s, thread, pc)
    if op == at.BATCH:
        return gather(p, s, thread, pc)
    if op == at.BATCH_DUE:
        return batch_due(p, s, thread, pc)
    if op == at.BATCH_DONE:
        return batch_done(p, s, thread, pc)
    if op == at.END:
        return end_branch(p, s, thread, pc, False)
    if op == at.FAIL:
        return end_branch(p, s, thread, pc, True)
    if op == at.DONE:
        return end_request(s, thread, at.COMPLETED, s.header[at.NOW])
    return end_request(s, thread, at.DROPPED, s.header[at.NOW])
