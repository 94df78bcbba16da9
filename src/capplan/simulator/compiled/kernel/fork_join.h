/* Fork-joins (record 0006): branches start in their order, each until it waits, and then the fork goes on itself. */
#pragma once
#include "countdown_latch.h"
#include "delay.h"

INLINE i64 start_branch(Kernel *k, i64 thread, i64 pc, i64 join, i64 levels, i64 copied) {
  hold_latches(k, thread_at(k, thread)->latch, levels);
  return new_branch(k, thread, pc, join, copied);
}
INLINE i64 open_join(Kernel *k, i64 needed, i64 branches) {
  i64 join = ALLOCATE(k, joins, join_at);
  ForkJoin *j = join_at(k, join);
  j->needed = (i32)needed;
  j->spare = (i32)(branches - needed);
  j->owner = NONE;
  j->users = (i32)(branches + 1);
  return join;
}
INLINE void release_join(Kernel *k, i64 join) {
  if (--join_at(k, join)->users == 0) FREE(k, joins, join_at, join);
}
/* A branch that begins with a delay of fixed length, and more than a signal after it, need not run to wait. */
INLINE int only_waits(const Kernel *k, i64 start) {
  const Instruction *i = instruction(k, start);
  return operation_of(i) == WAIT_FIXED && !i->c;
}
INLINE i64 fork_branches(Kernel *k, i64 thread, i64 pc) {
  const Instruction *fork = instruction(k, pc);
  i64 first = fork->a, end = first + 2 * fork->b, join = NONE;
  Thread *t = thread_at(k, thread);
  if (fork->c > 0) {
    join = open_join(k, fork->c, fork->b);
    t->wait = (i32)join;
  }
  t->pc = (i32)(pc + 1);
  make_ready(k, thread);
  for (i64 place = first; place < end; place += 2) {
    i64 start = *table(k, place);
    if (only_waits(k, start))
      wait_fixed(k, start_branch(k, thread, start, join, *table(k, place + 1), fork->d), start);
  }
  for (i64 place = end - 2; place >= first; place -= 2) {
    i64 start = *table(k, place);
    if (!only_waits(k, start)) make_ready(k, start_branch(k, thread, start, join, *table(k, place + 1), fork->d));
  }
  return NONE;
}
/* The branch of a member has draws of its own, and ranks after those of the members before. */
INLINE i64 start_member(Kernel *k, i64 thread, const Instruction *i, i64 join, i64 place) {
  const FanOut *f = (const FanOut *)table(k, i->b);
  i64 member = *local(k, thread, i->a + 1 + place);
  i64 branch = start_branch(k, thread, f->start, join, f->levels, i->b + (i64)(sizeof *f / sizeof(i64)));
  Thread *b = thread_at(k, branch);
  b->key = fold(b->key, member);
  b->rank += place * f->stride;
  *local(k, branch, f->member) = member;
  return branch;
}
/* Where a branch begins that first compares members. */
INLINE i64 after_comparisons(Kernel *k, i64 thread, i64 pc) {
  while (operation_of(instruction(k, pc)) == UNLESS_AMONG) pc = unless_among(k, thread, pc);
  return pc;
}
INLINE i64 fan_out(Kernel *k, i64 thread, i64 pc) {
  const Instruction *i = instruction(k, pc);
  (void)table(k, i->b + 4);
  const FanOut *f = (const FanOut *)table(k, i->b);
  i64 count = *local(k, thread, i->a), join = NONE;
  if (count > f->contacted) count = f->contacted;
  if (UNLIKELY(count < i->c)) return i->unwind;
  Thread *t = thread_at(k, thread);
  if (i->c > 0) {
    join = open_join(k, i->c, count);
    t->wait = (i32)join;
  }
  t->pc = (i32)(pc + 1);
  make_ready(k, thread);
  i64 last = NONE; /* of the branches that run, in their order, before the fork goes on */
  for (i64 place = 0; place < count; place++) {
    i64 branch = start_member(k, thread, i, join, place), start = after_comparisons(k, branch, f->start);
    if (only_waits(k, start)) {
      wait_fixed(k, branch, start);
      continue;
    }
    Thread *b = thread_at(k, branch);
    b->pc = (i32)start;
    b->next = (i32)thread;
    if (last == NONE) header(k)->ready = branch;
    else thread_at(k, last)->next = (i32)branch;
    last = branch;
  }
  return NONE;
}
INLINE i64 join_branches(Kernel *k, i64 thread, i64 pc) {
  i64 join = thread_at(k, thread)->wait;
  ForkJoin *j = join_at(k, join);
  if (j->needed > 0 && j->spare >= 0) {
    j->owner = (i32)thread;
    thread_at(k, thread)->pc = (i32)pc;
    return NONE;
  }
  int failed = j->needed > 0;
  release_join(k, join);
  return failed ? instruction(k, pc)->unwind : pc + 1;
}
/* A branch is done or dropped: go on when enough are done, or can no longer be. */
INLINE void report_to_join(Kernel *k, i64 join, int dropped) {
  ForkJoin *j = join_at(k, join);
  int over = dropped ? --j->spare == -1 && j->needed > 0 : --j->needed == 0;
  if (over && j->owner >= 0) {
    schedule_resume(k, j->owner, dropped);
    j->owner = NONE;
    release_join(k, join);
  }
  release_join(k, join);
}
INLINE i64 end_branch(Kernel *k, i64 thread, i64 pc, int dropped) {
  const Thread *t = thread_at(k, thread);
  if (t->join >= 0) report_to_join(k, t->join, dropped);
  leave_latches(k, t->latch, instruction(k, pc)->a);
  end_thread(k, thread);
  return NONE;
}
