/* Every array is read and written through these functions. A build with -DCHECK_BOUNDS compares each index with the
   number of elements, and ends the call of the kernel with a fault that names the array. */
#pragma once
#include "layout.h"

#define INLINE static inline __attribute__((always_inline))
#define RARE static __attribute__((noinline))
#define LIKELY(condition) __builtin_expect(!!(condition), 1)
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)

#ifdef CHECK_BOUNDS
#include <setjmp.h>
#include <stdio.h>
static _Thread_local jmp_buf entry;
static _Thread_local char fault_text[200];
static _Noreturn void fault(const char *array, i64 index, i64 count) {
  snprintf(fault_text, sizeof fault_text, "place %lld of `%s` does not exist: it has %lld", (long long)index, array,
           (long long)count);
  longjmp(entry, 1);
}
INLINE i64 within(i64 index, i64 count, const char *array) {
  if (UNLIKELY(index < 0 || index >= count)) fault(array, index, count);
  return index;
}
#else
INLINE i64 within(i64 index, i64 count, const char *array) {
  (void)count, (void)array;
  return index;
}
#endif

#define ELEMENT(k, array, index) (&(k)->array.first[within(index, (k)->array.count, #array)])
/* `name(k, index)` is an element of an array, `name(k, row, column)` one of an array with rows. */
#define ACCESS(Type, name, array) \
  INLINE Type *name(const Kernel *k, i64 index) { return ELEMENT(k, array, index); }
#define ACCESS_ROW(Type, name, array)                                  \
  INLINE Type *name(const Kernel *k, i64 row, i64 column) {            \
    within(column, k->array.width, "a row of " #array);                \
    return ELEMENT(k, array, row * k->array.width + column);           \
  }

INLINE Header *header(const Kernel *k) { return k->header.first; }
INLINE const Traffic *traffic(const Kernel *k) { return k->traffic.first; }
INLINE const Rates *rates(const Kernel *k) { return k->rates.first; }

ACCESS(const Instruction, instruction, code)
ACCESS(const i64, table, table)
ACCESS(const Distribution, distribution, distributions)
ACCESS(const f64, number, numbers)
ACCESS(const i64, mixture_part, parts)
ACCESS(const Source, source, sources)
ACCESS(const RequestClass, request_class, classes)
ACCESS(const i64, segment_start, segments)
ACCESS_ROW(const f64, multiplier, multipliers)
ACCESS_ROW(const i64, host_station, host_stations)
ACCESS(const i64, ps_station, ps_stations)
ACCESS(const i64, bound, bounds)

ACCESS(Event, event, events)
ACCESS(i64, check_word, checks)
ACCESS(Thread, thread_at, threads)
ACCESS_ROW(i64, local, locals)
ACCESS(Attempt, attempt_at, attempts)
ACCESS(Session, session_at, sessions)
ACCESS_ROW(i64, sticky_target, sticky)
ACCESS(ForkJoin, join_at, joins)
ACCESS(CountdownLatch, latch_at, latches)
ACCESS_ROW(i64, missing_signals, missing)
ACCESS(Batch, batch_at, batches)
ACCESS(Visit, visit_at, visits)
ACCESS(Node, node_at, nodes)
ACCESS(List, list_at, lists)
ACCESS(Station, station_at, stations)
ACCESS_ROW(f64, station_speed, speeds)
ACCESS(Completion, completion, completions)
ACCESS(i64, server_free, server_free)
ACCESS(Host, host_at, hosts)
ACCESS(StationProcess, process_at, processes)
ACCESS(Pool, pool_at, pools)
ACCESS(Route, route_at, routes)
ACCESS(Target, target_at, targets)
ACCESS(i64, pacing_number, pacing_ticks)
ACCESS(i64, gathering_batch, gathering)
ACCESS(f64, delay_scale, scales)
ACCESS(i64, histogram_bin, histograms)
ACCESS(i64, trace_cell, trace)
ACCESS(Mark, mark_at, marks)

/* What is counted, by interval and by class, station or pool. */
INLINE ClassSeries *class_series(const Kernel *k, i64 interval, i64 number) {
  return ELEMENT(k, class_series, interval * k->classes.count + number);
}
INLINE ClassTotals *class_totals(const Kernel *k, i64 interval, i64 number) {
  return ELEMENT(k, class_totals, interval * k->classes.count + number);
}
INLINE PlaceSeries *station_series(const Kernel *k, i64 interval, i64 number) {
  return ELEMENT(k, station_series, interval * header(k)->station_rows + station_at(k, number)->row);
}
INLINE StationTotals *station_totals(const Kernel *k, i64 interval, i64 number) {
  return ELEMENT(k, station_totals, interval * header(k)->station_rows + station_at(k, number)->row);
}
INLINE PlaceSeries *pool_series(const Kernel *k, i64 interval, i64 number) {
  return ELEMENT(k, pool_series, interval * k->pools.count + number);
}
INLINE PoolTotals *pool_totals(const Kernel *k, i64 interval, i64 number) {
  return ELEMENT(k, pool_totals, interval * k->pools.count + number);
}
INLINE i64 *pool_busy(const Kernel *k, i64 interval, i64 pool, i64 units) {
  within(units, k->pool_busy.width, "a row of pool_busy");
  return ELEMENT(k, pool_busy, (interval * k->pools.count + pool) * k->pool_busy.width + units);
}

INLINE i64 operation_of(const Instruction *i) { return i->op_step >> 24; }
INLINE i64 step_of(const Instruction *i) { return i->op_step & 0xFFFFFF; }
