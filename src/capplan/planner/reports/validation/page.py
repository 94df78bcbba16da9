"""A validation in Markdown, from one template: the page, and what the terminal shows."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from html import escape
from statistics import median
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from capplan.calibration.validation.validate import goals_of_all
from capplan.calibration.validation.validation import CLOSE, MODEL, Score, Validation
from capplan.models.number_words import (
    banded,
    in_unit,
    per_cent,
    share,
    signed,
    significant,
    tenths,
    with_unit,
)
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
    """Return what renders the templates."""
    made = Environment(
        loader=PackageLoader("capplan.planner.reports"),
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
    """Escape text from data: it cannot open a tag, nor end the cell of a table."""
    if isinstance(value, Markup):
        return value
    return Markup(escape(str(value), quote=False).replace("|", "&#124;"))  # noqa: S704 - it is escaped


def _wrapped(part: str) -> str:
    """Break the lines of a paragraph; leave tables, lists, headings and tags as they are."""
    if part.startswith(("#", "|", "-", "<", "!")):
        return part
    return "\n".join(textwrap.wrap(part, WIDTH, break_long_words=False, break_on_hyphens=False))


def rows_of(report: Validation) -> list[dict[str, Any]]:
    """Return the rows of the table of a validation."""
    return [{str(name): cell for name, cell in row.items()} for row in report.to_frame().to_dict("records")]


def judged_of(report: Validation) -> list[bool]:
    """Return which of the goals are met: those of single figures, then those that figures share."""
    return [each.met for each in report.figures if each.met is not None] + [goal.met for goal in report.goals]


def close_of(report: Validation) -> list[bool]:
    """Return which of the sound figures are met within 10 % or their own rounding."""
    return [each.close(CLOSE) for each in report.figures if each.sound]


def best_rule(scores: Mapping[str, Score], by: str = "error") -> str | None:
    """Return the simple rule with the smallest error or interval score; None where no rule has one."""
    found = {name: getattr(score, by) for name, score in scores.items() if name != MODEL}
    return min((name for name in found if math.isfinite(found[name])), key=lambda name: found[name], default=None)


def not_counted(report: Validation) -> list[tuple[str, str, list[str]]]:
    """Return what becomes of the figures that are in no fit or no score, why, and their ids."""
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
    """Return rows by what a column has, in the order of the rows."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row[name], []).append(row)
    return list(found.items())


def _largest_error(rows: Iterable[Row]) -> Row:
    return max(rows, key=lambda row: abs(row["error"]))


def _rules(rows: Iterable[Row]) -> list[str]:
    """Return the rules that give an estimate of any of the figures."""
    errors = ((name, cell) for row in rows for name, cell in row.items() if name.endswith("_error"))
    found = (name.removesuffix("_error") for name, cell in errors if math.isfinite(cell))
    return [name for name in dict.fromkeys(found) if name != "left_out"]


def _median_errors(rows: Sequence[Row]) -> list[float]:
    """Return the median absolute error of capplan and of each rule."""
    return [median(abs(row[f"{name}_error"]) for row in rows) for name in ("left_out", *_rules(rows))]
