"""A queueing network: the one description of a system that every solver and engine reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from pydantic.dataclasses import dataclass

from capplan.models.errors import InputError, nearest
from capplan.models.language.construct import LANGUAGE, Construct, Name
from capplan.models.language.station import Host, Pool, Station
from capplan.models.language.step import (
    Acquire,
    Batch,
    Choice,
    CountdownLatch,
    Delay,
    Route,
    Signal,
    Step,
    Visit,
    children,
)
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
        pools = _unique("pool", [pool.name for pool in self.pools])
        hosts = _unique("host", [host.name for host in self.hosts])
        _unique("station or host", [*stations, *hosts])
        classes = _unique("request class", [request.name for request in self.classes])
        sources = _unique("request class or session", [*classes, *(session.name for session in self.sessions)])
        _known("host", (station.host for station in self.stations if station.host is not None), hosts)
        _known("request class", (name for session in self.sessions for name in session.classes), classes)
        _known("request class or session", self.traffic.mix, sources)
        checked: set[tuple[int, frozenset[str]]] = set()
        counted: dict[int, Counter[str]] = {}
        for request in self.classes:
            _check_names(request.flow, (stations, pools), frozenset(), checked)
            _signals(request.flow, counted)
        for event in self.timeline.events:
            _check_event(event, self, stations | hosts)

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


def walk(step: Step) -> Iterator[Step]:
    """Yield `step` and every step inside it, parents first."""
    waiting = [step]
    while waiting:
        step = waiting.pop()
        yield step
        waiting.extend(reversed(children(step)))


def _unique(what: str, names: list[str]) -> frozenset[str]:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InputError(f"the {what} name {twice[0]!r} is used twice: rename one")
    return frozenset(names)


def _known(what: str, used: Iterable[str], known: frozenset[str]) -> None:
    for name in used:
        if name not in known:
            raise InputError(f"{what} {name!r} does not exist{nearest(name, known)}")


def _check_names(
    step: Step,
    known: tuple[frozenset[str], frozenset[str]],
    groups: frozenset[str],
    checked: set[tuple[int, frozenset[str]]],
) -> None:
    """Check that the stations, pools and groups that a flow refers to exist.

    `known` holds the names of stations and pools, `groups` those of the enclosing countdown latches. A step object that
    occurs several times in the flow is checked once.
    """
    if (id(step), groups) in checked:
        return
    checked.add((id(step), groups))
    match step:
        case Visit():
            _known("station", [step.station], known[0])
        case Acquire():
            _known("pool", [step.pool], known[1])
        case Signal():
            _known("group of a countdown latch", [step.group], groups)
        case CountdownLatch():
            groups |= {group.name for group in step.groups}
        case Batch():
            groups = frozenset()  # one run for many requests cannot signal the latch of each
        case _:
            pass
    for child in children(step):
        _check_names(child, known, groups, checked)


def _signals(step: Step, counted: dict[int, Counter[str]]) -> Counter[str]:
    """Count the most signals that `step` can send to each group outside; refuse a latch that can never open."""
    if id(step) not in counted:
        counted[id(step)] = _counted_signals(step, counted)
    return counted[id(step)]


def _counted_signals(step: Step, counted: dict[int, Counter[str]]) -> Counter[str]:
    if isinstance(step, Signal):
        return Counter([step.group])
    counts = [_signals(child, counted) for child in children(step)]
    most: Counter[str] = Counter()
    for count in counts:
        most = most | count if isinstance(step, (Choice, Route)) else most + count
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


def _check_event(event: Event, network: Network, places: frozenset[str]) -> None:
    if event.action == "scale_delay":
        steps = (step for request in network.classes for step in walk(request.flow))
        _known("delay", [event.target], frozenset(step.name for step in steps if isinstance(step, Delay) and step.name))
    elif event.action == "scale_traffic":
        _known("traffic of", [event.target], frozenset([ALL_TRAFFIC, *network.traffic.mix]))
    else:
        _known("station or host", [event.target], places)
