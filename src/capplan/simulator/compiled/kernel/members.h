/* Members of stations and pools with a count: picks, the replicas of a row, and comparisons (record 0006, Members). */
#pragma once
#include "route.h"

INLINE i64 pick(Kernel *k, i64 thread, i64 pc) {
  const Instruction *i = instruction(k, pc);
  Route *r = route_at(k, i->a);
  Candidates c = {r->count, NULL};
  if (i->b >= 0) {
    c.count = *local(k, thread, i->b);
    if (UNLIKELY(c.count == 0)) return i->unwind;
    c.list = local(k, thread, i->b + 1);
    (void)local(k, thread, i->b + c.count);
  }
  *local(k, thread, i->c) = enter_target(k, r, &c, thread, i);
  return pc + 1;
}
INLINE i64 leave_member(Kernel *k, i64 thread, i64 pc) {
  return leave(k, thread, pc, *local(k, thread, instruction(k, pc)->b));
}
/* Draw one member after another, without replacement: a draw counts only members that are left. `sorted` has the
   members so far in ascending order. */
INLINE void draw_members(i64 *members, i64 *sorted, const Replicas *r, u64 token, u64 key) {
  for (i64 place = 0; place < r->size; place++) {
    i64 member = (i64)(uniform(token, fold(key, place)) * (f64)(r->count - place)), at = 0;
    for (; at < place && member >= sorted[at]; at++) member++;
    members[place] = member;
    for (i64 last = place; last > at; last--) sorted[last] = sorted[last - 1];
    sorted[at] = member;
  }
}
INLINE void ring_members(i64 *members, const Replicas *r, u64 token) {
  i64 member = (i64)(uniform(token, 0) * (f64)r->count);
  for (i64 place = 0; place < r->size; place++) {
    members[place] = member;
    member = member + 1 < r->count ? member + 1 : 0;
  }
}
RARE i64 leave_out_down(const Kernel *k, i64 *members, const Replicas *r) {
  i64 left = 0;
  for (i64 place = 0; place < r->size; place++)
    if (!station_at(k, r->station + members[place])->known_down) members[left++] = members[place];
  return left;
}
INLINE void put_first(i64 *members, i64 count, i64 first) {
  for (i64 place = 1; place < count; place++) {
    if (members[place] != first) continue;
    for (; place > 0; place--) members[place] = members[place - 1];
    members[0] = first;
    return;
  }
}
INLINE i64 find_replicas(Kernel *k, i64 thread, i64 pc) {
  const Instruction *i = instruction(k, pc);
  (void)table(k, i->a + 4);
  const Replicas *r = (const Replicas *)table(k, i->a);
  u64 token = session_at(k, attempt_at(k, thread_at(k, thread)->attempt)->session)->token;
  i64 *set = local(k, thread, i->b), *members = set + 1, count = r->size;
  (void)local(k, thread, i->b + 2 * r->size);
  if (r->placement == RING) ring_members(members, r, token);
  else draw_members(members, members + r->size, r, token, i->key);
  if (UNLIKELY(header(k)->some_known_down && r->station >= 0)) count = leave_out_down(k, members, r);
  if (r->first >= 0) put_first(members, count, *local(k, thread, r->first));
  *set = count;
  return pc + 1;
}
