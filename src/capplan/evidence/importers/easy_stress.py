"""cassandra-easy-stress, and tlp-stress before it: counts as CSV (`--csv`), and every request as Parquet.

Written from their source and published files. The CSV has a line now and then. Its counts, and the elapsed time, begin
before the run does: while rows are populated, time passes. Rates are therefore those between the first line and the
last, and from the beginning only where there is a single line. Its p99 is that of a reservoir in which older requests
fade: the last line has the latest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from capplan.evidence.importers.importer import Imported, Importer, matching, number, of_samples, run_names
from capplan.evidence.load_test_row import ALL, LoadTestRow
from capplan.evidence.text_file import TextFile
from capplan.models.cassandra.consistency import CONSISTENCY_LEVELS
from capplan.models.errors import InputError

_CLASSES = {"Mutations": "write", "Reads": "read", "Deletes": "delete"}
_COUNT, _P99, _ELAPSED = "Count", "Latency (p99)", "Elapsed Time"
_SUFFIXES = {"": 1.0, "k": 1e3, "m": 1e6, "b": 1e9}
_Cells = dict[tuple[str, str], float]


@dataclass
class _Run:
    """A run: its command, and its lines of figures by group and column."""

    command: str = ""
    lines: list[_Cells] = field(default_factory=list)


def _read(file: TextFile) -> Imported:
    runs = [run for run in _runs(file) if run.lines]
    if not runs:
        raise InputError(f"{file.path} has a header and no figures: the run ended before it wrote some")
    rows: list[LoadTestRow] = []
    for name, run in zip(run_names(file, [""] * len(runs)), runs, strict=True):
        rows += _rows(name, run, file)
    if not rows:
        raise InputError(f"{file.path} counts no answered request: there is no latency; find out why they failed")
    single = any(len(run.lines) == 1 for run in runs)
    since = "from the beginning, with the time of populating" if single else "between the first line and the last"
    return Imported(tuple(rows), remarks=(f"rates are those {since}; p99 is that of the latest requests",))


def _runs(file: TextFile) -> list[_Run]:
    """Read the runs of a file: each begins with comments, of which the second is the command."""
    runs, groups, columns = [_Run()], list[str](), list[tuple[str, str]]()
    for line_number, line in file.lines():
        where, cells = f"{file.path}, line {line_number}", line.split(",")
        if line.startswith("#"):
            if runs[-1].lines:
                runs.append(_Run())
            runs[-1].command = line
        elif line.startswith(",,"):
            groups = cells
        elif line.startswith("Timestamp"):
            group = ""
            columns = []
            for place, name in enumerate(cells):
                group = (groups[place : place + 1] or [""])[0] or group
                columns.append((group, name.strip()))
        elif line.strip():
            if len(cells) != len(columns):
                raise InputError(f"{where} has {len(cells)} cells, not {len(columns)}: it is cut off; remove the line")
            runs[-1].lines.append(
                {
                    column: number(cell, where, " ".join(column))
                    for column, cell in zip(columns[1:], cells[1:], strict=True)
                }
            )
    return runs


def _rows(name: str, run: _Run, file: TextFile) -> Iterator[LoadTestRow]:
    last, first = run.lines[-1], run.lines[0] if len(run.lines) > 1 else dict[tuple[str, str], float]()

    def counted(group: str, column: str = _COUNT) -> float:
        return last.get((group, column), 0.0) - first.get((group, column), 0.0)

    duration_s = counted("", _ELAPSED)
    if duration_s <= 0:
        raise InputError(f"{file.path} has no time between its lines: {_ELAPSED!r} must rise")
    counts = {request_class: counted(group) for group, request_class in _CLASSES.items()}
    counts = {request_class: count for request_class, count in counts.items() if count > 0}
    if not counts:
        return
    p99 = {request_class: last.get((group, _P99)) for group, request_class in _CLASSES.items()}
    total, layout = sum(counts.values()), _options(run.command)
    offered = layout.pop("offered_tps", None)
    for request_class, count in ({ALL: total, **counts} if len(counts) > 1 else counts).items():
        whole = count == total
        yield LoadTestRow(
            run_id=name,
            request_class=request_class,
            duration_s=duration_s,
            throughput_tps=count / duration_s,
            offered_tps=offered if whole else None,
            read_fraction=counts.get("read", 0.0) / total,
            latency_p99_ms=p99.get(request_class),
            errors=int(counted("Errors")) if whole else None,
            source=f"{file.path.name}: cassandra-easy-stress CSV",
            **layout,
        )


def _options(command: str) -> dict[str, Any]:
    """Return the columns that a command says.

    tlp-stress counts latency from the sending: a rate paces its clients. Each thread has so many requests under way.
    """
    given = dict(re.findall(r"(--?[a-z]+)[ =]([^\s-]\S*)", command))

    def option(*names: str) -> float | None:
        found = re.fullmatch(r"([\d.]+)([kmb]?)", next((given[each] for each in names if each in given), "").lower())
        return float(found[1]) * _SUFFIXES[found[2]] if found else None

    rate, threads, depth = option("--rate"), option("--threads", "-t"), option("--concurrency", "-c")
    level = given.get("--cl", "").upper()
    columns = dict.fromkeys(("consistency_read", "consistency_write"), level if level in CONSISTENCY_LEVELS else None)
    return {
        **columns,
        "offered_tps": rate or None,
        "clients": int(depth * (threads or 1)) if depth else None,
        "load_kind": ("throttled" if rate else "closed") if depth else None,
    }


EASY_STRESS = Importer("cassandra-easy-stress CSV", matching(r"^,,Mutations,.*\n *Timestamp, ?Elapsed Time,"), _read)


# ---- every request, as cassandra-easy-stress writes it to Parquet (`--parquet`). Written from its source.
#
# A request's time counts from when it was generated, before it waited in a queue of the client.

REQUESTS = "cassandra-easy-stress requests"
_COLUMNS = ["operation", "success", "request_start_time_ms", "request_duration_ns"]
_OPERATIONS = {"Mutation": "write", "Select": "read", "Deletion": "delete"}


def has_requests(path: Path) -> bool:
    """Return whether a Parquet file lists requests of cassandra-easy-stress."""
    try:
        return set(_COLUMNS) <= set(pq.read_schema(path).names)
    except (OSError, pa.ArrowException):
        return False


def read_requests(path: Path) -> Imported:
    """Read the requests of a run.

    Raises
    ------
    InputError
        If none was answered, or the file is no Parquet.
    """
    try:
        table = pq.read_table(path, columns=_COLUMNS)
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{path} cannot be read as Parquet: {str(error).splitlines()[0]}") from None
    starts_ms, lengths_ns = (table[name].to_numpy() for name in ("request_start_time_ms", "request_duration_ns"))
    good = table.filter(table["success"])
    if not good.num_rows:
        raise InputError(f"{path} has no answered request among {table.num_rows:,}: there is no latency")
    duration_s = float((starts_ms + lengths_ns / 1e6).max() - starts_ms.min()) / 1e3
    names = sorted(set(pc.unique(table["operation"]).to_pylist()))

    def row(name: str, every: pa.Table, answered: pa.Table) -> LoadTestRow:
        return LoadTestRow(
            run_id=path.stem,
            request_class=name,
            load_kind="open",
            duration_s=duration_s,
            throughput_tps=answered.num_rows / duration_s,
            errors=every.num_rows - answered.num_rows,
            source=f"{path.name}: cassandra-easy-stress requests",
            **of_samples(answered["request_duration_ns"].to_numpy().astype(np.float64) / 1e6),
        )

    rows = [row(ALL, table, good)] if len(names) > 1 else []
    for name in names:
        parts = [part.filter(pc.equal(part["operation"], name)) for part in (table, good)]
        if parts[1].num_rows:
            rows.append(row(_OPERATIONS.get(name, name.lower()), *parts))
    return Imported(tuple(rows))
