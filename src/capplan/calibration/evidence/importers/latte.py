"""latte: its report in JSON, and what it prints. Written from real output of latte 0.29.

A cycle is one call of a function of the workload. Its latency does not hold the wait of cycles that no slot was free
for: at 15,000/s offered, a real run completed 35 % less in ten seconds with a mean of 79 ms. So an overloaded run
understates latency, as the audit says. The summary is taken as latte prints it; the first and the last third of the
whole intervals show whether the queue grew, without the last interval, which may be partial.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

from capplan.calibration.evidence.importers.hdr_log import decode
from capplan.calibration.evidence.importers.importer import (
    Imported,
    Importer,
    at,
    number,
    plain_line,
    read_json,
    real,
    run_id,
)
from capplan.calibration.evidence.importers.latency_summary import percentile_columns
from capplan.calibration.evidence.load_tests import ALL, LoadTestRow
from capplan.calibration.evidence.text_file import TextFile
from capplan.models.cassandra.consistency import READ_LEVELS
from capplan.models.errors import InputError

_WHOLE = 0.9  # of the sampling interval: a shorter one is partial
_GREW = 2.0  # times more waiting at the end than at the start
_AGREES = 0.01


def _recognises_json(file: TextFile) -> bool:
    return file.head.lstrip().startswith("{") and '"conf"' in file.head and '"cass_version"' in file.head


def _read_json(file: TextFile) -> Imported:
    report = read_json(file)
    configured, result = at(report, file, "conf"), at(report, file, "result")
    elapsed_s = real(result, file, "elapsed_time_s")
    weights = {at(each, file, "name"): real(each, file, "weight") for each in at(configured, file, "functions")}
    rate = configured.get("rate")
    clients = int(real(configured, file, "concurrency") * real(configured, file, "threads"))
    shared: dict[str, Any] = {
        "run_id": run_id(file),
        "version": configured.get("cass_version"),
        **_levels(at(configured, file, "connection", "consistency")),
        "encryption_client": bool(at(configured, file, "connection", "ssl")),
        "load_kind": "open" if rate else "closed",
        "clients": clients,
        "duration_s": elapsed_s,
        "client_cpu_percent": real(result, file, "cpu_util") / real(configured, file, "threads"),
        "source": f"{file.path.name}: latte report",
    }
    percentiles = at(report, file, "percentiles")
    throughput = real(result, file, "cycle_throughput", "value")
    remarks = tuple(_remarks(result, rate, throughput, configured))
    whole = LoadTestRow(
        **shared,
        request_class=ALL,
        throughput_tps=throughput,
        offered_tps=rate,
        errors=int(real(result, file, "error_count")),
        note="; ".join(remarks) or None,
        **_latencies(at(result, file, "cycle_latency"), percentiles, file),
    )
    classes = at(result, file, "cycle_latency_by_fn")
    rows = [] if len(classes) == 1 else [whole]
    for name, latency in classes.items():
        count = decode(at(latency, file, "histogram"), f"{file.path}: {name}").get_total_count()
        alone = len(classes) == 1
        rows.append(
            LoadTestRow(
                **shared,
                request_class=str(name).lower(),
                throughput_tps=throughput if alone else count / elapsed_s,
                offered_tps=rate * weights[name] / sum(weights.values()) if rate and name in weights else None,
                errors=whole.errors if alone else None,
                note=whole.note,
                **_latencies(latency, percentiles, file),
            )
        )
    return Imported(tuple(rows), remarks=remarks)


def _levels(level: str) -> dict[str, Any]:
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", level).upper()
    return dict.fromkeys(("consistency_read", "consistency_write"), name if name in READ_LEVELS else None)


def _latencies(latency: Mapping[str, Any], percentiles: Sequence[float], file: TextFile) -> dict[str, Any]:
    values = [real(each, file, "value") for each in at(latency, file, "percentiles")]
    by_percentile = dict(zip(percentiles, values, strict=False))
    columns = {"latency_mean_ms": real(latency, file, "mean", "value"), **percentile_columns(by_percentile)}
    return {**columns, "latency_max_ms": by_percentile[100.0]} if 100.0 in by_percentile else columns


def _remarks(
    result: Mapping[str, Any], rate: float | None, throughput: float, configured: Mapping[str, Any]
) -> Iterator[str]:
    ratio = result.get("cycle_throughput_ratio")
    if rate and ratio is not None and abs(ratio / 100 - throughput / rate) > _AGREES:
        yield f"cycle_throughput_ratio {ratio:.4g} % is not that of the rates, {100 * throughput / rate:.4g} %"
    interval_s = configured.get("sampling_interval", {}).get("Time", {}).get("secs") or 1.0
    whole = [each for each in result.get("log", ()) if each.get("duration_s", 0.0) >= _WHOLE * interval_s]
    third = len(whole) // 3
    if third:
        first, last = (fmean(each["mean_queue_len"] for each in part) for part in (whole[:third], whole[-third:]))
        if rate and last > _GREW * first and last > configured["concurrency"] / 2:
            yield f"the queue grew from {first:.3g} to {last:.3g} requests during the run"


_LABEL = re.compile(
    r"^\s*(?P<name>[A-Za-z][\w .()]*?|└─|├─|[\d.]+)\s{2,}(?:\[(?P<unit>[^\]]+)\])?\s*(?P<value>\S.*?)\s*$"
)
_CLASS = re.compile(r"^CYCLE LATENCY(?: for (?P<name>\w+))?\s+\[ms\]")
_BRANCH = re.compile(r"^\s*[└├]─\s+(?:\[(?P<unit>[^\]]+)\])?\s*(?P<value>.*?)\s*$")


def _recognises_text(file: TextFile) -> bool:
    head = plain_line(file.head)
    return "CONFIG ═══" in head or "SUMMARY STATS ═══" in head or "info: Loading workload script" in head


def _read_text(file: TextFile) -> Imported:
    facts: dict[str, str] = {}
    classes: dict[str, dict[str, float]] = {}
    current, section = "", ""
    for line_number, text in file.lines():
        line = plain_line(text)
        if found := _CLASS.match(line):
            current = (found["name"] or ALL).lower()
            classes[current], section = {}, "latency"
        elif "═══" in line:
            section = line.split("═")[0].strip()
        elif section == "latency" and (words := line.split()) and "─" not in line:
            if line.startswith("info:"):
                section = ""
            else:
                where = f"{file.path}, line {line_number}"
                if len(words) < 2:
                    raise InputError(f"{where} ends in the middle of a percentile: the file is cut off")
                classes[current][words[0]] = number(words[1], where, "a latency in ms")
        elif section in ("CONFIG", "SUMMARY STATS") and (found := _LABEL.match(line)):
            facts.setdefault(f"{found['name']} [{found['unit']}]" if found["unit"] else found["name"], found["value"])
    if "Throughput [op/s]" not in facts or not classes:
        raise InputError(f"{file.path} ends before 'SUMMARY STATS': the run was interrupted or the file is cut off")
    return Imported(tuple(_text_rows(facts, classes, file)))


def _text_rows(
    facts: Mapping[str, str], classes: Mapping[str, Mapping[str, float]], file: TextFile
) -> Iterator[LoadTestRow]:
    def figure(name: str) -> float | None:
        words = facts.get(name, "").split()
        return number(words[0], str(file.path), name) if words else None

    rate = figure("Max rate [op/s]")
    throughput, threads = figure("Throughput [op/s]"), figure("Threads") or 1.0
    concurrency, cpu = figure("Concurrency [req]"), figure("CPU utilisation [%]")
    weights = {name: float(weight) for name, weight in re.findall(r"(\w+):([\d.]+)", facts.get("Function(s)", ""))}
    shared: dict[str, Any] = {
        "run_id": run_id(file),
        "version": facts.get("Cass. version"),
        **_levels(facts.get("Consistency", "")),
        "load_kind": "open" if rate else "closed",
        "clients": int(concurrency * threads) if concurrency else None,
        "duration_s": figure("Elapsed time [s]"),
        "client_cpu_percent": cpu / threads if cpu is not None else None,
        "source": f"{file.path.name}: latte console",
    }
    failed, mean = figure("Errors [op]"), figure("Cycle latency [ms]")
    alone = len(classes) == 1
    if not alone:
        yield LoadTestRow(
            **shared,
            request_class=ALL,
            throughput_tps=throughput,
            offered_tps=rate,
            errors=None if failed is None else int(failed),
            latency_mean_ms=mean,
        )
    for name, printed in classes.items():
        columns = percentile_columns({float(key): value for key, value in printed.items() if key[0].isdigit()})
        share = weights.get(name, 0.0) / sum(weights.values()) if weights else 0.0
        yield LoadTestRow(
            **shared,
            request_class=name,
            throughput_tps=throughput if alone else None,
            offered_tps=rate if alone else (rate * share if rate and share else None),
            errors=int(failed) if alone and failed is not None else None,
            latency_mean_ms=mean if alone else None,
            latency_max_ms=printed.get("Max"),
            **columns,
        )


JSON_IMPORTER = Importer("latte report", _recognises_json, _read_json, exactness=3)
TEXT_IMPORTER = Importer("latte console", _recognises_text, _read_text)
