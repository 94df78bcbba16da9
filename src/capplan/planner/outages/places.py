"""Which stations a loss takes, the timeline of the loss, and workers that give up a lost node."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from capplan.calibration.case.solution import kind_of
from capplan.calibration.outage import DC, Remainder
from capplan.calibration.system import System
from capplan.models.errors import InputError, nearest
from capplan.models.language.distribution import Deterministic
from capplan.models.language.network import Network
from capplan.models.language.station import member_name
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
from capplan.models.language.step import (
    Sequence as Steps,
)
from capplan.models.language.traffic import Event, RequestClass, Timeline

_OF_DC = re.compile(r"/(dc\d+)$")


def places_of_loss(its: System[Any], network: Network, left: Remainder) -> tuple[str, ...]:
    """Return the stations, or members of stations, that a loss of a system takes."""
    dcs = _lost_dcs(network, left)
    found = [each.name for each in network.stations if _dc_of(each.name) in dcs]
    for word, count in left.lost.items():
        if word != DC:
            found += _members(its, network, word, count, dcs)
    return tuple(found)


def _lost_dcs(network: Network, left: Remainder) -> tuple[str, ...]:
    """Return the names of the lost data centres; where it does not matter which they are, the last ones."""
    if left.lost_dcs:
        return left.lost_dcs
    every = sorted(
        {dc for dc in map(_dc_of, (each.name for each in network.stations)) if dc}, key=lambda dc: int(dc[2:])
    )
    return tuple(every[len(every) - left.lost.get(DC, 0) :])


def _dc_of(name: str) -> str | None:
    found = _OF_DC.search(name)
    return None if found is None else found[1]


def _members(its: System[Any], network: Network, word: str, count: int, lost_dcs: Collection[str]) -> Iterator[str]:
    """Yield the last `count` machines of a kind: of each data centre, or of the first group where there is none."""
    for kind in its.machines[word].stations:
        groups = [each for each in network.stations if kind_of(each.name) == kind and _dc_of(each.name) not in lost_dcs]
        chosen = groups if groups and _dc_of(groups[0].name) else groups[:1]
        for group in chosen:
            if group.count is None:
                yield group.name
            else:
                numbers = range(max(group.count - count, 0), group.count)
                yield from (member_name(group.name, number) for number in numbers)


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
        if name not in known:
            raise InputError(f"--lose {text}: {network.name!r} has no station or host {name!r}{nearest(name, known)}")
    return names


@dataclass(frozen=True)
class Return:
    """How a loss is noticed, and how what was lost comes back.

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
    """Return a network that loses some places from the first time to the second, in place of its own timeline."""
    down, up = times_s
    events = (
        *(Event(down, "down", place) for place in places),
        *(Event(up, "up", place) for place in places),
    )
    cold = (how.cold_s, how.cold_speed) if how.cold_s > 0 and how.cold_speed < 1 else (0.0, 1.0)
    return replace(network, timeline=Timeline(events, how.detection_s, *cold))


def with_workers_that_give_up(network: Network, places: Sequence[str]) -> Network:
    """Return a network in which workers give up on a lost place when the clients of their requests have given up.

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
    """Puts a hedge around what each holder of a unit waits for at lost places; its spare goes on without an answer."""

    def __init__(self, groups: Collection[str], after_s: float) -> None:
        self.groups, self.after_s = groups, after_s

    def step(self, step: Step, held: bool) -> Step:
        """Return a step with hedges; itself where there is nothing to put one around."""
        if held and isinstance(step, (Pick, ReplicaSet, Route)) and any(map(self._is_lost, walk(step))):
            return Hedge(self._inside(step, held=False), self.after_s, Delay(Deterministic(0.0), name="give-up"))
        return self._inside(step, held or isinstance(step, Acquire))

    def _inside(self, step: Step, held: bool) -> Step:
        changed = {
            name: tuple(self.step(each, held) for each in value) if isinstance(value, tuple) else self.step(value, held)
            for name, value in _steps_of(step).items()
        }
        same = all(_same(changed[name], value) for name, value in _steps_of(step).items())
        return step if same else _replaced(step, changed)

    def _is_lost(self, step: Step) -> bool:
        return isinstance(step, Visit) and step.station in self.groups


def _replaced(step: Any, changed: Mapping[str, Any]) -> Step:
    found: Step = replace(step, **changed)
    return found


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, tuple):
        return all(first is second for first, second in zip(one, other, strict=True))
    return one is other


def _steps_of(step: Step) -> Mapping[str, Any]:
    """Return the fields of a step that hold steps."""
    match step:
        case Steps() | Choice():
            return {"steps": step.steps}
        case ForkJoin():
            return {"branches": step.branches}
        case Route():
            return {"targets": step.targets}
        case Acquire() | CountdownLatch() | Pick() | ReplicaSet() | FanOut():
            return {"step": step.step}
        case If():
            return {"then": step.then, "otherwise": step.otherwise}
        case _:
            return {}  # a batch or a hedge of the system's own stays as it is
