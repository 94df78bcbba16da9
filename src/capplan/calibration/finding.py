"""What a check of the evidence finds: expected against documented, a verdict, one plain sentence."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from capplan.calibration.evidence_table import Evidence
from capplan.calibration.interval import Interval

Verdict = Literal["consistent", "rounding", "contradicted", "untested"]


@dataclass(frozen=True)
class Finding:
    """One law or claim, held against the rows that it speaks of.

    Attributes
    ----------
    name : str
        Stable name, such as `little.ts3`.
    law : str
        The law or the claim, in words.
    rows : tuple of str
        Ids of the rows used.
    expected : Interval
        What the law, or the figures that a claim speaks of, give; SI.
    documented : Interval or None
        What the document says; None exactly when the verdict is `untested`.
    unit : str
        SI unit of both.
    verdict : str
        `consistent`: the documented figure lies in the expected interval; `rounding`: only its interval meets the
        expected one; `contradicted`: the two intervals are apart; `untested`: no figure speaks to the claim.
    sentence : str
        The finding in one sentence.
    """

    name: str
    law: str
    rows: tuple[str, ...]
    expected: Interval
    documented: Interval | None
    unit: str
    verdict: Verdict
    sentence: str


def judge(expected: Interval, documented: Interval) -> Verdict:
    """Return the verdict on two intervals of one unit."""
    if expected.contains(documented.value):
        return "consistent"
    return "rounding" if expected.overlaps(documented) else "contradicted"


def compare(
    name: str,
    law: str,
    rows: Iterable[Evidence],
    expected: Interval,
    documented: Interval | None,
    sentence: str,
    unit: str = "1",
) -> Finding:
    """Judge `documented` by `expected`; `{expected}` and `{documented}` in `sentence` become the two, with units."""
    verdict: Verdict = "untested" if documented is None else judge(expected, documented)
    words = {"expected": shown(expected, unit), "documented": shown(documented, unit) if documented else "nothing"}
    ids = tuple(row.id for row in rows)
    return Finding(name, law, ids, expected, documented, unit, verdict, sentence.format(**words))


def shown(interval: Interval, unit: str = "1") -> str:
    """Print an interval for people: `4.38 ms [4.12, 4.62]`, `at least 15 ms`; durations in milliseconds."""
    factor, suffix = {"s": (1e3, " ms"), "1/s": (1.0, "/s")}.get(unit, (1.0, ""))
    low, high = _digits(interval.low * factor), _digits(interval.high * factor)
    if math.isinf(interval.high):
        return f"at least {low}{suffix}"
    if math.isinf(interval.low):
        return f"at most {high}{suffix}"
    if interval.low == interval.high:
        return f"{_digits(interval.value * factor, 4)}{suffix}"
    return f"{_digits(interval.value * factor)}{suffix} [{low}, {high}]"


def _digits(number: float, significant: int = 3) -> str:
    return f"{number:.0f}" if 1000 <= abs(number) < math.inf else f"{number:.{significant}g}"


def at_least(interval: Interval) -> Interval:
    """Return the interval of what is no less than `interval`."""
    return Interval(interval.value, interval.low, math.inf)


def at_most(interval: Interval) -> Interval:
    """Return the interval of what is no more than `interval`."""
    return Interval(interval.value, -math.inf, interval.high)


@dataclass(frozen=True)
class Experiment:
    """The figures of one table: one layout under one load, each figure by `quantity` or `quantity.request_class`."""

    scenario: str
    proxy: bool
    ldap: bool
    dcs: int
    front_nodes: int
    figures: Mapping[str, Evidence]

    def __getitem__(self, figure: str) -> Interval:
        """Return a figure with its rounding, SI."""
        return self.figures[figure].interval

    @property
    def front_nodes_total(self) -> int:
        """Front nodes over all DCs."""
        return self.dcs * self.front_nodes

    @property
    def rate_per_front_node(self) -> Interval:
        """Incoming requests per second at each front node."""
        return self["incoming_rate"] / self.front_nodes_total

    def used(self, *figures: str) -> tuple[Evidence, ...]:
        """Return the rows behind `figures`."""
        return tuple(self.figures[figure] for figure in figures)


def experiments(rows: Iterable[Evidence]) -> tuple[Experiment, ...]:
    """Gather load-test rows into experiments, tables with and without proxying apart, in the order of the rows."""
    groups: dict[tuple[str, bool], list[Evidence]] = {}
    for row in rows:
        if row.duplicate_group:
            groups.setdefault((row.duplicate_group, bool(row.proxy)), []).append(row)
    return tuple(_experiment(scenario, proxy, group) for (scenario, proxy), group in groups.items())


def _experiment(scenario: str, proxy: bool, group: list[Evidence]) -> Experiment:
    first = group[0]
    figures = {".".join(filter(None, (row.quantity, row.request_class))): row for row in group}
    return Experiment(scenario, proxy, bool(first.ldap), first.dcs or 1, first.front_nodes or 1, figures)


@dataclass(frozen=True)
class Mix:
    """The share of each request class in a session, and the rows that say so."""

    shares: Mapping[str, float]
    rows: tuple[Evidence, ...]

    def mean(self, experiment: Experiment) -> Interval:
        """Return the mean response time over the classes of an experiment, in seconds."""
        total = Interval.exactly(0.0)
        for request_class, share in self.shares.items():
            total = total + experiment[f"latency.{request_class}"] * share
        return total


def mix(rows: Iterable[Evidence]) -> Mix:
    """Return the mix of request classes that the rows of quantity `session_requests` describe."""
    session = tuple(row for row in rows if row.quantity == "session_requests")
    total = sum(row.value for row in session)
    classes = dict.fromkeys(row.request_class for row in session)
    shares = {name: sum(row.value for row in session if row.request_class == name) / total for name in classes}
    return Mix(shares, session)
