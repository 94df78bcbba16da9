"""The k-th of n parallel, independent branches to finish: quorums, forks and joins."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import ArrayLike
from scipy import special

from capplan.models.errors import InputError
from capplan.models.language.units import FloatArray
from capplan.models.solver.stations.erlang import checked, whole

MAX_BRANCHES = 200
MAX_SCV = 100.0
# On this standard normal grid a trapezoid sum is exact to rounding for order statistics of up to 200 branches.
_GRID = np.linspace(-9.0, 9.0, 289)
# Chebyshev nodes in c / (1 + c), where c is the coefficient of variation, from 0 to 10.
_NODES, _EDGE = 64, 10.0 / 11.0


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
    """Return the same for branches along the first axis, without checks of the arguments.

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
    """Return the mean time until k of n gamma distributed branches are done.

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


def _ranks(k: int, n: int) -> tuple[int, int]:
    """Check that k of n branches can be needed."""
    needed, branches = int(whole(k, "number of branches needed", 1)), int(whole(n, "number of branches", 1))
    if needed > branches:
        raise InputError(f"{needed} of {branches} branches cannot be needed: ask for fewer")
    return needed, branches


def _moment(scv: ArrayLike, k: int, n: int, order: int) -> FloatArray:
    """Return the mean (order 1) of the k-th of n over the branch mean, or its variance (2) over the branch variance."""
    needed, branches = _ranks(k, n)
    spread = checked(scv, "squared coefficient of variation")
    if branches > MAX_BRANCHES:
        raise InputError(f"{branches} is not a number of branches that is solved: it must be at most {MAX_BRANCHES}")
    if (spread > MAX_SCV).any():
        raise InputError(f"{spread.max():g} is not a squared coefficient of variation: it must be at most {MAX_SCV:g}")
    root = np.sqrt(spread)
    value = chebyshev.chebval(2 * root / (1 + root) / _EDGE - 1, _series(needed, branches)[order - 1])
    return np.asarray(np.maximum(1 + root * value if order == 1 else value, 0.0))


@lru_cache(maxsize=256)
def _series(k: int, n: int) -> FloatArray:
    """Return Chebyshev coefficients (2, nodes) in `c / (1 + c)` of the standardised mean and variance of the k-th."""
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
    """Return gamma quantiles `(Q - 1) / c` (nodes, grid) of mean 1 and coefficient of variation c."""
    angles = np.pi * (np.arange(_NODES) + 0.5) / _NODES
    position = (np.cos(angles) + 1) / 2 * _EDGE
    root = (position / (1 - position))[:, None]
    lower = special.gammaincinv(root**-2, special.ndtr(_GRID[_GRID < 0]))
    upper = special.gammainccinv(root**-2, special.ndtr(-_GRID[_GRID >= 0]))
    return np.asarray((np.concatenate([lower, upper], axis=-1) * root**2 - 1) / root)
