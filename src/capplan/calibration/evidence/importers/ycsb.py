"""YCSB: what it prints at the end of a run. Written from a published run of YCSB 0.17.

`[OVERALL], Throughput` is computed by YCSB from a counter that can overflow and turn negative; rates are therefore
computed again from operations and run time. With `-p measurement.interval=both` latencies of `[Intended-...]` count
from the intended start, and are taken instead of the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from capplan.calibration.evidence.importers.importer import Imported, Importer, number, plain_line, run_id
from capplan.calibration.evidence.importers.latency_summary import percentile_columns
from capplan.calibration.evidence.load_tests import ALL, LoadTestRow
from capplan.calibration.evidence.text_file import TextFile
from capplan.models.cassandra.consistency import READ_LEVELS
from capplan.models.errors import InputError

_METRIC = re.compile(r"^\[(?P<part>[^\]]+)\], (?P<name>[^,]+), (?P<value>\S+)\s*$")
_PERCENTILE = re.compile(r"^([\d.]+)(?:st|nd|rd|th)?PercentileLatency\((us|ms)\)$")
_NOT_REQUESTS = ("OVERALL", "CLEANUP", "TOTAL_GC")
_INTENDED, _FAILED = "Intended-", "-FAILED"
_GOOD = ("Return=OK", "Return=0")  # of today's and of old versions
_READS = {"READ", "SCAN"}
_AGREES = 0.01  # of the printed throughput and the one from operations and run time


def _recognises(file: TextFile) -> bool:
    head = file.head
    return "YCSB Client" in head or "[OVERALL], " in head or "site.ycsb" in head or "com.yahoo.ycsb" in head


def _read(file: TextFile) -> Imported:
    parts: dict[str, dict[str, float]] = {}
    options: dict[str, str] = {}
    for line_number, text in file.lines():
        line = plain_line(text)
        if line.startswith("Command line:"):
            options = _options(line)
        elif line.startswith("[") and (found := _METRIC.match(line)):
            where = f"{file.path}, line {line_number}"
            parts.setdefault(found["part"], {})[found["name"]] = number(found["value"], where, found["name"])
    milliseconds = parts.get("OVERALL", {}).get("RunTime(ms)")
    if not milliseconds:
        raise InputError(
            f"{file.path} ends before '[OVERALL], RunTime(ms)': the run was interrupted or the file is cut off"
        )
    classes = {
        name: metrics
        for name, metrics in parts.items()
        if not name.startswith((*_NOT_REQUESTS, _INTENDED)) and not name.endswith(_FAILED) and "Operations" in metrics
    }
    if not classes:
        raise InputError(f"{file.path} has no operations of a class such as [READ]: YCSB prints them at the end")
    duration_s = milliseconds / 1000
    rate = sum(each["Operations"] for each in classes.values()) / duration_s
    printed = parts["OVERALL"].get("Throughput(ops/sec)")
    remark = (
        f"the throughput of {printed:g}/s that YCSB prints is wrong: it is {rate:.6g}/s by operations and run time"
        if printed is not None and abs(printed - rate) > _AGREES * rate
        else ""
    )
    rows = tuple(_rows(classes, parts, options, duration_s, file, remark))
    return Imported(rows, remarks=(remark,) if remark else ())


def _rows(
    classes: Mapping[str, Mapping[str, float]],
    parts: Mapping[str, Mapping[str, float]],
    options: Mapping[str, str],
    duration_s: float,
    file: TextFile,
    remark: str,
) -> Iterator[LoadTestRow]:
    counts = {name: metrics["Operations"] for name, metrics in classes.items()}
    total = sum(counts.values())
    target = number(options.get("target", "0"), str(file.path), "the number after -target")
    latencies = {name: _latencies(parts.get(_INTENDED + name, metrics)) for name, metrics in classes.items()}
    together = {
        "latency_mean_ms": sum(counts[each] * latencies[each]["latency_mean_ms"] for each in classes) / total
        if all("latency_mean_ms" in each for each in latencies.values())
        else None,
        "latency_max_ms": max((each.get("latency_max_ms", 0.0) for each in latencies.values()), default=None),
    }
    every = {ALL: (total, together), **{name: (counts[name], latencies[name]) for name in classes}}
    intended = any(name.startswith(_INTENDED) for name in parts)
    for name, (count, columns) in every.items():
        if name == ALL and len(classes) == 1:
            continue
        failed = sum(_failures(parts, each) for each in (classes if name == ALL else [name]))
        yield LoadTestRow(
            run_id=run_id(file),
            request_class=name.lower(),
            duration_s=duration_s,
            throughput_tps=count / duration_s,
            offered_tps=target if target and (name == ALL or len(classes) == 1) else None,
            load_kind=_load_kind(options, target, intended),
            clients=int(number(options.get("threads", "1"), str(file.path), "the number after -threads"))
            if options
            else None,
            errors=int(failed),
            read_fraction=sum(counts.get(each, 0.0) for each in _READS) / total,
            row_bytes=_row_bytes(options),
            consistency_read=_level(options, "cassandra.readconsistencylevel"),
            consistency_write=_level(options, "cassandra.writeconsistencylevel"),
            source=f"{file.path.name}: YCSB",
            note=remark or None,
            **columns,
        )


def _load_kind(options: Mapping[str, str], target: float, intended: bool) -> Any:
    """Return the kind of load; without the command line it is not known."""
    if not options:
        return "open" if intended else None
    return ("open" if intended else "throttled") if target else "closed"


def _options(line: str) -> dict[str, str]:
    """Return the options of a command line; properties by their names.

    YCSB starts one thread where none is asked for.
    """
    return {**dict(re.findall(r"-(threads|target|db) (\S+)", line)), **dict(re.findall(r"-p (\S+?)=(\S+)", line))}


def _latencies(metrics: Mapping[str, float]) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    for label, name in (("Average", "latency_mean_ms"), ("Max", "latency_max_ms")):
        for unit, per_ms in (("us", 1000.0), ("ms", 1.0)):
            if (value := metrics.get(f"{label}Latency({unit})")) is not None:
                columns[name] = value / per_ms
    found = {name: _PERCENTILE.match(name) for name in metrics}
    percentiles = {
        float(match[1]): metrics[name] / (1000.0 if match[2] == "us" else 1.0) for name, match in found.items() if match
    }
    return {**columns, **percentile_columns(percentiles)}


def _failures(parts: Mapping[str, Mapping[str, float]], name: str) -> float:
    returned = [value for key, value in parts[name].items() if key.startswith("Return=") and key not in _GOOD]
    return sum(returned) or parts.get(name + _FAILED, {}).get("Operations", 0.0)


def _row_bytes(options: Mapping[str, str]) -> float | None:
    sizes = [options.get(name, "") for name in ("fieldcount", "fieldlength")]
    return float(sizes[0]) * float(sizes[1]) if all(each.isdigit() for each in sizes) else None


def _level(options: Mapping[str, str], name: str) -> Any:
    level = options.get(name, "").upper()
    return level if level in READ_LEVELS else None


IMPORTER = Importer("YCSB", _recognises, _read)
