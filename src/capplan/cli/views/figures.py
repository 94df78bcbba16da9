"""Numbers on the terminal: as given, with bands in parentheses, or as half-widths."""

from __future__ import annotations

from collections.abc import Callable

from capplan.models.number_words import share, significant, to_digits
from capplan.models.results import Band

Format = Callable[[float], str]


def given(number: float) -> str:
    """Return a rate as it was given: `12,345`, `0.5`."""
    return f"{number:,.10g}"


def band(figure: Band, form: Format = significant) -> str:
    """Return a figure with its band: `17,400 (12,000 to 24,000)`; one number where the band has no width."""
    value, low, high = (form(number) for number in (figure.value, figure.low, figure.high))
    if low == value == high:
        return value
    return f"{value} ({low} to {high})"


def share_band(figure: Band) -> str:
    """Return a share with its band, the unit once: `80 % (71 to 93 %)`."""
    text = band(figure, share)
    return text.replace(" % to ", " to ")


def width(number: float) -> str:
    """Return a half-width to two significant digits: `0.31`, `57`, `1,200`."""
    return to_digits(number, 2)
