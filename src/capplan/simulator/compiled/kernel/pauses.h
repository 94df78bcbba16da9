/* Pauses and background work of stations (record 0006, Stations). */
#pragma once
#include "lanes.h"
#include "processor_sharing_station.h"

static i64 drawn_length(Kernel *k, const StationProcess *p, i64 distribution_number, u64 draw) {
  return drawn_ticks(k, distribution_number, fold(fold(p->key, p->number), 0), draw);
}
static void schedule_start(Kernel *k, i64 process) {
  const StationProcess *p = process_at(k, process);
  i64 every = drawn_length(k, p, p->every, p->every_key);
  schedule(k, header(k)->now + (every > 1 ? every : 1), p->rank, process);
}
static void count_pause(Kernel *k, i64 station, i64 since, i64 until) {
  until = least(until, end_of_traffic(k));
  for (i64 interval = past_interval(k, since); since < until; interval++) {
    i64 end = least(until, *bound(k, interval + 1));
    station_totals(k, interval, station)->paused += end - since;
    since = end;
  }
}
static void change_pauses(Kernel *k, i64 station, i32 change) {
  Station *s = station_at(k, station);
  s->paused += change;
  if (s->row != station) return; /* all lanes of a station pause together, which counts once */
  if (change > 0 && s->paused == 1) s->paused_since = header(k)->now;
  else if (s->paused == 0) count_pause(k, station, s->paused_since, header(k)->now);
}
static void mark(Kernel *k, i64 process, i64 start, i64 end) {
  Header *h = header(k);
  if (h->marked < k->marks.count && h->interval < k->bounds.count - 1)
    *mark_at(k, h->marked++) = (Mark){start, end, process};
}
/* Start a process that is off, end one that is on. */
RARE void turn(Kernel *k, i64 process) {
  StationProcess *p = process_at(k, process);
  i64 now = header(k)->now, lanes = station_at(k, p->station)->lanes;
  i32 change = p->runs ? -1 : 1;
  p->runs += change;
  for (i64 lane = 0; lane < lanes; lane++) {
    i64 station = lane_number(k, p->station, lane), ran = before_change(k, station);
    if (p->background < 0) change_pauses(k, station, change);
    after_change(k, station, ran);
  }
  if (change > 0) {
    i64 length = drawn_length(k, p, p->length, p->length_key);
    mark(k, process, now, now + length);
    schedule(k, now + length, p->rank, process);
  } else {
    p->number++;
    schedule_start(k, process);
  }
}
