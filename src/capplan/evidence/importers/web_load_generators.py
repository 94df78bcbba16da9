"""Load generators of web services: wrk, ghz, k6, Gatling and JMeter."""

from __future__ import annotations

import csv
import json
import re
from array import array
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from capplan.evidence.importers.importer import (
    Imported,
    Importer,
    at,
    json_with,
    matching,
    number,
    of_samples,
    percentile_columns,
    read_json,
    real,
    run_id,
)
from capplan.evidence.load_test_row import ALL, LoadTestRow
from capplan.evidence.text_file import TextFile
from capplan.models.errors import InputError

_MOST_CLASSES = 50


def _sampled(file: TextFile, tool: str, name: str, duration_s: float, requests: int, **cells: Any) -> LoadTestRow:
    """Return the row of a class from a file that lists every request."""
    return LoadTestRow(
        run_id=run_id(file),
        request_class=name,
        duration_s=duration_s,
        throughput_tps=requests / duration_s if duration_s else None,
        source=f"{file.path.name}: {tool}",
        **cells,
    )


# ---- wrk and wrk2: what they print. wrk2's part is written from its documentation.
#
# wrk's connections wait for their answers. wrk2 sends at a constant rate, which it does not print, and counts latency
# from the intended start. Some of its forks print the 99th percentile in place of the maximum.


_WRK_MS = {"us": 1e-3, "ms": 1.0, "s": 1e3, "m": 6e4, "h": 3.6e6}
_WRK_TIME = r"(\d+(?:\.\d+)?)(us|ms|s|m|h)"
_WRK_PERCENTILE = re.compile(rf"^ *(\d+(?:\.\d+)?)%\s+{_WRK_TIME}\s*$", re.MULTILINE)
_WRK_TABLE = re.compile(rf"Thread Stats +Avg +Stdev +(Max|\d+%).*\n +Latency +{_WRK_TIME} +{_WRK_TIME} +{_WRK_TIME}")
_WRK_TOTAL = re.compile(rf"^ +\d+ requests in {_WRK_TIME},", re.MULTILINE)
_WRK_RATE = re.compile(r"^Requests/sec:(.*)$", re.MULTILINE)
_WRK_CLIENTS = re.compile(r"^ +\d+ threads and (\d+) connections", re.MULTILINE)
_WRK_FAILED = re.compile(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)|responses: (\d+)")


def _read_wrk(file: TextFile) -> Imported:
    text = file.text()
    rate, clients, total = (each.search(text) for each in (_WRK_RATE, _WRK_CLIENTS, _WRK_TOTAL))
    if not rate:
        raise InputError(f"{file.path} ends before 'Requests/sec': the run was interrupted or the file is cut off")
    paced = "Thread calibration" in text or "Recorded Latency" in text
    row = LoadTestRow(
        run_id=run_id(file),
        request_class=ALL,
        load_kind="open" if paced else "closed",
        clients=int(clients[1]) if clients else None,
        duration_s=_wrk_ms(total[1], total[2]) / 1000 if total else None,
        throughput_tps=number(rate[1], str(file.path), "requests per second"),
        errors=sum(int(each) for found in _WRK_FAILED.finditer(text) for each in found.groups(default="0")),
        source=f"{file.path.name}: {'wrk2' if paced else 'wrk'}",
        **_wrk_latencies(text.partition("Uncorrected Latency")[0]),  # what follows counts from the sending
    )
    needed = ("wrk2 does not print its rate: give it by --set offered_tps=...",) if paced else ()
    return Imported((row,), remarks=needed)


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


WRK = Importer("wrk", matching(r"^Running \S+ test @ "), _read_wrk)


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
        source=f"{file.path.name}: ghz",
        **percentile_columns(percentiles),
    )
    return Imported((row,))


GHZ = Importer("ghz", json_with("endReason", "rps"), _read_ghz)


# ---- k6: its points (`--out json=FILE`). Written from real output.
#
# With an arrival-rate executor, k6 skips iterations for which no virtual user is free: these are `drops`. Only their
# number shows in the file that the load was open.


_K6_LATENCIES = ("http_req_duration", "grpc_req_duration")
_K6_READ = (*_K6_LATENCIES, "http_req_failed", "dropped_iterations", "vus_max")


def _read_k6_points(file: TextFile) -> Imported:
    latencies: dict[str, array[float]] = {}
    start, end, failed, dropped, clients = "", "", 0.0, 0.0, 0
    for line_number, line in file.lines():
        if not line.strip():
            continue
        try:
            point = json.loads(line)
            metric, data = point["metric"], point["data"]
            if point["type"] != "Point" or metric not in _K6_READ:
                continue
            value = float(data["value"])
            if metric in _K6_LATENCIES:
                name = str((data.get("tags") or {}).get("name", ALL))
                latencies.setdefault(name, array("d")).append(value)
                time = data["time"]
                start, end = min(start or time, time), max(end, time)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise InputError(
                f"{file.path}, line {line_number} must be a JSON object with metric, type and data: the file is "
                "damaged or cut off"
            ) from None
        failed += value if metric == "http_req_failed" else 0.0
        dropped += value if metric == "dropped_iterations" else 0.0
        clients = max(clients, int(value)) if metric == "vus_max" else clients
    if not latencies:
        raise InputError(f"{file.path} has no point of {' or '.join(_K6_LATENCIES)}: k6 writes one per request")
    duration_s = (_go_time(end, file) - _go_time(start, file)).total_seconds()
    every = np.concatenate([np.frombuffer(each) for each in latencies.values()])
    parts = {ALL: every} if len(latencies) > 1 else {}
    if len(latencies) <= _MOST_CLASSES:
        parts |= {name: np.frombuffer(each) for name, each in latencies.items()}
    rows = tuple(
        _sampled(
            file,
            "k6 points",
            name,
            duration_s,
            len(samples),
            **of_samples(samples, "linear"),
            clients=clients or None,
            load_kind="open" if dropped else None,
            errors=int(failed) if len(samples) == len(every) else None,
            drops=int(dropped) if len(samples) == len(every) else None,
        )
        for name, samples in parts.items()
    )
    return Imported(rows)


def _go_time(text: str, file: TextFile) -> datetime:
    """Parse a Go timestamp; of nine digits of fractional seconds, Python keeps six."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"{file.path}: {text!r} must be a time such as 2026-05-09T14:34:45.625+02:00") from None


_IS_K6_POINTS = matching(r'\A\{(?=.*"metric")(?=.*"type").*"data"')
K6_POINTS = Importer("k6 points", _IS_K6_POINTS, _read_k6_points, exactness=2)


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
    latencies: dict[str, Any] = {column: total(key) for key, column in _GATLING_COLUMNS.items()}
    return LoadTestRow(
        run_id=run_id(file),
        request_class=name,
        duration_s=count / rate if count and rate else None,
        throughput_tps=rate,
        errors=int(number(str(failed), str(file.path), "ko")) if failed != "-" else 0,
        source=f"{file.path.name}: Gatling",
        **latencies,
    )


GATLING_REPORT = Importer("Gatling", json_with("meanNumberOfRequestsPerSecond"), _read_gatling_report)


# ---- JMeter: its results as CSV (JTL), one line per sample. Written from real output of JMeter 5.4.
#
# A thread group does not say whether its threads wait (closed), are paced by a timer (throttled) or come at a rate (the
# open model thread group), so the kind of load stays undetermined. A transaction controller writes a sample of its own
# beside those in it: they are the requests, and the transactions become a run of their own, for classes must add up.


_JMETER_NEEDED = ("timeStamp", "elapsed", "label", "success")
_JMETER_OPTIONAL = {"allThreads": pa.int64(), "responseMessage": pa.string(), "threadName": pa.string()}
_JMETER_TRANSACTION = "Number of samples in transaction : "


def _read_jmeter(file: TextFile) -> Imported:
    samples = _jmeter_samples(file)
    start_ms = pc.min(samples["timeStamp"]).as_py()
    ends = pc.add(samples["timeStamp"], samples["elapsed"])
    duration_s = (pc.max(ends).as_py() - start_ms) / 1000
    clients = pc.max(samples["allThreads"]).as_py() if "allThreads" in samples.column_names else None
    nested = _jmeter_nested(samples)
    requests, transactions = samples.filter(pc.invert(nested)), samples.filter(nested)
    labels, controllers = (sorted(pc.unique(each["label"]).to_pylist()) for each in (requests, transactions))
    remarks = []

    def row(name: str, part: pa.Table) -> LoadTestRow:
        elapsed = part["elapsed"].to_numpy().astype(np.float64)
        good = pc.sum(pc.equal(pc.utf8_lower(part["success"]), "true")).as_py()
        cells = {"clients": clients, "errors": len(elapsed) - int(good or 0), **of_samples(elapsed)}
        return _sampled(file, "JMeter", name, duration_s, len(elapsed), **cells)

    def by_label(part: pa.Table, names: list[str]) -> list[LoadTestRow]:
        if len(names) > _MOST_CLASSES:
            remarks.append(f"{len(names)} labels are too many for a row each: only all samples together are taken")
            return []
        return [row(name, part.filter(pc.equal(part["label"], name))) for name in names]

    rows = [row(ALL, requests), *by_label(requests, labels)] if len(labels) > 1 else [row(labels[0], requests)]
    if controllers:
        own = f"{run_id(file)}-transactions"
        rows += [replace(each, run_id=own) for each in by_label(transactions, controllers)]
        remarks.append(f"transactions are the run {own!r}: they are no requests beside those in them")
    return Imported(tuple(rows), remarks=tuple(remarks))


def _jmeter_nested(samples: pa.Table) -> pa.ChunkedArray:
    """Return which samples are transactions whose own samples are there, too.

    A thread writes them before the transaction, which began no later. A transaction that is their parent stands alone.
    """
    if "responseMessage" not in samples.column_names or "threadName" not in samples.column_names:
        return pa.chunked_array([np.zeros(samples.num_rows, dtype=bool)])
    starts = samples.select(["threadName", "timeStamp"]).to_pandas()
    before = starts.groupby("threadName")["timeStamp"].shift()
    transaction = pc.starts_with(samples["responseMessage"], _JMETER_TRANSACTION)
    return pc.and_(transaction, pa.array(before >= starts["timeStamp"]))


def _jmeter_samples(file: TextFile) -> pa.Table:
    header = file.head.partition("\n")[0].strip()
    delimiter = next((each for each in ",;\t" if each in header), ",")
    names = next(csv.reader([header], delimiter=delimiter))
    if missing := [name for name in _JMETER_NEEDED if name not in names]:
        raise InputError(f"{file.path}, line 1: column {missing[0]!r} is missing: save the results with it")
    types = {"timeStamp": pa.int64(), "elapsed": pa.int64(), "label": pa.string(), "success": pa.string()}
    types |= {name: kind for name, kind in _JMETER_OPTIONAL.items() if name in names}
    try:
        samples = pa_csv.read_csv(
            file.path,
            read_options=pa_csv.ReadOptions(use_threads=False),
            parse_options=pa_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            convert_options=pa_csv.ConvertOptions(
                column_types=types, include_columns=list(types), strings_can_be_null=False
            ),
        )
    except pa.ArrowInvalid as error:
        raise _damaged_jmeter(file, delimiter, names, str(error)) from None
    if not samples.num_rows:
        raise InputError(f"{file.path} has no samples: the run was interrupted, or measured nothing")
    if samples["timeStamp"].null_count or samples["elapsed"].null_count:
        raise _damaged_jmeter(file, delimiter, names, "a cell is empty")
    return samples


def _damaged_jmeter(file: TextFile, delimiter: str, names: list[str], reason: str) -> InputError:
    """Find the first line that is no sample."""
    lines = (line for _, line in file.lines())
    reader = csv.reader(lines, delimiter=delimiter)
    next(reader)
    for cells in reader:
        where = f"{file.path}, line {reader.line_num}"
        if len(cells) != len(names):
            return InputError(f"{where} has {len(cells)} cells, not {len(names)}: the file is damaged or cut off")
        for name in ("timeStamp", "elapsed"):
            found = cells[names.index(name)]
            if not found.lstrip("-").isdigit():
                return InputError(f"{where}: {name} has {found!r}: it must be milliseconds, as a whole number")
    return InputError(f"{file.path} is not a JTL file: {reason.splitlines()[0]}")


JMETER = Importer("JMeter", matching(r"\A(?=.*timeStamp).*elapsed"), _read_jmeter, exactness=2)
