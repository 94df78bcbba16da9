"""A sizing in words: layouts for tables and plots; situations, machines and times for sentences."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from capplan.calibration.system import System
from capplan.models.errors import InputError
from capplan.models.number_words import as_given
from capplan.models.objective import parse
from capplan.models.results import Band
from capplan.planner.situations.conditions import NORMAL
from capplan.planner.situations.sustained import OVERLOAD
from capplan.planner.size.disks import DATA
from capplan.planner.size.prices import MACHINES

if TYPE_CHECKING:
    from capplan.planner.size.sizing import Safety, SizedLayout

MONTHS = 12
_STATISTICS = {
    "mean": "mean",
    "p50": "median",
    "p90": "90th percentile",
    "p95": "95th percentile",
    "p99": "99th percentile",
    "p999": "99.9th percentile",
}
_RELATIONS = {"<": "below", "<=": "at most", ">": "above", ">=": "at least"}


def in_words(layout: SizedLayout, its: System[Any]) -> str:
    """Return the fields that a family shares, and the machines: `3 DCs: 27 nodes, 6 fronts`.

    Parameters
    ----------
    layout : SizedLayout
        The layout.
    its : System
        Its system.
    """
    fixed = fields_in_words(own_fields(layout, its))
    fixed = " of ".join([f"{layout.cells} cells"] * (layout.cells > 1) + [fixed] * bool(fixed))
    machines = ", ".join(
        f"{count} {layout.shapes.get(kind) or plural(kind, count)}" for kind, count in layout.machines.items()
    )
    return f"{fixed}: {machines}" if fixed else machines


def own_fields(layout: SizedLayout, its: System[Any]) -> dict[str, Any]:
    """Return the fields of a layout that neither numbers of machines nor their shapes decide."""
    hidden = {*its.sized, *(name for kind in layout.shapes for name in _of_shape(its, kind))}
    return {name: value for name, value in layout.fields.items() if name not in hidden}


def fields_in_words(fields: Mapping[str, Any]) -> str:
    """Return fields in words, such as `3 DCs, consistency_write LOCAL_QUORUM`."""
    words = [f"{value} {plural('DC', value)}" if name == "dcs" else f"{name} {value}" for name, value in fields.items()]
    return ", ".join(words)


def plural(name: str, count: int) -> str:
    """Return a noun in the number of its count."""
    return f"{name}{'s' * (count != 1)}"


def _of_shape(its: System[Any], kind: str) -> list[str]:
    """Return the fields that a shape decides."""
    machine = its.machines[kind]
    return [name for name in (machine.cores, machine.speed) if name is not None]


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


def counted(machines: Mapping[str, int], its: System[Any], shapes: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return numbers of machines in words: `231 Cassandra nodes and 6 RADIUS servers`, with their shapes if chosen."""
    return listed(
        [
            f"{count:,} {plural(its.machines[kind].name, count)}" + (f" ({shapes[kind]})" if kind in shapes else "")
            for kind, count in machines.items()
        ]
    )


def objective(text: str) -> str:
    """Return an objective in words where it is a single bound on a time; as it is written otherwise."""
    try:
        found = parse(text).comparisons()
    except InputError:
        return text
    if len(found) != 1 or found[0].metric.kind != "duration" or found[0].relation == "in":
        return text
    (one,) = found
    bound = as_given(1e3 * one.bounds[0])
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


def years_in_words(years: float) -> str:
    """Return a planned time: in months below two years."""
    if years < 2 and not math.isclose(years, 1):
        return f"{years * MONTHS:.0f} months"
    return f"{years:g} year{'s' * (years != 1)}"


def cost_in_words(number: float, currency: str, signed: bool = False) -> str:
    """Return a cost with its currency; the number of machines where no prices are given."""
    text = f"{number:+,.0f}" if signed else f"{number:,.0f}"
    return text if currency == MACHINES else f"{text} {currency}"


def guess(text: str, safety: Safety) -> str:
    """Return a situation in words, with a remark where it is a guess."""
    return f"{text} (a guess)" if safety.guessed else text
