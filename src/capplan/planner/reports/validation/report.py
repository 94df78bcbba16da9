"""The report of a validation as files: a page of Markdown, and one of HTML with figures that need no network."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import plotly.graph_objects as go
from markdown_it import MarkdownIt
from plotly.offline import get_plotlyjs

from capplan.calibration.validation.validation import Validation
from capplan.models.errors import InputError
from capplan.models.replaced_file import replace_file
from capplan.planner.reports.validation.page import ALL, TITLE, environment, page
from capplan.planner.reports.validation.plot import errors_of_all, predicted_against_documented

MARKDOWN, HTML = "validation.md", "validation.html"
_ID = re.compile(r'(?<=<td style="text-align:left">)[a-z][\w.-]*(?=</td>)')  # breaks where it is narrow


def figures(reports: Sequence[Validation]) -> dict[str, go.Figure]:
    """Return the figures of a report, by system and `all`."""
    made = {ALL: errors_of_all(reports), **{each.system: predicted_against_documented(each) for each in reports}}
    return {name: figure for name, figure in made.items() if figure is not None}


def write_report(reports: Sequence[Validation], folder: Path) -> tuple[Path, Path]:
    """Write the report to a folder, which is made if need be, as Markdown and as HTML; return the two files.

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
    """Return the page as HTML that holds everything: words, tables, figures and what draws them."""
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
