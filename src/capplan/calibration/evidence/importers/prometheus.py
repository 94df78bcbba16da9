"""Prometheus by its HTTP API: a file says which server, which metrics and which runs. Written against version 2.42.

    [prometheus]
    url = "http://127.0.0.1:9090"

    [histogram]                           # throughput, mean and percentiles, merged over all instances
    metric = "api_request_seconds"        # without _bucket
    selector = 'job="api"'
    unit = "s"

    [columns]                             # anything else, in PromQL; $run is the length of the run
    node_cpu_percent = '100 * (1 - avg(rate(node_cpu_seconds_total{mode="idle"}[$run])))'

    [[runs]]
    start = 2026-11-20T18:00:00Z
    end = 2026-11-20T18:05:00Z
    run_id = "r1000"                      # and any other column of the table
    offered_tps = 1000

A percentile lies somewhere in its bucket; Prometheus and capplan interpolate. A histogram with the same count in
every bucket is refused, as in `openmetrics`.
"""

from __future__ import annotations

import json
import math
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from capplan.calibration.evidence.importers.importer import Imported, Importer, run_id
from capplan.calibration.evidence.importers.openmetrics import Histogram
from capplan.calibration.evidence.load_tests import ALL, LOAD_TESTS, PERCENTILES, LoadTestRow
from capplan.calibration.evidence.text_file import TextFile
from capplan.models.errors import InputError, nearest
from capplan.models.language.document import read_toml
from capplan.models.language.units import DURATIONS_S

_TABLES = ("prometheus", "histogram", "columns", "runs")
_TIMEOUT_S = 30.0
_LARGEST = 2**24  # bytes of an answer
_METRIC = re.compile(r"[a-zA-Z_:][\w:]*")
_HISTOGRAM = re.compile(r"(?:(?P<class>[\w.-]+)=)?(?P<metric>[a-zA-Z_:][\w:]*)(?:\{(?P<selector>.*)\})?")
_UNITS = {"seconds": "s", "milliseconds": "ms", "microseconds": "us", "nanoseconds": "ns"}
_NAMED = 6  # histograms in a message


@dataclass(frozen=True)
class _Server:
    """A server, and who asks it: the name of a file or of an option."""

    url: str
    asker: str

    def ask(self, query: str, time: datetime) -> list[tuple[dict[str, str], float]]:
        """Return labels and value of each series of an instant query.

        Raises
        ------
        InputError
            If the server does not answer, or refuses the query.
        """
        asked = urllib.parse.urlencode({"query": query, "time": time.timestamp()})
        address = f"{self.url.rstrip('/')}/api/v1/query?{asked}"
        try:
            with urllib.request.urlopen(address, timeout=_TIMEOUT_S) as reply:  # noqa: S310  # http and https only
                answer = json.loads(reply.read(_LARGEST))
        except urllib.error.HTTPError as error:
            raise InputError(f"{self.asker}: {query!r} is refused by {self.url}: {_reason(error)}") from None
        except (OSError, ValueError) as error:
            said = getattr(error, "reason", None) or error
            raise InputError(f"{self.asker}: {self.url} does not answer as Prometheus does: {said}") from None
        found = answer.get("data", {}) if isinstance(answer, dict) else {}
        if found.get("resultType") == "scalar":
            return [({}, float(found["result"][1]))]
        if found.get("resultType") != "vector":
            raise InputError(f"{self.asker}: {query!r} must give a vector or a scalar: it gives no instant value")
        return [(each["metric"], float(each["value"][1])) for each in found["result"]]


def _server(url: str, asker: str) -> _Server:
    if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
        raise InputError(f"{asker}: url is {url!r}: it must be an address such as 'http://127.0.0.1:9090'")
    return _Server(url, asker)


def _reason(error: urllib.error.HTTPError) -> str:
    try:
        return str(json.loads(error.read(_LARGEST))["error"])
    except (ValueError, KeyError, TypeError, OSError):
        return str(error)


def _recognises(file: TextFile) -> bool:
    return bool(re.search(r"^\s*\[prometheus\]\s*$", file.head, re.MULTILINE))


def _read(file: TextFile) -> Imported:
    content = read_toml(file.path)
    for name in content:
        if name not in _TABLES:
            raise InputError(f"{file.path}: table {name!r} is unknown{nearest(name, _TABLES)}")
    server = _server(str(content["prometheus"].get("url", "")), str(file.path))
    columns = content.get("columns", {})
    for name in columns:
        if name not in LOAD_TESTS.columns:
            raise InputError(
                f"{file.path}: {name!r} is no column of a load-test table{nearest(name, LOAD_TESTS.columns)}"
            )
    if not isinstance(content.get("runs"), list) or not content["runs"]:
        raise InputError(f"{file.path} has no [[runs]]: each must have a start and an end")
    rows, remarks = [], []
    for number, run in enumerate(content["runs"], start=1):
        row, defect = _run(server, content, run, number, file)
        rows.append(row)
        if defect:
            remarks.append(f"{row.run_id}: the histogram {defect}, and is refused")
    return Imported(tuple(rows), remarks=tuple(remarks))


def _run(
    server: _Server, content: Mapping[str, Any], run: Mapping[str, Any], number: int, file: TextFile
) -> tuple[LoadTestRow, str]:
    """Return the row of a run, and what is wrong with its histogram."""
    where = f"{server.asker}: run {number}"
    given = dict(run)
    start, end = given.pop("start", None), given.pop("end", None)
    if not isinstance(start, datetime) or not isinstance(end, datetime) or start.tzinfo is None or end.tzinfo is None:
        raise InputError(f"{where} must have a start and an end with a time zone, such as 2026-11-20T18:00:00Z")
    if end <= start:
        raise InputError(f"{where} ends before it starts: end must be after start")
    length_s = (end - start).total_seconds()
    cells: dict[str, Any] = {
        "run_id": f"{run_id(file)}-{number}",
        "request_class": ALL,
        "duration_s": length_s,
        "source": f"{file.path.name}: Prometheus",
    }
    defect = ""
    if "histogram" in content:
        measured, defect = _measured(server, content["histogram"], end, length_s)
        cells |= measured
    for name, query in content.get("columns", {}).items():
        found = server.ask(str(query).replace("$run", f"{length_s:.0f}s"), end)
        if len(found) != 1:
            raise InputError(f"{where}: {name} must be one number, and its query gives {len(found)} series: use sum()")
        if math.isfinite(found[0][1]):
            cells[name] = LOAD_TESTS.cell(name, f"{found[0][1]:.12g}", f"{where}: {name}")
    for name, value in given.items():
        cells[name] = LOAD_TESTS.cell(name, str(value), where)
    return LoadTestRow(**cells), defect


def _measured(
    server: _Server, described: Mapping[str, Any], end: datetime, length_s: float
) -> tuple[dict[str, Any], str]:
    """Return throughput and latencies of a histogram over a run, and what is wrong with it."""
    metric, selector, unit = (str(described.get(name, "")) for name in ("metric", "selector", "unit"))
    if not _METRIC.fullmatch(metric):
        raise InputError(f"{server.asker}: metric is {metric!r}: it must be the name of a histogram without _bucket")
    if unit not in DURATIONS_S:
        raise InputError(f"{server.asker}: unit is {unit!r}{nearest(unit, DURATIONS_S)}")
    chosen = f"{{{selector}}}[{length_s:.0f}s]"
    buckets = server.ask(f"sum by (le) (increase({metric}_bucket{chosen}))", end)
    sums, counts = (server.ask(f"sum(increase({metric}_{part}{chosen}))", end) for part in ("sum", "count"))
    if not buckets or not counts:
        raise InputError(f"{server.asker}: {metric} has no observations until {end:%Y-%m-%dT%H:%M:%S%z}")
    histogram = Histogram({float(labels["le"]): value for labels, value in buckets}, {}, sums[0][1], counts[0][1])
    rate = {"throughput_tps": counts[0][1] / length_s}
    if not counts[0][1]:
        return rate, ""
    per_ms = float(DURATIONS_S[unit]) * 1000
    mean = {**rate, "latency_mean_ms": sums[0][1] / counts[0][1] * per_ms}
    if defect := histogram.defect():
        return mean, defect
    found = {name: histogram.percentile(share) for name, share in PERCENTILES.items()}
    return {**mean, **{name: value * per_ms for name, value in found.items() if value is not None}}, ""


def recent(url: str, histograms: Sequence[str], end: datetime, length_s: float) -> tuple[LoadTestRow, ...]:
    """Return one row for each histogram of a server, over the time until `end`.

    Parameters
    ----------
    url : str
        Address of the server.
    histograms : sequence of str
        As `CLASS=METRIC{SELECTOR}`, such as `read=api_seconds{job="api"}`. Class and selector may be missing. None:
        the only histogram of durations that the server has.
    end : datetime
        With a time zone.
    length_s : float
        Length of the time, s.

    Raises
    ------
    InputError
        If the server does not answer, or a histogram is unknown, ambiguous, without a unit in its name, or broken.
    """
    server = _server(url, "--prometheus")
    if not histograms:
        metrics = _durations(server, end, length_s)
        if len(metrics) != 1:
            known = ", ".join(metrics[:_NAMED]) if metrics else "none with observations in that time"
            raise InputError(f"--prometheus: name a histogram by --histogram, such as read=api_seconds; it has {known}")
        histograms = metrics
    return tuple(_recent(server, each, end, length_s) for each in histograms)


def _durations(server: _Server, end: datetime, length_s: float) -> list[str]:
    """Return the histograms that have a unit of time in their name and observations in that time."""
    query = f'count by (__name__) (last_over_time({{__name__=~".+_({"|".join(_UNITS)})_bucket"}}[{length_s:.0f}s]))'
    return sorted(labels["__name__"].removesuffix("_bucket") for labels, _ in server.ask(query, end))


def _recent(server: _Server, histogram: str, end: datetime, length_s: float) -> LoadTestRow:
    told = _HISTOGRAM.fullmatch(histogram.strip())
    if told is None:
        raise InputError(
            f"--histogram {histogram!r} must be METRIC, or CLASS=METRIC{{SELECTOR}} such as read=api_seconds"
        )
    metric = told["metric"].removesuffix("_bucket")
    unit = _UNITS.get(metric.rpartition("_")[2])
    if unit is None:
        raise InputError(
            f"--histogram {metric!r} must end with its unit, _seconds or _milliseconds: describe others in a file of "
            "'capplan evidence import'"
        )
    found, defect = _measured(
        server, {"metric": metric, "selector": told["selector"] or "", "unit": unit}, end, length_s
    )
    if defect:
        raise InputError(f"--histogram {metric!r} {defect}: measure the latency at the clients")
    return LoadTestRow(
        run_id=f"until {end:%Y-%m-%d %H:%M}",
        request_class=told["class"] or ALL,
        duration_s=length_s,
        source=f"{metric}: Prometheus",
        **found,
    )


IMPORTER = Importer("Prometheus", _recognises, _read)
