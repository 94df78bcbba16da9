"""Laws about a series of figures: a series that must not fall, and a series that must be one constant.

Each picks the two figures of the series that speak most against the law.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import TypeAlias

from capplan.calibration.audit.expression import Figure

Pick: TypeAlias = Callable[[Sequence[Figure]], tuple[Figure, Figure]]


def deepest_fall(series: Sequence[Figure]) -> tuple[Figure, Figure]:
    """Return the figures before and after the deepest fall of a series of two or more."""
    return min(combinations(series, 2), key=lambda pair: pair[1].value - pair[0].value)


def farthest_apart(series: Sequence[Figure]) -> tuple[Figure, Figure]:
    """Return the figure with the least upper bound and that with the greatest lower bound.

    Intervals share a point exactly when every two of them do, so these two decide whether one constant fits all.
    """
    least = min(series, key=lambda each: each.interval.high)
    most = max(reversed(series), key=lambda each: each.interval.low)
    return least, most


# For each rule: how it picks `first` and `second` from a series, and what it expects of them.
RULES: Mapping[str, tuple[Pick, str]] = {
    "never falls": (deepest_fall, "at_least(first)"),
    "constant": (farthest_apart, "first"),
}
