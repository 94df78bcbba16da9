"""The plot of a sweep: latency against load, one line per layout with its band, and its capacity.

If neither rates nor loads were swept, it is capacity against what was. If there are more layouts than lines in a panel,
some of the swept fields make panels.
"""

from __future__ import annotations

import itertools
import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from capplan.calibration.system import System
from capplan.models.results import STATISTICS
from capplan.planner.explore.sweep_table import SweepPoint, band_columns, column_of, columns_of, layout_options
from capplan.planner.reports.plot_page import Line, faint, write_page

MOST_LINES = 8  # of a panel: more cannot be told apart
FEW_LINES = 4  # with shades of the usual darkness
MOST_PANELS = 24  # of a page
MOST_POINTS = 6000  # with a choice of all statistics: the page holds each of them
PANEL_PIXELS, GAP_PIXELS = 330, 75
BOTTOM_PIXELS, TITLE_PIXELS, MENU_PIXELS, HEADING_PIXELS = 60, 50, 46, 25
LINE_PIXELS = 16  # of the text below the title
NARROW = 58  # characters of small text, and
NARROW_PIXELS = 330  # of a legend, that fit into the width of a telephone
TICKS_MS = [digit * 10.0**power for power in range(-3, 6) for digit in (1, 2, 5)]
Key = tuple[Any, ...]


@dataclass(frozen=True)
class Panels:
    """How the points are spread.

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


def write_plot(rows: Sequence[SweepPoint], system: System[Any], target: str, path: Path) -> None:
    """Write the plot of a sweep to an HTML file, which is there in full or not at all.

    Raises
    ------
    InputError
        When the file cannot be written.
    """
    write_page(plot(rows, system, target), f"{target}: sweep", path)


def plot(rows: Sequence[SweepPoint], system: System[Any], target: str) -> go.Figure:
    """Return the figure: latency against load, or capacity against a swept field if one rate was looked at."""
    answered = [row for row in rows if row["refused"] is None]
    labels = {column_of(name, option): option.label for name, option in layout_options(system.scenario).items()}
    swept = [name for name in labels if len({row[name] for row in answered}) > 1]
    many_rates = len(answered) > len({_key(row, tuple(swept)) for row in answered})
    classes = [name for name in system.reported if any(row[f"{name}_p99_ms"] is not None for row in answered)]
    many_rates = many_rates and bool(classes)
    numbers = [name for name in swept if columns_of(system)[name] in ("Int64", "Float64")]
    across = (
        "offered_tps"
        if many_rates
        else max(numbers or swept or list(labels)[:1], key=lambda name: _count(answered, name))
    )
    panels = _panels(answered, swept, across, labels, f"{classes[-1] if classes else ''}_p99_ms")
    split = panels.split(answered)
    shown = dict(itertools.islice(split.items(), MOST_PANELS))
    figure = make_subplots(
        rows=len(shown),
        cols=1,
        subplot_titles=[_words(panels.panel, key) for key in shown],
        shared_yaxes="all",
        vertical_spacing=GAP_PIXELS / _inner(len(shown)) if len(shown) > 1 else 0,
    )
    drawn = _Drawn(figure, panels, [key for lines in shown.values() for key in lines])
    for number, lines in enumerate(shown.values(), start=1):
        for key, points in lines.items():
            drawn.line(number, key, points, panels.first if many_rates else "capacity_tps")
    text = _text(answered, many_rates, len(split))
    drawn.look(len(shown), target, text, _choices(answered, classes) if many_rates else ())
    return figure


def _count(rows: Sequence[SweepPoint], column: str) -> int:
    return len({row[column] for row in rows})


def _panels(
    rows: Sequence[SweepPoint], swept: Sequence[str], across: str, labels: Mapping[str, str], first: str
) -> Panels:
    """Choose the fewest panels of lines that can be told apart."""
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
    """A figure while it is drawn."""

    def __init__(self, figure: go.Figure, panels: Panels, keys: Sequence[Key]) -> None:
        self.figure, self.panels = figure, panels
        self.looks = {key: Line.number(place) for place, key in enumerate(dict.fromkeys(keys))}
        self.points: list[
            tuple[Sequence[SweepPoint], int]
        ] = []  # of each trace, and which of a band's columns it shows
        self.named: set[Key] = set()
        self.shade = 0.18 if len(self.looks) <= FEW_LINES else 0.09

    def line(self, panel: int, key: Key, rows: Sequence[SweepPoint], name: str) -> None:
        """Draw a line with its band, and its capacity where rates are along the x axis."""
        look, words = self.looks[key], _words(self.panels.line, key)
        shared = {"x": [row[self.panels.across] for row in rows], "legendgroup": words, "connectgaps": False}
        for place, (edge, fill) in ((1, ("low", None)), (2, ("high", "tonexty"))):
            shade = go.Scatter(
                **shared,
                y=[row[f"{name}_{edge}"] for row in rows],
                mode="lines",
                line={"width": 0},
                fill=fill,
                fillcolor=faint(look.colour, self.shade),
                showlegend=False,
                hoverinfo="skip",
            )
            self._add(shade, panel, rows, place)
        middle = go.Scatter(
            **shared,
            y=[row[name] for row in rows],
            name=words or "layout",
            mode="lines+markers",
            line={"color": look.colour, "dash": look.dash, "width": 2},
            marker={"size": 5},
            showlegend=bool(words) and key not in self.named,
            customdata=[[row["capacity_tps"], row["bottleneck"]] for row in rows],
            hovertemplate="%{y:.3~g} at %{x:,}<br>capacity %{customdata[0]:,.0f}, %{customdata[1]} first",
        )
        self._add(middle, panel, rows, 0)
        self.named.add(key)
        if self.panels.across == "offered_tps":
            self._capacity(panel, rows[0]["capacity_tps"], look)

    def _add(self, trace: go.Scatter, panel: int, rows: Sequence[SweepPoint], place: int) -> None:
        self.figure.add_trace(trace, row=panel, col=1)
        self.points.append((rows, place))

    def _capacity(self, panel: int, capacity: float, look: Line) -> None:
        self.figure.add_vline(
            x=capacity, row=panel, col=1, line={"color": look.colour, "width": 1.5, "dash": "dot"}, layer="below"
        )

    def look(self, panels: int, target: str, text: Sequence[str], choices: Sequence[str]) -> None:
        """Set axes, title, legend and menu."""
        rates = self.panels.across == "offered_tps"
        grid = {"showgrid": True, "gridcolor": "#E5E5E5", "zeroline": False, "linecolor": "#888888", "showline": True}
        across = {"title_text": "offered peak rate [per second]", "rangemode": "tozero", "tickformat": "~s"}
        if not rates:
            across = {"title_text": self.panels.labels[self.panels.across]}
        upward = {
            "title_text": _axis_title(self.panels.first),
            "type": "log",
            "tickvals": TICKS_MS,
            "ticktext": _texts(TICKS_MS),
        }
        if not rates:
            upward = {"title_text": "capacity [per second]", "rangemode": "tozero", "tickformat": "~s"}
        self.figure.update_xaxes(**grid, **across)
        self.figure.update_yaxes(**grid, **upward)
        self.figure.update_annotations(font={"size": 15}, x=0, xanchor="left")
        legend, above = self._legend_pixels(), panels > 1  # below a lone panel, where a gap is no gap
        menu = TITLE_PIXELS + LINE_PIXELS * len(text)
        top = menu + (MENU_PIXELS if choices else 0) + (legend if above else 0) + HEADING_PIXELS
        bottom = BOTTOM_PIXELS + (0 if above else legend)
        inner = _inner(panels)
        place = 1 + (legend + HEADING_PIXELS) / inner if above else -BOTTOM_PIXELS / inner
        self.figure.update_layout(
            template="plotly_white",
            height=top + inner + bottom,
            margin={"l": 62, "r": 16, "t": top, "b": bottom},
            font={"size": 13, "color": "#222222"},
            hovermode="closest",
            title={
                "text": target + "".join(f"<br><sup>{line}</sup>" for line in text),
                **{"x": 0.01, "xanchor": "left", "yref": "container", "yanchor": "top", "font": {"size": 17}},
                "y": 1 - 14 / (top + inner + bottom),
            },
            legend={
                **{"orientation": "h", "x": 0, "xanchor": "left", "yanchor": "top", "font": {"size": 12}},
                **{"y": place, "tracegroupgap": 0},
            },
            updatemenus=[self._menu(choices, 1 + (top - menu) / inner)] if choices else [],
        )

    def _legend_pixels(self) -> int:
        """Return how high the legend is on a narrow screen."""
        labels = [len(_words(self.panels.line, key)) * 7 + 50 for key in self.looks if self.panels.line]
        a_row = max(1, NARROW_PIXELS // max(labels, default=1))
        return 20 * math.ceil(len(labels) / a_row) + 12

    def _menu(self, choices: Sequence[str], height: float) -> dict[str, Any]:
        """Return the choice of what is along the y axis."""
        buttons = [
            {
                "label": _spoken(name),
                "method": "update",
                "args": [
                    {"y": [[row[band_columns(name)[place]] for row in rows] for rows, place in self.points]},
                    {"yaxis.title.text": _axis_title(name)},
                ],
            }
            for name in choices
        ]
        shown = {
            "active": list(choices).index(self.panels.first),
            "x": 0,
            "xanchor": "left",
            "y": height,
            "yanchor": "top",
        }
        return {"buttons": buttons, "direction": "down", "font": {"size": 12}, **shown}


def _inner(panels: int) -> int:
    return PANEL_PIXELS * panels + GAP_PIXELS * (panels - 1)


def _choices(rows: Sequence[SweepPoint], classes: Sequence[str]) -> list[str]:
    """Return the columns that can be chosen: all latencies, or one a class where that made a page too large."""
    statistics = STATISTICS if len(rows) <= MOST_POINTS else ("p99",)
    return [f"{name}_{statistic}_ms" for name in classes for statistic in statistics]


def _spoken(name: str) -> str:
    request, statistic, _ = name.rsplit("_", 2)
    return f"{request} {'p99.9' if statistic == 'p999' else statistic}"


def _texts(numbers: Sequence[float]) -> list[str]:
    return [f"{number:,.10g}" for number in numbers]


def _axis_title(name: str) -> str:
    return f"{_spoken(name)} [ms]"


def _text(rows: Sequence[SweepPoint], many_rates: bool, panels: int) -> list[str]:
    first = rows[0]
    caption = "Latency against load. Line: median, shade: from the 5th to the 95th percentile, dotted: median capacity."
    if not many_rates:
        caption = "Capacity. Line: median, shade: from the 5th to the 95th percentile."
    caption += f" Engine {first['engine']}, seed {first['seed']}."
    if panels > MOST_PANELS:
        caption += f" The first {MOST_PANELS} of {panels} panels: the table has all."
    return textwrap.wrap(caption, NARROW)


def _key(row: SweepPoint, names: Sequence[str]) -> Key:
    return tuple(row[name] for name in names)


def _words(names: Sequence[str], key: Key) -> str:
    return ", ".join(_value(name, value) for name, value in zip(names, key, strict=True))


def _value(name: str, value: Any) -> str:
    """Return a field and its value, as they are typed: `cass-nodes 6`, `ldap`, `no ldap`."""
    words = name.replace("_", "-")
    if value is None or isinstance(value, bool):
        return words if value else f"no {words}"
    return f"{words} {value:g}" if isinstance(value, float) else f"{words} {value}"
