"""Markdown on the terminal, with tables that look like those of the other views."""

from __future__ import annotations

from typing import ClassVar

from rich import markdown
from rich.console import Console, ConsoleOptions, RenderResult

from capplan.cli.views.tables import table


class TerminalTable(markdown.TableElement):
    """A table whose first and last columns wrap where the terminal is narrow, between words only."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the table."""
        heads = self.header.row.cells if self.header and self.header.row else []
        rows = [[cell.content for cell in row.cells] for row in self.body.rows] if self.body else []
        made = table(*((head.content.plain, "right" if head.justify == "right" else "left") for head in heads))
        for place in (0, -1):
            made.columns[place].no_wrap = not any(" " in row[place].plain for row in rows)
        for row in rows:
            made.add_row(*row)
        yield made


class TerminalMarkdown(markdown.Markdown):
    """Markdown that rich prints."""

    elements: ClassVar[dict[str, type[markdown.MarkdownElement]]] = {
        **markdown.Markdown.elements,
        "table_open": TerminalTable,
    }
