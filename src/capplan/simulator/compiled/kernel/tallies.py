"""What becomes of requests is counted as it happens: sums, histograms, and rows of the trace."""

from __future__ import annotations

from capplan.simulator.compiled.kernel.compiling import part
from capplan.simulator.compiled.kernel.layout import (
    COMPLETED,
    INTERVAL,
    INTERVAL_END,
    LATENCY,
    TRACED,
    Ints,
    Program,
    State,
)
from capplan.simulator.results.tally import INTENDED, LONGEST_INTENDED, NUMBER, PAIR_BITS, RESPONSE, RETRIES

SUB_BITS = 8


@part
def bin_of(ticks: int) -> int:
    """Return the bin of the logarithmic histogram; see `histogram`."""
    shift = 0
    rest = ticks >> SUB_BITS + 1
    for step in (32, 16, 8, 4, 2, 1):
        if rest >> step:
            rest >>= step
            shift += step
    shift += rest > 0
    return (shift << SUB_BITS) + (ticks >> shift)


@part
def add_pair(totals: Ints, interval: int, row: int, column: int, value: int) -> None:
    """Add to a sum that may outgrow 64 bits."""
    low = totals[interval, row, column + 1] + value
    totals[interval, row, column] += low >> PAIR_BITS
    totals[interval, row, column + 1] = low & ((1 << PAIR_BITS) - 1)


@part
def past_interval(p: Program, s: State, tick: int) -> int:
    """Return the interval of a tick that is not after this one; the one after the last is for what comes too late."""
    interval = s.header[INTERVAL]
    while p.bounds[interval] > tick:
        interval -= 1
    return interval


@part
def interval_of(p: Program, s: State, tick: int) -> int:
    """Return the interval of a tick that is not before this one; the one after the last is for what comes too late."""
    interval = s.header[INTERVAL]
    if tick < s.header[INTERVAL_END]:
        return interval
    last = len(p.bounds) - 1
    while interval < last and p.bounds[interval + 1] <= tick:
        interval += 1
    return interval


@part
def book_request(p: Program, s: State, talk: int, request_class: int, status: int, tick: int) -> None:
    """Count a request that has ended for good."""
    row = s.talks[talk]
    start, intended = row.start, row.intended
    interval = interval_of(p, s, tick)
    s.class_series[interval, request_class, status] += 1
    if status == COMPLETED:
        s.class_series[interval, request_class, LATENCY] += tick - intended
    began = past_interval(p, s, start)
    _book_number(p, s, began, request_class, start, tick)
    s.class_totals[began, request_class, status] += 1
    s.class_totals[began, request_class, RETRIES] += row.attempt
    add_pair(s.class_totals, began, request_class, RESPONSE, tick - start)
    if status == COMPLETED:
        _book_latency(s, began, request_class, 0, tick - intended)
        if s.histograms.shape[2] > 1:
            _book_latency(s, began, request_class, 1, tick - start)
    if len(s.trace) > 0:
        _trace(s, talk, request_class, status, tick)


@part
def _book_number(p: Program, s: State, interval: int, request_class: int, since: int, until: int) -> None:
    """Count the time for which a client waited, in each interval that it reaches into."""
    bounds = p.bounds
    until = min(until, bounds[len(bounds) - 1])
    while since < until:
        end = min(until, bounds[interval + 1])
        add_pair(s.class_totals, interval, request_class, NUMBER, end - since)
        since = end
        interval += 1


@part
def _book_latency(s: State, interval: int, request_class: int, clock: int, latency: int) -> None:
    s.histograms[interval, request_class, clock, bin_of(latency)] += 1
    add_pair(s.class_totals, interval, request_class, INTENDED + 2 * clock, latency)
    most = LONGEST_INTENDED + clock
    longest = s.class_totals[interval, request_class, most]
    s.class_totals[interval, request_class, most] = max(longest, latency)


@part
def _trace(s: State, talk: int, request_class: int, status: int, tick: int) -> None:
    row, out = s.talks[talk], s.trace[s.header[TRACED]]
    s.header[TRACED] += 1
    out[0] = row.row
    out[1] = row.source
    out[2] = request_class
    out[3] = row.unit
    out[4] = row.first + row.place
    out[5] = row.attempt + 1
    out[6] = row.intended
    out[7] = row.start
    out[8] = tick
    out[9] = status
