"""`predict`: what a layout carries, how fast it answers, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from importlib.metadata import version
from typing import Literal

import numpy as np

from capplan.calibration.about import About, Case
from capplan.calibration.case.extrapolation import Reach
from capplan.calibration.case.solution import Figures, Layout, resource_of
from capplan.calibration.case.uncertainty import estimated
from capplan.calibration.evidence.table import cited
from capplan.calibration.fit.fitted_file import Fitted
from capplan.calibration.fit.fitted_file import load as load_fitted
from capplan.models.language.scenario import Scenario
from capplan.models.language.traffic import Bursty
from capplan.models.objective import Lookup, Metric, Objective, figures_of, parse
from capplan.models.solver.operating_point import MAX_DROP_RATE
from capplan.planner.predict.budget import check_budget
from capplan.planner.predict.prediction import (
    Band,
    Basis,
    Capacity,
    Latency,
    ObjectiveVerdict,
    Outage,
    Parts,
    Prediction,
)
from capplan.planner.predict.ratio import predicted_ratio
from capplan.planner.predict.solved_latency import solved_latency
from capplan.simulator.experiments.draws import RunsDone
from capplan.systems.abouts import ABOUTS, beyond_measured, reach_of
from capplan.systems.components.encryption_costs import default_values_of, values_of
from capplan.systems.registry import system

_JUDGED = (
    "Objectives at the offered rate are judged by the simulated latencies; the capacity that meets them is found with "
    "the analytic approximations."
)
DEFAULT_SHARE = 0.8  # of the capacity, where no rate is given

Engine = Literal["compiled", "analytic", "simpy"]


@dataclass(frozen=True)
class _Asked:
    """A case with what was asked about it."""

    case: Case
    about: About
    reach: Reach
    objectives: tuple[Objective, ...]
    engine: Engine


def predict(
    scenario: Scenario,
    *,
    seed: int = 1,
    engine: Engine = "compiled",
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
        How long may be simulated, in seconds of a nominal machine with two threads, whatever this one's speed: the
        same budget gives the same figures. The more, the narrower the simulation's part of the bands. See
        `capplan.planner.predict.budget` for the rule. The system's own when left out; none for the analytic solver.
    progress : function, optional
        Told how many of how many simulation runs have ended; by several threads, one at a time.
    fitted : Fitted, optional
        The calibration to use; the system's own when left out.

    Raises
    ------
    InputError
        When an objective cannot be read, the system is not calibrated, or the budget is not above 0 and at most 1 h.
    """
    budget_s = ABOUTS[scenario.system].budget_s if budget_s is None else budget_s
    check_budget(budget_s)
    asked = _asked(scenario, fitted or load_fitted(scenario.system), engine, seed)
    its = system(scenario.system)
    if its.ratios is not None:
        return predicted_ratio(its, asked.about, asked.case, asked.reach)
    return _predicted(asked, budget_s, progress)


def _predicted(asked: _Asked, budget_s: float, progress: RunsDone | None) -> Prediction:
    """Predict a layout whose rates and times are documented."""
    scenario, capacity = asked.case.scenario, _capacity(asked)
    given = scenario.offered_per_s()
    offered = float(np.max(given)) if given is not None else rate_at(DEFAULT_SHARE, capacity.value)
    asked = _at_load(asked, offered)
    case = asked.case
    figures = case.layout.at(offered)
    latency, notes = _latency(asked, figures, budget_s, progress)
    prediction = Prediction(
        scenario=scenario.given(),
        capacity_tps=capacity,
        bottleneck=case.layout.bottleneck,
        offered_tps=offered,
        offered_source="default" if given is None else "given",
        latency_ms=latency,
        utilisation=_utilisation(case, figures),
        busy_workers=_busy_workers(asked, figures),
        outages=_outages(asked, offered),
        session_not_found=asked.about.sessions(case, figures),
        evidence=_basis(asked, capacity, figures, notes),
        engine=asked.engine,
        seed=case.uncertainty.seed,
        version=version("capplan"),
    )
    return _judged(prediction, figures, asked.objectives)


def _bound(asked: _Asked) -> _Asked | None:
    """Return the same question about a layout that surely carries as much or more, where there is one."""
    case, bound = asked.case, asked.about.bounded_by(asked.case.scenario)
    return None if bound is None else _asked(bound, case.fitted, asked.engine, case.uncertainty.seed)


def _at_most(band: Band, highest: float) -> Band:
    return replace(band, low=min(band.low, highest), high=min(band.high, highest))


def _outages(asked: _Asked, offered: float) -> tuple[Outage, ...]:
    """Return what is left, which carries no more than what is left of the layout that bounds this one."""
    found, bound = asked.about.outages(asked.case, offered), _bound(asked)
    if bound is None:
        return found
    return tuple(
        replace(left, capacity_tps=_at_most(left.capacity_tps, more.capacity_tps.high))
        if left.capacity_tps is not None and more.capacity_tps is not None
        else left
        for left, more in zip(found, bound.about.outages(bound.case, offered), strict=True)
    )


def _utilisation(case: Case, figures: Figures) -> dict[str, Band]:
    return {name: case.uncertainty.of_share(figures.utilisation(name)) for name in case.layout.resources}


def _busy_workers(asked: _Asked, figures: Figures) -> dict[str, Band]:
    busy, uncertainty = figures.busy_workers(), asked.case.uncertainty
    workers = asked.about.workers(asked.case.scenario)
    return {tier: uncertainty.of_busy(busy, float(np.max(units))) for tier, units in workers.items()}


def objectives_of(scenario: Scenario) -> tuple[Objective, ...]:
    """Return the objectives of a scenario, read.

    Raises
    ------
    InputError
        When one cannot be read, or speaks of a request class or a resource that the layout does not have.
    """
    if not scenario.slo:
        return ()
    its = system(scenario.system)
    stations = its.network(scenario, default_values_of(scenario), 1.0).stations
    resources = dict.fromkeys(resource_of(station.name) for station in stations)
    return tuple(parse(text, its.asked(scenario), tuple(resources)) for text in scenario.slo)


def _asked(scenario: Scenario, fitted: Fitted, engine: Engine, seed: int) -> _Asked:
    objectives, about = objectives_of(scenario), ABOUTS[scenario.system]
    values, far = values_of(fitted, scenario), reach_of(scenario)
    layout = Layout(scenario, values)
    at_capacity = reach_of(scenario, beyond_measured(scenario, float(np.median(layout.capacity))))
    uncertainty = replace(estimated(fitted, scenario, seed), apart=about.apart(scenario, values)).widened(
        rate=at_capacity.factors(about.widening)["rate"], time=far.factors(about.widening)["time"]
    )
    return _Asked(Case(scenario, fitted, layout, uncertainty), about, far, objectives, engine)


def _at_load(asked: _Asked, offered: float) -> _Asked:
    """Return it with times less sure where the load is above every measured one."""
    far = reach_of(asked.case.scenario, beyond_measured(asked.case.scenario, offered))
    before, now = (each.factors(asked.about.widening)["time"] for each in (asked.reach, far))
    return replace(
        asked, case=replace(asked.case, uncertainty=asked.case.uncertainty.widened(time=now / before)), reach=far
    )


def default_rate(scenario: Scenario, fitted: Fitted) -> float:
    """Return the peak rate at which a layout is looked at when none is given: 80 % of its capacity, the median.

    Raises
    ------
    InputError
        When an objective of the scenario cannot be read.
    """
    capacity = Layout(scenario, values_of(fitted, scenario)).capacity_with(objectives_of(scenario))
    return rate_at(DEFAULT_SHARE, float(np.median(capacity)))


def rate_at(share: float, capacity: float) -> float:
    """Return a share of the capacity, rounded to tens as people say it; a trickle when nothing is carried."""
    return max(round(share * capacity, -1), 1.0)


def _capacity(asked: _Asked) -> Capacity:
    band = asked.case.uncertainty.of_rate(asked.case.layout.capacity_with(asked.objectives))
    rate = "peak rate" if isinstance(asked.case.layout.analysis.traffic.arrivals, Bursty) else "rate"
    bound = _bound(asked)
    if bound is not None:
        band = _at_most(band, _capacity(bound).high)
    criterion = f"highest {rate} with a drop rate of at most {MAX_DROP_RATE:.1%} and no backlog that grows"
    if asked.objectives:
        criterion += " and " + ", ".join(objective.text for objective in asked.objectives)
    return Capacity(value=band.value, low=band.low, high=band.high, parts=band.parts, criterion=criterion)


def _latency(
    asked: _Asked, figures: Figures, budget_s: float, progress: RunsDone | None
) -> tuple[dict[str, Latency], list[str]]:
    """Return latencies by class, with notes on how they came about."""
    case = asked.case
    if asked.engine == "analytic":
        return solved_latency(figures, case.uncertainty), [asked.about.approximate]
    from capplan.planner.predict.simulated_latency import Plan, simulated_latency  # not needed for the analytic solver

    plan = Plan(case.uncertainty.seed, asked.engine, budget_s, progress)
    found = simulated_latency(case.scenario, case.values, figures, case.uncertainty, plan)
    return found.latency_ms, [found.note, *([_JUDGED, asked.about.approximate] if asked.objectives else [])]


def _judged(prediction: Prediction, figures: Figures, objectives: tuple[Objective, ...]) -> Prediction:
    known: Lookup = figures_of(prediction)

    def lookup(metric: Metric) -> Band | None:
        if metric.name != "drop_rate":
            return known(metric)
        low, middle, high = (float(value) for value in np.quantile(figures.point.drop_rate, [0.05, 0.5, 0.95]))
        return Band(middle, low, high, Parts(parameter=(high - low) / 2))

    verdicts: tuple[ObjectiveVerdict, ...] = tuple(objective.evaluate(lookup) for objective in objectives)
    values = {field.name: getattr(prediction, field.name) for field in fields(prediction)}
    return Prediction(**{**values, "objectives": verdicts})


def _basis(asked: _Asked, capacity: Capacity, figures: Figures, of_latency: list[str]) -> Basis:
    case, about = asked.case, asked.about
    notes = (
        *_overload_note(figures),
        *_doubt_note(asked, capacity, figures),
        about.rates,
        *about.notes(case, capacity, figures),
        *of_latency,
    )
    if asked.objectives:
        notes = (*notes, "What is left after an outage is judged by loss and backlog only, not by the objectives.")
    return Basis(cited(case.scenario.system), asked.reach.verdict, asked.reach.why, about.claims(case.scenario), notes)


def _doubt_note(asked: _Asked, capacity: Capacity, figures: Figures) -> tuple[str, ...]:
    """Say how likely the offered rate is not carried, where that is open."""
    offered = float(np.max(figures.peak_rate))
    if not capacity.low < offered <= capacity.value:
        return ()
    chance = asked.case.uncertainty.chance_of_less(asked.case.layout.capacity_with(asked.objectives), offered)
    return (
        f"The offered rate lies inside the band of the capacity: with a chance of about {chance:.0%} it is not "
        "carried. The latencies are those where it is.",
    )


def _overload_note(figures: Figures) -> tuple[str, ...]:
    lost = float(np.median(figures.point.drop_rate))
    if lost <= MAX_DROP_RATE or figures.bounded:
        return ()
    if figures.analysis.pool is None:
        return ("The offered rate is beyond capacity: queues grow with time, and so do latencies.",)
    return (
        f"At the offered rate about {lost:.1%} of the requests are turned away; the latencies are of those carried. "
        "Beyond capacity queues grow with time: simulated latencies are those of the first seconds at most.",
    )
