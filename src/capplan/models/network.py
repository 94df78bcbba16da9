"""A queueing network: the one description of a system that every solver and engine reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from pydantic.dataclasses import dataclass

from capplan.models.distribution import LANGUAGE
from capplan.models.errors import InputError, nearest
from capplan.models.station import Host, Pool, Station
from capplan.models.step import Hold, Latch, Signal, Step, Visit, children
from capplan.models.traffic import RequestClass, Session, Timeline, Traffic


@dataclass(frozen=True, config=LANGUAGE)
class Network:
    """Stations and pools, what requests do at them, and who asks.

    Raises
    ------
    InputError
        When a name is used twice or refers to nothing, with the nearest known name.
    """

    name: str
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
        classes = _unique("request class", [request.name for request in self.classes])
        sources = _unique("request class or session", [*classes, *(session.name for session in self.sessions)])
        _known("host", (station.host for station in self.stations if station.host), hosts)
        _known("request class", (name for session in self.sessions for name in session.classes), classes)
        _known("request class or session", self.traffic.mix, sources)
        _check_mix(self.traffic.mix)
        for request in self.classes:
            _check_flow(request.flow, stations, pools, frozenset())

    def station(self, name: str) -> Station:
        """Return the station called `name`."""
        return next(station for station in self.stations if station.name == name)


def walk(step: Step) -> Iterator[Step]:
    """Yield `step` and every step inside it, parents first."""
    yield step
    for child in children(step):
        yield from walk(child)


def _unique(what: str, names: list[str]) -> frozenset[str]:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InputError(f"two of the {what} names are {twice[0]!r}: give each its own")
    return frozenset(names)


def _known(what: str, used: Iterable[str], known: frozenset[str]) -> None:
    for name in used:
        if name not in known:
            raise InputError(f"{what} {name!r} does not exist{nearest(name, known)}")


def _check_mix(mix: dict[str, float]) -> None:
    if not mix or any(not share > 0 for share in mix.values()) or abs(sum(mix.values()) - 1) > 1e-9:
        raise InputError(f"the shares of the traffic mix {mix} must be positive and have sum 1")


def _check_flow(step: Step, stations: frozenset[str], pools: frozenset[str], groups: frozenset[str]) -> None:
    if isinstance(step, Visit):
        _known("station", [step.station], stations)
    elif isinstance(step, Hold):
        _known("pool", [step.pool], pools)
    elif isinstance(step, Signal):
        _known("latch group", [step.group], groups)
    elif isinstance(step, Latch):
        groups |= {group.name for group in step.groups}
    for child in children(step):
        _check_flow(child, stations, pools, groups)
