"""Fit systems whose parameters are known to rows at 10 to 40 % of their ceiling, with and without the CPU of nodes.

`uv run just partly-busy` writes docs/reference/partly-busy.json (a quarter of an hour on two cores);
docs/backtest.md shows it. The systems are those `cassandra` systems of `synthetic_truth` whose rows can be so few
clients; the engine measures them. Their CPU follows what a lab of two cores showed: the CPU of a request falls 2 to 4.5
times from the first row to the ceiling, by polling, by wake-ups that requests under way share, or by both. How much is
drawn for each system and unknown to the fit. Seeds are fixed, so results repeat.
"""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from synthetic_truth import Truth, drawn, measured, saturating

from capplan.calibration.tables.fit_table import fit_table
from capplan.calibration.tables.row_predictions import predict_table
from capplan.calibration.tables.solved_rows import solved_rows
from capplan.evidence.load_test_row import LoadTestRow
from capplan.evidence.load_tests import LOAD_TESTS
from capplan.files import replace_file
from capplan.layout.table_rows import MEAN, NODE_CPU, THROUGHPUT
from capplan.models.solver.analytic import Analysis
from capplan.systems.registry import table_system

RESULT = Path(__file__).resolve().parents[1] / "reference" / "partly-busy.json"
NUMBERS = range(500, 570)
ROWS, FEWEST = 10, 4
LOW, HIGH = 0.1, 0.4  # of the ceiling
FALLS, FULL, NOISE = (2.0, 4.5), (0.9, 1.0), 0.05
WRONG = 1.1
LAB, LAB_LAYOUTS, LAB_CLIENTS = RESULT.parents[1] / "live", ("1-read-local_one-100b", "1-write-local_one-100b"), 32
DAYS, HOURS = range(500, 540), 24
QUIET, BUSY, BUSIEST_HOUR = 0.2, 0.5, 16  # loads of a day, of the ceiling
COLUMNS = {
    MEAN: "mean response",
    "latency_p50_ms": "p50",
    "latency_p95_ms": "p95",
    "latency_p99_ms": "p99",
    NODE_CPU: "CPU of nodes",
}
KINDS = {"without CPU": None, "with CPU": 1.0, "with CPU that is 10 % too high": WRONG}


def partly_busy(number: int) -> tuple[Truth, float] | None:
    """Return a system with rows of one layout at 10 to 40 % of its ceiling, and the ceiling; None if there are few."""
    truth = drawn(number)
    if truth.system != "cassandra":
        return None
    first = truth.trained[0]
    layout = truth.of.read([first])[0].layout
    ceiling = float(Analysis(truth.of.network(layout, truth.of.values_in(layout, truth.values), 1.0)).drift_per_s[0])
    if first.load_kind == "open":
        rates = np.linspace(LOW, HIGH, ROWS) * ceiling
        rows = [replace(first, offered_tps=float(f"{rate:.3g}")) for rate in rates.tolist()]
    else:
        most = saturating(truth.of, truth.values, first)
        clients = sorted({max(round(each), 1) for each in np.geomspace(1, max(most, 2), 60).tolist()})
        tried = [replace(first, clients=each) for each in clients]
        solved = solved_rows(truth.of, truth.of.read(tried), truth.values, [[THROUGHPUT]] * len(tried))
        shares = [float(each.figures[THROUGHPUT].ravel()[0]) / ceiling for each in solved]
        fit = [row for row, share in zip(tried, shares, strict=True) if 0.7 * LOW <= share <= 1.05 * HIGH]
        if len(fit) < FEWEST:
            return None
        rows = [fit[at] for at in np.unique(np.linspace(0, len(fit) - 1, ROWS).round().astype(int))]
    named = tuple(replace(row, run_id=f"row {at}") for at, row in enumerate(rows, 1))
    return replace(truth, trained=named, unseen=()), ceiling


def with_cpu(truth: Truth, ceiling: float) -> list[LoadTestRow]:
    """Return the rows with figures by the engine, and the CPU of the nodes with scatter."""
    random = np.random.default_rng([truth.number, 77])
    falls, polled, full = random.uniform(*FALLS), random.uniform(), random.uniform(*FULL)
    found: list[LoadTestRow] = []
    fewest = 0.0
    for each in measured(truth)[0]:
        rate = each.exact[THROUGHPUT]
        load, under_way = rate / ceiling, rate * each.exact[MEAN] / 1e3
        fewest = fewest or under_way / load
        polls = LOW / (1 - LOW) * (1 - load) / load
        at_top = LOW**0.5
        wakes = ((under_way / (fewest * LOW)) ** -0.5 - at_top) / (1 - at_top)
        cpu = full * load * (1 + (falls - 1) * (polled * polls + (1 - polled) * wakes))
        cpu *= math.exp(NOISE * random.standard_normal())
        found.append(replace(each.row, node_cpu_percent=float(f"{100 * min(cpu, 1.0):.3g}")))
    return found


def outcome(number: int) -> dict[str, Any] | None:
    """Return the predicted capacity over the true one, with its band, for each kind of fit; None without such rows."""
    found = partly_busy(number)
    if found is None:
        return None
    truth, ceiling = found
    rows = with_cpu(truth, ceiling)
    layout = truth.of.read(rows)[0].layout
    record: dict[str, Any] = {"number": number, "rows": len(rows)}
    for name, factor in KINDS.items():
        own = [replace(row, node_cpu_percent=_times(row.node_cpu_percent, factor)) for row in rows]
        fitted = fit_table(truth.of, own)
        values = truth.of.values_in(layout, fitted.values(truth.of.parameters))
        capacity = np.asarray(Analysis(truth.of.network(layout, values, 1.0)).drift_per_s) / ceiling
        record[name] = [round(each, 3) for each in np.quantile(capacity, [0.05, 0.5, 0.95]).tolist()]
    sys.stderr.write(f"{json.dumps(record)}\n")
    return record


def day(number: int) -> dict[str, Any] | None:
    """Return how the second half of a day differs from a prediction by the first, hour by hour; None if not open."""
    truth = drawn(number)
    if truth.system != "cassandra":
        return None
    first = replace(truth.trained[0], load_kind="open", clients=None, think_time_ms=None, offered_tps=1.0)
    layout = truth.of.read([first])[0].layout
    ceiling = float(Analysis(truth.of.network(layout, truth.of.values_in(layout, truth.values), 1.0)).drift_per_s[0])
    waves = [(1 + math.cos(2 * math.pi * (hour - BUSIEST_HOUR) / HOURS)) / 2 for hour in range(HOURS)]
    rates = [float(f"{ceiling * (QUIET + (BUSY - QUIET) * wave):.3g}") for wave in waves]
    hours = [replace(first, offered_tps=rate, run_id=f"hour {at}") for at, rate in enumerate(rates)]
    rows = with_cpu(replace(truth, trained=tuple(hours), unseen=()), ceiling)
    fitted = fit_table(truth.of, rows[: HOURS // 2])
    found: dict[str, Any] = {"number": number}
    for each in predict_table(truth.of, fitted, rows[HOURS // 2 :]):
        if each.measured is not None:
            band = each.predicted
            own = [round(value / each.measured, 3) for value in (band.low, band.value, band.high)]
            found.setdefault(each.quantity, []).append(own)
    sys.stderr.write(f"day {number}\n")
    return found


def _times(cpu: float | None, factor: float | None) -> float | None:
    return None if cpu is None or factor is None else min(cpu * factor, 100.0)


def on_the_lab() -> Iterator[dict[str, Any]]:
    """Yield the throughput of 32 clients on one node of a lab, predicted from runs at up to 40 % of it."""
    small, large = ([*LOAD_TESTS.rows(LOAD_TESTS.read(LAB / name))] for name in ("small.csv", "measured.csv"))
    system = table_system("cassandra")
    for name in LAB_LAYOUTS:
        full = [row for row in large if str(row.run_id).startswith(f"{name}-closed-{LAB_CLIENTS}-")]
        measured_per_s = float(np.median([row.throughput_tps or 0.0 for row in full]))
        low = [row for row in small if str(row.run_id).startswith(f"small-{name}-")]
        kept = [row for row in low if (row.throughput_tps or 0.0) <= HIGH * measured_per_s]
        record: dict[str, Any] = {"layout": name, "rows": len(kept), "measured": round(measured_per_s)}
        for kind, factor in list(KINDS.items())[:2]:
            fitted = fit_table(
                system, [replace(row, node_cpu_percent=_times(row.node_cpu_percent, factor)) for row in kept]
            )
            found = next(each for each in predict_table(system, fitted, full[:1]) if each.quantity == THROUGHPUT)
            band = found.predicted
            record[kind] = [round(each) for each in (band.low, band.value, band.high)]
            record["decided"] = found.identifiable
        yield record


def tables() -> dict[str, str]:
    """Return the tables of docs/backtest.md, by placeholder."""
    record: dict[str, Any] = json.loads(RESULT.read_text(encoding="utf-8"))
    found = {"systems": _of_systems, "lab": _of_lab, "days": _of_days}
    return {f"{{{{partly_busy_{name}}}}}": "\n".join(of(record[name])) for name, of in found.items()}


def _of_lab(found: Sequence[dict[str, Any]]) -> Iterator[str]:
    kinds = list(KINDS)[:2]
    yield f"| one node of a lab | rows | measured | {' | '.join(kinds)} | decided |"
    yield "| --- | ---: | ---: | ---: | ---: | --- |"
    for each in found:
        bands = (f"{value:,} ({low:,} to {high:,})" for low, value, high in (each[kind] for kind in kinds))
        said = "yes" if each["decided"] else "no"
        yield f"| {each['layout']} | {each['rows']} | {each['measured']:,} | {' | '.join(bands)} | {said} |"


def _of_systems(found: Sequence[dict[str, Any]]) -> Iterator[str]:
    yield f"| {len(found)} systems | error, median | p90 | predicted over true, median | high/low | bands hold |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: |"
    for name in KINDS:
        low, value, high = np.array([each[name] for each in found]).T
        errors = np.abs(value - 1)
        held = float(np.mean((low <= 1) & (high >= 1)))
        yield (
            f"| {name} | {np.median(errors):.1%} | {np.quantile(errors, 0.9):.1%} | {np.median(value):.2f} | "
            f"{np.median(high / low):.2f} | {held:.0%} |"
        )


def _of_days(found: Sequence[dict[str, Any]]) -> Iterator[str]:
    yield f"| second half of {len(found)} days | error, median | p90 | predicted over measured, median | bands hold |"
    yield "| --- | ---: | ---: | ---: | ---: |"
    for name, words in COLUMNS.items():
        low, value, high = np.array([hour for each in found for hour in each[name]]).T
        errors, held = np.abs(value - 1), np.mean((low <= 1) & (high >= 1))
        yield (
            f"| {words} | {np.median(errors):.1%} | {np.quantile(errors, 0.9):.1%} | {np.median(value):.2f} | "
            f"{held:.0%} |"
        )


def main() -> None:
    """Fit all systems, and write what came out."""
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # read by numpy when a worker starts
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn")) as pool:
        found = [each for each in pool.map(outcome, NUMBERS) if each is not None]
        days = [each for each in pool.map(day, DAYS) if each is not None]
    record = {"systems": found, "lab": list(on_the_lab()), "days": days}
    replace_file(RESULT, written(record))


def written(record: Mapping[str, Sequence[Any]]) -> str:
    """Return the record as JSON, one line for each system or layout."""
    between = ",\n"
    parts = (f'"{name}": [\n{between.join(map(json.dumps, found))}\n]' for name, found in record.items())
    return f"{{{between.join(parts)}}}\n"


if __name__ == "__main__":
    main()
