/* Fixed-rate stations (record 0006, Stations): first come, first served, and nothing ever changes their speed. So the
   times of a visit are known, and counted, when it joins. */
#pragma once
#include "draws.h"
#include "tally.h"

/* Set the tick at which the first server is free, in a heap. */
INLINE void occupy_first_server(i64 *free, i64 servers, i64 tick) {
  i64 place = 0;
  for (i64 child = 1; child < servers; child = 2 * place + 1) {
    if (child + 1 < servers && free[child + 1] < free[child]) child++;
    if (tick <= free[child]) break;
    free[place] = free[child];
    place = child;
  }
  free[place] = tick;
}
/* The sum of a series, queued or busy, of a station. */
INLINE i64 *series_sum(Kernel *k, i64 interval, i64 station, int busy) {
  PlaceSeries *series = station_series(k, interval, station);
  return busy ? &series->busy : &series->queued;
}
RARE void count_long_period(Kernel *k, i64 station, int busy, i64 since, i64 until) {
  i64 interval = header(k)->interval;
  until = least(until, end_of_traffic(k));
  while (since < until) {
    while (*bound(k, interval + 1) <= since) interval++;
    i64 end = least(until, *bound(k, interval + 1));
    add_saturated(series_sum(k, interval, station, busy), end - since);
    since = end;
  }
}
INLINE void count_period(Kernel *k, i64 station, int busy, i64 since, i64 until) {
  if (LIKELY(until <= header(k)->interval_end))
    add_saturated(series_sum(k, header(k)->interval, station, busy), until - since);
  else count_long_period(k, station, busy, since, until);
}
/* Join; return the tick at which the service ends. */
INLINE i64 join_fixed_rate(Kernel *k, i64 station, i64 demand) {
  Station *s = station_at(k, station);
  (void)server_free(k, s->server_free + s->servers - 1);
  i64 now = header(k)->now, *free = server_free(k, s->server_free);
  i64 begun = now > free[0] ? now : free[0], end = begun + demand;
  occupy_first_server(free, s->servers, end);
  if (begun > now) count_period(k, station, 0, now, begun);
  count_period(k, station, 1, begun, end);
  count_current_visit(k, s, end - now, begun - now);
  return end;
}
