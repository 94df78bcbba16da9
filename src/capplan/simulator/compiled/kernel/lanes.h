/* Lanes: servers with a queue of their own (record 0006, Lanes). */
#pragma once
#include "draws.h"
#include "records.h"

INLINE i64 lane_number(const Kernel *k, i64 station, i64 lane) {
  return lane == 0 ? station : station_at(k, station)->further_lanes + lane - 1;
}
INLINE i64 visits_inside(const Kernel *k, i64 lane) { return station_at(k, lane)->served + station_at(k, lane)->waiting; }
INLINE i64 least_loaded_lane(const Kernel *k, i64 station) {
  i64 best = station, lanes = station_at(k, station)->lanes;
  for (i64 lane = 1; lane < lanes; lane++) {
    i64 other = lane_number(k, station, lane);
    if (visits_inside(k, other) < visits_inside(k, best)) best = other;
  }
  return best;
}
/* Assign the next visit to a lane. */
INLINE i64 assign_lane(Kernel *k, i64 thread, i64 pc) {
  const Instruction *i = instruction(k, pc);
  i64 station = i->a + member_in(k, thread, i->d);
  Station *s = station_at(k, station);
  i64 *lane = local(k, thread, i->b);
  switch (s->assignment) {
    case ROUND_ROBIN: *lane = lane_number(k, station, s->assigned++ % s->lanes); break;
    case RANDOM: *lane = lane_number(k, station, (i64)(drawn_uniform(k, thread, i) * (f64)s->lanes)); break;
    default: *lane = least_loaded_lane(k, station);
  }
  return pc + 1;
}
