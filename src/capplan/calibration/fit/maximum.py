"""The most probable parameters: the maximum of the posterior.

`posterior` draws the ensemble around it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from capplan.calibration.fit.problem import Problem
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
        Twice the negative log posterior, less its constant: deviance of the figures and of the priors.
    data_deviance : float
        The figures' part of it.
    jacobian : array (rows + free, free)
        Of the residuals.
    """

    log_point: FloatArray
    deviance: float
    data_deviance: float
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
