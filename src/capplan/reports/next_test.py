"""Ranked load tests for people: the candidates as a table, the most useful first."""

from __future__ import annotations

from collections.abc import Iterator

from capplan.answers.number_words import rate, significant
from capplan.answers.verdict import CONFIDENCE
from capplan.planner.next_test import AskedFigure, CandidateTest, NextTest
from capplan.reports.document import Block, Break, Bullets, Column, Fact, Heading, Paragraph, Table, more, table
from capplan.reports.numbers import Format

_SHOWN = 10
_LITTLE = 1e-4


def describe(found: NextTest) -> Iterator[Block]:
    """Yield the description of ranked tests."""
    its = found.figure
    form, unit = _form(its), "/s" if its.unit == "1/s" else f" {its.unit}"
    yield Heading(f"{found.system}: {found.layout}", 1)
    yield Break()
    yield Fact("Figure", f"{its.name} {form(its.value)}{unit} ({form(its.low)} to {form(its.high)})")
    if its.objective is not None and its.chance_met is not None:
        met = f"a repeat meets {its.objective} with a probability of {_percent(its.chance_met)}"
        yield Fact("Objective", f"{met}; the answer is yes from {_percent(CONFIDENCE)} on")
    yield Fact("Next test", advice(found))
    yield Break()
    yield ranking(found)
    if len(found.tests) > _SHOWN:
        yield Paragraph(f"and {len(found.tests) - _SHOWN} more (--json has them)")
    yield Bullets(tuple(f"Left out: {refused}" for refused in found.refused[:3]), marked=False)
    if len(found.refused) > 3:
        yield Paragraph(f"and {len(found.refused) - 3} more")
    yield Break()
    yield more(["--figure NAME", "--rank NAME", "--run TIME", "--setup TIME", "--json"])


def ranking(found: NextTest, name: str = "") -> Table:
    """Return a row for each of the most useful tests: what it costs and what it would show."""
    decision = found.figure.objective is not None
    heads = ["hours", "band after", "narrower", *["answer changes"] * decision, "layout"]
    rows = (_cells(each, found.figure, decision) for each in found.tests[:_SHOWN])
    return table([Column("test", 5), *heads], rows, name)


def advice(found: NextTest) -> str:
    """Return the most useful test and what it would show, in words."""
    best = found.tests[0]
    words = best.words if best.states is None else f"{best.words} (stated by {best.states})"
    if not found.answer and found.rank == "decision":
        return "none: no candidate changes the answer with a probability of 1 % or more"
    if not found.answer:
        return "none: no candidate narrows the band by 1 % or more"
    if found.rank == "decision" and best.chance_of_change is not None:
        return f"{words}: changes the answer with a probability of {_percent(best.chance_of_change)}"
    return f"{words}: narrows the band by {_percent(best.narrowing)}, in {best.hours:.3g} h"


def _cells(each: CandidateTest, its: AskedFigure, decision: bool) -> list[str]:
    chance = [] if not decision else ["-" if each.chance_of_change is None else _percent(each.chance_of_change)]
    return [
        each.words,
        f"{each.hours:.3g}",
        f"{_form(its)(each.low_after)} to {_form(its)(each.high_after)}",
        _percent(each.narrowing),
        *chance,
        "running" if each.states else "new" if each.new_layout else "tested",
    ]


def _form(its: AskedFigure) -> Format:
    return rate if its.unit == "1/s" else significant


def _percent(share: float) -> str:
    if 0 < share < _LITTLE:
        return "< 0.01 %"
    return f"{100 * share:.0f} %" if share >= 0.095 or share == 0 else f"{100 * share:.2g} %"
