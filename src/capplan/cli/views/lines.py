"""Lines of a screen: facts, paragraphs and tables that fit its width, lose no value and end without blanks."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Sequence

from rich.console import Console
from rich.text import Text

LABEL = 13  # columns of the label of a fact
_UNIT = re.compile(
    r"(?<=\d) (?=(?:ms|TPS|DCs?|nodes?|km)\b|%)|(?<=\bRF) (?=\d)"
)  # a figure stays in one line with its unit
_GAP = 2  # blanks between the columns of a table


def put(console: Console, text: str = "", style: str = "") -> None:
    """Print one line as it is, without blanks at its end."""
    console.print(Text(text.rstrip(), style=style), soft_wrap=True)


def paragraph(console: Console, text: str, indent: int = 0, hanging: int | None = None, style: str = "") -> None:
    """Print a text in lines that fit the width; lines after the first are indented by `hanging`."""
    start, rest = " " * indent, " " * (indent if hanging is None else hanging)
    tied = _UNIT.sub("\N{NO-BREAK SPACE}", text)
    for line in textwrap.wrap(
        tied, console.width, initial_indent=start, subsequent_indent=rest, break_on_hyphens=False
    ):
        put(console, line.replace("\N{NO-BREAK SPACE}", " "), style)


def fact(console: Console, label: str, text: str, right: str = "") -> None:
    """Print a label and a text, with a remark at the right edge, or after the text where it does not fit."""
    line = f"{label:<{LABEL}}{text}"
    space = console.width - len(line) - len(right)
    if right and space >= _GAP:
        put(console, line + " " * min(space, max(80 - len(line) - len(right), _GAP)) + right)
        return
    paragraph(console, f"{line}{f'; {right}' if right else ''}", hanging=LABEL)


def table(
    console: Console,
    title: Sequence[str],
    rows: Iterable[Sequence[str]],
    stacked: Callable[[Console], None] | None = None,
) -> bool:
    """Print a table if it fits the width, or else what `stacked` prints; return whether it fitted.

    Parameters
    ----------
    console : Console
        The screen.
    title : sequence of str
        The headings.
    rows : iterable of sequences of str
        The cells; a row may be shorter than the title.
    stacked : function, optional
        Prints the same where the table is too wide.
    """
    lines = columns([title, *rows])
    if max(map(len, lines)) > console.width:
        if stacked is not None:
            stacked(console)
        return False
    for number, line in enumerate(lines):
        put(console, line, "bold" if not number else "")
    return True


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as lines with aligned columns; a row's last cell does not widen its column."""
    count = max(len(row) for row in rows)
    widths = [max((len(row[place]) for row in rows if len(row) > place + 1), default=0) for place in range(count)]
    gap = " " * _GAP
    return [
        gap.join(
            f"{cell:<{0 if place == len(row) - 1 else width}}"
            for place, (cell, width) in enumerate(zip(row, widths, strict=False))
        ).rstrip()
        for row in rows
    ]
