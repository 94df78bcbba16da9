"""A simulation for people: requests, latency, stations and pools, in 80 columns."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from capplan.answers.number_words import rate, share, significant
from capplan.answers.objective import parse
from capplan.layout.solution import kind_of
from capplan.models.language.per_dc import per_dc_text
from capplan.models.language.units import FloatArray
from capplan.planner.simulate.simulation import (
    EVERY_CLASS,
    Backlog,
    Estimate,
    LatencyFigures,
    PoolKind,
    PrecisionReached,
    Simulation,
    StationKind,
    report,
)
from capplan.reports import figure as look
from capplan.reports.document import Block, Break, Cell, Column, Fact, Heading, Paragraph, Table, table
from capplan.reports.figure import go
from capplan.reports.numbers import Format, given, percent, two_digits
from capplan.simulator.results.histogram import Histogram
from capplan.simulator.results.run import Mark, Run
from capplan.simulator.sample import Sample

SHADES = {"pause": "rgba(204, 102, 119, 0.45)", "background": "rgba(140, 140, 200, 0.30)"}  # no line has these
MOST_LINES = 6  # of kinds of stations and pools
FINEST = 1500  # shaded times in the width of a panel: closer ones are drawn as one
PANELS = (
    "Share of the requests that take longer",
    "Traffic over time",
    "Queues over time: mean and range",
    "Utilisation over time: mean and range",
)
HEIGHTS = (330, 250, 250, 250)  # pixels of the panels
AXIS_PIXELS, HEADING_PIXELS, ENTRY_PIXELS = 52, 34, 20
TAIL = {1: "all", 0.5: "p50", 0.1: "p90", 0.01: "p99", 1e-3: "p99.9", 1e-4: "p99.99", 1e-5: "p99.999", 1e-6: "p99.9999"}


_LONGER = {"p50": 0.5, "p90": 0.1, "p95": 0.05, "p99": 0.01, "p999": 0.001}  # share of the requests beyond each

MOST_ROWS = 15  # of stations and of pools: a screen
_RISING = 1.7  # 99th percentile over mean of a number that rises evenly from 0: nearly 2
SMALLEST_GROWTH = 1e-4  # of a backlog; less is shown as "less than"
LOW_DROP_RATE = 0.001  # share of the requests; it is what a capacity allows
NONE = "-"  # nothing observed
LATENCIES = {"mean": "mean", "p50": "p50", "p90": "p90", "p95": "p95", "p99": "p99", "p999": "p99.9"}
_Figure = tuple[str, str]
"""A figure and the half-width of its interval, in words."""


def describe(simulation: Simulation) -> Iterator[Block]:
    """Yield the description of a simulation."""
    yield Heading(headline(simulation), 1)
    yield from _facts(simulation)
    yield from _requests(simulation)
    clocks = {"intended": "the intended start"}
    if _clocks_differ(simulation):
        clocks["actual"] = "the actual start"
    for clock, words in clocks.items():
        latencies = {name: getattr(figures.latency_ms, clock) for name, figures in simulation.classes.items()}
        yield Heading(f"Latency in ms from {words}")
        yield _latency(latencies)
    yield from _stations(simulation.station_kinds)
    yield from _pools(simulation.pool_kinds)
    yield Break()
    for note in notes(simulation):
        yield Paragraph(note, level=1)
    yield Paragraph(f"capplan {simulation.version}, seed {simulation.seed}", "remark", level=1)


def headline(simulation: Simulation) -> str:
    """Return the subject of the simulation, its length and its rate."""
    layout = simulation.scenario
    what = f"The network {simulation.network}" if layout is None else _layout(layout)
    return f"{what}: {_duration(simulation.duration_s)} of traffic{_at(simulation)}."


def _layout(scenario: Mapping[str, Any]) -> str:
    """Return the name of the layout."""
    dcs, nodes = scenario.get("dcs"), scenario.get("cass_nodes", scenario.get("nodes"))
    if nodes is None:
        servers = scenario.get("servers")
        if servers is not None:
            return "1 server" if servers == 1 else f"{servers} servers"
        if "virtual_encrypts" in scenario:
            return f"The virtual network at RF {scenario['rf']} with {scenario['column_bytes']}-byte columns"
        return "This layout"
    if isinstance(nodes, (tuple, list)):
        return f"{dcs} DCs of {per_dc_text(nodes)} nodes"
    each = "node" if nodes == 1 else "nodes"
    if dcs is None:
        return f"{nodes} {'Cassandra ' if 'cass_nodes' in scenario else ''}{each}"
    return f"1 DC of {nodes} {each}" if dcs == 1 else f"{dcs} DCs x {nodes} {each}"


def _at(simulation: Simulation) -> str:
    offered = simulation.offered_tps
    if offered is None:
        return " from closed-loop clients"
    kind = "" if simulation.mean_tps == offered else "a peak rate of "
    source = {"given": ", as given", "default": ", 80 % of capacity", "network": ""}[simulation.offered_source]
    return f" at {kind}{given(offered)} TPS{source}"


def _duration(seconds: float) -> str:
    return f"{seconds / 60:g} min" if seconds >= 120 and seconds % 60 == 0 else f"{float(f'{seconds:.3g}'):g} s"


def _facts(simulation: Simulation) -> Iterator[Fact]:
    every = simulation.classes[EVERY_CLASS]
    runs = "one replication" if simulation.replications == 1 else f"{simulation.replications} replications"
    if simulation.mean_tps is not None and simulation.mean_tps != simulation.offered_tps:
        yield Fact("mean rate", f"{rate(simulation.mean_tps)} TPS: the peak rate comes in bursts", level=1)
    yield Fact("measured", f"{every.started:,} requests in {runs}{_left_out(simulation)}", level=1)
    number, rates, response = every.little.number, every.little.rate_per_s, every.little.response_s
    beside = "" if number.half_width is None else f" ± {two_digits(number.half_width)}"
    law = f"rate x response is {significant(rates.value * response.value)} (Little's law)"
    yield Fact("in flight", f"{significant(number.value)}{beside} requests; {law}", level=1)
    if simulation.backlog is not None:
        yield Fact("backlog", _backlog(simulation.backlog), level=1)


def _left_out(simulation: Simulation) -> str:
    found = simulation.warmup_source == "mser"
    if not simulation.warmup_s:
        return ", no warm-up detected (MSER)" if found else ""
    runs = " each" if simulation.replications > 1 else ""
    return f", the first {_duration(simulation.warmup_s)}{runs} discarded{' as warm-up (MSER)' if found else ''}"


def _backlog(backlog: Backlog) -> str:
    if math.isnan(backlog.growth.value):
        return f"{backlog.verdict}: the run is too short to tell whether it grows"
    if abs(backlog.growth.value) + (backlog.growth.half_width or 0) < SMALLEST_GROWTH:
        return f"{backlog.verdict}: grows by less than 0.01 % of the offered rate"
    width = "" if backlog.growth.half_width is None else f" ± {percent(backlog.growth.half_width)}"
    return f"{backlog.verdict}: grows by {percent(backlog.growth.value)}{width} of the offered rate"


def _clocks_differ(simulation: Simulation) -> bool:
    latencies = (figures.latency_ms for figures in simulation.classes.values() if figures.completed)
    return any(each.intended is not each.actual and each.intended != each.actual for each in latencies)


def _table(heads: Iterable[str], rows: Iterable[tuple[str, Sequence[_Figure]]]) -> Table:
    """Return a table in which a row of half-widths follows each row of figures."""
    columns = (Column(""), *(Column(name, right=True) for name in heads))
    return table(columns, (cells for row in rows for cells in _rows(*row)), level=1)


def _rows(name: str, figures: Sequence[_Figure]) -> Iterator[list[Cell]]:
    yield [Cell(name), *(Cell(value) for value, _ in figures)]
    if any(width for _, width in figures):
        yield [Cell("±", emphasis="remark", level=1), *(Cell(width, emphasis="remark") for _, width in figures)]


def _figure(found: Estimate, form: Format = significant) -> _Figure:
    width = "" if found.half_width is None else two_digits(found.half_width * (100 if form is _percent else 1))
    return NONE if math.isnan(found.value) else form(found.value), width


def _percent(part: float) -> str:
    return share(part).removesuffix(" %")


def _requests(simulation: Simulation) -> Iterator[Block]:
    every = simulation.classes[EVERY_CLASS]
    counts = [name for name in ("dropped", "timed_out", "unfinished", "retries") if getattr(every, name)]
    yield Heading("Requests")
    rows = (
        (
            _named(name),
            [
                *(_figure(each, rate) for each in (its.offered_per_s, its.throughput_per_s)),
                _figure(its.drop_rate, _percent),
                *((f"{getattr(its, each):,}", "") for each in counts),
            ],
        )
        for name, its in simulation.classes.items()
    )
    yield _table(("offered/s", "throughput/s", "drop rate %", *(name.replace("_", " ") for name in counts)), rows)


def _latency(latencies: Mapping[str, LatencyFigures]) -> Table:
    heads = (*LATENCIES, "max")
    rows = ((_named(name), [_figure(getattr(its, each)) for each in heads]) for name, its in latencies.items())
    return _table((*LATENCIES.values(), "max"), rows)


def _stations(kinds: Mapping[str, StationKind]) -> Iterator[Block]:
    if not kinds:
        return
    paused = any(kind.paused_share.value for kind in kinds.values())
    drops = any(kind.drops for kind in kinds.values())
    heads = ["count", "busy %", "least", "most", "queue", "wait ms", *["paused %"] * paused, *["drops"] * drops]
    rows = []
    for name, kind in list(kinds.items())[:MOST_ROWS]:
        ends = [_figure(each, _percent) for each in (kind.least_utilisation, kind.most_utilisation)]
        figures = [(str(kind.count), ""), _figure(kind.utilisation, _percent)]
        figures += [("", "")] * 2 if kind.count == 1 else ends
        figures += [_figure(kind.mean_queue), _figure(kind.mean_wait_ms)]
        figures += [_figure(kind.paused_share, _percent)] * paused + [(f"{kind.drops:,}", "")] * drops
        rows.append((name, figures))
    yield Heading("Stations (busy: mean, least and most loaded; queue: of each)")
    yield _table(heads, rows)
    yield from _more(len(kinds), "stations")


def _pools(kinds: Mapping[str, PoolKind]) -> Iterator[Block]:
    if not kinds:
        return
    rows = []
    for name, kind in list(kinds.items())[:MOST_ROWS]:
        figures = map(_figure, (kind.mean_busy, kind.most_p99_busy, kind.mean_queue, kind.mean_wait_ms))
        rows.append((name, [(str(kind.count), ""), (f"{kind.size:,g}", ""), *figures, (f"{kind.drops:,}", "")]))
    yield Heading("Pools (size, busy units and queue: of each)")
    yield _table(("count", "size", "busy", "p99 busy", "queue", "wait ms", "drops"), rows)
    yield from _more(len(kinds), "pools")


def _more(count: int, what: str) -> Iterator[Block]:
    if count > MOST_ROWS:
        yield Paragraph(f"The {MOST_ROWS} most loaded of {count} kinds of {what}; --json has all.", "remark", level=1)


def _named(name: str) -> str:
    return "all" if name == EVERY_CLASS else name


def notes(simulation: Simulation) -> Iterator[str]:
    """Yield the notes below the tables."""
    if simulation.scenario is None:
        yield "One set of parameters, from the file: this result does not cover their uncertainty."
    else:
        yield "One set of parameters, the calibrated median: `capplan predict` covers their uncertainty."
    yield _intervals_note(simulation)
    overloaded = simulation.backlog is not None and simulation.backlog.verdict == "overloaded"
    if not simulation.settled and not overloaded:
        yield "MSER found no end of the warm-up, so figures may include some of it. Simulate longer (--duration)."
    if overloaded:
        yield (
            "The offered rate exceeds the capacity: there is no steady state. Latencies and queues describe the "
            "simulated time and grow with it."
        )
    elif simulation.backlog is not None and simulation.backlog.verdict != "steady":
        yield "The run is too short to tell whether the backlog grows without bound: simulate longer (--duration)."
    if simulation.scenario is not None and _clocks_differ(simulation):
        yield (
            "The clients of this layout wait for their answers, so they fall behind the offered rate: latency from the "
            "intended start grows with the simulated time. `capplan predict` counts from the actual start."
        )
    if overloaded and (filling := _filling(simulation)):
        yield filling
    lost = simulation.classes[EVERY_CLASS].drop_rate.value
    if lost > LOW_DROP_RATE:
        yield (
            f"{lost:.1%}".replace("%", " %")
            + " of the requests were dropped or timed out; latencies are of the rest. A"
            " failed request ends its session, whose remaining requests never arrive."
        )
    if simulation.precision is not None:
        yield _precision_note(simulation, simulation.precision)


def _filling(simulation: Simulation) -> str:
    """Return a note if the run is too short to fill a pool; empty if no pool is filling up."""
    found = [
        (name, kind.size, kind.most_p99_busy.value)
        for name, kind in simulation.pool_kinds.items()
        if kind.mean_queue.value == 0 and kind.most_p99_busy.value > max(_RISING * kind.mean_busy.value, 1)
    ]
    if not found:
        return ""
    name, size, busy = max(found, key=lambda each: each[2] / each[1])
    return (
        f"Pool {name} is still filling: {significant(busy)} of {significant(size)} units. More requests fail once "
        "it is full: simulate longer (--duration), or ask `capplan predict`, which answers for that time."
    )


def _intervals_note(simulation: Simulation) -> str:
    count = simulation.replications
    if simulation.horizon == "finite":
        if count == 1:
            return (
                "The latencies of a single finite-horizon replication have no interval: use --replications 10. "
                "± is the half-width of the 95 % confidence interval."
            )
        return (
            f"Figures are means over {count} replications, including the longest latency; ± is the half-width of the "
            "95 % confidence interval."
        )
    if count >= 5:
        return (
            f"± is the half-width of the 95 % confidence interval between the {count} replications. The longest "
            "latency is the observed one and has no interval."
        )
    return (
        "± is the half-width of the 95 % confidence interval from batches of simulated time; it is missing where "
        "there are too few observations. The longest latency is the observed one and has no interval."
    )


def _precision_note(simulation: Simulation, precision: PrecisionReached) -> str:
    name, runs = precision.asked.partition("<")[0].strip(), simulation.replications
    known = f"is known to within {percent(precision.relative)}"
    if not math.isfinite(precision.relative):
        known = "has no interval"
    if precision.reached:
        return f"Asked for {precision.asked}: {name} {known} after {runs} replications."
    if simulation.backlog is not None and simulation.backlog.verdict == "overloaded":
        return f"Asked for {precision.asked}, stopped after {runs} replications: more would not help in overload."
    return (
        f"Asked for {precision.asked}, not reached: {name} {known} after {runs} replications. "
        "Allow more or longer ones."
    )


def plot(seen: Sample, simulation: Simulation, page: bool = True) -> go.Figure:
    """Return the plots of a simulation as a figure of four panels, one below the other."""
    run = seen.runs[0]
    series, sizes = run.series, np.array([pool.size for pool in run.pools.values()])
    traces = [
        list(_tail(seen, simulation)),
        [*_traffic(run, simulation), *_asked(simulation)],
        list(_kinds(run, series.station_queue, series.pool_queue)),
        list(_kinds(run, series.station_utilisation * 100, series.pool_busy / sizes * 100)),
    ]
    limits = list(_limits(simulation))
    every = ([*traces[0], *limits], *traces[1:])
    named = [[each.name for each in drawn if each.showlegend is not False] for drawn in every]
    legend = ENTRY_PIXELS * (max(map(look.legend_rows, named)) + bool(run.marks))
    gap = AXIS_PIXELS + legend + HEADING_PIXELS
    inner = sum(HEIGHTS) + gap * (len(HEIGHTS) - 1)
    spaces = {"row_heights": HEIGHTS, "vertical_spacing": gap / inner}
    figure = look.make_subplots(rows=4, cols=1, subplot_titles=PANELS, **spaces)
    for row, drawn in enumerate(traces, start=1):
        for trace in drawn:
            figure.add_trace(trace.update(legend=look.numbered("legend", row)), row=row, col=1)
    shades = [look.upright(*ends, {"color": colour, "width": 1}, fillcolor=colour) for ends, colour in _shades(run)]
    across = [{**each, "xref": f"x{row}", "yref": f"y{row} domain"} for row in (2, 3, 4) for each in shades]
    figure.update_layout(shapes=across)  # all at once, as there may be thousands
    for kind, colour in SHADES.items():
        if any(mark.kind == kind for mark in run.marks):
            square = {"color": colour, "symbol": "square", "size": 12}
            entry = look.legend_entry(f"{kind} of a station", mode="markers", marker=square, legend="legend4")
            figure.add_trace(entry, row=4, col=1)
    for mark in limits:
        figure.add_trace(mark, row=1, col=1)
    _axes(figure, run)
    _events(figure, run)
    _finish(figure, simulation, (inner, legend, gap), page)
    return figure


def _asked(simulation: Simulation) -> Iterator[go.Scatter]:
    """Yield a line at the mean of the requested rate."""
    rate = simulation.mean_tps if simulation.mean_tps is not None else simulation.offered_tps
    if rate is not None:
        line = {**look.pen(look.Line(look.ASKED, "longdash")), "shape": "hv"}
        yield go.Scatter(
            x=[0, simulation.duration_s], y=[rate, rate], name="asked, all classes", mode="lines", line=line
        )


def _limits(simulation: Simulation) -> Iterator[go.Scatter]:
    """Yield a mark at each percentile limit of the objectives; the class's curve must pass left of it."""
    for text in (simulation.scenario or {}).get("slo", ()):
        for each in parse(text).comparisons():
            share = _LONGER.get(each.metric.statistic)
            for bound in each.bounds if share is not None else ():
                yield go.Scatter(
                    x=[bound * 1e3],
                    y=[share],
                    **{"name": each.text, "mode": "markers"},
                    marker={"color": look.LIMIT, "size": 13, "symbol": "line-ns-open", "line": {"width": 3}},
                    hovertemplate=f"{each.text}<extra></extra>",
                )


def _classes(simulation: Simulation) -> dict[str, tuple[str, ...]]:
    return {name: simulation.reported.get(name, (name,)) for name in simulation.classes if name != EVERY_CLASS}


def _tail(seen: Sample, simulation: Simulation) -> Iterator[go.Scatter]:
    classes = _classes(simulation)
    for place, name in enumerate(classes):
        found = report(seen.together, classes, name)
        differ = not np.array_equal(found.intended.counts, found.actual.counts)
        yield _tail_line(name + (", intended start" if differ else ""), found.intended, look.Line.number(place))
        if differ:
            actual = look.Line(look.Line.number(place).colour, "dot")
            yield _tail_line(f"{name}, actual start", found.actual, actual)


def _tail_line(name: str, latency: Histogram, style: look.Line) -> go.Scatter:
    seconds, share = latency.cdf()
    longer = 1 - share
    if len(longer):
        longer[-1] = 1 / latency.count  # the longest one is as long as that
    more = {"line": look.pen(style), "hovertemplate": "%{x:.3~g} ms, longer: %{y:.2~g}"}
    return go.Scatter(x=seconds * 1e3, y=longer, name=name, mode="lines", **more)


def _traffic(run: Run, simulation: Simulation) -> Iterator[go.Scatter]:
    series = run.series
    for place, (name, parts) in enumerate(_classes(simulation).items()):
        colour, columns = look.Line.number(place).colour, [run.classes.index(part) for part in parts]
        throughput, offered = (each[:, columns].sum(axis=1) for each in (series.throughput_per_s, series.offered_per_s))
        yield _steps(f"{name}, throughput", run, throughput, look.Line(colour, "solid"))
        yield _steps(f"{name}, offered", run, offered, look.Line(colour, "dot"))
    lost = series.drops_per_s.sum(axis=1)
    if lost.any():
        yield _steps("lost, all classes", run, lost, look.Line(look.NEUTRAL, "dash"))


def _kinds(run: Run, stations: FloatArray, pools: FloatArray) -> Iterator[go.Scatter]:
    """Yield a line for each of the largest kinds of stations and pools, and a band for its members."""
    kinds = _by_kind(run, stations, pools)
    largest = sorted(kinds, key=lambda kind: -float(kinds[kind].mean(axis=0).max()))[:MOST_LINES]
    for kind in largest:
        style, values = look.Line.number(list(kinds).index(kind)), kinds[kind]  # a kind looks the same in every panel
        if values.shape[1] > 1:
            ends = [_ended(values.min(axis=1)), _ended(values.max(axis=1))]
            stepped: dict[str, Any] = {"line": {"width": 0, "shape": "hv"}, "legendgroup": kind}
            yield from look.band(list(run.series.boundaries_s), ends, style.colour, **stepped)
        yield _steps(kind, run, values.mean(axis=1), style).update(legendgroup=kind)


def _by_kind(run: Run, stations: FloatArray, pools: FloatArray) -> dict[str, FloatArray]:
    """Return the columns of stations and pools, grouped by kind."""
    found: dict[str, list[FloatArray]] = {}
    for name, column in zip(run.stations, stations.T, strict=True):
        found.setdefault(kind_of(name), []).append(column)
    for name, column in zip(run.pools, pools.T, strict=True):
        found.setdefault(f"{kind_of(name)} (pool)", []).append(column)
    return {kind: np.stack(columns, axis=1) for kind, columns in found.items()}


def _ended(values: FloatArray) -> list[float]:
    """Return interval means with the last one again, at the end of the last interval."""
    return [*values, *values[-1:]]


def _steps(name: str, run: Run, values: FloatArray, style: look.Line) -> go.Scatter:
    """Return a line of interval means, constant within each interval."""
    more = {"line": {**look.pen(style, 1.8), "shape": "hv"}, "hovertemplate": "%{y:.4~g}"}
    return go.Scatter(x=run.series.boundaries_s, y=_ended(values), name=name, mode="lines", **more)


def _shades(run: Run) -> Iterator[tuple[tuple[float, float], str]]:
    """Yield the times of pauses and background work, each with its colour."""
    for kind, colour in SHADES.items():
        for times in merged_times([mark for mark in run.marks if mark.kind == kind], run.duration_s):
            yield times, colour


def merged_times(marks: list[Mark], duration_s: float) -> list[tuple[float, float]]:
    """Return the periods covered by at least one mark; periods too close to distinguish are merged."""
    gap, found = duration_s / FINEST, list[tuple[float, float]]()
    for mark in sorted(marks):
        end = min(mark.end_s, duration_s)
        if found and mark.start_s <= found[-1][1] + gap:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((mark.start_s, end))
    return found


def _events(figure: go.Figure, run: Run) -> None:
    """Draw a line at each timeline event, labelled in the first of the panels over time."""
    events = [mark for mark in run.marks if mark.kind not in SHADES and mark.start_s <= run.duration_s]
    for place, mark in enumerate(events):
        for row in (2, 3, 4):
            figure.add_vline(x=mark.start_s, row=row, col=1, line={"color": look.NEUTRAL, "width": 1.2, "dash": "dash"})
        y = 1 - 0.09 * (place % 3)  # three heights, so that neighbours do not hide each other
        look.word(figure, f"{mark.kind.replace('_', ' ')} {mark.name}", 2, x=mark.start_s, y=y)


def _axes(figure: go.Figure, run: Run) -> None:
    figure.update_xaxes(look.latency_axis("latency [ms]"), row=1, col=1)
    ticks = {"tickvals": list(TAIL), "ticktext": list(TAIL.values())}
    figure.update_yaxes(type="log", title_text="share that takes longer", **ticks, row=1, col=1)
    titles = ("requests per second", "mean number waiting", "busy [%]")
    for row, words in enumerate(titles, start=2):
        figure.update_yaxes(title_text=words, **look.RATE_AXIS, row=row, col=1)
        matches = "x2" if row > 2 else None
        figure.update_xaxes(title_text="time [s]", range=[0, run.duration_s], matches=matches, row=row, col=1)
        grey = {"fillcolor": look.NEUTRAL, "opacity": 0.15, "line_width": 0, "layer": "below"}
        figure.add_vrect(x0=0, x1=run.warmup_s, row=row, col=1, **grey)


def _finish(figure: go.Figure, simulation: Simulation, sizes: tuple[int, int, int], page: bool) -> None:
    """Set titles and legends; each legend is below its panel, so that it fits on phone screens too."""
    inner, legend, gap = sizes
    room = {"above": HEADING_PIXELS, "below": AXIS_PIXELS + legend + 16, "margin_l": 66}
    what = "" if simulation.scenario is None else f", {_layout(simulation.scenario)}"
    name = f"{Path(simulation.target).name}{what}: how fast is it, and what waits?"
    look.frame(figure, name, [_below(simulation), " ".join(notes(simulation))], inner, page, **room)
    figure.update_annotations(selector={"xref": "paper"}, font={"size": look.HEADING_SIZE}, x=0, xanchor="left")
    bottom = inner
    for row, panel in enumerate(HEIGHTS, start=1):
        bottom -= panel
        line = {"orientation": "h", "font": {"size": look.SMALL_SIZE}, "tracegroupgap": 0}
        at = {"x": 0, "xanchor": "left", "y": (bottom - AXIS_PIXELS) / inner, "yanchor": "top"}
        figure.update_layout({look.numbered("legend", row): {**line, **at}})
        bottom -= gap


def _below(simulation: Simulation) -> str:
    offered = simulation.offered_tps
    rate = "closed clients" if offered is None else f"{offered:,.10g} requests/s offered"
    if simulation.mean_tps is not None and simulation.mean_tps != offered:
        rate += f" at peak, {simulation.mean_tps:,.0f} on average"
    first = "" if simulation.replications == 1 else f" (over time: the first of {simulation.replications} replications)"
    return f"{rate}; {simulation.duration_s:g} s of traffic, grey: left out as warm-up; seed {simulation.seed}{first}."
