"""A printed figure and the interval that its rounding allows, with interval arithmetic.

Bounds are exact for expressions in which every figure appears once; where one appears twice they are too wide,
never too narrow.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

# Binary fractions of decimal figures differ in the last digits; touching intervals must still touch.
_CLOSE = 1e-9


@dataclass(frozen=True)
class Interval:
    """A figure as printed, `value`, and the lowest and highest that it may stand for, in the unit of its row."""

    value: float
    low: float
    high: float

    @classmethod
    def exactly(cls, value: float) -> Interval:
        """Take `value` as it stands, without a rounding."""
        return cls(value, value, value)

    @property
    def printed(self) -> Interval:
        """The figure as printed, its rounding left out: for arithmetic that a document does on its own figures."""
        return Interval.exactly(self.value)

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
        """Tell whether `value` lies between the bounds; a bound belongs to the interval."""
        return self.overlaps(Interval.exactly(value))

    def overlaps(self, other: Interval) -> bool:
        """Tell whether the two intervals share a value; touching is sharing."""
        return _at_most(self.low, other.high) and _at_most(other.low, self.high)


def _at_most(left: float, right: float) -> bool:
    return left <= right or math.isclose(left, right, rel_tol=_CLOSE, abs_tol=1e-12)
