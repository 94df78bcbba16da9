"""Sampling: quantile functions as piecewise polynomials, bit for bit the same in both engines."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property, lru_cache
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray
from scipy import special

from capplan.errors import RefusedError
from capplan.models.language.distribution import (
    Deterministic,
    Distribution,
    Empirical,
    Erlang,
    Exponential,
    Hyperexponential,
    Lognormal,
    Mixture,
    Pareto,
    Weibull,
)
from capplan.models.language.units import FloatArray, Number
from capplan.simulator.specification.clock import LONGEST_TICKS, TICKS_PER_S, to_ticks

Tabulated = Erlang | Exponential | Lognormal | Pareto | Weibull
OCTAVES = 52  # u is an odd multiple of 2**-53, so r is at least 2**-53
ORDER = 6  # coefficients of a polynomial of degree 5
FEWEST_PIECES, MOST_PIECES = 8, 1024  # per octave; powers of two
TOLERANCE = 1e-9  # relative: one nanosecond in a second
NEGLIGIBLE = 1e-12  # of the scale: below it the relative error does not matter
MOST_STAGES = 100_000  # beyond some 500,000 the inverse incomplete gamma function of scipy (1.17) loses digits
BELOW_HALF = 0.5 - 2.0**-54  # the largest double below a half

_NODES = (1 - np.cos((np.arange(ORDER) + 0.5) * np.pi / ORDER)) / 2  # Chebyshev's, on [0, 1]
_BETWEEN = np.concatenate([[0.0], (_NODES[1:] + _NODES[:-1]) / 2, [1.0]])


@dataclass(frozen=True, eq=False)
class QuantileTable:
    """The quantile function of a distribution of scale 1.

    Attributes
    ----------
    pieces
        Number of pieces per octave; a power of two.
    coefficients
        Array of shape (2, 52, pieces, 6): by side, octave and piece, from the constant term upwards.
    """

    pieces: int
    coefficients: FloatArray

    @cached_property
    def rows(self) -> list[list[list[list[float]]]]:
        """The coefficients as lists, because Python reads list items faster than array items."""
        rows: list[list[list[list[float]]]] = self.coefficients.tolist()
        return rows

    def quantile(self) -> Callable[[float], float]:
        """Return the quantile function for numbers from 2**-53 to 1 - 2**-53.

        Every operation and their order are part of the definition: another engine repeats them (without contraction). A
        half itself, which no uniform number is, counts as the largest double below it.
        """
        rows, pieces, frexp = self.rows, float(self.pieces), math.frexp

        def value(uniform: float) -> float:
            if uniform > 0.5:
                side, distance = rows[1], 1.0 - uniform
            else:
                side, distance = rows[0], min(uniform, BELOW_HALF)
            mantissa, exponent = frexp(distance)
            place = (2.0 * mantissa - 1.0) * pieces
            piece = int(place)
            t = place - piece
            c0, c1, c2, c3, c4, c5 = side[-1 - exponent][piece]
            return ((((c5 * t + c4) * t + c3) * t + c2) * t + c1) * t + c0

        return value


def scale_s(distribution: Tabulated) -> float:
    """Return the factor on a distribution's table, in seconds: the mean, Weibull's scale or Pareto's minimum."""
    match distribution:
        case Weibull():
            return float(distribution.scale_s)
        case Pareto():
            return float(distribution.minimum_s)
        case _:
            return float(distribution.mean_s)


def quantile_table(distribution: Tabulated) -> QuantileTable:
    """Return the table of a distribution's shape; distributions with the same shape share it at any scale.

    The relative error is at most 1e-9 wherever the quantile is above 1e-12 of the scale.

    Raises
    ------
    RefusedError
        When an Erlang distribution has more than 100,000 stages, or 1024 pieces per octave are not enough.
    """
    match distribution:
        case Exponential():
            return _table(Exponential(1.0))
        case Erlang():
            if distribution.stages > MOST_STAGES:
                raise RefusedError(
                    f"an Erlang distribution of {distribution.stages} stages is not simulated: use a deterministic"
                    f" distribution, or at most {MOST_STAGES} stages"
                )
            return _table(Erlang(1.0, distribution.stages))
        case Lognormal():
            return _table(Lognormal(1.0, float(distribution.shape_scv)))
        case Weibull():
            return _table(Weibull(1.0, float(distribution.shape)))
        case Pareto():
            return _table(Pareto(1.0, float(distribution.shape)))


def quantile_by_side(distribution: Tabulated, upper: bool, distance: FloatArray) -> FloatArray:
    """Return the quantile of a scale-1 distribution at `distance` from the lower or upper end of the probabilities.

    The formulas are those of the distributions' `quantile`. At the upper end they are written for the survival
    function, since 1 - distance would lose the digits of a small distance.
    """
    match distribution:
        case Erlang():
            inverse = special.gammainccinv if upper else special.gammaincinv
            return np.asarray(inverse(float(distribution.stages), distance) / distribution.stages)
        case Lognormal():
            variance = np.log1p(distribution.shape_scv)
            normal = -special.ndtri(distance) if upper else special.ndtri(distance)
            return np.asarray(np.exp(np.sqrt(variance) * normal - variance / 2))
    exponential = -np.log(distance) if upper else -np.log1p(-distance)
    match distribution:
        case Weibull():
            return np.asarray(exponential ** (1 / distribution.shape))
        case Pareto():
            return np.asarray(np.exp(exponential / distribution.shape))
        case Exponential():
            return np.asarray(exponential)


@lru_cache(maxsize=128)
def _table(distribution: Tabulated) -> QuantileTable:
    pieces = FEWEST_PIECES
    while pieces <= MOST_PIECES:
        coefficients = _interpolated(distribution, pieces)
        if _largest_error(distribution, coefficients) <= TOLERANCE:
            coefficients.setflags(write=False)
            return QuantileTable(pieces, coefficients)
        pieces *= 2
    raise RefusedError(f"{distribution} is too steep to be simulated: choose a shape that is less extreme")


def _values(distribution: Tabulated, pieces: int, places: FloatArray) -> FloatArray:
    """Return the quantiles at `places` (from 0 to 1) within every piece; shape (2, 52, pieces, places)."""
    mantissas = 1 + (np.arange(pieces)[:, None] + places) / pieces
    distances = mantissas * np.exp2(-2.0 - np.arange(OCTAVES))[:, None, None]
    return np.stack([quantile_by_side(distribution, upper, distances) for upper in (False, True)])


def _interpolated(distribution: Tabulated, pieces: int) -> FloatArray:
    to_coefficients = np.linalg.inv(np.vander(_NODES, increasing=True))
    return np.ascontiguousarray(_values(distribution, pieces, _NODES) @ to_coefficients.T)


def _largest_error(distribution: Tabulated, coefficients: FloatArray) -> float:
    """Return the largest relative error between the nodes, ignoring negligible values."""
    expected = _values(distribution, coefficients.shape[2], _BETWEEN)
    found = coefficients @ np.vander(_BETWEEN, N=ORDER, increasing=True).T
    return float(np.max(np.abs(found - expected) / np.maximum(expected, NEGLIGIBLE)))


IntArray = NDArray[np.int64]
Sampler = Callable[[float], int]
SMALLEST, LARGEST = 2.0**-53, 1 - 2.0**-53  # the smallest and largest uniform number
LARGEST_SCALE = 1e300  # so that a table's value times the scale is never 0 times infinity


def tick_sampler(distribution: Distribution) -> Sampler:
    """Return the function that maps a uniform number to a duration in ticks.

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
    """Return the function that maps a uniform number to the index of an alternative."""
    edges = list(accumulate(float(probability) for probability in probabilities))[:-1]
    return lambda uniform: bisect_right(edges, uniform)  # the last alternative absorbs the rounding error of the sum


def _scale_ticks(distribution: Tabulated) -> float:
    return min(scale_s(distribution) * TICKS_PER_S, LARGEST_SCALE)


def _rounded(ticks: float) -> int:
    """Round half to even, to at least 0: a table may be slightly negative where its values are negligible."""
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
    """The sampling method of a row of `FlatDistributions`."""

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
        """Return the row of a distribution; if it is new, add it after its components."""
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
