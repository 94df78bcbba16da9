"""What one run of a simulation engine has seen: request classes, stations and pools in the window, and over time.

The *window* reaches from the end of the warm-up to the end of the traffic, unless another one is chosen. A request is
*measured* when it starts inside. Requests that have started are run to their end even when that lies after the window,
so latencies are not censored; then no request is unfinished, unless its work stands still for good.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from capplan.models.errors import InputError, nearest
from capplan.models.language.units import FloatArray
from capplan.simulator.results.histogram import Histogram, IntArray
from capplan.simulator.specification.clock import TICKS_PER_S, to_seconds

if TYPE_CHECKING:
    from capplan.simulator.results.tally import Tally

Clock = Literal["intended", "actual"]
ALL_CLASSES = "*"


class Status(IntEnum):
    """How a request ended, for its client."""

    UNFINISHED = 0
    COMPLETED = 1
    DROPPED = 2
    TIMED_OUT = 3


@dataclass(frozen=True, eq=False)
class Requests:
    """One row per request in the order of starting; times in ticks.

    `session` is the number of the arrival (open traffic) or of the client (closed), `position` counts its requests;
    `source` and `request_class` are indices into the names of the run. `end_ticks` is -1 for the unfinished. The times
    are those of the request, from its first attempt to its last; `attempts` counts them.
    """

    source: IntArray
    request_class: IntArray
    session: IntArray
    position: IntArray
    intended_ticks: IntArray
    start_ticks: IntArray
    end_ticks: IntArray
    status: IntArray
    attempts: IntArray


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
    def drop_rate(self) -> float:
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
    offered_per_s, throughput_per_s, drops_per_s
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
    drops_per_s: FloatArray
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

    def drop_rate(self, request_class: str | None = None) -> float:
        """Return the share of measured requests that were dropped or whose client gave up."""
        return self.report(request_class).drop_rate

    def little(self, request_class: str | None = None) -> LittleCheck:
        """Return both sides of Little's law for the requests that clients wait for."""
        return self.report(request_class).little()
