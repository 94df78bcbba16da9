"""Numbers for people: three significant digits, thousands separated, bands in parentheses."""

from __future__ import annotations

import math
from collections.abc import Callable

from capplan.planner.prediction import Band

Format = Callable[[float], str]


def significant(number: float) -> str:
    """Return three significant digits without an exponent: `4.02`, `13.1`, `17,400`."""
    return _to_digits(number, 3)


def rate(number: float) -> str:
    """Return a rate to ten per second, below a thousand to three significant digits: `17,430`, `7.20`."""
    return f"{round(number, -1):,.0f}" if 1000 <= number < math.inf else significant(number)


def given(number: float) -> str:
    """Return a rate as it was asked for: `12,345`, `0.5`."""
    return f"{number:,.10g}"


def share(number: float) -> str:
    """Return a share in percent: `79 %`, `0.4 %`."""
    if not math.isfinite(number):
        return "unbounded"
    return f"{number:.0%}".replace("%", " %") if number >= 0.1 or number == 0 else f"{number:.1%}".replace("%", " %")


def band(figure: Band, form: Format = significant) -> str:
    """Return a figure with its band: `17,400 (12,000 to 24,000)`; one number where nothing is open."""
    value, low, high = (form(number) for number in (figure.value, figure.low, figure.high))
    if low == value == high:
        return value
    return f"{value} ({low} to {high})"


def share_band(figure: Band) -> str:
    """Return a share with its band, the unit once: `80 % (71 to 93 %)`."""
    text = band(figure, share)
    return text.replace(" % to ", " to ")


def width(number: float) -> str:
    """Return a half-width to two significant digits, which is more than anybody knows of it: `0.31`, `57`, `1,200`."""
    return _to_digits(number, 2)


def _to_digits(number: float, digits: int) -> str:
    if not math.isfinite(number):
        return "unbounded"
    if number == 0:
        return "0"
    rounded = float(f"{number:.{digits}g}")
    return f"{rounded:,.0f}" if abs(rounded) >= 10 ** (digits - 1) else f"{rounded:#.{digits}g}"
