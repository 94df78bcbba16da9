"""What the errors of a fit say of the scatter of a repeat.

A fit follows the figures in part, so its errors are smaller than the scatter: most so for the figures that decide the
parameters. If parameters have their priors and the model is linear, the whitened errors have the covariance 1 - H,
where H is the share of each figure that the fit follows (a hat matrix).

References
----------
A. Gelman et al., *Bayesian Data Analysis*, third edition, CRC Press, 2013, sections 3.2 (the scaled inverse chi-squared
distribution) and 14.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from capplan.calibration.tables.rows import QUANTITIES
from capplan.models.language.units import FloatArray

_PRIOR_FIGURES = 4.0  # figures that the assumed scatter counts for, beside the errors of the fit
_LEAST = 0.5  # of the assumed scatter


def learnt_scatter(
    quantities: Sequence[str],
    errors: FloatArray,
    own_sd: FloatArray,
    covariance: FloatArray,
    slopes: FloatArray,
    prior_precision: FloatArray,
    scatter: Mapping[str, float],
) -> dict[str, float]:
    """Return the scatter with what the errors of a fit say of it: of rates and means, and of all percentiles.

    The variance is that of a scaled inverse chi-squared distribution: the assumed one counts as a few figures.

    Parameters
    ----------
    quantities : sequence of str
        Column of each figure.
    errors : array (figures,)
        Logarithms of the figures over the most probable predictions.
    own_sd : array (figures,)
        Assumed scatter of each figure.
    covariance : array (figures, figures)
        Covariance of all errors, shared ones included.
    slopes : array (figures, free)
        Derivatives of the logarithms of the predictions with respect to the parameters.
    prior_precision : array (free, free)
        Inverse covariance of the priors.
    scatter : mapping of float
        Assumed scatter by column.
    """
    squares = (own_sd * np.linalg.solve(covariance, errors)) ** 2  # of standardised errors, without the shared ones
    freedom = expected_squares(own_sd, covariance, slopes, prior_precision)
    found = dict(scatter)
    for names in (QUANTITIES[:3], QUANTITIES[3:]):
        own = np.array([name in names for name in quantities])
        if own.any():
            factor = math.sqrt((_PRIOR_FIGURES + squares[own].sum()) / (_PRIOR_FIGURES + freedom[own].sum()))
            found.update({name: found[name] * max(factor, _LEAST) for name in names})
    return found


def expected_squares(
    own_sd: FloatArray, covariance: FloatArray, slopes: FloatArray, prior_precision: FloatArray
) -> FloatArray:
    """Return the expected square of each standardised error of a fit (figures,), without the shared ones.

    It is 1 for figures that a fit does not follow. Their sum is the number of degrees of freedom.
    """
    whitening = np.linalg.inv(np.linalg.cholesky(covariance))
    white = whitening @ slopes
    followed = white @ np.linalg.solve(white.T @ white + prior_precision, white.T)
    root = whitening * own_sd
    return np.asarray(np.einsum("ki,ki->i", root, root - followed @ root))
