"""Who asks, and when: open, closed and throttled traffic of request classes and sessions, and what changes."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass

from capplan.models.errors import InputError
from capplan.models.language.construct import LANGUAGE, Construct, Name
from capplan.models.language.distribution import Distribution
from capplan.models.language.step import Step
from capplan.models.language.units import (
    AtLeastOne,
    PerSecond,
    Positive,
    PositivePerSecond,
    PositiveSeconds,
    Probability,
    Seconds,
    Share,
    check_number,
    is_scalar,
)


@dataclass(frozen=True, config=LANGUAGE)
class Retry(Construct):
    """Try again after a drop or a timeout.

    Attributes
    ----------
    attempts
        Tries in all, the first included; at least 2.
    backoff_s
        Wait before the first retry, in seconds.
    factor
        The k-th retry comes after `backoff_s` * `factor` ** (k - 1).

    Raises
    ------
    InputError
        When fewer than 2 attempts are given.
    """

    attempts: AtLeastOne
    backoff_s: Seconds
    factor: Positive = 1.0

    def __post_init__(self) -> None:
        if self.attempts < 2:
            raise InputError(f"attempts = {self.attempts} never retries: leave retry out, or give at least 2")


@dataclass(frozen=True, config=LANGUAGE)
class RequestClass(Construct):
    """A kind of request: what it does, how long its client waits, whether it tries again.

    A request whose client has given up still consumes what it queued for.

    Attributes
    ----------
    name
        Name that sessions, the traffic mix and results refer to.
    flow
        What one request does.
    timeout_s
        How long its client waits, in seconds; left out, for ever.
    retry
        What the client does after a drop or a timeout; left out, nothing.
    """

    name: Name
    flow: Step
    timeout_s: PositiveSeconds | None = None
    retry: Retry | None = None


@dataclass(frozen=True, config=LANGUAGE)
class Session(Construct):
    """Dependent requests: one after another, each starting when the one before it has been answered.

    A request that is dropped or timed out (after its retries) ends the session.

    Attributes
    ----------
    name
        Name that the traffic mix refers to.
    classes
        Names of the request classes, in order; at least one, and one may come again.
    gaps
        Time between the end of request i and the start of request i + 1, in seconds: one fewer than classes.
    route
        `independent` routes each request on its own, `sticky` lets all of a session follow the first one's routes.

    Raises
    ------
    InputError
        When the gaps are not one between each two requests.
    """

    name: Name
    classes: Annotated[tuple[Name, ...], Field(min_length=1)]
    gaps: tuple[Distribution, ...]
    route: Literal["independent", "sticky"] = "independent"

    def __post_init__(self) -> None:
        if len(self.gaps) != len(self.classes) - 1:
            raise InputError(f"{len(self.gaps)} gaps for {len(self.classes)} requests: give one between each two")


@dataclass(frozen=True, config=LANGUAGE)
class Poisson(Construct):
    """Independent arrivals at a constant mean rate."""

    kind: Literal["poisson"] = "poisson"


@dataclass(frozen=True, config=LANGUAGE)
class Bursty(Construct):
    """Bursts and quiet times of exponential length: a two-state Markov-modulated Poisson process (MMPP-2).

    The mean rate m is that of the traffic. In a burst the rate is m * `burst_ratio`; in a quiet time it is what is
    left, m * (1 - `burst_ratio` * `burst_fraction`) / (1 - `burst_fraction`), which lasts
    `burst_length_s` * (1 - `burst_fraction`) / `burst_fraction` seconds in the mean. It starts in a burst with
    probability `burst_fraction` (stationary).

    Attributes
    ----------
    burst_ratio
        Rate during bursts over the mean rate; at least 1.
    burst_fraction
        Part of the time that is burst; above 0, below 1.
    burst_length_s
        Mean length of a burst, in seconds.

    Raises
    ------
    InputError
        When the bursts alone are more than the mean rate (ratio times fraction above 1), or no bursts at all.
    """

    burst_ratio: Positive
    burst_fraction: Probability
    burst_length_s: PositiveSeconds
    kind: Literal["bursty"] = "bursty"

    def __post_init__(self) -> None:
        check_number(self.burst_ratio, "burst_ratio", at_least=1.0)
        if np.any(np.equal(self.burst_fraction, 1)):
            raise InputError("burst_fraction = 1 leaves no quiet time: give less than 1, or poisson arrivals")
        product = float(np.max(np.multiply(self.burst_ratio, self.burst_fraction)))
        if product > 1 + 1e-12:
            raise InputError(
                f"burst_ratio times burst_fraction is {product:.10g}, so that bursts alone exceed the mean rate: "
                "it must be at most 1"
            )


@dataclass(frozen=True, config=LANGUAGE)
class Trace(Construct):
    """Arrivals at given times, played once.

    The time axis is stretched so that the arrivals over the last time have the traffic's mean rate.

    Attributes
    ----------
    times_s
        Times of arrival, in seconds; they never fall, and the last is above 0.

    Raises
    ------
    InputError
        When there is no time above 0, or they fall somewhere, or one is an array.
    """

    times_s: tuple[Seconds, ...]
    kind: Literal["trace"] = "trace"

    def __post_init__(self) -> None:
        if not all(map(is_scalar, self.times_s)) or not any(time > 0 for time in self.times_s):
            raise InputError("a trace needs times of arrival, each one number, the last above 0")
        if np.any(np.diff(np.asarray(self.times_s, dtype=np.float64)) < 0):
            raise InputError("the times of a trace must never fall: sort them")


Arrivals = Annotated[Poisson | Bursty | Trace, Field(discriminator="kind")]
Mix = dict[str, Share]


@dataclass(frozen=True, config=LANGUAGE)
class Open(Construct):
    """Open traffic: arrivals come at their rate, whatever the answers.

    Attributes
    ----------
    rate_per_s
        Requests per second over all classes. A session counts as all its requests: with mean length n (by the mix)
        arrivals come at rate / n.
    mix
        Share of the arrivals of each named session or request class; positive, with sum 1.
    arrivals
        How they come; left out, Poisson.

    Raises
    ------
    InputError
        When the shares of the mix do not have sum 1.
    """

    rate_per_s: PerSecond
    mix: Mix
    arrivals: Arrivals = Poisson()
    kind: Literal["open"] = "open"

    def __post_init__(self) -> None:
        _check_mix(self.mix)


@dataclass(frozen=True, config=LANGUAGE)
class Closed(Construct):
    """Closed traffic: clients that each think, ask, wait for the answer (or give up), and think again.

    Attributes
    ----------
    clients
        Number of clients.
    think
        Time before the first session (or single request) of a client, and between the end of one and the next.
    mix
        Share of the starts of each named session or request class; positive, with sum 1.

    Raises
    ------
    InputError
        When the shares of the mix do not have sum 1.
    """

    clients: AtLeastOne
    think: Distribution
    mix: Mix
    kind: Literal["closed"] = "closed"

    def __post_init__(self) -> None:
        _check_mix(self.mix)


@dataclass(frozen=True, config=LANGUAGE)
class Throttled(Construct):
    """Closed clients that try to hold a rate: each starts on its beat, or late when its answer was late.

    Latency counts from the intended and from the actual start: load generators differ in which they report.

    Attributes
    ----------
    clients
        Number of clients, whose beats are evenly spread.
    rate_per_s
        Requests per second over all clients and classes (a session counts as all its requests); positive.
    mix
        Share of the starts of each named session or request class; positive, with sum 1.

    Raises
    ------
    InputError
        When the shares of the mix do not have sum 1.
    """

    clients: AtLeastOne
    rate_per_s: PositivePerSecond
    mix: Mix
    kind: Literal["throttled"] = "throttled"

    def __post_init__(self) -> None:
        _check_mix(self.mix)


def _check_mix(mix: Mix) -> None:
    if abs(sum(mix.values()) - 1) > 1e-9:
        raise InputError(f"the shares of the traffic mix {mix} must have sum 1")


Traffic = Annotated[Open | Closed | Throttled, Field(discriminator="kind")]


@dataclass(frozen=True, config=LANGUAGE)
class Event(Construct):
    """Something that changes at a given time.

    Attributes
    ----------
    at_s
        When, in seconds from the start.
    action
        `down` and `up`: a station or host stops and starts serving. `speed`: a station or host serves `factor` times as
        fast. `scale_delay`: a delay (by its name) takes `factor` times as long. `scale_traffic`: a session or class of
        the mix arrives `factor` times as often; `*` stands for all traffic.
    target
        Name of the station, host, delay, session or class.
    factor
        Factor on the original value, not on the last one; 1 restores it. Not for `down` and `up`.

    Raises
    ------
    InputError
        When a factor is given for `down` or `up`.
    """

    at_s: Seconds
    action: Literal["down", "up", "speed", "scale_delay", "scale_traffic"]
    target: Name
    factor: Positive = 1.0

    def __post_init__(self) -> None:
        if self.action in ("down", "up") and np.any(np.not_equal(self.factor, 1)):
            raise InputError(f"action {self.action!r} takes no factor: leave it out, or use action 'speed'")


@dataclass(frozen=True, config=LANGUAGE)
class Timeline(Construct):
    """What changes while it runs.

    Attributes
    ----------
    events
        The changes; of two at one time the earlier in the list comes first.
    detection_s
        How long others still send to a station or host that is down, in seconds.
    cold_start_s
        How long a station or host is cold after `up`, in seconds.
    cold_speed
        Part of its speed that a cold station or host has; above 0, at most 1.

    Raises
    ------
    InputError
        When there is a cold start without a cold speed below 1, or the other way round.
    """

    events: tuple[Event, ...] = ()
    detection_s: Seconds = 0.0
    cold_start_s: Seconds = 0.0
    cold_speed: Share = 1.0

    def __post_init__(self) -> None:
        if np.any(np.greater(self.cold_start_s, 0)) and np.any(np.equal(self.cold_speed, 1)):
            raise InputError("cold_start_s without a cold_speed below 1 slows nothing: give both or neither")
        if self.cold_speed < 1 and np.any(np.equal(self.cold_start_s, 0)):
            raise InputError(f"cold_speed = {self.cold_speed:g} needs a cold_start_s above 0: give both or neither")
