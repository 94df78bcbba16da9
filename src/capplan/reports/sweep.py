"""A sweep for people: one line per point, with the columns in which points differ."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from capplan.answers.condition import stated
from capplan.answers.number_words import rate, share, significant
from capplan.answers.objective import parse
from capplan.answers.results import STATISTICS
from capplan.layout.components import MeasuredRange
from capplan.layout.system import System
from capplan.models.solver.operating_point import MAX_DROP_RATE
from capplan.planner.sweep import CLIENTS, SweepPoint, band_columns, column_of, columns_of, layout_options
from capplan.reports import figure as look
from capplan.reports.document import Block, Break, Cell, Column, Paragraph, Table, table
from capplan.reports.figure import go
from capplan.reports.numbers import Format, given, two_digits

MOST_LINES = 3  # of a panel, with ends of bands that can be told apart
MOST_PANELS = 24  # of a page
MOST_POINTS = 6000  # with a choice of all statistics: the page holds each of them
PANEL_PIXELS, GAP_PIXELS = 330, 90
BOTTOM_PIXELS, MENU_PIXELS, HEADING_PIXELS = 60, 46, 25
MOST_TICKS = 12
BESIDE = 1.06  # times the highest rate of a panel
CAPACITY = "capacity [per second]"
Key = tuple[Any, ...]


def describe(points: Sequence[SweepPoint], system: System[Any]) -> Iterator[Block]:
    """Yield the description of the points of a sweep."""
    answered = [point for point in points if point["refused"] is None]
    columns = {column_of(name, option): option.label for name, option in layout_options(system.scenario).items()}
    swept = {name: label for name, label in columns.items() if len({str(point[name]) for point in points}) > 1}
    classes = [name for name in system.reported if any(point[f"{name}_p99_ms"] is not None for point in answered)]
    lines = _closed_lines if _closed(answered) else _lines
    yield lines(answered, swept, classes)
    yield Break()
    for text in _notes(points, answered):
        yield Paragraph(text)
    for about in system.component(MeasuredRange).unmeasured(system.scenario()):
        if any(point[about.field] is None for point in answered):
            yield Paragraph(stated(about))


def _notes(points: Sequence[SweepPoint], answered: Sequence[SweepPoint]) -> Iterator[str]:
    """Yield the sentences below the table."""
    for why in dict.fromkeys(point["refused"] for point in points if point["refused"] is not None):
        yield f"refused: {why}"
    yield "Rates are totals over the whole layout; a band reaches from the 5th to the 95th percentile."
    yield "Basis: whether such a layout was measured, lies between measured ones, or beyond them; ask predict why."
    met = "Objectives met" if _closed(answered) else "Carried, with the objectives met"
    if any(point["answer"] is not None for point in answered):
        yield f"{met}: yes if the risk of a miss is at most 10 %, no from 90 % on."
    if any(_fails(point) for point in answered):
        yield (
            "Done: mean rate of completed requests, which latencies count. A percentage is the share dropped; if "
            "nothing is dropped, the queue grows without limit."
        )
    parts = [point["simulation"] for point in answered if point["simulation"] is not None]
    if not parts:
        yield "Latencies are those of the analytic solver."
    else:
        most = f"{max(parts):.1%}".replace("%", " %")
        yield f"Latencies are simulated; at most {most} of a figure is the simulation's part of its band."


def _fails(point: SweepPoint) -> bool:
    """Whether some requests do not complete, or none completes in finite time."""
    unbounded = any(isinstance(cell, float) and math.isinf(cell) for cell in point.values())
    return _drops(point) or unbounded


def _drops(point: SweepPoint) -> bool:
    """Whether more requests are dropped than a carried rate allows."""
    return bool(point["drop_rate"] > MAX_DROP_RATE)


def _closed(points: Sequence[SweepPoint]) -> bool:
    """Whether closed clients determine the rates."""
    return any(point.get(CLIENTS) is not None for point in points)


def _closed_lines(points: Sequence[SweepPoint], swept: dict[str, str], classes: Sequence[str]) -> Table:
    """Return one line per number of clients."""
    judged = any(point["answer"] is not None for point in points)
    numbers = [*swept.values(), "clients", *["objectives met"] * judged, "throughput"]
    rows = (
        [
            *(_cell(point[column]) for column in swept),
            given(point[CLIENTS]),
            *[_cell(point["answer"] or "")] * judged,
            *_figures(point, "throughput_tps", classes),
            point["basis"],
        ]
        for point in points
    )
    return table([*_right(*numbers), *_right(*(f"{name} p99 ms" for name in classes)), "basis"], rows)


def _lines(points: Sequence[SweepPoint], swept: dict[str, str], classes: Sequence[str]) -> Table:
    """Return one line per point."""
    done = any(_fails(point) for point in points)
    heads = [*_right(*swept.values(), "TPS"), *[Column("done", right=True, below=True)] * done]
    heads += [Column("carried"), Column("basis", below=True)]
    rows = (
        [
            *(_cell(point[column]) for column in swept),
            given(tps) if (tps := point["offered_tps"]) == float(f"{tps:.6g}") else rate(tps),  # as given, or computed
            *[rate(point["throughput_tps"])] * done,
            Cell(_cell(point["answer"] or ""), beside=share(point["drop_rate"]) if _drops(point) else ""),
            point["basis"],
            *_figures(point, "capacity_tps", classes),
        ]
        for point in points
    )
    return table([*heads, *_right("capacity", *(f"{name} p99 ms" for name in classes))], rows)


def _right(*titles: str) -> list[Column]:
    return [Column(title, right=True) for title in titles]


def _figures(point: SweepPoint, name: str, classes: Sequence[str]) -> list[Cell]:
    """Return a rate and the 99th percentiles, each with its band."""
    return [_figure(point, name, rate), *(_figure(point, f"{each}_p99_ms", two_digits) for each in classes)]


def _figure(point: SweepPoint, name: str, form: Format) -> Cell:
    value, low, high = (point[column] for column in band_columns(name))
    if value is None:
        return Cell("")
    return Cell(form(value), beside="" if low == high else f"{form(low)} to {form(high)}")


def _cell(value: object) -> str:
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    return significant(value) if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class Panels:
    """The distribution of points over panels and lines.

    Attributes
    ----------
    across
        The column along the x axis.
    panel, line
        Columns whose values make a panel, and a line in it.
    labels
        Labels of the columns of the layout.
    first
        The latency that is shown first.
    """

    across: str
    panel: tuple[str, ...]
    line: tuple[str, ...]
    labels: Mapping[str, str]
    first: str

    def split(self, rows: Sequence[SweepPoint]) -> dict[Key, dict[Key, list[SweepPoint]]]:
        """Return the points by panel and line, in the order of the sweep; along a line by the x axis."""
        found: dict[Key, dict[Key, list[SweepPoint]]] = {}
        for row in rows:
            lines = found.setdefault(_key(row, self.panel), {})
            lines.setdefault(_key(row, self.line), []).append(row)
        if all(isinstance(row[self.across], (int, float)) for row in rows):
            for lines in found.values():
                for points in lines.values():
                    points.sort(key=lambda row: row[self.across])
        return found


def plot(
    rows: Sequence[SweepPoint], system: System[Any], target: str, slo: Sequence[str] = (), page: bool = True
) -> go.Figure:
    """Return the figure: latency against load, and capacity; capacity alone if there is only one rate."""
    answered = [row for row in rows if row["refused"] is None]
    labels = {column_of(name, option): option.label for name, option in layout_options(system.scenario).items()}
    swept = [name for name in labels if len({row[name] for row in answered}) > 1]
    many_rates = len(answered) > len({_key(row, tuple(swept)) for row in answered})
    classes = [name for name in system.reported if any(row[f"{name}_p99_ms"] is not None for row in answered)]
    many_rates = many_rates and bool(classes)
    numbers = [name for name in swept if columns_of(system)[name] in ("Int64", "Float64")]
    field = max(numbers or swept or list(labels)[:1], key=lambda name: _count(answered, name))
    across = "offered_tps" if many_rates else field
    panels = _panels(answered, swept, across, labels, f"{classes[-1] if classes else ''}_p99_ms")
    split = panels.split(answered)
    shown = dict(itertools.islice(split.items(), MOST_PANELS))
    titles, count = [_words(panels.panel, key) for key in shown], len(shown)
    spacing = GAP_PIXELS / _inner(count) if count > 1 else 0
    figure = look.make_subplots(rows=count, cols=1, subplot_titles=titles, vertical_spacing=spacing)
    picture = _Drawn(figure, panels, [key for lines in shown.values() for key in lines], count)
    for number, lines in enumerate(shown.values(), start=1):
        for place, (key, points) in enumerate(lines.items()):
            picture.line(number, place, key, points, panels.first if many_rates else "capacity_tps", len(lines) == 1)
    values = {name: list(dict.fromkeys(_cell(row[name]) for row in answered)) for name in swept}
    asked = ", ".join(
        f"{name.replace('_', '-')} {', '.join(few) if len(few) <= MOST_LINES + 1 else f'{few[0]} to {few[-1]}'}"
        for name, few in values.items()
    )
    question = "how fast at which load?" if many_rates else "what do they carry?"
    name = f"{Path(target).name}{', ' * bool(asked)}{asked}: {question}"
    text = _text(answered, many_rates, len(split), slo, max(map(len, shown.values())))
    picture.frame(name, list(text), page)
    if many_rates:
        statistics = STATISTICS if len(answered) <= MOST_POINTS else ("p99",)  # a page holds each of them
        picture.choose([f"{name}_{statistic}_ms" for name in classes for statistic in statistics], slo, page)
    return figure


def _count(rows: Sequence[SweepPoint], column: str) -> int:
    return len({row[column] for row in rows})


def _panels(
    rows: Sequence[SweepPoint], swept: Sequence[str], across: str, labels: Mapping[str, str], first: str
) -> Panels:
    """Choose the fewest panels whose lines can be told apart."""
    counts = {name: _count(rows, name) for name in swept}
    sides = [name for name in swept if name != across]
    for size in range(len(sides) + 1):
        fitting = [
            chosen
            for chosen in itertools.combinations(sides, size)
            if math.prod(counts[name] for name in sides if name not in chosen) <= MOST_LINES
        ]
        if fitting:
            panel = min(fitting, key=lambda chosen: math.prod(counts[name] for name in chosen))
            return Panels(across, panel, tuple(name for name in sides if name not in panel), labels, first)
    return Panels(across, tuple(sides), (), labels, first)


class _Drawn:
    """A figure under construction."""

    def __init__(self, figure: go.Figure, panels: Panels, keys: Sequence[Key], count: int) -> None:
        self.figure, self.panels, self.count = figure, panels, count
        self.looks = {key: look.Line.number(place) for place, key in enumerate(dict.fromkeys(keys))}
        self.points: list[
            tuple[Sequence[SweepPoint], int]
        ] = []  # of each trace, and which of a band's columns it shows
        self.named: set[Key] = set()
        self.menu_height = 0.0

    def line(self, panel: int, place: int, key: Key, rows: Sequence[SweepPoint], name: str, alone: bool) -> None:
        """Draw a line, its band or the end of it that a promise needs, and its capacity if rates are on the x axis."""
        style, words = self.looks[key], _words(self.panels.line, key)
        rates = self.panels.across == "offered_tps"
        named = {"name": words or "layout", "legendgroup": words}
        shown = {
            "showlegend": bool(words) and not rates and key not in self.named,
            "customdata": [[*(row[each] for each in band_columns("capacity_tps")), row["bottleneck"]] for row in rows],
            "hovertemplate": "%{y:.3~g} at %{x:,}<br>capacity %{customdata[0]:,.0f} "
            "(%{customdata[1]:,.0f} to %{customdata[2]:,.0f}), %{customdata[3]} first",
        }
        for trace, column in _curve(rows, self.panels.across, name, style, alone, **named, **shown):
            self.figure.add_trace(trace, row=panel, col=1)
            self.points.append((rows, column))
        self.named.add(key)
        if rates:
            capacity, line = rows[0]["capacity_tps"], {"color": style.colour, "width": 1.5, "dash": "dot"}
            self.figure.add_vline(x=capacity, row=panel, col=1, line=line, layer="below")
            text = f"{words or 'capacity'}: {rate(capacity)}"
            look.word(self.figure, text, panel, capacity, 1 - 0.08 * place, style.colour, "right")

    def frame(self, name: str, text: Sequence[str], page: bool) -> None:
        """Set axes, title and legend."""
        rates, panels = self.panels.across == "offered_tps", self.count
        every = [row for rows, _ in self.points for row in rows]
        if rates:
            end = BESIDE * max(max(row["offered_tps"], row["capacity_tps"]) for row in every)
            across = {"title_text": "offered peak rate [per second]", **look.RATE_AXIS, "range": [0, end]}
            upward = look.latency_axis(_axis_title(self.panels.first))
        else:
            x = [row[self.panels.across] for row in every]
            across = {"title_text": self.panels.labels[self.panels.across], **_whole_ticks(x)}
            upward = {"title_text": CAPACITY, **look.RATE_AXIS}
        for row in range(1, panels + 1):
            self.figure.update_xaxes(**across, matches=None if row == 1 else "x", row=row, col=1)
            self.figure.update_yaxes(**upward, autorange=True, matches=None if row == 1 else "y", row=row, col=1)
        self.figure.update_annotations(font={"size": look.HEADING_SIZE}, x=0, xanchor="left", selector={"name": None})
        legend, above = self._legend_pixels(), panels > 1  # below a lone panel, where a gap is no gap
        top = (MENU_PIXELS if rates and page else 0) + (legend if above else 0) + HEADING_PIXELS
        bottom = BOTTOM_PIXELS + (0 if above else legend)
        inner = _inner(panels)
        self.menu_height = 1 + top / inner
        y = 1 + (legend + HEADING_PIXELS) / inner if above else -BOTTOM_PIXELS / inner
        place = look.above(yanchor="top", y=y, tracegroupgap=0)
        look.frame(self.figure, name, text, inner, page, top, bottom, margin_l=62, legend=place)

    def choose(self, choices: Sequence[str], slo: Sequence[str], page: bool) -> None:
        """Draw the objectives' limits and, on a page, a menu of the y-axis quantity, each with its limits."""
        limits: list[tuple[int, str]] = []
        for comparison in (each for text in slo for each in parse(text).comparisons()):
            column = f"{comparison.metric.subject}_{comparison.metric.statistic}_ms"
            for bound in comparison.bounds if column in choices else ():
                for row in range(1, self.count + 1):
                    limits.append((len(self.figure.layout.shapes), column))
                    shown = column == self.panels.first
                    self.figure.add_shape(look.objective_line(bound * 1e3), visible=shown, row=row, col=1)
        if page:
            self.figure.update_layout(updatemenus=[self._menu(choices, limits)])

    def _legend_pixels(self) -> int:
        """Return the height of the legend on a narrow screen; lines against the rate have their names beside them."""
        words = {_words(self.panels.line, key) for key in self.looks} - {""}
        return 20 * look.legend_rows(words) + 12 if self.panels.across != "offered_tps" else 0

    def _menu(self, choices: Sequence[str], limits: Sequence[tuple[int, str]]) -> dict[str, Any]:
        """Return the menu of the y-axis quantity."""
        axes = ["yaxis", *(f"yaxis{row}" for row in range(2, self.count + 1))]
        buttons = [
            {
                "label": _spoken(name),
                "method": "update",
                "args": [
                    {"y": [_values(rows, name, place) for rows, place in self.points]},
                    {f"{axis}.title.text": _axis_title(name) for axis in axes}
                    | {f"shapes[{place}].visible": name == column for place, column in limits},
                    list(range(len(self.points))),
                ],
            }
            for name in choices
        ]
        return {
            **{"buttons": buttons, "direction": "down", "font": {"size": look.SMALL_SIZE}},
            **{"active": list(choices).index(self.panels.first), "x": 0, "xanchor": "left"},
            **{"y": self.menu_height, "yanchor": "top"},
        }


_SYMBOLS = {"uncertain": "circle-open", "no": "x"}


def _curve(
    rows: Sequence[SweepPoint], across: str, shown: str, style: look.Line, alone: bool, **more: Any
) -> Iterator[tuple[go.Scatter, int]]:
    """Yield the traces of a figure against a column, each with the column of the band that it shows.

    A lone line has its whole band; of several, bands would hide each other, so each has a thin line at the end that a
    promise needs.
    """
    x, value, low, high = ([row[column] for row in rows] for column in (across, *band_columns(shown)))
    symbols = [_SYMBOLS.get(row["answer"], "circle") for row in rows] if across == "offered_tps" else "circle"
    line = {"mode": "lines+markers", "marker": {"size": 7, "symbol": symbols}, "connectgaps": False, **more}
    if alone:
        traces = look.curve(x, value, [low, high], look.pen(style), middle=value, **line)
        yield from zip(traces, (1, 2, 0), strict=True)
        return
    place = 1 if shown == "capacity_tps" else 2
    edge, pen = look.ends_drawn(low, high, value)[place - 1], look.pen(style, 1)
    thin = {"mode": "lines", "hoverinfo": "skip", "showlegend": False, "legendgroup": more["legendgroup"]}
    yield go.Scatter(x=x, y=edge, line=pen, **thin), place
    yield go.Scatter(x=x, y=look.drawn(value), line=look.pen(style), **line), 0


def _values(rows: Sequence[SweepPoint], name: str, place: int) -> list[Any]:
    """Return a trace's data for a figure: its values (0), or the low (1) or high (2) end of its band."""
    value, low, high = ([row[column] for row in rows] for column in band_columns(name))
    return look.ends_drawn(low, high, value)[place - 1] if place else look.drawn(value)


def _whole_ticks(values: Sequence[Any]) -> dict[str, Any]:
    """Return ticks at the values themselves if they are a few whole numbers, as there is no half node."""
    found = sorted({value for value in values if isinstance(value, int)})
    return {"tickvals": found} if 0 < len(found) <= MOST_TICKS and len(found) == len(set(values)) else {}


def _inner(panels: int) -> int:
    return PANEL_PIXELS * panels + GAP_PIXELS * (panels - 1)


def _spoken(name: str) -> str:
    request, statistic, _ = name.rsplit("_", 2)
    return f"{request} {'p99.9' if statistic == 'p999' else statistic}"


def _axis_title(name: str) -> str:
    return f"{_spoken(name)} [ms]"


def _text(rows: Sequence[SweepPoint], many_rates: bool, panels: int, slo: Sequence[str], lines: int) -> Iterator[str]:
    """Yield the paragraphs below the title: what is decided, what it rests on, and how to read the picture."""
    if many_rates:
        goal = f" with {', '.join(slo)} (dashed)" if slo else ""
        yield (
            f"Filled marks: the rate is carried{goal} at a risk of at most 10 %. Open marks: uncertain. Crosses: not "
            "carried."
        )
    ends = f"thin lines: the {'95th' if many_rates else '5th'} percentile of what a repeat would measure"
    ends = ends if lines > 1 else "shades: from the 5th to the 95th percentile"
    first, bases = rows[0], ", ".join(dict.fromkeys(row["basis"] for row in rows))
    ends += "; dotted: median capacities" * many_rates
    yield f"Basis: {bases}. Lines: medians; {ends}. Engine {first['engine']}, seed {first['seed']}."
    if panels > MOST_PANELS:
        yield f"The first {MOST_PANELS} of {panels} panels: the table has all."


def _key(row: SweepPoint, names: Sequence[str]) -> Key:
    return tuple(row[name] for name in names)


def _words(names: Sequence[str], key: Key) -> str:
    return ", ".join(_value(name, value) for name, value in zip(names, key, strict=True))


def _value(name: str, value: Any) -> str:
    """Return a field and its value as typed: `cass-nodes 6`, `ldap`, `no ldap`."""
    words = name.replace("_", "-")
    if value is None or isinstance(value, bool):
        return words if value else f"no {words}"
    return f"{words} {value:g}" if isinstance(value, float) else f"{words} {value}"
