"""A comparison for people: differences of two layouts with their intervals."""

from __future__ import annotations

import math
from collections.abc import Iterator

from capplan.answers.number_words import rate, share, significant
from capplan.planner.compare import Comparison, Difference, Limit
from capplan.reports.document import Block, Break, Fact, Heading, more, table

_NONE = 0.002  # of a figure: a smaller difference is none
_UNEVEN = 0.01  # a smaller change of the busiest member's share says nothing


def describe(found: Comparison) -> Iterator[Block]:
    """Yield the description of a comparison."""
    yield Heading(f"{found.system}, two layouts at {rate(found.offered_tps)} TPS peak", 1)
    yield Break()
    for label, words in zip(("First", "Second"), found.layouts, strict=True):
        yield Fact(label, words)
    yield Fact("Changed", ", ".join("objectives" if name == "slo" else name for name in found.changed) or "nothing")
    for label, name, verdict in zip(("Answer", ""), ("first", "second"), found.verdicts, strict=False):
        yield Fact(label, f"{name} {verdict.in_words()}")
    yield Break()
    heads = ["Figure", "first", "second", "second - first"]
    rows = [
        [each.figure, _number(each.first.value, each.unit), _number(each.second.value, each.unit), _gap(each)]
        for each in found.differences
    ]
    yield table(heads, rows)
    yield Break()
    for label, limit in zip(("Why", ""), found.limits, strict=False):
        yield Fact(label, _why(limit))
    yield Break()
    yield more(["--json"])


def _why(limit: Limit) -> str:
    """Return how a resource sets the capacities: how many there are, and what a request takes of them."""
    one, other = limit.first, limit.second
    whom = "both" if len(limit.limits) == 2 else ("the first", "the second")[limit.limits[0] - 1]
    work, members, uneven = other.work_ms / one.work_ms, other.members / one.members, other.busiest / one.busiest
    busiest = f"; the busiest has {one.busiest:.2f} and {other.busiest:.2f} times the mean"
    return (
        f"{limit.resource} limits {whom}: a request takes {significant(one.work_ms)} ms of it with the first and "
        f"{significant(other.work_ms)} ms with the second (x{work:.2f}), and there are {one.members} and "
        f"{other.members} (x{members:.2f}){busiest if abs(uneven - 1) > _UNEVEN else ''}: "
        f"capacity x{members / work / uneven:.2f}"
    )


def _number(value: float, unit: str) -> str:
    if not math.isfinite(value):
        return "unbounded"
    if unit == "1/s":
        return f"{rate(value)} TPS"
    return share(value) if unit == "1" else f"{significant(value)} ms"


def _gap(each: Difference) -> str:
    """Return a signed difference with its interval; `none` if it is too small to matter."""
    gap, base = each.difference, abs(each.first.value) if math.isfinite(each.first.value) else 0.0
    if not any(math.isfinite(value) for value in (gap.value, gap.low, gap.high)):
        return "unbounded"
    if max(abs(gap.low), abs(gap.high)) <= _NONE * base:
        return "none"
    ends = [abs(end) for end in (gap.value, gap.low, gap.high) if math.isfinite(end)]
    step = 10.0 ** (math.floor(math.log10(max(*ends, 1e-12))) - 1)  # the second digit of the larger end is the last
    value, low, high = (_signed(one, each.unit, step) for one in (gap.value, gap.low, gap.high))
    return f"{value} ({low} to {high})"


def _signed(value: float, unit: str, step: float) -> str:
    if not math.isfinite(value):
        return f"{'+' if value > 0 else '-'}unbounded"
    factor = 100 if unit == "1" else 1
    last = max(-math.floor(math.log10(step * factor) + 1e-9), 0)
    rounded = round(value / step) * step * factor
    return f"{rounded:+,.{last}f}{' %' if unit == '1' else ''}"
