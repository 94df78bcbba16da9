"""Estimates by simple rules of figures that they have not seen, with bands from their own errors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from capplan.evidence.table import Evidence
from capplan.layout.baselines import Baseline
from capplan.layout.observations import Observations
from capplan.layout.uncertainty import ModelError

_MISSED = 0.1  # probability that a 90 % band misses


@dataclass(frozen=True)
class IntervalEstimate:
    """An estimate of a figure by the model or by a rule, with its 90 % band, SI.

    Attributes
    ----------
    value : float
        The estimate, above zero.
    low, high : float
        Ends of the band; not a number if its width is unknown.
    """

    value: float
    low: float
    high: float

    def half_width(self) -> float:
        """Return half the width of the band as a share of the value."""
        return (self.high - self.low) / (2 * self.value)

    def holds(self, documented: float) -> bool:
        """Whether the band contains a documented figure."""
        return self.low <= documented <= self.high

    def interval_score(self, documented: float) -> float:
        """Return the interval score of the band in the logarithm; less is better.

        The score is the width of the band plus twenty times the distance by which it misses the figure.

        References
        ----------
        Gneiting and Raftery (2007), Strictly proper scoring rules, prediction, and estimation, equation 43.
        """
        low, high, at = math.log(self.low), math.log(self.high), math.log(documented)
        return high - low + 2 / _MISSED * (max(low - at, 0.0) + max(at - high, 0.0))


class _Point(NamedTuple):
    """A measured figure that rules learn from."""

    family: str
    unit: str
    fold: str
    size: float
    value: float


def rule_estimates(observations: Observations[Any], rows: Sequence[Evidence]) -> dict[str, dict[str, IntervalEstimate]]:
    """Estimate each scored figure by each rule from the other scenarios.

    The band of a rule is Student's t times the root mean square of its logarithmic errors on the other scenarios of the
    family, each estimated from the rest. If the family has only one other scenario, the errors are those on other
    families of the same unit, without the scenario in question.

    Parameters
    ----------
    observations : Observations
        The observations of a system.
    rows : sequence of Evidence
        Its documented figures.

    Returns
    -------
    dict of dict of IntervalEstimate
        By row id and rule.
    """
    points = {
        row.id: _Point(scored.family, row.unit, row.fold, scored.size, row.value)
        for row in rows
        if (scored := observations.scored(row)) is not None
    }
    estimates: dict[str, dict[str, IntervalEstimate]] = {name: {} for name in points}
    for name, rule in observations.baselines.items():
        for family, fold in dict.fromkeys((point.family, point.fold) for point in points.values()):
            wanted = {row: each for row, each in points.items() if (each.family, each.fold) == (family, fold)}
            others = [point for point in points.values() if point.fold != fold]
            for row, estimate in _estimates(rule, others, wanted).items():
                estimates[row][name] = estimate
    return estimates


def _estimates(rule: Baseline, others: Sequence[_Point], wanted: Mapping[str, _Point]) -> dict[str, IntervalEstimate]:
    """Estimate figures of one family and scenario from the other scenarios; empty if the family has no other."""
    first = next(iter(wanted.values()))
    family = _family(others, first.family)
    if not family:
        return {}
    factor = math.exp(_rule_error(rule, others, first).half_width)
    estimates = {name: _at(rule, family, point.size) for name, point in wanted.items()}
    return {name: IntervalEstimate(value, value / factor, value * factor) for name, value in estimates.items()}


def _family(points: Sequence[_Point], name: str) -> list[_Point]:
    return [point for point in points if point.family == name]


def _rule_error(rule: Baseline, points: Sequence[_Point], wanted: _Point) -> ModelError:
    """Estimate the error of a rule in the family of a figure; `points` exclude the scenario of this figure."""
    errors = _errors(rule, _family(points, wanted.family))
    if not errors:
        same_unit = dict.fromkeys(point.family for point in points if point.unit == wanted.unit)
        errors = [error for name in same_unit for error in _errors(rule, _family(points, name))]
    if not errors:
        return ModelError(math.nan)
    root_mean_square = float(np.sqrt(np.mean([size**2 for _, size in errors])))
    return ModelError(root_mean_square, float(len({fold for fold, _ in errors})))


def _errors(rule: Baseline, family: Sequence[_Point]) -> list[tuple[str, float]]:
    """Return scenario and logarithmic error of each figure, estimated from the other scenarios of its family."""
    estimates: dict[tuple[str, float], float] = {}  # figures of one size have the same estimate
    errors = []
    for point in family:
        rest = [other for other in family if other.fold != point.fold]
        if rest:
            key = (point.fold, point.size)
            estimates[key] = estimates[key] if key in estimates else _at(rule, rest, point.size)
            errors.append((point.fold, math.log(estimates[key] / point.value)))
    return errors


def _at(rule: Baseline, points: Sequence[_Point], size: float) -> float:
    ordered = sorted(points, key=lambda point: point.fold)
    return rule(np.array([point.size for point in ordered]), np.array([point.value for point in ordered]), size)
