"""An answer as a document: headings, facts, paragraphs, lists, tables and pictures.

An answer has one description, made of these blocks. They say what a text is and how important it is; the renderers
(screen, page, PDF, workbook, Markdown) decide what that looks like.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
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
Emphasis = Literal["", "verdict", "remark", "good", "caveat", "bad"]
"""What a text is for its reader: part of the verdict, a remark beside it, good news, a caveat, bad news."""


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
    adds : tuple of (str, int)
        Kinds and numbers of the machines whose prices it adds up.
    emphasis : Emphasis
        What it is for its reader.
    level : int
        How deep the row that it begins lies below the heading or the row above.
    beside : str
        What belongs to it, such as its band; it stands below where the table is too wide.
    """

    text: str
    number: float | None = None
    unit: str = ""
    low: float | None = None
    high: float | None = None
    mark: Mark = ""
    key: str = ""
    adds: tuple[tuple[str, int], ...] = ()
    emphasis: Emphasis = ""
    level: int = 0
    beside: str = ""


@dataclass(frozen=True)
class Column:
    """A table column.

    Attributes
    ----------
    title : str
        Its heading.
    share : int
        Its share of the width of a page, compared with the other columns.
    right : bool
        Whether it is aligned to the right, as numbers are.
    code : bool
        Whether it holds names that machines read.
    prose : bool
        Whether it holds sentences, which may break.
    optional : bool
        Whether it is left out where the table is too wide.
    below : bool
        Whether it stands below the column before it where the table is too wide.
    """

    title: str
    share: int = 2
    right: bool = False
    code: bool = False
    prose: bool = False
    optional: bool = False
    below: bool = False


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
    level : int
        How deep it lies below its heading.
    """

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    name: str = ""
    level: int = 0


@dataclass(frozen=True)
class Heading:
    """The heading of an answer (level 1) or of a part of it."""

    text: str
    level: int = 2


@dataclass(frozen=True)
class Break:
    """The end of a part that is followed by one without a heading."""


@dataclass(frozen=True)
class Paragraph:
    """A paragraph."""

    text: str
    emphasis: Emphasis = ""
    level: int = 0


@dataclass(frozen=True)
class Fact:
    """A key and a value, with a remark on it."""

    key: str
    value: str
    remark: str = ""
    emphasis: Emphasis = ""
    level: int = 0


@dataclass(frozen=True)
class Bullets:
    """A list of sentences; unmarked ones begin with what they speak of."""

    items: tuple[str, ...]
    marked: bool = True
    level: int = 0


@dataclass(frozen=True)
class Code:
    """Text to type or to copy, such as a command line or the name of a file, and what it is."""

    text: str
    about: str = ""


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


Block = Heading | Break | Paragraph | Fact | Bullets | Code | Picture | Tiles | Signatures | Table


def more(options: Iterable[str]) -> Paragraph:
    """Return a list of further output, by the option that shows it."""
    return Paragraph(f"More: {', '.join(options)}", "remark")


def table(heads: Iterable[str | Column], rows: Iterable[Iterable[str | Cell]], name: str = "", level: int = 0) -> Table:
    """Return a table of texts and cells."""
    columns = tuple(each if isinstance(each, Column) else Column(each) for each in heads)
    cells = (tuple(each if isinstance(each, Cell) else Cell(each) for each in row) for row in rows)
    return Table(columns, tuple(cells), name, level)


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
