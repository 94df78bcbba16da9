"""The agenda: a heap of events in their total order, and a tree of the stations' next looks.

The heap has four children a node: half the levels of a binary one, and the children share cache lines.
"""

from __future__ import annotations

from capplan.simulator.kernel.compiling import part
from capplan.simulator.kernel.layout import HEAP, KIND_SHIFT, LEAVES, NEVER, R_RANK, State


@part
def push(s: State, tick: int, rank: int, load: int) -> None:
    """Put an event on the agenda."""
    heap = s.heap
    place = s.header[HEAP]
    s.header[HEAP] = place + 1
    while place > 0:
        parent = (place - 1) >> 2
        if heap[parent, 0] < tick or (heap[parent, 0] == tick and heap[parent, 1] < rank):
            break
        heap[place, 0] = heap[parent, 0]
        heap[place, 1] = heap[parent, 1]
        heap[place, 2] = heap[parent, 2]
        place = parent
    heap[place, 0] = tick
    heap[place, 1] = rank
    heap[place, 2] = load


@part
def push_step(s: State, tick: int, kind: int, request: int, step: int, thread: int) -> None:
    """Put an event on the agenda that lets a thread go on at a step of its request."""
    push(s, tick, kind << KIND_SHIFT | s.requests[request, R_RANK] | step, thread)


@part
def drop_first(s: State) -> None:
    """Take the first event off the agenda; an empty agenda has its first at `NEVER`."""
    heap = s.heap
    count = s.header[HEAP] - 1
    s.header[HEAP] = count
    if count == 0:
        heap[0, 0] = NEVER
        return
    tick, rank, load = heap[count, 0], heap[count, 1], heap[count, 2]
    place = 0
    while True:
        child = 4 * place + 1
        if child >= count:
            break
        least = child
        for other in range(child + 1, min(child + 4, count)):
            if heap[other, 0] < heap[least, 0] or (
                heap[other, 0] == heap[least, 0] and heap[other, 1] < heap[least, 1]
            ):
                least = other
        if tick < heap[least, 0] or (tick == heap[least, 0] and rank < heap[least, 1]):
            break
        heap[place, 0] = heap[least, 0]
        heap[place, 1] = heap[least, 1]
        heap[place, 2] = heap[least, 2]
        place = least
    heap[place, 0] = tick
    heap[place, 1] = rank
    heap[place, 2] = load


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
