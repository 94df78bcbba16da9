"""A check for people: the result for each objective in each situation."""

from __future__ import annotations

from collections.abc import Iterator

from capplan.answers.number_words import rate
from capplan.planner.check import Checked
from capplan.reports.document import Block, Break, Fact, Heading


def describe(found: Checked, quiet: bool = False) -> Iterator[Block]:
    """Yield the description of a check; if quiet, only the failures."""
    if not quiet:
        yield Heading(f"{found.system}: {found.layout}, {rate(found.offered_tps)} TPS peak", 1)
        yield Break()
    for each in found.objectives:
        if not (quiet and each.answer == "yes"):
            yield Fact(each.answer, each.in_words())
    if not quiet:
        yield Break()
        yield Fact("Answer", found.verdict.in_words())
        if found.verdict.not_asked:
            yield Fact("Not asked", f"loss of {', '.join(found.verdict.not_asked)}")
