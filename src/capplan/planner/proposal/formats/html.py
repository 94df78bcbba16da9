"""A proposal as one page of HTML that holds everything: it asks no network, runs no script, and prints on A4."""

from __future__ import annotations

import base64
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined

from capplan.planner.proposal.details import Logo
from capplan.planner.proposal.formats.document import MARKS, Document
from capplan.planner.proposal.formats.drawings import NARROW, WIDE, drawings
from capplan.planner.proposal.formats.sections import document
from capplan.planner.proposal.proposal import Proposal

BREAK = "\u200b"  # where the name of a metric may break


def html(proposal: Proposal, logo: Logo | None = None) -> str:
    """Return the page of a proposal."""
    made: Document = document(proposal)
    pictures = {
        name: (_data("image/svg+xml", wide.encode()), _data("image/svg+xml", narrow.encode()))
        for (name, wide), narrow in zip(
            drawings(proposal, WIDE).items(), drawings(proposal, NARROW).values(), strict=True
        )
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
        loader=PackageLoader("capplan.planner.proposal.formats"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["breakable"] = breakable
    made.tests["block"] = lambda block, kind: type(block).__name__ == kind
    return made


def breakable(name: str) -> str:
    """Return the name of a metric with places where a line may end."""
    for mark in (".", ",", "_", ":", "/", "="):
        name = name.replace(mark, mark + BREAK)
    return name
