"""What the kernel's arrays hold: one row a record, the columns by name, and the two tuples that carry them all.

`Program` is what a network was lowered to and never changes. `State` is what a run has come to. Times are ticks.
A record that is free is on the list of its kind (column 0 is the next one); the header counts those left.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Records = Any  # an array of one of the record types: numba reads fields as attributes, which no annotation can say

NEVER = 1 << 62
NONE = -1

# Events
STEP_BITS, KIND_SHIFT = 20, 60
RESUME, CHANGE, PROCESS, SERVICE, DELAY, TIMEOUT, START = range(7)

# What `advance` returns
REACHED, ROOM_NEEDED, TRACE_FULL, FINISHED = range(4)

# Instructions, with what their columns a, b, c and d hold
(
    VISIT_RIGID,  # A station, B law
    VISIT_ELASTIC,  # A station, B law, C 1 when a visit that nobody waits for follows there
    SEND_RIGID,  # A station, B law: a visit that nobody waits for
    SEND_ELASTIC,  # A station, B law; the step is that of the visit before, if there is one
    VISIT_LAST,  # A station, B law: rigid, and the request is done when it ends
    WAIT,  # A law, B scale of the delay, C 1 when only a signal follows
    WAIT_FIXED,  # A place of the ticks in the table, C as above, B the list of such waits, or -1
    WAIT_LAST,  # A law: the request is done when it is over
    TAKE,  # A pool, B local that keeps since when
    GIVE,  # A pool, B local
    FORK,  # A place of the branches' starts in the table, B how many, C needed
    JOIN,
    LATCH,  # A place of the groups' needs in the table, B how many, C needed
    SIGNAL,  # A latches outwards, B group
    AWAIT,
    UNLATCH,
    CHOICE,  # A place of the edges in the numbers, B how many, C place of the jumps in the table
    ROUTE,  # A route, B targets, C place of the jumps, D local
    LEAVE,  # A route, B target, C local, D 1 when dropped
    JUMP,  # A where to
    HEDGE,  # A place of both branches in the table, and then of the time after which the spare starts
    HEDGE_SPARE,  # the same
    SPARE_DUE,  # A latches
    BATCH,  # A batch, B size, C place of the longest wait in the table, D start of the step
    BATCH_DUE,
    BATCH_DONE,  # D 1 when dropped
    END,  # A latches
    FAIL,  # A latches
    DONE,
    LOST,
) = range(30)
# In the table a branch is its start and the latches (bits: levels outwards) that it may signal.

# Header
(
    NOW,
    HEAP,
    SHORT,
    READY,
    FREE_THREADS,
    FREE_REQUESTS,
    FREE_TALKS,
    FREE_JOINS,
    FREE_LATCHES,
    FREE_NODES,
    FREE_BATCHES,
    LEFT_THREADS,
    LEFT_REQUESTS,
    LEFT_TALKS,
    LEFT_JOINS,
    LEFT_LATCHES,
    LEFT_NODES,
    LEFT_BATCHES,
    MARGIN,
    LEAVES,
    POOL_LISTS,
    CLASS_LISTS,
    WAIT_LISTS,
    BATCH_LISTS,
    ATTEMPTS,
    ROWS,
    MOST_ROWS,
    ARRIVAL,
    UNIT,
    SEGMENT,
    ARRIVAL_AT,
    ARRIVAL_KEY,
    BURSTING,
    PHASE,
    PHASE_END,
    TRACED,
    MARKED,
    INTERVAL,
    INTERVAL_END,
    OVER,
    OVER_REQUEST,
    OVER_TICK,
    EVENTS,
    STOP_IDLE,
    HEADER,
) = range(45)


def _record(*fields: str, floats: tuple[str, ...] = ()) -> np.dtype[np.void]:
    return np.dtype([(name, np.float64 if name in floats else np.int64) for name in fields])


# Records. Those that come and go begin with the next free one.
EVENT = _record("tick", "rank", "load")
CODE = np.dtype([("key", np.uint64), *((name, np.int32) for name in ("op", "a", "b", "c", "d", "step", "unwind", "_"))])
# `ticks` of a constant; of a table the bits of a piece's number; of a mixture the place of its parts.
LAW = _record("kind", "ticks", "first", "count", "scale", floats=("scale",))
SOURCE = _record("key", "count", "classes", "gaps", "sticky")
CLASS = _record("start", "timeout", "attempts", "backoffs")

# Work that is under way: it stands at, or waits at, an instruction.
THREAD = _record("next", "pc", "request", "join", "latch", "wait", "batch", "dropped", "since")
# An attempt at a request, until the last of its work is done.
REQUEST = _record("next", "rank", "key", "talk", "request_class", "threads", "ended")
# A session or single request under way, and the request that it is at.
TALK = _record(
    *("next", "users", "source", "unit", "first", "place", "attempt", "row", "intended", "start"),
    *("key", "token", "beat", "began", "open", "sticky"),
)
JOIN_RECORD = _record("next", "needed", "spare", "owner", "users")
LATCH_RECORD = _record("next", "outer", "needed", "working", "owner", "users")
BATCH_RECORD = _record("next", "count", "started", "users")
NODE = _record("next", "a", "b", "c")
LIST = _record("head", "tail")

RIGID, SHARED, QUEUED = range(3)
STATION = _record(
    *("kind", "servers", "host", "leaf", "free", "served", "waiting", "whole", "parts", "sigma", "since", "paused"),
    *("down", "known", "expiry", "rates", "rate_count", "processes", "process_count", "plain", "paused_since"),
    *("heaped", "busy_ticks", "inside_ticks"),
)
FINISH = _record("whole", "parts", "thread", "joined", "aside")
PACES = 4  # factors of a station: own speed, own cold, host's speed, host's cold
HOST = _record("cores", "busy", "count")
STATION_PROCESS = _record(
    *("station", "background", "runs", "number", "key", "every", "length", "every_key", "length_key", "rank", "since")
)
POOL = _record("size", "free", "limit", "waiting", "since")
ROUND_ROBIN, RANDOM, LEAST_LOADED, TOKEN_AWARE, LATENCY_RANKED = range(5)
ROUTE_RECORD = _record("policy", "count", "passed", "sticky", "avoid", "first")
TARGET = _record("inside", "smoothed", "down")

# Traffic
POISSON, BURSTY, TRACE, CLOSED, THROTTLED = range(5)
A_KIND, A_KEY, A_END, A_CLIENTS, A_THINK, A_TRACE, A_TRACE_LIMIT, A_EXPONENTIAL, TRAFFIC = range(9)
Z_RATE, Z_BEAT, Z_BURST, Z_FRACTION, Z_BURST_LENGTH, Z_QUIET, Z_QUIET_LENGTH, RATES = range(8)

# What is counted
STARTED, COMPLETED, DROPPED, TIMED_OUT, LATENCY, SERIES = range(6)


class Program(NamedTuple):
    """A network, lowered; see `capplan.simulator.compiled.program`."""

    code: Records  # [instruction]
    table: Ints  # lists of whole numbers, by place
    laws: Records  # [law]
    numbers: Floats  # coefficients, values, edges, rates, shares
    parts: Ints  # components of mixtures
    sources: Records
    classes: Records
    traffic: Ints  # [TRAFFIC]
    rates: Floats  # [RATES]
    segments: Ints  # [segment + 1]: ticks at which the multiplier changes, then NEVER
    multipliers: Floats  # [segment, 2 + sources]: multiplier, operational time at its start, edges of the mix
    host_stations: Ints  # [host, place]
    leaves: Ints  # [elastic station]: its number
    bounds: Ints  # [intervals + 1]


class State(NamedTuple):
    """A run under way."""

    header: Ints
    heap: Records  # [event]
    look: Ints  # a tree: the earliest look below each node
    threads: Records
    locals: Ints  # [thread, local]: since when a pool is held or a target is in use
    requests: Records
    talks: Records
    sticky: Ints  # [talk, route]: the target that a sticky session has taken
    joins: Records
    latches: Records
    missing: Ints  # [latch, group]: signals that are missing
    batches: Records
    nodes: Records
    lists: Records  # those who wait at stations and pools, timeouts by class, members of batches
    stations: Records
    paces: Floats  # [station, PACES]
    finishes: Records  # [elastic station, visit]
    free: Ints  # when the servers of rigid stations are free: a heap for each
    hosts: Records
    processes: Records
    pools: Records
    routes: Records
    targets: Records
    beats: Ints  # [throttled client]: number of its next beat
    gathering: Ints  # [batch step]: the batch that is open
    scales: Floats  # [delay that a timeline scales]
    class_series: Ints
    class_totals: Ints
    histograms: Ints
    station_series: Ints
    station_totals: Ints
    pool_series: Ints
    pool_totals: Ints
    pool_busy: Ints
    trace: Ints
    marks: Ints
