"""Flows of the SimPy engine: every step becomes a function that returns a SimPy process (a generator).

Names, hashes, laws and stations are looked up once, when the flow is compiled; what is left per request is the
behaviour, and it reads like the definition of the step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from capplan.models.distribution import Distribution
from capplan.models.errors import RefusedError
from capplan.models.quantity import Number
from capplan.models.step import Choice, Delay, ForkJoin, Hold, Latch, Route, Sequence, Signal, Step, Visit
from capplan.simulator.reference_events import (
    STEP_BITS,
    Clockwork,
    Dropped,
    Happening,
    Kind,
    Moment,
    Work,
    step_rank,
)
from capplan.simulator.reference_requests import Request
from capplan.simulator.reference_routes import Router
from capplan.simulator.reference_sharing import SharingStation
from capplan.simulator.reference_stations import HeldPool, ServingStation
from capplan.simulator.sampling import picker, tick_sampler
from capplan.simulator.streams import name_key, step_names, uniform


class Join:
    """One fork in progress: how many branches are still needed, and how many more may be dropped."""

    __slots__ = ("needed", "rank", "spare", "waiting")

    def __init__(self, needed: int, branches: int, rank: int) -> None:
        self.needed, self.spare, self.rank = needed, branches - needed, rank
        self.waiting: Moment | None = None

    def finished(self) -> None:
        """Count a branch that has done its work."""
        self.needed -= 1
        if self.needed == 0 and self.waiting is not None:
            self.waiting.now(self.rank)

    def dropped(self) -> None:
        """Count a branch that was dropped; the join fails when too few are left."""
        self.spare -= 1
        if self.spare == -1 and self.needed > 0 and self.waiting is not None:
            self.waiting.now(self.rank, Dropped())


class OpenLatch:
    """One latch in progress: signals still missing, and the branches below it that may yet send some."""

    __slots__ = ("missing", "needed", "outer", "rank", "waiting", "working")

    def __init__(self, outer: OpenLatch | None, missing: dict[str, int], needed: int, rank: int) -> None:
        self.outer, self.missing, self.needed, self.rank = outer, missing, needed, rank
        self.working = 0
        self.waiting: Moment | None = None

    def around(self) -> Iterator[OpenLatch]:
        """Yield this latch and those around it."""
        latch: OpenLatch | None = self
        while latch is not None:
            yield latch
            latch = latch.outer

    def signal(self, group: str) -> None:
        """Count one for `group`, here or in the nearest latch around that has it; late signals change nothing."""
        latch = next(latch for latch in self.around() if group in latch.missing)
        latch.missing[group] -= 1
        if latch.missing[group] == 0:
            latch.needed -= 1
            if latch.needed == 0 and latch.waiting is not None:
                latch.waiting.now(latch.rank)

    def branch_ended(self) -> None:
        """Count a branch below that has ended; with the last one gone, a latch that is not full never will be."""
        self.working -= 1
        if self.working == 0 and self.needed > 0 and self.waiting is not None:
            self.waiting.now(self.rank, Dropped())


Served = ServingStation | SharingStation
Runner = Callable[[Request, OpenLatch | None], Happening]


@dataclass
class FlowCompiler:
    """Compiles the flow of one request class; `names` and step numbers are in the order of `walk`."""

    clockwork: Clockwork
    stations: dict[str, Served]
    pools: dict[str, HeldPool]

    def compile(self, flow: Step) -> Runner:
        """Return the function that does `flow` for one request."""
        names = step_names(flow)
        if len(names) >= 1 << STEP_BITS:
            raise RefusedError(f"a flow of {len(names)} steps is too long: at most {(1 << STEP_BITS) - 1}")
        self._keys = iter([name_key("step", name) for name in names])
        self._numbers = iter(range(len(names)))
        return self._step(flow)

    def _step(self, step: Step) -> Runner:
        key, number = next(self._keys), next(self._numbers)
        match step:
            case Visit():
                return self._visit(self.stations[step.station], step.demand, key, number)
            case Delay():
                return self._delay(step.duration, key, number)
            case Sequence():
                return _sequence([self._step(part) for part in step.steps])
            case Hold():
                return self._hold(self.pools[step.pool], self._step(step.step), number)
            case ForkJoin():
                return self._fork_join([self._step(branch) for branch in step.branches], step.needed, number)
            case Latch():
                return self._latch(step, self._step(step.step), number)
            case Signal():
                return _signal(step.group)
            case Choice():
                return _choice(step.probabilities, [self._step(part) for part in step.steps], key)
            case Route():
                router = Router(step.policy, len(step.targets), key)
                return self._route(router, [self._step(part) for part in step.targets])
            case _:
                raise RefusedError(f"the SimPy engine does not run the step {step.kind!r} yet")

    def _visit(self, station: Served, demand: Distribution, key: int, number: int) -> Runner:
        draw, rank = tick_sampler(demand), step_rank(Kind.SERVICE, number)

        def visit(request: Request, _: OpenLatch | None) -> Happening:
            yield station.visit(draw(uniform(request.key, key)), request.rank + rank)

        return visit

    def _delay(self, duration: Distribution, key: int, number: int) -> Runner:
        draw, rank, clockwork = tick_sampler(duration), step_rank(Kind.DELAY, number), self.clockwork

        def delay(request: Request, _: OpenLatch | None) -> Happening:
            yield Moment(clockwork).at(clockwork.tick + draw(uniform(request.key, key)), request.rank + rank)

        return delay

    def _hold(self, pool: HeldPool, inner: Runner, number: int) -> Runner:
        clockwork, rank = self.clockwork, step_rank(Kind.RESUME, number)

        def hold(request: Request, latch: OpenLatch | None) -> Happening:
            handed_over = pool.take(request.rank + rank)
            if handed_over is not None:
                yield handed_over
            since = clockwork.tick
            try:
                yield from inner(request, latch)
            except Dropped:
                pool.give(since)
                raise
            pool.give(since)

        return hold

    def _fork_join(self, branches: list[Runner], needed: int, number: int) -> Runner:
        clockwork, rank = self.clockwork, step_rank(Kind.RESUME, number)

        def fork_join(request: Request, latch: OpenLatch | None) -> Happening:
            join = Join(needed, len(branches), request.rank + rank)
            for open_latch in latch.around() if latch else ():
                open_latch.working += len(branches)
            for branch in branches:
                Work(clockwork, _branch(branch, request, latch, join))
            if join.needed > 0:
                if join.spare < 0:
                    raise Dropped
                join.waiting = Moment(clockwork)
                yield join.waiting

        return fork_join

    def _latch(self, step: Latch, inner: Runner, number: int) -> Runner:
        clockwork, rank = self.clockwork, step_rank(Kind.RESUME, number)
        groups = {group.name: group.needed for group in step.groups}
        needed = len(groups) if step.needed is None else step.needed

        def latch(request: Request, outer: OpenLatch | None) -> Happening:
            mine = OpenLatch(outer, dict(groups), needed, request.rank + rank)
            yield from inner(request, mine)
            if mine.needed > 0:
                if mine.working == 0:
                    raise Dropped
                mine.waiting = Moment(clockwork)
                yield mine.waiting

        return latch

    def _route(self, router: Router, targets: list[Runner]) -> Runner:
        clockwork = self.clockwork

        def route(request: Request, latch: OpenLatch | None) -> Happening:
            target, since = router.enter(request), clockwork.tick
            try:
                yield from targets[target](request, latch)
            except Dropped:
                router.leave(target)
                raise
            router.leave(target, clockwork.tick - since)

        return route


def _branch(inner: Runner, request: Request, latch: OpenLatch | None, join: Join) -> Happening:
    try:
        yield from inner(request, latch)
    except Dropped:
        join.dropped()
    else:
        join.finished()
    for open_latch in latch.around() if latch else ():
        open_latch.branch_ended()


def _sequence(parts: list[Runner]) -> Runner:
    def sequence(request: Request, latch: OpenLatch | None) -> Happening:
        for part in parts:
            yield from part(request, latch)

    return sequence


def _signal(group: str) -> Runner:
    def signal(_: Request, latch: OpenLatch | None) -> Happening:
        if latch is not None:
            latch.signal(group)
        yield from ()

    return signal


def _choice(probabilities: tuple[Number, ...], parts: list[Runner], key: int) -> Runner:
    pick = picker(probabilities)

    def choice(request: Request, latch: OpenLatch | None) -> Happening:
        yield from parts[pick(uniform(request.key, key))](request, latch)

    return choice
