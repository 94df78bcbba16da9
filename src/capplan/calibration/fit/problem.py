"""The fitting problem: documented figures, their predictions, and the priors.

A documented figure is an interval, because it was rounded. A repeat of the load test would scatter around the
prediction. The likelihood of an interval is the normal probability of falling into it (interval-censored data). Priors
are normal in the logarithm of each parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import special

from capplan.calibration.evidence.table import Evidence
from capplan.calibration.observations import LoadTest
from capplan.calibration.system import System
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
        priors = (log_points - self.centre) / self.spread
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
    """Return the start of the search, logarithms of the free parameters (free,); None: the prior medians."""
    if not system.observations.start:
        return None
    return np.log([system.observations.start[parameter.name] for parameter in system.parameters if parameter.free])


def rows_to_fit(rows: Sequence[Evidence]) -> tuple[Evidence, ...]:
    """Return the rows whose use is `fit`."""
    return tuple(row for row in rows if row.use == "fit")
