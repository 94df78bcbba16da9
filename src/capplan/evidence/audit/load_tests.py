"""The audit of load-test tables: what must not be believed, and why.

A check is a function that yields findings: about one row, about the classes of one run, or about the runs of a series.
`RULES` says what each finding means. `audit.audit` puts them in order.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from statistics import median
from typing import Literal

from capplan.evidence.audit.finding import Finding, Severity
from capplan.evidence.load_test_row import ALL, LATENCIES, PERCENTILES, LoadTestRow
from capplan.grouped import grouped

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
Steadiness = Literal["steady", "backlogged", "overloaded", "unknown"]
_DIFFER = 0.05  # of the parts' percentiles, below which an average is no evidence
_EXACTLY = 5e-3  # of a percentile that its digits must show, so that an average is no chance
_AVERAGED = 2  # percentiles must be averages, and all that tell
_THROUGHPUT_SCATTER = 0.1  # range of repeats relative to their median
_LATENCY_SCATTER = 0.5  # the same of the mean latency, whose chance depends on how long queues last
_FLAT_RUNS = 3
_CHANGES = 0.1  # of mean or throughput, at which percentiles must change too
_DIGITS = 0.01  # of a percentile: a coarser one may stay the same
_EXACT, _TELLING = 1e-3, 3  # digits of a figure, and how many such figures, that no two runs have in common
_OTHER_UNIT = 200.0  # times slower than another steady run of a series
_GROWTH = 0.1  # of the data
_COLD = 1.5  # times the mean of the other repeats
_FLAT_LOAD = 0.03  # by which the throughput of twice the clients may differ, where something is saturated
_NOT_BUSY_PERCENT = 60.0
_FALLS = 1.5  # the CPU of a request at the lowest load over that at the highest


@dataclass(frozen=True)
class Rule:
    """One rule.

    Attributes
    ----------
    severity
        `refused`: a figure cannot be right, or does not mean what its name says, so it must not be believed. `caution`:
        the figures may be right, and a reader must know something about them.
    means
        What a finding means.
    action
        What to do about it.
    """

    severity: Severity
    means: str
    action: str


_REFUSED = {
    "impossible-value": (
        "No measurement has such a value: a cell is in another unit, or in the wrong column.",
        "Correct the cell, or leave it empty.",
    ),
    "nothing-answered": (
        "No request was answered: the row measures nothing, and latencies in it are those of failures.",
        "Find out why every request failed, and leave the row out.",
    ),
    "overflowed-counter": (
        "A counter of the tool exceeded its range.",
        "Compute the rate again from operations and run time; importing the tool's own file does.",
    ),
    "duplicate-row": (
        "Two rows claim to be the same class of the same run.",
        "Give each run its own run_id, or remove one row.",
    ),
    "percentile-order": (
        "A higher percentile cannot be smaller than a lower one.",
        "Import the tool's own file again; a column may be mapped wrongly.",
    ),
    "mean-bounds": (
        "No list of latencies has this mean and these percentiles: they are of different requests, or the histogram "
        "that they come from is broken.",
        "Take mean and percentiles from one histogram of the same requests.",
    ),
    "littles-law": (
        "Throughput x (latency + think time) exceeds the number of clients, so one of the three is wrong.",
        "Check the unit of the latency, the number of clients, and whether the load was open.",
    ),
    "mixed-units": (
        "Latencies of one series differ a thousandfold, as if some were in another unit.",
        "Convert all latencies to milliseconds, for instance by a unit in the file of --map.",
    ),
    "coordinated-omission": (
        "Requests were sent late or not at all, and no latency holds their wait: real clients would have waited.",
        "Repeat with an open load whose latency counts from the intended start, or offer less than the ceiling.",
    ),
    "flat-percentiles": (
        "The percentiles do not change with the load, as of an exporter that fills every bucket of its histogram.",
        "Measure latency at the clients; use only the mean and the rate of this exporter.",
    ),
    "averaged-percentiles": (
        "The figure of all requests is the average of its parts; the percentile of a sum is no average of percentiles.",
        "Merge the histograms (HDR logs) of the parts and read the percentile from the sum.",
    ),
    "classes-disagree": (
        "The classes of a run do not add up to the row about all of its requests.",
        "Check that all rows are about the same run and the same time, and that no class is missing.",
    ),
}
_CAUTIONS = {
    "load-kind": (
        "Whether the load is open or closed decides what a latency means, and the table does not say.",
        "Fill in the column load_kind, or import again with --set load_kind=closed or open.",
    ),
    "overloaded": (
        "More was offered than is carried. The throughput shows the capacity; the latencies grow as the run goes on.",
        "Do not read the latencies as those of a steady state. Add runs below the ceiling.",
    ),
    "backlogged": (
        "Completions fell behind the offered rate by more than noise: the run was near or beyond its ceiling.",
        "Run longer: a backlog that grows is overload, one that ends is a pause.",
    ),
    "generator-ceiling": (
        "The load generator may have been the bottleneck, not the system under test.",
        "Repeat with a second client machine: if the throughput rises, the first was the limit.",
    ),
    "cpu-per-request": (
        "The nodes use less CPU for each request as the load grows: wake-ups and polling are in it.",
        "Draw no line through CPU to 100 %: it ends below the true ceiling. A fit allows for it.",
    ),
    "idle-clients": (
        "Clients of a closed load were away part of the time: they started late, or the load generator was busy.",
        "State think_time_ms, leave out the warm-up, or give the generator more threads.",
    ),
    "scattered-repeats": (
        "Repeats of the same load differ by more than is usual: something else changed between them.",
        "Repeat more often, and believe no difference between layouts that is smaller than this scatter.",
    ),
    "copied-run": (
        "Two runs have the same figures to the last digit: one is a copy, and the repeats are fewer than they seem.",
        "Remove the copy.",
    ),
    "cold-and-warm": (
        "Runs with cold and with warm caches stand side by side, and differ by more than their load.",
        "Compare and fit them apart; state cache_state in every row.",
    ),
    "growing-data": (
        "The data grew while it was measured, so that the runs are not of the same system.",
        "Overwrite a fixed set of rows, load the data before the runs, or state data_gib in every row.",
    ),
    "failed-requests": (
        "Failed requests are often faster or slower than others, and their latencies may be among these.",
        "Find out why they failed before the run is used.",
    ),
    "few-requests": (
        "A high percentile rests on a few requests, and a repeat would find another.",
        "Run longer, or do not use that percentile.",
    ),
}
RULES = {
    **{name: Rule("refused", *each) for name, each in _REFUSED.items()},
    **{name: Rule("caution", *each) for name, each in _CAUTIONS.items()},
}
"""The rules by name, in the order of the report."""


LAYOUT = (
    *("system", "version", "dcs", "cass_nodes", "node_cores", "rf", "front_nodes", "front_cores"),
    *("consistency_read", "consistency_write", "token_aware", "row_bytes"),
    *("encryption_client", "encryption_internode", "rtt_ms", "inter_dc_tcp_nodelay"),
    *("client_share", "load_kind", "think_time_ms"),
)
"""Columns in which runs of one series agree; and in the share of reads, which tools measure, and in the class."""


@dataclass(frozen=True)
class MeasuredRow:
    """A row and its place in the table.

    Attributes
    ----------
    line : int
        From 1.
    row : LoadTestRow
        Its cells.
    rounding : mapping of str to float
        Half of the interval that the rounding of a cell allows, by column, where documents state it.
    figures : tuple of str
        Ids of the documented figures in it.
    """

    line: int
    row: LoadTestRow
    rounding: Mapping[str, float] = field(default_factory=dict)
    figures: tuple[str, ...] = ()

    @cached_property
    def request_class(self) -> str:
        """The class; `all` where none is given."""
        return self.row.request_class or ALL

    @cached_property
    def requests(self) -> float | None:
        """How many requests were completed."""
        throughput, duration = self.row.throughput_tps, self.row.duration_s
        return throughput * duration if throughput and duration and throughput > 0 and duration > 0 else None

    @cached_property
    def percentiles(self) -> dict[str, float]:
        """Latencies in ms by the names of their columns, from low to high percentiles."""
        return {name: value for name in PERCENTILES if (value := getattr(self.row, name)) is not None}

    @cached_property
    def series(self) -> tuple[object, ...]:
        """The properties that runs of one series share at different loads."""
        reads = self.row.read_fraction
        layout = tuple(getattr(self.row, name) for name in LAYOUT)
        return (*layout, None if reads is None else round(reads, 2), self.request_class)

    @cached_property
    def load(self) -> tuple[object, ...]:
        """The properties that repeats of one run share: the series and the load."""
        return (*self.series, self.row.clients, self.row.offered_tps)

    def half_step(self, column: str) -> float:
        """Return half the rounding interval of a cell: from the stated step, or from its last digit."""
        if column in self.rounding:
            return self.rounding[column]
        value = getattr(self.row, column) or 0.0
        digits = f"{value:.12g}"
        return abs(value) * 1e-6 if "e" in digits else 0.5 * 10.0 ** -len(digits.partition(".")[2])

    def finding(self, rule: str, sentence: str) -> Finding:
        """Return a finding about the row."""
        return Finding(
            part="load test",
            rule=rule,
            sentence=sentence,
            **vars(RULES[rule]),
            line=self.line,
            run_id=self.row.run_id,
            request_class=self.row.request_class,
            figures=self.figures,
        )


def ms(value: float) -> str:
    """Return a latency with three significant digits."""
    return f"{value:.3g} ms" if value < 1000 else f"{value:,.0f} ms"


def rate(value: float) -> str:
    """Return a rate with its unit."""
    return f"{value:,.0f}/s" if value >= 100 else f"{value:.3g}/s"


def spread(values: list[float]) -> float:
    """Return the range of values relative to their median."""
    ordered = sorted(values)
    middle = ordered[len(ordered) // 2]
    return (ordered[-1] - ordered[0]) / middle if middle > 0 else math.inf


# ---- One row: possible values, percentiles in order, the mean between them, Little's law, saturation


@dataclass(frozen=True)
class Saturation:
    """Whether a row's load was sustained.

    Attributes
    ----------
    verdict : str
        Whether it was; `unknown`: the offered rate or the duration is not stated.
    shortfall : float or None
        Share of the offered requests that was not completed.
    noise : float or None
        Share that chance, start and end of the run explain.
    """

    verdict: Steadiness
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
    """Yield findings about a row on its own."""
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
    yield from _answered(measured)


def _answered(measured: MeasuredRow) -> Iterator[Finding]:
    """Refuse fewer than one answered request, and a longest latency of 0."""
    row = measured.row
    failed = f", and {row.errors:,} requests failed" if row.errors else ""
    if row.latency_max_ms == 0:
        yield measured.finding("nothing-answered", f"the longest latency is 0{failed}")
    elif row.throughput_tps is not None and row.throughput_tps >= 0:
        most = (row.throughput_tps + measured.half_step("throughput_tps")) * (row.duration_s or math.inf)
        if row.throughput_tps == 0 or most < 1:
            yield measured.finding("nothing-answered", f"throughput_tps is {row.throughput_tps:g}{failed}")


def _order(measured: MeasuredRow) -> Iterator[Finding]:
    row = measured.row
    ladder = [*measured.percentiles.items()]
    if row.latency_max_ms is not None:
        ladder.append(("latency_max_ms", row.latency_max_ms))
    for (low_name, low), (high_name, high) in pairwise(ladder):
        if high < low * (1 - 1e-6) - measured.half_step(low_name) - measured.half_step(high_name):
            yield measured.finding("percentile-order", f"{high_name} {ms(high)} is below {low_name} {ms(low)}")


def mean_bounds(measured: MeasuredRow) -> tuple[float, float]:
    """Return the lowest and highest mean that are consistent with the row's percentiles, ms."""
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
    if row.load_kind not in ("closed", "throttled"):
        return
    if not row.clients or row.latency_mean_ms is None or not row.throughput_tps:
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
    """Guess the kind of load from the figures; return it in words."""
    row = measured.row
    if row.clients and row.latency_mean_ms and row.throughput_tps:
        busy = row.throughput_tps * (row.latency_mean_ms + (row.think_time_ms or 0.0)) / 1000
        rounding = row.throughput_tps * measured.half_step("latency_mean_ms") / 1000
        if busy - rounding > row.clients * (1 + LITTLE):
            return f"{busy:.3g} requests under way exceed {row.clients} clients: it looks open, from the intended start"
        if row.offered_tps is None and busy > 0.9 * row.clients:
            return f"{busy:.3g} requests under way are all of {row.clients} clients: it looks closed"
    return (
        "the figures do not show it" if row.offered_tps is None else "a rate was offered: open, or throttled clients?"
    )


def _generator(measured: MeasuredRow) -> Iterator[Finding]:
    if _busy(measured):
        used = f"{measured.row.client_cpu_percent:.3g} % of its CPU"
        yield measured.finding("generator-ceiling", f"the load generator used {used}")


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


# ---- The classes of one run: they add up, and no percentile is an average of percentiles


def run_findings(rows: Sequence[MeasuredRow]) -> Iterator[Finding]:
    """Yield inconsistencies between the rows of each run."""
    named = [each for each in rows if each.row.run_id is not None]
    for classes in _grouped(named, lambda each: (each.row.run_id, each.row.repeat)):
        twice = [name for name, count in Counter(each.request_class for each in classes).items() if count > 1]
        for name in twice:
            last = [each for each in classes if each.request_class == name][-1]
            yield last.finding("duplicate-row", f"run {last.row.run_id} has more than one row of class {name!r}")
        together = next((each for each in classes if each.request_class == ALL), None)
        parts = [each for each in classes if each.request_class != ALL]
        if together is not None and len(parts) > 1 and not twice:
            yield from _sums(together, parts)
            yield from _percentiles(together, parts)


def _sums(together: MeasuredRow, parts: Sequence[MeasuredRow]) -> Iterator[Finding]:
    total = together.row.throughput_tps
    rates = [each.row.throughput_tps for each in parts]
    if total is None or not total > 0 or any(each is None for each in rates):
        return
    known = [each for each in rates if each is not None]
    noise = STANDARD_ERRORS / (together.requests or 1e12) ** 0.5
    if abs(sum(known) - total) > (LITTLE + noise) * total + _rounding("throughput_tps", [together, *parts]):
        yield together.finding(
            "classes-disagree", f"the classes complete {rate(sum(known))}, all requests {rate(total)}"
        )
        return
    means = [each.row.latency_mean_ms for each in parts]
    mean = together.row.latency_mean_ms
    if mean is None or not sum(known) or any(each is None for each in means):
        return
    weighted = sum(share * (each or 0.0) for share, each in zip(known, means, strict=True)) / sum(known)
    slack = (LITTLE + HISTOGRAM) * mean + _rounding("latency_mean_ms", [together, *parts])
    if abs(weighted - mean) > slack:
        yield together.finding(
            "classes-disagree", f"the classes have a mean of {ms(weighted)}, all requests {ms(mean)}"
        )


def _percentiles(together: MeasuredRow, parts: Sequence[MeasuredRow]) -> Iterator[Finding]:
    top = together.row.latency_max_ms
    tops = [each.row.latency_max_ms for each in parts]
    if top is not None and all(each is not None for each in tops):
        highest = max(each for each in tops if each is not None)
        if abs(top - highest) > HISTOGRAM * highest + _rounding("latency_max_ms", [together, *parts]):
            yield together.finding("averaged-percentiles", f"the maximum is {ms(top)}, that of its parts {ms(highest)}")
            return
    shares = [each.row.throughput_tps or 0.0 for each in parts]
    averaged, told = [], 0
    for name, value in together.percentiles.items():
        found = [each.percentiles[name] for each in parts if name in each.percentiles]
        if len(found) < len(parts):
            continue
        printed = together.half_step(name) + max(each.half_step(name) for each in parts)
        slack = HISTOGRAM * value + printed
        if not min(found) - slack <= value <= max(found) + slack:
            yield together.finding(
                "classes-disagree",
                f"{name} of all requests, {ms(value)}, lies outside those of the classes, {ms(min(found))} to "
                f"{ms(max(found))}",
            )
            return
        if max(found) - min(found) > _DIFFER * value:
            told += 1
            plain = sum(found) / len(found)
            weighted = sum(a * b for a, b in zip(shares, found, strict=True)) / sum(shares) if sum(shares) else plain
            printed += 1e-9 * value
            if printed < _EXACTLY * value and min(abs(plain - value), abs(weighted - value)) <= printed:
                averaged.append(name)
    if len(averaged) == told >= _AVERAGED:
        yield together.finding("averaged-percentiles", f"{' and '.join(averaged)} are averages of the classes")


def _rounding(column: str, rows: Sequence[MeasuredRow]) -> float:
    """Return by how much a sum may differ from its parts because all of them are rounded."""
    return sum(each.half_step(column) for each in rows)


# ---- Runs that belong together: repeats, the loads of a series, caches, growing data, flat percentiles


def series_findings(rows: Sequence[MeasuredRow]) -> Iterator[Finding]:
    """Yield inconsistencies between runs."""
    for series in _grouped(rows, lambda each: each.series):
        yield from _copies(series)
        yield from _flat(series)
        yield from _units(series)
        yield from _caches(series)
        yield from _growth(series)
        yield from _generator_ceiling(series)
        yield from _cpu_per_request(series)
        for repeats in _grouped(series, lambda each: each.load):
            yield from _repeats(repeats)
    for each in rows:
        yield from _written(each)


def _grouped(
    rows: Sequence[MeasuredRow], key: Callable[[MeasuredRow], tuple[object, ...]]
) -> Iterator[list[MeasuredRow]]:
    yield from (group for group in grouped(rows, key).values() if len(group) > 1)


def _copies(series: Sequence[MeasuredRow]) -> Iterator[Finding]:
    seen: dict[tuple[object, ...], MeasuredRow] = {}
    for each in series:
        named = {name: getattr(each.row, name) for name in ("throughput_tps", *LATENCIES)}
        figures = tuple(named.values())
        exact = [value for name, value in named.items() if value and each.half_step(name) < _EXACT * value]
        if len(exact) < _TELLING:
            continue
        if figures in seen:
            yield each.finding(
                "copied-run", f"the same figures as run {seen[figures].row.run_id}, line {seen[figures].line}"
            )
        else:
            seen[figures] = each


def _flat(series: Sequence[MeasuredRow]) -> Iterator[Finding]:
    """Look for percentiles that stay the same while mean or throughput change."""
    for figures in _grouped(series, lambda each: tuple(each.percentiles.items())):
        percentiles = figures[0].percentiles
        steps = {name: figures[0].half_step(name) for name in percentiles}
        fine = [value for name, value in percentiles.items() if value and steps[name] < _DIGITS * value]
        means = [each.row.latency_mean_ms for each in figures if each.row.latency_mean_ms]
        rates = [each.row.throughput_tps for each in figures if each.row.throughput_tps]
        changed = any(len(values) == len(figures) and spread(values) > _CHANGES for values in (means, rates))
        if len(figures) >= _FLAT_RUNS and fine and changed:
            shown = " and ".join(f"{name} {ms(value)}" for name, value in list(percentiles.items())[-2:])
            yield from (
                each.finding("flat-percentiles", f"{shown} in {len(figures)} runs, whatever the load")
                for each in figures
            )


def _units(series: Sequence[MeasuredRow]) -> Iterator[Finding]:
    """Look for latencies in a wrong unit: a steady system does not answer hundreds of times slower at another load."""
    steady = [each for each in series if saturation(each).verdict not in ("backlogged", "overloaded")]
    steady = [each for each in steady if not _busy(each)]  # a busy generator adds its own latency
    known = [(typical, each) for each in steady if (typical := getattr(each.row, _typical(each)))]
    if len(known) < 2:
        return
    least, most = min(known, key=lambda pair: pair[0]), max(known, key=lambda pair: pair[0])
    low, high = (each.half_step(_typical(each)) for _, each in (least, most))
    if most[0] - high > _OTHER_UNIT * (least[0] + low):
        middle = median(typical for typical, _ in known)
        odd = [pair for pair in known if max(pair[0] / middle, middle / pair[0]) > _OTHER_UNIT] or [most]
        for typical, each in odd:
            yield each.finding("mixed-units", f"{ms(typical)}, where other runs of the series say {ms(middle)}")


def _typical(measured: MeasuredRow) -> str:
    """Return the column of a typical latency."""
    return "latency_p50_ms" if measured.row.latency_p50_ms else "latency_mean_ms"


def _caches(series: Sequence[MeasuredRow]) -> Iterator[Finding]:
    cold = [each for each in series if each.row.cache_state == "cold"]
    if cold and any(each.row.cache_state == "warm" for each in series):
        yield cold[0].finding("cold-and-warm", f"{len(cold)} of {len(series)} runs of this series are cold")


def _growth(series: Sequence[MeasuredRow]) -> Iterator[Finding]:
    sizes = [(each.row.data_gib, each) for each in series if each.row.data_gib]
    if len(sizes) > 1:
        least, most = min(size for size, _ in sizes), max(size for size, _ in sizes)
        if most > least * (1 + _GROWTH):
            last = next(each for size, each in sizes if size == most)
            yield last.finding("growing-data", f"{least:.3g} to {most:.3g} GiB a node within one series")


def _written(measured: MeasuredRow) -> Iterator[Finding]:
    """Compare the amount of data that a run wrote with the amount that was there."""
    row, requests = measured.row, measured.requests
    if not requests or not row.row_bytes or not row.data_gib or row.read_fraction is None:
        return
    if measured.request_class != "all" and row.read_fraction > 0:
        return
    nodes, replicas = row.cass_nodes, row.rf
    if not isinstance(nodes, int) or not isinstance(replicas, int) or nodes < 1:
        return
    written_gib = requests * (1 - row.read_fraction) * row.row_bytes * replicas / nodes / 2**30
    if written_gib > _GROWTH * row.data_gib:
        yield measured.finding(
            "growing-data", f"the run wrote {written_gib:.3g} GiB a node, and {row.data_gib:.3g} GiB were there"
        )


def _generator_ceiling(series: Sequence[MeasuredRow]) -> Iterator[Finding]:
    """Look for a throughput ceiling that more load does not raise although the servers are not busy."""
    known = [each for each in series if each.row.throughput_tps and each.row.node_cpu_percent is not None]
    for name in ("clients", "offered_tps"):
        ordered = sorted((each for each in known if getattr(each.row, name)), key=lambda each: getattr(each.row, name))
        if len(ordered) < 2:
            continue
        low, high = ordered[-2:]
        more = getattr(high.row, name) >= 1.3 * getattr(low.row, name)
        gain = (high.row.throughput_tps or 0.0) / (low.row.throughput_tps or 1.0) - 1
        busiest = max([high.row.node_cpu_percent or 0.0, high.row.front_cpu_percent or 0.0])
        idle = all(each.row.client_cpu_percent is not None and not _busy(each) for each in (low, high))
        if more and abs(gain) < _FLAT_LOAD and busiest < _NOT_BUSY_PERCENT and not idle:
            yield high.finding(
                "generator-ceiling",
                f"{rate(high.row.throughput_tps or 0.0)} with {name} {getattr(low.row, name):,g} and "
                f"{getattr(high.row, name):,g}, and no server above {busiest:.0f} % CPU",
            )


def _cpu_per_request(series: Sequence[MeasuredRow]) -> Iterator[Finding]:
    """Look for a cost of a request that falls with the load, so that the utilisation law overstates it at low load."""
    known = [each for each in series if each.row.throughput_tps and each.row.node_cpu_percent]
    if len(known) < 2:
        return
    low, high = (pick(known, key=lambda each: each.row.throughput_tps or 0.0) for pick in (min, max))
    before, after = ((each.row.node_cpu_percent or 0.0) / (each.row.throughput_tps or 1.0) for each in (low, high))
    rounding = [each.half_step("node_cpu_percent") / (each.row.throughput_tps or 1.0) for each in (low, high)]
    if before - rounding[0] > _FALLS * (after + rounding[1]):
        yield low.finding(
            "cpu-per-request",
            f"1,000/s take {1e3 * before:.3g} % of the nodes' CPU at {rate(low.row.throughput_tps or 0.0)}, and "
            f"{1e3 * after:.3g} % at {rate(high.row.throughput_tps or 0.0)}",
        )


def _busy(measured: MeasuredRow) -> bool:
    """Whether the load generator is known to have been busy."""
    used = measured.row.client_cpu_percent
    return used is not None and used >= BUSY_PERCENT


def _repeats(repeats: Sequence[MeasuredRow]) -> Iterator[Finding]:
    steady = [each for each in repeats if saturation(each).verdict not in ("backlogged", "overloaded")]
    if len(steady) < 2:
        return
    means = [each.row.latency_mean_ms for each in steady if each.row.latency_mean_ms]
    first, others = steady[0], [each.row.latency_mean_ms for each in steady[1:] if each.row.latency_mean_ms]
    slow = first.row.latency_mean_ms or 0.0
    halves = [each.half_step("latency_mean_ms") for each in steady]
    usual = median(others) + max(halves[1:]) if others else math.inf
    if len(others) > 1 and slow - halves[0] > _COLD * usual and spread(others) < _COLD - 1:
        said = f"the first repeat has a mean of {ms(slow)}, the others of {ms(median(others))}"
        yield first.finding("cold-and-warm", said)
        return
    rates = [each.row.throughput_tps for each in steady if each.row.throughput_tps]
    counts = [each.requests for each in steady if each.requests]
    noise = 2 * STANDARD_ERRORS / min(counts) ** 0.5 if counts else 0.0
    if len(rates) > 1 and spread(rates) > _THROUGHPUT_SCATTER + noise + _printed("throughput_tps", steady, rates):
        yield first.finding(
            "scattered-repeats", f"{len(rates)} repeats complete {rate(min(rates))} to {rate(max(rates))}"
        )
    elif len(means) > 1 and spread(means) > _LATENCY_SCATTER + noise + _printed("latency_mean_ms", steady, means):
        yield first.finding(
            "scattered-repeats", f"{len(means)} repeats have means of {ms(min(means))} to {ms(max(means))}"
        )


def _printed(column: str, rows: Sequence[MeasuredRow], values: Sequence[float]) -> float:
    """Return how much of the range of values, relative to their median, their rounding explains."""
    middle = median(values)
    return 2 * max(each.half_step(column) for each in rows) / middle if middle > 0 else 0.0


def scatter(rows: Sequence[MeasuredRow]) -> tuple[int, int, float | None]:
    """Return the number of loads, the number with repeats, and the median range of the repeats' throughput."""
    repeated = list(_grouped(rows, lambda each: each.load))
    ranges = [
        spread([each.row.throughput_tps for each in group if each.row.throughput_tps])
        for group in repeated
        if all(each.row.throughput_tps for each in group)
    ]
    return len({each.load for each in rows}), len(repeated), median(ranges) if ranges else None
