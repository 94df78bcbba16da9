"""Load generators of web services: wrk, ghz, k6, Gatling and Locust."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from types import MappingProxyType
from typing import Any, NamedTuple

import pandas as pd

from capplan.evidence.importers.importer import (
    Imported,
    Importer,
    at,
    json_with,
    matching,
    number,
    percentile_columns,
    read_json,
    real,
    run_id,
    run_names,
)
from capplan.evidence.importers.listed_requests import COLUMNS, BusyTime, ListedRun, begun, named_runs, time_s
from capplan.evidence.load_test_row import ALL, LoadTestRow
from capplan.evidence.text_file import TextFile, read_as_csv
from capplan.models.errors import InputError


def _failed(count: float, what: str = "failed", where: str = "rate and latency") -> str | None:
    """Return a note on failed requests that a tool counts with the others."""
    return f"in {where}, and counted as failed: {count:,.0f} {what}" if count else None


# ---- wrk and wrk2: what they print, one run or several. wrk2's part is written from its documentation.
#
# wrk's connections wait for their answers. wrk2 sends at a constant rate, which it does not print, and counts latency
# from the intended start. Some of its forks print the 99th percentile in place of the maximum.


_WRK_MS = {"us": 1e-3, "ms": 1.0, "s": 1e3, "m": 6e4, "h": 3.6e6}
_WRK_TIME = r"(\d+(?:\.\d+)?)(us|ms|s|m|h)"
_WRK_START = re.compile(r"^Running \S+ test @ ", re.MULTILINE)
_WRK_PERCENTILE = re.compile(rf"^ *(\d+(?:\.\d+)?)%\s+{_WRK_TIME}\s*$", re.MULTILINE)
_WRK_TABLE = re.compile(rf"Thread Stats +Avg +Stdev +(Max|\d+%).*\n +Latency +{_WRK_TIME} +{_WRK_TIME} +{_WRK_TIME}")
_WRK_TOTAL = re.compile(rf"^ +(\d+) requests in {_WRK_TIME},", re.MULTILINE)
_WRK_RATE = re.compile(r"^Requests/sec:(.*)$", re.MULTILINE)
_WRK_CLIENTS = re.compile(r"^ +\d+ threads and (\d+) connections", re.MULTILINE)
_WRK_FAILED = re.compile(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)|responses: (\d+)")


def _read_wrk(file: TextFile) -> Imported:
    text = file.text()
    starts = [found.start() for found in _WRK_START.finditer(text)]
    runs = [text[start:end] for start, end in pairwise([*starts, len(text)])]
    lines = [1 + text.count("\n", 0, start) for start in starts]
    clients = [_WRK_CLIENTS.search(run) for run in runs]
    names = run_names(file, [f"{found[1]}-connections" if found else "" for found in clients])
    rows = tuple(_wrk_row(*each, file) for each in zip(runs, names, lines, strict=True))
    needed = ("wrk2 does not print its rate: give it by --set offered_tps=...",)
    return Imported(rows, remarks=needed if any(row.load_kind == "open" for row in rows) else ())


def _wrk_row(text: str, name: str, line: int, file: TextFile) -> LoadTestRow:
    rate, clients, total = (each.search(text) for each in (_WRK_RATE, _WRK_CLIENTS, _WRK_TOTAL))
    if not rate:
        raise InputError(
            f"{file.path}: the run from line {line} on ends before 'Requests/sec': it was interrupted or the file is "
            "cut off"
        )
    paced = "Thread calibration" in text or "Recorded Latency" in text
    failed = [int(each) for found in _WRK_FAILED.finditer(text) for each in found.groups(default="0")]
    answered = total is None or int(total[1]) > 0
    return LoadTestRow(
        run_id=name,
        request_class=ALL,
        load_kind="open" if paced else "closed",
        clients=int(clients[1]) if clients else None,
        duration_s=_wrk_ms(total[2], total[3]) / 1000 if total else None,
        throughput_tps=number(rate[1], str(file.path), "requests per second"),
        errors=sum(failed),
        source=f"{file.path.name}: {'wrk2' if paced else 'wrk'}",
        note=_failed(sum(failed[4::5]), "with another status than 2xx or 3xx"),
        **_wrk_latencies(text.partition("Uncorrected Latency")[0] if answered else ""),  # then from the sending
    )


def _wrk_latencies(text: str) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    percentiles = {float(rank): _wrk_ms(value, unit) for rank, value, unit in _WRK_PERCENTILE.findall(text)}
    if table := _WRK_TABLE.search(text):
        columns["latency_mean_ms"] = _wrk_ms(table[2], table[3])
        rank = 100.0 if table[1] == "Max" else float(table[1].rstrip("%"))
        percentiles[rank] = _wrk_ms(table[6], table[7])
    return {**columns, "latency_max_ms": percentiles.get(100.0), **percentile_columns(percentiles)}


def _wrk_ms(value: str, unit: str) -> float:
    return float(value) * _WRK_MS[unit]


WRK = Importer("wrk", lambda file: bool(_WRK_START.search(file.head)), _read_wrk)


# ---- ghz: its report in JSON. Written from a real report.
#
# Without `--async` a worker waits for its answer before it sends again, so that a rate is a pace of closed clients.


_NS_PER_MS = 1e6
_GHZ_DETAIL = {"timestamp", "latency", "error", "status"}


def _ghz_object(pairs: list[tuple[str, Any]]) -> Any:
    """Return an object of a report, or None for a single request: a report may list millions of these."""
    found = dict(pairs)
    return None if found.keys() == _GHZ_DETAIL else found


def _read_ghz(file: TextFile) -> Imported:
    report = read_json(file, _ghz_object)
    options = at(report, file, "options")
    count = real(report, file, "count")
    good = report.get("statusCodeDistribution", {}).get("OK", 0)
    rate, paced = options.get("rps") or None, bool(options.get("async"))
    listed = report.get("latencyDistribution") or ()
    percentiles = {real(each, file, "percentage"): real(each, file, "latency") / _NS_PER_MS for each in listed}
    constant = options.get("load-schedule", "const") == "const"
    row = LoadTestRow(
        run_id=run_id(file),
        request_class=str(at(options, file, "call")).rpartition(".")[2].lower(),
        load_kind=("open" if paced else "throttled") if rate else "closed",
        clients=int(options["concurrency"]) if options.get("concurrency") else None,
        offered_tps=float(rate) if rate and constant else None,
        duration_s=real(report, file, "total") / 1e9,
        throughput_tps=real(report, file, "rps"),
        latency_mean_ms=real(report, file, "average") / _NS_PER_MS,
        latency_max_ms=real(report, file, "slowest") / _NS_PER_MS,
        encryption_client=not options["insecure"] if "insecure" in options else None,
        errors=int(count - good),
        note=_failed(count - good, "with another status than OK", "rate and mean"),
        source=f"{file.path.name}: ghz",
        **percentile_columns(percentiles),
    )
    return Imported((row,))


GHZ = Importer("ghz", json_with("endReason", "rps"), _read_ghz)


# ---- k6: its points, as JSON (`--out json=FILE`) or CSV (`--out csv=FILE`). Written from real output, and CSV from
# k6's documentation and public results.
#
# With an arrival-rate executor, k6 skips iterations for which no virtual user is free: these are `drops`. Only their
# number shows in the file that the load was open. A point has the time at which its request ended. A request without an
# answer has status 0; k6 counts any status that the script did not expect as failed.


_K6_LATENCIES = ("http_req_duration", "grpc_req_duration")
_K6_READ = (*_K6_LATENCIES, "http_req_failed", "dropped_iterations", "vus_max")
_K6_BATCH = 50_000
_K6_MOST = 1e12  # of a value: decades in milliseconds


class _Point(NamedTuple):
    """A point of k6; one without a metric begins a run."""

    line: int
    metric: str
    value: float = 0.0
    ended_s: float = 0.0
    exact_s: float = 0.0  # to which the time is known
    tags: Mapping[str, Any] = MappingProxyType({})


class _K6Run(ListedRun):
    """A run of k6."""

    def __init__(self, first_line: int) -> None:
        super().__init__(first_line)
        self.failed: float | None = None
        self.dropped, self.tagged, self.exact_s = 0.0, False, 0.0
        self._waiting: list[tuple[Any, ...]] = []

    def take_point(self, point: _Point) -> None:
        """Add a point."""
        if point.metric == "http_req_failed":
            self.failed = (self.failed or 0.0) + point.value
        elif point.metric == "dropped_iterations":
            self.dropped += point.value
        elif point.metric == "vus_max":
            self.clients = max(self.clients, int(point.value))
        else:
            tags, http = point.tags, point.metric == _K6_LATENCIES[0]
            code, expected = str(tags.get("status") or "") if http else "", str(tags.get("expected_response") or "")
            self.tagged = self.tagged or bool(expected)
            self.exact_s = max(self.exact_s, point.exact_s)
            start_s = point.ended_s - point.exact_s - point.value / 1000
            name, failed = str(tags.get("name") or ALL), expected == "false"
            self._waiting.append(
                (point.line, start_s, point.ended_s, point.value, name, failed, not (http and code == "0"), code, 0)
            )
            if len(self._waiting) == _K6_BATCH:
                self.end()

    def end(self) -> None:
        """Count the points that wait for others."""
        self.add(pd.DataFrame(self._waiting, columns=list(COLUMNS)), "end_s")
        self._waiting = []


def _read_k6(file: TextFile, tool: str, points: Iterator[_Point]) -> Imported:
    runs = [_K6Run(1)]
    for point in points:
        if point.metric:
            runs[-1].take_point(point)
        else:
            runs[-1].end()
            runs.append(_K6Run(point.line))
    runs[-1].end()
    if not any(run.classes for run in runs):
        raise InputError(f"{file.path} has no point of {' or '.join(_K6_LATENCIES)}: k6 writes one per request")
    rows: list[LoadTestRow] = []
    remarks = [*begun(runs)]
    for name, run in named_runs(file, runs):
        whole, *parts = run.rows(file, tool, name, "linear")
        errors = whole.errors if run.failed is None else int(run.failed)
        rows.append(replace(whole, errors=errors, drops=int(run.dropped), load_kind="open" if run.dropped else None))
        rows += parts if run.tagged else [replace(each, errors=None) for each in parts]
        remarks += run.remarks()
        if run.exact_s:
            remarks.append(f"its times are whole seconds: {run.duration_s:g} s may be up to 1 s more or less")
    return Imported(tuple(rows), remarks=tuple(remarks))


def _k6_json(file: TextFile) -> Iterator[_Point]:
    described = set[str]()
    for line_number, line in file.lines():
        if not line.strip():
            continue
        where = f"{file.path}, line {line_number}"
        try:
            point = json.loads(line)
            metric, data = point["metric"], point["data"]
            if point["type"] == "Metric" and metric in described:  # k6 describes each once in a run
                described.clear()
                yield _Point(line_number, "")
            if point["type"] == "Metric":
                described.add(metric)
            if point["type"] != "Point" or metric not in _K6_READ:
                continue
            value, tags = float(data["value"]), dict(data.get("tags") or {})
            if not abs(value) < _K6_MOST:
                raise ValueError(value)
            ended_s = _k6_time_s(data["time"], where)[0] if metric in _K6_LATENCIES else 0.0
        except InputError:
            raise
        except (ValueError, KeyError, TypeError, AttributeError):
            raise InputError(
                f"{where} must be a JSON object with metric, type and data: the file is damaged or cut off"
            ) from None
        yield _Point(line_number, metric, value, ended_s, 0.0, tags)


def _k6_csv(file: TextFile) -> Iterator[_Point]:
    names: list[str] = []
    with read_as_csv(str(file.path)):
        reader = csv.reader(line + "\n" for _, line in file.lines())
        for cells in filter(None, reader):
            where = f"{file.path}, line {reader.line_num}"
            if cells[0] == "metric_name":
                if names:
                    yield _Point(reader.line_num, "")
                names = cells
            elif len(cells) != len(names):
                raise InputError(f"{where} has {len(cells)} cells, not {len(names)}: the file is damaged or cut off")
            elif cells[0] in _K6_READ:
                tags = dict(zip(names, cells, strict=True))
                value = number(tags["metric_value"], where, "the value of a metric")
                if not abs(value) < _K6_MOST:
                    raise InputError(f"{where}: {value:g} is no value of {cells[0]}: the file is damaged")
                yield _Point(reader.line_num, cells[0], value, *_k6_time_s(tags["timestamp"], where), tags)


def _k6_time_s(text: str, where: str) -> tuple[float, float]:
    """Return a time in s, and how exact it is; a number is in the unit that its size shows."""
    try:
        if text.isdecimal() and len(text) < 20:
            unit_s = 1000.0 ** -max(0, (len(text) - 8) // 3)  # of ten digits seconds, of thirteen milliseconds
            return float(text) * unit_s, 1.0 if unit_s == 1 else 0.0
        return time_s(text), 0.0
    except (ValueError, OverflowError):
        raise InputError(f"{where}: {text!r} must be a time such as 2026-05-09T14:34:45.625+02:00") from None


_IS_K6_JSON = matching(r'\A\{(?=.*"metric")(?=.*"type").*"data"')
K6_POINTS = Importer("k6 points", _IS_K6_JSON, lambda file: _read_k6(file, "k6 points", _k6_json(file)), exactness=2)
_IS_K6_CSV = matching(r"\Ametric_name,timestamp,metric_value\b")
K6_CSV = Importer("k6 CSV", _IS_K6_CSV, lambda file: _read_k6(file, "k6 CSV", _k6_csv(file)), exactness=2)


# ---- Gatling: `js/global_stats.json` and `js/stats.json` of its HTML report.
#
# This was written from public reports. Their four percentiles have no ranks; they are taken for Gatling's defaults 50,
# 75, 95 and 99. Reports count failed requests in `total`.


_GATLING_COLUMNS = {
    "meanResponseTime": "latency_mean_ms",
    "percentiles1": "latency_p50_ms",
    "percentiles2": "latency_p75_ms",
    "percentiles3": "latency_p95_ms",
    "percentiles4": "latency_p99_ms",
    "maxResponseTime": "latency_max_ms",
}


def _read_gatling_report(file: TextFile) -> Imported:
    report = read_json(file)
    contents = report.get("contents", {})  # groups contain kinds of requests and are left out
    requests = [each for each in contents.values() if each.get("type") == "REQUEST"]
    rows = [] if len(requests) == 1 else [_gatling_row(ALL, report.get("stats", report), file)]
    rows += [_gatling_row(str(each.get("name")), each.get("stats", {}), file) for each in requests]
    remark = "percentiles are taken for Gatling's defaults 50, 75, 95 and 99; was simulation injected open or closed?"
    return Imported(tuple(rows), remarks=(remark,))


def _gatling_row(name: str, stats: Mapping[str, Any], file: TextFile) -> LoadTestRow:
    def total(key: str) -> float | None:
        found = at(stats, file, key, "total")
        return None if found == "-" else number(str(found), str(file.path), key)

    count, rate = total("numberOfRequests"), total("meanNumberOfRequestsPerSecond")
    failed = at(stats, file, "numberOfRequests", "ko")
    errors = 0.0 if failed == "-" else number(str(failed), str(file.path), "ko")
    latencies: dict[str, Any] = {column: total(key) for key, column in _GATLING_COLUMNS.items()}
    return LoadTestRow(
        run_id=run_id(file),
        request_class=name,
        duration_s=count / rate if count and rate else None,
        throughput_tps=rate,
        errors=int(errors),
        note=_failed(errors),
        source=f"{file.path.name}: Gatling",
        **latencies,
    )


GATLING_REPORT = Importer("Gatling", json_with("meanNumberOfRequestsPerSecond"), _read_gatling_report)


# ---- Locust: `_stats.csv` (the whole run) and `_stats_history.csv` (a line a second). Written from its source and from
# public results, of Locust 0.14 and later.
#
# Locust counts failed requests with the others, whether they were answered or not. The history has percentiles of the
# last seconds, which say nothing of the run; its totals are those of the run. Both files together are one run.


_LOCUST_NAMES = {"# requests": "request count", "method": "type"}  # of versions before 1.0, whose requests did not fail
_LOCUST_WHOLE = ("Aggregated", "Total")
_LOCUST_MISSING = ("", "N/A", "nan")


def _locust_rows(file: TextFile) -> Iterator[tuple[int, str, dict[str, float | None]]]:
    """Yield the line of each row, its class, and its figures by names in lower case."""
    with read_as_csv(str(file.path)):
        reader = csv.reader(line + "\n" for _, line in file.lines())
        header = [name.strip().lower() for name in next(reader)]
        names = [_LOCUST_NAMES.get(name, name) for name in header]
        for cells in filter(None, reader):
            where = f"{file.path}, line {reader.line_num}"
            if [each.strip().lower() for each in cells] == header:
                raise InputError(f"{where}: a second run begins: put it into a file of its own")
            if len(cells) != len(names):
                raise InputError(f"{where} has {len(cells)} cells, not {len(names)}: the file is damaged or cut off")
            row = dict(zip(names, cells, strict=True))
            kind, name = row.pop("type"), row.pop("name")
            found = {key: None if cell in _LOCUST_MISSING else number(cell, where, key) for key, cell in row.items()}
            yield reader.line_num, ALL if name in _LOCUST_WHOLE else f"{kind} {name}".strip(), found


def _locust_row(name: str, found: Mapping[str, float | None], total: str, file: TextFile, **cells: Any) -> LoadTestRow:
    """Return a row with the mean, the median and the maximum of a run."""
    return LoadTestRow(
        run_id=re.sub(r"_stats(?:_history)?$", "", run_id(file)),
        request_class=name,
        latency_mean_ms=found.get(f"{total}average response time"),
        latency_max_ms=found.get(f"{total}max response time"),
        errors=int(found.get(f"{total}failure count") or found.get("# failures") or 0),
        source=f"{file.path.name}: Locust",
        note=_failed(found.get(f"{total}failure count") or 0),
        **{"latency_p50_ms": found.get(f"{total}median response time"), **cells},
    )


def _read_locust_stats(file: TextFile) -> Imported:
    rows = []
    for line, name, found in _locust_rows(file):
        count, rate = found.get("request count"), found.get("requests/s")
        if count is None or rate is None:
            raise InputError(
                f"{file.path}, line {line}: 'Request Count' and 'Requests/s' must be numbers, as Locust has"
            )
        if not count:
            continue
        percentiles = {
            float(key[:-1]): value for key, value in found.items() if key.endswith("%") and value is not None
        }
        duration_s = count / rate if rate else None
        cells = {"throughput_tps": rate, "duration_s": duration_s, **percentile_columns(percentiles)}
        rows.append(_locust_row(name, found, "", file, **cells))
    if not rows:
        raise InputError(f"{file.path} has no requests: the run was interrupted, or measured nothing")
    return Imported(tuple(sorted(rows, key=lambda row: row.request_class != ALL)))


def _read_locust_history(file: TextFile) -> Imported:
    seen: dict[str, list[tuple[float, float]]] = {}  # of a class, when its total changed
    last: dict[str, dict[str, float | None]] = {}
    busy, clients = BusyTime(), 0
    for line, name, found in _locust_rows(file):
        time, total = found.get("timestamp"), found.get("total request count")
        if time is None or total is None:
            raise InputError(f"{file.path}, line {line}: 'Timestamp' and 'Total Request Count' must be numbers")
        steps = seen.setdefault(name, [(time, total)])
        if time < steps[-1][0] or total < steps[-1][1]:
            raise InputError(
                f"{file.path}, line {line}: the time or the total goes back: a second run begins, or lines are out of "
                "order: put each run into a file of its own"
            )
        if total > steps[-1][1]:
            busy.add([time - 1], [time], [line])
            steps.append((time, total))
        elif len(steps) == 1:
            steps[0] = (time, total)  # it has not begun
        last[name], clients = found, max(clients, int(found.get("user count") or 0))
    rows = []
    for name, steps in seen.items():
        (begun_s, before), (ended_s, after) = steps[0], steps[-1]
        if after > before and ended_s > begun_s:
            duration_s = ended_s - begun_s
            cells = {
                "duration_s": duration_s,
                "throughput_tps": (after - before) / duration_s,
                "clients": clients or None,
            }
            rows.append(_locust_row(name, last[name], "total ", file, **cells))
    if not rows:
        raise InputError(f"{file.path} has no second with a request: the run was interrupted, or measured nothing")
    return Imported(tuple(rows), remarks=tuple(busy.remarks()))


LOCUST = Importer(
    "Locust", matching(r'\A"?(?:Type|Method)"?,"?Name"?,"?(?:Request Count|# requests)\b'), _read_locust_stats, 2
)
LOCUST_HISTORY = Importer("Locust history", matching(r'\A"?Timestamp"?,"?User Count"?,"?Type\b'), _read_locust_history)
