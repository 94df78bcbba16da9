"""A row of a load-test table with what follows from it: the number of its requests, and how exactly it is printed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from capplan.calibration.audit.load_tests.rules import RULES, LoadTestFinding
from capplan.calibration.evidence.load_tests import ALL, PERCENTILES, LoadTestRow

LAYOUT = (
    *("system", "version", "dcs", "cass_nodes", "node_cores", "rf", "front_nodes", "front_cores"),
    *("consistency_read", "consistency_write", "token_aware", "row_bytes"),
    *("encryption_client", "encryption_internode", "rtt_ms", "load_kind", "think_time_ms"),
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
    """

    line: int
    row: LoadTestRow

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

    def finding(self, rule: str, sentence: str) -> LoadTestFinding:
        """Return a finding about the row."""
        found = RULES[rule]
        return LoadTestFinding(
            self.line,
            self.row.run_id,
            self.row.request_class,
            rule,
            found.severity,
            sentence,
            found.means,
            found.action,
        )


def resolution(value: float) -> float:
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
