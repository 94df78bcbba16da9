"""Checks of documented figures: their arithmetic, and the findings that come of it.

Each documented system has a module `audit` in its package. Its function `checks` takes the figures by id and yields
findings of laws, of claims and of readings: each compares what is expected with what the document has, and says so in a
sentence. A figure carries the interval that the rounding of the printed figures allows. A verdict of `contradicted`
means that no rounding explains the difference.

References
----------
.. [1] P. J. Denning and J. P. Buzen, "The operational analysis of queueing network models", ACM Computing Surveys
   10(3), 1978: operational laws hold for every system that is observed for long enough, whatever its distributions.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import reduce
from itertools import combinations
from typing import ClassVar, TypeAlias

from capplan.errors import look_up, one_of
from capplan.evidence.audit.finding import Finding, Part, Severity, Verdict, judge, shown
from capplan.evidence.interval import Interval
from capplan.evidence.table import Evidence, by_id

Operand: TypeAlias = "Figure | float"
Findings: TypeAlias = Iterator[Finding]

_POWERS = {"1": (0, 0), "s": (1, 0), "1/s": (-1, 0), "B": (0, 1)}  # of seconds and bytes


@dataclass(frozen=True)
class Figure:
    """A documented figure, or a number that is computed from some.

    In an f-string it prints with its interval and unit. A format, such as `.2f`, is that of the number alone.

    Attributes
    ----------
    interval : Interval
        The number with its rounding, SI.
    unit : str
        Its SI unit. Arithmetic keeps account of seconds and bytes.
    rows : tuple of Evidence
        Where it comes from.
    written : str
        How its document writes it; empty if it is computed.
    """

    interval: Interval
    unit: str = "1"
    rows: tuple[Evidence, ...] = ()
    written: str = ""

    @property
    def value(self) -> float:
        """The number without its rounding."""
        return self.interval.value

    @property
    def printed(self) -> Figure:
        """The figure without its rounding."""
        return figure(self.value, self, unit=self.unit)

    @property
    def or_more(self) -> Figure:
        """All values that are at least the figure."""
        return figure(Interval(self.value, self.interval.low, math.inf), self, unit=self.unit)

    @property
    def or_less(self) -> Figure:
        """All values that are at most the figure."""
        return figure(Interval(self.value, -math.inf, self.interval.high), self, unit=self.unit)

    def cell(self, name: str) -> Figure:
        """Return a count of its row's layout, such as `dcs`, or the number of a key in its column `layout`."""
        (row,) = self.rows
        counts = {each: getattr(row, each) for each in ("dcs", "front_nodes", "cass_nodes", "rf")}
        cells = {each: str(count) for each, count in counts.items() if count is not None} | dict(row.layout)
        one_of(cells, name, f"the layout of row {row.id!r} has no {name!r}")
        return Figure(Interval.exactly(float(cells[name])), "1", self.rows, cells[name])

    def __format__(self, form: str) -> str:
        return format(self.value, form) if form else shown(self.interval, self.unit)

    def __add__(self, other: Operand) -> Figure:
        return _combined(operator.add, self, other)

    def __radd__(self, other: float) -> Figure:
        return _combined(operator.add, other, self)

    def __sub__(self, other: Operand) -> Figure:
        return _combined(operator.sub, self, other)

    def __rsub__(self, other: float) -> Figure:
        return _combined(operator.sub, other, self)

    def __mul__(self, other: Operand) -> Figure:
        return _combined(operator.mul, self, other)

    def __rmul__(self, other: float) -> Figure:
        return _combined(operator.mul, other, self)

    def __truediv__(self, other: Operand) -> Figure:
        return _combined(operator.truediv, self, other)

    def __rtruediv__(self, other: float) -> Figure:
        return _combined(operator.truediv, other, self)


def figure(number: Interval | float, *sources: Figure, unit: str = "1") -> Figure:
    """Return a number as a figure that comes from the rows of others; a plain number has no rounding."""
    interval = number if isinstance(number, Interval) else Interval.exactly(number)
    return Figure(interval, unit, tuple({row.id: row for each in sources for row in each.rows}.values()))


def _combined(apply: Callable[[Interval, Interval], Interval], one: Operand, other: Operand) -> Figure:
    left, right = (each if isinstance(each, Figure) else figure(each) for each in (one, other))
    return figure(apply(left.interval, right.interval), left, right, unit=_unit(apply, left.unit, right.unit))


def _unit(apply: Callable[[Interval, Interval], Interval], left: str, right: str) -> str:
    """Return the unit of a sum, a difference, a product or a quotient."""
    sign = {operator.mul: 1, operator.truediv: -1}.get(apply)
    if sign is None:
        if left != right:
            raise ValueError(f"figures in {left} and in {right} do not add up")
        return left
    (seconds, data), (other_seconds, other_data) = _POWERS[left], _POWERS[right]
    units = {powers: unit for unit, powers in _POWERS.items()}
    return units[seconds + sign * other_seconds, data + sign * other_data]


def total(figures: Iterable[Figure]) -> Figure:
    """Return the sum of one or more figures."""
    return reduce(operator.add, figures)


class Figures:
    """The documented figures of a system by id."""

    def __init__(self, evidence: Iterable[Evidence]) -> None:
        self._rows = by_id(evidence)

    def __getitem__(self, name: str) -> Figure:
        row = look_up(self._rows, name, f"{name!r} is not the id of a row of evidence")
        return Figure(row.interval, row.unit, (row,), row.written)

    def like(self, pattern: str) -> tuple[Figure, ...]:
        """Return the figures whose ids match a pattern, such as `r1.none.c*`, in the order of the table."""
        return tuple(self[name] for name in self._rows if fnmatchcase(name, pattern))


Checks: TypeAlias = Callable[[Figures], Iterable[Finding]]
"""The checks of a system: the function `checks` of its module `audit`."""


@dataclass(frozen=True)
class Check:
    """A check of documented figures: its id, such as `little.ts1`, and the law, claim or reading in words."""

    part: ClassVar[Part]
    action: ClassVar[str] = ""

    name: str
    means: str

    def compare(self, expected: Figure, documented: Figure | None, sentence: str, *cites: Figure) -> Finding:
        """Return what a comparison finds.

        Parameters
        ----------
        expected : Figure
            What the law, or the figures that a claim speaks of, give.
        documented : Figure or None
            What the document says, in the same unit; None if no figure speaks to the claim.
        sentence : str
            The finding in words.
        *cites : Figure
            Figures that the finding names beside those that it computes with.
        """
        verdict: Verdict = "untested" if documented is None else judge(expected.interval, documented.interval)
        severity: Severity = "refused" if verdict == "contradicted" and self.action else "none"
        used = (*cites, expected, *([documented] if documented else []))
        return Finding(
            part=self.part,
            rule=self.name,
            severity=severity,
            means=self.means,
            action=self.action if severity == "refused" else "",
            figures=tuple(dict.fromkeys(row.id for each in used for row in each.rows)),
            expected=expected.interval,
            documented=documented.interval if documented else None,
            unit=expected.unit,
            verdict=verdict,
            sentence=sentence,
        )

    def never_falls(self, what: str, series: Mapping[str, Figure]) -> Finding:
        """Check that a series of two or more never falls, by the two figures that speak most against it."""
        first, second = deepest_fall(series)
        return self.compare(
            expected := series[first].or_more,
            documented := series[second],
            f"From {first} to {second} {what} should not fall: it should be {expected}; the document says "
            f"{documented}.",
        )

    def one_constant(self, what: str, series: Mapping[str, Figure]) -> Finding:
        """Check that a series has one constant, by the two figures that speak most against it."""
        first, second = farthest_apart(series)
        return self.compare(
            expected := series[first],
            documented := series[second],
            f"{what}: {first} gives {expected}, {second} gives {documented}.",
        )


class Law(Check):
    """An operational law, or plain arithmetic, that holds whatever the document says."""

    part = "law"
    action = "Fit none of these figures until it is known which is wrong."


class Claim(Check):
    """What the document says about its own figures, or one of its tests about another."""

    part = "claim"
    action = "Rely on the figures, not on the claim."


class Reading(Check):
    """A reading that the document leaves open; if it is refuted, the document is not at fault."""

    part = "reading"


def deepest_fall(series: Mapping[str, Figure]) -> tuple[str, str]:
    """Return the names of the figures before and after the deepest fall of a series of two or more."""
    return min(combinations(series, 2), key=lambda pair: series[pair[1]].value - series[pair[0]].value)


def farthest_apart(series: Mapping[str, Figure]) -> tuple[str, str]:
    """Return the names of the figure with the lowest upper bound and of that with the highest lower bound.

    Intervals share a point exactly when every two of them do, so these two decide whether one constant fits all.
    """
    least = min(series, key=lambda name: series[name].interval.high)
    most = max(reversed(list(series)), key=lambda name: series[name].interval.low)
    return least, most
