"""The known systems for people: what is modelled, on what evidence, and the options of their layouts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from capplan.layout.system import System
from capplan.reports.document import Block, Fact, Heading, Paragraph


def describe(system: System[Any], options: Mapping[str, str]) -> Iterator[Block]:
    """Yield the description of a system with its options and what they mean."""
    yield Heading(system.name, 1)
    yield Fact("models", system.summary, level=1)
    yield Fact("evidence", f"{len(system.evidence)} figures, see 'capplan evidence list {system.name}'", level=1)
    yield from (Fact("source", source.citation, level=1) for source in system.sources)
    yield Paragraph("layout", level=1)
    yield from (Fact(option, meaning, level=2) for option, meaning in options.items())
