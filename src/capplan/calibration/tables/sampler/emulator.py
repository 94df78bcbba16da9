"""A fast stand-in for a posterior: each residual is a quadratic polynomial of the parameters (a response surface).

Least squares fit the polynomials to the points where the model is known, most closely where they are probable. What a
polynomial leaves of its residual makes that residual less certain. So the emulated posterior is rather too wide.

References
----------
G. E. P. Box and K. B. Wilson, "On the experimental attainment of optimum conditions", *Journal of the Royal Statistical
Society B* 13, 1951; J. Goodman and J. Weare, "Ensemble samplers with affine invariance", *Communications in Applied
Mathematics and Computational Science* 5, 2010; C. J. F. ter Braak, "A Markov chain Monte Carlo version of the genetic
algorithm differential evolution", *Statistics and Computing* 16, 2006.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from capplan.calibration.fit.posterior import Ensemble, moved
from capplan.models.language.units import FloatArray

_COUNTED, _LEAST, _MOST = 2.0, 0.25, 0.5  # points that count: for each coefficient, and as shares of all known ones
_RIDGE = 1e-2  # how many points the assumption that a coefficient is zero counts for
_LEVERAGE = 0.9  # at most: of a point on its own polynomial
_WIDER = 0.85  # power of the density: a proposal that is too narrow somewhere gives single points much weight
_FAR = 4.0  # standard deviations beyond which the polynomials are not trusted, in addition to the usual distance
_STEPS = 120  # of each walker
_DIFFERENTIAL = 0.7  # share of the steps by differential evolution; the others are stretches


class Posterior(Protocol):
    """A posterior as a sum of squares."""

    def residuals(self, points: FloatArray) -> FloatArray:
        """Return residuals (draws, residuals) with the sum of squares -2 log posterior, those of the priors last."""


@dataclass(frozen=True)
class Known:
    """Points at which the model has been evaluated.

    Attributes
    ----------
    points : array (points, free)
        The points.
    residuals : array (points, residuals)
        Their residuals; half the sum of squares is minus the log posterior, up to a constant.
    """

    points: FloatArray
    residuals: FloatArray

    @property
    def log_posterior(self) -> FloatArray:
        """Logarithm of the posterior up to a constant (points,)."""
        return np.asarray(-(self.residuals**2).sum(axis=1) / 2)

    def joined(self, problem: Posterior, points: FloatArray) -> Known:
        """Return these points and others, which are evaluated."""
        residuals = problem.residuals(points)
        return Known(np.concatenate([self.points, points]), np.concatenate([self.residuals, residuals]))


class Emulator:
    """The emulated posterior.

    Parameters
    ----------
    known : Known
        The points to which it is fitted.
    """

    def __init__(self, known: Known) -> None:
        self.known = known
        count, free = known.points.shape
        self._pairs = np.triu_indices(free)
        needed = _COUNTED * (1 + free + len(self._pairs[0]))
        self._weight = flattened(known.log_posterior, min(max(needed, _LEAST * count), _MOST * count))
        self._centre = self._weight @ known.points
        away = known.points - self._centre
        self._whitening = np.linalg.inv(np.linalg.cholesky((away.T * self._weight) @ away))
        self._coefficients, self._precision = self._fitted()

    def _fitted(self) -> tuple[FloatArray, FloatArray]:
        """Return the polynomials' coefficients (coefficients, residuals), and how far each counts (residuals,)."""
        terms = self._terms(self._scaled(self.known.points))
        weighted = terms.T * self._weight
        count, coefficients = terms.shape
        inverse = np.linalg.inv(weighted @ terms + _RIDGE / count * np.eye(coefficients))
        found = inverse @ (weighted @ self.known.residuals)
        leverage = np.minimum((terms @ inverse * terms).sum(axis=1) * self._weight, _LEVERAGE)
        left = (self.known.residuals - terms @ found) / (1 - leverage)[:, None]  # had the point been left out
        return found, 1 / (1 + self._weight @ left**2)

    def log_posterior(self, points: FloatArray) -> FloatArray:
        """Return the logarithm of the emulated posterior up to a constant (draws,); minus infinity far away."""
        scaled = self._scaled(points)
        found = -_WIDER / 2 * ((self._terms(scaled) @ self._coefficients) ** 2 @ self._precision)
        return np.where(_near(scaled), found, -np.inf)

    def drawn(self, count: int, random: np.random.Generator) -> FloatArray:
        """Return draws from the emulated posterior (count, free): the ends of walks that start at known points."""
        from emcee import moves  # only calibration needs it

        start = self._weight * _near(self._scaled(self.known.points))
        chosen = random.choice(len(start), count, p=start / start.sum())
        kinds = [(moves.DEMove(), _DIFFERENTIAL), (moves.StretchMove(), 1 - _DIFFERENTIAL)]
        walkers = Ensemble(self.known.points[chosen], 0.0)
        return moved(self, walkers, _STEPS, int(random.integers(1 << 31)), kinds).log_points

    def _scaled(self, points: FloatArray) -> FloatArray:
        return np.asarray((points - self._centre) @ self._whitening.T)

    def _terms(self, scaled: FloatArray) -> FloatArray:
        """Return the terms of the polynomials (draws, coefficients): 1, coordinates, and their products."""
        first, second = self._pairs
        return np.concatenate([np.ones((len(scaled), 1)), scaled, scaled[:, first] * scaled[:, second]], axis=1)


def flattened(log_weight: FloatArray, least: float) -> FloatArray:
    """Return normalised weights (points,), flattened until `least` points count, so that a few do not stand for all."""
    if np.isnan(log_weight).any():
        raise ValueError("a weight is not a number")  # no power would flatten it, so the search would not end
    power = 1.0
    while True:
        weight = np.exp(power * (log_weight - log_weight.max()))
        weight /= weight.sum()
        if 1 / (weight**2).sum() >= least:
            return np.asarray(weight)
        power *= 0.8


def _near(scaled: FloatArray) -> FloatArray:
    return np.asarray((scaled**2).sum(axis=1) < (np.sqrt(scaled.shape[1]) + _FAR) ** 2)
