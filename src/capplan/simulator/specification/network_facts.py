"""What both engines work out of a network before a run.

Steps of a flow are known by their numbers in the order of `walk`. Both engines compile flows from `FlowFacts`, so they
agree on the countdown latch of a signal, the branches that a latch waits for, and the first stations of a route's
target.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from capplan.models.language.network import Network, walk
from capplan.models.language.station import Station
from capplan.models.language.step import (
    Batch,
    Choice,
    CountdownLatch,
    ForkJoin,
    Hedge,
    Route,
    Signal,
    Step,
    Visit,
    children,
)
from capplan.models.language.traffic import Retry, Session
from capplan.simulator.specification.clock import to_ticks


def is_fixed_rate(station: Station, network: Network) -> bool:
    """Tell whether a station serves first come, first served, at a speed that never changes."""
    changing = {event.target for event in network.timeline.events if event.action in ("down", "up", "speed")}
    plain = station.rate is None and station.expiry_s is None and station.host is None
    undisturbed = not station.pauses and not station.background and station.name not in changing
    return station.discipline == "fcfs" and plain and undisturbed


def backoff_ticks(retry: Retry | None) -> list[int]:
    """Return how long, in ticks, a client waits before each further attempt."""
    if retry is None:
        return []
    backoff_s, factor = float(retry.backoff_s), float(retry.factor)
    return [to_ticks(backoff_s * factor**number) for number in range(retry.attempts - 1)]


def session_of(network: Network, name: str) -> Session:
    """Return the session of that name; a single request class counts as a session of one request."""
    found = next((session for session in network.sessions if session.name == name), None)
    return found or Session(name, (name,), ())


@dataclass(frozen=True)
class StepEntry:
    """The first stations of a step, which tell whether the step is known to be down.

    It is down when `station` is, or when at least `needed` of `entries` are. An entry has either a station or entries.
    """

    station: str | None
    needed: int = 0
    entries: tuple[StepEntry, ...] = ()

    def is_down(self, known_down: Callable[[str], bool]) -> bool:
        """Tell whether the step is down, given what `known_down` tells of a station."""
        if self.station is not None:
            return known_down(self.station)
        return sum(entry.is_down(known_down) for entry in self.entries) >= self.needed

    def stations(self) -> Iterator[str]:
        """Yield the stations that it depends on."""
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
        latch and a batch that of the step inside. A choice, route or hedge is down when all alternatives are, a
        fork-join when fewer branches than it needs are up.
    """

    steps: tuple[Step, ...]
    below: tuple[tuple[int, ...], ...]
    signalled: tuple[int, ...]
    served: tuple[tuple[int, ...], ...]
    entries: tuple[StepEntry | None, ...]


def flow_facts(flow: Step) -> FlowFacts:
    """Return the facts about the steps of a flow."""
    steps = tuple(walk(flow))
    below = _below(steps)
    signalled = _signalled(steps, below)
    return FlowFacts(steps, below, signalled, _served(below, signalled), _entries(steps, below))


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


def _entries(steps: Sequence[Step], below: Sequence[tuple[int, ...]]) -> tuple[StepEntry | None, ...]:
    entries: list[StepEntry | None] = [None] * len(steps)
    for number in reversed(range(len(steps))):
        entries[number] = _entry_of(steps[number], [entries[child] for child in below[number]])
    return tuple(entries)


def _entry_of(step: Step, inside: Sequence[StepEntry | None]) -> StepEntry | None:
    known = tuple(entry for entry in inside if entry is not None)
    match step:
        case Visit():
            return StepEntry(step.station)
        case ForkJoin() if known:
            return StepEntry(None, len(inside) - step.needed + 1, known)
        case Choice() | Route() | Hedge() if known:
            return StepEntry(None, len(inside), known)
        case _:
            return known[0] if known else None
