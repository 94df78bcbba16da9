"""What TLS costs at a client and a node: handshake, message, KiB. Plain and TLS alternate on one warm node."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from capplan.calibration.evidence.microbenchmarks import MicrobenchRow
from capplan.lab import cluster
from capplan.lab.collectors.cassandra_load import running_lab
from capplan.lab.collectors.collector import Collected, Progress, Settings
from capplan.lab.collectors.measurement.exchanges import connect, mean_interval
from capplan.lab.collectors.measurement.machine import cpu_error_s, machine, quantum_row
from capplan.lab.collectors.native_protocol import query, start_up
from capplan.lab.layout import NATIVE_PORT
from capplan.lab.processes import Process, cpu_s
from capplan.lab.schema import KEYSPACE, session
from capplan.lab.state import State
from capplan.models.errors import InputError

_LARGE_BYTES = 32 << 10
_SIZES = {"small": 16, "large": _LARGE_BYTES}
_ROUNDS = 8  # of plain and TLS in turn, after as many that only warm up
_CONNECTIONS = 40  # a round
_MESSAGES = 400
_TABLE = f"{KEYSPACE}.tls"
_ENDS = ("node", "client", "elapsed")


@dataclass(frozen=True)
class _Costs:
    """What one operation costs in a round: CPU of the node and of the client, and time, in seconds."""

    node: float
    client: float
    elapsed: float


@dataclass(frozen=True)
class _Side:
    """A way to connect to a node: plain, or by TLS."""

    address: str
    process: Process
    context: ssl.SSLContext | None

    def connect(self) -> socket.socket:
        plain = connect(self.address, NATIVE_PORT)
        found = plain if self.context is None else self.context.wrap_socket(plain, server_hostname=self.address)
        start_up(found)
        return found

    def timed(self, what: Callable[[], object], count: int) -> _Costs:
        """Do something so many times."""
        before = (cpu_s(self.process), time.process_time(), time.perf_counter())
        for _ in range(count):
            what()
        after = (cpu_s(self.process), time.process_time(), time.perf_counter())
        return _Costs(*((end - begin) / count for begin, end in zip(before, after, strict=True)))


def collect(settings: Settings, progress: Progress) -> Collected:
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
    _write_rows(lab)
    node = lab.layout.nodes[0]
    context = ssl.create_default_context(cafile=str(cluster.certificate()))
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


def _write_rows(lab: State) -> None:
    with session(lab.layout) as cql:
        cql.execute(f"CREATE TABLE IF NOT EXISTS {_TABLE} (id text PRIMARY KEY, value blob)")
        write = cql.prepare(f"INSERT INTO {_TABLE} (id, value) VALUES (?, ?)")  # noqa: S608  # our table
        for name, size in _SIZES.items():
            cql.execute(write, (name, b"x" * size))


def _round(side: _Side) -> dict[str, _Costs]:
    found = {"handshake": side.timed(lambda: side.connect().close(), _CONNECTIONS)}
    with side.connect() as connection:
        for name in _SIZES:
            text = f"SELECT value FROM {_TABLE} WHERE id = '{name}'"  # noqa: S608  # our table
            found[name] = side.timed(lambda text=text: query(connection, text), _MESSAGES)  # type: ignore[misc]  # lambda
    return found


def _rows(costs: dict[str, list[list[_Costs]]], lab: State, used: str) -> Iterator[MicrobenchRow]:
    """Yield what TLS adds, as differences of neighbouring rounds."""
    kib = (_LARGE_BYTES - _SIZES["small"]) / 1024
    for end in _ENDS:
        added = {
            name: [getattr(tls, end) - getattr(plain, end) for plain, tls in rounds] for name, rounds in costs.items()
        }
        clock_s = cpu_error_s() if end == "node" else 0.0
        per_kib = [(large - small) / kib for large, small in zip(added["large"], added["small"], strict=True)]
        yield _row(lab, "handshake", end, added["handshake"], clock_s / _CONNECTIONS, used)
        yield _row(lab, "message and its answer", end, added["small"], clock_s / _MESSAGES, used)
        yield _row(lab, "KiB of an answer", end, per_kib, 2 * clock_s / _MESSAGES / kib, used)
    yield quantum_row("tls")


def _row(lab: State, operation: str, end: str, values: Sequence[float], error_s: float, used: str) -> MicrobenchRow:
    mean, low, high = mean_interval(values, error_s)
    return MicrobenchRow(
        run_id="tls",
        system="cassandra",
        version=lab.layout.release.release,
        host=machine(),
        component="link" if end == "elapsed" else end,
        operation=operation,
        quantity="latency" if end == "elapsed" else "cpu_time",
        statistic="mean",
        value=mean,
        unit="s",
        samples=len(values),
        error_low=low,
        error_high=high,
        conditions=f"TLS less plain, one connection, {used}",
        source="capplan collect tls",
        note="the client is Python's ssl, a part of OpenSSL; the node is Java's",
    )
