"""Figures of a proposal as cells: numbers as they are shown, with their unit and their mark."""

from __future__ import annotations

import math
from collections.abc import Mapping

from capplan.models.number_words import rate, share, significant, tenths_of_percent
from capplan.models.results import Band, Basis
from capplan.planner.proposal.formats.document import Cell, Mark
from capplan.planner.size.in_words import cost_in_words

_MARK_OF: Mapping[Basis | None, Mark] = {
    "measured": "measured",
    "interpolated": "predicted",
    "extrapolated": "extrapolated",
    "model only": "extrapolated",
    None: "",
}


def mark_of(basis: Basis | None) -> Mark:
    """Return the mark of a basis."""
    return _MARK_OF[basis]


def rate_cell(number: float, key: str = "", mark: Mark = "") -> Cell:
    """Return a rate, requests per second."""
    return Cell(text := rate(number), shown(text), "1/s", mark=mark, key=key)


def band_cell(band: Band, unit: str, key: str = "", mark: Mark = "") -> Cell:
    """Return a figure with its band."""
    said = rate if unit == "1/s" else significant
    texts = [said(each) for each in (band.value, band.low, band.high)]
    whole = texts[0] if band.low == band.high else f"{texts[0]} ({texts[1]} to {texts[2]})"
    value, low, high = map(shown, texts)
    return Cell(whole, value, unit, low, high, mark, key)


def risk_cell(number: float, key: str = "", mark: Mark = "") -> Cell:
    """Return a probability in tenths of a per cent."""
    text = tenths_of_percent(number)
    return Cell(text, float(f"{number:.3f}") if not text.startswith("<") else 0.0, "1", mark=mark, key=key)


def share_cell(number: float, key: str = "", mark: Mark = "") -> Cell:
    """Return a share in per cent."""
    text = share(number)
    return Cell(
        text, round(shown(text.removesuffix(" %")) / 100, 6) if text[:1].isdigit() else None, "1", mark=mark, key=key
    )


def cost_cell(number: float, currency: str, key: str = "", signed: bool = False) -> Cell:
    """Return a cost; machines where no prices are given."""
    return Cell(cost_in_words(number, currency, signed), float(f"{number:.0f}"), currency, key=key)


def shown(text: str) -> float:
    """Return the number that a text shows."""
    return math.inf if text == "unbounded" else float(text.replace(",", ""))
