"""Parts of every view: headings, plain tables, lists of facts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

Justify = Literal["left", "right"]


def heading(text: str) -> Text:
    """Return a title."""
    return Text(text, style="bold")


def section(text: str) -> Text:
    """Return the title of a section, with a blank line before it."""
    return Text(f"\n{text}", style="bold cyan")


def table(*columns: tuple[str, Justify]) -> Table:
    """Return a table without vertical lines, of columns with a header each."""
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold", show_edge=False)
    for name, justify in columns:
        made.add_column(name, justify=justify, no_wrap=True)
    return made


def facts(named: Mapping[str, RenderableType]) -> Table:
    """Return names and texts in two columns, indented."""
    made = Table.grid(padding=(0, 2))
    made.add_column(style="cyan", no_wrap=True)
    made.add_column()
    for name, text in named.items():
        made.add_row(f"  {name}", text)
    return made


def bullets(texts: Iterable[str]) -> Table:
    """Return sentences as a list with dashes, indented."""
    made = Table.grid(padding=(0, 1))
    made.add_column(no_wrap=True)
    made.add_column()
    for text in texts:
        made.add_row("  -", text)
    return made
