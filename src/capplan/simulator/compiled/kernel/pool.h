/* Pools: units that threads acquire and release (record 0006, Pools, joins, countdown latches).

   The last step of a branch may be a visit that keeps a unit, at a fixed-rate station with one server. Its end is known
   when it joins, so that it needs neither thread nor event: the pool has a list of such ends, and takes the units back
   before it next looks at them. Only while threads wait for units has the first end an event. */
#pragma once
#include "countdown_latch.h"
#include "fixed_rate_station.h"
#include "future_event_list.h"
#include "tally.h"

INLINE void count_pool_until(Kernel *k, i64 pool, i64 tick) {
  Pool *p = pool_at(k, pool);
  i64 elapsed = tick - p->since, busy = p->size - p->free, interval = header(k)->interval;
  if (elapsed == 0) return;
  p->since += elapsed;
  PlaceSeries *series = pool_series(k, interval, pool);
  add_integral(&series->queued, p->waiting, elapsed, 0);
  add_integral(&series->busy, busy, elapsed, 0);
  *pool_busy(k, interval, pool, busy >> p->shift) += elapsed;
}
INLINE void count_pool(Kernel *k, i64 pool) { count_pool_until(k, pool, header(k)->now); }
/* Take back the units whose visits ended before a key. */
INLINE void take_back(Kernel *k, i64 pool, EventKey until) {
  i64 list = header(k)->kept_lists + pool;
  for (i64 node = list_at(k, list)->head; node != NONE; node = list_at(k, list)->head) {
    const Node *n = node_at(k, node);
    if (event_key(n->a, n->b) >= until) return;
    count_pool_until(k, pool, n->a);
    pool_at(k, pool)->free++;
    remove_head(k, list);
  }
}
/* Schedule the end of the first visit that keeps a unit, if a thread waits for one. */
INLINE void schedule_unit(Kernel *k, i64 pool) {
  Pool *p = pool_at(k, pool);
  i64 node = list_at(k, header(k)->kept_lists + pool)->head;
  if (p->due || p->waiting == 0 || node == NONE) return;
  p->due = 1;
  schedule(k, node_at(k, node)->a, node_at(k, node)->b, POOL_EVENT | pool);
}
INLINE i64 acquire(Kernel *k, i64 thread, i64 pc) {
  const Instruction *i = instruction(k, pc);
  i64 pool = i->a + member_in(k, thread, i->c), now = header(k)->now;
  Pool *p = pool_at(k, pool);
  take_back(k, pool, header(k)->reached);
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
  schedule_unit(k, pool);
  return NONE;
}
/* Hand a unit over to the first thread that waits, or give it back to the pool. */
INLINE void hand_over(Kernel *k, i64 pool) {
  Pool *p = pool_at(k, pool);
  count_pool(k, pool);
  if (p->waiting == 0) {
    p->free++;
    return;
  }
  i64 now = header(k)->now, list = header(k)->pool_lists + pool, next = node_at(k, list_at(k, list)->head)->a;
  remove_head(k, list);
  p->waiting--;
  i64 *requested = local(k, next, instruction(k, thread_at(k, next)->pc)->b);
  PoolTotals *totals = pool_totals(k, header(k)->interval, pool);
  totals->acquired++;
  add_pair(&totals->waited, now - *requested);
  *requested = now;
  schedule_resume(k, next, 0);
}
INLINE void count_hold(Kernel *k, i64 pool, i64 since, i64 until) {
  add_pair(&pool_totals(k, past_interval(k, since), pool)->held, until - since);
}
INLINE i64 release(Kernel *k, i64 thread, i64 pc) {
  const Instruction *i = instruction(k, pc);
  i64 pool = i->a + member_in(k, thread, i->c);
  take_back(k, pool, header(k)->reached);
  count_hold(k, pool, *local(k, thread, i->b), header(k)->now);
  hand_over(k, pool);
  return pc + 1;
}
/* Start a visit that keeps the thread's unit, and ends the branch that the thread was; the thread goes on as another. */
INLINE i64 send_keeping(Kernel *k, i64 thread, i64 pc) {
  const Instruction *i = instruction(k, pc);
  (void)table(k, i->c + 3);
  const Kept *kept = (const Kept *)table(k, i->c);
  const Thread *t = thread_at(k, thread);
  i64 member = member_in(k, thread, i->d), pool = kept->pool + member;
  i64 end = join_fixed_rate(k, i->a + member, drawn_demand(k, thread, i)), rank = rank_of(SERVICE, t, i);
  count_hold(k, pool, *local(k, thread, kept->since), end);
  append(k, header(k)->kept_lists + pool, end, rank, 0);
  schedule_unit(k, pool);
  hold_latches(k, t->latch, kept->starts);
  leave_latches_later(k, t->latch, kept->ends, event_key(end, rank));
  return pc + 1;
}
/* The event of a pool: the first of the visits that keep a unit has ended. */
static void unit_due(Kernel *k, i64 pool) {
  remove_head(k, header(k)->kept_lists + pool);
  pool_at(k, pool)->due = 0;
  hand_over(k, pool);
  schedule_unit(k, pool);
}
