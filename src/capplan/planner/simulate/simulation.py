"""What `simulate` answers: the contract `capplan.simulation/3`, as frozen data and as JSON.

Latencies are in milliseconds, rates per second, utilisations are shares from 0 to 1. The figures are those of one set
of parameters, and the same for both engines, so neither the engine nor its speed stands here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

from capplan.models.results import plain

if TYPE_CHECKING:
    from pandas import DataFrame

SCHEMA = "capplan.simulation/3"
EVERY_CLASS = "*"
COLUMNS = ("kind", "name", "quantity", "statistic", "value", "half_width", "unit")

OfferedSource = Literal["given", "default", "network"]
Horizon = Literal["steady", "finite"]
WarmupSource = Literal["given", "mser", "none"]
Verdict = Literal["steady", "overloaded", "unclear"]


@dataclass(frozen=True)
class Estimate:
    """A figure, with the half-width of its 95 % interval.

    Attributes
    ----------
    value
        The figure; null without observations. In steady state it is that of all replications together, over a finite
        horizon the mean over replications.
    half_width
        Half-width of the 95 % interval (Student's t): between replications, or where there are fewer than five of the
        steady state, between overlapping batches of their time. Of a percentile it is at least 0.4 %, the resolution
        of the histogram. Null where there are too few observations.
    variance_ratio
        Variance of the figure with control variates over that without; null where there are none.
    """

    value: float
    half_width: float | None
    variance_ratio: float | None = None


@dataclass(frozen=True, kw_only=True)
class LatencyFigures:
    """Latencies of the measured requests that completed, in milliseconds.

    Attributes
    ----------
    mean
        The mean.
    p50
        The median: half of the requests are faster.
    p90
        The 90th percentile.
    p95
        The 95th percentile.
    p99
        The 99th percentile.
    p999
        The 99.9th percentile.
    max
        The longest; null when no request completed. In steady state it is what was seen and has no interval: the
        longer one looks, the longer it is. Over a finite horizon it is the mean of the longest of each replication.
    hdr_histogram
        All of them as an encoded HdrHistogram (V2, compressed, base64), in nanoseconds.
    """

    mean: Estimate
    p50: Estimate
    p90: Estimate
    p95: Estimate
    p99: Estimate
    p999: Estimate
    max: Estimate
    hdr_histogram: str


@dataclass(frozen=True, kw_only=True)
class LatencyByClock:
    """Latencies by the clock that starts them.

    Attributes
    ----------
    intended
        From the intended start: includes waiting before the request is sent.
    actual
        From the actual start, as many load generators report. Equal unless the traffic is throttled.
    """

    intended: LatencyFigures
    actual: LatencyFigures


@dataclass(frozen=True, kw_only=True)
class Little:
    """Little's law for the requests that clients wait for: `number` is about `rate_per_s` times `response_s`.

    Attributes
    ----------
    number
        Mean number of requests that clients wait for.
    rate_per_s
        Requests that start, per second.
    response_s
        Mean time from the actual start to the end, however a request ended.
    error
        Relative error; what remains are the requests that cross an end of the window.
    """

    number: Estimate
    rate_per_s: Estimate
    response_s: Estimate
    error: float


@dataclass(frozen=True, kw_only=True)
class ClassFigures:
    """Outcome of the measured requests of one class: those that started after the warm-up.

    Attributes
    ----------
    started
        How many there are, in all replications.
    completed
        How many were answered.
    dropped
        How many were dropped, after their last attempt.
    timed_out
        How many clients gave up, after their last attempt.
    unfinished
        How many never ended, because a station or pool stood still.
    retries
        Attempts beyond the first.
    offered_per_s
        Requests that started, per second.
    throughput_per_s
        Requests that completed after the warm-up and before the end of the traffic, per second.
    drop_rate
        Share that was dropped or timed out. Where there was none, the half-width is what independent losses could be
        at most (3 over the number of requests); losses that come in clusters are rarer and larger.
    latency_ms
        Latencies of those that completed.
    little
        The check by Little's law.
    """

    started: int
    completed: int
    dropped: int
    timed_out: int
    unfinished: int
    retries: int
    offered_per_s: Estimate
    throughput_per_s: Estimate
    drop_rate: Estimate
    latency_ms: LatencyByClock
    little: Little


@dataclass(frozen=True, kw_only=True)
class StationFigures:
    """What a station did after the warm-up, in all replications together.

    Attributes
    ----------
    servers
        How many servers it has.
    utilisation
        Share of its servers that was busy.
    mean_queue
        Mean number of visits that waited; under processor sharing, of those beyond the servers.
    mean_number
        Mean number of visits, waiting or served.
    visits
        How many visits were served.
    mean_wait_ms
        Mean wait before service; under processor sharing, the response beyond the demand. Null without visits.
    mean_response_ms
        Mean time from joining to leaving; null without visits.
    drops
        Visits that expired or were refused.
    paused_share
        Share of the time in which it stood still for a pause.
    """

    servers: int
    utilisation: Estimate
    mean_queue: Estimate
    mean_number: Estimate
    visits: int
    mean_wait_ms: Estimate
    mean_response_ms: Estimate
    drops: int
    paused_share: Estimate


@dataclass(frozen=True, kw_only=True)
class StationKind:
    """Stations of one kind taken together: `cassandra/dc1/1`, `cassandra/dc1/2`, ... are `cassandra`.

    Attributes
    ----------
    count
        How many there are.
    utilisation
        Mean over them of the share of busy servers.
    least_utilisation
        That of the least loaded one.
    most_utilisation
        That of the most loaded one.
    mean_queue
        Mean over them of the mean number that waited.
    mean_wait_ms
        Mean wait over all visits; null without visits.
    paused_share
        Mean share of the time in which one stood still for a pause.
    visits
        How many visits were served by all of them.
    drops
        Visits that expired or were refused.
    """

    count: int
    utilisation: Estimate
    least_utilisation: Estimate
    most_utilisation: Estimate
    mean_queue: Estimate
    mean_wait_ms: Estimate
    paused_share: Estimate
    visits: int
    drops: int


@dataclass(frozen=True, kw_only=True)
class PoolFigures:
    """What a pool did after the warm-up, in all replications together.

    Attributes
    ----------
    size
        How many units it has.
    mean_busy
        Mean number of busy units.
    p99_busy
        Number of busy units that was not exceeded for 99 % of the time.
    mean_queue
        Mean number of requests that waited for a unit.
    taken
        How many units were handed out.
    drops
        Requests that found its queue full.
    mean_wait_ms
        Mean wait for a unit; null when none was taken.
    mean_hold_ms
        Mean time for which a unit was held; null when none was taken.
    """

    size: int
    mean_busy: Estimate
    p99_busy: Estimate
    mean_queue: Estimate
    taken: int
    drops: int
    mean_wait_ms: Estimate
    mean_hold_ms: Estimate


@dataclass(frozen=True, kw_only=True)
class PoolKind:
    """Pools of one kind taken together.

    Attributes
    ----------
    count
        How many there are.
    size
        Mean number of units of one.
    mean_busy
        Mean over them of the mean number of busy units.
    most_p99_busy
        Number of busy units that was not exceeded for 99 % of the time, of the pool where it is largest.
    mean_queue
        Mean over them of the mean number that waited.
    mean_wait_ms
        Mean wait over all units taken; null when none was taken.
    drops
        Requests that found a queue full.
    """

    count: int
    size: float
    mean_busy: Estimate
    most_p99_busy: Estimate
    mean_queue: Estimate
    mean_wait_ms: Estimate
    drops: int


@dataclass(frozen=True)
class Backlog:
    """Whether work piles up.

    Attributes
    ----------
    verdict
        `steady`, `overloaded` (then there is no steady state, and the figures depend on how long was simulated), or
        `unclear` where that was too short to tell.
    growth
        What the backlog gains per second, as a share of the offered rate.
    """

    verdict: Verdict
    growth: Estimate


@dataclass(frozen=True)
class PrecisionReached:
    """The requested precision, and whether it was reached.

    Attributes
    ----------
    asked
        In the user's words, such as `p99<2%`.
    relative
        Half-width of that statistic's interval, as a share of its value; null where it has none.
    reached
        Whether that is narrow enough.
    """

    asked: str
    relative: float
    reached: bool


@dataclass(frozen=True, kw_only=True)
class Simulation:
    """Estimates from replications of a system with one set of parameters.

    Attributes
    ----------
    target
        The target: a system or a file.
    network
        Name of the network that was run.
    scenario
        The layout; keys are those of a scenario file. Null when the target is a network.
    offered_tps
        Offered rate, requests per second: of a system the peak rate, as in a prediction; of a network its mean rate.
        Null for closed traffic, which has none.
    mean_tps
        Mean rate of the traffic, requests per second; less than the peak rate where it comes in bursts. Null for
        closed traffic.
    offered_source
        `given` by the user, the `default`, 80 % of the predicted capacity, or as the `network` has it.
    duration_s
        How long traffic came, in seconds.
    horizon
        `steady`: the figures are those of the steady state. `finite`: they are means over replications of what one such
        run measures.
    warmup_s
        How much of the beginning of every replication is left out, in seconds.
    warmup_source
        `given` by the user, found by `mser` in the first ten replications together, or `none` is left out.
    settled
        Whether replications were long enough to tell their warm-up.
    backlog
        Whether work piles up; null where no open traffic comes, and over a finite horizon.
    precision
        The requested precision; null when none was requested.
    seed
        The seed of every random number.
    replications
        How many independent runs there are.
    classes
        Outcome of requests by class; `*` is all of them.
    reported
        Classes that are made of others in the network, with the names of these.
    stations
        What stations did, by name.
    station_kinds
        What stations of a kind did, that with the most loaded one first.
    pools
        What pools did, by name.
    pool_kinds
        What pools of a kind did, the most used one first.
    controls
        Control variates that narrow the intervals of latencies: quantities whose means are known exactly.
    left_out
        What `predict` adds to the percentiles of the same layout, and the network does not have.
    version
        The version of capplan.
    """

    target: str
    network: str
    scenario: Mapping[str, Any] | None
    offered_tps: float | None
    mean_tps: float | None
    offered_source: OfferedSource
    duration_s: float
    horizon: Horizon
    warmup_s: float
    warmup_source: WarmupSource
    settled: bool
    backlog: Backlog | None
    precision: PrecisionReached | None
    seed: int
    replications: int
    classes: Mapping[str, ClassFigures]
    reported: Mapping[str, tuple[str, ...]]
    stations: Mapping[str, StationFigures]
    station_kinds: Mapping[str, StationKind]
    pools: Mapping[str, PoolFigures]
    pool_kinds: Mapping[str, PoolKind]
    controls: tuple[str, ...]
    left_out: tuple[str, ...]
    version: str

    def to_json(self) -> dict[str, Any]:
        """Return the value as JSON has it: plain tables, lists and finite numbers."""
        return {"schema": SCHEMA, **plain(self)}

    def to_frame(self) -> DataFrame:
        """Return the figures in tidy form, one statistic a row; times are in milliseconds.

        Returns
        -------
        DataFrame
            Columns `kind` (`class`, `station`, `station_kind`, `pool` or `pool_kind`), `name`, `quantity`,
            `statistic`, `value`, `half_width` (nan where there is no interval) and `unit`.
        """
        from pandas import DataFrame  # slow to import

        found = DataFrame(self._rows(), columns=list(COLUMNS))
        return found.astype({"value": float, "half_width": float})

    def _rows(self) -> Iterator[tuple[Any, ...]]:
        for name, figures in self.classes.items():
            yield from _class_rows(name, figures)
        for kind in ("station", "station_kind", "pool", "pool_kind"):
            for name, place in getattr(self, f"{kind}s").items():
                for each in fields(place):
                    unit, quantity = "ms" if each.name.endswith("_ms") else "1", each.name.removesuffix("_ms")
                    yield kind, name, quantity, "", *_cells(getattr(place, each.name)), unit


def _class_rows(name: str, figures: ClassFigures) -> Iterator[tuple[Any, ...]]:
    for count in ("started", "completed", "dropped", "timed_out", "unfinished", "retries"):
        yield "class", name, "requests", count, getattr(figures, count), None, "1"
    yield "class", name, "offered", "mean", *_cells(figures.offered_per_s), "1/s"
    yield "class", name, "throughput", "mean", *_cells(figures.throughput_per_s), "1/s"
    yield "class", name, "drop_rate", "mean", *_cells(figures.drop_rate), "1"
    for clock in ("intended", "actual"):
        for statistic, figure in vars(getattr(figures.latency_ms, clock)).items():
            if isinstance(figure, Estimate):
                yield "class", name, f"latency_{clock}", statistic, *_cells(figure), "ms"


def _cells(figure: Estimate | float) -> tuple[float, float | None]:
    return (figure.value, figure.half_width) if isinstance(figure, Estimate) else (figure, None)
