/* Visits to stations, and the ends of requests. A visit or delay that is the last step of a request with no timeout is
   counted when it starts (VISIT_LAST, WAIT_LAST). */
#pragma once
#include "fixed_rate_station.h"
#include "processor_sharing_station.h"

/* Let the request of this event be over; the loop tells its client after the event. */
INLINE i64 end_request(Kernel *k, i64 thread, i64 status, i64 tick) {
  i64 attempt = thread_at(k, thread)->attempt;
  Header *h = header(k);
  if (!attempt_at(k, attempt)->ended) {
    h->over = status;
    h->over_attempt = attempt;
    h->over_tick = tick;
  }
  end_thread(k, thread);
  return NONE;
}
INLINE i64 visit_fixed_rate(Kernel *k, i64 thread, i64 pc) {
  const Instruction *i = instruction(k, pc);
  Thread *t = thread_at(k, thread);
  i64 end = join_fixed_rate(k, i->a + member_in(k, thread, i->d), drawn_demand(k, thread, i));
  t->pc = (i32)pc;
  schedule(k, end, rank_of(SERVICE, t, i), thread);
  return NONE;
}
INLINE i64 send_fixed_rate(Kernel *k, i64 thread, i64 pc) {
  const Instruction *i = instruction(k, pc);
  join_fixed_rate(k, i->a + member_in(k, thread, i->d), drawn_demand(k, thread, i));
  return pc + 1;
}
INLINE i64 visit_processor_sharing(Kernel *k, i64 thread, i64 pc, int waits) {
  const Instruction *i = instruction(k, pc);
  i64 station = i->a + member_in(k, thread, i->d);
  if (UNLIKELY(station_at(k, station)->known_down)) {
    station_totals(k, header(k)->interval, station)->drops++;
    return waits ? i->unwind : pc + 1;
  }
  i64 demand = drawn_demand(k, thread, i);
  if (waits) thread_at(k, thread)->pc = (i32)pc;
  join_processor_sharing(k, station, waits ? thread : NONE, demand);
  return waits ? NONE : pc + 1;
}
/* The tick at which a request ends that has nothing left to do but the visit or delay of this instruction. */
INLINE i64 end_of_last_step(Kernel *k, const Instruction *i, u64 key) {
  if (operation_of(i) == VISIT_LAST) return join_fixed_rate(k, i->a, drawn_ticks(k, i->b, key, i->key));
  return header(k)->now + drawn_ticks(k, i->a, key, i->key);
}
INLINE i64 do_last_step(Kernel *k, i64 thread, i64 pc) {
  const Thread *t = thread_at(k, thread);
  return end_request(k, thread, COMPLETED, end_of_last_step(k, instruction(k, pc), t->key));
}
