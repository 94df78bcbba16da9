"""Left-out figures: 90 % bands from the model and from simple rules fitted without the figure's scenario.

A band does not depend on the scenario that it is scored on. The model error comes from the other scenarios and from
fits without the scored one (nested leave-one-out); it widens with the distance from the other layouts, as in a
prediction. The error of a rule comes from other figures of the family, each estimated from the rest (see
`simple_rules`).

Estimates by simple rules of figures that they have not seen, with bands from their own errors.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from capplan.evidence.table import Evidence
from capplan.layout.baselines import Baseline
from capplan.layout.components import MeasuredRange
from capplan.layout.extrapolation import RATE
from capplan.layout.fitted_file import Fitted, FittedFigure
from capplan.layout.observations import LoadTest, Observations, Scored
from capplan.layout.system import System
from capplan.layout.uncertainty import ModelError, error_kind, model_errors

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
    """A measured figure that the rules are fitted to."""

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
    """Estimate a rule's error in the family of a figure; `points` exclude the figure's scenario."""
    errors = _errors(rule, _family(points, wanted.family))
    if not errors:
        same_unit = dict.fromkeys(point.family for point in points if point.unit == wanted.unit)
        errors = [error for name in same_unit for error in _errors(rule, _family(points, name))]
    if not errors:
        return ModelError(math.nan)
    root_mean_square = float(np.sqrt(np.mean([size**2 for _, size in errors])))
    return ModelError(root_mean_square, float(len({fold for fold, _ in errors})))


def _errors(rule: Baseline, family: Sequence[_Point]) -> list[tuple[str, float]]:
    """Return each figure's scenario and log error when estimated from the other scenarios of its family."""
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


@dataclass(frozen=True)
class LeftOut:
    """A documented figure with estimates made without its scenario.

    Attributes
    ----------
    id, scenario, fold, group, unit : str
        Row id, scenario, independent scenario, group in the verdict, and SI unit.
    family : str
        Name of the figures that the rules learn from; empty: no rule gives an estimate.
    size : float
        The variable that the rules scale by.
    not_scored : str
        Why it is not scored; empty: it is scored. A figure is not scored if no other scenario informs some parameter,
        because the estimate would then depend on the prior.
    widens : bool
        Whether its error contributes to the model error, which widens the bands of predictions.
    documented : float
        The documented figure, SI.
    estimates : dict of IntervalEstimate
        Estimates by `capplan`, and by each rule that gives one.
    errors : dict of float
        Their signed relative errors, `capplan` first.
    """

    id: str
    scenario: str
    fold: str
    group: str
    unit: str
    family: str
    size: float
    not_scored: str
    widens: bool
    documented: float
    estimates: dict[str, IntervalEstimate]
    errors: dict[str, float] = field(default_factory=dict)  # follows from the others

    def __post_init__(self) -> None:
        errors = {name: estimate.value / self.documented - 1 for name, estimate in self.estimates.items()}
        object.__setattr__(self, "errors", errors)

    @property
    def counts(self) -> bool:
        """Whether it is scored."""
        return not self.not_scored


def left_out(system: System[Any], fitted: Fitted) -> tuple[LeftOut, ...]:
    """Return every fitted or scored figure, with estimates made without its scenario.

    Parameters
    ----------
    system : System
        The system.
    fitted : Fitted
        Its calibration, with refits.
    """
    observations = system.observations
    places = {row.id: (test, row) for test in observations.load_tests() for row in test.rows}
    rules = rule_estimates(observations, [row for _, row in places.values()])
    left_out = []
    for figure in fitted.left_out:
        test, row = places[figure.id]
        scored, widens = observations.scored(row), observations.kind_of(row) is not None
        if scored is None and not widens and not (row.use == "fit" and row.status == "measured"):
            continue
        scored = scored or Scored("", math.nan, "times" if row.unit == "s" else "rates")
        left_out.append(
            LeftOut(
                id=row.id,
                scenario=row.scenario,
                fold=row.fold,
                group=scored.group,
                unit=row.unit,
                family=scored.family,
                size=scored.size,
                not_scored=observations.not_scored(row),
                widens=widens,
                documented=row.value,
                estimates={"capplan": _model(system, fitted, figure, test, row), **rules.get(row.id, {})},
            )
        )
    return tuple(left_out)


def _model(
    system: System[Any], fitted: Fitted, figure: FittedFigure, test: LoadTest[Any], row: Evidence
) -> IntervalEstimate:
    """Return capplan's estimate with the band that it would have without the scenario."""
    observations = system.observations
    others = [each for each in observations.load_tests() if each.fold != row.fold]
    error = model_errors(observations, fitted, row.fold).of(observations, row)
    offered = test.scenario.offered_per_s()
    rate = None if offered is None else float(np.max(offered))
    far = system.extrapolation(test.scenario, rate, others)
    name = RATE if error_kind(observations, row) == "rate" else row.request_class
    responses = system.responses(fitted, test.scenario, far)
    return _banded(figure, error.times(far.factor(system.component(MeasuredRange).widening, name, responses)))


def _banded(figure: FittedFigure, error: ModelError) -> IntervalEstimate:
    """Widen the parameters' band by a model error; independent log half-widths add in squares."""
    half = error.half_width
    low = math.hypot(math.log(figure.predicted / figure.low), half)
    high = math.hypot(math.log(figure.high / figure.predicted), half)
    return IntervalEstimate(figure.predicted, figure.predicted * math.exp(-low), figure.predicted * math.exp(high))
