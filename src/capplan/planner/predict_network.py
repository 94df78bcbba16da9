"""`predict` for a network in the language: capacity, bottleneck, utilisation and latency, without evidence."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from importlib.metadata import version
from typing import Any

import numpy as np
from scipy import stats

from capplan.answers.number_words import share
from capplan.answers.objective import Metric, Objective, chance_of_less, parse, scaled
from capplan.answers.results import STATISTICS, Band, Capacity, Latency, Parts
from capplan.answers.verdict import CONFIDENCE, check_confidence
from capplan.errors import InputError, RefusedError
from capplan.layout.solution import LEVELS, Solution, kind_of
from capplan.models.language.distribution import Deterministic
from capplan.models.language.network import Network
from capplan.models.language.step import Acquire, Choice, Route, Step, Visit, children
from capplan.models.language.traffic import Bursty, Closed, Open, Throttled, Timeline, Trace
from capplan.models.language.units import FloatArray
from capplan.models.solver.analytic import Analysis
from capplan.models.solver.closed_clients import solve_clients
from capplan.models.solver.known_errors import KnownError, known_errors
from capplan.models.solver.operating_point import MAX_DROP_RATE, OperatingPoint
from capplan.planner.network_question import NetworkQuestion
from capplan.planner.predict.predict import PredictionEngine
from capplan.planner.predict.prediction import EvidenceSummary, Limit, Offered, Prediction, judged_by_bands, model_only
from capplan.planner.predict.simulated_latency import check_budget, requests_at_a_rate
from capplan.planner.simulate.simulate import Design, observed, of_network, summed_up
from capplan.planner.simulate.simulation import EVERY_CLASS, Estimate, Simulation
from capplan.simulator.engine import Engine, simulate
from capplan.simulator.output import TOLERANCE
from capplan.simulator.replications import ReplicationPlan, RunsDone
from capplan.simulator.results.run import Run
from capplan.simulator.sample import FIRST

REPLICATIONS = FIRST
_OFFERED = 4  # shares of a budget for the offered rate, whose percentiles are shown
_OTHERS = 12  # shares for the rates that find the capacity
_PILOT = 4_000  # requests that determine the clients' rate and the visits per request
_LONGEST_PILOT_S = 1e6
_RESPONSES = 10  # mean response times that a replication lasts at least: a network fills within one or two


@dataclass(frozen=True, kw_only=True)
class NetworkFigures:
    """Figures of a network at a rate.

    Attributes
    ----------
    throughput_tps
        Completed requests per second.
    drop_rate
        Share of the requests that are dropped or time out.
    keeps_up
        Whether no backlog grows and throttled clients keep their pace.
    keeps_up_surely
        Whether a longer simulation would say the same.
    latency_ms
        Response times by request class; empty statistics rest on too few requests.
    utilisation
        Share of busy servers at the most loaded station of each kind.
    busy_units
        Mean number of busy units of a pool, by kind.
    pool_utilisation
        Mean share of busy units, by kind of pool.
    """

    throughput_tps: Band
    drop_rate: Band
    keeps_up: bool
    keeps_up_surely: bool
    latency_ms: Mapping[str, Latency]
    utilisation: Mapping[str, Band]
    busy_units: Mapping[str, Band]
    pool_utilisation: Mapping[str, float] = field(default_factory=dict)

    @property
    def sustained(self) -> bool:
        """Whether the drop rate is within its limit and no backlog grows."""
        return self.keeps_up and self.drop_rate.value <= MAX_DROP_RATE

    @property
    def surely(self) -> bool:
        """Whether the bands leave no doubt about `sustained`."""
        if not self.sustained:
            return (not self.keeps_up and self.keeps_up_surely) or self.drop_rate.low > MAX_DROP_RATE
        return self.keeps_up_surely and self.drop_rate.high <= MAX_DROP_RATE

    def figure(self, metric: Metric) -> Band | None:
        """Return an objective's figure in SI; None if it is not modelled."""
        if metric.name == "drop_rate":
            return self.drop_rate
        if metric.statistic == "utilisation":
            return self.utilisation.get(metric.subject)
        if metric.statistic == "busy_workers":
            return self.busy_units.get(metric.subject)
        band = getattr(self.latency_ms.get(metric.subject), metric.statistic, None)
        return None if band is None else scaled(band, 1e-3)


class SimulatedNetwork:
    """A network that is simulated once at each rate, with the same random numbers.

    Parameters
    ----------
    network : Network
        The network, without a timeline.
    seed : int
        The seed of all runs.
    engine : str
        `compiled` or `simpy`.
    budget_s : float
        How long to simulate, in seconds of a nominal machine; a quarter of it at the network's own rate, if others are
        simulated, too.
    processes : int
        How many replications run at a time.
    progress : function, optional
        Called with how many of about how many rates are simulated.
    """

    def __init__(
        self,
        network: Network,
        *,
        seed: int,
        engine: Engine,
        budget_s: float,
        processes: int,
        progress: RunsDone | None = None,
    ) -> None:
        self.network, self.seed, self.engine, self.budget_s = network, seed, engine, budget_s
        self.processes, self.progress = processes, progress
        self._known: dict[float | None, NetworkFigures] = {}
        pilot = _pilot(network, seed, engine)
        started = max(pilot.report().started, 1)
        self.own_tps = started / pilot.window_s
        visits = max(sum(each.visits for each in pilot.stations.values()) / started, 1.0)
        means_s = (each.latency().mean_s for each in pilot.reports.values() if each.completed)
        self.shortest_s = _RESPONSES * max(means_s, default=0.0)
        self.requests = requests_at_a_rate(budget_s / (_OFFERED + _OTHERS), visits, engine)
        """How many are simulated at a rate that is not the network's own."""
        shares = _OFFERED + _OTHERS if isinstance(network.traffic, Closed) else _OFFERED
        self.own_requests = requests_at_a_rate(budget_s * shares / (_OFFERED + _OTHERS), visits, engine)

    @cached_property
    def saturated(self) -> NetworkFigures | None:
        """The figures of throttled clients without pauses; None for other traffic."""
        if not isinstance(self.network.traffic, Throttled):
            return None
        always = SimulatedNetwork(
            _without_pauses(self.network, self.network.traffic),
            seed=self.seed,
            engine=self.engine,
            budget_s=self.budget_s,
            processes=self.processes,
        )
        return always.at(None)

    def at(self, mean_tps: float | None) -> NetworkFigures:
        """Return the figures at a mean rate; None: those of the network's own traffic."""
        if mean_tps not in self._known:
            most = None if self.saturated is None else self.saturated.throughput_tps
            self._known[mean_tps] = simulated_figures(self._simulated(mean_tps), most)
            if self.progress is not None:
                self.progress(len(self._known), max(1 + _OTHERS, len(self._known)))
        return self._known[mean_tps]

    @property
    def is_short(self) -> bool:
        """Whether a session's gaps last longer than a tenth of a replication at the network's own rate."""
        gaps = (sum(float(np.max(gap.mean)) for gap in session.gaps) for session in self.network.sessions)
        lasts_s = max(self.own_requests / REPLICATIONS / (_given_tps(self.network) or self.own_tps), self.shortest_s)
        return max(gaps, default=0.0) > lasts_s / 10

    def _simulated(self, mean_tps: float | None) -> Simulation:
        subject = of_network(self.network, mean_tps)
        requests = self.own_requests if mean_tps is None or mean_tps == _given_tps(self.network) else self.requests
        lasts_s = requests / REPLICATIONS / (mean_tps or subject.offered_tps or self.own_tps)
        duration_s = max(lasts_s, self.shortest_s)
        plan = ReplicationPlan(subject.network, duration_s, 0.0, self.seed, REPLICATIONS, self.engine)
        seen = observed(plan, Design(), processes=self.processes)
        return summed_up(self.network.name, subject, plan, Design(), seen)


def _given_tps(network: Network) -> float | None:
    traffic = network.traffic
    return None if isinstance(traffic, Closed) else float(np.max(traffic.rate_per_s))


def _without_pauses(network: Network, traffic: Throttled) -> Network:
    """Return the network with clients that send the next request at once."""
    return replace(network, traffic=Closed(traffic.clients, Deterministic(0.0), traffic.mix))


def _pilot(network: Network, seed: int, engine: Engine) -> Run:
    """Run some requests as a pilot; for closed clients with unknown rate, extend the run until there are enough."""
    traffic, closed = network.traffic, isinstance(network.traffic, Closed)
    duration_s = 0.01 if isinstance(traffic, Closed) else _PILOT / 4 / float(np.max(traffic.rate_per_s))
    while True:
        run = simulate(network, duration_s, seed=seed, max_requests=_PILOT, engine=engine)
        if not closed or run.report().started >= _PILOT / 4 or duration_s > _LONGEST_PILOT_S:
            return run
        duration_s *= 4


def simulated_figures(simulation: Simulation, most: Band | None = None) -> NetworkFigures:
    """Return the figures of a simulation in steady state; `most` is the highest throughput of throttled clients."""
    every = simulation.classes[EVERY_CLASS]
    keeps_up, surely = _keeps_up(simulation) if most is None else _pace(simulation, most)
    unbounded = not keeps_up and surely
    classes = {name: each for name, each in simulation.classes.items() if name != EVERY_CLASS and each.started}
    return NetworkFigures(
        throughput_tps=_band(every.throughput_per_s) or _IDLE,
        drop_rate=_band(every.drop_rate, most=1.0) or _IDLE,
        keeps_up=keeps_up,
        keeps_up_surely=surely,
        latency_ms={
            name: _UNBOUNDED
            if unbounded
            else Latency(**{each: _band(getattr(figures.latency_ms.intended, each)) for each in STATISTICS})
            for name, figures in classes.items()
        },
        utilisation=_bands({name: each.most_utilisation for name, each in simulation.station_kinds.items()}, most=1.0),
        busy_units=_bands({name: each.mean_busy for name, each in simulation.pool_kinds.items()}),
        pool_utilisation={name: each.mean_busy.value / each.size for name, each in simulation.pool_kinds.items()},
    )


_IDLE = Band.exactly(0.0)
_SATURATED = 0.995  # utilisation of a station whose backlog grows, at least; within the accuracy of a capacity
_ENDLESS = Band(math.inf, math.inf, math.inf, basis="model only")
_UNBOUNDED = Latency(**dict.fromkeys(STATISTICS, _ENDLESS))


def _pace(simulation: Simulation, most: Band) -> tuple[bool, bool]:
    """Return whether throttled clients reach their rate in the long run, and whether this is certain.

    They do if it is below their throughput without pauses: those who are late send at once (the saturation rule).
    """
    rate = simulation.mean_tps or 0.0
    return rate <= most.value, not most.low <= rate <= most.high


def _keeps_up(simulation: Simulation) -> tuple[bool, bool]:
    """Return whether no backlog grows and no station is saturated, and whether this is certain.

    One saturated station among many adds little to the whole backlog, so its utilisation tells more.
    """
    backlog = simulation.backlog
    if backlog is None:
        return True, True
    if backlog.verdict == "overloaded":
        return False, True
    bands = [_band(each.utilisation) or _IDLE for each in simulation.stations.values()]
    busiest = max(bands, key=lambda each: each.value, default=_IDLE)
    if busiest.value > _SATURATED or backlog.growth.value > TOLERANCE:
        return False, busiest.low > _SATURATED
    return True, busiest.high < _SATURATED and backlog.verdict == "steady"


@lru_cache
def _narrower(replications: int) -> float:
    """Return the ratio of 90 % to 95 % half-width of an interval between replications."""
    degrees = replications - 1
    return float(stats.t.ppf(0.95, degrees) / stats.t.ppf(0.975, degrees))


def _band(estimate: Estimate, most: float = math.inf) -> Band | None:
    """Return an estimate with its 90 % band; None if it has too few requests for a band."""
    if not math.isfinite(estimate.value) or estimate.half_width is None:
        return None
    value, half = estimate.value, estimate.half_width * _narrower(REPLICATIONS)
    low, high = max(value - half, 0.0), max(min(value + half, most), value)
    return Band(value, low, high, Parts(simulation=half), "model only")


def _bands(estimates: Mapping[str, Estimate], most: float = math.inf) -> dict[str, Band]:
    found = {name: _band(each, most) for name, each in estimates.items()}
    return {name: each for name, each in found.items() if each is not None}


class SolvedNetwork:
    """A network in the analytic solver; its figures have no bands.

    Raises
    ------
    RefusedError
        If the solver does not support a construct; the message names it.
    """

    def __init__(self, network: Network) -> None:
        self.network = network
        self.solution = Solution(network, {each.name: (each.name,) for each in network.classes})
        self.ratio = float(self.solution.burst_ratio[0])

    @property
    def capacity_tps(self) -> float:
        """Highest sustained mean rate of open traffic."""
        return float(self.solution.capacity[0]) / self.ratio

    @cached_property
    def left_out(self) -> tuple[str, ...]:
        """What the solver does not model of the network: its capacity is an upper bound then."""
        patient = all(each.timeout_s is None and each.retry is None for each in self.network.classes)
        outer = np.all(np.isinf(self.solution.analysis.inner_pools_per_s))
        beside = not any(_queues_beside_pools(each.flow) for each in self.network.classes)
        modelled = {
            "timeouts and retries": patient,
            "waits for pools inside other pools": outer,
            "queues at stations that requests visit without a unit of their pool": beside,
        }
        return tuple(what for what, is_modelled in modelled.items() if not is_modelled)

    def at(self, mean_tps: float | None) -> NetworkFigures:
        """Return the figures at a mean rate; None: those of the network's own traffic."""
        traffic = self.network.traffic
        if isinstance(traffic, Open):
            rate = float(np.max(traffic.rate_per_s)) if mean_tps is None else mean_tps
            figures = self.solution.at(rate * self.ratio)
            keeps_up = rate <= float(self.solution.analysis.drift_per_s[0])
            return self._figures(figures.point, rate * float(1 - figures.drop_rate[0]), keeps_up)
        if isinstance(traffic, Throttled) and mean_tps is not None:
            traffic = replace(traffic, rate_per_s=mean_tps)
        point = solve_clients(Analysis(replace(self.network, traffic=traffic)))
        rate = float(point.rate_per_s[0, 0])
        most = math.inf if self.saturated is None else self.saturated.throughput_tps.value
        keeps_up = not isinstance(traffic, Throttled) or float(np.max(traffic.rate_per_s)) <= most
        return self._figures(point, rate * float(1 - point.drop_rate[0, 0]), keeps_up)

    @cached_property
    def saturated(self) -> NetworkFigures | None:
        """The figures of throttled clients without pauses; None for other traffic."""
        if not isinstance(self.network.traffic, Throttled):
            return None
        return SolvedNetwork(_without_pauses(self.network, self.network.traffic)).at(None)

    def known_errors(self, mean_tps: float | None) -> tuple[KnownError, ...]:
        """Return known errors of the solver at a mean rate; at the network's own rate if it is None."""
        analysis = self.solution.analysis
        if isinstance(analysis.traffic, Open):
            rate = float(np.max(analysis.traffic.rate_per_s)) if mean_tps is None else mean_tps
            return known_errors(analysis, rate / self.capacity_tps)
        return known_errors(analysis, self.at(mean_tps).throughput_tps.value / float(analysis.saturation_per_s[0]))

    def _figures(self, point: OperatingPoint, completed_tps: float, keeps_up: bool) -> NetworkFigures:
        analysis = self.solution.analysis
        busy: dict[str, float] = {}
        for name in analysis.demands:
            share = min(completed_tps * float(analysis.load(name)[0]), 1.0)
            busy[kind_of(name)] = max(busy.get(kind_of(name), 0.0), share)
        pools = {kind_of(pool.name) for pool in analysis.outer_pools}
        units = float(np.ravel(point.busy_units)[0])
        held = dict.fromkeys(pools, units / max(analysis.outer_pool_count, 1)) if len(pools) == 1 else {}
        size = 1.0 if analysis.pool is None else float(analysis.pool[0]) / max(analysis.outer_pool_count, 1)
        return NetworkFigures(
            throughput_tps=_exactly(completed_tps),
            drop_rate=_exactly(float(np.ravel(point.drop_rate)[0])),
            keeps_up=keeps_up,
            keeps_up_surely=True,
            latency_ms={name: _solved_latency(point, name, keeps_up) for name in analysis.share},
            utilisation={name: _exactly(each) for name, each in busy.items()},
            busy_units={name: _exactly(each) for name, each in held.items()},
            pool_utilisation={name: each / size for name, each in held.items()},
        )


def _exactly(value: float) -> Band:
    return Band(value, value, value, basis="model only")


def _solved_latency(point: OperatingPoint, name: str, keeps_up: bool) -> Latency:
    if not keeps_up:
        return _UNBOUNDED
    percentiles: FloatArray = point.quantiles_s(tuple(LEVELS.values()), name)
    times = [float(np.ravel(point.response_s(name))[0]), *(float(np.ravel(each)[0]) for each in percentiles)]
    return Latency(**{each: _exactly(time * 1e3) for each, time in zip(STATISTICS, times, strict=True)})


Source = SimulatedNetwork | SolvedNetwork
"""A source of figures at a rate."""
_CLOSE = 1.005  # ratio of the rates that bracket the capacity
_SPREAD = 1.01  # step to the first rate beyond the bracket where that is still in doubt; then twice as far, and so on
_DOUBLINGS = 5
_FIRST_STEP, _LARGEST_STEP = 1.1, 4.0
_FURTHEST = 1e3  # ratio of a rate to the first one, at most


@dataclass
class _Search:
    """Tries rates and remembers the results.

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
        """Return whether the figures at a rate meet the criterion; remember the rate if the bands leave no doubt."""
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
        return _exactly(0.0)
    while high / low > _CLOSE:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if search.sustained(middle) else (low, middle)
    value = math.sqrt(low * high) if high < ceiling else min(high, ceiling)
    least, most = _end(search, value, True), _end(search, value, False)
    least, most = min(least, value), min(max(most, value), ceiling)
    return Band(value, least, most, Parts(simulation=(most - least) / 2 if most < math.inf else None), "model only")


def _bracket(search: _Search, start: float) -> tuple[float, float]:
    """Return a sustained and an unsustained rate; 0 for the first if there is none."""
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
    """Return the rate nearest to a value that certainly meets, or misses, the criterion; try some beyond the value."""
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
    """Predict capacity, bottleneck, latency and utilisation of a user's own network.

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
    left_out = source.left_out if isinstance(source, SolvedNetwork) else ()
    return judged_by_bands(
        prediction, objectives, lambda metric: _figure(metric, prediction, answer.figures), confidence, left_out
    )


def _figure(metric: Metric, prediction: Prediction, figures: NetworkFigures) -> Band | None:
    return prediction.peak_tps if metric.name == "capacity" else figures.figure(metric)


def _at_rate(network: Network, asked: NetworkQuestion) -> Network:
    """Return the network at the requested rate.

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


def _queues_beside_pools(step: Step) -> bool:
    """Whether requests that take a unit of a pool also visit a station before or after."""
    inside = children(step)
    if isinstance(step, Acquire) or not inside:
        return False
    apart = not isinstance(step, (Choice, Route)) and _reaches(step, Acquire) and _reaches(step, Visit)
    return apart or any(map(_queues_beside_pools, inside))


def _reaches(step: Step, kind: type[Step]) -> bool:
    """Whether a step is, or runs, one of a kind without a unit of a pool."""
    return isinstance(step, kind) or (
        not isinstance(step, Acquire) and any(_reaches(child, kind) for child in children(step))
    )


def _solved(network: Network, engine: str) -> tuple[SolvedNetwork | None, str]:
    """Return the network in the analytic solver, or None, and what the solver leaves out."""
    try:
        solved = SolvedNetwork(network)
        if engine != "analytic":
            _ = solved.capacity_tps if isinstance(network.traffic, Open) else None
    except RefusedError as error:
        return None, str(error)
    left_out = " and ".join(solved.left_out)
    return solved, f"the analytic solver does not model {left_out}" if left_out else ""


def _layout(network: Network) -> str:
    """Return the network's parts and traffic in words."""
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
    """Results about a network.

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
        return _given_tps(self.network)

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
    offered = float(np.max(traffic.rate_per_s))
    figures = source.at(offered)
    busiest = max((each.value for each in figures.utilisation.values()), default=0.0)
    start = _START * (figures.throughput_tps.value / busiest if busiest else offered) or offered
    saturated, ceiling = source.saturated, math.inf
    if saturated is not None and saturated.drop_rate.value <= MAX_DROP_RATE:
        overload = saturated.throughput_tps
        ceiling = overload.value
    elif known is None:
        overload = highest_rate(source, start)
    else:
        ceiling = known.capacity_tps
        overload = _exactly(ceiling)
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
        carried = f"highest {kind} with a drop rate of at most {MAX_DROP_RATE:.1%} and {backlog}"
        criterion = ", ".join([carried, *(each.text for each in answer.objectives)])
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
    """Return the stations by their utilisation at the capacity, preceded by a pool that limits it.

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
