"""Figures of a table to fit: their rounding, their scatter between repeats, and the levels of percentiles."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from capplan.layout.table_rows import (
    _AWAY,
    ACROSS_LAYOUTS,
    LEVELS,
    MEAN,
    NODE_CPU,
    ON_CURVES,
    QUANTITIES,
    THROUGHPUT,
    TableRow,
)

_REQUESTS = 10_000  # of a run: few, so that the error is rather too large


BESIDE: Mapping[str, tuple[str, str]] = {name: (f"{name} lower", f"{name} higher") for name in LEVELS}
"""Names of the percentiles that lie two standard errors of a run of 10,000 requests below and above each."""
SOLVED_LEVELS: Mapping[str, float] = {
    **LEVELS,
    **{
        name: level + side * _AWAY * math.sqrt(level * (1 - level) / _REQUESTS)
        for own, level in LEVELS.items()
        for name, side in zip(BESIDE[own], (-1, 1), strict=True)
    },
}
"""The percentiles that can be solved, as shares of the requests."""


def log_sd_between(lower: float, higher: float) -> float:
    """Return by how much chance moves a percentile in a run, from the two beside it, as a log standard deviation."""
    return math.log(higher / lower) / (2 * _AWAY) if math.isfinite(lower) and math.isfinite(higher) else 0.0


_TAILS = {"latency_p90_ms": 1.5, "latency_p95_ms": 1.5, "latency_p99_ms": 2.0}  # times the scatter of a mean
_FEW = 3  # degrees of freedom from repeats below which a guess is better


@dataclass(frozen=True)
class Figure:
    """One figure to fit: the row, the column, the value and the standard deviation of its logarithm."""

    row: int
    quantity: str
    value: float
    log_sd: float


def figures_of(rows: Sequence[TableRow], scatter: Mapping[str, float]) -> list[Figure]:
    """Return the figures to fit.

    With closed clients that do not think, throughput and mean say the same (Little's law), so the mean is left out
    where both are given. The throughput of open traffic is its offered rate.
    """
    precision = precision_of(rows)
    found = []
    for number, row in enumerate(rows):
        for name, value in row.measured.items():
            if name == THROUGHPUT and row.load.kind != "closed":
                continue
            if name == MEAN and row.load.kind == "closed" and THROUGHPUT in row.measured:
                continue
            rounding = precision.get(name, 0.0) / value / math.sqrt(12)
            found.append(Figure(number, name, value, math.hypot(scatter[name], rounding)))
    return found


def precision_of(rows: Sequence[TableRow]) -> dict[str, float]:
    """Return the rounding step of each column: that of its most precise number."""
    found = {}
    for name in (*QUANTITIES, NODE_CPU):
        values = [row.measured[name] for row in rows if name in row.measured]
        if values:
            found[name] = next((step for step in (1.0, 0.1, 0.01) if _all_multiples(values, step)), 0.0)
    if found.get(THROUGHPUT) == 1.0 and _all_multiples(
        [r.measured[THROUGHPUT] for r in rows if THROUGHPUT in r.measured], 1000.0
    ):
        found[THROUGHPUT] = 1000.0
    return found


def _all_multiples(values: Iterable[float], step: float) -> bool:
    return all(abs(value / step - round(value / step)) < 1e-6 for value in values)


def scatter_of(rows: Sequence[TableRow], usual: float | None = None) -> dict[str, float]:
    """Return the scatter between repeats by column, from repeats where there are enough; otherwise a guess.

    Parameters
    ----------
    rows : sequence of TableRow
        The rows.
    usual : float, optional
        The guess for a throughput or a mean; by default it is larger for several layouts than for one.
    """
    if usual is None:
        usual = ON_CURVES if len({row.tested_layout for row in rows}) == 1 else ACROSS_LAYOUTS
    groups: dict[tuple[Any, ...], list[float]] = defaultdict(list)
    for row in rows:
        for name, value in row.measured.items():
            groups[name, row.tested_layout, row.load, row.request_class].append(math.log(value))
    found = {}
    for name in (*QUANTITIES, *({NODE_CPU} & {key[0] for key in groups})):
        own = [np.array(logs) for key, logs in groups.items() if key[0] == name and len(logs) > 1]
        freedom = sum(len(each) - 1 for each in own)
        if freedom >= _FEW:
            found[name] = max(math.sqrt(sum(float(np.sum((each - each.mean()) ** 2)) for each in own) / freedom), 0.01)
        else:
            found[name] = usual * _TAILS.get(name, 1.0)
    return found
