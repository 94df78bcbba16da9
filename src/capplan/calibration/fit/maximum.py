"""Fitting a system's parameters to its evidence: the most probable ones (maximum a posteriori).

A documented figure is an interval, since it was rounded; a repeat of the load test would scatter around what the model
says. The likelihood of an interval is the normal probability of falling into it (interval-censored data). Priors are
normal in the logarithm of each parameter. `posterior` draws the ensemble around them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import special

from capplan.calibration.evidence.table import Evidence
from capplan.models.language.parameter import Parameter, Values, from_log, log_values
from capplan.models.language.units import FloatArray

_STEP = 2e-3  # of the central differences, in the logarithm of a parameter
_CHUNK = 250  # draws evaluated at once: bounds the memory

Model = Callable[[Values], dict[str, FloatArray]]


@dataclass(frozen=True)
class Scatter:
    """How a repeat of a load test scatters around what the model says, beside the rounding.

    Attributes
    ----------
    relative_sd : float
        Standard deviation as a share of the documented figure.
    logarithmic : bool
        Whether it is the logarithm that scatters: half as much is then as far off as twice as much.
    """

    relative_sd: float
    logarithmic: bool = False

    def standardised(self, row: Evidence, value: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return how far the ends of the documented interval are from `value` (SI), in standard deviations."""
        if self.logarithmic:
            return np.log(row.low / value) / self.relative_sd, np.log(row.high / value) / self.relative_sd
        scale = self.relative_sd * row.value
        return (row.low - value) / scale, (row.high - value) / scale


def log_likelihood(row: Evidence, value: FloatArray, scatter: Scatter) -> FloatArray:
    """Return the log-probability of the documented interval when the model says `value` (SI)."""
    low, high = scatter.standardised(row, value)
    low, high = np.where(low > 0, -high, low), np.where(low > 0, -low, high)  # the side where the tail is accurate
    upper, lower = special.log_ndtr(high), special.log_ndtr(low)
    return np.asarray(upper + np.log1p(-np.exp(lower - upper)))


def deviance_residual(row: Evidence, value: FloatArray, scatter: Scatter) -> FloatArray:
    """Return the signed root of twice the log-likelihood that is lost against a perfect prediction."""
    lost = log_likelihood(row, np.asarray(row.value), scatter) - log_likelihood(row, value, scatter)
    return np.asarray(np.sign(value - row.value) * np.sqrt(2 * np.maximum(lost, 0.0)))


@dataclass(frozen=True)
class Problem:
    """What is to be fitted.

    Attributes
    ----------
    parameters : tuple of Parameter
        All parameters; those with a `log_sd` are free.
    rows : tuple of Evidence
        The figures to fit.
    model : function
        Parameter values (arrays over draws) to figures by row id (arrays over draws).
    scatter : function
        How a repeat of a figure's load test scatters, beside the rounding.
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

    def figures(self, log_points: FloatArray) -> FloatArray:
        """Return the figures (draws, rows) at points (draws, free)."""
        parts = []
        for start in range(0, len(log_points), _CHUNK):
            said = self.model(from_log(self.parameters, log_points[start : start + _CHUNK]))
            parts.append(np.stack([said[row.id] for row in self.rows], axis=-1))
        return np.concatenate(parts)

    def log_posterior(self, log_points: FloatArray) -> FloatArray:
        """Return the log posterior, less its constant (draws,); minus infinity where the model says nothing."""
        squares: FloatArray = (self.residuals(log_points) ** 2).sum(axis=-1)
        return np.where(np.isnan(squares), -np.inf, -squares / 2)

    def residuals(self, log_points: FloatArray) -> FloatArray:
        """Return deviance residuals and standardised priors (draws, rows + free).

        Minus the log posterior is half their sum of squares.
        """
        priors = (log_points - self.centre) / self.spread
        if not self.rows:
            return np.asarray(priors)
        said = self.figures(log_points)
        data = [deviance_residual(row, said[:, column], self.scatter(row)) for column, row in enumerate(self.rows)]
        return np.concatenate([np.stack(data, axis=-1), priors], axis=-1)


@dataclass(frozen=True)
class Maximum:
    """The most probable parameters.

    Attributes
    ----------
    log_point : array (free,)
        Logarithms of the free parameters.
    misfit : float
        Twice the negative log posterior, less its constant: deviance of the figures and of the priors.
    data_misfit : float
        The figures' part of it.
    jacobian : array (rows + free, free)
        Of the residuals.
    """

    log_point: FloatArray
    misfit: float
    data_misfit: float
    jacobian: FloatArray

    @property
    def covariance(self) -> FloatArray:
        """Covariance of the logarithms (free, free) in Laplace's approximation: the inverse of the curvature."""
        return np.asarray(np.linalg.inv(self.jacobian.T @ self.jacobian), dtype=np.float64)

    @property
    def effective_parameters(self) -> float:
        """Parameters that the figures decide, not the priors: the trace of the hat matrix (Hastie et al. 2009, 7.6)."""
        rows = len(self.jacobian) - self.jacobian.shape[1]
        data = self.jacobian[:rows].T @ self.jacobian[:rows]
        return float(np.trace(np.linalg.solve(self.jacobian.T @ self.jacobian, data)))


class _Evaluator:
    """Residuals and their Jacobian at a point, from one call of the model with all perturbed points as draws."""

    def __init__(self, problem: Problem) -> None:
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
            said = self.problem.residuals(all_points)
            ahead, behind = said[1 : len(point) + 1], said[len(point) + 1 :]
            self.known[key] = (said[0], (ahead - behind).T / (2 * _STEP))
        return self.known[key]


def maximum(problem: Problem, start: FloatArray | None = None) -> Maximum:
    """Find the most probable parameters by Levenberg-Marquardt in a trust region (scipy's least_squares).

    Parameters
    ----------
    problem : Problem
        What is to be fitted.
    start : array (free,), optional
        Where to start; the prior medians when left out.
    """
    from scipy.optimize import least_squares  # slow to import, and only calibration needs it

    evaluator = _Evaluator(problem)
    origin = problem.centre if start is None else start
    bounds = (problem.centre - 4 * problem.spread, problem.centre + 4 * problem.spread)
    found = least_squares(
        evaluator.residuals,
        origin,
        jac=evaluator.jacobian,
        bounds=bounds,
        x_scale=problem.spread,
        max_nfev=60,
        ftol=1e-5,
        xtol=1e-5,
    )
    residuals, jacobian = evaluator.at(found.x)
    data = residuals[: len(problem.rows)]
    return Maximum(found.x, float(residuals @ residuals), float(data @ data), jacobian)


def rows_to_fit(rows: Sequence[Evidence]) -> tuple[Evidence, ...]:
    """Return the rows whose use is `fit`."""
    return tuple(row for row in rows if row.use == "fit")
