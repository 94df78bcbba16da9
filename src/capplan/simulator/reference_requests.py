"""Requests of the SimPy engine, the sessions that they belong to, and the book that is kept of them."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field

import numpy as np

from capplan.simulator.reference_events import request_rank
from capplan.simulator.run import Requests, Status
from capplan.simulator.sampling import Sampler
from capplan.simulator.streams import request_key


@dataclass(frozen=True)
class Source:
    """A session or single request class that traffic consists of, with its names looked up."""

    index: int
    key: int
    classes: tuple[int, ...]
    gaps: tuple[Sampler, ...] = ()
    sticky: bool = False


@dataclass
class Conversation:
    """One session (or single request) under way.

    `unit` is the number of the arrival or of the client, `first` the position of the first request. `routes` are the
    targets chosen so far, by route, when all requests follow the first one's routes.
    """

    source: Source
    unit: int
    first: int = 0
    token: int = field(init=False)
    routes: dict[tuple[int, int], int] | None = field(init=False)

    def __post_init__(self) -> None:
        self.token = request_key(self.source.key, self.unit, self.first)
        self.routes = {} if self.source.sticky else None


class Request:
    """One request: its number in the order of starting, its rank among ties and the key of its draws."""

    __slots__ = ("conversation", "ended", "key", "number", "place", "rank")

    def __init__(self, number: int, conversation: Conversation, place: int) -> None:
        self.number = number
        self.conversation = conversation
        self.place = place
        self.rank = request_rank(number)
        self.key = request_key(conversation.source.key, conversation.unit, self.position)
        self.ended = False

    @property
    def position(self) -> int:
        """Its position among the requests of its session or client."""
        return self.conversation.first + self.place

    @property
    def request_class(self) -> int:
        """The index of its class."""
        return self.conversation.source.classes[self.place]


class Book:
    """One row per request; the columns are those of `Requests`."""

    def __init__(self) -> None:
        self.source = array("q")
        self.request_class = array("q")
        self.session = array("q")
        self.position = array("q")
        self.intended = array("q")
        self.start = array("q")
        self.end = array("q")
        self.status = array("q")

    def started(self, request: Request, intended: int, now: int) -> None:
        """Open the row of a request."""
        self.source.append(request.conversation.source.index)
        self.request_class.append(request.request_class)
        self.session.append(request.conversation.unit)
        self.position.append(request.position)
        self.intended.append(intended)
        self.start.append(now)
        self.end.append(-1)
        self.status.append(Status.UNFINISHED)

    def ended(self, request: Request, status: Status, now: int) -> None:
        """Close the row of a request."""
        request.ended = True
        self.end[request.number] = now
        self.status[request.number] = status

    def requests(self) -> Requests:
        """Return all rows."""
        columns = (self.source, self.request_class, self.session, self.position)
        times = (self.intended, self.start, self.end, self.status)
        return Requests(*(np.array(column, dtype=np.int64) for column in (*columns, *times)))
