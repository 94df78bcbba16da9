"""Draws from the posterior: an ensemble of parameter values that keeps their correlations.

Sampling has two steps, as in resample-move (Gilks and Berzuini 2001). First, adaptive importance resampling locates the
posterior; its multivariate t proposal starts with the curvature at the maximum (Gelman et al. 2013, section 10.4).
Then every draw takes some steps as a walker of the affine-invariant sampler (Goodman and Weare 2010; emcee,
Foreman-Mackey et al. 2013). The steps preserve the posterior and separate draws that resampling duplicated.
`laplace_distance` measures how far the ensemble is from Laplace's approximation, a normal distribution with the
curvature at the maximum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from capplan.calibration.fit.maximum import Maximum
from capplan.models.language.units import FloatArray

_T_DEGREES = 5.0
_ROUNDS = 5
_FIRST = 2.0  # widens the first proposal, so that too sharp a curvature at the maximum does not trap it


class Sampled(Protocol):
    """A posterior to draw from."""

    def log_posterior(self, log_points: FloatArray) -> FloatArray:
        """Return the log posterior up to a constant (draws,)."""


@dataclass(frozen=True)
class Ensemble:
    """Draws from the posterior.

    Attributes
    ----------
    log_points : array (draws, free)
        Logarithms of the free parameters, equally weighted.
    effective_size : float
        Effective sample size of the proposals that were resampled (Kong 1992).
    steps : int
        Steps that each draw then took as a walker.
    acceptance : float
        Share of the steps that were accepted.
    shift : float
        Largest shift of a parameter's mean logarithm by the walk, in standard deviations. About
        ``sqrt(1 / effective_size + 1 / draws)`` where the resampled draws represented the posterior already.
    """

    log_points: FloatArray
    effective_size: float
    steps: int = 0
    acceptance: float = 0.0
    shift: float = 0.0


def resampled(
    problem: Sampled,
    best: Maximum,
    draws: int,
    proposals: int,
    seed: int,
    *,
    rounds_of: int | None = None,
    least: int = 0,
) -> Ensemble:
    """Draw an ensemble from the posterior by adaptive importance sampling (Cappe et al. 2008).

    Each of several rounds proposes points from a multivariate t with the centre and covariance of the round before.
    The round with the largest effective sample size is resampled.

    Parameters
    ----------
    problem : Sampled
        The posterior.
    best : Maximum
        The most probable parameters.
    draws : int
        Draws of the ensemble.
    proposals : int
        Proposals per round.
    seed : int
        Random seed.
    rounds_of : int, optional
        Number of rounds.
    least : int
        Effective number of proposals below which weights are flattened: wider draws are better than few.

    Returns
    -------
    Ensemble
        Equally weighted draws.
    """
    random = np.random.default_rng(seed)
    centre, covariance = best.log_point, _FIRST * best.covariance
    rounds = []
    for _ in range(rounds_of or _ROUNDS):
        points, weight = _weighted(problem, centre, covariance, proposals, random)
        rounds.append((float(1 / (weight**2).sum()), points, weight))
        tempered = _tempered(weight, 2 * len(centre))
        centre = tempered @ points
        covariance = np.asarray(((points - centre).T * tempered) @ (points - centre), dtype=np.float64)
    size, points, weight = max(rounds, key=lambda each: each[0])
    if size < least:
        weight = _tempered(weight, least)
    levels = (np.arange(draws) + random.random()) / draws  # systematic resampling has the least noise
    chosen = np.minimum(np.searchsorted(np.cumsum(weight), levels), proposals - 1)
    return Ensemble(points[chosen], size)


def moved(
    problem: Sampled, start: Ensemble, steps: int, seed: int, moves: Sequence[tuple[Any, float]] | None = None
) -> Ensemble:
    """Move every draw by `steps` steps of the affine-invariant sampler, or of other moves with their shares (emcee)."""
    import emcee  # only calibration needs it

    draws, free = start.log_points.shape
    sampler = emcee.EnsembleSampler(draws, free, problem.log_posterior, moves=moves, vectorize=True)
    sampler.log_prob_fn = problem.log_posterior  # emcee's wrapper prints a traceback of whatever ends the function
    random = np.random.RandomState(seed).get_state()  # emcee takes the legacy generator's state only
    last = sampler.run_mcmc(emcee.State(start.log_points, random_state=random), steps)
    points = np.asarray(last.coords, dtype=np.float64)
    spread = np.maximum(start.log_points.std(axis=0), np.finfo(float).tiny)
    shift = np.abs(points.mean(axis=0) - start.log_points.mean(axis=0)) / spread
    acceptance = float(np.mean(sampler.acceptance_fraction))
    return Ensemble(points, start.effective_size, steps, acceptance, float(shift.max()))


def laplace_distance(best: Maximum, drawn: Ensemble) -> float:
    """Return the largest Kolmogorov-Smirnov distance of a parameter's draws from Laplace's normal approximation.

    The distance is 0 if the posterior is normal in the logarithms; 512 draws from a normal distribution are 0.05 to
    0.07 away by chance.
    """
    from scipy.stats import ks_1samp, norm  # only calibration needs it

    scaled = (drawn.log_points - best.log_point) / np.sqrt(np.diag(best.covariance))
    return max(float(ks_1samp(column, norm.cdf, method="asymp").statistic) for column in scaled.T)


def _weighted(
    problem: Sampled, centre: FloatArray, covariance: FloatArray, count: int, random: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Propose points (count, free) from a multivariate t; return them with normalised importance weights (count,)."""
    root = np.linalg.cholesky((covariance + covariance.T) / 2)
    normal = random.standard_normal((count, len(centre)))
    scaled = normal * np.sqrt(_T_DEGREES / random.chisquare(_T_DEGREES, count))[:, None]
    points = centre + scaled @ root.T
    log_proposal = -(_T_DEGREES + len(centre)) / 2 * np.log1p((scaled**2).sum(axis=-1) / _T_DEGREES)
    log_weight = problem.log_posterior(points) - log_proposal
    weight = np.exp(log_weight - log_weight.max())
    return points, weight / weight.sum()


def _tempered(weight: FloatArray, least: int) -> FloatArray:
    """Flatten weights until a tenth of the points count, so that a poor round does not collapse the next one.

    At least `least` points count, so that their covariance has full rank, provided there are twice as many points.
    """
    power = 1.0
    flat = weight
    while 1 / (flat**2).sum() < min(max(0.1 * len(weight), least), 0.5 * len(weight)):
        power *= 0.8
        flat = weight**power / (weight**power).sum()
    return flat
