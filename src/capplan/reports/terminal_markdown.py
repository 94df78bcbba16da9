"""Markdown on the terminal. A module of its own, for rich's Markdown is slow to import."""

from __future__ import annotations

from typing import ClassVar

from rich import markdown
from rich.console import Console, ConsoleOptions, RenderResult

from capplan.reports.document import Column, Table
from capplan.reports.screen import ruled


class _MarkdownTable(markdown.TableElement):
    """A table whose first and last columns wrap on a narrow terminal, only between words."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the table."""
        heads = self.header.row.cells if self.header and self.header.row else []
        rows = [[cell.content for cell in row.cells] for row in self.body.rows] if self.body else []
        wraps = {place % len(heads): any(" " in row[place].plain for row in rows) for place in (0, -1)}
        columns = (
            Column(head.content.plain, right=head.justify == "right", wrap=wraps.get(place, False))
            for place, head in enumerate(heads)
        )
        made = ruled(Table(tuple(columns), ()))
        for row in rows:
            made.add_row(*row)
        yield made


class TerminalMarkdown(markdown.Markdown):
    """Markdown for rich, with tables that look like those of the other answers."""

    elements: ClassVar[dict[str, type[markdown.MarkdownElement]]] = {
        **markdown.Markdown.elements,
        "table_open": _MarkdownTable,
    }
