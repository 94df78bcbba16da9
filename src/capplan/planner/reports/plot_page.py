"""What plots share: colours and lines, and the self-contained page around a figure."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path

import plotly.graph_objects as go

from capplan.models.replaced_file import replace_file

# Colours distinguishable with any colour vision (Okabe and Ito 2008), then dashes.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = ("solid", "dash", "dashdot", "longdash")


@dataclass(frozen=True)
class Line:
    """How a line looks."""

    colour: str
    dash: str

    @classmethod
    def number(cls, place: int) -> Line:
        """Return the look of the line at a place in the legend."""
        return cls(COLOURS[place % len(COLOURS)], DASHES[place // len(COLOURS) % len(DASHES)])


def faint(colour: str, opacity: float = 0.18) -> str:
    """Return a colour for the shade around a line of that colour."""
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, {opacity:g})"


def write_page(figure: go.Figure, title: str, path: Path) -> None:
    """Write a figure to a self-contained HTML file, atomically.

    Raises
    ------
    InputError
        When the file cannot be written.
    """
    config = {"displaylogo": False, "responsive": True}
    text = figure.to_html(include_plotlyjs=True, full_html=True, config=config)
    head = f'<head><title>{escape(title)}</title><meta name="viewport" content="width=device-width">'
    text = text.replace("<head>", head, 1)
    replace_file(path, text)
