"""The model's errors on figures of a table: run-to-run scatter, chance, layout factors, the solver's own error."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from capplan.calibration.tables.figures import BESIDE, Figure, log_sd_between
from capplan.calibration.tables.solved_rows import solved_rows
from capplan.layout.table_rows import MEAN, QUANTITIES, THROUGHPUT, TableRow
from capplan.layout.table_system import TableSystem
from capplan.models.language.parameter import Values
from capplan.models.language.units import FloatArray

_COUNTED = 4.0  # weight of the assumed factor scatter, in layouts


@dataclass(frozen=True)
class Effects:
    """The factors of the fitted layouts, linearised.

    Attributes
    ----------
    slopes : array (figures, effects)
        Derivative of the logarithm of each figure with respect to that of each factor of its layout.
    group : array of int (figures,)
        Number of each figure's layout.
    log_sd : array (effects,)
        Standard deviation of the logarithm of each factor over layouts.
    correlation : array (layouts, layouts)
        Correlation of the logarithms of a factor.
    """

    slopes: FloatArray
    group: NDArray[np.intp]
    log_sd: FloatArray
    correlation: FloatArray

    @property
    def covariance(self) -> FloatArray:
        """Covariance (figures, figures) of the errors that the layout factors cause."""
        return np.asarray(self._design @ self._prior @ self._design.T)

    def expected(self, errors: FloatArray, other: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the mean log factors given the errors (draws, figures), and their posterior covariance.

        Returns
        -------
        array (draws, layouts, effects), array (layouts x effects, layouts x effects)
            Their means and their covariance.
        """
        moved = self._prior @ self._design.T
        gain = moved @ np.linalg.inv(self.covariance + other)
        means = (errors @ gain.T).reshape(len(errors), -1, len(self.log_sd))
        return means, self._prior - gain @ moved.T

    def learnt(self, errors: FloatArray, other: FloatArray) -> FloatArray:
        """Return the factors' standard deviations, updated from the errors (figures,) by one EM step."""
        means, covariance = self.expected(errors[None], other)
        layouts, effects = means[0].shape
        inverse = np.linalg.inv(self.correlation)
        squares = np.einsum("ik,ie,ke->e", inverse, means[0], means[0])
        squares += np.einsum("ik,ieke->e", inverse, covariance.reshape(layouts, effects, layouts, effects))
        return np.asarray(np.sqrt((_COUNTED * self.log_sd**2 + squares) / (_COUNTED + layouts)))

    def drawn(self, errors: FloatArray, other: FloatArray, random: np.random.Generator) -> FloatArray:
        """Return draws of the logarithms of the factors (draws, layouts, effects), one for each row of errors."""
        means, covariance = self.expected(errors, other)
        root = np.linalg.cholesky(covariance + 1e-12 * np.eye(len(covariance)))
        return means + (random.standard_normal((len(errors), len(root))) @ root.T).reshape(means.shape)

    @property
    def _design(self) -> FloatArray:
        """Derivatives with respect to the factors of all layouts (figures, layouts x effects)."""
        own = self.group[:, None] == np.arange(len(self.correlation))
        return np.asarray((own[:, :, None] * self.slopes[:, None, :]).reshape(len(self.group), -1))

    @property
    def _prior(self) -> FloatArray:
        """Covariance of the log factors before any error is known (layouts x effects, layouts x effects)."""
        return np.asarray(np.kron(self.correlation, np.diag(self.log_sd**2)))


_PRIOR_FIGURES = 4.0  # weight of the assumed scatter, in figures
_LEAST = 0.5  # of the assumed scatter


def learnt_scatter(
    quantities: Sequence[str],
    errors: FloatArray,
    own_sd: FloatArray,
    covariance: FloatArray,
    slopes: FloatArray,
    prior_precision: FloatArray,
    scatter: Mapping[str, float],
) -> dict[str, float]:
    """Return the scatter, updated from a fit's errors: one factor for rates and means, one for all percentiles.

    The variance is that of a scaled inverse chi-squared distribution: the assumed one counts as a few figures.

    Parameters
    ----------
    quantities : sequence of str
        Column of each figure.
    errors : array (figures,)
        Logarithms of the figures over the most probable predictions.
    own_sd : array (figures,)
        Assumed scatter of each figure.
    covariance : array (figures, figures)
        Covariance of all errors, shared ones included.
    slopes : array (figures, free)
        Derivatives of the logarithms of the predictions with respect to the parameters.
    prior_precision : array (free, free)
        Inverse covariance of the priors.
    scatter : mapping of float
        Assumed scatter by column.
    """
    squares = (own_sd * np.linalg.solve(covariance, errors)) ** 2  # of standardised errors, without the shared ones
    freedom = expected_squares(own_sd, covariance, slopes, prior_precision)
    found = dict(scatter)
    for names in (QUANTITIES[:3], QUANTITIES[3:]):
        own = np.array([name in names for name in quantities])
        if own.any():
            factor = math.sqrt((_PRIOR_FIGURES + squares[own].sum()) / (_PRIOR_FIGURES + freedom[own].sum()))
            found.update({name: found[name] * max(factor, _LEAST) for name in names})
    return found


def expected_squares(
    own_sd: FloatArray, covariance: FloatArray, slopes: FloatArray, prior_precision: FloatArray
) -> FloatArray:
    """Return the expected square of each figure's own standardised error in a fit (figures,), without shared errors.

    It is 1 for figures that a fit does not follow. Their sum is the number of degrees of freedom.
    """
    whitening = np.linalg.inv(np.linalg.cholesky(covariance))
    white = whitening @ slopes
    followed = white @ np.linalg.solve(white.T @ white + prior_precision, white.T)
    root = whitening * own_sd
    return np.asarray(np.einsum("ki,ki->i", root, root - followed @ root))


def chance_errors(
    system: TableSystem[Any], rows: Sequence[TableRow], wanted: Sequence[tuple[int, str]], values: Values
) -> FloatArray:
    """Return how much chance in a run changes each percentile: standard deviations of logarithms.

    They are large where few requests take about as long as the percentile: between the requests of a fast class and
    those of a slow one, or between those that no pause of a node delays and the others.

    Parameters
    ----------
    system : TableSystem
        The system.
    rows : sequence of TableRow
        The rows.
    wanted : sequence of (int, str)
        Number of the row and column of each figure.
    values : mapping
        One value of each parameter, SI.

    Returns
    -------
    array (figures,)
        0 for what is no percentile, and for a percentile without bounds.
    """
    columns: list[list[str]] = [[] for _ in rows]
    for number, name in wanted:
        columns[number] += BESIDE.get(name, ())
    solved = solved_rows(system, rows, values, columns)
    return np.array(
        [
            log_sd_between(*(float(solved[number].figures[each][0]) for each in BESIDE[name]))
            if name in BESIDE
            else 0.0
            for number, name in wanted
        ]
    )


_LOG_SD = {
    "closed": {
        MEAN: (0.008, 0.004, 0.006),
        THROUGHPUT: (0.008, 0.004, 0.006),
        "latency_p50_ms": (0.013, 0.008, 0.025),
        "latency_p95_ms": (0.033, 0.007, 0.037),
        "latency_p99_ms": (0.036, 0.012, 0.034),
    },
    "open": {
        MEAN: (0.009, 0.006, 0.008),
        THROUGHPUT: (0.009, 0.006, 0.008),
        "latency_p50_ms": (0.014, 0.018, 0.021),
        "latency_p95_ms": (0.024, 0.010, 0.035),
        "latency_p99_ms": (0.069, 0.027, 0.138),
    },
}
"""Of the mean log error of a cluster, of the difference of its layouts from that, and of the change from the lowest
load of a layout to the highest: standard deviations about 0 over 120 systems with known parameters, 91 of them with
closed clients (`docs/generate/synthetic_truth.py`: numbers 500 to 619), 20,000 requests a row, up to 200,000 of open
traffic. They are root mean squares without the largest 5 %, over 0.87, which that is of a normal distribution. The 95th
percentile is 4 % too high with one closed client and 1.5 % with 16 or more: a client's own detached work delays its
next request less than that of others does."""
_USUAL = (0.025, 0.011, 0.025)


def covariance(rows: Sequence[TableRow], figures: Sequence[Figure]) -> FloatArray:
    """Return the covariance (figures, figures) of the logarithms of the solver's errors.

    Parameters
    ----------
    rows : sequence of TableRow
        The rows.
    figures : sequence of Figure
        The fitted figures of the rows. Those of the same column and kind of load have an error in common.
    """
    keys = [(rows[each.row].load.kind, each.quantity) for each in figures]
    sd = np.array([_LOG_SD.get(kind, _LOG_SD["closed"]).get(quantity, _USUAL) for kind, quantity in keys])
    same_layout = _alike([rows[each.row].tested_layout for each in figures])
    sd[:, 2] *= _places(rows)[[each.row for each in figures]]
    common, own, growing = (np.outer(each, each) for each in sd.T)
    return np.where(_alike(keys), common + np.where(same_layout, own, 0.0) + growing, 0.0)


def _places(rows: Sequence[TableRow]) -> FloatArray:
    """Return where each load lies between the lowest of its kind and layout, -0.5, and the highest, 0.5 (rows,)."""
    logs = np.log([row.load.clients or row.load.rate_per_s for row in rows])
    alike = _alike([(row.tested_layout, row.load.kind) for row in rows])
    low, high = (np.where(alike, logs, -sign * np.inf) for sign in (-1, 1))
    low, high = low.min(axis=1), high.max(axis=1)
    return np.where(high > low, (logs - low) / np.where(high > low, high - low, 1.0) - 0.5, 0.0)


def _alike(keys: Sequence[object]) -> FloatArray:
    """Return a matrix (keys, keys) that marks equal keys."""
    numbers = np.array([keys.index(key) for key in keys])
    return np.asarray(numbers[:, None] == numbers[None, :])
