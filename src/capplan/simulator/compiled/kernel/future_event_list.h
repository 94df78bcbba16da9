/* The future event list: a heap of events with four children a node, ordered by (tick, rank), and the checks of
   processor-sharing stations, which precede all events of their tick.

   Waits of one fixed length end in the order in which they start. So a list keeps them, and only its first is in the
   heap. */
#pragma once
#include "records.h"

enum { LIST_SHIFT = 40 };                  /* in the load of an event: the list of waits, plus one, above the thread */
#define LATCH_EVENT (INT64_C(1) << 39)     /* in the load of an event: that of a countdown latch, below it its number */
#define POOL_EVENT (INT64_C(1) << 38)      /* the same for a pool, which gets a unit back */

INLINE EventKey event_key(i64 tick, i64 rank) { return (EventKey)(u64)tick << 64 | (u64)rank; }
INLINE EventKey key_of(const Event *e) { return event_key(e->tick, e->rank); }
INLINE int before(const Event *one, const Event *other) { return key_of(one) < key_of(other); }
INLINE i64 rank_of(i64 kind, const Thread *t, const Instruction *i) {
  return (kind << KIND_SHIFT) + t->rank + step_of(i);
}

INLINE void sift_up(Kernel *k, i64 place, Event added) {
  while (place > 0) {
    i64 parent = (place - 1) >> 2;
    if (before(event(k, parent), &added)) break;
    *event(k, place) = *event(k, parent);
    place = parent;
  }
  *event(k, place) = added;
}
INLINE void schedule(Kernel *k, i64 tick, i64 rank, i64 load) {
  sift_up(k, header(k)->event_count++, (Event){rank, tick, load});
}
/* The first child of a place. Behind the last event there are always four that never come. */
INLINE i64 earliest_child(const Kernel *k, i64 place) {
  i64 one = 4 * place + 1, other = one + 2;
  one += before(event(k, one + 1), event(k, one));
  other += before(event(k, other + 1), event(k, other));
  return one + (other - one) * before(event(k, other), event(k, one));
}
/* Put an event in the place of the first one. */
INLINE void replace_first_event(Kernel *k, i64 tick, i64 rank, i64 load) {
  Event added = {rank, tick, load};
  i64 count = header(k)->event_count, place = 0;
  while (4 * place + 1 < count) {
    i64 child = earliest_child(k, place);
    if (!before(event(k, child), &added)) break;
    *event(k, place) = *event(k, child);
    place = child;
  }
  *event(k, place) = added;
}
INLINE void remove_first_event(Kernel *k) {
  i64 count = --header(k)->event_count, place = 0;
  while (4 * place + 1 < count) { /* down to a leaf: the last event would nearly always go there */
    i64 child = earliest_child(k, place);
    *event(k, place) = *event(k, child);
    place = child;
  }
  sift_up(k, place, *event(k, count));
  event(k, count)->tick = NEVER;
}

/* Schedule the end of a wait of fixed length that goes into `list`, or into none. */
INLINE void schedule_in_list(Kernel *k, i64 tick, i64 rank, i64 load, i64 list) {
  if (list < 0) {
    schedule(k, tick, rank, load);
    return;
  }
  i64 waits = header(k)->wait_lists + list;
  const List *l = list_at(k, waits);
  if (l->head == NONE) schedule(k, tick, rank, load | (list + 1) << LIST_SHIFT);
  else if (node_at(k, l->tail)->a == tick && node_at(k, l->tail)->b > rank) { /* of one tick, but not in order */
    schedule(k, tick, rank, load);
    return;
  }
  append(k, waits, tick, rank, load);
}
/* Remove the first event, the end of a wait; the next one of its list takes its place. Return its load without the
   list. */
INLINE i64 take_wait(Kernel *k, i64 load) {
  i64 list = load >> LIST_SHIFT;
  if (list == 0) {
    remove_first_event(k);
    return load;
  }
  i64 waits = header(k)->wait_lists + list - 1;
  remove_head(k, waits);
  i64 next = list_at(k, waits)->head;
  if (next == NONE) remove_first_event(k);
  else replace_first_event(k, node_at(k, next)->a, node_at(k, next)->b, node_at(k, next)->c | list << LIST_SHIFT);
  return load & ((INT64_C(1) << LIST_SHIFT) - 1);
}

/* The checks: ticks by slot of a station, then the earliest of each block of slots, then the earliest of each block of
   those, and so on up to the earliest of all. Every level but the last fills whole blocks. */
INLINE Check *check_at(const Kernel *k, i64 place) {
  (void)check_word(k, place + 1);
  return (Check *)check_word(k, place);
}
INLINE Check *next_check(const Kernel *k) { return check_at(k, k->checks.count - 2); }
INLINE Check earliest_of_block(const Kernel *k, i64 first) {
  (void)check_word(k, first + BLOCK - 1);
  const i64 *ticks = check_word(k, first); /* two at a time, which may run side by side */
  i64 even = ticks[0], odd = ticks[1], even_at = 0, odd_at = 1;
  for (i64 place = 2; place < BLOCK; place += 2) {
    even_at = ticks[place] < even ? place : even_at;
    even = ticks[place] < even ? ticks[place] : even;
    odd_at = ticks[place + 1] < odd ? place + 1 : odd_at;
    odd = ticks[place + 1] < odd ? ticks[place + 1] : odd;
  }
  return odd < even ? (Check){odd, first + odd_at} : (Check){even, first + even_at};
}
INLINE Check earliest_child_check(const Kernel *k, i64 first) {
  Check best = *check_at(k, first);
  for (i64 place = first + 2; place < first + 2 * BLOCK; place += 2) {
    const Check *other = check_at(k, place);
    best = other->tick < best.tick ? *other : best;
  }
  return best;
}
/* Schedule the check of a station, in the place of the one that it has. */
INLINE void schedule_check(Kernel *k, i64 slot, i64 tick) {
  if (*check_word(k, slot) == tick) return;
  *check_word(k, slot) = tick;
  i64 level = header(k)->ps_slots, number = slot / BLOCK, slots = BLOCK;
  Check *mine = check_at(k, level + 2 * number);
  if (tick <= mine->tick) *mine = (Check){tick, slot};
  else if (mine->slot == slot) *mine = earliest_of_block(k, slot & ~(i64)(BLOCK - 1));
  else return;
  for (i64 size = header(k)->ps_slots / BLOCK; size > 1; size = size / BLOCK) {
    size = (size + BLOCK - 1) & ~(i64)(BLOCK - 1);
    Check *parent = check_at(k, level + 2 * size + 2 * (number / BLOCK));
    if (mine->tick <= parent->tick) *parent = *mine;
    else if (parent->slot / slots == number) *parent = earliest_child_check(k, level + 2 * (number & ~(i64)(BLOCK - 1)));
    else return;
    level += 2 * size;
    number /= BLOCK;
    slots *= BLOCK;
    mine = parent;
  }
}

/* A thread goes on, in its order, at the end of this tick's earlier events: a service that ended, something handed
   over. */
INLINE void schedule_service(Kernel *k, i64 thread) {
  if (thread == NONE) return;
  const Thread *t = thread_at(k, thread);
  schedule(k, header(k)->now, rank_of(SERVICE, t, instruction(k, t->pc)), thread);
}
INLINE void schedule_resume(Kernel *k, i64 thread, int dropped) {
  Thread *t = thread_at(k, thread);
  t->dropped = dropped;
  schedule(k, header(k)->now, rank_of(RESUME, t, instruction(k, t->pc)), thread);
}
