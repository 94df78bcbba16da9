"""Checks and derived facts of a network that both engines need before a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, NamedTuple, get_args

import numpy as np

from capplan.errors import InputError, RefusedError
from capplan.models.language.distribution import Distribution
from capplan.models.language.network import Network, member_of
from capplan.models.language.station import Station, member_name
from capplan.models.language.step import (
    Batch,
    Choice,
    CountdownLatch,
    FanOut,
    ForkJoin,
    Hedge,
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
from capplan.models.language.traffic import Bursty, Open, Retry, Session
from capplan.models.language.units import FloatArray
from capplan.simulator.specification.clock import to_ticks

MOST_STEPS = (1 << 20) - 1  # a step's number among ties has 20 bits


def is_fixed_rate(station: Station, network: Network) -> bool:
    """Return whether a station, or every member of it, serves first come, first served, at a speed that never changes.

    A station that has to know at every moment how many visits its lanes have does not count.
    """
    plain = station.rate is None and station.expiry_s is None and station.host is None
    undisturbed = not station.pauses and not station.background and station.name not in _changing(network)
    like = all(each.speed == 1 and not each.down for each in station.exceptions)
    counted = station.assignment == "least_loaded"
    return station.discipline == "fcfs" and plain and undisturbed and like and not counted


def _changing(network: Network) -> set[str]:
    """Return the names of the stations and hosts that the timeline changes, with or without a count."""
    targets = {event.target for event in network.timeline.events if event.action in ("down", "up", "speed")}
    owners = (member_of(target, (*network.stations, *network.hosts)) for target in targets)
    return targets | {owner[0] for owner in owners if owner is not None}


class Lane(NamedTuple):
    """A queue in front of one or more servers: a station without a count, a member, or a lane of either.

    Attributes
    ----------
    station
        The queue, with its servers, as a station.
    of
        Number of the station or member that it belongs to, in the order of `Network.each_station`.
    """

    station: Station
    of: int


def lanes(network: Network) -> tuple[Lane, ...]:
    """Return all queues in numerical order: the first lane of each station, then the further lanes.

    A pooled station has one lane, so the first lanes have the numbers of their stations.
    """
    each = [(number, station.lanes) for number, station in enumerate(network.each_station)]
    first = [Lane(mine[0], number) for number, mine in each]
    return (*first, *(Lane(lane, number) for number, mine in each for lane in mine[1:]))


def backoff_ticks(retry: Retry | None) -> list[int]:
    """Return the client's wait, in ticks, before each further attempt."""
    if retry is None:
        return []
    backoff_s, factor = float(retry.backoff_s), float(retry.factor)
    return [to_ticks(backoff_s * factor**number) for number in range(retry.attempts - 1)]


def session_of(network: Network, name: str) -> Session:
    """Return the session with this name; a single request class is a session of one request."""
    found = next((session for session in network.sessions if session.name == name), None)
    return found or Session(name, (name,), ())


@dataclass(frozen=True)
class StepEntry:
    """The first stations of a step, which determine whether the step is known to be down.

    It is down when `station` is, or when at least `needed` of `entries` are. An entry has either a station or entries.
    """

    station: str | None
    needed: int = 0
    entries: tuple[StepEntry, ...] = ()

    def is_down(self, known_down: Callable[[str], bool]) -> bool:
        """Return whether the step is down, according to `known_down` of its stations."""
        if self.station is not None:
            return known_down(self.station)
        return sum(entry.is_down(known_down) for entry in self.entries) >= self.needed

    def stations(self) -> Iterator[str]:
        """Yield the stations that the entry depends on."""
        if self.station is not None:
            yield self.station
        for entry in self.entries:
            yield from entry.stations()


@dataclass(frozen=True)
class FlowFacts:
    """Facts about each step of a flow; every field has one entry per step.

    Attributes
    ----------
    steps
        The steps, in the order of `walk`.
    below
        The numbers of the steps directly inside.
    signalled
        The number of the countdown latch that a signal counts for: the nearest one around it with a group of that name,
        within the nearest batch. -1 for all other steps.
    served
        The countdown latches around a step that a signal inside it counts for, the outermost first. An incomplete latch
        waits for a branch exactly when the branch's entry has the latch.
    entries
        The first stations of each step. None without a visit; such a step is never known to be down. For a visit it is
        the station, for a sequence the entry of its first step that has one, for the acquisition of a unit, a countdown
        latch and a batch that of the step inside. A choice, route, hedge or if is down when all alternatives are, a
        fork-join when fewer branches than it needs are up, a pick or replica set when all members of its station are.
    ranks
        The numbers of the steps among ties. A fan-out counts as unrolled: in its branch number k, a step has its number
        plus k times the stride of the fan-out.
    strides
        How many numbers each branch of a fan-out takes; 0 for all other steps.
    sets
        The replica sets whose names are bound around each step, by name.
    """

    steps: tuple[Step, ...]
    below: tuple[tuple[int, ...], ...]
    signalled: tuple[int, ...]
    served: tuple[tuple[int, ...], ...]
    entries: tuple[StepEntry | None, ...]
    ranks: tuple[int, ...]
    strides: tuple[int, ...]
    sets: tuple[Mapping[str, ReplicaSet], ...]


def flow_facts(flow: Step, counts: Mapping[str, int] | None = None) -> FlowFacts:
    """Return the facts about a flow's steps; `counts` are the member counts of stations (`member_counts`).

    Raises
    ------
    RefusedError
        When the flow has more steps than the order of events can number.
    """
    steps = tuple(walk(flow))
    below = _below(steps)
    signalled = _signalled(steps, below)
    sets = _sets(steps, below)
    ranks, strides = _ranks(steps, below, sets)
    entries = _entries(steps, below, sets, counts or {})
    return FlowFacts(steps, below, signalled, _served(below, signalled), entries, ranks, strides, sets)


def member_counts(network: Network) -> dict[str, int]:
    """Return the number of members of each station with a count."""
    return {each.name: each.count for each in network.stations if each.count is not None}


def _sets(steps: Sequence[Step], below: Sequence[tuple[int, ...]]) -> tuple[Mapping[str, ReplicaSet], ...]:
    sets: list[Mapping[str, ReplicaSet]] = [{}] * len(steps)
    for number, step in enumerate(steps):
        inside = sets[number]
        if isinstance(step, ReplicaSet):
            inside = {**inside, step.members: step}
        elif isinstance(step, (Pick, FanOut)) and step.member in inside:
            inside = {name: bound for name, bound in inside.items() if name != step.member}
        elif isinstance(step, Batch):
            inside = {}
        for child in below[number]:
            sets[child] = inside
    return tuple(sets)


def _ranks(
    steps: Sequence[Step], below: Sequence[tuple[int, ...]], sets: Sequence[Mapping[str, ReplicaSet]]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    branches = [
        (step.contacted or around[step.over].size) if isinstance(step, FanOut) else 0
        for step, around in zip(steps, sets, strict=True)
    ]
    unrolled, strides = [1] * len(steps), [0] * len(steps)
    for number in reversed(range(len(steps))):
        inside = sum(unrolled[child] for child in below[number])
        if branches[number]:
            strides[number] = inside
        unrolled[number] = 1 + inside * max(branches[number], 1)
    if unrolled[0] > MOST_STEPS:
        raise RefusedError(f"a flow of {unrolled[0]} steps is too long: at most {MOST_STEPS}")
    ranks = [0] * len(steps)
    for number, steps_inside in enumerate(below):
        place = ranks[number] + 1
        for child in steps_inside:
            ranks[child] = place
            place += unrolled[child]
    return tuple(ranks), tuple(strides)


def _below(steps: Sequence[Step]) -> tuple[tuple[int, ...], ...]:
    sizes = [1] * len(steps)
    below: list[tuple[int, ...]] = [()] * len(steps)
    for number in reversed(range(len(steps))):  # children have higher numbers than their parents
        inside, place = [], number + 1
        for _ in children(steps[number]):
            inside.append(place)
            place += sizes[place]
        sizes[number], below[number] = place - number, tuple(inside)
    return tuple(below)


def _signalled(steps: Sequence[Step], below: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    latches = [-1] * len(steps)
    groups: list[dict[str, int]] = [{}] * len(steps)  # of the latches around each step
    for number, step in enumerate(steps):
        around = groups[number]
        if isinstance(step, Signal):
            latches[number] = around.get(step.group, -1)
        elif isinstance(step, CountdownLatch):
            around = {**around, **{group.name: number for group in step.groups}}
        elif isinstance(step, Batch):
            around = {}
        for child in below[number]:
            groups[child] = around
    return tuple(latches)


def _served(below: Sequence[tuple[int, ...]], signalled: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    served: list[tuple[int, ...]] = [()] * len(below)
    for number in reversed(range(len(below))):
        latches = {latch for child in below[number] for latch in served[child]} | {signalled[number]}
        served[number] = tuple(sorted(latch for latch in latches if 0 <= latch < number))
    return tuple(served)


def _entries(
    steps: Sequence[Step],
    below: Sequence[tuple[int, ...]],
    sets: Sequence[Mapping[str, ReplicaSet]],
    counts: Mapping[str, int],
) -> tuple[StepEntry | None, ...]:
    entries: list[StepEntry | None] = [None] * len(steps)
    all_members = {name: members_entry(name, count) for name, count in counts.items()}
    for number in reversed(range(len(steps))):
        step = steps[number]
        of_set = isinstance(step, Pick) and step.among in sets[number]
        if isinstance(step, (Pick, ReplicaSet)) and step.among in all_members and not of_set:
            entries[number] = all_members[step.among]
        else:
            entries[number] = _entry_of(step, [entries[child] for child in below[number]])
    return tuple(entries)


def members_entry(station: str, count: int) -> StepEntry:
    """Return the entry of a step that starts at any member of a station: it is down if all members are."""
    return StepEntry(None, count, tuple(StepEntry(member_name(station, number)) for number in range(count)))


def _entry_of(step: Step, inside: Sequence[StepEntry | None]) -> StepEntry | None:
    known = tuple(entry for entry in inside if entry is not None)
    match step:
        case Visit():
            return StepEntry(step.station) if step.member is None else None
        case ForkJoin() if known:
            return StepEntry(None, len(inside) - step.needed + 1, known)
        case Choice() | Route() | Hedge() | If() if known:
            return StepEntry(None, len(inside), known)
        case _:
            return known[0] if known else None


_DRAWN = (*get_args(get_args(Distribution)[0]), Open, Bursty)  # what may differ by draw


def check_scope(network: Network) -> None:
    """Check that every number in `network` is a single number.

    Raises
    ------
    RefusedError
        Names the array and its place.
    """
    for place, _, draws in _owned_arrays(network, network.name, None, set()):
        raise RefusedError(f"{place} holds {draws.size} parameter draws: a simulation takes one at a time")


def check_draws(network: Network) -> int:
    """Return the number of parameter draws in a network; 1 if it contains single numbers.

    Raises
    ------
    RefusedError
        When anything but distributions and the numbers of open traffic differs by draw, or the arrays differ in length.
    """
    drawn: list[tuple[str, FloatArray]] = []
    for place, owner, draws in _owned_arrays(network, network.name, None, set()):
        if not isinstance(owner, _DRAWN):
            raise RefusedError(
                f"{place} holds {draws.size} parameter draws: only distributions and rates may differ by draw"
            )
        drawn.append((place, draws))
    lengths = {draws.shape for _, draws in drawn}
    if len(lengths) > 1:
        raise RefusedError(
            f"{drawn[0][0]} and other distributions hold draws of shapes {sorted(lengths)}: give each as many"
        )
    return max((draws.size for _, draws in drawn), default=1)


def check_run(duration_s: float, warmup_s: float, seed: int, replication: int, max_requests: int | None) -> None:
    """Check the duration, random numbers and request limit of a run.

    Raises
    ------
    InputError
        Names the value and the rule.
    """
    if not 0 <= warmup_s < duration_s or to_ticks(warmup_s) == to_ticks(duration_s):
        raise InputError(
            f"warm-up {warmup_s:g} s of a run of {duration_s:g} s: it must be shorter than the run, by 1 ns"
        )
    if seed < 0 or replication < 0:
        raise InputError(f"seed {seed} and replication {replication} must be at least 0")
    if max_requests is not None and max_requests < 1:
        raise InputError(f"max_requests = {max_requests} allows no request: give at least 1, or leave it out")


def _owned_arrays(value: Any, place: str, owner: Any, seen: set[int]) -> Iterator[tuple[str, Any, FloatArray]]:
    """Yield every array in a value, with its location and the construct that it belongs to.

    An object that appears at several places is visited once.
    """
    if isinstance(value, (int, float, str)) or value is None or id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, np.ndarray):
        yield place, owner, value
    elif isinstance(value, (tuple, list)):
        for index, item in enumerate(value):
            yield from _owned_arrays(item, f"{place}[{getattr(item, 'name', '') or index}]", owner, seen)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _owned_arrays(item, f"{place}[{key}]", owner, seen)
    elif is_dataclass(value):
        for item in fields(value):
            yield from _owned_arrays(getattr(value, item.name), f"{place}.{item.name}", value, seen)
