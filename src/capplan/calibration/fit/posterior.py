"""The posterior of a fit: the problem, its most probable parameters, and an ensemble drawn around them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property, partial
from threading import Condition
from typing import Any, Protocol

import numpy as np
from scipy import special

from capplan.calibration.fit import student_priors
from capplan.evidence.table import Evidence
from capplan.layout.observations import LoadTest
from capplan.layout.system import System
from capplan.models.language.parameter import Parameter, Values, from_log, log_values
from capplan.models.language.units import FloatArray

_CHUNK = 250  # draws evaluated at once: limits memory

Model = Callable[[Values], dict[str, FloatArray]]


@dataclass(frozen=True)
class Scatter:
    """How a repeat of a load test scatters around the prediction, in addition to the rounding.

    Attributes
    ----------
    relative_sd : float
        Standard deviation as a share of the documented figure.
    logarithmic : bool
        Whether the logarithm scatters: half the figure is then as far off as twice the figure.
    """

    relative_sd: float
    logarithmic: bool = False

    def standardised(self, row: Evidence, value: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the distances of the documented interval's ends from `value` (SI), in standard deviations."""
        if self.logarithmic:
            return np.log(row.low / value) / self.relative_sd, np.log(row.high / value) / self.relative_sd
        scale = self.relative_sd * row.value
        return (row.low - value) / scale, (row.high - value) / scale


def log_likelihood(row: Evidence, value: FloatArray, scatter: Scatter) -> FloatArray:
    """Return the log-probability of the documented interval, given the prediction `value` (SI)."""
    low, high = scatter.standardised(row, value)
    low, high = np.where(low > 0, -high, low), np.where(low > 0, -low, high)  # the lower tail is the accurate one
    upper, lower = special.log_ndtr(high), special.log_ndtr(low)
    return np.asarray(upper + np.log1p(-np.exp(lower - upper)))


def deviance_residual(row: Evidence, value: FloatArray, scatter: Scatter) -> FloatArray:
    """Return the signed square root of twice the log-likelihood lost against a perfect prediction."""
    lost = log_likelihood(row, np.asarray(row.value), scatter) - log_likelihood(row, value, scatter)
    return np.asarray(np.sign(value - row.value) * np.sqrt(2 * np.maximum(lost, 0.0)))


@dataclass(frozen=True)
class Problem:
    """A fitting problem.

    Attributes
    ----------
    parameters : tuple of Parameter
        All parameters; those with a `log_sd` are free.
    rows : tuple of Evidence
        The figures to fit.
    model : function
        Maps parameter values (arrays over draws) to predictions by row id (arrays over draws).
    scatter : function
        Maps a figure to the scatter of a repeat of its load test.
    """

    parameters: tuple[Parameter, ...]
    rows: tuple[Evidence, ...]
    model: Model
    scatter: Callable[[Evidence], Scatter]

    @cached_property
    def centre(self) -> FloatArray:
        """Logarithms of the free parameters' prior medians."""
        return log_values(self.parameters)

    @cached_property
    def spread(self) -> FloatArray:
        """Standard deviations of the priors' logarithms."""
        return np.array([parameter.log_sd for parameter in self.parameters if parameter.free])

    @cached_property
    def degrees(self) -> FloatArray:
        """Degrees of freedom of the priors."""
        return student_priors.degrees(self.parameters)

    @property
    def room(self) -> FloatArray:
        """Distances from the medians that a search does not exceed."""
        return student_priors.room(self.degrees) * self.spread

    def figures(self, log_points: FloatArray) -> FloatArray:
        """Return the predictions (draws, rows) at points (draws, free)."""
        parts = []
        for start in range(0, len(log_points), _CHUNK):
            predicted = self.model(from_log(self.parameters, log_points[start : start + _CHUNK]))
            parts.append(np.stack([predicted[row.id] for row in self.rows], axis=-1))
        return np.concatenate(parts)

    def log_posterior(self, log_points: FloatArray) -> FloatArray:
        """Return the log posterior up to a constant (draws,); minus infinity where the model has no prediction."""
        squares: FloatArray = (self.residuals(log_points) ** 2).sum(axis=-1)
        return np.where(np.isnan(squares), -np.inf, -squares / 2)

    def residuals(self, log_points: FloatArray) -> FloatArray:
        """Return deviance residuals and standardised priors (draws, rows + free).

        Half their sum of squares is minus the log posterior.
        """
        priors = student_priors.residuals((log_points - self.centre) / self.spread, self.degrees)
        if not self.rows:
            return np.asarray(priors)
        predicted = self.figures(log_points)
        data = [deviance_residual(row, predicted[:, column], self.scatter(row)) for column, row in enumerate(self.rows)]
        return np.concatenate([np.stack(data, axis=-1), priors], axis=-1)


def problem(system: System[Any], tests: Sequence[LoadTest[Any]]) -> Problem:
    """Return the problem of fitting a system to load tests; its model predicts the fitted figures only."""
    reduced = [replace(test, rows=rows_to_fit(test.rows)) for test in tests]
    fitted = [test for test in reduced if test.rows]
    return Problem(
        system.parameters,
        tuple(row for test in fitted for row in test.rows),
        lambda values: system.observations.predicted(fitted, values),
        lambda row: Scatter(system.observations.repeatability(row), system.observations.logarithmic),
    )


def start_of(system: System[Any]) -> FloatArray | None:
    """Return where the search starts: logarithms of the free parameters (free,); None means the prior medians."""
    if not system.observations.start:
        return None
    return np.log([system.observations.start[parameter.name] for parameter in system.parameters if parameter.free])


def rows_to_fit(rows: Sequence[Evidence]) -> tuple[Evidence, ...]:
    """Return the rows whose use is `fit`."""
    return tuple(row for row in rows if row.use == "fit")


_STEP = 2e-3  # of the central differences, in the logarithm of a parameter


@dataclass(frozen=True)
class Maximum:
    """The most probable parameters.

    Attributes
    ----------
    log_point : array (free,)
        Logarithms of the free parameters.
    deviance : float
        Deviance of the figures and the priors: minus twice the log posterior, up to a constant.
    data_deviance : float
        Deviance of the figures alone.
    jacobian : array (rows + free, free)
        Jacobian of the residuals.
    """

    log_point: FloatArray
    deviance: float
    data_deviance: float
    jacobian: FloatArray

    @property
    def covariance(self) -> FloatArray:
        """Covariance of the logarithms (free, free) by Laplace's approximation: the inverse of the curvature."""
        return np.asarray(np.linalg.inv(self.jacobian.T @ self.jacobian), dtype=np.float64)

    @property
    def effective_parameters(self) -> float:
        """Number of parameters that the figures determine, rather than the priors: the trace of the hat matrix.

        References
        ----------
        Hastie, Tibshirani and Friedman (2009), The Elements of Statistical Learning, section 7.6.
        """
        rows = len(self.jacobian) - self.jacobian.shape[1]
        data = self.jacobian[:rows].T @ self.jacobian[:rows]
        return float(np.trace(np.linalg.solve(self.jacobian.T @ self.jacobian, data)))


class LeastSquares(Protocol):
    """Residuals to minimise, with standardised priors as the last ones."""

    @property
    def centre(self) -> FloatArray:
        """Logarithms of the prior medians (free,)."""

    @property
    def spread(self) -> FloatArray:
        """Standard deviations of the priors' logarithms (free,)."""

    @property
    def room(self) -> FloatArray:
        """Distances from the medians that a search does not exceed, in logarithms (free,)."""

    def residuals(self, log_points: FloatArray) -> FloatArray:
        """Return the residuals of the figures, then those of the priors (draws, figures + free)."""


class _Evaluator:
    """Residuals and their Jacobian at a point: one call of the model evaluates all perturbed points as draws."""

    def __init__(self, problem: LeastSquares) -> None:
        self.problem = problem
        self.known: dict[bytes, tuple[FloatArray, FloatArray]] = {}

    def residuals(self, point: FloatArray) -> FloatArray:
        return self.at(point)[0]

    def jacobian(self, point: FloatArray) -> FloatArray:
        return self.at(point)[1]

    def at(self, point: FloatArray) -> tuple[FloatArray, FloatArray]:
        key = point.tobytes()
        if key not in self.known:
            steps = _STEP * np.eye(len(point))
            all_points = np.concatenate([point[None], point + steps, point - steps])
            residuals = self.problem.residuals(all_points)
            ahead, behind = residuals[1 : len(point) + 1], residuals[len(point) + 1 :]
            self.known[key] = (residuals[0], (ahead - behind).T / (2 * _STEP))
        return self.known[key]


def maximum(problem: LeastSquares, start: FloatArray | None = None, most: int = 60) -> Maximum:
    """Find the most probable parameters with a trust-region least-squares search (`scipy.optimize.least_squares`).

    Parameters
    ----------
    problem : LeastSquares
        The fitting problem.
    start : array (free,), optional
        Start of the search, logarithms of the free parameters; the prior medians by default.
    most : int
        Evaluations of the residuals at most.

    Returns
    -------
    Maximum
        The most probable parameters, their deviance and curvature.
    """
    from scipy.optimize import least_squares  # slow to import, and only calibration needs it

    evaluator = _Evaluator(problem)
    origin = problem.centre if start is None else start
    bounds = (problem.centre - problem.room, problem.centre + problem.room)
    solution = least_squares(
        evaluator.residuals,
        np.clip(origin, *bounds),  # a start found with fewer free parameters may lie outside
        jac=evaluator.jacobian,
        bounds=bounds,
        x_scale=problem.spread,
        max_nfev=most,
        ftol=1e-5,
        xtol=1e-5,
    )
    residuals, jacobian = evaluator.at(solution.x)
    data = residuals[: len(residuals) - len(problem.centre)]
    return Maximum(solution.x, float(residuals @ residuals), float(data @ data), jacobian)


def best_of(problem: LeastSquares, starts: Sequence[FloatArray], most: int) -> Maximum:
    """Search from several starts and return the most probable point found.

    The searches take their steps together, because a model takes little longer for the points of all of them than for
    those of one. What each finds does not depend on the others, except for rounding.

    Parameters
    ----------
    problem : LeastSquares
        The fitting problem.
    starts : sequence of array (free,)
        Logarithms of the free parameters.
    most : int
        Evaluations of the residuals from each start, at most.

    Returns
    -------
    Maximum
        The point with the smallest deviance.
    """
    together = _Together(problem.residuals, len(starts))

    def found(number: int) -> Maximum:
        try:
            part = _Part(problem.centre, problem.spread, problem.room, partial(together.of, number))
            return maximum(part, starts[number], most)
        finally:
            together.leave()

    with ThreadPoolExecutor(len(starts)) as pool:
        return min(pool.map(found, range(len(starts))), key=lambda each: each.deviance)


class _Together:
    """Collects the points of several searches and evaluates them in one call as soon as every running search waits."""

    def __init__(self, residuals: Callable[[FloatArray], FloatArray], running: int) -> None:
        self.residuals, self.running = residuals, running
        self.asked: dict[int, FloatArray] = {}
        self.found: dict[int, FloatArray] = {}
        self.failure: BaseException | None = None
        self.changed = Condition()

    def of(self, number: int, points: FloatArray) -> FloatArray:
        """Return the residuals of one search, evaluated together with the points of the other searches."""
        with self.changed:
            self.asked[number] = points
            self._solve()
            self.changed.wait_for(lambda: number in self.found or self.failure is not None)
            if self.failure is not None:
                raise self.failure
            return self.found.pop(number)

    def leave(self) -> None:
        """Stop waiting for a search that has ended."""
        with self.changed:
            self.running -= 1
            self._solve()

    def _solve(self) -> None:
        if not self.asked or len(self.asked) < self.running or self.failure is not None:
            return
        numbers = sorted(self.asked)
        parts = [self.asked.pop(number) for number in numbers]
        try:
            residuals = self.residuals(np.concatenate(parts))
        except BaseException as error:  # the other searches must not wait for ever
            self.failure = error
        else:
            ends = np.cumsum([len(part) for part in parts])[:-1]
            self.found.update(zip(numbers, np.split(residuals, ends), strict=True))
        self.changed.notify_all()


@dataclass(frozen=True)
class _Part:
    """The problem as one of several parallel searches sees it."""

    centre: FloatArray
    spread: FloatArray
    room: FloatArray
    residuals: Callable[[FloatArray], FloatArray]


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


def resampled(problem: Sampled, best: Maximum, draws: int, proposals: int, seed: int) -> Ensemble:
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

    Returns
    -------
    Ensemble
        Equally weighted draws.
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
    levels = (np.arange(draws) + random.random()) / draws  # systematic resampling has the least noise
    chosen = np.minimum(np.searchsorted(np.cumsum(weight), levels), proposals - 1)
    return Ensemble(points[chosen], size)


def moved(
    problem: Sampled, start: Ensemble, steps: int, seed: int, moves: Sequence[tuple[Any, float]] | None = None
) -> Ensemble:
    """Move every draw by `steps` steps of emcee's affine-invariant sampler, or of the given weighted moves."""
    import emcee  # only calibration needs it

    draws, free = start.log_points.shape
    sampler = emcee.EnsembleSampler(draws, free, problem.log_posterior, moves=moves, vectorize=True)
    sampler.log_prob_fn = problem.log_posterior  # emcee's wrapper prints a traceback of every exception
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
