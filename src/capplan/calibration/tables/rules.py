"""Estimates by simple rules for rows of a load-test table, from the rows that a fit was trained on.

A rule knows one axis. It learns from a series: trained rows of the same request class that differ from the wanted row
along that axis only. Where there is no such series, it learns from the load curve of the nearest trained layout. A rule
that has no answer says why.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from capplan.evidence.load_test_row import ALL, LoadTestRow
from capplan.layout.baselines import (
    affine,
    linear,
    power_law,
    scalability_of_clients,
    work_of_copies,
)
from capplan.models.language.units import FloatArray

THROUGHPUT, MEAN = "throughput_tps", "latency_mean_ms"
_AXES = (
    "clients",
    "offered_tps",
    "rf",
    "cass_nodes",
    "node_cores",
    "front_nodes",
    "front_cores",
    "dcs",
    "read_fraction",
    "row_bytes",
    "data_gib",
    "rtt_ms",
    "think_time_ms",
)
"""Numeric conditions of a run, the loads first."""
_LOADS = ("clients", "offered_tps")
_WORDS = (
    "system",
    "version",
    "consistency_read",
    "consistency_write",
    "token_aware",
    "cache_state",
    "encryption_client",
    "encryption_internode",
    "client_share",
    "load_kind",
)


@dataclass(frozen=True)
class Estimate:
    """What a rule says of one figure.

    Attributes
    ----------
    value : float or None
        The estimate in the unit of the column; None: the rule has no answer.
    reason : str
        Why it has none; empty: it has one.
    """

    value: float | None
    reason: str = ""


def size_of(row: LoadTestRow, axis: str) -> float | None:
    """Return the place of a row on a numeric axis; counts by data centre count together."""
    value: Any = getattr(row, axis)
    if isinstance(value, tuple):
        return float(sum(value))
    if value is not None and axis in ("rf", "cass_nodes", "front_nodes"):
        return float(value) * (row.dcs or 1)
    return None if value is None else float(value)


def table_estimates(row: LoadTestRow, quantity: str, trained: Sequence[LoadTestRow]) -> dict[str, Estimate]:
    """Estimate one figure of a row by each rule.

    Parameters
    ----------
    row : LoadTestRow
        The row; its own figures are not used.
    quantity : str
        The column of the figure.
    trained : sequence of LoadTestRow
        The rows that the rules may learn from.

    Returns
    -------
    dict of Estimate
        By rule: `persistence`, `linear`, `affine`, `power_law`, `c_plus_r_rf` and `usl`.
    """
    measured = [
        each for each in trained if each.request_class == row.request_class and (getattr(each, quantity) or 0.0) > 0
    ]
    if not measured:
        return dict.fromkeys(RULES, Estimate(None, f"no trained row of this class has {quantity}"))
    return {name: rule(row, quantity, measured) for name, rule in RULES.items()}


def _persistence(row: LoadTestRow, quantity: str, measured: Sequence[LoadTestRow]) -> Estimate:
    distances = [_distance(row, each) for each in measured]
    near = [getattr(each, quantity) for each, far in zip(measured, distances, strict=True) if far == min(distances)]
    return Estimate(float(np.mean(near)))


def _along(rule: Callable[[FloatArray, FloatArray, float], float], sizes: int, positive: bool) -> Any:
    """Return a rule along the axis with the longest series, which needs some different sizes."""

    def estimate(row: LoadTestRow, quantity: str, measured: Sequence[LoadTestRow]) -> Estimate:
        axis, series = _series(row, measured)
        wanted = None if axis is None else size_of(row, axis)
        if axis is None or wanted is None:
            return Estimate(None, "no trained rows differ from this one along one axis only")
        x, y = _points(series, axis, quantity)
        if len(set(x)) < sizes:
            return Estimate(None, f"the trained rows of its series have one {axis}")
        if positive and min(*x, wanted) <= 0:
            return Estimate(None, f"a power of {axis} needs values above zero")
        return _finite(rule(x, y, wanted))

    return estimate


def _copies(row: LoadTestRow, quantity: str, measured: Sequence[LoadTestRow]) -> Estimate:
    series, wanted = _alike(row, measured, "rf"), size_of(row, "rf")
    x, y = _points(series, "rf", quantity)
    if wanted is None or len(set(x)) < 2:
        return Estimate(None, "it needs trained rows that differ from this one in RF only, with two RFs")
    if quantity == THROUGHPUT:
        return _finite(1 / work_of_copies(x, 1 / y, wanted))
    if not quantity.startswith("latency_"):
        return Estimate(None, "the rule speaks of throughput and latency")
    return _finite(work_of_copies(x, y, wanted))


def _scalability(row: LoadTestRow, quantity: str, measured: Sequence[LoadTestRow]) -> Estimate:
    if quantity not in (THROUGHPUT, MEAN):
        return Estimate(None, "the scalability law speaks of throughput and, by Little's law, of the mean latency")
    if row.clients is None or row.load_kind in ("open", "throttled"):
        return Estimate(None, "the scalability law needs closed clients")
    if quantity == MEAN and row.request_class not in (None, ALL) and row.read_fraction not in (None, 0.0, 1.0):
        return Estimate(None, "Little's law gives the mean over all classes of a run only")
    series = _alike(row, measured, "clients")
    if len({each.clients for each in series if each.throughput_tps}) < 3:
        series = _curve_of_nearest(row, measured)
    x, y = _points([each for each in series if each.throughput_tps], "clients", THROUGHPUT)
    if len(set(x)) < 3:
        return Estimate(None, "the scalability law needs trained rows with three numbers of clients")
    throughput = scalability_of_clients(x, y, float(row.clients))
    if quantity == THROUGHPUT:
        return _finite(throughput)
    return _finite(1e3 * row.clients / throughput - (row.think_time_ms or 0.0))


Rule = Callable[[LoadTestRow, str, Sequence[LoadTestRow]], Estimate]
RULES: dict[str, Rule] = {
    "persistence": _persistence,
    "linear": _along(linear, 1, False),
    "affine": _along(affine, 2, False),
    "power_law": _along(power_law, 2, True),
    "c_plus_r_rf": _copies,
    "usl": _scalability,
}


def _series(row: LoadTestRow, measured: Sequence[LoadTestRow]) -> tuple[str | None, Sequence[LoadTestRow]]:
    """Return the axis along which most different sizes were trained, all else like the row, and the trained rows."""
    found = {axis: _alike(row, measured, axis) for axis in _AXES if size_of(row, axis) is not None}
    sizes = {axis: len({size_of(each, axis) for each in rows}) for axis, rows in found.items()}
    axis = max(sizes, key=lambda name: sizes[name], default=None)
    if axis is not None and sizes[axis] >= 2:
        return axis, found[axis]
    load = next((name for name in _LOADS if size_of(row, name) is not None), None)
    curve = _curve_of_nearest(row, measured) if load == "clients" else []
    if load is not None and len({size_of(each, load) for each in curve}) >= 2:
        return load, curve
    return (axis, found[axis]) if axis is not None and sizes[axis] else (None, [])


def _alike(row: LoadTestRow, measured: Sequence[LoadTestRow], axis: str) -> list[LoadTestRow]:
    """Return the trained rows that have a place on an axis and differ from a row along it only."""
    others = [name for name in (*_AXES, *_WORDS) if name != axis]
    return [
        each
        for each in measured
        if size_of(each, axis) is not None and all(getattr(each, name) == getattr(row, name) for name in others)
    ]


def _curve_of_nearest(row: LoadTestRow, measured: Sequence[LoadTestRow]) -> list[LoadTestRow]:
    """Return the load curve of the trained layout that is nearest to a row."""
    nearest = min(measured, key=lambda each: _distance(row, each))
    return _alike(nearest, measured, "clients")


def _points(rows: Sequence[LoadTestRow], axis: str, quantity: str) -> tuple[FloatArray, FloatArray]:
    x = [size_of(each, axis) for each in rows]
    y = [getattr(each, quantity) for each in rows]
    return np.array(x, dtype=float), np.array(y, dtype=float)


def _distance(one: LoadTestRow, other: LoadTestRow) -> float:
    """Return how far two rows are apart: ten for each word, a doubling is one, and loads break ties."""
    far: float = 10.0 * sum(getattr(one, name) != getattr(other, name) for name in _WORDS)
    for axis in _AXES:
        here, there = size_of(one, axis), size_of(other, axis)
        if here == there:
            continue
        apart = 10.0 if here is None or there is None else _doublings(axis, here, there)
        far += apart * (0.1 if axis in _LOADS else 1.0)
    return far


def _doublings(axis: str, here: float, there: float) -> float:
    if axis == "read_fraction":
        return 4.0 * abs(here - there)
    return float(abs(math.log2(max(here, 1e-3) / max(there, 1e-3))))


def _finite(value: float) -> Estimate:
    if math.isfinite(value) and value > 0:
        return Estimate(value)
    return Estimate(None, "its estimate is not a positive number")
