"""A CSV table of any origin, with what its columns are: a file, pairs, or its own names.

[columns]
throughput_tps = "ops/s"                              # a column of the CSV, in the unit of the table
latency_p99_ms = { column = "p99", unit = "us" }      # in another unit of time or size

[constants]
system = "orders"
cass_nodes = "6/6/3"
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from capplan.errors import InputError, nearest, one_of
from capplan.evidence.importers.column_names import Mapped, as_pairs, column_name, proposed, stated_unit, units_of
from capplan.evidence.importers.importer import Imported, run_id
from capplan.evidence.importers.latency_unit import given_unit
from capplan.evidence.importers.number_format import COMMA, POINT, NumberFormat, number, number_format
from capplan.evidence.load_test_row import LoadTestRow
from capplan.evidence.load_tests import LOAD_TESTS
from capplan.evidence.text_file import TextFile, read_as_csv
from capplan.models.language.document import read_toml

_SEPARATORS = ",;\t|"


@dataclass(frozen=True)
class ColumnMap:
    """What the user says of files that do not say it.

    Attributes
    ----------
    columns : mapping of str to Mapped
        Where a CSV has each column.
    constants : mapping of str to str
        The values that are the same in all rows.
    by_name : bool
        Whether the columns with obvious names are taken, too.
    unit : str
        The unit of latencies, where a file does not state it.
    """

    columns: Mapping[str, Mapped]
    constants: Mapping[str, str] = field(default_factory=dict)
    by_name: bool = False
    unit: str = ""


def parse_mapping(texts: Sequence[str], *, by_name: bool = False, unit: str = "") -> ColumnMap | None:
    """Parse what options say of columns: files that map them, and pairs such as `nodes=cass_nodes,p99=latency_p99_ms`.

    Raises
    ------
    InputError
        If a file or a pair is none, or names a column or unit that does not exist.
    """
    columns: dict[str, Mapped] = {}
    constants: dict[str, str] = {}
    unit = given_unit(unit) if unit else ""
    for text in texts:
        if "=" not in text or text.endswith(".toml"):
            read = read_mapping(Path(text))
            columns, constants = columns | dict(read.columns), constants | dict(read.constants)
            continue
        by_name = True
        for pair in re.split(r",(?=[^,=]+=)", text):
            column, _, said = pair.rpartition("=")
            name, _, of_pair = said.strip().partition(":")
            where = f"--map {pair.strip()!r}"
            name = column_name(name, f"{where}: {name!r} is no column of a load-test table")
            said = of_pair or stated_unit(column.strip(), name, unit)
            columns[name] = _mapped(name, {"column": column.strip(), "unit": said}, where)
    return ColumnMap(columns, constants, by_name, unit) if columns or constants or by_name or unit else None


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
        column_name(name, f"{path}: {name!r} is no column of a load-test table")
    constants = {name: str(value) for name, value in content.get("constants", {}).items()}
    return ColumnMap({name: _mapped(name, found, str(path)) for name, found in columns.items()}, constants)


def _mapped(name: str, found: Any, where: str) -> Mapped:
    if isinstance(found, str):
        return Mapped(found)
    if not isinstance(found, dict) or not isinstance(found.get("column"), str):
        raise InputError(f"{where}: {name} must be the name of a column, or {{ column = ..., unit = ... }}")
    unit = found.get("unit", "")
    if not unit:
        return Mapped(found["column"])
    units, own = units_of(name)
    if unit not in units:
        raise InputError(f"{where}: {name} has the unit {unit!r}{nearest(str(unit), units) or ', and needs none'}")
    return Mapped(found["column"], float(units[unit] / units[own]), unit)


# ---- The CSV: its separator, what its columns are, and how its numbers are written.


def _first_line(file: TextFile) -> str:
    return file.head.partition("\n")[0]


def _separator(file: TextFile) -> str:
    return max(_SEPARATORS, key=re.sub(r'"[^"]*"', "", _first_line(file)).count)


def _header(file: TextFile) -> list[str]:
    with read_as_csv(str(file.path)):
        return [name.strip() for name in next(csv.reader([_first_line(file)], delimiter=_separator(file)), [])]


def is_table(file: TextFile) -> bool:
    """Return whether a file is a load-test table: one name alone may be that of another CSV.

    Raises
    ------
    InputError
        If it is one with an unknown column.
    """
    header = _header(file)
    if len(set(header) & LOAD_TESTS.columns.keys()) < 2:
        return False
    for name in header:
        column_name(name, f"{file.path}: column {name!r} is unknown in {LOAD_TESTS.name}")
    return True


def read_table(file: TextFile) -> Imported:
    """Read a load-test table; one that a spreadsheet has saved may have another separator, and decimal commas."""
    if _separator(file) == ",":
        return Imported(tuple(LOAD_TESTS.rows(LOAD_TESTS.read(file.path))))
    return read_mapped(file, ColumnMap({name: Mapped(name) for name in _header(file)}))


def mapping_of(file: TextFile, given: ColumnMap | None) -> ColumnMap | None:
    """Return what is said of the columns of a file; None if it is no CSV table of them, or nothing is said."""
    if given is None:
        return None
    header, taken = _header(file), {each.column for each in given.columns.values()}
    if not given.by_name:
        return given if taken & set(header) else None
    by_name = proposed((name for name in header if name not in taken), given.unit)
    if not taken & set(header) and (not by_name or set(header) <= LOAD_TESTS.columns.keys()):
        return None
    return replace(given, columns={**by_name, **given.columns})


def proposal(file: TextFile) -> str:
    """Return the mapping that a CSV file's names propose, as the end of a refusal; empty if they propose none."""
    found = proposed(_header(file))
    if not found:
        return ""
    return f"; --yes takes its columns by their names, which is --map '{as_pairs(found)}'"


def read_mapped(file: TextFile, mapping: ColumnMap) -> Imported:
    """Read a CSV table by a mapping.

    Raises
    ------
    InputError
        If a column is missing, or a cell is not of its type.
    """
    with read_as_csv(str(file.path)):
        reader = csv.DictReader((line + "\n" for _, line in file.lines()), delimiter=_separator(file))
        reader.fieldnames = [name.strip() for name in reader.fieldnames or []]
        header = reader.fieldnames
        for name, its in mapping.columns.items():
            one_of(header, its.column, f"{file.path} has no column {its.column!r}, for {name}")
        filled = (cells for cells in reader if any(isinstance(cell, str) and cell for cell in cells.values()))
        rows = [(reader.line_num, cells) for cells in filled]
    if not rows:
        raise InputError(f"{file.path} has a header and no rows: a table needs at least one")
    read, remarks = _number_format(file, mapping, [cells for _, cells in rows])
    if mapping.by_name:
        left = [name for name in header if name not in {each.column for each in mapping.columns.values()}]
        remarks += (f"its columns are {as_pairs(mapping.columns)}",)
        remarks += (f"left out are the columns {', '.join(map(repr, left))}",) if left else ()
    return Imported(tuple(_row(cells, mapping, file, line, read) for line, cells in rows), remarks=remarks)


def _number_format(
    file: TextFile, mapping: ColumnMap, rows: Sequence[Mapping[str, Any]]
) -> tuple[NumberFormat, tuple[str, ...]]:
    """Return how the numbers of a table are written: with a decimal point where commas separate its cells."""
    numeric = [
        each.column for name, each in mapping.columns.items() if LOAD_TESTS.columns[name].kind in ("number", "count")
    ]
    texts = [text for cells in rows for name in numeric if isinstance(text := cells[name], str) and text.strip()]
    texts = [text for text in texts if POINT.reads(text) or COMMA.reads(text)]  # others are refused with their line
    if _separator(file) == "," and all(map(POINT.reads, texts)):
        return POINT, ()
    read = number_format(
        str(file.path), texts, remedy="save the table with commas between its cells and decimal points in its numbers"
    )
    return read, read.remarks(texts)


def _row(cells: Mapping[str, Any], mapping: ColumnMap, file: TextFile, line: int, read: NumberFormat) -> LoadTestRow:
    where = f"{file.path}, line {line}"
    if None in cells or None in cells.values():
        raise InputError(f"{where} has another number of cells than the header: quote a cell that holds a separator")
    taken: dict[str, Any] = {"run_id": f"{run_id(file)}-{line}"}
    for name, mapped in mapping.columns.items():
        if not (text := cells[mapped.column].strip()):
            continue
        kind = LOAD_TESTS.columns[name].kind
        if kind == "number":
            value = number(text, where, f"{mapped.column!r}, for {name},", read) * mapped.factor
            if math.isinf(value):
                raise InputError(f"{where}: {text} of {mapped.column!r} is too large: check the cell and its unit")
            taken[name] = value
        elif kind == "count" and read.reads(text) and math.isfinite(value := read.value(text)):
            taken[name] = LOAD_TESTS.cell(name, f"{value:.15g}", where)
        else:
            taken[name] = LOAD_TESTS.cell(name, text, where)
    return LoadTestRow(**{"source": f"{file.path.name}, line {line}", **taken})
