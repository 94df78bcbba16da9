"""The plot of a load-test table: latency against throughput, one line for each layout and request class."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from capplan.calibration.audit.audit import Audit, audit_load_tests
from capplan.calibration.audit.load_tests.measured_row import LAYOUT, MeasuredRow
from capplan.calibration.evidence.load_tests import LATENCIES, LOAD_TESTS
from capplan.models.errors import InputError
from capplan.models.language.per_dc import per_dc_text
from capplan.reports import figure as look

STATISTICS = {name.removeprefix("latency_").removesuffix("_ms"): name for name in LATENCIES}
"""Columns of latencies by the names of their statistics."""
_PREFERRED = ("p99", "mean", "p95", "p50", "p90", "p999", "p75", "max")
_PANEL_PIXELS, _BOTTOM_PIXELS, _LEGEND_PIXELS = 380, 62, 24
_MOST_LINES = 28
_FLAGS = {
    "token_aware": "token awareness",
    "encryption_client": "TLS of clients",
    "encryption_internode": "TLS between nodes",
}
_SHORT = {
    "cass_nodes": "{} nodes",
    "rf": "RF {}",
    "dcs": "{} DCs",
    "consistency_read": "reads {}",
    "consistency_write": "writes {}",
    "row_bytes": "{} B rows",
    "version": "version {}",
    "rtt_ms": "RTT {} ms",
    "client_share": "clients {}",
    "think_time_ms": "think {} ms",
}


def write_plot(frame: pd.DataFrame, name: str, path: Path, statistic: str | None = None) -> None:
    """Write the plot to a page, an SVG or a PNG; see `capplan.reports.figure.write`.

    Raises
    ------
    InputError
        When no row has a throughput and a latency, the file cannot be written, or the picture cannot be drawn.
    """
    look.write(path, f"{name}: load tests", lambda page: plot(frame, name, statistic, page))


def plot(frame: pd.DataFrame, name: str, statistic: str | None = None, page: bool = True) -> go.Figure:
    """Return the figure.

    The 99th percentile is drawn if at least half of the rows that have any latency have it, or else the mean, the 95th
    percentile and so on.

    Parameters
    ----------
    frame : pandas.DataFrame
        A table as `LOAD_TESTS.read` returns it.
    name : str
        Name of the table, for the look.title.
    statistic : str, optional
        A key of `STATISTICS`.
    page : bool
        Whether it is for a page with a toolbar.
    """
    audit = audit_load_tests(frame)
    rows = [MeasuredRow(line, row) for line, row in enumerate(LOAD_TESTS.rows(frame), start=1)]
    chosen = statistic or _most_common(rows)
    column = STATISTICS[chosen]
    known = [each for each in rows if each.row.throughput_tps is not None and getattr(each.row, column) is not None]
    series: defaultdict[tuple[object, ...], list[MeasuredRow]] = defaultdict(list)
    for each in known:
        series[each.series].append(each)
    if not series:
        raise InputError(f"{name} has no row with throughput_tps and {column}: give --statistic one that it has")
    figure = go.Figure()
    names = _names(list(series))
    drawn = list(zip(names, series.values(), strict=True))[:_MOST_LINES]
    for place, (label, points) in enumerate(drawn):
        figure.add_trace(_line(label, sorted(points, key=_by_load), column, audit, look.Line.number(place)))
    left = f" {len(series) - _MOST_LINES} more series are not drawn." if len(series) > _MOST_LINES else ""
    unit = "longest" if chosen == "max" else chosen
    text = look.wrapped(f"Open circles: more offered than sustained. Crosses: refused by the audit.{left}")
    figure.update_xaxes(title_text="completed requests per second", **look.RATE_AXIS)
    figure.update_yaxes(**look.latency_axis(f"{unit} latency, ms"))
    legend = look.above(orientation="v", y=-_BOTTOM_PIXELS / _PANEL_PIXELS, yanchor="top")
    del legend["font"]
    room = {"below": _BOTTOM_PIXELS + _LEGEND_PIXELS * len(drawn), "margin_l": 64}
    look.frame(figure, f"{name}: load tests", text, _PANEL_PIXELS, page, **room, legend=legend)
    return figure


def _most_common(rows: Sequence[MeasuredRow]) -> str:
    counts = {name: sum(getattr(each.row, STATISTICS[name]) is not None for each in rows) for name in _PREFERRED}
    return next(name for name in _PREFERRED if counts[name] >= max(counts.values()) / 2)


def _by_load(measured: MeasuredRow) -> tuple[float, float]:
    """Order points along a curve: by what was asked for where it is known, which also works beyond the ceiling."""
    row = measured.row
    return row.offered_tps or row.clients or 0.0, row.throughput_tps or 0.0


def _line(label: str, points: Sequence[MeasuredRow], column: str, audit: Audit, style: look.Line) -> go.Scatter:
    verdicts = [audit.rows[each.line - 1] for each in points]
    symbols = [
        "x" if not each.believed else ("circle-open" if each.saturation in ("overloaded", "backlogged") else "circle")
        for each in verdicts
    ]
    return go.Scatter(
        x=[each.row.throughput_tps for each in points],
        y=[getattr(each.row, column) for each in points],
        name=label,
        showlegend=True,
        **{"mode": "lines+markers", "line": {"color": style.colour, "dash": style.dash, "width": 1.5}},
        marker={"symbol": symbols, "size": 9, "color": style.colour, "line": {"color": style.colour, "width": 1.5}},
        customdata=[[each.row.run_id or "", _load(each), _said(audit, each.line)] for each in points],
        hovertemplate="%{customdata[0]}: %{x:,.4~g}/s, %{y:.3~g} ms<br>%{customdata[1]}%{customdata[2]}<extra></extra>",
    )


def _load(measured: MeasuredRow) -> str:
    row = measured.row
    parts = [f"{row.clients:,} clients"] if row.clients else []
    return ", ".join([*parts, f"{row.offered_tps:,.4g}/s offered"] if row.offered_tps else parts)


def _said(audit: Audit, line: int) -> str:
    rules = dict.fromkeys(each.rule for each in audit.findings if each.line == line)
    return "".join(f"<br>{rule}" for rule in rules)


def _names(series: Sequence[tuple[object, ...]]) -> list[str]:
    """Name each series by the columns in which they differ."""
    columns = (*LAYOUT, "read_fraction", "request_class")
    differing = [place for place in range(len(columns)) if len({each[place] for each in series}) > 1]
    return [
        ", ".join(text for place in differing if (text := _named(columns[place], each[place]))) or _alone(each)
        for each in series
    ]


def _named(column: str, value: Any) -> str:
    """Return a cell as people say it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return _FLAGS[column] if value else f"no {_FLAGS[column]}"
    if column == "read_fraction":
        return f"{100 * value:g} % reads"
    text = (
        per_dc_text(value) if isinstance(value, tuple) else (f"{value:g}" if isinstance(value, float) else str(value))
    )
    return _SHORT.get(column, "{}").format(text)


def _alone(series: tuple[object, ...]) -> str:
    return f"{series[-1]} requests" if series[-1] == "all" else str(series[-1])
