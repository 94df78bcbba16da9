"""What can be known of a flow before it runs, by the numbers of its steps in the order of `walk`.

Engines compile flows with these facts, so that both know the same latch of a signal, the same branches that a latch
waits for, and the same first stations of a route's target.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from capplan.models.language.network import walk
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


@dataclass(frozen=True)
class Way:
    """When the way into a step is known to be down: when `station` is, or at least `needed` of `ways` are.

    Exactly one of `station` and `needed` says something: a way with a station has no ways of its own.
    """

    station: str | None
    needed: int = 0
    ways: tuple[Way, ...] = ()

    def is_down(self, known_down: Callable[[str], bool]) -> bool:
        """Tell whether it is, where `known_down` tells it of a station."""
        if self.station is not None:
            return known_down(self.station)
        return sum(way.is_down(known_down) for way in self.ways) >= self.needed

    def stations(self) -> Iterator[str]:
        """Yield the stations that it depends on."""
        if self.station is not None:
            yield self.station
        for way in self.ways:
            yield from way.stations()


@dataclass(frozen=True)
class FlowFacts:
    """What is known of each step of a flow; every field has an entry for each.

    Attributes
    ----------
    steps
        The steps, in the order of `walk`.
    below
        The numbers of the steps directly inside.
    signalled
        The number of the latch that a signal counts for: the nearest around it with a group of that name, within the
        nearest batch. -1 for all other steps.
    served
        The latches around a step that a signal inside it counts for, the outermost first. A latch that is not full
        waits for a branch exactly when the branch's entry has the latch.
    ways
        The way into a step. None without a visit: such a step says nothing and is never known to be down. For a visit
        it is the station, for a sequence the way into its first step that has one, for hold, latch and batch that of
        the step inside. A choice, route or hedge is down when all alternatives are, a fork-join when fewer branches
        than it needs are not.
    """

    steps: tuple[Step, ...]
    below: tuple[tuple[int, ...], ...]
    signalled: tuple[int, ...]
    served: tuple[tuple[int, ...], ...]
    ways: tuple[Way | None, ...]


def facts_of(flow: Step) -> FlowFacts:
    """Return what is known of the steps of a flow."""
    steps = tuple(walk(flow))
    below = _below(steps)
    signalled = _signalled(steps, below)
    return FlowFacts(steps, below, signalled, _served(below, signalled), _ways(steps, below))


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


def _ways(steps: Sequence[Step], below: Sequence[tuple[int, ...]]) -> tuple[Way | None, ...]:
    ways: list[Way | None] = [None] * len(steps)
    for number in reversed(range(len(steps))):
        ways[number] = _way_in(steps[number], [ways[child] for child in below[number]])
    return tuple(ways)


def _way_in(step: Step, inside: Sequence[Way | None]) -> Way | None:
    said = tuple(way for way in inside if way is not None)
    match step:
        case Visit():
            return Way(step.station)
        case ForkJoin() if said:
            return Way(None, len(inside) - step.needed + 1, said)
        case Choice() | Route() | Hedge() if said:
            return Way(None, len(inside), said)
        case _:
            return said[0] if said else None
