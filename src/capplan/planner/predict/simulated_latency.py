"""Latencies by simulation: some draws are simulated, and extended to all by their analytic figures.

Draws are chosen evenly along the order of their analytic mean response, so that they stand for the ensemble. Bursts and
the time between them are simulated apart and mixed by their shares of the requests: a run that is long enough to hold
many bursts would take minutes, and bursts are long beside the time to settle.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from operator import add
from typing import Any, cast

import numpy as np

from capplan.calibration.case.ensemble import evenly_along
from capplan.calibration.case.solution import LEVELS, Figures
from capplan.calibration.case.uncertainty import HIGH, LOW, Uncertainty
from capplan.calibration.system import DEFAULT_BUDGET_S, Case
from capplan.models.errors import InputError
from capplan.models.language.network import Network
from capplan.models.language.parameter import Values
from capplan.models.language.traffic import Arrivals, Bursty, Open, Poisson
from capplan.models.language.units import FloatArray
from capplan.models.results import STATISTICS, Band, Latency
from capplan.planner.predict.budget import Effort, cost_s, effort
from capplan.planner.predict.draw_relation import Relation, related, samples
from capplan.planner.predict.percentile_order import in_order
from capplan.planner.predict.solved_latency import solved_latency
from capplan.simulator.engine import Engine
from capplan.simulator.experiments.draws import DrawRun, RunsDone, simulate_draws
from capplan.simulator.results.histogram import Histogram, IntArray
from capplan.simulator.results.run import Run

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
        Seconds of a nominal machine; see `capplan.planner.predict.budget`.
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
    """Latencies by reported class (ms), a note on how they were obtained, and what relates them to analytic ones."""

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
        sustained = float(np.median(figures.peak_rate / figures.analysis.drift_per_s)) < 1
        beyond = _ALL_WAIT if figures.bounded else _ENDLESS
        return SimulatedLatency(
            solved_latency(figures, uncertainty), _TOO_SLOW.format(settles_s) if sustained else beyond
        )
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
    return float(np.median(case.system.settling_s(case.scenario, case.values, figures.peak_rate)))


def enough_requests(requests: int, case: Case[Any], figures: Figures) -> int:
    """Return how many requests to measure: twice as many beside the capacity and beyond it, where queues are slow."""
    slow = np.median(figures.peak_rate / case.solution.capacity) > _SLOW_TO_SETTLE
    return 2 * requests if slow else requests


def is_too_slow(figures: Figures, requests: int, settles_s: float) -> bool:
    """Whether a run of so many requests ends before the layout has settled, and a closed form does better."""
    return figures.closed is not None and requests < _SETTLINGS * settles_s * float(np.median(figures.peak_rate))


def mean_response_s(figures: Figures) -> FloatArray:
    """Return the analytic mean response of all requests, by which draws are put in order; shape (draws,)."""
    return figures.point.response_s(*figures.point.request_shares)


def relations_of(
    phases: Sequence[DrawPhases], chosen: IntArray, figures: Figures
) -> dict[tuple[str, str], Relation | None]:
    """Relate the latencies that were simulated at some draws to the analytic ones.

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
        for statistic, analytic in zip(STATISTICS, figures.without_pauses.latencies_s(name), strict=True):
            bounded = np.all(np.isfinite(analytic))  # no line goes through infinity
            found[name, statistic] = related(analytic[chosen], seen, LEVELS.get(statistic)) if bounded else None
    return found


def extended_to_all(
    relations: Mapping[tuple[str, str], Relation | None], figures: Figures, uncertainty: Uncertainty
) -> dict[str, Latency]:
    """Return the latencies at all draws by reported class, ms, from those that were simulated at some.

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
        paused = figures.latencies_s(name)
        plain = paused if figures.pausing is None else figures.without_pauses.latencies_s(name)
        more = np.subtract(paused, plain, out=np.zeros_like(plain), where=np.isfinite(plain))
        for statistic, analytic, longer in zip(STATISTICS, plain, more, strict=True):
            if (name, statistic) not in relations:
                continue
            relation = relations[name, statistic]
            bands[statistic] = (
                uncertainty.of_time((analytic + longer) * 1e3, name, statistic)
                if relation is None
                else extended_band(relation, analytic, uncertainty, (name, statistic), longer)
            )
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
    """A part of the time at a constant rate.

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
    """A layout with chosen draws of its parameters, as a network without bursts.

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
        self.settling = partial(case.system.settling_s, case.scenario, values)
        mine = {name: value[chosen] if isinstance(value, np.ndarray) else value for name, value in values.items()}
        self.phases = _phases(cast("Open", case.solution.network.traffic).arrivals, chosen)
        count = len(self.phases)
        every = {
            name: np.tile(value, count) if isinstance(value, np.ndarray) else value for name, value in mine.items()
        }
        whole = partial(case.system.network, case.scenario, rate_per_s=np.ones(count * len(chosen)))
        self._network = (composed or whole)(every)

    def at(self, rates: FloatArray) -> Network:
        """Return the network at a rate for each draw in the first phase, and then for each in the next."""
        traffic = cast("Open", self._network.traffic)  # every system is asked by open traffic
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
    """Chosen draws at one offered rate, simulated a few at a time.

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
        """Simulate the chosen draws at these places; return the latencies in the phases of each."""
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
