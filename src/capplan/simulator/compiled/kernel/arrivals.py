"""When open traffic arrives, and the traffic's own time, in which a timeline can make more or less of it."""

from __future__ import annotations

import numpy as np

from capplan.simulator.compiled.kernel.compiling import part
from capplan.simulator.compiled.kernel.draws import exponential, request_key, rounded
from capplan.simulator.compiled.kernel.layout import (
    A_END,
    A_KEY,
    A_KIND,
    A_TRACE,
    A_TRACE_LIMIT,
    ARRIVAL,
    ARRIVAL_AT,
    ARRIVAL_KEY,
    BURSTING,
    BURSTY,
    NEVER,
    PHASE,
    PHASE_END,
    POISSON,
    SEGMENT,
    TRACE,
    UNIT,
    Z_BURST,
    Z_BURST_LENGTH,
    Z_QUIET,
    Z_QUIET_LENGTH,
    Z_RATE,
    Program,
    State,
)
from capplan.simulator.specification.streams import name_key

_ARRIVAL, _BURST = np.uint64(name_key("arrival")), np.uint64(name_key("burst"))
_TICKS_PER_S = 1e9


@part
def segment_at(p: Program, tick: int) -> int:
    """Return the segment of the traffic's time that holds at a tick."""
    segment = 0
    while p.segments[segment + 1] <= tick:
        segment += 1
    return segment


@part
def multiplier(p: Program, tick: int) -> float:
    """Return the multiplier of all traffic at a tick."""
    return p.multipliers[segment_at(p, tick), 0]


@part
def operational_tick(p: Program, operational_s: float) -> int:
    """Return when the traffic's own time has come to `operational_s`."""
    segment = 0
    while segment + 1 < len(p.multipliers) and p.multipliers[segment + 1, 1] < operational_s:
        segment += 1
    missing = (operational_s - p.multipliers[segment, 1]) / p.multipliers[segment, 0]
    return min(p.segments[segment + 1], p.segments[segment] + rounded(missing * _TICKS_PER_S))


@part
def next_arrival(p: Program, s: State) -> None:
    """Set the time of the next arrival of open traffic; `NEVER` when there is none before the end."""
    unit = s.header[UNIT]
    kind = p.traffic[A_KIND]
    s.header[ARRIVAL_KEY] = np.int64(request_key(np.uint64(p.traffic[A_KEY]), unit, 0, 0))
    tick = NEVER
    if kind == TRACE:
        if unit < p.traffic[A_TRACE_LIMIT]:
            tick = p.table[p.traffic[A_TRACE] + unit]
    elif kind in (POISSON, BURSTY) and p.rates[Z_RATE] > 0:
        tick = _grown_by_one(p, s, kind)
    s.header[ARRIVAL_AT] = tick if tick < p.traffic[A_END] else NEVER


@part
def _grown_by_one(p: Program, s: State, kind: int) -> int:
    """Return when the integral of the rate has grown by a standard exponential number since the last arrival."""
    tick = s.header[ARRIVAL]
    missing = exponential(p, np.uint64(s.header[ARRIVAL_KEY]), _ARRIVAL)
    while True:
        rate = _rate(p, s, kind)
        until = p.segments[s.header[SEGMENT] + 1]
        if kind == BURSTY:
            until = min(until, s.header[PHASE_END])
        here = rate * (until - tick) / _TICKS_PER_S
        if missing <= here:
            break
        missing -= here
        tick = until
        if p.segments[s.header[SEGMENT] + 1] == until:
            s.header[SEGMENT] += 1
        if kind == BURSTY and s.header[PHASE_END] == until:
            s.header[BURSTING] = 1 - s.header[BURSTING]
            s.header[PHASE] += 1
            draw_phase(p, s)
        if tick >= p.traffic[A_END]:
            return NEVER
    tick = min(until, tick + rounded(missing / rate * _TICKS_PER_S))
    s.header[ARRIVAL] = tick
    return tick


@part
def _rate(p: Program, s: State, kind: int) -> float:
    base = p.rates[Z_RATE]
    if kind == BURSTY:
        base = p.rates[Z_BURST] if s.header[BURSTING] else p.rates[Z_QUIET]
    factor = p.multipliers[s.header[SEGMENT], 0]
    return base * factor


@part
def draw_phase(p: Program, s: State) -> None:
    """Draw the length of the burst or quiet time that begins."""
    mean_s = p.rates[Z_BURST_LENGTH] if s.header[BURSTING] else p.rates[Z_QUIET_LENGTH]
    length = exponential(p, request_key(np.uint64(p.traffic[A_KEY]), s.header[PHASE], 0, 0), _BURST)
    s.header[PHASE_END] += rounded(mean_s * length * _TICKS_PER_S)
