"""Numbers for people: three significant digits, thousands separators, a space before %."""

from __future__ import annotations

import math


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


def rate(number: float) -> str:
    """Return a rate to ten per second, below a thousand to three significant digits: `17,430`, `7.20`."""
    return f"{round(number, -1):,.0f}" if 1000 <= number < math.inf else significant(number)


def share(number: float) -> str:
    """Return a share in percent: `79 %`, `0.4 %`."""
    if not math.isfinite(number):
        return "unbounded"
    return f"{number:,.0%}".replace("%", " %") if number >= 0.1 or number == 0 else f"{number:.1%}".replace("%", " %")


def signed(number: float) -> str:
    """Return a signed share in percent: `+12 %`, `-3.1 %`."""
    return ("-" if number < 0 else "+") + share(abs(number))


def per_cent(number: float) -> str:
    """Return a signed share as a number in percent, for tables that say so: `+12`, `-3.1`."""
    return signed(number).removesuffix(" %")
