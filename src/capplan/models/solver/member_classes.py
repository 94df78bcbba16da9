"""Classes of alike members: the regular members of stations and pools, and those that differ.

Stations and pools whose members a flow refers to by the same name, or compares, have their members in common: member 2
of a station may hold a unit of pool 2. They form one universe, and its classes tell members apart that differ at any of
them. Nothing here counts up to the number of members.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from capplan.models.language.network import Network
from capplan.models.language.station import Differs, Pool, Station, member_name
from capplan.models.language.step import Acquire, FanOut, If, Pick, ReplicaSet, Step, Visit, children


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
        """Tell whether there is a station or pool with a count of this name."""
        return name in self._by_name

    def of(self, group: Group) -> tuple[MemberClass, ...]:
        """Return the classes of a group's members."""
        return self.classes[self.universe[group]]

    def is_down(self, group: Group, members: MemberClass) -> bool:
        """Tell whether these members of a group are down."""
        how = self._different[group].get(members.first) if members.first is not None else None
        return how is not None and how.down

    def count(self, group: Group) -> int:
        """Return the number of members, those that are down included."""
        return self._groups[group].count or 1

    def name(self, group: Group, members: MemberClass) -> str:
        """Return the name of the station or pool that represents these members."""
        return group.name if members.first is None else member_name(group.name, members.first)

    def lowest_up(self, group: Group) -> MemberClass:
        """Return the class of the first member that is up, which has no other members."""
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
    """Return how members differ, by number from 0; exceptions that change nothing are left out."""
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
    """Finds the groups whose members flows refer to by the same name, and those whose first member is picked."""

    def __init__(self, by_name: Mapping[str, Group]) -> None:
        self._by_name = by_name
        self._same: dict[Group, Group] = {}
        self._read: set[tuple[int, frozenset[tuple[str, Bound]]]] = set()
        self.taken_first: set[Group] = set()

    def universes(self, groups: Mapping[Group, Station | Pool]) -> list[list[Group]]:
        """Return the groups by universe."""
        found: dict[Group, list[Group]] = {}
        for group in groups:
            found.setdefault(self._root(group), []).append(group)
        return list(found.values())

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
        """Join the groups whose members a step refers to by the same name, or compares."""
        match step:
            case Visit(member=str(member)):
                self._join(scope[member][0], Group("station", step.station))
            case Acquire(member=str(member)):
                self._join(scope[member][0], Group("pool", step.pool))
            case If():
                self._join(scope[step.member][0], scope[step.among][0])
            case ReplicaSet(first=str(first)):
                self._join(scope[first][0], self._by_name[step.among])
            case _:
                pass

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
