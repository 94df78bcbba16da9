"""Documents on a terminal: lines fit its width, lose no value and have no trailing blanks."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, pairwise, zip_longest
from textwrap import TextWrapper, fill, wrap

from rich.console import Console
from rich.text import Text

from capplan.reports.document import (
    Block,
    Break,
    Bullets,
    Cell,
    Code,
    Emphasis,
    Fact,
    Heading,
    Paragraph,
    Table,
)

_STYLES: Mapping[Emphasis, str] = {
    **{"": "", "verdict": "bold", "remark": "dim"},
    **{"good": "green", "caveat": "yellow", "bad": "red"},
}
_KEY = 13  # columns of the key of a fact, with a blank after it
_REMARKS_END = 80  # where the remark on a fact ends
_LEVEL = _GAP = "  "  # before a text one level deeper, and between the columns of a table
_HEAD = 9  # columns of a line of a heading where the table is too wide
_NARROWEST = 12  # columns of prose in a table
_BLANK = "\N{NO-BREAK SPACE}"
_UNIT = re.compile(r"(?<=\d) (?=(?:ms|TPS|DCs?|nodes?|km)\b|%)|(?<=\bRF) (?=\d)")


def show(blocks: Iterable[Block], console: Console) -> None:
    """Print a document on `console`; use `capplan.cli.shell.terminal.Screen` for stdout.

    Raises
    ------
    TypeError
        For a block that no answer puts on a screen.
    """
    for are_facts, group in groupby(blocks, lambda each: isinstance(each, Fact)):
        if are_facts:
            _facts([each for each in group if isinstance(each, Fact)], console)
        else:
            for block in group:
                _block(block, console)


def _block(block: Block, console: Console) -> None:
    match block:
        case Heading(text, level):
            if level > 1:
                _put(console, Text())
            _wrapped(console, text, "bold" if level == 1 else "bold cyan", "", _LEVEL * (level - 1))
        case Break():
            _put(console, Text())
        case Paragraph(text, emphasis, level):
            _wrapped(console, text, _STYLES[emphasis], _LEVEL * level, _LEVEL * level)
        case Bullets(items, marked, level):
            for item in items:
                _wrapped(console, f"{'- ' * marked}{item}", "", _LEVEL * level, _LEVEL * (level + 1))
        case Code(text, about):
            _put(console, Text(f"{about}: {text}" if about else text))
        case Table():
            _table(block, console)
        case _:
            raise TypeError(type(block).__name__)


def _put(console: Console, line: Text) -> None:
    """Print one line unchanged, without trailing blanks."""
    line.rstrip()
    console.print(line, soft_wrap=True)


def _kept(text: str) -> str:
    """Return a text that breaks nowhere between a figure and its unit."""
    return _UNIT.sub(_BLANK, text)


def _wrapped(console: Console, text: str, style: str, first: str = "", others: str = "") -> None:
    """Print a text in lines with something before the first, and before the others."""
    wrapper = TextWrapper(console.width, first, others, break_on_hyphens=False)
    for line in wrapper.wrap(_kept(text)):
        _put(console, Text(line.replace(_BLANK, " "), style))


def _facts(facts: Sequence[Fact], console: Console) -> None:
    """Print facts, whose values stand one below the other."""
    width = max(_KEY, *(len(_LEVEL * each.level + each.key) + 1 for each in facts))
    for each in facts:
        line, style = f"{_LEVEL * each.level + each.key:<{width}}{each.value}", _STYLES[each.emphasis]
        space = console.width - len(line) - len(each.remark)
        if each.remark and space >= len(_GAP):
            blanks = min(space, max(_REMARKS_END - len(line) - len(each.remark), len(_GAP)))
            _put(console, Text(line + " " * blanks + each.remark, style))
        else:
            _wrapped(console, f"{line}{'; ' * bool(each.remark)}{each.remark}", style, "", " " * width)


def _table(table: Table, console: Console) -> None:
    """Print a table in the first form that fits, and else each of its rows as a paragraph."""
    for form, gap in _forms(table):
        lines = _lines(form, gap, console.width)
        if max(map(len, lines)) <= console.width:
            for line in lines:
                _put(console, line)
            return
    if title := table.columns[0].title:
        _wrapped(console, title, "bold", _LEVEL * table.level)
    for name, *cells in table.rows:
        headed = zip(table.columns[1:], cells, strict=False)
        figures = [
            f"{'' if column.prose else column.title} {_beside(cell)}".strip() for column, cell in headed if cell.text
        ]
        indent = _LEVEL * (table.level + name.level)
        words = f"{name.text}: {', '.join(figures)}" if figures else name.text
        _wrapped(console, words, _STYLES[name.emphasis], indent, indent + _LEVEL)


def _beside(cell: Cell) -> str:
    return f"{cell.text} ({cell.beside})" if cell.beside else cell.text


def _forms(table: Table) -> Iterator[tuple[Table, str]]:
    """Yield narrower and narrower forms, and what stands between columns.

    The second is without optional columns, the third has short lines of headings, and in the last two what else stands
    beside a cell stands below it.
    """
    yield table, _GAP
    places = [place for place, column in enumerate(table.columns) if not column.optional]
    columns = [table.columns[place] for place in places]
    few = replace(
        table,
        columns=tuple(columns),
        rows=tuple(tuple(row[at] for at in places if at < len(row)) for row in table.rows),
    )
    yield few, _GAP
    heads = ["\n".join(wrap(_kept(each.title), _HEAD, break_long_words=False)) for each in columns]
    short = replace(few, columns=tuple(replace(each, title=head) for each, head in zip(columns, heads, strict=True)))
    yield short, _GAP
    starts = [place for place, column in enumerate(columns) if not column.below]
    groups = [range(*ends) for ends in pairwise([*starts, len(columns)])]
    folded = (replace(short.columns[group[0]], title=",\n".join(heads[at] for at in group)) for group in groups)
    below = replace(table, columns=tuple(folded), rows=tuple(_folded(few.rows, groups)))
    yield below, _GAP
    yield below, " "


def _folded(rows: Iterable[Sequence[Cell]], groups: Sequence[range]) -> Iterator[tuple[Cell, ...]]:
    """Yield rows with the first cells of all groups, and below each what stood beside it."""
    for row in rows:
        cells = [[row[place] for place in group if place < len(row)] for group in groups if group[0] < len(row)]
        texts = [[text for cell in few for text in (cell.text, *[cell.beside] * bool(cell.beside))] for few in cells]
        for number, line in enumerate(zip_longest(*texts, fillvalue="")):
            yield tuple(
                replace(few[0], text=text, beside="", emphasis="remark" if number else few[0].emphasis)
                for few, text in zip(cells, line, strict=True)
            )


def _lines(table: Table, gap: str, room: float) -> list[Text]:
    """Return the lines of a table; prose takes what the other columns leave of the room."""
    rows = (tuple(Cell(each.title, emphasis="verdict") for each in table.columns), *table.rows)
    texts = [[(_LEVEL * cell.level + _beside(cell)).split("\n") for cell in row] for row in rows]
    widths = [
        max((len(line) for row in texts if at < len(row) - (not column.right) for line in row[at]), default=0)
        for at, column in enumerate(table.columns)
    ]
    forms = [f"{'>' if column.right else '<'}{width}" for column, width in zip(table.columns, widths, strict=True)]
    height = max(map(len, texts[0]))
    texts[0] = [[""] * (height - len(lines)) + lines for lines in texts[0]]  # headings end just above the rows
    made = []
    for row, cells in zip(rows, texts, strict=True):
        for parts in zip_longest(*cells, fillvalue=""):
            made.append(Text(_LEVEL * table.level))
            for cell, form, part in zip(row, forms, parts, strict=False):
                made[-1].append(f"{part.replace(_BLANK, ' '):{form}}{gap}", _STYLES[cell.emphasis])
            made[-1].rstrip()
    longest = max(map(len, made))
    if any(column.right for column in table.columns):
        made.insert(height, Text("─" * longest))
    for at, column in enumerate(table.columns):
        if column.prose and longest > room:
            width = max(widths[at] - int(longest - room), _NARROWEST)
            broken = (replace(row[at], text=fill(row[at].text, width)) for row in table.rows)
            kept = ((*row[:at], cell, *row[at + 1 :]) for row, cell in zip(table.rows, broken, strict=True))
            return _lines(replace(table, rows=tuple(kept)), gap, math.inf)
    return made
