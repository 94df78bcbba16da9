"""Flows of the SimPy engine: every step becomes a function that returns a SimPy process (a generator).

Names, hashes, distributions and stations are looked up once, when the flow is compiled. What is left per request is
the behaviour, and it reads like the definition of the step. What steps share between requests stands first: joins of
forks, countdown latches, batches and routes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Sequence as Listed
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeVar

from capplan.models.language.network import Network
from capplan.models.language.station import member_name
from capplan.models.language.step import (
    Acquire,
    Batch,
    Choice,
    CountdownLatch,
    Delay,
    FanOut,
    ForkJoin,
    Hedge,
    If,
    Pick,
    ReplicaSet,
    Route,
    RoutePolicy,
    Sequence,
    Signal,
    Step,
    Visit,
)
from capplan.models.language.units import Number
from capplan.simulator.reference.events import (
    Dropped,
    EventKind,
    OrderedEnvironment,
    OrderedEvent,
    OrderedProcess,
    ProcessGenerator,
    step_rank,
)
from capplan.simulator.reference.stations import RunningStation, UnitPool
from capplan.simulator.reference.traffic import Attempt
from capplan.simulator.specification.clock import to_ticks
from capplan.simulator.specification.network_facts import flow_facts, member_counts
from capplan.simulator.specification.sampling import picker, tick_sampler
from capplan.simulator.specification.streams import name_key, replicas, replicas_key, step_names, uniform
from capplan.simulator.specification.timeline import rounded


class ActiveJoin:
    """A fork in progress: the branches that it still needs, and the further drops that it tolerates."""

    __slots__ = ("needed", "rank", "spare", "waiting")

    def __init__(self, needed: int, branches: int, rank: int) -> None:
        self.needed, self.spare, self.rank = needed, branches - needed, rank
        self.waiting: OrderedEvent | None = None

    def finished(self) -> None:
        """Count a branch that has finished."""
        self.needed -= 1
        if self.needed == 0 and self.waiting is not None:
            self.waiting.now(self.rank)

    def dropped(self) -> None:
        """Count a dropped branch; the join fails when too few are left."""
        self.spare -= 1
        if self.spare == -1 and self.needed > 0 and self.waiting is not None:
            self.waiting.now(self.rank, Dropped())

    def wait(self, env: OrderedEnvironment) -> ProcessGenerator:
        """Wait until enough branches have finished."""
        if self.needed > 0:
            if self.spare < 0:
                raise Dropped
            self.waiting = OrderedEvent(env)
            yield self.waiting


class ActiveCountdownLatch:
    """A countdown latch in progress: the missing signals, and the running branches that may send some.

    `number` is that of its step in the flow, by which branches and signals know it.
    """

    __slots__ = ("missing", "needed", "number", "outer", "rank", "running", "waiting")

    def __init__(
        self, outer: ActiveCountdownLatch | None, number: int, missing: dict[str, int], needed: int, rank: int
    ) -> None:
        self.outer, self.number, self.missing, self.needed, self.rank = outer, number, missing, needed, rank
        self.running = 0
        self.waiting: OrderedEvent | None = None

    def signal(self, group: str) -> None:
        """Count one signal for `group`; late signals change nothing."""
        self.missing[group] -= 1
        if self.missing[group] == 0:
            self.needed -= 1
            if self.needed == 0 and self.waiting is not None:
                self.waiting.now(self.rank)

    def branch_ended(self) -> None:
        """Count a branch that has ended; after the last one, a latch with missing signals fails."""
        self.running -= 1
        if self.running == 0 and self.needed > 0 and self.waiting is not None:
            self.waiting.now(self.rank, Dropped())

    def wait(self, env: OrderedEnvironment) -> ProcessGenerator:
        """Wait until enough groups are complete."""
        if self.needed > 0:
            if self.running == 0:
                raise Dropped
            self.waiting = OrderedEvent(env)
            yield self.waiting


def latches_numbered(latch: ActiveCountdownLatch | None, numbers: tuple[int, ...]) -> Iterator[ActiveCountdownLatch]:
    """Yield the latches with the given numbers around a step, from the innermost one, `latch`, outwards."""
    while latch is not None and numbers:
        if latch.number in numbers:
            yield latch
        latch = latch.outer


BatchedStep = Callable[[Attempt], ProcessGenerator]


class OpenBatch(list[tuple[Attempt, OrderedEvent]]):
    """The members of an open batch in order, each with the event at which it continues."""


class BatchPoint:
    """A batch step of a flow, and its open batch, if any."""

    def __init__(self, env: OrderedEnvironment, size: int, longest: int, inner: BatchedStep, number: int) -> None:
        self.env, self.size, self.longest, self.inner = env, size, longest, inner
        self.due_rank, self.done_rank = step_rank(EventKind.DELAY, number), step_rank(EventKind.RESUME, number)
        self.open: OpenBatch | None = None

    def join(self, attempt: Attempt) -> OrderedEvent:
        """Join a batch; the event returned is the end of the step, which this member may start."""
        done = OrderedEvent(self.env)
        batch = self.open if self.open is not None else self._opened(attempt)
        batch.append((attempt, done))
        if len(batch) == self.size:
            self._start(batch)
        return done

    def _opened(self, attempt: Attempt) -> OpenBatch:
        """Open a batch with `attempt` as its first member."""
        self.open = batch = OpenBatch()
        if self.size > 1:
            due = OrderedEvent(self.env, lambda _: self._start(batch))
            due.at(self.env.tick + self.longest, attempt.rank + self.due_rank)
        return batch

    def _start(self, batch: OpenBatch) -> None:
        """Run the step for a batch, unless it has started already."""
        if batch is self.open:
            self.open = None
            OrderedProcess(self.env, self._do(batch))

    def _do(self, batch: OpenBatch) -> ProcessGenerator:
        dropped = False
        try:
            yield from self.inner(batch[0][0])
        except Dropped:
            dropped = True
        for member, done in batch:
            done.now(member.rank + self.done_rank, Dropped() if dropped else None)


SMOOTHING_BITS = 3  # a new time counts 1/8, as in TCP's smoothed round-trip time (RFC 6298)


class Router:
    """The state of a route: requests passed, requests inside each target, smoothed time of each target in ticks.

    All of it is integer, so that every engine keeps exactly the same state. A target that has never answered counts as
    the fastest. `known_down`, if any target can be down, tells which targets requests avoid, unless there is no other.
    """

    def __init__(
        self,
        policy: RoutePolicy,
        targets: int,
        key: int,
        known_down: Callable[[int], bool] | None,
        weights: Listed[float] = (),
    ) -> None:
        self.policy, self.targets, self.key, self._down = policy, targets, key, known_down
        self.weights = weights
        self.passed = 0
        self.inside = [0] * targets
        self.smoothed = [-1] * targets

    def enter(self, attempt: Attempt, candidates: Listed[int] | None = None) -> int:
        """Choose the target of a request; a sticky session keeps the target that it has taken before.

        `candidates` are the targets to choose from, all if left out; at least one.
        """
        routes, this = attempt.session.routes, (self.key, self.targets)
        up = self._up(range(self.targets) if candidates is None else candidates)
        if routes is None:
            target = self._choose(attempt, up)
        elif routes.get(this) in up and (not self._down or not self._down(routes[this])):
            target = routes[this]
        else:
            target = routes[this] = self._choose(attempt, up)
        self.inside[target] += 1
        return target

    def leave(self, target: int, took: int | None = None) -> None:
        """Count a request out of its target; `took` is None when it was dropped."""
        self.inside[target] -= 1
        if took is not None:
            before = self.smoothed[target]
            self.smoothed[target] = took if before < 0 else before + ((took - before) >> SMOOTHING_BITS)

    def _up(self, candidates: Listed[int]) -> Listed[int]:
        """Return the candidates that are up; all of them if none is."""
        if self._down is None:
            return candidates
        return [target for target in candidates if not self._down(target)] or candidates

    def _choose(self, attempt: Attempt, up: Listed[int]) -> int:
        match self.policy:
            case "round_robin":
                self.passed += 1
                return up[(self.passed - 1) % len(up)]
            case "random":
                edges = list(accumulate(self.weights[target] for target in up)) if self.weights else []
                if not edges or not edges[-1]:
                    return up[int(uniform(attempt.key, self.key) * len(up))]
                return up[bisect_right(edges[:-1], uniform(attempt.key, self.key) * edges[-1])]
            case "token_aware":
                owner = int(uniform(attempt.session.token, 0) * self.targets)
                return min(up, key=lambda target: (target < owner, target))
            case "least_loaded":
                return min(up, key=self.inside.__getitem__)
            case "latency_ranked":
                return min(up, key=self.smoothed.__getitem__)
            case "first":
                return up[0]


Runner = Callable[[Attempt, ActiveCountdownLatch | None], ProcessGenerator]


@dataclass(frozen=True)
class FlowContext:
    """The network, environment and stations that flows use.

    `delay_factors` has the factor of each delay that the timeline changes, `failing` the stations that may be down.
    """

    network: Network
    env: OrderedEnvironment
    stations: Mapping[str, RunningStation]
    pools: Mapping[str, UnitPool]
    delay_factors: Mapping[str, float]
    failing: frozenset[str]

    def known_down(self, station: str) -> bool:
        """Return whether others know that a station is down."""
        return self.stations[station].known_down

    def members_down(self, group: str) -> Callable[[int], bool] | None:
        """Return the test whether a member of a station is known to be down; None if no member can be."""
        station = next((each for each in self.network.stations if each.name == group), None)
        if station is None or not self.failing.intersection(each.name for each in station.members):
            return None
        names = [each.name for each in station.members]
        return lambda member: self.known_down(names[member])

    def count(self, name: str) -> int:
        """Return the number of members of a station or pool."""
        counts = {each.name: each.count for each in self.network.pools} | member_counts(self.network)
        return counts[name] or 1


def compile_flow(flow: Step, context: FlowContext) -> Runner:
    """Return the function that runs `flow` for one attempt at a request.

    Raises
    ------
    RefusedError
        When the flow has more steps than the order of events can number.
    """
    return _Compiler(flow, context).step(0)


class _Compiler:
    """Compiles the flow of one request class; steps are numbered in the order of `walk`."""

    def __init__(self, flow: Step, context: FlowContext) -> None:
        self.context, self.env = context, context.env
        facts = flow_facts(flow, member_counts(context.network))
        self.steps, self.below = facts.steps, facts.below
        self.names = list(step_names(flow))
        self.keys = [name_key("step", name) for name in self.names]
        self.signalled, self.served, self.entries = facts.signalled, facts.served, facts.entries
        self.ranks, self.strides = facts.ranks, facts.strides
        self.sets = facts.sets

    def rank(self, kind: EventKind, number: int) -> int:
        """Return the part of a rank that depends on the step."""
        return step_rank(kind, self.ranks[number])

    def step(self, number: int) -> Runner:  # noqa: C901, PLR0912 - one case per construct of the language
        """Return the function that runs the step with this number."""
        step, inside = self.steps[number], [self.step(child) for child in self.below[number]]
        match step:
            case Visit():
                return self._visit(step, number)
            case Delay():
                return self._delay(step, number)
            case Sequence():
                return _sequence(inside)
            case Signal():
                return _signal(step.group, self.signalled[number])
            case Acquire():
                return self._acquire(step, inside[0], number)
            case CountdownLatch():
                return self._latch(step, inside[0], number)
            case Batch():
                return self._batch(step, inside[0], number)
            case Pick():
                return self._pick(step, inside[0], number)
            case ReplicaSet():
                return self._replica_set(step, inside[0])
            case FanOut():
                return self._fan_out(step, inside[0], number)
            case If():
                return _if(step, *inside)
            case ForkJoin():
                return self._fork_join(inside, step.needed, number)
            case Hedge():
                return self._hedge(inside[0], to_ticks(float(step.after_s)), inside[1], number)
            case Choice():
                return _choice(step.probabilities, inside, self.keys[number])
            case Route():
                return self._route(step, inside, number)

    def _visit(self, step: Visit, number: int) -> Runner:
        key, draw, rank = self.keys[number], tick_sampler(step.demand), self.rank(EventKind.SERVICE, number)
        station_of = _chosen(self.context.stations, step.station, step.member)
        lane_key = name_key("lane", self.names[number])

        def visit(attempt: Attempt, _: ActiveCountdownLatch | None) -> ProcessGenerator:
            lane = station_of(attempt).lane(attempt.key, lane_key)
            yield lane.visit(draw(uniform(attempt.key, key)), attempt.rank + rank)

        return visit

    def _delay(self, step: Delay, number: int) -> Runner:
        env, scaled, name, key = self.env, self.context.delay_factors, step.name, self.keys[number]
        draw, rank = tick_sampler(step.duration), self.rank(EventKind.DELAY, number)

        def delay(attempt: Attempt, _: ActiveCountdownLatch | None) -> ProcessGenerator:
            ticks = draw(uniform(attempt.key, key))
            if name in scaled:
                ticks = rounded(ticks * scaled[name])
            yield OrderedEvent(env).at(env.tick + ticks, attempt.rank + rank)

        return delay

    def _acquire(self, step: Acquire, inner: Runner, number: int) -> Runner:
        env, rank = self.env, self.rank(EventKind.RESUME, number)
        pool_of = _chosen(self.context.pools, step.pool, step.member)

        def acquire(attempt: Attempt, latch: ActiveCountdownLatch | None) -> ProcessGenerator:
            pool = pool_of(attempt)
            acquired = pool.acquire(attempt.rank + rank)
            if acquired is not None:
                yield acquired
            since = env.tick
            try:
                yield from inner(attempt, latch)
            except Dropped:
                pool.release(since)
                raise
            pool.release(since)

        return acquire

    def _branch(self, inner: Runner, number: int) -> _Branch:
        return _Branch(self.env, inner, self.served[number])

    def _fork_join(self, inside: list[Runner], needed: int, number: int) -> Runner:
        env, rank = self.env, self.rank(EventKind.RESUME, number)
        branches = [self._branch(inner, child) for inner, child in zip(inside, self.below[number], strict=True)]

        def fork_join(attempt: Attempt, latch: ActiveCountdownLatch | None) -> ProcessGenerator:
            join = ActiveJoin(needed, len(branches), attempt.rank + rank)
            for branch in branches:
                branch.expect(latch)
            for branch in branches:
                branch.start(attempt, latch, join)
            yield from join.wait(env)

        return fork_join

    def _pick(self, step: Pick, inner: Runner, number: int) -> Runner:
        env, of_set = self.env, self.sets[number].get(step.among)
        group = step.among if of_set is None else of_set.among
        router = Router(step.policy, self.context.count(group), self.keys[number], self.context.members_down(group))

        def pick(attempt: Attempt, latch: ActiveCountdownLatch | None) -> ProcessGenerator:
            candidates = None if of_set is None else attempt.members_of(step.among)
            if candidates == ():
                raise Dropped
            member, since = router.enter(attempt, candidates), env.tick
            try:
                yield from inner(attempt.with_bound(step.member, member), latch)
            except Dropped:
                router.leave(member)
                raise
            router.leave(member, env.tick - since)

        return pick

    def _replica_set(self, step: ReplicaSet, inner: Runner) -> Runner:
        count, key = self.context.count(step.among), replicas_key(step.among)
        down = self.context.members_down(step.among)

        def replica_set(attempt: Attempt, latch: ActiveCountdownLatch | None) -> ProcessGenerator:
            found = replicas(attempt.session.token, key, count, step.size, step.placement)
            if down is not None:
                found = tuple(member for member in found if not down(member))
            if step.first is not None:
                first = attempt.member(step.first)
                found = tuple(sorted(found, key=lambda member: member != first))
            yield from inner(attempt.with_bound(step.members, found), latch)

        return replica_set

    def _fan_out(self, step: FanOut, inner: Runner, number: int) -> Runner:
        env, rank, stride = self.env, self.rank(EventKind.RESUME, number), self.strides[number]
        branch = self._branch(inner, self.below[number][0])

        def fan_out(attempt: Attempt, latch: ActiveCountdownLatch | None) -> ProcessGenerator:
            members = attempt.members_of(step.over)[: step.contacted]
            if len(members) < step.needed:
                raise Dropped
            join = ActiveJoin(step.needed, len(members), attempt.rank + rank)
            for _ in members:
                branch.expect(latch)
            for place, member in enumerate(members):
                branch.start(attempt.branch(step.member, member, place * stride), latch, join)
            yield from join.wait(env)

        return fan_out

    def _hedge(self, first_step: Runner, after: int, spare_step: Runner, number: int) -> Runner:
        env, rank, due_rank = self.env, self.rank(EventKind.RESUME, number), self.rank(EventKind.DELAY, number)
        first, spare = map(self._branch, (first_step, spare_step), self.below[number])

        def hedge(attempt: Attempt, latch: ActiveCountdownLatch | None) -> ProcessGenerator:
            join = ActiveJoin(1, 2, attempt.rank + rank)

            def due(_: object = None) -> None:
                if join.needed > 0:
                    spare.start(attempt, latch, join)
                else:
                    spare.ended(latch)

            first.expect(latch)
            spare.expect(latch)
            first.start(attempt, latch, join)
            if after == 0 or join.needed == 0:
                due()
            else:
                OrderedEvent(env, due).at(env.tick + after, attempt.rank + due_rank)
            yield from join.wait(env)

        return hedge

    def _latch(self, step: CountdownLatch, inner: Runner, number: int) -> Runner:
        env, rank = self.env, self.rank(EventKind.RESUME, number)
        groups = {group.name: group.needed for group in step.groups}
        needed = len(groups) if step.needed is None else step.needed

        def latch(attempt: Attempt, outer: ActiveCountdownLatch | None) -> ProcessGenerator:
            mine = ActiveCountdownLatch(outer, number, dict(groups), needed, attempt.rank + rank)
            yield from inner(attempt, mine)
            yield from mine.wait(env)

        return latch

    def _route(self, step: Route, targets: list[Runner], number: int) -> Runner:
        env = self.env
        router = Router(step.policy, len(targets), self.keys[number], self._known_down(number), step.weights)

        def route(attempt: Attempt, latch: ActiveCountdownLatch | None) -> ProcessGenerator:
            target, since = router.enter(attempt), env.tick
            try:
                yield from targets[target](attempt, latch)
            except Dropped:
                router.leave(target)
                raise
            router.leave(target, env.tick - since)

        return route

    def _known_down(self, number: int) -> Callable[[int], bool] | None:
        """Return the test whether a target of a route is known to be down; None if no target can be."""
        entries, known_down = [self.entries[child] for child in self.below[number]], self.context.known_down
        if not any(station in self.context.failing for entry in entries if entry for station in entry.stations()):
            return None

        def target_is_known_down(target: int) -> bool:
            entry = entries[target]
            return entry is not None and entry.is_down(known_down)

        return target_is_known_down

    def _batch(self, step: Batch, inner: Runner, number: int) -> Runner:
        longest = to_ticks(float(step.max_wait_s))
        place = BatchPoint(self.env, step.max_size, longest, lambda first: inner(first, None), self.ranks[number])

        def batch(attempt: Attempt, _: ActiveCountdownLatch | None) -> ProcessGenerator:
            yield place.join(attempt)

        return batch


class _Branch:
    """A branch of a fork or hedge; `served` are the numbers of the latches around it that it may signal."""

    def __init__(self, env: OrderedEnvironment, inner: Runner, served: tuple[int, ...]) -> None:
        self.env, self.inner, self.served = env, inner, served

    def expect(self, latch: ActiveCountdownLatch | None) -> None:
        """Register the branch with its latches."""
        for active in latches_numbered(latch, self.served):
            active.running += 1

    def start(self, attempt: Attempt, latch: ActiveCountdownLatch | None, join: ActiveJoin) -> None:
        """Start, and run until it has to wait."""
        OrderedProcess(self.env, self._do(attempt, latch, join))

    def _do(self, attempt: Attempt, latch: ActiveCountdownLatch | None, join: ActiveJoin) -> ProcessGenerator:
        try:
            yield from self.inner(attempt, latch)
        except Dropped:
            join.dropped()
        else:
            join.finished()
        self.ended(latch)

    def ended(self, latch: ActiveCountdownLatch | None) -> None:
        """Report to the latches that the branch sends no more signals."""
        for active in latches_numbered(latch, self.served):
            active.branch_ended()


Place = TypeVar("Place")


def _chosen(places: Mapping[str, Place], name: str, member: str | None) -> Callable[[Attempt], Place]:
    """Return the function that finds the station or pool of a step, which may depend on a bound name."""
    if member is None:
        place = places[name]
        return lambda _: place
    return lambda attempt: places[member_name(name, attempt.member(member))]


def _if(step: If, then: Runner, otherwise: Runner) -> Runner:
    def if_(attempt: Attempt, latch: ActiveCountdownLatch | None) -> ProcessGenerator:
        is_among = attempt.member(step.member) in attempt.members_of(step.among)
        yield from (then if is_among else otherwise)(attempt, latch)

    return if_


def _sequence(parts: list[Runner]) -> Runner:
    def sequence(attempt: Attempt, latch: ActiveCountdownLatch | None) -> ProcessGenerator:
        for part in parts:
            yield from part(attempt, latch)

    return sequence


def _signal(group: str, number: int) -> Runner:
    def signal(_: Attempt, latch: ActiveCountdownLatch | None) -> ProcessGenerator:
        next(latches_numbered(latch, (number,))).signal(group)
        yield from ()

    return signal


def _choice(probabilities: tuple[Number, ...], parts: list[Runner], key: int) -> Runner:
    pick = picker(probabilities)

    def choice(attempt: Attempt, latch: ActiveCountdownLatch | None) -> ProcessGenerator:
        yield from parts[pick(uniform(attempt.key, key))](attempt, latch)

    return choice
