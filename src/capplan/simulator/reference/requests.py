"""Requests of the SimPy engine, their attempts, the sessions that they belong to, and the book that is kept of them."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from capplan.simulator.reference.events import request_rank
from capplan.simulator.results.run import Requests, Status
from capplan.simulator.specification.streams import request_key


@dataclass(frozen=True)
class Source:
    """A session or single request class that traffic consists of, with its names looked up."""

    index: int
    key: int
    classes: tuple[int, ...]
    gaps: tuple[Callable[[float], int], ...] = ()
    sticky: bool = False


@dataclass
class Conversation:
    """One session (or single request) under way.

    `unit` is the number of the arrival or of the client, `first` the position of the first request, `intended` when
    that should have started, if it may start late. `routes` are the targets chosen so far, by route, when all requests
    follow the first one's routes.
    """

    source: Source
    unit: int
    first: int = 0
    intended: int | None = None
    began: int = field(init=False)
    routes: dict[tuple[int, int], int] | None = field(init=False)

    def __post_init__(self) -> None:
        self.routes = {} if self.source.sticky else None

    @property
    def token(self) -> int:
        """What `token_aware` routes go by: the same for all of its requests."""
        return request_key(self.source.key, self.unit, self.first)


@dataclass
class Request:
    """One request: the row of its book, its place in its session, and how many attempts have started."""

    row: int
    conversation: Conversation
    place: int
    attempts: int = 0

    @property
    def position(self) -> int:
        """Its position among the requests of its session or client."""
        return self.conversation.first + self.place

    @property
    def request_class(self) -> int:
        """The index of its class."""
        return self.conversation.source.classes[self.place]

    def key(self, attempt: int) -> int:
        """Return the key of the draws of one attempt."""
        return request_key(self.conversation.source.key, self.conversation.unit, self.position, attempt)


class Attempt:
    """One attempt at a request: its rank among ties, which is its number in the order of starting, and its key."""

    __slots__ = ("conversation", "ended", "key", "rank", "request")

    def __init__(self, number: int, request: Request) -> None:
        self.request, self.conversation = request, request.conversation
        self.rank = request_rank(number)
        self.key = request.key(request.attempts)
        self.ended = False


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
        self.attempts = array("q")

    def __len__(self) -> int:
        """Return the number of requests so far."""
        return len(self.start)

    def started(self, conversation: Conversation, place: int, intended: int, now: int) -> Request:
        """Open the row of a request that starts now."""
        request = Request(len(self), conversation, place)
        self.source.append(conversation.source.index)
        self.request_class.append(request.request_class)
        self.session.append(conversation.unit)
        self.position.append(request.position)
        self.intended.append(intended)
        self.start.append(now)
        self.end.append(-1)
        self.status.append(Status.UNFINISHED)
        self.attempts.append(0)
        return request

    def attempted(self, request: Request) -> None:
        """Count an attempt."""
        request.attempts += 1
        self.attempts[request.row] = request.attempts

    def ended(self, request: Request, status: Status, now: int) -> None:
        """Close the row of a request."""
        self.end[request.row] = now
        self.status[request.row] = status

    def requests(self) -> Requests:
        """Return all rows."""
        columns = (self.source, self.request_class, self.session, self.position)
        times = (self.intended, self.start, self.end, self.status, self.attempts)
        return Requests(*(np.array(column, dtype=np.int64) for column in (*columns, *times)))
