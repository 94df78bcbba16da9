/* When traffic arrives (record 0006, Timeline: operational time; Traffic). */
#pragma once
#include "draws.h"

enum { MULTIPLIER, OPERATIONAL_S, EDGES }; /* columns of `multipliers` */

INLINE i64 segment_at(const Kernel *k, i64 tick) {
  i64 segment = 0;
  while (*segment_start(k, segment + 1) <= tick) segment++;
  return segment;
}
/* The tick of an operational time. */
static i64 operational_tick(const Kernel *k, f64 operational_s) {
  i64 segment = 0, last = k->multipliers.count / k->multipliers.width - 1;
  while (segment < last && *multiplier(k, segment + 1, OPERATIONAL_S) < operational_s) segment++;
  f64 missing = (operational_s - *multiplier(k, segment, OPERATIONAL_S)) / *multiplier(k, segment, MULTIPLIER);
  i64 tick = *segment_start(k, segment) + rounded(missing * 1e9), end = *segment_start(k, segment + 1);
  return tick < end ? tick : end;
}

/* Draw the length of a burst, or of the quiet time after it. */
RARE void draw_phase(Kernel *k) {
  Header *h = header(k);
  f64 mean_s = h->bursting ? rates(k)->burst_length : rates(k)->quiet_length;
  f64 length = exponential(k, attempt_key((u64)traffic(k)->key, h->phase, 0, 0), KEY_BURST);
  h->phase_end += rounded(mean_s * length * 1e9);
}
static void begin_bursts(Kernel *k) {
  u64 key = attempt_key((u64)traffic(k)->key, 0, 1, 0);
  header(k)->bursting = uniform(key, KEY_BURST) < rates(k)->fraction;
  draw_phase(k);
}
INLINE f64 rate_now(const Kernel *k) {
  f64 rate = rates(k)->rate;
  if (traffic(k)->kind == BURSTY) rate = header(k)->bursting ? rates(k)->burst : rates(k)->quiet;
  return rate * *multiplier(k, header(k)->segment, MULTIPLIER);
}
INLINE i64 next_change_of_rate(const Kernel *k) {
  const Header *h = header(k);
  i64 tick = *segment_start(k, h->segment + 1);
  return traffic(k)->kind == BURSTY && h->phase_end < tick ? h->phase_end : tick;
}
/* The multiplier changes first, then the phase. */
INLINE void pass_change_of_rate(Kernel *k, i64 tick) {
  Header *h = header(k);
  if (*segment_start(k, h->segment + 1) == tick) h->segment++;
  if (traffic(k)->kind == BURSTY && h->phase_end == tick) {
    h->bursting = 1 - h->bursting;
    h->phase++;
    draw_phase(k);
  }
}
/* The tick at which the integral of the rate has grown by a standard exponential number since the arrival before. */
INLINE i64 next_random_arrival(Kernel *k) {
  Header *h = header(k);
  i64 tick = h->arrival;
  f64 missing = exponential(k, h->arrival_key, KEY_ARRIVAL);
  for (;;) {
    i64 until = next_change_of_rate(k);
    f64 rate = rate_now(k), grown = rate * (f64)(until - tick) / 1e9;
    if (missing <= grown) {
      tick += rounded(missing / rate * 1e9);
      return h->arrival = tick < until ? tick : until;
    }
    missing -= grown;
    tick = until;
    pass_change_of_rate(k, tick);
    if (tick >= traffic(k)->end) return NEVER;
  }
}
INLINE void schedule_arrival(Kernel *k) {
  Header *h = header(k);
  const Traffic *t = traffic(k);
  i64 tick = NEVER;
  h->arrival_key = attempt_key((u64)t->key, h->unit, 0, 0);
  if (t->kind == TRACE) {
    if (h->unit < t->trace_limit) tick = *table(k, t->trace + h->unit);
  } else if (rates(k)->rate > 0) tick = next_random_arrival(k);
  h->arrival_at = tick < t->end ? tick : NEVER;
}
