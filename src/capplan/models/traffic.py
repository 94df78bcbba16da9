"""Who asks, and when: open, closed and throttled traffic of request classes and sessions, and what changes meanwhile."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from capplan.models.distribution import LANGUAGE, Distribution
from capplan.models.errors import InputError
from capplan.models.quantity import PerSecond, Positive, Seconds
from capplan.models.station import Retry
from capplan.models.step import AtLeastOne, Step


@dataclass(frozen=True, config=LANGUAGE)
class RequestClass:
    """A kind of request: what it does, how long its client waits, whether it tries again.

    A request whose client has given up still consumes what it queued for.
    """

    name: str
    flow: Step
    timeout_s: Seconds | None = None
    retry: Retry | None = None


@dataclass(frozen=True, config=LANGUAGE)
class Session:
    """Dependent requests: `classes` one after another, `gaps[i]` between the end of i and the start of i + 1.

    `route`: `independent` routes each request on its own, `sticky` lets all of a session follow the first one's routes.
    A dropped or timed-out request ends the session.
    """

    name: str
    classes: Annotated[tuple[str, ...], Field(min_length=1)]
    gaps: tuple[Distribution, ...]
    route: Literal["independent", "sticky"] = "independent"

    def __post_init__(self) -> None:
        if len(self.gaps) != len(self.classes) - 1:
            raise InputError(f"{len(self.gaps)} gaps for {len(self.classes)} requests: give one between each two")


@dataclass(frozen=True, config=LANGUAGE)
class Poisson:
    """Independent arrivals at a constant mean rate."""

    kind: Literal["poisson"] = "poisson"


@dataclass(frozen=True, config=LANGUAGE)
class Bursty:
    """A two-state Markov-modulated Poisson process with the same mean rate.

    During bursts, which take `burst_fraction` of the time and last `burst_length_s` in the mean (exponential), the rate
    is `burst_ratio` times the mean rate; between them it is what is left.
    """

    burst_ratio: Positive
    burst_fraction: Annotated[float, Field(gt=0, lt=1)]
    burst_length_s: Seconds
    kind: Literal["bursty"] = "bursty"

    def __post_init__(self) -> None:
        if self.burst_ratio * self.burst_fraction > 1:  # type: ignore[operator]
            raise InputError(
                f"burst_ratio {self.burst_ratio} for {self.burst_fraction:g} of the time is more than the mean rate; "
                "their product is at most 1"
            )


@dataclass(frozen=True, config=LANGUAGE)
class Trace:
    """Arrivals at the given times (seconds, rising), scaled to the wanted mean rate when it is given."""

    times_s: tuple[float, ...]
    kind: Literal["trace"] = "trace"


Arrivals = Annotated[Poisson | Bursty | Trace, Field(discriminator="kind")]


@dataclass(frozen=True, config=LANGUAGE)
class Open:
    """Open traffic: `rate_per_s` *requests* per second over all classes, whatever the answers.

    `mix` gives the share of arrivals (of sessions, or of single requests) of each named session or class; a session
    counts as all its requests, so sessions start at rate / mean length.
    """

    rate_per_s: PerSecond
    mix: dict[str, float]
    arrivals: Arrivals = Poisson()
    kind: Literal["open"] = "open"


@dataclass(frozen=True, config=LANGUAGE)
class Closed:
    """Closed traffic: `clients` that each ask, wait for the answer, think and ask again."""

    clients: AtLeastOne
    think: Distribution
    mix: dict[str, float]
    kind: Literal["closed"] = "closed"


@dataclass(frozen=True, config=LANGUAGE)
class Throttled:
    """A closed client that tries to hold `rate_per_s` with `clients` connections.

    Latency counts from the intended and from the actual start: load generators differ in which they report.
    """

    clients: AtLeastOne
    rate_per_s: PerSecond
    mix: dict[str, float]
    kind: Literal["throttled"] = "throttled"


Traffic = Annotated[Open | Closed | Throttled, Field(discriminator="kind")]


@dataclass(frozen=True, config=LANGUAGE)
class Event:
    """At `at_s`, `action` happens to `target`: a station or host (down, up, speed), a delay (scale), traffic (scale)."""

    at_s: Seconds
    action: Literal["down", "up", "speed", "scale_delay", "scale_traffic"]
    target: str
    factor: Positive = 1.0


@dataclass(frozen=True, config=LANGUAGE)
class Timeline:
    """What changes while it runs. Others notice a loss after `detection_s`; a start is cold for `cold_start_s`."""

    events: tuple[Event, ...] = ()
    detection_s: Seconds = 0.0
    cold_start_s: Seconds = 0.0
