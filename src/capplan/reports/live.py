"""Real servers for people: the lab and its nodes, collections, and live validations.

A live validation as a page of Markdown with pictures, and its files beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from capplan.evidence.load_test_row import LoadTestRow
from capplan.evidence.microbenchmarks import MicrobenchRow
from capplan.lab.cluster import LabStatus, NodeStatus
from capplan.lab.collectors.collector import Collected, Collector
from capplan.models.errors import InputError, MissingError
from capplan.models.files import replace_file
from capplan.planner.live import live_validation as words
from capplan.planner.live.folder import Folder
from capplan.planner.live.live_validation import LiveFigure, LiveValidation
from capplan.reports.document import Block, Cell, Column, Line, Paragraph, Table, ruled, texts
from capplan.reports.figure import (
    COLOURS,
    LIGHT,
    NEUTRAL,
    band,
    check_drawing,
    latency_axis,
    ratio_axes,
    title,
    title_pixels,
    write_figure,
)
from capplan.reports.numbers import capital

_FACTORS = {"s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"))}
_MOST_PARTS = 24
_CLOCK = "cpu clock"
_SERVERS = ("nodes", "server")  # all of them together
_OF_RUNS = (*_SERVERS, "load generator")  # parts whose figures stand beside each run
_WRITTEN = {"load_tests": "load tests", "microbenchmarks": "figures of parts", "histograms": "all latencies"}


def _columns(left: Sequence[str], right: Sequence[str]) -> list[Column]:
    return [*map(Column, left), *(Column(head, right=True) for head in right)]


def status(found: LabStatus) -> Iterator[Block]:
    """Yield a lab and its nodes."""
    dcs = f"{found.dcs} data centre{'s' if found.dcs > 1 else ''} of {found.cass_nodes}"
    parts = [f"Cassandra {found.release}", dcs, f"RF {found.rf}", f"heap {found.heap_bytes / 2**20:.0f} MiB"]
    if found.dcs > 1:
        parts.append(f"round trip {found.rtt_s * 1000:g} ms")
    used = {"clients": found.client_tls, "between nodes": found.internode_tls}
    if tls := [name for name, wanted in used.items() if wanted]:
        parts.append(f"TLS {' and '.join(tls)}")
    yield Line(", ".join(parts), "bold", fill=True)
    rows = [(each.name, f"{each.address}:9042", _state(each), *_use(each)) for each in found.nodes]
    yield ruled(_columns(("node", "address", "state"), ("pid", "memory", "CPU time")), texts(rows))
    down = [each.name for each in found.nodes if not each.up]
    if down:
        yield Line(f"Start a node that is down with 'capplan lab start {down[0]}'.", fill=True)
    elif not found.complete:
        yield Line("The lab is incomplete: end it with 'capplan lab down'.", fill=True)


def _state(node: NodeStatus) -> str:
    if not node.up:
        return "down"
    return "up" if node.answers else "starting"


def _use(node: NodeStatus) -> tuple[str, str, str]:
    if not node.up:
        return "", "", ""
    return str(node.pid), f"{node.memory_bytes / 2**20:,.0f} MiB", f"{node.cpu_s:,.1f} s"


def collectors(known: Mapping[str, Collector]) -> Iterator[Block]:
    """Yield every collector and the model parameter that it informs."""
    for name, each in known.items():
        yield Line(name, "bold")
        yield Paragraph(each.about, indent=2)
        yield Paragraph(each.parameter, indent=2)


def collected(found: Collected, written: Mapping[str, Path]) -> Iterator[Block]:
    """Yield the main figures, the remarks, and the files."""
    if found.load_tests:
        yield from _runs(found)
    hidden = {_CLOCK, *_OF_RUNS} if found.load_tests else {_CLOCK}
    parts = [each for each in found.microbenchmarks if each.component not in hidden and each.value]
    if parts:
        columns = _columns(("part", "operation", "quantity", ""), ("figure",))
        yield ruled(columns, texts(map(_part, parts[:_MOST_PARTS])))
    if len(parts) > _MOST_PARTS:
        yield Line(f"and {len(parts) - _MOST_PARTS} more figures")
    yield Line()
    for remark in found.remarks:
        yield Paragraph(f"{capital(remark)}.", hanging=2)
    yield Line()
    for what, path in written.items():
        yield Line(f"{_WRITTEN[what]}: {path}")
    if "load_tests" in written:
        yield Line(f"Next: capplan evidence audit {written['load_tests']}", "dim")


def _runs(found: Collected) -> Iterator[Block]:
    kinds = list(dict.fromkeys(row.request_class for row in found.load_tests))
    costs = {each.run_id: each for each in found.microbenchmarks if each.component in _SERVERS}
    for kind in kinds:
        if len(kinds) > 1:
            yield Line(kind or "", "bold")
        rows = [_run(row, costs.get(row.run_id)) for row in found.load_tests if row.request_class == kind]
        yield ruled(_columns(("load",), ("completed", "p50", "p99", "node", "client", "CPU/request")), texts(rows))
    yield Paragraph("node, client: CPU of a node and of the load generator; CPU/request: of all nodes together")
    yield Line()


def _run(row: LoadTestRow, cost: MicrobenchRow | None) -> list[str]:
    closed = row.load_kind == "closed"
    return [
        f"{row.clients} closed" if closed else f"{row.offered_tps or 0:,.0f}/s open",
        f"{row.throughput_tps or 0:,.0f}/s",
        *("" if ms is None else f"{_digits(ms, 3)} ms" for ms in (row.latency_p50_ms, row.latency_p99_ms)),
        *(f"{used or 0:.0f} %" for used in (row.node_cpu_percent, row.client_cpu_percent)),
        "" if cost is None else _with_error(cost),
    ]


def _part(row: MicrobenchRow) -> list[str]:
    statistic = None if row.statistic == "constant" else row.statistic
    quantity = (row.quantity or "").replace("_", " ")
    return [row.component or "", row.operation or "", quantity, statistic or "", _with_error(row)]


def _with_error(row: MicrobenchRow) -> str:
    """Return a figure with the half-width of its interval, in a readable unit."""
    value = row.value or 0.0
    factor, unit = _scale(abs(value), row.unit or "")
    shown = _digits(value / factor, 3)
    if row.error_low is not None and row.error_high is not None:
        shown += f" ± {_digits((row.error_high - row.error_low) / 2 / factor, 2)}"
    return f"{shown} {unit}".rstrip()


def _digits(value: float, count: int) -> str:
    return f"{value:,.0f}" if abs(value) >= 10**count else f"{value:.{count}g}"


def _scale(value: float, unit: str) -> tuple[float, str]:
    """Return the largest unit in which a value is at least one."""
    if unit == "1":
        return 1.0, ""
    scales = _FACTORS.get(unit, ((1.0, unit),))
    return next((each for each in scales if value >= each[0]), scales[-1])


def validation(found: LiveValidation) -> Iterator[Block]:
    """Yield the figures of each cluster, why some are not judged, and the basis of all of them."""
    for cluster, group in groupby(found.figures, key=lambda each: each.cluster):
        figures = list(group)
        yield Line(capital(cluster), "bold")
        yield _figures(figures)
        for sentence in [*words.round_trips(figures), *words.sessions(figures), *words.reasons(figures)]:
            yield Paragraph(sentence, hanging=2)
        yield Line()
    yield Paragraph(words.LEGEND)
    yield Line()
    counts = [f"{found.count(verdict)} {verdict}" for verdict in words.VERDICTS]
    yield Paragraph(f"{len(found.figures)} figures: {', '.join(counts)}.")
    yield Paragraph(
        f"Fitted to {found.fitted_runs} runs. Left out, as the load generator was the bottleneck: "
        f"{found.left_out_runs}. Disturbed by other processes: {found.disturbed_runs}.",
        hanging=2,
    )
    if found.audit:
        yield Paragraph(f"Audit of the fitted runs: {', '.join(found.audit)}.", hanging=2)
    yield Line(f"Predicted at {found.predicted_at}, measured from {found.measured_from}.")
    yield Line(f"Predictions: {found.predictions}")
    yield Line(f"SHA-256: {found.sha256}")


def _figures(figures: Sequence[LiveFigure]) -> Table:
    """Return a table with a heading line for each statement; a list if the table is too wide."""
    rows: list[tuple[Cell, ...]] = []
    below: list[Block] = []
    for said, group in groupby(figures, key=words.statement):
        rows.append((Cell(said, style="cyan"),))
        for each in group:
            load, quantity, predicted, measured, error, verdict = words.cells(each)
            rows.append(tuple(map(Cell, (load, quantity, predicted, measured, error, verdict))))
            below.append(Line(f"{said}, {load}, {quantity}"))
            gap = f"measured {measured or '-'}, error {error or '-'}: {verdict}"
            below.append(Line(f"    predicted {predicted}, {gap}"))
    heads = ("load", "quantity", "predicted (band)", "measured", "error", "right")
    return Table(tuple(map(Column, heads)), tuple(rows), narrow=tuple(below))


PAGE = "live-validation.md"
PICTURES = "figures"
_HEIGHT, _BOTTOM, _LINE = 540, 60, 18
_LEGEND_LINE, _IN_A_LINE = 20, 3  # pixels, entries
_MOST_FACTOR = 10.0  # by which a bar of noise may differ from its point
_HEAD = (
    "| load | quantity | predicted (90 % band) | measured | error | right |",
    "| :-- | :-- | --: | --: | --: | :-- |",
)
_SESSIONS = ", also those of [sessions](live/sessions.csv),"
_ONE_MACHINE = (
    " All nodes and the load generator share that machine. So the page shows costs, queueing and round trips, not what "
    "a cluster of machines carries; it cannot show disks, networks, or what nodes gain by having cores of their own. "
    "With a cluster, run `capplan validate --live --hosts hosts.toml`."
)
_RATIOS = (0.1, 0.2, 0.5, 0.7, 1.0, 1.4, 2.0, 5.0, 10.0)


def write_page(found: LiveValidation, folder: Folder, target: Path) -> Path:
    """Write the page, its pictures and the tables to a folder, created if necessary; return the page.

    Without Chrome or Chromium there are no pictures, and the page says so.

    Raises
    ------
    InputError
        If they cannot be written.
    """
    data = target / "live"
    try:
        (target / PICTURES).mkdir(parents=True, exist_ok=True)
        data.mkdir(exist_ok=True)
    except OSError as error:
        raise InputError(f"{target} cannot be made: {error.strerror}") from None
    drawn = _pictures(found, target / PICTURES)
    folder.copy_to(data)
    replace_file(target / PAGE, page(found, drawn))
    return target / PAGE


def _pictures(found: LiveValidation, folder: Path) -> list[tuple[str, str]]:
    """Draw the pictures; return each one's description and its path relative to the page's folder."""
    made = [
        (about, f"live-{name}.svg", figure)
        for name, about, figure in (
            ("errors", "Every figure, predicted over measured", errors(found.figures)),
            ("load", "Latency against load on one node", against_load(found.figures)),
            ("round-trips", "Added latency against the round trip", against_round_trip(found.figures)),
        )
        if figure is not None
    ]
    try:
        check_drawing(folder / made[0][1] if made else folder)
    except MissingError:
        return []
    for about, name, figure in made:
        write_figure(figure, about, folder / name)
    return [(about, f"{PICTURES}/{name}") for about, name, _ in made]


def page(found: LiveValidation, pictures: Sequence[tuple[str, str]]) -> str:
    """Return the page."""
    counts = ", ".join(f"{found.count(verdict)} {verdict}" for verdict in words.VERDICTS)
    parts = [
        "# Predicted, then measured on real nodes",
        f"`capplan validate --live` wrote this page: protocol *{found.protocol}*, capplan {found.version}, Cassandra "
        f"{found.cassandra}, {found.machine}.{_ONE_MACHINE if found.one_host else ''}",
        f"The model was fitted to {found.fitted_runs} small runs. The predictions were written at {found.predicted_at} "
        f"with the SHA-256 `{found.sha256}`; the runs that they speak of began at {found.measured_from}. The "
        "[predictions](live/predictions.json), the [runs fitted](live/small.csv) and the [runs "
        f"predicted](live/measured.csv){_SESSIONS if any(words.sessions(found.figures)) else ''} are beside this page.",
        f"**{len(found.figures)} figures: {counts}.** Runs left out, as the load generator was the bottleneck: "
        f"{found.left_out_runs}. Runs that other processes disturbed: {found.disturbed_runs}.",
        *([f"Audit of the fitted runs: {', '.join(found.audit)}."] if found.audit else []),
        *(f"![{about}]({file})" for about, file in pictures),
        *([] if pictures else ["There are no pictures: Chrome or Chromium, which draws them, is missing."]),
        words.LEGEND[0].upper() + words.LEGEND[1:],
    ]
    for cluster, group in groupby(found.figures, key=lambda each: each.cluster):
        figures = list(group)
        parts.append(f"## {cluster[0].upper()}{cluster[1:]}")
        lines = list(_HEAD)
        lines += [f"| {words.statement(each)}, {' | '.join(words.cells(each))} |" for each in figures]
        parts.append("\n".join(lines))
        parts += [*words.round_trips(figures), *words.sessions(figures), *words.reasons(figures)]
    return "\n\n".join(parts) + "\n"


def errors(figures: Sequence[LiveFigure]) -> go.Figure | None:
    """Return the plot of all figures: predicted over measured, with the repeat noise around 1."""
    drawn = [each for each in figures if each.measured and each.measured > 0 and each.predicted > 0]
    if not drawn:
        return None
    names = [f"{each.stage}: {words.statement(each)}, {words.load(each)} {each.quantity}" for each in drawn]
    figure = go.Figure(_noise(drawn, names))
    for place, verdict in enumerate(words.VERDICTS):
        own = [(name, each) for name, each in zip(names, drawn, strict=True) if each.verdict == verdict]
        if own:
            figure.add_trace(
                go.Scatter(
                    x=[each.predicted / (each.measured or 1.0) for _, each in own],
                    y=[name for name, _ in own],
                    name=verdict,
                    mode="markers",
                    marker={"size": 7, "color": (COLOURS[2], COLOURS[0], COLOURS[1], NEUTRAL)[place]},
                )
            )
    figure.add_vline(x=1.0, line={"color": NEUTRAL, "width": 1.5, "dash": "dot"})
    below = ["Grey lines: how far another repeat may be off. Points on the left are predicted too low."]
    top = title_pixels(below) + 30
    height = top + _LINE * max(len(names), 6) + _BOTTOM
    ratio_axes(figure, names, _RATIOS)
    return _looking(figure, "Every figure, predicted over measured", below, height, top)


def _noise(drawn: Sequence[LiveFigure], names: Sequence[str]) -> go.Scatter:
    x: list[float | None] = []
    y: list[str | None] = []
    for name, each in zip(names, drawn, strict=True):
        if each.noise is not None and each.measured:
            factor = min(1 + each.noise / each.measured, _MOST_FACTOR)
            x += [1 / factor, factor, None]
            y += [name, name, None]
    line = {"color": NEUTRAL, "width": 2}
    return go.Scatter(x=x, y=y, mode="lines", line=line, opacity=0.5, name="noise of a repeat")


def against_load(figures: Sequence[LiveFigure]) -> go.Figure | None:
    """Return p50 and p99 of one node against the offered rate, predicted with bands and measured."""
    drawn = [each for each in figures if each.stage == "1" and each.offered_per_s is not None]
    if not drawn:
        return None
    figure = make_subplots(1, 2, shared_yaxes=True, subplot_titles=("reads", "writes"), horizontal_spacing=0.04)
    for column, operation in enumerate(("read", "write"), start=1):
        for place, quantity in enumerate(("p50", "p99")):
            own = [each for each in drawn if each.operation == operation and each.quantity == quantity]
            own.sort(key=lambda each: each.offered_per_s or 0.0)
            rates, colour = [each.offered_per_s for each in own], COLOURS[place]
            first = column == 1
            for edge in band(rates, ([each.low for each in own], [each.high for each in own]), colour):
                figure.add_trace(edge, row=1, col=column)
            line = _predicted(own, rates, colour, f"{quantity} predicted").update(showlegend=first)
            figure.add_trace(line, row=1, col=column)
            figure.add_trace(_measured(own, rates, colour, f"{quantity} measured", shown=first), row=1, col=column)
    figure.update_xaxes(title_text="offered rate, requests/s", rangemode="tozero", tickformat="~s")
    figure.update_yaxes(**latency_axis(""), col=1)
    figure.update_yaxes(type="log", col=2)
    below = ["Latency in ms. Bands: 90 % of what a repeat would measure. Bars: how far another repeat may be off."]
    return _looking(figure, "Latency against load on one node", below, _HEIGHT, title_pixels(below) + 50, 1.06)


def against_round_trip(figures: Sequence[LiveFigure]) -> go.Figure | None:
    """Return the added latency of a level against the round trip between data centres."""
    drawn = [each for each in figures if each.quantity == "added p50"]
    if not drawn:
        return None
    figure = go.Figure()
    kinds = list(dict.fromkeys((each.operation, each.level) for each in drawn))
    for place, (operation, level) in enumerate(kinds):
        own = [each for each in drawn if (each.operation, each.level) == (operation, level)]
        trips, colour, name = [each.rtt_ms for each in own], COLOURS[place % 6], f"{operation} {level}"
        figure.add_trace(_predicted(own, trips, colour, f"{name} predicted"))
        figure.add_trace(_measured(own, trips, colour, f"{name} measured", shown=True))
    figure.update_xaxes(title_text="round trip between data centres, ms")
    figure.update_yaxes(title_text="median beyond that at LOCAL_ONE, ms")
    below = ["One client. Bars: how far another repeat may be off."]
    top = title_pixels(below) + 30 + _LEGEND_LINE * (2 * len(kinds) // _IN_A_LINE)
    return _looking(figure, "Added latency against the round trip", below, _HEIGHT, top)


def _predicted(own: Sequence[LiveFigure], x: Sequence[float | None], colour: str, name: str) -> go.Scatter:
    return go.Scatter(x=x, y=[each.predicted for each in own], mode="lines", line={"color": colour}, name=name)


def _measured(own: Sequence[LiveFigure], x: Sequence[float | None], colour: str, name: str, shown: bool) -> go.Scatter:
    values = [(abs(each.measured or 0.0), each.noise or 0.0) for each in own]
    bars = {
        "type": "data",
        "symmetric": False,
        "array": [min(noise, (_MOST_FACTOR - 1) * value) for value, noise in values],
        "arrayminus": [min(noise, value * noise / (value + noise) if value else noise) for value, noise in values],
        "color": colour,
        "thickness": 1.5,
        "width": 3,
    }
    return go.Scatter(
        x=x,
        y=[each.measured for each in own],
        mode="markers",
        marker={"color": colour, "size": 7},
        error_y=bars,
        name=name,
        showlegend=shown,
    )


def _looking(  # what all figures share
    figure: go.Figure, text: str, below: list[str], height: int, top: int, legend: float = 1.0
) -> go.Figure:
    figure.update_layout(
        template=LIGHT,
        height=height,
        margin={"l": 60, "r": 16, "t": top, "b": _BOTTOM},
        title=title(text, below, height),
        legend={"orientation": "h", "x": 0, "xanchor": "left", "yanchor": "bottom", "y": legend},
    )
    return figure
