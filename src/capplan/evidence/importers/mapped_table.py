"""A CSV table of any origin, with a file that describes its columns.

[columns]
throughput_tps = "ops/s"                              # a column of the CSV, in the unit of the table
latency_p99_ms = { column = "p99", unit = "us" }      # in another unit of time or size, or in %

[constants]
system = "orders"
cass_nodes = "6/6/3"
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from capplan.evidence.importers.importer import Imported, number, run_id
from capplan.evidence.load_test_row import LoadTestRow
from capplan.evidence.load_tests import LOAD_TESTS
from capplan.evidence.text_file import TextFile, read_as_csv
from capplan.models.errors import InputError, look_up, nearest, one_of
from capplan.models.language.document import read_toml
from capplan.models.language.units import DURATIONS_S, SIZES_BYTES

_BASES = {
    "_ms": (DURATIONS_S, "ms"),
    "_s": (DURATIONS_S, "s"),
    "_gib": (SIZES_BYTES, "GiB"),
    "_bytes": (SIZES_BYTES, "B"),
}


@dataclass(frozen=True)
class Mapped:
    """The source of one column: a column name of the CSV, and the factor that converts it to the table's unit."""

    column: str
    factor: float = 1.0


@dataclass(frozen=True)
class ColumnMap:
    """The mapping of a CSV's columns, and the values that are the same in all rows."""

    columns: Mapping[str, Mapped]
    constants: Mapping[str, str] = field(default_factory=dict)


def read_mapping(path: Path) -> ColumnMap:
    """Read a file that maps columns.

    Raises
    ------
    InputError
        If it is not TOML, or names a column or unit that does not exist.
    """
    content = read_toml(path)
    for name in content:
        if name not in ("columns", "constants"):
            raise InputError(f"{path}: table {name!r} is unknown{nearest(name, ('columns', 'constants'))}")
    columns = content.get("columns", {})
    if not isinstance(columns, dict) or not columns:
        raise InputError(f"{path} has no table [columns]: it must say which column of the CSV is which of the table")
    for name in (*columns, *content.get("constants", {})):
        look_up(LOAD_TESTS.columns, name, f"{path}: {name!r} is no column of a load-test table")
    constants = {name: str(value) for name, value in content.get("constants", {}).items()}
    return ColumnMap({name: _mapped(name, found, path) for name, found in columns.items()}, constants)


def _mapped(name: str, found: Any, path: Path) -> Mapped:
    if isinstance(found, str):
        return Mapped(found)
    if not isinstance(found, dict) or not isinstance(found.get("column"), str):
        raise InputError(f"{path}: {name} must be the name of a column, or {{ column = ..., unit = ... }}")
    unit = found.get("unit", "")
    if not unit:
        return Mapped(found["column"])
    units, own = next((base for ending, base in _BASES.items() if name.endswith(ending)), ({}, ""))
    if unit not in units:
        raise InputError(f"{path}: {name} has the unit {unit!r}{nearest(str(unit), units) or ', and needs none'}")
    return Mapped(found["column"], float(units[unit] / units[own]))


def read_mapped(file: TextFile, mapping: ColumnMap) -> Imported:
    """Read a CSV table by a mapping.

    Raises
    ------
    InputError
        If a column is missing, or a cell is not of its type.
    """
    with read_as_csv(str(file.path)):
        reader = csv.DictReader(line + "\n" for _, line in file.lines())
        header = reader.fieldnames or []
        for name, its in mapping.columns.items():
            one_of(header, its.column, f"{file.path} has no column {its.column!r}, for {name}")
        rows = [
            _row(cells, mapping, file, reader.line_num)
            for cells in reader
            if any(isinstance(cell, str) and cell for cell in cells.values())
        ]
    if not rows:
        raise InputError(f"{file.path} has a header and no rows: a table needs at least one")
    return Imported(tuple(rows))


def _row(cells: Mapping[str, Any], mapping: ColumnMap, file: TextFile, line: int) -> LoadTestRow:
    where = f"{file.path}, line {line}"
    if None in cells or None in cells.values():
        raise InputError(f"{where} has another number of cells than the header: quote a cell that holds a comma")
    taken: dict[str, Any] = {"run_id": f"{run_id(file)}-{line}"}
    for name, mapped in mapping.columns.items():
        if not (text := cells[mapped.column].strip()):
            continue
        if LOAD_TESTS.columns[name].kind == "number":
            value = number(text, where, f"{mapped.column!r}, for {name},") * mapped.factor
            if math.isinf(value):
                raise InputError(f"{where}: {text} of {mapped.column!r} is too large: check the cell and its unit")
            taken[name] = value
        else:
            taken[name] = LOAD_TESTS.cell(name, text, where)
    return LoadTestRow(**{"source": f"{file.path.name}, line {line}", **taken})
