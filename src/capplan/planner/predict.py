"""`predict`: what a layout carries, how fast it answers, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass, fields
from importlib.metadata import version
from typing import Any, Literal

import numpy as np

from capplan.calibration.evidence_table import load as load_evidence
from capplan.calibration.evidence_table import select, sources
from capplan.calibration.fitted_file import Fitted
from capplan.calibration.fitted_file import load as load_fitted
from capplan.calibration.openprovider_figures import LARGEST_LOSS, experiments
from capplan.models.openprovider import REPORTED
from capplan.models.scenario import Scenario
from capplan.planner.extrapolation import Reach, reach
from capplan.planner.objective import Lookup, Metric, Objective, figures_of, parse
from capplan.planner.outage import outages
from capplan.planner.prediction import STATISTICS, Band, Basis, Capacity, Latency, ObjectiveVerdict, Parts, Prediction
from capplan.planner.simulation_effort import DEFAULT_BUDGET_S, check_budget
from capplan.planner.system_figures import Figures, Layout
from capplan.planner.uncertainty import Uncertainty, estimated
from capplan.simulator.draws import RunsDone

RESOURCES = ("cassandra", "cassandra-storage", "front")
_APPROXIMATE = (
    "Percentiles are approximations, within about 7 % of simulation up to 85 % of capacity and too high above; "
    "--engine compiled simulates them."
)
_JUDGED = (
    "Objectives at the offered rate are judged by the simulated latencies; the capacity that meets them is found with "
    "the analytic approximations."
)
DEFAULT_SHARE = 0.8  # of the capacity, where no rate is given

Engine = Literal["compiled", "analytic", "simpy"]


@dataclass(frozen=True)
class _Case:
    """Everything that a prediction is put together from."""

    scenario: Scenario
    fitted: Fitted
    layout: Layout
    uncertainty: Uncertainty
    reach: Reach
    objectives: tuple[Objective, ...]
    engine: Engine


def predict(
    scenario: Scenario,
    *,
    seed: int = 1,
    engine: Engine = "compiled",
    budget_s: float = DEFAULT_BUDGET_S,
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
    budget_s : float
        How long may be simulated, in seconds of a nominal machine with two threads, whatever this one's speed: the
        same budget gives the same figures. The more, the narrower the simulation's part of the bands. See
        `capplan.planner.simulation_effort` for the rule. The analytic solver needs none.
    progress : function, optional
        Told how many of how many simulation runs have ended; by several threads, one at a time.
    fitted : Fitted, optional
        The calibration to use; the system's own when left out.

    Raises
    ------
    InputError
        When an objective cannot be read, the system is not calibrated, or the budget is not above 0 and at most 1 h.
    """
    check_budget(budget_s)
    fitted = fitted or load_fitted(scenario.system)
    objectives = tuple(parse(text, tuple(REPORTED), RESOURCES) for text in scenario.slo)
    far = reach(scenario, experiments())
    layout = Layout(scenario, fitted.values())
    case = _Case(scenario, fitted, layout, estimated(fitted, far.distance, seed), far, objectives, engine)
    capacity = _capacity(case)
    offered = float(np.max(scenario.tps)) if scenario.tps is not None else rate_at(DEFAULT_SHARE, capacity.value)
    figures = layout.at(offered)
    latency, notes = _latency(case, figures, budget_s, progress)
    prediction = Prediction(
        scenario=given_fields(scenario),
        capacity_tps=capacity,
        bottleneck=layout.bottleneck,
        offered_tps=offered,
        offered_source="default" if scenario.tps is None else "given",
        latency_ms=latency,
        utilisation={name: case.uncertainty.of_share(figures.utilisation(name)) for name in layout.resources},
        busy_workers={"front": case.uncertainty.of_busy(figures.busy_workers(), scenario.front_workers)},
        outages=outages(scenario, fitted.values(), offered, case.uncertainty),
        evidence=_basis(case, capacity, figures, notes),
        engine=engine,
        seed=seed,
        version=version("capplan"),
    )
    return _judged(prediction, figures, objectives)


def default_rate(scenario: Scenario, fitted: Fitted) -> float:
    """Return the peak rate at which a layout is looked at when none is given: 80 % of its capacity, the median.

    Raises
    ------
    InputError
        When an objective of the scenario cannot be read.
    """
    objectives = tuple(parse(text, tuple(REPORTED), RESOURCES) for text in scenario.slo)
    return rate_at(DEFAULT_SHARE, float(np.median(Layout(scenario, fitted.values()).capacity_with(objectives))))


def rate_at(share: float, capacity: float) -> float:
    """Return a share of the capacity, rounded to tens as people say it; a trickle when nothing is carried."""
    return max(round(share * capacity, -1), 1.0)


def _capacity(case: _Case) -> Capacity:
    band = case.uncertainty.of_rate(case.layout.capacity_with(case.objectives))
    criterion = f"highest peak rate with loss of at most {LARGEST_LOSS:.1%} and no backlog that grows"
    if case.objectives:
        criterion += " and " + ", ".join(objective.text for objective in case.objectives)
    return Capacity(value=band.value, low=band.low, high=band.high, parts=band.parts, criterion=criterion)


def _latency(
    case: _Case, figures: Figures, budget_s: float, progress: RunsDone | None
) -> tuple[dict[str, Latency], list[str]]:
    """Return latencies by class, with notes on how they came about."""
    if case.engine == "analytic":
        return {name: _class_latency(case, figures, name) for name in REPORTED}, [_APPROXIMATE]
    from capplan.planner.simulated import Plan, simulated_latency  # not needed for the analytic solver

    plan = Plan(case.uncertainty.seed, case.engine, budget_s, progress)
    found = simulated_latency(case.scenario, case.fitted.values(), figures, case.uncertainty, plan)
    return found.latency_ms, [found.note, *([_JUDGED] if case.objectives else [])]


def _class_latency(case: _Case, figures: Figures, name: str) -> Latency:
    bands = {each: case.uncertainty.of_time(figures.latency_s(name, each) * 1e3) for each in STATISTICS}
    return Latency(**bands)


def _judged(prediction: Prediction, figures: Figures, objectives: tuple[Objective, ...]) -> Prediction:
    known: Lookup = figures_of(prediction)

    def lookup(metric: Metric) -> Band | None:
        if metric.name != "loss":
            return known(metric)
        low, middle, high = (float(value) for value in np.quantile(figures.point.loss, [0.05, 0.5, 0.95]))
        return Band(middle, low, high, Parts(parameter=(high - low) / 2))

    verdicts: tuple[ObjectiveVerdict, ...] = tuple(objective.evaluate(lookup) for objective in objectives)
    values = {field.name: getattr(prediction, field.name) for field in fields(prediction)}
    return Prediction(**{**values, "objectives": verdicts})


def _basis(case: _Case, capacity: Capacity, figures: Figures, of_latency: list[str]) -> Basis:
    cited = tuple(source.citation for source in sources() if case.scenario.system in source.systems)
    notes = (*_overload_note(figures), *_notes(case, capacity, of_latency))
    return Basis(cited, case.reach.verdict, case.reach.why, _claims(case.scenario), notes)


def _claims(scenario: Scenario) -> tuple[str, ...]:
    """Return what the document says without a measurement, to stand beside the prediction."""
    rows = select(load_evidence("openprovider"), quantity="incoming_rate", dcs=scenario.dcs, proxy=False, ldap=False)
    if not rows or scenario.cass_nodes == 3:
        return ()
    best = max(row.value for row in rows)
    linear = best * scenario.cass_nodes / 3
    return (
        f"The document expects capacity to grow in proportion to the Cassandra nodes: {best:,.0f} TPS on 3 nodes per "
        f"data centre would become {linear:,.0f} on {scenario.cass_nodes}. Nobody measured it.",
    )


def _overload_note(figures: Figures) -> tuple[str, ...]:
    lost = float(np.median(figures.point.loss))
    if lost <= LARGEST_LOSS:
        return ()
    return (
        f"At the offered rate about {lost:.1%} of the requests are turned away; the latencies are of those carried. "
        "Beyond capacity queues grow with time: simulated latencies are those of the first seconds at most.",
    )


def _notes(case: _Case, capacity: Capacity, of_latency: list[str]) -> list[str]:
    notes = [
        "Rates are peak rates over all data centres, as the document counts them; latencies are means over bursts and "
        "the time between them."
    ]
    if case.layout.bottleneck == "cassandra-storage":
        notes.append(
            "That the storage path (commit log, flush, compaction) saturates first is a hypothesis: of all tests only "
            "TS4 bears on it, by growing so little over TS3."
        )
    if case.layout.bottleneck != "workers":
        notes.append(_front_note(case.scenario, capacity))
    notes += of_latency
    best, *others = case.fitted.hypotheses
    worse = ", ".join(f"{o.consistency_write}/{o.consistency_read} {o.misfit - best.misfit:+.1f}" for o in others)
    notes.append(
        f"The document names no consistency levels. Its figures fit writes at {best.consistency_write} and reads at "
        f"{best.consistency_read} best (deviance {best.misfit:.1f}; {worse}): weak evidence, from 15 rounded figures."
    )
    if case.objectives:
        notes.append("What is left after an outage is judged by loss and backlog only, not by the objectives.")
    if case.scenario.data_factor == 1:
        notes.append(_production_note(case))
    return notes


def _front_note(scenario: Scenario, capacity: Capacity) -> str:
    seen = max(row.value for row in select(load_evidence("openprovider"), quantity="incoming_rate", scenario="TS1"))
    nodes = scenario.dcs * scenario.front_nodes
    tier = seen * nodes
    text = f"One policing node was seen to carry {seen:,.0f} TPS, so {nodes} carry at least {tier:,.0f}"
    if capacity.high <= tier:
        return text + ": more than Cassandra does."
    return text + "; whether they carry more, up to this band, nobody measured: the policing tier may saturate first."


def _production_note(case: _Case) -> str:
    slower = np.array([3.0, 2.0])  # both at once, as two draws
    times = ("replica_read_s", "mutation_s", "storage_s")
    single = case.fitted.median_values()
    slow = Layout(case.scenario, {**single, **{name: single[name] * slower for name in times}}).capacity
    few, many = (f"{round(float(rate), -2):,.0f}" for rate in slow)
    return (
        "The test's data were young. The document expects times 2 to 3 times higher in production; with Cassandra that "
        f"much slower (--data-factor 3, 2) this layout carries about {few} to {many} TPS."
    )


def given_fields(scenario: Scenario) -> dict[str, Any]:
    """Return the fields of a scenario that say something: what is not given is left out."""
    values = {field.name: getattr(scenario, field.name) for field in fields(scenario)}
    if scenario.rtt is not None:
        values.pop("distance")
    return {name: value for name, value in values.items() if value is not None and value != ()}
