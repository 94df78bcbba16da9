"""Checks of one row: possible values, percentiles in order, the mean between them, Little's law, saturation."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from capplan.calibration.audit.finding import Finding
from capplan.calibration.audit.load_tests.measured_row import MeasuredRow, ms, rate
from capplan.calibration.evidence.load_tests import LATENCIES, PERCENTILES

STANDARD_ERRORS = 3.0  # of a count of requests, beyond which a difference is no noise
STARTUP_S = 1.0  # that a run may lose at its start and its end
OVERLOADED = 0.05  # of the offered rate that is missing: more than a pause
LITTLE = 0.02  # by which figures of one run may differ, since tools count the start and the end differently
HISTOGRAM = 0.01  # relative error of a histogram with two digits
IDLE = 0.8  # of the clients that should be seen at work
BUSY_PERCENT = 80.0  # CPU of a load generator that may delay its own requests
FAILED = 0.01  # of the requests
BEHIND = 10  # requests that a percentile should rest on
WAITED = 0.5  # of the mean wait of a lasting shortfall, by which a backlog differs from a late start
OMITTED = 0.2  # of the wait that a lasting shortfall implies
_COUNTERS = frozenset(float(2**bits - 1) for bits in (31, 32, 63, 64)) | {-1.0 * 2**31, -1.0 * 2**63}
_POSITIVE = ("duration_s", "offered_tps", "clients", "dcs", "node_cores", "front_cores")
_NOT_NEGATIVE = (*LATENCIES, "errors", "drops", "think_time_ms", "rtt_ms", "row_bytes", "data_gib")
_PERCENT = ("front_cpu_percent", "node_cpu_percent", "client_cpu_percent")
Verdict = Literal["steady", "backlogged", "overloaded", "unknown"]


@dataclass(frozen=True)
class Saturation:
    """Whether a row's load was sustained.

    Attributes
    ----------
    verdict : str
    XX: the offered rate or the duration is not stated.
    shortfall : float or None
        Share of the offered requests that was not completed.
    noise : float or None
        Share that chance, start and end of the run explain.
    """

    verdict: Verdict
    shortfall: float | None = None
    noise: float | None = None


def saturation(measured: MeasuredRow) -> Saturation:
    """Judge whether the load of a row was sustained.

    If a share s of the requests is missing after a run of length T because the backlog grew all the time, requests have
    waited for s T / 2 in the mean. Where latencies are that long, chance alone excuses a shortfall; elsewhere a second
    at the start and the end of the run does too.
    """
    row = measured.row
    if row.load_kind == "closed":
        return Saturation("steady")
    if not row.offered_tps or not row.duration_s or row.throughput_tps is None or row.offered_tps < 0:
        return Saturation("unknown")
    chance = STANDARD_ERRORS / math.sqrt(row.offered_tps * row.duration_s)
    noise = chance + STARTUP_S / row.duration_s
    shortfall = 1 - row.throughput_tps / row.offered_tps
    waited = row.latency_mean_ms is not None and row.latency_mean_ms > WAITED * 500 * shortfall * row.duration_s
    if shortfall <= (chance if waited else noise):
        return Saturation("steady", shortfall, noise)
    return Saturation("overloaded" if shortfall > OVERLOADED else "backlogged", shortfall, noise)


def row_findings(measured: MeasuredRow) -> Iterator[Finding]:
    """Yield what is wrong with a row by itself."""
    impossible = [*_values(measured)]
    yield from impossible
    if impossible:
        return  # the other checks would only repeat it
    yield from _order(measured)
    yield from _mean(measured)
    yield from _littles_law(measured)
    yield from _load(measured)
    yield from _generator(measured)
    yield from _counts(measured)


def _values(measured: MeasuredRow) -> Iterator[Finding]:
    row = measured.row
    for name in ("throughput_tps", *LATENCIES, "errors", "drops"):
        value = getattr(row, name)
        if value is not None and (float(value) in _COUNTERS or (name == "throughput_tps" and value < 0)):
            yield measured.finding("overflowed-counter", f"{name} is {value:,}")
            return
    for names, bad, rule in (
        (_POSITIVE, lambda value: value <= 0, "above 0"),
        (_NOT_NEGATIVE, lambda value: value < 0, "0 or more"),
        (_PERCENT, lambda value: not 0 <= value <= 100, "between 0 and 100 % of the whole machine"),
        (("read_fraction",), lambda value: not 0 <= value <= 1, "between 0 and 1"),
    ):
        for name in names:
            value = getattr(row, name)
            if value is not None and bad(value):
                yield measured.finding("impossible-value", f"{name} is {value:g}: it must be {rule}")


def _order(measured: MeasuredRow) -> Iterator[Finding]:
    row = measured.row
    ladder = [*measured.percentiles.items()]
    if row.latency_max_ms is not None:
        ladder.append(("latency_max_ms", row.latency_max_ms))
    for (low_name, low), (high_name, high) in pairwise(ladder):
        if high < low * (1 - 1e-6) - measured.half_step(low_name) - measured.half_step(high_name):
            yield measured.finding("percentile-order", f"{high_name} {ms(high)} is below {low_name} {ms(low)}")


def mean_bounds(measured: MeasuredRow) -> tuple[float, float]:
    """Return the lowest and the highest mean that any requests with the row's percentiles have, ms."""
    named = [(PERCENTILES[name], value) for name, value in measured.percentiles.items()]
    top = measured.row.latency_max_ms
    ladder = [(0.0, 0.0), *named, (1.0, math.inf if top is None else top)]
    low = sum((after - before) * value for (before, value), (after, _) in pairwise(ladder))
    high = sum((after - before) * value for (before, _), (after, value) in pairwise(ladder))
    # a percentile of n requests is one of them: the share below it is known to within one request
    slack = (top if top is not None else (named[-1][1] if named else 0.0)) / (measured.requests or math.inf)
    rounding = max(map(measured.half_step, measured.percentiles), default=0.0)
    return low * (1 - HISTOGRAM) - slack - rounding, high * (1 + HISTOGRAM) + slack + rounding


def _mean(measured: MeasuredRow) -> Iterator[Finding]:
    mean, top = measured.row.latency_mean_ms, measured.row.latency_max_ms
    if mean is None or (not measured.percentiles and top is None):
        return
    low, high = mean_bounds(measured)
    half = measured.half_step("latency_mean_ms")
    if not low - half <= mean <= high + half:
        bounds = f"at least {ms(max(low, 0.0))}" if mean < low else f"at most {ms(high)}"
        yield measured.finding("mean-bounds", f"the mean is {ms(mean)}, and its percentiles allow {bounds}")


def _littles_law(measured: MeasuredRow) -> Iterator[Finding]:
    """Check N = X (R + Z), which holds for every closed system (Little 1961)."""
    row = measured.row
    if (
        not row.clients
        or row.latency_mean_ms is None
        or not row.throughput_tps
        or row.load_kind not in ("closed", "throttled")
    ):
        return
    cycle_ms = row.latency_mean_ms + (row.think_time_ms or 0.0)
    busy = row.throughput_tps * cycle_ms / 1000
    # requests under way at the start and the end of the run, and the rounding of both figures
    half = measured.half_step("latency_mean_ms")
    of_rate = measured.half_step("throughput_tps") / row.throughput_tps
    slack = LITTLE + row.clients / (measured.requests or math.inf) + half / max(cycle_ms - half, 1e-12) + of_rate
    stated = f"{rate(row.throughput_tps)} x {ms(cycle_ms)} is {busy:.3g} clients"
    if busy > row.clients * (1 + slack):
        thousand = ", a thousand times too many: is the latency in us?" if 300 < busy / row.clients < 3000 else ""
        yield measured.finding("littles-law", f"{stated}, of {row.clients}{thousand}")
    elif measured.request_class == "all" and row.load_kind == "closed" and busy < row.clients * (IDLE - slack):
        yield measured.finding("idle-clients", f"{stated}, of {row.clients}")


def _load(measured: MeasuredRow) -> Iterator[Finding]:
    row, found = measured.row, saturation(measured)
    if row.load_kind is None:
        yield measured.finding("load-kind", _guess(measured))
    if found.verdict not in ("backlogged", "overloaded") or found.shortfall is None or found.noise is None:
        return
    completed, offered, duration_s = (row.throughput_tps or 0.0, row.offered_tps or 0.0, row.duration_s or 0.0)
    behind = f"{rate(completed)} of {rate(offered)} offered, {100 * found.shortfall:.2g} % less"
    wait_ms = found.shortfall * duration_s * 1000 / 2
    hidden = not row.drops and row.latency_mean_ms is not None and row.latency_mean_ms < OMITTED * wait_ms
    if row.load_kind == "throttled":
        yield measured.finding("coordinated-omission", f"paced clients fell behind: {behind}")
    elif row.load_kind == "open" and hidden and row.clients:
        yield measured.finding(
            "coordinated-omission",
            f"{behind}: requests must have waited {ms(wait_ms)} in the mean, and the latencies say "
            f"{ms(row.latency_mean_ms or 0)}",
        )
    else:
        rule = "overloaded" if found.verdict == "overloaded" else "backlogged"
        lost = found.shortfall > found.noise
        why = f"; chance, start and end explain {100 * found.noise:.2g} %" if lost else ", and requests waited as long"
        yield measured.finding(rule, behind + why)


def _guess(measured: MeasuredRow) -> str:
    """Say which kind of load the figures look like."""
    row = measured.row
    if row.clients and row.latency_mean_ms and row.throughput_tps:
        busy = row.throughput_tps * (row.latency_mean_ms + (row.think_time_ms or 0.0)) / 1000
        if busy > row.clients * (1 + LITTLE):
            return f"{busy:.3g} requests under way exceed {row.clients} clients: it looks open, from the intended start"
        if row.offered_tps is None and busy > 0.9 * row.clients:
            return f"{busy:.3g} requests under way are all of {row.clients} clients: it looks closed"
    return (
        "the figures do not show it" if row.offered_tps is None else "a rate was offered: open, or throttled clients?"
    )


def _generator(measured: MeasuredRow) -> Iterator[Finding]:
    used = measured.row.client_cpu_percent
    if used is not None and used >= BUSY_PERCENT:
        yield measured.finding("generator-ceiling", f"the load generator used {used:.3g} % of its CPU")


def _counts(measured: MeasuredRow) -> Iterator[Finding]:
    row, requests = measured.row, measured.requests
    if not requests:
        return
    if row.errors and row.errors > FAILED * requests:
        yield measured.finding("failed-requests", f"{row.errors:,} of {requests:,.0f} requests failed")
    few = [name for name in measured.percentiles if requests * (1 - PERCENTILES[name]) < BEHIND]
    if few:
        beyond = requests * (1 - PERCENTILES[few[0]])
        yield measured.finding("few-requests", f"{few[0]} rests on {beyond:.2g} of {requests:,.0f} requests")
