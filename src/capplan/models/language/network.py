"""A queueing network: the one description of a system that every solver and engine reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property

from pydantic.dataclasses import dataclass

from capplan.models.errors import InputError, nearest
from capplan.models.language.construct import LANGUAGE, Construct, Name
from capplan.models.language.flow_checks import check_flows
from capplan.models.language.station import Assignment, Host, Pool, Station, member_name
from capplan.models.language.step import Delay, walk
from capplan.models.language.traffic import Event, RequestClass, Session, Timeline, Traffic

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

    def station(self, name: str) -> Station:
        """Return a station by its name.

        Parameters
        ----------
        name : str
            Name of the station.

        Returns
        -------
        Station

        Raises
        ------
        InputError
            If there is no such station; the message suggests the nearest name.
        """
        _known("station", [name], frozenset(station.name for station in self.stations))
        return next(station for station in self.stations if station.name == name)


def _unique(what: str, names: list[str]) -> frozenset[str]:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InputError(f"the {what} name {twice[0]!r} is used twice: rename one")
    return frozenset(names)


def _known(what: str, used: Iterable[str], known: frozenset[str]) -> None:
    for name in used:
        if name not in known:
            raise InputError(f"{what} {name!r} does not exist{nearest(name, known)}")


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
    """Refuse a station and a pool of one name and different counts: a step that picks among them could mean either."""
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
