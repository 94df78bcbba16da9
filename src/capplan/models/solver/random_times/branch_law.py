"""The distribution of a time with a given mean and variance: gamma, or hyperexponential if it varies much.

With a squared coefficient of variation (SCV) above 1, a gamma density is infinite at 0, which no service time is: the
middle one of three answers would come too early. There, the distribution is a mixture of two exponential ones with
balanced means: p = (1 + sqrt((SCV - 1) / (SCV + 1))) / 2 of the times have the mean 1 / (2 p) of the whole, the others
1 / (2 (1 - p)). Both are exponential with an SCV of 1.

References
----------
W. Whitt, "Approximating a point process by a renewal process, I: two basic methods", *Operations Research* 30, 1982,
section 3; H. C. Tijms, *A First Course in Stochastic Models*, Wiley, 2003, appendix B.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from capplan.models.language.units import FloatArray

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
