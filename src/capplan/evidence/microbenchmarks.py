"""The table `capplan.microbench/1`: one row per figure of a part measured on its own, or of a server's counters.

A load test says what clients see. A row here says what one part does: the time of a local read, of a round trip, of a
TLS handshake, or a histogram that a server keeps of its own work.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from capplan.evidence.typed_table import TypedTable


@dataclass(frozen=True, kw_only=True)
class MicrobenchRow:
    """One figure of one part; None where nothing is known.

    Attributes
    ----------
    run_id
        Name of the measurement; its figures share it.
    system
        What the part belongs to.
    version
        Version of the part.
    host
        Where it ran.
    component
        The part, such as `coordinator`, `replica`, `thread pool` or `link`.
    operation
        What it did, such as `read`, `write` or `handshake`.
    quantity
        What was measured, such as `latency`, `cpu_time`, `completed` or `size`.
    statistic
        Which figure of its distribution; `constant` for a plain number.
    value
        The figure in its unit.
    unit
        SI unit: `s`, `1/s`, `B`, `B/s`, or `1` for counts and shares.
    samples
        Number of observations behind the figure.
    error_low
        Lower end of the interval that holds the figure with 95 % confidence, in the same unit.
    error_high
        Upper end of that interval.
    conditions
        Load, level, size and whatever else the figure depends on, in words.
    source
        The file, and the tool that wrote it.
    note
        What else a reader must know.
    """

    run_id: str | None = None
    system: str | None = None
    version: str | None = None
    host: str | None = None
    component: str | None = None
    operation: str | None = None
    quantity: str | None = None
    statistic: (
        Literal["constant", "mean", "minimum", "maximum", "p50", "p75", "p90", "p95", "p98", "p99", "p999", "deviation"]
        | None
    ) = None
    value: float | None = None
    unit: Literal["s", "1/s", "B", "B/s", "1"] | None = None
    samples: int | None = None
    error_low: float | None = None
    error_high: float | None = None
    conditions: str | None = None
    source: str | None = None
    note: str | None = None


MICROBENCHMARKS = TypedTable(MicrobenchRow, "a table of microbenchmarks", "capplan.microbench/1")
"""The table of microbenchmarks: `MICROBENCHMARKS.read(path)` returns a data frame."""
