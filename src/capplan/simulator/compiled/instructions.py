"""Lowers flows to instructions: every step becomes a few instructions, and every wait a place to continue at.

A drop leaves the scopes around it one by one: `unwind` of an instruction is where the clean-up starts.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Set
from collections.abc import Sequence as Listed
from dataclasses import dataclass, field
from itertools import accumulate, groupby
from typing import Literal, NamedTuple

import numpy as np

from capplan.models.language.construct import as_key
from capplan.models.language.distribution import Deterministic, Distribution
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
from capplan.simulator.compiled.kernel import layout as at
from capplan.simulator.specification.clock import TICKS_PER_S, to_ticks
from capplan.simulator.specification.network_facts import FlowFacts, StepEntry, flow_facts
from capplan.simulator.specification.streams import name_key, replicas_key, step_names

Continuation = Literal["done", "nothing", "more"]
ADAPTIVE: frozenset[RoutePolicy] = frozenset({"least_loaded", "latency_ranked"})


@dataclass(eq=False)
class Label:
    """A place in the code that is still unknown; it becomes a whole number when the code becomes an array."""

    place: int = -1

    def __int__(self) -> int:
        return self.place


Cell = int | Label


class Bound(NamedTuple):
    """The first local of a bound member or set, the number of locals and, for a set, the station or pool."""

    local: int
    locals: int = 1
    group: str | None = None


class Scope(NamedTuple):
    """The context of a step: the target of a drop, the locals in use, the latches around it, and what follows it.

    `latches` has the outermost first, `bound` the bound names. `follows` is "done" at the end of the request, "nothing"
    when no request waits for the step, "more" for anything else. `ends` are the countdown latches that a branch may
    signal, as bits, when the step is the last of a branch that no join waits for.
    """

    unwind: Label
    locals: int
    latches: tuple[int, ...]
    follows: Continuation
    bound: Mapping[str, Bound]
    ends: int = 0

    def local(self, name: str | None) -> int:
        """Return the local of a bound member or set; -1 without a name."""
        return at.NONE if name is None else self.bound[name].local

    def inside(self, unwind: Label, taken: int) -> Scope:
        """Return the scope of a step with a successor, with `taken` more locals in use."""
        return self._replace(unwind=unwind, locals=self.locals + taken, follows="more", ends=0)

    def passed_on(self, names: Set[str]) -> tuple[list[Cell], Scope]:
        """Return the locals to copy for branches that use these names, and the scope of the branches."""
        used = {name: bound for name, bound in self.bound.items() if name in names}
        copied: list[Cell] = [place for each in used.values() for place in range(each.local, each.local + each.locals)]
        firsts = accumulate((each.locals for each in used.values()), initial=0)
        moved = {name: each._replace(local=first) for (name, each), first in zip(used.items(), firsts, strict=False)}
        return [len(copied), *copied], self._replace(locals=len(copied), bound=moved)

    def with_bound(self, name: str, bound: Bound) -> Scope:
        """Return the scope with a bound name."""
        return self._replace(bound={**self.bound, name: bound})


@dataclass(frozen=True)
class RouteInfo:
    """A route or pick: its policy, the key of sticky sessions, the number of its targets, and their first stations.

    Of a pick there are no entries but the name of the station or pool.
    """

    policy: RoutePolicy
    sticky: tuple[int, int]
    count: int
    entries: tuple[StepEntry | None, ...] = ()
    weights: tuple[float, ...] = ()
    group: str | None = None


@dataclass
class Code:
    """All instructions of a network, and the lists that they refer to.

    Distributions, and the lengths of fixed waits, may hold arrays of parameter draws: instructions have only their
    numbers.
    """

    stations: dict[str, tuple[int, bool, bool]]  # number, whether it is a processor-sharing station, and has lanes
    pools: dict[str, int]
    counts: dict[str, int]  # of members, by station or pool
    delay_scales: dict[str, int]
    single: frozenset[str] = frozenset()  # fixed-rate stations whose members have one server
    kept_at: dict[str, str] = field(default_factory=dict)  # by pool, the station whose visits keep its units
    rows: list[list[Cell]] = field(default_factory=list)
    keys: list[int] = field(default_factory=list)
    table: list[Cell] = field(default_factory=list)
    numbers: list[float] = field(default_factory=list)
    distributions: dict[Hashable, tuple[int, Distribution]] = field(default_factory=dict)
    known: dict[int, int] = field(default_factory=dict)  # number of a distribution by its identity
    fixed: list[tuple[int, int, Deterministic]] = field(default_factory=list)  # row, place in the table, length
    routes: list[RouteInfo] = field(default_factory=list)
    batches: int = 0
    locals: int = 0
    groups: int = 0

    def distribution(self, distribution: Distribution) -> int:
        """Return the number of a distribution; equal distributions share one number."""
        number = self.known.get(id(distribution))  # many steps share one object
        if number is None:
            number = self.known[id(distribution)] = self.distributions.setdefault(
                as_key(distribution), (len(self.distributions), distribution)
            )[0]
        return number

    def numbers_of(self, values: Iterable[Number]) -> int:
        """Append numbers to the program's numbers; return their place."""
        place = len(self.numbers)
        self.numbers += [float(value) for value in values]
        return place

    def list_of(self, cells: Iterable[Cell]) -> int:
        """Add a list to the table; return its place."""
        place = len(self.table)
        self.table += cells
        return place

    def lower(self, flow: Step, patient: bool) -> int:
        """Lower a flow; return its first instruction. `patient` means that its client never gives up."""
        return _Flow(self, flow, patient).lower()


class _Flow:
    """One flow while it is lowered."""

    def __init__(self, code: Code, flow: Step, patient: bool) -> None:
        self.code, self.patient = code, patient
        of_stations = {name: count for name, count in code.counts.items() if name in code.stations}
        facts = flow_facts(flow, of_stations)
        self.steps, self.below, self.ranks, self.strides = facts.steps, facts.below, facts.ranks, facts.strides
        self.step_names = step_names(flow)
        self.keys = [name_key("step", name) for name in self.step_names]
        self.signalled, self.served, self.entries = facts.signalled, facts.served, facts.entries
        self.names = _names(facts)
        self.later: list[Callable[[], None]] = []

    def lower(self) -> int:
        """Emit the flow, then its branches and clean-ups."""
        start, lost = len(self.code.rows), Label()
        self.emit(0, Scope(lost, 0, (), "done" if self.patient else "more", {}))
        self.row(at.DONE)
        self.place(lost)
        self.row(at.LOST)
        while self.later:
            self.later.pop()()
        return start

    def row(
        self, op: int, a: Cell = 0, b: Cell = 0, c: Cell = 0, d: Cell = 0, *, number: int = 0, unwind: Cell = -1
    ) -> None:
        """Append an instruction; `number` is that of its step."""
        self.code.rows.append([op, a, b, c, d, self.ranks[number], unwind])
        self.code.keys.append(self.keys[number])

    def place(self, label: Label) -> Label:
        """Set a label to the current place."""
        label.place = len(self.code.rows)
        return label

    def emit(self, number: int, scope: Scope) -> None:  # noqa: C901, PLR0912 - one case per construct of the language
        """Emit a step; its successor in time is also its successor in the code."""
        self.code.locals = max(self.code.locals, scope.locals)
        step = self.steps[number]
        match step:
            case Visit():
                self.visit(step, number, scope)
            case Delay():
                self.delay(step, number, scope)
            case Sequence():
                *first, last = self.below[number] or (None,)
                for child in first:
                    self.emit(child, scope._replace(follows="more", ends=0))
                if last is not None:
                    self.emit(last, scope)
            case Acquire():
                self.hold(step, number, scope)
            case ForkJoin():
                self.fork_join(step, number, scope)
            case CountdownLatch():
                self.latch(step, number, scope)
            case Signal():
                self.signal(step, number, scope)
            case Hedge():
                self.hedge(step, number, scope)
            case Choice():
                self.choice(step, number, scope)
            case Route():
                self.route(step, number, scope)
            case Batch():
                self.batch(step, number, scope)
            case Pick():
                self.pick(step, number, scope)
            case ReplicaSet():
                self.replica_set(step, number, scope)
            case FanOut():
                self.fan_out(step, number, scope)
            case If():
                self.if_(step, number, scope)

    def visit(self, step: Visit, number: int, scope: Scope) -> None:
        """Emit a visit; if no request waits for its end, it needs no event."""
        station, processor_sharing, has_lanes = self.code.stations[step.station]
        member = scope.local(step.member)
        if has_lanes:
            self.row(at.ASSIGN, station, scope.locals, d=member, number=number)
            self.code.keys[-1] = name_key("lane", self.step_names[number])
            station, member = 0, scope.locals
            self.code.locals = max(self.code.locals, scope.locals + 1)
        if scope.follows == "nothing":
            op = at.SEND_PROCESSOR_SHARING if processor_sharing else at.SEND_FIXED_RATE
        elif scope.follows == "done" and not processor_sharing and member == at.NONE:
            op = at.VISIT_LAST
        else:
            op = at.VISIT_PROCESSOR_SHARING if processor_sharing else at.VISIT_FIXED_RATE
        before = self.code.rows[-1] if self.code.rows else []
        self.row(op, station, self.code.distribution(step.demand), d=member, number=number, unwind=scope.unwind)
        before_there = before[:2] == [at.VISIT_PROCESSOR_SHARING, station] and before[4] == member
        if op == at.SEND_PROCESSOR_SHARING and before_there:
            before[3], self.code.rows[-1][5] = 1, before[5]

    def delay(self, step: Delay, number: int, scope: Scope) -> None:
        """Emit a delay."""
        scale = self.code.delay_scales.get(step.name, -1) if step.name else -1
        if scope.follows == "nothing":
            return
        if scope.follows == "done" and scale < 0:
            self.row(at.WAIT_LAST, self.code.distribution(step.duration), number=number)
        elif isinstance(step.duration, Deterministic) and scale < 0:
            place = self.code.list_of([0])  # each draw sets the length
            self.code.fixed.append((len(self.code.rows), place, step.duration))
            self.row(at.WAIT_FIXED, place, at.NONE, number=number)
        else:
            self.row(at.WAIT, self.code.distribution(step.duration), scale, number=number)

    def hold(self, step: Acquire, number: int, scope: Scope) -> None:
        """Emit the acquisition and release of a unit."""
        pool, dropped = self.code.pools[step.pool], Label()
        operands = pool, scope.locals, scope.local(step.member)
        self.row(at.ACQUIRE, *operands, number=number, unwind=scope.unwind)
        child, inside = self.below[number][0], scope.inside(dropped, 1)
        visit = self.keeping(step, child, scope)
        if visit is None:
            self.emit(child, inside)
            self.row(at.RELEASE, *operands, number=number)
        else:
            self.keep(visit, child, (pool, scope), inside)
        self.cleaning(dropped, scope, lambda: self.row(at.RELEASE, *operands, number=number))

    def keeping(self, step: Acquire, child: int, scope: Scope) -> Visit | None:
        """Return the visit at the end of a branch that keeps the unit, if the end of the visit is known on joining.

        All such visits of a pool are to one station with one server, and last at least a tick, so they end in order.
        """
        detached = scope.follows == "nothing" or scope.ends != 0
        inside = self.steps[child]
        last = inside.steps[-1] if isinstance(inside, Sequence) and inside.steps else inside
        if not detached or not isinstance(last, Visit) or last.station not in self.code.single:
            return None
        fixed = isinstance(last.demand, Deterministic) and float(np.min(last.demand.value_s)) >= 1 / TICKS_PER_S
        if not fixed or scope.local(last.member) != scope.local(step.member):
            return None
        return last if self.code.kept_at.setdefault(step.pool, last.station) == last.station else None

    def keep(self, visit: Visit, child: int, held: tuple[int, Scope], inside: Scope) -> None:
        """Emit a visit that keeps a unit, and the steps before it; a detached answer continues in the same thread.

        `held` has the pool, and the scope of the branch that ends with the visit.
        """
        pool, scope = held
        *before, last = self.below[child] or (child,)
        answer = self.answer(before[-1]) if before else None
        if answer is not None:
            before.pop()
        for each in before:
            self.emit(each, inside)
        levels = 0 if answer is None else self.levels(answer, scope)
        kept = self.code.list_of([pool, scope.locals, levels, scope.ends])
        operands = self.code.stations[visit.station][0], self.code.distribution(visit.demand), kept
        self.row(at.SEND_KEEPING, *operands, scope.local(visit.member), number=last)
        if answer is not None:
            self.go_on(answer, levels, inside)
        else:
            self.row(at.END)

    def go_on(self, child: int, levels: int, scope: Scope) -> None:
        """Emit a detached branch in the thread of a branch that has ended."""
        failed = Label()
        self.emit(child, scope._replace(unwind=failed, follows="more" if levels else "nothing", ends=levels))
        self.row(at.END, levels)

        def emit() -> None:
            self.place(failed)
            self.row(at.FAIL, levels)

        self.later.append(emit)

    def answer(self, number: int) -> int | None:
        """Return the only branch of a detached fork if it begins with a delay, so that it may start a moment later."""
        fork = self.steps[number]
        if not isinstance(fork, ForkJoin) or fork.needed or len(fork.branches) != 1:
            return None
        branch = first = self.below[number][0]
        while isinstance(self.steps[first], Sequence) and self.below[first]:
            first = self.below[first][0]
        return branch if isinstance(self.steps[first], Delay) else None

    def cleaning(self, label: Label, scope: Scope, clean: Callable[[], None]) -> None:
        """Emit later, at `label`, the clean-up after a drop, which then continues in the outer scope."""

        def emit() -> None:
            self.place(label)
            clean()
            self.row(at.JUMP, scope.unwind)

        self.later.append(emit)

    def fork_join(self, step: ForkJoin, number: int, scope: Scope) -> None:
        """Emit branches; detached branches that are a single visit are sent at once."""
        if step.needed:
            self.fork(self.below[number], step.needed, number, scope)
            self.row(at.JOIN, number=number, unwind=scope.unwind)
            return
        for sent, children in groupby(self.below[number], lambda child: isinstance(self.steps[child], Visit)):
            if sent:
                for child in children:
                    self.emit(child, scope._replace(follows="nothing", ends=0))
            else:
                self.fork(tuple(children), 0, number, scope)

    def fork(self, children: Listed[int], needed: int, number: int, scope: Scope) -> None:
        """Emit the start of branches."""
        copied, inside = scope.passed_on(frozenset().union(*(self.names[child] for child in children)))
        follows: Continuation = "more" if needed else "nothing"
        cells = [cell for child in children for cell in self.branch(child, inside, follows)]
        places = self.code.list_of(cells), len(children), needed, self.code.list_of(copied)
        self.row(at.FORK, *places, number=number)

    def branch(self, child: int, scope: Scope, follows: Continuation) -> list[Cell]:
        """Emit a branch later; return its start and the latches that it may signal.

        `scope` has the locals and bound names of the branch.
        """
        start, failed, levels = Label(), Label(), self.levels(child, scope)

        def emit() -> None:
            self.place(start)
            ends = levels if follows == "nothing" else 0
            self.emit(child, scope._replace(unwind=failed, follows="more" if levels else follows, ends=ends))
            self.row(at.END, levels)
            self.place(failed)
            self.row(at.FAIL, levels)

        self.later.append(emit)
        return [start, levels]

    def levels(self, child: int, scope: Scope) -> int:
        """Return the latches that a branch may signal as bits: bit k is the k-th latch outwards."""
        levels = 0
        for latch in self.served[child]:
            levels |= 1 << (len(scope.latches) - 1 - scope.latches.index(latch))
        return levels

    def latch(self, step: CountdownLatch, number: int, scope: Scope) -> None:
        """Emit a countdown latch."""
        needs: list[Cell] = [group.needed for group in step.groups]
        needed, dropped = step.needed or len(needs), Label()
        self.code.groups = max(self.code.groups, len(needs))
        self.row(at.LATCH, self.code.list_of(needs), len(needs), needed, number=number)
        inside = scope.inside(dropped, 0)
        self.emit(self.below[number][0], inside._replace(latches=(*scope.latches, number)))
        self.row(at.AWAIT, number=number, unwind=dropped)
        self.row(at.UNLATCH, number=number)
        self.cleaning(dropped, scope, lambda: self.row(at.UNLATCH, number=number))

    def signal(self, step: Signal, number: int, scope: Scope) -> None:
        """Emit a signal."""
        latch = self.signalled[number]
        owner = self.steps[latch]
        groups = [group.name for group in owner.groups] if isinstance(owner, CountdownLatch) else []
        outwards = len(scope.latches) - 1 - scope.latches.index(latch)
        if scope.ends == 1 << outwards and self.code.rows[-1][0] in (at.WAIT, at.WAIT_FIXED):
            self.code.rows[-1][3] = 1  # the rest of a branch that can signal no other latch
        self.row(at.SIGNAL, outwards, groups.index(step.group), number=number)

    def hedge(self, step: Hedge, number: int, scope: Scope) -> None:
        """Emit both steps as branches; the second starts after a check whether it is still needed."""
        first, spare = self.below[number]
        start, failed, levels = Label(), Label(), self.levels(spare, scope)
        copied, inside = scope.passed_on(self.names[first] | self.names[spare])

        def emit() -> None:
            self.row(at.SPARE_DUE, levels, number=number)
            self.place(start)
            self.emit(spare, inside._replace(unwind=failed, follows="more", ends=0))
            self.row(at.END, levels)
            self.place(failed)
            self.row(at.FAIL, levels)

        self.later.append(emit)
        after = to_ticks(float(step.after_s))
        place = self.code.list_of([*self.branch(first, inside, "more"), start, levels, after])
        locals_ = self.code.list_of(copied)
        self.row(at.HEDGE, place, locals_, number=number)
        self.row(at.HEDGE_SPARE, place, locals_, number=number)
        self.row(at.JOIN, number=number, unwind=scope.unwind)

    def choice(self, step: Choice, number: int, scope: Scope) -> None:
        """Emit the alternatives one after another."""
        place = self.code.numbers_of(accumulate(float(probability) for probability in step.probabilities))
        starts = [Label() for _ in self.below[number]]
        self.row(at.CHOICE, place, len(starts), self.code.list_of(starts), number=number)
        end = Label()
        for start, child in zip(starts, self.below[number], strict=True):
            self.place(start)
            self.emit(child, scope)
            self.row(at.JUMP, end)
        self.place(end)

    def route(self, step: Route, number: int, scope: Scope) -> None:
        """Emit the targets one after another; only adaptive policies need to know when a request leaves its target."""
        if len(step.targets) == 1 and step.policy not in ADAPTIVE:
            self.emit(self.below[number][0], scope)  # nothing to pick
            return
        place, adaptive = len(self.code.routes), step.policy in ADAPTIVE
        entries = tuple(self.entries[child] for child in self.below[number])
        sticky = self.keys[number], len(entries)
        self.code.routes.append(RouteInfo(step.policy, sticky, len(entries), entries, step.weights))
        starts, end = [Label() for _ in entries], Label()
        self.row(at.ROUTE, place, len(entries), self.code.list_of(starts), scope.locals, number=number)
        for target, child in enumerate(self.below[number]):
            self.place(starts[target])
            if adaptive:
                self.adaptive_target(child, (place, target), scope)
            else:
                self.emit(child, scope._replace(locals=scope.locals + 1))
            self.row(at.JUMP, end)
        self.place(end)

    def adaptive_target(self, child: int, target: tuple[int, int], scope: Scope) -> None:
        """Emit a target of an adaptive route, which tracks when and how a request leaves it."""
        dropped = Label()
        self.emit(child, scope.inside(dropped, 1))
        self.row(at.LEAVE, *target, scope.locals, 0)
        self.cleaning(dropped, scope, lambda: self.row(at.LEAVE, *target, scope.locals, 1))

    def pick(self, step: Pick, number: int, scope: Scope) -> None:
        """Emit a pick; only adaptive policies need to know when a request leaves a member."""
        from_set = scope.bound.get(step.among, Bound(at.NONE))
        group = from_set.group or step.among
        candidates = from_set.local if from_set.group else at.NONE
        count, place = self.code.counts[group], len(self.code.routes)
        self.code.routes.append(RouteInfo(step.policy, (self.keys[number], count), count, group=group))
        since, member = scope.locals, scope.locals + 1
        self.row(at.PICK, place, candidates, member, since, number=number, unwind=scope.unwind)
        inside = scope._replace(locals=scope.locals + 2).with_bound(step.member, Bound(member))
        if step.policy not in ADAPTIVE:
            self.emit(self.below[number][0], inside)
            return
        dropped = Label()
        self.emit(self.below[number][0], inside.inside(dropped, 0))
        self.row(at.LEAVE_MEMBER, place, member, since, 0)
        self.cleaning(dropped, scope, lambda: self.row(at.LEAVE_MEMBER, place, member, since, 1))

    def replica_set(self, step: ReplicaSet, number: int, scope: Scope) -> None:
        """Emit the search for replicas; the set is followed by scratch locals for random placement."""
        station = self.code.stations[step.among][0] if step.among in self.code.stations else at.NONE
        placement = at.RING if step.placement == "ring" else at.DRAWN
        place = self.code.list_of(
            [station, self.code.counts[step.among], step.size, placement, scope.local(step.first)]
        )
        self.row(at.REPLICAS, place, scope.locals, number=number)
        self.code.keys[-1] = replicas_key(step.among)
        inside = scope._replace(locals=scope.locals + 1 + 2 * step.size)
        bound = Bound(scope.locals, 1 + step.size, step.among)
        self.emit(self.below[number][0], inside.with_bound(step.members, bound))

    def fan_out(self, step: FanOut, number: int, scope: Scope) -> None:
        """Emit the branch of a fan-out."""
        child = self.below[number][0]
        copied, inside = scope.passed_on(self.names[child] - {step.member})
        member = inside.locals
        inside = inside._replace(locals=member + 1).with_bound(step.member, Bound(member))
        start, levels = self.branch(child, inside, "more" if step.needed else "nothing")
        place = self.code.list_of([start, levels, step.contacted or at.NEVER, self.strides[number], member, *copied])
        self.row(at.FAN_OUT, scope.local(step.over), place, step.needed, number=number, unwind=scope.unwind)
        if step.needed:
            self.row(at.JOIN, number=number, unwind=scope.unwind)

    def if_(self, step: If, number: int, scope: Scope) -> None:
        """Emit both steps one after the other."""
        otherwise, end = Label(), Label()
        among = scope.bound[step.among]
        operands = scope.local(step.member), among.local, int(among.group is not None)
        self.row(at.UNLESS_AMONG, *operands, otherwise, number=number)
        then, other = self.below[number]
        self.emit(then, scope)
        self.row(at.JUMP, end)
        self.place(otherwise)
        self.emit(other, scope)
        self.place(end)

    def batch(self, step: Batch, number: int, scope: Scope) -> None:
        """Emit the batched step as a separate piece of code."""
        start, failed, batch = Label(), Label(), self.code.batches
        self.code.batches += 1

        def emit() -> None:
            self.place(start)
            self.row(at.BATCH_DUE, batch, number=number)
            self.emit(self.below[number][0], Scope(failed, 0, (), "more", {}))
            self.row(at.BATCH_DONE, d=0)
            self.place(failed)
            self.row(at.BATCH_DONE, d=1)

        self.later.append(emit)
        longest = self.code.list_of([to_ticks(float(step.max_wait_s))])
        self.row(at.BATCH, batch, step.max_size, longest, start, number=number, unwind=scope.unwind)


def _names(facts: FlowFacts) -> list[frozenset[str]]:
    """Return the names that each step uses and does not bind itself."""
    names: list[frozenset[str]] = [frozenset()] * len(facts.steps)
    for number in reversed(range(len(names))):
        inside = frozenset[str]().union(*(names[child] for child in facts.below[number]))
        match facts.steps[number]:
            case Visit(member=str(member)):
                names[number] = frozenset([member])
            case Acquire(member=str(member)):
                names[number] = inside | {member}
            case If(member=member, among=among):
                names[number] = inside | {member, among}
            case Pick(member=member, among=among):
                names[number] = inside - {member} | {among}
            case ReplicaSet(members=members, first=first):
                names[number] = inside - {members} | ({first} if first else set())
            case FanOut(over=over, member=member):
                names[number] = inside - {member} | {over}
            case Batch():
                pass
            case _:
                names[number] = inside
    return names
