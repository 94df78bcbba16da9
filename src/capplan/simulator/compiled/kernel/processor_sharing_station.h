/* Stations whose visits in service share one speed (record 0006, Stations): processor sharing, and first come, first
   served where the speed can change. What can change a speed is done between `before_change` and `after_change`. */
#pragma once
#include "completions.h"
#include "future_event_list.h"
#include "service_attained.h"
#include "tally.h"

/* Under processor sharing the wait is the response less the demand (`aside`); else `aside` is the wait. */
INLINE void count_visit(Kernel *k, Station *s, i64 joined, i64 aside, i64 tick) {
  i64 responded = tick - joined, waited = s->kind == SHARED ? responded - aside : aside;
  if (LIKELY(joined >= *bound(k, header(k)->interval))) count_current_visit(k, s, responded, waited);
  else count_past_visit(k, s - k->stations.first, joined, responded, waited);
}

/* The tick at which a completion came, or comes, at speed 1: V was `whole` at tick `since`, the parts are still the
   same. */
INLINE i64 tick_at_speed_one(const Station *s, Completion c, i64 since, i64 whole) {
  return since + (whole_of(c) - whole) + (parts_of(c) > s->parts);
}
/* Remove detached visits that have ended since V was `whole` at tick `since`, all at speed 1 with a server each: so
   nobody's speed changed, and it can be done later. Return the sum of the ticks since they ended. */
INLINE __int128 remove_ended_detached(Kernel *k, Station *s, i64 since, i64 whole) {
  __int128 late = 0;
  while (is_due(k, s, DETACHED)) {
    Completion first = first_completion(k, s, DETACHED);
    const Visit *visit = remove_first_completion(k, s, DETACHED);
    i64 ended = tick_at_speed_one(s, first, since, whole);
    late += s->since - ended;
    count_visit(k, s, visit->joined, visit->aside, ended);
  }
  return late;
}
/* Let V and the sums be right now. */
INLINE void bring_up_to_date(Kernel *k, Station *s) {
  i64 since = s->since, elapsed = header(k)->now - since, served = s->served, whole = s->whole;
  i64 busy = least(served, s->servers), queued = served + s->waiting - busy;
  __int128 late = 0;
  s->since = header(k)->now;
  if (served == 0) return;
  if (s->sigma == PARTS) {
    s->whole += elapsed;
    late = remove_ended_detached(k, s, since, whole);
  } else if (s->sigma > 0) grow(s, elapsed);
  add_integral(&s->busy_ticks, busy, elapsed, late);
  if (queued > 0) add_integral(&s->queued_ticks, queued, elapsed, 0);
}
/* Add the integrals since the last time to the series of the interval. */
static void count_integrals(Kernel *k, i64 station) {
  Station *s = station_at(k, station);
  PlaceSeries *series = station_series(k, header(k)->interval, station);
  add_saturated(&series->busy, s->busy_ticks);
  add_saturated(&series->queued, s->queued_ticks);
  s->busy_ticks = s->queued_ticks = 0;
}

/* Busy servers as far as the host is concerned. */
INLINE i64 running_servers(const Station *s) {
  return s->paused > 0 || s->down ? 0 : least(s->served, s->servers);
}
/* The factor f of record 0006: products from left to right, in float64. */
RARE f64 speed_factor(const Kernel *k, i64 station) {
  const Station *s = station_at(k, station);
  f64 factor = 1.0, taken = 0.0;
  if (s->rates >= 0) factor *= *number(k, s->rates + least(s->served + s->waiting, s->rate_count) - 1);
  for (i64 process = s->processes; process < s->processes + s->process_count; process++) {
    const StationProcess *p = process_at(k, process);
    if (p->runs && p->background >= 0) taken += *number(k, p->background);
  }
  f64 left = 1.0 - taken;
  factor *= left > 0.0 ? left : 0.0;
  for (int which = 0; which < SPEEDS; which++) factor *= *station_speed(k, station, which);
  return factor;
}
/* The sigma of record 0006, of a station whose speed can change. */
RARE i64 changeable_sigma(const Kernel *k, i64 station, i64 base) {
  const Station *s = station_at(k, station);
  if (s->paused > 0 || s->down) return 0;
  if (s->host >= 0) {
    const Host *h = host_at(k, s->host);
    if (h->busy > h->cores) base = base * h->cores / h->busy;
  }
  f64 factor = speed_factor(k, station);
  if (factor == 1.0) return base;
  if (factor == 0.0) return 0;
  f64 product = (f64)base * factor;
  if (product >= (f64)FASTEST) return FASTEST;
  i64 sigma = (i64)(product + 0.5);
  return sigma > 1 ? sigma : 1;
}
/* Schedule the check at which the next visit ends. At speed 1 detached visits need none. */
INLINE void schedule_completion(Kernel *k, const Station *s) {
  Completion first = first_completion(k, s, AWAITED);
  if (s->sigma == PARTS) {
    schedule_check(k, s->slot, never_comes(first) ? NEVER : tick_at_speed_one(s, first, s->since, s->whole));
    return;
  }
  if (s->sigma == 0) {
    schedule_check(k, s->slot, NEVER);
    return;
  }
  Completion other = first_completion(k, s, DETACHED);
  if (other < first) first = other;
  i64 tick = s->since + ticks_until(whole_of(first) - s->whole, parts_of(first) - s->parts, s->sigma);
  schedule_check(k, s->slot, least(tick, NEVER));
}
/* Set sigma from what is so now, and the next check. */
INLINE void set_speed(Kernel *k, i64 station) {
  Station *s = station_at(k, station);
  i64 sigma = PARTS;
  if (UNLIKELY(s->served > s->servers) && s->kind == SHARED) sigma = PARTS * s->servers / s->served;
  if (UNLIKELY(!s->plain)) {
    if (s->served == 0) {
      schedule_check(k, s->slot, NEVER);
      return;
    }
    sigma = changeable_sigma(k, station, sigma);
  }
  s->sigma = sigma;
  schedule_completion(k, s);
}

RARE void bring_host_up_to_date(Kernel *k, i64 host) {
  for (i64 place = 0; place < host_at(k, host)->count; place++)
    bring_up_to_date(k, station_at(k, *host_station(k, host, place)));
}
RARE void set_speeds_on_host(Kernel *k, i64 station, i64 ran) {
  i64 host = station_at(k, station)->host;
  host_at(k, host)->busy += running_servers(station_at(k, station)) - ran;
  for (i64 place = 0; place < host_at(k, host)->count; place++) set_speed(k, *host_station(k, host, place));
}
/* Return what `after_change` needs: how many servers ran before. */
INLINE i64 before_change(Kernel *k, i64 station) {
  Station *s = station_at(k, station);
  if (LIKELY(s->host == NONE)) {
    bring_up_to_date(k, s);
    return 0;
  }
  bring_host_up_to_date(k, s->host);
  return running_servers(s);
}
INLINE void after_change(Kernel *k, i64 station, i64 ran) {
  if (LIKELY(station_at(k, station)->host == NONE)) set_speed(k, station);
  else set_speeds_on_host(k, station, ran);
}

INLINE void begin_service(Kernel *k, Station *s, i64 thread, i64 demand, i64 joined) {
  i64 aside = s->kind == SHARED ? demand : header(k)->now - joined;
  if (UNLIKELY(s->served + header(k)->margin + 2 >= s->room)) header(k)->room_needed = 1;
  add_completion(k, s, s->lazy & (thread == NONE), demand, thread, joined, aside);
}
/* Join; `thread` waits for the end of the service, or none does. */
INLINE void join_processor_sharing(Kernel *k, i64 station, i64 thread, i64 demand) {
  Station *s = station_at(k, station);
  i64 now = header(k)->now;
  if (s->kind == QUEUED && s->served >= s->servers) {
    i64 ran = before_change(k, station);
    s->waiting++;
    append(k, station, thread, demand, now);
    if (s->rates >= 0) after_change(k, station, ran);
    return;
  }
  if (UNLIKELY(demand == 0)) {
    count_visit(k, s, now, 0, now);
    schedule_service(k, thread);
    return;
  }
  i64 ran = before_change(k, station);
  begin_service(k, s, thread, demand, now);
  after_change(k, station, ran);
}
/* Let the first that waits take a free server, unless it has waited for too long. */
INLINE void serve_next(Kernel *k, i64 station) {
  Station *s = station_at(k, station);
  Node waiting = *node_at(k, list_at(k, station)->head);
  i64 now = header(k)->now, thread = waiting.a, demand = waiting.b, joined = waiting.c;
  remove_head(k, station);
  s->waiting--;
  if (now - joined > s->expiry) {
    station_totals(k, header(k)->interval, station)->drops++;
    if (thread != NONE) schedule_resume(k, thread, 1);
  } else if (demand == 0) {
    count_visit(k, s, joined, now - joined, now);
    schedule_service(k, thread);
  } else begin_service(k, s, thread, demand, joined);
}
/* A detached visit to the same station follows the one that has just ended: start it along with the check. */
INLINE void send_next(Kernel *k, i64 station, i64 thread) {
  Thread *t = thread_at(k, thread);
  const Instruction *i = instruction(k, ++t->pc);
  i64 demand = drawn_demand(k, thread, i), now = header(k)->now;
  if (LIKELY(demand > 0)) begin_service(k, station_at(k, station), NONE, demand, now);
  else count_visit(k, station_at(k, station), now, 0, now);
}
/* The check of a station: all visits leave whose service has ended, and those that wait take the free servers. When a
   single thread goes on, and nothing else happens at this tick (`undisturbed`: the run does not stop at it), return
   that thread instead of scheduling an event for it. */
INLINE i64 check_station(Kernel *k, i64 station, int undisturbed) {
  i64 ran = before_change(k, station), now = header(k)->now, alone = NONE;
  Station *s = station_at(k, station);
  while (is_due(k, s, AWAITED)) {
    const Visit *visit = remove_first_completion(k, s, AWAITED);
    i64 thread = visit->thread;
    count_visit(k, s, visit->joined, visit->aside, now);
    schedule_service(k, alone);
    alone = thread;
    if (alone != NONE && s->lazy && instruction(k, thread_at(k, alone)->pc)->c) send_next(k, station, alone);
  }
  while (is_due(k, s, DETACHED)) {
    const Visit *visit = remove_first_completion(k, s, DETACHED);
    count_visit(k, s, visit->joined, visit->aside, now);
  }
  while (s->waiting > 0 && s->served < s->servers) serve_next(k, station);
  after_change(k, station, ran);
  if (undisturbed && event(k, 0)->tick > now && next_check(k)->tick > now && header(k)->arrival_at > now) return alone;
  schedule_service(k, alone);
  return NONE;
}
/* At the very end, detached visits may still be in service that end without any event. */
static void complete_detached(Kernel *k) {
  for (i64 slot = 0; slot < k->ps_stations.count; slot++) {
    Station *s = station_at(k, *ps_station(k, slot));
    while (s->lazy && s->count[DETACHED] > 0) {
      Completion first = first_completion(k, s, DETACHED);
      const Visit *visit = remove_first_completion(k, s, DETACHED);
      count_visit(k, s, visit->joined, visit->aside, tick_at_speed_one(s, first, s->since, s->whole));
    }
  }
}
