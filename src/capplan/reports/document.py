"""An answer as a document: headings, paragraphs, lines of a key and a value, tables and pictures.

An answer has one description, made of these blocks. Screen, page, PDF and workbook are renderers of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Literal, TypeVar, cast

T = TypeVar("T")

Mark = Literal["", "measured", "predicted", "extrapolated", "given"]
"""What a figure rests on, in a customer's words; empty where there is nothing to say."""
MARKS: dict[Mark, str] = {
    "measured": "such a figure was measured in this layout at this load",
    "predicted": "computed inside the evidence: between measured layouts and loads",
    "extrapolated": "computed beyond the evidence, or a kind of figure that was never measured",
    "given": "stated by the customer or by a price list",
}


@dataclass(frozen=True)
class Cell:
    """A cell of a table: a text, or a number as it is shown.

    Attributes
    ----------
    text : str
        What is shown.
    number : float or None
        The number that the text shows, with as many digits; None for a text.
    unit : str
        Unit of the number: `1/s`, `ms`, `1` for a share, a currency, or empty.
    low, high : float or None
        The ends of its band, as the text shows them.
    mark : Mark
        What it rests on.
    key : str
        Name of the figure; equal in all formats, empty where a cell is no figure.
    style : str
        Its look on a terminal.
    aside : str
        What stands faintly behind it on a terminal.
    adds : tuple of (str, int)
        Kinds and numbers of the machines whose prices it adds up.
    """

    text: str
    number: float | None = None
    unit: str = ""
    low: float | None = None
    high: float | None = None
    mark: Mark = ""
    key: str = ""
    style: str = ""
    aside: str = ""
    adds: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Column:
    """A table column.

    Attributes
    ----------
    title : str
        Its heading.
    width : int
        Its share of the width, compared with the other columns; of a grid, its characters, if not the usual.
    right : bool
        Whether it is aligned to the right, as numbers are.
    code : bool
        Whether it holds names that machines read.
    wrap : bool
        Whether its cells may need several lines of a terminal.
    """

    title: str
    width: int = 2
    right: bool = False
    code: bool = False
    wrap: bool = False


@dataclass(frozen=True)
class Table:
    """A table with a heading row.

    Attributes
    ----------
    columns : tuple of Column
        Its columns.
    rows : tuple of tuples of Cell
        Its cells; a row may be shorter than the heading.
    name : str
        Its name in a workbook.
    look : str
        On a terminal: `plain`, `ruled` below the heading, or a `grid` without heading.
    gap : int
        Blanks between the columns of a grid.
    whole : bool
        Whether it is as wide as it needs even where a terminal is not.
    narrow : tuple of Block or None
        The same where the terminal is too narrow for it; None to show it all the same.
    """

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    name: str = ""
    look: Literal["plain", "ruled", "grid"] = "plain"
    gap: int = 2
    whole: bool = False
    narrow: tuple[Block, ...] | None = None


@dataclass(frozen=True)
class Paragraph:
    """A paragraph; strong if it is part of the answer.

    Attributes
    ----------
    text : str
        What it says.
    strong : bool
        Whether it is part of the answer.
    indent : int
        Blanks before it on a terminal.
    hanging : int or None
        Blanks before its lines after the first; as many as before the first by default.
    style : str
        Its look on a terminal.
    """

    text: str
    strong: bool = False
    indent: int = 0
    hanging: int | None = None
    style: str = ""


@dataclass(frozen=True)
class Line:
    """A verbatim terminal line: a heading, a path, or a blank line; `fill` wraps a long one."""

    text: str = ""
    style: str = ""
    fill: bool = False


@dataclass(frozen=True)
class Fact:
    """A key and a value, with a remark at the right edge, or after the value if it does not fit."""

    key: str
    value: str
    remark: str = ""


@dataclass(frozen=True)
class Bullets:
    """A list of sentences."""

    items: tuple[str, ...]


@dataclass(frozen=True)
class Code:
    """Text to type on a command line."""

    text: str


@dataclass(frozen=True)
class Picture:
    """A picture by name, with a description in words."""

    name: str
    about: str


@dataclass(frozen=True)
class Tiles:
    """The deciding figures, each with its label."""

    cells: tuple[tuple[str, Cell], ...]


@dataclass(frozen=True)
class Signatures:
    """Lines to sign on, one for each party."""

    parties: tuple[str, ...]


Block = Paragraph | Line | Fact | Bullets | Code | Picture | Tiles | Signatures | Table


def title(text: str) -> Paragraph:
    """Return the heading of a screen."""
    return Paragraph(text, style="bold")


def heading(text: str) -> Line:
    """Return the heading of a part, with a blank line before it."""
    return Line(f"\n{text}", "bold cyan", fill=True)


def more(options: Iterable[str]) -> Paragraph:
    """Return a list of further output, by the option that shows it."""
    return Paragraph(f"More: {', '.join(options)}", hanging=6, style="dim")


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], narrow: Iterable[Block] | None = None) -> Table:
    """Return a plain table of texts."""
    return Table(tuple(map(Column, heads)), texts(rows), narrow=None if narrow is None else tuple(narrow))


def ruled(
    columns: Iterable[Column],
    rows: Iterable[Sequence[Cell]],
    whole: bool = False,
    narrow: Iterable[Block] | None = None,
) -> Table:
    """Return a table with a rule below its heading."""
    cells = tuple(map(tuple, rows))
    return Table(tuple(columns), cells, look="ruled", whole=whole, narrow=None if narrow is None else tuple(narrow))


def grid(rows: Iterable[Sequence[Cell]], gap: int = 2, width: int = 0) -> Table:
    """Return a table of two columns without headings; the first has a fixed width or the width that it needs."""
    return Table((Column("", width), Column("", 0, wrap=True)), tuple(map(tuple, rows)), look="grid", gap=gap)


def texts(rows: Iterable[Sequence[str]]) -> tuple[tuple[Cell, ...], ...]:
    """Return texts as cells."""
    return tuple(tuple(map(Cell, row)) for row in rows)


def stacked(
    heads: Sequence[str], rows: Iterable[Sequence[str]], *, joined: str = ", ", indent: int = 0, hanging: int = 2
) -> Iterable[Block]:
    """Yield a paragraph for each row: its first cell, then the other cells with their headings."""
    for first, *others in rows:
        words = joined.join(f"{head} {cell}" for head, cell in zip(heads[1:], others, strict=False) if cell)
        yield Paragraph(f"{first}: {words}", indent=indent, hanging=hanging)


def told(blocks: Iterable[Block], *keys: str) -> Iterator[str]:
    """Yield the facts with these keys as paragraphs, so that a page has the doubts that the screen has."""
    facts = (each for each in blocks if isinstance(each, Fact) and each.key in keys)
    yield from (f"{each.key}: {each.value.removesuffix('.')}." for each in facts)


_BARE = re.compile(r"(?<=\d)%")
_UNIT = re.compile(r"(?<=\d) (?=%|ms\b|[A-Z]{3}\b)")


def _kept(value: T) -> T:
    """Return frozen data with non-breaking spaces between numbers and units in all texts."""
    if isinstance(value, str):
        return cast("T", _UNIT.sub("\u00a0", _BARE.sub("\u00a0%", value)))
    if isinstance(value, tuple):
        return cast("T", tuple(map(_kept, value)))
    if is_dataclass(value) and not isinstance(value, type | Code):
        return cast("T", replace(value, **{each.name: _kept(getattr(value, each.name)) for each in fields(value)}))
    return value


@dataclass(frozen=True)
class Section:
    """A section of a document."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Document:
    """A document with sections.

    Attributes
    ----------
    title : str
        Its title.
    customer : str
        Who it is for.
    facts : tuple of (str, str)
        What stands on the cover: project, date, who made it.
    sections : tuple of Section
        Its sections.
    footer : str
        What stands on every page: versions and the digest.
    """

    title: str
    customer: str
    facts: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...]
    footer: str

    def kept_together(self) -> Document:
        """Return the document with each number and its unit on one line; names and facts stay unchanged."""
        return replace(self, sections=_kept(self.sections))
