"""Model error: how far predictions are off in scenarios that the model was not fitted to.

It is estimated from refits that leave out one scenario. Their errors are taken as normal in the logarithm, unbiased,
with an unknown variance. A repeat of the load test in an unmeasured layout is then off by Student's t times the root
mean square of the errors, with one degree of freedom per independent scenario (Gelman et al. 2013, section 3.2). Rates
and times have separate model errors; a system may group its times, and each group then has its own.

Where two layouts are compared, their errors count together. Fits that left out both show how: beyond what parameters
explain, errors of rates have a part in common, and those of times have none (`CORRELATIONS`). Leave-one-out errors do
not show it, because the fit that misses one layout has seen the other, which makes their errors opposite.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from capplan.calibration.evidence.table import Evidence
from capplan.calibration.fit.fitted_file import Fitted
from capplan.calibration.observations import Kind, Observations
from capplan.models.language.units import FloatArray

HIGH_LEVEL = 0.95  # the upper end of a 90 % band
CORRELATIONS: Mapping[Kind, float] = {"rate": 0.6, "time": 0.0}
"""Correlation of the errors of two layouts, beyond the parameters that both share.

It is one less a ratio: the mean square of the difference of both logarithmic errors, without the variance of that
difference over parameter draws, over the sum of both model errors' variances. Rates: 0.27, 0.40, 0.73 and 0.77 in four
systems with 420 pairs of figures; times: -0.07, -0.04 and 0.11 in three with 99 pairs.
"""


class ModelError(NamedTuple):
    """Distribution of the errors of a model where it was not fitted.

    Attributes
    ----------
    log_sd : float
        Root mean square of the logarithmic errors.
    scenarios : float
        Number of independent scenarios behind them: the degrees of freedom of Student's t. Infinite: a normal
        distribution.
    correlation : float
        Correlation of the errors of two layouts.
    """

    log_sd: float
    scenarios: float = math.inf
    correlation: float = 0.0

    def quantile(self, levels: FloatArray | float) -> FloatArray:
        """Return quantiles of the logarithm of the ratio of a repeat's measurement to the prediction.

        Parameters
        ----------
        levels : float or array
            Levels between 0 and 1.

        Returns
        -------
        array
            Quantiles, in the shape of `levels`.
        """
        from scipy.special import ndtri, stdtrit

        standard = stdtrit(self.scenarios, levels) if math.isfinite(self.scenarios) else ndtri(levels)
        return np.asarray(self.log_sd * standard)

    @property
    def half_width(self) -> float:
        """Half the width of the 90 % band of this logarithm."""
        return float(self.quantile(HIGH_LEVEL))

    def times(self, factor: float, common: float = 1.0) -> ModelError:
        """Return a model error that is `factor` times as wide, by at most `common` for what another layout shares.

        What only one layout adds is independent of the error of the other; what both share, both have alike.
        """
        return self._replace(log_sd=self.log_sd * factor, correlation=(self.correlation + common**2 - 1) / factor**2)


class ModelErrors(NamedTuple):
    """The model errors of a system.

    Attributes
    ----------
    rate, time : ModelError
        The model errors of all rates and of all times.
    by_group : mapping of ModelError
        The model errors of times by group.
    """

    rate: ModelError
    time: ModelError
    by_group: Mapping[str, ModelError]

    def of(self, observations: Observations[Any], row: Evidence) -> ModelError:
        """Return the model error of a documented figure; a time whose group has no errors has that of all times."""
        if error_kind(observations, row) == "rate":
            return self.rate
        return self.by_group.get(observations.group_of(row), self.time)


def error_kind(observations: Observations[Any], row: Evidence) -> Kind:
    """Return whether a figure has the model error of rates or of times; decide by its unit if `kind_of` is None."""
    return observations.kind_of(row) or ("time" if row.unit == "s" else "rate")


class _Error(NamedTuple):
    kind: str
    group: str
    fold: str
    size: float


def model_errors(observations: Observations[Any], fitted: Fitted, unseen: str | None = None) -> ModelErrors:
    """Estimate the model errors of a system.

    Parameters
    ----------
    observations : Observations
        The observations of the system.
    fitted : Fitted
        Its calibration.
    unseen : str, optional
        The independent scenario that is to be scored. The estimates then depend on it neither through its error nor
        through a fit (nested leave-one-out). By default all scenarios count.

    Returns
    -------
    ModelErrors
        The estimates; `log_sd` is not a number where there are no errors.
    """
    rows = {row.id: row for test in observations.load_tests() for row in test.rows}
    if unseen is None:
        predictions = [(figure.id, figure.predicted) for figure in fitted.left_out]
    else:
        predictions = [(figure.id, figure.predicted) for figure in fitted.nested if figure.without == unseen]
    errors = [
        _error(observations, rows[name], predicted)
        for name, predicted in predictions
        if observations.kind_of(rows[name]) is not None
    ]
    times = [error for error in errors if error.kind == "time"]
    groups = dict.fromkeys(error.group for error in times)
    by_group = {name: _of("time", (error for error in times if error.group == name)) for name in groups}
    return ModelErrors(_of("rate", (each for each in errors if each.kind == "rate")), _of("time", times), by_group)


def _error(observations: Observations[Any], row: Evidence, predicted: float) -> _Error:
    size = float(np.log(predicted / row.value))
    return _Error(str(observations.kind_of(row)), observations.group_of(row), row.fold, size)


def _of(kind: Kind, errors: Iterable[_Error]) -> ModelError:
    counted = list(errors)
    if not counted:
        return ModelError(math.nan)
    return ModelError(_root_mean_square(counted), float(len({error.fold for error in counted})), CORRELATIONS[kind])


def _root_mean_square(errors: Iterable[_Error]) -> float:
    return float(np.sqrt(np.mean([error.size**2 for error in errors])))
