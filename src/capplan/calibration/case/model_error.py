"""What a model gets wrong even at its best, from the scenarios that were left out of a refit.

The errors there are taken as normal in the logarithm, without a bias and with a spread that is not known beforehand: a
repeat of the load test in a layout that was not measured is then off by Student's t times the root mean square of the
errors, with as many degrees of freedom as there were independent scenarios (Gelman et al. 2013, section 3.2). Rates and
times have a discrepancy each, times one by group where a system has groups.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from capplan.calibration.evidence.table import Evidence
from capplan.calibration.fit.fitted_file import Fitted
from capplan.calibration.study import Kind, Study
from capplan.models.language.units import FloatArray
from capplan.systems.studies import study

HIGH_LEVEL = 0.95  # the upper end of a 90 % band


class Discrepancy(NamedTuple):
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

    def times(self, factor: float) -> Discrepancy:
        """Return it so many times as wide."""
        return self._replace(log_sd=self.log_sd * factor)


class Discrepancies(NamedTuple):
    """Those of a system: of rates, and of times by group."""

    rate: Discrepancy
    time: Discrepancy
    by_group: Mapping[str, Discrepancy]

    def of(self, its: Study, row: Evidence) -> Discrepancy:
        """Return that of a documented figure: times without errors in their group have that of all times."""
        if tells_of(its, row) == "rate":
            return self.rate
        return self.by_group.get(its.group_of(row), self.time)


def tells_of(its: Study, row: Evidence) -> Kind:
    """Return whether a figure is off as rates or as times are; by its unit where the study says neither."""
    return its.kind_of(row) or ("time" if row.unit == "s" else "rate")


class _Error(NamedTuple):
    kind: str
    group: str
    fold: str
    size: float


def discrepancies(fitted: Fitted, unseen: str | None = None) -> Discrepancies:
    """Estimate the discrepancies of a system.

    Parameters
    ----------
    fitted : Fitted
        The calibrated system.
    unseen : str, optional
        An independent scenario that must not bear on them, neither by its error nor through a fit (nested
        leave-one-out): that which is to be scored. All scenarios count when left out.
    """
    its = study(fitted.system)
    rows = {row.id: row for test in its.experiments() for row in test.rows}
    if unseen is None:
        said = [(figure.id, figure.predicted) for figure in fitted.left_out]
    else:
        said = [(figure.id, figure.predicted) for figure in fitted.nested if figure.without == unseen]
    errors = [_error(its, rows[name], predicted) for name, predicted in said if its.kind_of(rows[name]) is not None]
    times = [error for error in errors if error.kind == "time"]
    groups = dict.fromkeys(error.group for error in times)
    by_group = {name: _of(error for error in times if error.group == name) for name in groups}
    return Discrepancies(_of(error for error in errors if error.kind == "rate"), _of(times), by_group)


def _error(its: Study, row: Evidence, predicted: float) -> _Error:
    size = float(np.log(predicted / row.value))
    return _Error(str(its.kind_of(row)), its.group_of(row), row.fold, size)


def _of(errors: Iterable[_Error]) -> Discrepancy:
    found = list(errors)
    if not found:
        return Discrepancy(math.nan)
    return Discrepancy(_root_mean_square(found), float(len({error.fold for error in found})))


def _root_mean_square(errors: Iterable[_Error]) -> float:
    return float(np.sqrt(np.mean([error.size**2 for error in errors])))
