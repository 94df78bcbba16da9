/* Sessions and their requests: starts, timeouts, retries, ends, and the clients of closed and throttled traffic (record
   0006, Traffic; Timeouts and retries; The end). */
#pragma once
#include "records.h"
#include "traffic.h"
#include "visit.h"

INLINE i64 drawn_source(const Kernel *k, i64 tick, u64 key) {
  i64 source_number = 0, last = k->sources.count - 1;
  if (last == 0) return 0;
  f64 u = uniform(key, KEY_MIX);
  i64 segment = segment_at(k, tick);
  while (source_number < last && *multiplier(k, segment, EDGES + source_number) <= u) source_number++;
  return source_number;
}
/* Open a session; `first` is the position of its first request among those of its client. */
INLINE i64 open_session(Kernel *k, i64 unit, i64 first, i64 tick, u64 key) {
  i64 session = ALLOCATE(k, sessions, session_at), source_number = drawn_source(k, tick, key);
  Session *s = session_at(k, session);
  s->users = 1;
  s->source = (i32)source_number;
  s->unit = unit;
  s->first = first;
  s->place = s->attempt = s->open = 0;
  s->pacing_tick = s->began = NONE;
  s->sticky = (i32)source(k, source_number)->sticky;
  for (i64 place = 0; place < k->sticky.width; place++) *sticky_target(k, session, place) = NONE;
  return session;
}
INLINE i64 arrive(Kernel *k) {
  Header *h = header(k);
  i64 session = open_session(k, h->unit, 0, h->now, h->arrival_key);
  h->unit++;
  schedule_arrival(k);
  return session;
}
/* Let the session's request, or its next attempt, start at `tick`, if that is before the end of the traffic. */
INLINE int start_at(Kernel *k, i64 session, i64 tick) {
  if (tick >= traffic(k)->end) return 0;
  const Session *s = session_at(k, session);
  i64 position = (s->first + s->place) & ((1 << STEP_BITS) - 1);
  schedule(k, tick, (i64)START << KIND_SHIFT | s->unit << STEP_BITS | position, session);
  return 1;
}

/* Timeouts: a class's timeouts are one length, so a list keeps them and only the first has an event. */
INLINE i64 timeout_list(const Kernel *k, i64 class_number) { return header(k)->class_lists + class_number; }
INLINE void schedule_timeout(Kernel *k, i64 tick, i64 rank, i64 class_number) {
  schedule(k, tick, (i64)TIMEOUT << KIND_SHIFT | rank, class_number);
}
INLINE void set_timeout(Kernel *k, i64 class_number, i64 tick, i64 attempt) {
  i64 list = timeout_list(k, class_number), rank = attempt_at(k, attempt)->rank;
  if (list_at(k, list)->head == NONE) schedule_timeout(k, tick, rank, class_number);
  append(k, list, tick, rank, attempt);
}
/* The attempt that the first timeout is for, unless it has ended. */
INLINE i64 attempt_of_first_timeout(const Kernel *k, i64 list) {
  const Node *n = node_at(k, list_at(k, list)->head);
  const Attempt *a = attempt_at(k, n->c);
  return a->rank == n->b && !a->ended ? n->c : NONE;
}
RARE i64 time_out(Kernel *k, i64 class_number) {
  i64 list = timeout_list(k, class_number), attempt = attempt_of_first_timeout(k, list);
  remove_head(k, list);
  while (list_at(k, list)->head != NONE && attempt_of_first_timeout(k, list) == NONE) remove_head(k, list);
  i64 next = list_at(k, list)->head;
  if (next != NONE) schedule_timeout(k, node_at(k, next)->a, node_at(k, next)->b, class_number);
  return attempt;
}

/* The first attempt at a request: what is counted of the request starts here. */
INLINE void open_request(Kernel *k, Session *s, i64 class_number) {
  Header *h = header(k);
  s->row = h->requests_started++;
  if (h->requests_started == h->most_requests) h->arrival_at = NEVER;
  s->open = 1;
  s->start = s->intended = h->now;
  if (s->began == NONE) {
    s->began = h->now;
    if (s->pacing_tick != NONE) s->intended = s->pacing_tick;
  }
  s->key = fold(fold((u64)source(k, s->source)->key, s->unit), s->first + s->place);
  class_series(k, h->interval, class_number)->requests[STARTED]++;
  class_totals(k, h->interval, class_number)->requests[STARTED]++;
}
INLINE i64 open_attempt(Kernel *k, i64 session, i64 class_number, u64 key) {
  i64 attempt = ALLOCATE(k, attempts, attempt_at), timeout = request_class(k, class_number)->timeout;
  Attempt *a = attempt_at(k, attempt);
  a->rank = header(k)->attempts_started++ << STEP_BITS;
  a->key = key;
  a->session = (i32)session;
  a->request_class = (i32)class_number;
  a->threads = a->ended = 0;
  session_at(k, session)->users++;
  if (timeout != NEVER) set_timeout(k, class_number, header(k)->now + timeout, attempt);
  return attempt;
}
INLINE void end_session_request(Kernel *k, i64 session, i64 class_number, i64 status, i64 tick);
/* Start a request, or another attempt at it; return the thread that runs its flow, if it may start. */
INLINE i64 start(Kernel *k, i64 session) {
  Header *h = header(k);
  Session *s = session_at(k, session);
  i64 class_number = *table(k, source(k, s->source)->classes + s->place);
  if (s->attempt == 0) {
    if (h->requests_started >= h->most_requests) {
      release_session(k, session);
      return NONE;
    }
    open_request(k, s, class_number);
  }
  u64 key = fold(s->key, s->attempt);
  if (s->place == 0 && s->attempt == 0) s->token = key;
  i64 pc = request_class(k, class_number)->start;
  const Instruction *i = instruction(k, pc);
  if (operation_of(i) == VISIT_LAST || operation_of(i) == WAIT_LAST) { /* the whole flow: no records are needed */
    h->attempts_started++;
    end_session_request(k, session, class_number, COMPLETED, end_of_last_step(k, i, key));
    return NONE;
  }
  i64 attempt = open_attempt(k, session, class_number, key);
  return new_thread(k, attempt, key, attempt_at(k, attempt)->rank, pc, NONE, NONE);
}

/* A client of closed traffic thinks, then starts a session. */
static void think(Kernel *k, i64 unit, i64 position, i64 tick, i64 least_ticks) {
  u64 key = attempt_key((u64)traffic(k)->key, unit, position, 0);
  i64 session = open_session(k, unit, position, tick, key);
  i64 ticks = drawn_ticks(k, traffic(k)->think, key, KEY_THINK);
  f64 factor = *multiplier(k, segment_at(k, tick), MULTIPLIER);
  if (factor != 1.0) ticks = rounded((f64)ticks / factor);
  if (!start_at(k, session, tick + (ticks > least_ticks ? ticks : least_ticks))) release_session(k, session);
}
/* A client of throttled traffic starts a session at its next pacing tick, or at `tick` when that is later. */
static void await_pacing_tick(Kernel *k, i64 unit, i64 position, i64 tick) {
  i64 tick_number = (*pacing_number(k, unit))++;
  i64 due = operational_tick(k, (f64)(tick_number * traffic(k)->clients + unit) * rates(k)->pacing);
  i64 session = open_session(k, unit, position, due, attempt_key((u64)traffic(k)->key, unit, position, 0));
  session_at(k, session)->pacing_tick = due;
  if (!start_at(k, session, due > tick ? due : tick)) release_session(k, session);
}

/* Try again, if the class allows it and the traffic has not ended. */
INLINE int retry(Kernel *k, i64 session, i64 class_number, i64 tick) {
  Session *s = session_at(k, session);
  const RequestClass *c = request_class(k, class_number);
  i64 attempt = s->attempt;
  if (attempt + 1 >= c->attempts || tick + *table(k, c->backoffs + attempt) >= traffic(k)->end) return 0;
  s->attempt++;
  return start_at(k, session, tick + *table(k, c->backoffs + attempt));
}
INLINE void end_session(Kernel *k, i64 session, i64 tick) {
  const Session *s = session_at(k, session);
  i64 unit = s->unit, position = s->first + s->place + 1, kind = traffic(k)->kind;
  int took_no_time = s->began == tick;
  release_session(k, session);
  if (kind == CLOSED) think(k, unit, position, tick, took_no_time);
  else if (kind == THROTTLED) await_pacing_tick(k, unit, position, tick);
}
/* An attempt of a session has ended at `tick`: try again, go on to the next request, or end the session. */
INLINE void end_session_request(Kernel *k, i64 session, i64 class_number, i64 status, i64 tick) {
  Session *s = session_at(k, session);
  if (status != COMPLETED && retry(k, session, class_number, tick)) return;
  count_request(k, s, class_number, status, tick);
  s->open = 0;
  const Source *mine = source(k, s->source);
  if (status != COMPLETED || s->place + 1 >= mine->count) {
    end_session(k, session, tick);
    return;
  }
  i64 gap = drawn_ticks(k, *table(k, mine->gaps + s->place), fold(s->key, 0), KEY_GAP);
  s->place++;
  s->attempt = 0;
  if (!start_at(k, session, tick + gap)) release_session(k, session);
}
INLINE void end_attempt(Kernel *k, i64 attempt, i64 status, i64 tick) {
  Attempt *a = attempt_at(k, attempt);
  a->ended = 1;
  end_session_request(k, a->session, a->request_class, status, tick);
}
