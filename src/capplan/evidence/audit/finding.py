"""A finding of an audit: the rule or check, the figures, what is wrong, and whether they may be believed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from capplan.evidence.interval import Interval

Verdict = Literal["consistent", "rounding", "contradicted", "untested"]
Severity = Literal["refused", "caution", "none"]
Part = Literal["load test", "law", "claim", "reading"]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One finding about a row of a load-test table, or about documented figures.

    Attributes
    ----------
    part
        `load test`: a rule for every load-test table. The others are checks of documents: an operational `law`, a
        `claim` of the document about its own figures, or a `reading` that it leaves open.
    rule
        Name of the rule, such as `littles-law`, or of the check, such as `little.ts3`.
    severity
        `refused`: a figure or a claim must not be believed. `caution`: a reader must know something about figures that
        may be right. `none`: a check of documents that refutes nothing; a refuted reading is no fault of the document.
    sentence
        What was found, with its figures.
    means
        What a finding of the rule means; the law, the claim or the reading in words.
    action
        What to do about it; empty where nothing is to be done.
    line
        Number of the row in its table, from 1; null for a check of documents.
    run_id
        That of the row.
    request_class
        That of the row.
    figures
        Ids of the documented figures that it speaks of.
    expected
        What the law, or the figures that a claim speaks of, give; SI.
    documented
        What the document says.
    unit
        SI unit of both.
    verdict
        Of a check of documents. `consistent`: the documented figure lies in the expected interval; `rounding`: only its
        interval meets the expected one; `contradicted`: the two intervals are apart; `untested`: no figure speaks to
        the claim.
    """

    part: Part
    rule: str
    severity: Severity
    sentence: str
    means: str
    action: str
    line: int | None = None
    run_id: str | None = None
    request_class: str | None = None
    figures: tuple[str, ...] = ()
    expected: Interval | None = None
    documented: Interval | None = None
    unit: str | None = None
    verdict: Verdict | None = None


def judge(expected: Interval, documented: Interval) -> Verdict:
    """Return the verdict on two intervals of one unit."""
    if expected.contains(documented.value):
        return "consistent"
    return "rounding" if expected.overlaps(documented) else "contradicted"


def shown(interval: Interval, unit: str = "1") -> str:
    """Return an interval as text: `4.38 ms [4.12, 4.62]`, `at least 15 ms`; durations in ms, sizes in GB."""
    factor, suffix = {"s": (1e3, " ms"), "1/s": (1.0, "/s"), "B": (1e-9, " GB")}.get(unit, (1.0, ""))
    low, value, high = (number * factor for number in (interval.low, interval.value, interval.high))
    if math.isinf(high):
        return f"at least {_digits(low)}{suffix}"
    if math.isinf(low):
        return f"at most {_digits(high)}{suffix}"
    if low == high:
        return f"{_digits(value, 4)}{suffix}"
    apart = {low, value, high}
    digits = next((count for count in range(3, 7) if len({_digits(each, count) for each in apart}) == len(apart)), 3)
    return f"{_digits(value, digits)}{suffix} [{_digits(low, digits)}, {_digits(high, digits)}]"


def _digits(number: float, significant: int = 3) -> str:
    return f"{number:.0f}" if 1000 <= abs(number) < math.inf else f"{number:.{significant}g}"
