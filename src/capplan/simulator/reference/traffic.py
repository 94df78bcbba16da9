"""Traffic of the SimPy engine: when sessions and requests start, and what follows an answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from capplan.models.language.traffic import Closed, Mix, Open, Throttled, Trace
from capplan.simulator.reference.events import (
    STEP_BITS,
    Clockwork,
    Dropped,
    Happening,
    Kind,
    Moment,
    Work,
    request_rank,
    step_rank,
)
from capplan.simulator.reference.requests import Attempt, Book, Conversation, Request, Source
from capplan.simulator.results.run import Status
from capplan.simulator.specification.sampling import picker, tick_sampler
from capplan.simulator.specification.streams import name_key, request_key, uniform
from capplan.simulator.specification.traffic_time import (
    Segment,
    arrival_ticks,
    beat_tick,
    mean_length,
    rounded,
    segment_number,
    trace_ticks,
)

MIX, GAP, THINK = (name_key(name) for name in ("mix", "gap", "think"))


@dataclass(frozen=True)
class Flow:
    """What requests of one class do, compiled, how long their clients wait, and after how long they try again."""

    run: Callable[[Attempt], Happening]
    timeout: int | None
    backoffs: tuple[int, ...] = ()


class Clients:
    """Those who ask: they start requests, give up, try again, and go on with their sessions.

    Nothing starts from tick `end` on; `most` is the greatest number of requests.
    """

    def __init__(self, clockwork: Clockwork, book: Book, flows: list[Flow], end: int, most: int | None) -> None:
        self.clockwork, self.book, self.flows, self.end, self.most = clockwork, book, flows, end, most
        self.session_over: Callable[[Request], None] = lambda _: None
        self._attempts = 0

    @property
    def full(self) -> bool:
        """Whether no more requests may start."""
        return self.most is not None and len(self.book) >= self.most

    def start_at(self, tick: int, conversation: Conversation, place: int = 0) -> None:
        """Let request number `place` of a session start at `tick`, unless the traffic has ended by then."""
        if tick < self.end:
            rank = start_rank(conversation.unit, conversation.first + place)
            Moment(self.clockwork, lambda _: self.start(conversation, place)).at(tick, rank)

    def start(self, conversation: Conversation, place: int = 0) -> None:
        """Start a request now, unless there have been enough."""
        if self.full:
            return
        now = intended = self.clockwork.tick
        if place == 0:
            conversation.began = now
            intended = now if conversation.intended is None else conversation.intended
        self._try(self.book.started(conversation, place, intended, now))

    def _try(self, request: Request) -> None:
        """Start an attempt now."""
        attempt = Attempt(self._attempts, request)
        self._attempts += 1
        self.book.attempted(request)
        flow = self.flows[request.request_class]
        if flow.timeout is not None:
            give_up = Moment(self.clockwork, lambda _: self._ended(attempt, Status.TIMED_OUT))
            give_up.at(self.clockwork.tick + flow.timeout, attempt.rank + step_rank(Kind.TIMEOUT, 0))
        Work(self.clockwork, self._done(flow, attempt))

    def _done(self, flow: Flow, attempt: Attempt) -> Happening:
        try:
            yield from flow.run(attempt)
        except Dropped:
            self._ended(attempt, Status.DROPPED)
        else:
            self._ended(attempt, Status.COMPLETED)

    def _ended(self, attempt: Attempt, status: Status) -> None:
        """Tell the client, unless it has been told before: it tries again, or its request has ended so."""
        if attempt.ended:
            return
        attempt.ended = True
        request = attempt.request
        if status is Status.COMPLETED or not self._tries_again(request):
            self.book.ended(request, status, self.clockwork.tick)
            self._go_on(request, status)

    def _tries_again(self, request: Request) -> bool:
        backoffs = self.flows[request.request_class].backoffs
        if request.attempts > len(backoffs):
            return False
        again = self.clockwork.tick + backoffs[request.attempts - 1]
        if again >= self.end:
            return False
        rank = start_rank(request.conversation.unit, request.position)
        Moment(self.clockwork, lambda _: self._try(request)).at(again, rank)
        return True

    def _go_on(self, request: Request, status: Status) -> None:
        """Go on with the session; a request that was not completed ends it."""
        source, place = request.conversation.source, request.place
        if status is Status.COMPLETED and place < len(source.gaps):
            gap = source.gaps[place](uniform(request.key(0), GAP))
            self.start_at(self.clockwork.tick + gap, request.conversation, place + 1)
        else:
            self.session_over(request)


def start_rank(unit: int, position: int) -> int:
    """Return the rank of a start; a client has one at a time, so positions may wrap."""
    return request_rank(unit) + step_rank(Kind.START, position & ((1 << STEP_BITS) - 1))


class Demand:
    """What traffic consists of: which session or class something is that starts, and how much of it there is."""

    def __init__(self, mix: Mix, sources: list[Source], parts: tuple[Segment, ...], key: int) -> None:
        self.sources, self.parts, self.key = sources, parts, key
        self.mean_length = mean_length(mix, [len(source.classes) for source in sources])
        self._picks = [picker(part.shares) for part in parts]

    def draw(self, unit: int, position: int, tick: int) -> Source:
        """Draw the source of what client (or arrival) `unit` starts, with the weights that hold at `tick`."""
        if len(self.sources) == 1:
            return self.sources[0]
        pick = self._picks[segment_number(self.parts, tick)]
        return self.sources[pick(uniform(request_key(self.key, unit, position), MIX))]

    def multiplier(self, tick: int) -> float:
        """Return the multiplier of the traffic that holds at `tick`."""
        return self.parts[segment_number(self.parts, tick)].multiplier


def begin_open(clients: Clients, traffic: Open, demand: Demand) -> None:
    """Let sessions arrive from tick 0 until the end of the traffic."""
    rate_per_s, law = float(traffic.rate_per_s) / demand.mean_length, traffic.arrivals
    ticks: Iterable[int]
    if isinstance(law, Trace):
        ticks = trace_ticks(law, rate_per_s, demand.parts)
    else:
        ticks = arrival_ticks(demand.key, rate_per_s, law, demand.parts)

    def arrive() -> Happening:
        for unit, tick in enumerate(ticks):
            if tick >= clients.end or clients.full:
                return
            yield Moment(clients.clockwork).at(tick, start_rank(unit, 0))
            clients.start(Conversation(demand.draw(unit, 0, tick), unit))

    Work(clients.clockwork, arrive())


def begin_closed(clients: Clients, traffic: Closed, demand: Demand) -> None:
    """Let every client think, ask and wait, again and again; it thinks first, so that clients do not start as one."""
    draw = tick_sampler(traffic.think)

    def think(unit: int, position: int, least: int) -> None:
        now = clients.clockwork.tick
        pause, multiplier = draw(uniform(request_key(demand.key, unit, position), THINK)), demand.multiplier(now)
        pause = pause if multiplier == 1 else rounded(pause / multiplier)
        conversation = Conversation(demand.draw(unit, position, now), unit, position)
        clients.start_at(now + max(least, pause), conversation)

    def think_again(request: Request) -> None:
        took_no_time = request.conversation.began == clients.clockwork.tick  # at once again would be without end
        think(request.conversation.unit, request.position + 1, least=int(took_no_time))

    clients.session_over = think_again
    for unit in range(traffic.clients):
        think(unit, 0, least=0)


def begin_throttled(clients: Clients, traffic: Throttled, demand: Demand) -> None:
    """Let every client start on its beats, or late when the answer to what it has asked before was late."""
    rate_per_s, beats = float(traffic.rate_per_s), [0] * traffic.clients

    def next_beat(unit: int, position: int) -> None:
        beat = beats[unit] * traffic.clients + unit
        beats[unit] += 1
        tick = beat_tick(demand.parts, beat, demand.mean_length, rate_per_s)
        conversation = Conversation(demand.draw(unit, position, tick), unit, position, intended=tick)
        clients.start_at(max(tick, clients.clockwork.tick), conversation)

    clients.session_over = lambda request: next_beat(request.conversation.unit, request.position + 1)
    for unit in range(traffic.clients):
        next_beat(unit, 0)
