"""A validation as a page, its figures, and the files of both."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from html import escape
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import pandas as pd
import plotly.graph_objects as go
from jinja2 import Environment, PackageLoader, StrictUndefined
from markdown_it import MarkdownIt
from markupsafe import Markup
from plotly.offline import get_plotlyjs
from plotly.subplots import make_subplots

from capplan.calibration.validation.validation import CLOSE, MODEL, Score, Validation, goals_of_all
from capplan.models.errors import InputError
from capplan.models.files import replace_file
from capplan.models.number_words import banded, in_unit, per_cent, share, signed, significant, tenths, with_unit
from capplan.reports.figure import COLOURS, faint
from capplan.systems.registry import system

ALL = "all"
TITLE = "How far capplan can be trusted"
MANY = 16  # rows of a table that is folded away
LISTED = 6  # figures of a scenario that are named one by one
WIDTH = 120
Picture = Callable[[str, str], str]
"""Returns the Markdown that shows a figure, from its name (a system or `all`) and what it shows, in words."""
Row = Mapping[str, Any]
"""A row of `Validation.to_frame`."""


def page(
    reports: Sequence[Validation],
    picture: Picture = lambda _, about: about,
    more: Mapping[str, str] | None = None,
    made_by: str = "",
    *,
    terminal: bool = False,
) -> str:
    """Return validations in Markdown.

    Parameters
    ----------
    reports : sequence of Validation
        Of one system or several.
    picture : function
        Returns the Markdown that shows a figure, from its name (a system or `all`) and what it shows, in words.
    more : dict of str
        What else to say of a system, by its name: a sentence in Markdown.
    made_by : str
        A sentence in Markdown that says where the page comes from.
    terminal : bool
        Whether it is for a terminal: nothing folded, no figures, no explanations; details where there is one system.

    Returns
    -------
    str
        The Markdown. Names and sentences from data cannot end a cell or open a tag.
    """
    shared_goals = goals_of_all(reports) if len(reports) > 1 else ()
    values = {
        **{"reports": reports, "terminal": terminal, "title": TITLE, "made_by": made_by, "more": more or {}},
        **{"picture": picture, "all": ALL, "many": MANY, "listed": LISTED, "shared_goals": shared_goals},
        "judged": [met for each in reports for met in judged_of(each)] + [goal.met for goal in shared_goals],
    }
    text = environment().get_template("validation.md.jinja").render(values)
    text = re.sub(r"(?<=\d) ?(%|(?<= )ms\b)", r" \1" if terminal else "\u00a0\\1", text)  # a number and its unit
    return "\n\n".join(map(_wrapped, re.split(r"\n{2,}", text.strip()))) + "\n"


@cache
def environment() -> Environment:
    """Return the template environment."""
    made = Environment(
        loader=PackageLoader("capplan.reports"),
        autoescape=True,
        finalize=_escaped,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for form in (share, signed, per_cent, significant, tenths, in_unit, with_unit, banded):
        made.filters[form.__name__] = form
    made.filters |= {"rows": rows_of, "judged": judged_of, "close": close_of, "off": _off, "by": _by, "rules": _rules}
    made.filters |= {"largest_error": _largest_error, "median_errors": _median_errors, "best_rule": best_rule}
    made.filters |= {"not_counted": not_counted, "removeprefix": str.removeprefix}
    made.tests |= {"finite": math.isfinite, "all": all, "beside_rules": lambda row: bool(_rules([row]))}
    return made


def _escaped(value: object) -> Markup:
    """Escape text from data, so that it cannot open a tag or end a table cell."""
    if isinstance(value, Markup):
        return value
    return Markup(escape(str(value), quote=False).replace("|", "&#124;"))  # noqa: S704 - it is escaped


def _wrapped(part: str) -> str:
    """Break the lines of a paragraph; leave tables, lists, headings and tags as they are."""
    if part.startswith(("#", "|", "-", "<", "!")):
        return part
    return "\n".join(textwrap.wrap(part, WIDTH, break_long_words=False, break_on_hyphens=False))


def rows_of(report: Validation) -> list[dict[str, Any]]:
    """Return the rows of a validation's table."""
    return [{str(name): cell for name, cell in row.items()} for row in report.to_frame().to_dict("records")]


def judged_of(report: Validation) -> list[bool]:
    """Return whether each goal is met: first those of single figures, then the shared ones."""
    return [each.met for each in report.figures if each.met is not None] + [goal.met for goal in report.goals]


def close_of(report: Validation) -> list[bool]:
    """Return whether each sound figure is met within 10 % or its own rounding."""
    return [each.close(CLOSE) for each in report.figures if each.sound]


def best_rule(scores: Mapping[str, Score], by: str = "error") -> str | None:
    """Return the simple rule with the smallest error or interval score; None if no rule has one."""
    found = {name: getattr(score, by) for name, score in scores.items() if name != MODEL}
    return min((name for name in found if math.isfinite(found[name])), key=lambda name: found[name], default=None)


def not_counted(report: Validation) -> list[tuple[str, str, list[str]]]:
    """Return how figures outside fit or score are used, why, and their ids."""
    found: dict[tuple[str, str], list[str]] = {}
    left_out = {each.id for each in report.left_out}
    for row in (row for test in system(report.system).observations.load_tests() for row in test.rows):
        why = row.reason or "no reason is given"
        if row.use != "fit":
            found.setdefault(("Compared, not fitted", why), []).append(row.id)
        elif row.status != "measured" and row.id not in left_out:
            found.setdefault(("Fitted, not scored", why), []).append(row.id)
    for each in report.left_out:
        if not each.counts:
            found.setdefault(("Left out, not scored", each.not_scored), []).append(each.id)
    return [(what, why[:1].upper() + why[1:].removesuffix(".") + ".", ids) for (what, why), ids in found.items()]


def _off(rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if row["met"] is False or (row["sound"] and not row["close"])]


def _by(rows: Iterable[Row], name: str) -> list[tuple[str, list[Row]]]:
    """Group rows by a column's value, keeping their order."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row[name], []).append(row)
    return list(found.items())


def _largest_error(rows: Iterable[Row]) -> Row:
    return max(rows, key=lambda row: abs(row["error"]))


def _rules(rows: Iterable[Row]) -> list[str]:
    """Return the rules that estimate at least one of the figures."""
    errors = ((name, cell) for row in rows for name, cell in row.items() if name.endswith("_error"))
    found = (name.removesuffix("_error") for name, cell in errors if math.isfinite(cell))
    return [name for name in dict.fromkeys(found) if name != "left_out"]


def _median_errors(rows: Sequence[Row]) -> list[float]:
    """Return the median absolute error of capplan and of each rule."""
    return [median(abs(row[f"{name}_error"]) for row in rows) for name in ("left_out", *_rules(rows))]


MARKDOWN, HTML = "validation.md", "validation.html"
_ID = re.compile(r'(?<=<td style="text-align:left">)[a-z][\w.-]*(?=</td>)')  # breaks where it is narrow
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x", "star", "triangle-down")
GREY = "#555555"
MARGIN = 0.05  # of the length of an axis, beyond what it shows
LEAST = 1.12  # times as far as the outermost of them an axis goes at least: the ribbon is seen
SILLY = 2.0  # times beyond all figures and predictions, where a band is cut
FURTHEST = 0.6  # relative error at the edge of the figure of all systems
PANEL_PIXELS, GAP_PIXELS, TOP_PIXELS, BOTTOM_PIXELS, ENTRY_PIXELS = 380, 95, 42, 62, 21
HEADING_PIXELS = 26
ROW_PIXELS = 62  # of a system in the figure of all
TICK_DIGITS = ((1.0,), (1.0, 3.0), (1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0))
NARROW = 4.0  # ends of an axis that are so close, one over the other, have ticks as far from one another
FEW_TICKS, FEW_STEPS, MANY_TICKS = 4, 3, 6
PANELS = {"1/s": "rates [per second]", "s": "times [ms]"}
COUNTED = {"cpu": "cores", "ratio": "ratios", "clients": "numbers of clients"}
"""What a number without a unit counts, by a part of what its quantity is called."""
RINGED = "missed by its band"


class _Axis(NamedTuple):
    """The common range and ticks of both axes of a panel."""

    low: float
    high: float

    @property
    def range(self) -> list[float]:
        """Return the range as powers of ten."""
        return [_round(math.log10(self.low)), _round(math.log10(self.high))]

    @property
    def ticks(self) -> list[float]:
        """Return the coarsest ticks that are numerous enough."""
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        if self.high / self.low < NARROW:
            steps = [digit * 10.0**power for power in reversed(powers) for digit in (5, 2, 1)]
            steps += [step / 100 for step in steps]
            step = next(step for step in steps if (self.high - self.low) / step >= FEW_STEPS)
            places = range(math.ceil(self.low / step), int(self.high / step) + 1)
            return [_round(step * place) for place in places][:: 1 if len(places) <= MANY_TICKS else 2]
        found: list[float] = []
        for digits in TICK_DIGITS:
            found = [digit * 10.0**power for power in powers for digit in digits]
            found = [tick for tick in found if self.low <= tick <= self.high]
            if len(found) >= FEW_TICKS:
                break
        return found


def _round(number: float) -> float:
    return float(f"{number:.4g}")


def _rounded(numbers: pd.Series[float]) -> list[float]:
    return [_round(number) for number in numbers]


def predicted_against_documented(report: Validation) -> go.Figure | None:
    """Return a system's figure, with panels of rates, times and other counts; None if there are no figures.

    Each figure that was left out is a point with its 90 % band, open where it counts in no score, ringed where the band
    missed it.
    """
    rows = left_out_rows(report)
    panels = [_Panel(str(unit), those) for unit, those in rows.groupby("unit", sort=False)]
    if not panels:
        return None
    figure = make_subplots(
        rows=len(panels),
        cols=1,
        subplot_titles=[panel.title for panel in panels],
        vertical_spacing=GAP_PIXELS / _inner(len(panels)) if len(panels) > 1 else 0,
    )
    groups = list(rows["group"].unique())
    for place, panel in enumerate(panels, start=1):
        axis = panel.axis
        drawn = [*_guides(axis, place == 1), *_points(panel, groups), *_rings(panel)]
        figure.add_traces(drawn, rows=place, cols=1)
        ends: dict[str, Any] = {"type": "log", "range": axis.range, "tickvals": axis.ticks}
        ends |= {"ticktext": [_tick(tick) for tick in axis.ticks], "tickangle": 0}
        figure.update_xaxes(title_text="documented", **ends, row=place, col=1)
        figure.update_yaxes(title_text="predicted", **ends, row=place, col=1)
    _show_once(figure)
    _look(figure, f"{report.system}: left-out figures", _inner(len(panels)), _note(report, panels))
    return figure


def left_out_rows(report: Validation) -> pd.DataFrame:
    """Return the rows of the left-out figures."""
    rows = report.to_frame()
    return rows[rows["fold"].notna()]


class _Panel(NamedTuple):
    """The left-out figures with one unit."""

    unit: str
    rows: pd.DataFrame

    @property
    def title(self) -> str:
        """Return the panel's title: the unit or, for plain numbers, what they count."""
        if self.unit in PANELS:
            return PANELS[self.unit]
        counted = self.rows["quantity"].unique()
        words = [next((word for part, word in COUNTED.items() if part in each), each) for each in counted]
        return ", ".join(dict.fromkeys(words))

    @property
    def axis(self) -> _Axis:
        """Return an axis for documented and predicted values, and for bands that are not absurdly wide."""
        values = self.shown(self.rows)
        both = values[["documented", "left_out"]].to_numpy()
        low = min(max(values["left_out_low"].min(), both.min() / SILLY), both.min() / LEAST)
        high = max(min(values["left_out_high"].max(), both.max() * SILLY), both.max() * LEAST)
        margin = (high / low) ** MARGIN
        return _Axis(low / margin, high * margin)

    def shown(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the values of rows in the axes' unit."""
        numbers = rows[["documented", "left_out", "left_out_low", "left_out_high"]]
        return numbers * (1e3 if self.unit == "s" else 1.0)


def _tick(number: float) -> str:
    return f"{number / 1e3:.10g}k" if number >= 1e3 else f"{number:.10g}"


def _guides(axis: _Axis, shown: bool) -> Iterator[go.Scatter]:
    """Yield the ten per cent band, and the line where prediction equals document."""
    ends = [_round(axis.low / 2), _round(axis.high * 2)]
    yield go.Scatter(
        x=[*ends, *reversed(ends)],
        y=[_round(end * (1 - CLOSE)) for end in ends] + [_round(end * (1 + CLOSE)) for end in reversed(ends)],
        **{"mode": "lines", "line": {"width": 0}, "fill": "toself", "fillcolor": faint("#000000", 0.09)},
        **{"name": "within 10 %", "hoverinfo": "skip", "showlegend": shown},
    )
    yield go.Scatter(
        x=ends,
        y=ends,
        **{"mode": "lines", "line": {"color": GREY, "width": 1, "dash": "dot"}},
        **{"name": "predicted = documented", "hoverinfo": "skip", "showlegend": shown},
    )


def _points(panel: _Panel, groups: Sequence[str]) -> Iterator[go.Scatter]:
    for place, group in enumerate(groups):
        its = panel.rows[panel.rows["group"] == group]
        for counts in (True, False):
            chosen = its[(its["not_scored"] == "") == counts]
            if len(chosen):
                yield _group(panel, chosen, place, counts)


def _group(panel: _Panel, rows: pd.DataFrame, place: int, counts: bool) -> go.Scatter:
    colour, symbol = COLOURS[place % len(COLOURS)], SYMBOLS[place % len(SYMBOLS)]
    numbers, group = panel.shown(rows), rows["group"].iloc[0]
    return go.Scatter(
        x=_rounded(numbers["documented"]),
        y=_rounded(numbers["left_out"]),
        error_y={
            **{"type": "data", "symmetric": False, "color": colour, "thickness": 1.2, "width": 3},
            "array": _rounded(numbers["left_out_high"] - numbers["left_out"]),
            "arrayminus": _rounded(numbers["left_out"] - numbers["left_out_low"]),
        },
        **{"mode": "markers", "name": group if counts else f"{group}, not counted"},
        marker={"color": colour, "symbol": symbol if counts else f"{symbol}-open", "size": 8},
        customdata=[
            [name, significant(low), significant(high)]
            for name, low, high in zip(rows["name"], numbers["left_out_low"], numbers["left_out_high"], strict=True)
        ],
        hovertemplate="%{customdata[0]}<br>documented %{x:,.4~g}<br>predicted %{y:,.4~g} (%{customdata[1]} to "
        "%{customdata[2]})<extra></extra>",
    )


def _rings(panel: _Panel) -> Iterator[go.Scatter]:
    """Yield rings around the figures outside their bands."""
    numbers = panel.shown(panel.rows[panel.rows["held"] == False])  # noqa: E712 - of a column
    if len(numbers):
        yield go.Scatter(
            x=_rounded(numbers["documented"]),
            y=_rounded(numbers["left_out"]),
            **{"mode": "markers", "name": RINGED, "hoverinfo": "skip"},
            marker={"symbol": "circle-open", "size": 18, "color": "#000000", "line": {"width": 2}},
        )


def _show_once(figure: go.Figure) -> None:
    """Show each name once in the legend, even if it occurs in several panels."""
    seen: set[str] = set()
    for trace in figure.data:
        trace.showlegend = trace.showlegend is not False and trace.name not in seen
        trace.legendgroup = trace.name
        trace.legendrank = 2000 if trace.name == RINGED else 1000
        seen.add(trace.name)


def _note(report: Validation, panels: Sequence[_Panel]) -> list[str]:
    """Add a note on the marks and on the number of bands that end beyond the axes."""
    cut = 0
    for panel in panels:
        axis, numbers = panel.axis, panel.shown(panel.rows)
        cut += int(((numbers["left_out_low"] < axis.low) | (numbers["left_out_high"] > axis.high)).sum())
    found = report.coverage
    text = [f"bars: 90 % bands, {found.held} of {found.figures} scored held"]
    beyond = "1 band goes on beyond the axes" if cut == 1 else f"{cut} bands go on beyond the axes"
    return [*text, beyond] if cut else text


def errors_of_all(reports: Sequence[Validation]) -> go.Figure | None:
    """Return the figure of signed errors of left-out figures: capplan, and below it the system's best rule."""
    scored = [report for report in reports if len(_scored(report))]
    if not scored:
        return None
    figure = go.Figure()
    places = {report.system: -float(number) for number, report in enumerate(scored)}
    height = ROW_PIXELS * len(scored)
    figure.add_traces([*_error_guides(-len(scored) + 0.5, 0.5)])
    for report in scored:
        figure.add_trace(_errors(report, MODEL, places[report.system] + 0.17))
        if rule := best_rule(report.scores):
            figure.add_trace(_errors(report, rule, places[report.system] - 0.17))
    _show_once(figure)
    figure.update_yaxes(
        tickvals=list(places.values()),
        ticktext=[f"{each.system}<br>{_small('rule: ' + (best_rule(each.scores) or 'none'))}" for each in scored],
        range=[-len(scored) + 0.5, 0.5],
    )
    ticks = [-0.5, -0.25, 0, 0.25, 0.5]
    figure.update_xaxes(title_text="relative error [%]", range=[-FURTHEST - 0.04, FURTHEST + 0.04], tickvals=ticks)
    figure.update_xaxes(ticktext=[f"{tick * 100:+g}" if tick else "0" for tick in ticks])
    beyond = sum(symbol.startswith("triangle") for trace in figure.data for symbol in trace.marker.symbol or ())
    note = [f"triangles: errors beyond {share(FURTHEST)} ({beyond})"] if beyond else []
    _look(figure, "Errors of left-out figures", height, note, heading=0)
    figure.update_layout(margin={"l": 105})
    return figure


def _scored(report: Validation) -> pd.DataFrame:
    """Return the figures that scores use; if no rule estimates any, those that count."""
    counted = left_out_rows(report).query("not_scored == ''")
    beside = counted.filter(regex="^(?!left_out_).+_error$").notna().any(axis=1)
    return counted[beside] if beside.any() else counted


def _error_guides(low: float, high: float) -> Iterator[go.Scatter]:
    yield go.Scatter(
        x=[-CLOSE, CLOSE, CLOSE, -CLOSE],
        y=[low, low, high, high],
        **{"mode": "lines", "line": {"width": 0}, "fill": "toself", "fillcolor": faint("#000000", 0.09)},
        **{"name": "within 10 %", "hoverinfo": "skip"},
    )


def _errors(report: Validation, name: str, height: float) -> go.Scatter:
    own, chosen = name == MODEL, _scored(report)
    errors = chosen["left_out_error" if own else f"{name}_error"]
    symbols = ["triangle-left" if e < -FURTHEST else "triangle-right" if e > FURTHEST else "" for e in errors]
    return go.Scatter(
        x=_rounded(errors.clip(-FURTHEST, FURTHEST)),
        y=[_round(height)] * len(errors),
        **{"mode": "markers", "name": MODEL if own else "best rule"},
        marker={
            **{"color": COLOURS[0] if own else COLOURS[1], "size": 9, "opacity": 0.75},
            "symbol": [symbol or ("circle" if own else "diamond-open") for symbol in symbols],
        },
        customdata=[[each, f"{error:+.1%}"] for each, error in zip(chosen["name"], errors, strict=True)],
        hovertemplate=f"{name}: %{{customdata[1]}}<br>%{{customdata[0]}}<extra></extra>",
    )


def _small(text: str) -> str:
    return f"<span style='font-size: 12px'>{text}</span>"


def _inner(panels: int) -> int:
    return PANEL_PIXELS * panels + GAP_PIXELS * (panels - 1)


def _look(figure: go.Figure, title: str, inner: int, note: Sequence[str], heading: int = HEADING_PIXELS) -> None:
    """Set axes, title, and a legend below with one entry per line, equally high on narrow and wide screens."""
    entries = sum(trace.showlegend is not False for trace in figure.data)
    bottom, top = BOTTOM_PIXELS + ENTRY_PIXELS * entries, TOP_PIXELS + 16 * len(note) + heading
    grid = {"showgrid": True, "gridcolor": "#E5E5E5", "zeroline": False, "linecolor": "#888888", "showline": True}
    figure.update_xaxes(**grid)
    figure.update_yaxes(**grid)
    figure.update_annotations(font={"size": 15}, x=0, xanchor="left")
    figure.update_layout(
        template="plotly_white",
        height=top + inner + bottom,
        margin={"l": 66, "r": 16, "t": top, "b": bottom},
        font={"size": 13, "color": "#222222", "family": "sans-serif"},
        hovermode="closest",
        title={
            "text": title + "".join(f"<br>{_small(line)}" for line in note),
            **{"x": 0.01, "xanchor": "left", "yref": "container", "yanchor": "top", "font": {"size": 17}},
            "y": 1 - 14 / (top + inner + bottom),
        },
        legend={
            **{"orientation": "v", "x": 0, "xanchor": "left", "yanchor": "top", "y": -(BOTTOM_PIXELS - 8) / inner},
            **{"font": {"size": 12}, "tracegroupgap": 0},
        },
    )


def figures(reports: Sequence[Validation]) -> dict[str, go.Figure]:
    """Return a report's figures, by system and `all`."""
    made = {ALL: errors_of_all(reports), **{each.system: predicted_against_documented(each) for each in reports}}
    return {name: figure for name, figure in made.items() if figure is not None}


def write_report(reports: Sequence[Validation], folder: Path) -> tuple[Path, Path]:
    """Write the report to a folder, created if necessary, as Markdown and HTML; return both files.

    Each file is there in full or not at all.

    Raises
    ------
    InputError
        When they cannot be written.
    """
    text, drawn = folder / MARKDOWN, folder / HTML
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder} cannot be made: {error.strerror}") from None
    replace_file(text, page(reports, lambda name, about: f"[{about}]({HTML}#{name})"))
    replace_file(drawn, html(reports))
    return text, drawn


def html(reports: Sequence[Validation]) -> str:
    """Return the page as self-contained HTML with text, tables, figures and their scripts."""
    drawn = figures(reports)
    markdown = page(reports, lambda name, _: _marker(name) if name in drawn else "")
    body = str(MarkdownIt("commonmark", {"html": True}).enable("table").render(markdown))
    body = _ID.sub(lambda found: re.sub(r"([._])", r"\1<wbr>", found[0]), body)
    config = {"displaylogo": False, "responsive": True}
    for name, figure in drawn.items():
        shown = figure.to_html(include_plotlyjs=False, full_html=False, config=config, div_id=name)
        body = body.replace(_marker(name), str(shown))
    title = f"{TITLE}: {', '.join(each.system for each in reports)}"
    return environment().get_template("page.html.jinja").render(title=title, plotly=get_plotlyjs(), body=body)


def _marker(name: str) -> str:
    return f"<!-- figure {name} -->"
