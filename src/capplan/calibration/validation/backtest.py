"""Figures of scenarios that a fit did not see: what the model and simple rules say of them, with 90 % bands.

A band is scored on a scenario that it has seen nothing of. The model's discrepancy comes from the errors on the other
scenarios, made by fits without the scored one (nested leave-one-out), and is widened with the distance from the other
layouts as in a prediction. A rule's discrepancy comes from its errors on the other figures of the family, each said
from the rest (see `simple_rules` where there are too few).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from capplan.calibration.case.model_error import ModelError, tells_of
from capplan.calibration.evidence.table import Evidence
from capplan.calibration.fit.fitted_file import Fitted, FittedFigure
from capplan.calibration.observations import LoadTest, Scored
from capplan.calibration.system import System
from capplan.calibration.validation.estimate import IntervalEstimate
from capplan.calibration.validation.simple_rules import estimates_by_rules


@dataclass(frozen=True)
class LeftOut:
    """A figure of a scenario, said by a fit without that scenario and by simple rules.

    Attributes
    ----------
    id, scenario, fold, group, unit : str
        What it is; verdicts speak of groups.
    family : str
        The figures that the rules learn from; empty where they say nothing.
    size : float
        What the rules scale by.
    not_scored : str
        Why it is not scored: where the scenario is the only one that speaks of some parameter, the prior is asked
        without it. Empty: it is scored.
    widens : bool
        Whether its error is a part of the discrepancy, which widens the bands of predictions.
    documented : float
        The documented figure, SI.
    estimates : dict of IntervalEstimate
        By `capplan` and by each rule that says something.
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
        return {name: said.value / self.documented - 1 for name, said in self.estimates.items()}


def left_out(system: System[Any], fitted: Fitted) -> tuple[LeftOut, ...]:
    """Return every figure that was fitted or is scored beside rules, as said by fits without its scenario."""
    its = system.observations
    places = {row.id: (test, row) for test in its.load_tests() for row in test.rows}
    rules = estimates_by_rules(its, [row for _, row in places.values()])
    found = []
    for figure in fitted.left_out:
        test, row = places[figure.id]
        scored, widens = its.scored(row), its.kind_of(row) is not None
        if scored is None and not widens and not (row.use == "fit" and row.status == "measured"):
            continue
        said = {"capplan": _model(system, fitted, figure, test, row), **rules.get(row.id, {})}
        of = scored or Scored("", math.nan, "times" if row.unit == "s" else "rates")
        what = (row.id, row.scenario, row.fold, of.group, row.unit, of.family, of.size, its.not_scored(row), widens)
        found.append(LeftOut(*what, row.value, said))
    return tuple(found)


def _model(
    system: System[Any], fitted: Fitted, figure: FittedFigure, test: LoadTest[Any], row: Evidence
) -> IntervalEstimate:
    """Return what capplan says, with the band that it would give without the scenario."""
    its = system.observations
    others = [each for each in its.load_tests() if each.fold != row.fold]
    known = system.model_errors(fitted, unseen=row.fold).of(its, row)
    offered = test.scenario.offered_per_s()
    rate = None if offered is None else float(np.max(offered))
    factors = system.extrapolation(test.scenario, rate, others).factors(system.widening)
    return _banded(figure, known.times(factors[tells_of(its, row)]))


def _banded(figure: FittedFigure, error: ModelError) -> IntervalEstimate:
    """Widen the band of the parameters: independent errors, in the logarithm, add up by their squares."""
    half = error.half_width
    low = math.hypot(math.log(figure.predicted / figure.low), half)
    high = math.hypot(math.log(figure.high / figure.predicted), half)
    return IntervalEstimate(figure.predicted, figure.predicted * math.exp(-low), figure.predicted * math.exp(high))
