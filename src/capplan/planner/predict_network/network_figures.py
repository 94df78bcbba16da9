"""What a network does at one rate, simulated or solved: figures whose bands hold the simulation's error alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Protocol

import numpy as np
from scipy import stats

from capplan.layout.solution import LEVELS, Solution, kind_of
from capplan.models.language.distribution import Deterministic
from capplan.models.language.network import Network
from capplan.models.language.traffic import Closed, Open, Throttled
from capplan.models.language.units import FloatArray
from capplan.models.objective import Metric, scaled
from capplan.models.results import STATISTICS, Band, Latency, Parts
from capplan.models.solver.analytic import Analysis
from capplan.models.solver.closed_clients import solve_clients
from capplan.models.solver.known_errors import KnownError, known_errors
from capplan.models.solver.operating_point import MAX_DROP_RATE, OperatingPoint
from capplan.planner.predict.simulated_latency import requests_at_a_rate
from capplan.planner.simulate.simulate import Design, observed, summed_up
from capplan.planner.simulate.simulate import of_network as subject_of
from capplan.planner.simulate.simulation import EVERY_CLASS, Estimate, Simulation
from capplan.simulator.analysis.output import TOLERANCE
from capplan.simulator.analysis.sample import FIRST
from capplan.simulator.engine import Engine, simulate
from capplan.simulator.experiments.replications import ReplicationPlan, RunsDone
from capplan.simulator.results.run import Run

REPLICATIONS = FIRST
_OFFERED = 4  # shares of a budget for the offered rate, whose percentiles are shown
_OTHERS = 12  # shares for the rates that find the capacity
_PILOT = 4_000  # requests that tell the rate of clients and the visits of a request
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
        """Whether that holds anywhere in the bands."""
        if not self.sustained:
            return (not self.keeps_up and self.keeps_up_surely) or self.drop_rate.low > MAX_DROP_RATE
        return self.keeps_up_surely and self.drop_rate.high <= MAX_DROP_RATE

    def figure(self, metric: Metric) -> Band | None:
        """Return the figure that an objective is about in SI; None where it is not modelled, and for the capacity."""
        if metric.name == "capacity":
            return None
        if metric.name == "drop_rate":
            return self.drop_rate
        if metric.statistic == "utilisation":
            return self.utilisation.get(metric.subject)
        if metric.statistic == "busy_workers":
            return self.busy_units.get(metric.subject)
        band = getattr(self.latency_ms.get(metric.subject), metric.statistic, None)
        return None if band is None else scaled(band, 1e-3)


class Source(Protocol):
    """Where figures at a rate come from."""

    @property
    def saturated(self) -> NetworkFigures | None:
        """The figures of throttled clients that never pause; None for other traffic."""

    def at(self, mean_tps: float | None) -> NetworkFigures:
        """Return the figures at a mean rate; None: those of the network's own traffic."""


class SimulatedNetwork:
    """A network whose rates are simulated, each once, with the same random numbers.

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
        self.shortest_s = _RESPONSES * max(
            (each.latency().mean_s for each in pilot.reports.values() if each.completed), default=0.0
        )
        self.requests = requests_at_a_rate(budget_s / (_OFFERED + _OTHERS), visits, engine)
        """How many are simulated at a rate that is not the network's own."""
        shares = _OFFERED + _OTHERS if isinstance(network.traffic, Closed) else _OFFERED
        self.own_requests = requests_at_a_rate(budget_s * shares / (_OFFERED + _OTHERS), visits, engine)

    @cached_property
    def saturated(self) -> NetworkFigures | None:
        """The figures of throttled clients that never pause; None for other traffic."""
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
        """Whether the gaps of a session last longer than a tenth of a replication at the network's own rate."""
        gaps = (sum(float(np.max(gap.mean)) for gap in session.gaps) for session in self.network.sessions)
        lasts_s = max(self.own_requests / REPLICATIONS / (self._given_tps or self.own_tps), self.shortest_s)
        return max(gaps, default=0.0) > lasts_s / 10

    @property
    def _given_tps(self) -> float | None:
        traffic = self.network.traffic
        return None if isinstance(traffic, Closed) else float(np.max(traffic.rate_per_s))

    def _simulated(self, mean_tps: float | None) -> Simulation:
        subject = subject_of(self.network, mean_tps)
        requests = self.own_requests if mean_tps is None or mean_tps == self._given_tps else self.requests
        lasts_s = requests / REPLICATIONS / (mean_tps or subject.offered_tps or self.own_tps)
        duration_s = max(lasts_s, self.shortest_s)
        plan = ReplicationPlan(subject.network, duration_s, 0.0, self.seed, REPLICATIONS, self.engine)
        seen = observed(plan, Design(), processes=self.processes)
        return summed_up(self.network.name, subject, plan, Design(), seen)


def _without_pauses(network: Network, traffic: Throttled) -> Network:
    """Return the network with clients that send the next request at once."""
    return replace(network, traffic=Closed(traffic.clients, Deterministic(0.0), traffic.mix))


def _pilot(network: Network, seed: int, engine: Engine) -> Run:
    """Run some requests; of closed clients, whose rate is unknown, as long as that takes."""
    traffic = network.traffic
    closed = isinstance(traffic, Closed)
    duration_s = 0.01 if isinstance(traffic, Closed) else _PILOT / 4 / float(np.max(traffic.rate_per_s))
    while True:
        run = simulate(network, duration_s, seed=seed, max_requests=_PILOT, engine=engine)
        if not closed or run.report().started >= _PILOT / 4 or duration_s > _LONGEST_PILOT_S:
            return run
        duration_s *= 4


def simulated_figures(simulation: Simulation, most: Band | None = None) -> NetworkFigures:
    """Return the figures of a simulation in steady state; `most` is the highest throughput of throttled clients."""
    every = simulation.classes[EVERY_CLASS]
    throughput, drops = _band(every.throughput_per_s), _band(every.drop_rate, most=1.0)
    throughput, drops = throughput or Band.exactly(0.0), drops or Band.exactly(0.0)
    keeps_up, surely = _keeps_up(simulation) if most is None else _pace(simulation, most)
    unbounded = not keeps_up and surely
    classes = {name: each for name, each in simulation.classes.items() if name != EVERY_CLASS and each.started}
    return NetworkFigures(
        throughput_tps=throughput,
        drop_rate=drops,
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
    """Return whether throttled clients reach their rate in the long run, and whether that is sure.

    They do if it is below their throughput without pauses: those who are late send at once (the saturation rule).
    """
    rate = simulation.mean_tps or 0.0
    return rate <= most.value, not most.low <= rate <= most.high


def _keeps_up(simulation: Simulation) -> tuple[bool, bool]:
    """Return whether no backlog grows and no station is saturated, and whether that is sure.

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
    """Return the half-width of a 90 % interval between replications over that of the 95 % interval."""
    degrees = replications - 1
    return float(stats.t.ppf(0.95, degrees) / stats.t.ppf(0.975, degrees))


def _band(estimate: Estimate, most: float = math.inf) -> Band | None:
    """Return an estimate with its 90 % band; None where it rests on too few requests to have one."""
    if not math.isfinite(estimate.value) or estimate.half_width is None:
        return None
    value, half = estimate.value, estimate.half_width * _narrower(REPLICATIONS)
    return Band(
        value, max(value - half, 0.0), max(min(value + half, most), value), Parts(simulation=half), "model only"
    )


def _bands(estimates: Mapping[str, Estimate], most: float = math.inf) -> dict[str, Band]:
    found = {name: _band(each, most) for name, each in estimates.items()}
    return {name: each for name, each in found.items() if each is not None}


class SolvedNetwork:
    """A network that the analytic solver knows; its figures have no bands.

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

    def at(self, mean_tps: float | None) -> NetworkFigures:
        """Return the figures at a mean rate; None: those of the network's own traffic."""
        traffic = self.network.traffic
        if isinstance(traffic, Open):
            rate = float(np.max(traffic.rate_per_s)) if mean_tps is None else mean_tps
            figures = self.solution.at(rate * self.ratio)
            return self._figures(figures.point, rate * float(1 - figures.drop_rate[0]), rate <= self._drift_tps)
        if isinstance(traffic, Throttled) and mean_tps is not None:
            traffic = replace(traffic, rate_per_s=mean_tps)
        point = solve_clients(Analysis(replace(self.network, traffic=traffic)))
        rate = float(point.rate_per_s[0, 0])
        most = math.inf if self.saturated is None else self.saturated.throughput_tps.value
        keeps_up = not isinstance(traffic, Throttled) or float(np.max(traffic.rate_per_s)) <= most
        return self._figures(point, rate * float(1 - point.drop_rate[0, 0]), keeps_up)

    @cached_property
    def saturated(self) -> NetworkFigures | None:
        """The figures of throttled clients that never pause; None for other traffic."""
        if not isinstance(self.network.traffic, Throttled):
            return None
        return SolvedNetwork(_without_pauses(self.network, self.network.traffic)).at(None)

    def known_errors(self, mean_tps: float | None) -> tuple[KnownError, ...]:
        """Return what is known of the solver's errors at a mean rate; None: that of the network's own traffic."""
        analysis = self.solution.analysis
        if isinstance(analysis.traffic, Open):
            rate = float(np.max(analysis.traffic.rate_per_s)) if mean_tps is None else mean_tps
            return known_errors(analysis, rate / self.capacity_tps)
        return known_errors(analysis, self.at(mean_tps).throughput_tps.value / float(analysis.saturation_per_s[0]))

    @property
    def _drift_tps(self) -> float:
        return float(self.solution.analysis.drift_per_s[0])

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
