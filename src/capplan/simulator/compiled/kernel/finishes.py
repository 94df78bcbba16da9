"""The services under way at an elastic station, by the V at which they end.

A few are kept in a list sorted from the latest to the earliest: adding one moves those that end before it, and the
first to end is simply the last of the list. Many are kept in a heap. A sorted list read backwards is a heap already.
"""

from __future__ import annotations

from capplan.simulator.compiled.kernel.compiling import part
from capplan.simulator.compiled.kernel.layout import Records, State

MOST_SORTED, FEWEST_HEAPED = 128, 48


@part
def first_finish(s: State, station: int) -> int:
    """Return the place of the service that ends first."""
    row = s.stations[station]
    return 0 if row.heaped else row.served - 1


@part
def add_finish(s: State, station: int, whole: int, parts: int, thread: int, joined: int, aside: int) -> None:
    """Add a service."""
    row = s.stations[station]
    finishes = s.finishes[row.leaf]
    place = row.served
    row.served = place + 1
    if not row.heaped and place == MOST_SORTED:
        _reverse(finishes, place)
        row.heaped = 1
    if row.heaped:
        while place > 0 and not _ends_before(finishes, (place - 1) >> 1, whole, parts):
            _move(finishes, (place - 1) >> 1, place)
            place = (place - 1) >> 1
    else:
        while place > 0 and _ends_before(finishes, place - 1, whole, parts):
            _move(finishes, place - 1, place)
            place -= 1
    finishes[place].whole = whole
    finishes[place].parts = parts
    finishes[place].thread = thread
    finishes[place].joined = joined
    finishes[place].aside = aside


@part
def drop_finish(s: State, station: int) -> None:
    """Take the service that ends first out."""
    row = s.stations[station]
    row.served -= 1
    if row.heaped:
        finishes = s.finishes[row.leaf]
        _drop_from_heap(finishes, row.served)
        if row.served == FEWEST_HEAPED:
            _sort(finishes, FEWEST_HEAPED)
            row.heaped = 0


@part
def _drop_from_heap(finishes: Records, count: int) -> None:
    """Let the gap go down to the end along the least children, and the last one up from there."""
    place, child = 0, 1
    while child < count:
        other = child + 1
        whole, parts = finishes[child].whole, finishes[child].parts
        child += int(_ends_before(finishes, other, whole, parts)) & int(other < count)
        _move(finishes, child, place)
        place, child = child, 2 * child + 1
    whole, parts = finishes[count].whole, finishes[count].parts
    while place > 0 and not _ends_before(finishes, (place - 1) >> 1, whole, parts):
        _move(finishes, (place - 1) >> 1, place)
        place = (place - 1) >> 1
    _move(finishes, count, place)


@part
def _ends_before(finishes: Records, place: int, whole: int, parts: int) -> bool:
    return finishes[place].whole < whole or (finishes[place].whole == whole and finishes[place].parts < parts)


@part
def _move(finishes: Records, source: int, place: int) -> None:
    finishes[place].whole = finishes[source].whole
    finishes[place].parts = finishes[source].parts
    finishes[place].thread = finishes[source].thread
    finishes[place].joined = finishes[source].joined
    finishes[place].aside = finishes[source].aside


@part
def _reverse(finishes: Records, count: int) -> None:
    for place in range(count // 2):
        _swap(finishes, place, count - 1 - place)


@part
def _sort(finishes: Records, count: int) -> None:
    """Sort from the latest to the earliest."""
    for place in range(1, count):
        other = place
        while other > 0 and _ends_before(finishes, other - 1, finishes[other].whole, finishes[other].parts):
            _swap(finishes, other - 1, other)
            other -= 1


@part
def _swap(finishes: Records, one: int, other: int) -> None:
    whole, parts, thread = finishes[one].whole, finishes[one].parts, finishes[one].thread
    joined, aside = finishes[one].joined, finishes[one].aside
    _move(finishes, other, one)
    finishes[other].whole = whole
    finishes[other].parts = parts
    finishes[other].thread = thread
    finishes[other].joined = joined
    finishes[other].aside = aside
