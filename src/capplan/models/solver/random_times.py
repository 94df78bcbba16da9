"""Random times: three moments of sums, mixtures and order statistics, and quantiles by laws with these moments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial, reduce
from itertools import product
from math import comb
from typing import NamedTuple

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import ArrayLike, NDArray
from scipy import special

from capplan.errors import InputError, RefusedError
from capplan.grouped import grouped
from capplan.models.language.units import FloatArray, Number, plain
from capplan.models.solver.interpolation import evaluated_apart
from capplan.models.solver.single_station import checked, whole

_HALVINGS = 80  # bisection steps of a quantile, in its logarithm
_EARLIEST, _LATEST = -60.0, 12.0  # logarithms of the bounds of quantiles over the mean


def law_cdf(shape: FloatArray, time: FloatArray) -> FloatArray:
    """Return the probability of at most some multiples of the mean.

    Parameters
    ----------
    shape : array
        1 / SCV.
    time : array
        Multiples of the mean, at least 0; broadcasts.
    """
    if np.min(shape, initial=np.inf) >= 1:
        return np.asarray(special.gammainc(shape, time * shape))
    if np.max(shape) <= 1:
        return _mixed_cdf(shape, time)
    shape, time = np.broadcast_arrays(shape, time)
    mixed = shape < 1
    found, gamma = np.empty(shape.shape), ~mixed  # each by its own law only, as the gamma distribution is slow
    found[mixed] = _mixed_cdf(shape[mixed], time[mixed])
    found[gamma] = special.gammainc(shape[gamma], time[gamma] * shape[gamma])
    return found


def _mixed_cdf(shape: FloatArray, time: FloatArray) -> FloatArray:
    first, quick, slow = _parts(shape)
    return np.asarray(-first * np.expm1(-quick * time) - (1 - first) * np.expm1(-slow * time))


def law_quantile(shape: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """Return quantiles in multiples of the mean.

    Parameters
    ----------
    shape : array
        1 / SCV.
    low, high : array
        Level, and 1 - level; the smaller one counts. Broadcast.
    """
    gamma = np.maximum(shape, 1.0)
    below, above = special.gammaincinv(gamma, np.minimum(low, 0.5)), special.gammainccinv(gamma, np.minimum(high, 0.5))
    found = np.where(low < high, below, above) / gamma
    return (
        found if np.min(shape) >= 1 else np.where(shape < 1, _mixed_quantile(np.minimum(shape, 1.0), low, high), found)
    )


def _mixed_quantile(shape: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    first, quick, slow = _parts(shape)
    size = np.broadcast_shapes(np.shape(shape), np.shape(low))
    begin, end = np.full(size, _EARLIEST), np.full(size, _LATEST)
    for _ in range(_HALVINGS):
        middle = (begin + end) / 2
        time = np.exp(middle)
        passed = -first * np.expm1(-quick * time) - (1 - first) * np.expm1(-slow * time)
        left = first * np.exp(-quick * time) + (1 - first) * np.exp(-slow * time)
        early = np.where(low < high, passed < low, left > high)
        begin, end = np.where(early, middle, begin), np.where(early, end, middle)
    return np.asarray(np.exp((begin + end) / 2))


def _parts(shape: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the share of the first exponential, and the rates of both."""
    first = (1 + np.sqrt((1 - shape) / (1 + shape))) / 2
    return first, 2 * first, 2 * (1 - first)


MAX_BRANCHES = 200
MAX_SCV = 100.0
# On this standard normal grid a trapezoid sum is exact to rounding for order statistics of up to 200 branches.
_GRID = np.linspace(-9.0, 9.0, 289)
# On this grid of logarithms of times over the mean, a trapezoid sum is exact to rounding if c is 1 to 10.
_SPACING = 0.05
_TIMES = np.exp(np.arange(-30.0, 11.0, _SPACING))
# Chebyshev nodes in c / (1 + c), where c is the coefficient of variation, from 0 to 1 and from 1 to 10.
_NODES, _HALVES = 64, ((0.0, 0.5), (0.5, 10.0 / 11.0))


def kth_of_n_cdf(cdf_values: ArrayLike, k: int) -> FloatArray:
    """Return the probability that at least k branches are done, for branches with different distributions.

    Parameters
    ----------
    cdf_values : array (..., n)
        Probability that each branch is done, from 0 to 1.
    k : whole number
        Branches needed, 1 <= k <= n.

    Returns
    -------
    array (...)
        The tail of the Poisson binomial distribution. Branches are added one by one; all terms are positive.

    Raises
    ------
    InputError
        If a probability is outside 0 to 1, or k is not a whole number from 1 to n.
    """
    shares = np.atleast_1d(checked(cdf_values, "probability"))
    if (shares > 1).any():
        raise InputError(f"{shares.max():g} is not a probability: it must be at most 1")
    needed = _ranks(k, shares.shape[-1])[0]
    return chance_of_at_least(np.ascontiguousarray(np.moveaxis(shares, -1, 0)), needed)


def chance_of_at_least(branches: Sequence[FloatArray] | FloatArray, needed: int) -> FloatArray:
    """Return the same probability for branches along the first axis, without checking the arguments.

    Parameters
    ----------
    branches : sequence of arrays (...)
        Probability that each branch is done.
    needed : int
        Branches needed.

    Returns
    -------
    array (...)
    """
    reached = np.zeros((needed + 1, *branches[0].shape))  # by number done; the last entry means `needed` or more
    reached[0] = 1.0
    for place, done in enumerate(branches, start=1):
        most = min(place, needed)  # that can be done by now
        moved = reached[:most] * done
        reached[:most] -= moved
        reached[1 : most + 1] += moved
    return np.asarray(reached[-1])


def kth_of_n_mean(mean_s: ArrayLike, scv: ArrayLike, k: int, n: int) -> FloatArray:
    """Return the mean time until k of n branches with the distribution of `branch_law` are done.

    Parameters
    ----------
    mean_s : number or array
        Mean of each branch in seconds, at least 0.
    scv : number or array
        Squared coefficient of variation of each branch, from 0 (deterministic) to 100; broadcasts against `mean_s`.
    k, n : whole number
        Branches needed and started, 1 <= k <= n <= 200.

    Returns
    -------
    array
        Seconds, with an error below 1e-8 of `mean_s`: a Chebyshev series in the coefficient of variation, built once
        per (k, n) from the integral of the order statistic.

    Raises
    ------
    InputError
        If an argument is out of bounds.

    References
    ----------
    H. A. David and H. N. Nagaraja, *Order Statistics*, 3rd ed., Wiley, 2003, section 2.1.
    """
    return np.asarray(checked(mean_s, "mean time in seconds") * _moment(scv, k, n, 1))


def kth_of_n_variance(mean_s: ArrayLike, scv: ArrayLike, k: int, n: int) -> FloatArray:
    """Return the variance of the time until k of n gamma distributed branches are done.

    Parameters
    ----------
    mean_s, scv, k, n
        As for `kth_of_n_mean`.

    Returns
    -------
    array
        s², with an error below 1e-8 of the variance of a branch.

    Raises
    ------
    InputError
        If an argument is out of bounds.
    """
    spread = checked(scv, "squared coefficient of variation")
    return np.asarray(checked(mean_s, "mean time in seconds") ** 2 * spread * _moment(spread, k, n, 2))


def kth_of_n_third(mean_s: ArrayLike, scv: ArrayLike, k: int, n: int) -> FloatArray:
    """Return the third cumulant of the time until k of n gamma distributed branches are done.

    Parameters
    ----------
    mean_s, scv, k, n
        As for `kth_of_n_mean`.

    Returns
    -------
    array
        s³, with an error below 1e-7 of the cube of a branch's standard deviation.

    Raises
    ------
    InputError
        If an argument is out of bounds.
    """
    spread = checked(scv, "squared coefficient of variation")
    return np.asarray((checked(mean_s, "mean time in seconds") * np.sqrt(spread)) ** 3 * _moment(spread, k, n, 3))


def _ranks(k: int, n: int) -> tuple[int, int]:
    """Check that k of n branches can be needed."""
    needed, branches = int(whole(k, "number of branches needed", 1)), int(whole(n, "number of branches", 1))
    if needed > branches:
        raise InputError(f"{needed} of {branches} branches cannot be needed: ask for fewer")
    return needed, branches


def _moment(scv: ArrayLike, k: int, n: int, order: int) -> FloatArray:
    """Return the mean (order 1) of the k-th of n over the branch mean.

    Or its variance (2) or third cumulant (3), in powers of the branch's standard deviation.
    """
    needed, branches = _ranks(k, n)
    spread = checked(scv, "squared coefficient of variation")
    if branches > MAX_BRANCHES:
        raise InputError(f"{branches} is not a number of branches that is solved: it must be at most {MAX_BRANCHES}")
    if (spread > MAX_SCV).any():
        raise InputError(f"{spread.max():g} is not a squared coefficient of variation: it must be at most {MAX_SCV:g}")
    root = np.sqrt(spread)
    position, series = root / (1 + root), _series(needed, branches)[:, order - 1]
    value, late = chebyshev.chebval(_unit(position, *_HALVES[0]), series[0]), position > _HALVES[0][1]
    if np.any(late):
        value = np.where(late, chebyshev.chebval(_unit(position, *_HALVES[1]), series[1]), value)
    return np.asarray(value if order == 3 else np.maximum(1 + root * value if order == 1 else value, 0.0))


def _unit(position: FloatArray, low: float, high: float) -> FloatArray:
    """Map an interval to that from -1 to 1; what is outside goes to its ends."""
    return np.clip(2 * (position - low) / (high - low) - 1, -1.0, 1.0)


@lru_cache(maxsize=256)
def _series(k: int, n: int) -> FloatArray:
    """Return Chebyshev coefficients of the k-th time's standardised first three cumulants (halves, 3, nodes)."""
    values = np.stack([_regular(k, n), _irregular(k, n)])
    cosines = np.cos(np.outer(np.arange(_NODES), _angles())) * 2 / _NODES
    cosines[0] /= 2
    return np.asarray(values @ cosines.T)


def _regular(k: int, n: int) -> FloatArray:
    """Return three cumulants (3, nodes) of branches that vary less than exponential ones."""
    weights = (k - 1) * special.log_ndtr(_GRID) + (n - k) * special.log_ndtr(-_GRID) - special.betaln(k, n - k + 1)
    density = np.exp(weights - _GRID**2 / 2) / np.sqrt(2 * np.pi) * (_GRID[1] - _GRID[0])
    mean = _quantiles() @ density
    gaps = _quantiles() - mean[:, None]
    return np.stack([mean, gaps**2 @ density, gaps**3 @ density])


def _irregular(k: int, n: int) -> FloatArray:
    """Return the same for branches that vary more, by integrating the tail of the k-th time over log time."""
    root = _coefficients(*_HALVES[1])
    tail = special.betaincc(k, n - k + 1, law_cdf(root[:, None] ** -2, _TIMES))
    mean, second, third = (tail @ (power * _TIMES**power) * _SPACING for power in (1, 2, 3))
    cumulant = third - 3 * mean * second + 2 * mean**3
    return np.stack([(mean - 1) / root, (second - mean**2) / root**2, cumulant / root**3])


@lru_cache(maxsize=1)
def _quantiles() -> FloatArray:
    """Return gamma quantiles `(Q - 1) / c` (nodes, grid) of mean 1 and coefficient of variation c."""
    root = _coefficients(*_HALVES[0])[:, None]
    lower = special.gammaincinv(root**-2, special.ndtr(_GRID[_GRID < 0]))
    upper = special.gammainccinv(root**-2, special.ndtr(-_GRID[_GRID >= 0]))
    return np.asarray((np.concatenate([lower, upper], axis=-1) * root**2 - 1) / root)


def _angles() -> FloatArray:
    return np.pi * (np.arange(_NODES) + 0.5) / _NODES


def _coefficients(low: float, high: float) -> FloatArray:
    """Return coefficients of variation c at the nodes of an interval of c / (1 + c)."""
    position = low + (high - low) * (np.cos(_angles()) + 1) / 2
    return np.asarray(position / (1 - position))


_ACCURACY = (5e-7, 1e-5, 5e-6)  # of mean, variance and cube between branches that are solved: as good as the quadrature
_BRANCH_NODES = 8  # of the quadrature, in each panel
_PANELS = 5  # edges that each kind of branch adds
_CHUNK = 150_000  # probabilities of branches at nodes that are computed at a time, which stay in the cache
_WHOLE = 8  # largest shape whose distribution is summed as that of an Erlang variate
_NEARLY = 1e-12  # relative difference from a whole number, from rounding


def kth_of_different(
    floor_s: FloatArray, mean_s: FloatArray, shape: FloatArray, counts: Sequence[int], needed: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return three cumulants of the time until `needed` branches of several kinds are done.

    Parameters
    ----------
    floor_s : array (kinds, n)
        Smallest time of each kind, in seconds.
    mean_s, shape : array (kinds, n)
        Mean above the floor (s) and shape of the gamma distribution there, both above 0.
    counts : sequence of int
        Number of branches of each kind.
    needed : int
        Branches to wait for, from 1 to all.

    Returns
    -------
    tuple of array (n,)
        Mean (s), variance (s²) and third cumulant (s³).
    """
    order = np.argsort(np.median(floor_s, axis=1), kind="stable")
    floor_s, mean_s, shape = floor_s[order], mean_s[order], shape[order]
    gaps = np.diff(floor_s, axis=0)
    scale = mean_s[np.argmax(np.median(mean_s, axis=1))]
    solved = partial(_solved, counts=[counts[kind] for kind in order], needed=needed)
    points = np.concatenate([gaps / scale, mean_s / scale, 1 / shape])
    smooth = np.all(gaps >= 0)
    mean, variance, cube = evaluated_apart(solved, points, shape < 1, _ACCURACY) if smooth else solved(points)
    third = cube - 3 * mean * variance - mean**3
    return floor_s[0] + scale * mean, scale**2 * variance, scale**3 * third


def _solved(points: FloatArray, counts: Sequence[int], needed: int) -> FloatArray:
    """Return mean, variance and mean cube (3, n) in units of a scale; the arguments (3 kinds - 1, n) have no unit."""
    kinds = len(counts)
    floor = np.pad(np.cumsum(points[: kinds - 1], axis=0), ((1, 0), (0, 0)))
    mean, shape = points[kinds - 1 : -kinds], 1 / points[-kinds:]
    size = max(_CHUNK // (_PANELS * kinds * _BRANCH_NODES * sum(counts)), 1)
    chunks = [slice(start, start + size) for start in range(0, points.shape[1], size)]
    found = [_integrated(floor[:, each], mean[:, each], shape[:, each], counts, needed) for each in chunks]
    return np.concatenate(found, axis=1)


def _integrated(
    floor: FloatArray, mean: FloatArray, shape: FloatArray, counts: Sequence[int], needed: int
) -> FloatArray:
    nodes, weights = _gauss_legendre()
    edges = _edges(floor, mean, shape)
    width = np.diff(edges, axis=-1)[..., None]
    time = (edges[:, :-1, None] + width * nodes).reshape(len(edges), -1)
    weight = (width * weights).reshape(len(edges), -1)
    passed = [
        _passed(alpha[:, None], np.maximum(time - start[:, None], 0.0) / middle[:, None])
        for start, middle, alpha in zip(floor, mean, shape, strict=True)
    ]
    done = chance_of_at_least(
        [share for share, count in zip(passed, counts, strict=True) for _ in range(count)], needed
    )
    left = (1 - done) * weight
    first = edges[:, 0]
    average = first + left.sum(axis=-1)
    variance = (first - average) ** 2 + 2 * np.vecdot(left, time - average[:, None])
    cube = first**3 + 3 * np.vecdot(left, time**2)
    return np.stack([average, np.maximum(variance, 0.0), cube])


def _edges(floor: FloatArray, mean: FloatArray, shape: FloatArray) -> FloatArray:
    """Return the edges (n, edges) of the panels: where each distribution begins, bends and ends."""
    deviation, scale = mean / np.sqrt(shape), mean / shape
    begin = np.maximum(mean - 8 * deviation, 0.0)
    end = mean + 7 * deviation + 18 * scale
    early = np.maximum(mean - 2 * deviation, mean / 4)
    late = mean + deviation + scale / 2, mean + 3 * deviation + 5 * scale
    edges = np.concatenate([floor + each for each in (begin, early, *late, end)])
    return np.ascontiguousarray(np.sort(edges, axis=0).T)


def _passed(shape: FloatArray, time: FloatArray) -> FloatArray:
    """Return the probability of at most some multiples of the mean; of a small whole shape in closed form."""
    whole = round(float(shape.flat[0]))
    if not 1 <= whole <= _WHOLE or np.any(np.abs(shape - whole) > _NEARLY * whole):
        return law_cdf(shape, time)
    scaled = whole * time
    term = total = np.exp(-scaled)
    for number in range(1, whole):
        term = term * (scaled / number)
        total = total + term
    return np.asarray(1 - total)


@lru_cache(maxsize=1)
def _gauss_legendre() -> tuple[FloatArray, FloatArray]:
    """Return nodes and weights on the unit interval."""
    nodes, weights = np.polynomial.legendre.leggauss(_BRANCH_NODES)
    return (np.asarray(nodes) + 1) / 2, np.asarray(weights) / 2


_SMALL = 1e-30
_STEEPEST = 1e6  # largest shape of a law: its coefficient of variation above its start is at least 0.1 %
_ROUNDING = 1e-6  # standard deviation over the mean below which a time is certain
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
    third : number or array (..., draws), optional
        Third cumulant, in s³; that of `law_cdf` above the floor if left out.
    """

    floor: Number
    mean: Number
    variance: Number
    third: Number | None = None

    def __add__(self, other: RandomTime) -> RandomTime:
        """Return the sum of two independent times, whose cumulants add up."""
        return RandomTime(
            self.floor + other.floor,
            self.mean + other.mean,
            self.variance + other.variance,
            self.third_s3 + other.third_s3,
        )

    @cached_property
    def third_s3(self) -> Number:
        """Third cumulant, in s³."""
        if self.third is not None:
            return self.third
        share = self.variance**2 / np.maximum(self.mean, _SMALL)  # gamma up to an SCV of 1, beyond it hyperexponential
        return 2 * share + np.maximum(share - self.mean**3, 0.0)

    @property
    def total(self) -> Number:
        """Mean including the floor, in seconds."""
        return self.floor + self.mean

    def stretched(self, factor: Number) -> RandomTime:
        """Multiply the time by a factor."""
        return RandomTime(self.floor * factor, self.mean * factor, self.variance * factor**2, self.third_s3 * factor**3)

    def cdf(self, time_s: FloatArray) -> FloatArray:
        """Return the probability of at most `time_s` seconds; broadcasts."""
        mean, shape = self.gamma()
        return law_cdf(np.asarray(shape), np.maximum(time_s - self.floor, 0.0) / mean)

    def quantile(self, level: Number) -> Number:
        """Return the quantile at `level`, in seconds."""
        mean, shape = self.gamma()
        level = np.asarray(level)
        return plain(np.asarray(self.floor + mean * law_quantile(np.asarray(shape), level, 1 - level), dtype=float))

    def gamma(self) -> tuple[Number, Number]:
        """Return mean (s) and shape, 1 / SCV, above the floor; the coefficient of variation is at least 0.1 %."""
        mean, variance = np.maximum(self.mean, _SMALL), np.maximum(self.variance, _SMALL**2)
        return mean, np.minimum(mean**2 / variance, _STEEPEST)

    @cached_property
    def signature(self) -> bytes:
        """A key that is the same for times that agree in seven digits."""
        parts = (self.floor, self.mean, np.sqrt(self.variance), np.cbrt(self.third_s3))
        values = np.concatenate([np.ravel(np.asarray(each)) for each in parts])
        return values.astype(np.float32).tobytes()


NOW = RandomTime(0.0, 0.0, 0.0)


def mixture(weights: Sequence[Number], times: Sequence[RandomTime]) -> RandomTime:
    """Return the mixture of several times: exact mean, variance and third cumulant, and the lowest floor."""
    if len({time.signature for time in times}) == 1:
        return times[0]
    floor = _lowest_floor(times)
    mean = sum((w * time.total for w, time in zip(weights, times, strict=True)), 0.0)
    gaps = [time.total - mean for time in times]
    variance = sum((w * (time.variance + gap**2) for w, time, gap in zip(weights, times, gaps, strict=True)), 0.0)
    third = sum(
        (
            w * (time.third_s3 + 3 * gap * time.variance + gap**3)
            for w, time, gap in zip(weights, times, gaps, strict=True)
        ),
        0.0,
    )
    return RandomTime(floor, mean - floor, variance, third)


def rare_wait(mean: Number, variance: Number) -> RandomTime:
    """Return a wait that some requests do not have and that is exponential for the others, by its mean and variance."""
    second = variance + mean**2
    third = 1.5 * second**2 / np.maximum(mean, _SMALL) - 3 * mean * variance - mean**3
    return RandomTime(0.0, mean, variance, third)


def queue_wait(mean_s: Number, those_s: Number, service_s: Number, scv: Number) -> RandomTime:
    """Return the wait in a first-come first-served queue.

    Those that wait do so like those in M/G/1 with the same mean wait: exactly so in M/G/1 with gamma distributed
    services, and in M/M/m.

    Parameters
    ----------
    mean_s, those_s : number or array (..., draws)
        Mean wait of all requests, and of those that wait, in seconds.
    service_s, scv : number or array (..., draws)
        Mean time between two services that start while others wait, in seconds, and its squared coefficient of
        variation.

    References
    ----------
    L. Takács, "A single-server queue with Poisson input", *Operations Research* 10, 1962.
    """
    those, service = np.maximum(those_s, _SMALL), np.maximum(service_s, _SMALL)
    load = np.clip(1 - service * (1 + scv) / 2 / those, 0.0, 1.0)
    third, fourth = service * (1 + 2 * scv), service**2 * (1 + 2 * scv) * (1 + 3 * scv)  # moments over the second one
    square = 2 * load * those**2 + 2 / 3 * those * third
    cube = 3 * those * load * square + 2 * load * those**2 * third + those * fourth / 2
    second = mean_s * square / those
    return RandomTime(
        0.0, mean_s, np.maximum(second - mean_s**2, 0.0), mean_s * cube / those - 3 * mean_s * second + 2 * mean_s**3
    )


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
    """Return the time until the `needed`-th of several independent branches is done; some may never finish.

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
    both = zip(times, chances, strict=True)
    kinds = grouped(both, lambda each: each[0].signature + np.asarray(each[1], dtype=float).tobytes())
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
    """Return the probability that exactly this number of equal branches ever finish."""
    chance = branches[0][1]
    return comb(len(branches), number) * chance**number * (1 - chance) ** (len(branches) - number)


def _kth_of_identical(time: RandomTime, needed: int, branches: int) -> RandomTime:
    scv = np.minimum(time.variance / np.maximum(time.mean, _SMALL) ** 2, 100.0)
    moments = (kth_of_n_mean, kth_of_n_variance, kth_of_n_third)
    return RandomTime(time.floor, *(plain(moment(time.mean, scv, needed, branches)) for moment in moments))


def _kth_of_different(times: Sequence[RandomTime], needed: int) -> RandomTime:
    """Return the time of the `needed`-th branch, solving each kind of branch once; its floor is the k-th lowest."""
    kinds = {time.signature: time for time in times}
    count = Counter(time.signature for time in times)
    parts = [(np.asarray(time.floor, dtype=float), *time.gamma()) for time in kinds.values()]
    shape = np.broadcast_shapes(*(np.shape(value) for part in parts for value in part))
    floor, mean, alpha = (
        np.stack([np.broadcast_to(value, shape).ravel() for value in column]) for column in zip(*parts, strict=True)
    )
    counts = [count[key] for key in kinds]
    total, variance, third = (value.reshape(shape) for value in kth_of_different(floor, mean, alpha, counts, needed))
    lowest = np.sort(np.repeat(floor, counts, axis=0), axis=0)[needed - 1].reshape(shape)
    return RandomTime(plain(lowest), plain(np.maximum(total - lowest, 0.0)), plain(variance), plain(third))


def _lowest_floor(times: Sequence[RandomTime]) -> FloatArray:
    return reduce(np.minimum, [np.asarray(time.floor, dtype=float) for time in times])


_TABLE = 8  # points of the table of the approximate distribution
_ENDS = (1e-3, 1 - 1e-4)  # levels at the ends of the table
_EXACT = 40  # steps on the exact distribution before bisection takes over; one or two suffice for parts that are alike
_CLOSE = 1e-7  # cube of the relative step size times the shape: the relative error that is left
_ALIKE = 2.0  # a step of the third order over Newton's, at most
_NARROW = 1e-2  # spread of means, relative to the standard deviation, below which parts are merged
_QUANTILE_HALVINGS = 40  # bisection steps between the quantiles of the components


@dataclass(frozen=True)
class GammaMixture:
    """Mixtures of distributions that are known by three moments.

    Attributes
    ----------
    weight, mean_s, variance_s2, third_s3 : array (draws, parts)
        Weight, mean (s), variance (s²) and third cumulant (s³) of each part; the weights of a draw add up to 1.
    """

    weight: FloatArray
    mean_s: FloatArray
    variance_s2: FloatArray
    third_s3: FloatArray

    def with_merged(self, count: int) -> tuple[NDArray[np.bool_], GammaMixture]:
        """Merge the first `count` parts of each draw into one with the same moments.

        Tell also for which draws (draws,) these parts are nearly equal. Quantiles then change by less than a
        ten-thousandth: by the square of the spread of means, in standard deviations.
        """
        first = slice(None, count)
        share = self.weight[:, first].sum(axis=-1, keepdims=True)
        weight = self.weight[:, first] / np.maximum(share, 1e-300)
        with np.errstate(invalid="ignore"):  # a mean may be infinite
            mean = np.vecdot(weight, self.mean_s[:, first])[:, None]
            gap, own = self.mean_s[:, first] - mean, self.variance_s2[:, first]
            within, between = (np.vecdot(weight, each)[:, None] for each in (own, gap**2))
            third = np.vecdot(weight, self.third_s3[:, first] + 3 * gap * own + gap**3)[:, None]
        merged = (share, mean, within + between, third)
        parts = (self.weight, self.mean_s, self.variance_s2, self.third_s3)
        joined = [np.concatenate([one, every[:, count:]], axis=-1) for one, every in zip(merged, parts, strict=True)]
        return (between <= _NARROW**2 * within)[:, 0], GammaMixture(*joined)

    def forms(self) -> tuple[NDArray[np.intp], list[GammaMixture]]:
        """Return mixtures with fewer and fewer merged parts, and the first sufficient one for each draw."""
        parts = self.weight.shape[-1]
        counts = sorted({max(parts * thirds // 3, 1) for thirds in (1, 2, 3)}, reverse=True)
        near, merged = zip(*(self.with_merged(count) for count in counts), strict=True)
        return np.argmax([*near, np.ones(len(self.weight), dtype=bool)], axis=0), [*merged, self]

    def rows(self, chosen: NDArray[np.bool_]) -> GammaMixture:
        """Return the mixtures of the chosen draws."""
        return GammaMixture(self.weight[chosen], self.mean_s[chosen], self.variance_s2[chosen], self.third_s3[chosen])

    def quantiles_s(self, levels: Sequence[float]) -> FloatArray:
        """Return quantiles with a relative error below 1e-6 of those of the laws that the parts follow.

        Householder's method of the third order on the exact distribution starts from the Wilson-Hilferty approximation
        (the cube root of a gamma variate is nearly normal). A value depends only on its own draw and level.

        Parameters
        ----------
        levels : sequence of float
            Probabilities above 0 and below 1.

        Returns
        -------
        array (levels, draws)
            Seconds.
        """
        found = np.full((len(levels), len(self.weight)), np.nan)
        finite = np.asarray(np.isfinite(self.mean_s).all(axis=-1))
        if finite.any():
            found[:, finite] = _stepped(_laws(self.rows(finite)), np.asarray(levels))
        for level, row in zip(*np.nonzero(~np.isfinite(found)), strict=True):
            found[level, row] = self._bisected_s(int(row), levels[level])
        return found

    def _bisected_s(self, row: int, level: float) -> float:
        """Return a quantile of one mixture by bisection between the quantiles of its finite parts: slow but safe."""
        finite = np.isfinite(self.mean_s[row])
        level_of_finite = level / max(self.weight[row, finite].sum(), 1e-300)
        if level_of_finite >= 1:  # the quantile is among the infinite parts
            return np.inf
        one = np.array([row])[:, None]
        places = np.flatnonzero(finite)[None]
        laws = _laws(
            GammaMixture(*(each[one, places] for each in (self.weight, self.mean_s, self.variance_s2, self.third_s3)))
        )
        parts = laws.start + special.gammaincinv(laws.shape, level_of_finite) * laws.scale
        low, high = float(parts.min()), float(parts.max())
        for _ in range(_QUANTILE_HALVINGS):
            middle = (low + high) / 2
            below = float(laws.below(np.array([[middle]]))[0]) < level
            low, high = (middle, high) if below else (low, middle)
        return (low + high) / 2


class _Laws(NamedTuple):
    """Mixtures of gamma distributions that each begin at some time; arrays (draws, parts), times in seconds."""

    weight: FloatArray
    start: FloatArray
    scale: FloatArray
    shape: FloatArray

    def rows(self, rows: NDArray[np.intp]) -> _Laws:
        """Return the mixtures of some draws."""
        return _Laws(*(each[rows] for each in self))

    def below(self, time: FloatArray) -> FloatArray:
        """Return the probability of at most `time` (draws, 1)."""
        scaled = np.maximum(time - self.start, 0.0) / self.scale
        return np.asarray(np.vecdot(self.weight, special.gammainc(self.shape, scaled)))


def _laws(mixture: GammaMixture) -> _Laws:
    """Return the laws of the parts, which have their three moments where such a law is positive.

    A part with a skewness of up to 2 is a gamma distribution that begins at some time; from 0 it has at least its own
    skewness. A part with more is a mixture of two gamma distributions of the same shape: exponential ones from an SCV
    of 2, as hyperexponential services are, and others that account for half of a smaller SCV.
    """
    mean = np.maximum(mixture.mean_s, _SMALL)
    variance = np.maximum(mixture.variance_s2, (_ROUNDING * mean) ** 2)
    third = np.maximum(mixture.third_s3, 2 * variance**2 / mean)
    scv = variance / mean**2
    nearly_certain = scv <= 2 / _STEEPEST  # its skewness does not matter
    least = np.where(nearly_certain, np.sqrt(variance), 0.0)
    above = np.clip(2 * variance**2 / third, least, mean)
    shape = np.minimum(above**2 / variance, _STEEPEST)
    laws = _Laws(mixture.weight, mean - above, above / shape, shape)
    skewed = (shape < 1 - 1e-9) & ~nearly_certain
    return _of_two(laws, skewed, mean, scv, third) if np.any(skewed) else laws


def _of_two(laws: _Laws, skewed: NDArray[np.bool_], mean: FloatArray, scv: FloatArray, third: FloatArray) -> _Laws:
    """Return laws with two phases for each part, of which the second counts for skewed parts only.

    A phase is a gamma variate of mean 1 times one of two values. Their three moments are those of the part over those
    of the variate.
    """
    own = np.minimum(scv / 2, 1.0)  # SCV of the variate
    variance = np.maximum((1 + scv) / (1 + own) - 1, 1e-12)
    cube = (third / mean**3 + 3 * scv + 1) / ((1 + own) * (1 + 2 * own))
    skewness = (cube - 3 * variance - 1) / variance**1.5
    root = np.sqrt(skewness**2 + 4)
    slow = 1 + np.sqrt(variance) * (root + skewness) / 2
    quick = np.maximum(1 - np.sqrt(variance) * (root - skewness) / 2, 1e-9)
    share = (1 - quick) / (slow - quick)
    start, shape = np.where(skewed, 0.0, laws.start), np.where(skewed, 1 / own, laws.shape)
    first, second = (
        _Laws(chance * laws.weight, start, np.where(skewed, mean * each * own, laws.scale), shape)
        for chance, each in ((np.where(skewed, share, 1.0), slow), (np.where(skewed, 1 - share, 0.0), quick))
    )
    two = np.any(skewed, axis=0)
    return _Laws(*(np.concatenate([one, other[..., two]], axis=-1) for one, other in zip(first, second, strict=True)))


def quantiles_of_groups_s(groups: Sequence[GammaMixture], levels: Sequence[float]) -> FloatArray:
    """Return quantiles of the union of several mixtures.

    Parts of a group that are nearly equal are merged first (`GammaMixture.forms`). Draws with the same number of parts
    are solved together.

    Parameters
    ----------
    groups : sequence of GammaMixture
        The mixtures, whose weights add up to 1 over all groups.
    levels : sequence of float
        Probabilities above 0 and below 1.

    Returns
    -------
    array (levels, draws)
        Seconds.
    """
    chosen, forms = zip(*(group.forms() for group in groups), strict=True)
    patterns, pattern_of = np.unique(np.stack(chosen, axis=-1), axis=0, return_inverse=True)
    found = np.empty((len(levels), len(groups[0].weight)))
    for place, pattern in enumerate(patterns):
        draws = pattern_of.ravel() == place
        parts = [form[which].rows(draws) for form, which in zip(forms, pattern, strict=True)]
        columns = ([getattr(part, name) for part in parts] for name in ("weight", "mean_s", "variance_s2", "third_s3"))
        found[:, draws] = GammaMixture(*(np.concatenate(column, axis=-1) for column in columns)).quantiles_s(levels)
    return found


def _stepped(laws: _Laws, levels: FloatArray) -> FloatArray:
    """Return quantiles (levels, draws) by Householder's method; NaN where it does not converge."""
    draws = len(laws.weight)
    log_time = 3 * np.log(_near_cube_roots(laws, levels)).ravel()
    log_gamma = special.gammaln(laws.shape)
    steepest = (laws.shape * (1 + laws.start / (laws.scale * laws.shape)) ** 2).max(axis=-1)
    found = np.full(log_time.shape, np.nan)
    left = np.flatnonzero(np.isfinite(log_time))
    low, high = np.full(log_time.shape, -np.inf), np.full(log_time.shape, np.inf)
    for _ in range(_EXACT):
        row, time = left % draws, np.exp(log_time[left])[:, None]
        share, start, scale, shape = laws.rows(row)
        scaled, ticks = np.maximum((time - start) / scale, 0.0), time / scale
        error = np.vecdot(share, special.gammainc(shape, scaled)) - levels[left // draws]
        begun = np.where(scaled > 0, scaled, 1.0)
        density = share * ticks * np.exp((shape - 1) * np.log(begun) - scaled - log_gamma[row])  # by the log of time
        density = np.where(scaled > 0, density, 0.0)
        steeper = (shape - 1) / begun  # by the log of time, the slope of log density is 1 + ticks (steeper - 1)
        growth = ticks * (steeper - 1)
        slope, bend = density.sum(axis=-1), np.vecdot(density, 1 + growth)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # far away; Newton's step is taken there
            twist = np.vecdot(density, (1 + growth) ** 2 + growth - ticks**2 * steeper / begun)
            plain, bend, twist = -error / slope, bend / slope, twist / slope
            better = (1 + bend * plain / 2) / (1 + bend * plain + twist * plain**2 / 6)
        step = plain * np.where((better > 1 / _ALIKE) & (better < _ALIKE), better, 1.0)  # far away, the series is wrong
        here = log_time[left]
        low[left], high[left] = np.where(error < 0, here, low[left]), np.where(error > 0, here, high[left])
        # Between parts that are far apart the distribution is flat, and steps leave the interval of the quantile.
        there = here - np.sign(error) * np.fmin(np.abs(step), 0.5)
        inside = (there > low[left]) & (there < high[left])
        with np.errstate(invalid="ignore"):  # nothing is known yet where the first time is the quantile itself
            between = (low[left] + high[left]) / 2
        log_time[left] = np.where(inside | ~np.isfinite(between), there, between)
        settled = np.fmin(np.maximum(np.abs(plain), np.abs(step)), 1.0) ** 3 * steepest[row] < _CLOSE
        found[left[settled]] = np.exp(there[settled])
        left = left[~settled]
        if not len(left):
            break
    return found.reshape(len(levels), draws)


def _near_cube_roots(laws: _Laws, levels: FloatArray) -> FloatArray:
    """Return cube roots (levels, draws) of the quantiles of the Wilson-Hilferty approximation.

    A table of the distribution, linearised by the normal quantile function, gives the start of one Newton step.
    """
    weight, start, scale, shape = laws
    deviations = 3 * np.sqrt(shape)
    slope, offset = deviations / np.cbrt(scale * shape), deviations - 1 / deviations  # cube roots are standard normal
    low, high = (np.cbrt(start + np.maximum((end + offset) / slope, 0.0) ** 3) for end in special.ndtri(_ENDS))
    low, high = np.maximum(low.min(axis=-1), 1e-12), np.maximum(high.max(axis=-1), 2e-12)
    grid = low + (high - low) * np.linspace(0, 1, _TABLE)[:, None]

    def above(roots: FloatArray) -> FloatArray:
        return np.asarray(np.cbrt(np.maximum(roots[..., None] ** 3 - start, 0.0)))

    table = special.ndtri(np.clip(np.vecdot(weight, special.ndtr(above(grid) * slope - offset)), 1e-9, 1 - 1e-9))
    roots, begin, end = _inverted(special.ndtri(levels), table, grid)
    own = above(roots)
    normal = own * slope - offset
    error = np.vecdot(weight, special.ndtr(normal)) - levels[:, None]
    steepness = slope * (roots[..., None] / np.maximum(own, 1e-12)) ** 2 * (own > 0)
    density = np.vecdot(weight * steepness, np.exp(normal * normal / -2)) / np.sqrt(2 * np.pi)
    newton = roots - error / np.maximum(density, 1e-300)
    return np.where((newton > begin) & (newton < end), newton, roots)  # where it is flat, Newton's step leads astray


def _inverted(wanted: FloatArray, table: FloatArray, grid: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return where rising columns of `table` (points, draws) reach `wanted`, interpolated linearly (levels, draws).

    The points of the table below and above follow.
    """
    right = np.clip((table <= wanted[:, None, None]).sum(axis=1), 1, len(table) - 1)
    (below, above), (low, high) = (
        (np.take_along_axis(each, right - 1, axis=0), np.take_along_axis(each, right, axis=0)) for each in (table, grid)
    )
    share = (wanted[:, None] - below) / np.maximum(above - below, 1e-300)
    return low + np.clip(share, 0.0, 1.0) * (high - low), low, high
