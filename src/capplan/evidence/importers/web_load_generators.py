"""Load generators of web services: wrk, ghz, k6, Gatling and Locust."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pandas as pd

from capplan.errors import InputError
from capplan.evidence.importers.importer import Imported, Importer, matching, percentile_columns, run_id, run_names
from capplan.evidence.importers.json_report import at, json_with, read_json, real
from capplan.evidence.importers.listed_requests import COLUMNS, BusyTime, ListedRun, begun, named_runs, time_s
from capplan.evidence.importers.number_format import number
from capplan.evidence.load_test_row import ALL, LoadTestRow
from capplan.evidence.text_file import TextFile, read_as_csv


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
_WRK2 = re.compile(r"Thread calibration|Recorded Latency|Req/Sec +-?nan")  # the last if it runs for 10 s or less
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
    paced = bool(_WRK2.search(text))
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
        percentiles.setdefault(rank, _wrk_ms(table[6], table[7]))  # a histogram of wrk2 rounds its maximum up
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
_Point = tuple[int, Mapping[str, Any]]  # line, and cells by the names of the CSV; none where a run begins


class _K6Run(ListedRun):
    """A run of k6."""

    def __init__(self, first_line: int) -> None:
        super().__init__(first_line)
        self.failed: float | None = None
        self.dropped, self.tagged, self.exact_s = 0.0, False, 0.0
        self._waiting: list[tuple[Any, ...]] = []

    def take_point(self, line: int, point: Mapping[str, Any], where: str) -> None:
        """Add a point."""
        metric = point["metric_name"]
        value = number(str(point.get("metric_value")), where, f"the value of {metric}")
        if not abs(value) < _K6_MOST:
            raise InputError(f"{where}: {metric} has {value:g}: the file is damaged")
        if metric == "http_req_failed":
            self.failed = (self.failed or 0.0) + value
        elif metric == "dropped_iterations":
            self.dropped += value
        elif metric == "vus_max":
            self.clients = max(self.clients, int(value))
        else:
            ended_s, exact_s = _k6_time_s(str(point.get("timestamp")), where)
            code, expected = (str(point.get(name) or "") for name in ("status", "expected_response"))
            code = code if metric == _K6_LATENCIES[0] else ""  # 0 of gRPC is good
            self.tagged, self.exact_s = self.tagged or bool(expected), max(self.exact_s, exact_s)
            cells = (value, str(point.get("name") or ALL), expected == "false", code != "0", code, 0)
            self._waiting.append((line, ended_s - exact_s - value / 1000, ended_s, *cells))
            if len(self._waiting) == _K6_BATCH:
                self.end()

    def end(self) -> None:
        """Count the points that wait for others."""
        self.add(pd.DataFrame(self._waiting, columns=list(COLUMNS)), "end_s")
        self._waiting = []


def _read_k6(file: TextFile, tool: str, points: Iterator[_Point]) -> Imported:
    runs = [_K6Run(1)]
    for line, point in points:
        if not point:
            runs[-1].end()
            runs.append(_K6Run(line))
        elif point.get("metric_name") in _K6_READ:
            runs[-1].take_point(line, point, f"{file.path}, line {line}")
    runs[-1].end()
    if not any(run.classes for run in runs):
        raise InputError(f"{file.path} has no point of {' or '.join(_K6_LATENCIES)}: k6 writes one per request")
    rows: list[LoadTestRow] = []
    remarks = [*begun(runs)]
    for name, run in named_runs(file, runs):
        whole, *parts = run.rows(file.path, tool, name, "linear")
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
        try:
            point = json.loads(line)
            kind, metric, data = point["type"], point["metric"], point["data"]
            named = {"metric_name": metric, "metric_value": data.get("value"), "timestamp": data.get("time")}
            found = {**(data.get("tags") or {}), **named}
        except (ValueError, KeyError, TypeError, AttributeError):
            raise InputError(
                f"{file.path}, line {line_number} must be a JSON object with metric, type and data: the file is "
                "damaged or cut off"
            ) from None
        if kind == "Metric" and metric in described:  # k6 describes each once in a run
            described.clear()
            yield line_number, {}
        if kind == "Metric":
            described.add(metric)
        elif kind == "Point":
            yield line_number, found


def _csv_rows(file: TextFile) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the line of each row of a CSV file and its cells by name; none if the header stands there again."""
    with read_as_csv(str(file.path)):
        reader = csv.reader(line + "\n" for _, line in file.lines())
        header = next(reader)
        for cells in filter(None, reader):
            if len(cells) != len(header):
                where = f"{file.path}, line {reader.line_num}"
                raise InputError(f"{where} has {len(cells)} cells, not {len(header)}: the file is damaged or cut off")
            yield reader.line_num, {} if cells == header else dict(zip(header, cells, strict=True))


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
K6_CSV = Importer("k6 CSV", _IS_K6_CSV, lambda file: _read_k6(file, "k6 CSV", _csv_rows(file)), exactness=2)


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
_LOCUST_AT_ONCE_S = 2.0  # between two lines of a history
_LOCUST_RANK = re.compile(r"(\d{1,3}(?:\.\d+)?)%")


def _locust_rows(file: TextFile) -> Iterator[tuple[str, str, dict[str, float]]]:
    """Yield the place of each row, its class, and its figures by names in lower case."""
    for line, row in _csv_rows(file):
        where = f"{file.path}, line {line}"
        if not row:
            raise InputError(f"{where}: a second run begins: put it into a file of its own")
        cells = {_LOCUST_NAMES.get(name.lower(), name.lower()): cell for name, cell in row.items()}
        kind, name = cells.pop("type"), cells.pop("name")
        found = {key: number(cell, where, key) for key, cell in cells.items() if cell not in ("", "N/A", "nan")}
        yield where, ALL if name in _LOCUST_WHOLE else f"{kind} {name}".strip(), found


def _locust_row(
    name: str, found: Mapping[str, float], total: str, file: TextFile, cells: Mapping[str, Any]
) -> LoadTestRow:
    """Return a row with the mean, the median and the maximum of a run."""
    failed = found.get(f"{total}failure count", 0.0)
    return LoadTestRow(
        run_id=re.sub(r"_stats(?:_history)?$", "", run_id(file)),
        request_class=name,
        latency_mean_ms=found.get(f"{total}average response time"),
        latency_max_ms=found.get(f"{total}max response time"),
        errors=int(failed or found.get("# failures", 0.0)),
        source=f"{file.path.name}: Locust",
        note=_failed(failed),
        **{"latency_p50_ms": found.get(f"{total}median response time"), **cells},
    )


def _read_locust_stats(file: TextFile) -> Imported:
    rows = []
    for where, name, found in _locust_rows(file):
        if not found.keys() >= {"request count", "requests/s"}:
            raise InputError(f"{where}: 'Request Count' and 'Requests/s' must be numbers, as Locust has")
        count, rate = found["request count"], found["requests/s"]
        if count:
            longest = found.get("max response time", math.inf)  # exact, where percentiles are rounded to two digits
            ranks = {
                float(rank[1]): min(value, longest)
                for key, value in found.items()
                if (rank := _LOCUST_RANK.fullmatch(key))
            }
            cells = {"throughput_tps": rate, "duration_s": count / rate if rate else None, **percentile_columns(ranks)}
            rows.append(_locust_row(name, found, "", file, cells))
    if not rows:
        raise InputError(f"{file.path} has no requests: the run was interrupted, or measured nothing")
    return Imported(tuple(sorted(rows, key=lambda row: row.request_class != ALL)))


def _read_locust_history(file: TextFile) -> Imported:
    time, total = "timestamp", "total request count"
    first, ended, last = dict[str, float](), dict[str, float](), dict[str, float]()
    busy, clients, opened_s = BusyTime(), 0, 0.0
    reset: tuple[str, ...] = ()
    for where, name, row in _locust_rows(file):
        if name != ALL:
            continue
        if not row.keys() >= {time, total}:
            raise InputError(f"{where}: 'Timestamp' and 'Total Request Count' must be numbers, as Locust has")
        at_once = last and 0 <= row[time] - last[time] <= _LOCUST_AT_ONCE_S
        if at_once and row[total] < last[total] and row.get("user count", 0) >= clients > 0:
            reset = (f"{where}: Locust begins to count again, as with --reset-stats: what was before is left out",)
            last, ended, busy = {}, {}, BusyTime()
        if last and (row[time] < last[time] or row[total] < last[total]):
            raise InputError(
                f"{where}: the time or the total goes back: a second run begins, or lines are out of order: put each "
                "run into a file of its own"
            )
        opened_s = opened_s if last else row[time]
        if not last or row[total] == first[total]:
            first = row  # no request has ended
        elif row[total] > last[total]:
            ended = row
            longest_s = max(1.0, row.get("100%", 0.0) / 1000)  # of those that ended
            busy.add([row[time] - longest_s], [row[time]], [int(where.rpartition(" ")[2])])
        last, clients = row, max(clients, int(row.get("user count", 0)))
    if not ended or ended[time] == first[time]:
        raise InputError(f"{file.path} has no second with a request: the run was interrupted, or measured nothing")
    duration_s = ended[time] - max(opened_s, min(first[time], float(busy.parts[0, 0])))
    rate = (ended[total] - first[total]) / duration_s
    cells = {"duration_s": duration_s, "throughput_tps": rate, "clients": clients or None}
    return Imported((_locust_row(ALL, last, "total ", file, cells),), remarks=(*reset, *busy.remarks()))


LOCUST = Importer(
    "Locust", matching(r'\A"?(?:Type|Method)"?,"?Name"?,"?(?:Request Count|# requests)\b'), _read_locust_stats, 2
)
LOCUST_HISTORY = Importer("Locust history", matching(r'\A"?Timestamp"?,"?User Count"?,"?Type\b'), _read_locust_history)
