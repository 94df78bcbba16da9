"""k6: its points (`--out json=FILE`) and its summary (`--summary-export FILE`). Written from real output.

With an arrival-rate executor k6 does not send what no virtual user is free for: such iterations are `drops`. Their
number is the one thing by which the files show that the load was open.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import numpy as np

from capplan.calibration.evidence.importers.importer import Imported, Importer, at, read_json, real, run_id
from capplan.calibration.evidence.importers.latency_summary import of_samples, percentile_columns
from capplan.calibration.evidence.load_tests import ALL, LoadTestRow
from capplan.calibration.evidence.text_file import TextFile
from capplan.models.errors import InputError

_LATENCIES = ("http_req_duration", "grpc_req_duration")
_READ = (*_LATENCIES, "http_req_failed", "dropped_iterations", "vus_max")
_MOST_CLASSES = 50


def _recognises_points(file: TextFile) -> bool:
    first = file.head.partition("\n")[0]
    return first.startswith("{") and '"metric"' in first and '"type"' in first and '"data"' in first


def _read_points(file: TextFile) -> Imported:
    latencies: dict[str, array[float]] = {}
    start, end, failed, dropped, clients = "", "", 0.0, 0.0, 0
    for line_number, line in file.lines():
        if not line.strip():
            continue
        try:
            point = json.loads(line)
            metric, data = point["metric"], point["data"]
            if point["type"] != "Point" or metric not in _READ:
                continue
            value = float(data["value"])
            if metric in _LATENCIES:
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
        raise InputError(f"{file.path} has no point of {' or '.join(_LATENCIES)}: k6 writes one per request")
    duration_s = (_time(end, file) - _time(start, file)).total_seconds()
    shared: dict[str, Any] = {
        "run_id": run_id(file),
        "clients": clients or None,
        "duration_s": duration_s,
        "load_kind": "open" if dropped else None,
        "source": f"{file.path.name}: k6 points",
    }
    every = np.concatenate([np.frombuffer(each) for each in latencies.values()])
    parts = {ALL: every} if len(latencies) > 1 else {}
    if len(latencies) <= _MOST_CLASSES:
        parts |= {name: np.frombuffer(each) for name, each in latencies.items()}
    rows = tuple(
        LoadTestRow(
            **shared,
            request_class=name,
            throughput_tps=len(samples) / duration_s if duration_s else None,
            errors=int(failed) if len(samples) == len(every) else None,
            drops=int(dropped) if len(samples) == len(every) else None,
            **of_samples(samples, "linear"),
        )
        for name, samples in parts.items()
    )
    return Imported(rows)


def _time(text: str, file: TextFile) -> datetime:
    """Read a time of Go, which may have nine digits of a second."""
    head, _, rest = text.partition(".")
    digits = rest[: len(rest) - len(rest.lstrip("0123456789"))]
    try:
        return datetime.fromisoformat(f"{head}.{digits[:6]:0<6}{rest[len(digits) :]}" if digits else text)
    except ValueError:
        raise InputError(f"{file.path}: {text!r} must be a time such as 2026-05-09T14:34:45.625+02:00") from None


def _recognises_summary(file: TextFile) -> bool:
    head = file.head.lstrip()
    return head.startswith("{") and '"metrics"' in head and any(f'"{name}"' in file.text() for name in _LATENCIES)


def _read_summary(file: TextFile) -> Imported:
    report = read_json(file)
    metrics = at(report, file, "metrics")
    name = next((each for each in _LATENCIES if each in metrics), _LATENCIES[0])
    latency = _values(at(metrics, file, name))
    percentiles = {float(key[2:-1]): real(latency, file, key) for key in latency if key.startswith("p(")}
    requests, dropped = _values(metrics.get("http_reqs", {})), _values(metrics.get("dropped_iterations", {}))
    failed, users = _values(metrics.get("http_req_failed", {})), _values(metrics.get("vus_max", {}))
    count, rate = requests.get("count"), requests.get("rate")
    row = LoadTestRow(
        run_id=run_id(file),
        request_class=ALL,
        clients=int(users["max"]) if "max" in users else None,
        load_kind="open" if dropped.get("count") else None,
        duration_s=count / rate if count and rate else None,
        throughput_tps=rate,
        latency_mean_ms=latency.get("avg"),
        latency_max_ms=latency.get("max"),
        errors=int(failed["passes"]) if "passes" in failed else None,
        drops=int(dropped["count"]) if "count" in dropped else None,
        source=f"{file.path.name}: k6 summary",
        **{"latency_p50_ms": latency.get("med"), **percentile_columns(percentiles)},
    )
    return Imported((row,))


def _values(metric: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the values of a metric: `handleSummary` has them one level deeper than `--summary-export`."""
    found: Mapping[str, Any] = metric.get("values", metric)
    return found


POINTS_IMPORTER = Importer("k6 points", _recognises_points, _read_points, exactness=2)
SUMMARY_IMPORTER = Importer("k6 summary", _recognises_summary, _read_summary)
