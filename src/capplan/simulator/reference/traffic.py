"""Traffic of the SimPy engine: sessions, requests and attempts, their starts, and the reaction to responses."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import dataclass, field

import numpy as np

from capplan.models.language.traffic import Closed, Mix, Open, Throttled, Trace
from capplan.simulator.reference.events import (
    STEP_BITS,
    Dropped,
    EventKind,
    OrderedEnvironment,
    OrderedEvent,
    OrderedProcess,
    ProcessGenerator,
    request_rank,
    step_rank,
)
from capplan.simulator.results.tally import Requests, Status
from capplan.simulator.specification.sampling import picker, tick_sampler
from capplan.simulator.specification.streams import fold, name_key, request_key, uniform
from capplan.simulator.specification.timeline import (
    Segment,
    arrival_ticks,
    mean_length,
    pacing_tick,
    rounded,
    segment_number,
    trace_ticks,
)


@dataclass(frozen=True)
class TrafficSource:
    """A session or single request class of the traffic, with its names looked up."""

    index: int
    key: int
    classes: tuple[int, ...]
    gaps: tuple[Callable[[float], int], ...] = ()
    sticky: bool = False


@dataclass
class ActiveSession:
    """One session (or single request) in progress.

    `unit` is the number of the arrival or of the client, `first` the position of the first request, `intended` the tick
    at which that should have started, if it may start late. `routes` are the targets chosen so far, by route, when all
    requests follow the routes of the first.
    """

    source: TrafficSource
    unit: int
    first: int = 0
    intended: int | None = None
    began: int = field(init=False)
    routes: dict[tuple[int, int], int] | None = field(init=False)

    def __post_init__(self) -> None:
        self.routes = {} if self.source.sticky else None

    @property
    def token(self) -> int:
        """The token of `token_aware` routes: the same for all requests of the session."""
        return request_key(self.source.key, self.unit, self.first)


@dataclass
class Request:
    """A request: its row in the log, its place in the session, and the number of attempts started."""

    row: int
    session: ActiveSession
    place: int
    attempts: int = 0

    @property
    def position(self) -> int:
        """Its position among the requests of its session or client."""
        return self.session.first + self.place

    @property
    def request_class(self) -> int:
        """The index of its class."""
        return self.session.source.classes[self.place]

    def key(self, attempt: int) -> int:
        """Return the key of the draws of one attempt."""
        return request_key(self.session.source.key, self.session.unit, self.position, attempt)


class Attempt:
    """An attempt at a request: its rank among ties (its number in starting order), and its key.

    `members` are the members and sets that the steps around have bound. A step that binds a name, and each branch of a
    fan-out, runs with a copy.
    """

    __slots__ = ("ended", "key", "members", "rank", "request", "session")

    def __init__(self, number: int, request: Request) -> None:
        self.request, self.session = request, request.session
        self.rank = request_rank(number)
        self.key = request.key(request.attempts)
        self.ended = False
        self.members: dict[str, int | tuple[int, ...]] = {}

    def member(self, name: str) -> int:
        """Return the member bound to a name."""
        return self.members_of(name)[0]

    def members_of(self, name: str) -> tuple[int, ...]:
        """Return the set bound to a name; a member is a set of one."""
        members = self.members[name]
        return members if isinstance(members, tuple) else (members,)

    def with_bound(self, name: str, members: int | tuple[int, ...]) -> Attempt:
        """Return a copy with a name bound to a member or a set."""
        inside = copy(self)
        inside.members = {**self.members, name: members}
        return inside

    def branch(self, name: str, member: int, offset: int) -> Attempt:
        """Return a copy for the branch of a member, with draws of its own and `offset` added to its rank."""
        inside = self.with_bound(name, member)
        inside.key, inside.rank = fold(self.key, member), self.rank + offset
        return inside


class RequestLog:
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

    def started(self, session: ActiveSession, place: int, intended: int, now: int) -> Request:
        """Open the row of a request that starts now."""
        request = Request(len(self), session, place)
        self.source.append(session.source.index)
        self.request_class.append(request.request_class)
        self.session.append(session.unit)
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


MIX, GAP, THINK = (name_key(name) for name in ("mix", "gap", "think"))


@dataclass(frozen=True)
class CompiledFlow:
    """The compiled flow of a request class, its client timeout, and its retry waits."""

    run: Callable[[Attempt], ProcessGenerator]
    timeout: int | None
    backoffs: tuple[int, ...] = ()


class Clients:
    """The clients: they start requests, give up, retry, and continue their sessions.

    Nothing starts from tick `end` on; `most` is the largest number of requests.
    """

    def __init__(
        self, env: OrderedEnvironment, log: RequestLog, flows: list[CompiledFlow], end: int, most: int | None
    ) -> None:
        self.env, self.log, self.flows, self.end, self.most = env, log, flows, end, most
        self.session_over: Callable[[Request], None] = lambda _: None
        self._attempts = 0

    @property
    def full(self) -> bool:
        """Whether no more requests may start."""
        return self.most is not None and len(self.log) >= self.most

    def start_at(self, tick: int, session: ActiveSession, place: int = 0) -> None:
        """Start request number `place` of a session at `tick`, unless the traffic has ended by then."""
        if tick < self.end:
            rank = start_rank(session.unit, session.first + place)
            OrderedEvent(self.env, lambda _: self.start(session, place)).at(tick, rank)

    def start(self, session: ActiveSession, place: int = 0) -> None:
        """Start a request now, unless the limit is reached."""
        if self.full:
            return
        now = intended = self.env.tick
        if place == 0:
            session.began = now
            intended = now if session.intended is None else session.intended
        self._try(self.log.started(session, place, intended, now))

    def _try(self, request: Request) -> None:
        """Start an attempt now."""
        attempt = Attempt(self._attempts, request)
        self._attempts += 1
        self.log.attempted(request)
        flow = self.flows[request.request_class]
        if flow.timeout is not None:
            give_up = OrderedEvent(self.env, lambda _: self._ended(attempt, Status.TIMED_OUT))
            give_up.at(self.env.tick + flow.timeout, attempt.rank + step_rank(EventKind.TIMEOUT, 0))
        OrderedProcess(self.env, self._done(flow, attempt))

    def _done(self, flow: CompiledFlow, attempt: Attempt) -> ProcessGenerator:
        try:
            yield from flow.run(attempt)
        except Dropped:
            self._ended(attempt, Status.DROPPED)
        else:
            self._ended(attempt, Status.COMPLETED)

    def _ended(self, attempt: Attempt, status: Status) -> None:
        """End an attempt unless it has already ended: the client retries, or the request ends with this status."""
        if attempt.ended:
            return
        attempt.ended = True
        request = attempt.request
        if status is Status.COMPLETED or not self._retries(request):
            self.log.ended(request, status, self.env.tick)
            self._continue_session(request, status)

    def _retries(self, request: Request) -> bool:
        backoffs = self.flows[request.request_class].backoffs
        if request.attempts > len(backoffs):
            return False
        again = self.env.tick + backoffs[request.attempts - 1]
        if again >= self.end:
            return False
        rank = start_rank(request.session.unit, request.position)
        OrderedEvent(self.env, lambda _: self._try(request)).at(again, rank)
        return True

    def _continue_session(self, request: Request, status: Status) -> None:
        """Continue the session; a failed request ends it."""
        source, place = request.session.source, request.place
        if status is Status.COMPLETED and place < len(source.gaps):
            gap = source.gaps[place](uniform(request.key(0), GAP))
            self.start_at(self.env.tick + gap, request.session, place + 1)
        else:
            self.session_over(request)


def start_rank(unit: int, position: int) -> int:
    """Return the rank of a start; positions may wrap, because a client has only one start at a time."""
    return request_rank(unit) + step_rank(EventKind.START, position & ((1 << STEP_BITS) - 1))


class TrafficMix:
    """The mix of the traffic: which session or class starts, and the multiplier of the traffic."""

    def __init__(self, mix: Mix, sources: list[TrafficSource], parts: tuple[Segment, ...], key: int) -> None:
        self.sources, self.parts, self.key = sources, parts, key
        self.mean_length = mean_length(mix, [len(source.classes) for source in sources])
        self._picks = [picker(part.shares) for part in parts]

    def draw(self, unit: int, position: int, tick: int) -> TrafficSource:
        """Draw the session or class that client (or arrival) `unit` starts, with the weights at `tick`."""
        if len(self.sources) == 1:
            return self.sources[0]
        pick = self._picks[segment_number(self.parts, tick)]
        return self.sources[pick(uniform(request_key(self.key, unit, position), MIX))]

    def multiplier(self, tick: int) -> float:
        """Return the multiplier of the traffic at `tick`."""
        return self.parts[segment_number(self.parts, tick)].multiplier


def begin_open(clients: Clients, traffic: Open, mix: TrafficMix) -> None:
    """Start sessions at their arrival times, from tick 0 to the end of the traffic."""
    rate_per_s, arrivals = float(traffic.rate_per_s) / mix.mean_length, traffic.arrivals
    ticks: Iterable[int]
    if isinstance(arrivals, Trace):
        ticks = trace_ticks(arrivals, rate_per_s, mix.parts)
    else:
        ticks = arrival_ticks(mix.key, rate_per_s, arrivals, mix.parts)

    def arrive() -> ProcessGenerator:
        for unit, tick in enumerate(ticks):
            if tick >= clients.end or clients.full:
                return
            yield OrderedEvent(clients.env).at(tick, start_rank(unit, 0))
            clients.start(ActiveSession(mix.draw(unit, 0, tick), unit))

    OrderedProcess(clients.env, arrive())


def begin_closed(clients: Clients, traffic: Closed, mix: TrafficMix) -> None:
    """Let every client think, send a request and wait, over and over, first with a think time."""
    draw = tick_sampler(traffic.think)

    def think(unit: int, position: int, least: int) -> None:
        now = clients.env.tick
        pause, multiplier = draw(uniform(request_key(mix.key, unit, position), THINK)), mix.multiplier(now)
        pause = pause if multiplier == 1 else rounded(pause / multiplier)
        session = ActiveSession(mix.draw(unit, position, now), unit, position)
        clients.start_at(now + max(least, pause), session)

    def think_again(request: Request) -> None:
        took_no_time = request.session.began == clients.env.tick  # an immediate restart would never end
        think(request.session.unit, request.position + 1, least=int(took_no_time))

    clients.session_over = think_again
    for unit in range(traffic.clients):
        think(unit, 0, least=0)


def begin_throttled(clients: Clients, traffic: Throttled, mix: TrafficMix) -> None:
    """Let every client start on its pacing ticks, or late when the previous response was late."""
    rate_per_s, ticks_used = float(traffic.rate_per_s), [0] * traffic.clients

    def start_next(unit: int, position: int) -> None:
        number = ticks_used[unit] * traffic.clients + unit
        ticks_used[unit] += 1
        tick = pacing_tick(mix.parts, number, mix.mean_length, rate_per_s)
        session = ActiveSession(mix.draw(unit, position, tick), unit, position, intended=tick)
        clients.start_at(max(tick, clients.env.tick), session)

    clients.session_over = lambda request: start_next(request.session.unit, request.position + 1)
    for unit in range(traffic.clients):
        start_next(unit, 0)
