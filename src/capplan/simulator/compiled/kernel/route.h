/* Choices and routes (record 0006, Routes). */
#pragma once
#include "draws.h"
#include "records.h"

INLINE i64 choose(Kernel *k, i64 thread, i64 pc) {
  const Instruction *i = instruction(k, pc);
  return *table(k, i->c + interval_of_edges(k, i->a, i->b - 1, drawn_uniform(k, thread_at(k, thread)->attempt, i)));
}
INLINE Target *target_of(const Kernel *k, const Route *r, i64 target) { return target_at(k, r->first + target); }
/* Targets that are known to be down are left out, unless all are. */
INLINE int is_left_out(const Kernel *k, const Route *r, i64 target) {
  return r->avoid > 0 && target_of(k, r, target)->down > 0;
}
INLINE i64 first_of_least(const Kernel *k, const Route *r) {
  i64 target = NONE, least_value = 0;
  for (i64 each = 0; each < r->count; each++) {
    const Target *t = target_of(k, r, each);
    i64 value = r->policy == LEAST_LOADED ? t->inside : t->smoothed;
    if (is_left_out(k, r, each) || (target != NONE && value >= least_value)) continue;
    target = each;
    least_value = value;
  }
  return target;
}
INLINE i64 picked_target(Kernel *k, Route *r, i64 attempt, const Instruction *i) {
  i64 target = 0;
  switch (r->policy) {
    case ROUND_ROBIN: target = r->passed++ % r->count; break;
    case RANDOM: target = (i64)(drawn_uniform(k, attempt, i) * (f64)r->count); break;
    case TOKEN_AWARE: {
      u64 token = session_at(k, attempt_at(k, attempt)->session)->token;
      target = (i64)(uniform(token, 0) * (f64)r->count);
      break;
    }
    default: return first_of_least(k, r);
  }
  while (is_left_out(k, r, target)) target = target + 1 < r->count ? target + 1 : 0;
  return target;
}
/* A sticky session takes the target that it remembers, unless that is known to be down. */
INLINE i64 remembered_target(Kernel *k, Route *r, i64 attempt, const Instruction *i, i64 *memory) {
  if (*memory < 0 || target_of(k, r, *memory)->down) *memory = picked_target(k, r, attempt, i);
  return *memory;
}
INLINE i64 take_route(Kernel *k, i64 thread, i64 pc) {
  const Instruction *i = instruction(k, pc);
  i64 attempt = thread_at(k, thread)->attempt, session = attempt_at(k, attempt)->session, target;
  Route *r = route_at(k, i->a);
  if (r->sticky >= 0 && session_at(k, session)->sticky >= 0)
    target = remembered_target(k, r, attempt, i, sticky_target(k, session, r->sticky));
  else target = picked_target(k, r, attempt, i);
  target_of(k, r, target)->inside++;
  *local(k, thread, i->d) = header(k)->now;
  return *table(k, i->c + target);
}
/* Leave a target of a policy that learns from it. */
INLINE i64 leave_target(Kernel *k, i64 thread, i64 pc) {
  const Instruction *i = instruction(k, pc);
  Target *t = target_of(k, route_at(k, i->a), i->b);
  t->inside--;
  if (!i->d) {
    i64 took = header(k)->now - *local(k, thread, i->c);
    t->smoothed = t->smoothed < 0 ? took : t->smoothed + ((took - t->smoothed) >> 3);
  }
  return pc + 1;
}
