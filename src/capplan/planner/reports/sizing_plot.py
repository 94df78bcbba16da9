"""The plot of a sizing: what each layout holds in each situation, and the rate that it must."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go

from capplan.calibration.system import System
from capplan.models.number_words import rate, share
from capplan.planner.reports.plot_file import is_page, write_figure
from capplan.planner.reports.visual_language import (
    ASKED,
    COLOURS,
    LIGHT,
    NARROW,
    RATE_AXIS,
    SMALL_SIZE,
    TOOLBAR_PIXELS,
    small,
    title,
    title_pixels,
)
from capplan.planner.size.in_words import in_words

if TYPE_CHECKING:
    from capplan.planner.size.sizing import SizedLayout, Sizing

ROW_PIXELS, BOTTOM_PIXELS, ENTRY_PIXELS = 64, 58, 22
LABEL = 26  # characters of a line
SYMBOLS = ("circle", "diamond", "square", "triangle-up", "cross", "x", "star")
UNSAFE = 0.4  # opacity


def write_plot(sizing: Sizing, its: System[Any], path: Path) -> None:
    """Write the plot of a sizing to a page, an SVG or a PNG, which is there in full or not at all.

    Raises
    ------
    InputError
        When the file cannot be written or the picture cannot be drawn.
    """
    write_figure(plot(sizing, its, page=is_page(path)), f"{sizing.system}: sizing", path)


def plot(sizing: Sizing, its: System[Any], page: bool = True) -> go.Figure:
    """Return the figure: a row for each layout, the cheapest on top, and a mark for each situation."""
    layouts = sorted(_layouts(sizing), key=lambda each: each.cost)
    figure = go.Figure()
    labels = [_label(each, sizing, its) for each in layouts]
    for place, word in enumerate(sizing.conditions):
        found = [
            (label, each, (safety.held_tps, safety.risk))
            for label, each in zip(labels, layouts, strict=True)
            for safety in each.safety
            if safety.conditions == word
        ]
        figure.add_trace(
            go.Scatter(
                x=[sustained for _, _, (sustained, _) in found],
                y=[label for label, _, _ in found],
                name=word,
                mode="markers",
                marker={
                    "color": COLOURS[place % len(COLOURS)],
                    "symbol": SYMBOLS[place % len(SYMBOLS)],
                    "size": 11,
                    "opacity": [1.0 if each.safe else UNSAFE for _, each, _ in found],
                },
                customdata=[share(risk) for _, _, (_, risk) in found],
                hovertemplate=f"{word}: %{{x:,.0f}} per second, risk %{{customdata}}<extra></extra>",
            )
        )
    figure.add_vline(x=sizing.planned_tps, line={"color": ASKED, "width": 2}, layer="below")
    _look(figure, sizing, len(layouts), page)
    return figure


def _layouts(sizing: Sizing) -> Sequence[SizedLayout]:
    chosen = [] if sizing.chosen is None else [sizing.chosen]
    return [*chosen, *sizing.alternatives, *sizing.near_misses]


def _label(layout: SizedLayout, sizing: Sizing, its: System[Any]) -> str:
    mark = "buy " if layout is sizing.chosen else ""
    words = textwrap.wrap(f"{mark}{in_words(layout, its)}", LABEL)
    return f"{'<br>'.join(words)}<br>{small(f'{layout.cost:,.0f} {sizing.currency}')}"


def _look(figure: go.Figure, sizing: Sizing, rows: int, page: bool) -> None:
    caption = (
        f"Marks: the peak rate held with {share(sizing.confidence)} confidence. Line: "
        f"{rate(sizing.planned_tps)} per second, which it must carry. Faint: not safe."
    )
    text = [line for each in (caption, ", ".join(sizing.objectives)) for line in textwrap.wrap(each, NARROW)]
    toolbar = TOOLBAR_PIXELS if page else 0
    top = toolbar + title_pixels(text) + ENTRY_PIXELS * (1 + len(sizing.conditions) // 3)
    height = top + ROW_PIXELS * max(rows, 2) + BOTTOM_PIXELS
    figure.update_xaxes(title_text="held peak rate [per second]", **RATE_AXIS)
    figure.update_yaxes(autorange="reversed", automargin=True, tickfont={"size": SMALL_SIZE})
    figure.update_layout(
        template=LIGHT,
        height=height,
        margin={"l": 20, "r": 16, "t": top, "b": BOTTOM_PIXELS},
        title=title(f"{sizing.system}: sizing", text, height, toolbar),
        showlegend=True,
        legend={
            **{
                "orientation": "h",
                "x": 0,
                "xanchor": "left",
                "yanchor": "bottom",
                "y": 1,
                "font": {"size": SMALL_SIZE},
            },
        },
    )
