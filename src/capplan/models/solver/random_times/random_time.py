"""Random times with a floor, and a mean and variance above it: sums, multiples, mixtures and order statistics.

Above its floor a time has a gamma distribution, or a hyperexponential one if it varies much (`branch_law.py`). Sums of
independent times have exact means and variances, and the k-th of n is exact for independent branches of this kind. Both
are approximations for the times of one request, which share their queues; docs/reference/accuracy.md gives the measured
errors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import product
from math import comb

import numpy as np

from capplan.models.errors import RefusedError
from capplan.models.language.units import FloatArray, Number
from capplan.models.solver.random_times.branch_law import law_cdf, law_quantile
from capplan.models.solver.random_times.order_statistics import kth_of_n_mean, kth_of_n_variance
from capplan.models.solver.random_times.parallel_branches import kth_of_different

_SMALL = 1e-30
_MOST_MIXED = 1000  # combinations of branches that are done


@dataclass(frozen=True)
class RandomTime:
    """A random time.

    Attributes
    ----------
    floor : number or array (..., draws)
        Smallest value, in seconds.
    mean : number or array (..., draws)
        Mean above the floor, in seconds.
    variance : number or array (..., draws)
        Variance, in s².
    """

    floor: Number
    mean: Number
    variance: Number

    def __add__(self, other: RandomTime) -> RandomTime:
        """Return the sum of two independent times."""
        return RandomTime(self.floor + other.floor, self.mean + other.mean, self.variance + other.variance)

    @property
    def total(self) -> Number:
        """Mean including the floor, in seconds."""
        return self.floor + self.mean

    def stretched(self, factor: Number) -> RandomTime:
        """Multiply the time by a factor."""
        return RandomTime(self.floor * factor, self.mean * factor, self.variance * factor**2)

    def cdf(self, time_s: FloatArray) -> FloatArray:
        """Return the probability of at most `time_s` seconds; broadcasts."""
        mean, shape = self.gamma()
        return law_cdf(np.asarray(shape), np.maximum(time_s - self.floor, 0.0) / mean)

    def quantile(self, level: Number) -> Number:
        """Return the quantile at `level`, in seconds."""
        mean, shape = self.gamma()
        level = np.asarray(level)
        return _plain(np.asarray(self.floor + mean * law_quantile(np.asarray(shape), level, 1 - level), dtype=float))

    def gamma(self) -> tuple[Number, Number]:
        """Return mean (s) and shape, 1 / SCV, above the floor; the coefficient of variation is at least 0.1 %."""
        mean, variance = np.maximum(self.mean, _SMALL), np.maximum(self.variance, _SMALL**2)
        return mean, np.minimum(mean**2 / variance, 1e6)

    @cached_property
    def signature(self) -> bytes:
        """A key that is the same for times that agree in seven digits."""
        values = np.concatenate([np.ravel(np.asarray(v)) for v in (self.floor, self.mean, np.sqrt(self.variance))])
        return values.astype(np.float32).tobytes()


NOW = RandomTime(0.0, 0.0, 0.0)


def mixture(weights: Sequence[Number], times: Sequence[RandomTime]) -> RandomTime:
    """Return the mixture of several times: exact mean and variance, and the lowest floor."""
    if len({time.signature for time in times}) == 1:
        return times[0]
    floor = _lowest_floor(times)
    mean = sum((w * time.total for w, time in zip(weights, times, strict=True)), 0.0)
    second = sum((w * (time.variance + time.total**2) for w, time in zip(weights, times, strict=True)), 0.0)
    return RandomTime(floor, mean - floor, np.maximum(second - mean**2, 0.0))


def kth_of(times: Sequence[RandomTime], needed: int) -> RandomTime:
    """Return the time until the `needed`-th of several independent branches is done.

    Parameters
    ----------
    times : sequence of RandomTime
        Times of the branches.
    needed : int
        Branches to wait for; 0 takes no time.

    Returns
    -------
    RandomTime
    """
    if needed == 0:
        return NOW
    if len(times) == 1:
        return times[0]
    if len({time.signature for time in times}) == 1:
        return _kth_of_identical(times[0], needed, len(times))
    return _kth_of_different(times, needed)


def kth_of_those_that_come(times: Sequence[RandomTime], chances: Sequence[Number], needed: int) -> RandomTime:
    """Return the time until the `needed`-th of several independent branches is done, some of which may never be.

    Parameters
    ----------
    times : sequence of RandomTime
        Times of the branches.
    chances : sequence of number or array (..., draws)
        Probability that each branch is ever done.
    needed : int
        Branches to wait for.

    Returns
    -------
    RandomTime
        The time given that enough branches are done: the mixture over the branches that are.

    Raises
    ------
    RefusedError
        If the branches that may never be done are of too many kinds.
    """
    kinds: dict[bytes, list[tuple[RandomTime, Number]]] = {}
    for time, chance in zip(times, chances, strict=True):
        kinds.setdefault(time.signature + np.asarray(chance, dtype=float).tobytes(), []).append((time, chance))
    numbers = [range(len(kind) + 1) if np.any(kind[0][1] != 1.0) else (len(kind),) for kind in kinds.values()]
    if np.prod([len(number) for number in numbers]) > _MOST_MIXED:
        raise RefusedError(
            f"the analytic solver does not support a wait for {len(times)} signals of which so many may never come: "
            "simulate the network"
        )
    weights, outcomes = [], []
    for come in product(*numbers):
        if sum(come) >= needed:
            weights.append(reduce(np.multiply, map(_binomial, kinds.values(), come)))
            done = [kind[0][0] for kind, number in zip(kinds.values(), come, strict=True) for _ in range(number)]
            outcomes.append(kth_of(done, needed))
    total = sum(weights, 0.0)
    return mixture([weight / total for weight in weights], outcomes)


def _binomial(branches: Sequence[tuple[RandomTime, Number]], number: int) -> Number:
    """Return the probability that this number of equal branches are ever done."""
    chance = branches[0][1]
    return comb(len(branches), number) * chance**number * (1 - chance) ** (len(branches) - number)


def _kth_of_identical(time: RandomTime, needed: int, branches: int) -> RandomTime:
    scv = np.minimum(time.variance / np.maximum(time.mean, _SMALL) ** 2, 100.0)
    mean, variance = (moment(time.mean, scv, needed, branches) for moment in (kth_of_n_mean, kth_of_n_variance))
    return RandomTime(time.floor, _plain(mean), _plain(variance))


def _kth_of_different(times: Sequence[RandomTime], needed: int) -> RandomTime:
    """Solve each kind of branch once; the floor is the k-th lowest floor."""
    kinds = {time.signature: time for time in times}
    count = Counter(time.signature for time in times)
    parts = [(np.asarray(time.floor, dtype=float), *time.gamma()) for time in kinds.values()]
    shape = np.broadcast_shapes(*(np.shape(value) for part in parts for value in part))
    floor, mean, alpha = (
        np.stack([np.broadcast_to(value, shape).ravel() for value in column]) for column in zip(*parts, strict=True)
    )
    counts = [count[key] for key in kinds]
    total, variance = (value.reshape(shape) for value in kth_of_different(floor, mean, alpha, counts, needed))
    lowest = np.sort(np.repeat(floor, counts, axis=0), axis=0)[needed - 1].reshape(shape)
    return RandomTime(_plain(lowest), _plain(np.maximum(total - lowest, 0.0)), _plain(variance))


def _lowest_floor(times: Sequence[RandomTime]) -> FloatArray:
    return reduce(np.minimum, [np.asarray(time.floor, dtype=float) for time in times])


def _plain(value: FloatArray) -> Number:
    return float(value) if np.ndim(value) == 0 else value
