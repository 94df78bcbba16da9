/* Counting, in the terms of `results/tally.py`. A sum of a series stops at 2**63 - 1 ticks (record 0006, Reports); sums
   of pairs cannot outgrow their columns. */
#pragma once
#include "arrays.h"

enum { PAIR_BITS = 40, BIN_BITS = 8 };

INLINE i64 least(i64 one, i64 other) { return one < other ? one : other; }
INLINE void add_pair(Pair *pair, i64 value) {
  i64 low = pair->low + value;
  pair->high += low >> PAIR_BITS;
  pair->low = low & ((INT64_C(1) << PAIR_BITS) - 1);
}
INLINE void add_saturated(i64 *sum, i64 value) {
  if (UNLIKELY(__builtin_add_overflow(*sum, value, sum))) *sum = INT64_MAX;
}
RARE void add_product_saturated(i64 *sum, i64 count, i64 ticks, __int128 less) {
  __int128 total = *sum + (__int128)count * ticks - less;
  *sum = total > INT64_MAX ? INT64_MAX : (i64)total;
}
/* Add the integral of `count` over `ticks`, less some ticks of single visits. */
INLINE void add_integral(i64 *sum, i64 count, i64 ticks, __int128 less) {
  i64 product, total;
  if (UNLIKELY(__builtin_mul_overflow(count, ticks, &product)) ||
      UNLIKELY(__builtin_add_overflow(*sum, product - (i64)less, &total)))
    add_product_saturated(sum, count, ticks, less);
  else *sum = total;
}

/* The interval of a tick that is past, or still to come. */
INLINE i64 past_interval(const Kernel *k, i64 tick) {
  i64 interval = header(k)->interval;
  while (UNLIKELY(*bound(k, interval) > tick)) interval--;
  return interval;
}
INLINE i64 coming_interval(const Kernel *k, i64 tick) {
  i64 interval = header(k)->interval;
  if (LIKELY(tick < header(k)->interval_end)) return interval;
  i64 last = k->bounds.count - 1;
  while (interval < last && *bound(k, interval + 1) <= tick) interval++;
  return interval;
}
INLINE i64 end_of_traffic(const Kernel *k) { return *bound(k, k->bounds.count - 1); }

/* The bin of a latency: 256 bins an octave; see `results/histogram.py`. */
INLINE i64 bin_of(i64 ticks) {
  i64 shift = 63 - __builtin_clzll((u64)ticks | ((2 << BIN_BITS) - 1)) - BIN_BITS;
  return (shift << BIN_BITS) + (ticks >> shift);
}
INLINE void count_latency(Kernel *k, i64 interval, i64 class_number, int clock, i64 latency) {
  i64 row = (interval * k->classes.count + class_number) * header(k)->clocks + clock;
  (*histogram_bin(k, row * k->histograms.width + bin_of(latency)))++;
  ClassTotals *totals = class_totals(k, interval, class_number);
  add_pair(&totals->latency[clock], latency);
  if (latency > totals->longest[clock]) totals->longest[clock] = latency;
}
RARE void write_row(Kernel *k, const Session *s, i64 class_number, i64 status, i64 tick) {
  i64 place = TRACE_COLUMNS * header(k)->traced++;
  (void)trace_cell(k, place + TRACE_COLUMNS - 1);
  i64 *row = trace_cell(k, place);
  row[0] = s->row;
  row[1] = s->source;
  row[2] = class_number;
  row[3] = s->unit;
  row[4] = s->first + s->place;
  row[5] = s->attempt + 1;
  row[6] = s->intended;
  row[7] = s->start;
  row[8] = tick;
  row[9] = status;
}
/* Count the time from `since` to `until` in the intervals that it lies in, as requests in progress. */
INLINE void count_in_progress(Kernel *k, i64 class_number, i64 interval, i64 since, i64 until) {
  for (until = least(until, end_of_traffic(k)); since < until; interval++) {
    i64 end = least(until, *bound(k, interval + 1));
    add_pair(&class_totals(k, interval, class_number)->number, end - since);
    since = end;
  }
}
/* Count a request that ends at `tick`. */
INLINE void count_request(Kernel *k, const Session *s, i64 class_number, i64 status, i64 tick) {
  ClassSeries *series = class_series(k, coming_interval(k, tick), class_number);
  series->requests[status]++;
  if (status == COMPLETED) add_saturated(&series->latency, tick - s->intended);
  i64 began = past_interval(k, s->start);
  count_in_progress(k, class_number, began, s->start, tick);
  ClassTotals *totals = class_totals(k, began, class_number);
  totals->requests[status]++;
  totals->retries += s->attempt;
  add_pair(&totals->response, tick - s->start);
  if (status == COMPLETED) {
    count_latency(k, began, class_number, 0, tick - s->intended);
    if (header(k)->clocks > 1) count_latency(k, began, class_number, 1, tick - s->start);
  }
  if (k->trace.count > 0) write_row(k, s, class_number, status, tick);
}

/* Add a past visit's times to the totals of the interval in which it joined. */
RARE void count_past_visit(Kernel *k, i64 station, i64 joined, i64 responded, i64 waited) {
  StationTotals *totals = station_totals(k, past_interval(k, joined), station);
  totals->visits++;
  add_pair(&totals->responded, responded);
  add_pair(&totals->waited, waited);
}
/* Move the sums that a station keeps to the totals of the interval. */
RARE void flush_visits(Kernel *k, Station *s) {
  StationTotals *totals = station_totals(k, header(k)->interval, s - k->stations.first);
  totals->visits += s->visits;
  add_pair(&totals->responded, s->responded);
  add_pair(&totals->waited, s->waited);
  s->visits = s->responded = s->waited = 0;
}
INLINE void count_current_visit(Kernel *k, Station *s, i64 responded, i64 waited) {
  s->visits++;
  s->waited += waited;
  s->responded += responded;
  if (UNLIKELY(s->responded >> 61)) flush_visits(k, s);
}
