"""Classes of alike members, and flows over members written as plain flows over these classes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from collections.abc import Sequence as Listed
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from math import comb
from typing import Any, NamedTuple

import numpy as np

from capplan.errors import InputError, RefusedError
from capplan.grouped import grouped
from capplan.models.language.distribution import scaled
from capplan.models.language.network import Network
from capplan.models.language.station import Differs, Pool, RateTable, Station, member_name
from capplan.models.language.step import (
    Acquire,
    Choice,
    CountdownLatch,
    FanOut,
    ForkJoin,
    If,
    Pick,
    ReplicaSet,
    Route,
    Signal,
    Step,
    Visit,
    children,
)
from capplan.models.language.step import Sequence as StepSequence
from capplan.models.language.units import Number
from capplan.models.solver.flow_analysis import DROPPED, check_policy, is_dropped, weights
from capplan.models.solver.single_station import first_speed


class Group(NamedTuple):
    """A station or pool with a count, by its kind (`station` or `pool`) and name."""

    kind: str
    name: str


@dataclass(frozen=True)
class MemberClass:
    """Members of a universe that are alike.

    Attributes
    ----------
    number : int
        Number of the class in its universe.
    size : int
        Number of members.
    first : int or None
        Lowest number of a member, from 0; None for the regular members.
    """

    number: int
    size: int
    first: int | None = None


class MemberClasses:
    """The classes of a network's members.

    Attributes
    ----------
    universe : dict of int
        Number of the universe of each station and pool with a count.
    classes : list of tuples of MemberClass
        Classes of each universe.
    """

    def __init__(self, network: Network) -> None:
        self._network = network
        self._groups: dict[Group, Station | Pool] = {
            **{Group("pool", pool.name): pool for pool in network.pools if pool.count is not None},
            **{Group("station", station.name): station for station in network.stations if station.count is not None},
        }
        self._by_name = {group.name: group for group in self._groups}
        self._different = {group: _different(place) for group, place in self._groups.items()}
        references = _References(self._by_name)
        for request in network.classes:
            references.read(request.flow, {})
        universes = references.universes(self._groups)
        self.universe = {group: number for number, groups in enumerate(universes) for group in groups}
        self.classes = [self._split(groups, references.taken_first) for groups in universes]

    def group(self, name: str) -> Group:
        """Return the group that a step means by a name: a station or, if there is none, a pool."""
        return self._by_name[name]

    def has(self, name: str) -> bool:
        """Return whether there is a station or pool with a count of this name."""
        return name in self._by_name

    def of(self, group: Group) -> tuple[MemberClass, ...]:
        """Return the classes of a group's members."""
        return self.classes[self.universe[group]]

    def is_down(self, group: Group, members: MemberClass) -> bool:
        """Return whether these members of a group are down."""
        how = self._different[group].get(members.first) if members.first is not None else None
        return how is not None and how.down

    def count(self, group: Group) -> int:
        """Return the number of members, including those that are down."""
        return self._groups[group].count or 1

    def name(self, group: Group, members: MemberClass) -> str:
        """Return the name of the station or pool that represents these members."""
        return group.name if members.first is None else member_name(group.name, members.first)

    def lowest_up(self, group: Group) -> MemberClass:
        """Return the class of the first member that is up; the class has no other members."""
        lowest = _lowest_up(self._different[group])
        return next(each for each in self.of(group) if each.first == lowest)

    def stations(self) -> Iterator[tuple[Station, int]]:
        """Yield the station that represents each class of members that are up, with their number."""
        for station in self._network.stations:
            if station.count is None:
                yield station, 1
                continue
            group = Group("station", station.name)
            for members in self.of(group):
                if not self.is_down(group, members):
                    how = self._different[group].get(members.first) if members.first is not None else None
                    alone = replace(station, count=1, exceptions=(replace(how, member=1),) if how else ())
                    yield replace(alone.members[0], name=self.name(group, members)), members.size

    def pools(self) -> Iterator[tuple[Pool, int]]:
        """Yield the pool that represents each class of members, with their number."""
        for pool in self._network.pools:
            if pool.count is None:
                yield pool, 1
                continue
            group = Group("pool", pool.name)
            for members in self.of(group):
                yield replace(pool, name=self.name(group, members), count=None), members.size

    def _split(self, groups: list[Group], taken_first: set[Group]) -> tuple[MemberClass, ...]:
        """Return the classes of a universe."""
        alone = {_lowest_up(self._different[group]) for group in groups if group in taken_first}
        numbers = sorted(alone.union(*(self._different[group] for group in groups)))
        alike: dict[tuple[Any, ...], list[int]] = {}
        for number in numbers:
            ways = [_way(self._different[group].get(number)) for group in groups]
            alike.setdefault((*ways, number if number in alone else None), []).append(number)
        regular = self.count(groups[0]) - len(numbers)
        classes = [MemberClass(0, regular)] if regular else []
        for members in alike.values():
            classes.append(MemberClass(len(classes), len(members), members[0]))
        return tuple(classes)


def _different(place: Station | Pool) -> dict[int, Differs]:
    """Return the members that differ, by number from 0; exceptions that change nothing are left out."""
    if isinstance(place, Pool):
        return {}
    return {
        each.member - 1: each
        for each in place.exceptions
        if each.down or each.servers not in (None, place.servers) or np.any(np.not_equal(each.speed, 1))
    }


def _lowest_up(different: Mapping[int, Differs]) -> int:
    lowest = 0
    while lowest in different and different[lowest].down:
        lowest += 1
    return lowest


def _way(how: Differs | None) -> tuple[Any, ...]:
    return () if how is None else (how.servers, np.asarray(how.speed, dtype=float).tobytes(), how.down)


Bound = tuple[Group, bool]
"""What a name is bound to: members of a group, and whether it is a set of them."""
Scope = Mapping[str, Bound]


class _References:
    """Finds the groups whose members flows refer to by one name, and the groups whose first member is picked."""

    def __init__(self, by_name: Mapping[str, Group]) -> None:
        self._by_name = by_name
        self._same: dict[Group, Group] = {}
        self._read: set[tuple[int, frozenset[tuple[str, Bound]]]] = set()
        self.taken_first: set[Group] = set()

    def universes(self, groups: Mapping[Group, Station | Pool]) -> list[list[Group]]:
        """Return the groups by universe."""
        return list(grouped(groups, self._root).values())

    def read(self, step: Step, scope: Scope) -> None:
        """Read a step inside the steps that bind the names of `scope`."""
        key = (id(step), frozenset(scope.items()))
        if key in self._read:
            return
        self._read.add(key)
        self._join_used(step, scope)
        inside = self._scope_inside(step, scope)
        for child in children(step):
            self.read(child, inside)

    def _join_used(self, step: Step, scope: Scope) -> None:
        """Join groups if a step refers to their members by the same name, or compares them."""
        match step:
            case Visit(member=str(member)):
                self._join(scope[member][0], Group("station", step.station))
            case Acquire(member=str(member)):
                self._join(scope[member][0], Group("pool", step.pool))
            case If():
                self._join(scope[step.member][0], scope[step.among][0])
            case ReplicaSet(first=str(first)):
                self._join(scope[first][0], self._by_name[step.among])

    def _scope_inside(self, step: Step, scope: Scope) -> Scope:
        match step:
            case Pick():
                return {**scope, step.member: (self._picked_from(step, scope), False)}
            case ReplicaSet():
                return {**scope, step.members: (self._by_name[step.among], True)}
            case FanOut():
                return {**scope, step.member: (scope[step.over][0], False)}
            case _:
                return scope

    def _picked_from(self, step: Pick, scope: Scope) -> Group:
        group, of_set = scope.get(step.among, (None, False))
        if group is not None and of_set:
            return group
        group = self._by_name[step.among]
        if step.policy == "first":
            self.taken_first.add(group)
        return group

    def _root(self, group: Group) -> Group:
        while group in self._same:
            group = self._same[group]
        return group

    def _join(self, one: Group, other: Group) -> None:
        one, other = self._root(one), self._root(other)
        if one != other:
            self._same[one] = other


_MOST_OUTCOMES = 10_000


@dataclass(frozen=True)
class Representatives:
    """A network whose stations and pools each stand for a class of alike members.

    Attributes
    ----------
    flows : dict of Step
        Plain flows, by request class.
    stations, pools : dict of Station and Pool
        One representative of each class of members that are up, by name, without a count, at speed 1 with one request.
        Regular members have the name of their group, others that of the first member of their class.
    station_members, pool_members : dict of int
        Number of members that each stands for; 1 without a count.
    """

    flows: dict[str, Step]
    stations: dict[str, Station]
    pools: dict[str, Pool]
    station_members: dict[str, int]
    pool_members: dict[str, int]


def representatives(network: Network, asked: Collection[str]) -> Representatives:
    """Translate a network with the flows of the given request classes.

    Raises
    ------
    RefusedError
        If a construct is not supported; the message names it.
    InputError
        If all requests of a class are dropped, because too few members are up.
    """
    classes = MemberClasses(network)
    stations, pools = list(classes.stations()), list(classes.pools())
    first = {station.name: first_speed(station) for station, _ in stations}
    translator = _Translator(classes, {name: speed for name, speed in first.items() if np.any(np.not_equal(speed, 1))})
    flows: dict[str, Step] = {}
    for request in (each for each in network.classes if each.name in asked):
        flow = translator.of(request.flow, Bindings({}, {}))
        if is_dropped(flow):
            raise InputError(f"every request of class {request.name!r} is dropped: too few members are up")
        flows[request.name] = flow
    return Representatives(
        flows,
        {station.name: _relative_to_first_speed(station) for station, _ in stations},
        {pool.name: pool for pool, _ in pools},
        {station.name: members for station, members in stations},
        {pool.name: members for pool, members in pools},
    )


def _relative_to_first_speed(station: Station) -> Station:
    if station.rate is None:
        return station
    first, *others = station.rate.speeds
    return replace(station, rate=RateTable((1.0, *(each / first for each in others))) if others else None)


class Member(NamedTuple):
    """A member: its universe, its class, and a number that identifies it within the class."""

    universe: int
    class_number: int
    individual: int


Members = tuple[Member, ...]


class Bindings(NamedTuple):
    """What names are bound to: members and sets of members in order.

    A row is bound to a name as well, if steps inside ask for its replicas again: to all replicas in their order, those
    that are down included. `kept` are the names that bindings are restricted to.
    """

    members: dict[str, Member]
    sets: dict[str, Members]
    kept: frozenset[str] | None = None

    def with_member(self, name: str, member: Member) -> Bindings:
        """Bind a name to a member."""
        return Bindings({**self.members, name: member}, {n: bound for n, bound in self.sets.items() if n != name})

    def with_set(self, name: str, found: Members) -> Bindings:
        """Bind a name to a set."""
        others = {n: bound for n, bound in self.members.items() if n != name}
        return Bindings(others, {**self.sets, name: found})

    def known(self, universe: int) -> list[Member]:
        """Return the distinct members of a universe that have a name bound to them."""
        bound = [*self.members.values(), *(member for found in self.sets.values() for member in found)]
        return sorted({member for member in bound if member.universe == universe})

    def restricted(self, names: frozenset[str]) -> Bindings:
        """Keep these names only, and number individuals in order of appearance."""
        if names == self.kept:
            return self
        numbers: dict[tuple[int, int], dict[int, int]] = defaultdict(dict)

        def numbered(member: Member) -> Member:
            universe, class_number, individual = member
            seen = numbers[universe, class_number]
            number = seen.setdefault(individual, len(seen))
            return member if number == individual else Member(universe, class_number, number)

        members = {name: numbered(self.members[name]) for name in sorted(names & self.members.keys())}
        sets = {name: tuple(map(numbered, self.sets[name])) for name in sorted(names & self.sets.keys())}
        return Bindings(members, sets, names)

    def key(self) -> tuple[Any, ...]:
        """Return a key that is the same for equal bindings."""
        return (*self.members.items(), *self.sets.items())


class _Translator:
    """Translates each step once for all equivalent bindings of the names that it uses."""

    def __init__(self, classes: MemberClasses, first_speeds: Mapping[str, Number]) -> None:
        self.classes, self.first_speeds = classes, first_speeds
        self.rows = _Rows(classes)
        self.uses = _Uses(self.rows, first_speeds)
        self.signals = _Signals()
        self.known: dict[tuple[Any, ...], Step] = {}
        self.made: dict[tuple[Any, ...], Step] = {}

    def of(self, step: Step, bindings: Bindings) -> Step:
        """Return the plain form of a step; the step itself if it is plain already."""
        if self.uses.is_plain(step):
            return step
        bindings = bindings.restricted(self.uses.names(step))
        key = (id(step), *bindings.key())
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = self._translated(step, bindings)
        return found

    def _translated(self, step: Step, bindings: Bindings) -> Step:
        match step:
            case Visit():
                return self._visit(step, bindings)
            case If():
                return self.of(step.then if _is_among(step, bindings) else step.otherwise, bindings)
            case Pick():
                return self._choice(self._picked(step, bindings), step.step)
            case ReplicaSet():
                return self._choice(self._replica_sets(step, bindings), step.step)
            case FanOut():
                return self._fan_out(step, bindings)
            case _:
                return self._with_inside(step, bindings)

    def _with_inside(self, step: Step, bindings: Bindings) -> Step:
        """Translate a step whose only members are those inside it, or that of the pool that it acquires."""
        inside = [self.of(child, bindings) for child in children(step)]
        match step:
            case StepSequence():
                return self._sequence(inside)
            case ForkJoin():
                return self._fork_join(inside, step.needed)
            case Choice():
                return self._chosen(zip(step.probabilities, inside, strict=True))
            case Route():
                distinct = len({id(target) for target in inside}) == len(inside) > 1
                if distinct and not _is_uneven(step) and not any(map(is_dropped, inside)):
                    return self._made(Route, lambda: Route(step.policy, tuple(inside)), step.policy, *inside)
                return self._chosen(each for each in zip(weights(step), inside, strict=True) if each[0] > 0)
            case Acquire():
                pool = self._representative(Group("pool", step.pool), step.member, bindings)
                held = self._made(Acquire, lambda: Acquire(pool, inside[0]), pool, inside[0])
                return self._dropped(held) if is_dropped(inside[0]) else held
            case CountdownLatch():
                return self._latch(step, inside[0])
            case _:
                raise RefusedError(f"the analytic solver does not support {step.kind!r}: simulate the network")

    def _visit(self, step: Visit, bindings: Bindings) -> Step:
        group = Group("station", step.station)
        if step.member is not None and self.classes.is_down(group, self._class(bindings.members[step.member])):
            return DROPPED
        name = self._representative(group, step.member, bindings)
        speed = self.first_speeds.get(name, 1.0)
        return self._made(Visit, lambda: Visit(name, scaled(step.demand, 1 / speed)), name, step.demand)

    def _representative(self, group: Group, member: str | None, bindings: Bindings) -> str:
        return group.name if member is None else self.classes.name(group, self._class(bindings.members[member]))

    def _class(self, member: Member) -> MemberClass:
        return self.classes.classes[member.universe][member.class_number]

    def _sequence(self, steps: Listed[Step]) -> Step:
        last = next((place for place, each in enumerate(steps) if is_dropped(each)), None)
        if last is not None:
            steps = [*steps[:last], *([] if steps[last] is DROPPED else [steps[last]]), DROPPED]
        return self._made(StepSequence, lambda: StepSequence(tuple(steps)), *steps)

    def _dropped(self, work: Step) -> Step:
        """Return the work of a request that is then dropped."""
        return work if is_dropped(work) else self._sequence([work, DROPPED])

    def _latch(self, step: CountdownLatch, inside: Step) -> Step:
        most = self.signals.most(inside)
        complete = [group for group in step.groups if most[group.name] >= group.needed]
        if is_dropped(inside) or len(complete) < (step.needed or len(step.groups)):
            return self._dropped(inside)
        groups = tuple((group.name, group.needed) for group in step.groups)
        return self._made(
            CountdownLatch, lambda: CountdownLatch(step.groups, inside, step.needed), *groups, step.needed, inside
        )

    def _fork_join(self, branches: Listed[Step], needed: int) -> Step:
        left = sum(not is_dropped(branch) for branch in branches)
        if left < needed:
            return self._dropped(self._fork_join(branches, 0))
        return self._made(ForkJoin, lambda: ForkJoin(tuple(branches), needed), needed, *branches)

    def _fan_out(self, step: FanOut, bindings: Bindings) -> Step:
        members = bindings.sets[step.over][: step.contacted]
        if len(members) < step.needed:
            return DROPPED
        branches = [self.of(step.step, bindings.with_member(step.member, member)) for member in members]
        return self._fork_join(branches, step.needed)

    def _choice(self, outcomes: Iterable[tuple[float, Bindings]], step: Step) -> Step:
        few = list(islice(outcomes, _MOST_OUTCOMES + 1))
        if len(few) > _MOST_OUTCOMES:
            raise RefusedError(
                f"the analytic solver does not support sets that can be found in more than {_MOST_OUTCOMES} ways: "
                "simulate the network"
            )
        return self._chosen((chance, self.of(step, bindings)) for chance, bindings in few)

    def _chosen(self, outcomes: Iterable[tuple[Number, Step]]) -> Step:
        """Return a choice between steps; equal steps are one."""
        total: dict[int, Number] = defaultdict(float)
        steps: dict[int, Step] = {}
        for chance, step in outcomes:
            total[id(step)] = total[id(step)] + chance
            steps[id(step)] = step
        parts = tuple(steps.values())
        if len(parts) < 2:
            return parts[0] if parts else DROPPED
        chances = tuple(total.values())
        keys = [np.asarray(chance, dtype=float).tobytes() for chance in chances]
        choice = self._made(Choice, lambda: Choice(chances, parts), *keys, *parts)
        return self._dropped(choice) if all(map(is_dropped, parts)) else choice

    def _picked(self, step: Pick, bindings: Bindings) -> Iterator[tuple[float, Bindings]]:
        """Yield the members that can be picked, with their probabilities."""
        check_policy(step)
        if step.among in bindings.sets:
            members = bindings.sets[step.among][: 1 if step.policy == "first" else None]
            for member in members:
                yield 1 / len(members), bindings.with_member(step.member, member)
            return
        group = self.classes.group(step.among)
        if step.policy == "first":
            universe, lowest = self.classes.universe[group], self.classes.lowest_up(group)
            yield 1.0, bindings.with_member(step.member, Member(universe, lowest.number, 0))
            return
        row = self.rows.picked(step)
        if row is None:
            for (member,), chance in self._urn(group, bindings).drawn(1):
                yield chance, bindings.with_member(step.member, member)
            return
        for found, chance in self._row(row, 1, group, bindings):
            yield chance, bindings.with_set(row, found).with_member(step.member, found[0])

    def _replica_sets(self, step: ReplicaSet, bindings: Bindings) -> Iterator[tuple[float, Bindings]]:
        """Yield the sets that can be found, with their probabilities."""
        group = self.classes.group(step.among)
        if step.placement == "ring":
            self._check_ring(step, group, bindings)
        row, first = self.rows.found(step), None if step.first is None else bindings.members[step.first]
        if row in bindings.sets or row in self.uses.names(step.step):
            for replicas, chance in self._row(row, step.size, group, bindings):
                up = [each for each in replicas[: step.size] if not self.classes.is_down(group, self._class(each))]
                found = tuple(sorted(up, key=lambda each: each != first))
                yield chance, bindings.with_set(row, replicas).with_set(step.members, found)
            return
        cuts = sorted(cut for name, cut in self.uses.cuts(step.step) if name == step.members and cut < step.size)
        urn, count = self._urn(group, bindings), self.classes.count(group)
        for members, chance in urn.replicas(step.size, count, first, cuts):
            yield chance, bindings.with_set(step.members, members)

    def _check_ring(self, step: ReplicaSet, group: Group, bindings: Bindings) -> None:
        """Refuse a ring where neighbours matter; otherwise its sets are equivalent to random ones."""
        # Names are bound at random, so which members follow each other matters only between two that are given.
        if sum(each.size for each in self.classes.of(group) if each.first is not None) > 1:
            raise RefusedError(
                "the analytic solver does not support ring placement with several members that differ: simulate it"
            )
        row = bindings.sets.get(self.rows.found(step), ())
        others = set(bindings.known(self.classes.universe[group])).difference(row)
        if len(others) > 1:
            raise RefusedError(
                f"the analytic solver does not support ring placement (set {step.members!r}) where steps refer to "
                f"{len(others)} other members: simulate the network"
            )

    def _row(self, row: str, size: int, group: Group, bindings: Bindings) -> Iterator[tuple[Members, float]]:
        """Yield at least the first `size` replicas of a row, known ones first, with the probability of each."""
        known = bindings.sets.get(row, ())
        others = self._urn(group, bindings, down=True).without(known)
        for following, chance in others.in_blocks([1] * (size - len(known))):
            yield known + following, chance

    def _urn(self, group: Group, bindings: Bindings, *, down: bool = False) -> _Urn:
        """Return the urn of a group's members that are up, or of all: named members, and the others by class."""
        universe = self.classes.universe[group]
        every = self.classes.of(group)
        found = {each.number: each for each in every if down or not self.classes.is_down(group, each)}
        known = [member for member in bindings.known(universe) if member.class_number in found]
        bound = Counter(member.class_number for member in known)
        others = {Member(universe, number, bound[number]): each.size - bound[number] for number, each in found.items()}
        return _Urn({**dict.fromkeys(known, 1), **others})

    def _made(self, type_: type, make: Callable[[], Step], *parts: Any) -> Step:
        """Return the unique step of this type with these parts: equal steps are the same object."""
        key = (type_, *(part if isinstance(part, (str, bytes, int, tuple, type(None))) else id(part) for part in parts))
        if key not in self.made:
            self.made[key] = make()
        return self.made[key]


def _is_among(step: If, bindings: Bindings) -> bool:
    member = bindings.members[step.member]
    if step.among in bindings.sets:
        return member in bindings.sets[step.among]
    return member == bindings.members[step.among]


@dataclass(frozen=True)
class _Urn:
    """Members to draw without replacement.

    Attributes
    ----------
    counts : dict of int
        Number of members by the first of them; members of a class have consecutive numbers.
    """

    counts: dict[Member, int]

    def drawn(self, number: int) -> Iterator[tuple[Members, float]]:
        """Yield the sets of `number` members that can be drawn, with their probabilities; alike members are equal."""
        kinds = [(member, count) for member, count in self.counts.items() if count]
        ways = comb(sum(self.counts.values()), number)
        for members, way in _subsets(kinds, number):
            yield members, way / ways

    def without(self, members: Members) -> _Urn:
        """Return the urn without some members, each the first of its class."""
        counts: dict[Member, int] = {}
        for first, count in self.counts.items():
            taken = sum(each[:2] == first[:2] and 0 <= each[2] - first[2] < count for each in members)
            if taken < count:
                counts[first._replace(individual=first.individual + taken)] = count - taken
        return _Urn(counts)

    def in_blocks(self, sizes: list[int]) -> Iterator[tuple[Members, float]]:
        """Yield draws of blocks of members one after another; within a block the order does not matter."""
        if not sizes:
            yield (), 1.0
            return
        for members, chance in self.drawn(sizes[0]):
            for others, then in self.without(members).in_blocks(sizes[1:]):
                yield members + others, chance * then

    def replicas(self, size: int, count: int, first: Member | None, cuts: list[int]) -> Iterator[tuple[Members, float]]:
        """Yield the members that are up among `size` of `count` members, with their probabilities.

        `first` comes first if it is among them. `cuts` are the numbers of leading members that steps refer to.
        """
        up = sum(self.counts.values())
        for found in range(max(0, size - (count - up)), min(size, up) + 1):
            chance = comb(up, found) * comb(count - up, size - found) / comb(count, size)
            if first is None or not self.counts.get(first):
                for members, then in self.in_blocks(_blocks(0, found, cuts)):
                    yield members, chance * then
                continue
            others = _Urn({member: number for member, number in self.counts.items() if member != first})
            if found:
                for members, then in others.in_blocks(_blocks(1, found, cuts)):
                    yield (first, *members), chance * then * found / up
            if found < up:
                for members, then in others.in_blocks(_blocks(0, found, cuts)):
                    yield members, chance * then * (1 - found / up)


def _blocks(begin: int, end: int, cuts: Iterable[int]) -> list[int]:
    """Return the lengths of the parts between `begin` and `end`, cut at `cuts`."""
    edges = [begin, *(cut for cut in cuts if begin < cut < end), end]
    return [right - left for left, right in pairwise(edges) if right > left]


def _subsets(kinds: list[tuple[Member, int]], number: int) -> Iterator[tuple[Members, int]]:
    """Yield sets of `number` members, and the number of ways to draw each."""
    if not kinds:
        if number == 0:
            yield (), 1
        return
    (first, count), others = kinds[0], kinds[1:]
    rest = sum(count for _, count in others)
    for taken in range(max(0, number - rest), min(count, number) + 1):
        members = tuple(first._replace(individual=first.individual + place) for place in range(taken))
        for more, ways in _subsets(others, number - taken):
            yield members + more, comb(count, taken) * ways


class _Rows:
    """Names for the replicas of the request's row; no step can bind them."""

    def __init__(self, classes: MemberClasses) -> None:
        self._classes = classes

    def found(self, step: ReplicaSet) -> str:
        """Return the name of the replicas that a step finds; a row has one place on all rings of the same members."""
        universe = self._classes.universe[self._classes.group(step.among)]
        return f"\0ring {universe}" if step.placement == "ring" else f"\0random {step.among}"

    def picked(self, step: Pick) -> str | None:
        """Return the name of the replica set whose first member a step picks; None if the row does not matter."""
        if step.policy != "token_aware" or not self._classes.has(step.among):
            return None
        group = self._classes.group(step.among)
        return f"\0ring {self._classes.universe[group]}" if len(self._classes.of(group)) == 1 else None


def _is_uneven(step: Route) -> bool:
    """Whether some targets may have other shares than the rest, or none."""
    return bool(step.weights) or step.policy == "first"


class _Uses:
    """The surrounding names that steps use."""

    def __init__(self, rows: _Rows, others: Collection[str]) -> None:
        self._rows, self._others = rows, others
        self._names: dict[int, frozenset[str]] = {}
        self._cuts: dict[int, frozenset[tuple[str, int]]] = {}
        self._plain: dict[int, bool] = {}

    def is_plain(self, step: Step) -> bool:
        """Return whether a step and those inside need no translation.

        They refer to no members, to no stations with another speed than 1, and no target of a route is left out.
        """
        if id(step) not in self._plain:
            own = isinstance(step, (Pick, ReplicaSet, FanOut, If)) or getattr(step, "member", None) is not None
            own = own or (isinstance(step, Visit) and step.station in self._others)
            own = own or (isinstance(step, Route) and _is_uneven(step))
            self._plain[id(step)] = not own and all(self.is_plain(child) for child in children(step))
        return self._plain[id(step)]

    def names(self, step: Step) -> frozenset[str]:
        """Return the names that a step, or one inside, uses and does not bind."""
        if self.is_plain(step):
            return frozenset()
        if id(step) not in self._names:
            inside = frozenset[str]().union(*(self.names(child) for child in children(step)))
            match step:
                case Visit() | Acquire():
                    inside |= {step.member} if step.member is not None else set()
                case If():
                    inside |= {step.member, step.among}
                case Pick():
                    row = self._rows.picked(step)
                    inside = inside - {step.member} | {step.among} | ({row} if row is not None else set())
                case ReplicaSet():
                    used = {self._rows.found(step)} | ({step.first} if step.first is not None else set())
                    inside = inside - {step.members} | used
                case FanOut():
                    inside = inside - {step.member} | {step.over}
            self._names[id(step)] = inside
        return self._names[id(step)]

    def cuts(self, step: Step) -> frozenset[tuple[str, int]]:
        """Return the sets of which steps inside use only the first members, and how many of these."""
        if self.is_plain(step):
            return frozenset()
        if id(step) not in self._cuts:
            inside = frozenset[tuple[str, int]]().union(*(self.cuts(child) for child in children(step)))
            if isinstance(step, FanOut) and step.contacted is not None:
                inside |= {(step.over, step.contacted)}
            if isinstance(step, Pick) and step.policy == "first":
                inside |= {(step.among, 1)}
            self._cuts[id(step)] = inside
        return self._cuts[id(step)]


class _Signals:
    """The most signals of each group that plain steps send."""

    def __init__(self) -> None:
        self._most: dict[int, tuple[Step, Counter[str]]] = {}

    def most(self, step: Step) -> Counter[str]:
        """Return the most signals that a step can send to each group outside."""
        if id(step) not in self._most:
            self._most[id(step)] = (step, self._counted(step))
        return self._most[id(step)][1]

    def _counted(self, step: Step) -> Counter[str]:
        if isinstance(step, Signal):
            return Counter([step.group])
        most: Counter[str] = Counter()
        for sent in filter(None, map(self.most, children(step))):
            most = most | sent if isinstance(step, (Choice, Route)) else most + sent
        if isinstance(step, CountdownLatch):
            for group in step.groups:
                del most[group.name]
        return most
