"""The plot of a check: the risk of each objective in each situation, and the risk that is accepted."""

from __future__ import annotations

import textwrap
from pathlib import Path

import plotly.graph_objects as go

from capplan.models.number_words import rate, share
from capplan.planner.reports.plot_file import is_page, write_figure
from capplan.planner.reports.visual_language import (
    COLOURS,
    LIGHT,
    LIMIT,
    NARROW,
    NEUTRAL,
    SMALL_SIZE,
    TOOLBAR_PIXELS,
    small,
    title,
    title_pixels,
)
from capplan.planner.situations.check import Checked, CheckedObjective

ROW_PIXELS, BOTTOM_PIXELS = 34, 58
_SHORT = 0.08  # a bar too short for its text


def write_plot(found: Checked, path: Path) -> None:
    """Write the plot of a check to a page, an SVG or a PNG, which is there in full or not at all.

    Raises
    ------
    InputError
        When the file cannot be written or the picture cannot be drawn.
    """
    write_figure(plot(found, page=is_page(path)), f"{found.system}: check", path)


def plot(found: Checked, page: bool = True) -> go.Figure:
    """Return the figure: a bar for each objective in each situation, as long as its risk."""
    figure = go.Figure()
    for answer, colour in zip(("yes", "uncertain", "no"), COLOURS, strict=False):
        chosen = [each for each in found.objectives if each.answer == answer]
        figure.add_trace(
            go.Bar(
                x=[100 * each.risk for each in chosen],
                y=[_label(each) for each in chosen],
                orientation="h",
                name=answer,
                marker={"color": colour},
                text=[each.why or f"{100 * each.risk:.1f} %" for each in chosen],
                textposition=["inside" if each.risk > _SHORT else "outside" for each in chosen],
                hovertemplate="%{y}: %{text}<extra></extra>",
            )
        )
    accepted = 100 * (1 - found.verdict.confidence)
    figure.add_vline(x=accepted, line={"color": LIMIT, "width": 2, "dash": "dash"})
    caption = (
        found.layout,
        f"At {rate(found.offered_tps)} per second. Bars: risk that a repeat of the load test misses the objective. "
        f"Dashed line: the accepted risk, {share(1 - found.verdict.confidence)}.",
    )
    text = [line for each in caption for line in textwrap.wrap(each, NARROW)]
    toolbar = TOOLBAR_PIXELS if page else 0
    top = toolbar + title_pixels(text) + 24
    height = top + ROW_PIXELS * max(len(found.objectives), 3) + BOTTOM_PIXELS
    figure.update_xaxes(title_text="risk [%]", range=[0, 100])
    figure.update_yaxes(
        categoryorder="array",
        categoryarray=[_label(each) for each in found.objectives],
        autorange="reversed",
        automargin=True,
        tickfont={"size": SMALL_SIZE},
    )
    figure.update_layout(
        template=LIGHT,
        height=height,
        bargap=0.25,
        barmode="overlay",
        margin={"l": 20, "r": 16, "t": top, "b": BOTTOM_PIXELS},
        title=title(f"{found.system}: check", text, height, toolbar),
        legend={
            "orientation": "h",
            "x": 0,
            "xanchor": "left",
            "y": 1,
            "yanchor": "bottom",
            "font": {"size": SMALL_SIZE, "color": NEUTRAL},
        },
    )
    return figure


def _label(each: CheckedObjective) -> str:
    return f"{each.objective}<br>{small(each.conditions + (' (guessed)' if each.guessed else ''))}"
