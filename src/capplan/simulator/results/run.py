"""The result of one run: request classes, stations and pools in the window, and series over time.

The *window* reaches from the end of the warm-up to the end of the traffic, unless another one is chosen. A request is
*measured* when it starts inside. Requests that have started run to their end even when that lies after the window, so
latencies are not censored; then no request is unfinished, unless its processing stops for good.

`report` makes a `Run` from an engine's `Tally`; `windowed`, `condensed_run` and `concatenated` make one from others.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields, replace
from functools import reduce
from operator import add
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from capplan.errors import InputError, look_up
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
    Requests,
    Status,
    Tally,
    compacted,
    condensed,
    pair,
    units_shift,
)
from capplan.simulator.specification.clock import TICKS_PER_S, to_seconds

Clock = Literal["intended", "actual"]
ALL_CLASSES = "*"


@dataclass(frozen=True)
class StationReport:
    """Statistics of a station in the window; visits, wait and response are those of visits that joined in it.

    Nothing waits under processor sharing: there the wait is the response beyond the demand, and the queue the number
    inside beyond the busy servers, so that Little's law holds for both. `drops` are visits that expired or were
    refused; `paused_share` is the share of the time in which the station paused.
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
    """Statistics of a pool in the window; wait and hold are those of units acquired in it.

    `busy_share[n]` is the share of the time with n busy units; with 2048 units and more, that with
    n * 2**shift to (n + 1) * 2**shift - 1 of them.
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
        """Return the number of busy units that is not exceeded for this share of the time."""
        column = int(np.searchsorted(np.cumsum(self.busy_share), probability - 1e-12))
        return min(self.size, ((column + 1) << units_shift(self.size)) - 1)


@dataclass(frozen=True)
class LittleCheck:
    """Both sides of Little's law over the window: `number` (time average) and `rate_per_s` times `response_s`."""

    number: float
    rate_per_s: float
    response_s: float

    @property
    def error(self) -> float:
        """The relative difference, which comes from requests that cross an end of the window."""
        return self.rate_per_s * self.response_s / self.number - 1 if self.number else 0.0


@dataclass(frozen=True, eq=False)
class ClassReport:
    """The requests of one class (or of all classes together); all sums are exact.

    Attributes
    ----------
    name
        The class; `*` for all of them.
    window_ticks
        Length of the window.
    started, completed, dropped, timed_out, retries
        Numbers of measured requests: all of them, those that ended so, whenever that was, and their further attempts.
    completions
        Requests that completed in the window, whenever they started.
    response_ticks
        Sum over the measured requests that have ended, from actual start to end.
    number_ticks
        Sum over all requests of their time in the window.
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
        """Length of the window, in seconds."""
        return to_seconds(self.window_ticks)

    @property
    def unfinished(self) -> int:
        """The number of measured requests that have not ended."""
        return self.started - self.completed - self.dropped - self.timed_out

    def count(self, status: Status) -> int:
        """Return the number of measured requests with this outcome."""
        return (self.unfinished, self.completed, self.dropped, self.timed_out)[status]

    def latency(self, clock: Clock = "intended") -> Histogram:
        """Return the latencies of the measured requests that completed."""
        return self.intended if clock == "intended" else self.actual

    @property
    def throughput_per_s(self) -> float:
        """Rate of completions in the window, per second."""
        return self.completions / self.window_s

    @property
    def drop_rate(self) -> float:
        """Share of measured requests that were dropped or timed out."""
        return (self.dropped + self.timed_out) / self.started if self.started else 0.0

    def little(self) -> LittleCheck:
        """Return both sides of Little's law for the requests in the system."""
        ended = self.started - self.unfinished
        return LittleCheck(
            number=self.number_ticks / self.window_ticks,
            rate_per_s=self.started / self.window_s,
            response_s=to_seconds(self.response_ticks / ended) if ended else 0.0,
        )


def _together(reports: Collection[ClassReport]) -> ClassReport:
    """Add the reports of all classes of a run."""
    sums = ("started", "completed", "dropped", "timed_out", "retries", "completions", "response_ticks", "number_ticks")
    return ClassReport(
        name=ALL_CLASSES,
        window_ticks=next(iter(reports)).window_ticks,
        **{name: sum(getattr(report, name) for report in reports) for name in sums},
        intended=reduce(add, (report.intended for report in reports)),
        actual=reduce(add, (report.actual for report in reports)),
    )


@dataclass(frozen=True, eq=False)
class Series:
    """The run over time: one row per interval, warm-up included, up to the end of the traffic.

    Attributes
    ----------
    boundaries_s
        Where intervals start and the last one ends, in seconds; shape (intervals + 1,).
    offered_per_s, throughput_per_s, drops_per_s
        Requests per second that started, completed, and were dropped or timed out; shape (intervals, classes).
    latency_mean_s
        Mean latency, from the intended start, of those that completed; nan when none did; shape (intervals, classes).
    number
        Mean number of requests in the system; shape (intervals, classes).
    station_queue, station_utilisation
        Mean number waiting, and share of busy servers; shape (intervals, stations).
    pool_queue, pool_busy
        Mean number waiting for a unit, and mean number of busy units; shape (intervals, pools).
    """

    boundaries_s: FloatArray
    offered_per_s: FloatArray
    throughput_per_s: FloatArray
    drops_per_s: FloatArray
    latency_mean_s: FloatArray
    number: FloatArray
    station_queue: FloatArray
    station_utilisation: FloatArray
    pool_queue: FloatArray
    pool_busy: FloatArray


class Mark(NamedTuple):
    """An event or a period to mark in a plot over time.

    `kind` is `pause` or `background`, of `station: process`; or the action of a timeline event on its target.
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
        The intervals that the reports cover: the first, and the one after the last.
    classes, sources
        The names for the indices in `requests`.
    reports
        By request class, its requests.
    stations, pools
        By name, what they did.
    series
        The run over time; columns are in the order of `classes`, `stations` and `pools`.
    marks
        Pauses, background work (the first 20,000) and timeline events, in the order of time.
    events
        The number of simulated events.
    tally
        What the engine counted in every interval.
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
        """Start of the window, in seconds."""
        return to_seconds(int(self.tally.boundaries[self.window[0]]))

    @property
    def end_s(self) -> float:
        """End of the window, in seconds."""
        return to_seconds(int(self.tally.boundaries[self.window[1]]))

    @property
    def duration_s(self) -> float:
        """Duration of the traffic, in seconds."""
        return to_seconds(self.tally.end_ticks)

    @property
    def window_s(self) -> float:
        """Length of the window, in seconds."""
        return self.end_s - self.warmup_s

    def report(self, request_class: str | None = None) -> ClassReport:
        """Return the report of a request class, or of all together.

        Parameters
        ----------
        request_class : str, optional
            The class; all classes together when left out.

        Raises
        ------
        InputError
            When there is no such class.
        """
        if request_class is None:
            return _together(self.reports.values())
        return look_up(self.reports, request_class, f"request class {request_class!r} does not exist")

    @property
    def requests(self) -> Requests:
        """Every request.

        Raises
        ------
        InputError
            When the run has no trace.
        """
        if self.trace is None:
            raise InputError(f"the run of {self.network!r} has no trace: simulate it with trace=True")
        return self.trace

    def measured(self, request_class: str | None = None) -> NDArray[np.bool_]:
        """Return for each request of the trace whether it starts in the window (and belongs to this class)."""
        requests = self.requests
        first, last = self.tally.boundaries[list(self.window)]
        inside: NDArray[np.bool_] = (requests.start_ticks >= first) & (requests.start_ticks < last)
        if request_class is not None:
            inside &= requests.request_class == self.classes.index(self.report(request_class).name)
        return inside

    def latencies_s(self, request_class: str | None = None, clock: Clock = "intended") -> FloatArray:
        """Return the latencies of the measured requests that completed, from the trace.

        Parameters
        ----------
        request_class : str, optional
            The class; all classes together when left out.
        clock : {"intended", "actual"}
            Measure from the intended or from the actual start.

        Returns
        -------
        array of shape (requests,)
            In seconds, in the order of starting.

        Raises
        ------
        InputError
            When the run has no trace, or there is no such class.
        """
        requests = self.requests
        rows = self.measured(request_class) & (requests.status == Status.COMPLETED)
        since = requests.intended_ticks if clock == "intended" else requests.start_ticks
        latencies: FloatArray = (requests.end_ticks[rows] - since[rows]) / TICKS_PER_S
        return latencies

    def latency_mean_s(self, request_class: str | None = None, clock: Clock = "intended") -> float:
        """Return the exact mean latency of completed requests, in seconds; nan when there are none."""
        return self.report(request_class).latency(clock).mean_s

    def latency_quantile_s(
        self, probability: float, request_class: str | None = None, clock: Clock = "intended"
    ) -> float:
        """Return a quantile of the latency of completed requests.

        Parameters
        ----------
        probability : float
            From 0 to 1.
        request_class : str, optional
            The class; all classes together when left out.
        clock : {"intended", "actual"}
            Measure from the intended or from the actual start.

        Returns
        -------
        float
            In seconds; nan when no request completed. Exact with a trace, else from the histogram, with an error of at
            most 0.4 %.
        """
        if self.trace is None:
            return self.report(request_class).latency(clock).quantile_s(probability)
        latencies = self.latencies_s(request_class, clock)
        return float(np.quantile(latencies, probability, method="inverted_cdf")) if latencies.size else float("nan")

    def count(self, status: Status, request_class: str | None = None) -> int:
        """Return the number of measured requests with this outcome."""
        return self.report(request_class).count(status)

    def throughput_per_s(self, request_class: str | None = None) -> float:
        """Return the rate of completions in the window, per second, whenever the requests started."""
        return self.report(request_class).throughput_per_s

    def drop_rate(self, request_class: str | None = None) -> float:
        """Return the share of measured requests that were dropped or timed out."""
        return self.report(request_class).drop_rate

    def little(self, request_class: str | None = None) -> LittleCheck:
        """Return both sides of Little's law for the requests in the system."""
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
    """Create a run from a tally.

    Parameters
    ----------
    network : Network
        The network that was run.
    tally : Tally
        What the engine counted.
    warmup_ticks : int
        Start of the window, which must be one of the boundaries; the window ends with the traffic.
    seed, replication : int
        Those of the run's random numbers.
    events : int
        The number of simulated events.
    requests : Requests, optional
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
            each.name: places.of_station(each.name, each.servers, index)
            for index, each in enumerate(network.each_station)
        },
        pools={each.name: places.of_pool(each.name, each.size, index) for index, each in enumerate(network.each_pool)},
        series=_series(tally, np.array([station.servers for station in network.each_station])),
        marks=_marks(network, tally),
        events=events,
        tally=tally,
        trace=requests,
    )


def windowed(run: Run, first: int, last: int) -> Run:
    """Return the run with another window: from the start of interval `first` to that of `last`.

    Requests, visits and units count where they start, join and are acquired, so the windows of a run add up.

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
    """Return the run with its window as the only interval: the same statistics, in a fraction of the memory.

    The series over time are those of the window.
    """
    first, last = run.window
    rows = {
        each.name: getattr(run.series, each.name)[first : last + (each.name == "boundaries_s")]
        for each in fields(Series)
    }
    return replace(run, tally=condensed(run.tally, first, last), window=(0, 1), series=Series(**rows), trace=None)


def concatenated(runs: Sequence[Run]) -> Run:
    """Return several runs of one network as a single run, with their windows as its intervals.

    Its statistics are those of all runs together: sums, means weighted by the length of the windows, quantiles of all
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
    """The intervals of a tally in a report, and their sums."""

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
        self.pool_units = tally.pool_series[window, :, BUSY].sum(axis=0, dtype=np.float64) / self.ticks
        self.pool_busy = tally.pool_busy[window].sum(axis=0) / self.ticks

    def of_class(self, name: str, index: int) -> ClassReport:
        """Return the report of a request class."""
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
        """Return the report of a station."""
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
        """Return the report of a pool."""
        totals, busy_share = self.pools[index], self.pool_busy[index, : (size >> units_shift(size)) + 1]
        return PoolReport(
            name=name,
            size=size,
            mean_busy=float(self.pool_units[index]),
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
    """Return the marks of the tally and the timeline events, in chronological order."""
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
        drops_per_s=_per_s(counts[:, :, DROPPED] + counts[:, :, TIMED_OUT], length),
        latency_mean_s=latency,
        number=number / length,
        station_queue=tally.station_series[:-1, :, QUEUED] / length,
        station_utilisation=tally.station_series[:-1, :, BUSY] / length / servers,
        pool_queue=tally.pool_series[:-1, :, QUEUED] / length,
        pool_busy=tally.pool_series[:-1, :, BUSY] / length,
    )


def _per_s(counts: IntArray, length_ticks: IntArray) -> FloatArray:
    return counts * TICKS_PER_S / length_ticks
