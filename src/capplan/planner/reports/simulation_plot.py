"""Plots of a simulation: latency with its tail, traffic, queues and utilisation over time, in one HTML file.

The file holds everything, so it opens without a network. Latencies are those of all replications, what is drawn over
time is the first replication.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from capplan.calibration.case.solution import kind_of
from capplan.models.language.units import FloatArray
from capplan.models.objective import parse
from capplan.planner.reports.plot_file import is_page, write_figure
from capplan.planner.reports.visual_language import (
    ASKED,
    HEADING_SIZE,
    LIGHT,
    LIMIT,
    NARROW,
    NEUTRAL,
    SMALL_SIZE,
    TOOLBAR_PIXELS,
    Line,
    faint,
    title,
    title_pixels,
)
from capplan.planner.simulate.reported import report
from capplan.planner.simulate.simulation import EVERY_CLASS, Simulation
from capplan.simulator.analysis.sample import Sample
from capplan.simulator.results.histogram import Histogram
from capplan.simulator.results.run import Mark, Run

SHADES = {"pause": "rgba(213, 94, 0, 0.30)", "background": "rgba(86, 180, 233, 0.25)"}
MOST_LINES = 6  # of kinds of stations and pools
FINEST = 1500  # shaded times in the width of a panel: closer ones are drawn as one
SHORTEST = 0.001  # share of the requests that the axis of latencies leaves out on its left
MARGIN = 0.05  # powers of ten beside them
PANELS = (
    "Latency: share of the requests that take longer",
    "Traffic over time",
    "Queues over time: mean and range of each kind",
    "Utilisation over time: mean and range of each kind",
)
HEIGHTS = (330, 250, 250, 250)  # pixels of the panels
AXIS_PIXELS, HEADING_PIXELS, ENTRY_PIXELS = 52, 34, 20
NARROW_PIXELS = 330  # of a legend that fits into the width of a telephone
TAIL = {1: "all", 0.5: "p50", 0.1: "p90", 0.01: "p99", 1e-3: "p99.9", 1e-4: "p99.99", 1e-5: "p99.999", 1e-6: "p99.9999"}


_LONGER = {"p50": 0.5, "p90": 0.1, "p95": 0.05, "p99": 0.01, "p999": 0.001}  # share of the requests beyond each


def write_plot(seen: Sample, simulation: Simulation, path: Path) -> None:
    """Write the plots of a simulation to a page, an SVG or a PNG, which is there in full or not at all.

    Raises
    ------
    InputError
        When the file cannot be written or the picture cannot be drawn.
    """
    write_figure(plot(seen, simulation, is_page(path)), simulation.target, path)


def plot(seen: Sample, simulation: Simulation, page: bool = True) -> go.Figure:
    """Return the plots of a simulation as a figure of four panels, one below the other."""
    run = seen.runs[0]
    traces = [
        list(_tail(seen, simulation)),
        [*_traffic(run, simulation), *_asked(simulation)],
        list(_queues(run)),
        list(_utilisation(run)),
    ]
    limits = list(_limits(simulation))
    legend = max(map(_legend_pixels, [[*traces[0], *limits], *traces[1:]])) + (ENTRY_PIXELS if run.marks else 0)
    gap = AXIS_PIXELS + legend + HEADING_PIXELS
    inner = sum(HEIGHTS) + gap * (len(HEIGHTS) - 1)
    figure = make_subplots(
        rows=4,
        cols=1,
        subplot_titles=PANELS,
        row_heights=HEIGHTS,
        vertical_spacing=gap / inner,
        specs=[[{}], *[[{"secondary_y": True}]] * 3],
    )
    for row, drawn in enumerate(traces, start=1):
        for trace in drawn:
            figure.add_trace(trace.update(legend=_legend(row)), row=row, col=1)
    for row in (2, 3, 4):
        for trace in _shades(run, legend=_legend(4), shown=row == 4):
            figure.add_trace(trace, row=row, col=1, secondary_y=True)
    for mark in limits:
        figure.add_trace(mark, row=1, col=1)
    _axes(figure, seen)
    _events(figure, run)
    _look(figure, simulation, (inner, legend, gap), page)
    return figure


def _legend_pixels(traces: Sequence[go.Scatter]) -> int:
    """Return how high the legend of a panel is on a narrow screen."""
    names = [len(trace.name) * 7 + 50 for trace in traces if trace.showlegend is not False]
    a_row = max(1, NARROW_PIXELS // max(names, default=1))
    return ENTRY_PIXELS * -(-len(names) // a_row)


def _asked(simulation: Simulation) -> Iterator[go.Scatter]:
    """Yield a line at the mean of the rate that was asked for."""
    rate = simulation.mean_tps if simulation.mean_tps is not None else simulation.offered_tps
    if rate is not None:
        yield go.Scatter(
            x=[0, simulation.duration_s],
            y=[rate, rate],
            **{
                "name": "asked, all classes",
                "mode": "lines",
                "line": {"color": ASKED, "width": 2, "dash": "longdash", "shape": "hv"},
            },
        )


def _limits(simulation: Simulation) -> Iterator[go.Scatter]:
    """Yield a mark at the limit of each objective about a percentile: the curve of its class must pass left of it."""
    for text in (simulation.scenario or {}).get("slo", ()):
        for each in parse(text).comparisons():
            share = _LONGER.get(each.metric.statistic)
            for bound in each.bounds if share is not None else ():
                yield go.Scatter(
                    x=[bound * 1e3],
                    y=[share],
                    **{"name": each.text, "mode": "markers"},
                    marker={"color": LIMIT, "size": 13, "symbol": "line-ns-open", "line": {"width": 3}},
                    hovertemplate=f"{each.text}<extra></extra>",
                )


def _legend(row: int) -> str:
    return "legend" if row == 1 else f"legend{row}"


def _classes(simulation: Simulation) -> dict[str, tuple[str, ...]]:
    return {name: simulation.reported.get(name, (name,)) for name in simulation.classes if name != EVERY_CLASS}


def _tail(seen: Sample, simulation: Simulation) -> Iterator[go.Scatter]:
    classes = _classes(simulation)
    for place, name in enumerate(classes):
        found = report(seen.together, classes, name)
        differ = not np.array_equal(found.intended.counts, found.actual.counts)
        yield _tail_line(name + (", intended start" if differ else ""), found.intended, Line.number(place))
        if differ:
            actual = Line(Line.number(place).colour, "dot")
            yield _tail_line(f"{name}, actual start", found.actual, actual)


def _tail_line(name: str, latency: Histogram, look: Line) -> go.Scatter:
    seconds, share = latency.cdf()
    longer = 1 - share
    if len(longer):
        longer[-1] = 1 / latency.count  # the longest one is as long as that
    return go.Scatter(
        x=seconds * 1e3,
        y=longer,
        name=name,
        mode="lines",
        line={"color": look.colour, "dash": look.dash, "width": 2},
        hovertemplate="%{x:.3~g} ms, longer: %{y:.2~g}",
    )


def _traffic(run: Run, simulation: Simulation) -> Iterator[go.Scatter]:
    series = run.series
    for place, (name, parts) in enumerate(_classes(simulation).items()):
        colour, columns = Line.number(place).colour, [run.classes.index(part) for part in parts]
        throughput, offered = (each[:, columns].sum(axis=1) for each in (series.throughput_per_s, series.offered_per_s))
        yield _steps(f"{name}, throughput", run, throughput, Line(colour, "solid"))
        yield _steps(f"{name}, offered", run, offered, Line(colour, "dot"))
    lost = series.drops_per_s.sum(axis=1)
    if lost.any():
        yield _steps("lost, all classes", run, lost, Line(NEUTRAL, "dash"))


def _queues(run: Run) -> Iterator[go.Scatter]:
    series = run.series
    return _kinds(run, _by_kind(run, series.station_queue, series.pool_queue))


def _utilisation(run: Run) -> Iterator[go.Scatter]:
    series, sizes = run.series, np.array([pool.size for pool in run.pools.values()])
    return _kinds(run, _by_kind(run, series.station_utilisation * 100, series.pool_busy / sizes * 100))


def _kinds(run: Run, kinds: Mapping[str, FloatArray]) -> Iterator[go.Scatter]:
    """Yield a line for each kind of station and pool, those with the largest values, and a shade for its members."""
    largest = sorted(kinds, key=lambda kind: -float(kinds[kind].mean(axis=0).max()))[:MOST_LINES]
    for kind in largest:
        look, values = Line.number(list(kinds).index(kind)), kinds[kind]  # a kind looks the same in every panel
        if values.shape[1] > 1:
            yield from _spread(kind, run, values, look)
        yield _steps(kind, run, values.mean(axis=1), look).update(legendgroup=kind)


def _by_kind(run: Run, stations: FloatArray, pools: FloatArray) -> dict[str, FloatArray]:
    """Return the columns of stations and pools by their kind."""
    found: dict[str, list[FloatArray]] = {}
    for name, column in zip(run.stations, stations.T, strict=True):
        found.setdefault(kind_of(name), []).append(column)
    for name, column in zip(run.pools, pools.T, strict=True):
        found.setdefault(f"{kind_of(name)} (pool)", []).append(column)
    return {kind: np.stack(columns, axis=1) for kind, columns in found.items()}


def _spread(kind: str, run: Run, used: FloatArray, look: Line) -> Iterator[go.Scatter]:
    for edge, fill in ((used.min(axis=1), None), (used.max(axis=1), "tonexty")):
        line = _steps(kind, run, edge, look)
        line.update(line={"width": 0}, fill=fill, fillcolor=faint(look.colour), legendgroup=kind, showlegend=False)
        yield line.update(hoverinfo="skip", hovertemplate=None)


def _steps(name: str, run: Run, values: FloatArray, look: Line) -> go.Scatter:
    """Return a line of the means of intervals, each held over its interval."""
    return go.Scatter(
        x=run.series.boundaries_s,
        y=np.append(values, values[-1:]),
        name=name,
        mode="lines",
        line={"color": look.colour, "dash": look.dash, "width": 1.8, "shape": "hv"},
        hovertemplate="%{y:.4~g}",
    )


def _shades(run: Run, legend: str, shown: bool) -> Iterator[go.Scatter]:
    """Yield the times of pauses and of background work as areas over the whole height."""
    for kind, colour in SHADES.items():
        times = merged_times([mark for mark in run.marks if mark.kind == kind], run.duration_s)
        if not times:
            continue
        yield go.Scatter(
            x=[x for start, end in times for x in (start, start, end, end, None)],
            y=[0, 1, 1, 0, None] * len(times),
            name=f"{kind} of a station",
            mode="lines",
            fill="toself",
            fillcolor=colour,
            line={"color": colour, "width": 1},
            hoverinfo="skip",
            legend=legend,
            legendgroup=kind,
            showlegend=shown,
        )


def merged_times(marks: list[Mark], duration_s: float) -> list[tuple[float, float]]:
    """Return when at least one of the marks lasts; times too close to be seen apart are one."""
    gap, found = duration_s / FINEST, list[tuple[float, float]]()
    for mark in sorted(marks):
        end = min(mark.end_s, duration_s)
        if found and mark.start_s <= found[-1][1] + gap:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((mark.start_s, end))
    return found


def _events(figure: go.Figure, run: Run) -> None:
    """Draw a line at each event of the timeline, with its words in the first of the panels over time."""
    events = [mark for mark in run.marks if mark.kind not in SHADES and mark.start_s <= run.duration_s]
    for place, mark in enumerate(events):
        for row in (2, 3, 4):
            figure.add_vline(x=mark.start_s, row=row, col=1, line={"color": NEUTRAL, "width": 1.2, "dash": "dash"})
        figure.add_annotation(
            x=mark.start_s,
            y=1 - 0.09 * (place % 3),  # three heights, so that neighbours do not hide each other
            xref="x2",
            yref="y2 domain",
            text=f"{mark.kind.replace('_', ' ')} {mark.name}",
            showarrow=False,
            xanchor="left",
            yanchor="top",
            font={"size": SMALL_SIZE},
        )


def _axes(figure: go.Figure, seen: Sample) -> None:
    run = seen.runs[0]
    figure.update_xaxes(type="log", title_text="latency [ms]", dtick="D2", range=_latency_range(seen), row=1, col=1)
    figure.update_yaxes(
        type="log",
        title_text="share that takes longer",
        tickvals=list(TAIL),
        ticktext=list(TAIL.values()),
        row=1,
        col=1,
    )
    titles = ("requests per second", "mean number waiting", "busy [%]")
    for row, words in enumerate(titles, start=2):
        figure.update_yaxes(title_text=words, rangemode="tozero", row=row, col=1, secondary_y=False)
        figure.update_yaxes(range=[0, 1], visible=False, fixedrange=True, row=row, col=1, secondary_y=True)
        figure.update_xaxes(
            title_text="time [s]", range=[0, run.duration_s], matches="x2" if row > 2 else None, row=row, col=1
        )
        figure.add_vrect(
            x0=0, x1=run.warmup_s, row=row, col=1, fillcolor=NEUTRAL, opacity=0.15, line_width=0, layer="below"
        )


def _latency_range(seen: Sample) -> list[float] | None:
    """Return the powers of ten between which the axis of latencies reaches: nothing is to be seen below the tail."""
    reports = seen.together.reports.values()
    clocks = [clock for report in reports for clock in (report.intended, report.actual) if clock.count]
    shortest = min((clock.quantile_s(SHORTEST) for clock in clocks), default=0.0)
    if shortest == 0:
        return None
    return [np.log10(shortest * 1e3) - MARGIN, np.log10(max(clock.max_s for clock in clocks) * 1e3) + MARGIN]


def _look(figure: go.Figure, simulation: Simulation, sizes: tuple[int, int, int], page: bool) -> None:
    """Set title and legends; a legend is below its panel, and so as wide on a telephone as on any screen."""
    (inner, legend, gap), below = sizes, _below(simulation)
    toolbar = TOOLBAR_PIXELS if page else 0
    margin = {"l": 66, "r": 16, "t": toolbar + title_pixels(below) + HEADING_PIXELS, "b": AXIS_PIXELS + legend + 16}
    height = margin["t"] + inner + margin["b"]
    figure.update_layout(
        template=LIGHT, height=height, margin=margin, title=title(Path(simulation.target).name, below, height, toolbar)
    )
    figure.update_annotations(selector={"xref": "paper"}, font={"size": HEADING_SIZE}, x=0, xanchor="left")
    bottom = inner
    for row, panel in enumerate(HEIGHTS, start=1):
        bottom -= panel
        look = {"orientation": "h", "font": {"size": SMALL_SIZE}, "tracegroupgap": 0}
        at = {"x": 0, "xanchor": "left", "y": (bottom - AXIS_PIXELS) / inner, "yanchor": "top"}
        figure.update_layout({_legend(row): {**look, **at}})
        bottom -= gap


def _below(simulation: Simulation) -> list[str]:
    offered = simulation.offered_tps
    rate = "closed clients" if offered is None else f"{offered:,.10g} requests/s offered"
    if simulation.mean_tps is not None and simulation.mean_tps != offered:
        rate += f" at peak, {simulation.mean_tps:,.0f} on average"
    first = "" if simulation.replications == 1 else f" (over time: the first of {simulation.replications} replications)"
    text = f"{rate}; {simulation.duration_s:g} s of traffic, grey: left out as warm-up; seed {simulation.seed}{first}"
    return textwrap.wrap(text, NARROW)
