"""What the kernel's arrays hold: one row a record, the columns by name, and the two tuples that carry them all.

`Program` is what a network was lowered to and never changes. `State` is what a run has come to. Times are ticks.
A record that is free is on the list of its kind (column 0 is the next one); the header counts those left.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]
Floats = NDArray[np.float64]

NEVER = 1 << 62
NONE = -1

# Events
STEP_BITS, KIND_SHIFT = 20, 60
RESUME, CHANGE, PROCESS, SERVICE, DELAY, TIMEOUT, START = range(7)

# What `advance` returns
REACHED, ROOM_NEEDED, TRACE_FULL, FINISHED = range(4)

# Instructions: columns of the code, then what they do
OP, A, B, C, D, STEP, UNWIND, WIDTH = range(8)
(
    VISIT_RIGID,  # A station, B law
    VISIT_ELASTIC,  # A station, B law
    SEND_RIGID,  # A station, B law: a visit that nobody waits for
    SEND_ELASTIC,  # A station, B law
    VISIT_LAST,  # A station, B law: rigid, and the request is done when it ends
    WAIT,  # A law, B scale of the delay
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
    ROUTE,  # A place of the route's state, B targets, C place of the jumps, D local
    LEAVE,  # A place of the route's state, B target, C local, D 1 when dropped
    JUMP,  # A where to
    HEDGE,  # A place of both branches in the table, C after how long
    HEDGE_SPARE,  # the same
    SPARE_DUE,  # A latches
    BATCH,  # A batch, B size, C longest wait, D start of the step
    BATCH_DUE,
    BATCH_DONE,  # D 1 when dropped
    END,  # A latches
    FAIL,  # A latches
    DONE,
    LOST,
) = range(29)
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
    ATTEMPTS,
    ROWS,
    MOST_ROWS,
    ARRIVAL,
    UNIT,
    SEGMENT,
    ARRIVAL_AT,
    BURSTING,
    PHASE,
    PHASE_END,
    TRACED,
    MARKED,
    INTERVAL,
    IN_WINDOW,
    INTERVAL_END,
    WINDOW_START,
    WINDOW_END,
    OVER,
    OVER_REQUEST,
    OVER_TICK,
    EVENTS,
    STOP_IDLE,
    HEADER,
) = range(43)

# Threads: work that is under way
T_NEXT, T_PC, T_REQUEST, T_JOIN, T_LATCH, T_WAIT, T_BATCH, T_DROPPED, T_SINCE, T_LOCALS = range(10)

# Requests: attempts, until the last of their work is done
R_NEXT, R_RANK, R_KEY, R_TALK, R_CLASS, R_THREADS, R_ENDED, REQUEST = range(8)

# Talks: sessions and single requests under way, and the request that they are at
(
    K_NEXT,
    K_USERS,
    K_SOURCE,
    K_UNIT,
    K_FIRST,
    K_PLACE,
    K_ATTEMPT,
    K_ROW,
    K_INTENDED,
    K_START,
    K_KEY,
    K_TOKEN,
    K_BEAT,
    K_BEGAN,
    K_OPEN,
    K_STICKY,
) = range(16)

# Joins, latches, batches under way, nodes of queues
J_NEXT, J_NEEDED, J_SPARE, J_OWNER, J_USERS, JOIN_WIDTH = range(6)
L_NEXT, L_OUTER, L_NEEDED, L_WORKING, L_OWNER, L_USERS, L_MISSING = range(7)
B_NEXT, B_COUNT, B_HEAD, B_TAIL, B_STARTED, B_USERS, BATCH_WIDTH = range(7)
N_NEXT, N_A, N_B, N_C, NODE_WIDTH = range(5)

# Stations; those that are elastic have a heap of (whole, parts, thread, joined, aside) and a leaf of the looks
RIGID, SHARED, QUEUED = range(3)
(
    S_KIND,
    S_SERVERS,
    S_HOST,
    S_LEAF,
    S_FREE,
    S_SERVED,
    S_WAITING,
    S_HEAD,
    S_TAIL,
    S_WHOLE,
    S_PARTS,
    S_SIGMA,
    S_SINCE,
    S_PAUSED,
    S_DOWN,
    S_KNOWN,
    S_EXPIRY,
    S_RATES,
    S_RATE_COUNT,
    S_PROCESSES,
    S_PROCESS_COUNT,
    S_PLAIN,
    S_PAUSED_SINCE,
    STATION,
) = range(24)
F_WHOLE, F_PARTS, F_THREAD, F_JOINED, F_ASIDE, FINISH = range(6)
PACES = 4  # factors of a station: own speed, own cold, host's speed, host's cold
H_CORES, H_BUSY, H_COUNT, H_STATIONS = range(4)
P_STATION, P_BACKGROUND, P_RUNS, P_NUMBER, P_KEY, P_EVERY, P_LENGTH, P_EVERY_KEY, P_LENGTH_KEY, P_RANK, P_SINCE = range(
    11
)
PROCESS_WIDTH = 11

# Pools and routes
Q_SIZE, Q_FREE, Q_LIMIT, Q_WAITING, Q_HEAD, Q_TAIL, Q_SINCE, POOL = range(8)
ROUND_ROBIN, RANDOM, LEAST_LOADED, TOKEN_AWARE, LATENCY_RANKED = range(5)
W_POLICY, W_COUNT, W_PASSED, W_STICKY, W_AVOID, W_TARGETS = range(6)
W_INSIDE, W_SMOOTHED, W_DOWN, W_TARGET = range(4)

# Sources and classes of requests
O_KEY, O_COUNT, O_CLASSES, O_GAPS, O_STICKY, SOURCE = range(6)
X_START, X_TIMEOUT, X_ATTEMPTS, X_BACKOFFS, CLASS = range(5)

# Traffic
POISSON, BURSTY, TRACE, CLOSED, THROTTLED = range(5)
A_KIND, A_KEY, A_END, A_CLIENTS, A_THINK, A_TRACE, A_FIRST, A_LAST, A_TRACE_LIMIT, TRAFFIC = range(10)
Z_RATE, Z_BEAT, Z_BURST, Z_FRACTION, Z_BURST_LENGTH, Z_QUIET, Z_QUIET_LENGTH, RATES = range(8)

# What is counted
STARTED, COMPLETED, DROPPED, TIMED_OUT, LATENCY, SERIES = range(6)


class Program(NamedTuple):
    """A network, lowered; see `capplan.simulator.program`."""

    code: Ints  # [instruction, WIDTH]
    keys: Words  # [instruction]: of its draws
    table: Ints  # lists of whole numbers, by place
    laws: Ints  # [law, 4]: kind, ticks, first, count
    scales: Floats  # [law], in ticks
    numbers: Floats  # coefficients, values, edges, rates, shares
    parts: Ints  # components of mixtures
    sources: Ints  # [source, SOURCE]
    classes: Ints  # [class, CLASS]
    traffic: Ints  # [TRAFFIC]
    rates: Floats  # [RATES]
    segments: Ints  # [segment + 1]: ticks at which the multiplier changes, then NEVER
    multipliers: Floats  # [segment, 2 + sources]: multiplier, operational time at its start, edges of the mix
    bounds: Ints  # [intervals + 1]


class State(NamedTuple):
    """A run under way."""

    header: Ints
    heap: Ints  # [event, 4]: tick, rank, load
    look: Ints  # a tree: the earliest look below each node
    threads: Ints
    requests: Ints
    talks: Ints
    joins: Ints
    latches: Ints
    batches: Ints
    nodes: Ints
    stations: Ints
    paces: Floats  # [station, PACES]
    leaves: Ints  # [leaf]: station
    finishes: Ints  # [elastic station, visit, FINISH]
    free: Ints  # when the servers of rigid stations are free: a heap for each
    hosts: Ints
    processes: Ints
    pools: Ints
    routes: Ints
    beats: Ints  # [throttled client]: number of its next beat
    gathering: Ints  # [batch step]: the batch that is open
    scales: Floats  # [delay that a timeline scales]
    timeouts: Ints  # [class, 2]: first and last node
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
