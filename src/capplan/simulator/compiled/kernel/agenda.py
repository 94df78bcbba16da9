"""The agenda: a heap of events in their total order, and a tree of the stations' next looks.

The heap has four children a node: half the levels of a binary one, and the children share cache lines.
"""

from __future__ import annotations

from capplan.simulator.compiled.kernel.compiling import part
from capplan.simulator.compiled.kernel.layout import HEAP, KIND_SHIFT, LEAVES, NEVER, NONE, WAIT_LISTS, Records, State
from capplan.simulator.compiled.kernel.records import append, drop_head

LIST_SHIFT = 40  # in the load of an event: above the thread, the list that it is from


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
        _move(heap, parent, place)
        place = parent
    heap[place].tick = tick
    heap[place].rank = rank
    heap[place].load = load


@part
def push_step(s: State, tick: int, kind: int, request: int, step: int, thread: int) -> None:
    """Put an event on the agenda that lets a thread go on at a step of its request."""
    push(s, tick, kind << KIND_SHIFT | s.requests[request].rank | step, thread)


@part
def push_fixed(s: State, tick: int, rank: int, thread: int, number: int) -> None:
    """Let a thread go on after a wait that always takes as long.

    Such waits end in the order in which they begin. They are kept in a list, and only the first is on the agenda, which
    stays small; `later_in_list` puts the next one there. Out of order, which ties can be, one is put there itself.
    """
    if number < 0:
        push(s, tick, rank, thread)
        return
    waits = s.header[WAIT_LISTS] + number
    tail = s.lists[waits].tail
    if s.lists[waits].head == NONE:
        push(s, tick, rank, thread | (number + 1) << LIST_SHIFT)
    elif s.nodes[tail].a == tick and s.nodes[tail].b > rank:
        push(s, tick, rank, thread)
        return
    append(s, waits, tick, rank, thread)


@part
def later_in_list(s: State, load: int) -> int:
    """Put the wait that comes after an event that happens on the agenda, if it was from a list; return its thread."""
    number = load >> LIST_SHIFT
    if number == 0:
        return load
    waits = s.header[WAIT_LISTS] + number - 1
    drop_head(s, waits)
    node = s.lists[waits].head
    if node != NONE:
        push(s, s.nodes[node].a, s.nodes[node].b, s.nodes[node].c | number << LIST_SHIFT)
    return load & ((1 << LIST_SHIFT) - 1)


@part
def drop_first(s: State) -> None:
    """Take the first event off the agenda.

    The gap goes down along the least children to the end, and the last event up from there: it nearly always belongs
    near the end. Beyond the last there are only events at `NEVER`, so that four children can always be compared.
    """
    heap = s.heap
    count = s.header[HEAP] - 1
    s.header[HEAP] = count
    place, child = 0, 1
    while child < count:
        child += _before(heap, child + 1, child)
        other = 4 * place + 3
        other += _before(heap, other + 1, other)
        child += (other - child) * _before(heap, other, child)
        _move(heap, child, place)
        place = child
        child = 4 * place + 1
    tick, rank = heap[count].tick, heap[count].rank
    while place > 0:
        parent = (place - 1) >> 2
        if heap[parent].tick < tick or (heap[parent].tick == tick and heap[parent].rank < rank):
            break
        _move(heap, parent, place)
        place = parent
    _move(heap, count, place)
    heap[count].tick = NEVER


@part
def _before(heap: Records, one: int, other: int) -> int:
    """Return 1 when an event comes before another, 0 otherwise: without a jump, which nobody could foretell."""
    earlier = int(heap[one].tick < heap[other].tick)
    tied = int(heap[one].tick == heap[other].tick)
    return earlier | tied & int(heap[one].rank < heap[other].rank)


@part
def _move(heap: Records, source: int, place: int) -> None:
    heap[place].tick = heap[source].tick
    heap[place].rank = heap[source].rank
    heap[place].load = heap[source].load


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
