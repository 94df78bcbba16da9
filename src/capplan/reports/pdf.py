"""A document as a PDF by typst: user text arrives as JSON, never as markup, and output is byte-for-byte repeatable."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from capplan.planner.proposal.details import Logo
from capplan.reports.document import Block, Document
from capplan.reports.html import breakable

_EUROPEAN = 0x0530  # letters below it are in the fonts that typst brings: Latin, Greek and Cyrillic


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
        "title": made.title,
        "customer": made.customer,
        "facts": made.facts,
        "question": made.question,
        "footer": made.footer,
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
