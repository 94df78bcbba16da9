/* What Python compares with its own layout when it loads the library: sizes and offsets of all records, where the
   arrays of a run stand, and the numbers that both sides know by name. */
#pragma once
#include "layout.h"

typedef struct { const char *name; i64 offset, size; } Described;

#ifndef SOURCE_DIGEST /* of the C files, from the build */
#define SOURCE_DIGEST unknown
#endif
#define QUOTED_AGAIN(text) #text
#define QUOTED(text) QUOTED_AGAIN(text)
#define DIGEST QUOTED(SOURCE_DIGEST)

#define RECORD(Type) {#Type, 0, sizeof(Type)}
#define FIELD(Type, field) {#Type "." #field, offsetof(Type, field), sizeof(((Type *)0)->field)}
#define IN_KERNEL(array) {"Kernel." #array, offsetof(Kernel, array), sizeof *((Kernel *)0)->array.first}
#define VALUE(name) {"=" #name, name, 0}

static const Described description[] = {
    RECORD(Instruction), FIELD(Instruction, key), FIELD(Instruction, op_step), FIELD(Instruction, a),
    FIELD(Instruction, b), FIELD(Instruction, c), FIELD(Instruction, d), FIELD(Instruction, unwind),
    RECORD(Distribution), FIELD(Distribution, kind), FIELD(Distribution, ticks), FIELD(Distribution, first),
    FIELD(Distribution, count), FIELD(Distribution, scale),
    RECORD(Source), FIELD(Source, key), FIELD(Source, count), FIELD(Source, classes), FIELD(Source, gaps),
    FIELD(Source, sticky),
    RECORD(RequestClass), FIELD(RequestClass, start), FIELD(RequestClass, timeout), FIELD(RequestClass, attempts),
    FIELD(RequestClass, backoffs),
    RECORD(Traffic), FIELD(Traffic, kind), FIELD(Traffic, key), FIELD(Traffic, end), FIELD(Traffic, clients),
    FIELD(Traffic, think), FIELD(Traffic, trace), FIELD(Traffic, trace_limit), FIELD(Traffic, exponential),
    RECORD(Rates), FIELD(Rates, rate), FIELD(Rates, pacing), FIELD(Rates, burst), FIELD(Rates, fraction),
    FIELD(Rates, burst_length), FIELD(Rates, quiet), FIELD(Rates, quiet_length),
    RECORD(FreeList), FIELD(FreeList, first), FIELD(FreeList, left),
    RECORD(Thread), FIELD(Thread, next), FIELD(Thread, pc), FIELD(Thread, attempt), FIELD(Thread, join),
    FIELD(Thread, latch), FIELD(Thread, wait), FIELD(Thread, batch), FIELD(Thread, dropped),
    FIELD(Thread, key), FIELD(Thread, rank),
    RECORD(Attempt), FIELD(Attempt, key), FIELD(Attempt, rank), FIELD(Attempt, next), FIELD(Attempt, session),
    FIELD(Attempt, request_class), FIELD(Attempt, threads), FIELD(Attempt, ended),
    RECORD(Session), FIELD(Session, next), FIELD(Session, users), FIELD(Session, source), FIELD(Session, place),
    FIELD(Session, attempt), FIELD(Session, open), FIELD(Session, sticky), FIELD(Session, unit), FIELD(Session, first),
    FIELD(Session, row), FIELD(Session, intended), FIELD(Session, start), FIELD(Session, key), FIELD(Session, token),
    FIELD(Session, pacing_tick), FIELD(Session, began),
    RECORD(ForkJoin), FIELD(ForkJoin, next), FIELD(ForkJoin, needed), FIELD(ForkJoin, spare), FIELD(ForkJoin, owner),
    FIELD(ForkJoin, users),
    RECORD(CountdownLatch), FIELD(CountdownLatch, next), FIELD(CountdownLatch, outer), FIELD(CountdownLatch, needed),
    FIELD(CountdownLatch, working), FIELD(CountdownLatch, owner), FIELD(CountdownLatch, users),
    FIELD(CountdownLatch, coming), FIELD(CountdownLatch, pending), FIELD(CountdownLatch, due), FIELD(CountdownLatch, last),
    FIELD(CountdownLatch, keys),
    RECORD(Batch), FIELD(Batch, next), FIELD(Batch, count), FIELD(Batch, started), FIELD(Batch, users),
    RECORD(Visit), FIELD(Visit, next), FIELD(Visit, thread), FIELD(Visit, joined), FIELD(Visit, aside),
    RECORD(Node), FIELD(Node, next), FIELD(Node, a), FIELD(Node, b), FIELD(Node, c),
    RECORD(Header), FIELD(Header, now), FIELD(Header, now_rank), FIELD(Header, events), FIELD(Header, stop_idle),
    FIELD(Header, reached), FIELD(Header, some_known_down), FIELD(Header, room_needed), FIELD(Header, margin), FIELD(Header, event_count), FIELD(Header, ready),
    FIELD(Header, ps_slots), FIELD(Header, threads), FIELD(Header, attempts), FIELD(Header, sessions),
    FIELD(Header, joins), FIELD(Header, latches), FIELD(Header, batches), FIELD(Header, nodes), FIELD(Header, visits),
    FIELD(Header, pool_lists), FIELD(Header, kept_lists), FIELD(Header, class_lists), FIELD(Header, wait_lists), FIELD(Header, batch_lists),
    FIELD(Header, attempts_started), FIELD(Header, requests_started), FIELD(Header, most_requests),
    FIELD(Header, arrival), FIELD(Header, unit), FIELD(Header, segment), FIELD(Header, arrival_at),
    FIELD(Header, bursting), FIELD(Header, phase), FIELD(Header, phase_end), FIELD(Header, arrival_key),
    FIELD(Header, traced), FIELD(Header, marked), FIELD(Header, interval), FIELD(Header, interval_end),
    FIELD(Header, clocks), FIELD(Header, over), FIELD(Header, over_attempt), FIELD(Header, over_tick),
    RECORD(Event), FIELD(Event, rank), FIELD(Event, tick), FIELD(Event, load),
    RECORD(Check), FIELD(Check, tick), FIELD(Check, slot),
    RECORD(List), FIELD(List, head), FIELD(List, tail),
    RECORD(Station), FIELD(Station, since), FIELD(Station, whole), FIELD(Station, parts), FIELD(Station, sigma),
    FIELD(Station, busy_ticks), FIELD(Station, queued_ticks), FIELD(Station, served), FIELD(Station, servers),
    FIELD(Station, count), FIELD(Station, heaped), FIELD(Station, kind), FIELD(Station, plain), FIELD(Station, host),
    FIELD(Station, slot), FIELD(Station, waiting), FIELD(Station, known_down), FIELD(Station, rates),
    FIELD(Station, rate_count), FIELD(Station, paused), FIELD(Station, down), FIELD(Station, processes),
    FIELD(Station, process_count), FIELD(Station, server_free), FIELD(Station, lazy), FIELD(Station, expiry),
    FIELD(Station, paused_since), FIELD(Station, visits), FIELD(Station, waited), FIELD(Station, responded),
    FIELD(Station, list_at), FIELD(Station, room),
    RECORD(Host), FIELD(Host, cores), FIELD(Host, busy), FIELD(Host, count),
    RECORD(StationProcess), FIELD(StationProcess, station), FIELD(StationProcess, background),
    FIELD(StationProcess, runs), FIELD(StationProcess, number), FIELD(StationProcess, key),
    FIELD(StationProcess, every), FIELD(StationProcess, length), FIELD(StationProcess, every_key),
    FIELD(StationProcess, length_key), FIELD(StationProcess, rank),
    RECORD(Pool), FIELD(Pool, size), FIELD(Pool, free), FIELD(Pool, limit), FIELD(Pool, waiting), FIELD(Pool, since), FIELD(Pool, shift), FIELD(Pool, due),
    RECORD(Route), FIELD(Route, policy), FIELD(Route, count), FIELD(Route, passed), FIELD(Route, sticky),
    FIELD(Route, avoid), FIELD(Route, first),
    RECORD(Target), FIELD(Target, inside), FIELD(Target, smoothed), FIELD(Target, down),
    RECORD(Pair), FIELD(Pair, high), FIELD(Pair, low),
    RECORD(ClassSeries), FIELD(ClassSeries, requests), FIELD(ClassSeries, latency),
    RECORD(ClassTotals), FIELD(ClassTotals, requests), FIELD(ClassTotals, retries), FIELD(ClassTotals, response),
    FIELD(ClassTotals, number), FIELD(ClassTotals, latency), FIELD(ClassTotals, longest),
    RECORD(PlaceSeries), FIELD(PlaceSeries, queued), FIELD(PlaceSeries, busy),
    RECORD(StationTotals), FIELD(StationTotals, visits), FIELD(StationTotals, waited), FIELD(StationTotals, responded),
    FIELD(StationTotals, drops), FIELD(StationTotals, paused),
    RECORD(PoolTotals), FIELD(PoolTotals, acquired), FIELD(PoolTotals, drops), FIELD(PoolTotals, waited),
    FIELD(PoolTotals, held),
    RECORD(Mark), FIELD(Mark, start), FIELD(Mark, end), FIELD(Mark, process),
    RECORD(Kernel),
    IN_KERNEL(code), IN_KERNEL(table), IN_KERNEL(distributions), IN_KERNEL(numbers), IN_KERNEL(parts),
    IN_KERNEL(sources), IN_KERNEL(classes), IN_KERNEL(traffic), IN_KERNEL(rates), IN_KERNEL(segments),
    IN_KERNEL(multipliers), IN_KERNEL(host_stations), IN_KERNEL(ps_stations), IN_KERNEL(bounds), IN_KERNEL(header),
    IN_KERNEL(events), IN_KERNEL(checks), IN_KERNEL(threads), IN_KERNEL(locals), IN_KERNEL(attempts),
    IN_KERNEL(sessions), IN_KERNEL(sticky), IN_KERNEL(joins), IN_KERNEL(latches), IN_KERNEL(missing),
    IN_KERNEL(batches), IN_KERNEL(visits), IN_KERNEL(nodes), IN_KERNEL(lists), IN_KERNEL(stations), IN_KERNEL(speeds),
    IN_KERNEL(completions), IN_KERNEL(server_free), IN_KERNEL(hosts), IN_KERNEL(processes), IN_KERNEL(pools),
    IN_KERNEL(routes), IN_KERNEL(targets), IN_KERNEL(pacing_ticks), IN_KERNEL(gathering), IN_KERNEL(scales),
    IN_KERNEL(class_series), IN_KERNEL(class_totals), IN_KERNEL(histograms), IN_KERNEL(station_series),
    IN_KERNEL(station_totals), IN_KERNEL(pool_series), IN_KERNEL(pool_totals), IN_KERNEL(pool_busy), IN_KERNEL(trace),
    IN_KERNEL(marks),
   
    VALUE(STEP_BITS), VALUE(KIND_SHIFT),
    VALUE(RESUME), VALUE(CHANGE), VALUE(PROCESS), VALUE(SERVICE), VALUE(DELAY), VALUE(TIMEOUT), VALUE(START),
    VALUE(REACHED), VALUE(ROOM_NEEDED), VALUE(TRACE_FULL), VALUE(FINISHED), VALUE(FAULT),
    VALUE(VISIT_FIXED_RATE), VALUE(VISIT_PROCESSOR_SHARING), VALUE(SEND_FIXED_RATE), VALUE(SEND_PROCESSOR_SHARING),
    VALUE(SEND_KEEPING),     VALUE(VISIT_LAST), VALUE(WAIT), VALUE(WAIT_FIXED), VALUE(WAIT_LAST), VALUE(ACQUIRE), VALUE(RELEASE), VALUE(FORK),
    VALUE(FAN_OUT), VALUE(PICK), VALUE(LEAVE_MEMBER), VALUE(REPLICAS), VALUE(UNLESS_AMONG), VALUE(JOIN), VALUE(LATCH), VALUE(SIGNAL), VALUE(AWAIT), VALUE(UNLATCH), VALUE(CHOICE), VALUE(ROUTE), VALUE(LEAVE),
    VALUE(JUMP), VALUE(HEDGE), VALUE(HEDGE_SPARE), VALUE(SPARE_DUE), VALUE(BATCH), VALUE(BATCH_DUE), VALUE(BATCH_DONE),
    VALUE(END), VALUE(FAIL), VALUE(DONE), VALUE(LOST),
    VALUE(FIXED_RATE), VALUE(SHARED), VALUE(QUEUED),
    VALUE(POISSON), VALUE(BURSTY), VALUE(TRACE), VALUE(CLOSED), VALUE(THROTTLED),
    VALUE(ROUND_ROBIN), VALUE(RANDOM), VALUE(LEAST_LOADED), VALUE(TOKEN_AWARE), VALUE(LATENCY_RANKED),
    VALUE(FIRST), VALUE(RING), VALUE(DRAWN),
    VALUE(CONSTANT), VALUE(TABLE), VALUE(EMPIRICAL), VALUE(MIXTURE),
    VALUE(STARTED), VALUE(COMPLETED), VALUE(DROPPED), VALUE(TIMED_OUT),
    VALUE(SPEEDS),
    VALUE(BLOCK),
   
    VALUE(TRACE_COLUMNS),
   
    VALUE(NONE), VALUE(NEVER), VALUE(MOST_SIGNALS), VALUE(STATUSES),
    {"source " DIGEST, 0, 0},
    {0, 0, 0},
};
__attribute__((visibility("default"))) const Described *capplan_description(void) { return description; }
