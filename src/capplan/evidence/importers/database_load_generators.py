"""Load generators of databases: cassandra-stress, latte and YCSB.

HdrHistogram interval logs (`.hdr`, `.hlog`) of any tool. Written from real logs of cassandra-stress and latte.

The histograms of all intervals of a tag are added; a percentile is read from the sum. cassandra-stress has three tags
per operation: `-st` (service time), `-rt` (response time from the intended start) and `-wt` (the wait between);
latency is the response time where it is there. The format does not name its unit. It is nanoseconds by convention,
and microseconds in logs of YCSB, which are known by their `Logging for:` (from YCSB's source).
"""

from __future__ import annotations

import base64
import binascii
import math
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

import numpy as np
from hdrh.codec import HdrCookieException, HdrHistogramSettingsException, HdrLengthException, ext_header_size
from hdrh.histogram import HdrHistogram

from capplan.evidence.importers.importer import (
    Imported,
    Importer,
    at,
    json_with,
    matching,
    number,
    of_histogram,
    percentile_columns,
    plain_line,
    read_json,
    real,
    run_id,
)
from capplan.evidence.load_test_row import ALL, LoadTestRow
from capplan.evidence.text_file import TextFile
from capplan.models.cassandra.consistency import CONSISTENCY_LEVELS
from capplan.models.errors import InputError

_INTERVAL = re.compile(
    r"^(?:Tag=(?P<tag>[^,]*),)?(?P<start>[\d.]+),(?P<length>[\d.]+),(?P<max>[\d.]+),(?P<histogram>HIST\S+)$"
)
_NS_PER_MS, _US_PER_MS = 1e6, 1e3
_BAD = (
    *(binascii.Error, zlib.error, HdrCookieException, HdrHistogramSettingsException, HdrLengthException),
    *(ValueError, IndexError, TypeError, OverflowError, MemoryError),
)
_MOST_BYTES = 2**26  # of a histogram: one with five digits up to a hundred days has less
_MOST_VALUE = 2**53  # of what a histogram holds: a hundred days in nanoseconds
_SERVICE = "service times: without -rate fixed=, cassandra-stress does not count from an intended start"
_TAGS = {"cycles": ALL}  # of latte: a whole call of its workload, of which `requests` are parts
_LEFT_OUT = {"requests": "times the parts of a cycle"}


class _Series:
    """The sum of a tag's histograms, and the time span of them.

    `HdrHistogram.add` takes several milliseconds where the lengths of arrays differ, and a log has thousands of
    intervals. The arrays count the same values from their start on, so they are added as far as they go.
    """

    def __init__(self, first: HdrHistogram, start_s: float, end_s: float) -> None:
        self.total = HdrHistogram(first.lowest_trackable_value, _MOST_VALUE, first.significant_figures)
        self.start_s, self.end_s = start_s, end_s
        self.add(first, end_s)

    def add(self, found: HdrHistogram, end_s: float) -> None:
        """Add the histogram of a later interval or of another class."""
        self.end_s = max(self.end_s, end_s)
        if not found.get_total_count():
            return
        alike = ("unit_magnitude", "sub_bucket_count", "word_size")
        if any(getattr(self.total, name) != getattr(found, name) for name in alike):
            self.total.add(found)
            return
        counts = np.frombuffer(found.counts, dtype=np.int64)[: self.total.counts_len]
        np.frombuffer(self.total.counts, dtype=np.int64)[: len(counts)] += counts
        self.total.total_count += found.get_total_count()
        self.total.max_value = max(self.total.max_value, found.max_value)
        self.total.min_value = min(self.total.min_value, found.min_value)


def decode(text: str, where: str) -> HdrHistogram:
    """Decode a histogram.

    Raises
    ------
    InputError
        If it is damaged, or inflates to more than any histogram has.
    """
    try:
        inflater = zlib.decompressobj()
        inflater.decompress(base64.b64decode(text)[ext_header_size:], _MOST_BYTES)
        if inflater.unconsumed_tail:  # some kilobytes may inflate to gigabytes
            raise ValueError(len(text))
        found = HdrHistogram.decode(text)
        if found.max_value > _MOST_VALUE:
            raise ValueError(found.max_value)
        found.encoder = None  # it refers back, and would keep megabytes until the next garbage collection
        return found
    except _BAD:
        raise InputError(f"{where}: the histogram cannot be decoded: the file is damaged or cut off") from None


def _recognises(file: TextFile) -> bool:
    head = file.head
    return "Histogram log format" in head or "Interval_Compressed_Histogram" in head or ",HISTFAAA" in head[:4096]


def _read(file: TextFile) -> Imported:
    series: dict[str, _Series] = {}
    comments: list[str] = []
    for line_number, line in file.lines():
        if line.startswith("#"):
            comments.append(line)
            continue
        if not line.strip() or line.startswith('"StartTimestamp"'):
            continue
        where = f"{file.path}, line {line_number}"
        found = _INTERVAL.match(line)
        if not found:
            raise InputError(
                f"{where} must be an interval 'start,length,max,histogram': the file is damaged or cut off"
            )
        start_s, end_s = float(found["start"]), float(found["start"]) + float(found["length"])
        histogram, tag = decode(found["histogram"], where), found["tag"] or ""
        if tag in series:
            series[tag].add(histogram, end_s)
        else:
            series[tag] = _Series(histogram, start_s, end_s)
    if not any(each.total.get_total_count() for each in series.values()):
        raise InputError(f"{file.path} has no interval with a request: the run was interrupted, or measured nothing")
    about = "\n".join(comments)
    remarks = tuple(f"tag {tag!r} is left out: it {_LEFT_OUT[tag]}" for tag in series if tag in _LEFT_OUT)
    return Imported(tuple(_rows(series, about, file)), remarks=remarks)


def _rows(series: dict[str, _Series], about: str, file: TextFile) -> Iterator[LoadTestRow]:
    ycsb = re.search(r"Logging for: ([\w-]+)", about)
    per_ms = _US_PER_MS if ycsb else _NS_PER_MS
    timed = {name for tag in series if (name := _operation(tag))}
    kind = "rt" if any(f"{name}-rt" in series for name in timed) else "st"
    classes = {name: series[f"{name}-{kind}"] for name in timed if f"{name}-{kind}" in series}
    if len(classes) > 1:
        classes[ALL] = _together(list(classes.values()))
    for tag, found in series.items():
        if tag not in _LEFT_OUT and not _operation(tag):
            classes[_TAGS.get(tag, tag) or (ycsb[1] if ycsb else ALL)] = found
    for name, found in sorted(classes.items()):
        count, duration_s = found.total.get_total_count(), found.end_s - found.start_s
        if not count:
            continue
        yield LoadTestRow(
            run_id=run_id(file),
            request_class=name.lower(),
            load_kind="open" if timed and kind == "rt" else None,
            duration_s=duration_s,
            throughput_tps=count / duration_s if duration_s else None,
            source=f"{file.path.name}: HdrHistogram log",
            note=(_note(series, name) if kind == "rt" else _SERVICE) if name in timed else None,
            **of_histogram(found.total, per_ms),
        )


def _operation(tag: str) -> str:
    """Return the operation in a tag of cassandra-stress; empty for other tags."""
    name, _, kind = tag.rpartition("-")
    return name if kind in ("st", "rt", "wt") else ""


def _together(parts: list[_Series]) -> _Series:
    """Return the sum of several classes' series."""
    first, *others = parts
    series = _Series(first.total, min(each.start_s for each in parts), first.end_s)
    for each in others:
        series.add(each.total, each.end_s)
    return series


def _note(series: dict[str, _Series], name: str) -> str | None:
    """Return a note on how much of the response time is waiting in the client; None if unknown."""
    if f"{name}-wt" not in series:
        return None
    parts = {kind: series[f"{name}-{kind}"].total for kind in ("st", "wt") if f"{name}-{kind}" in series}
    means = {kind: of_histogram(total, _NS_PER_MS).get("latency_mean_ms", 0.0) for kind, total in parts.items()}
    return f"mean service {means.get('st', 0.0):.4g} ms after a wait of {means['wt']:.4g} ms in the client"


HDR_LOG = Importer("HdrHistogram log", _recognises, _read, exactness=2)


# ---- cassandra-stress: what it prints on the console. Written from real output of Cassandra 5.0's tool; names in lower
# case and units in brackets, as 3.x prints them, from its source.
#
# With `-rate fixed=N` latency counts from the intended start, with `throttle=N` from the sending; the console shows the
# same setting for both, so the kind of load stays undetermined unless an HDR log of the run is there (`hdr_log`).


_STRESS_FIGURE = re.compile(
    r"^(?P<name>[A-Za-z][\w. ]*?)\s*(?:\(\w+\)\s*)?:\s*(?P<all>[\d,.]+|NaN)\s*[\w/]*\s*(?:\[(?P<classes>.*)\])?\s*$"
)
_STRESS_CLASS = re.compile(r"([A-Za-z_][\w-]*):\s*([\d,.]+?|NaN)(?: ([\w/]+))?(?=, ?[A-Za-z]|$)")
_STRESS_SETTING = re.compile(r"^\s+([A-Z][\w .()]*?): (.*)$")
_STRESS_RATE = re.compile(r"^op rate\s*:", re.MULTILINE | re.IGNORECASE)
_STRESS_ELAPSED = re.compile(r"^Total operation time\s*: (\d+):(\d\d):(\d\d)", re.IGNORECASE)
_STRESS_RUNNING = re.compile(r"^Running (?:\[?.*?\]? )?with (\d+) threads?")
_STRESS_HOST = re.compile(r"^Datacenter: .*?; Host: ([^;]+);")
_STRESS_LATENCIES = {
    "latency mean": "latency_mean_ms",
    "latency median": "latency_p50_ms",
    "latency 95th percentile": "latency_p95_ms",
    "latency 99th percentile": "latency_p99_ms",
    "latency 99.9th percentile": "latency_p999_ms",
    "latency max": "latency_max_ms",
}
_STRESS_READS = {"READ", "COUNTER_READ", "RANGE_SLICE"}
_STRESS_CREATES = {"WRITE", "COUNTER_WRITE"}  # the keyspace: to other runs its options do not apply
_STRESS_END = "total operation time"


@dataclass
class StressRun:
    """One run: its threads, the time of its last interval, and its results by name and class."""

    threads: int | None = None
    ended_s: float | None = None
    results: dict[str, dict[str, float]] = field(default_factory=dict)

    def figure(self, name: str) -> float:
        """Return a result of all classes; NaN if it is not there."""
        return self.results.get(name, {}).get(ALL, math.nan)


@dataclass
class StressConsole:
    """What a console shows: settings, complete runs, and the nodes that the driver finds."""

    settings: dict[str, str] = field(default_factory=dict)
    runs: list[StressRun] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)


def _is_stress(file: TextFile) -> bool:
    head = file.head
    return (
        "Stress Settings" in head
        or ("total ops" in head and "stderr, errors" in head)
        or bool(_STRESS_RATE.search(head))
    )


def stress_console(file: TextFile) -> StressConsole:
    """Read what cassandra-stress prints, whatever of it is there."""
    console, current = StressConsole(), StressRun()
    for line_number, text in file.lines():
        line, where = plain_line(text), f"{file.path}, line {line_number}"
        if found := _STRESS_RUNNING.match(line):
            current = StressRun(int(found[1]))
        elif line.startswith("total,"):
            current.ended_s = number((line.split(",") + [""] * 11)[11], where, "the time of an interval")
        elif found := _STRESS_FIGURE.match(line):
            name = found["name"].lower().replace("stdev", "stddev")
            cells = {ALL: found["all"], **{each[0]: each[1] for each in _STRESS_CLASS.findall(found["classes"] or "")}}
            current.results[name] = {key: number(text, where, name) for key, text in cells.items()}
        elif line.lower().startswith(_STRESS_END):
            if current.ended_s is None and (found := _STRESS_ELAPSED.match(line)):
                current.ended_s = 3600 * float(found[1]) + 60 * float(found[2]) + float(found[3])
            console.runs.append(current)
            current = StressRun(current.threads)
        elif found := _STRESS_SETTING.match(line):
            console.settings.setdefault(found[1], found[2].strip())
        elif found := _STRESS_HOST.match(line):
            console.hosts.add(found[1])
    return console


def _read_stress(file: TextFile) -> Imported:
    console = stress_console(file)
    if not console.runs:
        raise InputError(
            f"{file.path} ends before 'Total operation time': the run was interrupted or the file is cut off"
        )
    alone = len(console.runs) == 1
    return Imported(tuple(row for run in console.runs for row in _stress_rows(run, console.settings, file, alone)))


def _stress_rows(run: StressRun, settings: dict[str, str], file: TextFile, alone: bool) -> Iterator[LoadTestRow]:
    rates = run.results.get("op rate")
    if rates is None:
        raise InputError(f"{file.path} has no line 'Op rate' in its results: cassandra-stress prints one")
    threads = int(settings["Thread Count"]) if settings.get("Thread Count", "").isdigit() else run.threads
    name = run_id(file) if alone else f"{run_id(file)}-{run.threads}-threads"
    layout = {**_stress_layout(settings), "clients": run.threads or threads, "duration_s": run.ended_s}
    rate, shares = settings.get("OpsPer Sec", "").replace(",", ""), _stress_shares(settings)
    offered = float(rate) if rate.isdigit() else 0.0
    classes = list(rates) if len(rates) > 2 else [each for each in rates if each != ALL] or [ALL]
    errors = run.results.get("total errors", {})
    pauses, seconds = run.figure("total gc count"), run.figure("total gc time")
    for each in classes:
        latencies: dict[str, Any] = {
            column: run.results[line][each]
            for line, column in _STRESS_LATENCIES.items()
            if each in run.results.get(line, {})
        }
        share = 1.0 if each == ALL or len(classes) == 1 else shares.get(each)
        yield LoadTestRow(
            run_id=name,
            request_class=each.lower(),
            throughput_tps=rates[each],
            offered_tps=offered * share if offered and share else None,
            errors=int(errors[each]) if each in errors else None,
            source=f"{file.path.name}: cassandra-stress console",
            note=f"{pauses:.0f} GC pauses, {seconds:g} s in all" if pauses > 0 else None,
            **layout,
            **latencies,
        )


def _stress_shares(settings: dict[str, str]) -> dict[str, float]:
    """Return the requested share of each class."""
    ratios = {name: float(ratio) for name, ratio in re.findall(r"(\w+)=([\d.]+)", settings.get("Command Ratios", ""))}
    total = sum(ratios.values())
    return {name: ratio / total for name, ratio in ratios.items()} if total else {}


def _stress_layout(settings: dict[str, str]) -> dict[str, Any]:
    kind, shares = settings.get("Type", "").upper(), _stress_shares(settings)
    of_profile = kind in ("", "USER")  # whose queries have any names, and whose table is the profile's
    done = shares or {kind: 1.0}
    reads = None if of_profile else sum(share for name, share in done.items() if name in _STRESS_READS)
    level = next((each for each in CONSISTENCY_LEVELS if each == settings.get("Consistency Level")), None)
    replicas = re.search(r"replication_factor=(\d+)", settings.get("Replication Strategy Options", ""))
    columns = re.findall(r"\w+", settings.get("Column Names", ""))
    size = re.search(r"Fixed:\s+key=(\d+)", settings.get("Size Distribution", ""))
    return {
        "consistency_read": level if reads != 0 else None,
        "consistency_write": level if reads != 1 else None,
        "read_fraction": reads,
        "rf": int(replicas[1]) if replicas and kind in _STRESS_CREATES else None,
        "row_bytes": float(size[1]) * len(columns) if size and columns and not of_profile else None,
        "load_kind": "closed" if settings.get("OpsPer Sec", "").startswith("0") else None,
    }


CASSANDRA_STRESS = Importer("cassandra-stress console", _is_stress, _read_stress)


# ---- latte: its report in JSON. Written from real output of latte 0.29.
#
# A cycle is one call of a function of the workload. Its latency excludes the wait of cycles that find no free slot:
# at 15,000/s offered, a real run completed 35 % less in ten seconds with a mean of 79 ms. So an overloaded run
# understates latency, as the audit says. The summary is taken as latte prints it; the first and the last third of the
# whole intervals show whether the queue grew, without the last interval, which may be partial.


_LATTE_WHOLE = 0.9  # of the sampling interval: a shorter one is partial
_LATTE_GREW = 2.0  # times more waiting at the end than at the start
_AGREES = 0.01


def _read_latte_report(file: TextFile) -> Imported:
    report = read_json(file)
    configured, result = at(report, file, "conf"), at(report, file, "result")
    elapsed_s = real(result, file, "elapsed_time_s")
    weights = {at(each, file, "name"): real(each, file, "weight") for each in at(configured, file, "functions")}
    rate = configured.get("rate")
    clients = int(real(configured, file, "concurrency") * real(configured, file, "threads"))
    shared: dict[str, Any] = {
        "run_id": run_id(file),
        "version": configured.get("cass_version"),
        **_latte_levels(at(configured, file, "connection", "consistency")),
        "encryption_client": bool(at(configured, file, "connection", "ssl")),
        "load_kind": "open" if rate else "closed",
        "clients": clients,
        "duration_s": elapsed_s,
        "client_cpu_percent": real(result, file, "cpu_util") / real(configured, file, "threads"),
        "source": f"{file.path.name}: latte report",
    }
    percentiles, throughput = at(report, file, "percentiles"), real(result, file, "cycle_throughput", "value")
    remarks = tuple(_latte_remarks(result, rate, throughput, configured))
    shared["note"], errors = "; ".join(remarks) or None, int(real(result, file, "error_count"))
    together = _latte_latencies(at(result, file, "cycle_latency"), percentiles, file)
    classes = at(result, file, "cycle_latency_by_fn")
    alone = len(classes) == 1
    each: dict[str, Any] = {"throughput_tps": throughput, "errors": errors}
    rows = [] if alone else [LoadTestRow(**shared, request_class=ALL, offered_tps=rate, **each, **together)]
    for name, latency in classes.items():
        count = decode(at(latency, file, "histogram"), f"{file.path}: {name}").get_total_count()
        offered = rate * weights[name] / sum(weights.values()) if rate and name in weights else None
        own: dict[str, Any] = {**(each if alone else {"throughput_tps": count / elapsed_s}), "offered_tps": offered}
        latencies = _latte_latencies(latency, percentiles, file)
        rows.append(LoadTestRow(**shared, request_class=str(name).lower(), **own, **latencies))
    return Imported(tuple(rows), remarks=remarks)


def _latte_levels(level: str) -> dict[str, Any]:
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", level).upper()
    return dict.fromkeys(("consistency_read", "consistency_write"), name if name in CONSISTENCY_LEVELS else None)


def _latte_latencies(latency: Mapping[str, Any], percentiles: Sequence[float], file: TextFile) -> dict[str, Any]:
    values = [real(each, file, "value") for each in at(latency, file, "percentiles")]
    by_percentile = dict(zip(percentiles, values, strict=False))
    columns = {"latency_mean_ms": real(latency, file, "mean", "value"), **percentile_columns(by_percentile)}
    return {**columns, "latency_max_ms": by_percentile[100.0]} if 100.0 in by_percentile else columns


def _latte_remarks(
    result: Mapping[str, Any], rate: float | None, throughput: float, configured: Mapping[str, Any]
) -> Iterator[str]:
    ratio = result.get("cycle_throughput_ratio")
    if rate and ratio is not None and abs(ratio / 100 - throughput / rate) > _AGREES:
        yield f"cycle_throughput_ratio {ratio:.4g} % is not that of the rates, {100 * throughput / rate:.4g} %"
    interval_s = configured.get("sampling_interval", {}).get("Time", {}).get("secs") or 1.0
    whole = [each for each in result.get("log", ()) if each.get("duration_s", 0.0) >= _LATTE_WHOLE * interval_s]
    third = len(whole) // 3
    if third:
        first, last = (fmean(each["mean_queue_len"] for each in part) for part in (whole[:third], whole[-third:]))
        if rate and last > _LATTE_GREW * first and last > configured["concurrency"] / 2:
            yield f"the queue grew from {first:.3g} to {last:.3g} requests during the run"


LATTE_REPORT = Importer("latte report", json_with("conf", "cass_version"), _read_latte_report, exactness=3)


# ---- YCSB: what it prints at the end of a run. Written from a published run of YCSB 0.17.
#
# `[OVERALL], Throughput` is computed by YCSB from a counter that can overflow and turn negative; rates are therefore
# computed again from operations and run time. With `-p measurement.interval=both` latencies of `[Intended-...]` count
# from the intended start, and are taken instead of the others. A read-modify-write is one operation of YCSB and two
# requests, which are in the counts of reads and updates, too.


_YCSB_METRIC = re.compile(r"^\[(?P<part>[^\]]+)\], (?P<name>[^,]+), (?P<value>\S+)\s*$")
_YCSB_PERCENTILE = re.compile(r"^([\d.]+)(?:st|nd|rd|th)?PercentileLatency\((us|ms)\)$")
_YCSB_NOT_REQUESTS = ("OVERALL", "CLEANUP", "TOTAL_GC")
_YCSB_INTENDED, _YCSB_FAILED = "Intended-", "-FAILED"
_YCSB_GOOD = ("Return=OK", "Return=0")  # of today's and of old versions
_YCSB_READS = {"READ", "SCAN"}
_YCSB_TWICE, _YCSB_TWO = "READ-MODIFY-WRITE", {"READ", "UPDATE"}


def _read_ycsb(file: TextFile) -> Imported:
    parts: dict[str, dict[str, float]] = {}
    options: dict[str, str] = {}
    for line_number, text in file.lines():
        line = plain_line(text)
        if line.startswith("Command line:"):
            options = _ycsb_options(line)
        elif line.startswith("[") and (found := _YCSB_METRIC.match(line)):
            where = f"{file.path}, line {line_number}"
            parts.setdefault(found["part"], {})[found["name"]] = number(found["value"], where, found["name"])
    milliseconds = parts.get("OVERALL", {}).get("RunTime(ms)")
    if not milliseconds:
        raise InputError(
            f"{file.path} ends before '[OVERALL], RunTime(ms)': the run was interrupted or the file is cut off"
        )
    classes = {
        name: metrics
        for name, metrics in parts.items()
        if not name.startswith((*_YCSB_NOT_REQUESTS, _YCSB_INTENDED))
        and not name.endswith(_YCSB_FAILED)
        and metrics.get("Operations")
    }
    if not classes:
        raise InputError(f"{file.path} has no operations of a class such as [READ]: YCSB prints them at the end")
    remarks = []
    if classes.keys() >= _YCSB_TWO and classes.pop(_YCSB_TWICE, {}):
        remarks.append(f"{_YCSB_TWICE} is left out: its reads and updates are counted as such")
    duration_s, operations = milliseconds / 1000, _ycsb_operations(classes, parts)
    rate, tried = (count / duration_s for count in (operations, operations + _ycsb_failures(parts, parts)))
    printed = parts["OVERALL"].get("Throughput(ops/sec)", rate)
    wrong = (
        f"the throughput of {printed:g}/s that YCSB prints is wrong: it is {rate:.6g}/s by operations and run time"
        if not (1 - _AGREES) * rate <= printed <= (1 + _AGREES) * tried  # it may count failed operations
        else None
    )
    rows = tuple(_ycsb_rows(classes, parts, options, duration_s, file, wrong))
    return Imported(rows, remarks=(*remarks, wrong) if wrong else tuple(remarks))


def _ycsb_operations(classes: Mapping[str, Mapping[str, float]], parts: Mapping[str, Mapping[str, float]]) -> float:
    """Return how many operations completed, as YCSB counts them."""
    requests = sum(each["Operations"] for each in classes.values())
    pairs = 0.0 if _YCSB_TWICE in classes else parts.get(_YCSB_TWICE, {}).get("Operations", 0.0)
    return requests - min(pairs, requests / 2)


def _ycsb_rows(
    classes: Mapping[str, Mapping[str, float]],
    parts: Mapping[str, Mapping[str, float]],
    options: Mapping[str, str],
    duration_s: float,
    file: TextFile,
    note: str | None,
) -> Iterator[LoadTestRow]:
    counts = {name: metrics["Operations"] for name, metrics in classes.items()}
    total = sum(counts.values())
    target = number(options.get("target", "0"), str(file.path), "the number after -target")
    offered = target * total / _ycsb_operations(classes, parts)
    threads = options.get("threads") or options.get("threadcount") or ("1" if options and "P" not in options else "")
    latencies = {name: _ycsb_latencies(parts.get(_YCSB_INTENDED + name, metrics)) for name, metrics in classes.items()}
    together = {
        "latency_mean_ms": sum(counts[each] * latencies[each]["latency_mean_ms"] for each in classes) / total
        if all("latency_mean_ms" in each for each in latencies.values())
        else None,
        "latency_max_ms": max((each.get("latency_max_ms", 0.0) for each in latencies.values()), default=None),
    }
    every = {ALL: (total, together), **{name: (counts[name], latencies[name]) for name in classes}}
    intended = any(name.startswith(_YCSB_INTENDED) for name in parts)
    for name, (count, columns) in every.items():
        if name == ALL and len(classes) == 1:
            continue
        yield LoadTestRow(
            run_id=run_id(file),
            request_class=name.lower(),
            duration_s=duration_s,
            throughput_tps=count / duration_s,
            offered_tps=offered if target and (name == ALL or len(classes) == 1) else None,
            load_kind=_ycsb_load_kind(options, target, intended),
            clients=int(number(threads, str(file.path), "the number of threads")) if threads else None,
            errors=int(_ycsb_failures(parts, classes if name == ALL else [name])),
            read_fraction=sum(counts.get(each, 0.0) for each in _YCSB_READS) / total,
            row_bytes=_ycsb_row_bytes(options),
            consistency_read=_ycsb_level(options, "cassandra.readconsistencylevel"),
            consistency_write=_ycsb_level(options, "cassandra.writeconsistencylevel"),
            source=f"{file.path.name}: YCSB",
            note=note,
            **columns,
        )


def _ycsb_load_kind(options: Mapping[str, str], target: float, intended: bool) -> Any:
    """Return the kind of load; without the command line it is not known."""
    if not options:
        return "open" if intended else None
    return ("open" if intended else "throttled") if target else "closed"


def _ycsb_options(line: str) -> dict[str, str]:
    """Return the options of a command line; properties by their names.

    YCSB starts one thread where neither they nor the file after -P ask for more.
    """
    return {**dict(re.findall(r"-(threads|target|P) (\S+)", line)), **dict(re.findall(r"-p (\S+?)=(\S+)", line))}


def _ycsb_latencies(metrics: Mapping[str, float]) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for label, name in (("Average", "latency_mean_ms"), ("Max", "latency_max_ms")):
        for unit, per_ms in (("us", 1000.0), ("ms", 1.0)):
            if (value := metrics.get(f"{label}Latency({unit})")) is not None:
                columns[name] = value / per_ms
    found = {name: _YCSB_PERCENTILE.match(name) for name in metrics}
    percentiles = {
        float(match[1]): metrics[name] / (1000.0 if match[2] == "us" else 1.0) for name, match in found.items() if match
    }
    return {**columns, **percentile_columns(percentiles)}


def _ycsb_failures(parts: Mapping[str, Mapping[str, float]], names: Iterable[str]) -> float:
    def failed(name: str) -> float:
        returned = [value for key, value in parts[name].items() if key.startswith("Return=") and key not in _YCSB_GOOD]
        return sum(returned) or parts.get(name + _YCSB_FAILED, {}).get("Operations", 0.0)

    return sum(map(failed, names))


def _ycsb_row_bytes(options: Mapping[str, str]) -> float | None:
    sizes = [options.get(name, "") for name in ("fieldcount", "fieldlength")]
    return float(sizes[0]) * float(sizes[1]) if all(each.isdigit() for each in sizes) else None


def _ycsb_level(options: Mapping[str, str], name: str) -> Any:
    level = options.get(name, "").upper()
    return level if level in CONSISTENCY_LEVELS else None


_IS_YCSB = matching(r"YCSB Client|\[OVERALL\], |site\.ycsb|com\.yahoo\.ycsb")
YCSB = Importer("YCSB", _IS_YCSB, _read_ycsb)
