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
/* A thread of the same attempt, with the same first locals. */
INLINE i64 new_branch(Kernel *k, i64 parent, i64 pc, i64 join, i64 locals) {
  const Thread *p = thread_at(k, parent);
  i64 thread = new_thread(k, p->attempt, p->key, p->rank, pc, join, p->latch);
  for (i64 place = 0; place < locals; place++) *local(k, thread, place) = *local(k, parent, place);
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
