"""Ensembles of parameters drawn from the posterior of a table's fit, by a quadratic emulator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import logsumexp

from capplan.calibration.fit.posterior import Ensemble, Maximum, moved
from capplan.models.language.network import Network
from capplan.models.language.parameter import Values
from capplan.models.language.units import FloatArray, Number
from capplan.models.solver.analytic import Analysis


@dataclass(frozen=True)
class Coordinates:
    """A map between logarithms of parameters (draws, free) and coordinates of the same shape.

    Attributes
    ----------
    names : sequence of str
        The free parameters.
    times : sequence of str
        Those that the unloaded time is proportional to, together.
    unseen : str
        The one that lowers the ceiling and leaves the unloaded time as it is.
    centre : array (free,)
        Logarithms of the free parameters about which the map does nothing.
    build : function
        Returns the network of the layout whose unloaded time and ceiling count, with values by name.
    fixed : mapping
        Values of the other parameters.
    """

    names: Sequence[str]
    times: Sequence[str]
    unseen: str
    centre: FloatArray
    build: Callable[[Values], Network]
    fixed: Mapping[str, Number]

    def logs(self, points: FloatArray) -> FloatArray:
        """Return the logarithms of the parameters at coordinates (draws, free)."""
        found = points.copy()
        times = self._times
        if times:
            found[:, times] -= self._unloaded(points)[:, None]
        if self.unseen in self.names:
            found[:, self.names.index(self.unseen)] -= self._work(found)
        return found

    def points(self, logs: FloatArray) -> FloatArray:
        """Return the coordinates of logarithms of the parameters (draws, free)."""
        found = logs.copy()
        if self.unseen in self.names:
            found[:, self.names.index(self.unseen)] += self._work(logs)
        times = self._times
        if times:
            found[:, times] += self._unloaded(logs)[:, None]
        return found

    @property
    def _times(self) -> list[int]:
        return [at for at, name in enumerate(self.names) if name in self.times]

    def _unloaded(self, points: FloatArray) -> FloatArray:
        """Return the log of the unloaded time (draws,), with the times scaled to their usual geometric mean."""
        shaped, times = points.copy(), self._times
        shaped[:, times] -= (points[:, times] - self.centre[times]).mean(axis=1)[:, None]
        if self.unseen in self.names:
            at = self.names.index(self.unseen)
            shaped[:, at] = self.centre[at]
        found = self._analysis(np.concatenate([self.centre[None], shaped]))
        unloaded = np.log(np.broadcast_to(found.averaged(found.unloaded), (len(points) + 1,)))
        return np.asarray(unloaded[1:] - unloaded[0])

    def _work(self, logs: FloatArray) -> FloatArray:
        """Return the log of a request's work (draws,) at the usual share of unseen work."""
        usual, at = logs.copy(), self.names.index(self.unseen)
        usual[:, at] = self.centre[at]
        found = self._analysis(np.concatenate([self.centre[None], usual]))
        work = -np.log(np.broadcast_to(found.drift_per_s, (len(logs) + 1,)))
        return np.asarray(work[1:] - work[0])

    def _analysis(self, logs: FloatArray) -> Analysis:
        values = {name: np.exp(logs[:, at]) for at, name in enumerate(self.names)}
        return Analysis(self.build({**self.fixed, **values}))


_COUNTED, _LEAST, _MOST = 2.0, 0.25, 0.5  # points that count: for each coefficient, and as shares of all known ones
_RIDGE = 1e-2  # weight, in points, of the assumption that a coefficient is zero
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
        """Evaluate more points; return them together with the known ones."""
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
        """Return the polynomials' coefficients (coefficients, residuals) and the weight of each (residuals,)."""
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
    """Return normalised weights (points,), flattened until at least `least` points count."""
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


_VARIANCE = 2.0  # variance of the points about the maximum over that by its curvature, which may be too sharp
_ENOUGH, _SHARE = 256, 0.5  # proposals that count, and their share of all, with which no further round is needed
_EFFECTIVE = 128  # points that the draws stand for, at least: draws that are too wide are better than a few points
_SMOOTHED, _SMOOTHER_STEPS = 128, 4  # points of the smoother, and its steps
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
    near = random.standard_normal((proposals, len(best.log_point))) @ np.linalg.cholesky(_VARIANCE * best.covariance).T
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
    """Return points along the path from prior to posterior: prior draws, moved towards the figures.

    Each step uses a share of the figures' information, through the covariance of parameters and residuals.

    Returns
    -------
    Known
        The points of all steps, those of the last step last.
    """
    points = problem.prior_draws(_SMOOTHED)
    known = Known(points, problem.residuals(points))
    for _ in range(_SMOOTHER_STEPS):
        data = known.residuals[-_SMOOTHED:, : -points.shape[1]]
        moved, told = points - points.mean(axis=0), data - data.mean(axis=0)
        spread = told.T @ told + (len(points) - 1) * _SMOOTHER_STEPS * np.eye(data.shape[1])
        wanted = np.sqrt(_SMOOTHER_STEPS) * random.standard_normal(data.shape)
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
