"""The stations that a loss takes, the timeline of the loss, and clients and workers that give up."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import is_
from typing import Any

import numpy as np

from capplan.errors import InputError, one_of
from capplan.layout.solution import kind_of
from capplan.models.language.distribution import Deterministic
from capplan.models.language.network import Network
from capplan.models.language.station import Station
from capplan.models.language.step import (
    Acquire,
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
    Step,
    Visit,
    walk,
)
from capplan.models.language.step import Sequence as Steps
from capplan.models.language.traffic import Event, RequestClass, Retry, Timeline

_OF_DC = re.compile(r"/dc\d+$")


def places_of_loss(whole: Network, left: Network | None) -> tuple[str, ...]:
    """Return the stations, or members of stations, that a network loses between its whole and its remaining form.

    Stations are alike if they are of one kind, in one data centre, and have as many servers. If nothing is left that
    can serve, all stations are lost.

    Parameters
    ----------
    whole : Network
        The network before the loss.
    left : Network or None
        The network after it, as the analytic solver has it; None if no request can succeed.
    """
    if left is None:
        return tuple(each.name for each in whole.stations)
    alive = Counter[tuple[str, int]]()
    for each in left.stations:
        alive[_place_of(each)] += len(each.members) - len(each.down)
    kinds, down = {kind for kind, _ in alive}, {each.name: each.down for each in left.stations}
    found: list[str] = []
    for group in whole.stations:
        place, count = _place_of(group), len(group.members)
        if place not in alive and place[0] in kinds:
            continue  # stations of another size replace it, such as those that stand for clients
        kept = min(alive[place], count)
        alive[place] -= kept
        found += _lost_members(group, count - kept, down.get(group.name, frozenset()))
    return tuple(found)


def _place_of(station: Station) -> tuple[str, int]:
    """Return the kind and the data centre of a station, and its servers."""
    found = _OF_DC.search(station.name)
    return f"{kind_of(station.name)}{'' if found is None else found[0]}", station.servers


def _lost_members(group: Station, lost: int, down: frozenset[int]) -> Iterator[str]:
    """Yield the lost members: those known to be down, or else the last ones; the group itself if all are lost."""
    count = len(group.members)
    if lost == count:
        yield group.name
        return
    numbers = sorted(down) if len(down) == lost else range(count - lost, count)
    yield from (group.members[number].name for number in numbers)


def places_named(network: Network, text: str) -> tuple[str, ...]:
    """Return the stations, members of stations and hosts that a user names, such as `node/2,api`.

    Raises
    ------
    InputError
        If there is no such place.
    """
    known = [each.name for each in (*network.stations, *network.each_station)]
    known += [each.name for each in (*network.hosts, *network.each_host)]
    names = tuple(word.strip() for word in text.split(","))
    for name in names:
        one_of(known, name, f"--lose {text}: {network.name!r} has no station or host {name!r}")
    return names


@dataclass(frozen=True)
class Return:
    """How a loss is detected, and how the lost places come back.

    Attributes
    ----------
    detection_s
        Time for which clients and peers still send to it, in seconds.
    cold_s
        Time for which it is slower after its return, in seconds.
    cold_speed
        Its relative speed in that time; above 0, at most 1.
    """

    detection_s: float
    cold_s: float = 0.0
    cold_speed: float = 1.0


def with_loss(network: Network, places: Sequence[str], times_s: tuple[float, float], how: Return) -> Network:
    """Return a network that loses some places between two times, in place of its own timeline."""
    down, up = times_s
    events = (*(Event(down, "down", place) for place in places), *(Event(up, "up", place) for place in places))
    cold = (how.cold_s, how.cold_speed) if how.cold_s > 0 and how.cold_speed < 1 else (0.0, 1.0)
    return replace(network, timeline=Timeline(events, how.detection_s, *cold))


def with_workers_that_give_up(network: Network, places: Sequence[str]) -> Network:
    """Return a network whose workers stop waiting for a lost place when the clients of their requests have given up.

    Else they would wait until the place comes back, and soon all workers would. That holds for the workers of every
    tier: drivers and coordinators have such timeouts. A request of version 4 of the Java driver times out after 2 s
    (`basic.request.timeout`), a coordinator of Cassandra 3.11 waits 5 s for reads and 2 s for writes.
    """
    groups = {name for place in places for name in (place, place.rsplit("/", 1)[0])}
    return replace(network, classes=tuple(_giving_up(each, groups) for each in network.classes))


def _giving_up(request: RequestClass, groups: Collection[str]) -> RequestClass:
    if request.timeout_s is None:
        return request
    rewritten = _Rewriter(groups, float(request.timeout_s)).step(request.flow, held=False)
    return request if rewritten is request.flow else replace(request, flow=rewritten)


class _Rewriter:
    """Puts a hedge around waits for lost places while a unit is held; the spare step continues without an answer."""

    def __init__(self, groups: Collection[str], after_s: float) -> None:
        self.groups, self.after_s = groups, after_s

    def step(self, step: Step, held: bool) -> Step:
        """Return a step with hedges; the same step if none is needed."""
        if held and isinstance(step, (Pick, ReplicaSet, Route)) and any(map(self._is_lost, walk(step))):
            return Hedge(self._inside(step, held=False), self.after_s, Delay(Deterministic(0.0), name="give-up"))
        return self._inside(step, held or isinstance(step, Acquire))

    def _inside(self, step: Any, held: bool) -> Step:
        changed: dict[str, Any] = {}
        for name in _STEPS.get(type(step), ()):
            value = getattr(step, name)
            parts = value if isinstance(value, tuple) else (value,)
            found = tuple(self.step(each, held) for each in parts)
            if not all(map(is_, found, parts)):
                changed[name] = found if value is parts else found[0]
        rewritten: Step = replace(step, **changed) if changed else step
        return rewritten

    def _is_lost(self, step: Step) -> bool:
        return isinstance(step, Visit) and step.station in self.groups


_STEPS: Mapping[type, tuple[str, ...]] = {
    **dict.fromkeys((Steps, Choice), ("steps",)),
    ForkJoin: ("branches",),
    Route: ("targets",),
    **dict.fromkeys((Acquire, CountdownLatch, Pick, ReplicaSet, FanOut), ("step",)),
    If: ("then", "otherwise"),
}
"""The fields of a step that contain steps; a batch or a hedge of the system itself stays unchanged."""


@dataclass(frozen=True)
class Clients:
    """When clients give up an attempt, and when they try again.

    Attributes
    ----------
    timeout_s
        Time until a client gives up an attempt, in seconds; null: never.
    attempts
        Number of attempts, the first one included.
    backoff_s
        Wait after the first timeout or drop, in seconds.
    backoff_factor
        Factor of the wait from each attempt to the next.
    """

    timeout_s: float | None
    attempts: int
    backoff_s: float = 0.0
    backoff_factor: float = 1.0

    @property
    def span_s(self) -> float:
        """Time from the first attempt until the client gives up finally, in seconds."""
        waits = sum(self.backoff_s * self.backoff_factor**number for number in range(self.attempts - 1))
        return (self.timeout_s or 0.0) * self.attempts + waits

    def starts_s(self) -> tuple[float, ...]:
        """Return the start times of attempts if all of them time out, in seconds from the first."""
        starts = [0.0]
        for number in range(self.attempts - 1):
            starts.append(starts[-1] + (self.timeout_s or 0.0) + self.backoff_s * self.backoff_factor**number)
        return tuple(starts)


RADIUS = Clients(timeout_s=2.0, attempts=4, backoff_s=0.6, backoff_factor=3.1)
"""Retransmission of RFC 5080, section 2.2.1, for Access-Request packets: first after 2 s (IRT), then each time twice as
long up to 16 s (MRT), at most 5 transmissions (MRC) and 30 s (MRD). That makes transmissions 0, 2, 6 and 14 s after the
first. Timeouts are equal here, so that they come 0, 2.6, 6.5 and 14.2 s after it."""
DRIVER = Clients(timeout_s=2.0, attempts=1)
"""Version 4 of the Java driver for Cassandra: a request times out after 2 s (`basic.request.timeout`), and the default
retry policy does not send it again then."""
PATIENT = Clients(timeout_s=None, attempts=1)
"""Clients that wait for every answer, as those of a network file that says nothing else."""


@dataclass(frozen=True)
class ClientOptions:
    """Options for clients; None where an option is not given.

    Attributes
    ----------
    timeout_s, attempts, backoff_s, backoff_factor
        As in `Clients`.
    """

    timeout_s: float | None = None
    attempts: int | None = None
    backoff_s: float | None = None
    backoff_factor: float | None = None


def clients_of(network: Network, asked: ClientOptions, usual: Clients) -> Clients:
    """Return a network's clients: from the options, else from its classes, else the defaults.

    Classes may differ; the answer is that of the class with the most attempts, which can add the most load.

    Raises
    ------
    InputError
        If there is less than one attempt.
    """
    return max((_clients(each, asked, usual) for each in network.classes), key=lambda each: each.attempts)


def with_clients(network: Network, asked: ClientOptions, usual: Clients) -> Network:
    """Return a network in which each class has its clients; see `clients_of`."""
    return replace(network, classes=tuple(_with(each, _clients(each, asked, usual)) for each in network.classes))


def _clients(request: RequestClass, asked: ClientOptions, usual: Clients) -> Clients:
    retry = request.retry
    own = usual
    if request.timeout_s is not None or retry is not None:
        own = Clients(None if request.timeout_s is None else float(np.max(request.timeout_s)), attempts=1)
    if retry is not None:
        own = Clients(own.timeout_s, int(retry.attempts), float(np.max(retry.backoff_s)), float(np.max(retry.factor)))
    found = replace(own, **{name: value for name, value in vars(asked).items() if value is not None})
    if found.attempts < 1:
        raise InputError(f"{found.attempts} attempts: there is at least the first, so give 1 or more")
    return found


def _with(request: RequestClass, clients: Clients) -> RequestClass:
    retry = Retry(clients.attempts, clients.backoff_s, clients.backoff_factor) if clients.attempts > 1 else None
    return replace(request, timeout_s=clients.timeout_s, retry=retry)
