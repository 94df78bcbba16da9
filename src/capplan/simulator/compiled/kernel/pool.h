/* Pools: units that threads acquire and release (record 0006, Pools, joins, countdown latches). */
#pragma once
#include "future_event_list.h"
#include "tally.h"

INLINE void count_pool(Kernel *k, i64 pool) {
  Pool *p = pool_at(k, pool);
  i64 elapsed = header(k)->now - p->since, busy = p->size - p->free, interval = header(k)->interval;
  if (elapsed == 0) return;
  p->since += elapsed;
  PlaceSeries *series = pool_series(k, interval, pool);
  add_integral(&series->queued, p->waiting, elapsed, 0);
  add_integral(&series->busy, busy, elapsed, 0);
  *pool_busy(k, interval, pool, busy >> p->shift) += elapsed;
}
INLINE i64 acquire(Kernel *k, i64 thread, i64 pc) {
  const Instruction *i = instruction(k, pc);
  i64 pool = i->a + member_in(k, thread, i->c), now = header(k)->now;
  Pool *p = pool_at(k, pool);
  PoolTotals *totals = pool_totals(k, header(k)->interval, pool);
  if (p->free == 0 && p->waiting >= p->limit) {
    totals->drops++;
    return i->unwind;
  }
  count_pool(k, pool);
  *local(k, thread, i->b) = now;
  if (p->free > 0) {
    p->free--;
    totals->acquired++;
    return pc + 1;
  }
  p->waiting++;
  thread_at(k, thread)->pc = (i32)pc;
  append(k, header(k)->pool_lists + pool, thread, 0, 0);
  return NONE;
}
/* Release a unit to the first thread that waits, or to the pool. */
INLINE i64 release(Kernel *k, i64 thread, i64 pc) {
  const Instruction *i = instruction(k, pc);
  i64 pool = i->a + member_in(k, thread, i->c), now = header(k)->now, since = *local(k, thread, i->b);
  Pool *p = pool_at(k, pool);
  add_pair(&pool_totals(k, past_interval(k, since), pool)->held, now - since);
  count_pool(k, pool);
  if (p->waiting == 0) {
    p->free++;
    return pc + 1;
  }
  i64 list = header(k)->pool_lists + pool, next = node_at(k, list_at(k, list)->head)->a;
  remove_head(k, list);
  p->waiting--;
  i64 *requested = local(k, next, instruction(k, thread_at(k, next)->pc)->b);
  PoolTotals *totals = pool_totals(k, header(k)->interval, pool);
  totals->acquired++;
  add_pair(&totals->waited, now - *requested);
  *requested = now;
  schedule_resume(k, next, 0);
  return pc + 1;
}
