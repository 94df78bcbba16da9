"""The most probable parameters: the maximum of the posterior (MAP), around which `posterior` draws the ensemble."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from capplan.models.language.units import FloatArray

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


def maximum(problem: LeastSquares, start: FloatArray | None = None) -> Maximum:
    """Find the most probable parameters with a trust-region least-squares search (`scipy.optimize.least_squares`).

    Parameters
    ----------
    problem : LeastSquares
        The fitting problem.
    start : array (free,), optional
        Start of the search, logarithms of the free parameters; the prior medians by default.

    Returns
    -------
    Maximum
        The most probable parameters, their deviance and curvature.
    """
    from scipy.optimize import least_squares  # slow to import, and only calibration needs it

    evaluator = _Evaluator(problem)
    origin = problem.centre if start is None else start
    bounds = (problem.centre - 4 * problem.spread, problem.centre + 4 * problem.spread)
    solution = least_squares(
        evaluator.residuals,
        origin,
        jac=evaluator.jacobian,
        bounds=bounds,
        x_scale=problem.spread,
        max_nfev=60,
        ftol=1e-5,
        xtol=1e-5,
    )
    residuals, jacobian = evaluator.at(solution.x)
    data = residuals[: len(residuals) - len(problem.centre)]
    return Maximum(solution.x, float(residuals @ residuals), float(data @ data), jacobian)
