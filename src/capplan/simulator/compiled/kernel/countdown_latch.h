/* Countdown latches (record 0006, Pools, joins, countdown latches): a thread waits for signals, in groups, from
   branches inside the latch's step, and gives up when no branch is left that could send one.

   `working` counts the branches that may still signal a latch, `users` those who hold its record. Of signals on their
   way that end their branch, `coming` counts all, and the `pending` first, as many as are missing, have their keys in
   `keys`. `coming` also counts branches whose end is known, but that bring no signal any more. */
#pragma once
#include "future_event_list.h"

INLINE i64 *first_missing(const Kernel *k, i64 latch) { return missing_signals(k, latch, 0); }
INLINE i64 outer_latch(const Kernel *k, i64 latch, i64 outwards) {
  for (; outwards > 0; outwards--) latch = latch_at(k, latch)->outer;
  return latch;
}
INLINE int is_open(const Kernel *k, i64 latch, i64 outwards) {
  return latch_at(k, outer_latch(k, latch, outwards))->needed <= 0;
}
INLINE void release_latch(Kernel *k, i64 latch) {
  if (--latch_at(k, latch)->users == 0) FREE(k, latches, latch_at, latch);
}
INLINE void resume_owner(Kernel *k, CountdownLatch *l, int dropped) {
  if (l->owner < 0) return;
  schedule_resume(k, l->owner, dropped);
  l->owner = NONE;
}
/* Forget the signals on their way: they have come, or change nothing any more. */
INLINE void forget_coming(Kernel *k, i64 latch) {
  CountdownLatch *l = latch_at(k, latch);
  i32 coming = l->coming;
  l->working -= coming;
  l->users -= coming;
  l->coming = l->pending = 0;
  l->due = l->last = 0;
  if (coming > 0 && l->users == 0) FREE(k, latches, latch_at, latch);
}
/* The event of a latch: the signals that are needed have come, or all that will. */
static void latch_due(Kernel *k, i64 latch) {
  CountdownLatch *l = latch_at(k, latch);
  *first_missing(k, latch) -= l->pending;
  if (l->pending > 0 && *first_missing(k, latch) == 0) l->needed--;
  if (l->needed == 0) resume_owner(k, l, 0);
  else if (l->working == l->coming) resume_owner(k, l, 1);
  forget_coming(k, latch);
}
/* Set the event of a latch with signals on their way. `added` is the newest key, which is in the list `waits`. */
INLINE void schedule_latch(Kernel *k, i64 latch, EventKey added, i64 waits) {
  CountdownLatch *l = latch_at(k, latch);
  i64 missing = *first_missing(k, latch);
  EventKey due = 0;
  if (l->pending > 0 && l->pending >= missing) due = l->keys[missing - 1];
  else if (l->working == l->coming) {
    due = l->last;
    if (l->pending > 0 && l->keys[l->pending - 1] > due) due = l->keys[l->pending - 1];
  }
  if (due == l->due) return;
  l->due = due; /* the event of before finds another key, and does nothing */
  if (due == 0) return;
  i64 tick = (i64)(u64)(due >> 64), rank = (i64)(u64)due;
  if (due <= event_key(header(k)->now, header(k)->now_rank)) latch_due(k, latch);
  else if (due == added) schedule_in_list(k, tick, rank, LATCH_EVENT | latch, waits);
  else schedule(k, tick, rank, LATCH_EVENT | latch);
}
/* A branch starts, or ends, that may signal some of the latches around it: bit n for the n-th outwards. */
INLINE void hold_latches(Kernel *k, i64 latch, i64 levels) {
  for (; levels; levels >>= 1) {
    CountdownLatch *l = latch_at(k, latch);
    l->working += levels & 1;
    l->users++;
    latch = l->outer;
  }
}
INLINE void leave_latch(Kernel *k, i64 latch) {
  CountdownLatch *l = latch_at(k, latch);
  l->working--;
  if (l->needed <= 0) return;
  if (l->working == 0) resume_owner(k, l, 1);
  if (UNLIKELY(l->coming > 0 && l->working == l->coming)) schedule_latch(k, latch, 0, NONE);
}
INLINE void leave_latches(Kernel *k, i64 latch, i64 levels) {
  for (; levels; levels >>= 1) {
    i64 outer = latch_at(k, latch)->outer;
    if (levels & 1) leave_latch(k, latch);
    release_latch(k, latch);
    latch = outer;
  }
}
/* The same at a later key: a branch ends then without another signal. */
INLINE void leave_latches_later(Kernel *k, i64 latch, i64 levels, EventKey key) {
  for (; levels; levels >>= 1) {
    CountdownLatch *l = latch_at(k, latch);
    i64 outer = l->outer;
    if (levels & 1 && l->needed > 0) {
      l->coming++;
      if (key > l->last) l->last = key;
      schedule_latch(k, latch, 0, NONE);
    } else {
      if (levels & 1) leave_latch(k, latch);
      release_latch(k, latch);
    }
    latch = outer;
  }
}

INLINE i64 open_latch(Kernel *k, i64 thread, i64 pc) {
  const Instruction *i = instruction(k, pc);
  i64 latch = ALLOCATE(k, latches, latch_at);
  CountdownLatch *l = latch_at(k, latch);
  l->outer = thread_at(k, thread)->latch;
  l->needed = i->c;
  l->users = 1;
  l->owner = NONE;
  l->working = l->coming = l->pending = 0;
  l->due = l->last = 0;
  for (i64 group = 0; group < i->b; group++) *missing_signals(k, latch, group) = *table(k, i->a + group);
  thread_at(k, thread)->latch = (i32)latch;
  return pc + 1;
}
INLINE i64 signal_latch(Kernel *k, i64 thread, i64 pc) {
  const Instruction *i = instruction(k, pc);
  i64 latch = outer_latch(k, thread_at(k, thread)->latch, i->a);
  CountdownLatch *l = latch_at(k, latch);
  i64 missing = --*missing_signals(k, latch, i->b);
  if (missing == 0 && --l->needed == 0) {
    resume_owner(k, l, 0);
    if (l->coming > 0) forget_coming(k, latch);
  } else if (l->pending > 0) {
    if (l->pending > missing) l->pending = (i32)missing;
    schedule_latch(k, latch, 0, NONE);
  }
  return pc + 1;
}
INLINE i64 await_latch(Kernel *k, i64 thread, i64 pc) {
  CountdownLatch *l = latch_at(k, thread_at(k, thread)->latch);
  if (l->needed <= 0) return pc + 1;
  if (l->working == 0) return instruction(k, pc)->unwind;
  l->owner = (i32)thread;
  thread_at(k, thread)->pc = (i32)pc;
  return NONE;
}
INLINE i64 close_latch(Kernel *k, i64 thread, i64 pc) {
  i64 latch = thread_at(k, thread)->latch;
  thread_at(k, thread)->latch = latch_at(k, latch)->outer;
  release_latch(k, latch);
  return pc + 1;
}

/* Whether a signal at some later time can be left to the event of its latch: one group, a branch that nobody joins. */
INLINE int can_come_later(const Kernel *k, const Thread *t, i64 outwards) {
  return k->missing.width == 1 && outwards == 0 && t->join == NONE && *first_missing(k, t->latch) <= MOST_SIGNALS;
}
/* End a branch of which only a signal is left, at `tick`, for its innermost latch. */
INLINE i64 signal_later(Kernel *k, i64 thread, const Instruction *i, i64 tick) {
  const Thread *t = thread_at(k, thread);
  i64 latch = t->latch, missing = *first_missing(k, latch);
  CountdownLatch *l = latch_at(k, latch);
  EventKey key = event_key(tick, rank_of(DELAY, t, i));
  l->coming++;
  i64 place = l->pending;
  if (place < missing || key < l->keys[place - 1]) {
    if (place == missing) place--;
    else l->pending++;
    for (; place > 0 && key < l->keys[place - 1]; place--) l->keys[place] = l->keys[place - 1];
    l->keys[place] = key;
  }
  schedule_latch(k, latch, key, i->b);
  end_thread(k, thread);
  return NONE;
}
