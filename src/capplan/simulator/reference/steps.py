"""Flows of the SimPy engine: every step becomes a function that returns a SimPy process (a generator).

Names, hashes, laws and stations are looked up once, when the flow is compiled; what is left per request is the
behaviour, and it reads like the definition of the step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from capplan.models.errors import RefusedError
from capplan.models.language.step import (
    Acquire,
    Batch,
    Choice,
    CountdownLatch,
    Delay,
    ForkJoin,
    Hedge,
    Route,
    Sequence,
    Signal,
    Step,
    Visit,
)
from capplan.models.language.units import Number
from capplan.simulator.reference.batches import Gathering
from capplan.simulator.reference.events import (
    STEP_BITS,
    Clockwork,
    Dropped,
    Happening,
    Kind,
    Moment,
    Work,
    step_rank,
)
from capplan.simulator.reference.joins import Join, OpenLatch, these
from capplan.simulator.reference.processor_sharing import ElasticStation
from capplan.simulator.reference.requests import Attempt
from capplan.simulator.reference.routes import Router
from capplan.simulator.reference.stations import HeldPool, RigidStation
from capplan.simulator.specification.clock import to_ticks
from capplan.simulator.specification.flow_facts import facts_of
from capplan.simulator.specification.sampling import picker, tick_sampler
from capplan.simulator.specification.streams import name_key, step_names, uniform
from capplan.simulator.specification.traffic_time import rounded

Served = RigidStation | ElasticStation
Runner = Callable[[Attempt, OpenLatch | None], Happening]


@dataclass(frozen=True)
class Surroundings:
    """What flows meet.

    `scaled` is the factor on each delay that the timeline changes, `failing` the stations that it takes down.
    """

    clockwork: Clockwork
    stations: Mapping[str, Served]
    pools: Mapping[str, HeldPool]
    scaled: Mapping[str, float]
    failing: frozenset[str]

    def known_down(self, station: str) -> bool:
        """Tell whether others know that a station is down."""
        return self.stations[station].known_down


def compile_flow(flow: Step, around: Surroundings) -> Runner:
    """Return the function that does `flow` for one attempt at a request.

    Raises
    ------
    RefusedError
        When the flow has more steps than the order of events can number.
    """
    names = step_names(flow)
    if len(names) >= 1 << STEP_BITS:
        raise RefusedError(f"a flow of {len(names)} steps is too long: at most {(1 << STEP_BITS) - 1}")
    return _Compiler(flow, names, around).step(0)


class _Compiler:
    """Compiles the flow of one request class; steps are known by their numbers in the order of `walk`."""

    def __init__(self, flow: Step, names: tuple[str, ...], around: Surroundings) -> None:
        self.around, self.clockwork = around, around.clockwork
        facts = facts_of(flow)
        self.steps, self.below = facts.steps, facts.below
        self.keys = [name_key("step", name) for name in names]
        self.signalled, self.served, self.ways = facts.signalled, facts.served, facts.ways

    def step(self, number: int) -> Runner:
        """Return the function that does the step with this number."""
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
            case Acquire() | CountdownLatch() | Batch():
                return self._with_one(step, inside[0], number)
            case ForkJoin() | Hedge() | Choice() | Route():
                return self._with_several(step, inside, number)

    def _with_one(self, step: Acquire | CountdownLatch | Batch, inside: Runner, number: int) -> Runner:
        match step:
            case Acquire():
                return self._hold(self.around.pools[step.pool], inside, number)
            case CountdownLatch():
                return self._latch(step, inside, number)
            case Batch():
                return self._batch(step, inside, number)

    def _with_several(self, step: ForkJoin | Hedge | Choice | Route, inside: list[Runner], number: int) -> Runner:
        match step:
            case ForkJoin():
                return self._fork_join(inside, step.needed, number)
            case Hedge():
                return self._hedge(inside[0], to_ticks(float(step.after_s)), inside[1], number)
            case Choice():
                return _choice(step.probabilities, inside, self.keys[number])
            case Route():
                return self._route(step, inside, number)

    def _visit(self, step: Visit, number: int) -> Runner:
        station, key = self.around.stations[step.station], self.keys[number]
        draw, rank = tick_sampler(step.demand), step_rank(Kind.SERVICE, number)

        def visit(attempt: Attempt, _: OpenLatch | None) -> Happening:
            yield station.visit(draw(uniform(attempt.key, key)), attempt.rank + rank)

        return visit

    def _delay(self, step: Delay, number: int) -> Runner:
        clockwork, scaled, name, key = self.clockwork, self.around.scaled, step.name, self.keys[number]
        draw, rank = tick_sampler(step.duration), step_rank(Kind.DELAY, number)

        def delay(attempt: Attempt, _: OpenLatch | None) -> Happening:
            ticks = draw(uniform(attempt.key, key))
            if name in scaled:
                ticks = rounded(ticks * scaled[name])
            yield Moment(clockwork).at(clockwork.tick + ticks, attempt.rank + rank)

        return delay

    def _hold(self, pool: HeldPool, inner: Runner, number: int) -> Runner:
        clockwork, rank = self.clockwork, step_rank(Kind.RESUME, number)

        def hold(attempt: Attempt, latch: OpenLatch | None) -> Happening:
            handed_over = pool.take(attempt.rank + rank)
            if handed_over is not None:
                yield handed_over
            since = clockwork.tick
            try:
                yield from inner(attempt, latch)
            except Dropped:
                pool.give(since)
                raise
            pool.give(since)

        return hold

    def _branch(self, inner: Runner, number: int) -> _Branch:
        return _Branch(self.clockwork, inner, self.served[number])

    def _fork_join(self, inside: list[Runner], needed: int, number: int) -> Runner:
        clockwork, rank = self.clockwork, step_rank(Kind.RESUME, number)
        branches = [self._branch(inner, child) for inner, child in zip(inside, self.below[number], strict=True)]

        def fork_join(attempt: Attempt, latch: OpenLatch | None) -> Happening:
            join = Join(needed, len(branches), attempt.rank + rank)
            for branch in branches:
                branch.expect(latch)
            for branch in branches:
                branch.start(attempt, latch, join)
            yield from join.wait(clockwork)

        return fork_join

    def _hedge(self, first_step: Runner, after: int, spare_step: Runner, number: int) -> Runner:
        clockwork, rank, due_rank = self.clockwork, step_rank(Kind.RESUME, number), step_rank(Kind.DELAY, number)
        first, spare = map(self._branch, (first_step, spare_step), self.below[number])

        def hedge(attempt: Attempt, latch: OpenLatch | None) -> Happening:
            join = Join(1, 2, attempt.rank + rank)

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
                Moment(clockwork, due).at(clockwork.tick + after, attempt.rank + due_rank)
            yield from join.wait(clockwork)

        return hedge

    def _latch(self, step: CountdownLatch, inner: Runner, number: int) -> Runner:
        clockwork, rank = self.clockwork, step_rank(Kind.RESUME, number)
        groups = {group.name: group.needed for group in step.groups}
        needed = len(groups) if step.needed is None else step.needed

        def latch(attempt: Attempt, outer: OpenLatch | None) -> Happening:
            mine = OpenLatch(outer, number, dict(groups), needed, attempt.rank + rank)
            yield from inner(attempt, mine)
            yield from mine.wait(clockwork)

        return latch

    def _route(self, step: Route, targets: list[Runner], number: int) -> Runner:
        clockwork = self.clockwork
        router = Router(step.policy, len(targets), self.keys[number], self._known_down(number))

        def route(attempt: Attempt, latch: OpenLatch | None) -> Happening:
            target, since = router.enter(attempt), clockwork.tick
            try:
                yield from targets[target](attempt, latch)
            except Dropped:
                router.leave(target)
                raise
            router.leave(target, clockwork.tick - since)

        return route

    def _known_down(self, number: int) -> Callable[[int], bool] | None:
        """Return the function that tells which targets of a route are known to be down; None when none ever is."""
        ways, known_down = [self.ways[child] for child in self.below[number]], self.around.known_down
        if not any(station in self.around.failing for way in ways if way for station in way.stations()):
            return None

        def target_is_known_down(target: int) -> bool:
            way = ways[target]
            return way is not None and way.is_down(known_down)

        return target_is_known_down

    def _batch(self, step: Batch, inner: Runner, number: int) -> Runner:
        longest = to_ticks(float(step.max_wait_s))
        place = Gathering(self.clockwork, step.max_size, longest, lambda first: inner(first, None), number)

        def batch(attempt: Attempt, _: OpenLatch | None) -> Happening:
            yield place.join(attempt)

        return batch


class _Branch:
    """A branch of a fork or hedge; `served` are the numbers of the latches around it that it may signal."""

    def __init__(self, clockwork: Clockwork, inner: Runner, served: tuple[int, ...]) -> None:
        self.clockwork, self.inner, self.served = clockwork, inner, served

    def expect(self, latch: OpenLatch | None) -> None:
        """Let the latches wait for it."""
        for open_latch in these(latch, self.served):
            open_latch.working += 1

    def start(self, attempt: Attempt, latch: OpenLatch | None, join: Join) -> None:
        """Begin, and go on until it has to wait."""
        Work(self.clockwork, self._do(attempt, latch, join))

    def _do(self, attempt: Attempt, latch: OpenLatch | None, join: Join) -> Happening:
        try:
            yield from self.inner(attempt, latch)
        except Dropped:
            join.dropped()
        else:
            join.finished()
        self.ended(latch)

    def ended(self, latch: OpenLatch | None) -> None:
        """Let the latches know that nothing more comes from it."""
        for open_latch in these(latch, self.served):
            open_latch.branch_ended()


def _sequence(parts: list[Runner]) -> Runner:
    def sequence(attempt: Attempt, latch: OpenLatch | None) -> Happening:
        for part in parts:
            yield from part(attempt, latch)

    return sequence


def _signal(group: str, number: int) -> Runner:
    def signal(_: Attempt, latch: OpenLatch | None) -> Happening:
        next(these(latch, (number,))).signal(group)
        yield from ()

    return signal


def _choice(probabilities: tuple[Number, ...], parts: list[Runner], key: int) -> Runner:
    pick = picker(probabilities)

    def choice(attempt: Attempt, latch: OpenLatch | None) -> Happening:
        yield from parts[pick(uniform(attempt.key, key))](attempt, latch)

    return choice
