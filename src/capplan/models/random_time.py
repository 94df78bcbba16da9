"""Random times by three numbers: a floor, a mean and a variance above it; how they add, scale and race.

Above its floor a time is taken to be gamma distributed. Sums of independent times are exact in mean and variance; the
k-th of n is exact for independent gamma branches. Both are approximations for the times of one request, which share
their queues: the accuracy reference states the measured error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from scipy import special

from capplan.models.order_statistics import kth_of_n_cdf, kth_of_n_mean, kth_of_n_variance
from capplan.models.quantity import FloatArray, Number

_LEVELS = 0.5 * (1 - np.cos(np.pi * np.arange(65) / 64))  # quantile levels, dense at both ends
_SMALL = 1e-30


@dataclass(frozen=True)
class RandomTime:
    """A time of at least `floor`, `mean` above it on average, with `variance`; seconds, arrays over draws."""

    floor: Number
    mean: Number
    variance: Number

    def __add__(self, other: RandomTime) -> RandomTime:
        """Return the sum of two independent times."""
        return RandomTime(self.floor + other.floor, self.mean + other.mean, self.variance + other.variance)

    @property
    def total(self) -> Number:
        """Mean with the floor, in seconds."""
        return self.floor + self.mean

    def stretched(self, factor: Number) -> RandomTime:
        """Return the time with every duration multiplied by `factor`."""
        return RandomTime(self.floor * factor, self.mean * factor, self.variance * factor**2)

    def cdf(self, time_s: FloatArray) -> FloatArray:
        """Probability of being at most `time_s` seconds; broadcasts."""
        mean, variance = np.maximum(self.mean, _SMALL), np.maximum(self.variance, _SMALL**2)
        late = np.maximum(time_s - self.floor, 0.0)
        return np.asarray(special.gammainc(np.minimum(mean**2 / variance, 1e6), late * mean / variance))

    def quantile(self, level: Number) -> Number:
        """Value below which `level` of the mass lies, in seconds."""
        mean, variance = np.maximum(self.mean, _SMALL), np.maximum(self.variance, _SMALL**2)
        shape = np.minimum(mean**2 / variance, 1e6)
        value: Number = self.floor + special.gammaincinv(shape, level) * mean / shape
        return value

    def signature(self) -> bytes:
        """Return a key that is equal for times that are equal to seven digits."""
        values = np.concatenate([np.ravel(np.asarray(v)) for v in (self.floor, self.mean, np.sqrt(self.variance))])
        return values.astype(np.float32).tobytes()


NOW = RandomTime(0.0, 0.0, 0.0)


def mixture(weights: Sequence[Number], times: Sequence[RandomTime]) -> RandomTime:
    """Return one of several times, drawn with `weights`: exact mean and variance, the lowest floor."""
    if len({time.signature() for time in times}) == 1:
        return times[0]
    floor = _lowest_floor(times)
    mean = sum((w * time.total for w, time in zip(weights, times, strict=True)), 0.0)
    second = sum((w * (time.variance + time.total**2) for w, time in zip(weights, times, strict=True)), 0.0)
    return RandomTime(floor, mean - floor, np.maximum(second - mean**2, 0.0))


def kth_of(times: Sequence[RandomTime], needed: int) -> RandomTime:
    """Return the time until `needed` of independent `times` have passed (none needed: at once)."""
    if needed == 0:
        return NOW
    if len(times) == 1:
        return times[0]
    if len({time.signature() for time in times}) == 1:
        return _kth_of_identical(times[0], needed, len(times))
    return _kth_of_different(times, needed)


def _kth_of_identical(time: RandomTime, needed: int, branches: int) -> RandomTime:
    scv = np.minimum(time.variance / np.maximum(time.mean, _SMALL) ** 2, 100.0)
    mean, variance = (moment(time.mean, scv, needed, branches) for moment in (kth_of_n_mean, kth_of_n_variance))
    return RandomTime(time.floor, _plain(mean), _plain(variance))


def _kth_of_different(times: Sequence[RandomTime], needed: int) -> RandomTime:
    """Integrate the Poisson-binomial tail on a grid from the lowest floor to beyond the slowest branch."""
    end = reduce(np.maximum, [np.asarray(time.total + 12 * np.sqrt(time.variance)) for time in times])
    floor = _lowest_floor(times) + np.zeros_like(end)
    grid = floor[..., None] + (end - floor)[..., None] * _LEVELS**1.5
    distinct: dict[bytes, FloatArray] = {}
    for time in times:
        key = time.signature()
        if key not in distinct:
            distinct[key] = _aligned(time).cdf(grid)
    columns = np.broadcast_arrays(*(distinct[time.signature()] for time in times))
    tail = 1 - kth_of_n_cdf(np.stack(columns, axis=-1), needed)
    late = grid - floor[..., None]
    mean = np.trapezoid(tail, late, axis=-1)
    second = np.trapezoid(2 * late * tail, late, axis=-1)
    return RandomTime(_plain(floor), _plain(mean), _plain(np.maximum(second - mean**2, 0.0)))


def _lowest_floor(times: Sequence[RandomTime]) -> FloatArray:
    return reduce(np.minimum, [np.asarray(time.floor, dtype=float) for time in times])


def _aligned(time: RandomTime) -> RandomTime:
    """Give draws an axis of their own, before the grid's."""
    return RandomTime(*(np.asarray(v, dtype=float)[..., None] for v in (time.floor, time.mean, time.variance)))


def _plain(value: FloatArray) -> Number:
    return float(value) if np.ndim(value) == 0 else value
