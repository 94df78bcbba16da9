"""A load generator that speaks the native protocol of Cassandra, in one thread that waits for nothing else.

With a core of its own the thread never sleeps: it sends a request when it is due and reads an answer when it is there.
A driver would hand each request to a thread of its own and back, which takes as long as a read. A flow of requests is a
Python generator: it yields what it asks for, or until when it waits, and gets the answer.

Latencies count from the intended start. What the generator itself adds is measured request by request: the time from
the intended start to the sending, and from the arrival of the answer, on average half a poll before it was seen, to its
reading.
"""

from __future__ import annotations

import gc
import heapq
import os
import select
import signal
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
from array import array
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from capplan.errors import InputError
from capplan.lab.cluster import tls_context
from capplan.lab.collectors.load import (
    PARTS,
    WINDOW_S,
    Part,
    Sample,
    Servers,
    Target,
    WarmUp,
    arrivals,
    between,
    machine_cpu_s,
)
from capplan.lab.processes import USABLE_CORES, cpu_s, generator_core, move, node_cores

LEVELS = {
    "ANY": 0,
    "ONE": 1,
    "TWO": 2,
    "THREE": 3,
    "QUORUM": 4,
    "ALL": 5,
    "LOCAL_QUORUM": 6,
    "EACH_QUORUM": 7,
    "LOCAL_ONE": 10,
}
"""Numbers of consistency levels in the protocol."""
VERSION, RESPONSE = 4, 0x80
ERROR, STARTUP, READY, AUTHENTICATE, RESULT, PREPARE, EXECUTE = 0x00, 0x01, 0x02, 0x03, 0x08, 0x09, 0x0A
AUTH_RESPONSE, AUTH_SUCCESS = 0x0F, 0x10
VOID, ROWS, PREPARED = 1, 2, 4
HEADER = struct.Struct(">BBhBi")
_LONG, _INT, _SHORT = struct.Struct(">q"), struct.Struct(">i"), struct.Struct(">H")
_STREAMS = 32_768
_VALUES, _NO_METADATA = 0x01, 0x02
_WARNING = 0x08  # flag of a frame: warnings stand before its body
_ROW_COUNT = 12  # where it stands in a result without metadata
_BUFFER, _READ = 1 << 20, 1 << 16  # of the kernel, and at most at once
_PATIENCE_S = 15.0  # for a connection, and for the last answers
_AGAIN_S = 0.01  # after a request that could not be sent
_LATEST_S = 1.0  # that a thread which shares its core sleeps


class FailedError(Exception):
    """A request that a node refused, or that was never answered."""


class Asked(NamedTuple):
    """A request: a statement about a row, the connection that it goes to, and whether it fails without a row."""

    connection: Connection
    statement: Statement
    key: int
    needs_row: bool = False


Flow = Generator[Asked | float, bool, Any]
"""Yields a request, and gets whether a row was found; or yields a time of `time.perf_counter` to wait for."""


class Connection:
    """A connection to one node.

    Parameters
    ----------
    address, port : str, int
        Where the node answers.
    login : tuple of str, optional
        User and password.
    certificate : str, optional
        Certificate of the nodes (PEM), for TLS.

    Raises
    ------
    InputError
        If the node does not answer or refuses the user.
    """

    def __init__(
        self, address: str, port: int, login: tuple[str, str] | None = None, certificate: str | None = None
    ) -> None:
        self.address = address
        self._free, self.waiting = list(range(_STREAMS - 1, -1, -1)), dict[int, _Waiting]()
        self.output, self._input = bytearray(), bytearray()
        self.open = True
        try:
            self.socket = socket.create_connection((address, port), _PATIENCE_S)
            try:
                for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
                    self.socket.setsockopt(socket.SOL_SOCKET, option, _BUFFER)
                self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if certificate is not None:
                    self.socket = tls_context(certificate).wrap_socket(self.socket)
                self._begin(login)
            except (OSError, InputError):
                self.close()
                raise
        except OSError as error:
            raise InputError(f"no connection to {address}, port {port}: {error}") from None

    def _begin(self, login: tuple[str, str] | None) -> None:
        code, body = self._ask(STARTUP, _SHORT.pack(1) + _text("CQL_VERSION") + _text("3.0.0"))
        if code not in (READY, AUTHENTICATE):
            raise InputError(f"{self.address} refuses to talk: {_message(body)}")
        if code == AUTHENTICATE:
            if login is None:
                raise InputError(f"{self.address} asks for a user: give user and password_file")
            token = f"\0{login[0]}\0{login[1]}".encode()
            code, body = self._ask(AUTH_RESPONSE, _INT.pack(len(token)) + token)
            if code != AUTH_SUCCESS:
                raise InputError(f"{self.address} refuses the user: {_message(body)}")

    def prepare(self, text: str) -> bytes:
        """Return the number of a prepared statement.

        Raises
        ------
        FailedError
            If the node refuses it or is gone.
        """
        said = text.encode()
        self.socket.settimeout(_PATIENCE_S)
        try:
            code, body = self._ask(PREPARE, _INT.pack(len(said)) + said)
        except OSError as error:
            raise FailedError(str(error)) from None
        if code != RESULT:
            raise FailedError(_message(body))
        return body[6 : 6 + _SHORT.unpack_from(body, 4)[0]]

    def _ask(self, code: int, body: bytes) -> tuple[int, bytes]:
        """Send a request and wait for its answer; late answers to requests that were given up are dropped."""
        own = self._free.pop()
        self.socket.sendall(HEADER.pack(VERSION, 0, own, code, len(body)) + body)
        while True:
            _, flags, stream, answer, size = HEADER.unpack(self._exactly(HEADER.size))
            found = self._exactly(size)
            self._free.append(stream)
            if stream == own:
                return answer, found[_after_warnings(found, 0) if flags & _WARNING else 0 :]

    def _exactly(self, size: int) -> bytes:
        while len(self._input) < size:
            more = self.socket.recv(_READ)
            if not more:
                raise ConnectionError("the node closed the connection")
            self._input += more
        found = bytes(self._input[:size])
        del self._input[:size]
        return found

    def send(self, asked: Asked, waiting: _Waiting) -> None:
        """Add a request to what is sent next."""
        if not self.open or not self._free:
            raise FailedError("the node is gone" if not self.open else "too many requests are under way")
        stream = self._free.pop()
        self.waiting[stream] = waiting
        self.output += asked.statement.frame(asked.key, stream)

    def flush(self) -> None:
        """Send what was added, as far as the node takes it now."""
        try:
            del self.output[: self.socket.send(self.output)]
        except (BlockingIOError, ssl.SSLWantWriteError):
            return
        except OSError:
            self.open = False
            self.output.clear()

    def _read(self) -> bytearray:
        """Return what has arrived and was not taken yet."""
        try:
            while True:
                more = self.socket.recv(_READ)
                self._input += more
                self.open &= bool(more)
                if not more or (len(more) < _READ and not isinstance(self.socket, ssl.SSLSocket)):
                    break
        except (BlockingIOError, ssl.SSLWantReadError):
            pass
        except OSError:
            self.open = False
        return self._input

    def answers(self) -> tuple[float, list[tuple[_Waiting, bool | None]]]:
        """Return when answers were read, and each: whether a row was found, or None for a failure."""
        arrived = self._read()
        read_at, found = time.perf_counter(), list[tuple[_Waiting, bool | None]]()
        at, size = 0, len(arrived)
        while size - at >= HEADER.size:
            _, flags, stream, code, length = HEADER.unpack_from(arrived, at)
            if size - at < HEADER.size + length:
                break
            body = at + HEADER.size
            at = body + length
            if flags & _WARNING:
                body = _after_warnings(arrived, body)
            asked = self.waiting.pop(stream, None)
            self._free.append(stream)
            if asked is not None:
                found.append((asked, _has_row(arrived, body) if code == RESULT else None))
        del arrived[:at]
        if not self.open:
            found += [(each, None) for each in self.waiting.values()]
            self.waiting.clear()
        return read_at, found

    def forget(self) -> int:
        """Give the requests under way up; return how many they were."""
        given_up = len(self.waiting)
        self.waiting.clear()
        return given_up

    def close(self) -> None:
        """Close it."""
        self.open = False
        self.socket.close()


def _has_row(answer: bytearray, body: int) -> bool:
    return bool(_INT.unpack_from(answer, body)[0] != ROWS or _INT.unpack_from(answer, body + _ROW_COUNT)[0] > 0)


def _after_warnings(answer: bytes | bytearray, at: int) -> int:
    """Return where an answer begins after the warnings of the node."""
    (left,) = _SHORT.unpack_from(answer, at)
    at += _SHORT.size
    for _ in range(left):
        at += _SHORT.size + _SHORT.unpack_from(answer, at)[0]
    return at


def _text(words: str) -> bytes:
    return _SHORT.pack(len(words)) + words.encode()


def _message(body: bytes) -> str:
    """Return the sentence of an error."""
    return body[6:].decode("utf-8", errors="replace")


class Statement:
    """A prepared statement about one row by its key, with the values that it writes.

    Parameters
    ----------
    connections : sequence of Connection
        All of which learn it.
    text : str
        CQL, whose first parameter is the key.
    level : str
        Consistency level.
    *values : bytes
        The other parameters.
    """

    def __init__(self, connections: Sequence[Connection], text: str, level: str, *values: bytes) -> None:
        (name, *_) = [each.prepare(text) for each in connections]
        body = _SHORT.pack(len(name)) + name + _SHORT.pack(LEVELS[level]) + bytes([_VALUES | _NO_METADATA])
        body += _SHORT.pack(1 + len(values)) + _INT.pack(_LONG.size)
        self._key = HEADER.size + len(body)
        body += bytes(_LONG.size) + b"".join(_INT.pack(len(each)) + each for each in values)
        self._frame = bytearray(HEADER.pack(VERSION, 0, 0, EXECUTE, len(body)) + body)

    def frame(self, key: int, stream: int) -> bytearray:
        """Return the request about a row; the next call changes it."""
        _SHORT.pack_into(self._frame, 2, stream)
        _LONG.pack_into(self._frame, self._key, key)
        return self._frame


class _Waiting:
    """A flow that waits for an answer: since when it should have asked, and when it had."""

    __slots__ = ("flow", "intended", "needs_row", "sent")

    def __init__(self, flow: Flow, intended: float, needs_row: bool) -> None:
        self.flow, self.intended, self.sent, self.needs_row = flow, intended, intended, needs_row


@dataclass
class _Found:
    latencies: array[float] = field(default_factory=lambda: array("d"))
    added: array[float] = field(default_factory=lambda: array("d"))
    errors: int = 0
    busy_s: float = 0.0


class Loop:
    """The thread: it runs flows on connections until all have ended.

    Parameters
    ----------
    connections : sequence of Connection
        Those that the flows use.
    servers : Servers
        Whose CPU is measured.

    Attributes
    ----------
    sharing : bool
        Whether it sleeps while it waits, so that the servers may use its core.
    """

    def __init__(self, connections: Sequence[Connection], servers: Servers = Servers()) -> None:  # noqa: B008  # frozen
        self._connections, self._servers, self.sharing = connections, servers, False

    def run(self, flows: Iterable[tuple[float, Flow]], duration_s: float, *, paced: bool = False) -> Sample:
        """Run flows, each from its start in seconds on.

        Parameters
        ----------
        flows : iterable of (float, Flow)
            Starts, in order, and flows.
        duration_s : float
            Time that the run is meant to take; after it, the last answers are waited for.
        paced : bool
            Whether the starts are those of an open load.

        Raises
        ------
        InputError
            If a connection was lost in an earlier run.
        """
        lost = [each.address for each in self._connections if not each.open]
        if lost:
            raise InputError(f"the connection to {lost[0]} was lost: check the node and repeat")
        with _undisturbed(None if self.sharing else generator_core()) as alone:
            return _Run(self._connections, self._servers, flows, duration_s, alone=alone, paced=paced).sample()


@contextmanager
def _undisturbed(own: int | None) -> Iterator[bool]:
    """Stay on a core, without garbage collection; tell whether there is one for the generator alone."""
    before = os.sched_getaffinity(0)
    main = threading.current_thread() is threading.main_thread()
    interrupt = signal.getsignal(signal.SIGINT)  # of asyncio, which would wait for the end of the run
    gc.collect()
    gc.disable()
    try:
        if main:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        if own is not None:
            os.sched_setaffinity(0, {own})
        yield own is not None
    finally:
        os.sched_setaffinity(0, before)
        gc.enable()
        if main:
            signal.signal(signal.SIGINT, interrupt)


class _Run:
    """One run of the loop."""

    def __init__(
        self,
        connections: Sequence[Connection],
        servers: Servers,
        flows: Iterable[tuple[float, Flow]],
        duration_s: float,
        *,
        alone: bool,
        paced: bool,
    ) -> None:
        self._connections, self._servers, self._alone, self._paced = connections, servers, alone, paced
        self._by_file = {each.socket.fileno(): each for each in connections if each.open}
        self._poll = select.epoll()
        for each in self._by_file.values():
            each.socket.setblocking(False)
            self._poll.register(each.socket, select.EPOLLIN)
        self._found, self._timers, self._order = _Found(), list[tuple[float, int, Flow, bool]](), count()
        self._began_s, self._machine_s, self._own_s = time.time(), machine_cpu_s(), time.process_time()
        self._cpu, self._marks = self._read(), list[Part]()
        self._duration_s = duration_s
        self.start = self._answered = time.perf_counter()
        self._polled, self._arrived, self._queued = self.start, self.start, list[_Waiting]()
        self._under_way, self._blocked = 0, False
        self._arrivals = ((self.start + at, each) for at, each in flows)
        self._marks.append(self._mark())

    def _read(self) -> list[float]:
        return [cpu_s(each) for each in self._servers.all]

    def _mark(self) -> Part:
        self._last = time.perf_counter(), self._read(), machine_cpu_s(), time.process_time()
        nodes = sum(self._last[1][: len(self._servers.nodes)])
        return Part(self._last[0], len(self._found.latencies), nodes, self._found.busy_s, self._found.busy_s)

    def sample(self) -> Sample:
        """Run, and return what was measured."""
        with self._poll:
            self._spin()
        found, unanswered = self._found, sum(each.forget() for each in self._connections)
        found.errors += unanswered
        if not unanswered:  # else what was waited for in vain after the intended time is no part of the run
            self._mark()
        end, cpu, machine_s, own_s = self._last
        servers = [after - before for before, after in zip(self._cpu, cpu, strict=True)]
        others = max(0.0, machine_s - self._machine_s - (own_s - self._own_s) - sum(servers))
        return Sample(
            began_s=self._began_s,
            duration_s=max(end, self._answered) - self.start,
            latencies_s=np.array(found.latencies),
            lateness_s=np.zeros(0),
            errors=found.errors,
            client_cpu_s=found.busy_s,
            thread_cpu_s=found.busy_s,
            thread_waited_s=0.0,
            server_cpu_s=tuple(servers[: len(self._servers.nodes)]),
            others_cores=others / max(end - self.start, 1e-9),
            parts=between(self._marks),
            paced=self._paced,
            added_s=float(np.median(found.added)) if found.added else 0.0,
        )

    def _spin(self) -> None:
        clock, arrivals, timers = time.perf_counter, self._arrivals, self._timers
        upcoming = next(arrivals, None)
        part_s = self._duration_s / PARTS
        next_mark = self.start + part_s
        deadline = self.start + self._duration_s + _PATIENCE_S
        while True:
            now = clock()
            worked = False
            while upcoming is not None and upcoming[0] <= now:
                self._resume(upcoming[1], upcoming[0], first=True)
                upcoming, worked = next(arrivals, None), True
            while timers and timers[0][0] <= now:
                due, _, flow, failed = heapq.heappop(timers)
                self._resume(flow, due, failed=failed)
                worked = True
            if worked or self._blocked:
                self._flush()
            if now >= next_mark and len(self._marks) <= PARTS:
                self._marks.append(self._mark())
                next_mark += part_s
            if not (self._under_way or timers or upcoming) or now > deadline:
                return
            polling = clock()
            readable = self._poll.poll(0.0) if self._alone else self._asleep(upcoming, polling)
            asleep_s = 0.0 if self._alone else clock() - polling
            if readable:
                self._arrived = (self._polled + polling) / 2 if self._alone else polling + asleep_s
                for file, _ in readable:
                    self._receive(self._by_file[file])
                self._flush()
            self._polled = polling
            if worked or readable:
                self._found.busy_s += clock() - now - asleep_s

    def _asleep(self, upcoming: tuple[float, Flow] | None, now: float) -> list[tuple[int, int]]:
        """Poll as a thread that shares its core: sleep until an answer is there or a request is due."""
        dues = [each for each in (upcoming and upcoming[0], self._timers and self._timers[0][0]) if each]
        left = 0.0 if self._blocked else max(0.0, min([*(each - now for each in dues), _LATEST_S]))
        readable, _, _ = select.select([self._poll], (), (), left)  # which waits to the microsecond
        return self._poll.poll(0.0) if readable else []

    def _flush(self) -> None:
        sent = time.perf_counter()
        for waiting in self._queued:
            waiting.sent = sent
        self._queued.clear()
        self._blocked = False
        for each in self._connections:
            if each.output:
                each.flush()
                self._blocked |= bool(each.output)

    def _receive(self, connection: Connection) -> None:
        now, answers = connection.answers()
        self._under_way -= len(answers)
        waited, found = now - self._arrived, self._found
        self._answered = now if answers else self._answered
        for asked, row in answers:
            if row is None or (asked.needs_row and not row):
                found.errors += 1
                self._resume(asked.flow, now, failed=True)
                continue
            found.latencies.append(now - asked.intended)
            found.added.append(asked.sent - asked.intended + waited)
            self._resume(asked.flow, now, row=row)
        if not connection.open:
            self._poll.unregister(connection.socket)

    def _resume(
        self, flow: Flow, intended: float, *, row: bool = False, first: bool = False, failed: bool = False
    ) -> None:
        """Go on with a flow, which should have gone on at a time."""
        try:
            asked = flow.throw(FailedError()) if failed else next(flow) if first else flow.send(row)
            while not isinstance(asked, Asked):
                if asked > time.perf_counter():
                    heapq.heappush(self._timers, (asked, next(self._order), flow, False))
                    return
                intended, asked = asked, flow.send(False)
        except (StopIteration, FailedError):
            return
        self._send(asked, _Waiting(flow, intended, asked.needs_row))

    def _send(self, asked: Asked, waiting: _Waiting) -> None:
        try:
            asked.connection.send(asked, waiting)
        except FailedError:
            self._found.errors += 1  # the flow hears of it a little later, or clients would fail without a pause
            again = time.perf_counter() + _AGAIN_S
            heapq.heappush(self._timers, (again, next(self._order), waiting.flow, True))
            return
        self._queued.append(waiting)
        self._under_way += 1


FlowOf = Callable[[int], Flow]
"""Makes the flow of a number."""


@dataclass(frozen=True)
class CqlTarget(Target):
    """A cluster under load.

    Attributes
    ----------
    flow : function
        Makes the flow of a number.
    loop : Loop
        Which runs them.
    """

    flow: FlowOf = field(kw_only=True)
    loop: Loop = field(kw_only=True)

    async def sampled(  # the full description of a run
        self, clients: int | None, rate_per_s: float | None, duration_s: float, most: int, seed: int, first: int = 0
    ) -> Sample:
        """Load with closed clients, or at a rate if `clients` is None; the first request has the number `first`."""
        if clients is not None:
            return self.loop.run(closed(self.flow, clients, duration_s, most, first), duration_s)
        starts = arrivals(rate_per_s or 1.0, duration_s, most, seed)
        return self.loop.run(paced(self.flow, starts, first), duration_s, paced=True)

    async def warmed_up(self, clients: int, most: int, most_s: float, window_s: float = WINDOW_S) -> WarmUp:
        """Load until the CPU time of a request is steady, on all cores.

        Java compiles hot code beside the requests. With one core for both, two nodes took six minutes.
        """
        self._share(USABLE_CORES, sharing=True)
        try:
            return await super().warmed_up(clients, most, most_s, window_s)
        finally:
            self._share(node_cores(), sharing=False)

    def _share(self, where: frozenset[int], *, sharing: bool) -> None:
        self.loop.sharing = sharing
        for each in self.servers.nodes:
            move(each, where)


def closed(flow_of: FlowOf, clients: int, duration_s: float, most: int, first: int = 0) -> Iterator[tuple[float, Flow]]:
    """Return clients that begin one flow after another, without think time.

    Parameters
    ----------
    flow_of : function
        Makes the flow of a number.
    clients : int
        How many clients there are.
    duration_s : float
        After which no flow begins.
    most : int
        Flows after which none begins.
    first : int
        Number of the first flow.
    """
    numbers, deadline = iter(range(first, first + most)), time.perf_counter() + duration_s

    def client() -> Flow:
        while time.perf_counter() < deadline and (number := next(numbers, None)) is not None:
            with suppress(FailedError):
                yield from flow_of(number)

    for _ in range(clients):
        yield 0.0, client()


def paced(flow_of: FlowOf, starts_s: NDArray[np.float64], first: int = 0) -> Iterator[tuple[float, Flow]]:
    """Return flows that begin at their intended times, independently of earlier ones."""
    for number, start in enumerate(starts_s.tolist(), start=first):
        yield start, flow_of(number)


@contextmanager
def answering_at_once() -> Iterator[int]:
    """Run a process on the nodes' cores that answers each request at once; yield its port."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        started = subprocess.Popen(  # noqa: S603  # a program of ours
            [sys.executable, "-m", __name__, str(listening.fileno())], pass_fds=[listening.fileno()]
        )
        port: int = listening.getsockname()[1]
    os.sched_setaffinity(started.pid, node_cores())
    try:
        yield port
    finally:
        started.terminate()
        started.wait()


def _answer(listening: socket.socket) -> None:
    """Answer the requests of one connection, until it closes."""
    connection, _ = listening.accept()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setblocking(False)
    prepared = _INT.pack(PREPARED) + _text("0")
    bodies = {STARTUP: (READY, b""), PREPARE: (RESULT, prepared), EXECUTE: (RESULT, _INT.pack(VOID))}
    poll, arrived = select.epoll(), bytearray()
    poll.register(connection, select.EPOLLIN)
    while True:
        if not poll.poll(0.0):
            continue
        more = connection.recv(_READ)
        if not more:
            return
        arrived += more
        at, answers = 0, bytearray()
        while len(arrived) - at >= HEADER.size:
            _, _, stream, code, length = HEADER.unpack_from(arrived, at)
            if len(arrived) - at < HEADER.size + length:
                break
            answer, body = bodies[code]
            answers += HEADER.pack(VERSION | RESPONSE, 0, stream, answer, len(body)) + body
            at += HEADER.size + length
        del arrived[:at]
        connection.sendall(answers)


if __name__ == "__main__":
    _answer(socket.socket(fileno=int(sys.argv[1])))
