"""The layout of the kernel's arrays: numpy types of the C records in `layout.h`, and the names of its constants.

`Program` is a network, lowered, and never changes. `State` is a run in progress. Times are ticks. Records that are
allocated and freed begin with the number of the next free one; the header counts those left.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from capplan.simulator.results import tally

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Records = Any  # an array of records; annotations cannot name their fields

NEVER = 1 << 62
NONE = -1
STEP_BITS, KIND_SHIFT = 20, 60
SPEEDS, BLOCK, MOST_SIGNALS, TRACE_COLUMNS, STATUSES = 4, 16, 8, 10, 4
NO_COMPLETION = np.iinfo(np.int64).max  # whole ticks of a completion that never comes

# Kinds of events
RESUME, CHANGE, PROCESS, SERVICE, DELAY, TIMEOUT, START = range(7)
# What `advance` returns
REACHED, ROOM_NEEDED, TRACE_FULL, FINISHED, FAULT = range(5)
# Instructions; `layout.h` has their operands
(
    VISIT_FIXED_RATE,
    VISIT_PROCESSOR_SHARING,
    SEND_FIXED_RATE,
    SEND_PROCESSOR_SHARING,
    SEND_KEEPING,
    VISIT_LAST,
    WAIT,
    WAIT_FIXED,
    WAIT_LAST,
    ACQUIRE,
    RELEASE,
    FORK,
    FAN_OUT,
    JOIN,
    LATCH,
    SIGNAL,
    AWAIT,
    UNLATCH,
    CHOICE,
    ROUTE,
    LEAVE,
    PICK,
    LEAVE_MEMBER,
    REPLICAS,
    UNLESS_AMONG,
    JUMP,
    HEDGE,
    HEDGE_SPARE,
    SPARE_DUE,
    BATCH,
    BATCH_DUE,
    BATCH_DONE,
    END,
    FAIL,
    DONE,
    LOST,
    ASSIGN,
) = range(37)
FIXED_RATE, SHARED, QUEUED = range(3)
POISSON, BURSTY, TRACE, CLOSED, THROTTLED = range(5)
ROUND_ROBIN, RANDOM, LEAST_LOADED, TOKEN_AWARE, LATENCY_RANKED, FIRST = range(6)
RING, DRAWN = range(2)
CONSTANT, TABLE, EMPIRICAL, MIXTURE = range(4)
STARTED, COMPLETED, DROPPED, TIMED_OUT = range(4)


def _record(*parts: tuple[Any, str]) -> np.dtype[np.void]:
    """Return a record type: element types, each with the names of its fields; `name[3]` is an array of three."""
    fields: list[tuple[Any, ...]] = []
    for element, names in parts:
        for name in names.split():
            plain, _, length = name.rstrip("]").partition("[")
            fields.append((plain, element, int(length)) if length else (plain, element))
    return np.dtype(fields, align=True)


I32, I64, U64, F64 = np.int32, np.int64, np.uint64, np.float64
INSTRUCTION = _record((U64, "key"), (I32, "op_step a b c d unwind"))
DISTRIBUTION = _record((I64, "kind ticks first count"), (F64, "scale"))
SOURCE = _record((I64, "key count classes gaps sticky"))
REQUEST_CLASS = _record((I64, "start timeout attempts backoffs"))
TRAFFIC = _record((I64, "kind key end clients think trace trace_limit exponential"))
RATES = _record((F64, "rate pacing burst fraction burst_length quiet quiet_length"))

FREE_LIST = _record((I64, "first left"))
THREAD = _record((I32, "next pc attempt join latch wait batch dropped"), (U64, "key"), (I64, "rank"))
ATTEMPT = _record((U64, "key"), (I64, "rank"), (I32, "next session request_class threads ended"))
SESSION = _record(
    (I32, "next users source place attempt open sticky"),
    (I64, "unit first row intended start"),
    (U64, "key token"),
    (I64, "pacing_tick began"),
)
FORK_JOIN = _record((I32, "next needed spare owner users"))
COUNTDOWN_LATCH = _record(
    (I32, "next outer needed working owner users coming pending"), (U64, f"due[2] last[2] keys[{2 * MOST_SIGNALS}]")
)
BATCH_RECORD = _record((I32, "next count started users"))
VISIT = _record((I32, "next thread"), (I64, "joined aside"))
NODE = _record((I32, "next"), (I64, "a b c"))

HEADER = _record(
    (I64, "now now_rank events stop_idle"),
    (U64, "reached[2]"),
    (I64, "some_known_down room_needed margin event_count ready ps_slots"),
    (FREE_LIST, "threads attempts sessions joins latches batches nodes visits"),
    (I64, "pool_lists kept_lists class_lists wait_lists batch_lists attempts_started requests_started most_requests"),
    (I64, "arrival unit segment arrival_at bursting phase phase_end"),
    (U64, "arrival_key"),
    (I64, "traced marked interval interval_end clocks over over_attempt over_tick station_rows"),
)
EVENT = _record((I64, "rank tick load"))
LIST = _record((I32, "head tail"))
STATION = _record(
    (I64, "since whole parts sigma busy_ticks queued_ticks"),
    (I32, "served servers count[2] heaped[2] kind plain host slot waiting known_down rates rate_count paused down"),
    (I32, "processes process_count server_free lazy row assignment lanes further_lanes"),
    (I64, "expiry paused_since visits waited responded list_at[2] room assigned"),
)
COMPLETION = _record((U64, "rest"), (I64, "whole"))
HOST = _record((I64, "cores busy count"))
STATION_PROCESS = _record(
    (I64, "station background runs number"),
    (U64, "key"),
    (I64, "every length"),
    (U64, "every_key length_key"),
    (I64, "rank"),
)
POOL = _record((I64, "size free limit waiting since shift due"))
ROUTE_RECORD = _record((I64, "policy count passed sticky avoid first weighted"))
TARGET = _record((I64, "inside smoothed down"), (F64, "weight"))
CHECK = _record((I64, "tick slot"))
MARK = _record((I64, "start end process"))

# By the name of the C record, its type here: `FREE_LIST` is `FreeList`. COMPLETION is a number in C, and no record.
TYPES = {
    name.removesuffix("_RECORD").title().replace("_", ""): dtype
    for name, dtype in list(globals().items())
    if isinstance(dtype, np.dtype) and dtype is not COMPLETION
}
# By the name of the C record, the columns of the tally's arrays that its fields are.
COLUMNS = {
    "Pair": ({"high": 0, "low": 1}, 2),
    "ClassSeries": ({"requests": tally.STARTED, "latency": tally.LATENCY}, tally.CLASS_SERIES),
    "ClassTotals": (
        {
            "requests": tally.STARTED,
            "retries": tally.RETRIES,
            "response": tally.RESPONSE,
            "number": tally.NUMBER,
            "latency": tally.INTENDED,
            "longest": tally.LONGEST_INTENDED,
        },
        tally.CLASS_TOTALS,
    ),
    "PlaceSeries": ({"queued": tally.QUEUED, "busy": tally.BUSY}, tally.PLACE_SERIES),
    "StationTotals": (
        {
            "visits": tally.VISITS,
            "waited": tally.WAITED,
            "responded": tally.RESPONDED,
            "drops": tally.STATION_DROPS,
            "paused": tally.PAUSED,
        },
        tally.STATION_TOTALS,
    ),
    "PoolTotals": (
        {"acquired": tally.TAKEN, "drops": tally.POOL_DROPS, "waited": tally.POOL_WAITED, "held": tally.HELD},
        tally.POOL_TOTALS,
    ),
}


class Program(NamedTuple):
    """A network, lowered; see `capplan.simulator.compiled.lowering`."""

    code: Records  # [instruction]
    table: Ints  # lists of whole numbers, by place
    distributions: Records
    numbers: Floats  # coefficients, values, edges, rates, shares
    parts: Ints  # components of mixtures
    sources: Records
    classes: Records
    traffic: Records  # one
    rates: Records  # one
    segments: Ints  # [segment + 1]: ticks at which the multiplier changes, then NEVER
    multipliers: Floats  # [segment, 2 + sources]: multiplier, operational time at its start, edges of the mix
    host_stations: Ints  # [host, place]
    ps_stations: Ints  # [slot]: the stations that use the mechanism of processor sharing
    bounds: Ints  # [intervals + 1]


class State(NamedTuple):
    """A run in progress."""

    header: Records  # one
    events: Records  # the future event list: a heap with four children a node
    checks: Ints  # next check by slot, then (tick, slot) of the earliest of each block, then of all
    threads: Records
    locals: Ints  # [thread, local]: since when a unit is held or a target is in use
    attempts: Records
    sessions: Records
    sticky: Ints  # [session, route]: the target that a sticky session has taken
    joins: Records
    latches: Records
    missing: Ints  # [latch, group]: signals that are missing
    batches: Records
    visits: Records  # in service at stations of `ps_stations`
    nodes: Records
    lists: Records  # those who wait at stations and pools, timeouts by class, members of batches
    stations: Records
    speeds: Floats  # [station, SPEEDS]
    completions: Records  # two lists a station of `ps_stations`
    server_free: Ints  # when the servers of fixed-rate stations are free: a heap for each station
    hosts: Records
    processes: Records
    pools: Records
    routes: Records
    targets: Records
    pacing_ticks: Ints  # [throttled client]: number of its next pacing tick
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
