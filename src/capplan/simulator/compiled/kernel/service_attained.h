/* V, the service that a visit would have attained at a station since the start (record 0006, Stations): whole ticks and
   parts of one. V grows by sigma parts a tick. */
#pragma once
#include "draws.h"

#define PARTS INT64_C(80313433200) /* lcm(1..28): of a tick at speed 1 */
#define FASTEST (512 * PARTS)

RARE void grow_far(Station *s, i64 elapsed) {
  unsigned __int128 parts = (unsigned __int128)(u64)s->sigma * (u64)elapsed + (u64)s->parts;
  s->whole += (i64)(parts / PARTS);
  s->parts = (i64)(parts % PARTS);
}
INLINE void grow(Station *s, i64 elapsed) {
  i64 parts;
  if (UNLIKELY(__builtin_mul_overflow(s->sigma, elapsed, &parts) || parts > INT64_MAX - PARTS)) {
    grow_far(s, elapsed);
    return;
  }
  parts += s->parts;
  s->whole += parts / PARTS;
  s->parts = parts % PARTS;
}

/* The first tick, from now, at which V has grown by so many ticks and parts: ceil(parts / sigma). */
RARE i64 ticks_until_far(i64 whole, i64 parts, i64 sigma) {
  if ((f64)whole / (f64)sigma * (f64)PARTS > (f64)LONGEST) return LONGEST;
  return (i64)(((unsigned __int128)(u64)whole * PARTS + (u64)(parts + sigma - 1)) / (u64)sigma);
}
INLINE i64 ticks_until(i64 whole, i64 parts, i64 sigma) {
  if (parts < 0) {
    whole--;
    parts += PARTS;
  }
  if (LIKELY((f64)whole * (f64)PARTS < 4.0e18)) return (whole * PARTS + parts + sigma - 1) / sigma;
  return ticks_until_far(whole, parts, sigma);
}
