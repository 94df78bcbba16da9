"""The most probable parameters: the maximum of the posterior (MAP), around which `posterior` draws the ensemble."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Condition
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
    bounds = (problem.centre - 4 * problem.spread, problem.centre + 4 * problem.spread)
    solution = least_squares(
        evaluator.residuals,
        origin,
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
    """Search from several starts, and return the most probable of the points that are found.

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
            return maximum(_Part(problem, together, number), starts[number], most)
        finally:
            together.leave()

    with ThreadPoolExecutor(len(starts)) as pool:
        return min(pool.map(found, range(len(starts))), key=lambda each: each.deviance)


class _Together:
    """Evaluates the points of several searches in one call, as soon as every search that still runs waits for one."""

    def __init__(self, residuals: Callable[[FloatArray], FloatArray], running: int) -> None:
        self.residuals, self.running = residuals, running
        self.asked: dict[int, FloatArray] = {}
        self.found: dict[int, FloatArray] = {}
        self.failure: BaseException | None = None
        self.changed = Condition()

    def of(self, number: int, points: FloatArray) -> FloatArray:
        """Return the residuals that a search asks for, after those of the other searches are known as well."""
        with self.changed:
            self.asked[number] = points
            self._solve()
            self.changed.wait_for(lambda: number in self.found or self.failure is not None)
            if self.failure is not None:
                raise self.failure
            return self.found.pop(number)

    def leave(self) -> None:
        """Go on without a search that has ended."""
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
    """A problem as one of several searches sees it."""

    problem: LeastSquares
    together: _Together
    number: int

    @property
    def centre(self) -> FloatArray:
        return self.problem.centre

    @property
    def spread(self) -> FloatArray:
        return self.problem.spread

    def residuals(self, log_points: FloatArray) -> FloatArray:
        return self.together.of(self.number, log_points)
