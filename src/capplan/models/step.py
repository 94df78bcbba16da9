"""The steps of a flow: what one request does, as frozen data.

A flow is one step, usually a `Sequence`. Steps that wait for others hold them as data, so a flow is a tree. Every
step may have a `name`: random numbers are drawn by the name, so a step that keeps its name keeps its random numbers
when the layout around it changes (common random numbers). A step without a name is named after its place.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from capplan.models.distribution import LANGUAGE, Distribution, check_probabilities
from capplan.models.errors import InputError
from capplan.models.quantity import Seconds

Count = Annotated[int, Field(ge=0)]
AtLeastOne = Annotated[int, Field(ge=1)]


@dataclass(frozen=True, config=LANGUAGE)
class Visit:
    """Queue at `station` and take `demand` of one of its servers."""

    station: str
    demand: Distribution
    name: str = ""
    kind: Literal["visit"] = "visit"


@dataclass(frozen=True, config=LANGUAGE)
class Delay:
    """Wait for `duration` without holding anything (network time, a remote system that never saturates)."""

    duration: Distribution
    name: str = ""
    kind: Literal["delay"] = "delay"


@dataclass(frozen=True, config=LANGUAGE)
class Sequence:
    """Do `steps` one after another."""

    steps: tuple[Step, ...]
    name: str = ""
    kind: Literal["sequence"] = "sequence"


@dataclass(frozen=True, config=LANGUAGE)
class Hold:
    """Take one unit of `pool` (queueing for it), do `step`, give the unit back; a full queue drops the request."""

    pool: str
    step: Step
    name: str = ""
    kind: Literal["hold"] = "hold"


@dataclass(frozen=True, config=LANGUAGE)
class ForkJoin:
    """Start all `branches` at once and go on when `needed` of them have finished.

    Late branches still do their work. `needed` 0 goes on at once (the branches are detached).
    """

    branches: tuple[Step, ...]
    needed: Count
    name: str = ""
    kind: Literal["fork_join"] = "fork_join"

    def __post_init__(self) -> None:
        if self.needed > len(self.branches):
            raise InputError(f"needed = {self.needed} of {len(self.branches)} branches: at most all can be needed")


@dataclass(frozen=True, config=LANGUAGE)
class Group:
    """A group of a latch: full after `needed` signals."""

    name: str
    needed: AtLeastOne


@dataclass(frozen=True, config=LANGUAGE)
class Latch:
    """Do `step`, then wait until `needed` of the `groups` are full (all of them when `needed` is None).

    Signals come from anywhere below `step`, detached branches included: the acknowledgements that reach the
    original coordinator through a forwarder.
    """

    groups: tuple[Group, ...]
    step: Step
    needed: AtLeastOne | None = None
    name: str = ""
    kind: Literal["latch"] = "latch"

    def __post_init__(self) -> None:
        if not self.groups or (self.needed or 0) > len(self.groups):
            raise InputError(f"needed = {self.needed} of {len(self.groups)} groups: name at least as many groups")
        if len({group.name for group in self.groups}) < len(self.groups):
            raise InputError("two groups of a latch have the same name: give each its own")


@dataclass(frozen=True, config=LANGUAGE)
class Signal:
    """Count one for `group` of the nearest latch around this step that has such a group."""

    group: str
    name: str = ""
    kind: Literal["signal"] = "signal"


@dataclass(frozen=True, config=LANGUAGE)
class Hedge:
    """Do `step`; if it is unfinished after `after_s`, start `spare` too and go on when either has finished."""

    step: Step
    after_s: Seconds
    spare: Step
    name: str = ""
    kind: Literal["hedge"] = "hedge"


@dataclass(frozen=True, config=LANGUAGE)
class Choice:
    """Do one of `steps`, drawn with `probabilities`."""

    probabilities: tuple[float, ...]
    steps: tuple[Step, ...]
    name: str = ""
    kind: Literal["choice"] = "choice"

    def __post_init__(self) -> None:
        check_probabilities(self.probabilities, len(self.steps))


RoutePolicy = Literal["round_robin", "random", "least_loaded", "token_aware", "latency_ranked"]


@dataclass(frozen=True, config=LANGUAGE)
class Route:
    """Do one of `targets`, picked by `policy`.

    `round_robin` counts the requests that pass this step; `random` picks uniformly; `least_loaded` picks the target
    with the fewest requests inside (ties: the first); `token_aware` picks by the hash of the request's key (its
    session, or the request itself); `latency_ranked` picks the target with the lowest smoothed time so far.
    """

    policy: RoutePolicy
    targets: Annotated[tuple[Step, ...], Field(min_length=1)]
    name: str = ""
    kind: Literal["route"] = "route"


@dataclass(frozen=True, config=LANGUAGE)
class Batch:
    """Wait until `max_size` requests have gathered here or the first has waited `max_wait_s`; do `step` once for all."""

    max_size: AtLeastOne
    max_wait_s: Seconds
    step: Step
    name: str = ""
    kind: Literal["batch"] = "batch"


Step = Annotated[
    Visit | Delay | Sequence | Hold | ForkJoin | Latch | Signal | Hedge | Choice | Route | Batch,
    Field(discriminator="kind"),
]


def children(step: Step) -> tuple[Step, ...]:
    """Return the steps directly inside `step`."""
    match step:
        case Sequence() | Choice():
            return step.steps
        case ForkJoin():
            return step.branches
        case Route():
            return step.targets
        case Hold() | Latch() | Batch():
            return (step.step,)
        case Hedge():
            return (step.step, step.spare)
        case Visit() | Delay() | Signal():
            return ()
