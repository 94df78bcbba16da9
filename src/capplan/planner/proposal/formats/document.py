"""A proposal as a document: sections of paragraphs, tables and pictures, which page, PDF and workbook show."""

from __future__ import annotations

import re
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
    """

    text: str
    number: float | None = None
    unit: str = ""
    low: float | None = None
    high: float | None = None
    mark: Mark = ""
    key: str = ""


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes
    ----------
    title : str
        Its heading.
    width : int
        Its share of the width, compared with the other columns.
    right : bool
        Whether it is aligned to the right, as numbers are.
    code : bool
        Whether it holds names that machines read.
    """

    title: str
    width: int = 2
    right: bool = False
    code: bool = False


@dataclass(frozen=True)
class Table:
    """A table with a heading row."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    name: str = ""


@dataclass(frozen=True)
class Paragraph:
    """A paragraph; a strong one is part of the answer."""

    text: str
    strong: bool = False


@dataclass(frozen=True)
class Bullets:
    """A list of sentences."""

    items: tuple[str, ...]


@dataclass(frozen=True)
class Code:
    """What is typed on a command line."""

    text: str


@dataclass(frozen=True)
class Picture:
    """A picture by its name, and what it shows in words."""

    name: str
    about: str


@dataclass(frozen=True)
class Tiles:
    """The figures that decide, each with what it is."""

    cells: tuple[tuple[str, Cell], ...]


_BARE = re.compile(r"(?<=\d)%")
_UNIT = re.compile(r"(?<=\d) (?=%|ms\b|[A-Z]{3}\b)")


def _kept(value: T) -> T:
    """Return frozen data with no break between a number and its unit in any text."""
    if isinstance(value, str):
        return cast("T", _UNIT.sub("\u00a0", _BARE.sub("\u00a0%", value)))
    if isinstance(value, tuple):
        return cast("T", tuple(map(_kept, value)))
    if is_dataclass(value) and not isinstance(value, type | Code):
        return cast("T", replace(value, **{each.name: _kept(getattr(value, each.name)) for each in fields(value)}))
    return value


Block = Paragraph | Bullets | Code | Picture | Tiles | Table


@dataclass(frozen=True)
class Section:
    """A section of a document."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Document:
    """A document.

    Attributes
    ----------
    title : str
        Its title.
    customer : str
        Who it is for.
    facts : tuple of (str, str)
        What stands on the cover: project, date, who made it.
    question : str
        The question, in one line.
    sections : tuple of Section
        Its sections.
    footer : str
        What stands on every page: versions and the digest.
    """

    title: str
    customer: str
    facts: tuple[tuple[str, str], ...]
    question: str
    sections: tuple[Section, ...]
    footer: str

    def kept_together(self) -> Document:
        """Return the document with a number and its unit on one line; names and facts stay as people wrote them."""
        return replace(self, question=_kept(self.question), sections=_kept(self.sections))

    def figures(self) -> dict[str, Cell]:
        """Return every figure by its key."""
        cells = (
            cell
            for section in self.sections
            for block in section.blocks
            for cell in (
                [one for row in block.rows for one in row]
                if isinstance(block, Table)
                else [one for _, one in block.cells]
                if isinstance(block, Tiles)
                else []
            )
        )
        return {cell.key: cell for cell in cells if cell.key}
