"""How every picture looks: colours, lines, bands and axes, light and dark."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

# Colours distinguishable with any colour vision (Okabe and Ito 2008), readable on light and dark, then dashes.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F")
DASHES = ("solid", "dash", "dashdot", "longdash")
NEUTRAL = "#7F7F7F"  # of what is no data: capacities, guides
ASKED, LIMIT = "#009E73", "#CC79A7"  # the asked rate and objectives
INK, PAPER, GRID, BOX = "#222222", "#FFFFFF", "#E5E5E5", "#F7F8FA"  # on paper
BAND_OPACITY, CAPACITY_OPACITY = 0.18, 0.14
TICKS_MS = [digit * 10.0**power for power in range(-3, 6) for digit in (1, 2, 5)]
RATE_AXIS = {"rangemode": "tozero", "tickformat": "~s"}
TITLE_SIZE, TEXT_SIZE, SMALL_SIZE, HEADING_SIZE = 17, 13, 12, 15
LINE_PIXELS = 22  # of the small text below a title
NARROW = 58  # characters of it that fit into the width of a telephone
_ABOVE = 10.0  # times the highest end of a band, where one without an end leaves the picture
TOOLBAR_PIXELS = 30  # above the title of a page's figure


@dataclass(frozen=True)
class Line:
    """How a line looks."""

    colour: str
    dash: str

    @classmethod
    def number(cls, place: int) -> Line:
        """Return the look of the line at a place in the legend."""
        return cls(COLOURS[place % len(COLOURS)], DASHES[place // len(COLOURS) % len(DASHES)])


def faint(colour: str, opacity: float = BAND_OPACITY) -> str:
    """Return a colour for the shade around a line of that colour."""
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, {opacity:g})"


def _template(ink: str, paper: str, grid: str, button: str) -> go.layout.Template:
    axis = {"showgrid": True, "gridcolor": grid, "zeroline": False, "linecolor": NEUTRAL, "showline": True}
    axis["title"] = {"font": {"size": TEXT_SIZE}}
    return go.layout.Template(
        layout={
            "font": {"size": TEXT_SIZE, "color": ink, "family": "sans-serif"},
            "paper_bgcolor": paper,
            "plot_bgcolor": paper,
            "xaxis": axis,
            "yaxis": axis,
            "hovermode": "closest",
            "legend": {"bgcolor": faint(paper, 0.0)},
            "updatemenudefaults": {"bgcolor": button, "bordercolor": NEUTRAL},
            "modebar": {"bgcolor": faint(paper, 0.0), "color": NEUTRAL, "activecolor": ink},
        }
    )


LIGHT = _template(INK, PAPER, GRID, PAPER)
DARK = _template("#DDDDDD", "#16181C", "#34373D", "#16181C")
"""The look on paper and on a dark screen; a page changes between them, so no figure sets these colours itself."""


def small(text: str) -> str:
    """Return a text in small type, for titles and ticks."""
    return f"<span style='font-size: {SMALL_SIZE}px'>{text}</span>"


def title(text: str, below: Sequence[str], height: int, toolbar: int = 0) -> dict[str, Any]:
    """Return the title of a figure, with lines of small text below it; `toolbar` pixels above it stay free."""
    return {
        "text": text + "".join(f"<br>{small(line)}" for line in below),
        **{"x": 0.01, "xanchor": "left", "yref": "container", "yanchor": "top", "font": {"size": TITLE_SIZE}},
        "y": 1 - (toolbar + 18) / height,
    }


def title_pixels(below: Sequence[str]) -> int:
    """Return how high a title is."""
    return 46 + LINE_PIXELS * len(below)


def latency_axis(text: str) -> dict[str, Any]:
    """Return a logarithmic axis of latencies in milliseconds."""
    ticks = [f"{tick:,.10g}" for tick in TICKS_MS]
    return {"title_text": text, "type": "log", "tickvals": TICKS_MS, "ticktext": ticks}


def band(
    x: Sequence[Any],
    ends: Sequence[Sequence[Any]],
    colour: str,
    opacity: float = BAND_OPACITY,
    middle: Sequence[Any] = (),
    **more: Any,
) -> Iterator[go.Scatter]:
    """Yield the low and the high end of a band; the space between them is shaded, to the top where it has no end."""
    low, high = ends
    for edge, fill in zip(ends_drawn(low, high, middle), (None, "tonexty"), strict=True):
        yield go.Scatter(
            x=x,
            y=edge,
            **{"mode": "lines", "line": {"width": 0}, "fill": fill, "fillcolor": faint(colour, opacity)},
            **{"showlegend": False, "hoverinfo": "skip", "connectgaps": False, **more},
        )


def ends_drawn(low: Sequence[Any], high: Sequence[Any], middle: Sequence[Any] = ()) -> tuple[list[Any], list[Any]]:
    """Return the ends of a band with numbers that can be drawn; nothing where even the low end is not bounded."""
    finite = [each for each in (*low, *high, *middle) if each is not None and math.isfinite(each)]
    top = _ABOVE * max(finite, default=1.0)
    pairs = [
        (None, None) if start is None or end is None or not math.isfinite(start) else (start, min(end, top))
        for start, end in zip(low, high, strict=True)
    ]
    return [start for start, _ in pairs], [end for _, end in pairs]


def drawn(values: Iterable[Any]) -> list[Any]:
    """Return values of a line, with a gap where one has no bound."""
    return [None if value is None or not math.isfinite(value) else value for value in values]


def capacity_lines(value: float, low: float, high: float, colour: str = NEUTRAL) -> Iterator[dict[str, Any]]:
    """Yield the shapes of a capacity across a panel: its median dotted, its band shaded."""
    across = {"yref": "y domain", "y0": 0, "y1": 1, "layer": "below"}
    yield {
        "type": "rect",
        "x0": low,
        "x1": high,
        **across,
        "line": {"width": 0},
        "fillcolor": faint(colour, CAPACITY_OPACITY),
    }
    yield {"type": "line", "x0": value, "x1": value, **across, "line": {"color": colour, "width": 1.5, "dash": "dot"}}


def asked_line(rate: float) -> dict[str, Any]:
    """Return the shape of the asked rate across a panel."""
    across = {"yref": "y domain", "y0": 0, "y1": 1, "layer": "below"}
    return {"type": "line", "x0": rate, "x1": rate, **across, "line": {"color": ASKED, "width": 2}}


def objective_line(limit: float) -> dict[str, Any]:
    """Return the shape of an objective's limit across a panel."""
    across = {"xref": "x domain", "x0": 0, "x1": 1, "layer": "above"}
    return {"type": "line", "y0": limit, "y1": limit, **across, "line": {"color": LIMIT, "width": 2, "dash": "dash"}}


def legend_entry(name: str, **look: Any) -> go.Scatter:
    """Return a trace without points that names a shape in the legend."""
    return go.Scatter(x=[None], y=[None], name=name, hoverinfo="skip", **look)
