/* Choices and routes (record 0006, Routes). */
#pragma once
#include "draws.h"
#include "records.h"

INLINE i64 choose(Kernel *k, i64 thread, i64 pc) {
  const Instruction *i = instruction(k, pc);
  return *table(k, i->c + interval_of_edges(k, i->a, i->b - 1, drawn_uniform(k, thread, i)));
}
INLINE Target *target_of(const Kernel *k, const Route *r, i64 target) { return target_at(k, r->first + target); }
/* The targets that a request may go to: `count` of them, all or those of a list. Those that are known to be down are
   left out, unless all are. */
typedef struct { i64 count; const i64 *list; } Candidates;
INLINE i64 candidate(const Candidates *c, i64 place) { return c->list ? c->list[place] : place; }
INLINE int is_down(const Kernel *k, const Route *r, i64 target) { return target_of(k, r, target)->down > 0; }
RARE i64 count_up(const Kernel *k, const Route *r, const Candidates *c) {
  i64 up = 0;
  for (i64 place = 0; place < c->count; place++) up += !is_down(k, r, candidate(c, place));
  return up;
}
RARE i64 nth_up(const Kernel *k, const Route *r, const Candidates *c, i64 number) {
  i64 place = 0;
  for (;; place++)
    if (!is_down(k, r, candidate(c, place)) && number-- == 0) return candidate(c, place);
}
INLINE i64 first_of_least(const Kernel *k, const Route *r, const Candidates *c, int avoid) {
  i64 target = NONE, least_value = 0;
  for (i64 place = 0; place < c->count; place++) {
    i64 each = candidate(c, place);
    const Target *t = target_of(k, r, each);
    i64 value = r->policy == LEAST_LOADED ? t->inside : t->smoothed;
    if ((avoid && t->down) || (target != NONE && value >= least_value)) continue;
    target = each;
    least_value = value;
  }
  return target;
}
/* The first target in order at or after the one that owns the token. */
INLINE i64 from_owner(const Kernel *k, const Route *r, const Candidates *c, i64 thread, int avoid) {
  u64 token = session_at(k, attempt_at(k, thread_at(k, thread)->attempt)->session)->token;
  i64 owner = (i64)(uniform(token, 0) * (f64)r->count), target = NONE, least_distance = 0;
  if (!avoid && !c->list) return owner;
  for (i64 place = 0; place < c->count; place++) {
    i64 each = candidate(c, place), distance = each < owner ? each + r->count : each;
    if ((avoid && is_down(k, r, each)) || (target != NONE && distance >= least_distance)) continue;
    target = each;
    least_distance = distance;
  }
  return target;
}
/* The target up at which the sum of the weights so far exceeds the share `u` of all; NONE if all weigh nothing. */
RARE i64 by_weight(const Kernel *k, const Route *r, const Candidates *c, f64 u, int avoid) {
  i64 target = NONE;
  f64 total = 0, below = 0;
  for (i64 each = 0; each < c->count; each++)
    if (!avoid || !is_down(k, r, each)) total += target_of(k, r, each)->weight;
  for (i64 each = 0; each < c->count && total > 0 && (target == NONE || below <= u * total); each++) {
    if (avoid && is_down(k, r, each)) continue;
    target = each;
    below += target_of(k, r, each)->weight;
  }
  return target;
}
INLINE i64 picked_target(Kernel *k, Route *r, const Candidates *c, i64 thread, const Instruction *i) {
  i64 up = c->count, number = 0;
  int avoid = 0;
  if (UNLIKELY(r->avoid > 0)) {
    i64 left = count_up(k, r, c);
    avoid = left > 0 && left < up;
    if (avoid) up = left;
  }
  switch (r->policy) {
    case ROUND_ROBIN: number = r->passed++ % up; break;
    case RANDOM: {
      f64 u = drawn_uniform(k, thread, i);
      i64 weighed = r->weighted ? by_weight(k, r, c, u, avoid) : NONE;
      if (weighed != NONE) return weighed;
      number = (i64)(u * (f64)up);
      break;
    }
    case FIRST: break;
    case TOKEN_AWARE: return from_owner(k, r, c, thread, avoid);
    default: return first_of_least(k, r, c, avoid);
  }
  return avoid ? nth_up(k, r, c, number) : candidate(c, number);
}
INLINE int is_candidate(const Candidates *c, i64 target) {
  if (!c->list) return 1;
  for (i64 place = 0; place < c->count; place++)
    if (c->list[place] == target) return 1;
  return 0;
}
/* A sticky session takes the target that it remembers, unless that is known to be down. */
INLINE i64 chosen_target(Kernel *k, Route *r, const Candidates *c, i64 thread, const Instruction *i) {
  i64 session = attempt_at(k, thread_at(k, thread)->attempt)->session;
  if (r->sticky < 0 || session_at(k, session)->sticky < 0) return picked_target(k, r, c, thread, i);
  i64 *memory = sticky_target(k, session, r->sticky);
  if (*memory < 0 || is_down(k, r, *memory) || !is_candidate(c, *memory)) *memory = picked_target(k, r, c, thread, i);
  return *memory;
}
INLINE i64 enter_target(Kernel *k, Route *r, const Candidates *c, i64 thread, const Instruction *i) {
  i64 target = chosen_target(k, r, c, thread, i);
  target_of(k, r, target)->inside++;
  *local(k, thread, i->d) = header(k)->now;
  return target;
}
INLINE i64 take_route(Kernel *k, i64 thread, i64 pc) {
  const Instruction *i = instruction(k, pc);
  Route *r = route_at(k, i->a);
  Candidates all = {r->count, NULL};
  return *table(k, i->c + enter_target(k, r, &all, thread, i));
}
/* Leave a target of a policy that learns from it. */
INLINE i64 leave(Kernel *k, i64 thread, i64 pc, i64 target) {
  const Instruction *i = instruction(k, pc);
  Target *t = target_of(k, route_at(k, i->a), target);
  t->inside--;
  if (!i->d) {
    i64 took = header(k)->now - *local(k, thread, i->c);
    t->smoothed = t->smoothed < 0 ? took : t->smoothed + ((took - t->smoothed) >> 3);
  }
  return pc + 1;
}
INLINE i64 leave_target(Kernel *k, i64 thread, i64 pc) { return leave(k, thread, pc, instruction(k, pc)->b); }
