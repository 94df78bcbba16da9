"""Documents as Markdown, for pages that are read as files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from capplan.reports.document import Block, Break, Bullets, Cell, Code, Fact, Heading, Paragraph, Table


def markdown(blocks: Iterable[Block]) -> str:
    """Return a document as Markdown.

    Raises
    ------
    TypeError
        For a block that no page of Markdown has.
    """
    return "\n\n".join(text for each in blocks if (text := _block(each))) + "\n"


def _block(block: Block) -> str:
    match block:
        case Heading(text, level):
            return f"{'#' * level} {text}"
        case Break():
            return ""
        case Paragraph(text, emphasis):
            return f"**{text}**" if emphasis == "verdict" else text
        case Fact(key, value, remark):
            return f"{key}: {value}{'; ' * bool(remark)}{remark}"
        case Bullets(items):
            return "\n".join(f"- {item}" for item in items)
        case Code(text, about):
            return f"{about}: `{text}`" if about else f"`{text}`"
        case Table(columns, rows):
            heads = [Cell(column.title) for column in columns]
            rule = [Cell("--:" if column.right else ":--") for column in columns]
            return "\n".join(map(_row, (heads, rule, *rows)))
    raise TypeError(type(block).__name__)


def _row(cells: Sequence[Cell]) -> str:
    return f"| {' | '.join(cell.text for cell in cells)} |"
