"""A row of a load-test table with what follows from it: the number of its requests, and how exactly it is printed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from capplan.calibration.audit.finding import Finding
from capplan.calibration.audit.load_tests.rules import RULES
from capplan.calibration.evidence.load_tests import ALL, PERCENTILES, LoadTestRow

LAYOUT = (
    *("system", "version", "dcs", "cass_nodes", "node_cores", "rf", "front_nodes", "front_cores"),
    *("consistency_read", "consistency_write", "token_aware", "row_bytes"),
    *("encryption_client", "encryption_internode", "rtt_ms", "client_share", "load_kind", "think_time_ms"),
)
"""Columns in which runs of one series agree; and in the share of reads, which tools measure, and in the class."""


@dataclass(frozen=True)
class MeasuredRow:
    """A row and its place in the table.

    Attributes
    ----------
    line : int
        From 1.
    row : LoadTestRow
        Its cells.
    rounding : mapping of str to float
        Half of the interval that the rounding of a cell allows, by column, where documents state it.
    figures : tuple of str
        Ids of the documented figures in it.
    """

    line: int
    row: LoadTestRow
    rounding: Mapping[str, float] = field(default_factory=dict)
    figures: tuple[str, ...] = ()

    @cached_property
    def request_class(self) -> str:
        """The class; `all` where none is given."""
        return self.row.request_class or ALL

    @cached_property
    def requests(self) -> float | None:
        """How many requests were completed."""
        throughput, duration = self.row.throughput_tps, self.row.duration_s
        return throughput * duration if throughput and duration and throughput > 0 and duration > 0 else None

    @cached_property
    def percentiles(self) -> dict[str, float]:
        """Latencies in ms by the names of their columns, from low to high percentiles."""
        return {name: value for name in PERCENTILES if (value := getattr(self.row, name)) is not None}

    @cached_property
    def series(self) -> tuple[object, ...]:
        """What runs at different loads have in common."""
        reads = self.row.read_fraction
        layout = tuple(getattr(self.row, name) for name in LAYOUT)
        return (*layout, None if reads is None else round(reads, 2), self.request_class)

    @cached_property
    def load(self) -> tuple[object, ...]:
        """What repeats of a run have in common besides."""
        return (*self.series, self.row.clients, self.row.offered_tps)

    def half_step(self, column: str) -> float:
        """Return half of the interval that the rounding of a cell allows: as stated, or by its last digit."""
        stated = self.rounding.get(column)
        return _resolution(getattr(self.row, column) or 0.0) if stated is None else stated

    def finding(self, rule: str, sentence: str) -> Finding:
        """Return a finding about the row."""
        found = RULES[rule]
        return Finding(
            part="load test",
            rule=rule,
            severity=found.severity,
            sentence=sentence,
            means=found.means,
            action=found.action,
            line=self.line,
            run_id=self.row.run_id,
            request_class=self.row.request_class,
            figures=self.figures,
        )


def _resolution(value: float) -> float:
    """Return half the last digit that a figure is written with."""
    digits = f"{value:.12g}"
    if "e" in digits:
        return abs(value) * 1e-6
    return 0.5 * 10.0 ** -len(digits.partition(".")[2])


def ms(value: float) -> str:
    """Return a latency with three significant digits."""
    return f"{value:.3g} ms" if value < 1000 else f"{value:,.0f} ms"


def rate(value: float) -> str:
    """Return a rate with its unit."""
    return f"{value:,.0f}/s" if value >= 100 else f"{value:.3g}/s"


def spread(values: list[float]) -> float:
    """Return the range of values relative to their middle."""
    ordered = sorted(values)
    middle = ordered[len(ordered) // 2]
    return (ordered[-1] - ordered[0]) / middle if middle > 0 else math.inf
