"""Free lists of the kernel's records, and lists of waiting work made of nodes.

Before each event there are at least `MARGIN` free records of every kind, more than one event can use. When fewer are
left, `SHORT` is set, and the kernel returns after the event so that Python can make the arrays larger.
"""

from __future__ import annotations

from capplan.simulator.compiled.kernel.compiling import part
from capplan.simulator.compiled.kernel.layout import (
    FREE_BATCHES,
    FREE_JOINS,
    FREE_LATCHES,
    FREE_NODES,
    FREE_REQUESTS,
    FREE_TALKS,
    FREE_THREADS,
    LEFT_BATCHES,
    LEFT_JOINS,
    LEFT_LATCHES,
    LEFT_NODES,
    LEFT_REQUESTS,
    LEFT_TALKS,
    LEFT_THREADS,
    MARGIN,
    NONE,
    READY,
    SHORT,
    Records,
    State,
)


@part
def _take(s: State, records: Records, free: int, left: int) -> int:
    record = s.header[free]
    s.header[free] = records[record].next
    s.header[left] -= 1
    if s.header[left] < s.header[MARGIN]:
        s.header[SHORT] = 1
    return record


@part
def _give(s: State, records: Records, free: int, left: int, record: int) -> None:
    records[record].next = s.header[free]
    s.header[free] = record
    s.header[left] += 1


@part
def new_thread(s: State, request: int, pc: int, join: int, latch: int) -> int:
    """Return a thread of `request` that is to go on at `pc`."""
    thread = _take(s, s.threads, FREE_THREADS, LEFT_THREADS)
    s.threads[thread].pc = pc
    s.threads[thread].request = request
    s.threads[thread].join = join
    s.threads[thread].latch = latch
    s.threads[thread].dropped = 0
    s.requests[request].threads += 1
    return thread


@part
def free_thread(s: State, thread: int) -> None:
    """Take a thread that has ended out of use (its request is another matter)."""
    _give(s, s.threads, FREE_THREADS, LEFT_THREADS, thread)


@part
def new_request(s: State) -> int:
    """Return a request's record."""
    return _take(s, s.requests, FREE_REQUESTS, LEFT_REQUESTS)


@part
def free_request(s: State, request: int) -> None:
    """Take a request out of use."""
    _give(s, s.requests, FREE_REQUESTS, LEFT_REQUESTS, request)


@part
def new_talk(s: State) -> int:
    """Return the record of a session."""
    return _take(s, s.talks, FREE_TALKS, LEFT_TALKS)


@part
def free_talk(s: State, talk: int) -> None:
    """Take a session out of use."""
    _give(s, s.talks, FREE_TALKS, LEFT_TALKS, talk)


@part
def new_join(s: State) -> int:
    """Return the record of a join."""
    return _take(s, s.joins, FREE_JOINS, LEFT_JOINS)


@part
def free_join(s: State, join: int) -> None:
    """Take a join out of use."""
    _give(s, s.joins, FREE_JOINS, LEFT_JOINS, join)


@part
def new_latch(s: State) -> int:
    """Return the record of a latch."""
    return _take(s, s.latches, FREE_LATCHES, LEFT_LATCHES)


@part
def free_latch(s: State, latch: int) -> None:
    """Take a latch out of use."""
    _give(s, s.latches, FREE_LATCHES, LEFT_LATCHES, latch)


@part
def new_batch(s: State) -> int:
    """Return the record of a batch."""
    return _take(s, s.batches, FREE_BATCHES, LEFT_BATCHES)


@part
def free_batch(s: State, batch: int) -> None:
    """Take a batch out of use."""
    _give(s, s.batches, FREE_BATCHES, LEFT_BATCHES, batch)


@part
def append(s: State, number: int, a: int, b: int, c: int) -> None:
    """Append a node to a list."""
    node = _take(s, s.nodes, FREE_NODES, LEFT_NODES)
    s.nodes[node].next = NONE
    s.nodes[node].a = a
    s.nodes[node].b = b
    s.nodes[node].c = c
    if s.lists[number].head == NONE:
        s.lists[number].head = node
    else:
        s.nodes[s.lists[number].tail].next = node
    s.lists[number].tail = node


@part
def drop_head(s: State, number: int) -> None:
    """Take the first node off a list."""
    node = s.lists[number].head
    s.lists[number].head = s.nodes[node].next
    _give(s, s.nodes, FREE_NODES, LEFT_NODES, node)


@part
def make_ready(s: State, thread: int) -> None:
    """Let a thread run within this event, before those made ready earlier."""
    s.threads[thread].next = s.header[READY]
    s.header[READY] = thread
