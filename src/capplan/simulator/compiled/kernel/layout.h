/* What the arrays of a run hold. Python makes them (`layout.py`), and compares the description at the end of this file
   with its own when the library is loaded.

   Times are ticks. `i32` holds whole numbers that cannot outgrow 31 bits: numbers of records and counts of them. Times,
   keys and sums have 64 bits. Records that are allocated and freed begin with `next`: the next free one. */
#pragma once
#include <stddef.h>
#include <stdint.h>

typedef int32_t i32;
typedef int64_t i64;
typedef uint64_t u64;
typedef double f64;
/* An event's place in the total order: the tick above the rank. */
typedef unsigned __int128 EventKey __attribute__((aligned(8)));
/* Where a visit ends on the scale of V: whole ticks in the upper 64 bits, then parts of one (37 bits), then the number
   of the visit (27). */
typedef unsigned __int128 Completion __attribute__((aligned(8)));

#define NEVER (INT64_C(1) << 62)
enum { NONE = -1 };

/* An event's rank: kind, number of the attempt (or session, timeline event, station), step. */
enum { STEP_BITS = 20, KIND_SHIFT = 60 };
enum EventKind { RESUME, CHANGE, PROCESS, SERVICE, DELAY, TIMEOUT, START };

/* What `advance` returns. */
enum Outcome { REACHED, ROOM_NEEDED, TRACE_FULL, FINISHED, FAULT };

/* Instructions, with what their operands A, B, C and D hold. A branch stands in the table as its first instruction and
   the countdown latches that it may signal: bit n for the n-th latch outwards. */
enum Operation {
  VISIT_FIXED_RATE,       /* A station, B distribution, D local of the member (of A and the stations after it) or -1 */
  VISIT_PROCESSOR_SHARING, /* the same, C 1 when a visit that nobody waits for follows there */
  SEND_FIXED_RATE,        /* as VISIT_FIXED_RATE: a visit that nobody waits for */
  SEND_PROCESSOR_SHARING, /* the same; the step is that of the visit before, if there is one */
  SEND_KEEPING,           /* as SEND_FIXED_RATE, to a station with one server; C place in the table of a Kept */
  VISIT_LAST,             /* A station, B distribution: fixed rate, and the request is done when it ends */
  WAIT,                   /* A distribution, B scale of the delay */
  WAIT_FIXED,             /* A place of the ticks in the table, B list of such waits or -1, C 1 when a signal ends it */
  WAIT_LAST,              /* A distribution: the request is done when it is over */
  ACQUIRE,                /* A pool, B local that keeps since when, C local of the member or -1 */
  RELEASE,                /* the same */
  FORK,                   /* A place of the branches in the table, B how many, C needed, D place of a list of locals */
  FAN_OUT,                /* A local of the set, B place in the table of a FanOut, C needed */
  JOIN,
  LATCH,                  /* A place of the groups' needs in the table, B how many, C needed */
  SIGNAL,                 /* A latches outwards, B group */
  AWAIT,
  UNLATCH,
  CHOICE,                 /* A place of the edges in the numbers, B how many, C place of the jumps in the table */
  ROUTE,                  /* A route, B targets, C place of the jumps, D local */
  LEAVE,                  /* A route, B target, C local, D 1 when dropped */
  PICK,                   /* A route, B local of the set or -1, C local of the member, D local as for ROUTE */
  LEAVE_MEMBER,           /* A route, B local of the member, C local, D 1 when dropped */
  REPLICAS,               /* A place in the table of a Placement, B local of the set, behind which there is room for as many members */
  UNLESS_AMONG,           /* A local of the member, B local of a member or set, C 1 for a set, D jump if it is not */
  JUMP,                   /* A instruction */
  HEDGE,                  /* A place of both branches in the table, and then of the time after which the spare starts,
                             B place of a list of locals */
  HEDGE_SPARE,            /* the same */
  SPARE_DUE,              /* A latches */
  BATCH,                  /* A batch, B size, C place of the longest wait in the table, D start of the step */
  BATCH_DUE,              /* A batch */
  BATCH_DONE,             /* D 1 when dropped */
  END,                    /* A latches */
  FAIL,                   /* A latches */
  DONE,
  LOST,
  ASSIGN,                 /* A first station, B local that gets the number of the lane, D local of the member or -1 */
};

enum StationKind { FIXED_RATE, SHARED, QUEUED }; /* the latter two use the mechanism of processor sharing */
enum TrafficKind { POISSON, BURSTY, TRACE, CLOSED, THROTTLED };
enum RoutePolicy { ROUND_ROBIN, RANDOM, LEAST_LOADED, TOKEN_AWARE, LATENCY_RANKED, FIRST };
enum Placement { RING, DRAWN };
enum DistributionKind { CONSTANT, TABLE, EMPIRICAL, MIXTURE };
enum Status { STARTED, COMPLETED, DROPPED, TIMED_OUT, STATUSES };
enum { SPEEDS = 4 };      /* factors on a station: own speed, own cold speed, host's speed, host's cold speed */
enum { BLOCK = 16 };      /* of so many checks the earliest is kept */
enum { MOST_SIGNALS = 8 }; /* on their way to a countdown latch that one event stands for */
enum { TRACE_COLUMNS = 10 };

/* ---- a network, lowered ---- */

typedef struct { u64 key; i32 op_step, a, b, c, d, unwind; } Instruction; /* 32 bytes: two in a cache line */
/* In the table: where the branches start, the latches that each may signal, how many members have one at most, by how
   much the ranks of neighbours differ, and the branch's local of the member. A list of locals stands behind it. */
typedef struct { i64 start, levels, contacted, stride, member; } FanOut;
/* In the table: the first station or -1, how many members, of how many replicas, an enum Placement, and the local of the
   member that comes first or -1. */
typedef struct { i64 station, count, size, placement, first; } Replicas;
/* In the table, for a visit that keeps a unit until its end: the pool, the local that keeps since when, and the countdown
   latches that the branch which goes on may signal, and those that the one may which ends with the visit. */
typedef struct { i64 pool, since, starts, ends; } Kept;
/* `ticks` of a constant; of a table the bits of a piece's number; of a mixture the place of its parts. */
typedef struct { i64 kind, ticks, first, count; f64 scale; } Distribution;
typedef struct { i64 key, count, classes, gaps, sticky; } Source; /* what starts: a session or a request class */
typedef struct { i64 start, timeout, attempts, backoffs; } RequestClass;
typedef struct { i64 kind, key, end, clients, think, trace, trace_limit, exponential; } Traffic;
typedef struct { f64 rate, pacing, burst, fraction, burst_length, quiet, quiet_length; } Rates;

/* ---- records that are allocated and freed ---- */

typedef struct { i64 first, left; } FreeList;
/* Work in progress: it stands at an instruction, or waits there. Key and rank are those of the attempt, or of a branch
   of a fan-out. Its locals are times since when, members, and sets (their size, then their members). A branch begins
   with copies of some locals of its parent: the table has a list of how many, and which. */
typedef struct { i32 next, pc, attempt, join, latch, wait, batch, dropped; u64 key; i64 rank; } Thread;
/* An attempt at a request, until its last thread has ended. */
typedef struct { u64 key; i64 rank; i32 next, session, request_class, threads, ended; } Attempt;
/* A session, or single request, in progress, and the request that it has come to. */
typedef struct {
  i32 next, users, source, place, attempt, open, sticky;
  i64 unit, first, row, intended, start;
  u64 key, token;
  i64 pacing_tick, began;
} Session;
typedef struct { i32 next, needed, spare, owner, users; } ForkJoin;
/* Signals that are on their way, and end their branch, are no events of their own: the latch keeps the keys of the
   first that it needs, and has one event, `due`, for the last of these. Nor are the ends of branches that are known, but
   bring no signal: `last` is the latest of them. */
typedef struct {
  i32 next, outer, needed, working, owner, users, coming, pending;
  EventKey due, last, keys[MOST_SIGNALS];
} CountdownLatch;
typedef struct { i32 next, count, started, users; } Batch;
typedef struct { i32 next, thread; i64 joined, aside; } Visit; /* in service at a processor-sharing station */
typedef struct { i32 next; i64 a, b, c; } Node; /* of a list */

/* ---- other state ---- */

typedef struct {
  i64 now, now_rank, events, stop_idle;
  EventKey reached;    /* the greatest key of an event so far: an event of this tick may schedule some before itself */
  i64 some_known_down; /* stations, whether or not any */
  i64 room_needed, margin; /* one event needs at most `margin` records of a kind */
  i64 event_count, ready, ps_slots;
  FreeList threads, attempts, sessions, joins, latches, batches, nodes, visits;
  i64 pool_lists, kept_lists, class_lists, wait_lists, batch_lists; /* number of the first list of each kind */
  i64 attempts_started, requests_started, most_requests;
  i64 arrival, unit, segment, arrival_at, bursting, phase, phase_end;
  u64 arrival_key;
  i64 traced, marked, interval, interval_end, clocks;
  i64 over, over_attempt, over_tick; /* how the request of the current event ended, if it did */
  i64 station_rows; /* of the tally: stations without their further lanes */
} Header;

typedef struct { i64 rank, tick, load; } Event;
typedef struct { i64 tick, slot; } Check;
typedef struct { i32 head, tail; } List;
/* A lane. The first lane of a station has the station's number, and knows the number of the second. */
typedef struct {
  i64 since, whole, parts, sigma, busy_ticks, queued_ticks; /* V and sums, right at tick `since` */
  i32 served, servers, count[2];                            /* up to here one cache line */
  i32 heaped[2], kind, plain, host, slot, waiting, known_down, rates, rate_count, paused, down;
  i32 processes, process_count, server_free, lazy;
  i32 row, assignment, lanes, further_lanes; /* row: of the tally; assignment: an enum RoutePolicy */
  i64 expiry, paused_since;
  i64 visits, waited, responded; /* since the last flush, all in this interval */
  i64 list_at[2], room;          /* of its completions, awaited and detached; that at place 0 never comes */
  i64 assigned;                  /* visits that took turns */
} Station;
enum Waiting { AWAITED, DETACHED }; /* whether a thread waits for the end of a visit */
typedef struct { i64 cores, busy, count; } Host;
typedef struct {
  i64 station, background, runs, number;
  u64 key;
  i64 every, length;
  u64 every_key, length_key;
  i64 rank;
} StationProcess;
typedef struct { i64 size, free, limit, waiting, since, shift, due; } Pool; /* `due`: an event gives a unit back */
typedef struct { i64 policy, count, passed, sticky, avoid, first, weighted; } Route;
typedef struct { i64 inside, smoothed, down; f64 weight; } Target;

/* ---- what is counted; the columns are those of `results/tally.py` ---- */

typedef struct { i64 high, low; } Pair; /* high * 2**40 + low */
typedef struct { i64 requests[STATUSES], latency; } ClassSeries;
typedef struct { i64 requests[STATUSES], retries; Pair response, number, latency[2]; i64 longest[2]; } ClassTotals;
typedef struct { i64 queued, busy; } PlaceSeries; /* of a station or pool */
typedef struct { i64 visits; Pair waited, responded; i64 drops, paused; } StationTotals;
typedef struct { i64 acquired, drops; Pair waited, held; } PoolTotals;
typedef struct { i64 start, end, process; } Mark;

/* ---- all arrays of a run ---- */

#define ARRAY(Type) struct { Type *first; i64 count, width; } /* `width`: the length of the last axis */

typedef struct {
  /* the program */
  ARRAY(const Instruction) code;
  ARRAY(const i64) table;
  ARRAY(const Distribution) distributions;
  ARRAY(const f64) numbers;
  ARRAY(const i64) parts;
  ARRAY(const Source) sources;
  ARRAY(const RequestClass) classes;
  ARRAY(const Traffic) traffic;
  ARRAY(const Rates) rates;
  ARRAY(const i64) segments;
  ARRAY(const f64) multipliers;
  ARRAY(const i64) host_stations;
  ARRAY(const i64) ps_stations;
  ARRAY(const i64) bounds;
  /* the state */
  ARRAY(Header) header;
  ARRAY(Event) events;
  ARRAY(i64) checks;
  ARRAY(Thread) threads;
  ARRAY(i64) locals;
  ARRAY(Attempt) attempts;
  ARRAY(Session) sessions;
  ARRAY(i64) sticky;
  ARRAY(ForkJoin) joins;
  ARRAY(CountdownLatch) latches;
  ARRAY(i64) missing;
  ARRAY(Batch) batches;
  ARRAY(Visit) visits;
  ARRAY(Node) nodes;
  ARRAY(List) lists;
  ARRAY(Station) stations;
  ARRAY(f64) speeds;
  ARRAY(Completion) completions;
  ARRAY(i64) server_free;
  ARRAY(Host) hosts;
  ARRAY(StationProcess) processes;
  ARRAY(Pool) pools;
  ARRAY(Route) routes;
  ARRAY(Target) targets;
  ARRAY(i64) pacing_ticks;
  ARRAY(i64) gathering;
  ARRAY(f64) scales;
  ARRAY(ClassSeries) class_series;
  ARRAY(ClassTotals) class_totals;
  ARRAY(i64) histograms;
  ARRAY(PlaceSeries) station_series;
  ARRAY(StationTotals) station_totals;
  ARRAY(PlaceSeries) pool_series;
  ARRAY(PoolTotals) pool_totals;
  ARRAY(i64) pool_busy;
  ARRAY(i64) trace;
  ARRAY(Mark) marks;
} Kernel;
