"""Markdown on the terminal. A module of its own, for rich's Markdown is slow to import."""

from __future__ import annotations

from typing import ClassVar

from rich import box, markdown
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table


class _MarkdownTable(markdown.TableElement):
    """A table whose first and last columns wrap on a narrow terminal, only between words."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the table."""
        heads = self.header.row.cells if self.header and self.header.row else []
        rows = [[cell.content for cell in row.cells] for row in self.body.rows] if self.body else []
        wraps = {place % len(heads): any(" " in row[place].plain for row in rows) for place in (0, -1)}
        made = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold", show_edge=False)
        for place, head in enumerate(heads):
            made.add_column(head.content.plain, justify=head.justify, no_wrap=not wraps.get(place, False))
        for row in rows:
            made.add_row(*row)
        yield made


class TerminalMarkdown(markdown.Markdown):
    """Markdown for rich, with tables that look like those of the other answers."""

    elements: ClassVar[dict[str, type[markdown.MarkdownElement]]] = {
        **markdown.Markdown.elements,
        "table_open": _MarkdownTable,
    }
