"""What `simulate` answers: the contract `capplan.simulation/1`, as frozen data and as JSON.

Latencies are in milliseconds, rates per second, utilisations are shares from 0 to 1. The figures are those of one set
of parameters, and the same for both engines, so neither the engine nor its speed stands here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from capplan.planner.prediction import plain

SCHEMA = "capplan.simulation/1"
EVERY_CLASS = "*"

OfferedSource = Literal["given", "default", "network"]


@dataclass(frozen=True)
class Estimate:
    """A figure, with its half-width between replications.

    Attributes
    ----------
    value
        The figure of all replications together; null when there was nothing to see.
    half_width
        Half-width of the 95 % interval (Student's t between replications); of a percentile at least 0.4 %, which is how
        finely latencies are counted. Null with one replication.
    """

    value: float
    half_width: float | None


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
        The longest; null when no request completed.
    hdr_histogram
        All of them as an encoded HdrHistogram (V2, compressed, base64), in nanoseconds.
    """

    mean: Estimate
    p50: Estimate
    p90: Estimate
    p95: Estimate
    p99: Estimate
    p999: Estimate
    max: float
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

    number: float
    rate_per_s: float
    response_s: float
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
    loss
        Share that was dropped or timed out.
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
    loss: Estimate
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
    utilisation: float
    mean_queue: float
    mean_number: float
    visits: int
    mean_wait_ms: float
    mean_response_ms: float
    drops: int
    paused_share: float


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
    mean_busy: float
    p99_busy: int
    mean_queue: float
    taken: int
    drops: int
    mean_wait_ms: float
    mean_hold_ms: float


@dataclass(frozen=True, kw_only=True)
class Simulation:
    """What replications of a system have seen, with one set of parameters.

    Attributes
    ----------
    target
        What was asked for: a system or a file.
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
    warmup_s
        How much of the beginning is left out, in seconds.
    seed
        The seed of every random number.
    replications
        How many independent runs there are.
    classes
        What became of requests, by class; `*` is all of them.
    stations
        What stations did, by name.
    pools
        What pools did, by name.
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
    warmup_s: float
    seed: int
    replications: int
    classes: Mapping[str, ClassFigures]
    stations: Mapping[str, StationFigures]
    pools: Mapping[str, PoolFigures]
    version: str

    def to_json(self) -> dict[str, Any]:
        """Return the value as JSON has it: plain tables, lists and finite numbers."""
        return {"schema": SCHEMA, **plain(self)}


def simulation_schema() -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of what `Simulation.to_json` returns; every key is required."""
    from capplan.models.document import schema  # pydantic takes longer to import than all the rest

    published = schema(Simulation)
    published["properties"] = {"schema": {"const": SCHEMA, "type": "string"}, **published["properties"]}
    for part in (published, *published["$defs"].values()):
        part["additionalProperties"] = False
        part["required"] = list(part["properties"])
    for name, number in _UNSEEN:
        published["$defs"][name]["properties"][number]["type"] = ["number", "null"]
    return published


_UNSEEN = (  # null when no request or visit was there to see
    ("Estimate", "value"),
    ("LatencyFigures", "max"),
    ("StationFigures", "mean_wait_ms"),
    ("StationFigures", "mean_response_ms"),
    ("PoolFigures", "mean_wait_ms"),
    ("PoolFigures", "mean_hold_ms"),
)
