"""Left-out figures: estimates by the model and by simple rules that did not see their scenario, with 90 % bands.

A band does not depend on the scenario that it is scored on. The model error comes from the other scenarios and from
fits without the scored one (nested leave-one-out); it widens with the distance from the other layouts, as in a
prediction. The error of a rule comes from other figures of the family, each estimated from the rest (see
`simple_rules`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from capplan.calibration.validation.simple_rules import IntervalEstimate, rule_estimates
from capplan.evidence.table import Evidence
from capplan.layout.extrapolation import RATE
from capplan.layout.fitted_file import Fitted, FittedFigure
from capplan.layout.observations import LoadTest, Scored
from capplan.layout.system import System
from capplan.layout.uncertainty import ModelError, error_kind


@dataclass(frozen=True)
class LeftOut:
    """A documented figure with estimates that did not see its scenario.

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

    @property
    def counts(self) -> bool:
        """Whether it is scored."""
        return not self.not_scored

    def errors(self) -> dict[str, float]:
        """Signed relative errors, `capplan` first."""
        return {name: estimate.value / self.documented - 1 for name, estimate in self.estimates.items()}


def left_out(system: System[Any], fitted: Fitted) -> tuple[LeftOut, ...]:
    """Return every figure that was fitted or is scored, with estimates that did not see its scenario.

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
    """Return capplan's estimate, with the band that it would give without the scenario."""
    observations = system.observations
    others = [each for each in observations.load_tests() if each.fold != row.fold]
    error = system.model_errors(fitted, unseen=row.fold).of(observations, row)
    offered = test.scenario.offered_per_s()
    rate = None if offered is None else float(np.max(offered))
    far = system.extrapolation(test.scenario, rate, others)
    name = RATE if error_kind(observations, row) == "rate" else row.request_class
    responses = system.responses(fitted, test.scenario, far)
    return _banded(figure, error.times(far.factor(system.widening, name, responses)))


def _banded(figure: FittedFigure, error: ModelError) -> IntervalEstimate:
    """Widen the band of the parameters by a model error; independent half-widths in the logarithm add in squares."""
    half = error.half_width
    low = math.hypot(math.log(figure.predicted / figure.low), half)
    high = math.hypot(math.log(figure.high / figure.predicted), half)
    return IntervalEstimate(figure.predicted, figure.predicted * math.exp(-low), figure.predicted * math.exp(high))
