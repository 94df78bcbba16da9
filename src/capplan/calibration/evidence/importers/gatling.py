"""Gatling: `js/global_stats.json` and `js/stats.json` of its HTML report, and `simulation.log` while it was text.

This was written from public reports. Their four percentiles have no ranks; they are taken for Gatling's defaults 50,
75, 95 and 99. Reports count failed requests in `total`.

`simulation.log` is binary since 3.12. Before, it has a line for each request [1]_. The first columns differ between
versions (scenario and user, user, neither); since 2.2 groups, name, start, end and status follow.

References
----------
.. [1] https://github.com/gatling/gatling, `LogFileDataWriter.scala` of versions 2.2 and 3.3.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from capplan.calibration.evidence.importers.importer import Imported, Importer, at, number, read_json, run_id
from capplan.calibration.evidence.importers.latency_summary import of_samples
from capplan.calibration.evidence.load_tests import ALL, LoadTestRow
from capplan.calibration.evidence.text_file import TextFile
from capplan.models.errors import InputError

_COLUMNS = {
    "meanResponseTime": "latency_mean_ms",
    "percentiles1": "latency_p50_ms",
    "percentiles2": "latency_p75_ms",
    "percentiles3": "latency_p95_ms",
    "percentiles4": "latency_p99_ms",
    "maxResponseTime": "latency_max_ms",
}


def _recognises(file: TextFile) -> bool:
    return file.head.lstrip().startswith("{") and '"meanNumberOfRequestsPerSecond"' in file.head


def _read(file: TextFile) -> Imported:
    report = read_json(file)
    rows = tuple(_row(name, stats, file) for name, stats in _groups(report))
    remark = "percentiles are taken for Gatling's defaults 50, 75, 95 and 99; was simulation injected open or closed?"
    return Imported(rows, remarks=(remark,))


def _groups(report: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the statistics of all requests, and of each kind; groups hold kinds and are left out."""
    contents = report.get("contents", {})
    requests = [each for each in contents.values() if each.get("type") == "REQUEST"]
    if len(requests) != 1:
        yield ALL, report.get("stats", report)
    for each in requests:
        yield str(each.get("name")), each.get("stats", {})


def _row(name: str, stats: Mapping[str, Any], file: TextFile) -> LoadTestRow:
    def total(key: str) -> float | None:
        found = at(stats, file, key, "total")
        return None if found == "-" else number(str(found), str(file.path), key)

    count, rate = total("numberOfRequests"), total("meanNumberOfRequestsPerSecond")
    failed = at(stats, file, "numberOfRequests", "ko")
    latencies: dict[str, Any] = {column: total(key) for key, column in _COLUMNS.items()}
    return LoadTestRow(
        run_id=run_id(file),
        request_class=name,
        duration_s=count / rate if count and rate else None,
        throughput_tps=rate,
        errors=int(number(str(failed), str(file.path), "ko")) if failed != "-" else 0,
        source=f"{file.path.name}: Gatling",
        **latencies,
    )


_STATUSES = ("OK", "KO")
_AFTER_REQUEST = 6  # at least: the word, groups, name, start, end, status


def _is_log(file: TextFile) -> bool:
    return any(line.startswith("RUN\t") for line in file.head.split("\n")) and "\tREQUEST\t" not in file.head


def _read_log(file: TextFile) -> Imported:
    latencies: dict[str, array[float]] = {}
    errors: dict[str, int] = {}
    first, last = np.inf, -np.inf
    for place, line in file.lines():
        if not line.startswith("REQUEST\t"):
            continue
        name, start, end, good = _request(line, f"{file.path}, line {place}")
        first, last = min(first, start), max(last, end)
        latencies.setdefault(name, array("d")).append(end - start)
        errors[name] = errors.get(name, 0) + (not good)
    if not latencies:
        raise InputError(f"{file.path} has no requests: the run was interrupted, or measured nothing")
    duration_s = (last - first) / 1000
    parts = {name: np.array(found) for name, found in sorted(latencies.items())}
    if len(parts) > 1:
        parts = {ALL: np.concatenate(list(parts.values())), **parts}
        errors[ALL] = sum(errors.values())
    rows = tuple(
        LoadTestRow(
            run_id=run_id(file),
            request_class=name,
            duration_s=duration_s,
            throughput_tps=len(found) / duration_s if duration_s else None,
            errors=errors[name],
            source=f"{file.path.name}: Gatling",
            **of_samples(found),
        )
        for name, found in parts.items()
    )
    return Imported(rows, remarks=("was the simulation injected open or closed?",))


def _request(line: str, where: str) -> tuple[str, int, int, bool]:
    """Return name, start and end in ms, and success of a request; extra information may follow its status."""
    cells = line.split("\t")
    for place in range(len(cells) - 1, _AFTER_REQUEST - 2, -1):
        start, end = cells[place - 2 : place]
        if cells[place] in _STATUSES and start.isdecimal() and end.isdecimal():
            return cells[place - 3], int(start), int(end), cells[place] == "OK"
    raise InputError(f"{where} is no request with start, end and status: the log is damaged or cut off")


IMPORTER = Importer("Gatling", _recognises, _read)
LOG_IMPORTER = Importer("Gatling", _is_log, _read_log, exactness=2)
