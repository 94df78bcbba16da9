"""`predict` for a network in the language: capacity, bottleneck and latency, with the bands of its simulation."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from typing import Any

import numpy as np

from capplan.layout.solution import kind_of
from capplan.models.errors import InputError, RefusedError
from capplan.models.language.network import Network
from capplan.models.language.traffic import Bursty, Closed, Open, Throttled, Timeline, Trace
from capplan.models.number_words import share
from capplan.models.objective import Metric, Objective, chance_of_less, parse, scaled
from capplan.models.results import STATISTICS, Band, Capacity, Parts
from capplan.models.solver.operating_point import MAX_DROP_RATE
from capplan.models.verdict import CONFIDENCE, check_confidence
from capplan.planner.predict.predict import PredictionEngine
from capplan.planner.predict.prediction import EvidenceSummary, Limit, Offered, Prediction, judged_by_bands, model_only
from capplan.planner.predict.simulated_latency import check_budget
from capplan.planner.predict_network.network_figures import (
    REPLICATIONS,
    NetworkFigures,
    SimulatedNetwork,
    SolvedNetwork,
    Source,
)
from capplan.planner.predict_network.network_question import NetworkQuestion
from capplan.planner.simulate.simulate import of_network
from capplan.simulator.experiments.replications import RunsDone

_CLOSE = 1.005  # ratio of the rates that bracket the capacity
_SPREAD = 1.01  # step to the first rate beyond the bracket where that is still in doubt; then twice as far, and so on
_DOUBLINGS = 5
_FIRST_STEP, _LARGEST_STEP = 1.1, 4.0
_FURTHEST = 1e3  # ratio of a rate to the first one, at most


@dataclass
class _Search:
    """Tries rates and keeps what they showed.

    Attributes
    ----------
    source
        The figures at a rate.
    objectives
        What must be met, too.
    ceiling
        Rate that is known to be the highest sustained one; below it, only the objectives are in question.
    """

    source: Source
    objectives: Sequence[Objective]
    ceiling: float = math.inf
    sure: dict[bool, list[float]] = field(default_factory=lambda: {True: [], False: []})

    def sustained(self, rate: float) -> bool:
        """Return whether the figures at a rate meet the criterion; remember it if their bands agree."""
        if rate >= self.ceiling:
            self.sure[False].append(rate)
            return False
        figures = self.source.at(rate)
        failed = [objective for objective in self.objectives if objective.met(figures.figure) is False]
        known = self.ceiling < math.inf
        sustained, surely = figures.sustained or known, figures.surely or known
        met = sustained and not failed
        if met:
            certain = surely and all(objective.sure(figures.figure) for objective in self.objectives)
        else:
            certain = (not sustained and surely) or any(objective.sure(figures.figure) for objective in failed)
        if certain:
            self.sure[met].append(rate)
        return met


def highest_rate(source: Source, start: float, objectives: Sequence[Objective] = (), ceiling: float = math.inf) -> Band:
    """Return the highest mean rate with at most `MAX_DROP_RATE`, no growing backlog and the objectives met.

    Parameters
    ----------
    source : Source
        The figures at a rate.
    start : float
        Where to begin, requests per second.
    objectives : sequence of Objective
        Objectives that speak of figures at a rate.
    ceiling : float
        The highest sustained rate whatever the objectives, if it is known.

    Returns
    -------
    Band
        From the highest rate that surely meets the criterion to the lowest that surely does not, requests per second.
        It is 0 where no rate does.

    Raises
    ------
    InputError
        When no rate is too high: nothing limits the capacity.
    """
    search = _Search(source, objectives, ceiling)
    low, high = _bracket(search, start)
    if not low:
        return Band(0.0, 0.0, 0.0, basis="model only")
    while high / low > _CLOSE:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if search.sustained(middle) else (low, middle)
    value = math.sqrt(low * high) if high < ceiling else min(high, ceiling)
    least, most = _end(search, value, True), _end(search, value, False)
    least, most = min(least, value), min(max(most, value), ceiling)
    return Band(value, least, most, Parts(simulation=(most - least) / 2 if most < math.inf else None), "model only")


def _bracket(search: _Search, start: float) -> tuple[float, float]:
    """Return a sustained rate and one that is not; 0 for the first where none is."""
    rate, step = start, _FIRST_STEP
    upwards = search.sustained(rate)
    while start / _FURTHEST < rate < start * _FURTHEST:
        following = rate * step if upwards else rate / step
        if search.sustained(following) != upwards:
            return (rate, following) if upwards else (following, rate)
        rate, step = following, min(step**2, _LARGEST_STEP)
    if not upwards:
        return 0.0, rate
    raise InputError(
        f"nothing limits the rate up to {rate:.3g} per second, so no capacity is predicted: give a station a "
        "demand, or run `capplan simulate`"
    )


def _end(search: _Search, value: float, sustained: bool) -> float:
    """Return the rate nearest to a value that surely meets the criterion, or surely does not; tries some beyond."""
    sign = -1 if sustained else 1
    for doubling in range(_DOUBLINGS + 1):
        beyond = [rate for rate in search.sure[sustained] if (rate <= value if sustained else rate >= value)]
        if beyond:
            return max(beyond) if sustained else min(beyond)
        if doubling < _DOUBLINGS:
            search.sustained(value * _SPREAD ** (sign * 2**doubling))
    return 0.0 if sustained else math.inf


DEFAULT_BUDGET_S = 1.0
_BUSY = 0.8  # utilisation of the busiest station below which a pool is the bottleneck
_START = 0.9  # of a bound on the capacity: the first rate that is tried
_BANDS = "Bands hold the simulation's error only: there is no calibration, and no model error is known."
_NO_BANDS = "Figures have no bands: nothing is simulated, there is no calibration, and no model error is known."


def predict_network(  # noqa: PLR0913  # all but the network are named, and have a default
    network: Network,
    *,
    file: str = "",
    question: NetworkQuestion | None = None,
    seed: int = 1,
    engine: PredictionEngine = "compiled",
    budget_s: float | None = None,
    progress: RunsDone | None = None,
    confidence: float = CONFIDENCE,
) -> Prediction:
    """Predict capacity, bottleneck, latency and utilisation of a network of one's own.

    Parameters
    ----------
    network : Network
        The network; its traffic is what is offered. The events of its timeline are left out.
    file : str
        Where it comes from, in the user's words.
    question : NetworkQuestion, optional
        Another rate, and objectives.
    seed : int
        Seed of every random number.
    engine : str
        `compiled` or `simpy` simulate; `analytic` solves, without timeouts and retries.
    budget_s : float, optional
        How long to simulate, in seconds of a nominal machine; see `capplan.planner.predict.simulated_latency`.
    progress : function, optional
        Called with how many of about how many rates are simulated.
    confidence : float
        Probability with which the rate must be carried and the objectives must hold, above 0 and below 1.

    Returns
    -------
    Prediction
        Rates in requests per second, latencies in milliseconds. Of closed traffic, the capacity is the throughput of
        its clients, and nothing is offered.

    Raises
    ------
    InputError
        When the traffic has no rate or plays a trace, an objective, the confidence or the budget cannot be read, or
        nothing limits the rate.
    RefusedError
        When the analytic solver is asked for, and does not support a construct.
    """
    asked = question or NetworkQuestion()
    budget_s = DEFAULT_BUDGET_S if budget_s is None else budget_s
    check_budget(budget_s)
    check_confidence(confidence)
    network = _at_rate(network, asked)
    objectives = _objectives(network, asked.slo)
    solved, why_not = _solved(network, engine)
    source: Source
    if engine == "analytic":
        if solved is None:
            raise RefusedError(why_not)
        source = solved
    else:
        source = SimulatedNetwork(
            replace(network, timeline=Timeline()),
            seed=seed,
            engine=engine,
            budget_s=budget_s,
            processes=os.cpu_count() or 1,
            progress=progress,
        )
    known = solved if isinstance(network.traffic, Open) and (engine == "analytic" or not why_not) else None
    answer = _found(network, source, known, objectives)
    prediction = Prediction(
        system=network.name,
        layout=_layout(network),
        scenario=_scenario(network, file, asked),
        capacity=_capacity(answer),
        limits=_limits(answer.at_capacity),
        offered=_offered(answer),
        latency_ms=answer.figures.latency_ms,
        solver_errors=source.known_errors(answer.mean_tps) if isinstance(source, SolvedNetwork) else (),
        utilisation=answer.figures.utilisation,
        busy_workers=answer.figures.busy_units,
        evidence=EvidenceSummary(
            (),
            "model only",
            _NO_BANDS if engine == "analytic" else _BANDS,
            cautions=_cautions(answer, source, why_not),
            notes=_notes(answer, source, why_not),
        ),
        engine=engine,
        seed=seed,
        version=version("capplan"),
    )
    left_out = ("timeouts and retries",) if why_not and isinstance(source, SolvedNetwork) else ()
    return judged_by_bands(
        prediction, objectives, lambda metric: _figure(metric, prediction, answer.figures), confidence, left_out
    )


def _figure(metric: Metric, prediction: Prediction, figures: NetworkFigures) -> Band | None:
    return prediction.peak_tps if metric.name == "capacity" else figures.figure(metric)


def _at_rate(network: Network, asked: NetworkQuestion) -> Network:
    """Return the network at the rate that is asked for.

    Raises
    ------
    InputError
        When it has no steady state, or no request comes.
    """
    traffic = network.traffic
    if isinstance(traffic, Open) and isinstance(traffic.arrivals, Trace):
        raise InputError(
            f"{network.name!r} plays a trace of arrivals once, so it has no steady state to predict: run "
            "`capplan simulate` instead"
        )
    network = of_network(network, None if asked.tps is None else float(np.max(asked.tps))).network
    traffic = network.traffic
    if not isinstance(traffic, Closed) and not np.max(traffic.rate_per_s) > 0:
        raise InputError(f"the traffic of {network.name!r} has rate_per_s = 0: give a rate above 0, or --tps")
    return network


def _objectives(network: Network, texts: Sequence[str]) -> tuple[Objective, ...]:
    classes = [each.name for each in network.classes]
    places = (*(each.name for each in network.stations), *(each.name for each in network.pools))
    resources = tuple(dict.fromkeys(map(kind_of, places)))
    return tuple(parse(text, classes, resources) for text in texts)


def _solved(network: Network, engine: str) -> tuple[SolvedNetwork | None, str]:
    """Return the network as the analytic solver has it, and why that is not the whole truth, or not there."""
    try:
        solved = SolvedNetwork(network)
        if engine != "analytic":
            _ = solved.capacity_tps if isinstance(network.traffic, Open) else None
    except RefusedError as error:
        return None, str(error)
    if any(each.timeout_s is not None or each.retry is not None for each in network.classes):
        return solved, "the analytic solver does not model timeouts and retries"
    return solved, ""


def _layout(network: Network) -> str:
    """Return what the network consists of and what traffic it gets, in words."""
    traffic = network.traffic
    parts = [_counted(len(network.each_station), "station")]
    if network.pools:
        parts.append(_counted(len(network.each_pool), "pool"))
    parts.append(_counted(len(network.classes), "request class", "request classes"))
    if isinstance(traffic, Open):
        coming = "bursty open traffic" if isinstance(traffic.arrivals, Bursty) else "open traffic"
    else:
        kind = "closed" if isinstance(traffic, Closed) else "throttled"
        coming = f"{traffic.clients:,} {kind} client{'s' if traffic.clients > 1 else ''}"
    return f"network of {', '.join(parts)}; {coming}"


def _counted(count: int, one: str, more: str = "") -> str:
    return f"{count:,} {one if count == 1 else more or one + 's'}"


def _scenario(network: Network, file: str, asked: NetworkQuestion) -> dict[str, Any]:
    taken = {"file": file, "taken_for": "a network in the language", "traffic": network.traffic.kind}
    return {name: value for name, value in (taken | {"tps": asked.tps, "slo": list(asked.slo)}).items() if value}


@dataclass(frozen=True)
class _Answer:
    """What was found out about a network.

    Attributes
    ----------
    network, objectives
        What was asked.
    figures
        The figures at the offered rate.
    overload, peak
        Capacity without and with the objectives, mean rates; of closed traffic, the throughput.
    at_capacity
        The figures at the capacity.
    exact
        Whether the capacity is the analytic solver's.
    """

    network: Network
    objectives: tuple[Objective, ...]
    figures: NetworkFigures
    overload: Band
    peak: Band
    at_capacity: NetworkFigures
    exact: bool

    @property
    def mean_tps(self) -> float | None:
        """Offered mean rate; None for closed traffic."""
        traffic = self.network.traffic
        return None if isinstance(traffic, Closed) else float(np.max(traffic.rate_per_s))

    @property
    def burst_ratio(self) -> float:
        """Peak rate over mean rate."""
        traffic = self.network.traffic
        arrivals = traffic.arrivals if isinstance(traffic, Open) else None
        return float(np.max(arrivals.burst_ratio)) if isinstance(arrivals, Bursty) else 1.0


def _found(network: Network, source: Source, known: SolvedNetwork | None, objectives: tuple[Objective, ...]) -> _Answer:
    traffic = network.traffic
    if isinstance(traffic, Closed):
        figures = source.at(None)
        throughput = figures.throughput_tps
        return _Answer(network, objectives, figures, throughput, throughput, figures, exact=False)
    figures = source.at(float(np.max(traffic.rate_per_s)))
    busiest = max((each.value for each in figures.utilisation.values()), default=0.0)
    start = _START * (figures.throughput_tps.value / busiest if busiest else float(np.max(traffic.rate_per_s)))
    start = start or float(np.max(traffic.rate_per_s))
    saturated, ceiling = source.saturated, math.inf
    if saturated is not None and saturated.drop_rate.value <= MAX_DROP_RATE:
        overload = saturated.throughput_tps
        ceiling = overload.value
    elif known is None:
        overload = highest_rate(source, start)
    else:
        ceiling = known.capacity_tps
        overload = Band(ceiling, ceiling, ceiling, basis="model only")
    peak = overload
    timed = [each for each in objectives if all(metric.name != "capacity" for metric in each.metrics())]
    if timed and overload.value:
        peak = highest_rate(source, _START * overload.value, timed, ceiling)
        peak = peak if peak.value < overload.value else overload
    at_capacity = source.at(overload.value) if overload.value else figures
    at_capacity = at_capacity if saturated is None or ceiling == math.inf else saturated
    return _Answer(network, objectives, figures, overload, peak, at_capacity, exact=known is not None)


def _capacity(answer: _Answer) -> Capacity:
    traffic, ratio = answer.network.traffic, answer.burst_ratio
    if isinstance(traffic, Closed):
        criterion = f"throughput of the {_counted(traffic.clients, 'closed client')}, which has no rate to raise"
    else:
        backlog = "clients that keep their pace" if isinstance(traffic, Throttled) else "no backlog that grows"
        kind = "peak rate" if ratio > 1 else "rate"
        criterion = ", ".join(
            [
                f"highest {kind} with a drop rate of at most {MAX_DROP_RATE:.1%} and {backlog}",
                *(each.text for each in answer.objectives),
            ]
        )
    return Capacity(
        peak_tps=scaled(answer.peak, ratio),
        mean_tps=answer.peak,
        overload_tps=scaled(answer.overload, ratio),
        burst_ratio=Band.exactly(ratio),
        criterion=criterion,
    )


def _offered(answer: _Answer) -> Offered | None:
    mean = answer.mean_tps
    if mean is None:
        return None
    return Offered(
        peak_tps=mean * answer.burst_ratio,
        mean_tps=mean,
        source="given",
        overload_risk=chance_of_less(answer.overload, mean),
        throughput_tps=model_only(answer.figures.throughput_tps),
        drop_rate=model_only(answer.figures.drop_rate),
    )


def _limits(figures: NetworkFigures) -> tuple[Limit, ...]:
    """Return stations by their utilisation at the capacity, and before them a pool that limits it.

    A pool does if no station is busy: all units of a pool around a busy station are in use, too.
    """
    stations = sorted(figures.utilisation.items(), key=lambda each: -each[1].value)
    pools = sorted(figures.pool_utilisation, key=lambda name: -figures.pool_utilisation[name])
    limits = [Limit(name, name, assumed=False, utilisation_at_capacity=busy) for name, busy in stations]
    if pools and (not stations or stations[0][1].value < _BUSY):
        limits.insert(0, Limit(pools[0], f"pool {pools[0]}", assumed=False, utilisation_at_capacity=None))
    return tuple(limits)


def _cautions(answer: _Answer, source: Source, why_not: str) -> tuple[str, ...]:
    found, events = [], len(answer.network.timeline.events)
    if isinstance(source, SolvedNetwork) and why_not:
        found.append(f"{why_not[0].upper()}{why_not[1:]}: they are left out.")
    if isinstance(source, SimulatedNetwork) and source.is_short:
        found.append("Sessions last longer than a tenth of a simulation, so its start shows: give a larger --budget.")
    if events:
        found.append(
            f"The {_counted(events, 'event')} of the timeline {'is' if events == 1 else 'are'} left out: "
            "`capplan simulate` runs the file with them."
        )
    if answer.mean_tps is not None and not answer.figures.sustained:
        lost = answer.figures.drop_rate.value
        if not answer.figures.keeps_up:
            found.append(
                "Throttled clients do not keep their pace, so latency from the intended start grows."
                if isinstance(answer.network.traffic, Throttled)
                else "The offered rate exceeds the capacity: queues and latency grow without bound."
            )
        if lost > MAX_DROP_RATE:
            found.append(
                f"{share(lost)} of the requests are dropped or time out, and latencies are of those that complete."
            )
    return tuple(found)


def _notes(answer: _Answer, source: Source, why_not: str) -> tuple[str, ...]:
    notes = []
    if isinstance(source, SimulatedNetwork):
        others = "" if answer.mean_tps is None else f" Other rates are simulated with {source.requests:,}."
        notes.append(
            f"Figures come from {REPLICATIONS} replications with {source.own_requests:,} requests together; their "
            f"bands are 90 % intervals between replications. Four times the --budget halves them.{others}"
        )
    if answer.mean_tps is not None:
        how = "from the analytic solver"
        if not answer.exact:
            how = "the middle between simulated rates that are sustained and rates that are not"
            if isinstance(answer.network.traffic, Throttled):
                how = "the throughput of clients that never pause, or where they are dropped, " + how
            how += f", as {why_not.split(': simulate')[0]}" if why_not else ""
        notes.append(f"The capacity is {how}.")
    else:
        notes.append("Closed traffic has no rate: the throughput is what its clients reach.")
    missing = [
        f"{name} {statistic}"
        for name, each in answer.figures.latency_ms.items()
        for statistic in STATISTICS
        if getattr(each, statistic) is None
    ]
    if missing:
        notes.append(f"Too few requests completed for {', '.join(missing)}: give a larger --budget.")
    return tuple(notes)
