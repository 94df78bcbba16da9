/* The simulation kernel: runs a network, lowered to arrays, event by event (record 0006; the arrays are those of
   `layout.h`). It allocates nothing and calls nothing but `llrint`. When arrays are nearly full it returns, and Python
   enlarges them. */
#include "description.h"
#include "instructions.h"
#include "session.h"
#include "pauses.h"

#define EXPORT __attribute__((visibility("default")))
#ifdef CHECK_BOUNDS
#define RETURN_ON_FAULT(value) \
  if (setjmp(entry)) return value
EXPORT const char *capplan_fault(void) { return fault_text; }
#else
#define RETURN_ON_FAULT(value) (void)0
EXPORT const char *capplan_fault(void) { return "unknown"; }
#endif

/* For tests of sampling. */
EXPORT i64 capplan_quantile(const Kernel *k, i64 distribution_number, i64 word) {
  RETURN_ON_FAULT(FAULT);
  return quantile_ticks(k, distribution_number, (u64)word);
}

/* Start everything that starts by itself: the first arrivals, clients, and processes of stations. */
EXPORT i64 capplan_begin(Kernel *k) {
  RETURN_ON_FAULT(FAULT);
  const Traffic *t = traffic(k);
  if (t->kind == BURSTY) begin_bursts(k);
  if (t->kind == CLOSED) {
    for (i64 unit = 0; unit < t->clients; unit++) think(k, unit, 0, 0, 0);
  } else if (t->kind == THROTTLED) {
    for (i64 unit = 0; unit < t->clients; unit++) await_pacing_tick(k, unit, 0, 0);
  } else schedule_arrival(k);
  for (i64 process = 0; process < k->processes.count; process++) schedule_start(k, process);
  return REACHED;
}

/* Let all sums be right at a tick, and speeds from there. */
EXPORT i64 capplan_settle(Kernel *k, i64 tick) {
  RETURN_ON_FAULT(FAULT);
  header(k)->now = tick;
  for (i64 host = 0; host < k->hosts.count; host++) host_at(k, host)->busy = 0;
  for (i64 slot = 0; slot < k->ps_stations.count; slot++) {
    i64 station = *ps_station(k, slot);
    Station *s = station_at(k, station);
    bring_up_to_date(k, s);
    count_integrals(k, station);
    flush_visits(k, s);
    if (s->host >= 0) host_at(k, s->host)->busy += running_servers(s);
  }
  for (i64 slot = 0; slot < k->ps_stations.count; slot++) set_speed(k, *ps_station(k, slot));
  for (i64 pool = 0; pool < k->pools.count; pool++) {
    take_back(k, pool, event_key(tick, 0));
    count_pool(k, pool);
  }
  return REACHED;
}

/* Whether anything happens any more but processes of stations. */
static int work_is_left(const Kernel *k) {
  if (header(k)->event_count > k->processes.count || header(k)->arrival_at < NEVER) return 1;
  for (i64 slot = 0; slot < k->ps_stations.count; slot++) {
    const Station *s = station_at(k, *ps_station(k, slot));
    if (s->lazy ? *check_word(k, slot) < NEVER : s->served > 0 && !s->down) return 1;
  }
  return 0;
}
static i64 finished(Kernel *k) {
  if (header(k)->stop_idle) complete_detached(k);
  return FINISHED;
}
/* Carry out an event; `load` is a thread, countdown latch, pool, session, class or process. */
INLINE void carry_out_event(Kernel *k, i64 load) {
  Header *h = header(k);
  switch (h->now_rank >> KIND_SHIFT) {
    case START: {
      i64 thread = start(k, load);
      if (thread >= 0) run_threads(k, thread, thread_at(k, thread)->pc);
      break;
    }
    case PROCESS: turn(k, load); break;
    case TIMEOUT:
      h->over_attempt = time_out(k, load);
      h->over = h->over_attempt >= 0 ? TIMED_OUT : 0;
      h->over_tick = h->now;
      break;
    default:
      if (load & LATCH_EVENT) {
        i64 latch = load & (LATCH_EVENT - 1);
        if (latch_at(k, latch)->due == event_key(h->now, h->now_rank)) latch_due(k, latch);
      } else if (load & POOL_EVENT) unit_due(k, load & (POOL_EVENT - 1));
      else resume(k, load);
  }
}
INLINE void tell_client(Kernel *k) {
  Header *h = header(k);
  h->events++;
  if (h->over > 0) {
    end_attempt(k, h->over_attempt, h->over, h->over_tick);
    h->over = 0;
  }
}
INLINE void reach(Header *h) {
  EventKey key = event_key(h->now, h->now_rank);
  if (key > h->reached) h->reached = key;
}
/* Carry out all events before the key (`until`, `until_rank`); return why it stopped. */
static i64 run_until(Kernel *k, i64 until, i64 until_rank) {
  Header *h = header(k);
  for (;;) {
    if (UNLIKELY(h->room_needed)) return ROOM_NEEDED;
    if (UNLIKELY(k->trace.count > 0 && h->traced * TRACE_COLUMNS >= k->trace.count)) return TRACE_FULL;
    const Event *first = event(k, 0);
    i64 tick = first->tick, rank = first->rank, load = first->load, check = next_check(k)->tick;
    if (check <= tick && check <= h->arrival_at) {
      if (UNLIKELY(check == NEVER)) return finished(k);
      if (UNLIKELY(check > until || (check == until && until_rank < 0))) return REACHED;
      h->now = check;
      i64 thread = check_station(k, *ps_station(k, next_check(k)->slot), check < until);
      if (thread < 0) continue;
      h->now_rank = rank_of(SERVICE, thread_at(k, thread), instruction(k, thread_at(k, thread)->pc));
      reach(h);
      resume(k, thread);
      tell_client(k);
      continue;
    }
    i64 arrival_rank = (i64)START << KIND_SHIFT | h->unit << STEP_BITS;
    int arrives = h->arrival_at < tick || (h->arrival_at == tick && arrival_rank < rank);
    if (arrives) {
      tick = h->arrival_at;
      rank = arrival_rank;
    }
    if (UNLIKELY(tick > until || (tick == until && rank >= until_rank))) return REACHED;
    if (UNLIKELY(h->stop_idle && rank >> KIND_SHIFT == PROCESS && !work_is_left(k))) return finished(k);
    h->now = tick;
    h->now_rank = rank;
    reach(h);
    if (arrives) load = arrive(k);
    else if (rank >> KIND_SHIFT == DELAY) load = take_wait(k, load);
    else remove_first_event(k);
    carry_out_event(k, load);
    tell_client(k);
  }
}
EXPORT i64 capplan_advance(Kernel *k, i64 until, i64 until_rank) {
  RETURN_ON_FAULT(FAULT);
  i64 outcome = run_until(k, until, until_rank);
  for (i64 station = 0; station < k->stations.count; station++) flush_visits(k, station_at(k, station));
  return outcome;
}
