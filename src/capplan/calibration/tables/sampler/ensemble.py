"""An ensemble of parameter values that explain a table about as well as the most probable ones.

Few rows leave much open, so the posterior is long and bent, and the curvature at its maximum describes only a part of
it. An ensemble smoother, which starts at the priors, finds how far it reaches. Then come rounds of importance sampling.
Each fits an emulator to all points that are known, and proposes draws from it, at which the model is then evaluated.
All proposals count in the end: the weight of each is its posterior density over the mean density of all emulators
there. The emulators' constants follow from the proposals themselves.

References
----------
A. A. Emerick and A. C. Reynolds, "Ensemble smoother with multiple data assimilation", *Computers & Geosciences* 55,
2013; C. J. Geyer, "Estimating normalizing constants and reweighting mixtures", technical report 568, University of
Minnesota, 1994; M. R. Shirts and J. D. Chodera, "Statistically optimal analysis of samples from multiple equilibrium
states", *Journal of Chemical Physics* 129, 2008; D. B. Rubin, "Using the SIR algorithm to simulate posterior
distributions", *Bayesian Statistics* 3, 1988; A. Kong, "A note on importance sampling using standardized weights",
technical report 348, University of Chicago, 1992.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from scipy.special import logsumexp

from capplan.calibration.fit.maximum import Maximum
from capplan.calibration.fit.posterior import Ensemble
from capplan.calibration.tables.sampler.emulator import Emulator, Known, Posterior, flattened
from capplan.models.language.units import FloatArray

_WIDER = 2.0  # variance of the points about the maximum over that by its curvature, which may be too sharp
_ENOUGH, _SHARE = 256, 0.5  # proposals that count, and their share of all, with which no further round is needed
_EFFECTIVE = 128  # points that the draws stand for, at least: draws that are too wide are better than a few points
_SMOOTHED, _STEPS = 128, 4  # points of the smoother, and its steps
_REPEATS = 100  # of the equations for the emulators' constants


class Sampled(Posterior, Protocol):
    """A posterior to draw from, and its priors."""

    def prior_draws(self, count: int) -> FloatArray:
        """Return draws from the priors (count, free)."""


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
        Rounds at most, and proposals in each.
    seed : int
        Random seed.

    Returns
    -------
    Ensemble
        Equally weighted draws, and the effective number of proposals that they stand for (Kong 1992).
    """
    random = np.random.default_rng(seed)
    near = random.standard_normal((proposals, len(best.log_point))) @ np.linalg.cholesky(_WIDER * best.covariance).T
    known = smoothed(problem, random).joined(problem, best.log_point + near)
    first, emulators = len(known.points), []
    for _ in range(rounds):
        emulators.append(Emulator(known))
        known = known.joined(problem, emulators[-1].drawn(proposals, random))
        points, log_posterior = known.points[first:], known.log_posterior[first:]
        log_weight = _log_weight(log_posterior, np.array([each.log_posterior(points) for each in emulators]))
        size = float(1 / (flattened(log_weight, 0.0) ** 2).sum())
        if size > max(_ENOUGH, _SHARE * len(points)):
            break
    levels = (np.arange(draws) + random.random()) / draws  # systematic resampling has the least noise
    weight = flattened(log_weight, _EFFECTIVE)
    chosen = np.minimum(np.searchsorted(np.cumsum(weight), levels), len(points) - 1)
    return Ensemble(points[chosen], size)


def smoothed(problem: Sampled, random: np.random.Generator) -> Known:
    """Return points on the way from the priors to the posterior: draws from the priors, which the figures move.

    Each step takes a share of what the figures tell, by the covariances of parameters and residuals over its points.

    Returns
    -------
    Known
        The points of all steps, those of the last step last.
    """
    points = problem.prior_draws(_SMOOTHED)
    known = Known(points, problem.residuals(points))
    for _ in range(_STEPS):
        data = known.residuals[-_SMOOTHED:, : -points.shape[1]]
        moved, told = points - points.mean(axis=0), data - data.mean(axis=0)
        spread = told.T @ told + (len(points) - 1) * _STEPS * np.eye(data.shape[1])
        wanted = np.sqrt(_STEPS) * random.standard_normal(data.shape)
        points = points + (wanted - data) @ np.linalg.solve(spread, told.T @ moved)
        known = known.joined(problem, points)
    return known


def _log_weight(log_posterior: FloatArray, log_emulated: FloatArray) -> FloatArray:
    """Return logarithms of the weights of points (points,), up to a constant.

    Parameters
    ----------
    log_posterior : array (points,)
        Logarithms of the posterior.
    log_emulated : array (emulators, points)
        Logarithms of the emulated posteriors; each emulator proposed as many of the points, in order.
    """
    ratio = (log_posterior - log_emulated).reshape(len(log_emulated), len(log_emulated), -1)
    log_constant = -logsumexp(ratio[np.diag_indices(len(ratio))], axis=1)  # by each emulator's own proposals
    for _ in range(_REPEATS):
        log_mixture = logsumexp(log_emulated - log_constant[:, None], axis=0)
        log_constant = logsumexp(log_emulated - log_mixture, axis=1)
    return np.asarray(log_posterior - logsumexp(log_emulated - log_constant[:, None], axis=0))
