"""Random load-test tables: what a careful test writes down, with columns and cells missing."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from capplan.evidence.load_test_row import LATENCIES, LoadTestRow
from capplan.evidence.row_validation import columns_of

PUBLISHED = Path(__file__).parents[1] / "published" / "load_tests"
SAMPLES = Path(__file__).parents[1] / "samples"
VARIED = ("clients", "offered_tps", "cass_nodes", "rf", "consistency_read", "consistency_write", "rtt_ms", "row_bytes")
"""Columns that tests of one workload vary."""
NEEDED = (
    "run_id",
    "throughput_tps",
    "rf",
    "cass_nodes",
    "node_cores",
    "front_nodes",
    "front_cores",
    "load_kind",
    "clients",
    "offered_tps",
    "request_class",
    "read_fraction",
)
"""Columns that are seldom missing: a fit asks for them."""
FACTORS = (1.0, 0.9, 1.2, 1.6, 2.0, 3.0, 5.0, 8.0)
"""Latencies relative to the mean, in the order of their columns."""
MOST, MOST_FITTED = 30, 12  # rows; a fit takes a second for each
MISSING = 0.02  # probability that a cell is
BEYOND = 0.1  # probability that runs of a table are offered more than the system completes

Random = np.random.Generator


def whole(random: Random, low: int, high: int) -> int:
    """Return a whole number; each order of magnitude is equally likely."""
    return round(float(np.exp(random.uniform(np.log(low), np.log(high)))))


def one(random: Random, values: Sequence[Any]) -> Any:
    """Return one of some values."""
    return values[int(random.integers(len(values)))]


def shares(random: Random, dcs: int) -> str:
    """Return the share of the clients of each data centre."""
    cuts = sorted(random.integers(0, 101, dcs - 1).tolist())
    return "/".join(f"{high - low}%" for low, high in zip([0, *cuts], [*cuts, 100], strict=True))


def table(random: Random, of: str = "") -> str:
    """Return a load-test table of 3 rows or more: one workload, in which a few columns vary, with missing cells.

    A table that is fitted has what a system asks for: one data centre, and as many replicas as levels need.
    """
    columns = columns_of(LoadTestRow)
    figures = {name for name in columns if name.startswith(("latency_", "throughput"))}
    dcs = 1 if of == "two-tier" else int(random.integers(1, 4))
    usual = {name: _cell(name, random, dcs) for name in columns if name not in figures}
    varied = [str(each) for each in random.permutation(VARIED)[: int(random.integers(1, 4))]]
    empty = {str(name) for name in columns if random.random() < (0.02 if name in NEEDED else 0.35)}
    most, unloaded_ms = 10 ** random.uniform(3, 5), 10 ** random.uniform(-0.5, 1.5)
    beyond, rows = random.random() < BEYOND, []
    for number in range(int(random.integers(3, 1 + (MOST_FITTED if of else MOST)))):
        cells = {**usual, **{name: _cell(name, random, dcs) for name in varied}}
        cells["run_id"] = f"run {number}"
        cells |= {name: _possible(cells[name], cells["rf"]) for name in ("consistency_read", "consistency_write")}
        if (cells["request_class"], cells["read_fraction"]) in (("read", "0"), ("write", "1")):
            cells["read_fraction"] = "0.5"
        rows.append({**cells, **_measured(cells, random, most, unloaded_ms, beyond=beyond)})
    return _text({name: "" if _is_missing(name, empty, random) else row[name] for name in row} for row in rows)


def _is_missing(name: str, empty: set[str], random: Random) -> bool:
    """Whether a cell is missing: all of some columns are, and a few figures."""
    return name in empty or (name.startswith("latency_") and random.random() < MISSING)


def _possible(level: str, rf: str) -> str:
    """Return a consistency level that has enough replicas."""
    most = min(int(each) for each in rf.split("/"))
    return "QUORUM" if {"TWO": 2, "THREE": 3}.get(level, 0) > most else level


def _measured(
    cells: Mapping[str, str], random: Random, most: float, unloaded_ms: float, *, beyond: bool
) -> dict[str, str]:
    """Return what a system that completes `most` requests per second does, by Little's law, and the rate it is offered.

    The rate is at most 95 % of what the system completes, unless tests go beyond.
    """
    clients, think_ms = int(cells["clients"]), float(cells["think_time_ms"] or 0)
    noise = float(np.exp(0.05 * random.standard_normal()))
    possible = noise * min(most, clients / (unloaded_ms + think_ms) * 1e3)
    if cells["load_kind"] == "closed":
        return latencies(max(clients / possible * 1e3 - think_ms, 0.01)) | {"throughput_tps": f"{possible:.5g}"}
    offered = float(cells["offered_tps"])
    if not beyond:
        offered = min(offered, 0.95 * possible)
    rate = min(possible, offered)
    mean = unloaded_ms * (1 + 3 * rate / most)
    if cells["load_kind"] == "throttled":
        mean = max(0.01, min(mean, 0.99 * clients / rate * 1e3 - think_ms))
    return latencies(mean) | {"throughput_tps": f"{rate:.5g}", "offered_tps": f"{offered:.5g}"}


def latencies(mean_ms: float) -> dict[str, str]:
    """Return the cells of latencies with a mean."""
    return {name: f"{mean_ms * factor:.4g}" for name, factor in zip(LATENCIES, FACTORS, strict=True)}


def _text(rows: Any) -> str:
    written = list(rows)
    lines = [",".join(written[0]), *(",".join(row.values()) for row in written)]
    return "\n".join(lines) + "\n"


def _cell(name: str, random: Random, dcs: int) -> str:
    """Return a cell of a column that is no figure."""
    column = columns_of(LoadTestRow)[name]
    if column.kind == "choice":
        return str(one(random, column.choices))
    if column.kind == "flag":
        return str(one(random, ["yes", "no"] if name not in ("generator_limited", "disturbed") else ["no"]))
    if column.kind == "per_dc":
        low, high = (1, 3) if name == "rf" else (3, 9)
        many = dcs if random.random() < 0.3 else 1
        return "/".join(str(int(random.integers(low, high + 1))) for _ in range(many))
    if column.kind == "shares":
        return shares(random, dcs)
    if column.kind == "count":
        known = {"dcs": dcs, "clients": whole(random, 1, 2000), "repeat": int(random.integers(1, 4))}
        return str(known.get(name, 0))
    if column.kind == "number":
        return _figure(name, random)
    known_texts = {"system": "store", "version": "5.0", "gc": str(one(random, ["", "0.6%@45ms"])), "source": "made up"}
    return {"request_class": str(one(random, ["all", "read", "write"])), **known_texts}.get(name, name)


_FIGURES: Mapping[str, Sequence[str]] = {
    "read_fraction": ["0", "1", "0.5", "0.8"],
    "think_time_ms": ["0", "", "10"],
    "rtt_ms": ["0.2", "1", "8", "60", "900"],
    "node_cores": ["1", "4", "16", "64"],
    "front_cores": ["2", "16"],
    "generator_added_ms": ["", "0.1"],
}


def _figure(name: str, random: Random) -> str:
    """Return a cell with a number."""
    if name in _FIGURES:
        return str(one(random, _FIGURES[name]))
    return f"{random.uniform(1, 99):.3g}" if name.endswith("_percent") else str(whole(random, 100, 20_000))


def published(random: Random, of: str = "") -> str:
    """Return some rows of a published table, in their order; of one workload that a system fits, if one is named."""
    paths = sorted(PUBLISHED.glob("*.csv"))
    kept = [path for path in paths if not of or (path.name.startswith("cassandra") == (of == "cassandra"))]
    frame = pd.read_csv(one(random, kept), dtype=str, keep_default_na=False)
    if of:
        alike = [name for name in ("version", *(("request_class",) if of == "two-tier" else ())) if name in frame]
        row = frame.iloc[int(random.integers(len(frame)))]
        frame = frame[(frame[alike] == row[alike]).all(axis=1)]
    count = int(random.integers(min(3, len(frame)), 1 + min(MOST_FITTED if of else MOST, len(frame))))
    return str(frame.iloc[sorted(random.choice(len(frame), count, replace=False).tolist())].to_csv(index=False))


def half_of(random: Random, text: str) -> str:
    """Return an expression that keeps about half of the rows of a table."""
    frame = pd.read_csv(io.StringIO(text))
    names = ["throughput_tps", "latency_mean_ms", *VARIED]
    numbers = [name for name in names if name in frame and pd.api.types.is_numeric_dtype(frame[name])]
    varied = [name for name in numbers if frame[name].nunique() > 1]
    if not varied:
        return f"run_id == '{frame['run_id'].iloc[0]}'"
    name = str(one(random, varied))
    return f"{name} <= {np.quantile(frame[name].dropna().unique(), 0.5, method='lower'):g}"


def statistic_of(text: str) -> str:
    """Return a statistic of latencies that a table has."""
    frame = pd.read_csv(io.StringIO(text))
    known = [name for name in LATENCIES if name in frame and frame[name].notna().any()]
    return (known or ["latency_p99_ms"])[-1].removeprefix("latency_").removesuffix("_ms")


def runs_at(random: Random, rate: float, classes: Sequence[str]) -> str:
    """Return runs near an offered rate, and one far beyond it."""
    near = one(random, [0.97, 1.0, 1.04]) * rate / len(classes)
    rows = [
        {"run_id": "near", "request_class": name, **_run(near, near, 10 ** random.uniform(0, 2))} for name in classes
    ]
    most = rate * 10 ** random.uniform(0, 2)
    rows.append({"run_id": "beyond", "request_class": "all", **_run(1.3 * most, most, 30_000)})
    return _text(rows)


def _run(offered: float, completed: float, mean_ms: float) -> dict[str, str]:
    cells = {"load_kind": "open", "offered_tps": f"{offered:.5g}", "duration_s": "600"}
    return cells | {"throughput_tps": f"{completed:.5g}"} | latencies(mean_ms)
