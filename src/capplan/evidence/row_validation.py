"""Rows with typed columns: what each cell may be, and the sentence that refuses one that breaks a rule."""

from __future__ import annotations

import csv
import io
import math
import types
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, ClassVar, Literal, Protocol, TypeVar, get_args, get_origin, get_type_hints

from capplan.errors import InputError, nearest, one_of
from capplan.evidence.text_file import read_as_csv
from capplan.models.language.per_dc import SEPARATOR, is_per_dc, parse_shares

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
    numbers = tuple(_whole(each) for each in word.split(SEPARATOR))
    if min(numbers) < 0:
        raise ValueError(word)
    return numbers if len(numbers) > 1 else numbers[0]


_MAKERS: Mapping[str, Callable[[str], Any]] = {
    "number": _number,
    "count": _whole,
    "flag": _flag,
    "per_dc": per_dc,
    "shares": parse_shares,
}


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
            "count": "it must be a whole number, at most 2^53",
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
        if self.kind == "choice" and word not in self.choices:
            raise ValueError(word)
        return _MAKERS.get(self.kind, str)(word)

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
        one_of(known, name, f"{where}: column {name!r} is unknown in {table}")
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
                raise InputError(
                    f"{place}: the row must have exactly {len(header)} cells: quote a cell that holds a comma"
                )
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
