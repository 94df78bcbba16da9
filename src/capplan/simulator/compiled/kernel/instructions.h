/* Carries out instructions. An instruction returns the place where its thread goes on, or NONE when the thread waits or
   has ended. A new instruction needs a number in `layout.h` and in `layout.py`, and a line here. */
#pragma once
#include "batch.h"
#include "delay.h"
#include "fork_join.h"
#include "hedge.h"
#include "lanes.h"
#include "members.h"
#include "pool.h"
#include "route.h"
#include "visit.h"

INLINE i64 carry_out(Kernel *k, i64 thread, i64 pc) {
  switch ((enum Operation)operation_of(instruction(k, pc))) {
    case VISIT_PROCESSOR_SHARING: return visit_processor_sharing(k, thread, pc, 1);
    case SEND_PROCESSOR_SHARING: return visit_processor_sharing(k, thread, pc, 0);
    case VISIT_FIXED_RATE: return visit_fixed_rate(k, thread, pc);
    case SEND_FIXED_RATE: return send_fixed_rate(k, thread, pc);
    case SEND_KEEPING: return send_keeping(k, thread, pc);
    case VISIT_LAST: return do_last_step(k, thread, pc);
    case WAIT: return wait(k, thread, pc);
    case WAIT_FIXED: return wait_fixed(k, thread, pc);
    case WAIT_LAST: return do_last_step(k, thread, pc);
    case ACQUIRE: return acquire(k, thread, pc);
    case RELEASE: return release(k, thread, pc);
    case FORK: return fork_branches(k, thread, pc);
    case FAN_OUT: return fan_out(k, thread, pc);
    case JOIN: return join_branches(k, thread, pc);
    case LATCH: return open_latch(k, thread, pc);
    case SIGNAL: return signal_latch(k, thread, pc);
    case AWAIT: return await_latch(k, thread, pc);
    case UNLATCH: return close_latch(k, thread, pc);
    case CHOICE: return choose(k, thread, pc);
    case ROUTE: return take_route(k, thread, pc);
    case LEAVE: return leave_target(k, thread, pc);
    case PICK: return pick(k, thread, pc);
    case LEAVE_MEMBER: return leave_member(k, thread, pc);
    case REPLICAS: return find_replicas(k, thread, pc);
    case UNLESS_AMONG: return unless_among(k, thread, pc);
    case JUMP: return instruction(k, pc)->a;
    case HEDGE: return hedge(k, thread, pc);
    case HEDGE_SPARE: return hedge_spare(k, thread, pc);
    case SPARE_DUE: return spare_due(k, thread, pc);
    case BATCH: return gather(k, thread, pc);
    case BATCH_DUE: return batch_due(k, thread, pc);
    case BATCH_DONE: return batch_done(k, thread, pc);
    case END: return end_branch(k, thread, pc, 0);
    case FAIL: return end_branch(k, thread, pc, 1);
    case ASSIGN: return assign_lane(k, thread, pc);
    case DONE: return end_request(k, thread, COMPLETED, header(k)->now);
    case LOST: return end_request(k, thread, DROPPED, header(k)->now);
  }
  __builtin_unreachable();
}
/* Run a thread until it waits, then the threads that have become ready within the event. */
static void run_threads(Kernel *k, i64 thread, i64 pc) {
  for (;;) {
    while (pc >= 0) pc = carry_out(k, thread, pc);
    thread = header(k)->ready;
    if (thread < 0) return;
    header(k)->ready = thread_at(k, thread)->next;
    pc = thread_at(k, thread)->pc;
  }
}
/* A thread that has waited goes on behind its instruction, or where a drop is cleaned up. */
INLINE void resume(Kernel *k, i64 thread) {
  Thread *t = thread_at(k, thread);
  i64 pc = t->pc + 1;
  if (UNLIKELY(t->dropped)) {
    t->dropped = 0;
    pc = instruction(k, t->pc)->unwind;
  }
  run_threads(k, thread, pc);
}
