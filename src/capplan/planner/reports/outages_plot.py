"""The plot of outages: rates and latencies over the time around each loss, and what recovers from which trigger."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from capplan.planner.outages.answer import Metastability, OutagesAnswer, SeriesBand, Transient
from capplan.planner.reports.plot_file import is_page, write_figure
from capplan.planner.reports.visual_language import (
    COLOURS,
    HEADING_SIZE,
    LIGHT,
    NARROW,
    NEUTRAL,
    SMALL_SIZE,
    TOOLBAR_PIXELS,
    band,
    drawn,
    faint,
    latency_axis,
    title,
    title_pixels,
)

RATES = {"completed_per_s": ("completed", 0), "retries_per_s": ("retries", 4), "unanswered_per_s": ("unanswered", 1)}
LATENCIES = {"p99_ms": ("p99", 0), "p50_ms": ("p50", 2)}
PANEL_PIXELS, GAP_PIXELS, BOTTOM_PIXELS = 240, 96, 60
_SCALE = [[0.0, COLOURS[1]], [0.5, "#F0E442"], [1.0, COLOURS[0]]]


def write_plot(answer: OutagesAnswer, path: Path) -> None:
    """Write the plot to a page, an SVG or a PNG, which is there in full or not at all.

    Raises
    ------
    InputError
        When the file cannot be written or the picture cannot be drawn.
    """
    write_figure(plot(answer, page=is_page(path)), f"{answer.system}: outages", path)


def plot(answer: OutagesAnswer, page: bool = True) -> go.Figure:
    """Return the figure: for each simulated loss rates and latencies over time, and a table of recoveries."""
    headings = [f"{each.name} lost: {what}" for each in answer.transients for what in ("requests", "latency")]
    found = answer.metastability if answer.metastability is not None and answer.metastability.verdicts else None
    if found is not None:
        headings.append(f"Recoveries of simulations; trigger: {found.trigger}")
    rows = len(headings)
    inner = PANEL_PIXELS * rows + GAP_PIXELS * (rows - 1)
    figure = make_subplots(rows=rows, cols=1, subplot_titles=headings, vertical_spacing=GAP_PIXELS / inner)
    for place, each in enumerate(answer.transients):
        _transient(figure, each, 2 * place + 1)
    if found is not None:
        _recoveries(figure, found, rows)
    _look(figure, answer, inner, page)
    return figure


def _transient(figure: go.Figure, each: Transient, row: int) -> None:
    for name, (words, colour) in RATES.items():
        for trace in _band(each, each.series[name], words, COLOURS[colour]):
            figure.add_trace(trace.update(legend=_legend(row)), row=row, col=1)
    for name, (words, colour) in LATENCIES.items():
        for trace in _band(each, each.series[name], words, COLOURS[colour]):
            figure.add_trace(trace.update(legend=_legend(row + 1)), row=row + 1, col=1)
    figure.update_yaxes(title_text="per second", rangemode="tozero", row=row, col=1)
    figure.update_yaxes(**latency_axis("milliseconds"), row=row + 1, col=1)
    for panel in (row, row + 1):
        figure.update_xaxes(title_text="time [s]", range=[0, each.duration_s], row=panel, col=1)
        for trace in _shade(each):
            figure.add_shape(**trace, row=panel, col=1)
        for time, words in ((each.lost_s, "lost"), (each.returned_s, "back")):
            figure.add_vline(x=time, row=panel, col=1, line={"color": NEUTRAL, "width": 1.5, "dash": "dash"})
            if panel == row:
                _word(figure, panel, time, words)


def _word(figure: go.Figure, row: int, time: float, words: str) -> None:
    axis = "" if row == 1 else str(row)
    at = {"x": time, "y": 1, "xref": f"x{axis}", "yref": f"y{axis} domain", "xanchor": "left", "yanchor": "top"}
    figure.add_annotation(text=words, showarrow=False, font={"size": SMALL_SIZE}, **at)


def _shade(each: Transient) -> Iterator[dict[str, Any]]:
    """Yield the time for which the loss is not noticed, shaded."""
    noticed = min(each.lost_s + each.detection_s, each.returned_s)
    yield {
        **{"type": "rect", "x0": each.lost_s, "x1": noticed, "yref": "y domain", "y0": 0, "y1": 1, "layer": "below"},
        **{"line": {"width": 0}, "fillcolor": faint(NEUTRAL, 0.2)},
    }


def _band(each: Transient, series: SeriesBand, words: str, colour: str) -> Iterator[go.Scatter]:
    middles = [(start + end) / 2 for start, end in zip(each.boundaries_s, each.boundaries_s[1:], strict=False)]
    yield from band(middles, (drawn(series.low), drawn(series.high)), colour)
    yield go.Scatter(
        x=middles,
        y=drawn(series.median),
        name=words,
        mode="lines",
        line={"color": colour, "width": 2},
        hovertemplate=f"{words}: %{{y:,.3~g}}<extra></extra>",
    )


def _recoveries(figure: go.Figure, found: Metastability, row: int) -> None:
    numbers = list(dict.fromkeys(each.attempts for each in found.verdicts))
    lengths = list(dict.fromkeys(each.trigger_s for each in found.verdicts))
    cells = {(each.trigger_s, each.attempts): each for each in found.verdicts}
    shares = [
        [cells[length, number].recovered / cells[length, number].replications for number in numbers]
        for length in lengths
    ]
    words = [
        [f"{cells[length, number].recovered}/{cells[length, number].replications}" for number in numbers]
        for length in lengths
    ]
    figure.add_trace(
        go.Heatmap(
            x=[str(number) for number in numbers],
            y=[f"{length:g} s" for length in lengths],
            z=shares,
            text=words,
            texttemplate="%{text}",
            **{"zmin": 0, "zmax": 1, "colorscale": _SCALE, "showscale": False, "xgap": 3, "ygap": 3},
            hovertemplate="%{y}, %{x} attempts: %{text}<extra></extra>",
        ),
        row=row,
        col=1,
    )
    figure.update_xaxes(title_text="attempts of each request", type="category", row=row, col=1)
    figure.update_yaxes(title_text="trigger lasts", type="category", row=row, col=1)


def _legend(row: int) -> str:
    return "legend" if row == 1 else f"legend{row}"


def _look(figure: go.Figure, answer: OutagesAnswer, inner: int, page: bool) -> None:
    below = [line for text in _captions(answer) for line in textwrap.wrap(text, NARROW)]
    toolbar = TOOLBAR_PIXELS if page else 0
    top = toolbar + title_pixels(below) + 40
    height = top + inner + BOTTOM_PIXELS
    figure.update_annotations(selector={"xref": "paper"}, font={"size": HEADING_SIZE}, x=0, xanchor="left", yshift=22)
    figure.update_layout(
        template=LIGHT,
        height=height,
        margin={"l": 70, "r": 16, "t": top, "b": BOTTOM_PIXELS},
        title=title(f"{answer.system}: outages", below, height, toolbar),
        showlegend=True,
    )
    for row in range(1, 2 * len(answer.transients) + 1):
        y = 1 - (row - 1) * (PANEL_PIXELS + GAP_PIXELS) / inner
        place = {
            "orientation": "h",
            "x": 1,
            "xanchor": "right",
            "y": y,
            "yanchor": "bottom",
            "font": {"size": SMALL_SIZE},
        }
        figure.update_layout({_legend(row): place})


def _captions(answer: OutagesAnswer) -> Iterator[str]:
    if answer.transients:
        first = answer.transients[0]
        yield (
            f"Median of {first.replications} simulations, and the range of nine in ten. Latencies are those of the "
            f"requests that started then. Grey: nobody has noticed the loss yet."
        )
