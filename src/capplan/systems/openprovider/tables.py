"""The tables of the openprovider document: one layout under one load each, and the mix of requests of all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from capplan.calibration.evidence.interval import Interval
from capplan.calibration.evidence.table import Evidence


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
class DocumentedMix:
    """The share of each request class in a session, and the rows that say so."""

    shares: Mapping[str, float]
    rows: tuple[Evidence, ...]

    def mean(self, experiment: Experiment) -> Interval:
        """Return the mean response time over the classes of an experiment, in seconds."""
        total = Interval.exactly(0.0)
        for request_class, share in self.shares.items():
            total = total + experiment[f"latency.{request_class}"] * share
        return total


def mix(rows: Iterable[Evidence]) -> DocumentedMix:
    """Return the mix of request classes that the rows of quantity `session_requests` describe."""
    session = tuple(row for row in rows if row.quantity == "session_requests")
    total = sum(row.value for row in session)
    classes = dict.fromkeys(row.request_class for row in session)
    shares = {name: sum(row.value for row in session if row.request_class == name) / total for name in classes}
    return DocumentedMix(shares, session)
