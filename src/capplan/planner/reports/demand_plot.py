"""The plot of a demand: rates by class after an outage, and below it rate and data over the planned time."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from capplan.models.number_words import rate, significant
from capplan.models.results import Band
from capplan.planner.demand.forecast import Forecast, Layout
from capplan.planner.reports.plot_file import is_page, write_figure
from capplan.planner.reports.visual_language import (
    COLOURS,
    LIGHT,
    LIMIT,
    NARROW,
    NEUTRAL,
    RATE_AXIS,
    SMALL_SIZE,
    TOOLBAR_PIXELS,
    band,
    title,
    title_pixels,
)

PANEL_PIXELS, GAP_PIXELS, BOTTOM_PIXELS, ENTRY_PIXELS = 260, 80, 58, 24
AUTH, ACCT, TLS, DATA = COLOURS[0], COLOURS[1], COLOURS[4], COLOURS[2]
_SEEN = 0.01  # of the peak rate: lower rates of handshakes cannot be told from 0
_MONTHS = 12


def write_plot(found: Forecast, name: str, path: Path) -> None:
    """Write the plot of a forecast to a page, an SVG or a PNG, which is there in full or not at all.

    Raises
    ------
    InputError
        When the file cannot be written or the picture cannot be drawn.
    """
    write_figure(plot(found, name, page=is_page(path)), f"{name}: demand", path)


def plot(found: Forecast, name: str, page: bool = True) -> go.Figure:
    """Return the figure: a panel for the time after an outage, one for the rate and one for the data over months."""
    panels = ["after an outage"]
    panels += ["busy hour"] if found.years else []
    panels += ["data"] if found.years and found.months[0].data_gib is not None else []
    height = PANEL_PIXELS * len(panels) + GAP_PIXELS * (len(panels) - 1)
    figure = make_subplots(rows=len(panels), cols=1, vertical_spacing=GAP_PIXELS / height)
    for trace in _after_outage(found):
        figure.add_trace(trace, row=1, col=1)
    figure.add_hline(y=found.busy_hour.total_per_s, line={"color": NEUTRAL, "width": 1.5, "dash": "dot"}, row=1, col=1)
    figure.update_xaxes(title_text="time after the end of the outage [s]", row=1, col=1)
    figure.update_yaxes(title_text="requests per second", **RATE_AXIS, row=1, col=1)
    if found.layout is not None:
        _limit(figure, found.layout.reattach_capacity, 1)
    for place, panel in enumerate(panels[1:], 2):
        for trace in _over_months(found, panel):
            figure.add_trace(trace, row=place, col=1)
        if found.layout is not None and (limit := _held(found, found.layout, panel)) is not None:
            _limit(figure, limit, place)
        words = "requests per second, busy hour" if panel == "busy hour" else _of_data(found)
        figure.update_yaxes(title_text=words, **RATE_AXIS, row=place, col=1)
        figure.update_xaxes(title_text="months from today", dtick=_MONTHS, row=place, col=1)
    _look(figure, found, name, height, page)
    return figure


def _after_outage(found: Forecast) -> Iterator[go.Scatter]:
    """Yield the rates by class, stacked; handshakes apart, as they are no requests."""
    over_time = found.reattach.over_time
    times = [*(each.from_s for each in over_time), over_time[-1].to_s]
    auth, acct, tls = (
        [getattr(each.rates, field) for each in over_time] for field in ("auth_per_s", "acct_per_s", "handshakes_per_s")
    )
    look = {"x": times, "mode": "lines", "line_shape": "hv", "hovertemplate": "%{x:.0f} s: %{y:,.0f}/s"}
    for name, colour, rates in (("auth", AUTH, auth), ("acct", ACCT, acct)):
        yield go.Scatter(
            y=[*rates, rates[-1]], name=name, stackgroup="requests", line={"color": colour, "width": 1.5}, **look
        )
    if max(tls) >= _SEEN * found.reattach.peak.rates.total_per_s:
        yield go.Scatter(
            y=[*tls, tls[-1]], name="TLS handshakes", line={"color": TLS, "width": 2, "dash": "dash"}, **look
        )


def _over_months(found: Forecast, panel: str) -> Iterator[go.Scatter]:
    months = [each.month for each in found.months]
    bands = [_shown(found, place, panel) for place in range(len(months))]
    colour = NEUTRAL if panel == "busy hour" else DATA
    yield from band(months, [[each.low for each in bands], [each.high for each in bands]], colour)
    yield go.Scatter(
        x=months,
        y=[each.value for each in bands],
        mode="lines",
        line={"color": colour, "width": 2},
        showlegend=False,
        hovertemplate="month %{x:.0f}: %{y:,.0f}<extra></extra>",
    )


def _shown(found: Forecast, place: int, panel: str) -> Band:
    month = found.months[place]
    data = month.node_gib or month.data_gib
    return month.busy_hour_per_s if panel == "busy hour" or data is None else data


def _held(found: Forecast, layout: Layout, panel: str) -> Band | None:
    """Return the rate that a layout sustains, or the data that its disks hold; None where this is not known."""
    if panel == "busy hour":
        return layout.capacity
    disk = next((each for each in found.fits if each.what == "disk"), None)
    data = found.months[-1].node_gib
    return None if disk is None or data is None else Band.exactly(disk.limit.value * data.value / disk.needed.value)


def _limit(figure: go.Figure, limit: Band, row: int) -> None:
    """Draw a limit across a panel: its median dashed, its band shaded."""
    figure.add_hrect(
        y0=limit.low, y1=limit.high, line_width=0, fillcolor=LIMIT, opacity=0.14, layer="below", row=row, col=1
    )
    figure.add_hline(y=limit.value, line={"color": LIMIT, "width": 2, "dash": "dash"}, row=row, col=1)


def _of_data(found: Forecast) -> str:
    return "data of the fullest node, GiB" if found.layout is not None else "one copy of the data, GiB"


def _look(figure: go.Figure, found: Forecast, name: str, panels_pixels: int, page: bool) -> None:
    peak = rate(found.reattach.peak.rates.total_per_s)
    text = [f"{significant(found.subscribers)} subscribers. Peak after an outage: {peak}/s."]
    text.append(f"Dotted: busy hour, {rate(found.busy_hour.total_per_s)}/s.")
    if found.layout is not None:
        text += textwrap.wrap(f"Dashed: what the layout holds. {found.layout.words}", NARROW)
    toolbar = TOOLBAR_PIXELS if page else 0
    top = toolbar + title_pixels(text) + ENTRY_PIXELS
    height = top + panels_pixels + BOTTOM_PIXELS
    figure.update_yaxes(automargin=True)
    figure.update_layout(
        template=LIGHT,
        height=height,
        margin={"l": 20, "r": 16, "t": top, "b": BOTTOM_PIXELS},
        title=title(f"{name}: demand", text, height, toolbar),
        legend={
            "orientation": "h",
            "x": 0,
            "xanchor": "left",
            "yanchor": "bottom",
            "y": 1,
            "font": {"size": SMALL_SIZE},
        },
    )
