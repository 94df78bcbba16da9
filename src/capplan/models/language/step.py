"""The steps of a flow: what one request does, as frozen data.

A flow is one step, usually a `Sequence`. Steps that wait for others hold them as data, so a flow is a tree. Every
step may have a `name`: random numbers are drawn by the name, so a step that keeps its name keeps its random numbers
when the layout around it changes (common random numbers). A step without a name is named after its place.

Work can be dropped: at a full pool, or by an expiry. A drop ends the branch in which it happens; what waits for
something that can then no longer come (a join, a latch, the request itself) is dropped in turn. What was already
started goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Annotated, Any, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from capplan.models.errors import InputError
from capplan.models.language.construct import LANGUAGE, Construct, Name
from capplan.models.language.distribution import Distribution, check_probabilities
from capplan.models.language.units import AtLeastOne, Count, Probability, Seconds


@dataclass(frozen=True, config=LANGUAGE)
class Visit(Construct):
    """Queue at a station and be served by one of its servers.

    Attributes
    ----------
    station
        Name of the station.
    demand
        Time of a server that it takes, in seconds (at speed 1).
    name
        Name that its random numbers are drawn by.
    """

    station: Name
    demand: Distribution
    name: str = ""
    kind: Literal["visit"] = "visit"


@dataclass(frozen=True, config=LANGUAGE)
class Delay(Construct):
    """Wait without holding anything (network time, a remote system that never saturates).

    Attributes
    ----------
    duration
        How long, in seconds.
    name
        Name that its random numbers are drawn by, and that timeline events refer to.
    """

    duration: Distribution
    name: str = ""
    kind: Literal["delay"] = "delay"


@dataclass(frozen=True, config=LANGUAGE)
class Sequence(Construct):
    """Do steps one after another.

    Attributes
    ----------
    steps
        The steps; none at all is allowed and takes no time (a cache hit).
    name
        Name of the place, for the steps inside that have none.
    """

    steps: tuple[Step, ...]
    name: str = ""
    kind: Literal["sequence"] = "sequence"


@dataclass(frozen=True, config=LANGUAGE)
class Acquire(Construct):
    """Take one unit of a pool (queueing for it), do a step, give the unit back.

    When the queue is full the request is dropped here. Of several holds inside one another, the outer unit stays taken
    while the inner one is queued for: two flows that hold two pools in opposite order can block each other for ever,
    as they would in life.

    Attributes
    ----------
    pool
        Name of the pool.
    step
        What is done while the unit is held.
    name
        Name of the place, for the steps inside that have none.
    """

    pool: Name
    step: Step
    name: str = ""
    kind: Literal["acquire"] = "acquire"


@dataclass(frozen=True, config=LANGUAGE)
class ForkJoin(Construct):
    """Start several branches at once and go on when enough of them have finished; late branches still do their work.

    Attributes
    ----------
    branches
        The branches, in the order in which they are started.
    needed
        How many must finish; 0 goes on at once (the branches are detached).
    name
        Name of the place, for the steps inside that have none.

    Raises
    ------
    InputError
        When more are needed than there are branches.
    """

    branches: tuple[Step, ...]
    needed: Count
    name: str = ""
    kind: Literal["fork_join"] = "fork_join"

    def __post_init__(self) -> None:
        if self.needed > len(self.branches):
            raise InputError(f"needed = {self.needed} of {len(self.branches)} branches: at most all can be needed")


@dataclass(frozen=True, config=LANGUAGE)
class Group(Construct):
    """A group of a latch.

    Attributes
    ----------
    name
        Name that signals refer to.
    needed
        Signals that fill it; more do no harm.
    """

    name: Name
    needed: AtLeastOne


@dataclass(frozen=True, config=LANGUAGE)
class CountdownLatch(Construct):
    """Do a step, then wait until enough groups are full.

    Signals come from anywhere below the step, detached branches included: the acknowledgements that reach the original
    coordinator through a forwarder. It goes on when both the step and the wait are over, and each request has a latch
    of its own. Where latches stand inside one another, the inner hides the outer's groups of the same name.

    Attributes
    ----------
    groups
        The groups, each with a name of its own (one per data centre, for EACH_QUORUM).
    step
        What is done first; the signals are inside.
    needed
        How many groups must be full; left out, all.
    name
        Name of the place, for the steps inside that have none.

    Raises
    ------
    InputError
        When there is no group, more are needed than there are, or two have one name.
    """

    groups: tuple[Group, ...]
    step: Step
    needed: AtLeastOne | None = None
    name: str = ""
    kind: Literal["countdown_latch"] = "countdown_latch"

    def __post_init__(self) -> None:
        if not self.groups:
            raise InputError("a latch without groups waits for nothing: name at least one group")
        if self.needed is not None and self.needed > len(self.groups):
            raise InputError(f"needed = {self.needed} of {len(self.groups)} groups: at most all can be needed")
        if len({group.name for group in self.groups}) < len(self.groups):
            raise InputError("two groups of a latch have the same name: give each its own")


@dataclass(frozen=True, config=LANGUAGE)
class Signal(Construct):
    """Count one for a group of the nearest latch around this step that has such a group; takes no time.

    Attributes
    ----------
    group
        Name of the group.
    name
        Name of the place.
    """

    group: Name
    name: str = ""
    kind: Literal["signal"] = "signal"


@dataclass(frozen=True, config=LANGUAGE)
class Hedge(Construct):
    """Do a step; if it is unfinished after a while, start a spare too and go on when either has finished.

    The slower one still does its work, as a speculative read does. If one is dropped the other is waited for.

    Attributes
    ----------
    step
        What is done first.
    after_s
        How long it is waited for before the spare starts, in seconds; 0 starts both at once.
    spare
        What is done beside it then.
    name
        Name of the place, for the steps inside that have none.
    """

    step: Step
    after_s: Seconds
    spare: Step
    name: str = ""
    kind: Literal["hedge"] = "hedge"


@dataclass(frozen=True, config=LANGUAGE)
class Choice(Construct):
    """Do one of several steps, drawn at random for each request.

    Attributes
    ----------
    probabilities
        Probability of each step; positive, with sum 1.
    steps
        The steps.
    name
        Name that its random numbers are drawn by.

    Raises
    ------
    InputError
        When the probabilities are not one for each step, positive, with sum 1.
    """

    probabilities: tuple[Probability, ...]
    steps: tuple[Step, ...]
    name: str = ""
    kind: Literal["choice"] = "choice"

    def __post_init__(self) -> None:
        check_probabilities(self.probabilities, len(self.steps))


RoutePolicy = Literal["round_robin", "random", "least_loaded", "token_aware", "latency_ranked"]


@dataclass(frozen=True, config=LANGUAGE)
class Route(Construct):
    """Do one of several targets, picked by a policy.

    Attributes
    ----------
    policy
        `round_robin` counts the requests that pass this step, starting with the first target; `random` picks uniformly;
        `least_loaded` picks the target with the fewest requests inside (ties: the first); `token_aware` picks by the
        hash of the request's key (its session, or the request itself); `latency_ranked` picks the target with the
        lowest smoothed time so far (a target not tried yet counts as fastest; ties: the first).
    targets
        At least one step.
    name
        Name that its random numbers are drawn by.
    """

    policy: RoutePolicy
    targets: Annotated[tuple[Step, ...], Field(min_length=1)]
    name: str = ""
    kind: Literal["route"] = "route"


@dataclass(frozen=True, config=LANGUAGE)
class Batch(Construct):
    """Gather requests, then do a step once for all of them.

    The requests of a class that reach this place gather; when they are enough, or the first of them has waited long
    enough, the step is done once and they all go on when it ends. A signal inside must belong to a latch inside.

    Attributes
    ----------
    max_size
        Requests that start the step at once.
    max_wait_s
        How long the first of them waits at most, in seconds.
    step
        What is done once for all.
    name
        Name that its random numbers are drawn by.
    """

    max_size: AtLeastOne
    max_wait_s: Seconds
    step: Step
    name: str = ""
    kind: Literal["batch"] = "batch"


Step = Annotated[
    Visit | Delay | Sequence | Acquire | ForkJoin | CountdownLatch | Signal | Hedge | Choice | Route | Batch,
    Field(discriminator="kind"),
]


def children(step: Step) -> tuple[Step, ...]:
    """Return the steps directly inside `step`."""
    return _CHILDREN[type(step)](step)


# By type, since flows are walked more often than anything else is done with them.
_CHILDREN: dict[type, Callable[[Any], tuple[Step, ...]]] = {
    Sequence: attrgetter("steps"),
    Choice: attrgetter("steps"),
    ForkJoin: attrgetter("branches"),
    Route: attrgetter("targets"),
    Acquire: lambda step: (step.step,),
    CountdownLatch: lambda step: (step.step,),
    Batch: lambda step: (step.step,),
    Hedge: lambda step: (step.step, step.spare),
    Visit: lambda _: (),
    Delay: lambda _: (),
    Signal: lambda _: (),
}
