/* The visits in service at a processor-sharing station, ordered by the V at which they end. A station has two lists, of
   visits that a thread waits for and of detached ones. A list is sorted, the earliest last; a long one is a heap, from
   place 1 on. At place 0 stands a completion that never comes. */
#pragma once
#include "records.h"

enum { VISIT_BITS = 27, MOST_SORTED = 256, FEWEST_HEAPED = 96 };
#define VISIT_MASK ((UINT64_C(1) << VISIT_BITS) - 1)

INLINE Completion completion_of(i64 whole, i64 parts, u64 visit) {
  return (Completion)(u64)whole << 64 | ((u64)parts << VISIT_BITS | visit);
}
INLINE i64 whole_of(Completion c) { return (i64)(u64)(c >> 64); }
INLINE i64 parts_of(Completion c) { return (i64)((u64)c >> VISIT_BITS); }
INLINE int never_comes(Completion c) { return whole_of(c) == INT64_MAX; }

INLINE Completion *completions_of(const Kernel *k, const Station *s, int list) {
  (void)within(s->count[list], s->room, "the completions of a station");
  (void)completion(k, s->list_at[list] + s->room - 1);
  return completion(k, s->list_at[list]);
}
INLINE Completion first_completion(const Kernel *k, const Station *s, int list) {
  return completions_of(k, s, list)[s->heaped[list] ? 1 : s->count[list]];
}
INLINE int is_due(const Kernel *k, const Station *s, int list) {
  return first_completion(k, s, list) <= completion_of(s->whole, s->parts, VISIT_MASK);
}

RARE void make_heap(Completion *list, i64 count) {
  for (i64 place = 1; place <= count / 2; place++) { /* sorted the other way round, it is one */
    Completion other = list[place];
    list[place] = list[count + 1 - place];
    list[count + 1 - place] = other;
  }
}
RARE void sort(Completion *list, i64 count) {
  for (i64 place = 2; place <= count; place++) {
    Completion each = list[place];
    i64 other = place;
    for (; list[other - 1] < each; other--) list[other] = list[other - 1];
    list[other] = each;
  }
}
RARE void add_to_heap(Completion *list, Station *s, int which, Completion added) {
  i64 place = s->count[which];
  if (!s->heaped[which]) {
    make_heap(list, place - 1);
    s->heaped[which] = 1;
  }
  for (; place > 1 && added < list[place >> 1]; place >>= 1) list[place] = list[place >> 1];
  list[place] = added;
}
RARE void remove_first_of_heap(Completion *list, Station *s, int which) {
  i64 count = s->count[which], place = 1; /* already without it */
  Completion last = list[count + 1];
  for (i64 child = 2; child <= count; child = 2 * place) {
    child += child < count && list[child + 1] < list[child];
    if (last < list[child]) break;
    list[place] = list[child];
    place = child;
  }
  list[place] = last;
  if (count == FEWEST_HEAPED) {
    sort(list, count);
    s->heaped[which] = 0;
  }
}

INLINE void add_completion(Kernel *k, Station *s, int which, i64 demand, i64 thread, i64 joined, i64 aside) {
  i64 visit = ALLOCATE(k, visits, visit_at);
  *visit_at(k, visit) = (Visit){0, (i32)thread, joined, aside};
  Completion added = completion_of(s->whole + demand, s->parts, (u64)visit);
  i64 place = ++s->count[which];
  Completion *list = completions_of(k, s, which);
  s->served++;
  if (UNLIKELY(place > MOST_SORTED || s->heaped[which])) {
    add_to_heap(list, s, which, added);
    return;
  }
  for (; list[place - 1] < added; place--) list[place] = list[place - 1];
  list[place] = added;
}
/* Remove the first completion and free its visit, which still holds what it held. */
INLINE const Visit *remove_first_completion(Kernel *k, Station *s, int which) {
  i64 visit = (i64)((u64)first_completion(k, s, which) & VISIT_MASK);
  s->served--;
  s->count[which]--;
  if (UNLIKELY(s->heaped[which])) remove_first_of_heap(completions_of(k, s, which), s, which);
  FREE(k, visits, visit_at, visit);
  return visit_at(k, visit);
}
