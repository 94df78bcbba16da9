"""Figures with bands and units, as texts and as cells, and counted nouns.

Single numbers are in `capplan.answers.number_words`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from capplan.answers.number_words import rate, share, significant, to_digits
from capplan.answers.results import Band, Basis
from capplan.reports.document import Cell, Mark

Format = Callable[[float], str]
NOT_MODELLED, NOT_BY_RATE = "not modelled", "not by the rate"
MARK_OF: Mapping[Basis | None, Mark] = {
    "measured": "measured",
    "interpolated": "predicted",
    "population": "predicted",
    "extrapolated": "extrapolated",
    "model only": "extrapolated",
    None: "",
}
"""What a figure rests on, in a customer's words."""


def given(number: float) -> str:
    """Return a rate as it was given: `12,345`, `0.5`."""
    return f"{number:,.10g}"


def two_digits(number: float) -> str:
    """Return two significant digits, for latencies with bands and half-widths: `0.31`, `57`, `1,200`."""
    return to_digits(number, 2)


def ends(figure: Band, form: Format = significant) -> str:
    """Return a band in parentheses: `(17,500 to 26,500)`; empty if its width is 0."""
    value, low, high = (form(number) for number in (figure.value, figure.low, figure.high))
    return "" if low == value == high else f"({low} to {high})"


def banded(figure: Band | None, form: Format = two_digits) -> str:
    """Return a figure with its band: `2.3 (1.5 to 3.7)`; a single number if the width is 0."""
    return NOT_MODELLED if figure is None else f"{form(figure.value)} {ends(figure, form)}".rstrip()


def figure_cell(figure: Band | None, form: Format = two_digits, unit: str = "ms", key: str = "") -> Cell:
    """Return a figure as a cell, with its band beside it."""
    if figure is None:
        return Cell(NOT_MODELLED)
    texts = [form(number) for number in (figure.value, figure.low, figure.high)]
    value, low, high = map(shown, texts)
    beside = ends(figure, form).strip("()")
    return Cell(texts[0], value, unit, low, high, MARK_OF[figure.basis], key, beside=beside)


def shown(text: str) -> float:
    """Return the number that a text shows."""
    return math.inf if text == "unbounded" else float(text.replace(",", ""))


def share_band(figure: Band) -> str:
    """Return a share with its band, the unit once: `80 % (71 to 93 %)`."""
    return banded(figure, share).replace(" % to ", " to ")


def to_ends(figure: Band) -> str:
    """Return the ends of a band of rates or sizes: `950 to 1,240`."""
    return " to ".join(rate(end) if end >= 1000 else significant(end) for end in (figure.low, figure.high))


def per_second(number: float) -> str:
    """Return a rate with its unit: `7,200/s`."""
    return f"{rate(number)}/s"


def percent(part: float) -> str:
    """Return a share in percent, formatted like probabilities: `3.14 %`."""
    return f"{part:.2%}".replace("%", " %")


def error(part: float, least: float = 5e-5) -> str:
    """Return an absolute error in percent: `3.1 %`, `unbounded`; floating-point errors count as 0."""
    part = part if part >= least else 0.0
    return f"{100 * part:.2g} %" if part < 0.995 else (f"{100 * part:.0f} %" if math.isfinite(part) else "unbounded")


def many(count: int, noun: str) -> str:
    """Return a count with its noun: `1 row`, `1,204 rows`."""
    return f"{count:,} {plural(noun, count)}"


def plural(noun: str, count: int) -> str:
    """Return the singular or plural of a noun for a count."""
    return f"{noun}{'s' * (count != 1)}"


def capital(text: str) -> str:
    """Return a phrase with a capital first letter."""
    return text[:1].upper() + text[1:]
