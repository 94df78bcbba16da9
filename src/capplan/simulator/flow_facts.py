"""What can be known of a flow before it runs, by the numbers of its steps in the order of `walk`.

Every function returns a tuple with an entry for each step. Engines compile flows with them, so that both know the same
latch of a signal, the same branches that a latch waits for, and the same first stations of a route's target.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from capplan.models.network import walk
from capplan.models.step import Batch, Choice, ForkJoin, Hedge, Latch, Route, Signal, Step, Visit, children


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


def child_numbers(flow: Step) -> tuple[tuple[int, ...], ...]:
    """Return the numbers of the steps directly inside each step."""
    below: list[tuple[int, ...]] = []

    def size(step: Step) -> int:
        number = len(below)
        below.append(())
        sizes = [size(child) for child in children(step)]
        below[number] = tuple(accumulate(sizes[:-1], initial=number + 1)) if sizes else ()
        return 1 + sum(sizes)

    size(flow)
    return tuple(below)


def signalled_latches(flow: Step) -> tuple[int, ...]:
    """Return the number of the latch that each signal counts for; -1 for all other steps.

    It is the nearest latch around it with a group of that name, within the nearest batch.
    """
    steps, below = tuple(walk(flow)), child_numbers(flow)
    latches = [-1] * len(steps)

    def look(number: int, groups: dict[str, int]) -> None:
        step = steps[number]
        if isinstance(step, Signal):
            latches[number] = groups[step.group]
        elif isinstance(step, Latch):
            groups = {**groups, **{group.name: number for group in step.groups}}
        elif isinstance(step, Batch):
            groups = {}
        for child in below[number]:
            look(child, groups)

    look(0, {})
    return tuple(latches)


def latches_served(flow: Step) -> tuple[tuple[int, ...], ...]:
    """Return the latches around each step that a signal inside it counts for, the outermost first.

    A latch that is not full waits for a branch exactly when the branch's entry has the latch.
    """
    signalled, below = signalled_latches(flow), child_numbers(flow)
    served: list[tuple[int, ...]] = [()] * len(below)
    for number in reversed(range(len(below))):  # children have higher numbers than their parents
        latches = {latch for child in below[number] for latch in served[child]} | {signalled[number]}
        served[number] = tuple(sorted(latch for latch in latches if 0 <= latch < number))
    return tuple(served)


def ways_in(flow: Step) -> tuple[Way | None, ...]:
    """Return the way into each step; None for a step without a visit, which says nothing and is never known to be down.

    For a visit it is the station, for a sequence the way into its first step that has one, for hold, latch and batch
    that of the step inside. A choice, route or hedge is down when all alternatives are, a fork-join when fewer branches
    than it needs are not.
    """
    steps, below = tuple(walk(flow)), child_numbers(flow)
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
