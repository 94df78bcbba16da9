"""The steps of a flow: what one request does, as frozen data.

A flow is one step, usually a `Sequence`. Steps contain other steps, so a flow is a tree. Any step may have a `name`.
Random streams are keyed by names: a step that keeps its name keeps its random numbers when the layout around it changes
(common random numbers). A step without a name is named after its place.

Stations and pools with a count have members. A step binds a name to one member (`Pick`) or to a set of distinct members
(`ReplicaSet`); steps inside refer to the member by that name. So the same few steps serve any number of nodes.

A request is dropped at a full pool or by an expiry. A drop ends the branch where it happens. Anything that then waits
in vain (a join, a countdown latch, the request itself) is dropped as well. Branches that have already started go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Annotated, Any, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from capplan.errors import InputError
from capplan.models.language.construct import LANGUAGE, Construct, Name, StepName
from capplan.models.language.distribution import Distribution, check_probabilities
from capplan.models.language.units import AtLeastOne, Count, Probability, Seconds, Weight


@dataclass(frozen=True, config=LANGUAGE)
class Visit(Construct):
    """Queue at a station until one of its servers has served the request.

    Attributes
    ----------
    station
        Name of the station.
    demand
        Service demand: the time that a server at speed 1 needs, in seconds.
    name
        Name of the step, which keys its random stream.
    member
        Bound name of the member to visit, for a station with a count. It may have been picked from another station or
        pool with the same count.
    """

    station: Name
    demand: Distribution
    name: StepName = ""
    member: Name | None = None
    kind: Literal["visit"] = "visit"


@dataclass(frozen=True, config=LANGUAGE)
class Delay(Construct):
    """Wait without using a server, such as for the network or a remote system that never saturates.

    Attributes
    ----------
    duration
        Length of the delay, in seconds.
    name
        Name of the step, which keys its random stream and which timeline events refer to.
    """

    duration: Distribution
    name: StepName = ""
    kind: Literal["delay"] = "delay"


@dataclass(frozen=True, config=LANGUAGE)
class Sequence(Construct):
    """Run steps one after another.

    Attributes
    ----------
    steps
        The steps. An empty sequence is allowed and takes no time (a cache hit).
    name
        Name of the place, for unnamed steps inside.
    """

    steps: tuple[Step, ...]
    name: StepName = ""
    kind: Literal["sequence"] = "sequence"


@dataclass(frozen=True, config=LANGUAGE)
class Acquire(Construct):
    """Acquire one unit of a pool, run a step, and release the unit.

    The request queues for the unit, and is dropped if the pool's queue is full. Acquisitions may be nested: the request
    keeps the outer unit while it queues for the inner one. Two flows that acquire two pools in opposite order can
    deadlock, as they would in a real system.

    Attributes
    ----------
    pool
        Name of the pool.
    step
        Step that runs while the unit is held.
    name
        Name of the place, for unnamed steps inside.
    member
        Bound name of the member of the pool, for a pool with a count.
    """

    pool: Name
    step: Step
    name: StepName = ""
    member: Name | None = None
    kind: Literal["acquire"] = "acquire"


@dataclass(frozen=True, config=LANGUAGE)
class ForkJoin(Construct):
    """Start several branches in parallel and go on when enough of them are done; the other branches run to their end.

    Attributes
    ----------
    branches
        The branches, in the order in which they start.
    needed
        Number of branches to wait for; 0 goes on at once (the branches are detached).
    name
        Name of the place, for unnamed steps inside.

    Raises
    ------
    InputError
        If more branches are needed than there are.
    """

    branches: tuple[Step, ...]
    needed: Count
    name: StepName = ""
    kind: Literal["fork_join"] = "fork_join"

    def __post_init__(self) -> None:
        if self.needed > len(self.branches):
            raise InputError(f"needed = {self.needed} of {len(self.branches)} branches: at most all can be needed")


@dataclass(frozen=True, config=LANGUAGE)
class Group(Construct):
    """A group of signals that a countdown latch counts.

    Attributes
    ----------
    name
        Name that signals refer to.
    needed
        Number of signals that complete the group; further signals have no effect.
    """

    name: Name
    needed: AtLeastOne


@dataclass(frozen=True, config=LANGUAGE)
class CountdownLatch(Construct):
    """Run a step, then wait until enough groups of signals are complete.

    Signals may come from anywhere inside the step, detached branches included: for instance the acknowledgements that
    reach the original coordinator through a forwarder. The request goes on when the step has ended and the groups are
    complete. Each request has a latch of its own. If latches are nested, an inner group hides an outer group of the
    same name.

    Attributes
    ----------
    groups
        The groups, each with a name of its own (one per data centre, for EACH_QUORUM).
    step
        Step that runs first and contains the signals.
    needed
        Number of groups that must be complete; all if left out.
    name
        Name of the place, for unnamed steps inside.

    Raises
    ------
    InputError
        If there is no group, more groups are needed than there are, or two groups have the same name.
    """

    groups: tuple[Group, ...]
    step: Step
    needed: AtLeastOne | None = None
    name: StepName = ""
    kind: Literal["countdown_latch"] = "countdown_latch"

    def __post_init__(self) -> None:
        if not self.groups:
            raise InputError("a countdown latch without groups waits for nothing: name at least one group")
        if self.needed is not None and self.needed > len(self.groups):
            raise InputError(f"needed = {self.needed} of {len(self.groups)} groups: at most all can be needed")
        if len({group.name for group in self.groups}) < len(self.groups):
            raise InputError("two groups of a countdown latch have the same name: rename one")


@dataclass(frozen=True, config=LANGUAGE)
class Signal(Construct):
    """Send one signal to the nearest enclosing countdown latch that has the group; takes no time.

    Attributes
    ----------
    group
        Name of the group.
    name
        Name of the place.
    """

    group: Name
    name: StepName = ""
    kind: Literal["signal"] = "signal"


@dataclass(frozen=True, config=LANGUAGE)
class Hedge(Construct):
    """Run a step and, if it takes too long, start a second step as well; go on when either is done.

    The slower of the two runs to its end, as in Cassandra's speculative reads. If one is dropped, the other decides.

    Attributes
    ----------
    step
        Step that runs first.
    after_s
        Time until the spare starts, in seconds; 0 starts both at once.
    spare
        Step that then runs in parallel.
    name
        Name of the place, for unnamed steps inside.
    """

    step: Step
    after_s: Seconds
    spare: Step
    name: StepName = ""
    kind: Literal["hedge"] = "hedge"


@dataclass(frozen=True, config=LANGUAGE)
class Choice(Construct):
    """Run one of several steps, chosen at random for each request.

    Attributes
    ----------
    probabilities
        Probability of each step; positive, with sum 1.
    steps
        The steps.
    name
        Name of the step, which keys its random stream.

    Raises
    ------
    InputError
        If the probabilities are not positive, do not add up to 1, or are not as many as the steps.
    """

    probabilities: tuple[Probability, ...]
    steps: tuple[Step, ...]
    name: StepName = ""
    kind: Literal["choice"] = "choice"

    def __post_init__(self) -> None:
        check_probabilities(self.probabilities, len(self.steps))


RoutePolicy = Literal["round_robin", "random", "least_loaded", "token_aware", "latency_ranked", "first"]


@dataclass(frozen=True, config=LANGUAGE)
class Route(Construct):
    """Run one of several targets, chosen by a policy.

    Targets that are known to be down are left out, unless all are.

    Attributes
    ----------
    policy
        `round_robin` takes the targets in turn, starting with the first; `random` takes each with a probability in
        proportion to its weight;
        `least_loaded` takes the target with the fewest requests inside (ties: the first); `token_aware` hashes the
        request's key (its session, or the request itself); `latency_ranked` takes the target with the lowest smoothed
        latency so far (a target that was never used counts as fastest; ties: the first); `first` takes the first
        target, for instance the nearest data centre.
    targets
        At least one step.
    name
        Name of the step, which keys its random stream.
    weights
        Weights of the targets under `random`; equal if left out. One with weight 0 serves only when no other is up.

    Raises
    ------
    InputError
        If weights are given for another policy, are not as many as the targets, or are all 0.
    """

    policy: RoutePolicy
    targets: Annotated[tuple[Step, ...], Field(min_length=1)]
    name: StepName = ""
    weights: tuple[Weight, ...] = ()
    kind: Literal["route"] = "route"

    def __post_init__(self) -> None:
        if self.weights and self.policy != "random":
            raise InputError(f"a route by {self.policy} has no weights: leave them out, or give the policy random")
        if self.weights and len(self.weights) != len(self.targets):
            raise InputError(f"{len(self.weights)} weights for {len(self.targets)} targets: give one for each")
        if self.weights and not any(self.weights):
            raise InputError("weights of a route are all 0: give at least one above 0")


@dataclass(frozen=True, config=LANGUAGE)
class Pick(Construct):
    """Pick one member of a station or pool, or of a set of members, and run a step with a name bound to it.

    Members that are known to be down are left out, unless all are. The random numbers of the step do not depend on the
    member. Picking from a set without members drops the request.

    Attributes
    ----------
    member
        Name to bind.
    among
        Name of a station or pool with a count, or bound name of a set.
    policy
        As for `Route`. In a station or pool, `token_aware` takes the first replica of the token on the ring.
    step
        Step that runs with the name bound.
    name
        Name of the step, which keys its random stream.
    """

    member: Name
    among: Name
    policy: RoutePolicy
    step: Step
    name: StepName = ""
    kind: Literal["pick"] = "pick"


@dataclass(frozen=True, config=LANGUAGE)
class ReplicaSet(Construct):
    """Find the replicas of the request's row, and run a step with a name bound to the set of them.

    The row is that of the session: all its requests have the same replicas, in every step. Replicas that are known to
    be down are left out of the set.

    Attributes
    ----------
    members
        Name to bind.
    among
        Name of a station or pool with a count.
    size
        Number of distinct replicas, those that are down included.
    step
        Step that runs with the name bound.
    placement
        `ring`: the row's token lies in the range of one member, and the replicas are this member and those that follow
        it. `random`: every set is equally likely, in every order, as with many virtual nodes.
    first
        Bound name of a member that comes first if it is in the set, such as the coordinator; the others keep their
        order.
    name
        Name of the place, for unnamed steps inside.
    """

    members: Name
    among: Name
    size: AtLeastOne
    step: Step
    placement: Literal["ring", "random"] = "random"
    first: Name | None = None
    name: StepName = ""
    kind: Literal["replica_set"] = "replica_set"


@dataclass(frozen=True, config=LANGUAGE)
class FanOut(Construct):
    """Run a step for each member of a set in parallel, as the branches of a fork-join.

    Every branch has random numbers of its own, keyed by the number of its member. If the set has fewer members than are
    needed, nothing starts and the request is dropped.

    Attributes
    ----------
    over
        Bound name of the set.
    member
        Name to bind to the member in each branch.
    step
        Step that runs in each branch.
    needed
        Number of branches to wait for; 0 goes on at once (the branches are detached).
    contacted
        Number of members that have a branch, the first ones of the set; all if left out.
    name
        Name of the place, for unnamed steps inside.

    Raises
    ------
    InputError
        If more branches are needed than members are contacted.
    """

    over: Name
    member: Name
    step: Step
    needed: Count
    contacted: AtLeastOne | None = None
    name: StepName = ""
    kind: Literal["fan_out"] = "fan_out"

    def __post_init__(self) -> None:
        if self.contacted is not None and self.needed > self.contacted:
            raise InputError(f"needed = {self.needed} of {self.contacted} contacted members: at most all can be needed")


@dataclass(frozen=True, config=LANGUAGE)
class If(Construct):
    """Run one of two steps, depending on whether a member is another member, or is in a set.

    Attributes
    ----------
    member
        Bound name of a member.
    among
        Bound name of a member or set of the same station or pool, or of one with the same count.
    then
        Step that runs if it is.
    otherwise
        Step that runs if it isn't.
    name
        Name of the place, for unnamed steps inside.
    """

    member: Name
    among: Name
    then: Step
    otherwise: Step
    name: StepName = ""
    kind: Literal["if"] = "if"


@dataclass(frozen=True, config=LANGUAGE)
class Batch(Construct):
    """Collect requests and run a step once for all of them.

    Requests of one class that reach this step form a batch. The step runs once when the batch is full, or when its
    first request has waited long enough. All requests of the batch go on when the step ends. A signal inside must
    belong to a countdown latch inside, and a bound name to a step inside.

    Attributes
    ----------
    max_size
        Number of requests that fill the batch.
    max_wait_s
        Longest wait of the first request, in seconds.
    step
        Step that runs once per batch.
    name
        Name of the step, which keys its random stream.
    """

    max_size: AtLeastOne
    max_wait_s: Seconds
    step: Step
    name: StepName = ""
    kind: Literal["batch"] = "batch"


Step = Annotated[
    Visit
    | Delay
    | Sequence
    | Acquire
    | ForkJoin
    | CountdownLatch
    | Signal
    | Hedge
    | Choice
    | Route
    | Batch
    | Pick
    | ReplicaSet
    | FanOut
    | If,
    Field(discriminator="kind"),
]


def children(step: Step) -> tuple[Step, ...]:
    """Return the steps directly inside `step`."""
    return _CHILDREN[type(step)](step)


def walk(step: Step) -> Iterator[Step]:
    """Yield `step` and every step inside it, parents first."""
    waiting = [step]
    while waiting:
        step = waiting.pop()
        yield step
        waiting.extend(reversed(children(step)))


# A table by type is the fastest way, and flows are walked often.
_CHILDREN: dict[type, Callable[[Any], tuple[Step, ...]]] = {
    Sequence: attrgetter("steps"),
    Choice: attrgetter("steps"),
    ForkJoin: attrgetter("branches"),
    Route: attrgetter("targets"),
    Acquire: lambda step: (step.step,),
    CountdownLatch: lambda step: (step.step,),
    Batch: lambda step: (step.step,),
    Pick: lambda step: (step.step,),
    ReplicaSet: lambda step: (step.step,),
    FanOut: lambda step: (step.step,),
    If: lambda step: (step.then, step.otherwise),
    Hedge: lambda step: (step.step, step.spare),
    Visit: lambda _: (),
    Delay: lambda _: (),
    Signal: lambda _: (),
}
