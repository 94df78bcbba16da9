"""Conditions: what an answer takes at one value because nobody measured it, and what follows from other values.

The figures and the verdict of an answer are those at that value. A condition enters no draw and widens no band, unless
the spread of its source was measured: then it is a drawn one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from capplan.answers.number_words import as_given, significant

MOST = 20.0
"""The largest value of a condition that is looked at, times its value in the answer."""


@dataclass(frozen=True, kw_only=True)
class Unmeasured:
    """Something about a layout that no load test measured.

    Attributes
    ----------
    name
        What it is: `work of Cassandra on production data`.
    field
        The field of the scenario that states it, once it is measured.
    value
        Its value in answers: that of the load tests.
    expected
        The lowest and the highest value that its source expects.
    source
        Whose expectation that is.
    as_tested
        The clause of an answer that holds at the value: `data are as tested`.
    where
        The same after a figure: `on data as tested`.
    unit
        What a value counts: `times their work`.
    otherwise
        The clause of the expectation, with its two values: `production makes Cassandra's work {} to {} times`.
    measurement
        The measurement that decides.
    """

    name: str
    field: str
    value: float
    expected: tuple[float, float]
    source: str
    as_tested: str
    where: str
    unit: str
    otherwise: str
    measurement: str

    @property
    def drawn(self) -> bool:
        """Whether figures have the spread of what is expected; else they have the value."""
        return False

    @property
    def looked_at(self) -> tuple[float, float]:
        """The lowest and the highest value between which a break-even is searched for."""
        return self.value, self.value * MOST

    def as_field(self, value: float) -> Any:
        """Return what the field of the scenario is at a value."""
        return value

    def unit_at(self, value: float) -> str:
        """Return what a value counts."""
        del value
        return self.unit


@dataclass(frozen=True, kw_only=True)
class Consequence:
    """What an answer becomes at another value of a condition.

    Attributes
    ----------
    value
        The value.
    capacity_tps
        Median capacity of the layout, requests per second; null in an answer that sizes a layout.
    layout
        The cheapest layout, in words; null where none is safe, or the layout was given.
    machines
        Its numbers of machines by kind.
    cost
        What they cost, in the currency of the answer.
    """

    value: float
    capacity_tps: float | None = None
    layout: str | None = None
    machines: Mapping[str, int] = field(default_factory=dict)
    cost: float | None = None


@dataclass(frozen=True, kw_only=True)
class Condition:
    """Something that nobody measured, at its value in an answer.

    Attributes
    ----------
    name
        What it is.
    option
        The option that states it, once it is measured.
    value
        Its value in the answer.
    drawn
        Whether the figures have the spread of what its source expects, with the value as its median; else they have the
        value.
    break_even
        The highest value at which the answer stays the same, or of a drawn one at which it is *yes*; null if it does at
        the highest value that is looked at: 20 times the value, or the highest likely one of a drawn condition.
    expected_low
        The lowest value that its source expects.
    expected_high
        The highest value that its source expects.
    source
        Whose expectation that is.
    at_low
        The answer at the lowest expected value; null where nothing is asked for that it could change.
    at_high
        The answer at the highest expected value.
    as_tested
        The clause of an answer that holds at the value.
    where
        The same after a figure.
    unit
        What a value counts.
    otherwise
        The clause of the expectation.
    measurement
        The measurement that decides.
    """

    name: str
    option: str
    value: float
    drawn: bool = False
    break_even: float | None
    expected_low: float
    expected_high: float
    source: str
    at_low: Consequence | None = None
    at_high: Consequence | None = None
    as_tested: str
    where: str
    unit: str
    otherwise: str
    measurement: str

    @property
    def up_to(self) -> str:
        """Up to which value the answer stays the same, in words: `up to 1.83 times their work`."""
        most = self.value * MOST if self.break_even is None else self.break_even
        return f"up to {as_given(most)} {self.unit}"

    @property
    def terms(self) -> str:
        """What must be true for *yes*: `data are as tested: holds up to 1.8 times their work`."""
        if self.drawn:
            return f"{self.name} take {self.up_to} ({self.as_tested})"
        return f"{self.as_tested}: holds {self.up_to}"


def condition(
    about: Unmeasured, break_even: float | None, at_low: Consequence | None = None, at_high: Consequence | None = None
) -> Condition:
    """Return a condition of an answer."""
    low, high = about.expected
    return Condition(
        name=about.name,
        option=_option(about),
        value=about.value,
        drawn=about.drawn,
        break_even=break_even,
        expected_low=low,
        expected_high=high,
        source=about.source,
        at_low=at_low,
        at_high=at_high,
        as_tested=about.as_tested,
        where=about.where,
        unit=about.unit if break_even is None else about.unit_at(break_even),
        otherwise=about.otherwise.format(as_given(low), as_given(high)),
        measurement=about.measurement,
    )


def under(conditions: Sequence[Condition]) -> str:
    """Return the clause of an answer that is *yes*: `, if data are as tested: holds up to 1.8 times their work`."""
    return ", " * bool(conditions) + "; ".join(f"if {each.terms}" for each in conditions)


def instead(conditions: Sequence[Condition]) -> str:
    """Return the clause of an answer that is not *yes*: `; yes if GC pauses of a node take up to 0.1 % ...`."""
    return "".join(f"; yes if {each.terms}" for each in conditions if each.drawn)


def capacities(conditions: Sequence[Condition]) -> str:
    """Return the end of a capacity: ` on data as tested; 10,700 to 7,100 if production ...`."""
    parts = []
    for each in conditions:
        ends = [at.capacity_tps for at in (each.at_low, each.at_high) if at is not None and at.capacity_tps is not None]
        rates = " to ".join(dict.fromkeys(map(significant, ends)))
        parts.append(
            f" {each.where}" * bool(each.where) + (f"; {rates} if {each.otherwise} ({each.source})" if rates else "")
        )
    return "".join(parts)


def stated(about: Unmeasured) -> str:
    """Return what figures take for granted, for an answer that has no verdict of its own on it."""
    low, high = map(as_given, about.expected)
    clause = about.otherwise.format(low, high)
    return f"Figures are {about.where}; if {clause} ({about.source}), state {about.field} = {low}..{high}."


def _option(about: Unmeasured) -> str:
    return f"--{about.field.replace('_', '-')}"
