"""The plot of a prediction of ratios: the throughput relative to each documented reference, with its band."""

from __future__ import annotations

import textwrap
from pathlib import Path

import plotly.graph_objects as go

from capplan.planner.predict.prediction import Prediction
from capplan.planner.reports.plot_file import is_page, write_figure
from capplan.planner.reports.visual_language import (
    COLOURS,
    LIGHT,
    NARROW,
    NEUTRAL,
    SMALL_SIZE,
    TOOLBAR_PIXELS,
    title,
    title_pixels,
)

ROW_PIXELS, BOTTOM_PIXELS = 56, 62
BESIDE = 1.05  # times the farthest end of a band, where the x axis ends


def write_ratio_plot(prediction: Prediction, path: Path) -> None:
    """Write the plot of ratios to a page, an SVG or a PNG, which is there in full or not at all.

    Raises
    ------
    InputError
        When the file cannot be written or the picture cannot be drawn.
    """
    write_figure(ratio_plot(prediction, page=is_page(path)), f"{prediction.system}: prediction", path)


def ratio_plot(prediction: Prediction, page: bool = True) -> go.Figure:
    """Return the figure: a row for each reference, the one that was asked about first."""
    ratios = prediction.throughput_ratios
    rows = [-place for place in range(len(ratios))]
    bands = list(ratios.values())
    figure = go.Figure(
        go.Scatter(
            x=[each.value for each in bands],
            y=rows,
            error_x={
                **{"type": "data", "symmetric": False, "color": COLOURS[0], "thickness": 1.5, "width": 4},
                "array": [each.high - each.value for each in bands],
                "arrayminus": [each.value - each.low for each in bands],
            },
            **{"mode": "markers", "marker": {"color": COLOURS[0], "size": 9}, "showlegend": False},
            customdata=[[each.low, each.high, each.basis or ""] for each in bands],
            hovertemplate="%{x:.3~g} (%{customdata[0]:.3~g} to %{customdata[1]:.3~g}), %{customdata[2]}<extra></extra>",
        )
    )
    for place, (name, band) in zip(rows, ratios.items(), strict=True):
        at = {"x": 0, "xref": "x domain", "y": place, "xanchor": "left", "yanchor": "bottom", "yshift": 6}
        figure.add_annotation(text=f"{name} ({band.basis})", showarrow=False, font={"size": SMALL_SIZE}, **at)
    line = {"color": NEUTRAL, "width": 1.5, "dash": "dot"}
    figure.add_shape({"type": "line", "x0": 1, "x1": 1, "yref": "y domain", "y0": 0, "y1": 1, "line": line})
    below = textwrap.wrap(
        f"{prediction.layout}. Dots: medians; bars: 90 % bands; dotted: as fast as the reference.", NARROW
    )
    toolbar = TOOLBAR_PIXELS if page else 0
    top = toolbar + title_pixels(below)
    height = top + ROW_PIXELS * len(rows) + BOTTOM_PIXELS
    end = BESIDE * max((each.high for each in bands), default=1.0)
    figure.update_xaxes(title_text="throughput relative to the reference", range=[0, max(end, BESIDE)])
    figure.update_yaxes(tickvals=rows, showticklabels=False, range=[0.4 - len(rows), 0.8])
    figure.update_layout(
        template=LIGHT,
        height=height,
        margin={"l": 16, "r": 16, "t": top, "b": BOTTOM_PIXELS},
        title=title(f"{prediction.system}: ratios of throughput", below, height, toolbar),
    )
    return figure
