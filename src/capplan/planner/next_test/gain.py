"""What a load test is expected to tell of a figure: a linear-Gaussian update on the draws of an ensemble.

The draws give the joint distribution of the asked figure and of what a candidate would measure, both as logarithms. A
measurement adds its scatter. If all of them are jointly normal, the variance of the asked figure after the test does
not depend on what the test measures, and is `var(y) - c' (S + R)^-1 c`, with `c` as the covariances of the asked figure
and the measured ones, `S` as the covariance of these and `R` as the scatter of a repeat. The mean after the test is
normal itself, with the variance that is lost; so the probability that a decision changes has a closed form, too.

References
----------
D. V. Lindley, "On a measure of the information provided by an experiment", *Annals of Mathematical Statistics* 27,
1956; K. Chaloner and I. Verdinelli, "Bayesian experimental design: a review", *Statistical Science* 10, 1995.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from capplan.models.language.units import FloatArray


@dataclass(frozen=True)
class Normal:
    """A normal distribution of the logarithm of a figure."""

    mean: float
    sd: float

    @classmethod
    def of(cls, draws: FloatArray) -> Normal:
        """Return the distribution of draws (draws,) of a logarithm."""
        return cls(float(np.mean(draws)), float(np.std(draws)))


def variance_lost(asked: FloatArray, measured: FloatArray, scatter: FloatArray) -> float:
    """Return by how much a test is expected to lower the variance of an asked figure.

    Parameters
    ----------
    asked : array (draws,)
        Logarithms of the asked figure.
    measured : array (figures, draws)
        Logarithms of what the test would measure.
    scatter : array (figures,)
        Standard deviation of a repeat of each of these logarithms.

    Returns
    -------
    float
        Between 0 and the variance of the asked figure.
    """
    around = measured - measured.mean(axis=-1, keepdims=True)
    own = asked - asked.mean()
    count = len(asked)
    covariance = around @ around.T / count + np.diag(scatter**2)
    shared = around @ own / count
    lost = float(shared @ np.linalg.pinv(covariance, hermitian=True) @ shared)  # figures may say the same
    return min(max(lost, 0.0), float(own @ own / count))


def factor(sd: float, scatter: float, level: float = 0.9) -> float:
    """Return the ratio of an end of the central band of a repeat to the median: `exp(z sd)`."""
    return math.exp(float(ndtri((1 + level) / 2)) * math.hypot(sd, scatter))


def chance_of_change(now: Normal, limit: float, lost: float, scatter: float, confidence: float) -> float:
    """Return the probability that a test changes the answer whether a figure is at least a limit.

    The answer is yes if a repeat exceeds the limit with the wanted confidence.

    Parameters
    ----------
    now : Normal
        The logarithm of the figure, before the test.
    limit : float
        Logarithm of the limit.
    lost : float
        Variance that the test removes.
    scatter : float
        Standard deviation of a repeat of the logarithm.
    confidence : float
        The wanted confidence, such as 0.95.
    """
    margin = float(ndtri(confidence))
    yes = now.mean - limit >= margin * math.hypot(now.sd, scatter)
    after = math.hypot(math.sqrt(max(now.sd**2 - lost, 0.0)), scatter)
    if lost <= 0:
        return 0.0
    likely_yes = float(ndtr((now.mean - limit - margin * after) / math.sqrt(lost)))
    return 1 - likely_yes if yes else likely_yes
