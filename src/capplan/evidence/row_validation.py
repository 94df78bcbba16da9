"""Tables of rows with typed columns: the rule of each cell, and the sentence that refuses a cell that breaks it."""

from __future__ import annotations

import csv
import io
import math
import types
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from capplan.evidence.text_file import TextFile, read_as_csv
from capplan.models import visible_text
from capplan.models.errors import InputError, nearest
from capplan.models.files import replace_file
from capplan.models.language.per_dc import SEPARATOR, is_per_dc, parse_shares, per_dc_text
from capplan.models.language.units import parse_share

MOST_COUNT = 2**53  # beyond which a double does not count exactly
FLAGS = {"yes": True, "no": False, "true": True, "false": False}
_UNITS = {
    "_ms": "milliseconds",
    "_s": "seconds",
    "_tps": "requests per second",
    "_percent": "per cent",
    "_gib": "GiB",
    "_bytes": "bytes",
}


class Row(Protocol):
    """A frozen dataclass of optional fields."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


R = TypeVar("R", bound=Row)


@dataclass(frozen=True)
class Column:
    """A column: its name, the type of its cells, and the allowed words."""

    name: str
    kind: Literal["text", "number", "count", "flag", "choice", "per_dc", "shares"]
    choices: tuple[str, ...] = ()

    @property
    def rule(self) -> str:
        """The rule of a cell, as the end of a sentence."""
        unit = next((words for ending, words in _UNITS.items() if self.name.endswith(ending)), "")
        of_unit = f" of {unit}, without a unit" if unit and unit != "per cent" else ""
        return {
            "number": f"it must be a finite number{of_unit}",
            "count": "it must be a whole number",
            "flag": "it must be 'yes' or 'no'",
            "per_dc": "it must be a whole number, or one for each data centre such as '6/6/3'",
            "shares": "it must be one share for each data centre, which add up to 100%, such as '50%/30%/20%'",
        }.get(self.kind, "it must be text")

    def value(self, word: str) -> Any:
        """Return the value of a cell that is not empty.

        Raises
        ------
        ValueError
            If it breaks the rule of the column.
        """
        makers: Mapping[str, Callable[[str], Any]] = {
            "number": _number,
            "count": _whole,
            "flag": _flag,
            "per_dc": per_dc,
            "shares": parse_shares,
            "choice": self._choice,
        }
        return makers.get(self.kind, str)(word)

    def _choice(self, word: str) -> str:
        if word not in self.choices:
            raise ValueError(word)
        return word

    def refusal(self, word: object, where: str) -> InputError:
        """Return the error for a cell that breaks the rule."""
        rule = f": {self.rule}"
        if self.choices:
            rule = nearest(str(word), self.choices)
        return InputError(f"{where}: column {self.name!r} has {word!r}{rule}")


@cache
def columns_of(row: type) -> Mapping[str, Column]:
    """Return the columns of a row's type by name, in order."""
    hints = get_type_hints(row)
    return types.MappingProxyType({field.name: _column(field.name, hints[field.name]) for field in fields(row)})


def _column(name: str, hint: Any) -> Column:
    """Return the column of an optional field."""
    optional = [each for each in get_args(hint) if each is not types.NoneType]
    if all(get_origin(each) is Literal for each in optional):
        return Column(name, "choice", tuple(word for each in optional for word in get_args(each)))
    if len(optional) > 1 and is_per_dc(optional[0] | optional[1]):
        return Column(name, "per_dc")
    (only,) = optional
    kinds: Mapping[Any, Any] = {
        str: "text",
        float: "number",
        int: "count",
        bool: "flag",
        tuple[float, ...]: "shares",
    }
    return Column(name, kinds[only])


def check_header(header: Collection[str], known: Collection[str], where: str, table: str) -> None:
    """Refuse a header with a column that is unknown or appears twice.

    Parameters
    ----------
    header : collection of str
        Names of the columns, in order.
    known : collection of str
        Names that a column may have.
    where : str
        Name of the file, for messages.
    table : str
        What the table is called in messages, such as `a load-test table`.

    Raises
    ------
    InputError
        If there is one.
    """
    seen: set[str] = set()
    for name in header:
        if name not in known:
            raise InputError(f"{where}: column {name!r} is unknown in {table}{nearest(name, known)}")
        if name in seen:
            raise InputError(f"{where}: column {name!r} appears twice: each column must appear once")
        seen.add(name)


def parse_rows(
    text: str, row: type[R], where: str, table: str, required: Collection[str] = ()
) -> Iterator[tuple[str, R]]:
    """Yield the rows of a small table, each with its place in the file.

    Parameters
    ----------
    text : str
        CSV with a header.
    row : type
        The dataclass of optional fields whose names are the columns.
    where, table : str
        Names of the file and of the kind of table, for messages.
    required : collection of str
        Columns that the header must have.

    Raises
    ------
    InputError
        If a column is unknown, missing or appears twice, a row has another number of cells, or a cell breaks its rule.
    """
    with read_as_csv(where):
        yield from _parsed_rows(text, row, where, table, required)


def _parsed_rows(text: str, row: type[R], where: str, table: str, required: Collection[str]) -> Iterator[tuple[str, R]]:
    known = columns_of(row)
    reader = csv.reader(io.StringIO(text))
    header = next(reader, [])
    check_header(header, known, where, table)
    if missing := [name for name in required if name not in header]:
        raise InputError(f"{where}: column {missing[0]!r} is missing: {table} must have it")
    for cells in reader:
        if not cells:
            continue
        place = f"{where}, line {reader.line_num}"
        if len(cells) != len(header):
            raise InputError(f"{place}: the row must have exactly {len(header)} cells: quote a cell that holds a comma")
        yield (
            place,
            row(**{name: _parsed_cell(known[name], word, place) for name, word in zip(header, cells, strict=True)}),
        )


def _parsed_cell(column: Column, word: str, where: str) -> Any:
    if not word.strip():
        return None
    try:
        return column.value(word.strip())
    except ValueError:
        raise column.refusal(word, where) from None


def _number(word: str) -> float:
    number = float(word)
    if not math.isfinite(number):
        raise ValueError(word)
    return number


def _whole(word: str) -> int:
    number = float(word)
    if not number.is_integer() or abs(number) > MOST_COUNT:
        raise ValueError(word)
    return int(number)


def _flag(word: str) -> bool:
    if word.lower() not in FLAGS:
        raise ValueError(word)
    return FLAGS[word.lower()]


def per_dc(word: str) -> int | tuple[int, ...]:
    """Return a count, or one for each data centre.

    Raises
    ------
    ValueError
        If it is something else.
    """
    numbers = tuple(int(each) for each in word.split(SEPARATOR))
    if min(numbers) < 0:
        raise ValueError(word)
    return numbers if len(numbers) > 1 else numbers[0]


TEXT = pd.StringDtype("pyarrow", na_value=pd.NA)
_DTYPES: Mapping[str, Any] = {"number": "float64", "count": "Int64", "flag": "boolean"}
PARQUET = ".parquet"
MOST_ROWS = 50_000
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
        known = self.columns
        if name not in known:
            raise InputError(f"{where}: column {name!r} is unknown in {self.name}{nearest(name, known)}")
        (value,) = _typed(_parsed(pa.array([text.strip()]), known[name], lambda _: where), known[name])
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
    """Return texts without the leading apostrophes that stop spreadsheets from reading them as formulas."""
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
        return pq.read_table(path)
    except (pa.ArrowInvalid, OSError):
        raise InputError(f"{path} is not a Parquet file, which its ending says: it may be cut off") from None


def _cells(found: pa.ChunkedArray, column: Column, where: Callable[[int], str]) -> Cells:
    """Return the checked cells of a column."""
    kind, array = column.kind, found.combine_chunks()
    if pa.types.is_dictionary(array.type):
        array = array.cast(pa.string())
    if pa.types.is_null(array.type):
        return _series([_missing(column)] * len(array), column)
    if kind == "number" and pa.types.is_floating(array.type):
        return _finite(pd.Series(array.to_pandas(), dtype=_dtype(column)), column, where)
    if kind in ("number", "count") and pa.types.is_integer(array.type):
        return _series(array.to_pylist(), column)
    if kind == "flag" and pa.types.is_boolean(array.type):
        return _series(array.to_pylist(), column)
    try:
        words = pc.utf8_trim_whitespace(array.cast(pa.string()))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise InputError(f"column {column.name!r} holds {array.type}: {column.rule}") from None
    return _parsed(pc.if_else(pc.equal(words, ""), None, words), column, where)


def _parsed(words: pa.Array, column: Column, where: Callable[[int], str]) -> Cells:
    if column.kind == "number":
        try:
            numbers = words.cast(pa.float64())
        except pa.ArrowInvalid:
            raise _refused(words, column, where) from None
        return _finite(pd.Series(numbers.to_numpy(zero_copy_only=False), dtype="float64"), column, where)
    if column.kind == "count":
        try:
            return pd.Series(words.cast(pa.float64()).cast(pa.int64()).to_pandas(integer_object_nulls=True)).astype(
                "Int64"
            )
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
    """Return the error for the first cell that breaks its column's rule."""
    for row, word in enumerate(words.to_pylist()):
        try:
            word is None or column.value(word)
        except ValueError:
            return column.refusal(word, where(row))
    return InputError(f"column {column.name!r}: {column.rule}")


def _finite(numbers: pd.Series, column: Column, where: Callable[[int], str]) -> Cells:
    unbounded = np.flatnonzero(np.isinf(numbers.to_numpy()))
    if len(unbounded):
        row = int(unbounded[0])
        raise column.refusal(float(numbers[row]), where(row))
    return numbers


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
    """Return a share as a percentage, or as a plain number if the percentage would be rounded."""
    text = f"{100 * share:g}%"
    return text if parse_share(text) == share else repr(share)


def _typed(cells: pd.Series, column: Column) -> list[Any]:
    """Return cells as Python values."""
    makers: Mapping[str, Callable[[Any], Any]] = {
        "number": float,
        "count": int,
        "flag": bool,
        "per_dc": per_dc,
        "shares": parse_shares,
    }
    make = makers.get(column.kind, str)
    return [None if pd.isna(cell) else make(cell) for cell in cells]
