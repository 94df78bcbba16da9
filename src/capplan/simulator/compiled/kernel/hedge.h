/* Hedges (record 0006, Hedge): a fork-join of which one branch is needed. In the table stand start and latches of the
   first branch, those of the spare, and the ticks after which the spare starts. */
#pragma once
#include "fork_join.h"

RARE i64 hedge(Kernel *k, i64 thread, i64 pc) {
  i64 join = open_join(k, 1, 2), place = instruction(k, pc)->a;
  Thread *t = thread_at(k, thread);
  t->wait = (i32)join;
  t->pc = (i32)(pc + 1);
  make_ready(k, thread);
  make_ready(k, start_branch(k, thread, *table(k, place), join, *table(k, place + 1), instruction(k, pc)->b));
  hold_latches(k, t->latch, *table(k, place + 3));
  return NONE;
}
/* The first branch has had to wait, or has ended. */
RARE i64 hedge_spare(Kernel *k, i64 thread, i64 pc) {
  Thread *t = thread_at(k, thread);
  i64 join = t->wait, place = instruction(k, pc)->a, after = *table(k, place + 4);
  if (join_at(k, join)->needed <= 0) {
    leave_latches(k, t->latch, *table(k, place + 3));
    release_join(k, join);
    return pc + 1;
  }
  i64 start = *table(k, place + 2), spare = new_branch(k, thread, start, join, instruction(k, pc)->b);
  if (after == 0) {
    t->pc = (i32)(pc + 1);
    make_ready(k, thread);
    make_ready(k, spare);
    return NONE;
  }
  thread_at(k, spare)->pc = (i32)(start - 2); /* one before SPARE_DUE: a thread goes on at the next instruction */
  schedule(k, header(k)->now + after, rank_of(DELAY, t, instruction(k, pc)), spare);
  return pc + 1;
}
RARE i64 spare_due(Kernel *k, i64 thread, i64 pc) {
  const Thread *t = thread_at(k, thread);
  if (join_at(k, t->join)->needed > 0) return pc + 1;
  release_join(k, t->join);
  leave_latches(k, t->latch, instruction(k, pc)->a);
  end_thread(k, thread);
  return NONE;
}
