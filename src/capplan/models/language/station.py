"""The parts of a system: hosts, stations with servers, and pools whose units requests acquire."""

from __future__ import annotations

from copy import copy
from functools import cached_property
from typing import Annotated, Literal, TypeVar

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass

from capplan.errors import InputError
from capplan.models.language.construct import LANGUAGE, Construct, Name
from capplan.models.language.distribution import Distribution
from capplan.models.language.units import AtLeastOne, Count, Positive, Seconds, Share


@dataclass(frozen=True, config=LANGUAGE)
class Host(Construct):
    """A machine whose stations share its cores.

    If more servers are busy than there are cores, each server runs at the speed cores / busy servers.

    Attributes
    ----------
    name
        Name that stations and timeline events refer to.
    cores
        Number of cores.
    count
        Number of such machines; stations with the same count have one member on each. One machine if left out.
    """

    name: Name
    cores: AtLeastOne
    count: AtLeastOne | None = None

    @cached_property
    def members(self) -> tuple[Host, ...]:
        """The machines, each without a count."""
        return _members(self)


@dataclass(frozen=True, config=LANGUAGE)
class RateTable(Construct):
    """Speed of each busy server as a function of the number of requests at the station, waiting ones included.

    A falling table models contention. If it falls faster than 1/n, throughput declines beyond its peak.

    Attributes
    ----------
    speeds
        `speeds[n - 1]` is the relative speed with n requests at the station; the last speed holds for all larger n.
    """

    speeds: Annotated[tuple[Positive, ...], Field(min_length=1)]


@dataclass(frozen=True, config=LANGUAGE)
class Pauses(Construct):
    """Stop-the-world pauses, such as garbage collection: all servers stop, then resume the work they had begun.

    Attributes
    ----------
    every
        Time from the end of one pause to the start of the next, in seconds; its mean is positive.
    length
        Length of a pause, in seconds.
    name
        Name of the process, unique at the station, which keys its random stream.

    Raises
    ------
    InputError
        If the mean of `every` is 0.
    """

    every: Distribution
    length: Distribution
    name: Name = "pause"

    def __post_init__(self) -> None:
        _check_recurs(self.every)


@dataclass(frozen=True, config=LANGUAGE)
class Background(Construct):
    """Throttled background work (flush, compaction, hint replay) that slows the servers but does not stop them.

    Attributes
    ----------
    every
        Time from the end of one run to the start of the next, in seconds; its mean is positive.
    length
        Length of a run, in seconds.
    share
        Share of every server's speed that a run takes; above 0, at most 1.
    name
        Name of the process, unique at the station, which keys its random stream.

    Raises
    ------
    InputError
        If the mean of `every` is 0.
    """

    every: Distribution
    length: Distribution
    share: Share
    name: Name = "background"

    def __post_init__(self) -> None:
        _check_recurs(self.every)


def _check_recurs(every: Distribution) -> None:
    if np.any(np.equal(every.mean, 0)):
        raise InputError("every has mean 0: give a positive mean time between two runs")


@dataclass(frozen=True, config=LANGUAGE)
class Differs(Construct):
    """How one member of a station with a count differs from the others.

    Attributes
    ----------
    member
        Number of the member, from 1, as in its name.
    servers
        Its number of servers; that of the station if left out.
    speed
        Speed of its servers, relative to those of the others.
    down
        Whether it is down, and known to be, from the start; a timeline can bring it up.
    """

    member: AtLeastOne
    servers: AtLeastOne | None = None
    speed: Positive = 1.0
    down: bool = False


Assignment = Literal["pooled", "random", "round_robin", "least_loaded"]


@dataclass(frozen=True, config=LANGUAGE)
class Station(Construct):
    """A queue with one or more identical servers, or several such queues.

    Attributes
    ----------
    name
        Name that visits and timeline events refer to.
    servers
        Number of servers.
    discipline
        `fcfs` (fixed rate): each server serves one request at a time, in order of arrival. `ps` (processor sharing):
        all requests share the servers equally, and none is faster than one server.
    rate
        Speed of a server by the number of requests at the station; always 1 if left out.
    expiry_s
        A request that has waited longer than this, in seconds, is dropped when its turn comes, as in Cassandra's
        stages; never if left out. Only for `fcfs`, since nothing waits under `ps`.
    pauses
        Stop-the-world pauses.
    background
        Throttled background work.
    host
        Machine whose cores the station shares with other stations; its own cores if left out.
    count
        Number of members: like stations, called `name/1`, `name/2`, .... Steps refer to one by a bound name. If left
        out there is one station, called `name`.
    exceptions
        Members that differ from the others.
    assignment
        How requests find a server. `pooled`: all servers share one queue. Otherwise each server is a *lane*: it has a
        queue of its own (under `ps`, requests that share it), and a request is assigned to a lane when it arrives and
        stays there. `random`: every lane is equally likely. `round_robin`: the lanes take turns. `least_loaded`: the
        lane with the fewest requests, waiting ones included (ties: the first).

    Raises
    ------
    InputError
        If `expiry_s` is given for `ps`, a `rate` of several speeds for lanes, two pauses or background processes have
        the same name, or an exception names no member, or one twice.
    """

    name: Name
    servers: AtLeastOne
    discipline: Literal["fcfs", "ps"] = "fcfs"
    rate: RateTable | None = None
    expiry_s: Seconds | None = None
    pauses: tuple[Pauses, ...] = ()
    background: tuple[Background, ...] = ()
    host: Name | None = None
    count: AtLeastOne | None = None
    exceptions: tuple[Differs, ...] = ()
    assignment: Assignment = "pooled"

    def __post_init__(self) -> None:
        if self.discipline == "ps" and self.expiry_s is not None:
            raise InputError(f"expiry_s of station {self.name!r} needs discipline 'fcfs': nothing waits under 'ps'")
        if self.rate is not None and len(self.rate.speeds) > 1 and self.has_lanes:
            raise InputError(
                f"rate of station {self.name!r} depends on the requests at all its servers: give one speed, or "
                "assignment 'pooled'"
            )
        names = [pause.name for pause in self.pauses] + [process.name for process in self.background]
        if len(set(names)) < len(names):
            raise InputError(f"two pauses or background processes of station {self.name!r} share a name: rename one")
        for each in self.exceptions:
            if each.member > (self.count or 0):
                raise InputError(
                    f"exception for member {each.member} of station {self.name!r}, which has the members 1 to "
                    f"{self.count}: give one of them"
                    if self.count
                    else f"station {self.name!r} has an exception but no members: give it a count"
                )
        if len({each.member for each in self.exceptions}) < len(self.exceptions):
            raise InputError(f"a member of station {self.name!r} has two exceptions: combine them")
        if self.count is not None and sum(each.down for each in self.exceptions) == self.count:
            raise InputError(f"all members of station {self.name!r} are down: leave at least one up")

    @cached_property
    def members(self) -> tuple[Station, ...]:
        """The stations, each without a count; exceptions have their own servers and speeds."""
        members = list(_members(self))
        for each in self.exceptions:
            members[each.member - 1] = _differing(members[each.member - 1], each)
        return tuple(members)

    @property
    def has_lanes(self) -> bool:
        """Whether each server has a queue of its own."""
        return self.assignment != "pooled"

    @cached_property
    def lanes(self) -> tuple[Station, ...]:
        """The queues of one member: one single-server station per lane; the member itself if it is pooled."""
        if not self.has_lanes:
            return (self,)
        lane = _changed(self, servers=1, assignment="pooled")
        return (lane,) * self.servers

    @cached_property
    def down(self) -> frozenset[int]:
        """Numbers, from 0, of the members that are down from the start."""
        return frozenset(each.member - 1 for each in self.exceptions if each.down)


def _differing(station: Station, how: Differs) -> Station:
    """Return a member that differs; a different speed becomes a rate table, which every solver supports."""
    servers, rate = how.servers or station.servers, station.rate
    if np.any(np.not_equal(how.speed, 1)):
        rate = RateTable(tuple(speed * how.speed for speed in (rate.speeds if rate else (1.0,))))
    return _changed(station, servers=servers, rate=rate)


Counted = TypeVar("Counted", "Host", "Station", "Pool")


def _members(group: Counted) -> tuple[Counted, ...]:
    """Return the members of a host, station or pool with a count."""
    if group.count is None:
        return (group,)
    names = (member_name(group.name, number) for number in range(group.count))
    if isinstance(group, Station):
        return tuple(_changed(group, name=name, count=None, exceptions=()) for name in names)
    return tuple(_changed(group, name=name, count=None) for name in names)


def _changed(place: Counted, **changes: object) -> Counted:
    """Return a copy with changed values, without the slow checks."""
    changed = copy(place)
    for cached in ("members", "lanes", "down"):
        changed.__dict__.pop(cached, None)
    for field, value in changes.items():
        object.__setattr__(changed, field, value)
    return changed


def member_name(group: str, number: int) -> str:
    """Return the name of a member by its number, which counts from 0."""
    return f"{group}/{number + 1}"


@dataclass(frozen=True, config=LANGUAGE)
class Pool(Construct):
    """A passive resource whose units requests acquire, such as worker threads or an in-flight limit.

    Requests queue for a unit in order of arrival.

    Attributes
    ----------
    name
        Name that `Acquire` steps refer to.
    size
        Number of units.
    queue_limit
        Number of requests that may wait for a unit; further arrivals are dropped. No limit if left out.
    count
        Number of members: like pools, called `name/1`, `name/2`, .... If left out there is one pool, called `name`.
    """

    name: Name
    size: AtLeastOne
    queue_limit: Count | None = None
    count: AtLeastOne | None = None

    @cached_property
    def members(self) -> tuple[Pool, ...]:
        """The pools, each without a count."""
        return _members(self)
