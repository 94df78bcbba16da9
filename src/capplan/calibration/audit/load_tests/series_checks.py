"""Checks of runs that belong together: repeats, the loads of a series, caches, growing data, flat percentiles."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from statistics import median

from capplan.calibration.audit.finding import Finding
from capplan.calibration.audit.load_tests.measured_row import MeasuredRow, ms, rate, spread
from capplan.calibration.audit.load_tests.row_checks import BUSY_PERCENT, STANDARD_ERRORS, saturation
from capplan.calibration.evidence.load_tests import LATENCIES

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


def series_findings(rows: Sequence[MeasuredRow]) -> Iterator[Finding]:
    """Yield what is wrong between runs."""
    for series in _grouped(rows, lambda each: each.series):
        yield from _copies(series)
        yield from _flat(series)
        yield from _units(series)
        yield from _caches(series)
        yield from _growth(series)
        yield from _generator(series)
        for repeats in _grouped(series, lambda each: each.load):
            yield from _repeats(repeats)
    for each in rows:
        yield from _written(each)


def _grouped(
    rows: Sequence[MeasuredRow], key: Callable[[MeasuredRow], tuple[object, ...]]
) -> Iterator[list[MeasuredRow]]:
    groups: defaultdict[tuple[object, ...], list[MeasuredRow]] = defaultdict(list)
    for each in rows:
        groups[key(each)].append(each)
    yield from (group for group in groups.values() if len(group) > 1)


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
    """Look for latencies in other units: a steady system does not answer hundreds of times slower at another load."""
    steady = [each for each in series if saturation(each).verdict not in ("backlogged", "overloaded")]
    steady = [each for each in steady if not _busy(each)]  # a busy generator adds its own latency
    known = [(typical, each) for each in steady if (typical := each.row.latency_p50_ms or each.row.latency_mean_ms)]
    if len(known) < 2:
        return
    least, most = min(known, key=lambda pair: pair[0]), max(known, key=lambda pair: pair[0])
    if most[0] > _OTHER_UNIT * least[0]:
        middle = median(typical for typical, _ in known)
        odd = [pair for pair in known if max(pair[0] / middle, middle / pair[0]) > _OTHER_UNIT] or [most]
        for typical, each in odd:
            yield each.finding("mixed-units", f"{ms(typical)}, where other runs of the series say {ms(middle)}")


def _caches(series: Sequence[MeasuredRow]) -> Iterator[Finding]:
    states = {each.row.cache_state for each in series}
    if {"cold", "warm"} <= states:
        cold = [each for each in series if each.row.cache_state == "cold"]
        yield cold[0].finding("cold-and-warm", f"{len(cold)} of {len(series)} runs of this series are cold")


def _growth(series: Sequence[MeasuredRow]) -> Iterator[Finding]:
    sizes = [(each.row.data_gib, each) for each in series if each.row.data_gib]
    if len(sizes) > 1:
        least, most = min(size for size, _ in sizes), max(size for size, _ in sizes)
        if most > least * (1 + _GROWTH):
            last = next(each for size, each in sizes if size == most)
            yield last.finding("growing-data", f"{least:.3g} to {most:.3g} GiB a node within one series")


def _written(measured: MeasuredRow) -> Iterator[Finding]:
    """Compare what a run wrote with the data that was there."""
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


def _generator(series: Sequence[MeasuredRow]) -> Iterator[Finding]:
    """Look for a throughput that more load does not raise, before servers that are not busy."""
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
    if len(others) > 1 and slow > _COLD * median(others) and spread(others) < _COLD - 1:
        said = f"the first repeat has a mean of {ms(slow)}, the others of {ms(median(others))}"
        yield first.finding("cold-and-warm", said)
        return
    rates = [each.row.throughput_tps for each in steady if each.row.throughput_tps]
    counts = [each.requests for each in steady if each.requests]
    noise = 2 * STANDARD_ERRORS / min(counts) ** 0.5 if counts else 0.0
    if len(rates) > 1 and spread(rates) > _THROUGHPUT_SCATTER + noise:
        yield first.finding(
            "scattered-repeats", f"{len(rates)} repeats complete {rate(min(rates))} to {rate(max(rates))}"
        )
    elif len(means) > 1 and spread(means) > _LATENCY_SCATTER + noise:
        yield first.finding(
            "scattered-repeats", f"{len(means)} repeats have means of {ms(min(means))} to {ms(max(means))}"
        )


def scatter(rows: Sequence[MeasuredRow]) -> tuple[int, int, float | None]:
    """Return how many loads there are, how many have repeats, and the median range of the repeats' throughput."""
    loads: defaultdict[tuple[object, ...], list[MeasuredRow]] = defaultdict(list)
    for each in rows:
        loads[each.load].append(each)
    repeated = [group for group in loads.values() if len(group) > 1]
    ranges = [
        spread([each.row.throughput_tps for each in group if each.row.throughput_tps])
        for group in repeated
        if all(each.row.throughput_tps for each in group)
    ]
    return len(loads), len(repeated), median(ranges) if ranges else None
