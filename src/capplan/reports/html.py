"""A document as one self-contained HTML page: no network access, no script, prints on A4."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined

from capplan.planner.proposal.details import Logo
from capplan.reports.document import MARKS, Document

BREAK = "\u200b"  # where the name of a metric may break


def html(made: Document, wide: Mapping[str, str], narrow: Mapping[str, str], logo: Logo | None = None) -> str:
    """Return the page of a document.

    Parameters
    ----------
    made : Document
        The document.
    wide, narrow : mapping of str
        Its pictures as SVG, by name: for a sheet of paper, and for a telephone.
    logo : Logo, optional
        The logo on its cover.
    """
    pictures = {
        name: (_data("image/svg+xml", svg.encode()), _data("image/svg+xml", narrow[name].encode()))
        for name, svg in wide.items()
    }
    shown = None if logo is None else _data(f"image/{logo.kind}", logo.content)
    return (
        _environment()
        .get_template("proposal.html.jinja")
        .render(document=made, pictures=pictures, logo=shown, marks=MARKS)
    )


def _data(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("capplan.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["breakable"] = breakable
    made.tests["block"] = lambda block, kind: type(block).__name__ == kind
    return made


def breakable(name: str) -> str:
    """Return the name of a metric with places for line breaks."""
    for mark in (".", ",", "_", ":", "/", "="):
        name = name.replace(mark, mark + BREAK)
    return name
