"""Holding a calibrated system against its evidence: every figure as fitted, every scenario as predicted without it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from capplan.calibration.evidence_table import Evidence
from capplan.calibration.fitted_file import Fitted
from capplan.calibration.studies import study
from capplan.calibration.study import Goal, Scored, Study


@dataclass(frozen=True)
class Compared:
    """One documented figure beside the model (SI).

    Attributes
    ----------
    id, scenario, quantity, unit : str
        What it is.
    documented, low, high : float
        The document's figure and the interval of its rounding.
    predicted : float
        The model's median.
    error : float
        Signed relative error.
    goal_low, goal_high : float or None
        The lowest and the highest prediction that meet the goal; None where the figure has no goal of its own.
    met : bool or None
        Whether the goal is met.
    share_of_time : float or None
        For busy workers: the share of the time in which a policing node has at most the documented number.
    """

    id: str
    scenario: str
    quantity: str
    unit: str
    documented: float
    low: float
    high: float
    predicted: float
    error: float
    goal_low: float | None
    goal_high: float | None
    met: bool | None
    share_of_time: float | None


@dataclass(frozen=True)
class LeftOut:
    """A figure of a scenario, predicted by a fit without that scenario and by the baselines; SI.

    Attributes
    ----------
    id, fold, family, group, unit : str
        What it is; the baselines learn from the other folds of its family, the verdict speaks of groups.
    counts : bool
        Whether its error is a part of the discrepancy, which widens the bands of predictions.
    documented : float
        The documented figure.
    predicted, low, high : float
        The model's median and 90 % band of the parameters.
    baselines : dict of float
        What each baseline says; empty where no other scenario is of the family.
    """

    id: str
    fold: str
    family: str
    group: str
    unit: str
    counts: bool
    documented: float
    predicted: float
    low: float
    high: float
    baselines: dict[str, float]

    def errors(self) -> dict[str, float]:
        """Signed relative errors, `capplan` first."""
        said = {"capplan": self.predicted, **self.baselines}
        return {name: value / self.documented - 1 for name, value in said.items()}


@dataclass(frozen=True)
class Validation:
    """The report.

    Attributes
    ----------
    system : str
        The system.
    figures : tuple of Compared
        Every documented figure that can be compared.
    goals : tuple of Goal
        Goals that several figures share.
    goals_in_words : str
        What the goals are.
    left_out : tuple of LeftOut
        Leave-one-scenario-out.
    fitted_parameters : int
        Parameters with wide priors.
    free_parameters : int
        All that the figures may move.
    effective_parameters : float
        Parameters that the figures decide.
    verdict : str
        Whether the model beats the baselines, in plain sentences.
    """

    system: str
    figures: tuple[Compared, ...]
    goals: tuple[Goal, ...]
    goals_in_words: str
    left_out: tuple[LeftOut, ...]
    fitted_parameters: int
    free_parameters: int
    effective_parameters: float
    verdict: str

    @property
    def passed(self) -> bool:
        """Whether no goal is missed."""
        return all(figure.met is not False for figure in self.figures) and all(goal.met for goal in self.goals)


def validate(fitted: Fitted) -> Validation:
    """Compare a calibrated system with every documented figure, predicted anew from its draws.

    A slow model is not asked again: the fitted file keeps what it said.
    """
    its = study(fitted.system)
    if its.slow:
        return compare(fitted, {figure.id: figure.predicted for figure in fitted.figures})
    said = its.predicted(its.experiments(), fitted.values())
    return compare(fitted, {name: float(np.median(draws)) for name, draws in said.items()})


def compare(fitted: Fitted, said: Mapping[str, float]) -> Validation:
    """Compare what a calibrated system says (SI, by row id) with every documented figure."""
    its, single = study(fitted.system), fitted.median_values()
    compared = [
        _compared(its, row, said[row.id], its.share_of_time(test, row, single))
        for test in its.experiments()
        for row in test.rows
    ]
    left_out = _left_out(its, fitted)
    return Validation(
        fitted.system,
        tuple(compared),
        its.goals(said),
        its.goals_in_words,
        left_out,
        fitted.fitted_parameters,
        len(fitted.names),
        fitted.effective_parameters,
        _verdict(left_out),
    )


def _compared(its: Study, row: Evidence, predicted: float, share_of_time: float | None) -> Compared:
    low, high = its.bounds_of(row) or (None, None)
    met = None if low is None or high is None else low <= predicted <= high
    statistic = _STATISTICS.get(row.statistic, row.statistic)
    figure = " ".join(word for word in (row.request_class, row.quantity.replace("_", " "), statistic) if word)
    what = (row.id, row.scenario, figure, row.unit)
    error = predicted / row.value - 1
    return Compared(*what, row.value, row.low, row.high, predicted, error, low, high, met, share_of_time)


_STATISTICS = {"mean": "", "constant": "", "unspecified": "", "maximum": "max"}
"""Words for statistics; the others are called what they are."""


def _left_out(its: Study, fitted: Fitted) -> tuple[LeftOut, ...]:
    """Set the figures that are scored beside what the baselines make of the other scenarios of their family."""
    places: dict[str, tuple[Evidence, Scored]] = {}
    for row in (row for test in its.experiments() for row in test.rows):
        scored = its.scored(row)
        if scored is not None:
            places[row.id] = row, scored
    found = []
    for figure in fitted.left_out:
        if figure.id in places:
            row, scored = places[figure.id]
            others = [(o, s) for o, s in places.values() if s.family == scored.family and o.fold != row.fold]
            band = (figure.documented, figure.predicted, figure.low, figure.high)
            said = _baselines(its, others, scored.size)
            what = (row.id, row.fold, scored.family, scored.group, row.unit, its.kind_of(row) is not None)
            found.append(LeftOut(*what, *band, said))
    return tuple(found)


def _baselines(its: Study, others: Sequence[tuple[Evidence, Scored]], size: float) -> dict[str, float]:
    if not others:
        return {}
    ordered = sorted(others, key=lambda each: each[0].fold)
    known = np.array([scored.size for _, scored in ordered]), np.array([row.value for row, _ in ordered])
    return {name: rule(*known, size) for name, rule in its.baselines.items()}


def median_errors(left_out: Sequence[LeftOut]) -> dict[str, float]:
    """Median absolute relative error of the model and of each baseline, over the figures that all of them predict."""
    errors = [each.errors() for each in left_out if each.baselines]
    return {name: float(np.median([abs(each[name]) for each in errors])) for name in errors[0]} if errors else {}


def _verdict(left_out: Sequence[LeftOut]) -> str:
    """Say of each group whether the model beats the rules, and what becomes of the errors."""
    groups = dict.fromkeys(each.group for each in left_out)
    errors = {name: median_errors([each for each in left_out if each.group == name]) for name in groups}
    sentences = [_of_group(name, found) for name, found in errors.items() if found]
    if not sentences:
        return "No scenario could be left out beside a simple rule: each is of its own kind."
    return f"Left out one by one, capplan's {' Its '.join(sentences)} {_of_bands(left_out)}"


def _of_group(name: str, errors: Mapping[str, float]) -> str:
    best = min((rule for rule in errors if rule != "capplan"), key=lambda rule: errors[rule])
    outcome = "beats" if errors["capplan"] < errors[best] else "does not beat"
    return (
        f"median error of {name} is {errors['capplan']:.1%}; it {outcome} the best baseline, {best}, with "
        f"{errors[best]:.1%}."
    )


def _of_bands(left_out: Sequence[LeftOut]) -> str:
    apart = dict.fromkeys(f"{each.fold}'s {each.group}" for each in left_out if not each.counts)
    without = f", but not by those of {', '.join(apart)}" if apart else ""
    return f"The bands of predictions are widened by the errors made here{without}."
