/* Random numbers: the keys of `specification/streams.py` and the sampling of `specification/sampling.py`, bit for bit.
   Sums and products must be rounded one by one, so compilers must not contract them. */
#pragma once
#include <math.h>
#include <string.h>
#include "arrays.h"

#define LONGEST (INT64_C(1) << 60)

/* `name_key` of "arrival", "burst", "gap", "think" and "mix". */
#define KEY_ARRIVAL UINT64_C(0x6e942e9965ba238f)
#define KEY_BURST UINT64_C(0xcab53b86b9b39bd8)
#define KEY_GAP UINT64_C(0x379bbbf826a758ac)
#define KEY_THINK UINT64_C(0xda19961618883764)
#define KEY_MIX UINT64_C(0x8568467c7e8a80df)

INLINE u64 mixed(u64 word) {
  word = (word ^ (word >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  word = (word ^ (word >> 27)) * UINT64_C(0x94D049BB133111EB);
  return word ^ (word >> 31);
}
INLINE u64 fold(u64 key, i64 field) { return mixed(key + ((u64)field + 1) * UINT64_C(0x9E3779B97F4A7C15)); }
INLINE u64 attempt_key(u64 source, i64 unit, i64 position, i64 attempt) {
  return fold(fold(fold(source, unit), position), attempt);
}
INLINE u64 word_of(u64 key, u64 draw) { return mixed(key + draw) >> 12; }
INLINE f64 uniform_of(u64 word) { return ((f64)(i64)word + 0.5) * 0x1p-52; }
INLINE f64 uniform(u64 key, u64 draw) { return uniform_of(word_of(key, draw)); }

/* Round a duration in ticks, halves to even: the rounding mode is never changed. */
INLINE i64 rounded(f64 duration) {
  if (UNLIKELY(duration >= (f64)LONGEST)) return LONGEST;
  i64 ticks = llrint(duration);
  return ticks > 0 ? ticks : 0;
}

/* The quantile at a distance from the lower or upper end. The piece of the table, and the place in it, are bits of the
   distance: pieces divide each octave into equal parts. */
INLINE f64 from_side(const Kernel *k, const Distribution *d, i64 upper, f64 distance) {
  i64 bits, piece_bits = d->ticks;
  memcpy(&bits, &distance, sizeof bits);
  i64 mantissa = bits & ((INT64_C(1) << 52) - 1);
  i64 piece = ((1021 - (bits >> 52) + 52 * upper) << piece_bits) + (mantissa >> (52 - piece_bits));
  i64 bits_of_t = ((mantissa << piece_bits) & ((INT64_C(1) << 52) - 1)) | (INT64_C(1023) << 52);
  f64 t;
  memcpy(&t, &bits_of_t, sizeof t);
  t -= 1.0;
  const f64 *c = number(k, d->first + 6 * piece);
  (void)number(k, d->first + 6 * piece + 5);
  return ((((c[5] * t + c[4]) * t + c[3]) * t + c[2]) * t + c[1]) * t + c[0];
}
INLINE f64 from_table(const Kernel *k, const Distribution *d, f64 u) {
  const f64 below_half = 0.5 - 0x1p-54;
  int upper = u > 0.5;
  return from_side(k, d, upper, upper ? 1.0 - u : (u < below_half ? u : below_half));
}
/* The same for u = (word + 1/2) / 2**52, without branches: 1 - u has the complement of the word. */
INLINE f64 from_word(const Kernel *k, const Distribution *d, u64 word) {
  i64 upper = (i64)(word >> 51);
  word ^= (u64)-upper & ((UINT64_C(1) << 52) - 1);
  return from_side(k, d, upper, uniform_of(word));
}
INLINE f64 exponential(const Kernel *k, u64 key, u64 draw) {
  f64 x = from_word(k, distribution(k, traffic(k)->exponential), word_of(key, draw));
  return x > 0.0 ? x : 0.0;
}

/* The first of `edges` + 1 intervals that ends above u. */
INLINE i64 interval_of_edges(const Kernel *k, i64 first, i64 edges, f64 u) {
  i64 chosen = 0;
  while (chosen < edges && *number(k, first + chosen) <= u) chosen++;
  return chosen;
}

RARE i64 ticks_of_other_kinds(const Kernel *k, const Distribution *d, f64 u) {
  while (d->kind == MIXTURE) {
    i64 first = d->first, count = d->count, chosen = interval_of_edges(k, first + 1, count - 1, u);
    f64 within_part = (u - *number(k, first + chosen)) / *number(k, first + count + chosen);
    u = within_part < 0x1p-53 ? 0x1p-53 : within_part > 1 - 0x1p-53 ? 1 - 0x1p-53 : within_part;
    d = distribution(k, *mixture_part(k, d->ticks + chosen));
  }
  if (d->kind == CONSTANT) return d->ticks;
  if (d->kind == TABLE) return rounded(from_table(k, d, u) * d->scale);
  f64 place = u * (f64)(d->count - 1);
  i64 index = (i64)place;
  f64 low = *number(k, d->first + index), high = *number(k, d->first + index + 1);
  return rounded((low + (place - (f64)index) * (high - low)) * 1e9);
}

/* The quantile of a distribution at u = (word + 1/2) / 2**52, in ticks. */
INLINE i64 quantile_ticks(const Kernel *k, i64 number_of_distribution, u64 word) {
  const Distribution *d = distribution(k, number_of_distribution);
  if (LIKELY(d->kind == TABLE)) return rounded(from_word(k, d, word) * d->scale);
  return ticks_of_other_kinds(k, d, uniform_of(word));
}
/* A duration drawn from a distribution, in ticks. */
INLINE i64 drawn_ticks(const Kernel *k, i64 number_of_distribution, u64 key, u64 draw) {
  return quantile_ticks(k, number_of_distribution, word_of(key, draw));
}
/* A number, or a duration, drawn by an instruction for a thread. */
INLINE f64 drawn_uniform(const Kernel *k, i64 thread, const Instruction *i) {
  return uniform(thread_at(k, thread)->key, i->key);
}
INLINE i64 drawn_demand(const Kernel *k, i64 thread, const Instruction *i) {
  return drawn_ticks(k, i->b, thread_at(k, thread)->key, i->key);
}
