"""The plot of a backtest: each prediction over what was measured, with its band."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import plotly.graph_objects as go

from capplan.calibration.tables.backtest import Backtest
from capplan.calibration.tables.scores import MODEL, BacktestRow
from capplan.planner.reports.plot_file import is_page, write_figure
from capplan.planner.reports.visual_language import (
    COLOURS,
    LIGHT,
    NEUTRAL,
    SMALL_SIZE,
    TOOLBAR_PIXELS,
    title,
    title_pixels,
)

_LINE_PIXELS, _BOTTOM_PIXELS, _LEGEND_PIXELS = 18, 60, 30
_RATIOS = (0.1, 0.2, 0.5, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0, 5.0, 10.0)


def write_plot(found: Backtest, path: Path) -> None:
    """Write the plot of a backtest to a page, an SVG or a PNG, which is there in full or not at all.

    Raises
    ------
    InputError
        When the file cannot be written or the picture cannot be drawn.
    """
    write_figure(plot(found, page=is_page(path)), f"{found.table}: backtest", path)


def plot(found: Backtest, page: bool = True) -> go.Figure:
    """Return the figure: one line for each figure of an unseen row; those that the rows do not decide are grey."""
    figure = go.Figure()
    drawn = [row for row in found.rows if math.isfinite(row.predicted.high) and row.predicted.low > 0]
    names = [_name(row) for row in drawn]
    quantities = list(dict.fromkeys(row.quantity for row in drawn))
    for place, quantity in enumerate(quantities):
        own = [each for each in zip(names, drawn, strict=True) if each[1].quantity == quantity and each[1].identifiable]
        if own:
            figure.add_trace(_trace(quantity, own, COLOURS[place % 6]))
    if undecided := [each for each in zip(names, drawn, strict=True) if not each[1].identifiable]:
        figure.add_trace(_trace("not decided by the fitted rows", undecided, NEUTRAL))
    figure.add_vline(x=1.0, line={"color": NEUTRAL, "width": 1.5, "dash": "dot"})
    words = [
        f"Fitted: {found.train}. {found.trained_rows} rows, {found.unseen_rows} others predicted.",
        *_scores(found),
    ]
    toolbar = TOOLBAR_PIXELS if page else 0
    top = toolbar + title_pixels(words) + _LEGEND_PIXELS
    height = top + _LINE_PIXELS * max(len(names), 6) + _BOTTOM_PIXELS
    ratio_axes(figure, names, _RATIOS)
    figure.update_layout(
        template=LIGHT,
        showlegend=True,
        height=height,
        margin={"l": 20, "r": 16, "t": top, "b": _BOTTOM_PIXELS},
        title=title(f"{found.table}: backtest of {found.system}", words, height, toolbar),
        legend={"orientation": "h", "x": 0, "xanchor": "left", "yanchor": "bottom", "y": 1},
    )
    return figure


def ratio_axes(figure: go.Figure, names: Sequence[str], ticks: Sequence[float]) -> None:
    """Set the axes of a figure with one line a name, at the ratio of predicted to measured."""
    figure.update_xaxes(
        title_text="predicted over measured", type="log", tickvals=ticks, ticktext=[f"{each:g}" for each in ticks]
    )
    figure.update_yaxes(
        categoryorder="array", categoryarray=names[::-1], automargin=True, tickfont={"size": SMALL_SIZE}, dtick=1
    )


def _name(row: BacktestRow) -> str:
    name = row.request_class or ""
    return " ".join(each for each in (row.run_id, "" if name in row.run_id else name, _short(row.quantity)) if each)


def _short(quantity: str) -> str:
    return quantity.removeprefix("latency_").removesuffix("_ms").removesuffix("_tps")


def _trace(name: str, rows: list[tuple[str, BacktestRow]], colour: str) -> go.Scatter:
    ratios = [row.predicted.value / row.measured for _, row in rows]
    return go.Scatter(
        x=ratios,
        y=[each for each, _ in rows],
        name=_short(name),
        mode="markers",
        marker={"color": colour, "size": 7},
        error_x={
            "type": "data",
            "symmetric": False,
            "array": [row.predicted.high / row.measured - at for at, (_, row) in zip(ratios, rows, strict=True)],
            "arrayminus": [at - row.predicted.low / row.measured for at, (_, row) in zip(ratios, rows, strict=True)],
            "color": colour,
            "thickness": 1.5,
            "width": 3,
        },
        hovertemplate="%{y}: %{x:.3f}<extra></extra>",
    )


def _scores(found: Backtest) -> list[str]:
    own = {name: each[MODEL] for name, each in (found.identifiable_summary or found.summary).items()}
    parts = [
        f"{_short(name)} {100 * score.median_abs_error:.2g} %"
        for name, score in own.items()
        if score.median_abs_error is not None and math.isfinite(score.median_abs_error)
    ]
    return [f"Median error: {', '.join(parts)}."] if parts else []
