"""A layout that is analysed once, and its figures at any peak rate, as arrays over parameter draws."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, TypeVar

import numpy as np

from capplan.answers.objective import Metric
from capplan.answers.results import STATISTICS
from capplan.layout.ensemble import Places
from capplan.models.language.network import Network
from capplan.models.language.scenario import Scenario
from capplan.models.language.units import FloatArray
from capplan.models.solver.analytic import Analysis
from capplan.models.solver.operating_point import (
    MAX_DROP_RATE,
    Indices,
    OperatingPoint,
    SteadyState,
    capacity_per_s,
    idle_point,
    peak_ratio,
    solve,
)
from capplan.models.solver.pauses import RareDelay
from capplan.models.solver.single_station import busy_share

S = TypeVar("S", bound=Scenario)
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(5)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


def varied(point: OperatingPoint, log_sd: FloatArray | None) -> OperatingPoint:
    """Spread what requests spend at stations over the speeds of a run.

    The factor on it is lognormal with the mean 1, by Gauss-Hermite quadrature; means stay. Distances and other delays
    do not depend on the speed of nodes.

    Parameters
    ----------
    point : OperatingPoint
        The steady state.
    log_sd : array (..., draws) or None
        Standard deviation of the logarithm of the speed; None: it does not vary.
    """
    if log_sd is None:
        return point
    factor = np.exp(log_sd[..., None] * (_NODES - _NODES.max()))  # at most 1, however much the speed varies
    factor = factor / np.sum(factor * _WEIGHTS, axis=-1, keepdims=True)

    def joined(values: FloatArray) -> FloatArray:
        return values.reshape(*values.shape[:-2], -1)

    def spread(state: SteadyState) -> SteadyState:
        def of(parts: Mapping[str, FloatArray], order: int) -> dict[str, FloatArray]:
            """Return the cumulants of some order, as parts (..., parts x speeds)."""
            found = {}
            for name, part in parts.items():
                delay = np.where(part > 0, np.minimum(part, state.delays[name][..., order - 1]), 0.0)
                work = (part - delay)[..., :, None] * factor[..., None, :] ** order
                found[name] = joined(delay[..., :, None] + work)
            return found

        weight = {name: joined(each[..., :, None] * _WEIGHTS) for name, each in state.weight.items()}
        cumulants = of(state.mean_s, 1), of(state.variance_s2, 2), of(state.third_s3, 3)
        return replace(state, weight=weight, mean_s=cumulants[0], variance_s2=cumulants[1], third_s3=cumulants[2])

    return replace(point, states=tuple(map(spread, point.states)))


LEVELS = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}
_WORKERS = 0.8  # share of the stations' bound below which the pool of workers is the bottleneck


Pausing = Callable[[Analysis, FloatArray, Places | None], Mapping[str, Sequence[RareDelay]]]
"""Delays by pauses of nodes, by class of the network.

A function of the analysis, the mean rate (..., solved draws), and the solved draw that represents each draw of the
ensemble; None asks for the delays of the solved draws.
"""
Varying = Callable[[FloatArray], FloatArray]
"""How much the speed of nodes varies in a run, as the standard deviation of its logarithm, at a utilisation."""
ClosedForm = Callable[[FloatArray, float | None], FloatArray]
"""Response time in closed form, seconds: a function of the offered rate and of a percentile's level (None: mean)."""


@dataclass(frozen=True)
class Figures:
    """Figures of a layout at offered peak rates; arrays (..., draws), SI.

    With `place`, only representative draws are solved (see `capplan.layout.uncertainty`): `analysis`,
    `peak_rate` and `point` have these draws; every other figure has all draws.

    Attributes
    ----------
    analysis : Analysis
        The analysed network.
    peak_rate : array (..., draws)
        Offered peak rates, requests per second over all data centres.
    reported : mapping of tuples of str
        Classes of the network, by reported request class.
    closed : function or None
        Response times in closed form, if they are better than the solver's.
    bounded : bool
        Whether clients wait for their answers, so that latency stays finite beyond capacity.
    place : array of int (draws,) or None
        For each draw of the ensemble, the index of its representative among the solved draws.
    pausing : function or None
        Delays by pauses of nodes. They lengthen percentiles alone; see `Pauses`.
    varying : function or None
        How much the speed of nodes varies in a run. It widens percentiles alone; see `Pauses`.
    """

    analysis: Analysis
    peak_rate: FloatArray
    reported: Mapping[str, tuple[str, ...]]
    closed: ClosedForm | None = None
    bounded: bool = False
    place: Places | None = None
    pausing: Pausing | None = None
    varying: Varying | None = None

    @cached_property
    def steady(self) -> Figures:
        """The figures for nodes that never pause and keep a constant speed, as in a simulation."""
        return self._at_the_same_point(pausing=None, varying=None)

    @cached_property
    def without_pauses(self) -> Figures:
        """The figures for nodes that never pause."""
        return self._at_the_same_point(pausing=None)

    def represented(self, place: Places) -> Figures:
        """Return the figures as if only some draws were solved; `place` (draws,) maps draws to representatives."""
        return self._at_the_same_point(place=place)

    def _at_the_same_point(self, **changes: Any) -> Figures:
        found = replace(self, **changes)
        vars(found)["point"] = self.point
        return found

    @cached_property
    def _delays(self) -> Mapping[str, Sequence[RareDelay]] | None:
        return None if self.pausing is None else self.pausing(self.analysis, self.point.rate_per_s, self.place)

    @property
    def asked(self) -> tuple[str, ...]:
        """Reported classes that occur in the traffic."""
        return tuple(name for name, classes in self.reported.items() if set(classes) & self.analysis.share.keys())

    @cached_property
    def point(self) -> OperatingPoint:
        """The solved operating point."""
        return _point(self.analysis, self.peak_rate.tobytes(), self.peak_rate.shape)

    def latency_s(self, name: str, statistic: str) -> FloatArray:
        """Return the response time of a reported class from the intended start, seconds (..., draws).

        Parameters
        ----------
        name : str
            The reported class.
        statistic : str
            `mean`, or a key of `LEVELS`.
        """
        return self.time_s(self.reported[name], None if statistic == "mean" else LEVELS[statistic])

    def corrected_s(self, name: str, statistic: str, corrected: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """Return a response time with pauses; that of steady nodes is replaced, such as by a simulated one.

        The percentile is that of requests whose times at steady nodes are all longer by the same factor. Seconds
        (..., draws). A delay that ends at a retry ends when it did.

        Parameters
        ----------
        name, statistic : str
            As for `latency_s`.
        corrected : function
            Returns the right response times of steady nodes (..., draws) for those of the solver.
        """
        if self.closed is not None or statistic == "mean" or (self.varying is None and self.pausing is None):
            return corrected(self.steady.latencies_s(name)[STATISTICS.index(statistic)])
        return self.percentile(name, statistic, corrected)()

    def percentile(
        self, name: str, statistic: str, corrected: Callable[[FloatArray], FloatArray] | None = None
    ) -> Callable[..., FloatArray]:
        """Return a percentile with pauses, seconds, as a function of places in (..., draws): everywhere by default.

        Parameters
        ----------
        name, statistic, corrected
            As for `corrected_s`; by default, nothing is corrected.
        """
        factor, delays = np.ones(()), self._delays
        if corrected is not None:
            solved = self.steady.latencies_s(name)[STATISTICS.index(statistic)]
            right = corrected(solved)
            factor = np.divide(right, solved, out=np.ones_like(right), where=np.isfinite(right) & np.isfinite(solved))
            if delays is not None:
                delays = {each: [delay.over(factor) for delay in of] for each, of in delays.items()}

        def found(at: Indices | None = None) -> FloatArray:
            own = factor if at is None or factor.ndim == 0 else factor[at]
            return np.asarray(own * self._quantiles_s((LEVELS[statistic],), self.reported[name], delays, at)[0])

        return found

    def time_s(self, classes: Sequence[str], level: float | None) -> FloatArray:
        """Return the response time over some network classes, seconds (..., draws).

        Parameters
        ----------
        classes : sequence of str
            Classes of the network.
        level : float or None
            Level of a percentile; None for the mean.
        """
        if self.closed is not None:
            return self._every(self._closed_s(self.closed, level))
        if level is None:
            return self._every(self.point.response_s(*classes))
        return np.asarray(self._quantiles_s((level,), classes, self._delays)[0])

    def latencies_s(self, name: str) -> FloatArray:
        """Return the mean and the percentiles of `LEVELS` of a reported class, seconds (statistics, ..., draws)."""
        if name not in self._known_s:
            self._known_s[name] = self._latencies_s(name)
        return self._known_s[name]

    @cached_property
    def _known_s(self) -> dict[str, FloatArray]:
        return {}

    def _latencies_s(self, name: str) -> FloatArray:
        if self.closed is not None:
            return self._every(np.stack([self._closed_s(self.closed, level) for level in (None, *LEVELS.values())]))
        classes = self.reported[name]
        mean = self._every(self.point.response_s(*classes))
        return np.concatenate([mean[None], self._quantiles_s(tuple(LEVELS.values()), classes, self._delays)])

    def _quantiles_s(
        self,
        levels: Sequence[float],
        classes: Sequence[str],
        delays: Mapping[str, Sequence[RareDelay]] | None,
        at: Indices | None = None,
    ) -> FloatArray:
        """Return percentiles (levels, ..., draws); each draw has its own pauses, even if another draw represents it."""
        if delays is None:
            found = self._every(self._varied_point.quantiles_s(levels, *classes))
            return found if at is None else found[(slice(None), *at)]  # type: ignore[arg-type]  # mypy takes no slice in such an index
        return self._varied_point.quantiles_s(levels, *classes, delays=delays, place=self.place, at=at)

    @cached_property
    def _varied_point(self) -> OperatingPoint:
        """The operating point used for percentiles, with varying node speed."""
        if self.varying is None:
            return self.point
        utilisation = np.minimum(self.point.rate_per_s / self.analysis.drift_per_s, 1.0)
        return varied(self.point, self.varying(utilisation))

    def _closed_s(self, closed: ClosedForm, level: float | None) -> FloatArray:
        """Return a figure in closed form; infinite beyond the sustained rate unless clients wait for their answers."""
        if self.bounded:
            return closed(self.peak_rate, level)
        return np.where(self.peak_rate < self.analysis.drift_per_s, closed(self.peak_rate, level), np.inf)

    def utilisation(self, resource: str) -> FloatArray:
        """Return the mean share of busy servers at the most loaded station of a resource (..., draws)."""
        return self._every(_utilisation(self.analysis, resource, self._completed_per_s))

    def busy_workers(self) -> FloatArray:
        """Return the mean number of busy units of one outermost pool, such as workers of a front node (..., draws)."""
        return self._every(self.point.busy_units / max(self.analysis.outer_pool_count, 1))

    def pool_utilisation(self) -> FloatArray | None:
        """Return the mean share of busy units of the outermost pools (..., draws); None without such pools."""
        pool = self.analysis.pool
        return None if pool is None else self._every(self.point.busy_units / pool[0])

    @property
    def drop_rate(self) -> FloatArray:
        """Share of the requests that are dropped (..., draws); without pools, they wait instead."""
        dropped = self.point.drop_rate
        return self._every(dropped if self.analysis.pool is not None else np.zeros_like(dropped))

    @property
    def peak_ratio(self) -> FloatArray:
        """Peak rate over mean rate (solved draws,)."""
        return peak_ratio(self.analysis)

    @property
    def throughput_per_s(self) -> FloatArray:
        """Mean rate of the requests that complete, per second (..., draws)."""
        return self._every(self._completed_per_s)

    @property
    def _completed_per_s(self) -> FloatArray:
        done = self.point.rate_per_s * (1 - self.point.drop_rate)
        return done if self.analysis.pool is not None else np.minimum(done, self.analysis.drift_per_s)

    @property
    def is_pushed_back(self) -> bool:
        """Whether for most draws a station off the response path pushes back: once its buffer is full."""
        if self.analysis.pool is None:
            return False
        least = self.analysis.least_drop_rate(self.peak_rate / self.peak_ratio)
        return bool(np.mean((least > 0) & (least >= self.point.drop_rate)) > 0.5)

    def value(self, metric: Metric) -> FloatArray:
        """Return the figure of an objective's metric (..., draws); not of `capacity`, which has no single rate."""
        if metric.name == "drop_rate":
            return self.drop_rate
        if metric.statistic == "utilisation":
            return self.utilisation(metric.subject)
        if metric.statistic == "busy_workers":
            return self.busy_workers()
        return self.latency_s(metric.subject, metric.statistic)

    def _every(self, values: FloatArray) -> FloatArray:
        """Give every draw the value of its representative."""
        return np.asarray(values if self.place is None else values[..., self.place])


@dataclass(frozen=True)
class Occupancy:
    """What a mean request takes of a resource.

    Attributes
    ----------
    members
        How many of it there are, such as nodes.
    work_ms
        Time for which a request alone would fill one of them, summed over all, milliseconds.
    busiest
        Work of the busiest member over the mean of all.
    """

    members: int
    work_ms: float
    busiest: float


class Solution:
    """A layout with its parameters, analysed once; figures at any rate follow from it.

    Parameters
    ----------
    network : Network
        The composed system.
    reported : mapping of tuples of str
        Classes of the network, by reported request class.
    closed : function, optional
        Response times in closed form, if they are better than the solver's.
    bounded : bool
        Whether clients wait for their answers, so that latency stays finite beyond capacity.
    place : array of int (draws,), optional
        For each draw of the ensemble, the index of its representative among the draws of the network; by default the
        network has all draws. Figures always have all draws.
    pausing : function, optional
        Delays by pauses of nodes.
    varying : function, optional
        How much the speed of nodes varies in a run.
    """

    def __init__(
        self,
        network: Network,
        reported: Mapping[str, tuple[str, ...]],
        closed: ClosedForm | None = None,
        bounded: bool = False,
        place: Places | None = None,
        pausing: Pausing | None = None,
        varying: Varying | None = None,
    ) -> None:
        self.network, self.reported, self.closed, self.bounded, self.place = network, reported, closed, bounded, place
        self.pausing, self.varying, self.analysis = pausing, varying, _analysis(pickle.dumps(network))

    def at(self, peak_rate: float | FloatArray) -> Figures:
        """Return the figures at offered peak rates.

        Parameters
        ----------
        peak_rate : float or array (..., draws or 1)
            Requests per second over all data centres.

        Returns
        -------
        Figures
            Arrays (..., draws).
        """
        return replace(self._solved_at(peak_rate), place=self.place)

    @property
    def idle(self) -> Figures:
        """The figures of requests that are alone in the system (draws,)."""
        figures = self.at(0.0)
        vars(figures)["point"] = idle_point(self.analysis)
        return figures

    def _solved_at(self, peak_rate: float | FloatArray) -> Figures:
        """Return the figures of the solved draws."""
        rate = np.asarray(peak_rate, dtype=float)
        every = np.broadcast_to(rate, np.broadcast_shapes(rate.shape, (self.analysis.draws,)))
        pausing = None if self.pausing is None else self._up_to_capacity(self.pausing)
        return Figures(
            self.analysis, every, self.reported, self.closed, self.bounded, pausing=pausing, varying=self.varying
        )

    def _up_to_capacity(self, pausing: Pausing) -> Pausing:
        """Cap the delay of pauses beyond the capacity at its value at the capacity.

        All places are taken there, with pauses or without, so a longer queue cannot build up behind a paused node.
        """

        def at_most(
            analysis: Analysis, rate_per_s: FloatArray, place: Places | None
        ) -> Mapping[str, Sequence[RareDelay]]:
            most = self._capacity / peak_ratio(analysis) if self.finite_at_capacity else np.inf
            return pausing(analysis, np.minimum(rate_per_s, most), place)

        return at_most

    @property
    def finite_at_capacity(self) -> bool:
        """Whether latency stays finite at the capacity: excess requests are dropped, or clients wait for answers."""
        return self.bounded or self.analysis.server is not None

    @cached_property
    def capacity(self) -> FloatArray:
        """Highest peak rate with at most `MAX_DROP_RATE` and no growing backlog, requests per second (draws,)."""
        return self._every(self._capacity)

    @cached_property
    def _capacity(self) -> FloatArray:
        return _capacity(self.analysis)

    def _every(self, values: FloatArray) -> FloatArray:
        """Give every draw the value of its representative."""
        return values if self.place is None else values[self.place]

    def at_shares(self, shares: FloatArray) -> Figures:
        """Return the figures at shares (rates, solved draws or 1) of each draw's capacity; arrays (rates, draws)."""
        return self.at(shares * self._capacity)

    @property
    def burst_ratio(self) -> FloatArray:
        """Peak rate over mean rate (draws,); 1 where traffic has no bursts."""
        return self._every(peak_ratio(self.analysis))

    def utilisation_at_capacity(self, resource: str) -> FloatArray:
        """Return the mean share of busy servers at the most loaded station of a resource, at the capacity."""
        return self._every(_utilisation(self.analysis, resource, self._capacity / peak_ratio(self.analysis)))

    def occupancy(self, resource: str) -> Occupancy:
        """Return what requests take of a resource; of medians over the draws."""
        analysis = self.analysis
        names = [name for name in analysis.demands if kind_of(name) == resource]
        loads_s = {name: float(np.median(analysis.load(name))) for name in names}
        members = sum(analysis.members[name] for name in names)
        whole_s = sum(analysis.members[name] * loads_s[name] for name in names)
        return Occupancy(members, whole_s * 1e3, max(loads_s.values()) * members / whole_s)

    @property
    def bottleneck(self) -> str:
        """The resource that limits the capacity: a kind of station, `native-transport` or `workers`.

        It is `workers` if requests are dropped although every station is less than 80 % utilised.
        """
        analysis = self.analysis
        capacity = np.median(self._capacity / peak_ratio(analysis))
        if capacity < _WORKERS * np.median(np.minimum(analysis.drift_per_s, analysis.saturation_per_s)):
            return "workers"
        if np.median(analysis.inner_pools_per_s) <= np.median(analysis.drift_per_s):
            return "native-transport"
        return self.resources[0]

    @property
    def resources(self) -> tuple[str, ...]:
        """Kinds of stations, most loaded first."""
        return tuple(dict.fromkeys(kind_of(names[0]) for names in self.analysis.clusters))


# Layouts that differ only in what the network does not show, such as pauses or objectives, share what is solved.
@lru_cache(maxsize=32)
def _analysis(pickled: bytes) -> Analysis:
    return Analysis(pickle.loads(pickled))  # noqa: S301  # pickled by this process, above


@lru_cache(maxsize=32)
def _capacity(analysis: Analysis) -> FloatArray:
    """Return the capacity as a peak rate (solved draws,), requests per second."""
    return np.asarray(capacity_per_s(analysis, MAX_DROP_RATE) * peak_ratio(analysis))


@lru_cache(maxsize=128)  # an objective needs about a hundred, each of up to 3 MB
def _point(analysis: Analysis, peak_rates: bytes, shape: tuple[int, ...]) -> OperatingPoint:
    return solve(analysis, np.frombuffer(peak_rates).reshape(shape) / peak_ratio(analysis))


def kind_of(name: str) -> str:
    """Return the kind of a station or pool: its name up to the first slash, such as `cassandra`."""
    return name.split("/", 1)[0]


def _utilisation(analysis: Analysis, resource: str, completed_per_s: FloatArray) -> FloatArray:
    names = [name for name in analysis.demands if kind_of(name) == resource]
    return np.asarray(np.max([_busy(analysis, name, completed_per_s) for name in names], axis=0))


def _busy(analysis: Analysis, name: str, completed_per_s: FloatArray) -> FloatArray:
    """Return the mean share of busy servers as a simulation counts it, also for load-dependent speed."""
    station = analysis.stations[name]
    if station.rate is not None:
        return busy_share(completed_per_s * analysis.demands[name].mean_s, station)
    return np.minimum(completed_per_s * analysis.load(name), 1.0)
