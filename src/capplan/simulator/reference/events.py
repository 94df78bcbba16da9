"""The total order of events, and SimPy's environment, event and process in that order.

SimPy orders the events of one instant by their creation, which another engine cannot repeat. Here every event has its
own key, and events happen in the order of their keys::

    (tick, kind, request, step)

`kind` is an `EventKind`. `request` is the number of the attempt in the order of starting; for START it is the number
of the session or client, for CHANGE that of the timeline event, for PROCESS that of the station. `step` is the number
of the step in its flow, in the order of `walk`; for START it is the position in the session, for TIMEOUT 0, for CHANGE
a `Stage`, for PROCESS the number of the process. The last three are packed into one integer, the *rank*. No two events
have the same key (the heap would raise `TypeError`).

An event runs to completion: a process continues until it has to wait; a fork starts its branches in order, each until
it waits, and then continues itself; a server that becomes free takes the next visit before the visit that it served
continues. *Other* processes that can continue now (a unit was released, a join or countdown latch is complete) get a
RESUME event of the same tick, and those come before all other kinds. So the order in which events are created decides
nothing.

Ranks below 0 are for the engine itself: with them a processor-sharing station finds the services that end at a tick
before the events of that tick. They change nothing that an event can see, and they are not counted.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from enum import IntEnum
from heapq import heappop, heappush
from typing import Any

import simpy

ProcessGenerator = Generator[simpy.Event, Any, None]
STEP_BITS = 20
REQUEST_BITS = 40


class EventKind(IntEnum):
    """The kind of an event, the first criterion among events of one tick.

    Changes of the system precede what requests do at that tick. A request that completes exactly at its timeout has
    completed.
    """

    RESUME = 0  # the wait of a step is over: for a pool's unit, a join, a countdown latch or a batch
    CHANGE = 1  # of the timeline
    PROCESS = 2  # a pause or background work of a station starts or ends
    SERVICE = 3  # a station completes a visit
    DELAY = 4  # a delay ends
    TIMEOUT = 5  # the client gives up
    START = 6  # a request starts: an arrival, the next one of a session, or the end of a think time


def step_rank(kind: EventKind, step: int) -> int:
    """Return the part of a rank that is known when compiling a flow; add `request_rank` for the whole rank."""
    return kind << (STEP_BITS + REQUEST_BITS) | step


def request_rank(request: int) -> int:
    """Return the part of a rank that identifies the request."""
    return request << STEP_BITS


def resume_rank(rank: int) -> int:
    """Return the rank of the RESUME event of the same request and step."""
    return rank & ((1 << (STEP_BITS + REQUEST_BITS)) - 1)


class Dropped(Exception):  # noqa: N818 - happens to requests; not an error of the program
    """A dropped request: thrown outwards through the steps that wait for it."""


class OrderedEnvironment(simpy.Environment):
    """SimPy's environment with an integer clock (`tick`) and the total order of events.

    `background_entries` counts the entries of the future event list that start nothing by themselves: checks for
    completed services, and one event for each process of a station.
    """

    def __init__(self) -> None:
        super().__init__(0)
        self.tick = 0
        self.future_events: list[tuple[int, int, OrderedEvent]] = []
        self.count = 0
        self.background_entries = 0

    def schedule(self, event: simpy.Event, priority: int = 1, delay: float = 0) -> None:  # noqa: ARG002  # SimPy's signature
        """Raise the error of a process that fails (SimPy calls this); nobody waits for its end."""
        if not event._ok:
            raise event._value

    def run_all(self, end: int = 0, service_continues: Callable[[], bool] = lambda: True) -> None:
        """Run all events in order.

        Processes of stations never end. They run to tick `end`, and beyond it while there are other events or
        `service_continues` tells that a visit may still complete.
        """
        events = self.future_events
        while events:
            if len(events) == self.background_entries and events[0][0] >= end and not service_continues():
                return
            self.tick, rank, event = heappop(events)
            self._now = self.tick
            self.count += rank >= 0
            callbacks, event.callbacks = event.callbacks, None  # type: ignore[assignment] # SimPy's mark of the past
            for callback in callbacks:
                callback(event)


class OrderedEvent(simpy.Event):
    """An event that happens at a given tick and rank."""

    def __init__(self, env: OrderedEnvironment, callback: Callable[[simpy.Event], None] | None = None) -> None:
        self.env: OrderedEnvironment = env
        self.callbacks = [] if callback is None else [callback]
        self._ok = True
        self._value = None

    def at(self, tick: int, rank: int) -> OrderedEvent:
        """Schedule the event for `tick`."""
        heappush(self.env.future_events, (tick, rank, self))
        return self

    def now(self, rank: int, error: Exception | None = None) -> None:
        """Schedule the event for this tick; waiting processes continue, or get `error` thrown."""
        if error is not None:
            self._ok = False
            self._value = error
        heappush(self.env.future_events, (self.env.tick, rank, self))


class OrderedProcess(simpy.Process):
    """A process that starts at once, inside the event that creates it, and whose end has no event."""

    def __init__(self, env: OrderedEnvironment, generator: ProcessGenerator) -> None:
        # As in SimPy's own constructor, except that no event is scheduled for the start.
        self.env = env
        self.callbacks = []
        self._generator = generator
        self._resume(_START)


class _Started(simpy.Event):
    def __init__(self) -> None:
        self._ok = True
        self._value = None


_START = _Started()
