"""The load generator: closed clients, and an open load whose latency counts from the intended start.

One thread runs all requests in an event loop that waits to the microsecond.
"""

from __future__ import annotations

import asyncio
import gc
import os
import selectors
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from hdrh.histogram import HdrHistogram
from numpy.typing import NDArray

from capplan.lab.processes import Process, cpu_s

T = TypeVar("T")
Request = Callable[[int], Awaitable[Any]]
"""Makes the request of a number, and returns when it is answered."""
PARTS = 5
"""Parts of a run, whose scatter shows how exactly it measures."""
_MOST_NS = 3_600_000_000_000
_DIGITS = 3
_YIELD_EVERY = 16  # requests that are late and sent in a row before answers are read
_MOST_UNDER_WAY = 4096
_PATIENCE_S = 15.0  # for the last answers


@dataclass(frozen=True)
class Servers:
    """The processes that answer: nodes, whose CPU is measured one by one, and what else belongs to the lab."""

    nodes: tuple[Process, ...] = ()
    beside: tuple[Process, ...] = ()

    @property
    def all(self) -> tuple[Process, ...]:
        """All of them."""
        return self.nodes + self.beside


_NONE = Servers()


@dataclass(frozen=True)
class Part:
    """A part of a run: completed requests, and the CPU time of servers, generator and its thread, in seconds."""

    completed: int
    server_cpu_s: float
    client_cpu_s: float
    thread_cpu_s: float


@dataclass(frozen=True)
class Sample:
    """The requests of one run.

    Attributes
    ----------
    began_s : float
        When it began, in seconds since 1970.
    duration_s : float
        Time in which requests were counted.
    latencies_s : ndarray of float (requests,)
        Latencies of completed requests.
    lateness_s : ndarray of float (requests,)
        How long after its intended start each was sent; empty in a closed run.
    errors : int
        Requests that failed or were not answered in time.
    client_cpu_s : float
        CPU time of this process.
    thread_cpu_s : float
        CPU time of the thread that runs the event loop.
    thread_waited_s : float
        Time for which that thread could have run and no core was free.
    server_cpu_s : tuple of float
        CPU time of each server.
    others_cores : float
        Cores that other processes of this machine used.
    parts : tuple of Part
        The run in parts of equal length.
    """

    began_s: float
    duration_s: float
    latencies_s: NDArray[np.float64]
    lateness_s: NDArray[np.float64]
    errors: int
    client_cpu_s: float
    thread_cpu_s: float
    thread_waited_s: float
    server_cpu_s: tuple[float, ...]
    others_cores: float
    parts: tuple[Part, ...]

    @property
    def completed(self) -> int:
        """Completed requests."""
        return len(self.latencies_s)

    @property
    def throughput_per_s(self) -> float:
        """Completed requests per second."""
        return self.completed / self.duration_s

    @property
    def client_percent(self) -> float:
        """CPU of the generator's busiest thread, per cent of what it could get of a core."""
        free_s = max(self.duration_s - self.thread_waited_s, self.thread_cpu_s, 1e-9)
        return 100.0 * self.thread_cpu_s / free_s

    @property
    def parts_with_requests(self) -> tuple[Part, ...]:
        """Parts in which requests were completed; the whole run if it was too short for any."""
        whole = Part(self.completed, sum(self.server_cpu_s), self.client_cpu_s, self.thread_cpu_s)
        return tuple(each for each in self.parts if each.completed) or (whole,)

    def histogram(self) -> HdrHistogram:
        """Return all latencies as a histogram in ns."""
        found = HdrHistogram(1, _MOST_NS, _DIGITS)
        values, counts = np.unique(np.rint(self.latencies_s * 1e9).astype(np.int64), return_counts=True)
        for value, count in zip(values.tolist(), counts.tolist(), strict=True):
            found.record_value(max(value, 1), count)
        return found


@dataclass
class _Counted:
    """What the requests of a run leave."""

    latencies: list[float] = field(default_factory=list)
    lateness: list[float] = field(default_factory=list)
    errors: int = 0


class _Meter:
    """Reads the clocks at the start of a run, between its parts, and at its end."""

    def __init__(self, servers: Servers, counted: _Counted, duration_s: float) -> None:
        self._servers, self._counted = servers, counted
        self.began_s = time.time()
        self._clocks, self._waited_s, self._machine_s = self._read(), _waited_s(), _machine_cpu_s()
        self._marks = [self._mark()]
        self.start = time.perf_counter()
        self._marking = asyncio.ensure_future(self._mark_parts(duration_s / PARTS))

    async def _mark_parts(self, part_s: float) -> None:
        for _ in range(PARTS):
            await asyncio.sleep(part_s)
            self._marks.append(self._mark())

    def _mark(self) -> Part:
        client, thread, *servers = self._read()
        return Part(len(self._counted.latencies), sum(servers[: len(self._servers.nodes)]), client, thread)

    def _read(self) -> list[float]:
        return [time.process_time(), time.thread_time(), *map(cpu_s, self._servers.all)]

    def _parts(self) -> tuple[Part, ...]:
        return tuple(
            Part(
                after.completed - before.completed,
                after.server_cpu_s - before.server_cpu_s,
                after.client_cpu_s - before.client_cpu_s,
                after.thread_cpu_s - before.thread_cpu_s,
            )
            for before, after in pairwise(self._marks)
        )

    def sample(self) -> Sample:
        end, counted = time.perf_counter(), self._counted
        self._marking.cancel()
        client, thread, *servers = (after - before for before, after in zip(self._clocks, self._read(), strict=True))
        others = max(0.0, _machine_cpu_s() - self._machine_s - client - sum(servers))
        return Sample(
            self.began_s,
            end - self.start,
            np.array(counted.latencies),
            np.array(counted.lateness),
            counted.errors,
            client,
            thread,
            _waited_s() - self._waited_s,
            tuple(servers[: len(self._servers.nodes)]),
            others / (end - self.start),
            self._parts(),
        )


def _waited_s() -> float:
    """Return how long this thread could have run and no core was free."""
    try:
        cells = Path("/proc/thread-self/schedstat").read_text(encoding="ascii").split()
    except OSError:
        return 0.0  # the kernel does not count it
    return int(cells[1]) / 1e9


def _machine_cpu_s() -> float:
    """Return the CPU time that all processes of this machine have used, or that its host took from it."""
    with Path("/proc/stat").open(encoding="ascii") as lines:
        cells = list(map(int, next(lines).split()[1:9]))
    user, nice, system, _idle, _wait, interrupt, soft, stolen = cells
    return (user + nice + system + interrupt + soft + stolen) / os.sysconf("SC_CLK_TCK")


def run(main: Awaitable[T]) -> T:
    """Run the main coroutine of a measurement in an event loop that waits to the microsecond (epoll: millisecond)."""

    async def awaited() -> T:
        return await main

    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selectors.SelectSelector())) as runner:
        return runner.run(awaited())


async def closed(
    request: Request, clients: int, duration_s: float, most: int, servers: Servers = _NONE, first: int = 0
) -> Sample:
    """Let clients make one request after the other, without time to think.

    Parameters
    ----------
    request : function
        Makes a request.
    clients : int
        How many clients there are.
    duration_s : float
        After which no request is started.
    most : int
        Requests after which no request is started.
    servers : Servers
        Whose CPU time is measured.
    first : int
        Number of the first request.
    """
    counted, numbers = _Counted(), iter(range(first, first + most))
    with _undisturbed():
        meter = _Meter(servers, counted, duration_s)
        deadline = meter.start + duration_s

        async def client() -> None:
            now = time.perf_counter()
            while now < deadline and (number := next(numbers, None)) is not None:
                began = now
                try:
                    await request(number)
                except Exception:
                    counted.errors += 1
                    now = time.perf_counter()
                else:
                    now = time.perf_counter()
                    counted.latencies.append(now - began)

        await asyncio.gather(*(client() for _ in range(clients)))
        return meter.sample()


def arrivals(rate_per_s: float, duration_s: float, most: int, seed: int) -> NDArray[np.float64]:
    """Return the intended starts of a Poisson stream in seconds."""
    random = np.random.default_rng(seed)
    count = min(most, int(rate_per_s * duration_s + 10 * (rate_per_s * duration_s) ** 0.5 + 10))
    starts = np.cumsum(random.exponential(1 / rate_per_s, count))
    return starts[starts < duration_s]


async def paced(request: Request, starts: NDArray[np.float64], servers: Servers = _NONE, first: int = 0) -> Sample:
    """Start requests at their intended times, whatever happens to the others.

    Latency counts from the intended start, so that a request that is sent late has waited.
    """
    counted, under_way = _Counted(), set[asyncio.Task[None]]()
    with _undisturbed():
        meter = _Meter(servers, counted, float(starts[-1]) if len(starts) else 0.0)
        sent_late = 0

        async def one(number: int, intended: float) -> None:
            counted.lateness.append(time.perf_counter() - intended)
            try:
                await request(number)
            except Exception:
                counted.errors += 1
            else:
                counted.latencies.append(time.perf_counter() - intended)

        for number, start in enumerate(starts.tolist(), start=first):
            intended = meter.start + start
            left = intended - time.perf_counter()
            if left > 0:
                await asyncio.sleep(left)
                sent_late = 0
            elif (sent_late := sent_late + 1) % _YIELD_EVERY == 0:
                await asyncio.sleep(0)
            while len(under_way) >= _MOST_UNDER_WAY:
                await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
            task = asyncio.ensure_future(one(number, intended))
            under_way.add(task)
            task.add_done_callback(under_way.discard)
        unanswered: set[asyncio.Task[None]] = set()
        if under_way:
            _, unanswered = await asyncio.wait(set(under_way), timeout=_PATIENCE_S)
        counted.errors += len(unanswered)
        found = meter.sample()
    for task in unanswered:
        task.cancel()
    return found


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Collect no garbage while latencies are measured."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
