"""The report of a validation as files: a page of Markdown, and one of HTML with figures that need no network."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from pathlib import Path

import plotly.graph_objects as go
from markdown_it import MarkdownIt
from plotly.offline import get_plotlyjs

from capplan.calibration.validation.validation import Validation
from capplan.models.replaced_file import replace_file
from capplan.planner.reports.validation_page import ALL, TITLE, page
from capplan.planner.reports.validation_plot import errors_of_all, predicted_against_documented

MARKDOWN, HTML = "validation.md", "validation.html"
_ID = re.compile(r'(?<=<td style="text-align:left">)[a-z][\w.-]*(?=</td>)')  # breaks where it is narrow
STYLE = """
body { font: 16px/1.5 sans-serif; color: #222; max-width: 50rem; margin: 0 auto; padding: 0 16px 3rem; }
h1, h2, h3 { line-height: 1.25; overflow-wrap: anywhere; }
h2 { margin-top: 2.5rem; border-top: 1px solid #ccc; padding-top: 1rem; }
table { border-collapse: collapse; margin: 0.75rem 0; font-size: 0.875rem; font-variant-numeric: tabular-nums; }
th, td { padding: 3px 10px 3px 0; border-bottom: 1px solid #e5e5e5; vertical-align: top; }
td:first-child, code { overflow-wrap: anywhere; }
td:first-child { min-width: 5.2em; }
th { border-bottom: 1px solid #888; vertical-align: bottom; }
code { font-size: 0.875em; background: #f3f3f3; }
li { margin: 0.25rem 0; }
summary { cursor: pointer; padding: 4px 0; }
details > table { margin-left: 1rem; }
.plotly-graph-div { width: 100%; max-width: 40rem; margin: 1rem 0; }
@media (max-width: 600px) {
  table { font-size: 0.75rem; }
  th, td { padding-right: 6px; }
  details > table { margin-left: 0; }
}
"""


def figures(reports: Sequence[Validation]) -> dict[str, go.Figure]:
    """Return the figures of a report, by system and `all`."""
    made = {ALL: errors_of_all(reports), **{each.system: predicted_against_documented(each) for each in reports}}
    return {name: figure for name, figure in made.items() if figure is not None}


def write_report(reports: Sequence[Validation], folder: Path) -> tuple[Path, Path]:
    """Write the report to a folder as Markdown and as HTML, each in full or not at all; return the two files.

    Raises
    ------
    InputError
        When they cannot be written.
    """
    text, drawn = folder / MARKDOWN, folder / HTML
    replace_file(text, page(reports, lambda name, about: f"[{about}]({HTML}#{name})"))
    replace_file(drawn, html(reports))
    return text, drawn


def html(reports: Sequence[Validation]) -> str:
    """Return the page as HTML that holds everything: words, tables, figures and what draws them."""
    drawn = figures(reports)
    markdown = page(reports, lambda name, _: _marker(name) if name in drawn else "")
    body = str(MarkdownIt("commonmark", {"html": True}).enable("table").render(markdown))
    body = _ID.sub(lambda found: re.sub(r"([._])", r"\1<wbr>", found[0]), body)
    for name, figure in drawn.items():
        body = body.replace(_marker(name), _drawn(name, figure))
    title = f"{TITLE}: {', '.join(each.system for each in reports)}"
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{escape(title)}</title>\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<style>{STYLE}</style>\n'
        f"<script>{get_plotlyjs()}</script>\n</head>\n<body>\n{body}</body>\n</html>\n"
    )


def _marker(name: str) -> str:
    return f"<!-- figure {name} -->"


def _drawn(name: str, figure: go.Figure) -> str:
    config = {"displaylogo": False, "responsive": True}
    return str(figure.to_html(include_plotlyjs=False, full_html=False, config=config, div_id=name))
