"""The k-th of n parallel branches to finish: quorums, forks and joins.

Exact for independent branches. Branches that share a stream of arrivals are dependent: `fork_join_mean_response_s` is
an approximation for those, labelled so.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from capplan.models.errors import InputError
from capplan.models.language.units import FloatArray
from capplan.models.solver.erlang import checked, probability, whole

MOST_BRANCHES = 200
LARGEST_SCV = 100.0
# Standard normal grid: a trapezoid sum over it is exact to rounding for every order statistic of up to 200 branches.
_GRID = np.linspace(-9.0, 9.0, 289)
# Chebyshev nodes in c / (1 + c), c the coefficient of variation from 0 to 10.
_NODES, _EDGE = 64, 10.0 / 11.0


def _ranks(k: ArrayLike, n: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Check that k of n makes sense; arrays of the broadcast shape."""
    needed, branches = np.broadcast_arrays(whole(k, "number of branches needed", 1), whole(n, "number of branches", 1))
    if (needed > branches).any():
        worst = np.argmax(needed > branches)
        raise InputError(f"{needed.flat[worst]:g} of {branches.flat[worst]:g} branches cannot be needed: ask for fewer")
    return needed, branches


def kth_of_n_mean_exponential(mean_s: ArrayLike, k: ArrayLike, n: ArrayLike) -> FloatArray:
    """Mean time until k of n independent exponential branches are done, in seconds.

    Parameters
    ----------
    mean_s : number or array
        Mean of each branch, at least 0.
    k, n : whole number or array
        Branches needed and started, 1 <= k <= n. All arguments broadcast.

    Returns
    -------
    array
        ``mean_s (1/n + 1/(n-1) + ... + 1/(n-k+1))`` (Renyi 1953; Harchol-Balter 2013), in seconds.

    Raises
    ------
    InputError
        A mean is negative, a count is not whole, or k exceeds n.
    """
    needed, branches = _ranks(k, n)
    harmonic = special.digamma(branches + 1) - special.digamma(branches - needed + 1)
    return np.asarray(checked(mean_s, "mean time in seconds") * harmonic)


def kth_of_n_cdf_identical(cdf: ArrayLike, k: ArrayLike, n: ArrayLike) -> FloatArray:
    """Probability that k of n independent, identically distributed branches are done.

    Parameters
    ----------
    cdf : number or array
        Probability that one branch is done, from 0 to 1.
    k, n : whole number or array
        Branches needed and started. All arguments broadcast.

    Returns
    -------
    array
        The binomial tail, as a regularised incomplete beta function (David & Nagaraja 2003, section 2.1).

    Raises
    ------
    InputError
        A probability is outside 0 to 1, a count is not whole, or k exceeds n.
    """
    needed, branches = _ranks(k, n)
    return np.asarray(special.betainc(needed, branches - needed + 1, _share(cdf)))


def _share(value: ArrayLike) -> FloatArray:
    """Check probabilities from 0 to 1, both included."""
    shares = checked(value, "probability")
    if (shares > 1).any():
        raise InputError(f"{shares.max():g} is not a probability: it must be at most 1")
    return shares


def kth_of_n_level(level: ArrayLike, k: ArrayLike, n: ArrayLike) -> FloatArray:
    """Level at which to read one branch's quantile function to get the quantile of the k-th of n.

    Parameters
    ----------
    level : number or array
        Quantile level wanted of the k-th of n, from 0, below 1.
    k, n : whole number or array
        Branches needed and started; independent and identically distributed. All arguments broadcast.

    Returns
    -------
    array
        Quantile level for one branch: the inverse of `kth_of_n_cdf_identical` in its first argument.

    Raises
    ------
    InputError
        A level is outside 0 to 1, a count is not whole, or k exceeds n.
    """
    needed, branches = _ranks(k, n)
    return np.asarray(special.betaincinv(needed, branches - needed + 1, probability(level, "quantile level")))


def kth_of_n_cdf(cdf_values: ArrayLike, k: int) -> FloatArray:
    """Probability that at least k of the branches are done, for independent branches with laws of their own.

    Parameters
    ----------
    cdf_values : array (..., n)
        Probability that each branch is done (the branches along the last axis), from 0 to 1.
    k : whole number
        Branches needed, 1 <= k <= n.

    Returns
    -------
    array (...)
        The Poisson-binomial tail, by adding one branch at a time: n k operations, all terms positive.

    Raises
    ------
    InputError
        A probability is outside 0 to 1, k is not whole or exceeds the number of branches.
    """
    shares = np.atleast_1d(_share(cdf_values))
    needed = int(_ranks(k, shares.shape[-1])[0])
    branches = np.ascontiguousarray(np.moveaxis(shares, -1, 0))
    reached = np.zeros((needed + 1, *branches.shape[1:]))  # by number done; the last entry means k or more
    reached[0] = 1.0
    for place, done in enumerate(branches, start=1):
        most = min(place, needed)  # that can be done by now
        moved = reached[:most] * done
        reached[:most] -= moved
        reached[1 : most + 1] += moved
    return np.asarray(reached[-1])


def kth_of_n_mean(mean_s: ArrayLike, scv: ArrayLike, k: int, n: int) -> FloatArray:
    """Mean time until k of n independent gamma branches are done, in seconds.

    Parameters
    ----------
    mean_s : number or array
        Mean of each branch, at least 0.
    scv : number or array
        Squared coefficient of variation of each branch, from 0 (deterministic) to 100; broadcast against `mean_s`.
    k, n : whole number
        Branches needed and started, 1 <= k <= n <= 200.

    Returns
    -------
    array
        Seconds, within 1e-8 of the branch's mean: exact branch law, order statistic integrated on a fixed grid, then a
        Chebyshev series in the coefficient of variation that is built once per (k, n).

    Raises
    ------
    InputError
        A mean or SCV is out of range, or k and n are.
    """
    return np.asarray(checked(mean_s, "mean time in seconds") * _moment(scv, k, n, 1))


def kth_of_n_variance(mean_s: ArrayLike, scv: ArrayLike, k: int, n: int) -> FloatArray:
    """Variance of the time until k of n independent gamma branches are done, in s².

    Parameters, precision (1e-8 of the branch's variance) and errors as for `kth_of_n_mean`.

    Returns
    -------
    array
        s².
    """
    spread = checked(scv, "squared coefficient of variation")
    return np.asarray(checked(mean_s, "mean time in seconds") ** 2 * spread * _moment(spread, k, n, 2))


def _moment(scv: ArrayLike, k: int, n: int, order: int) -> FloatArray:
    """Mean (order 1) of the k-th of n in units of the branch mean, or variance (2) in units of the branch variance."""
    needed, branches = _ranks(k, n)
    spread = checked(scv, "squared coefficient of variation")
    if branches > MOST_BRANCHES:
        raise InputError(
            f"{branches:g} is not a number of branches this integrates: it must be at most {MOST_BRANCHES}"
        )
    if (spread > LARGEST_SCV).any():
        raise InputError(
            f"{spread.max():g} is not a squared coefficient of variation: it must be at most {LARGEST_SCV:g}"
        )
    root = np.sqrt(spread)
    value = _chebyshev(2 * root / (1 + root) / _EDGE - 1, _series(int(needed), int(branches))[order - 1])
    return np.maximum(1 + root * value if order == 1 else value, 0.0)


def _chebyshev(position: FloatArray, coefficients: FloatArray) -> FloatArray:
    """Clenshaw's sum of a Chebyshev series on -1 to 1."""
    ahead = later = np.zeros(position.shape)
    for coefficient in coefficients[:0:-1]:
        ahead, later = 2 * position * ahead - later + coefficient, ahead
    return np.asarray(position * ahead - later + coefficients[0])


@lru_cache(maxsize=256)
def _series(k: int, n: int) -> FloatArray:
    """Chebyshev coefficients (2, nodes) of the standardised mean and variance of the k-th of n, by `c / (1 + c)`."""
    weights = (k - 1) * special.log_ndtr(_GRID) + (n - k) * special.log_ndtr(-_GRID) - special.betaln(k, n - k + 1)
    density = np.exp(weights - _GRID**2 / 2) / np.sqrt(2 * np.pi) * (_GRID[1] - _GRID[0])
    mean = _quantiles() @ density
    variance = ((_quantiles() - mean[:, None]) ** 2) @ density
    angles = np.pi * (np.arange(_NODES) + 0.5) / _NODES
    cosines = np.cos(np.outer(np.arange(_NODES), angles)) * 2 / _NODES
    cosines[0] /= 2
    return np.asarray(np.stack([mean, variance]) @ cosines.T)


@lru_cache(maxsize=1)
def _quantiles() -> FloatArray:
    """Standardised gamma quantiles `(Q - 1) / c` (nodes, grid); unit mean, coefficient of variation c at each node."""
    angles = np.pi * (np.arange(_NODES) + 0.5) / _NODES
    position = (np.cos(angles) + 1) / 2 * _EDGE
    root = (position / (1 - position))[:, None]
    lower = special.gammaincinv(root**-2, special.ndtr(np.minimum(_GRID, 0)))
    upper = special.gammainccinv(root**-2, special.ndtr(np.minimum(-_GRID, 0)))
    return np.asarray((np.where(_GRID < 0, lower, upper) * root**2 - 1) / root)


def fork_join_mean_response_s(arrival_rate_per_s: ArrayLike, mean_service_s: ArrayLike, n: ArrayLike) -> FloatArray:
    """Mean time from fork to join of n M/M/1 queues that share their arrivals, all n needed, in seconds.

    Parameters
    ----------
    arrival_rate_per_s : number or array
        Rate of forks; each sends one task to every queue.
    mean_service_s : number or array
        Mean of the exponential service of each task.
    n : whole number or array
        Queues. All arguments broadcast.

    Returns
    -------
    array
        Seconds; `inf` from full load on. Exact for n = 1 and n = 2 (Flatto & Hahn 1984), otherwise the approximation of
        Nelson & Tantawi (1988), fitted to simulations of up to 32 queues with errors below 5 % (Thomasian 2014).

    Raises
    ------
    InputError
        A rate or time is negative, or n is not whole.
    """
    service, queues = checked(mean_service_s, "service time in seconds"), whole(n, "number of branches", 1)
    load = checked(arrival_rate_per_s, "rate of arrivals per second") * service
    harmonic = (special.digamma(queues + 1) - special.digamma(1.0)) / 1.5
    scale = (harmonic + 4 / 11 * (1 - harmonic) * load) * (12 - load) / 8
    single = np.where(load < 1, service / np.where(load < 1, 1 - load, 1.0), np.inf)
    return np.asarray(np.where(queues == 1, 1.0, np.where(load < 1, scale, 1.0)) * single)
