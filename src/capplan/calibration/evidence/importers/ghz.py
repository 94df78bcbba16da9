"""ghz: its report in JSON. Written from a real report.

Without `--async` a worker waits for its answer before it sends again, so that a rate is a pace of closed clients.
"""

from __future__ import annotations

from typing import Any

from capplan.calibration.evidence.importers.importer import Imported, Importer, at, read_json, real, run_id
from capplan.calibration.evidence.importers.latency_summary import percentile_columns
from capplan.calibration.evidence.load_tests import LoadTestRow
from capplan.calibration.evidence.text_file import TextFile

_NS_PER_MS = 1e6
_DETAIL = {"timestamp", "latency", "error", "status"}


def _recognises(file: TextFile) -> bool:
    return file.head.lstrip().startswith("{") and '"endReason"' in file.head and '"rps"' in file.head


def _compact(pairs: list[tuple[str, Any]]) -> Any:
    """Return an object, or nothing of one request: a report may list millions."""
    found = dict(pairs)
    return None if found.keys() == _DETAIL else found


def _read(file: TextFile) -> Imported:
    report = read_json(file, _compact)
    options = at(report, file, "options")
    count = real(report, file, "count")
    good = report.get("statusCodeDistribution", {}).get("OK", 0)
    rate, paced = options.get("rps") or None, bool(options.get("async"))
    percentiles = {
        real(each, file, "percentage"): real(each, file, "latency") / _NS_PER_MS
        for each in report.get("latencyDistribution") or ()
    }
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


IMPORTER = Importer("ghz", _recognises, _read)
