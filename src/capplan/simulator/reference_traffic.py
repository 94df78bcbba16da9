"""Traffic of the SimPy engine: when sessions and requests start, and what follows an answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from capplan.models.traffic import Bursty, Closed, Open
from capplan.simulator.clock import TICKS_PER_S, to_ticks
from capplan.simulator.reference_events import (
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
from capplan.simulator.reference_requests import Book, Conversation, Request, Source
from capplan.simulator.run import Status
from capplan.simulator.sampling import picker, tick_sampler
from capplan.simulator.streams import name_key, request_key, source_key, uniform

ARRIVAL, MIX, GAP, THINK = (name_key(name) for name in ("arrival", "mix", "gap", "think"))
BURST = name_key("burst")


@dataclass(frozen=True)
class Flow:
    """What requests of one class do, compiled, and how long their clients wait."""

    run: Callable[[Request], Happening]
    timeout: int | None


class Clients:
    """Those who ask: they start requests, give up, and go on with their sessions."""

    def __init__(self, clockwork: Clockwork, book: Book, flows: list[Flow], end: int) -> None:
        self.clockwork, self.book, self.flows, self.end = clockwork, book, flows, end
        self.session_over: Callable[[Request], None] = lambda _: None
        self._started = 0

    def start_at(self, tick: int, conversation: Conversation, place: int = 0) -> None:
        """Let request number `place` of a session start at `tick`, unless the traffic has ended by then."""
        if tick < self.end:
            rank = start_rank(conversation.unit, conversation.first + place)
            Moment(self.clockwork, lambda _: self.start(conversation, place)).at(tick, rank)

    def start(self, conversation: Conversation, place: int = 0) -> None:
        """Start a request now."""
        now = self.clockwork.tick
        request = Request(self._started, conversation, place)
        self._started += 1
        self.book.started(request, intended=now, now=now)
        flow = self.flows[request.request_class]
        if flow.timeout is not None:
            give_up = Moment(self.clockwork, lambda _: self._ended(request, Status.TIMED_OUT))
            give_up.at(now + flow.timeout, request.rank + step_rank(Kind.TIMEOUT, 0))
        Work(self.clockwork, self._done(flow, request))

    def _done(self, flow: Flow, request: Request) -> Happening:
        try:
            yield from flow.run(request)
        except Dropped:
            self._ended(request, Status.DROPPED)
        else:
            self._ended(request, Status.COMPLETED)

    def _ended(self, request: Request, status: Status) -> None:
        """Tell the client, unless it has been told before; a request that was not completed ends its session."""
        if request.ended:
            return
        self.book.ended(request, status, self.clockwork.tick)
        source, place = request.conversation.source, request.place
        if status is Status.COMPLETED and place < len(source.gaps):
            gap = source.gaps[place](uniform(request.key, GAP))
            self.start_at(self.clockwork.tick + gap, request.conversation, place + 1)
        else:
            self.session_over(request)


def start_rank(unit: int, position: int) -> int:
    """Return the rank of a start; a client has one at a time, so positions may wrap."""
    return request_rank(unit) + step_rank(Kind.START, position & ((1 << STEP_BITS) - 1))


class Mix:
    """Which session or class an arrival is."""

    def __init__(self, shares: dict[str, float], sources: list[Source]) -> None:
        self.sources = sources
        self.mean_length = sum(
            share * len(source.classes) for share, source in zip(shares.values(), sources, strict=True)
        )
        self._pick = picker(tuple(shares.values()))

    def draw(self, key: int) -> Source:
        """Draw the source of the arrival with this key."""
        return self.sources[self._pick(uniform(key, MIX))]


def begin_open(clients: Clients, traffic: Open, mix: Mix, root: int) -> None:
    """Let sessions arrive from tick 0 until the end of the traffic."""
    key = source_key(root, "traffic")
    rate_per_s = float(traffic.rate_per_s) / mix.mean_length
    arrivals = traffic.arrivals
    ticks = bursty_ticks(key, rate_per_s, arrivals) if isinstance(arrivals, Bursty) else poisson_ticks(key, rate_per_s)

    def arrive() -> Happening:
        for unit, tick in enumerate(ticks):
            if tick >= clients.end:
                return
            yield Moment(clients.clockwork).at(tick, start_rank(unit, 0))
            clients.start(Conversation(mix.draw(request_key(key, unit, 0)), unit))

    Work(clients.clockwork, arrive())


def _standard_exponential(key: int, unit: int) -> float:
    return -math.log1p(-uniform(request_key(key, unit, 0), ARRIVAL))


def poisson_ticks(key: int, rate_per_s: float) -> Iterator[int]:
    """Yield arrival times: gaps are exponential and rounded to ticks one by one."""
    tick, unit = 0, 0
    while rate_per_s > 0:
        tick += to_ticks(_standard_exponential(key, unit) / rate_per_s)
        unit += 1
        yield tick


def bursty_ticks(key: int, rate_per_s: float, law: Bursty) -> Iterator[int]:
    """Yield the arrival times of the two-state process, in its stationary state at tick 0.

    An arrival comes when the integral of the rate has grown by a standard exponential number: the same one as for
    Poisson arrivals, so both kinds of traffic have common random numbers. State number k has a draw of its own.
    """
    phases = _phases(key, rate_per_s, law)
    tick, unit = 0, 0
    rate, until = next(phases)
    while rate_per_s > 0:
        missing = _standard_exponential(key, unit)
        while missing > (here := rate * (until - tick) / TICKS_PER_S):
            missing -= here
            tick = until
            rate, until = next(phases)
        tick = min(until, tick + to_ticks(missing / rate))
        unit += 1
        yield tick


def _phases(key: int, rate_per_s: float, law: Bursty) -> Iterator[tuple[float, int]]:
    """Yield the rate and the end of each phase, bursts and quiet ones in turn."""
    fraction, ratio, length_s = float(law.burst_fraction), float(law.burst_ratio), float(law.burst_length_s)
    burst = (rate_per_s * ratio, length_s)
    quiet = (max(0.0, rate_per_s * (1 - ratio * fraction) / (1 - fraction)), length_s * (1 - fraction) / fraction)
    bursting = uniform(request_key(key, 0, 1), BURST) < fraction
    tick, number = 0, 0
    while True:
        rate, mean_s = burst if bursting else quiet
        tick += to_ticks(-mean_s * math.log1p(-uniform(request_key(key, number, 0), BURST)))
        yield rate, tick
        bursting = not bursting
        number += 1


def begin_closed(clients: Clients, traffic: Closed, mix: Mix, root: int) -> None:
    """Let every client think, ask and wait, again and again; it thinks first, so that clients do not start as one."""
    key, think = source_key(root, "traffic"), tick_sampler(traffic.think)

    def ask_again(unit: int, position: int) -> None:
        mine = request_key(key, unit, position)
        pause = think(uniform(mine, THINK))
        clients.start_at(clients.clockwork.tick + pause, Conversation(mix.draw(mine), unit, position))

    clients.session_over = lambda request: ask_again(request.conversation.unit, request.position + 1)
    for unit in range(traffic.clients):
        ask_again(unit, 0)
