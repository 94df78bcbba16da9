"""The workload: request classes and mixes, sessions, open, closed and throttled traffic, timelines of changes."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Annotated, Literal

import numpy as np
from pydantic import AfterValidator, Field
from pydantic.dataclasses import dataclass

from capplan.errors import InputError, one_of
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
    """Retry after a drop or a timeout.

    Attributes
    ----------
    attempts
        Number of attempts, the first one included; at least 2.
    backoff_s
        Wait before the first retry, in seconds.
    factor
        The wait before the k-th retry is `backoff_s` * `factor` ** (k - 1).

    Raises
    ------
    InputError
        If there are fewer than 2 attempts.
    """

    attempts: AtLeastOne
    backoff_s: Seconds
    factor: Positive = 1.0

    def __post_init__(self) -> None:
        if self.attempts < 2:
            raise InputError(f"attempts = {self.attempts} never retries: leave retry out, or give at least 2")


@dataclass(frozen=True, config=LANGUAGE)
class RequestClass(Construct):
    """A class of requests: its flow, its timeout and its retries.

    After a timeout the request continues and still uses the resources that it queued for.

    Attributes
    ----------
    name
        Name that sessions, the traffic mix and results refer to.
    flow
        What one request does.
    timeout_s
        Time until the client gives up, in seconds; never if left out.
    retry
        How the client retries after a drop or a timeout; it does not if left out.
    """

    name: Name
    flow: Step
    timeout_s: PositiveSeconds | None = None
    retry: Retry | None = None


@dataclass(frozen=True, config=LANGUAGE)
class Session(Construct):
    """A sequence of dependent requests: each starts after the answer to the one before.

    A request that is dropped or times out, after its retries, ends the session.

    Attributes
    ----------
    name
        Name that the traffic mix refers to.
    classes
        Names of the request classes, in order; at least one. A class may occur several times.
    gaps
        Time from the end of request i to the start of request i + 1, in seconds; one fewer than classes.
    route
        `independent` routes each request on its own; `sticky` gives all requests of a session the routes of the first.

    Raises
    ------
    InputError
        If the number of gaps is not one less than the number of requests.
    """

    name: Name
    classes: Annotated[tuple[Name, ...], Field(min_length=1)]
    gaps: tuple[Distribution, ...]
    route: Literal["independent", "sticky"] = "independent"

    def __post_init__(self) -> None:
        if len(self.gaps) != len(self.classes) - 1:
            raise InputError(f"{len(self.gaps)} gaps for {len(self.classes)} requests: give one fewer than requests")


@dataclass(frozen=True, config=LANGUAGE)
class Poisson(Construct):
    """Poisson arrivals: independent, at a constant mean rate."""

    kind: Literal["poisson"] = "poisson"


@dataclass(frozen=True, config=LANGUAGE)
class Bursty(Construct):
    """Bursts and quiet periods of exponential length: a two-state Markov-modulated Poisson process (MMPP-2).

    Let m be the mean rate of the traffic. The rate is m * `burst_ratio` in a burst and
    m * (1 - `burst_ratio` * `burst_fraction`) / (1 - `burst_fraction`) in a quiet period. A quiet period lasts
    `burst_length_s` * (1 - `burst_fraction`) / `burst_fraction` seconds on average. The process starts in its
    stationary state: in a burst with probability `burst_fraction`.

    Attributes
    ----------
    burst_ratio
        Rate in a burst over the mean rate; at least 1.
    burst_fraction
        Share of the time that bursts take; above 0, below 1.
    burst_length_s
        Mean length of a burst, in seconds.

    Raises
    ------
    InputError
        If the bursts alone exceed the mean rate (ratio times fraction above 1), or there is no quiet period.
    """

    burst_ratio: Positive
    burst_fraction: Probability
    burst_length_s: PositiveSeconds
    kind: Literal["bursty"] = "bursty"

    def __post_init__(self) -> None:
        check_number(self.burst_ratio, "burst_ratio", at_least=1.0)
        if np.any(np.equal(self.burst_fraction, 1)):
            raise InputError("burst_fraction = 1 leaves no quiet period: give less than 1, or poisson arrivals")
        product = float(np.max(np.multiply(self.burst_ratio, self.burst_fraction)))
        if product > 1 + 1e-12:
            raise InputError(
                f"burst_ratio times burst_fraction is {product:.10g}: it must be at most 1, or the bursts alone exceed "
                "the mean rate"
            )


@dataclass(frozen=True, config=LANGUAGE)
class Trace(Construct):
    """Arrivals at given times, played once.

    The time axis is scaled so that the arrivals up to the last time have the mean rate of the traffic.

    Attributes
    ----------
    times_s
        Arrival times in seconds, in ascending order; the last is above 0.

    Raises
    ------
    InputError
        If no time is above 0, the times are not in ascending order, or one is an array.
    """

    times_s: tuple[Seconds, ...]
    kind: Literal["trace"] = "trace"

    def __post_init__(self) -> None:
        if not all(map(is_scalar, self.times_s)) or not any(time > 0 for time in self.times_s):
            raise InputError("a trace needs arrival times, each a single number, the last above 0")
        if np.any(np.diff(np.asarray(self.times_s, dtype=np.float64)) < 0):
            raise InputError("the times of a trace must be in ascending order: sort them")


Arrivals = Annotated[Poisson | Bursty | Trace, Field(discriminator="kind")]


def _checked_mix(mix: dict[str, float]) -> dict[str, float]:
    if abs(sum(mix.values()) - 1) > 1e-9:
        raise InputError(f"the shares of the traffic mix {mix} add up to {sum(mix.values()):g}: their sum must be 1")
    return mix


Mix = Annotated[dict[str, Share], AfterValidator(_checked_mix)]


@dataclass(frozen=True, config=LANGUAGE)
class Open(Construct):
    """Open traffic: arrivals do not depend on responses.

    Attributes
    ----------
    rate_per_s
        Requests per second over all classes. Every request of a session counts: if sessions have n requests on average
        (by the mix), rate / n sessions arrive per second.
    mix
        Share of each session or request class in the arrivals; positive, with sum 1.
    arrivals
        Arrival process; Poisson if left out.

    Raises
    ------
    InputError
        If the shares of the mix do not add up to 1.
    """

    rate_per_s: PerSecond
    mix: Mix
    arrivals: Arrivals = Poisson()
    kind: Literal["open"] = "open"


@dataclass(frozen=True, config=LANGUAGE)
class Closed(Construct):
    """Closed traffic: each client thinks, sends a request, waits for the answer or its timeout, and thinks again.

    Attributes
    ----------
    clients
        Number of clients.
    think
        Think time, in seconds: before a client's first session or request, and after the end of each.
    mix
        Share of each session or request class in the starts; positive, with sum 1.

    Raises
    ------
    InputError
        If the shares of the mix do not add up to 1.
    """

    clients: AtLeastOne
    think: Distribution
    mix: Mix
    kind: Literal["closed"] = "closed"


@dataclass(frozen=True, config=LANGUAGE)
class Throttled(Construct):
    """Closed clients that pace themselves: each starts at its next pacing tick, or late if its last answer was late.

    Latency is reported from the intended start and from the actual start; load generators report the one or the other.

    Attributes
    ----------
    clients
        Number of clients; their pacing ticks are evenly spread.
    rate_per_s
        Requests per second over all clients and classes (every request of a session counts); positive.
    mix
        Share of each session or request class in the starts; positive, with sum 1.

    Raises
    ------
    InputError
        If the shares of the mix do not add up to 1.
    """

    clients: AtLeastOne
    rate_per_s: PositivePerSecond
    mix: Mix
    kind: Literal["throttled"] = "throttled"


Traffic = Annotated[Open | Closed | Throttled, Field(discriminator="kind")]


@dataclass(frozen=True, config=LANGUAGE)
class Event(Construct):
    """A change at a given time.

    Attributes
    ----------
    at_s
        Time of the change, in seconds from the start.
    action
        `down` and `up`: a station or host stops and resumes service. `speed`: a station or host serves `factor` times
        as fast. `scale_delay`: a delay (by its name) takes `factor` times as long. `scale_traffic`: a session or class
        of the mix arrives `factor` times as often; `*` stands for all traffic.
    target
        Name of the station, host, delay, session or class.
    factor
        Factor on the original value, not on the current one; 1 restores it. Not for `down` and `up`.

    Raises
    ------
    InputError
        If a factor is given for `down` or `up`.
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
    """Changes during a run.

    Attributes
    ----------
    events
        The changes; simultaneous changes take effect in the order of the list.
    detection_s
        Time for which clients still send to a station or host that is down, in seconds.
    cold_start_s
        Time for which a station or host is cold after `up`, in seconds.
    cold_speed
        Relative speed of a cold station or host; above 0, at most 1.

    Raises
    ------
    InputError
        If there is a cold start without a cold speed below 1, or a cold speed without a cold start.
    """

    events: tuple[Event, ...] = ()
    detection_s: Seconds = 0.0
    cold_start_s: Seconds = 0.0
    cold_speed: Share = 1.0

    def __post_init__(self) -> None:
        if np.any(np.greater(self.cold_start_s, 0)) and np.any(np.equal(self.cold_speed, 1)):
            raise InputError("cold_start_s has no effect without a cold_speed below 1: give both or neither")
        if self.cold_speed < 1 and np.any(np.equal(self.cold_start_s, 0)):
            raise InputError(f"cold_speed = {self.cold_speed:g} needs a cold_start_s above 0: give both or neither")


def parse_mix(text: str, names: Collection[str]) -> dict[str, float]:
    """Parse a mix such as `auth=1,acct=7`.

    Parameters
    ----------
    text : str
        A number for each name, separated by commas.
    names : collection of str
        The names; each must be there.

    Returns
    -------
    dict of float
        The numbers by name, at least 0, in the order of `names`.

    Raises
    ------
    InputError
        If a part is not a name with a number, or a name is unknown, missing or given twice.

    Examples
    --------
    >>> parse_mix("acct=7,auth=1", ("auth", "acct"))
    {'auth': 1.0, 'acct': 7.0}
    """
    example = ",".join(f"{name}={number}" for number, name in enumerate(names, 1))
    found: dict[str, float] = {}
    for part in text.split(","):
        name, equals, number = (each.strip() for each in part.partition("="))
        if not equals:
            raise InputError(f"{part.strip()!r} in mix {text!r} is not a name with a number: write {example!r}")
        one_of(names, name, f"{name!r} in mix {text!r} does not exist")
        if name in found:
            raise InputError(f"mix {text!r} has {name} twice: give it once")
        found[name] = _number(number, text)
    if missing := [name for name in names if name not in found]:
        raise InputError(f"mix {text!r} has no {missing[0]}: write one such as {example!r}")
    return {name: found[name] for name in names}


def mix_text(numbers: Mapping[str, float]) -> str:
    """Return a mix as people write it.

    Examples
    --------
    >>> mix_text({"auth": 1.0, "acct": 7.5})
    'auth=1,acct=7.5'
    """
    return ",".join(f"{name}={number:.12g}" for name, number in numbers.items())


def _number(text: str, mix: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise InputError(f"{text!r} in mix {mix!r} is not a number of at least 0: write one such as 7 or 2.5")
    return number
