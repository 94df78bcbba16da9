"""A validation as a page, its figures, and the files of both."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from html import escape
from pathlib import Path
from statistics import median
from typing import Any

import pandas as pd
import plotly.express as px
import plotly.graph_objects as go
from jinja2 import Environment
from markdown_it import MarkdownIt
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from capplan.answers.number_words import banded, in_unit, per_cent, share, signed, significant, tenths, with_unit
from capplan.calibration.validation.validation import CLOSE, MODEL, Score, Validation, goals_of_all
from capplan.errors import InputError
from capplan.files import replace_file
from capplan.grouped import grouped
from capplan.reports import pages
from capplan.reports.figure import COLOURS, frame
from capplan.systems.registry import system

TITLE = "How far capplan can be trusted"
MANY = 16  # rows of a table that is folded away
LISTED = 6  # figures of a scenario that are named one by one
WIDTH = 120
NARROW = 58  # characters of a figure's text that fit into the width of a telephone
Picture = Callable[[str, str], str]
"""Returns the Markdown that shows a figure, from its name, which is a system, and what it shows, in words."""
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
        Returns the Markdown that shows a figure, from its name, which is a system, and what it shows, in words.
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
        **{"picture": picture, "many": MANY, "listed": LISTED, "shared_goals": shared_goals},
        "judged": [met for each in reports for met in judged_of(each)] + [goal.met for goal in shared_goals],
    }
    text = environment().get_template("validation.md.jinja").render(values)
    text = re.sub(r"(?<=\d) ?(%|(?<= )ms\b)", r" \1" if terminal else "\u00a0\\1", text)  # a number and its unit
    return "\n\n".join(map(_wrapped, re.split(r"\n{2,}", text.strip()))) + "\n"


@cache
def environment() -> Environment:
    """Return the template environment."""
    made = pages.environment(_escaped)
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
    return list(grouped(rows, lambda row: row[name]).items())


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
BEYOND = 3.0
"""Ratio at the edge of a figure; what lies beyond is drawn there."""
PANEL_PIXELS, ENTRY_PIXELS = 320, 21
PANELS = {"1/s": "rates, per second", "s": "times, ms"}
MISSED = "missed"


def figures(reports: Sequence[Validation]) -> dict[str, go.Figure]:
    """Return a figure for each system with left-out figures."""
    made = {each.system: predicted_over_documented(each) for each in reports}
    return {name: figure for name, figure in made.items() if figure is not None}


def predicted_over_documented(report: Validation) -> go.Figure | None:
    """Return a system's left-out figures with their 90 % bands, as ratios to what is documented; None without any."""
    rows = report.to_frame().query("fold.notna()")
    if rows.empty:
        return None
    value, low, high = (
        (rows[name] / rows["documented"]).clip(1 / BEYOND, BEYOND)
        for name in ("left_out", "left_out_low", "left_out_high")
    )
    shown = pd.DataFrame(
        {
            "documented": rows["documented"] * rows["unit"].map({"s": 1e3}).fillna(1.0),
            "predicted / documented": value,
            "above": high - value,
            "below": value - low,
            "figure": rows["name"],
            "group": rows["group"].where(rows["not_scored"] == "", rows["group"] + ", not counted"),
            "band": rows["held"].map({False: MISSED}).fillna("held"),
            "unit": rows["unit"].map(PANELS).fillna("other figures"),
        }
    )
    figure = px.scatter(
        shown,
        **{"x": "documented", "y": "predicted / documented", "error_y": "above", "error_y_minus": "below"},
        **{"color": "group", "symbol": "band", "symbol_map": {"held": "circle", MISSED: "x"}, "facet_row": "unit"},
        **{"log_x": True, "log_y": True, "hover_name": "figure", "color_discrete_sequence": COLOURS},
        range_y=[0.95 / BEYOND, 1.05 * BEYOND],
    )
    figure.update_xaxes(matches=None, showticklabels=True, tickangle=0, nticks=4)  # which fit on a telephone
    figure.for_each_annotation(lambda each: each.update(text=each.text.partition("=")[2]))
    figure.add_hrect(y0=1 - CLOSE, y1=1 + CLOSE, fillcolor="black", opacity=0.09, line_width=0)
    about = f"Bars: 90 % bands, held or missed. Shaded: within {share(CLOSE)} of the documented figure."
    text = textwrap.wrap(about, NARROW)
    inner, entries = PANEL_PIXELS * shown["unit"].nunique(), ENTRY_PIXELS * len(figure.data)
    legend = {"orientation": "v", "x": 0, "y": -60 / inner, "yanchor": "top", "title": None}
    title = f"{report.system}: left-out figures"
    frame(figure, title, text, inner, page=False, below=80 + entries, margin_l=64, legend=legend)
    return figure


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
