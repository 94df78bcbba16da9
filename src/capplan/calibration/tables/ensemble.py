"""An ensemble of parameter values that explain a table about as well as the most probable ones.

Few rows leave much open, so the posterior is long and bent, and the curvature at its maximum describes only a part of
it. An ensemble smoother, which starts at the priors, finds how far it reaches. Then adaptive importance sampling
proposes points from a mixture of multivariate t distributions: one from the curvature at the maximum, others from the
smoother. Each round fits the mixture to the points of all rounds before. All points count in the end: the weight of
each is its posterior density over the mean density of all proposals there (deterministic mixture weights).

References
----------
A. A. Emerick and A. C. Reynolds, "Ensemble smoother with multiple data assimilation", *Computers & Geosciences* 55,
2013; O. Cappe, R. Douc, A. Guillin, J.-M. Marin and C. P. Robert, "Adaptive importance sampling in general mixture
classes", *Statistics and Computing* 18, 2008; J.-M. Cornuet, J.-M. Marin, A. Mira and C. P. Robert, "Adaptive multiple
importance sampling", *Scandinavian Journal of Statistics* 39, 2012.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import gammaln, logsumexp

from capplan.calibration.fit.maximum import Maximum
from capplan.calibration.fit.posterior import Ensemble
from capplan.models.language.units import FloatArray

_DEGREES = 5.0
_FIRST = 2.0  # widens the first proposals, so that too sharp a curvature at the maximum does not trap them
_LEAST = 0.1  # share of the points that count for the next proposals, at least
_EFFECTIVE = 128  # points that the draws stand for, at least: draws that are too wide are better than a few points
_SMOOTHED, _STEPS = 128, 4  # points of the smoother, and its steps
_PARTS = 3  # of the smoother's points, along their longest axis
_OWN = 0.05  # share of the covariance of all points in that of each part of the mixture, so that none collapses
_LEAST_SHARE = 0.01  # of the proposals that each part of the mixture has


class Sampled(Protocol):
    """A posterior to draw from."""

    @property
    def logs(self) -> FloatArray:
        """Logarithms of the figures (figures,)."""

    def prior_draws(self, count: int) -> FloatArray:
        """Return draws from the priors (count, free)."""

    def predicted(self, points: FloatArray) -> FloatArray:
        """Return the logarithms of the predictions (draws, figures)."""

    def covariance(self) -> FloatArray:
        """Return the covariance of the errors (figures, figures)."""

    def log_posterior(self, points: FloatArray) -> FloatArray:
        """Return the log posterior up to a constant (draws,)."""


class _StudentT:
    """A multivariate t distribution, given its centre (free,) and its covariance (free, free)."""

    def __init__(self, centre: FloatArray, covariance: FloatArray) -> None:
        self.centre = centre
        self.root = np.linalg.cholesky((covariance + covariance.T) / 2 * (_DEGREES - 2) / _DEGREES)

    def log_density(self, points: FloatArray) -> FloatArray:
        free = len(self.centre)
        away = solve_triangular(self.root, (points - self.centre).T, lower=True)
        size = np.log(np.diag(self.root)).sum() + free / 2 * np.log(_DEGREES * np.pi)
        scale = gammaln((_DEGREES + free) / 2) - gammaln(_DEGREES / 2) - size
        return np.asarray(scale - (_DEGREES + free) / 2 * np.log1p((away**2).sum(axis=0) / _DEGREES))

    def drawn(self, count: int, random: np.random.Generator) -> FloatArray:
        normal = random.standard_normal((count, len(self.centre)))
        scaled = normal * np.sqrt(_DEGREES / random.chisquare(_DEGREES, count))[:, None]
        return np.asarray(self.centre + scaled @ self.root.T)


@dataclass(frozen=True)
class _Mixture:
    """A mixture of multivariate t distributions.

    Attributes
    ----------
    share : array (parts,)
        Share of each part; adds up to 1.
    parts : list
        The parts.
    """

    share: FloatArray
    parts: list[_StudentT]

    def log_parts(self, points: FloatArray) -> FloatArray:
        """Return the log densities of the parts, with their shares (parts, count)."""
        return np.array([np.log(s) + each.log_density(points) for s, each in zip(self.share, self.parts, strict=True)])

    def log_density(self, points: FloatArray) -> FloatArray:
        return np.asarray(logsumexp(self.log_parts(points), axis=0))

    def drawn(self, count: int, random: np.random.Generator) -> FloatArray:
        """Return draws (count, free), with as many from each part as its share says."""
        ends = np.round(np.cumsum(self.share) * count).astype(int)
        numbers = np.diff(ends, prepend=0).tolist()
        return np.concatenate([each.drawn(n, random) for each, n in zip(self.parts, numbers, strict=True)])

    def fitted(self, points: FloatArray, weight: FloatArray) -> _Mixture:
        """Return the mixture after one step of EM with weighted points."""
        logs = self.log_parts(points)
        mine = weight * np.exp(logs - logsumexp(logs, axis=0))
        share = np.maximum(mine.sum(axis=1), _LEAST_SHARE)
        together, parts = _covariance(points, weight, weight @ points), []
        for own in mine:
            part = own / max(own.sum(), np.finfo(float).tiny)
            centre = part @ points
            parts.append(_StudentT(centre, (1 - _OWN) * _covariance(points, part, centre) + _OWN * together))
        return _Mixture(share / share.sum(), parts)


def ensemble(problem: Sampled, best: Maximum, draws: int, rounds: int, proposals: int, seed: int) -> Ensemble:
    """Draw an ensemble from the posterior.

    Parameters
    ----------
    problem : Sampled
        The posterior.
    best : Maximum
        The most probable parameters.
    draws : int
        Draws of the ensemble.
    rounds, proposals : int
        Rounds, and proposals in each.
    seed : int
        Random seed.

    Returns
    -------
    Ensemble
        Equally weighted draws, and the effective number of proposals that they stand for (Kong 1992).
    """
    random = np.random.default_rng(seed)
    mixtures = [_first(best, smoothed(problem, random))]
    points = mixtures[0].drawn(proposals, random)
    log_posterior = problem.log_posterior(points)
    for _ in range(rounds - 1):
        weight = _weight(points, log_posterior, mixtures)
        mixtures.append(mixtures[-1].fitted(points, _flattened(weight, _LEAST * len(points))))
        points = np.concatenate([points, mixtures[-1].drawn(proposals, random)])
        log_posterior = np.concatenate([log_posterior, problem.log_posterior(points[-proposals:])])
    weight = _weight(points, log_posterior, mixtures)
    size = float(1 / (weight**2).sum())
    weight = _flattened(weight, _EFFECTIVE)
    levels = (np.arange(draws) + random.random()) / draws  # systematic resampling has the least noise
    chosen = np.minimum(np.searchsorted(np.cumsum(weight), levels), len(points) - 1)
    return Ensemble(points[chosen], size)


def smoothed(problem: Sampled, random: np.random.Generator) -> FloatArray:
    """Return points about where the posterior is (count, free): draws from the priors that the figures have moved.

    Each step takes a share of what the figures tell, by the covariances of parameters and predictions over the points.
    """
    points, errors = problem.prior_draws(_SMOOTHED), _STEPS * problem.covariance()
    root = np.linalg.cholesky(errors)
    for _ in range(_STEPS):
        predicted = problem.predicted(points)
        predicted = np.clip(np.nan_to_num(predicted, posinf=50.0, neginf=-50.0), problem.logs - 50, problem.logs + 50)
        moved, told = points - points.mean(axis=0), predicted - predicted.mean(axis=0)
        gain = (moved.T @ told) @ np.linalg.inv(told.T @ told + (len(points) - 1) * errors)
        wanted = problem.logs + random.standard_normal(predicted.shape) @ root.T
        points = points + (wanted - predicted) @ gain.T
    return points


def _first(best: Maximum, points: FloatArray) -> _Mixture:
    """Return the mixture of the curvature at the maximum, and of parts of the smoother's points."""
    spread = points.std(axis=0)
    scaled = (points - points.mean(axis=0)) / spread
    longest = scaled @ np.linalg.svd(scaled, full_matrices=False)[2][0]
    covariance = np.cov(points, rowvar=False)
    parts = np.array_split(np.argsort(longest), _PARTS)
    found = [_StudentT(points[part].mean(axis=0), covariance) for part in parts]
    return _Mixture(
        np.full(_PARTS + 1, 1 / (_PARTS + 1)), [_StudentT(best.log_point, _FIRST * best.covariance), *found]
    )


def _weight(points: FloatArray, log_posterior: FloatArray, mixtures: list[_Mixture]) -> FloatArray:
    """Return the normalised weights of points (count,)."""
    log_weight = log_posterior - logsumexp([each.log_density(points) for each in mixtures], axis=0)
    weight = np.exp(log_weight - log_weight.max())
    return np.asarray(weight / weight.sum())


def _flattened(weight: FloatArray, least: float) -> FloatArray:
    """Flatten weights until `least` points count, so that a few do not stand for all."""
    power, flat = 1.0, weight
    while 1 / (flat**2).sum() < least:
        power *= 0.8
        flat = weight**power / (weight**power).sum()
    return flat


def _covariance(points: FloatArray, weight: FloatArray, centre: FloatArray) -> FloatArray:
    away = points - centre
    return np.asarray((away.T * weight) @ away)
