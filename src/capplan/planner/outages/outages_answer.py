"""The answer of `outages`: the contract `capplan.outages/3`, as frozen data and as JSON.

Latencies are in milliseconds, rates per second, times in seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from capplan.answers.results import Outage
from capplan.answers.verb_answer import UNBOUNDED_BANDS, VerbAnswer
from capplan.answers.verdict import Verdict
from capplan.planner.outages.places import Clients

Expected = Literal["recovers", "may stay down", "overloaded without a trigger", "not known"]


@dataclass(frozen=True)
class LevelAvailability:
    """Consistency levels of reads and writes that still work after a loss.

    Attributes
    ----------
    name
        What is lost, in words.
    read
        Whether reads succeed, by level; only levels that the layout can have. Empty where the traffic has no reads.
    write
        Whether writes succeed, by level; empty where the traffic has none.
    """

    name: str
    read: Mapping[str, bool]
    write: Mapping[str, bool]


@dataclass(frozen=True)
class Duration:
    """A duration, over replications.

    Attributes
    ----------
    value
        Mean over the replications in which it ended, seconds; null if it never did.
    half_width
        Half-width of its 95 % interval (Student's t), at least half of the width of an interval of the simulation,
        seconds; null with fewer than two.
    ended
        In how many replications it ended before the simulation did.
    """

    value: float | None
    half_width: float | None
    ended: int


@dataclass(frozen=True)
class SeriesBand:
    """A figure over time, as a band over replications in each interval; null where no replication has a value.

    Attributes
    ----------
    median
        The median.
    low
        The 5th percentile.
    high
        The 95th percentile.
    """

    median: tuple[float | None, ...]
    low: tuple[float | None, ...]
    high: tuple[float | None, ...]


@dataclass(frozen=True, kw_only=True)
class Phase:
    """Figures of one phase of a run, as means over replications.

    Attributes
    ----------
    name
        `before`, `undetected` (until others know of the loss), `detected` (the rest of the loss) or `after`.
    from_s
        Its start.
    to_s
        Its end.
    completed_per_s
        Requests that completed, per second.
    unanswered_per_s
        Requests that ended without an answer after their last attempt, per second.
    retries_per_s
        Further attempts of the requests that started in this part, per second.
    p50_ms
        Median latency of the completed requests that started in this part; null without any.
    p99_ms
        The 99th percentile.
    """

    name: str
    from_s: float
    to_s: float
    completed_per_s: float
    unanswered_per_s: float
    retries_per_s: float
    p50_ms: float | None
    p99_ms: float | None


@dataclass(frozen=True, kw_only=True)
class Transient:
    """The simulated minutes around one loss.

    Attributes
    ----------
    name
        What is lost, in words.
    places
        The stations, members of stations or hosts that are down.
    lost_s
        When they go down.
    returned_s
        When they come back.
    duration_s
        Length of the simulation.
    detection_s
        Time for which clients and peers still send to them.
    cold_s
        Time for which they are slower after their return.
    cold_speed
        Their relative speed in that time.
    shortened
        Why the times are shorter than asked, in words; empty if they are not.
    replications
        How many runs there are.
    started
        Requests that started, in all of them.
    unanswered_share
        Share without an answer of the requests that ended from the loss on.
    within
        Tolerance of what counts as normal, as a share.
    back_after_loss_s
        Time from the loss until rate and p99 are back to normal.
    back_after_return_s
        Time from the return until they are.
    phases
        Figures before, during and after the loss.
    boundaries_s
        Where intervals start, and the end of the last one.
    series
        `completed_per_s`, `unanswered_per_s`, `retries_per_s`, `p50_ms`, `p99_ms` in each interval.
    """

    name: str
    places: tuple[str, ...]
    lost_s: float
    returned_s: float
    duration_s: float
    detection_s: float
    cold_s: float
    cold_speed: float
    shortened: str
    replications: int
    started: int
    unanswered_share: float
    within: float
    back_after_loss_s: Duration
    back_after_return_s: Duration
    phases: tuple[Phase, ...]
    boundaries_s: tuple[float, ...]
    series: Mapping[str, SeriesBand]

    @property
    def recovers(self) -> bool:
        """Whether every replication is back to normal before it ends."""
        return self.back_after_return_s.ended == self.replications


@dataclass(frozen=True, kw_only=True)
class RecoveryVerdict:
    """Whether a network recovers from a trigger with a number of attempts.

    Attributes
    ----------
    trigger_s
        How long the trigger lasts.
    attempts
        Attempts of each request, the first one included.
    recovered
        In how many replications at least the required share of requests completes in most of the second half of the
        horizon: the median over eight parts of it.
    replications
        How many there are.
    horizon_s
        Simulated time after the end of the trigger.
    long_enough
        Whether a backlog that is served in the end would be served in the first half of it.
    low
        Lower end of the 95 % interval (Clopper and Pearson 1934) of the probability of recovery.
    high
        Its upper end.
    completed_share
        Completed over started requests in that half, the median over its parts and over replications.
    """

    trigger_s: float
    attempts: int
    recovered: int
    replications: int
    horizon_s: float
    long_enough: bool
    low: float
    high: float
    completed_share: float

    @property
    def always(self) -> bool:
        """Whether every replication recovered."""
        return self.recovered == self.replications


@dataclass(frozen=True, kw_only=True)
class Screen:
    """The fixed-point estimate for a number of attempts, without simulation.

    Attributes
    ----------
    attempts
        The number of attempts.
    worst_per_s
        Attempts per second if all time out: the rate times the number of attempts.
    capacity_per_s
        Attempts per second that are served; null where it is not known.
    steady_per_s
        Attempts per second in the steady state with retries; null where there is none.
    expected
        `recovers`: even if all attempts time out, there is capacity for them. `may stay down`: there is a steady state,
        and another one in which all attempts time out. `overloaded without a trigger`: there is no steady state.
    """

    attempts: int
    worst_per_s: float
    capacity_per_s: float | None
    steady_per_s: float | None
    expected: Expected


@dataclass(frozen=True, kw_only=True)
class Metastability:
    """Whether retries keep a network down after a trigger has ended.

    Attributes
    ----------
    trigger
        What happens, in words.
    places
        What is down for that time; empty for a surge.
    surge
        Factor of the traffic for that time; 1 for a loss.
    warmup_s
        Time before the trigger.
    shortened
        What the budget does not pay for, in words; empty if it pays for all.
    required_share
        Share of the requests that must complete in most of the second half of the horizon.
    screens
        What a fixed point says, for each number of attempts.
    verdicts
        What simulations say, for each trigger and number of attempts; empty if the budget does not pay for them.
    searched
        Whether the largest safe number of attempts and surge were looked for.
    safe_attempts
        The largest number of attempts with which every replication recovers from the longest trigger; null if there is
        none.
    most_attempts
        The largest number that was tried.
    safe_surge
        The largest factor of the traffic, for as long as the longest trigger, from which every replication recovers
        with the attempts of the clients; null if there is none.
    least_surge
        The smallest factor that was tried.
    most_surge
        The largest one.
    """

    trigger: str
    places: tuple[str, ...]
    surge: float
    warmup_s: float
    shortened: str
    required_share: float
    screens: tuple[Screen, ...]
    verdicts: tuple[RecoveryVerdict, ...]
    searched: bool
    safe_attempts: int | None
    most_attempts: int
    safe_surge: float | None
    least_surge: float
    most_surge: float


@dataclass(frozen=True, kw_only=True)
class OutagesAnswer(VerbAnswer):
    """The answer of `outages`.

    Attributes
    ----------
    system
        Name of the system or network.
    layout
        The layout in words.
    scenario
        The fields that are set; the file of a network.
    verdict
        Whether it carries the rate with the objectives met, also after each loss that was asked for; null where neither
        a rate nor an objective was given, and for a network.
    recovers
        Whether every loss is simulated and back to normal before its simulation ends.
    offered_tps
        Offered peak rate, requests per second over all data centres; of a network its mean rate; null for closed
        traffic.
    offered_source
        Where the rate comes from.
    mean_tps
        Offered mean rate, requests per second, which simulations have on average; null for closed traffic.
    outages
        What is left in the long run after each loss; empty for a network.
    levels
        Which consistency levels each loss leaves.
    clients
        When clients time out and try again, in simulations.
    transients
        The simulated time around losses.
    not_simulated
        Why no loss is simulated, though one was to be; else empty.
    metastability
        Whether retries keep it down after a trigger; null if nobody asked.
    not_modelled
        Mechanisms that are known to matter, and that the network lacks.
    seed
        The seed of every random number.
    version
        The version of capplan.
    """

    SCHEMA = "capplan.outages/3"
    UNBOUNDED = (*UNBOUNDED_BANDS, ("Screen", "worst_per_s"))

    system: str
    layout: str
    scenario: Mapping[str, Any]
    verdict: Verdict | None = None
    recovers: bool
    offered_tps: float | None
    offered_source: Literal["given", "default", "network"]
    mean_tps: float | None
    outages: tuple[Outage, ...] = ()
    levels: tuple[LevelAvailability, ...] = ()
    clients: Clients
    transients: tuple[Transient, ...]
    not_simulated: str = ""
    metastability: Metastability | None
    not_modelled: tuple[str, ...] = ()
    seed: int
    version: str
