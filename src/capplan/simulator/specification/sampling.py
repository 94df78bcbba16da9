"""Sampling: distributions as functions from one uniform number to ticks (inverse transform), the same bits everywhere.

A distribution with a formula is sampled from its table (`quantile_table`): ticks are the table's value times the scale
in ticks, rounded half to even, at least 0 and at most `LONGEST_TICKS`. An empirical distribution is linear between its
values. The true quantile of a mixture needs a bisection; instead the leading part of the uniform number selects the
component and the rest of it is the quantile within, which has the same distribution.

`flatten` gives the same distributions as a few arrays, for a compiled engine.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from capplan.models.language.distribution import (
    Deterministic,
    Distribution,
    Empirical,
    Exponential,
    Hyperexponential,
    Mixture,
)
from capplan.models.language.units import FloatArray, Number
from capplan.simulator.specification.clock import LONGEST_TICKS, TICKS_PER_S, to_ticks
from capplan.simulator.specification.quantile_table import QuantileTable, Tabulated, quantile_table, scale_s

IntArray = NDArray[np.int64]
Sampler = Callable[[float], int]
SMALLEST, LARGEST = 2.0**-53, 1 - 2.0**-53  # the smallest and largest uniform number
LARGEST_SCALE = 1e300  # so that a table's value times the scale is never 0 times infinity


def tick_sampler(distribution: Distribution) -> Sampler:
    """Return the function from a uniform number to a duration in ticks.

    Parameters
    ----------
    distribution : Distribution
        The distribution of the duration, in seconds.

    Returns
    -------
    Callable[[float], int]
        Takes a number strictly between 0 and 1.

    Raises
    ------
    RefusedError
        When the shape is too extreme for a table; see `quantile_table`.
    """
    match distribution:
        case Deterministic():
            constant = to_ticks(float(distribution.value_s))
            return lambda _: constant
        case Empirical():
            return _empirical([float(value) for value in distribution.values_s])
        case Hyperexponential() | Mixture():
            return _mixture(*_components(distribution))
        case _:
            return _tabulated(quantile_table(distribution), _scale_ticks(distribution))


def picker(probabilities: Sequence[Number]) -> Callable[[float], int]:
    """Return the function from a uniform number to the index of one of the alternatives."""
    edges = list(accumulate(float(probability) for probability in probabilities))[:-1]
    return lambda uniform: bisect_right(edges, uniform)  # the last takes the rounding error of the sum


def _scale_ticks(distribution: Tabulated) -> float:
    return min(scale_s(distribution) * TICKS_PER_S, LARGEST_SCALE)


def _rounded(ticks: float) -> int:
    """Round half to even; a table may be a little below 0 where its values are negligible."""
    return LONGEST_TICKS if ticks >= LONGEST_TICKS else max(round(ticks), 0)


def _tabulated(table: QuantileTable, scale_ticks: float) -> Sampler:
    value = table.quantile()
    return lambda uniform: _rounded(value(uniform) * scale_ticks)


def _empirical(values_s: list[float]) -> Sampler:
    intervals = len(values_s) - 1

    def ticks(uniform: float) -> int:
        place = uniform * intervals
        index = int(place)
        seconds = values_s[index] + (place - index) * (values_s[index + 1] - values_s[index])
        return _rounded(seconds * TICKS_PER_S)

    return ticks


def _components(distribution: Hyperexponential | Mixture) -> tuple[list[float], list[Distribution]]:
    shares = [float(probability) for probability in distribution.probabilities]
    if isinstance(distribution, Mixture):
        return shares, list(distribution.distributions)
    return shares, [Exponential(mean_s) for mean_s in distribution.means_s]


def _starts(shares: list[float]) -> list[float]:
    return [0.0, *accumulate(shares)][:-1]


def _mixture(shares: list[float], distributions: list[Distribution]) -> Sampler:
    starts, pick = _starts(shares), picker(shares)
    samplers = [tick_sampler(distribution) for distribution in distributions]

    def ticks(uniform: float) -> int:
        chosen = pick(uniform)
        within = (uniform - starts[chosen]) / shares[chosen]
        return samplers[chosen](min(max(within, SMALLEST), LARGEST))

    return ticks


class DistributionKind(IntEnum):
    """How a row of `FlatDistributions` is sampled."""

    CONSTANT = 0
    TABLE = 1
    EMPIRICAL = 2
    MIXTURE = 3


@dataclass(frozen=True, eq=False)
class FlatDistributions:
    """Distributions as arrays, one row per distribution; components of mixtures have their own rows.

    Attributes
    ----------
    rows
        For each requested distribution, its row; equal distributions share one.
    kind
        By row, a `DistributionKind`.
    ticks
        By row, the value of a constant, in ticks; else 0.
    scale
        By row, the factor from a table's value (of scale 1) or an empirical one (in seconds) to ticks; else 0.
    first, count
        By row, where its numbers begin, and how many pieces per octave, values or components it has. A table has 2 * 52
        * count * 6 numbers in the order of `QuantileTable.coefficients`, an empirical distribution `count` values in
        seconds, a mixture the `count` starts of its components and then their `count` shares.
    first_part
        By row, where a mixture's `count` parts begin; else 0.
    numbers
        All numbers.
    parts
        The rows of the mixtures' components.
    """

    rows: IntArray
    kind: IntArray
    ticks: IntArray
    scale: FloatArray
    first: IntArray
    count: IntArray
    first_part: IntArray
    numbers: FloatArray
    parts: IntArray


def flatten(distributions: Sequence[Distribution]) -> FlatDistributions:
    """Return distributions as arrays; `tick_sampler` defines how an engine samples them.

    Raises
    ------
    RefusedError
        When a shape is too extreme for a table; see `quantile_table`.
    """
    flat = _Flattening()
    rows = [flat.row(distribution) for distribution in distributions]
    return flat.distributions(rows)


class _Flattening:
    """Collects rows, numbers and parts."""

    def __init__(self) -> None:
        self._row: dict[Distribution, int] = {}
        self._table: dict[QuantileTable, int] = {}  # where its numbers begin
        self._columns: list[tuple[int, int, float, int, int, int]] = []
        self._numbers: list[FloatArray] = []
        self._size = 0
        self._parts: list[int] = []

    def row(self, distribution: Distribution) -> int:
        """Return the row of a distribution; add it, after its components, when it is new."""
        if distribution not in self._row:
            columns = self._add(distribution)
            self._row[distribution] = len(self._columns)
            self._columns.append(columns)
        return self._row[distribution]

    def _add(self, distribution: Distribution) -> tuple[int, int, float, int, int, int]:
        match distribution:
            case Deterministic():
                return DistributionKind.CONSTANT, to_ticks(float(distribution.value_s)), 0.0, 0, 0, 0
            case Empirical():
                count = len(distribution.values_s)
                return (
                    DistributionKind.EMPIRICAL,
                    0,
                    float(TICKS_PER_S),
                    self._add_numbers(distribution.values_s),
                    count,
                    0,
                )
            case Hyperexponential() | Mixture():
                shares, distributions = _components(distribution)
                parts = [self.row(part) for part in distributions]
                self._parts += parts
                first = self._add_numbers([*_starts(shares), *shares])
                return DistributionKind.MIXTURE, 0, 0.0, first, len(parts), len(self._parts) - len(parts)
            case _:
                return self._add_table(distribution)

    def _add_table(self, distribution: Tabulated) -> tuple[int, int, float, int, int, int]:
        table = quantile_table(distribution)
        if table not in self._table:
            self._table[table] = self._add_numbers(table.coefficients.ravel())
        return DistributionKind.TABLE, 0, _scale_ticks(distribution), self._table[table], table.pieces, 0

    def _add_numbers(self, numbers: Sequence[Number] | FloatArray) -> int:
        self._numbers.append(np.asarray(numbers, dtype=np.float64))
        self._size += len(numbers)
        return self._size - len(numbers)

    def distributions(self, rows: list[int]) -> FlatDistributions:
        """Return all collected distributions."""
        kind, ticks, scale, first, count, first_part = zip(*self._columns, strict=True) if rows else ((),) * 6
        whole = [np.array(column, dtype=np.int64) for column in (rows, kind, ticks, first, count, first_part)]
        return FlatDistributions(
            rows=whole[0],
            kind=whole[1],
            ticks=whole[2],
            scale=np.array(scale, dtype=np.float64),
            first=whole[3],
            count=whole[4],
            first_part=whole[5],
            numbers=np.concatenate([np.empty(0), *self._numbers]),
            parts=np.array(self._parts, dtype=np.int64),
        )
