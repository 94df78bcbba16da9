"""Holding a calibrated system against its evidence: every figure as fitted, every scenario as predicted without it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from capplan.calibration.baselines import BASELINES
from capplan.calibration.evidence_table import Evidence
from capplan.calibration.fitted_file import Fitted
from capplan.calibration.openprovider_figures import (
    Experiment,
    experiments,
    predicted_all,
    share_of_time_at_most,
    target_of,
)
from capplan.models.parameter import Values


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
    """A scenario's capacity, predicted by a fit without it and by the baselines; requests per second.

    Attributes
    ----------
    scenario : str
        The scenario.
    documented : float
        Its documented capacity.
    predicted, low, high : float
        The model's median and 90 % band of the parameters.
    baselines : dict of float
        What each baseline says.
    """

    scenario: str
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
    left_out : tuple of LeftOut
        Leave-one-scenario-out.
    fitted_parameters : int
        Parameters with wide priors.
    free_parameters : int
        All that the figures may move.
    effective_parameters : float
        Parameters that the figures decide.
    verdict : str
        Whether the model beats the baselines, in one plain sentence.
    """

    system: str
    figures: tuple[Compared, ...]
    left_out: tuple[LeftOut, ...]
    fitted_parameters: int
    free_parameters: int
    effective_parameters: float
    verdict: str

    @property
    def passed(self) -> bool:
        """Whether no goal is missed."""
        return all(figure.met is not False for figure in self.figures)


def validate(fitted: Fitted) -> Validation:
    """Compare a calibrated system with every documented figure, predicted anew from its draws."""
    said = predicted_all(experiments(), fitted.values())
    return compare(fitted, {name: float(np.median(draws)) for name, draws in said.items()})


def compare(fitted: Fitted, said: Mapping[str, float]) -> Validation:
    """Compare what a calibrated system says (SI, by row id) with every documented figure."""
    single = fitted.median_values()
    compared = [_compared(row, said[row.id], _busy(test, row, single)) for test in experiments() for row in test.rows]
    left_out = _left_out(fitted)
    return Validation(
        fitted.system,
        tuple(compared),
        left_out,
        fitted.fitted_parameters,
        len(fitted.names),
        fitted.effective_parameters,
        _verdict(left_out),
    )


def _busy(test: Experiment, row: Evidence, values: Values) -> float | None:
    return share_of_time_at_most(test, values, row.value) if row.quantity == "busy_workers" else None


def _compared(row: Evidence, predicted: float, share_of_time: float | None) -> Compared:
    target = target_of(row)
    error = predicted / row.value - 1
    met = None if target is None else abs(predicted - row.value) <= target
    kind = f"{row.request_class} {row.quantity}".strip().replace("_", " ")
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


def _left_out(fitted: Fitted) -> tuple[LeftOut, ...]:
    """Take one capacity for each independent scenario: LDAP is a second look at TS4."""
    tests = {test.fold: test for test in reversed(experiments())}
    nodes = {fold: float(test.scenario.dcs * test.scenario.cass_nodes) for fold, test in tests.items()}
    capacity = {fold: next(r.value for r in t.rows if r.quantity == "incoming_rate") for fold, t in tests.items()}
    found = []
    for figure in fitted.left_out:
        fold = figure.fold
        if figure.id != f"{fold.lower()}.incoming":
            continue
        others = sorted(other for other in tests if other != fold)
        known = (np.array([nodes[o] for o in others]), np.array([capacity[o] for o in others]))
        said = {name: rule(*known, nodes[fold]) for name, rule in BASELINES.items()}
        found.append(LeftOut(fold, figure.documented, figure.predicted, figure.low, figure.high, said))
    return tuple(found)


def median_errors(left_out: Sequence[LeftOut]) -> dict[str, float]:
    """Median absolute relative error of the model and of each baseline."""
    errors = [each.errors() for each in left_out]
    return {name: float(np.median([abs(each[name]) for each in errors])) for name in errors[0]}


def _verdict(left_out: Sequence[LeftOut]) -> str:
    errors = median_errors(left_out)
    best = min((name for name in errors if name != "capplan"), key=lambda name: errors[name])
    whole = "beats" if errors["capplan"] < errors[best] else "does not beat"
    text = (
        f"Left out one by one, capplan's median error of capacity is {errors['capplan']:.1%}; it {whole} the best "
        f"baseline, {best}, with {errors[best]:.1%}."
    )
    lost = False
    for each in left_out:
        made = {name: abs(error) for name, error in each.errors().items()}
        nearer = [name for name in made if made[name] < made["capplan"]]
        if nearer:
            lost = True
            text += f" For {each.scenario} {' and '.join(nearer)} came nearer."
    if not lost:
        return text
    return (
        f"{text} What one more data centre brings cannot be identified from the other scenarios; the bands are widened "
        "by the errors made here."
    )
