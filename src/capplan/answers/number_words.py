"""Numbers for people: three significant digits, thousands separated, per cent with a blank; lists in words."""

from __future__ import annotations

import math
from collections.abc import Sequence


def to_digits(number: float, digits: int) -> str:
    """Return so many significant digits without an exponent."""
    if not math.isfinite(number):
        return "unbounded"
    if number == 0:
        return "0"
    rounded = float(f"{number:.{digits}g}")
    return f"{rounded:,.0f}" if abs(rounded) >= 10 ** (digits - 1) else f"{rounded:#.{digits}g}"


def significant(number: float) -> str:
    """Return three significant digits without an exponent: `4.02`, `13.1`, `17,400`."""
    return to_digits(number, 3)


def as_given(number: float) -> str:
    """Return a number as people write it, with three significant digits at most: `1.65`, `20`, `0.5`."""
    text = significant(number)
    return text.rstrip("0").rstrip(".") if "." in text else text


def rate(number: float) -> str:
    """Return a rate to ten per second, below a thousand to three significant digits: `17,430`, `7.20`."""
    return f"{round(number, -1):,.0f}" if 1000 <= number < math.inf else significant(number)


def share(number: float) -> str:
    """Return a share in percent: `79 %`, `0.4 %`."""
    if not math.isfinite(number):
        return "unbounded"
    return f"{number:,.0%}".replace("%", " %") if number >= 0.1 or number == 0 else f"{number:.1%}".replace("%", " %")


def tenths_of_percent(number: float) -> str:
    """Return a probability in percent with one decimal: `10.4 %`, `< 0.1 %`."""
    return "< 0.1 %" if 0 < number < 0.001 else f"{100 * number:.1f} %"


def signed(number: float) -> str:
    """Return a signed share in percent: `+12 %`, `-3.1 %`."""
    return ("-" if number < 0 else "+") + share(abs(number))


def per_cent(number: float) -> str:
    """Return a signed share as a number in percent, for tables with a percent heading: `+12`, `-3.1`."""
    return signed(number).removesuffix(" %")


def tenths(number: float) -> str:
    """Return a share to a tenth of a per cent, for goals: a narrow miss must not look like a pass."""
    return f"{number:.1%}".removesuffix("%").removesuffix(".0") + " %"


def in_unit(number: float, unit: str) -> str:
    """Return a figure without its unit, in the unit that people read it in: times are in milliseconds."""
    if unit == "s":
        return significant(number * 1e3)
    return rate(number) if unit == "1/s" else significant(number)


def with_unit(number: float, unit: str) -> str:
    """Return a figure with its unit: `4.00 ms`, `7,200/s`, `0.958`."""
    return in_unit(number, unit) + {"s": " ms", "1/s": "/s"}.get(unit, "")


def banded(number: float, low: float, high: float, unit: str) -> str:
    """Return a figure with its band: `7,060 (7,000 to 7,100)`."""
    return f"{in_unit(number, unit)} ({in_unit(low, unit)} to {in_unit(high, unit)})"


def listed(words: Sequence[str]) -> str:
    """Return a list in words: `a, b and c`."""
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last
