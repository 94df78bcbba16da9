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
    target : float or None
        Largest absolute error that the goal allows, in the figure's unit; None where the figure is only checked.
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
    target: float | None
    met: bool | None
    share_of_time: float | None


@dataclass(frozen=True)
class LeftOut:
    """A figure of a scenario, predicted by a fit without that scenario and by the baselines; SI.

    Attributes
    ----------
    id, fold, family, unit : str
        What it is; the baselines learn from the other folds of its family.
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
    unit: str
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
    remarks : tuple of str
        What else there is to say of how well the model does.
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
    remarks: tuple[str, ...]
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
        its.remarks(said, single),
        left_out,
        fitted.fitted_parameters,
        len(fitted.names),
        fitted.effective_parameters,
        _verdict(left_out),
    )


def _compared(its: Study, row: Evidence, predicted: float, share_of_time: float | None) -> Compared:
    target = its.target_of(row)
    error = predicted / row.value - 1
    met = None if target is None else abs(predicted - row.value) <= target
    kind = f"{row.request_class} {row.quantity}".strip().replace("_", " ")
    if row.statistic.startswith("p") and row.statistic[1:].isdecimal():
        kind = f"{kind} {row.statistic}"
    return Compared(
        row.id,
        row.scenario,
        kind,
        row.unit,
        row.value,
        row.low,
        row.high,
        predicted,
        error,
        target,
        met,
        share_of_time,
    )


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
            found.append(LeftOut(row.id, row.fold, scored.family, row.unit, *band, said))
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
    errors = median_errors(left_out)
    if not errors:
        return "No scenario could be left out beside a simple rule: each is of its own kind."
    best = min((name for name in errors if name != "capplan"), key=lambda name: errors[name])
    whole = "beats" if errors["capplan"] < errors[best] else "does not beat"
    families = dict.fromkeys(each.family for each in left_out)
    what = next(iter(families)) if len(families) == 1 else f"{len(families)} kinds of figures"
    text = (
        f"Left out one by one, capplan's median error of {what} is {errors['capplan']:.1%}; it {whole} the best "
        f"baseline, {best}, with {errors[best]:.1%}."
    )
    return text + _nearer(left_out)


def _nearer(left_out: Sequence[LeftOut]) -> str:
    """Say which baselines came nearer, and to what."""
    lost: dict[str, list[str]] = {}
    alone = len({each.fold for each in left_out}) == len(left_out)
    for each in left_out:
        made = {name: abs(error) for name, error in each.errors().items()}
        nearer = " and ".join(name for name in made if made[name] < made["capplan"])
        if nearer:
            lost.setdefault(nearer, []).append(each.fold if alone else each.id)
    if not lost:
        return ""
    text = "".join(f" For {', '.join(where)} {names} came nearer." for names, where in lost.items())
    return (
        f"{text} What these scenarios add cannot be identified from the others; the bands are widened by the errors "
        "made here."
    )
