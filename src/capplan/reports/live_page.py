"""A live validation as a page of Markdown with pictures, and its files beside it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from capplan.models.errors import InputError, MissingError
from capplan.models.files import replace_file
from capplan.planner.live import answer as words
from capplan.planner.live.answer import LiveFigure, LiveValidation
from capplan.planner.live.folder import Folder
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
    """Write the page, its pictures and the tables to a folder, which is made if need be; return the page.

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
    """Draw the pictures; return what each shows, and its file below the page's folder."""
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
    """Return the plot of all figures: predicted over measured, with the noise of a repeat around 1."""
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
    """Return the latency that a level adds against the round trip between data centres."""
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
