"""The plot of a comparison: differences in per cent with their intervals, and below what drives one of them."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from pathlib import Path

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from capplan.models.number_words import rate
from capplan.planner.explore.compare import Comparison, Difference
from capplan.planner.reports.plot_file import is_page, write_figure
from capplan.planner.reports.visual_language import (
    COLOURS,
    HEADING_SIZE,
    LIGHT,
    NARROW,
    NEUTRAL,
    SMALL_SIZE,
    TOOLBAR_PIXELS,
    title,
    title_pixels,
)

ROW_PIXELS, GAP_PIXELS, BOTTOM_PIXELS = 28, 96, 56
FEW_DRIVERS = 8
CERTAIN, UNCERTAIN = COLOURS[0], NEUTRAL


def write_plot(found: Comparison, path: Path) -> None:
    """Write the plot of a comparison to a page, an SVG or a PNG, which is there in full or not at all.

    Raises
    ------
    InputError
        When the file cannot be written or the picture cannot be drawn.
    """
    write_figure(plot(found, page=is_page(path)), f"{found.system}: comparison", path)


def plot(found: Comparison, page: bool = True) -> go.Figure:
    """Return the figure."""
    shown = [each for each in found.differences if _is_shown(each)]
    drivers = found.drivers[:FEW_DRIVERS]
    heights = [ROW_PIXELS * max(len(shown), 2), *([ROW_PIXELS * len(drivers)] if drivers else [])]
    inner = sum(heights) + GAP_PIXELS * (len(heights) - 1)
    headings = ["second less first, % of the first", f"what drives the difference of {found.driven}"]
    figure = make_subplots(
        rows=len(heights),
        cols=1,
        row_heights=heights,
        vertical_spacing=GAP_PIXELS / inner,
        subplot_titles=headings[: len(heights)],
    )
    figure.add_trace(_differences(shown), row=1, col=1)
    figure.add_vline(x=0, row=1, col=1, line={"color": NEUTRAL, "width": 1})
    if drivers:
        _add_drivers(figure, found)
    _look(figure, found, inner, page)
    return figure


def _is_shown(each: Difference) -> bool:
    ends = (each.difference.low, each.difference.high, each.first.value)
    return all(math.isfinite(value) for value in ends) and each.first.value > 0


def _differences(shown: Sequence[Difference]) -> go.Scatter:
    values, lows, highs = (
        [100 * getattr(each.difference, end) / each.first.value for each in shown] for end in ("value", "low", "high")
    )
    certain = [min(low, high) > 0 or max(low, high) < 0 for low, high in zip(lows, highs, strict=True)]
    return go.Scatter(
        x=values,
        y=[each.figure for each in shown],
        mode="markers",
        marker={"size": 9, "color": [CERTAIN if each else UNCERTAIN for each in certain]},
        error_x={
            "array": [high - value for high, value in zip(highs, values, strict=True)],
            "arrayminus": [value - low for low, value in zip(lows, values, strict=True)],
            "color": NEUTRAL,
            "thickness": 1.5,
        },
        showlegend=False,
        hovertemplate="%{y}: %{x:+.1f} %<extra></extra>",
    )


def _add_drivers(figure: go.Figure, found: Comparison) -> None:
    """Add a tornado: for each driver a bar from the difference where it is low to that where it is high."""
    drivers = found.drivers[:FEW_DRIVERS]
    middle = next(each.difference.value for each in found.differences if each.figure == found.driven)
    for end, colour in (("low", COLOURS[1]), ("high", COLOURS[0])):
        bar = go.Bar(
            x=[getattr(each, end) - middle for each in drivers],
            base=middle,
            y=[each.parameter for each in drivers],
            orientation="h",
            name=f"where it is {end}",
            marker={"color": colour},
            customdata=[round(100 * each.share, 1) for each in drivers],
            hovertemplate="%{y}: %{x:,.3~g}, %{customdata} % of the variance<extra></extra>",
        )
        figure.add_trace(bar, row=2, col=1)
    unit = next(each.unit for each in found.differences if each.figure == found.driven)
    words = {"1/s": "per second", "ms": "ms", "1": "share"}[unit]
    figure.update_xaxes(title_text=f"difference of {found.driven} [{words}]", row=2, col=1)
    figure.update_layout(barmode="overlay")


def _look(figure: go.Figure, found: Comparison, inner: int, page: bool) -> None:
    first, second = found.layouts
    caption = [
        f"First: {first}",
        f"Second: {second}",
        f"At {rate(found.offered_tps)} per second. Bars: 90 % intervals. Grey: the sign is not certain.",
    ]
    text = [line for each in caption for line in textwrap.wrap(each, NARROW)]
    toolbar = TOOLBAR_PIXELS if page else 0
    top = toolbar + title_pixels(text) + 34
    height = top + inner + BOTTOM_PIXELS
    figure.update_yaxes(autorange="reversed", automargin=True, tickfont={"size": SMALL_SIZE})
    figure.update_annotations(font={"size": HEADING_SIZE}, x=0, xanchor="left")
    figure.update_layout(
        template=LIGHT,
        height=height,
        margin={"l": 20, "r": 16, "t": top, "b": BOTTOM_PIXELS},
        title=title(f"{found.system}: comparison", text, height, toolbar),
        legend={
            "orientation": "h",
            "x": 1,
            "xanchor": "right",
            "y": 0.0,
            "yanchor": "bottom",
            "font": {"size": SMALL_SIZE},
        },
    )
