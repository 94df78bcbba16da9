"""Counters that servers keep of their own work: OpenMetrics text, Prometheus and nodetool."""

from __future__ import annotations

import json
import math
import re
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from http import HTTPStatus
from http.client import HTTPException
from itertools import pairwise
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any
from urllib.error import HTTPError

from capplan.errors import InputError, look_up, one_of
from capplan.evidence.importers.importer import LABELS, Imported, Importer, matching, run_id
from capplan.evidence.importers.json_report import is_json, read_json
from capplan.evidence.importers.number_format import NUMBER, NumberFormat, number, number_format
from capplan.evidence.importers.pause_records import gcstats
from capplan.evidence.load_test_row import ALL, PERCENTILES, LoadTestRow
from capplan.evidence.load_tests import LOAD_TESTS
from capplan.evidence.microbenchmarks import MicrobenchRow
from capplan.evidence.text_file import TextFile
from capplan.models.language.document import read_toml
from capplan.models.language.units import DURATIONS_S, parse_duration_s

# ---- OpenMetrics and Prometheus text: the histograms and summaries of a server. Written from the specification.
#
# A scrape holds counts since the server started, without the load that caused them: it becomes rows of microbenchmarks.
# A percentile of a histogram is found by linear interpolation inside its bucket, as Prometheus's `histogram_quantile`
# does. Some exporters fill every bucket with one count, whatever happened: percentiles then never change, and the mean
# lies outside the bucket that every observation would be in. Such histograms are refused.


_METRICS_SAMPLE = re.compile(rf"^(?P<name>[a-zA-Z_:][\w:]*){LABELS}\s+(?P<value>\S+)(?:\s.*)?$")
_METRICS_LABEL = re.compile(r'([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"')
_METRICS_TYPE = re.compile(r"^# TYPE (\S+) (\w+)\s*$", re.MULTILINE)
_METRICS_PERCENTILES = {"p50": 0.5, "p75": 0.75, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}
_SECONDS = {
    "_seconds": 1.0,
    "_milliseconds": 1e-3,
    "_ms": 1e-3,
    "_microseconds": 1e-6,
    "_micros": 1e-6,
    "_nanoseconds": 1e-9,
}
_EQUAL = 1e-9  # relative error of sums of counts
_SAME = 1e-3  # of counts that a server extrapolates to the ends of a window
_FALL = 0.01  # from one cumulative count to the next, as each is extrapolated on its own
_FEW = 3  # buckets, below which equal counts may be chance
_Key = tuple[str, tuple[tuple[str, str], ...]]


@dataclass
class Histogram:
    """The cumulative counts of a histogram's buckets by upper bound, its sum and its count."""

    buckets: dict[float, float] = field(default_factory=dict)
    quantiles: dict[float, float] = field(default_factory=dict)
    total: float | None = None
    count: float | None = None

    def defect(self) -> str:
        """Return what is wrong with the histogram, as the end of a sentence; empty if nothing is."""
        bounds = sorted(self.buckets)
        counts = [self.buckets[bound] for bound in bounds]
        if any(math.isnan(each) or each < 0 for each in counts):
            return "has a bucket with a count that is no count"
        if any(before > after * (1 + _EQUAL) for before, after in pairwise(counts)):
            return "has cumulative counts that fall: it was read while it changed, or a counter overflowed"
        steps = [max(after - before, 0.0) for before, after in pairwise([0.0, *counts])]
        finite = steps[:-1] if bounds and math.isinf(bounds[-1]) else steps
        if len(finite) >= _FEW and min(finite) > 0 and max(finite) - min(finite) <= _EQUAL * max(finite):
            return "has the same count in every bucket: the exporter fills them all, and its percentiles never change"
        if self.count and self.total is not None and bounds:
            mean = self.total / self.count
            holding = [bound for bound, step in zip(bounds, steps, strict=True) if step > _EQUAL * self.count]
            lowest = max((bound for bound in bounds if bound < min(holding, default=0.0)), default=-math.inf)
            if holding and not lowest * (1 - _SAME) <= mean <= max(holding) * (1 + _SAME):
                return f"has a mean of {mean:.3g} outside the buckets that hold observations, up to {max(holding):g}"
        if self.count is not None and counts and not math.isclose(counts[-1], self.count, rel_tol=_SAME):
            return f"counts {self.count:g} observations and holds {counts[-1]:g} in its buckets"
        return ""

    def percentile(self, share: float) -> float | None:
        """Return a percentile by linear interpolation; None if it lies above the highest finite bound."""
        bounds = sorted(self.buckets)
        rank, below, start = share * self.buckets[bounds[-1]], 0.0, 0.0
        for bound in bounds:
            if self.buckets[bound] >= rank:
                if math.isinf(bound):
                    return None
                inside = self.buckets[bound] - below
                return start + (bound - start) * ((rank - below) / inside if inside else 1.0)
            below, start = self.buckets[bound], bound
        return None


def _read_openmetrics(file: TextFile) -> Imported:
    types: dict[str, str] = {}
    found: dict[_Key, Histogram] = {}
    seen = set[tuple[str, ...]]()
    for line_number, line in file.lines():
        if line.startswith("#"):
            types.update(_METRICS_TYPE.findall(line))
        elif line.strip():
            where = f"{file.path}, line {line_number}"
            match = _METRICS_SAMPLE.match(line)
            if not match:
                raise InputError(f"{where} must be a sample 'name{{labels}} value': {line[:40]!r}")
            if (sample := match.group("name", "labels")) in seen:
                raise InputError(f"{where}: a second scrape begins: put it into a file of its own")
            seen.add(sample)
            _take_sample(found, types, match, where)
    defects = {key: histogram.defect() for key, histogram in found.items()}
    rows = tuple(
        row for key, histogram in found.items() if not defects[key] for row in _openmetrics_rows(key, histogram, file)
    )
    remarks = tuple(f"{_shown_key(key)} is refused: it {defect}" for key, defect in defects.items() if defect)
    if not rows and not remarks:
        raise InputError(f"{file.path} has no histogram or summary with observations: counters alone say no latency")
    return Imported(microbenchmarks=rows, remarks=remarks)


def _take_sample(found: dict[_Key, Histogram], types: Mapping[str, str], match: re.Match[str], where: str) -> None:
    """Keep a sample of a histogram or a summary."""
    name, value = match["name"], number(match["value"], where, "the value of a sample")
    base = next((name.removesuffix(end) for end in ("_bucket", "_sum", "_count") if name.endswith(end)), name)
    if types.get(base) not in ("histogram", "summary"):
        return
    labels = dict(_METRICS_LABEL.findall(match["labels"] or ""))
    bound, quantile = labels.pop("le", ""), labels.pop("quantile", None)
    histogram = found.setdefault((base, tuple(sorted(labels.items()))), Histogram())
    if name.endswith("_bucket"):
        histogram.buckets[number(bound, where, "the bound of a bucket, its label le,")] = value
    elif quantile is not None:
        histogram.quantiles[number(quantile, where, "a quantile")] = value
    elif name.endswith("_sum"):
        histogram.total = value
    elif name.endswith("_count"):
        histogram.count = value


def _openmetrics_rows(key: _Key, histogram: Histogram, file: TextFile) -> Iterator[MicrobenchRow]:
    name, labels = key
    if not histogram.count:
        return
    factor = next((each for ending, each in _SECONDS.items() if name.endswith(ending)), None)
    quantity, unit = ("latency", "s") if factor else (name, "1")
    about = {
        "run_id": run_id(file),
        "samples": int(histogram.count),
        "conditions": " ".join(f"{label}={value}" for label, value in labels) or None,
        "source": f"{file.path.name}: OpenMetrics text",
    }
    if histogram.total is not None:
        yield _figure(name, quantity, histogram.total / histogram.count * (factor or 1.0), unit, "mean", **about)
    for statistic, share in _METRICS_PERCENTILES.items():
        value = histogram.percentile(share) if histogram.buckets else histogram.quantiles.get(share)
        if value is not None and math.isfinite(value):
            yield _figure(name, quantity, value * (factor or 1.0), unit, statistic, **about)


def _figure(
    component: str, quantity: str, value: float, unit: str = "1", statistic: str = "constant", **cells: Any
) -> MicrobenchRow:
    figure: dict[str, Any] = {"quantity": quantity, "statistic": statistic, "value": value, "unit": unit}
    return MicrobenchRow(component=component, **figure, **cells)


def _shown_key(key: _Key) -> str:
    name, labels = key
    return name + ("{" + ",".join(f'{label}="{value}"' for label, value in labels) + "}" if labels else "")


OPENMETRICS = Importer("OpenMetrics text", matching(r"^# TYPE \S+ \w+\s*$|\A# HELP "), _read_openmetrics)


# ---- Prometheus by its HTTP API: a file says which server, which metrics and which runs. Written against version 2.42.
#
#     [prometheus]
#     url = "http://127.0.0.1:9090"
#
#     [histogram]                           # throughput, mean and percentiles, merged over all instances
#     metric = "api_request_seconds"        # without _bucket
#     selector = 'job="api"'
#     unit = "s"
#
#     [columns]                             # anything else, in PromQL; $run is the length of the run
#     node_cpu_percent = '100 * (1 - avg(rate(node_cpu_seconds_total{mode="idle"}[$run])))'
#
#     [drop]                                # intervals in which a query finds something other than 0, by reason
#     restart = 'sum(resets(api_request_seconds_count[$run]))'
#
#     [[runs]]
#     start = 2026-11-20T18:00:00Z
#     end = 2026-11-20T18:05:00Z
#     every = "10m"                         # cuts the time into intervals; one run without it
#     run_id = "r1000"                      # and any other column of the table
#     offered_tps = 1000
#
# A percentile lies somewhere in its bucket; Prometheus and capplan interpolate. A histogram with the same count in
# every bucket is refused, as in OpenMetrics text.


_PROMETHEUS_TABLES = ("prometheus", "histogram", "columns", "drop", "runs")
_TIMEOUT_S = 60.0  # of one query, whatever the server sends in that time
_LARGEST = 2**24  # bytes of an answer
_MOST_SERIES = 1000  # of a query: a histogram has fewer buckets, and a run may take hundreds of queries
_AT_ONCE = 40  # intervals in one query: some servers move the times of 50 and more to multiples of the step
_MS = 1e-3  # to which a server knows times, s
_METRIC = re.compile(r"[a-zA-Z_:][\w:]*")
_MOST_INTERVALS = 10_000  # of one run


_Series = list[tuple[dict[str, str], float]]  # labels and value of each


class _Stay(urllib.request.HTTPRedirectHandler):
    """Follow no redirect: an evidence file names the only server that is asked."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


@dataclass(frozen=True)
class _Server:
    """A server's address, and the name of the file that refers to it."""

    url: str
    asker: str

    def ask(self, query: str, length_s: float, ends: Sequence[datetime]) -> list[_Series]:
        """Return what a query finds at the end of each interval, by range queries; `$run` is the length.

        Raises
        ------
        InputError
            If the server does not answer, or refuses the query.
        """
        query, found = query.replace("$run", f"{length_s:.0f}s"), []
        for first in range(0, len(ends), _AT_ONCE):
            found += self._ask(query, length_s, [each.timestamp() for each in ends[first : first + _AT_ONCE]])
        return found

    def _ask(self, query: str, step_s: float, times: Sequence[float]) -> list[_Series]:
        asked = urllib.parse.urlencode({"query": query, "start": times[0], "end": times[-1], "step": step_s})
        try:
            status, text = _fetched(f"{self.url.rstrip('/')}/api/v1/query_range?{asked}")
            if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
                raise ValueError("it redirects: give the address that it redirects to")
            answer = json.loads(text)
            if status == HTTPStatus.OK:
                found: list[_Series] = [[] for _ in times]
                if len(answer["data"]["result"]) > _MOST_SERIES:
                    raise ValueError(f"a query gives more than {_MOST_SERIES:,} series: sum them")
                for series in answer["data"]["result"]:
                    labels = dict(series["metric"])
                    places = {round((time - times[0]) / step_s): (time, value) for time, value in series["values"]}
                    for place, (time, value) in places.items():
                        if not 0 <= place < len(times) or abs(times[place] - time) > _MS:
                            raise ValueError("it answers for other times: let runs begin at a multiple of their length")
                        found[place].append((labels, float(value)))
                return found
            reason = answer["error"]
        except (OSError, HTTPException, ValueError, LookupError, TypeError, RecursionError) as error:
            said = getattr(error, "reason", None) or error
            raise InputError(f"{self.asker}: {self.url} does not answer as Prometheus does: {said}") from None
        raise InputError(f"{self.asker}: {query!r} is refused by {self.url}: {reason}")


def _fetched(address: str) -> tuple[int, bytes]:
    """Return the status and text of an answer of limited size, within a limited time.

    A socket's timeout starts again with each byte, so that a server could keep its client for ever: a thread reads.
    """
    box: SimpleQueue[tuple[int, bytes] | Exception] = SimpleQueue()

    def fetch() -> None:
        try:
            with urllib.request.build_opener(_Stay).open(address, timeout=_TIMEOUT_S) as reply:
                box.put((reply.status, reply.read(_LARGEST + 1)))
        except Exception as error:  # the caller raises it
            try:
                box.put((error.code, error.read(_LARGEST + 1)) if isinstance(error, HTTPError) else error)
            except (OSError, HTTPException) as broken:
                box.put(broken)

    Thread(target=fetch, daemon=True).start()
    try:
        answer = box.get(timeout=_TIMEOUT_S)
    except Empty:
        raise TimeoutError(f"no whole answer in {_TIMEOUT_S:g} s") from None
    if isinstance(answer, Exception):
        raise answer
    if len(answer[1]) > _LARGEST:
        raise ValueError(f"an answer has more than {_LARGEST >> 20} MB")
    return answer


def _prometheus_content(file: TextFile) -> dict[str, Any]:
    content = read_toml(file.path)
    for name in content:
        one_of(_PROMETHEUS_TABLES, name, f"{file.path}: table {name!r} is unknown")
    drop = content.get("drop", {})
    if not isinstance(drop, dict) or not all(isinstance(each, str) for each in drop.values()):
        raise InputError(f"{file.path}: [drop] must be a table of queries, each with its reason as the name")
    for name in content.get("columns", {}):
        look_up(LOAD_TESTS.columns, name, f"{file.path}: {name!r} is no column of a load-test table")
    if not isinstance(content.get("runs"), list) or not content["runs"]:
        raise InputError(f"{file.path} has no [[runs]]: each must have a start and an end")
    return content


def _read_prometheus(file: TextFile) -> Imported:
    content = _prometheus_content(file)
    url = str(content["prometheus"].get("url", ""))
    if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
        raise InputError(f"{file.path}: url is {url!r}: it must be an address such as 'http://127.0.0.1:9090'")
    server = _Server(url, str(file.path))
    rows: list[LoadTestRow] = []
    remarks, left_out = [], Counter[str]()
    for place, run in enumerate(content["runs"], start=1):
        for row, reason in _prometheus_intervals(server, content, run, place, file):
            if row is None:
                left_out[reason] += 1
                continue
            rows.append(row)
            if reason:
                remarks.append(f"{row.run_id}: the histogram {reason}, and is refused")
    reasons = ", ".join(f"{reason} ({count})" for reason, count in left_out.most_common())
    if not rows:
        raise InputError(f"{file.path} leaves out all of its intervals: {reasons}; look at its queries")
    if reasons:
        total, all_of_them = left_out.total(), left_out.total() + len(rows)
        remarks.append(f"{total} of {all_of_them} intervals {'is' if total == 1 else 'are'} left out: {reasons}")
    return Imported(tuple(rows), remarks=tuple(remarks))


def _prometheus_intervals(
    server: _Server, content: Mapping[str, Any], run: Mapping[str, Any], place: int, file: TextFile
) -> Iterator[tuple[LoadTestRow | None, str]]:
    """Yield the row of each interval, or None for one that must not be used, and what is wrong with it."""
    where, cut = f"{server.asker}: run {place}", "every" in run
    intervals = list(_intervals({"run_id": f"{run_id(file)}-{place}", **run}, where))
    ends = [each["end"] for each in intervals]
    length_s = (ends[0] - intervals[0]["start"]).total_seconds()
    drop, columns = (
        {name: server.ask(str(query), length_s, ends) for name, query in content.get(table, {}).items()}
        for table in ("drop", "columns")
    )
    described = content.get("histogram")
    measured = None if described is None else _measured(server, described, ends, length_s, cut=cut)
    for at, interval in enumerate(intervals):
        if reason := next((name for name, found in drop.items() if _finds(found[at])), ""):
            yield None, reason
            continue
        cells, defect = ({}, "") if measured is None else measured(at)
        if measured and cut and not cells.get("throughput_tps"):
            yield None, "no requests"
            continue
        for name, found in columns.items():
            cells |= _column(name, found[at], where, cut=cut)
        for name, value in interval.items():
            if name not in ("start", "end"):
                cells[name] = LOAD_TESTS.cell(name, str(value), where)
        fixed = {"request_class": ALL, "duration_s": length_s, "source": f"{file.path.name}: Prometheus"}
        yield LoadTestRow(**{**fixed, **cells}), defect


def _finds(series: _Series) -> bool:
    return any(value and not math.isnan(value) for _, value in series)


def _column(name: str, found: _Series, where: str, *, cut: bool) -> dict[str, Any]:
    """Return the cell of a column, if its query finds a number."""
    if cut and not found:
        return {}
    if len(found) != 1:
        raise InputError(f"{where}: {name} must be one number, and its query gives {len(found)} series: use sum()")
    value = found[0][1]
    return {name: LOAD_TESTS.cell(name, f"{value:.12g}", f"{where}: {name}")} if math.isfinite(value) else {}


def _intervals(run: Mapping[str, Any], where: str) -> Iterator[dict[str, Any]]:
    """Yield a run, or its equal intervals if it is cut into some."""
    given = dict(run)
    start, end, every = given.get("start"), given.get("end"), given.pop("every", None)
    if not isinstance(start, datetime) or not isinstance(end, datetime) or start.tzinfo is None or end.tzinfo is None:
        raise InputError(f"{where} must have a start and an end with a time zone, such as 2026-11-20T18:00:00Z")
    if end <= start:
        raise InputError(f"{where} ends before it starts: end must be after start")
    if every is None:
        yield given
        return
    try:
        length = timedelta(seconds=parse_duration_s(str(every), "m"))
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    except (OverflowError, ValueError):
        length = timedelta(0)
    whole = length >= timedelta(seconds=1) and not length % timedelta(seconds=1)
    if not whole or (end - start) % length or (count := (end - start) // length) > _MOST_INTERVALS:
        raise InputError(
            f"{where}: every = {every!r} must be whole seconds that cut its time into at most {_MOST_INTERVALS:,} "
            "equal intervals, such as '1h' of a day"
        )
    for began in (start + each * length for each in range(count)):
        own = {"run_id": f"{run['run_id']} {began:%Y-%m-%d %H:%M:%S}", "start": began, "end": began + length}
        yield {**given, **own}


def _rising(counts: Mapping[float, float]) -> dict[float, float]:
    """Return cumulative counts by bound, without small falls from one to the next."""
    found, most = dict[float, float](), 0.0
    for bound in sorted(counts):
        most = max(most, counts[bound]) if counts[bound] >= most * (1 - _FALL) else counts[bound]
        found[bound] = most
    return found


def _measured(
    server: _Server, described: Mapping[str, Any], ends: Sequence[datetime], length_s: float, *, cut: bool = False
) -> Callable[[int], tuple[dict[str, Any], str]]:
    """Return what gives throughput and latencies of a histogram over an interval, and what is wrong with it.

    An interval of a longer time, which was cut, may have no observations.
    """
    metric, selector, unit = (str(described.get(name, "")) for name in ("metric", "selector", "unit"))
    if not _METRIC.fullmatch(metric):
        raise InputError(f"{server.asker}: metric is {metric!r}: it must be the name of a histogram without _bucket")
    one_of(DURATIONS_S, unit, f"{server.asker}: unit is {unit!r}")
    chosen = f"{{{selector}}}[$run]"
    buckets, sums, counts = (
        server.ask(f"sum{by} (increase({metric}_{part}{chosen}))", length_s, ends)
        for by, part in ((" by (le)", "bucket"), ("", "sum"), ("", "count"))
    )
    per_ms = float(DURATIONS_S[unit]) * 1000

    def measured(at: int) -> tuple[dict[str, Any], str]:
        if cut and not buckets[at]:
            return {}, ""
        bounds = _rising({number(labels.get("le", ""), server.asker, "le"): value for labels, value in buckets[at]})
        all_of_them = counts[at][0][1] if counts[at] else bounds.get(math.inf)  # some exporters have no _count
        if not sums[at] or all_of_them is None:
            raise InputError(f"{server.asker}: {metric} has no observations until {ends[at]:%Y-%m-%dT%H:%M:%S%z}")
        total, count = sums[at][0][1], all_of_them
        if not (0 <= total < math.inf and 0 <= count < math.inf):
            raise InputError(f"{server.asker}: {metric} has a sum of {total:g} and a count of {count:g}: no histogram")
        cells = {"throughput_tps": count / length_s}
        if not count:
            return cells, ""
        cells["latency_mean_ms"] = total / count * per_ms
        histogram = Histogram(bounds, {}, total, count)
        defect = histogram.defect()
        percentiles = {} if defect else {name: histogram.percentile(share) for name, share in PERCENTILES.items()}
        return cells | {name: value * per_ms for name, value in percentiles.items() if value is not None}, defect

    return measured


PROMETHEUS = Importer("Prometheus", matching(r"^[ \t]*\[prometheus\]\s*$"), _read_prometheus)


# ---- nodetool: what a node counts of its own work. Written from real output of Cassandra 5.0, public outputs and the
# source of others. It prints fractions in the locale of its machine.
#
# These are figures of one server since its start, not a load test: they become rows of microbenchmarks. The percentiles
# of several nodes must not be averaged; import the files of all nodes, and compare them.


_NODETOOL_STATISTICS = {"Min": "minimum", "Max": "maximum"} | {f"{each}%": f"p{each}" for each in (50, 75, 95, 98, 99)}
_NODETOOL_COLUMN = re.compile(r"(?:\w+ )*?(?:Latency|SSTables|Size|Count)")  # a header's columns may be one space apart
_NODETOOL_UNITS = {"latency": ("s", 1e-6), "size": ("B", 1.0)}
_NODETOOL_SIZES = {"bytes": 1.0} | {
    f"{prefix}{unit}": 2.0 ** (10 * power) for power, prefix in enumerate("KMGT", start=1) for unit in ("iB", "B")
}  # before 3.0 binary, too
_NODETOOL_POOL = {
    **{"ActiveTasks": "active", "PendingTasks": "pending"},
    **{"CompletedTasks": "completed", "TotalBlockedTasks": "blocked"},
}
_Rows = Iterator[MicrobenchRow]


def _histograms(file: TextFile, read: NumberFormat) -> _Rows:
    """Read proxyhistograms (coordinator) and tablehistograms (replica); a table without SSTables has no sizes."""
    subject: dict[str, Any] = {}
    names: list[str] = []
    for line_number, line in file.lines():
        where, words = f"{file.path}, line {line_number}", re.split(r"\s{2,}", line.strip())
        if line.startswith("proxy histograms"):
            subject = {"component": "coordinator"}
        elif line.rstrip().endswith(" histograms") and "/" in line:
            subject = {"component": "replica", "conditions": f"table {line.strip().removesuffix(' histograms')}"}
        elif line.startswith("SSTables per Read"):
            raise InputError(f"{file.path} has counts by bucket, of Cassandra 2.0: those of 2.1 and later are read")
        elif line.startswith("Percentile"):
            names = _NODETOOL_COLUMN.findall(line)
        elif words[0] in _NODETOOL_STATISTICS and subject:
            if len(words) != len(names) + 1:
                raise InputError(f"{where} has {len(words)} cells, not {len(names) + 1}: the line is cut off")
            for name, word in zip(names, words[1:], strict=True):
                operation, _, quantity = name.lower().rpartition(" ")
                unit, factor = _NODETOOL_UNITS.get(quantity, ("1", 1.0))
                if not math.isnan(value := number(word, where, name, read) * factor):
                    cells = {**subject, "operation": operation or None, "statistic": _NODETOOL_STATISTICS[words[0]]}
                    yield _figure(quantity=quantity, value=value, unit=unit, **cells)


def _pools(file: TextFile) -> _Rows:
    """Read tpstats: what thread pools did, and what was dropped."""
    report = read_json(file) if is_json(file) else _pools_text(file)
    for name, counts in report.get("ThreadPools", {}).items():
        for key, quantity in _NODETOOL_POOL.items():
            if key in counts:
                yield _figure("thread pool", quantity, float(counts[key]), operation=name)
    for name, count in report.get("DroppedMessage", {}).items():
        if float(count):
            yield _figure("messaging", "dropped", float(count), operation=name)


def _pools_text(file: TextFile) -> dict[str, Any]:
    """Read tpstats as text into what its JSON would be."""
    pools: dict[str, dict[str, float]] = {}
    dropped: dict[str, float] = {}
    section, columns = "", 5
    for line_number, line in file.lines():
        where, words = f"{file.path}, line {line_number}", re.sub(r" \([^)]*\)", "", line).split()
        if line.startswith(("Pool Name", "Message type", "Latencies")):
            section, columns = words[0], 6 if "Delayed" in words else 5  # those of DataStax Enterprise
        elif section == "Pool" and len(words) > columns:
            cells = zip(_NODETOOL_POOL, (*words[-columns:][:2], words[-3], words[-1]), strict=True)
            counts = {key: number(word, where, "a count") for key, word in cells if word != "N/A"}
            pools[" ".join(words[:-columns])] = counts
        elif section == "Message" and len(words) >= 2 and not words[0].endswith("%"):
            dropped[words[0]] = number(words[1], where, "a count of dropped messages")
        elif section == "Pool" and len(words) > 1:
            raise InputError(f"{where} has {len(words)} cells, not {columns + 1}: the line is cut off")
    return {"ThreadPools": pools, "DroppedMessage": dropped}


def _pauses(file: TextFile) -> _Rows:
    """Read gcstats: pauses of the JVM since the last call."""
    for interval, longest, total, deviation, count in gcstats(file):
        about = {"operation": "gc", "conditions": f"in {interval / 1000:g} s"}
        means = {"mean": total / count} if count else {}
        for statistic, value in ({"maximum": longest} | means | {"deviation": deviation}).items():
            yield _figure("jvm", "pause", value / 1000, "s", statistic, samples=int(count), **about)
        if interval:
            yield _figure("jvm", "share of time", total / interval, **about)


_TABLE_OF = re.compile(r"^\s*(Keyspace|Table(?: \(index\))?|Column Family) ?: (\S+)\s*$")
_TABLE_FACT = re.compile(rf"^\s*(?:Local )?([\w ()]+?)(?:, bytes)?: ({NUMBER})(?: (?:ms|(bytes|[KMGT]i?B)))?\.?\s*$")
_TABLE_FACTS = {  # by their names as text, which differ between versions, those of the JSON
    "read count": "local_read_count",
    "read latency": "local_read_latency_ms",
    "write count": "local_write_count",
    "write latency": "local_write_latency_ms",
    "space used (live)": "space_used_live",
    "compacted partition mean bytes": "compacted_partition_mean_bytes",
    "compacted row mean size": "compacted_partition_mean_bytes",
}


def _tables(file: TextFile, read: NumberFormat) -> _Rows:
    """Read tablestats, as text or JSON: mean latencies and sizes of each table."""
    for keyspace, content in (read_json(file) if is_json(file) else _tables_text(file, read)).items():
        for table, facts in (content.get("tables", {}) if isinstance(content, dict) else {}).items():
            about = {"conditions": f"table {keyspace}/{table}"}
            for operation in ("read", "write"):
                count, name = facts.get(f"local_{operation}_count"), f"local_{operation}_latency_ms"
                if count and facts.get(name) not in (None, "NaN"):
                    value = number(str(facts[name]), str(file.path), name) / 1000
                    cells = {"operation": operation, "samples": int(count), **about}
                    yield _figure("replica", "latency", value, "s", "mean", **cells)
            sizes = {"space_used_live": "live data", "compacted_partition_mean_bytes": "partition size"}
            for name, quantity in sizes.items():
                if facts.get(name) is not None:
                    yield _figure("replica", quantity, number(str(facts[name]), str(file.path), name), "B", **about)


def _tables_text(file: TextFile, read: NumberFormat) -> dict[str, Any]:
    """Read tablestats or cfstats as text into what their JSON would be."""
    report: dict[str, Any] = {}
    facts: dict[str, float] | None = None
    keyspace = ""
    for line_number, line in file.lines():
        if (title := _TABLE_OF.match(line)) and title[1] == "Keyspace":
            keyspace, facts = title[2], None
        elif title:
            named = f"{keyspace}.{title[2]}" if keyspace else title[2]  # sorted ones have their keyspace
            of, _, table = named.partition(".")
            tables = report.setdefault(of, {"tables": {}})["tables"]
            if table in tables:
                raise InputError(f"{file.path}, line {line_number}: {_AGAIN.format('tablestats')}")
            facts = tables[table] = {}
        elif facts is not None and (fact := _TABLE_FACT.match(line)) and fact[1].lower() in _TABLE_FACTS:
            value = read.value(fact[2]) * _NODETOOL_SIZES[fact[3] or "bytes"]
            facts |= {} if math.isnan(value) else {_TABLE_FACTS[fact[1].lower()]: value}
    return report


_NODETOOL_WANTED = {
    "Load": "data",
    "Uncompressed load": "uncompressed data",
    "Uptime (seconds)": "uptime",
    "pending tasks": "pending compactions",
    "compactions completed": "compactions completed",
    "data compacted": "data compacted",
    "Attempted": "read repairs attempted",
    "Mismatch (Blocking)": "read repairs with a mismatch",
}
_FACT = re.compile(rf"^(.*?)(?:\s*:\s+|\s{{2,}})({NUMBER})(?: ([KMGT]i?B|bytes))?\s*$")


def _facts(file: TextFile, read: NumberFormat) -> _Rows:
    """Read info, netstats and compactionstats: names and figures."""
    for _, line in file.lines():
        found = _FACT.match(line)
        if found and found[1].strip() in _NODETOOL_WANTED:
            size, quantity = _NODETOOL_SIZES.get(found[3] or ""), _NODETOOL_WANTED[found[1].strip()]
            unit = "B" if size or quantity == "data compacted" else ("s" if quantity == "uptime" else "1")
            yield _figure("node", quantity, read.value(found[2]) * (size or 1.0), unit)


def _ring(file: TextFile) -> _Rows:
    """Read status: how many nodes each data centre has, and what is up."""
    nodes: dict[str, list[str]] = {}
    current = ""
    for line_number, line in file.lines():
        if line.startswith("Datacenter:"):
            current = line.partition(":")[2].strip()
            if current in nodes:
                raise InputError(f"{file.path}, line {line_number}: {_AGAIN.format('status')}")
            nodes[current] = []
        elif current and re.match(r"^[UD][NLJM]\s", line):
            nodes[current].append(line[:2])
    for name, states in nodes.items():
        yield _figure("cluster", "nodes", len(states), operation=name)
        yield _figure("cluster", "nodes up", sum(state.startswith("U") for state in states), operation=name)


_NODETOOL_KINDS: Mapping[str, tuple[str, Callable[[TextFile, NumberFormat], _Rows]]] = {  # by what a line begins with
    "proxyhistograms": (r"proxy histograms", _histograms),
    "tablehistograms": (r"\S+/\S+ histograms\s*$", _histograms),
    "tpstats": (
        r"Pool Name\s+Active\s+Pending\s+Completed\s+Blocked|\APool Name\s+Active\s+Pending \(w/",
        lambda file, _: _pools(file),
    ),
    "gcstats": (r"[ \t]*Interval \(ms\)", lambda file, _: _pauses(file)),
    "tablestats": (r"[ \t]*(?:Local read latency|Read Latency): \S+ ms", _tables),
    "status": (r"Status=Up/Down", lambda file, _: _ring(file)),
    "info": (r"Gossip active\s*:", _facts),
    "netstats": (r"Read Repair Statistics:", _facts),
    "compactionstats": (r"pending tasks(?::|\s{2,})", _facts),
}
_NODETOOL_JSON = {
    '"ThreadPools"': "tpstats",
    '"total_gc_elapsed_ms"': "gcstats",
    '"total_number_of_tables"': "tablestats",
}
_NODETOOL_START = re.compile(
    "^(?:" + "|".join(f"(?P<{name}>{start})" for name, (start, _) in _NODETOOL_KINDS.items()) + ")", re.MULTILINE
)
_NODETOOL_FRACTIONS = re.compile(  # what is printed in the locale
    r"\s*(?:(?:Min|Max|\d\d%)\s|(?:Local (?:read|write) latency|Bloom filter false ratio|Space used \(live\)"
    r"|(?:Uncompressed )?load|data compacted)(?:\s*:|\s{2}))([\d.,\sNa]+)",
    re.IGNORECASE,
)
_NODETOOL_MANY = ("gcstats", "tablestats", "status")  # one output has several such lines
_AGAIN = "a second output begins, of nodetool {}: save each call in a file of its own"


def _nodetool_kind(file: TextFile) -> str | None:
    if is_json(file):
        return next((name for key, name in _NODETOOL_JSON.items() if key in file.head), None)
    found = _NODETOOL_START.search(file.head)
    return found.lastgroup if found else None


def _fractions(file: TextFile, kind: str) -> list[str]:
    """Return a file's numbers that are printed in the locale; refuse a file with several outputs.

    Raises
    ------
    InputError
        Names the line where the second begins.
    """
    seen, texts = set[str](), list[str]()
    for line_number, line in file.lines():
        if found := _NODETOOL_START.match(line):
            if found.lastgroup != kind or (kind not in _NODETOOL_MANY and line.strip() in seen):
                raise InputError(f"{file.path}, line {line_number}: {_AGAIN.format(found.lastgroup)}")
            seen.add(line.strip())
        if found := _NODETOOL_FRACTIONS.match(line):
            texts += [word for word in found[1].split() if word[0].isdigit()]
    return texts


def _read_nodetool(file: TextFile) -> Imported:
    kind = _nodetool_kind(file) or ""
    texts = [] if is_json(file) else _fractions(file, kind)
    read = number_format(str(file.path), texts)
    source = {"run_id": run_id(file), "source": f"{file.path.name}: nodetool {kind}"}
    rows = tuple(MicrobenchRow(**{**vars(row), **source}) for row in _NODETOOL_KINDS[kind][1](file, read))
    if not rows:
        raise InputError(f"{file.path} has no figures: nodetool {kind} prints some, or NaN if it has counted nothing")
    return Imported(microbenchmarks=rows, remarks=read.remarks(texts))


NODETOOL = Importer("nodetool", lambda file: _nodetool_kind(file) is not None, _read_nodetool)
