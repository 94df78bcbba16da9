"""The load runner: warms up, steps through the loads, checks whether the generator was the limit, writes the row.

A collector says what its target is, how to send one request, and which columns describe it. Requests of Cassandra are
sent by `cql`. Those of other servers are awaited here: one thread runs closed clients and open loads in an event loop
that waits to the microsecond, and latency of an open load counts from the intended start.
"""

from __future__ import annotations

import asyncio
import gc
import os
import platform
import selectors
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import sqrt
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, NamedTuple, TypeVar

import numpy as np
from hdrh.histogram import HdrHistogram
from numpy.typing import NDArray
from scipy.stats import t as student

from capplan.errors import InputError
from capplan.evidence.load_test_row import PERCENTILES, LoadTestRow
from capplan.evidence.microbenchmarks import MicrobenchRow
from capplan.lab.collectors.collector import Progress, Settings, Timed
from capplan.lab.processes import Process, compiler_s, cores, cpu_error_s, cpu_quantum_s, cpu_s, machine

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
BUSY_PERCENT = 80.0
"""CPU of the generator's thread above which it may delay its own requests."""
ADDED = 0.05
"""Share of the median latency that the generator itself may add to an open run."""
LATE = 0.2
"""The same of a generator that knows only how late it sends."""
OTHERS = 0.1
"""Share of all cores that other processes may use."""
_DOUBTS = {
    "generator_limited": "the load generator was the bottleneck: do not fit this run",
    "disturbed": "other processes used more than a tenth of the CPU: repeat on a quiet machine",
}
_BEHIND, _BEHIND_MEDIAN = 100, 10  # values beyond a percentile that is stated
QUANTILES = {"minimum": 0.0, "p50": 0.5, "p99": 0.99, "maximum": 1.0}
"""Statistics of values, as shares."""
WINDOWS, WINDOW_S = 4, 5.0
"""Windows of a warm-up that must agree, and their length: Java compiles hot code for a minute or two."""
_SHORTEST_WINDOW_S = 0.5
_RANGE = 0.10  # of their mean, between the slowest and the fastest
_TREND = 0.05  # of their mean, between the halves
_COMPILING = 0.06  # cores, in each window: two warm nodes compile again with up to 0.055
_IDLE_S = 1.5
_PAUSE_S = 0.3  # between runs, so that leftovers of one do not affect the next


@dataclass(frozen=True)
class Servers:
    """The server processes: nodes, whose CPU is measured one by one, and other processes of the lab."""

    nodes: tuple[Process, ...] = ()
    beside: tuple[Process, ...] = ()

    @property
    def all(self) -> tuple[Process, ...]:
        """All processes."""
        return self.nodes + self.beside


_NONE = Servers()


class Part(NamedTuple):
    """A part of a run: its length, completed requests, and the CPU time of servers, generator and its thread, in s."""

    length_s: float
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
        Time that it took, without that in which the last requests were waited for in vain.
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
    paced : bool
        Whether requests begin at times of their own, and not when a client has its answer.
    added_s : float or None
        What the generator itself adds to a latency, median; None if it does not measure it.
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
    paced: bool = False
    added_s: float | None = None

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
        """CPU of the generator's busiest thread, in per cent of the core time that it could get."""
        free_s = max(self.duration_s - self.thread_waited_s, self.thread_cpu_s, 1e-9)
        return 100.0 * self.thread_cpu_s / free_s

    @property
    def parts_with_requests(self) -> tuple[Part, ...]:
        """Parts in which requests completed; the whole run if it was too short for any."""
        whole = Part(self.duration_s, self.completed, sum(self.server_cpu_s), self.client_cpu_s, self.thread_cpu_s)
        return tuple(each for each in self.parts if each.completed) or (whole,)

    def histogram(self) -> HdrHistogram:
        """Return all latencies as a histogram in ns."""
        found = HdrHistogram(1, _MOST_NS, _DIGITS)
        values, counts = np.unique(np.rint(self.latencies_s * 1e9).astype(np.int64), return_counts=True)
        for value, count in zip(values.tolist(), counts.tolist(), strict=True):
            found.record_value(max(value, 1), count)
        return found


class _Clock(NamedTuple):
    """The time, CPU time of the run's processes, time without a free core, and CPU time of the machine, in seconds."""

    at: float
    own_s: list[float]
    waited_s: float
    machine_s: float


class _Meter:
    """Results of the requests of a run, and the clocks at its start, between its parts, and at its end."""

    def __init__(self, servers: Servers, duration_s: float) -> None:
        self.latencies, self.lateness, self.errors = list[float](), list[float](), 0
        self._servers, self._began_s = servers, time.time()
        self._begin = self._clock()
        self._marks = [self._mark()]
        self.start = self._answered = time.perf_counter()
        self._marking = asyncio.ensure_future(self._mark_parts(duration_s / PARTS))

    async def _mark_parts(self, part_s: float) -> None:
        for _ in range(PARTS):
            await asyncio.sleep(part_s)
            self._marks.append(self._mark())

    def _mark(self) -> Part:
        self._last = self._clock()
        client, thread, *servers = self._last.own_s
        return Part(self._last.at, len(self.latencies), sum(servers[: len(self._servers.nodes)]), client, thread)

    def _read(self) -> list[float]:
        return [time.process_time(), time.thread_time(), *map(cpu_s, self._servers.all)]

    def _clock(self) -> _Clock:
        return _Clock(time.perf_counter(), self._read(), _waited_s(), machine_cpu_s())

    async def measured(self, request: Awaitable[Any], began: float) -> float:
        """Await a request whose latency counts from `began`; return the time of its end."""
        try:
            await request
        except Exception:
            self.errors += 1
        else:
            self.latencies.append(time.perf_counter() - began)
        self._answered = time.perf_counter()
        return self._answered

    async def ended(self, tasks: Iterable[asyncio.Task[None]], patience_s: float) -> Sample:
        """Wait for tasks, but not for ever, and return what was measured."""
        left = set(tasks)
        if left:
            _, left = await asyncio.wait(left, timeout=patience_s)
        self.errors += len(left)
        found = self._sample(in_vain=bool(left))
        for each in left:
            each.cancel()
        return found

    def _sample(self, in_vain: bool) -> Sample:
        """Return what was measured; what was waited for in vain after the intended time is no part of it."""
        end = self._last if in_vain else self._clock()
        self._marking.cancel()
        client, thread, *servers = (after - before for before, after in zip(self._begin.own_s, end.own_s, strict=True))
        others = max(0.0, end.machine_s - self._begin.machine_s - client - sum(servers))
        return Sample(
            self._began_s,
            max(end.at, self._answered) - self.start,
            np.array(self.latencies),
            np.array(self.lateness),
            self.errors,
            client,
            thread,
            end.waited_s - self._begin.waited_s,
            tuple(servers[: len(self._servers.nodes)]),
            others / (end.at - self._begin.at),
            between(self._marks),
        )


def between(marks: Sequence[Part]) -> tuple[Part, ...]:
    """Return what happened between readings that count from the start."""
    return tuple(
        Part(*(end - begin for begin, end in zip(before, after, strict=True)))  # type: ignore[arg-type]  # one by one
        for before, after in pairwise(marks)
    )


def _waited_s() -> float:
    """Return how long this thread was ready to run but had no core."""
    try:
        cells = Path("/proc/thread-self/schedstat").read_text(encoding="ascii").split()
    except OSError:
        return 0.0  # the kernel does not count it
    return int(cells[1]) / 1e9


def machine_cpu_s() -> float:
    """Return the CPU time used by all processes of this machine, including time stolen by its host."""
    with Path("/proc/stat").open(encoding="ascii") as lines:
        cells = list(map(int, next(lines).split()[1:9]))
    user, nice, system, _idle, _wait, interrupt, soft, stolen = cells
    return (user + nice + system + interrupt + soft + stolen) / os.sysconf("SC_CLK_TCK")


def run(main: Awaitable[T]) -> T:
    """Run a measurement's main coroutine in an event loop with microsecond timers (epoll has milliseconds)."""

    async def awaited() -> T:
        return await main

    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selectors.SelectSelector())) as runner:
        return runner.run(awaited())


async def closed(
    request: Request, clients: int, duration_s: float, most: int, servers: Servers = _NONE, first: int = 0
) -> Sample:
    """Let clients send one request after another, without think time.

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
    numbers = iter(range(first, first + most))
    with _metered(servers, duration_s) as meter:
        deadline = meter.start + duration_s

        async def client() -> None:
            now = time.perf_counter()
            while now < deadline and (number := next(numbers, None)) is not None:
                now = await meter.measured(request(number), now)

        return await meter.ended([asyncio.ensure_future(client()) for _ in range(clients)], duration_s + _PATIENCE_S)


def arrivals(rate_per_s: float, duration_s: float, most: int, seed: int) -> NDArray[np.float64]:
    """Return the intended starts of a Poisson stream in seconds."""
    random = np.random.default_rng(seed)
    count = min(most, int(rate_per_s * duration_s + 10 * (rate_per_s * duration_s) ** 0.5 + 10))
    starts = np.cumsum(random.exponential(1 / rate_per_s, count))
    return starts[starts < duration_s]


async def paced(request: Request, starts: NDArray[np.float64], servers: Servers = _NONE, first: int = 0) -> Sample:
    """Start requests at their intended times, independently of earlier ones.

    Latency counts from the intended start, so that a request that is sent late has waited.
    """
    under_way, sent_late = set[asyncio.Task[None]](), 0
    with _metered(servers, float(starts[-1]) if len(starts) else 0.0) as meter:

        async def one(number: int, intended: float) -> None:
            meter.lateness.append(time.perf_counter() - intended)
            await meter.measured(request(number), intended)

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
        return await meter.ended(under_way, _PATIENCE_S)


@contextmanager
def _metered(servers: Servers, duration_s: float) -> Iterator[_Meter]:
    """Begin a run with garbage collection switched off."""
    gc.collect()
    gc.disable()
    try:
        yield _Meter(servers, duration_s)
    finally:
        gc.enable()


class Window(NamedTuple):
    """A part of a warm-up: CPU time of the servers for one request, and cores with which Java compiled meanwhile."""

    cost_s: float
    compiling: float = 0.0


@dataclass(frozen=True)
class WarmUp:
    """The windows of a warm-up.

    Attributes
    ----------
    windows : tuple of Window
        What was measured in each.
    window_s : float
        Length of a window in seconds.
    """

    windows: tuple[Window, ...]
    window_s: float

    @property
    def sentence(self) -> str:
        """The result of the warm-up, in words."""
        last = ", ".join(f"{1e6 * each.cost_s:.0f}" for each in self.windows[-WINDOWS:])
        time_s, shown = len(self.windows) * self.window_s, f"the last windows: {last} us of CPU per request"
        if is_steady(self.windows):
            return f"warm-up: steady after {time_s:g} s ({shown})"
        compiling = max((each.compiling for each in self.windows[-WINDOWS:]), default=0.0)
        shown += f"; Java still compiled with {100 * compiling:.0f} % of a core" if compiling > _COMPILING else ""
        return f"warm-up: not steady within {time_s:g} s ({shown}), so a repeat may differ"


def is_steady(windows: Sequence[Window]) -> bool:
    """Whether the last windows agree, do not rise or fall, and Java compiled hardly anything in them.

    Costs alone agree on every plateau between two rounds of compilation: two nodes on one core stayed at 590 us a
    request for half a minute, and at 170 us in the end.
    """
    last = windows[-WINDOWS:]
    if len(last) < WINDOWS or max(each.compiling for each in last) > _COMPILING:
        return False
    costs = [each.cost_s for each in last]
    mean, half = sum(costs) / WINDOWS, WINDOWS // 2
    trend = (sum(costs[half:]) - sum(costs[:half])) / half
    return max(costs) - min(costs) <= _RANGE * mean and abs(trend) <= _TREND * mean


async def warm_up(window: Callable[[float], Awaitable[Window]], window_s: float, most_s: float) -> WarmUp:
    """Apply load until the cost of a request is steady.

    Parameters
    ----------
    window : function
        Loads for a time in seconds, and returns what it measured.
    window_s : float
        That time.
    most_s : float
        After which to stop in any case.
    """
    found: list[Window] = []
    while not is_steady(found) and len(found) * window_s < most_s:
        found.append(await window(window_s))
    return WarmUp(tuple(found), window_s)


async def idle_cores(servers: Servers) -> float:
    """Return how many cores the servers use without load."""
    before, began = sum(map(cpu_s, servers.nodes)), time.perf_counter()
    await asyncio.sleep(_IDLE_S)
    return (sum(map(cpu_s, servers.nodes)) - before) / (time.perf_counter() - began)


async def pause(rtt_s: float = 0.0) -> None:
    """Wait until the last run has ended, also at the servers."""
    await asyncio.sleep(_PAUSE_S + 2 * rtt_s)


@dataclass(frozen=True)
class Target:
    """The system under load.

    Attributes
    ----------
    servers : Servers
        Whose CPU time is measured.
    unanswered : str
        What to say if no request is answered; braces stand for the seconds that were waited.
    """

    servers: Servers = _NONE
    unanswered: str = "no request was answered"

    def answered(self, sample: Sample) -> Sample:
        """Return the sample; raise an error if no request was answered.

        Raises
        ------
        InputError
            If it has none.
        """
        if not sample.completed:
            raise InputError(self.unanswered.format(sample.duration_s))
        return sample

    async def sampled(  # the full description of a run
        self, clients: int | None, rate_per_s: float | None, duration_s: float, most: int, seed: int, first: int = 0
    ) -> Sample:
        """Load with closed clients, or at a rate if `clients` is None; the first request has the number `first`."""
        raise NotImplementedError

    async def warmed_up(self, clients: int, most: int, most_s: float, window_s: float = WINDOW_S) -> WarmUp:
        """Load until the CPU time of a request is steady, or its latency if no server runs on this machine.

        Raises
        ------
        InputError
            If no request is answered.
        """
        begun = 0

        async def window(seconds: float) -> Window:
            nonlocal begun
            before = sum(map(compiler_s, self.servers.nodes))
            found = self.answered(await self.sampled(clients, None, seconds, most, 0, begun))
            begun += found.completed + found.errors
            compiling = max(0.0, sum(map(compiler_s, self.servers.nodes)) - before) / found.duration_s
            return Window((sum(found.server_cpu_s) or float(found.latencies_s.sum())) / found.completed, compiling)

        return await warm_up(window, min(window_s, max(most_s, _SHORTEST_WINDOW_S)), most_s)


@dataclass(frozen=True)
class AwaitedTarget(Target):
    """A system whose requests are awaited.

    Attributes
    ----------
    request : function
        Sends one request.
    """

    request: Request = field(kw_only=True)

    async def sampled(  # the full description of a run
        self, clients: int | None, rate_per_s: float | None, duration_s: float, most: int, seed: int, first: int = 0
    ) -> Sample:
        """Load with closed clients, or at a rate if `clients` is None; the first request has the number `first`."""
        if clients is not None:
            return await closed(self.request, clients, duration_s, most, self.servers, first)
        return await paced(self.request, arrivals(rate_per_s or 1.0, duration_s, most, seed), self.servers, first)


@dataclass(frozen=True)
class Run:
    """One run: its load, and its results."""

    name: str
    clients: int | None
    offered_per_s: float | None
    repeat: int
    sample: Sample

    def row(self, columns: Mapping[str, Any], notes: Sequence[str]) -> LoadTestRow:
        """Return the run as a row of a load-test table.

        Parameters
        ----------
        columns : mapping
            The columns that describe the target; they stand above what is measured.
        notes : sequence of str
            What else a reader must know.
        """
        sample, nodes = self.sample, None
        if sample.server_cpu_s:
            cores_s = sample.duration_s * (columns.get("node_cores") or cores())
            nodes = min(100.0, 100 * sum(sample.server_cpu_s) / (len(sample.server_cpu_s) * cores_s))
        measured = {
            "run_id": self.name,
            "repeat": self.repeat,
            **load_cells(self.clients, self.offered_per_s),
            "duration_s": sample.duration_s,
            "throughput_tps": sample.throughput_per_s,
            "node_cpu_percent": nodes,
            "client_cpu_percent": sample.client_percent,
            "generator_added_ms": None if sample.added_s is None else 1000 * sample.added_s,
            "drops": 0,
            "errors": sample.errors,
            "note": "; ".join([*notes, *doubts(sample)]),
            **doubt_cells(sample),
            **latency_columns(sample),
        }
        return LoadTestRow(**{**measured, **columns})

    def timed(self, tag: str) -> Timed:
        """Return all latencies."""
        began_s = self.sample.began_s
        return Timed(tag, began_s, began_s + self.sample.duration_s, self.sample.histogram())


@dataclass
class Runner:
    """Steps one target through the loads that a collector's settings ask for.

    Attributes
    ----------
    target : Target
        What is loaded.
    settings : Settings
        How long, and how many requests at most.
    progress : function
        Receives what is done.
    total : int
        How many runs there will be.
    prefix : str
        What progress begins with.
    runs : list of Run
        Those that were made.
    """

    target: Target
    settings: Settings
    progress: Progress
    total: int
    prefix: str = ""
    runs: list[Run] = field(default_factory=list)

    async def warm_up(self) -> WarmUp:
        """Load with the most clients until the cost of a request is steady."""
        asked = self.settings
        self.progress(f"{self.prefix}warming up until the speed is steady", 0, 1)
        return await self.target.warmed_up(max(asked.clients), asked.requests, asked.warm_up_s)

    async def step(
        self, clients: int | None, rate_per_s: float | None = None, seed: int = 0, repeat: int | None = None
    ) -> Run:
        """Run closed clients or open traffic; repeats have their number in the name."""
        asked, name, said = self.settings, f"closed-{clients}", f"{clients} closed clients"
        if rate_per_s is not None:
            name, said = f"open-{rate_per_s:.0f}", f"{rate_per_s:,.0f} requests/s"
        self.progress(f"{self.prefix}{said}", len(self.runs), self.total)
        await pause()
        first = sum(each.sample.completed for each in self.runs)
        sample = await self.target.sampled(clients, rate_per_s, asked.duration_s, asked.requests, seed, first)
        name += "" if repeat is None else f"-{repeat}"
        self.runs.append(Run(name, clients, rate_per_s, repeat or 1, self.target.answered(sample)))
        return self.runs[-1]


def rounded(rate_per_s: float) -> float:
    """Return a rate rounded to three digits."""
    return float(f"{rate_per_s:.3g}")


def load_in_words(clients: int | None, rate_per_s: float | None) -> str:
    """Return the load of a run in a few words: `4 clients`, `1,000/s`."""
    return f"{clients} client{'s' * (clients != 1)}" if rate_per_s is None else f"{rate_per_s:,.0f}/s"


def load_cells(clients: int | None, offered_per_s: float | None) -> dict[str, Any]:
    """Return the load columns of a load-test row; without clients, the load is open."""
    return {
        "load_kind": "open" if clients is None else "closed",
        "clients": clients,
        "think_time_ms": None if clients is None else 0.0,
        "offered_tps": offered_per_s,
    }


def doubt_cells(sample: Sample) -> dict[str, Any]:
    """Return the columns of a load-test row that show whether to trust the run.

    Clients that wait for their answers show a throughput, which suffers only from a generator that is always busy.
    """
    added, allowed = sample.added_s if sample.paced else 0.0, ADDED
    if len(sample.lateness_s):  # a generator that knows only how late it sends
        added, allowed = float(np.median(sample.lateness_s)), LATE
    behind = bool(sample.completed and (added or 0.0) > allowed * np.median(sample.latencies_s))
    return {
        "generator_limited": sample.client_percent >= BUSY_PERCENT or behind,
        "disturbed": sample.others_cores > OTHERS * cores(),
    }


def doubts(sample: Sample) -> list[str]:
    """Return in words the reasons not to fit a run."""
    return [_DOUBTS[name] for name, doubted in doubt_cells(sample).items() if doubted]


def doubted(runs: Iterable[tuple[str, Sample]]) -> list[str]:
    """Return each doubt with the names of the affected runs."""
    found: dict[str, list[str]] = {}
    for name, sample in runs:
        for doubt in doubts(sample):
            found.setdefault(doubt, []).append(name)
    return [f"{doubt} ({', '.join(names)})" for doubt, names in found.items()]


def latency_columns(sample: Sample) -> dict[str, Any]:
    """Return the latency columns, without percentiles that rest on too few requests."""
    milliseconds = 1000 * sample.latencies_s
    if not len(milliseconds):
        return {}
    percentiles = np.quantile(milliseconds, list(PERCENTILES.values()), method="inverted_cdf").tolist()
    columns = {
        "latency_mean_ms": float(milliseconds.mean()),
        **dict(zip(PERCENTILES, percentiles, strict=True)),
        "latency_max_ms": float(milliseconds.max()),
    }
    needed = {name: _BEHIND if share > 0.5 else _BEHIND_MEDIAN for name, share in PERCENTILES.items()}
    rest = {name for name, share in PERCENTILES.items() if sample.completed * (1 - share) < needed[name]}
    return {name: value for name, value in columns.items() if name not in rest}


class PerRequest(NamedTuple):
    """CPU time per request in each part of a run, and the clock error in that of the servers."""

    servers: list[float]
    client: list[float]
    thread: list[float]
    error_s: float


def per_request(sample: Sample, idle: float = 0.0) -> PerRequest:
    """Return the CPU cost per request, less what the servers use without load (`idle`, cores)."""
    whole = sample.parts_with_requests
    return PerRequest(
        [(each.server_cpu_s - idle * each.length_s) / each.completed for each in whole],
        [each.client_cpu_s / each.completed for each in whole],
        [each.thread_cpu_s / each.completed for each in whole],
        PARTS * cpu_error_s() / max(sample.completed, 1),
    )


def figure(collector: str, system: str, operation: str, **cells: Any) -> MicrobenchRow:
    """Return a microbenchmark row for a figure of this machine; `cells` override the defaults."""
    usual = {"run_id": collector, "host": machine(), "source": f"capplan collect {collector}"}
    return MicrobenchRow(system=system, operation=operation, **{**usual, **cells})


def clock_note() -> str:
    """Return in words the precision of the CPU clock."""
    return f"step of the CPU clock {1000 * cpu_quantum_s():.2g} ms"


def mean_row(
    part: MicrobenchRow, values: Sequence[float], error: float = 0.0, least: float = 0.0, **cells: Any
) -> MicrobenchRow:
    """Return the mean of values as a row, with its 95 % interval from their scatter and an error common to all of them.

    Parameters
    ----------
    part : MicrobenchRow
        What is measured.
    values : sequence of float
        The values.
    error : float
        An error that all of them may have.
    least : float
        Which the interval does not go below; minus infinity for differences.
    **cells
        Other cells of the row.
    """
    mean, half = fmean(values), error
    if len(values) > 1:
        half += float(student.ppf(0.975, len(values) - 1)) * stdev(values) / sqrt(len(values))
    interval: dict[str, Any] = {"value": mean, "error_low": max(mean - half, least), "error_high": mean + half}
    return replace(part, **{"statistic": "mean", "unit": "s", **interval, **cells})


def quantiles(values: Sequence[float] | NDArray[np.float64]) -> Iterator[tuple[Any, float]]:
    """Yield statistics of the values by name, without those that rest on too few values."""
    for name, share in QUANTILES.items():
        if name != "p99" or len(values) * (1 - share) >= _BEHIND:
            yield name, float(np.quantile(values, share))


def quantum_row(run_id: str) -> MicrobenchRow:
    """Return the CPU clock's step as a row."""
    note = f"a difference of two readings is off by at most {cpu_error_s() * 1000:.3g} ms"
    row = figure(run_id, "machine", "reading", version=platform.release(), component="cpu clock", source=None)
    return replace(row, quantity="step", statistic="p50", value=cpu_quantum_s(), unit="s", note=note)
