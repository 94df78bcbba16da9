"""Links on their own: round trips within and between data centres, and the cost of TLS at client and node.

Both are exchanges over one connection. TLS is measured by the least of Cassandra's native protocol (version 4) that
times a connection, start up and ask a question; plain and TLS alternate on one warm node.
"""

from __future__ import annotations

import socket
import ssl
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf

from capplan.errors import InputError
from capplan.evidence.microbenchmarks import MicrobenchRow
from capplan.lab.cluster import KEYSPACE, certificate, session
from capplan.lab.collectors.cassandra import running_lab
from capplan.lab.collectors.collector import Collected, Progress, Settings
from capplan.lab.collectors.load import figure, mean_row, quantiles, quantum_row
from capplan.lab.layout import ECHO_PORT, NATIVE_PORT, Node
from capplan.lab.processes import Process, cpu_error_s, cpu_s
from capplan.lab.state import State

_TIMEOUT_S = 30.0
_CHUNK = 1 << 16
_MESSAGE = b"x" * 100
_MOST_EXCHANGES = 300  # of 40 ms each: 12 s
_EXCHANGES_S = 10.0
_FIRST = 5  # that warm the connection up
_VERSION = 0x04
_STARTUP, _READY, _QUERY, _ERROR = 0x01, 0x02, 0x07, 0x00
_LOCAL_ONE = 0x000A
_OPTIONS = b"\x00\x01\x00\x0bCQL_VERSION\x00\x053.0.0"
_LARGE_BYTES = 32 << 10
_SIZES = {"small": 16, "large": _LARGE_BYTES}
_ROUNDS = 8  # of plain and TLS in turn, after as many that only warm up
_CONNECTIONS = 40  # a round
_MESSAGES = 400
_TABLE = f"{KEYSPACE}.tls"
_ENDS = ("node", "client", "elapsed")


def connect(address: str, port: int) -> socket.socket:
    """Connect without delaying small messages."""
    found = socket.create_connection((address, port), timeout=_TIMEOUT_S)
    found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return found


def receive(connection: socket.socket, size: int) -> bytes:
    """Receive exactly the given number of bytes.

    Raises
    ------
    ConnectionError
        If the other end closes before.
    """
    found = bytearray()
    while len(found) < size:
        chunk = connection.recv(min(_CHUNK, size - len(found)))
        if not chunk:
            raise ConnectionError("the server closed the connection")
        found += chunk
    return bytes(found)


def echo_times_s(connection: socket.socket, message: bytes, count: int) -> list[float]:
    """Send a message and wait for its echo, repeatedly; return each round-trip time in seconds."""
    found = []
    for _ in range(count):
        began = time.perf_counter()
        connection.sendall(message)
        receive(connection, len(message))
        found.append(time.perf_counter() - began)
    return found


# -- round trips


def collect_rtt(settings: Settings, progress: Progress) -> Collected:
    """Measure round trips.

    Raises
    ------
    InputError
        If no lab with two data centres runs.
    """
    lab = running_lab()
    if not lab.layout.delayed:
        raise InputError("the lab has one data centre: start one with 'capplan lab up --dcs 2 --rtt 20ms'")
    count = min(settings.requests, _MOST_EXCHANGES, max(20, round(_EXCHANGES_S / max(lab.rtt_s, 1e-3))))
    first = [each for each in lab.layout.nodes if each.number == 1]
    rows = list(_round_trips(first[0].address, first[0], f"within dc{first[0].dc}", "without the proxy", count))
    for done, node in enumerate(first, start=1):
        progress(f"to dc{node.dc}", done, len(first))
        asked = f"{1000 * lab.rtt_s:g} ms asked for"
        rows += _round_trips(node.broadcast, node, f"to dc{node.dc}", asked, count)
    middle = [row.value or 0.0 for row in rows if row.statistic == "p50"]
    remark = f"{1000 * lab.rtt_s:g} ms were asked for, and half of the exchanges took up to {1000 * middle[-1]:.3g} ms"
    return Collected(microbenchmarks=tuple(rows), remarks=(remark,))


def _round_trips(address: str, node: Node, where: str, conditions: str, count: int) -> Iterator[MicrobenchRow]:
    with connect(address, ECHO_PORT) as connection:
        echo_times_s(connection, _MESSAGE, _FIRST)
        times = echo_times_s(connection, _MESSAGE, count)
    said = {"conditions": f"{len(_MESSAGE)} B there and back, {conditions}", "run_id": f"rtt-{node.name}-{address}"}
    note = "the echo of the lab's proxy, without Cassandra"
    cells = {"component": "link", "quantity": "latency", "unit": "s", "samples": len(times), "note": note}
    part = figure("rtt", "lab", f"exchange {where}", **said, **cells)
    yield mean_row(part, times, least=-inf)
    for statistic, value in quantiles(times):
        yield replace(part, statistic=statistic, value=value)


# -- TLS


def start_up(connection: socket.socket) -> None:
    """Start a connection.

    Raises
    ------
    InputError
        If the server does not take it.
    """
    opcode, _ = _ask(connection, _STARTUP, _OPTIONS)
    if opcode != _READY:
        raise InputError(f"Cassandra did not start the connection (opcode {opcode})")


def query(connection: socket.socket, text: str) -> int:
    """Send a query and return the size of the answer in bytes.

    Raises
    ------
    InputError
        If the answer is an error.
    """
    asked = text.encode()
    opcode, body = _ask(connection, _QUERY, struct.pack(">i", len(asked)) + asked + struct.pack(">HB", _LOCAL_ONE, 0))
    if opcode == _ERROR:
        raise InputError(f"Cassandra refused {text!r}: {body[6:].decode(errors='replace')}")
    return len(body)


def _ask(connection: socket.socket, opcode: int, body: bytes) -> tuple[int, bytes]:
    connection.sendall(struct.pack(">BBHBi", _VERSION, 0, 0, opcode, len(body)) + body)
    head = receive(connection, 9)
    return head[4], receive(connection, struct.unpack(">i", head[5:])[0])


_Costs = tuple[float, ...]
"""What one operation costs in a round: CPU of the node and of the client, and time (`_ENDS`), in seconds."""


@dataclass(frozen=True)
class _Side:
    """A way to connect to a node: plain or with TLS."""

    address: str
    process: Process
    context: ssl.SSLContext | None

    def connect(self) -> socket.socket:
        plain = connect(self.address, NATIVE_PORT)
        found = plain if self.context is None else self.context.wrap_socket(plain, server_hostname=self.address)
        start_up(found)
        return found

    def timed(self, what: Callable[[], object], count: int) -> _Costs:
        """Repeat an operation the given number of times."""
        before = (cpu_s(self.process), time.process_time(), time.perf_counter())
        for _ in range(count):
            what()
        after = (cpu_s(self.process), time.process_time(), time.perf_counter())
        return tuple((end - begin) / count for begin, end in zip(before, after, strict=True))


def collect_tls(settings: Settings, progress: Progress) -> Collected:
    """Measure TLS.

    Raises
    ------
    InputError
        If no lab runs whose clients may use TLS.
    """
    del settings
    lab = running_lab()
    if not lab.layout.client_tls:
        raise InputError("clients of the lab cannot use TLS: start one with 'capplan lab up --client-tls'")
    with session(lab.layout) as cql:
        cql.execute(f"CREATE TABLE IF NOT EXISTS {_TABLE} (id text PRIMARY KEY, value blob)")
        write = cql.prepare(f"INSERT INTO {_TABLE} (id, value) VALUES (?, ?)")  # noqa: S608  # our table
        for name, size in _SIZES.items():
            cql.execute(write, (name, b"x" * size))
    node = lab.layout.nodes[0]
    context = ssl.create_default_context(cafile=str(certificate()))
    sides = [_Side(node.address, lab.processes[node.name], each) for each in (None, context)]
    costs: dict[str, list[list[_Costs]]] = {"handshake": [], **{name: [] for name in _SIZES}}
    for round_ in range(2 * _ROUNDS):
        progress("plain and TLS in turn", round_, 2 * _ROUNDS)
        order = sides if round_ % 2 else sides[::-1]
        found = {id(side): _round(side) for side in order}
        if round_ >= _ROUNDS:
            for name, each in costs.items():
                each.append([found[id(side)][name] for side in sides])
    with sides[1].connect() as connection:
        used = f"{connection.version()}, {connection.cipher()[0]}"  # type: ignore[attr-defined]  # it is an SSLSocket
    rows = tuple(_rows(costs, lab, used))
    remark = f"{used}; plain and TLS in turn on one warm node, {_ROUNDS} rounds after {_ROUNDS} that only warm it up"
    return Collected(microbenchmarks=rows, remarks=(remark,))


def _round(side: _Side) -> dict[str, _Costs]:
    found = {"handshake": side.timed(lambda: side.connect().close(), _CONNECTIONS)}
    with side.connect() as connection:
        for name in _SIZES:
            text = f"SELECT value FROM {_TABLE} WHERE id = '{name}'"  # noqa: S608  # our table
            found[name] = side.timed(lambda text=text: query(connection, text), _MESSAGES)  # type: ignore[misc]  # lambda
    return found


def _rows(costs: dict[str, list[list[_Costs]]], lab: State, used: str) -> Iterator[MicrobenchRow]:
    """Yield the cost of TLS as differences between neighbouring rounds."""
    kib = (_LARGE_BYTES - _SIZES["small"]) / 1024
    for place, end in enumerate(_ENDS):
        added = {name: [tls[place] - plain[place] for plain, tls in rounds] for name, rounds in costs.items()}
        clock_s = cpu_error_s() if end == "node" else 0.0
        per_kib = [(large - small) / kib for large, small in zip(added["large"], added["small"], strict=True)]
        yield _row(lab, "handshake", end, added["handshake"], clock_s / _CONNECTIONS, used)
        yield _row(lab, "message and its answer", end, added["small"], clock_s / _MESSAGES, used)
        yield _row(lab, "KiB of an answer", end, per_kib, 2 * clock_s / _MESSAGES / kib, used)
    yield quantum_row("tls")


def _row(lab: State, operation: str, end: str, values: Sequence[float], error_s: float, used: str) -> MicrobenchRow:
    component, quantity = ("link", "latency") if end == "elapsed" else (end, "cpu_time")
    part = figure("tls", "cassandra", operation, version=lab.layout.release.release, samples=len(values))
    said = {"conditions": f"TLS less plain, one connection, {used}", "component": component, "quantity": quantity}
    note = "the client is Python's ssl, a part of OpenSSL; the node is Java's"
    return mean_row(part, values, error_s, -inf, note=note, **said)
