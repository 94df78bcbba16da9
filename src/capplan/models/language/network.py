"""A queueing network: the system description that every solver and engine reads.

Checks of flows: every name that a step refers to exists, and every countdown latch and fan-out can be completed.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from pydantic.dataclasses import dataclass

from capplan.errors import InputError, nearest, one_of
from capplan.models.language.construct import LANGUAGE, Construct, Name
from capplan.models.language.station import Assignment, Host, Pool, Station, member_name
from capplan.models.language.step import (
    Acquire,
    Batch,
    Choice,
    CountdownLatch,
    Delay,
    FanOut,
    If,
    Pick,
    ReplicaSet,
    Route,
    Signal,
    Step,
    Visit,
    children,
    walk,
)
from capplan.models.language.traffic import Event, RequestClass, Session, Timeline, Traffic


@dataclasses.dataclass(frozen=True)
class Binding:
    """The target of a bound name: a member of a group of `count` members, or a set of `size` of them."""

    count: int
    size: int | None = None


@dataclasses.dataclass(frozen=True)
class _Scope:
    """The context of a step: the groups of the countdown latches around it, and the bound names."""

    groups: frozenset[str] = frozenset()
    bound: frozenset[tuple[str, Binding]] = frozenset()

    def binding(self, name: str) -> Binding:
        bound = dict(self.bound)
        if name not in bound:
            known = nearest(name, bound) or ": bind it with a pick, replica_set or fan_out around"
            raise InputError(f"member or set {name!r} is not bound by a step around{known}")
        return bound[name]

    def with_bound(self, name: str, binding: Binding) -> _Scope:
        return _Scope(self.groups, frozenset({**dict(self.bound), name: binding}.items()))


def check_flows(flows: Iterable[Step], stations: Sequence[Station], pools: Sequence[Pool]) -> None:
    """Check the names and counts that flows refer to.

    Raises
    ------
    InputError
        If a name refers to nothing, counts do not match, or a countdown latch or fan-out can never be completed.
    """
    checker = _Checker({each.name: each.count for each in stations}, {each.name: each.count for each in pools})
    for flow in flows:
        checker.check(flow, _Scope())


class _Checker:
    """Checks each step object once for each scope in which it occurs."""

    def __init__(self, stations: Mapping[str, int | None], pools: Mapping[str, int | None]) -> None:
        self.stations, self.pools = stations, pools
        self.most_signals: dict[tuple[int, _Scope], Counter[str]] = {}

    def check(self, step: Step, scope: _Scope) -> Counter[str]:
        """Check a step and the steps inside it; return the most signals that it can send to each group outside."""
        known = self.most_signals.get((id(step), scope))
        if known is None:
            known = self.most_signals[id(step), scope] = self._checked(step, scope)
        return known

    def _checked(self, step: Step, scope: _Scope) -> Counter[str]:
        match step:
            case Signal():
                _known("group of a countdown latch", [step.group], scope.groups)
                return Counter([step.group])
            case Visit():
                self._check_reference("station", (step.station, step.member), self.stations, scope)
            case Acquire():
                self._check_reference("pool", (step.pool, step.member), self.pools, scope)
            case If():
                self._check_comparison(step, scope)
        inside = self._scope_inside(step, scope)
        return _sent(step, [self.check(child, inside) for child in children(step)], scope)

    def _check_reference(
        self, what: str, reference: tuple[str, str | None], places: Mapping[str, int | None], scope: _Scope
    ) -> None:
        name, member = reference
        _known(what, [name], places)
        count = places[name]
        if member is None:
            if count is not None:
                raise InputError(f"{what} {name!r} has {count} members: give the bound name of one as member")
            return
        binding = scope.binding(member)
        if binding.size is not None:
            raise InputError(f"{member!r} is a set: pick a member of it, or use a step over the set")
        if count is None:
            raise InputError(f"{what} {name!r} has no members, so {member!r} is none of them: leave member out")
        if binding.count != count:
            raise InputError(
                f"{member!r} is one of {binding.count} members, and {what} {name!r} has {count}: they must be as many"
            )

    def _check_comparison(self, step: If, scope: _Scope) -> None:
        member, among = scope.binding(step.member), scope.binding(step.among)
        if member.size is not None:
            raise InputError(f"{step.member!r} is a set: only a member can be compared")
        if member.count != among.count:
            raise InputError(
                f"{step.member!r} is one of {member.count} members, and {step.among!r} of {among.count}: they must be "
                "as many"
            )

    def _scope_inside(self, step: Step, scope: _Scope) -> _Scope:
        match step:
            case CountdownLatch():
                return _Scope(scope.groups | {group.name for group in step.groups}, scope.bound)
            case Batch():
                return _Scope()  # one run for many requests cannot signal the latch of each, nor know its members
            case Pick():
                return scope.with_bound(step.member, Binding(self._count(step.among, scope)))
            case ReplicaSet():
                count = self._count(step.among, scope, sets=False)
                if step.size > count:
                    raise InputError(f"size = {step.size} replicas among {count} members: give at most {count}")
                if step.first is not None:
                    self._check_first(step, count, scope)
                return scope.with_bound(step.members, Binding(count, step.size))
            case FanOut():
                _check_fan_out(step, scope.binding(step.over))
                return scope.with_bound(step.member, Binding(scope.binding(step.over).count))
            case _:
                return scope

    def _check_first(self, step: ReplicaSet, count: int, scope: _Scope) -> None:
        first = scope.binding(str(step.first))
        if first.size is not None or first.count != count:
            raise InputError(f"first = {step.first!r} is not one of the {count} members of {step.among!r}")

    def _count(self, name: str, scope: _Scope, *, sets: bool = True) -> int:
        """Return the number of members of a station, pool or bound set."""
        binding, counts = dict(scope.bound).get(name), {**self.pools, **self.stations}
        if sets and binding is not None and binding.size is not None:
            return binding.count
        count = counts.get(name)
        if count is not None:
            return count
        kinds = "station or pool with a count" + (" or bound set" if sets else "")
        known = sorted(group for group, count in counts.items() if count is not None)
        if name in counts:
            raise InputError(f"{name!r} has no members: give it a count, or take a {kinds}{nearest(name, known)}")
        if binding is not None:
            bound = "member" if binding.size is None else "set"
            raise InputError(f"{name!r} is a bound {bound}: take a {kinds}{nearest(name, known)}")
        raise InputError(f"{name!r} is no {kinds}{nearest(name, known)}")


def _check_fan_out(step: FanOut, over: Binding) -> None:
    if over.size is None:
        raise InputError(f"{step.over!r} is a member: a fan_out runs over a set")
    if step.needed > over.size:
        raise InputError(f"needed = {step.needed} of a set of {over.size}: at most all can be needed")
    if (step.contacted or 0) > over.size:
        raise InputError(f"contacted = {step.contacted} of a set of {over.size}: at most all can be contacted")


def _sent(step: Step, counts: Sequence[Counter[str]], scope: _Scope) -> Counter[str]:
    """Return the most signals to each group outside `step`; refuse a latch that can never open."""
    most: Counter[str] = Counter()
    for count in filter(None, counts):
        most = most | count if isinstance(step, (Choice, Route, If)) else most + count
    if isinstance(step, FanOut):
        branches = step.contacted or scope.binding(step.over).size or 0
        most = Counter({group: branches * count for group, count in most.items()})
    if isinstance(step, CountdownLatch):
        _check_opens(step, most)
        for group in step.groups:
            del most[group.name]
    return most


def _check_opens(latch: CountdownLatch, most: Counter[str]) -> None:
    short = [group for group in latch.groups if most[group.name] < group.needed]
    needed = len(latch.groups) if latch.needed is None else latch.needed
    if len(latch.groups) - len(short) < needed:
        raise InputError(
            f"a countdown latch can never open: its group {short[0].name!r} needs {short[0].needed} signals, but the "
            f"step inside sends at most {most[short[0].name]}"
        )


ALL_TRAFFIC = "*"


@dataclass(frozen=True, config=LANGUAGE)
class Network(Construct):
    """A queueing network: stations, pools, request classes with their flows, and traffic.

    Attributes
    ----------
    name
        Name of the system.
    stations
        Stations that flows visit.
    classes
        Request classes.
    traffic
        Open, closed or throttled traffic.
    pools
        Pools whose units flows acquire.
    hosts
        Machines whose cores stations share.
    sessions
        Sessions of dependent requests.
    timeline
        Changes during a run; none if left out.

    Raises
    ------
    InputError
        If a name is used twice or refers to nothing, or a countdown latch can never open.
    """

    name: Name
    stations: tuple[Station, ...]
    classes: tuple[RequestClass, ...]
    traffic: Traffic
    pools: tuple[Pool, ...] = ()
    hosts: tuple[Host, ...] = ()
    sessions: tuple[Session, ...] = ()
    timeline: Timeline = Timeline()

    def __post_init__(self) -> None:
        stations = _unique("station", [station.name for station in self.stations])
        _unique("pool", [pool.name for pool in self.pools])
        hosts = _unique("host", [host.name for host in self.hosts])
        _unique("station or host", [*stations, *hosts])
        classes = _unique("request class", [request.name for request in self.classes])
        sources = _unique("request class or session", [*classes, *(session.name for session in self.sessions)])
        _known("host", (station.host for station in self.stations if station.host is not None), hosts)
        _known("request class", (name for session in self.sessions for name in session.classes), classes)
        _known("request class or session", self.traffic.mix, sources)
        _check_members("station or host", (*self.stations, *self.hosts))
        _check_members("pool", self.pools)
        _check_shared_names(self.stations, self.pools)
        _check_hosts(self.stations, self.hosts)
        check_flows([request.flow for request in self.classes], self.stations, self.pools)
        for event in self.timeline.events:
            _check_event(event, self, stations | hosts)

    @cached_property
    def each_station(self) -> tuple[Station, ...]:
        """The stations one by one: those with a count are replaced by their members."""
        hosts = {host.name: host for host in self.hosts}
        found: list[Station] = []
        for group in self.stations:
            host = hosts.get(group.host or "")
            if host is None or host.count is None:
                found += group.members
            else:
                found += (replace(each, host=on.name) for each, on in zip(group.members, host.members, strict=True))
        return tuple(found)

    @cached_property
    def each_pool(self) -> tuple[Pool, ...]:
        """The pools one by one."""
        return tuple(member for pool in self.pools for member in pool.members)

    @cached_property
    def each_host(self) -> tuple[Host, ...]:
        """The hosts one by one."""
        return tuple(member for host in self.hosts for member in host.members)

    def with_assignment(self, assignment: Assignment) -> Network:
        """Return the network with another assignment of requests to servers, at all stations with several servers.

        Stations whose speed depends on the number of requests keep one queue.

        Parameters
        ----------
        assignment : Assignment
            As for `Station`.

        Returns
        -------
        Network
        """
        stations = tuple(
            each if each.servers == 1 or each.rate is not None else replace(each, assignment=assignment)
            for each in self.stations
        )
        return replace(self, stations=stations)


def _unique(what: str, names: list[str]) -> frozenset[str]:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InputError(f"the {what} name {twice[0]!r} is used twice: rename one")
    return frozenset(names)


def _known(what: str, used: Iterable[str], known: Collection[str]) -> None:
    for name in used:
        one_of(known, name, f"{what} {name!r} does not exist")


def member_of(name: str, groups: Iterable[Host | Station | Pool]) -> tuple[str, int] | None:
    """Return group and number, from 0, of a member by its name; None if there is no such member."""
    group, _, number = name.rpartition("/")
    count = next((each.count for each in groups if each.name == group), None)
    known = count is not None and number.isdecimal() and str(int(number)) == number and 1 <= int(number) <= count
    return (group, int(number) - 1) if known else None


def _check_members(what: str, places: Sequence[Host | Station | Pool]) -> None:
    groups = [place for place in places if place.count is not None]
    for place in places if groups else ():
        found = member_of(place.name, groups)
        if found is not None:
            raise InputError(f"the {what} name {place.name!r} is that of a member of {found[0]!r}: rename one")


def _check_shared_names(stations: Iterable[Station], pools: Iterable[Pool]) -> None:
    """Refuse a station and a pool of one name but different counts: a step that picks among them would be ambiguous."""
    counts = {pool.name: pool.count for pool in pools}
    for station in stations:
        if station.name in counts and station.count != counts[station.name]:
            raise InputError(
                f"station {station.name!r} has {station.count or 'no'} members and the pool of that name has "
                f"{counts[station.name] or 'none'}: give both the same count, or rename one"
            )


def _check_hosts(stations: Iterable[Station], hosts: Iterable[Host]) -> None:
    counts = {host.name: host.count for host in hosts if host.count is not None}
    for station in stations:
        if station.host in counts and station.count != counts[station.host]:
            raise InputError(
                f"station {station.name!r} has {station.count or 'no'} members and its host {station.host!r} has "
                f"{counts[station.host]}: give both the same count"
            )


def _check_event(event: Event, network: Network, places: frozenset[str]) -> None:
    if event.action == "scale_delay":
        steps = (step for request in network.classes for step in walk(request.flow))
        _known("delay", [event.target], frozenset(step.name for step in steps if isinstance(step, Delay) and step.name))
    elif event.action == "scale_traffic":
        _known("traffic of", [event.target], frozenset([ALL_TRAFFIC, *network.traffic.mix]))
    else:
        _check_place(event.target, (*network.stations, *network.hosts), places)


def _check_place(name: str, groups: Sequence[Host | Station], places: frozenset[str]) -> None:
    if name in places or member_of(name, groups) is not None:
        return
    group = next((each for each in groups if each.name == name.rpartition("/")[0]), None)
    if group is not None and group.count is not None:
        one, last = member_name(group.name, 0), member_name(group.name, group.count - 1)
        raise InputError(f"{name!r} is no member of {group.name!r}: its members are {one!r} to {last!r}")
    _known("station or host", [name], places)
