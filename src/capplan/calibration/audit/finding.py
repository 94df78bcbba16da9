"""What a check of the evidence finds: expected against documented, a verdict, and the finding in words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from capplan.calibration.evidence.interval import Interval

Verdict = Literal["consistent", "rounding", "contradicted", "untested"]


@dataclass(frozen=True)
class Finding:
    """One law or claim, held against the rows that it speaks of.

    Attributes
    ----------
    name : str
        Stable name, such as `little.ts3`.
    law : str
        The law or the claim, in words.
    rows : tuple of str
        Ids of the rows used.
    expected : Interval
        What the law, or the figures that a claim speaks of, give; SI.
    documented : Interval or None
        What the document says; None exactly when the verdict is `untested`.
    unit : str
        SI unit of both.
    verdict : str
        `consistent`: the documented figure lies in the expected interval; `rounding`: only its interval meets the
        expected one; `contradicted`: the two intervals are apart; `untested`: no figure speaks to the claim.
    sentence : str
        The finding in words.
    """

    name: str
    law: str
    rows: tuple[str, ...]
    expected: Interval
    documented: Interval | None
    unit: str
    verdict: Verdict
    sentence: str


def judge(expected: Interval, documented: Interval) -> Verdict:
    """Return the verdict on two intervals of one unit."""
    if expected.contains(documented.value):
        return "consistent"
    return "rounding" if expected.overlaps(documented) else "contradicted"


def shown(interval: Interval, unit: str = "1") -> str:
    """Print an interval for people: `4.38 ms [4.12, 4.62]`, `at least 15 ms`; durations in ms, sizes in GB."""
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


def at_least(interval: Interval) -> Interval:
    """Return the interval of what is no less than `interval`."""
    return Interval(interval.value, interval.low, math.inf)


def at_most(interval: Interval) -> Interval:
    """Return the interval of what is no more than `interval`."""
    return Interval(interval.value, -math.inf, interval.high)
