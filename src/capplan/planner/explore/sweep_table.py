"""The table of a sweep: one row a point, the same columns whatever the engine.

Units are in the names; rates are peak rates over all data centres. An empty cell is not modelled, or does not exist:
latencies beyond capacity, where a queue grows without end, and all figures of a layout that breaks a rule.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from capplan.models.errors import InputError, nearest
from capplan.models.language.units import parse_duration_s, parse_length_m
from capplan.models.replaced_file import replace_file
from capplan.models.results import STATISTICS, plain
from capplan.systems.openprovider.network import REPORTED

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA = "capplan.sweep/1"
LAYOUT_COLUMNS = {
    "system": "string",
    **dict.fromkeys(("dcs", "cass_nodes", "rf", "front_nodes", "front_workers"), "int64"),
    **dict.fromkeys(("consistency_read", "consistency_write"), "string"),
    **dict.fromkeys(("distance_km", "rtt_ms"), "float64"),
    **dict.fromkeys(("proxy", "ldap"), "bool"),
    "data_factor": "float64",
    **dict.fromkeys(("encryption", "vpn"), "string"),
}
_BANDS = (
    "capacity_tps",
    "bottleneck_utilisation",
    "drop_rate",
    *(f"{name}_{statistic}_ms" for name in REPORTED for statistic in STATISTICS),
)
ENDINGS = (".csv", ".parquet")


def band_columns(name: str) -> tuple[str, str, str]:
    """Return the columns of a figure with a band: its median, and the 5th and 95th percentile."""
    return name, f"{name}_low", f"{name}_high"


COLUMNS: dict[str, str] = {
    **LAYOUT_COLUMNS,
    "offered_tps": "float64",
    "offered_source": "string",
    "load": "float64",
    **dict.fromkeys(band_columns("capacity_tps"), "float64"),
    "carries": "bool",
    "bottleneck": "string",
    **{column: "float64" for name in _BANDS[1:] for column in band_columns(name)},
    "simulation": "float64",
    "extrapolation": "string",
    "engine": "string",
    "seed": "int64",
    "version": "string",
    "refused": "string",
}
"""Columns in their order, and what they hold.

`load` is the offered rate as a share of the median capacity; `simulation` the part of the band of latencies that is due
to the simulation, relative, of the statistic that a precision was asked for.
"""

Row = dict[str, Any]


def table_schema() -> pa.Schema:
    """Return the columns as Arrow has them."""
    import pyarrow as pa

    return pa.schema([(name, pa.type_for_alias(kind)) for name, kind in COLUMNS.items()])


def empty_row(fields: Mapping[str, Any]) -> Row:
    """Return a row of a layout that has the columns of the layout only; `fields` are those of its scenario."""
    given, distance, rtt = fields, fields["distance"], fields["rtt"]
    row: Row = dict.fromkeys(COLUMNS)
    row |= {name: given[name] for name in LAYOUT_COLUMNS if name in given}
    row["distance_km"] = None if rtt is not None else _or_none(lambda: parse_length_m(distance) / 1e3)
    row["rtt_ms"] = None if rtt is None else _or_none(lambda: max(map(_milliseconds, _cells(rtt))))
    return row


def _cells(rtt: Any) -> list[str]:
    return [rtt] if isinstance(rtt, str) else [cell for line in rtt for cell in line]


def _milliseconds(text: str) -> float:
    return float(f"{parse_duration_s(text, 'ms') * 1e3:.12g}")


def _or_none(read: Callable[[], float]) -> float | None:
    """Return what is read; nothing of a text that is why the layout was refused."""
    try:
        return read()
    except InputError:
        return None


def check_ending(path: Path) -> None:
    """Refuse a file that is neither CSV nor Parquet by its name.

    Raises
    ------
    InputError
        When its name ends otherwise.
    """
    if path.suffix not in ENDINGS:
        hint = nearest(path.suffix, ENDINGS) if path.suffix else "; known: " + ", ".join(ENDINGS)
        raise InputError(f"{path.name!r} does not end in .csv or .parquet{hint}")


def write_table(rows: Iterable[Row], path: Path) -> None:
    """Write rows to a CSV or Parquet file, by its ending; it is there in full or not at all.

    Raises
    ------
    InputError
        When it cannot be written.
    """
    replace_file(path, csv_text(rows) if path.suffix == ".csv" else lambda beside: _write_parquet(rows, beside))


def csv_text(rows: Iterable[Row]) -> str:
    """Return rows as CSV with a header; a missing number is an empty cell, a verdict `true` or `false`."""
    text = io.StringIO()
    _write_csv(rows, text)
    return text.getvalue()


def _write_csv(rows: Iterable[Row], text: IO[str]) -> None:
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in rows:
        cells = (plain(row[name]) for name in COLUMNS)
        writer.writerow(str(cell).lower() if isinstance(cell, bool) else cell for cell in cells)


def _write_parquet(rows: Iterable[Row], path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.Table.from_pylist(list(rows), schema=table_schema()), path)
