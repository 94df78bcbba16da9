"""cassandra-easy-stress, and tlp-stress before it: counts as CSV (`--csv`), and every request as Parquet.

Written from their source and published files. The CSV has a line now and then. Its counts, and the elapsed time, begin
before the run does: while rows are populated, time passes. Rates are therefore those between the first line and the
last, and from the beginning only where there is a single line. Its p99 is that of a reservoir in which older requests
fade: the last line has the latest.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from capplan.errors import InputError
from capplan.evidence.importers.importer import Imported, Importer, matching, run_id
from capplan.evidence.importers.listed_requests import COLUMNS, ListedRun
from capplan.evidence.importers.number_format import number
from capplan.evidence.load_test_row import ALL, LoadTestRow
from capplan.evidence.text_file import TextFile

_CLASSES = {"Mutations": "write", "Reads": "read", "Deletes": "delete"}
_SUFFIXES = {"": 1.0, "k": 1e3, "m": 1e6, "b": 1e9}


def _read(file: TextFile) -> Imported:
    command, lines = _lines(file)
    first = lines[0] if len(lines) > 1 else dict.fromkeys(lines[-1], 0.0)
    span = {name: value - first[name] for name, value in lines[-1].items()}
    counts = {each: span[f"{group} Count"] for group, each in _CLASSES.items() if span.get(f"{group} Count", 0.0) > 0}
    p99 = {each: lines[-1].get(f"{group} Latency (p99)") for group, each in _CLASSES.items()}
    duration_s, total, layout = span["Elapsed Time"], sum(counts.values()), _options(command)
    if not counts or duration_s <= 0:
        raise InputError(f"{file.path} counts no answered request: there is no latency; find out why they failed")
    rows = [
        LoadTestRow(
            run_id=run_id(file),
            request_class=each,
            duration_s=duration_s,
            throughput_tps=count / duration_s,
            read_fraction=counts.get("read", 0.0) / total,
            latency_p99_ms=p99.get(each),
            errors=int(span["Errors Count"]) if count == total else None,
            source=f"{file.path.name}: cassandra-easy-stress CSV",
            **{**layout, "offered_tps": layout["offered_tps"] if count == total else None},
        )
        for each, count in ({ALL: total, **counts} if len(counts) > 1 else counts).items()
    ]
    since = (
        "between the first line and the last" if len(lines) > 1 else "from the beginning, with the time of populating"
    )
    return Imported(tuple(rows), remarks=(f"rates are those {since}; p99 is that of the latest requests",))


def _lines(file: TextFile) -> tuple[str, list[dict[str, float]]]:
    """Read the command of a run, and its lines of figures by group and column."""
    command, groups, names, lines = "", list[str](), list[str](), list[dict[str, float]]()
    for line_number, line in file.lines():
        where, cells = f"{file.path}, line {line_number}", line.split(",")
        if lines and line.startswith(("#", ",,", "Timestamp")):
            raise InputError(f"{where}: a second run begins: save each in a file of its own")
        if line.startswith("#"):
            command = line
        elif line.startswith(",,"):
            groups = cells[:1]
            groups += (cell or groups[-1] for cell in cells[1:])
        elif line.startswith("Timestamp"):
            names = [f"{group} {name.strip()}".strip() for group, name in zip(groups, cells, strict=False)]
        elif line.strip():
            if len(cells) != len(names):
                raise InputError(f"{where} has {len(cells)} cells, not {len(names)}: it is cut off; remove the line")
            figures = {name: number(cell, where, name) for name, cell in zip(names[1:], cells[1:], strict=True)}
            if lines and figures["Elapsed Time"] < lines[-1]["Elapsed Time"]:
                raise InputError(
                    f"{where}: the elapsed time falls: a second run begins: save each in a file of its own"
                )
            lines.append(figures)
    if not lines:
        raise InputError(f"{file.path} has a header and no figures: the run ended before it wrote some")
    return command, lines


def _options(command: str) -> dict[str, Any]:
    """Return the columns that a command says.

    tlp-stress counts latency from the sending: a rate paces its clients. Each thread has so many requests under way.
    """
    given = dict(re.findall(r"(--?[a-z]+)[ =]([^\s-]\S*)", command))

    def option(*names: str) -> float | None:
        found = re.fullmatch(r"([\d.]+)([kmb]?)", next((given[each] for each in names if each in given), "").lower())
        return float(found[1]) * _SUFFIXES[found[2]] if found else None

    rate, threads, depth = option("--rate"), option("--threads", "-t"), option("--concurrency", "-c")
    return {
        "offered_tps": rate or None,
        "clients": int(depth * (threads or 1)) if depth else None,
        "load_kind": ("throttled" if rate else "closed") if depth else None,
    }


EASY_STRESS = Importer("cassandra-easy-stress CSV", matching(r"^,,Mutations,.*\n *Timestamp, ?Elapsed Time,"), _read)


# ---- every request, as cassandra-easy-stress writes it to Parquet (`--parquet`). Written from its source.
#
# A request's time counts from when it was generated, before it waited in a queue of the client.

REQUESTS = "cassandra-easy-stress requests"
_COLUMNS = pa.schema(
    {
        "operation": pa.string(),
        "success": pa.bool_(),
        "request_start_time_ms": pa.int64(),
        "request_duration_ns": pa.int64(),
    }
)
_OPERATIONS = {"Mutation": "write", "Select": "read", "Deletion": "delete"}


def has_requests(path: Path) -> bool:
    """Return whether a Parquet file lists requests of cassandra-easy-stress."""
    try:
        return set(_COLUMNS.names) <= set(pq.read_schema(path).names)
    except (OSError, ValueError, pa.ArrowException):
        return False


def read_requests(path: Path) -> Imported:
    """Read the requests of a run.

    Raises
    ------
    InputError
        If none was answered, or the file is no Parquet.
    """
    run, line = ListedRun(1), 1
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(columns=_COLUMNS.names):
                table = pa.Table.from_batches([batch]).select(_COLUMNS.names).cast(_COLUMNS).drop_null()
                table.validate(full=True)  # texts are text
                run.add(_listed(table, line))
                line += batch.num_rows
    except (OSError, ValueError, pa.ArrowException) as error:
        raise InputError(f"{path} cannot be read as Parquet: {str(error).splitlines()[0]}") from None
    if not run.classes:
        raise InputError(f"{path} has no request: the run was interrupted, or measured nothing")
    rows = [replace(row, load_kind="open") for row in run.rows(path, REQUESTS, path.stem)]
    return Imported(tuple(rows), remarks=tuple(run.remarks()))


def _listed(table: pa.Table, first_line: int) -> pd.DataFrame:
    """Return requests with the columns of `listed_requests`; latencies to the microsecond."""
    operations, success, starts_ms, lengths_ns = (table[name].to_numpy() for name in _COLUMNS.names)
    good, starts_s, ms = success.astype(bool), starts_ms / 1e3, np.round(lengths_ns / 1e3) / 1e3
    labels = [_OPERATIONS.get(name, name.lower()) for name in operations]
    lines = np.arange(first_line, first_line + len(labels))
    cells = (lines, starts_s, starts_s + ms / 1e3, ms, labels, ~good, good, "", 0)
    return pd.DataFrame(dict(zip(COLUMNS, cells, strict=True)))
