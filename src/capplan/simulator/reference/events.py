"""The total order of events, and SimPy's environment, event and process in that order.

SimPy orders events of one instant by their creation, which another engine cannot repeat. Here every event has a key
of its own, and events happen in the order of their keys::

    (tick, kind, request, step)

`kind` is a `Kind`. `request` is the number of the attempt in the order of starting; for START it is the number of the
session or client, as the attempt has none before it starts, for CHANGE that of the timeline's event, for PROCESS that
of the station. `step` is the number of the step in its flow, in the order of `walk`; for START the position in the
session, for TIMEOUT 0, for CHANGE a `Stage`, for PROCESS the number of the process. The last three are packed into one
integer, the *rank*. No two events have the same key (the heap would raise `TypeError`).

What an event does, it does at once and to the end: work goes on until it has to wait, a fork begins its branches in
their order, each until it waits, and then goes on itself; a server that becomes free takes the next visit before the
one it has served goes on. What *other* work can now do (a unit handed over, a join or latch completed) is a RESUME
event of the same tick, and these come before all other kinds. So the order in which events are created decides nothing.

Ranks below 0 are for what an engine does before the events of a tick in order to know them (`reference_elastic`). It
changes nothing that an event could see, and is not counted.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from enum import IntEnum
from heapq import heappop, heappush
from typing import Any

import simpy

Happening = Generator[simpy.Event, Any, None]
STEP_BITS = 20
REQUEST_BITS = 40


class Kind(IntEnum):
    """What kind of event: the first criterion among events of one tick.

    Changes of the system precede what requests do at that tick. A request that completes exactly at its timeout has
    completed.
    """

    RESUME = 0  # a step waited for others, and need not any longer: a pool's unit, a join, a latch, a batch
    CHANGE = 1  # the timeline changes something
    PROCESS = 2  # a pause or background work of a station starts or ends
    SERVICE = 3  # a station has served a visit
    DELAY = 4  # a delay is over
    TIMEOUT = 5  # the client gives up
    START = 6  # a request starts: an arrival, the next one of a session, a client that has thought


class Stage(IntEnum):
    """What comes of an event of the timeline: the last criterion among its own events of one tick."""

    EVENT = 0
    DETECTION = 1  # that a place is down
    WARM = 2  # the cold start is over


def step_rank(kind: Kind, step: int) -> int:
    """Return the part of a rank that the compiler of flows knows; add `request_rank` for the whole."""
    return kind << (STEP_BITS + REQUEST_BITS) | step


def request_rank(request: int) -> int:
    """Return the part of a rank that belongs to the request."""
    return request << STEP_BITS


def resume_rank(rank: int) -> int:
    """Return the rank of the RESUME event of the same request and step."""
    return rank & ((1 << (STEP_BITS + REQUEST_BITS)) - 1)


class Dropped(Exception):  # noqa: N818 - a thing that happens to requests, not an error of the program
    """Work is dropped: thrown outwards through the steps that wait for it."""


class Clockwork(simpy.Environment):
    """SimPy's environment with an integer clock (`tick`) and the total order of events."""

    def __init__(self) -> None:
        super().__init__(0)
        self.tick = 0
        self.agenda: list[tuple[int, int, Moment]] = []
        self.count = 0
        self.aside = 0  # entries of the agenda that are no work by themselves: looks, and one for each station process

    def schedule(self, event: simpy.Event, priority: int = 1, delay: float = 0) -> None:  # noqa: ARG002  # SimPy's signature
        """Take note of the end of a process (SimPy calls it); nobody waits for it, but an error must be heard."""
        if not event._ok:
            raise event._value

    def work_off(self, until: int | None, end: int = 0, moves: Callable[[], bool] = lambda: True) -> None:
        """Let events happen in order: all of them, or those before the tick `until`.

        Processes of stations have no end: they go on to the tick `end`, and then while there are other events, or
        `moves` tells that they can bring some about.
        """
        agenda = self.agenda
        while agenda and (until is None or agenda[0][0] < until):
            if len(agenda) == self.aside and agenda[0][0] >= end and not moves():
                return
            self.tick, rank, event = heappop(agenda)
            self._now = self.tick
            self.count += rank >= 0
            callbacks, event.callbacks = event.callbacks, None  # type: ignore[assignment] # SimPy's mark of the past
            for callback in callbacks:
                callback(event)


class Moment(simpy.Event):
    """An event that happens when it has been given a tick and a rank."""

    def __init__(self, clockwork: Clockwork, callback: Callable[[simpy.Event], None] | None = None) -> None:
        self.env: Clockwork = clockwork
        self.callbacks = [] if callback is None else [callback]
        self._ok = True
        self._value = None

    def at(self, tick: int, rank: int) -> Moment:
        """Let it happen at `tick`."""
        heappush(self.env.agenda, (tick, rank, self))
        return self

    def now(self, rank: int, error: Exception | None = None) -> None:
        """Let it happen at this tick; whoever waits for it goes on, or finds `error` thrown at it."""
        if error is not None:
            self._ok = False
            self._value = error
        heappush(self.env.agenda, (self.env.tick, rank, self))


class Work(simpy.Process):
    """A process that starts at once, inside the event that creates it, and ends without an event of its own."""

    def __init__(self, clockwork: Clockwork, happening: Happening) -> None:
        # As in SimPy's own constructor, except that no event is scheduled for the start.
        self.env = clockwork
        self.callbacks = []
        self._generator = happening
        self._resume(_START)


class _Started(simpy.Event):
    def __init__(self) -> None:
        self._ok = True
        self._value = None


_START = _Started()
