"""`predict`: what a layout completes, how fast it answers, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any, Literal

import numpy as np

from capplan.calibration.case.solution import Figures
from capplan.calibration.fit.fitted_file import Fitted
from capplan.calibration.system import Case
from capplan.models.language.scenario import Scenario
from capplan.models.language.traffic import Bursty
from capplan.models.objective import Metric
from capplan.models.results import Band, Capacity, Latency, Outage, Parts
from capplan.models.solver.operating_point import MAX_DROP_RATE
from capplan.planner.predict.budget import check_budget
from capplan.planner.predict.prediction import EvidenceSummary, Prediction
from capplan.planner.predict.solved_latency import solved_latency
from capplan.simulator.experiments.draws import RunsDone
from capplan.systems.registry import resolve

_JUDGED = (
    "Objectives at the offered rate are judged by simulated latencies; the capacity that meets them comes from the "
    "analytic approximations."
)
DEFAULT_SHARE = 0.8  # of the capacity, where no rate is given

PredictionEngine = Literal["compiled", "analytic", "simpy"]


@dataclass(frozen=True)
class _Method:
    """How latencies are found."""

    engine: PredictionEngine
    budget_s: float
    progress: RunsDone | None


def predict(
    scenario: Scenario,
    *,
    seed: int = 1,
    engine: PredictionEngine = "compiled",
    budget_s: float | None = None,
    progress: RunsDone | None = None,
    fitted: Fitted | None = None,
) -> Prediction:
    """Predict capacity, latency, utilisation and outages of a layout.

    Parameters
    ----------
    scenario : Scenario
        The layout, the offered rate and the objectives.
    seed : int
        Seed of every random number.
    engine : str
        What latencies come from: simulation by the `compiled` or the `simpy` engine, or the `analytic` solver, whose
        percentiles are approximations. Capacity and utilisation are always analytic.
    budget_s : float, optional
        How long to simulate, in seconds of a nominal machine with two threads, whatever this one's speed: the same
        budget gives the same figures. A larger budget narrows the simulation's part of the bands. See
        `capplan.planner.predict.budget` for the rule. The system's own when left out; none for the analytic solver.
    progress : function, optional
        Called with how many of how many simulation runs have ended; by several threads, one at a time.
    fitted : Fitted, optional
        The calibration to use; the system's own when left out.

    Returns
    -------
    Prediction
        Rates in requests per second, latencies in milliseconds, each with its band.

    Raises
    ------
    InputError
        When an objective cannot be read, the system is not calibrated, or the budget is not above 0 and at most 1 h.
    """
    return predict_case(resolve(scenario, fitted, seed), engine=engine, budget_s=budget_s, progress=progress)


def predict_case(
    case: Case[Any],
    *,
    engine: PredictionEngine = "compiled",
    budget_s: float | None = None,
    progress: RunsDone | None = None,
) -> Prediction:
    """Predict a resolved case; see `predict`."""
    budget_s = case.system.budget_s if budget_s is None else budget_s
    check_budget(budget_s)
    if case.system.ratios_only:
        return predicted_ratio(case)
    return _predicted(case, _Method(engine, budget_s, progress))


def predicted_ratio(case: Case[Any]) -> Prediction:
    """Predict a system that is documented as ratios only: throughput over that of a reference, and nothing else.

    The reference that was asked about comes first. No capacity, latency or outage: nothing absolute is documented.
    """
    draws = case.system.ratios(case.scenario, case.values)
    ratios = {reference: case.uncertainty.of_rate(each) for reference, each in draws.items()}
    return Prediction(
        scenario=case.scenario.given(),
        capacity_tps=None,
        bottleneck=None,
        offered_tps=None,
        offered_source="default",
        latency_ms={},
        utilisation={},
        busy_workers={},
        throughput_ratio=next(iter(ratios.values())),
        throughput_ratios=ratios,
        evidence=_evidence(case, (case.system.notes.rates, *case.system.notes.notes_on_ratios(case))),
        engine="analytic",
        seed=case.seed,
        version=version("capplan"),
    )


def _predicted(case: Case[Any], method: _Method) -> Prediction:
    """Predict a layout with documented rates and times."""
    _ = case.objectives  # refuse one that cannot be read before anything is solved
    capacity, given = capacity_of(case), case.scenario.offered_per_s()
    offered = float(np.max(given)) if given is not None else rate_at(DEFAULT_SHARE, capacity.value)
    case = case.at(offered)
    figures = case.solution.at(offered)
    latency, notes = _latency(case, figures, method)
    prediction = Prediction(
        scenario=case.scenario.given(),
        capacity_tps=capacity,
        bottleneck=case.solution.bottleneck,
        offered_tps=offered,
        offered_source="default" if given is None else "given",
        latency_ms=latency,
        utilisation={name: case.uncertainty.of_share(figures.utilisation(name)) for name in case.solution.resources},
        busy_workers=_busy_workers(case, figures),
        outages=_outages(case, offered),
        session_not_found=case.system.sessions_not_found(case, figures),
        evidence=_evidence(case, _notes(case, capacity, figures, notes)),
        engine=method.engine,
        seed=case.seed,
        version=version("capplan"),
    )
    return _judged(prediction, case, figures)


def _at_most(band: Band, highest: float) -> Band:
    return replace(band, low=min(band.low, highest), high=min(band.high, highest))


def _outages(case: Case[Any], offered: float) -> tuple[Outage, ...]:
    """Return the outages, with no band above that of the same outage of the upper bound."""
    found, bound = case.system.outages(case, offered), case.upper_bound
    if bound is None:
        return found
    return tuple(
        replace(left, capacity_tps=_at_most(left.capacity_tps, more.capacity_tps.high))
        if left.capacity_tps is not None and more.capacity_tps is not None
        else left
        for left, more in zip(found, case.system.outages(bound, offered), strict=True)
    )


def _busy_workers(case: Case[Any], figures: Figures) -> dict[str, Band]:
    busy, workers = figures.busy_workers(), case.system.workers(case.scenario)
    return {tier: case.uncertainty.of_busy(busy, float(np.max(units))) for tier, units in workers.items()}


def capacity_of(case: Case[Any]) -> Capacity:
    """Return what a layout completes with its objectives met, requests per second, with its band.

    Raises
    ------
    InputError
        When an objective of the scenario cannot be read.
    """
    band = case.uncertainty.of_rate(case.solution.capacity_with(case.objectives))
    rate = "peak rate" if isinstance(case.solution.analysis.traffic.arrivals, Bursty) else "rate"
    if case.upper_bound is not None:
        band = _at_most(band, capacity_of(case.upper_bound).high)
    criterion = f"highest {rate} with a drop rate of at most {MAX_DROP_RATE:.1%} and no backlog that grows"
    if case.objectives:
        criterion += " and " + ", ".join(objective.text for objective in case.objectives)
    return Capacity(value=band.value, low=band.low, high=band.high, parts=band.parts, criterion=criterion)


def default_rate(case: Case[Any]) -> float:
    """Return the peak rate to evaluate when none is given: 80 % of the median capacity.

    Raises
    ------
    InputError
        When an objective of the scenario cannot be read.
    """
    return rate_at(DEFAULT_SHARE, float(np.median(case.solution.capacity_with(case.objectives))))


def rate_at(share: float, capacity: float) -> float:
    """Return a share of the capacity, rounded to tens; a trickle when the capacity is 0."""
    return max(round(share * capacity, -1), 1.0)


def _latency(case: Case[Any], figures: Figures, method: _Method) -> tuple[dict[str, Latency], list[str]]:
    """Return latencies by class, with notes on how they were obtained."""
    accuracy = case.system.notes.accuracy
    if method.engine == "analytic":
        return solved_latency(figures, case.uncertainty), [accuracy]
    from capplan.planner.predict.simulated_latency import (  # not needed for the analytic solver
        SimulationSettings,
        simulated_latency,
    )

    found = simulated_latency(
        case, figures, SimulationSettings(case.seed, method.engine, method.budget_s, method.progress)
    )
    return found.latency_ms, [found.note, *([_JUDGED, accuracy] if case.objectives else [])]


def _judged(prediction: Prediction, case: Case[Any], figures: Figures) -> Prediction:
    """Return the prediction with the objectives judged by its figures."""

    def lookup(metric: Metric) -> Band | None:
        if metric.name == "drop_rate":
            low, middle, high = (float(value) for value in np.quantile(figures.point.drop_rate, [0.05, 0.5, 0.95]))
            return Band(middle, low, high, Parts(parameter=(high - low) / 2))
        return prediction.figure(metric)

    return replace(prediction, objectives=tuple(objective.evaluate(lookup) for objective in case.objectives))


def _notes(case: Case[Any], capacity: Capacity, figures: Figures, of_latency: list[str]) -> tuple[str, ...]:
    its = case.system.notes
    notes = (
        *_overload_note(figures),
        *_risk_note(case, capacity, figures),
        its.rates,
        *its.notes(case, capacity, figures),
        *of_latency,
    )
    if case.objectives:
        notes = (*notes, "Capacity after an outage is judged by drop rate and backlog only, not by the objectives.")
    return notes


def _evidence(case: Case[Any], notes: tuple[str, ...]) -> EvidenceSummary:
    found = case.extrapolation
    why, idle = found.why, "; ".join(each.words for each in found.without_effect(case.responses))
    if idle:
        why += f" This moves no figure and widens no band: {idle}."
    return EvidenceSummary(case.system.citations(), found.basis, why, case.system.notes.claims(case.scenario), notes)


def _risk_note(case: Case[Any], capacity: Capacity, figures: Figures) -> tuple[str, ...]:
    """Return how likely it is that the offered rate is not sustained, where that is open."""
    offered = float(np.max(figures.peak_rate))
    if not capacity.low < offered <= capacity.value:
        return ()
    chance = case.uncertainty.chance_of_less(case.solution.capacity_with(case.objectives), offered)
    return (
        f"The offered rate lies within the capacity band. The chance that it is not sustained is about {chance:.0%}; "
        "the latencies assume that it is.",
    )


def _overload_note(figures: Figures) -> tuple[str, ...]:
    lost = float(np.median(figures.point.drop_rate))
    if lost <= MAX_DROP_RATE or figures.bounded:
        return ()
    if figures.analysis.pool is None:
        return ("The offered rate exceeds the capacity: queues and latency grow without bound.",)
    return (
        f"At the offered rate about {lost:.1%} of the requests are dropped; latencies are of the requests that "
        "complete. Beyond capacity queues grow with time, so simulated latencies describe the first seconds at most.",
    )
