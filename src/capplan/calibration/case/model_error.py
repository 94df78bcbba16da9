"""What a model gets wrong even at its best, from the scenarios that were left out of a refit.

The errors there are taken as normal in the logarithm, without a bias and with a spread that is not known beforehand: a
repeat of the load test in a layout that was not measured is then off by Student's t times the root mean square of the
errors, with as many degrees of freedom as there were independent scenarios (Gelman et al. 2013, section 3.2). Rates and
times have a model error each, times one by group where a system has groups.
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


class ModelError(NamedTuple):
    """How far off a model is where it was not fitted.

    Attributes
    ----------
    log_sd : float
        Root mean square of the logarithmic errors.
    scenarios : float
        Independent scenarios that they come from: degrees of freedom of Student's t. Unbounded: a normal law.
    """

    log_sd: float
    scenarios: float = math.inf

    def quantile(self, levels: FloatArray | float) -> FloatArray:
        """Return quantiles of the logarithm of what a repeat measures over what the model says."""
        from scipy.special import ndtri, stdtrit

        standard = stdtrit(self.scenarios, levels) if math.isfinite(self.scenarios) else ndtri(levels)
        return np.asarray(self.log_sd * standard)

    @property
    def half_width(self) -> float:
        """Half the width of the 90 % band of that logarithm."""
        return float(self.quantile(HIGH_LEVEL))

    def times(self, factor: float) -> ModelError:
        """Return it so many times as wide."""
        return self._replace(log_sd=self.log_sd * factor)


class ModelErrors(NamedTuple):
    """Those of a system: of rates, and of times by group."""

    rate: ModelError
    time: ModelError
    by_group: Mapping[str, ModelError]

    def of(self, its: Observations[Any], row: Evidence) -> ModelError:
        """Return that of a documented figure: times without errors in their group have that of all times."""
        if error_kind(its, row) == "rate":
            return self.rate
        return self.by_group.get(its.group_of(row), self.time)


def error_kind(its: Observations[Any], row: Evidence) -> Kind:
    """Return whether a figure is off as rates or as times are; by its unit where the study says neither."""
    return its.kind_of(row) or ("time" if row.unit == "s" else "rate")


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
        What was measured.
    fitted : Fitted
        The calibrated system.
    unseen : str, optional
        An independent scenario that must not bear on them, neither by its error nor through a fit (nested
        leave-one-out): that which is to be scored. All scenarios count when left out.
    """
    rows = {row.id: row for test in observations.load_tests() for row in test.rows}
    if unseen is None:
        said = [(figure.id, figure.predicted) for figure in fitted.left_out]
    else:
        said = [(figure.id, figure.predicted) for figure in fitted.nested if figure.without == unseen]
    errors = [
        _error(observations, rows[name], predicted)
        for name, predicted in said
        if observations.kind_of(rows[name]) is not None
    ]
    times = [error for error in errors if error.kind == "time"]
    groups = dict.fromkeys(error.group for error in times)
    by_group = {name: _of(error for error in times if error.group == name) for name in groups}
    return ModelErrors(_of(error for error in errors if error.kind == "rate"), _of(times), by_group)


def _error(its: Observations[Any], row: Evidence, predicted: float) -> _Error:
    size = float(np.log(predicted / row.value))
    return _Error(str(its.kind_of(row)), its.group_of(row), row.fold, size)


def _of(errors: Iterable[_Error]) -> ModelError:
    found = list(errors)
    if not found:
        return ModelError(math.nan)
    return ModelError(_root_mean_square(found), float(len({error.fold for error in found})))


def _root_mean_square(errors: Iterable[_Error]) -> float:
    return float(np.sqrt(np.mean([error.size**2 for error in errors])))
