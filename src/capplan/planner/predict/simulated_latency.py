"""Latencies by simulation: some draws are simulated; analytic figures extend the results to all draws."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from itertools import pairwise
from operator import add
from typing import Any, cast

import numpy as np

from capplan.answers.results import STATISTICS, Band, Latency
from capplan.errors import InputError
from capplan.layout.case import Case
from capplan.layout.components import DEFAULT_BUDGET_S, Simulations
from capplan.layout.ensemble import at_draws, evenly_along
from capplan.layout.solution import LEVELS, Figures
from capplan.layout.uncertainty import HIGH, LOW, Uncertainty
from capplan.models.language.network import Network
from capplan.models.language.parameter import Values
from capplan.models.language.step import Step, children
from capplan.models.language.traffic import Arrivals, Bursty, Open, Poisson
from capplan.models.language.units import FloatArray
from capplan.simulator.engine import Engine
from capplan.simulator.replications import DrawRun, RunsDone, simulate_draws
from capplan.simulator.results.histogram import Histogram, IntArray, bin_middles
from capplan.simulator.results.run import Run
from capplan.simulator.specification.clock import TICKS_PER_S

LONGEST_BUDGET_S = 3600.0
FEWEST_DRAWS = 6  # Student's t of five degrees of freedom is a quarter wider than the normal law
FEWEST_REQUESTS = 4_000
_THREADS: dict[Engine, int] = {"compiled": 2, "simpy": 1}
_VISIT_S: dict[Engine, float] = {"compiled": 200e-9, "simpy": 20e-6}
_STEP_S: dict[Engine, float] = {"compiled": 20e-6, "simpy": 0.0}  # SimPy's compiling is small beside its running
_PER_DRAW = 5_000  # requests for the first draw; for each further one twice as many as for the one before, and so on


@dataclass(frozen=True)
class Effort:
    """How many draws are simulated, and how many requests are measured in each."""

    draws: int
    requests: int


def check_budget(budget_s: float) -> None:
    """Check a budget of seconds.

    Raises
    ------
    InputError
        When it is not above 0 and at most an hour.
    """
    if not 0 < budget_s <= LONGEST_BUDGET_S:
        raise InputError(f"a budget of {budget_s:g} s is out of range: give more than 0 and at most 1h, such as '2s'")


def effort(budget_s: float, network: Network, visits: float, warmup: float, engine: Engine) -> Effort:
    """Return the number of draws and requests that a budget pays for.

    Parameters
    ----------
    budget_s : float
        Seconds of the nominal machine.
    network : Network
        What is simulated.
    visits : float
        Mean number of visits of a request to stations.
    warmup : float
        Requests of each draw that are not measured.
    engine : str
        Which engine simulates.
    """
    left_s = budget_s - _STEP_S[engine] * steps(network)
    requests = max(0.0, left_s) * _THREADS[engine] / (_VISIT_S[engine] * visits)
    draws = max(FEWEST_DRAWS, round((requests / _PER_DRAW) ** 0.5))
    return Effort(draws, max(FEWEST_REQUESTS, int(requests / draws - warmup)))


def requests_at_a_rate(budget_s: float, visits: float, engine: Engine) -> int:
    """Return how many requests of a network are simulated at one rate, in all replications together.

    Parameters
    ----------
    budget_s : float
        Seconds of the nominal machine.
    visits : float
        Mean number of visits of a request to stations.
    engine : str
        Which engine simulates.
    """
    return max(FEWEST_DRAWS * FEWEST_REQUESTS, int(budget_s * _THREADS[engine] / (_VISIT_S[engine] * visits)))


def cost_s(size: Effort, visits: float, engine: Engine) -> float:
    """Return the cost of the measured and equally many unmeasured requests, seconds of the nominal machine."""
    return 2 * size.draws * size.requests * visits * _VISIT_S[engine] / _THREADS[engine]


def steps(network: Network) -> int:
    """Return the number of steps in a network's flows; a step that occurs several times counts each time."""
    counted: dict[int, int] = {}
    return sum(_steps(request.flow, counted) for request in network.classes)


def _steps(step: Step, counted: dict[int, int]) -> int:
    if id(step) not in counted:
        counted[id(step)] = 1 + sum(_steps(child, counted) for child in children(step))
    return counted[id(step)]


_SLOPE_SD = 0.5
_LEVEL = 0.95  # one-sided: a 90 % band
Phases = Sequence[tuple[float, Histogram]]  # the share of the requests that each has, and their latencies


@dataclass(frozen=True, eq=False)
class DrawLatencies:
    """Latencies of one class of requests at some draws.

    Attributes
    ----------
    mean_s : array
        Mean by draw; nan where no request was completed; shape (draws,).
    draw, value_s, weight : array
        Points of the draws' distributions: the draw, a latency, and the share of the draw's requests there; shape
        (points,), in the order of the latencies within each draw.
    """

    mean_s: FloatArray
    draw: IntArray
    value_s: FloatArray
    weight: FloatArray

    def figures(self, level: float | None) -> FloatArray:
        """Return, by draw, the latency that a share `level` of the requests does not exceed; the mean if it is None."""
        if level is None:
            return self.mean_s
        ends = np.searchsorted(self.draw, np.arange(len(self.mean_s) + 1))
        parts = [slice(start, end) for start, end in pairwise(ends.tolist())]
        return np.array([_quantile(self.value_s[part], self.weight[part], level) for part in parts])

    def pooled(self, scales: FloatArray, level: float | None) -> tuple[float, FloatArray]:
        """Return a figure of all draws' requests pooled, with each latency divided by its draw's scale.

        A percentile of few requests is biased where latencies come in clusters, as near saturation. Pooled, they are
        as many as in one long run.

        Returns
        -------
        tuple
            The figure; and the figures without one of the draws each, shape (draws,).
        """
        count = len(self.mean_s)
        if level is None:
            scaled = self.mean_s / scales
            return float(scaled.mean()), np.asarray((scaled.sum() - scaled) / (count - 1))
        value = self.value_s / scales[self.draw]
        order = np.argsort(value, kind="stable")
        draw, value, weight = self.draw[order], value[order], self.weight[order]
        kept = (draw != number for number in range(count))
        return _quantile(value, weight, level), np.array([_quantile(value[k], weight[k], level) for k in kept])


def samples(draws: Sequence[Phases]) -> DrawLatencies:
    """Mix the phases of each draw by their shares of the requests."""
    middles = bin_middles()
    means, draw, value, weight = [], [], [], []
    for number, phases in enumerate(draws):
        means.append(sum(share * seen.mean_s for share, seen in phases))
        mixed = np.sum([share * seen.counts / max(seen.count, 1) for share, seen in phases], axis=0)
        used = np.flatnonzero(mixed)
        draw.append(np.full(len(used), number))
        value.append(np.minimum(middles[used], max(seen.largest_ticks for _, seen in phases)) / TICKS_PER_S)
        weight.append(mixed[used])
    return DrawLatencies(np.array(means), np.concatenate(draw), np.concatenate(value), np.concatenate(weight))


def _quantile(value: FloatArray, weight: FloatArray, level: float) -> float:
    """Return a quantile of sorted, weighted values, linear between them; nan when there are none."""
    if not len(value):
        return np.nan
    reached = np.cumsum(weight)
    return float(np.interp(level * reached[-1], reached - weight / 2, value))


@dataclass(frozen=True)
class Relation:
    """A line that maps analytic figures to simulated ones, both as logarithms.

    Attributes
    ----------
    centre, level : float
        Mean logarithm of the analytic figures, and the line there.
    slope : float
        Slope of the line.
    error_at_centre : float
        Standard error of the line at the centre.
    error_of_slope : float
        Standard error of the slope, with the prior's help.
    freedom : float
        Degrees of freedom of both errors: simulated draws, less one, less the part of the slope that they decided.
    variance_ratio : float
        Variance of the plain mean over the simulated draws divided by that of the line at the centre.
    """

    centre: float
    level: float
    slope: float
    error_at_centre: float
    error_of_slope: float
    freedom: float
    variance_ratio: float

    def at(self, analytic: FloatArray) -> FloatArray:
        """Return the simulated figures that correspond to analytic ones."""
        return np.asarray(np.exp(self.level + self.slope * (np.log(analytic) - self.centre)))

    def half_width(self, analytic: float) -> float:
        """Return the half-width of the line's 90 % interval at a point, as a logarithm."""
        from scipy.special import stdtrit

        away = np.log(analytic) - self.centre
        return float(stdtrit(self.freedom, _LEVEL) * np.hypot(self.error_at_centre, self.error_of_slope * away))


def related(analytic: FloatArray, simulated: DrawLatencies, level: float | None) -> Relation:
    """Fit the line from analytic to simulated figures at the simulated draws.

    Parameters
    ----------
    analytic : array
        The solver's positive figures by simulated draw, at least three, in seconds; shape (draws,).
    simulated : DrawLatencies
        What was simulated at these draws; none empty.
    level : float or None
        Which figure: the percentile of this level, or the mean.
    """
    x, y = np.log(analytic), np.log(simulated.figures(level))
    centre, count = float(x.mean()), len(x)
    x, y = x - centre, y - y.mean()
    spread, plain = float(x @ x), float(y @ y)
    by_draws = float(x @ y) / spread if spread > 0 else 1.0
    noise = float(np.sum((y - by_draws * x) ** 2)) / (count - 2)
    prior = noise / _SLOPE_SD**2
    decided = spread / (spread + prior) if spread > 0 else 0.0
    slope = decided * by_draws + (1 - decided)
    freedom = count - 1 - decided
    scatter = float(np.sum((y - slope * x) ** 2)) / freedom
    together, without = simulated.pooled(np.exp(slope * x), level)
    apart = np.log(without) - np.log(without).mean()
    error2 = float(apart @ apart) * (count - 1) / count * (count - 1) / freedom
    return Relation(
        centre=centre,
        level=float(np.log(together)),
        slope=slope,
        error_at_centre=error2**0.5,
        error_of_slope=(scatter / (spread + prior)) ** 0.5 if spread + prior > 0 else 0.0,
        freedom=freedom,
        variance_ratio=plain / (count - 1) / count / error2 if error2 > 0 else np.inf,
    )


def in_order(latency: Latency) -> Latency:
    """Return a latency with its percentiles and their bands in ascending order."""
    low = value = high = 0.0
    found: dict[str, Band] = {}
    for statistic in STATISTICS[1:]:
        band: Band | None = getattr(latency, statistic)
        if band is not None:
            low, value, high = max(low, band.low), max(value, band.value), max(high, band.high)
            found[statistic] = replace(band, low=low, value=value, high=high)
    return replace(latency, **found)


def solved_latency(figures: Figures, uncertainty: Uncertainty) -> dict[str, Latency]:
    """Return the latencies by reported class, in ms, with the bands of the parameters and the discrepancy."""
    found: dict[str, Latency] = {}
    for name in figures.asked:
        latencies = zip(STATISTICS, figures.latencies_s(name), strict=True)
        bands = {statistic: uncertainty.of_time(each * 1e3, name, statistic) for statistic, each in latencies}
        found[name] = in_order(Latency(**bands))
    return found


Seen = dict[str, Histogram]  # latencies by reported class
Composed = Callable[[Values], Network]
DrawPhases = list[tuple[float, Seen]]  # of one draw: the share of the requests that each phase has, and what was seen

SLOWEST = 1.0  # requests per second: a run of thousands of them is hours of simulated time
_WORTH_TELLING = 1.2
_SETTLINGS = 1.5  # settling times that a run must last after its warm-up of one: a shorter one shows the transient
_ENDLESS = "The offered rate exceeds the capacity: latency grows without bound."
_ALL_WAIT = "The offered rate exceeds the capacity and all clients wait: latencies come from the closed form."
_FILLS = (
    "In this overload, buffers fill for minutes before a request is dropped: latencies come from the analytic solver "
    "for the time after that."
)
_UNBOUNDED = " Some draws do not sustain the rate: unbounded figures come from the closed form."
_TOO_SLOW = (
    "So near saturation the system takes {:,.0f} s to settle, longer than --budget simulates: latencies come from the "
    "closed form."
)
_TOO_LARGE = (
    "At {:,.0f} requests per second, runs that last long enough to settle would take {:,.0f} s of --budget: latencies "
    "come from the analytic solver."
)
_OVERDRAWN = 12.0  # times the budget that runs may cost in order to settle
_SLOW_TO_SETTLE = 0.95  # share of the capacity above which queues settle so slowly that runs are twice as long
_IN_BURSTS = 0.25  # of the measured requests: at 80 % of capacity every figure is within 13 % of its least variance


@dataclass(frozen=True)
class SimulationSettings:
    """How to simulate.

    Attributes
    ----------
    seed, engine
        The seed of all runs (they are numbered), and the engine.
    budget_s
        Seconds of a nominal machine; see `capplan.planner.predict.simulated_latency`.
    progress
        Called with the number of finished runs and of all runs.
    threads
        How many runs of the compiled engine go on at a time; None is as many as there are processors.
    """

    seed: int
    engine: Engine
    budget_s: float = DEFAULT_BUDGET_S
    progress: RunsDone | None = None
    threads: int | None = None


@dataclass(frozen=True)
class SimulatedLatency:
    """Latencies by reported class (ms), notes on their origin, and their relations to analytic latencies."""

    latency_ms: dict[str, Latency]
    note: str
    relations: dict[tuple[str, str], Relation] = field(default_factory=dict)


def simulated_latency(
    case: Case[Any], figures: Figures, settings: SimulationSettings, composed: Composed | None = None
) -> SimulatedLatency:
    """Simulate draws of the ensemble and return latencies with all parts of their bands.

    Parameters
    ----------
    case : Case
        The layout with its parameters.
    figures : Figures
        The analytic figures of all draws at the offered peak rate.
    settings : SimulationSettings
        Seed, engine and budget.
    composed : function, optional
        Composes the network from parameter values, where it is not the whole layout.
    """
    uncertainty = case.uncertainty
    if figures.is_pushed_back:
        return SimulatedLatency(solved_latency(figures, uncertainty), _FILLS)
    settles_s = settling_s(case, figures)
    size = _effort(figures, settings, settles_s)
    size = replace(size, requests=enough_requests(size.requests, case, figures))
    if is_too_slow(figures, size.requests, settles_s):
        why = _ALL_WAIT if figures.bounded else _ENDLESS
        if float(np.median(figures.peak_rate / figures.analysis.drift_per_s)) < 1:
            why = _TOO_SLOW.format(settles_s)
        return SimulatedLatency(solved_latency(figures, uncertainty), why)
    if figures.closed is None:
        rate = float(np.median(figures.peak_rate))
        size = replace(size, requests=max(size.requests, int(settles_s * rate)))
        cost = cost_s(size, _visits(figures), settings.engine)
        if cost > _OVERDRAWN * max(settings.budget_s, DEFAULT_BUDGET_S) and settings.engine == "compiled":
            return SimulatedLatency(solved_latency(figures, uncertainty), _TOO_LARGE.format(rate, cost))
    chosen = evenly_along(mean_response_s(figures), size.draws)
    simulation = RateSimulation(ChosenDraws(case, chosen, composed), figures.peak_rate, size.requests, settings)
    relations = relations_of(simulation.run(range(size.draws)), chosen, figures)
    found = extended_to_all(relations, figures, uncertainty)
    gains = [1.0 if each is None else each.variance_ratio**0.5 for each in relations.values()]
    note = _note(size, figures, gains, len(simulation.phases) > 1)
    return SimulatedLatency(found, note, {key: each for key, each in relations.items() if each is not None})


def settling_s(case: Case[Any], figures: Figures) -> float:
    """Return how long the layout takes to settle from empty at the offered rate, seconds; the median over draws."""
    return float(
        np.median(case.system.component(Simulations).settling_s(case.scenario, case.values, figures.peak_rate))
    )


def enough_requests(requests: int, case: Case[Any], figures: Figures) -> int:
    """Return the number of requests to measure: twice as many near and beyond the capacity, where queues are slow."""
    slow = np.median(figures.peak_rate / case.solution.capacity) > _SLOW_TO_SETTLE
    return 2 * requests if slow else requests


def is_too_slow(figures: Figures, requests: int, settles_s: float) -> bool:
    """Whether a run is too short for the layout to settle and a closed form is available instead."""
    return figures.closed is not None and requests < _SETTLINGS * settles_s * float(np.median(figures.peak_rate))


def mean_response_s(figures: Figures) -> FloatArray:
    """Return the analytic mean response of all requests, the sort key of draws; shape (draws,)."""
    return figures.point.response_s(*figures.point.request_shares)


def relations_of(
    phases: Sequence[DrawPhases], chosen: IntArray, figures: Figures
) -> dict[tuple[str, str], Relation | None]:
    """Fit the lines from analytic to simulated latencies at the simulated draws.

    Parameters
    ----------
    phases
        What was simulated, by chosen draw.
    chosen
        Which draws these are.
    figures : Figures
        The analytic figures of all draws at the offered peak rate.

    Returns
    -------
    mapping
        By reported class and statistic; None where an analytic figure has no bound at some draw. A class of which
        no request completed in some draw is left out.
    """
    found: dict[tuple[str, str], Relation | None] = {}
    for name in figures.asked:
        seen = samples([[(share, latencies[name]) for share, latencies in draw] for draw in phases])
        if not np.all(np.isfinite(seen.mean_s)):
            continue
        for statistic, analytic in zip(STATISTICS, figures.steady.latencies_s(name), strict=True):
            bounded = np.all(np.isfinite(analytic))  # no line goes through infinity
            found[name, statistic] = related(analytic[chosen], seen, LEVELS.get(statistic)) if bounded else None
    return found


def extended_to_all(
    relations: Mapping[tuple[str, str], Relation | None], figures: Figures, uncertainty: Uncertainty
) -> dict[str, Latency]:
    """Return the latencies at all draws by reported class, ms, extended from the simulated draws.

    Parameters
    ----------
    relations
        Simulated over analytic latencies, from `relations_of`; a latency with None is taken as solved.
    figures : Figures
        The analytic figures of all draws at the offered peak rate.
    uncertainty : Uncertainty
        The model error.
    """
    found: dict[str, Latency] = {}
    for name in figures.asked:
        bands: dict[str, Band | None] = {}
        for statistic, plain in zip(STATISTICS, figures.steady.latencies_s(name), strict=True):
            if (name, statistic) not in relations:
                continue
            relation, of = relations[name, statistic], (name, statistic)
            if relation is None:
                bands[statistic] = uncertainty.of_time(figures.latency_s(*of) * 1e3, *of)
            else:
                longer_s = figures.corrected_s(*of, relation.at) - relation.at(plain)
                bands[statistic] = extended_band(relation, plain, uncertainty, of, longer_s)
        found[name] = in_order(Latency(**bands))
    return found


def extended_band(
    relation: Relation,
    analytic_s: FloatArray,
    uncertainty: Uncertainty,
    of: tuple[str, str] = ("", "mean"),
    longer_s: FloatArray | float = 0.0,
) -> Band:
    """Return the band of a time in ms, from parameter uncertainty, model error and simulation error.

    Parameters
    ----------
    relation : Relation
        Between simulated and analytic figures of the simulated draws, in seconds.
    analytic_s : array
        Analytic figures of all draws, in seconds; shape (draws,).
    uncertainty : Uncertainty
        The model error.
    of
        The request class, and which figure it is.
    longer_s : array or number
        How much longer pauses make the figure, which the simulation leaves out, in seconds; shape (draws,).
    """
    ends, simulated_s = (LOW, 0.5, HIGH), relation.at(analytic_s)
    band = uncertainty.of_time((simulated_s + longer_s) * 1e3, *of)
    # Simulation is uncertain about its own part of the figure alone.
    own = np.quantile(simulated_s, ends) / np.quantile(simulated_s + longer_s, ends)
    widths = own * [relation.half_width(float(x)) for x in np.quantile(analytic_s, ends)]
    low, middle, high = map(float, widths)
    return Band(
        value=band.value,
        low=band.value * float(np.exp(-np.hypot(np.log(band.value / band.low), low))),
        high=band.value * float(np.exp(np.hypot(np.log(band.high / band.value), high))),
        parts=replace(band.parts, simulation=band.value * float(np.sinh(middle))),
    )


def _effort(figures: Figures, settings: SimulationSettings, settles_s: float) -> Effort:
    warmup = settles_s * float(np.mean(figures.peak_rate + figures.point.rate_per_s))
    return effort(settings.budget_s, figures.analysis.network, _visits(figures), warmup, settings.engine)


def _visits(figures: Figures) -> float:
    """Return the mean number of visits of a request to stations."""
    analysis = figures.analysis
    return sum(float(np.mean(each.visits)) * analysis.members[name] for name, each in analysis.demands.items())


@dataclass(frozen=True)
class Phase:
    """A phase of the traffic with a constant rate.

    Attributes
    ----------
    share : array
        Share of the requests that come in it, by chosen draw.
    rate : array
        Its rate over the peak rate, by chosen draw.
    measured : float
        Share of the measured requests that it gets.
    """

    share: FloatArray
    rate: FloatArray
    measured: float


class ChosenDraws:
    """A layout with selected parameter draws, as a network without bursts.

    Parameters
    ----------
    case : Case
        The layout, and the parameters with all draws.
    chosen
        Which draws may be simulated.
    composed : function, optional
        Composes the network from parameter values, for any rate; by default that of the layout.
    """

    def __init__(self, case: Case[Any], chosen: IntArray, composed: Composed | None = None) -> None:
        self.chosen, self.reported, values = chosen, case.system.reported, case.values
        self.settling = partial(case.system.component(Simulations).settling_s, case.scenario, values)
        self.phases = _phases(cast("Open", case.solution.network.traffic).arrivals, chosen)
        every = np.tile(chosen, len(self.phases))
        whole = partial(case.system.network, case.scenario, rate_per_s=np.ones(len(every)))
        self._network = (composed or whole)(at_draws(values, every))

    def at(self, rates: FloatArray) -> Network:
        """Return the network at a rate for each draw, one phase after another."""
        traffic = cast("Open", self._network.traffic)  # every system has open traffic here
        return replace(self._network, traffic=replace(traffic, rate_per_s=rates, arrivals=Poisson()))


def _phases(arrivals: Arrivals, chosen: IntArray) -> tuple[Phase, ...]:
    """Return the time between bursts and the bursts; one phase where the traffic has none."""
    every = np.ones(len(chosen))
    if not isinstance(arrivals, Bursty) or np.all(np.asarray(arrivals.burst_ratio) == 1):
        return (Phase(every, every, 1.0),)
    ratio, fraction = (
        value[chosen] if isinstance(value, np.ndarray) else value
        for value in (arrivals.burst_ratio, arrivals.burst_fraction)
    )
    in_bursts = np.asarray(fraction * ratio * every)
    calm = np.asarray((1 / ratio - fraction) / (1 - fraction) * every)
    return Phase(1 - in_bursts, calm, 1 - _IN_BURSTS), Phase(in_bursts, every, _IN_BURSTS)


class RateSimulation:
    """A simulation of selected draws at one offered rate, a few draws at a time.

    Parameters
    ----------
    drawn
        The draws.
    peak_rate
        The offered peak rate by draw, all of them; shape (draws,).
    requests
        How many are measured at each.
    settings
        How to simulate; its budget is ignored.

    Raises
    ------
    InputError
        When the rate is too low to simulate.
    """

    def __init__(self, drawn: ChosenDraws, peak_rate: FloatArray, requests: int, settings: SimulationSettings) -> None:
        self.requests, self.settings, self.phases = requests, settings, drawn.phases
        self.reported = drawn.reported
        self.settles_s = float(np.median(drawn.settling(peak_rate)))
        peak = peak_rate[drawn.chosen]
        if peak.min() < SLOWEST:
            raise InputError(
                f"{peak.min():g} requests per second are too few to simulate: offer {SLOWEST:g} or more, or use "
                "--engine analytic"
            )
        self.draws = len(peak)
        self.rates = np.concatenate([peak * phase.rate for phase in self.phases])
        self.network = drawn.at(self.rates)

    def run(self, places: range) -> list[DrawPhases]:
        """Simulate the selected draws at the given indices; return each draw's latencies by phase."""
        settings = self.settings
        runs = [self._run(number, place) for number in range(len(self.phases)) for place in places]
        seen = simulate_draws(
            self.network,
            runs,
            self._seen,
            seed=settings.seed,
            engine=settings.engine,
            progress=settings.progress,
            threads=settings.threads,
        )
        return [
            [(float(phase.share[place]), seen[number * len(places) + at]) for number, phase in enumerate(self.phases)]
            for at, place in enumerate(places)
        ]

    def _run(self, number: int, place: int) -> DrawRun:
        """Return a run of a phase; its warm-up is at most as long as its measurement."""
        place += number * self.draws
        window_s = int(self.requests * self.phases[number].measured) / float(self.rates[place])
        warmup_s = min(self.settles_s, window_s)
        return DrawRun(place, place, warmup_s + window_s, warmup_s)

    def _seen(self, run: Run) -> Seen:
        known = {request.name for request in self.network.classes}
        classes = {name: [each for each in parts if each in known] for name, parts in self.reported.items()}
        return {
            name: reduce(add, (run.report(each).intended for each in parts)) for name, parts in classes.items() if parts
        }


def _note(size: Effort, figures: Figures, gains: list[float], bursts: bool) -> str:
    separately = ", bursts and the time between them separately," if bursts else ""
    text = (
        f"Latencies are simulated at {size.draws} parameter draws, {size.requests:,} requests each{separately} and "
        f"extended to all {figures.analysis.draws} draws by the analytic solutions."
    )
    gain = float(np.median(gains)) if gains else 0.0
    if gain >= _WORTH_TELLING:
        text += f" Without them, the simulation part of a band would be {gain:.2g} times as wide (median)."
    if len(gains) < len(figures.asked) * len(STATISTICS):
        text += " Where no measured request completed, there is no figure."
    if not all(np.all(np.isfinite(figures.latency_s(name, "mean"))) for name in figures.asked):
        text += _UNBOUNDED
    return f"{text} Four times the --budget halves the simulation part."
