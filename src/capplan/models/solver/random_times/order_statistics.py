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
from capplan.models.solver.random_times.branch_law import law_cdf
from capplan.models.solver.stations.erlang import checked, whole

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
    position, series = root / (1 + root), _series(needed, branches)[:, order - 1]
    value, late = chebyshev.chebval(_unit(position, *_HALVES[0]), series[0]), position > _HALVES[0][1]
    if np.any(late):
        value = np.where(late, chebyshev.chebval(_unit(position, *_HALVES[1]), series[1]), value)
    return np.asarray(np.maximum(1 + root * value if order == 1 else value, 0.0))


def _unit(position: FloatArray, low: float, high: float) -> FloatArray:
    """Map an interval to that from -1 to 1; what is outside goes to its ends."""
    return np.clip(2 * (position - low) / (high - low) - 1, -1.0, 1.0)


@lru_cache(maxsize=256)
def _series(k: int, n: int) -> FloatArray:
    """Return Chebyshev coefficients of the standardised mean and variance of the k-th (halves, 2, nodes)."""
    values = np.stack([_regular(k, n), _irregular(k, n)])
    cosines = np.cos(np.outer(np.arange(_NODES), _angles())) * 2 / _NODES
    cosines[0] /= 2
    return np.asarray(values @ cosines.T)


def _regular(k: int, n: int) -> FloatArray:
    """Return mean and variance (2, nodes) of branches that vary less than exponential ones."""
    weights = (k - 1) * special.log_ndtr(_GRID) + (n - k) * special.log_ndtr(-_GRID) - special.betaln(k, n - k + 1)
    density = np.exp(weights - _GRID**2 / 2) / np.sqrt(2 * np.pi) * (_GRID[1] - _GRID[0])
    mean = _quantiles() @ density
    return np.stack([mean, ((_quantiles() - mean[:, None]) ** 2) @ density])


def _irregular(k: int, n: int) -> FloatArray:
    """Return the same for branches that vary more: integrals of the tail of the k-th over the logarithm of time."""
    root = _coefficients(*_HALVES[1])
    tail = special.betaincc(k, n - k + 1, law_cdf(root[:, None] ** -2, _TIMES))
    mean, second = (tail @ weight * _SPACING for weight in (_TIMES, 2 * _TIMES**2))
    return np.stack([(mean - 1) / root, (second - mean**2) / root**2])


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
