"""Documents on a terminal: lines fit its width, lose no value and have no trailing blanks; and Markdown."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from capplan.reports.document import Block, Cell, Fact, Line, Paragraph, Table

LABEL = 13  # columns of the key of a fact
_UNIT = re.compile(
    r"(?<=\d) (?=(?:ms|TPS|DCs?|nodes?|km)\b|%)|(?<=\bRF) (?=\d)"
)  # a figure stays in one line with its unit
_GAP = 2  # blanks between the columns of a table
_WIDEST = 500  # columns of a table that is shown whole


def show(blocks: Iterable[Block], console: Console) -> None:
    """Print a document on `console`; use `capplan.cli.shell.terminal.Screen` for stdout.

    Raises
    ------
    TypeError
        For a block that no answer puts on a screen.
    """
    for block in blocks:
        if isinstance(block, Line) and block.fill:
            console.print(Text(block.text, style=block.style))
        elif isinstance(block, Line):
            _put(console, block.text, block.style)
        elif isinstance(block, Paragraph):
            _paragraph(block, console)
        elif isinstance(block, Fact):
            _fact(block, console)
        elif isinstance(block, Table):
            (_plain if block.look == "plain" else _rich)(block, console)
        else:
            raise TypeError(type(block).__name__)


def _put(console: Console, text: str, style: str = "") -> None:
    """Print one line unchanged, without trailing blanks."""
    console.print(Text(text.rstrip(), style=style), soft_wrap=True)


def _paragraph(paragraph: Paragraph, console: Console) -> None:
    hanging = paragraph.indent if paragraph.hanging is None else paragraph.hanging
    lines = textwrap.wrap(
        _UNIT.sub("\N{NO-BREAK SPACE}", paragraph.text),
        console.width,
        initial_indent=" " * paragraph.indent,
        subsequent_indent=" " * hanging,
        break_on_hyphens=False,
    )
    for line in lines:
        _put(console, line.replace("\N{NO-BREAK SPACE}", " "), paragraph.style)


def _fact(fact: Fact, console: Console) -> None:
    line = f"{fact.key:<{LABEL}}{fact.value}"
    space = console.width - len(line) - len(fact.remark)
    if fact.remark and space >= _GAP:
        _put(console, line + " " * min(space, max(80 - len(line) - len(fact.remark), _GAP)) + fact.remark)
    else:
        _paragraph(Paragraph(f"{line}{f'; {fact.remark}' if fact.remark else ''}", hanging=LABEL), console)


def _plain(table: Table, console: Console) -> None:
    heads = tuple(Cell(column.title, style="bold") for column in table.columns)
    rows = (heads, *table.rows)
    lines = _aligned([[cell.text for cell in row] for row in rows])
    if table.narrow is not None and max(map(len, lines)) > console.width:
        show(table.narrow, console)
        return
    for row, line in zip(rows, lines, strict=True):
        _put(console, line, row[0].style)


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as lines with aligned columns; the last cell of a row does not widen its column."""
    count = max(len(row) for row in rows)
    widths = [max((len(row[place]) for row in rows if len(row) > place + 1), default=0) for place in range(count)]
    return [
        (" " * _GAP)
        .join(
            f"{cell:<{0 if place == len(row) - 1 else width}}"
            for place, (cell, width) in enumerate(zip(row, widths, strict=False))
        )
        .rstrip()
        for row in rows
    ]


def _rich(table: Table, console: Console) -> None:
    made = _grid(table) if table.look == "grid" else ruled(table)
    needed = console.measure(made, options=console.options.update(width=_WIDEST)).maximum if table.whole else 0
    if table.narrow is not None and needed > console.width:
        show(table.narrow, console)
        return
    if not table.whole:
        console.print(made)
        return
    usual, console.width = console.width, max(console.width, needed)
    with console.capture() as printed:
        console.print(made)
    console.width = usual
    for line in Text.from_ansi(printed.get()).split():
        line.rstrip()
        console.print(line, soft_wrap=True)


def ruled(table: Table) -> RichTable:
    """Return a table without vertical lines."""
    made = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold", show_edge=False)
    for column in table.columns:
        made.add_column(column.title, justify="right" if column.right else "left", no_wrap=not column.wrap)
    for row in table.rows:
        if len({cell.style for cell in row}) > 1:
            made.add_row(*map(_text, row))
        else:
            made.add_row(*(cell.text for cell in row), style=row[0].style)
    return made


def _grid(table: Table) -> RichTable:
    made = RichTable.grid(padding=(0, table.gap))
    for column in table.columns:
        made.add_column(width=column.width or None, no_wrap=not column.wrap)
    for row in table.rows:
        made.add_row(*map(_text, row))
    return made


def _text(cell: Cell) -> Text:
    text = Text(cell.text, style=cell.style)
    return Text.assemble(text, (f"  {cell.aside}", "dim")) if cell.aside else text
