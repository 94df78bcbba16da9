"""A document as one self-contained HTML page, and as a PDF by typst.

The page makes no network access, has no script and prints on A4. To the PDF, user text comes as JSON, never as markup;
the same document gives the same bytes.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import cache
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from capplan.planner.proposal.details import Logo
from capplan.reports.document import MARKS, Block, Document

BREAK = "\u200b"  # where the name of a metric may break
_EUROPEAN = 0x0530  # letters below it are in the fonts that typst brings: Latin, Greek and Cyrillic


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
        environment()
        .get_template("proposal.html.jinja")
        .render(document=made, pictures=pictures, logo=shown, marks=MARKS)
    )


def _data(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


@cache
def environment(finalize: Callable[[Any], Any] | None = None) -> Environment:
    """Return the environment of templates that escape what they show, after `finalize`."""
    made = Environment(
        loader=PackageLoader("capplan.reports"),
        autoescape=True,
        finalize=finalize,
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


def pdf(made: Document, pictures: Mapping[str, str], logo: Logo | None = None) -> bytes:
    """Return the PDF of a document with its pictures, SVG by name."""
    import typst

    with TemporaryDirectory() as name:
        folder = Path(name)
        template = files(__package__).joinpath("templates", "proposal.typ").read_text(encoding="utf-8")
        (folder / "proposal.typ").write_text(template, encoding="utf-8")
        for picture, svg in pictures.items():
            (folder / f"{picture}.svg").write_text(svg, encoding="utf-8")
        content = _content(made, logo)
        if logo is not None:
            (folder / content["logo"]).write_bytes(logo.content)
        text = json.dumps(content, ensure_ascii=False)
        (folder / "document.json").write_text(text, encoding="utf-8")
        found = typst.compile(
            folder / "proposal.typ",
            root=folder,
            format="pdf",
            ignore_system_fonts=all(ord(letter) < _EUROPEAN or not letter.isalpha() for letter in text),
        )
    return bytes(found)


def _content(made: Document, logo: Logo | None) -> dict[str, Any]:
    return {
        **{name: getattr(made, name) for name in ("title", "customer", "facts", "footer")},
        "logo": None if logo is None else f"logo.{logo.kind}",
        "sections": [
            {"title": section.title, "blocks": [_block(each) for each in section.blocks]} for section in made.sections
        ],
    }


def _block(block: Block) -> dict[str, Any]:
    content = {"kind": type(block).__name__, **asdict(block)}
    for row in content.get("rows", ()):
        for column, cell in zip(content["columns"], row, strict=True):
            if column["code"]:
                cell["text"] = breakable(cell["text"])
    return content
