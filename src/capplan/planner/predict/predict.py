"""`predict`: what a layout completes, how fast it answers, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any, Literal

import numpy as np

from capplan.calibration.case.solution import Figures
from capplan.calibration.fit.fitted_file import Fitted
from capplan.calibration.outage import losses_of
from capplan.calibration.system import Case
from capplan.models.errors import InputError
from capplan.models.language.scenario import Scenario
from capplan.models.language.traffic import Bursty
from capplan.models.number_words import share
from capplan.models.objective import Metric
from capplan.models.results import LOST, Band, Basis, Capacity, Latency, Parts, carried
from capplan.models.solver.operating_point import MAX_DROP_RATE
from capplan.planner.predict.basis import latencies_with_basis, model_only, with_basis
from capplan.planner.predict.budget import check_budget
from capplan.planner.predict.outages import Whole, outages
from capplan.planner.predict.prediction import EvidenceSummary, Limit, Offered, Prediction
from capplan.planner.predict.solved_latency import solved_latency
from capplan.simulator.experiments.draws import RunsDone
from capplan.systems.registry import resolve

_JUDGED = (
    "Objectives at the offered rate are judged by simulated latencies; the capacity that meets them comes from the "
    "analytic approximations."
)
DEFAULT_SHARE = 0.8  # of the capacity, where no rate is given
DEFAULT_RISK = LOST
"""Overload probability that is accepted by default."""

PredictionEngine = Literal["compiled", "analytic", "simpy"]


@dataclass(frozen=True)
class Question:
    """What is asked of a case.

    Attributes
    ----------
    engine : str
        What latencies come from.
    budget_s : float or None
        How long to simulate, in seconds of a nominal machine; None: the system's own.
    progress : function or None
        Called with how many of how many simulation runs have ended.
    risk : float
        Overload probability that is accepted, above 0 and at most 1.
    lose : tuple of str
        What is lost at once, such as `node,dc2`, one for each outage; empty: what the system proposes.
    """

    engine: PredictionEngine = "compiled"
    budget_s: float | None = None
    progress: RunsDone | None = None
    risk: float = DEFAULT_RISK
    lose: tuple[str, ...] = ()


def predict(  # noqa: PLR0913  # all but the scenario are named, and have a default
    scenario: Scenario,
    *,
    seed: int = 1,
    engine: PredictionEngine = "compiled",
    budget_s: float | None = None,
    progress: RunsDone | None = None,
    fitted: Fitted | None = None,
    risk: float = DEFAULT_RISK,
    lose: Sequence[str] = (),
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
    risk : float
        Accepted probability that the offered rate is not sustained, above 0 and at most 1; above it the answer is no.
    lose : sequence of str
        What is lost at once, such as `node,dc2`, one for each outage; by default what the system proposes.

    Returns
    -------
    Prediction
        Rates in requests per second, latencies in milliseconds, each with its band and its basis.

    Raises
    ------
    InputError
        When an objective, a loss or the risk cannot be read, the system is not calibrated, or the budget is not above 0
        and at most 1 h.
    """
    question = Question(engine, budget_s, progress, risk, tuple(lose))
    return predict_case(resolve(scenario, fitted, seed), question)


def predict_case(case: Case[Any], question: Question | None = None) -> Prediction:
    """Predict a resolved case; see `predict`."""
    question = question or Question()
    question = replace(question, budget_s=case.system.budget_s if question.budget_s is None else question.budget_s)
    check_budget(question.budget_s or 0.0)
    if not 0 < question.risk <= 1:
        raise InputError(
            f"a risk of {question.risk:g} is not a probability above 0 and at most 1: give one such as 10%"
        )
    if case.system.ratios_only:
        losses_of(question.lose, case.system.losses, 1)
        return predicted_ratio(case)
    return _predicted(case, question)


def predicted_ratio(case: Case[Any]) -> Prediction:
    """Predict a system that is documented as ratios only: throughput over that of a reference, and nothing else.

    The reference that was asked about comes first. No capacity, latency or outage: nothing absolute is documented.
    """
    draws = case.system.ratios(case.scenario, case.values)
    basis = case.extrapolation.basis
    return Prediction(
        system=case.system.name,
        layout=case.system.layout(case.scenario, case.values),
        scenario=case.scenario.given(),
        capacity=None,
        offered=None,
        latency_ms={},
        utilisation={},
        busy_workers={},
        throughput_ratios={
            reference: with_basis(case.uncertainty.of_rate(each), basis) for reference, each in draws.items()
        },
        evidence=_evidence(
            case,
            (case.system.notes.rates, *case.system.notes.notes_on_ratios(case)),
            case.system.notes.cautions_on_ratios(case),
        ),
        engine="analytic",
        seed=case.seed,
        version=version("capplan"),
    )


def _predicted(case: Case[Any], question: Question) -> Prediction:
    """Predict a layout with documented rates and times."""
    _ = case.objectives  # refuse one that cannot be read before anything is solved
    losses = losses_of(question.lose, case.system.losses, getattr(case.scenario, "dcs", 1))
    capacity, given = _capacity(case), case.given_per_s
    rate = given if given is not None else rate_at(DEFAULT_SHARE, capacity.peak_tps.value)
    case = case.at(rate)
    figures = case.solution.at(rate)
    latency, notes = _latency(case, figures, question)
    prediction = Prediction(
        system=case.system.name,
        layout=case.system.layout(case.scenario, case.values),
        scenario=case.scenario.given(),
        capacity=capacity,
        limits=_limits(case),
        offered=_offered(case, rate, question.risk),
        latency_ms=latencies_with_basis(latency, case.basis, rate),
        tails_not_modelled=case.system.tails_not_modelled,
        utilisation=_utilisation(case, figures, rate),
        busy_workers=_busy_workers(case, figures),
        outages=outages(Whole(case, figures, latency), losses),
        session_not_found=case.system.sessions_not_found(case, figures),
        evidence=_evidence(
            case, _notes(case, capacity.peak_tps, figures, notes), _cautions(case, capacity.peak_tps, figures)
        ),
        engine=question.engine,
        seed=case.seed,
        version=version("capplan"),
    )
    return _answered(_judged(prediction, case, figures))


def _answered(prediction: Prediction) -> Prediction:
    """Return the prediction with its answer: yes, or no and why."""
    why = []
    offered = prediction.offered
    if offered is not None and offered.overload_probability > offered.accepted_risk:
        why.append(
            f"overload risk {share(offered.overload_probability)}, above the accepted {share(offered.accepted_risk)}"
        )
    why += [f"{objective.text} is not met" for objective in prediction.objectives if objective.met is False]
    return replace(prediction, answer=not why, why_not=tuple(why))


def _offered(case: Case[Any], rate: float, risk: float) -> Offered:
    probability = case.uncertainty.chance_of_less(case.solution.capacity, rate)
    return Offered(
        peak_tps=rate,
        sustained_tps=rate / float(np.median(case.solution.burst_ratio)),
        source="default" if case.given_per_s is None else "given",
        overload_probability=probability,
        accepted_risk=risk,
        carried=carried(probability),
    )


def _limits(case: Case[Any]) -> tuple[Limit, ...]:
    """Return what limits the capacity, in the order of saturation."""
    solution, first = case.solution, case.solution.bottleneck
    order = dict.fromkeys((first, *solution.resources))
    return tuple(
        Limit(
            resource=name,
            name=case.system.resource_name(case.scenario, name),
            assumed=name in case.system.assumed,
            utilisation_at_capacity=_utilisation_at_capacity(case, name),
        )
        for name in order
    )


def _utilisation_at_capacity(case: Case[Any], resource: str) -> Band | None:
    if resource not in case.solution.resources:
        return None
    low, middle, high = np.quantile(case.solution.utilisation_at_capacity(resource), (0.05, 0.5, 0.95)).tolist()
    return Band(middle, low, high, Parts(parameter=(high - low) / 2), "model only")


def _at_most(band: Band, highest: float) -> Band:
    return replace(band, low=min(band.low, highest), high=min(band.high, highest), value=min(band.value, highest))


def _utilisation(case: Case[Any], figures: Figures, rate: float) -> Mapping[str, Band]:
    bands = {name: case.uncertainty.of_share(figures.utilisation(name)) for name in case.solution.resources}
    return {name: with_basis(band, case.basis.of_utilisation(name, rate)) for name, band in bands.items()}


def _busy_workers(case: Case[Any], figures: Figures) -> dict[str, Band]:
    busy, workers = figures.busy_workers(), case.system.workers(case.scenario)
    return {tier: model_only(case.uncertainty.of_busy(busy, float(np.max(units)))) for tier, units in workers.items()}


def _capacity(case: Case[Any]) -> Capacity:
    """Return what a layout completes, as peak and as mean rate, with its objectives met and without them."""
    ratio, solution = case.solution.burst_ratio, case.solution
    met = solution.capacity_with(case.objectives)
    based = case.basis.of_capacity()
    limited = _basis_of_objectives(case, met) if float(np.median(met)) < float(np.median(solution.capacity)) else based
    low, middle, high = np.quantile(ratio, (0.05, 0.5, 0.95)).tolist()
    width = Parts(parameter=(high - low) / 2)
    return Capacity(
        peak_tps=with_basis(capacity_of(case), limited),
        sustained_tps=with_basis(
            _bounded(case, met / ratio, 1 / middle), _weakest(limited, "model only") if middle > 1 else limited
        ),
        overload_tps=with_basis(_bounded(case, solution.capacity, 1.0), based),
        burst_ratio=Band(middle, low, high, width, "model only") if high > low else Band.exactly(middle),
        criterion=criterion(case),
    )


_WEAKER: tuple[Basis, ...] = ("measured", "interpolated", "extrapolated", "model only")


def _weakest(*bases: Basis) -> Basis:
    return max(bases, key=_WEAKER.index)


def _basis_of_objectives(case: Case[Any], met: Any) -> Basis:
    """Return the basis of a capacity that objectives limit: the weakest of the capacity and their figures."""
    rate = max(float(np.median(met)), 1.0)
    metrics = (metric for objective in case.objectives for metric in objective.metrics())
    times = (metric for metric in metrics if metric.kind == "duration")
    found = (case.basis.of_latency(metric.subject, metric.statistic, rate) for metric in times)
    return _weakest(case.basis.of_capacity(), *found)


def capacity_of(case: Case[Any]) -> Band:
    """Return the highest peak rate that a layout completes with its objectives met, requests per second.

    Raises
    ------
    InputError
        When an objective of the scenario cannot be read.
    """
    return _bounded(case, case.solution.capacity_with(case.objectives), 1.0)


def _bounded(case: Case[Any], draws: Any, share_of_peak: float) -> Band:
    """Return the band of a rate, at most that share of the highest peak rate of the upper bound."""
    band = case.uncertainty.of_rate(draws)
    if case.upper_bound is None:
        return band
    return _at_most(band, capacity_of(case.upper_bound).high * share_of_peak)


def criterion(case: Case[Any]) -> str:
    """Return what "sustains" means, in words."""
    rate = "peak rate" if isinstance(case.solution.analysis.arrivals, Bursty) else "rate"
    words = f"highest {rate} with a drop rate of at most {MAX_DROP_RATE:.1%} and no backlog that grows"
    if case.objectives:
        words += " and " + ", ".join(objective.text for objective in case.objectives)
    return words


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


def _latency(case: Case[Any], figures: Figures, question: Question) -> tuple[dict[str, Latency], list[str]]:
    """Return latencies by class, with notes on how they were obtained."""
    accuracy = case.system.notes.accuracy
    if question.engine == "analytic":
        return solved_latency(figures, case.uncertainty), [accuracy]
    from capplan.planner.predict.simulated_latency import (  # not needed for the analytic solver
        SimulationSettings,
        simulated_latency,
    )

    found = simulated_latency(
        case,
        figures,
        SimulationSettings(case.seed, question.engine, question.budget_s or case.system.budget_s, question.progress),
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


def _notes(case: Case[Any], capacity: Band, figures: Figures, of_latency: list[str]) -> tuple[str, ...]:
    its = case.system.notes
    return (its.rates, *its.notes(case, capacity, figures), *of_latency)


def _cautions(case: Case[Any], capacity: Band, figures: Figures) -> tuple[str, ...]:
    return (*_overload_caution(figures), *case.system.notes.cautions(case, capacity, figures))


def _evidence(case: Case[Any], notes: tuple[str, ...], cautions: Sequence[str]) -> EvidenceSummary:
    found = case.extrapolation
    why, idle = found.why, "; ".join(each.words for each in found.without_effect(case.responses))
    if idle:
        why += f" This moves no figure and widens no band: {idle}."
    claims = case.system.notes.claims(case.scenario)
    return EvidenceSummary(case.system.citations(), found.basis, why, claims, tuple(cautions), notes)


def _overload_caution(figures: Figures) -> tuple[str, ...]:
    lost = float(np.median(figures.point.drop_rate))
    if lost <= MAX_DROP_RATE or figures.bounded:
        return ()
    if figures.analysis.pool is None:
        return ("The offered rate exceeds the capacity: queues and latency grow without bound.",)
    return (f"Overload: about {share(lost)} of the requests are dropped, and latencies are of those that complete.",)
