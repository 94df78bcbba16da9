"""Which load test to run next, for people: the candidates as a table, the most useful first."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console

from capplan.cli.views.lines import columns, fact, paragraph, put
from capplan.models.number_words import rate, significant
from capplan.models.verdict import CONFIDENCE
from capplan.planner.next_test.next_test import AskedFigure, CandidateTest, NextTest

_SHOWN = 10


def render(found: NextTest, console: Console) -> None:
    """Print the ranked tests."""
    paragraph(console, f"{found.system}: {found.layout}", style="bold")
    put(console)
    its = found.figure
    fact(console, "Figure", f"{its.name} {_band(its)}")
    if its.objective is not None and its.chance_met is not None:
        met = f"a repeat meets {its.objective} with a probability of {_percent(its.chance_met)}"
        fact(console, "Objective", f"{met}; the answer is yes from {_percent(CONFIDENCE)} on")
    fact(console, "Next test", _advice(found))
    put(console)
    _table(found, console)
    for each in found.refused[:3]:
        paragraph(console, f"Left out: {each}", hanging=2)
    if len(found.refused) > 3:
        put(console, f"and {len(found.refused) - 3} more")
    put(console)
    paragraph(console, "More: --figure NAME, --rank NAME, --run TIME, --setup TIME, --json", hanging=6, style="dim")


def _advice(found: NextTest) -> str:
    best = found.tests[0]
    if not found.answer:
        return "none helps: no candidate changes the answer or narrows the band by 1 % or more"
    if found.rank == "decision" and best.chance_of_change is not None:
        return f"{best.words}: changes the answer with a probability of {_percent(best.chance_of_change)}"
    return f"{best.words}: narrows the band by {_percent(best.narrowing)}, in {best.hours:.3g} h"


def _table(found: NextTest, console: Console) -> None:
    decision = found.figure.objective is not None
    title = ["test", "hours", "expected band", "narrower", *(["answer changes"] if decision else []), "layout"]
    lines = columns([title, *(_cells(each, found.figure, decision) for each in found.tests[:_SHOWN])])
    for number, line in enumerate(lines):
        put(console, line, "bold" if not number else "")
    if len(found.tests) > _SHOWN:
        put(console, f"and {len(found.tests) - _SHOWN} more (--json has them)")


def _cells(each: CandidateTest, its: AskedFigure, decision: bool) -> list[str]:
    chance = [] if not decision else ["-" if each.chance_of_change is None else _percent(each.chance_of_change)]
    return [
        each.words,
        f"{each.hours:.3g}",
        f"{_form(its)(each.low_after)} to {_form(its)(each.high_after)}",
        _percent(each.narrowing),
        *chance,
        "new" if each.new_layout else "tested",
    ]


def _band(its: AskedFigure) -> str:
    form, unit = _form(its), "/s" if its.unit == "1/s" else " ms"
    return f"{form(its.value)}{unit} ({form(its.low)} to {form(its.high)})"


def _form(its: AskedFigure) -> Callable[[float], str]:
    return rate if its.unit == "1/s" else significant


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.095 or share == 0 else f"{100 * share:.2g} %"
