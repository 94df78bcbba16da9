"""Quantile functions as piecewise polynomials: the same arithmetic, bit for bit, in Python and in compiled code.

The textbook formulas take a logarithm, a power or worse, and no two libraries round these alike. A table takes
additions and multiplications only, which IEEE 754 rounds in one way, so two engines that share a table draw the same
tick. A table is also faster than an inverse incomplete gamma function.

A uniform number u belongs to a *side* (0 below a half, 1 above) and has the distance r = min(u, 1 - u) from the end of
its side, which is exact. Each side is cut into *octaves*, [2**-(k + 2), 2**-(k + 1)) for k from 0 to 51, and each
octave into equal pieces with a polynomial of degree 5 each. So the tails are as finely described as the middle.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from scipy import special

from capplan.models.errors import RefusedError
from capplan.models.language.distribution import Erlang, Exponential, Lognormal, Pareto, Weibull
from capplan.models.language.units import FloatArray

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
        """The coefficients as lists, whose items Python reads faster than those of an array."""
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
    """Return the factor on the table of a distribution, in seconds: the mean, Weibull's scale or Pareto's minimum."""
    match distribution:
        case Weibull():
            return float(distribution.scale_s)
        case Pareto():
            return float(distribution.minimum_s)
        case _:
            return float(distribution.mean_s)


def quantile_table(distribution: Tabulated) -> QuantileTable:
    """Return the table of a distribution's shape; distributions of one shape share it, whatever their scale.

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
    """Return the quantile of a distribution of scale 1 at `distance` from the lower or upper end of the probabilities.

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
    """Return the largest relative error between the nodes, where the value is not negligible."""
    expected = _values(distribution, coefficients.shape[2], _BETWEEN)
    found = coefficients @ np.vander(_BETWEEN, N=ORDER, increasing=True).T
    return float(np.max(np.abs(found - expected) / np.maximum(expected, NEGLIGIBLE)))
