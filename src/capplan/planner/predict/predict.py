"""`predict`: a layout's throughput and latencies, and how certain they are."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from capplan.answers.number_words import rate, share, signed
from capplan.answers.objective import Metric
from capplan.answers.results import FIRMEST_FIRST, Band, Basis, Capacity, Latency, Outage, Parts
from capplan.answers.verdict import CONFIDENCE, NORMAL, OVERLOAD, check_confidence
from capplan.errors import InputError
from capplan.layout.case import Case
from capplan.layout.components import Machines, Ratios, Simulations
from capplan.layout.fitted_file import Fitted
from capplan.layout.notes import Notes
from capplan.layout.situations import Loss, Losses, losses_of
from capplan.layout.solution import Figures
from capplan.models.language.network import Network
from capplan.models.language.per_dc import per_dc_text
from capplan.models.language.scenario import Scenario, changed
from capplan.models.language.units import FloatArray
from capplan.models.solver.analytic import Analysis
from capplan.models.solver.known_errors import KnownError, known_errors
from capplan.models.solver.operating_point import MAX_DROP_RATE, capacity_per_s, solve
from capplan.planner.conditions import of_prediction, verdict_of
from capplan.planner.predict.capacity import (
    DEFAULT_SHARE,
    Relations,
    at_most,
    capacity_of,
    objectives_at_a_rate,
    peak_and_mean,
    predict_closed,
    rate_at,
)
from capplan.planner.predict.losses import Whole, outages
from capplan.planner.predict.prediction import (
    EvidenceSummary,
    Limit,
    Offered,
    OneMore,
    Prediction,
    latencies_with_basis,
    left_open_at_a_rate,
    model_only,
    with_basis,
)
from capplan.planner.predict.promises import promises
from capplan.planner.predict.simulated_latency import check_budget, solved_latency
from capplan.planner.sustained import Conditions, Judged, Strained
from capplan.simulator.replications import RunsDone
from capplan.systems.registry import resolve

if TYPE_CHECKING:
    from capplan.planner.predict.simulated_latency import SimulatedLatency


_SHARES = (0.5, 0.8)  # of the capacity


def difference(case: Case[Any]) -> dict[str, tuple[float, ...]] | None:
    """Return the increase of mean responses under the alternative assignment of requests to cores.

    Both forms have the same services, at one value of each parameter, and the same rates.

    Parameters
    ----------
    case : Case
        A layout.

    Returns
    -------
    dict of tuples of float, or None
        By reported request class: ratio less 1, at 50 and 80 % of the capacity. None if no station has several servers.
    """
    system, scenario = case.system, case.scenario
    values = system.median_values(case.fitted, scenario)
    compose = system.component(Notes).other_assignment
    other = _otherwise_assigned(system.network(scenario, values, 1.0)) if compose is None else compose(scenario, values)
    if other is None:
        return None
    both = case.layout.middle.analysis, Analysis(other)
    rates = capacity_per_s(both[0], MAX_DROP_RATE) * np.array(_SHARES)[:, None]
    before, after = (_means_s(case, analysis, rates) for analysis in both)
    return {name: tuple(float(each) for each in after[name] / before[name] - 1) for name in before}


def _otherwise_assigned(network: Network) -> Network | None:
    """Return a network with its requests assigned at random, or with one queue if they are so far."""
    some = next((each for each in network.stations if each.servers > 1 and each.rate is None), None)
    return None if some is None else network.with_assignment("pooled" if some.has_lanes else "random")


def _means_s(case: Case[Any], analysis: Analysis, rates: FloatArray) -> dict[str, FloatArray]:
    point = solve(analysis, rates)
    return {name: point.response_s(*case.system.reported[name])[:, 0] for name in case.system.classes(case.scenario)}


def assignment_note(case: Case[Any]) -> tuple[str, ...]:
    """Return a sentence about that increase; none without a station of several servers."""
    found = difference(case)
    if found is None:
        return ()
    half, most = (max((each[place] for each in found.values()), key=abs) for place in range(len(_SHARES)))
    return (
        "How requests are assigned to cores decides how latency grows between idle and full. With a queue for each "
        "core instead of one for all, or the reverse, the mean response of the same services would change by up to "
        f"{signed(half)} at 50 % of the capacity and {signed(most)} at 80 %. {case.system.component(Notes).assignment}",
    )


_MOST_ROUNDS = 4
LEAST_GROWTH, MOST_GROWTH = 0.001, 10.0
"""Growth of a rate in a year; with more, a percent sign is missing."""
_SETTLED = 0.003  # change of the capacity, as a share, below which it is settled
_TRICKLE = 0.02  # share of the capacity at which latencies are simulated if objectives hold at no rate

PredictionEngine = Literal["compiled", "analytic", "simpy"]


@dataclass(frozen=True)
class Question:
    """A question about a case.

    Attributes
    ----------
    engine : str
        What latencies come from.
    budget_s : float or None
        How long to simulate, in seconds of a nominal machine; None: the system's own.
    progress : function or None
        Called with how many of how many simulation runs have ended.
    confidence : float
        Confidence of the verdict, above 0 and below 1.
    lose : tuple of str
        What is lost at once, such as `node,dc2`, one for each outage; empty: what the system proposes.
    growth : float or None
        Growth of the offered rate in a year, as a share.
    """

    engine: PredictionEngine = "compiled"
    budget_s: float | None = None
    progress: RunsDone | None = None
    confidence: float = CONFIDENCE
    lose: tuple[str, ...] = ()
    growth: float | None = None


def predict(  # noqa: PLR0913  # all but the scenario are named, and have a default
    scenario: Scenario,
    *,
    seed: int = 1,
    engine: PredictionEngine = "compiled",
    budget_s: float | None = None,
    progress: RunsDone | None = None,
    fitted: Fitted | None = None,
    confidence: float = CONFIDENCE,
    lose: Sequence[str] = (),
    growth: float | None = None,
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
        `capplan.planner.predict.simulated_latency` for the rule. The system's own when left out; none for the
        analytic solver.
    progress : function, optional
        Called with how many of how many simulation runs have ended; by several threads, one at a time.
    fitted : Fitted, optional
        The calibration to use; the system's own when left out.
    confidence : float
        Probability with which the rate must be carried and the objectives must hold, above 0 and below 1.
    lose : sequence of str
        What is lost at once, such as `node,dc2`, one for each outage, which counts for the verdict; by default what the
        system proposes, which does not.
    growth : float, optional
        Growth of the offered rate in a year, as a share: asks for how long the layout lasts; 0 asks nothing.

    Returns
    -------
    Prediction
        Rates in requests per second, latencies in milliseconds, each with its band and its basis.

    Raises
    ------
    InputError
        When an objective, a loss or the confidence cannot be read, the system is not calibrated, the budget is not
        above 0 and at most 1 h, or growth is asked about without a rate.
    """
    question = Question(engine, budget_s, progress, confidence, tuple(lose), growth)
    return predict_case(resolve(scenario, fitted, seed), question)


def predict_case(case: Case[Any], question: Question) -> Prediction:
    """Predict a resolved case; see `predict`."""
    question = replace(question, lose=tuple(dict.fromkeys(question.lose)), growth=question.growth or None)
    check_budget(case.system.component(Simulations).budget_s if question.budget_s is None else question.budget_s)
    check_confidence(question.confidence)
    if question.growth is not None:
        _check_growth(case, question.growth)
    ratios = case.system.component(Ratios)
    if ratios.of is not None:
        losses_of(question.lose, case.system.component(Losses).kinds, 1)
        return predicted_ratio(case, ratios.of(case.scenario, case.values))
    if case.closed_clients is not None:
        return predict_closed(case, question.lose, question.confidence)
    return _predicted(case, question)


def _check_growth(case: Case[Any], growth: float) -> None:
    if not LEAST_GROWTH <= growth <= MOST_GROWTH:
        raise InputError(f"growth = {growth:.4g} must be from {LEAST_GROWTH:.1%} to {MOST_GROWTH:.0%} a year")
    case.system.component(Ratios).refuse(
        f"growth is of a rate, and {case.system.name} is documented as ratios only: leave it out"
    )
    if case.given_per_s is None:
        raise InputError("growth starts from the rate of today, an open one: add it, such as --tps 5000")


def predicted_ratio(case: Case[Any], draws: Mapping[str, FloatArray]) -> Prediction:
    """Predict a system that is documented as ratios only: its throughput relative to a reference.

    The reference that was asked about comes first. No capacity, latency or outage: nothing absolute is documented.
    """
    basis, ratios = case.extrapolation.basis, case.system.component(Ratios)
    return Prediction(
        system=case.system.name,
        layout=case.system.layout(case.scenario, case.values),
        scenario=case.scenario.given(),
        throughput_ratios={
            reference: with_basis(case.uncertainty.of_rate(each), basis) for reference, each in draws.items()
        },
        evidence=_evidence(
            case,
            (case.system.component(Notes).rates, *ratios.notes(case.scenario, case.fitted)),
            ratios.cautions,
        ),
        engine="analytic",
        seed=case.seed,
        version=version("capplan"),
    )


def _predicted(case: Case[Any], question: Question) -> Prediction:
    """Predict a layout with documented rates and times."""
    _ = case.objectives  # refuse one that cannot be read before anything is solved
    losses = losses_of(question.lose, case.system.component(Losses).kinds, getattr(case.scenario, "dcs", 1))
    limit, given = capacity_limit(case, question), case.given_per_s
    capacity, relations, near = limit
    rate = given if given is not None else limit.default_rate
    case, figures, latency, at_rate, notes = solved_at(case, rate, question)
    lost = (Conditions(NORMAL), *map(Conditions, question.lose, losses))
    judged = Judged(case, lost, rate, question.confidence, given=given is not None)
    if question.engine != "analytic":
        judged.simulate(case.seed, {NORMAL: at_rate})
    after = _outages(Whole(case, figures, latency, relations, near, question.confidence), losses, judged)
    judged_verdict = verdict_of(judged) if given is not None or case.objectives else None
    reported = getattr(case.scenario, "gc", None) is not None  # pauses of a node of the user
    prediction = Prediction(
        system=case.system.name,
        layout=case.system.layout(case.scenario, case.values),
        scenario=case.scenario.given(),
        verdict=judged_verdict,
        conditions=of_prediction(case, rate, judged_verdict),
        capacity=_based(case, capacity),
        limits=_limits(case),
        one_more=tuple(_one_more(case, capacity)),
        offered=_offered(case, figures),
        lasts_months=_lasts(capacity.peak_tps, after if losses else (), rate, question.growth),
        latency_ms=latencies_with_basis(latency, case.basis, rate),
        promises=promises(figures, at_rate, case.uncertainty, question.confidence),
        tails_guessed=() if figures.pausing is None or reported else ("GC pauses",),
        tails_not_modelled=case.system.component(Notes).tails_not_modelled(case.scenario),
        solver_errors=_solver_errors(case, figures) if question.engine == "analytic" else (),
        utilisation=utilisation(case, figures, rate),
        busy_workers=_busy_workers(case, figures),
        outages=after,
        session_not_found=case.system.component(Notes).sessions_not_found(case, figures),
        evidence=_evidence(
            case, _notes(case, capacity.peak_tps, figures, notes), cautions(case, capacity.peak_tps, figures)
        ),
        engine=question.engine,
        seed=case.seed,
        version=version("capplan"),
    )
    return _with_objectives(prediction, judged, figures)


def _lasts(capacity: Band, after: Sequence[Outage], rate_per_s: float, growth: float | None) -> Band | None:
    """Return the months until a growing rate reaches the least capacity, also after the losses that were asked about.

    They are 0 where it is above that today. An answer that does not say what a loss leaves gives no months.
    """
    asked = [each.capacity_tps for each in after if each.risk is not None]
    if growth is None or None in asked:
        return None
    least = min((capacity, *(each for each in asked if each is not None)), key=lambda each: each.value)
    factors = (each / rate_per_s for each in (least.value, least.low, least.high))
    value, low, high = (12 * math.log(max(each, 1.0)) / math.log1p(growth) for each in factors)
    return Band(value, low, high)


def _with_objectives(prediction: Prediction, judged: Judged, figures: Figures) -> Prediction:
    """Return the prediction with a verdict on each objective, beside the figures that it shows."""
    if not judged.case.objectives:
        return prediction
    risks = judged.risks(judged.strains[NORMAL])

    def lookup(metric: Metric) -> Band | None:
        return _band(figures.drop_rate) if metric.name == "drop_rate" else prediction.figure(metric)

    found = [each.judged(lookup, risks[each.text], judged.confidence) for each in judged.case.objectives]
    return replace(prediction, objectives=tuple(found))


def _outages(whole: Whole, losses: Sequence[Loss], judged: Judged) -> tuple[Outage, ...]:
    """Return what each loss leaves; a requested loss has the risk that the verdict counts."""
    if not losses:
        return outages(whole)
    found: list[Outage] = []
    for loss, strain in zip(losses, list(judged.strains.values())[1:], strict=True):
        first, *lowered = outages(whole, (loss,))
        its = judged.situation(strain)
        found += [replace(first, risk=its.risk, answer=its.answer), *lowered]
    return tuple(found)


def _solver_errors(case: Case[Any], figures: Figures) -> tuple[KnownError, ...]:
    """Return known errors of the solver; closed forms have none."""
    if figures.closed is not None:
        return ()
    load = float(np.median(figures.peak_rate)) / float(np.median(case.solution.capacity))
    return known_errors(figures.analysis, load)


def _offered(case: Case[Any], figures: Figures) -> Offered:
    rate = float(np.max(figures.peak_rate))
    mean = rate / case.solution.burst_ratio
    return Offered(
        peak_tps=rate,
        mean_tps=float(np.median(mean)),
        source="default" if case.given_per_s is None else "given",
        overload_risk=Strained(case, Conditions(NORMAL), rate).risks()[OVERLOAD],
        throughput_tps=model_only(_throughput(case, figures, mean)),
        drop_rate=model_only(_band(figures.drop_rate)),
    )


def _throughput(case: Case[Any], figures: Figures, offered: FloatArray) -> Band:
    """Return the completed part of the offered mean rate: all of it below a repeated load test's capacity."""
    error = case.uncertainty.repeated_rate(np.ones(offered.shape))
    carried_whole = np.max(figures.peak_rate) <= case.solution.capacity * error
    most = np.maximum(figures.throughput_per_s, case.solution.capacity / case.solution.burst_ratio)
    repeated = np.where(carried_whole, offered, np.minimum(offered, most * error))
    value = float(np.median(figures.throughput_per_s))
    low, high = np.quantile(repeated, (0.05, 0.95)).tolist()
    # The mean of an offered peak rate differs by draw as bursts do.
    return at_most(Band(value, min(low, value), max(high, value)), float(np.median(offered)))


def _band(draws: FloatArray) -> Band:
    """Return the band of a share over the draws of the parameters."""
    low, middle, high = np.quantile(draws, (0.05, 0.5, 0.95)).tolist()
    return Band(middle, low, high, Parts(parameter=(high - low) / 2))


def _limits(case: Case[Any]) -> tuple[Limit, ...]:
    """Return the resources that limit the capacity, in the order of saturation."""
    solution, order = case.solution, dict.fromkeys((case.solution.bottleneck, *case.solution.resources))
    known = {name: model_only(_band(solution.utilisation_at_capacity(name))) for name in solution.resources}
    return tuple(
        Limit(
            resource=name,
            name=case.system.component(Notes).resource_name(case.scenario, name),
            assumed=name in case.system.component(Notes).assumed,
            utilisation_at_capacity=known.get(name),
        )
        for name in order
    )


def _one_more(case: Case[Any], capacity: Capacity) -> Iterator[OneMore]:
    """Yield the capacity with one more machine of each kind in each data centre, if machines limit it."""
    if capacity.peak_tps.value < capacity.overload_tps.value:
        return
    for name in case.system.component(Machines).sized:
        number = getattr(case.scenario, name)
        if number is None:
            continue
        more = tuple(each + (each > 0) for each in number) if isinstance(number, tuple) else number + 1
        try:
            with_more = case.changed(changed(case.scenario, **{name: more}))
        except InputError:  # such as more machines than the system can have
            continue
        if case.fitted.table is not None:  # what its rows say of this layout may not hold for the larger one
            carries = capacity_of(with_more).value
        else:
            carries = capacity.peak_tps.value * float(
                with_more.layout.middle.capacity[0] / case.layout.middle.capacity[0]
            )
        yield OneMore(field=name, value=per_dc_text(more), capacity_tps=carries)


def utilisation(case: Case[Any], figures: Figures, rate: float) -> Mapping[str, Band]:
    """Return the share of busy servers of each resource at a rate."""
    bands = {name: case.uncertainty.of_share(figures.utilisation(name)) for name in case.solution.resources}
    return {name: with_basis(band, case.basis.of_utilisation(name, rate)) for name, band in bands.items()}


def _busy_workers(case: Case[Any], figures: Figures) -> dict[str, Band]:
    busy, workers = figures.busy_workers(), case.system.component(Machines).workers(case.scenario)
    return {tier: model_only(case.uncertainty.of_busy(busy, float(np.max(units)))) for tier, units in workers.items()}


class CapacityLimit(NamedTuple):
    """The capacity of a layout, without the basis of each figure, and the case that has this capacity.

    Attributes
    ----------
    capacity : Capacity
        The capacity.
    relations : mapping
        Simulated over analytic latencies near the capacity.
    near : Case
        The layout, offered its capacity.
    """

    capacity: Capacity
    relations: Relations
    near: Case[Any]

    @property
    def default_rate(self) -> float:
        """The peak rate to evaluate when none is given, requests per second."""
        highest = self.capacity.peak_tps.value or self.capacity.overload_tps.value  # where no rate meets the objectives
        return rate_at(DEFAULT_SHARE, highest)


def capacity_limit(case: Case[Any], question: Question) -> CapacityLimit:
    """Return the capacity and its case, with simulated-to-analytic latency ratios if objectives limit it.

    Where latencies are simulated, they are simulated at the capacity, too, until it stays the same: an objective that
    limits it is then at its limit in the table of a prediction at this rate.
    """
    found = CapacityLimit(peak_and_mean(case), {}, case)
    timed = [each for each in objectives_at_a_rate(case) if any(m.kind == "duration" for m in each.metrics())]
    if not timed or question.engine == "analytic":
        return found
    for _ in range(_MOST_ROUNDS):
        before = found.capacity.peak_tps.value
        rate = max(before, _TRICKLE * float(np.median(case.solution.capacity)))
        near = case.at(rate)
        relations = _simulated(near, near.solution.at(rate), question).relations
        found = CapacityLimit(peak_and_mean(near, relations), relations, near)
        if abs(found.capacity.peak_tps.value - before) <= _SETTLED * before:
            break
    return found


def _based(case: Case[Any], capacity: Capacity) -> Capacity:
    """Return a capacity with the basis of each figure."""
    plain, peak = case.basis.of_capacity(), capacity.peak_tps.value
    limited = _basis_of_objectives(case, peak) if peak < capacity.overload_tps.value else plain
    mean: Basis = "model only" if capacity.burst_ratio.value > 1 else limited
    varied = capacity.burst_ratio.high > capacity.burst_ratio.low
    return replace(
        capacity,
        peak_tps=with_basis(capacity.peak_tps, limited),
        mean_tps=with_basis(capacity.mean_tps, mean),
        overload_tps=with_basis(capacity.overload_tps, plain),
        burst_ratio=model_only(capacity.burst_ratio) if varied else capacity.burst_ratio,
    )


def _basis_of_objectives(case: Case[Any], capacity: float) -> Basis:
    """Return the basis of a capacity that objectives limit: the weakest basis of the capacity and their figures."""
    rate = max(capacity, 1.0)
    metrics = (metric for objective in case.objectives for metric in objective.metrics())
    times = (metric for metric in metrics if metric.kind == "duration")
    found = (case.basis.of_latency(metric.subject, metric.statistic, rate) for metric in times)
    return max((case.basis.of_capacity(), *found), key=FIRMEST_FIRST.index)


class AtRate(NamedTuple):
    """A layout at a peak rate: latencies by class (ms), simulated-to-analytic relations, and notes on both."""

    case: Case[Any]
    figures: Figures
    latency_ms: dict[str, Latency]
    relations: Relations
    notes: list[str]


def solved_at(case: Case[Any], rate_per_s: float, question: Question) -> AtRate:
    """Return a layout at a peak rate, requests per second."""
    case = case.at(rate_per_s)
    figures = case.solution.at(rate_per_s)
    if question.engine == "analytic":
        return AtRate(
            case, figures, solved_latency(figures, case.uncertainty), {}, [case.system.component(Notes).accuracy]
        )
    found = _simulated(case, figures, question)
    return AtRate(case, figures, found.latency_ms, found.relations, [found.note])


def _simulated(case: Case[Any], figures: Figures, question: Question) -> SimulatedLatency:
    from capplan.planner.predict.simulated_latency import SimulationSettings, simulated_latency  # slow to import

    if question.engine == "analytic":
        raise ValueError("the analytic solver does not simulate")
    budget_s = case.system.component(Simulations).budget_s if question.budget_s is None else question.budget_s
    return simulated_latency(case, figures, SimulationSettings(case.seed, question.engine, budget_s, question.progress))


def _notes(case: Case[Any], capacity: Band, figures: Figures, of_latency: list[str]) -> tuple[str, ...]:
    its = case.system.component(Notes)
    return (its.rates, *its.further(case, capacity, figures), *assignment_note(case), *of_latency)


def cautions(case: Case[Any], capacity: Band, figures: Figures) -> tuple[str, ...]:
    """Return what a reader must know before using the figures at a rate, one sentence each."""
    left_open, overload = left_open_at_a_rate(case, figures), _overload_caution(figures)
    first = (*left_open, *overload) if case.fitted.clusters else (*overload, *left_open)
    return (*first, *case.system.component(Notes).cautions(case, capacity, figures))


def _evidence(case: Case[Any], notes: tuple[str, ...], cautions: Sequence[str]) -> EvidenceSummary:
    found = case.extrapolation
    why, idle = found.why, "; ".join(each.words for each in found.without_effect(case.layout.responses))
    if idle:
        why += f" This moves no figure and widens no band: {idle}."
    claims, citations = case.system.component(Notes).claims(case), tuple(each.citation for each in case.system.sources)
    return EvidenceSummary(citations, found.basis, why, claims, tuple(cautions), notes)


def _overload_caution(figures: Figures) -> tuple[str, ...]:
    if float(np.median(figures.point.drop_rate)) <= MAX_DROP_RATE or figures.bounded:
        return ()
    mean = float(np.median(figures.peak_rate)) / float(np.median(figures.peak_ratio))
    done = f"Overload: {rate(float(np.median(figures.throughput_per_s)))} of {rate(mean)} TPS complete"
    if not np.any(figures.drop_rate):
        return (f"{done}. Queues and latency grow without bound.",)
    sessions = any(len(chain.classes) > 1 for chain in figures.analysis.chains)
    lost = f"{share(float(np.median(figures.drop_rate)))} of {'what is sent' if sessions else 'the requests'}"
    ends = ", and what is dropped ends its session" if sessions else ""
    return (f"{done}: {lost} {'is' if sessions else 'are'} dropped{ends}. Latencies are of the rest.",)
