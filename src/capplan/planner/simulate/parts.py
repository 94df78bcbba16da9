"""The figures that the answer of `simulate` is made of; see `simulation`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["steady", "overloaded", "unclear"]


@dataclass(frozen=True)
class Estimate:
    """A figure, with the half-width of its 95 % interval.

    Attributes
    ----------
    value
        The figure; null when there was nothing to see. In steady state it is that of all replications together, over a
        finite horizon the mean of what each of them has measured.
    half_width
        Half-width of the 95 % interval (Student's t): between replications, or where there are fewer than five of the
        steady state, between overlapping batches of their time. Of a percentile it is at least 0.4 %, which is how
        finely latencies are counted. Null where there is too little to tell.
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
        From the intended start: what a user feels who is kept waiting before the request is sent.
    actual
        From the actual start: what many load generators report. The same unless the traffic is throttled.
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
    """What became of the measured requests of one class, those that started after the warm-up.

    Attributes
    ----------
    started
        How many there are, in all replications.
    completed
        How many were answered.
    dropped
        How many were turned away, after their last attempt.
    timed_out
        How many clients gave up, after their last attempt.
    unfinished
        How many never ended, because what they waited for stood still.
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
    """What became of the precision that was asked for.

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
