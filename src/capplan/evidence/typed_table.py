"""Tables whose columns are the fields of a dataclass: read, checked, written, and seen as typed rows.

`columns` says what a cell may hold; every cell may be missing. A frame has all columns, in the order of the fields:
`string` for text, words, counts and shares per data centre, plain `float64` with NaN for numbers, `Int64` for whole
numbers and `boolean` for flags.
"""

from __future__ import annotations

import csv
import io
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from capplan import visible_text
from capplan.errors import InputError, look_up
from capplan.evidence.row_validation import FLAGS, MOST_COUNT, Column, R, check_header, columns_of
from capplan.evidence.text_file import TextFile, read_as_csv
from capplan.files import replace_file
from capplan.models.language.document import schema
from capplan.models.language.per_dc import SEPARATOR, per_dc_text
from capplan.models.language.units import parse_share

TEXT = pd.StringDtype("pyarrow", na_value=pd.NA)
PARQUET = ".parquet"
MOST_ROWS = 50_000
_NUMERIC = ("number", "count")
_DTYPES: Mapping[str, Any] = {"number": "float64", "count": "Int64", "flag": "boolean"}

Cells: TypeAlias = "pd.Series[Any]"


@dataclass(frozen=True)
class TypedTable(Generic[R]):
    """A kind of table.

    Attributes
    ----------
    row : type
        The dataclass whose fields are the columns.
    name : str
        What the table is called in messages, such as `a load-test table`.
    schema : str
        Name and version of the contract, such as `capplan.load-tests/1`.
    """

    row: type[R]
    name: str
    schema: str

    @property
    def columns(self) -> Mapping[str, Column]:
        """The columns by name, in order."""
        return columns_of(self.row)

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON schema (draft 2020-12) of a table as an array of rows; every cell may be missing."""
        found = schema(self.row)
        dialect = found.pop("$schema")
        for field in found["properties"].values():
            field.pop("default", None)
        items = {**found, "additionalProperties": False}
        return {"$schema": dialect, "title": self.schema, "type": "array", "items": items}

    def read(self, path: str | Path) -> pd.DataFrame:
        """Read a table from a CSV or Parquet file.

        Parameters
        ----------
        path : str or Path
            The file; `.parquet` is Parquet, any other ending CSV with a header.

        Returns
        -------
        pandas.DataFrame
            All columns, one row per row of the file, numbered from 0.

        Raises
        ------
        InputError
            If the file cannot be read, a column is unknown or appears twice, or a cell is not of its column's type.
        """
        path = Path(path)
        found = _read_parquet(path) if path.suffix.lower() == PARQUET else _read_csv(path)
        known = self.columns
        check_header(found.column_names, known, str(path), self.name)
        if not found.num_rows:
            raise InputError(f"{path} has a header and no rows: {self.name} needs at least one")
        if found.num_rows > MOST_ROWS:
            raise InputError(
                f"{path} has {found.num_rows:,} rows: {self.name} may have {MOST_ROWS:,}, one for each run and class "
                "and not one for each request"
            )
        first = 1 if path.suffix.lower() == PARQUET else 2  # the header is line 1 of a CSV file
        cells = {
            name: _cells(found.column(name), known[name], lambda row: f"{path}, line {row + first}")
            for name in found.column_names
        }
        if first == 2:
            cells = {name: _unquoted(each) if known[name].kind == "text" else each for name, each in cells.items()}
        return self._frame(cells, found.num_rows)

    def frame(self, rows: Iterable[R]) -> pd.DataFrame:
        """Return typed rows as a data frame with all columns."""
        listed = list(rows)
        cells = {
            name: pd.Series([_cell(getattr(row, name), column) for row in listed], dtype=_dtype(column))
            for name, column in self.columns.items()
        }
        return self._frame(cells, len(listed))

    def cell(self, name: str, text: str, where: str) -> Any:
        """Return the value of one cell that was written as text, such as a constant of an option.

        Raises
        ------
        InputError
            If the column is unknown, or the text is not of its type.
        """
        column = look_up(self.columns, name, f"{where}: column {name!r} is unknown in {self.name}")
        (value,) = _typed(_parsed(pa.array([text.strip()]), column, lambda _: where), column)
        return value

    def _frame(self, cells: Mapping[str, pd.Series], count: int) -> pd.DataFrame:
        return pd.DataFrame(
            {
                name: cells[name] if name in cells else pd.Series([_missing(column)] * count, dtype=_dtype(column))
                for name, column in self.columns.items()
            }
        )

    def rows(self, frame: pd.DataFrame) -> Iterator[R]:
        """Yield the rows of a data frame as frozen values; a missing cell is None.

        Parameters
        ----------
        frame : pandas.DataFrame
            A frame as `read` returns it.
        """
        columns = self.columns
        taken = [_typed(frame[name], column) for name, column in columns.items()]
        for cells in zip(*taken, strict=True):
            yield self.row(**dict(zip(columns, cells, strict=True)))

    def write(self, frame: pd.DataFrame, path: str | Path) -> None:
        """Write a data frame to a CSV or Parquet file, atomically.

        Parameters
        ----------
        frame : pandas.DataFrame
            A frame as `read` returns it.
        path : str or Path
            The file; it is replaced if it exists. `.parquet` is Parquet, any other ending CSV.

        Raises
        ------
        InputError
            If the file cannot be written.
        """
        path = Path(path)
        if path.suffix.lower() == PARQUET:
            content = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata({"schema": self.schema})
            buffer = io.BytesIO()
            pq.write_table(content, buffer)
            replace_file(path, buffer.getvalue())
        else:
            replace_file(path, self.csv(frame))

    def csv(self, frame: pd.DataFrame) -> str:
        """Return a data frame as CSV; a missing cell is empty."""
        shown = frame.copy(deep=False)
        for name, column in self.columns.items():
            if column.kind == "flag":
                shown[name] = shown[name].map({True: "yes", False: "no"}, na_action="ignore")
            elif column.kind == "text":
                shown[name] = shown[name].map(visible_text.cell, na_action="ignore")
        return str(shown.to_csv(index=False, float_format="%.10g", lineterminator="\n"))


def _unquoted(cells: Cells) -> Cells:
    """Return texts without the apostrophes that keep spreadsheets from taking them for formulas."""
    if not cells.str.startswith("'").fillna(False).any():
        return cells
    return cells.map(visible_text.from_cell, na_action="ignore")


def _read_csv(path: Path) -> pa.Table:
    """Read every cell of a CSV file as text."""
    text = TextFile(path)
    if text.encoding == "utf-16":
        raise InputError(f"{path} is UTF-16: save the table as UTF-8")
    with read_as_csv(str(path)):
        header = next(csv.reader(io.StringIO(text.head.lstrip("\N{BYTE ORDER MARK}"))), [])
    for _ in text.lines():  # finds a line that is no text, of which pyarrow prints a traceback
        pass
    refused: list[pa_csv.InvalidRow] = []

    def refuse(row: Any) -> str:
        refused.append(row)
        return "error"

    try:
        return pa_csv.read_csv(
            path,
            read_options=pa_csv.ReadOptions(use_threads=False),
            parse_options=pa_csv.ParseOptions(newlines_in_values=True, invalid_row_handler=refuse),
            convert_options=pa_csv.ConvertOptions(
                column_types=dict.fromkeys(header, pa.string()), strings_can_be_null=True, null_values=[""]
            ),
        )
    except pa.ArrowInvalid as error:
        if refused:
            where = f", line {refused[0].number}" if refused[0].number else ""
            raise InputError(
                f"{path}{where} has {refused[0].actual_columns} cells: the header has {refused[0].expected_columns}; "
                "quote a cell that holds a comma"
            ) from None
        raise InputError(f"{path} is not a CSV table: {str(error).splitlines()[0]}") from None


def _read_parquet(path: Path) -> pa.Table:
    if not path.is_file():
        raise InputError(f"{path} does not exist: give a file that does")
    try:
        found = pq.read_table(path)
        found.validate(full=True)  # texts are text
        return found.rename_columns(found.column_names)  # and so are names
    except (OSError, ValueError, pa.ArrowException):
        raise InputError(f"{path} is not a Parquet file, which its ending says: it may be cut off") from None


def _cells(found: pa.ChunkedArray, column: Column, where: Callable[[int], str]) -> Cells:
    """Return the checked cells of a column."""
    kind, array = column.kind, found.combine_chunks()
    if pa.types.is_dictionary(array.type):
        array = array.cast(pa.string())
    if pa.types.is_null(array.type):
        return _series([_missing(column)] * len(array), column)
    whole = kind in _NUMERIC and pa.types.is_integer(array.type)
    if whole or (kind == "number" and pa.types.is_floating(array.type)):
        return _bounded(array, column, where)
    if kind == "flag" and pa.types.is_boolean(array.type):
        return _series(array.to_pylist(), column)
    try:
        words = pc.utf8_trim_whitespace(array.cast(pa.string()))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise InputError(f"column {column.name!r} holds {array.type}: {column.rule}") from None
    return _parsed(pc.if_else(pc.equal(words, ""), None, words), column, where)


def _parsed(words: pa.Array, column: Column, where: Callable[[int], str]) -> Cells:
    if column.kind in _NUMERIC:
        try:
            numbers = words.cast(pa.float64())
            return _bounded(numbers if column.kind == "number" else numbers.cast(pa.int64()), column, where)
        except pa.ArrowInvalid:
            raise _refused(words, column, where) from None
    distinct = pc.unique(words)
    for word in distinct.to_pylist() if column.kind != "text" else ():
        try:
            word is None or column.value(word)
        except ValueError:
            raise _refused(words, column, where) from None
    found = pd.Series(words.to_pandas(types_mapper={pa.string(): TEXT}.get)).astype(TEXT)
    return (
        found.map(lambda word: FLAGS[word.lower()], na_action="ignore").astype("boolean")
        if column.kind == "flag"
        else found
    )


def _refused(words: pa.Array, column: Column, where: Callable[[int], str]) -> InputError:
    """Return the error of the first cell that breaks the rule of its column."""
    for row, word in enumerate(words.to_pylist()):
        try:
            word is None or column.value(word)
        except ValueError:
            return column.refusal(word, where(row))
    return InputError(f"column {column.name!r}: {column.rule}")


def _bounded(array: pa.Array, column: Column, where: Callable[[int], str]) -> Cells:
    """Return numbers as cells of a column, after a check that none is too large for it."""
    numbers = array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    too_large = np.flatnonzero(np.abs(numbers) > (MOST_COUNT if column.kind == "count" else sys.float_info.max))
    if len(too_large):
        row = int(too_large[0])
        raise column.refusal(array[row].as_py(), where(row))
    return pd.Series(numbers) if column.kind == "number" else _series(array.to_pylist(), column)


def _series(cells: list[Any], column: Column) -> Cells:
    """Return cells with the type of their column."""
    found: Cells = pd.Series(cells, dtype=_dtype(column))
    return found


def _dtype(column: Column) -> Any:
    """Return the type of a column in a data frame."""
    return _DTYPES.get(column.kind, TEXT)


def _missing(column: Column) -> Any:
    return np.nan if column.kind == "number" else pd.NA


def _cell(value: Any, column: Column) -> Any:
    """Return the value of a field as a cell.

    Raises
    ------
    ValueError
        If it is not of the column's type.
    """
    if value is None:
        return _missing(column)
    if column.kind == "number" and (isinstance(value, (str, bool)) or math.isinf(value)):
        raise ValueError(f"{column.name} is {value!r}")
    if column.kind == "count" and abs(value) > MOST_COUNT:
        raise ValueError(f"{column.name} is {value!r}")
    if column.kind == "shares":
        return SEPARATOR.join(map(_exactly, value))
    return per_dc_text(value) if column.kind == "per_dc" else value


def _exactly(share: float) -> str:
    """Return a share as a percentage, or as a number where that would be rounded."""
    text = f"{100 * share:g}%"
    return text if parse_share(text) == share else repr(share)


def _typed(cells: pd.Series, column: Column) -> list[Any]:
    """Return cells as Python values."""
    makers: Mapping[str, Callable[[Any], Any]] = {"number": float, "count": int, "flag": bool}
    make: Callable[[Any], Any] = makers.get(column.kind, column.value)
    return [None if pd.isna(cell) else make(cell) for cell in cells]
