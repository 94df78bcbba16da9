"""An ensemble of parameters: draws from the posterior that keep the correlation.

In two steps, as in resample-move (Gilks and Berzuini 2001). Adaptive importance resampling from a multivariate t that
starts with the curvature at the maximum (Gelman et al. 2013, section 10.4) finds where the posterior lies. Then every
draw is a walker of the affine-invariant sampler (Goodman and Weare 2010; emcee, Foreman-Mackey et al. 2013) for some
steps: that leaves the posterior as it is, and parts the draws that resampling made alike. How far the ensemble is from
Laplace's approximation, a normal law with the curvature at the maximum, is told.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from capplan.calibration.fit.maximum import Maximum, Problem
from capplan.models.language.units import FloatArray

_T_DEGREES = 5.0
_ROUNDS = 5
_FIRST = 2.0  # widens the first proposal, so that a curvature that is too sharp there does not trap it


@dataclass(frozen=True)
class Ensemble:
    """Draws from the posterior.

    Attributes
    ----------
    log_points : array (draws, free)
        Logarithms of the free parameters, equally weighted.
    effective_size : float
        Effective sample size of the proposals that they were resampled from (Kong 1992).
    steps : int
        Steps that each draw then moved as a walker; 0: none.
    acceptance : float
        Share of the moves that were accepted.
    shift : float
        How far the walk moved the mean of a parameter's logarithm at most, in its standard deviations: for draws that
        stood for the posterior already, about the root of 1/effective_size + 1/draws.
    """

    log_points: FloatArray
    effective_size: float
    steps: int = 0
    acceptance: float = 0.0
    shift: float = 0.0


def resampled(problem: Problem, best: Maximum, draws: int, proposals: int, seed: int) -> Ensemble:
    """Draw an ensemble of `draws` points from the posterior by importance.

    Adaptive importance sampling (Cappe et al. 2008): `proposals` points in each of `_ROUNDS` rounds, from a
    multivariate t whose centre and covariance are those of the round before; the round with the largest effective
    sample size is resampled.
    """
    random = np.random.default_rng(seed)
    centre, covariance = best.log_point, _FIRST * best.covariance
    rounds = []
    for _ in range(_ROUNDS):
        points, weight = _weighted(problem, centre, covariance, proposals, random)
        rounds.append((float(1 / (weight**2).sum()), points, weight))
        tempered = _tempered(weight, 2 * len(centre))
        centre = tempered @ points
        covariance = np.asarray(((points - centre).T * tempered) @ (points - centre), dtype=np.float64)
    size, points, weight = max(rounds, key=lambda each: each[0])
    levels = (np.arange(draws) + random.random()) / draws  # systematic resampling: least noise
    chosen = np.minimum(np.searchsorted(np.cumsum(weight), levels), proposals - 1)
    return Ensemble(points[chosen], size)


def moved(problem: Problem, start: Ensemble, steps: int, seed: int) -> Ensemble:
    """Let every draw walk for some steps of the affine-invariant sampler."""
    import emcee  # only calibration needs it

    draws, free = start.log_points.shape
    sampler = emcee.EnsembleSampler(draws, free, problem.log_posterior, vectorize=True)
    random = np.random.RandomState(seed).get_state()  # emcee takes the legacy generator's state only
    last = sampler.run_mcmc(emcee.State(start.log_points, random_state=random), steps)
    points = np.asarray(last.coords, dtype=np.float64)
    spread = np.maximum(start.log_points.std(axis=0), np.finfo(float).tiny)
    shift = np.abs(points.mean(axis=0) - start.log_points.mean(axis=0)) / spread
    acceptance = float(np.mean(sampler.acceptance_fraction))
    return Ensemble(points, start.effective_size, steps, acceptance, float(shift.max()))


def distance_from_laplace(best: Maximum, drawn: Ensemble) -> float:
    """Return the largest Kolmogorov-Smirnov distance of a parameter's draws from Laplace's normal law.

    0: the posterior is normal in the logarithms; 512 draws from a normal law are 0.05 to 0.07 away.
    """
    from scipy.stats import ks_1samp, norm  # only calibration needs it

    scaled = (drawn.log_points - best.log_point) / np.sqrt(np.diag(best.covariance))
    return max(float(ks_1samp(column, norm.cdf, method="asymp").statistic) for column in scaled.T)


def _weighted(
    problem: Problem, centre: FloatArray, covariance: FloatArray, count: int, random: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Propose points from a multivariate t; return them with their normalised importance weights."""
    root = np.linalg.cholesky((covariance + covariance.T) / 2)
    normal = random.standard_normal((count, len(centre)))
    scaled = normal * np.sqrt(_T_DEGREES / random.chisquare(_T_DEGREES, count))[:, None]
    points = centre + scaled @ root.T
    log_proposal = -(_T_DEGREES + len(centre)) / 2 * np.log1p((scaled**2).sum(axis=-1) / _T_DEGREES)
    log_weight = problem.log_posterior(points) - log_proposal
    weight = np.exp(log_weight - log_weight.max())
    return points, weight / weight.sum()


def _tempered(weight: FloatArray, least: int) -> FloatArray:
    """Flatten weights until a tenth of the points count, so that a poor round does not collapse the next.

    At least `least` points count, so that their covariance has full rank, if there are twice as many.
    """
    power = 1.0
    flat = weight
    while 1 / (flat**2).sum() < min(max(0.1 * len(weight), least), 0.5 * len(weight)):
        power *= 0.8
        flat = weight**power / (weight**power).sum()
    return flat
