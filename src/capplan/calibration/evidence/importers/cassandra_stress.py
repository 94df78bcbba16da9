"""cassandra-stress: what it prints on the console. Written from real output of Cassandra 5.0's tool.

With `-rate fixed=N` latency counts from the intended start, with `throttle=N` from the sending; the console shows the
same setting for both, so that the kind of load stays open unless an HDR log of the run is there (`hdr_log`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from capplan.calibration.evidence.importers.importer import Imported, Importer, number, plain_line, run_id
from capplan.calibration.evidence.load_tests import ALL, LoadTestRow
from capplan.calibration.evidence.text_file import TextFile
from capplan.models.cassandra.consistency import READ_LEVELS
from capplan.models.errors import InputError

_FIGURE = re.compile(
    r"^(?P<name>[A-Za-z][\w. ]*?)\s*:\s*(?P<all>[\d,.]+|NaN)\s*(?P<unit>[\w/]*)\s*(?:\[(?P<classes>.*)\])?\s*$"
)
_CLASS = re.compile(r"([A-Za-z_][\w-]*):\s*([\d,.]+?|NaN)(?: ([\w/]+))?(?=, ?[A-Za-z]|$)")
_SETTING = re.compile(r"^\s+([A-Z][\w .()]*?): (.*)$")
_RATE = re.compile(r"^Op rate\s*:", re.MULTILINE)
_ELAPSED = re.compile(r"^Total operation time\s*: (\d+):(\d\d):(\d\d)", re.IGNORECASE)
_RUNNING = re.compile(r"^Running (?:\[?.*?\]? )?with (\d+) threads?")
_LATENCIES = {
    "latency mean": "latency_mean_ms",
    "latency median": "latency_p50_ms",
    "latency 95th percentile": "latency_p95_ms",
    "latency 99th percentile": "latency_p99_ms",
    "latency 99.9th percentile": "latency_p999_ms",
    "latency max": "latency_max_ms",
}
_READS = {"READ", "COUNTER_READ", "RANGE_SLICE"}
_END = "total operation time"


@dataclass
class _Run:
    """One run: its threads, the time of its last interval, and its results by name and class."""

    threads: int | None = None
    ended_s: float | None = None
    results: dict[str, dict[str, float]] = field(default_factory=dict)


def _recognises(file: TextFile) -> bool:
    head = file.head
    return "Stress Settings" in head or ("total ops" in head and "stderr, errors" in head) or bool(_RATE.search(head))


def _read(file: TextFile) -> Imported:
    settings: dict[str, str] = {}
    runs, current = [], _Run()
    for line_number, text in file.lines():
        line, where = plain_line(text), f"{file.path}, line {line_number}"
        if found := _RUNNING.match(line):
            current = _Run(int(found[1]))
        elif line.startswith("total,"):
            current.ended_s = number((line.split(",") + [""] * 11)[11], where, "the time of an interval")
        elif found := _FIGURE.match(line):
            _take(current, found, where)
        elif line.lower().startswith(_END):
            if current.ended_s is None and (found := _ELAPSED.match(line)):
                current.ended_s = 3600 * float(found[1]) + 60 * float(found[2]) + float(found[3])
            runs.append(current)
            current = _Run(current.threads)
        elif found := _SETTING.match(line):
            settings.setdefault(found[1], found[2].strip())
    if not runs:
        raise InputError(
            f"{file.path} ends before 'Total operation time': the run was interrupted or the file is cut off"
        )
    return Imported(tuple(row for run in runs for row in _rows(run, settings, file, alone=len(runs) == 1)))


def _take(run: _Run, found: re.Match[str], where: str) -> None:
    """Keep a line of the results."""
    name = found["name"].lower()
    cells = {ALL: found["all"], **{each[0]: each[1] for each in _CLASS.findall(found["classes"] or "")}}
    run.results[name] = {key: number(text, where, name) for key, text in cells.items()}


def _rows(run: _Run, settings: dict[str, str], file: TextFile, alone: bool) -> Iterator[LoadTestRow]:
    rates = run.results.get("op rate")
    if rates is None:
        raise InputError(f"{file.path} has no line 'Op rate' in its results: cassandra-stress prints one")
    threads = int(settings["Thread Count"]) if settings.get("Thread Count", "").isdigit() else run.threads
    name = run_id(file) if alone else f"{run_id(file)}-{run.threads}-threads"
    layout = {**_layout(settings), "clients": run.threads or threads, "duration_s": run.ended_s}
    offered, shares = _offered(settings), _shares(settings)
    classes = list(rates) if len(rates) > 2 else [each for each in rates if each != ALL] or [ALL]
    errors = run.results.get("total errors", {})
    pauses = run.results.get("total gc count", {}).get(ALL, 0.0)
    seconds = run.results.get("total gc time", {}).get(ALL, 0.0)
    for each in classes:
        latencies: dict[str, Any] = {
            column: run.results[line][each] for line, column in _LATENCIES.items() if each in run.results.get(line, {})
        }
        share = 1.0 if each == ALL or len(classes) == 1 else shares.get(each)
        yield LoadTestRow(
            run_id=name,
            request_class=each.lower(),
            throughput_tps=rates[each],
            offered_tps=offered * share if offered and share else None,
            errors=int(errors[each]) if each in errors else None,
            source=f"{file.path.name}: cassandra-stress console",
            note=f"{pauses:.0f} GC pauses, {seconds:g} s in all" if pauses else None,
            **layout,
            **latencies,
        )


def _offered(settings: dict[str, str]) -> float | None:
    rate = settings.get("OpsPer Sec", "").replace(",", "")
    return float(rate) if rate.isdigit() and int(rate) else None


def _shares(settings: dict[str, str]) -> dict[str, float]:
    """Return the share of each class that was asked for."""
    ratios = {name: float(ratio) for name, ratio in re.findall(r"(\w+)=([\d.]+)", settings.get("Command Ratios", ""))}
    total = sum(ratios.values())
    return {name: ratio / total for name, ratio in ratios.items()} if total else {}


def _layout(settings: dict[str, str]) -> dict[str, Any]:
    level = settings.get("Consistency Level", "")
    shares, kind = _shares(settings), settings.get("Type", "").upper()
    reads = sum(share for name, share in shares.items() if name in _READS) if shares else float(kind in _READS)
    replicas = re.search(r"replication_factor=(\d+)", settings.get("Replication Strategy Options", ""))
    columns = re.findall(r"\w+", settings.get("Column Names", ""))
    size = re.search(r"Fixed:\s+key=(\d+)", settings.get("Size Distribution", ""))
    return {
        "consistency_read": level if level in READ_LEVELS and reads > 0 else None,
        "consistency_write": level if level in READ_LEVELS and reads < 1 else None,
        "read_fraction": reads if shares or kind else None,
        "rf": int(replicas[1]) if replicas else None,
        "row_bytes": float(size[1]) * len(columns) if size and columns else None,
        "load_kind": "closed" if settings.get("OpsPer Sec", "").startswith("0") else None,
    }


IMPORTER = Importer("cassandra-stress console", _recognises, _read)
