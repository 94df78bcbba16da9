"""Interval arithmetic for printed figures: each stands for the interval that its rounding allows.

Bounds are exact for expressions in which every figure appears once. If a figure appears twice, they may be too wide,
but never too narrow.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

# Decimal figures are rounded to binary fractions; touching intervals must still touch.
_CLOSE = 1e-9


@dataclass(frozen=True)
class Interval:
    """A printed figure and the interval that its rounding allows.

    Attributes
    ----------
    value : float
        The figure as printed.
    low, high : float
        Lowest and highest value that it may stand for, in the same unit.
    """

    value: float
    low: float
    high: float

    @classmethod
    def exactly(cls, value: float) -> Interval:
        """Return the interval of a figure that is not rounded."""
        return cls(value, value, value)

    def __add__(self, other: Interval) -> Interval:
        return Interval(self.value + other.value, self.low + other.low, self.high + other.high)

    def __sub__(self, other: Interval) -> Interval:
        return Interval(self.value - other.value, self.low - other.high, self.high - other.low)

    def __mul__(self, other: Interval | float) -> Interval:
        if not isinstance(other, Interval):
            other = Interval.exactly(other)
        corners = [a * b for a in (self.low, self.high) for b in (other.low, other.high)]
        return Interval(self.value * other.value, min(corners), max(corners))

    def __truediv__(self, other: Interval | float) -> Interval:
        if not isinstance(other, Interval):
            other = Interval.exactly(other)
        if other.low <= 0:
            raise ZeroDivisionError(f"the divisor [{other.low:g}, {other.high:g}] must be above zero")
        return self * Interval(1 / other.value, 1 / other.high, 1 / other.low)

    def contains(self, value: float) -> bool:
        """Whether the interval contains `value`; the bounds belong to it."""
        return self.overlaps(Interval.exactly(value))

    def overlaps(self, other: Interval) -> bool:
        """Whether the intervals share a value; touching intervals do."""
        return _at_most(self.low, other.high) and _at_most(other.low, self.high)


def _at_most(left: float, right: float) -> bool:
    return left <= right or math.isclose(left, right, rel_tol=_CLOSE, abs_tol=1e-12)
