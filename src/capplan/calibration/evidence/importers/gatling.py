"""Gatling: `js/global_stats.json` and `js/stats.json` of its HTML report. Written from public reports.

`simulation.log` changes from version to version and is binary since 3.12, so it is not read. The four percentiles
have no ranks in the file; they are taken for Gatling's defaults 50, 75, 95 and 99. The report counts failed requests
in `total`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from capplan.calibration.evidence.importers.importer import Imported, Importer, at, number, read_json, run_id
from capplan.calibration.evidence.load_tests import ALL, LoadTestRow
from capplan.calibration.evidence.text_file import TextFile

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


IMPORTER = Importer("Gatling", _recognises, _read)
