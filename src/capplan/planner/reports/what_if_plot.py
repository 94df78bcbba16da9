"""The plot of a what-if: one latency against the rate, with its band."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd
import plotly.graph_objects as go

from capplan.models.number_words import rate
from capplan.models.results import Band
from capplan.planner.reports.visual_language import (
    ASKED,
    COLOURS,
    LIGHT,
    LIMIT,
    NEUTRAL,
    RATE_AXIS,
    SMALL_SIZE,
    asked_line,
    band,
    capacity_lines,
    drawn,
    latency_axis,
    legend_entry,
    objective_line,
)

HEIGHT = 420


def plot(name: str, curve: pd.DataFrame, capacity: Band, offered_tps: float, limits: Sequence[float]) -> go.Figure:
    """Return the curve with its band, the capacity, the offered rate and the objectives.

    Parameters
    ----------
    name : str
        The latency.
    curve : DataFrame
        The latency against the rate, as in `WhatIf.curve`.
    capacity : Band
        Requests per second.
    offered_tps : float
        Offered peak rate, requests per second.
    limits : sequence of float
        Limits of the objectives, ms.
    """
    rates, colour = curve["rate_tps"].tolist(), COLOURS[0]
    figure = go.Figure()
    ends = [curve["low_ms"].tolist(), curve["high_ms"].tolist()]
    figure.add_traces(list(band(rates, ends, colour, middle=curve["value_ms"].tolist())))
    figure.add_trace(
        go.Scatter(
            x=rates,
            y=drawn(curve["value_ms"]),
            name=f"{name}, 90 % band",
            mode="lines",
            line={"color": colour, "shape": "spline"},
            hovertemplate="%{x:,.0f} per second: %{y:.3g} ms<extra></extra>",
        )
    )
    figure.add_trace(legend_entry("capacity", mode="lines", line={"color": NEUTRAL, "dash": "dot"}))
    figure.add_trace(legend_entry(f"asked: {rate(offered_tps)}", mode="lines", line={"color": ASKED}))
    shapes = [*capacity_lines(capacity.value, capacity.low, capacity.high), asked_line(offered_tps)]
    shapes += [objective_line(limit) for limit in limits]
    if limits:
        figure.add_trace(legend_entry("objective", mode="lines", line={"color": LIMIT, "dash": "dash"}))
    highest = max([*(each for each in ends[1] if math.isfinite(each)), *limits], default=1.0)
    lowest = min((each for each in ends[0] if each > 0), default=0.1)
    figure.update_xaxes(title_text="peak rate [per second]", **RATE_AXIS)
    figure.update_yaxes(**latency_axis(f"{name} [ms]"), range=[math.log10(lowest / 1.5), math.log10(highest * 1.5)])
    figure.update_layout(
        template=LIGHT,
        height=HEIGHT,
        shapes=shapes,
        margin={"l": 60, "r": 16, "t": 40, "b": 56},
        legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "font": {"size": SMALL_SIZE}},
    )
    return figure
