"""What one run of a simulation engine has seen: request classes, stations and pools in the window, and over time.

The *window* reaches from the end of the warm-up to the end of the traffic, unless another one is chosen. A request is
*measured* when it starts inside. Requests that have started are run to their end even when that lies after the window,
so latencies are not censored; then no request is unfinished, unless its work stands still for good.

What an engine has counted, summed up over a window: the one way from a `Tally` to a `Run`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import reduce
from operator import add
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from capplan.models.errors import InputError, nearest
from capplan.models.language.network import Network
from capplan.models.language.units import FloatArray
from capplan.simulator.results.histogram import BINS, Histogram, IntArray
from capplan.simulator.results.tally import (
    ACTUAL,
    BUSY,
    COMPLETED,
    COUNTED,
    DROPPED,
    HELD,
    INTENDED,
    LATENCY,
    LONGEST_ACTUAL,
    LONGEST_INTENDED,
    NUMBER,
    PAUSED,
    POOL_DROPS,
    POOL_WAITED,
    QUEUED,
    RESPONDED,
    RESPONSE,
    RETRIES,
    STARTED,
    STATION_DROPS,
    TAKEN,
    TIMED_OUT,
    VISITS,
    WAITED,
    Tally,
    compacted,
    condensed,
    pair,
)
from capplan.simulator.results.trace import Requests, Status
from capplan.simulator.specification.clock import TICKS_PER_S, to_seconds

Clock = Literal["intended", "actual"]
ALL_CLASSES = "*"


@dataclass(frozen=True)
class StationReport:
    """What a station did in the window; visits, wait and response are those of visits that joined in it.

    Nothing waits under processor sharing: there the wait is the response beyond the demand, and the queue the number
    inside beyond the busy servers, so that Little's law holds for both. `drops` are visits that expired or were
    refused; `paused_share` is the share of the time in which the servers stood still for a pause.
    """

    name: str
    servers: int
    utilisation: float
    mean_queue: float
    mean_number: float
    visits: int
    mean_wait_s: float
    mean_response_s: float
    drops: int
    paused_share: float


@dataclass(frozen=True, eq=False)
class PoolReport:
    """What a pool did in the window; wait and hold are those of units taken in it.

    `busy_share[n]` is the share of the time in which n units were busy.
    """

    name: str
    size: int
    mean_busy: float
    mean_queue: float
    taken: int
    drops: int
    mean_wait_s: float
    mean_hold_s: float
    busy_share: FloatArray

    def busy_quantile(self, probability: float) -> int:
        """Return the number of units that is not exceeded for this share of the time."""
        return min(self.size, int(np.searchsorted(np.cumsum(self.busy_share), probability - 1e-12)))


@dataclass(frozen=True)
class LittleCheck:
    """Little's law over the window: `number` (time average) is about `rate_per_s` times `response_s`."""

    number: float
    rate_per_s: float
    response_s: float

    @property
    def error(self) -> float:
        """Relative error; what remains are the requests that cross an end of the window."""
        return self.rate_per_s * self.response_s / self.number - 1 if self.number else 0.0


@dataclass(frozen=True, eq=False)
class ClassReport:
    """What became of the requests of one class (or of several taken together); all sums are exact.

    Attributes
    ----------
    name
        The class; `*` for all of them.
    window_ticks
        Length of the window; of several runs, of all their windows.
    started, completed, dropped, timed_out, retries
        How many measured requests there are, how many ended so, whenever that was, and how often they tried again.
    completions
        How many requests completed in the window, whenever they had started.
    response_ticks
        Sum over the measured requests that have ended, from actual start to end.
    number_ticks
        Sum over all requests of the time in the window for which a client waited.
    intended, actual
        Latencies of the measured requests that completed, from the intended and from the actual start.
    """

    name: str
    window_ticks: int
    started: int
    completed: int
    dropped: int
    timed_out: int
    retries: int
    completions: int
    response_ticks: int
    number_ticks: int
    intended: Histogram
    actual: Histogram

    @property
    def window_s(self) -> float:
        """Length of the window."""
        return to_seconds(self.window_ticks)

    @property
    def unfinished(self) -> int:
        """How many measured requests have not ended."""
        return self.started - self.completed - self.dropped - self.timed_out

    def count(self, status: Status) -> int:
        """Return how many measured requests ended so."""
        return (self.unfinished, self.completed, self.dropped, self.timed_out)[status]

    def latency(self, clock: Clock = "intended") -> Histogram:
        """Return the latencies of the measured requests that completed."""
        return self.intended if clock == "intended" else self.actual

    @property
    def throughput_per_s(self) -> float:
        """Rate of completions inside the window."""
        return self.completions / self.window_s

    @property
    def loss_fraction(self) -> float:
        """Share of measured requests that were dropped or whose client gave up."""
        return (self.dropped + self.timed_out) / self.started if self.started else 0.0

    def little(self) -> LittleCheck:
        """Return both sides of Little's law for the requests that clients wait for."""
        ended = self.started - self.unfinished
        return LittleCheck(
            number=self.number_ticks / self.window_ticks,
            rate_per_s=self.started / self.window_s,
            response_s=to_seconds(self.response_ticks / ended) if ended else 0.0,
        )


def together(reports: Iterable[ClassReport], *, name: str, windows: Literal["same", "apart"]) -> ClassReport:
    """Add reports: of classes of one run, which have the `same` window, or of one class in runs `apart`."""
    every = list(reports)
    lengths = {report.window_ticks for report in every} if windows == "same" else [each.window_ticks for each in every]
    return ClassReport(
        name=name,
        window_ticks=sum(lengths),
        started=sum(report.started for report in every),
        completed=sum(report.completed for report in every),
        dropped=sum(report.dropped for report in every),
        timed_out=sum(report.timed_out for report in every),
        retries=sum(report.retries for report in every),
        completions=sum(report.completions for report in every),
        response_ticks=sum(report.response_ticks for report in every),
        number_ticks=sum(report.number_ticks for report in every),
        intended=reduce(add, (report.intended for report in every)),
        actual=reduce(add, (report.actual for report in every)),
    )


@dataclass(frozen=True, eq=False)
class Series:
    """What happened in each interval of the run, the warm-up too, up to the end of the traffic.

    Attributes
    ----------
    boundaries_s
        Where intervals begin and the last one ends; shape (intervals + 1,).
    offered_per_s, throughput_per_s, loss_per_s
        Requests that started, completed, and were dropped or given up, per second; shape (intervals, classes).
    latency_mean_s
        Mean latency, from the intended start, of those that completed; nan when none did; shape (intervals, classes).
    number
        Mean number of requests that clients wait for; shape (intervals, classes).
    station_queue, station_utilisation
        Mean number waiting, and share of the servers that was busy; shape (intervals, stations).
    pool_queue, pool_busy
        Mean number waiting for a unit, and mean number of busy units; shape (intervals, pools).
    """

    boundaries_s: FloatArray
    offered_per_s: FloatArray
    throughput_per_s: FloatArray
    loss_per_s: FloatArray
    latency_mean_s: FloatArray
    number: FloatArray
    station_queue: FloatArray
    station_utilisation: FloatArray
    pool_queue: FloatArray
    pool_busy: FloatArray


class Mark(NamedTuple):
    """Something to see in a plot over time.

    `kind` is `pause` or `background`, of `station: process`; or the action of an event of the timeline on its target.
    """

    start_s: float
    end_s: float
    kind: str
    name: str


@dataclass(frozen=True, eq=False)
class Run:
    """The result of one replication of one network.

    Attributes
    ----------
    network, seed, replication
        What was run.
    window
        The intervals that the reports are about: the first, and the one after the last.
    classes, sources
        The names that indices in `requests` refer to.
    reports
        By request class, what became of its requests.
    stations, pools
        By name, what they did.
    series
        What happened over time; columns are in the order of `classes`, `stations` and `pools`.
    marks
        Pauses, background work (the first 20,000) and events of the timeline, in the order of time.
    events
        How many events happened.
    tally
        What the engine has counted in every interval.
    trace
        Every request; None when they were not kept.
    """

    network: str
    seed: int
    replication: int
    window: tuple[int, int]
    classes: tuple[str, ...]
    sources: tuple[str, ...]
    reports: dict[str, ClassReport]
    stations: dict[str, StationReport]
    pools: dict[str, PoolReport]
    series: Series
    marks: tuple[Mark, ...]
    events: int
    tally: Tally
    trace: Requests | None = None

    @property
    def warmup_s(self) -> float:
        """Where the window begins."""
        return to_seconds(int(self.tally.boundaries[self.window[0]]))

    @property
    def end_s(self) -> float:
        """Where the window ends."""
        return to_seconds(int(self.tally.boundaries[self.window[1]]))

    @property
    def duration_s(self) -> float:
        """How long traffic came."""
        return to_seconds(self.tally.end_ticks)

    @property
    def window_s(self) -> float:
        """Length of the window."""
        return self.end_s - self.warmup_s

    def report(self, request_class: str | None = None) -> ClassReport:
        """Return what became of the requests of a class, or of all.

        Raises
        ------
        InputError
            When there is no such class.
        """
        if request_class is None:
            return together(self.reports.values(), name=ALL_CLASSES, windows="same")
        if request_class not in self.reports:
            raise InputError(f"request class {request_class!r} does not exist{nearest(request_class, self.classes)}")
        return self.reports[request_class]

    @property
    def requests(self) -> Requests:
        """Every request.

        Raises
        ------
        InputError
            When they were not kept.
        """
        if self.trace is None:
            raise InputError(f"the run of {self.network!r} has kept no single requests: simulate it with a trace")
        return self.trace

    def measured(self, request_class: str | None = None) -> NDArray[np.bool_]:
        """Tell for each request of the trace whether it starts in the window (and is of this class)."""
        requests = self.requests
        first, last = self.tally.boundaries[list(self.window)]
        inside: NDArray[np.bool_] = (requests.start_ticks >= first) & (requests.start_ticks < last)
        if request_class is not None:
            inside &= requests.request_class == self.classes.index(self.report(request_class).name)
        return inside

    def latencies_s(self, request_class: str | None = None, clock: Clock = "intended") -> FloatArray:
        """Return, from the trace, the latencies of the measured requests that completed."""
        requests = self.requests
        rows = self.measured(request_class) & (requests.status == Status.COMPLETED)
        since = requests.intended_ticks if clock == "intended" else requests.start_ticks
        latencies: FloatArray = (requests.end_ticks[rows] - since[rows]) / TICKS_PER_S
        return latencies

    def latency_mean_s(self, request_class: str | None = None, clock: Clock = "intended") -> float:
        """Return the mean latency of completed requests, exactly; nan when there are none."""
        return self.report(request_class).latency(clock).mean_s

    def latency_quantile_s(
        self, probability: float, request_class: str | None = None, clock: Clock = "intended"
    ) -> float:
        """Return the smallest latency that this share of the completed requests does not exceed; nan when none did.

        It is exact with a trace, else that of the histogram, which is off by 0.4 % at most.
        """
        if self.trace is None:
            return self.report(request_class).latency(clock).quantile_s(probability)
        latencies = self.latencies_s(request_class, clock)
        return float(np.quantile(latencies, probability, method="inverted_cdf")) if latencies.size else float("nan")

    def count(self, status: Status, request_class: str | None = None) -> int:
        """Return how many measured requests ended so."""
        return self.report(request_class).count(status)

    def throughput_per_s(self, request_class: str | None = None) -> float:
        """Return the rate of completions inside the window, whenever the requests had started."""
        return self.report(request_class).throughput_per_s

    def loss_fraction(self, request_class: str | None = None) -> float:
        """Return the share of measured requests that were dropped or whose client gave up."""
        return self.report(request_class).loss_fraction

    def little(self, request_class: str | None = None) -> LittleCheck:
        """Return both sides of Little's law for the requests that clients wait for."""
        return self.report(request_class).little()


_LONGEST = (LONGEST_INTENDED, LONGEST_ACTUAL)


def report(
    network: Network,
    tally: Tally,
    warmup_ticks: int,
    *,
    seed: int,
    replication: int,
    events: int,
    requests: Requests | None = None,
) -> Run:
    """Sum up a run.

    Parameters
    ----------
    network
        What was run.
    tally
        What the engine has counted.
    warmup_ticks
        Where the window begins, which must be one of the boundaries; it reaches to the end of the traffic.
    seed, replication
        Whose random numbers the run had.
    events
        How many events happened.
    requests
        Every request, if the engine has kept them.
    """
    tally = compacted(tally)
    window = slice(tally.place(warmup_ticks), len(tally.boundaries) - 1)
    places = _Window(tally, window)
    return Run(
        network=network.name,
        seed=seed,
        replication=replication,
        window=(window.start, window.stop),
        classes=tuple(each.name for each in network.classes),
        sources=tuple(network.traffic.mix),
        reports={each.name: places.of_class(each.name, index) for index, each in enumerate(network.classes)},
        stations={
            each.name: places.of_station(each.name, each.servers, index) for index, each in enumerate(network.stations)
        },
        pools={each.name: places.of_pool(each.name, each.size, index) for index, each in enumerate(network.pools)},
        series=_series(tally, np.array([station.servers for station in network.stations])),
        marks=_marks(network, tally),
        events=events,
        tally=tally,
        trace=requests,
    )


def windowed(run: Run, first: int, last: int) -> Run:
    """Return the run with another window: from the beginning of interval `first` to that of `last`.

    Requests, visits and units count where they start, join and are taken; so the windows of a run add up.

    Raises
    ------
    ValueError
        When there are no such intervals.
    """
    if not 0 <= first < last < len(run.tally.boundaries):
        raise ValueError(f"intervals {first} to {last} are none of a run of {len(run.tally.boundaries) - 1}")
    places = _Window(run.tally, slice(first, last))
    return replace(
        run,
        window=(first, last),
        reports={name: places.of_class(name, index) for index, name in enumerate(run.classes)},
        stations={
            name: places.of_station(name, old.servers, index) for index, (name, old) in enumerate(run.stations.items())
        },
        pools={name: places.of_pool(name, old.size, index) for index, (name, old) in enumerate(run.pools.items())},
    )


def condensed_run(run: Run) -> Run:
    """Return the run with its window as the only interval: the same figures, in a fraction of the memory.

    The series over time are those of the window.
    """
    first, last = run.window
    rows = {
        each.name: getattr(run.series, each.name)[first : last + (each.name == "boundaries_s")]
        for each in fields(Series)
    }
    return replace(run, tally=condensed(run.tally, first, last), window=(0, 1), series=Series(**rows), trace=None)


def concatenated(runs: Sequence[Run]) -> Run:
    """Return runs of one network as one run, whose intervals are those of their windows one after another.

    Its figures are those of all runs together: sums, means weighted with the length of the windows, quantiles of all
    latencies. Requests are not kept; marks and numbers are those of the first run.
    """
    first, *_ = runs
    low = min(run.tally.first_bin for run in runs)
    high = max(run.tally.first_bin + run.tally.histograms.shape[-1] for run in runs)
    arrays = {
        name: np.concatenate([getattr(run.tally, name)[slice(*run.window)] for run in runs] + [array[-1:] * 0])
        for name, array in vars(first.tally).items()
        if name in COUNTED
    }
    histograms = [_in_bins(run, low, high) for run in runs]
    lengths = np.concatenate([np.diff(run.tally.boundaries)[slice(*run.window)] for run in runs])
    tally = Tally(
        boundaries=np.append(0, np.cumsum(lengths)),
        **arrays,
        histograms=np.concatenate([*histograms, histograms[0][-1:] * 0]),
        first_bin=low,
        marks=first.tally.marks,
    )
    servers = np.array([station.servers for station in first.stations.values()])
    whole = replace(first, tally=tally, series=_series(tally, servers), trace=None, events=sum(r.events for r in runs))
    return windowed(whole, 0, len(lengths))


def _in_bins(run: Run, low: int, high: int) -> IntArray:
    first, counts = run.tally.first_bin, run.tally.histograms[slice(*run.window)]
    return np.pad(counts, [(0, 0)] * 3 + [(first - low, high - first - counts.shape[-1])])


class _Window:
    """The intervals of a tally that figures are about, and their sums."""

    def __init__(self, tally: Tally, window: slice) -> None:
        self.tally, self.window = tally, window
        self.ticks = int(tally.boundaries[window.stop] - tally.boundaries[window.start])
        self.classes = tally.class_totals[window].sum(axis=0)
        self.classes[:, _LONGEST] = tally.class_totals[window][:, :, _LONGEST].max(axis=0)
        self.histograms = tally.histograms[window].sum(axis=0)
        self.completions = tally.class_series[window, :, COMPLETED].sum(axis=0)
        self.stations = tally.station_totals[window].sum(axis=0)
        self.station_times = tally.station_series[window].sum(axis=0, dtype=np.float64) / self.ticks
        self.pools = tally.pool_totals[window].sum(axis=0)
        self.pool_queues = tally.pool_series[window, :, QUEUED].sum(axis=0, dtype=np.float64) / self.ticks
        self.pool_busy = tally.pool_busy[window].sum(axis=0) / self.ticks

    def of_class(self, name: str, index: int) -> ClassReport:
        """Return what became of the requests of a class that started in the window."""
        totals = self.classes[index]
        intended = self._histogram(index, 0)
        return ClassReport(
            name=name,
            window_ticks=self.ticks,
            started=int(totals[STARTED]),
            completed=int(totals[COMPLETED]),
            dropped=int(totals[DROPPED]),
            timed_out=int(totals[TIMED_OUT]),
            retries=int(totals[RETRIES]),
            completions=int(self.completions[index]),
            response_ticks=pair(totals, RESPONSE),
            number_ticks=pair(totals, NUMBER),
            intended=intended,
            actual=self._histogram(index, 1) if self.histograms.shape[1] > 1 else intended,
        )

    def _histogram(self, index: int, clock: int) -> Histogram:
        counts = np.zeros(BINS, dtype=np.int64)
        first, used = self.tally.first_bin, self.histograms[index, clock]
        counts[first : first + len(used)] = used
        totals = self.classes[index]
        return Histogram(counts, pair(totals, (INTENDED, ACTUAL)[clock]), int(totals[_LONGEST[clock]]))

    def of_station(self, name: str, servers: int, index: int) -> StationReport:
        """Return what a station did in the window."""
        queued, busy = self.station_times[index]
        totals = self.stations[index]
        return StationReport(
            name=name,
            servers=servers,
            utilisation=float(busy / servers),
            mean_queue=float(queued),
            mean_number=float(queued + busy),
            visits=int(totals[VISITS]),
            mean_wait_s=_mean_s(pair(totals, WAITED), totals[VISITS]),
            mean_response_s=_mean_s(pair(totals, RESPONDED), totals[VISITS]),
            drops=int(totals[STATION_DROPS]),
            paused_share=float(totals[PAUSED] / self.ticks),
        )

    def of_pool(self, name: str, size: int, index: int) -> PoolReport:
        """Return what a pool did in the window."""
        totals, busy_share = self.pools[index], self.pool_busy[index, : size + 1]
        return PoolReport(
            name=name,
            size=size,
            mean_busy=float(busy_share @ np.arange(size + 1)),
            mean_queue=float(self.pool_queues[index]),
            taken=int(totals[TAKEN]),
            drops=int(totals[POOL_DROPS]),
            mean_wait_s=_mean_s(pair(totals, POOL_WAITED), totals[TAKEN]),
            mean_hold_s=_mean_s(pair(totals, HELD), totals[TAKEN]),
            busy_share=busy_share,
        )


def _mean_s(total: int, count: np.int64) -> float:
    return to_seconds(total / int(count)) if count else float("nan")


def _marks(network: Network, tally: Tally) -> tuple[Mark, ...]:
    """Return the marks of the tally and the events of the timeline, in the order of time."""
    processes = (Mark(to_seconds(start), to_seconds(end), kind, name) for start, end, kind, name in tally.marks)
    timed = ((float(event.at_s), event) for event in network.timeline.events)
    events = (Mark(at_s, at_s, event.action, event.target) for at_s, event in timed)
    return tuple(sorted((*processes, *events)))


def _series(tally: Tally, servers: IntArray) -> Series:
    length = np.diff(tally.boundaries)[:, None]
    counts = tally.class_series[:-1]
    completed = counts[:, :, COMPLETED]
    latency = np.full(completed.shape, np.nan)
    np.divide(counts[:, :, LATENCY], completed * TICKS_PER_S, out=latency, where=completed > 0)
    number = tally.class_totals[:-1, :, NUMBER] * 2.0**40 + tally.class_totals[:-1, :, NUMBER + 1]
    return Series(
        boundaries_s=tally.boundaries / TICKS_PER_S,
        offered_per_s=_per_s(counts[:, :, STARTED], length),
        throughput_per_s=_per_s(completed, length),
        loss_per_s=_per_s(counts[:, :, DROPPED] + counts[:, :, TIMED_OUT], length),
        latency_mean_s=latency,
        number=number / length,
        station_queue=tally.station_series[:-1, :, QUEUED] / length,
        station_utilisation=tally.station_series[:-1, :, BUSY] / length / servers,
        pool_queue=tally.pool_series[:-1, :, QUEUED] / length,
        pool_busy=tally.pool_series[:-1, :, BUSY] / length,
    )


def _per_s(counts: IntArray, length_ticks: IntArray) -> FloatArray:
    return counts * TICKS_PER_S / length_ticks
