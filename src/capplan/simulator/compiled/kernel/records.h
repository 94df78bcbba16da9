/* Records that are allocated and freed, and lists. Before every event there are at least `margin` free records of each
   kind, so allocation cannot fail; when fewer are left, the kernel returns before the next event and Python enlarges
   the arrays. */
#pragma once
#include "arrays.h"

#define ALLOCATE(k, name, at) allocate(k, &header(k)->name, &at(k, header(k)->name.first)->next)
#define FREE(k, name, at, record) give_back(&header(k)->name, &at(k, record)->next, record)

INLINE i64 allocate(Kernel *k, FreeList *free, const i32 *next) {
  i64 record = free->first;
  free->first = *next;
  if (UNLIKELY(--free->left < header(k)->margin)) header(k)->room_needed = 1;
  return record;
}
INLINE void give_back(FreeList *free, i32 *next, i64 record) {
  *next = (i32)free->first;
  free->first = record;
  free->left++;
}

INLINE i64 new_thread(Kernel *k, i64 attempt, u64 key, i64 rank, i64 pc, i64 join, i64 latch) {
  i64 thread = ALLOCATE(k, threads, thread_at);
  Thread *t = thread_at(k, thread);
  t->pc = (i32)pc;
  t->attempt = (i32)attempt;
  t->key = key;
  t->rank = rank;
  t->join = (i32)join;
  t->latch = (i32)latch;
  t->dropped = 0;
  attempt_at(k, attempt)->threads++;
  return thread;
}
/* A thread of the same attempt. `copied` is the place of a list of locals. */
INLINE i64 new_branch(Kernel *k, i64 parent, i64 pc, i64 join, i64 copied) {
  const Thread *p = thread_at(k, parent);
  i64 thread = new_thread(k, p->attempt, p->key, p->rank, pc, join, p->latch);
  const i64 *list = table(k, copied);
  i64 *to = local(k, thread, 0);
  (void)table(k, copied + list[0]);
  for (i64 place = 0; place < list[0]; place++) to[place] = *local(k, parent, list[1 + place]);
  return thread;
}
INLINE i64 member_in(const Kernel *k, i64 thread, i64 place) { return place < 0 ? 0 : *local(k, thread, place); }
INLINE void release_session(Kernel *k, i64 session) {
  if (--session_at(k, session)->users == 0) FREE(k, sessions, session_at, session);
}
INLINE void end_thread(Kernel *k, i64 thread) {
  i64 attempt = thread_at(k, thread)->attempt;
  FREE(k, threads, thread_at, thread);
  if (--attempt_at(k, attempt)->threads > 0) return;
  release_session(k, attempt_at(k, attempt)->session);
  FREE(k, attempts, attempt_at, attempt);
}
/* Let a thread run within this event, before those that are ready already. */
INLINE void make_ready(Kernel *k, i64 thread) {
  thread_at(k, thread)->next = (i32)header(k)->ready;
  header(k)->ready = thread;
}

/* Go on behind the instruction if a member is another one, or in a set. */
INLINE i64 unless_among(const Kernel *k, i64 thread, i64 pc) {
  const Instruction *i = instruction(k, pc);
  i64 member = *local(k, thread, i->a), count = 1, first = i->b;
  if (i->c) count = *local(k, thread, first++);
  for (i64 place = 0; place < count; place++)
    if (*local(k, thread, first + place) == member) return pc + 1;
  return i->d;
}

INLINE void append(Kernel *k, i64 list, i64 a, i64 b, i64 c) {
  i64 node = ALLOCATE(k, nodes, node_at);
  Node *n = node_at(k, node);
  List *l = list_at(k, list);
  n->next = NONE;
  n->a = a;
  n->b = b;
  n->c = c;
  if (l->head == NONE) l->head = (i32)node;
  else node_at(k, l->tail)->next = (i32)node;
  l->tail = (i32)node;
}
INLINE void remove_head(Kernel *k, i64 list) {
  i64 node = list_at(k, list)->head;
  list_at(k, list)->head = node_at(k, node)->next;
  FREE(k, nodes, node_at, node);
}
