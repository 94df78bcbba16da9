/* Batches (record 0006, Batch). */
#pragma once
#include "future_event_list.h"

INLINE i64 member_list(const Kernel *k, i64 batch) { return header(k)->batch_lists + batch; }
INLINE void release_batch(Kernel *k, i64 batch) {
  if (--batch_at(k, batch)->users == 0) FREE(k, batches, batch_at, batch);
}
/* The thread that runs the batch's step, as one of its first member's attempt. */
static i64 new_runner(Kernel *k, i64 batch, i64 member, i64 pc) {
  const Thread *t = thread_at(k, member);
  i64 runner = new_thread(k, t->attempt, t->key, t->rank, pc, NONE, NONE);
  thread_at(k, runner)->batch = (i32)batch;
  return runner;
}
static i64 open_batch(Kernel *k, i64 thread, const Instruction *i) {
  i64 batch = ALLOCATE(k, batches, batch_at);
  *gathering_batch(k, i->a) = batch;
  list_at(k, member_list(k, batch))->head = NONE;
  Batch *b = batch_at(k, batch);
  b->count = b->started = 0;
  b->users = 1;
  if (i->b == 1) return batch;
  b->users = 2; /* of a step that starts late: the first instruction is BATCH_DUE */
  i64 runner = new_runner(k, batch, thread, i->d - 1);
  schedule(k, header(k)->now + *table(k, i->c), rank_of(DELAY, thread_at(k, thread), i), runner);
  return batch;
}
RARE i64 gather(Kernel *k, i64 thread, i64 pc) {
  const Instruction *i = instruction(k, pc);
  i64 batch = *gathering_batch(k, i->a);
  if (batch == NONE) batch = open_batch(k, thread, i);
  Batch *b = batch_at(k, batch);
  thread_at(k, thread)->pc = (i32)pc;
  append(k, member_list(k, batch), thread, 0, 0);
  if (++b->count < i->b) return NONE;
  b->started = 1;
  *gathering_batch(k, i->a) = NONE;
  i64 first = node_at(k, list_at(k, member_list(k, batch))->head)->a;
  make_ready(k, new_runner(k, batch, first, i->d + 1));
  return NONE;
}
RARE i64 batch_due(Kernel *k, i64 thread, i64 pc) {
  i64 batch = thread_at(k, thread)->batch;
  int started = batch_at(k, batch)->started;
  batch_at(k, batch)->started = 1;
  release_batch(k, batch);
  if (started) {
    end_thread(k, thread);
    return NONE;
  }
  *gathering_batch(k, instruction(k, pc)->a) = NONE;
  return pc + 1;
}
/* The step is over: every member goes on, or is dropped, by an event of its own. */
RARE i64 batch_done(Kernel *k, i64 thread, i64 pc) {
  i64 batch = thread_at(k, thread)->batch, members = member_list(k, batch);
  while (list_at(k, members)->head >= 0) {
    schedule_resume(k, node_at(k, list_at(k, members)->head)->a, instruction(k, pc)->d);
    remove_head(k, members);
  }
  release_batch(k, batch);
  end_thread(k, thread);
  return NONE;
}
