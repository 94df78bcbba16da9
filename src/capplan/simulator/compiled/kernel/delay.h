/* Delays (record 0006, Timeline: a delay takes the factor that holds when it starts). */
#pragma once
#include "countdown_latch.h"
#include "draws.h"

/* A delay of fixed length. When only a signal follows that nobody needs any more, there is nothing to wait for. */
INLINE i64 wait_fixed(Kernel *k, i64 thread, i64 pc) {
  const Instruction *i = instruction(k, pc);
  Thread *t = thread_at(k, thread);
  i64 tick = header(k)->now + *table(k, i->a);
  if (i->c) {
    i64 outwards = instruction(k, pc + 1)->a;
    if (is_open(k, t->latch, outwards)) return pc + 2;
    if (can_come_later(k, t, outwards)) return signal_later(k, thread, i, tick);
  }
  t->pc = (i32)pc;
  schedule_in_list(k, tick, rank_of(DELAY, t, i), thread, i->b);
  return NONE;
}
INLINE i64 wait(Kernel *k, i64 thread, i64 pc) {
  const Instruction *i = instruction(k, pc);
  Thread *t = thread_at(k, thread);
  if (i->c && is_open(k, t->latch, instruction(k, pc + 1)->a)) return pc + 2;
  t->pc = (i32)pc;
  i64 ticks = drawn_ticks(k, i->a, t->key, i->key);
  if (i->b >= 0 && *delay_scale(k, i->b) != 1.0) ticks = rounded((f64)ticks * *delay_scale(k, i->b));
  schedule(k, header(k)->now + ticks, rank_of(DELAY, t, i), thread);
  return NONE;
}
