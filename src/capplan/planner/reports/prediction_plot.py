"""The plot of a prediction: latency against load with bands, and below it what each failure leaves of the capacity.

Curves come from the analytic solver; the latencies at the asked rate are those of the prediction. All panels have the
same x axis, so a failure whose capacity lies left of the asked rate does not carry it.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from capplan.calibration.evidence.table import Evidence
from capplan.calibration.system import Case
from capplan.models.number_words import rate
from capplan.models.objective import Comparison, chance_of_less
from capplan.models.results import STATISTICS, Band, Latency, Outage
from capplan.models.verdict import CONFIDENCE
from capplan.models.verdict import Answer as Verdict
from capplan.models.verdict import answer as answer_at
from capplan.planner.explore.sweep_analytic import AnalyticPoints
from capplan.planner.explore.sweep_table import SweepPoint, rate_fields
from capplan.planner.reports.plot_file import is_page, write_figure
from capplan.planner.reports.visual_language import (
    ASKED,
    COLOURS,
    HEADING_SIZE,
    LIGHT,
    LIMIT,
    NARROW,
    NEUTRAL,
    RATE_AXIS,
    SMALL_SIZE,
    TOOLBAR_PIXELS,
    Line,
    asked_line,
    band,
    capacity_lines,
    drawn,
    latency_axis,
    legend_entry,
    objective_line,
    title,
    title_pixels,
)

LOADS = 25
DRAWS = 64  # of 512: medians within 1 %, see `sweep`
USUAL = ("mean", "p99")  # statistics that are drawn, beside those of objectives
BEYOND = 1.12  # times the largest rate, where the x axis ends
PANEL_PIXELS, GAP_PIXELS, ROW_PIXELS, BOTTOM_PIXELS, ENTRY_PIXELS = 300, 70, 48, 62, 20
STEEP, HEADROOM = 0.97, 3.0  # the y axis ends at this many times what is at this share of the capacity
SPOKEN = {"p999": "p99.9"}
ROW_LABEL = "row"
NARROW_ROW = 42  # characters of a row's label that fit beside the axis on a telephone


@dataclass(frozen=True)
class Answer:
    """What a prediction says that its plot shows.

    Attributes
    ----------
    case : Case
        The layout.
    offered_tps : float
        The asked peak rate, requests per second.
    capacity : Band
        The highest peak rate, with its band.
    latency_ms : mapping of Latency
        Latencies at the asked rate, by request class.
    outages : sequence of Outage
        What failures leave.
    """

    case: Case[Any]
    offered_tps: float
    capacity: Band
    latency_ms: Mapping[str, Latency]
    outages: Sequence[Outage] = ()


def write_plot(answer: Answer, path: Path) -> None:
    """Write the plot of a prediction to a page, an SVG or a PNG, which is there in full or not at all.

    Raises
    ------
    InputError
        When the file cannot be written or the picture cannot be drawn.
    """
    write_figure(plot(answer, page=is_page(path)), f"{answer.case.system.name}: prediction", path)


def plot(answer: Answer, page: bool = True) -> go.Figure:
    """Return the figure: a panel for each request class, and one of the failures."""
    return _Drawn(answer, page).figure


def loads(answer: Answer) -> list[float]:
    """Return the rates at which curves are solved: closer to each other where latency rises."""
    end = max(answer.capacity.value, answer.offered_tps, float(np.median(answer.case.solution.capacity)))
    if answer.case.solution.bounded:
        end *= BEYOND
    share = 1 - (1 - np.linspace(0.04, 1.0, LOADS)) ** 1.5
    return [float(rate) for rate in end * share]


class _Drawn:
    """A figure while it is drawn."""

    def __init__(self, answer: Answer, page: bool) -> None:
        self.answer, self.page = answer, page
        self.names = [name for name in answer.case.system.reported if name in answer.latency_ms]
        self.points = list(AnalyticPoints(replace(answer.case, draws=DRAWS)).at(loads(answer)))
        self.rows = list(_rows(answer))
        heights = [PANEL_PIXELS] * len(self.names) + [ROW_PIXELS * len(self.rows)] * bool(self.rows)
        self.inner = sum(heights) + GAP_PIXELS * (len(heights) - 1)
        self.figure = make_subplots(
            rows=len(heights),
            cols=1,
            row_heights=heights,
            vertical_spacing=GAP_PIXELS / self.inner if len(heights) > 1 else 0,
            subplot_titles=[*self.names, *(["what failures leave of the capacity"] if self.rows else [])],
        )
        self.named: set[str] = set()
        for place, name in enumerate(self.names, start=1):
            self._latency(place, name)
        if self.rows:
            self._failures(len(heights))
        self._look(len(heights))

    def _add(self, trace: go.Scatter, row: int) -> None:
        if trace.showlegend is not False and trace.name:
            trace.update(showlegend=trace.name not in self.named, legendgroup=trace.name)
            self.named.add(trace.name)
        self.figure.add_trace(trace, row=row, col=1)

    def _latency(self, row: int, name: str) -> None:
        rates = [point["offered_tps"] for point in self.points]
        limits = [each for each in _comparisons(self.answer.case) if each.metric.subject == name]
        wanted = dict.fromkeys((*USUAL, *(each.metric.statistic for each in limits)))
        for place, statistic in enumerate(each for each in STATISTICS if each in wanted):
            look, column = Line.number(place), f"{name}_{statistic}_ms"
            ends = [[point[f"{column}_{end}"] for point in self.points] for end in ("low", "high")]
            for edge in band(rates, ends, look.colour, legendgroup=_spoken(statistic)):
                self._add(edge, row)
            self._add(_curve(rates, self.points, column, _spoken(statistic), look), row)
            answered = getattr(self.answer.latency_ms[name], statistic)
            if answered is not None and np.isfinite([answered.low, answered.high]).all():
                self._add(_answered(self.answer.offered_tps, answered, look), row)
            for measured in _measured(self.answer.case, name, statistic, look.colour):
                self._add(measured, row)
                self._add(legend_entry("measured", mode="markers", marker=_diamond(NEUTRAL)), row)
        for limit in limits:
            for bound in limit.bounds:
                self.figure.add_shape(objective_line(bound * 1e3), row=row, col=1)
        if limits:
            line = {"color": LIMIT, "width": 2, "dash": "dash"}
            self._add(legend_entry("objective", mode="lines", line=line), row)
        self.figure.update_yaxes(latency_axis("ms"), range=self._range(name, limits), row=row, col=1)
        self._guides(row)

    def _range(self, name: str, limits: Sequence[Comparison]) -> list[float] | None:
        """Return the ends of the axis as powers of ten: curves, objectives and measured figures are inside."""
        traces = [each for each in self.figure.data if each.yaxis == _axis(self.names.index(name) + 1)]
        steep = STEEP * self.answer.capacity.value
        near = [(x, value) for each in traces for x, value in zip(each.x, each.y, strict=True) if value is not None]
        found = [value for _, value in near if 0 < value < np.inf]
        shown = [value for x, value in near if 0 < value < np.inf and (x <= max(steep, self.answer.offered_tps))]
        shown += [bound * 1e3 for limit in limits for bound in limit.bounds if 0 < bound < np.inf]
        if not shown:
            return None
        top = min(HEADROOM * max(shown), max(*found, *shown))
        return [float(np.log10(min(*found, *shown))) - 0.05, float(np.log10(top)) + 0.05]

    def _guides(self, row: int) -> None:
        """Draw the capacity and the asked rate across a panel."""
        its = self.answer.capacity
        for shape in (*capacity_lines(its.value, its.low, its.high), asked_line(self.answer.offered_tps)):
            self.figure.add_shape(shape, row=row, col=1)
        dotted, solid = {"color": NEUTRAL, "width": 1.5, "dash": "dot"}, {"color": ASKED, "width": 2}
        self._add(legend_entry("capacity, with its band", mode="lines", line=dotted), row)
        self._add(legend_entry("asked rate", mode="lines", line=solid), row)

    def _failures(self, row: int) -> None:
        for verdict, (symbol, colour) in VERDICTS.items():
            those = [each for each in self.rows if each.verdict == verdict]
            if those:
                self._add(_capacities(verdict, symbol, colour, those), row)
        for measured in _measured_rates(self.answer.case):
            self._add(measured, row)
            self._add(legend_entry("measured", mode="markers", marker=_diamond(NEUTRAL)), row)
        for each in self.rows:
            at = {"x": 0, "y": each.place, "xanchor": "left", "yanchor": "bottom", "yshift": 4, "align": "left"}
            self.figure.add_annotation(
                text=each.label, showarrow=False, **at, xref="x domain", name=ROW_LABEL, row=row, col=1
            )
        shown = {"tickvals": [each.place for each in self.rows], "showticklabels": False}
        self.figure.update_yaxes(**shown, range=[0.6 - len(self.rows), 0.75], row=row, col=1)
        self._guides(row)

    def _look(self, panels: int) -> None:
        answer, entries = self.answer, len(self.named)
        below = _text(answer)
        toolbar = TOOLBAR_PIXELS if self.page else 0
        top = toolbar + title_pixels(below) + 22
        bottom = BOTTOM_PIXELS + ENTRY_PIXELS * entries
        end = BEYOND * max(answer.capacity.high, answer.offered_tps, *(each.high for each in self.rows))
        self.figure.update_xaxes(**{**RATE_AXIS, "rangemode": "normal"}, range=[0, end])
        for row in range(2, panels + 1):
            self.figure.update_xaxes(matches="x", row=row, col=1)
        self.figure.update_xaxes(title_text="peak rate [requests per second]", row=panels, col=1)
        self.figure.update_annotations(font={"size": HEADING_SIZE}, x=0, xanchor="left", selector={"name": None})
        self.figure.update_annotations(font={"size": SMALL_SIZE}, selector={"name": ROW_LABEL})
        height = top + self.inner + bottom
        self.figure.update_layout(
            template=LIGHT,
            height=height,
            margin={"l": 58, "r": 16, "t": top, "b": bottom},
            title=title(f"{answer.case.system.name}: latency against load", below, height, toolbar),
            legend={
                **{"orientation": "v", "x": 0, "xanchor": "left", "yanchor": "top", "font": {"size": SMALL_SIZE}},
                **{"y": -(BOTTOM_PIXELS - 8) / self.inner, "tracegroupgap": 0},
            },
        )


def _axis(place: int) -> str:
    return "y" if place == 1 else f"y{place}"


def _spoken(statistic: str) -> str:
    return SPOKEN.get(statistic, statistic)


def _comparisons(case: Case[Any]) -> Iterator[Comparison]:
    for objective in case.objectives:
        yield from (each for each in objective.comparisons() if each.metric.kind == "duration")


def _curve(rates: Sequence[float], points: Sequence[SweepPoint], column: str, name: str, look: Line) -> go.Scatter:
    return go.Scatter(
        x=rates,
        y=drawn(point[column] for point in points),
        **{"name": name, "mode": "lines", "line": {"color": look.colour, "dash": look.dash, "width": 2}},
        customdata=[[point[f"{column}_low"], point[f"{column}_high"]] for point in points],
        hovertemplate="%{y:.3~g} ms (%{customdata[0]:.3~g} to %{customdata[1]:.3~g}) at %{x:,.0f} per second",
    )


def _answered(offered: float, latency: Band, look: Line) -> go.Scatter:
    """Return the latency of the prediction at the asked rate."""
    return go.Scatter(
        x=[offered],
        y=[latency.value],
        error_y=_whiskers([latency], look.colour),
        **{"mode": "markers", "marker": {"color": look.colour, "size": 8}, "showlegend": False},
        hovertemplate=f"answer: {latency.value:.3g} ms ({latency.low:.3g} to {latency.high:.3g})<extra></extra>",
    )


def _whiskers(bands: Sequence[Band], colour: str) -> dict[str, Any]:
    return {
        **{"type": "data", "symmetric": False, "color": colour, "thickness": 1.5, "width": 4},
        "array": [each.high - each.value for each in bands],
        "arrayminus": [each.value - each.low for each in bands],
    }


def _measured(case: Case[Any], name: str, statistic: str, colour: str) -> Iterator[go.Scatter]:
    """Yield the times that load tests of this layout measured, at the rate of each test."""
    words = (statistic, "unspecified") if statistic == "mean" else (statistic,)
    found = [
        (offered, row)
        for test in _load_tests(case)
        for offered in [_rate_of(test)]
        for row in test.rows
        if offered is not None and row.unit == "s" and row.request_class in (name, "") and row.statistic in words
    ]
    if found:
        rates, rows = [offered for offered, _ in found], [row for _, row in found]
        yield _diamonds(rates, [row.value * 1e3 for row in rows], rows, colour)


def _measured_rates(case: Case[Any]) -> Iterator[go.Scatter]:
    """Yield the highest rates that load tests of this layout measured, in the row of the intact layout."""
    rows = [row for test in _load_tests(case) for row in test.rows if row.unit == "1/s"]
    if rows:
        yield _diamonds([row.value for row in rows], [0] * len(rows), rows, COLOURS[0])


def _diamond(colour: str) -> dict[str, Any]:
    return {"color": colour, "size": 12, "symbol": "diamond-open", "line": {"width": 2}}


def _diamonds(x: Sequence[float], y: Sequence[Any], rows: Sequence[Evidence], colour: str) -> go.Scatter:
    return go.Scatter(
        x=x,
        y=y,
        **{"mode": "markers", "showlegend": False, "marker": _diamond(colour)},
        customdata=[[f"{row.id}: {row.statistic}, {row.written}"] for row in rows],
        hovertemplate="%{customdata[0]}<extra></extra>",
    )


def _load_tests(case: Case[Any]) -> Iterator[Any]:
    """Yield the load tests of this very layout."""
    asked = _layout(case.scenario)
    for test in case.system.observations.load_tests():
        if _layout(test.scenario) == asked:
            yield test


def _layout(scenario: Any) -> dict[str, Any]:
    others = {*rate_fields(type(scenario)), "slo"}
    return {name: value for name, value in scenario.given().items() if name not in others}


def _rate_of(test: Any) -> float | None:
    """Return the rate at which the times of a load test were measured: the offered one, or the highest it reports."""
    offered = test.scenario.offered_per_s()
    rates = [row.value for row in test.rows if row.unit == "1/s"] if offered is None else [float(np.max(offered))]
    return max(rates, default=None)


VERDICTS = {
    "carries the asked rate": ("circle", COLOURS[0]),
    "at risk": ("circle-open", COLOURS[1]),
    "does not carry it": ("x", COLOURS[1]),
}


@dataclass(frozen=True)
class _Row(Band):
    """The capacity of a row of failures."""

    label: str = ""
    verdict: str = ""
    place: int = 0


def _rows(answer: Answer) -> Iterator[_Row]:
    """Yield the intact layout, then what each failure leaves."""
    if not answer.outages:
        return
    yield _row(answer.capacity, "nothing lost", _answer(answer.capacity, answer.offered_tps), 0)
    modelled = [(each, each.capacity_tps) for each in answer.outages if each.capacity_tps is not None]
    for place, (each, capacity) in enumerate(modelled, start=1):
        label = f"{each.name} lost{'' if each.available and not each.lowered else f', {each.assumed}'}"
        found = each.answer or _answer(capacity, answer.offered_tps)
        yield _row(capacity, "<br>".join(textwrap.wrap(label, NARROW_ROW)), found, -place)


def _answer(capacity: Band, offered: float) -> Verdict:
    return answer_at(chance_of_less(capacity, offered), CONFIDENCE)


def _row(capacity: Band, label: str, answer: Verdict, place: int) -> _Row:
    verdict = {"yes": "carries the asked rate", "uncertain": "uncertain", "no": "does not carry it"}[answer]
    return _Row(capacity.value, capacity.low, capacity.high, label=label, verdict=verdict, place=place)


def _capacities(verdict: str, symbol: str, colour: str, rows: Sequence[_Row]) -> go.Scatter:
    return go.Scatter(
        x=[each.value for each in rows],
        y=[each.place for each in rows],
        error_x=_whiskers(rows, colour),
        **{
            "name": verdict,
            "mode": "markers",
            "marker": {"color": colour, "symbol": symbol, "size": 9},
            "cliponaxis": False,
        },
        customdata=[[each.low, each.high] for each in rows],
        hovertemplate="%{x:,.0f} (%{customdata[0]:,.0f} to %{customdata[1]:,.0f}) per second",
    )


def _text(answer: Answer) -> list[str]:
    its = answer.capacity
    value, low, high, asked = map(rate, (its.value, its.low, its.high, answer.offered_tps))
    first = f"Capacity {value} ({low} to {high}) requests per second at peak, asked {asked}."
    shown = "Lines: medians by the analytic solver; shades and bars: 90 % bands; dots: the answer at the asked rate."
    return [line for text in (first, shown) for line in textwrap.wrap(text, NARROW)]
