"""Figures and situations of a proposal in words: what every format shows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from capplan.calibration.system import System
from capplan.models.errors import InputError
from capplan.models.number_words import rate, share, significant, tenths_of_percent
from capplan.models.objective import parse
from capplan.models.results import Band, Basis
from capplan.planner.proposal.document import Cell, Mark
from capplan.planner.situations.conditions import NORMAL
from capplan.planner.situations.sustained import OVERLOAD
from capplan.planner.size.disks import DATA
from capplan.planner.size.prices import MACHINES

MONTHS = 12
_MARK_OF: Mapping[Basis | None, Mark] = {
    "measured": "measured",
    "interpolated": "predicted",
    "extrapolated": "extrapolated",
    "model only": "extrapolated",
    None: "",
}
_STATISTICS = {
    "mean": "mean",
    "p50": "median",
    "p90": "90th percentile",
    "p95": "95th percentile",
    "p99": "99th percentile",
    "p999": "99.9th percentile",
}
_RELATIONS = {"<": "below", "<=": "at most", ">": "above", ">=": "at least"}


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
    text = f"{number:+,.0f}" if signed else f"{number:,.0f}"
    return Cell(text if currency == MACHINES else f"{text} {currency}", float(f"{number:.0f}"), currency, key=key)


def shown(text: str) -> float:
    """Return the number that a text shows."""
    return math.inf if text == "unbounded" else float(text.replace(",", ""))


def situation(word: str, its: System[Any]) -> str:
    """Return the situation of a word of `--survive`: `Loss of a data centre, with repair or compaction`."""
    if word == NORMAL.word:
        return "Normal operation"
    if word == DATA:
        return "Data on the disks"
    parts = word.split("+")
    lost = [thing(part, its) for part in parts if part in its.losses]
    strained = [its.situations[part].name for part in parts if part in its.situations]
    text = f"loss of {' and '.join(lost)}" if lost else ""
    text = ", with ".join(filter(None, [text, " and ".join(strained)]))
    return text[:1].upper() + text[1:]


def clause(word: str, its: System[Any]) -> str:
    """Return the situation as it ends a sentence: `after the loss of a data centre`."""
    text = inside_sentence(situation(word, its))
    if word == NORMAL.word:
        return f"in {text}"
    if word == DATA:
        return "with all data on its disks"
    return f"after the {text}" if text.startswith("loss") else f"in case of {text}"


def thing(word: str, its: System[Any]) -> str:
    """Return what can be lost, in words: `a data centre`."""
    return "a data centre" if word == "dc" else its.losses[word]


def inside_sentence(text: str) -> str:
    """Return a phrase as it stands inside a sentence."""
    return text[:1].lower() + text[1:]


def listed(words: list[str] | tuple[str, ...]) -> str:
    """Return a list in words: `a, b and c`."""
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last


def counted(machines: Mapping[str, int], its: System[Any]) -> str:
    """Return numbers of machines in words: `231 Cassandra nodes and 6 policing nodes`."""
    return listed([f"{count:,} {its.machines[kind].name}{'s' * (count != 1)}" for kind, count in machines.items()])


def objective(text: str) -> str:
    """Return an objective in words where it is a single bound on a time; as it is written otherwise."""
    try:
        found = parse(text).comparisons()
    except InputError:
        return text
    if len(found) != 1 or found[0].metric.kind != "duration" or found[0].relation == "in":
        return text
    (one,) = found
    bound = significant(1e3 * one.bounds[0]).removesuffix(".00").removesuffix(".0")
    return f"{statistic(one.metric.statistic)} of {one.metric.subject} {_RELATIONS[one.relation]} {bound} ms"


def statistic(name: str) -> str:
    """Return a statistic in words."""
    return _STATISTICS.get(name, name)


def limited_by(limit: str) -> str:
    """Return what limits a rate: overload, an objective in words, or why there is no service."""
    return limit if limit == OVERLOAD else objective(limit)


def fits_for(found: Band | None) -> str:
    """Return how long a layout fits, with the band where it is uncertain."""
    if found is None:
        return "no growth given"
    if found.low == found.high:
        return months(found.value)
    return f"{months(found.value)} ({months(found.low)} to {months(found.high)})"


def months(number: float) -> str:
    """Return a time in months, or in years where it is long."""
    if not math.isfinite(number):
        return "unbounded"
    if number <= 0:
        return "past already"
    return f"{number:.0f} months" if number < 2 * MONTHS else f"{number / MONTHS:.1f} years"
