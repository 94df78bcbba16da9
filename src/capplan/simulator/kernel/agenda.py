"""The agenda: a heap of events in their total order, and a tree of the stations' next looks.

The heap has four children a node: half the levels of a binary one, and the children share cache lines.
"""

from __future__ import annotations

from capplan.simulator.kernel.compiling import part
from capplan.simulator.kernel.layout import HEAP, KIND_SHIFT, LEAVES, NEVER, Records, State


@part
def push(s: State, tick: int, rank: int, load: int) -> None:
    """Put an event on the agenda."""
    heap = s.heap
    place = s.header[HEAP]
    s.header[HEAP] = place + 1
    while place > 0:
        parent = (place - 1) >> 2
        if heap[parent].tick < tick or (heap[parent].tick == tick and heap[parent].rank < rank):
            break
        heap[place] = heap[parent]
        place = parent
    heap[place].tick = tick
    heap[place].rank = rank
    heap[place].load = load


@part
def push_step(s: State, tick: int, kind: int, request: int, step: int, thread: int) -> None:
    """Put an event on the agenda that lets a thread go on at a step of its request."""
    push(s, tick, kind << KIND_SHIFT | s.requests[request].rank | step, thread)


@part
def drop_first(s: State) -> None:
    """Take the first event off the agenda; beyond the last there is always one at `NEVER`."""
    heap = s.heap
    count = s.header[HEAP] - 1
    s.header[HEAP] = count
    tick, rank, load = heap[count].tick, heap[count].rank, heap[count].load
    heap[count].tick = NEVER
    if count == 0:
        return
    place, child = 0, 1
    while child < count:
        least = child
        for other in range(child + 1, min(child + 4, count)):
            if _before(heap, other, least):
                least = other
        if tick < heap[least].tick or (tick == heap[least].tick and rank < heap[least].rank):
            break
        heap[place] = heap[least]
        place = least
        child = 4 * place + 1
    heap[place].tick = tick
    heap[place].rank = rank
    heap[place].load = load


@part
def _before(heap: Records, one: int, other: int) -> bool:
    if heap[one].tick != heap[other].tick:
        return heap[one].tick < heap[other].tick
    return heap[one].rank < heap[other].rank


@part
def look_at(s: State, leaf: int, tick: int) -> None:
    """Let the next look at an elastic station be at `tick`."""
    look = s.look
    node = s.header[LEAVES] + leaf
    look[node] = tick
    while node > 1:
        earliest = min(look[node], look[node ^ 1])
        node >>= 1
        if look[node] == earliest:
            break
        look[node] = earliest


@part
def first_look(s: State) -> int:
    """Return the leaf of the station whose look is the earliest."""
    look = s.look
    node = 1
    while node < s.header[LEAVES]:
        node *= 2
        if look[node] != look[1]:
            node += 1
    return node - s.header[LEAVES]
