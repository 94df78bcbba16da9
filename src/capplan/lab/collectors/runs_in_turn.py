"""Runs of several loads in turn on one cluster, repeat by repeat, so that a drift of the machine is in all of them."""

from __future__ import annotations

import asyncio
import random
import time
import zlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from capplan.calibration.evidence.load_test_row import all_in_first
from capplan.calibration.evidence.load_tests import LoadTestRow
from capplan.lab.collectors.cassandra_load import doubt_cells, doubts, latency_columns
from capplan.lab.collectors.collector import Progress
from capplan.lab.collectors.measurement import load
from capplan.lab.collectors.measurement.load import Request, Sample, Servers
from capplan.lab.collectors.measurement.machine import cores
from capplan.lab.collectors.measurement.steadiness import warm_up
from capplan.lab.layout import NATIVE_PORT
from capplan.models.errors import InputError

ROWS = 5000
"""Rows of each table, which are written over and over, so that the data does not grow."""
_AT_ONCE = 64  # writes of the rows that are read afterwards
_MOST_REQUESTS = 1_000_000
_WINDOW_S, _PAUSE_S = 1.0, 0.2
_WARM_CLIENTS = 8  # at least
_RTT_SETTLES_S = 1.0
_PATIENCE_S = 30.0
_SEED = 1

Operation = Literal["read", "write"]


@dataclass(frozen=True)
class Load:
    """What the clients of a run do.

    Attributes
    ----------
    operation : str
        `read` or `write`.
    level : str
        Consistency level.
    row_bytes : int
        Bytes of a row's value.
    clients : int or None
        Closed clients; None: open requests.
    rate_per_s : float or None
        Rate of open requests.
    tls : bool
        Whether clients use TLS.
    rtt_ms : float or None
        Round trip between data centres.
    """

    operation: Operation
    level: str
    row_bytes: int = 100
    clients: int | None = None
    rate_per_s: float | None = None
    tls: bool = False
    rtt_ms: float | None = None

    @property
    def statement(self) -> tuple[Operation, str, int, bool]:
        """What is prepared for it."""
        return self.operation, self.level, self.row_bytes, self.tls

    @property
    def name(self) -> str:
        """Its name among the loads of a cluster."""
        parts = [self.operation, self.level.lower(), f"{self.row_bytes}b"]
        parts += ["tls"] if self.tls else []
        parts += [] if self.rtt_ms is None else [f"{self.rtt_ms:g}ms"]
        parts.append(f"open-{self.rate_per_s:.0f}" if self.clients is None else f"closed-{self.clients}")
        return "-".join(parts)


@dataclass(frozen=True)
class RunningCluster:
    """A cluster that answers, as the generator sees it.

    Attributes
    ----------
    version : str
        Release of Cassandra.
    cass_nodes, rf : tuple of int
        Nodes, and replicas of a row, of each data centre.
    addresses : tuple of str
        Nodes of the data centre of the clients.
    local_dc : str
        Its name.
    replication : str
        Replication of a keyspace, as CQL.
    keyspace : str
        The keyspace, which is created if need be.
    node_cores : float
        Cores of a node, or of the machine if all share it.
    servers : Servers
        Processes of the nodes on this machine, whose CPU is measured.
    one_host : bool
        Whether all nodes and the load generator share one machine.
    source : str
        What the rows say of their source.
    set_rtt : function or None
        Changes the round trip between data centres, ms.
    certificate : Path or None
        Certificate of the nodes, for TLS.
    user, password : str or None
        What clients log in with.
    internode_tls : bool
        Whether nodes use TLS among each other.
    port : int
        Where nodes answer clients.
    note : str
        What rows say of the cluster that no column has, such as a node that is down.
    """

    version: str
    cass_nodes: tuple[int, ...]
    rf: tuple[int, ...]
    addresses: tuple[str, ...]
    local_dc: str
    replication: str
    keyspace: str
    node_cores: float
    servers: Servers = field(default_factory=Servers)
    one_host: bool = False
    source: str = "capplan validate --live"
    set_rtt: Callable[[float], None] | None = None
    certificate: Path | None = None
    user: str | None = None
    password: str | None = None
    internode_tls: bool = False
    port: int = NATIVE_PORT
    note: str = ""

    def row(self, load_: Load) -> dict[str, Any]:
        """Return the cells of a load-test row that are known before it is measured."""
        reads = load_.operation == "read"
        return {
            "system": "cassandra",
            "version": self.version,
            "dcs": len(self.rf),
            "cass_nodes": _same(self.cass_nodes),
            "node_cores": self.node_cores,
            "rf": _same(self.rf),
            "consistency_read": load_.level if reads else None,
            "consistency_write": None if reads else load_.level,
            "token_aware": True,
            "read_fraction": 1.0 if reads else 0.0,
            "row_bytes": float(load_.row_bytes),
            "cache_state": "warm",
            "encryption_client": load_.tls,
            "encryption_internode": self.internode_tls,
            "rtt_ms": load_.rtt_ms if len(self.rf) > 1 else None,
            "client_share": all_in_first(len(self.rf)),
            "load_kind": "open" if load_.clients is None else "closed",
            "clients": load_.clients,
            "think_time_ms": None if load_.clients is None else 0.0,
            "offered_tps": load_.rate_per_s,
            "request_class": load_.operation,
            "one_host": self.one_host,
            "source": self.source,
        }


def _same(counts: tuple[int, ...]) -> int | tuple[int, ...]:
    return counts[0] if len(set(counts)) == 1 else counts


@dataclass(frozen=True)
class Bounds:
    """How long and how often.

    Attributes
    ----------
    duration_s : float
        Time of a run.
    repeats : int
        How often each load is measured.
    warm_up_s : float
        Most time to wait until the speed is steady, for each statement at each level.
    """

    duration_s: float = 3.0
    repeats: int = 5
    warm_up_s: float = 30.0


def run_name(stage: str, load_: Load, repeat: int) -> str:
    """Return the name of a run."""
    return f"{stage}-{load_.name}-{repeat}"


def seed_of(run: str) -> int:
    """Return the seed of a run by its name: the same after an interruption, and another one for each repeat."""
    return zlib.crc32(run.encode())


def measure(  # two callers, in one file
    cluster: RunningCluster,
    stage: str,
    loads: Sequence[Load],
    bounds: Bounds,
    finished: Mapping[str, LoadTestRow],
    done: Callable[[LoadTestRow], None],
    progress: Progress,
) -> None:
    """Measure loads in turn, as often as asked, without the runs that are finished.

    Parameters
    ----------
    cluster : RunningCluster
        The cluster.
    stage : str
        With which the names of the runs begin.
    loads : sequence of Load
        The loads.
    bounds : Bounds
        How long and how often.
    finished : mapping of LoadTestRow
        Runs that were measured before, by name.
    done : function
        Receives each row as soon as it is measured.
    progress : function
        Receives what is done.

    Raises
    ------
    InputError
        If no request of a load is answered.
    """
    left = [
        (repeat, each)
        for repeat in range(1, bounds.repeats + 1)
        for each in loads
        if run_name(stage, each, repeat) not in finished
    ]
    if left:
        load.run(_measured(cluster, stage, left, bounds, done, progress))


async def _measured(  # as its caller
    cluster: RunningCluster,
    stage: str,
    left: Sequence[tuple[int, Load]],
    bounds: Bounds,
    done: Callable[[LoadTestRow], None],
    progress: Progress,
) -> None:
    sessions = {tls: await connected(cluster, tls=tls) for tls in dict.fromkeys(each.tls for _, each in left)}
    try:
        progress("writing rows", 0, 1)
        await create_tables(sessions[left[0][1].tls], cluster, sorted({each.row_bytes for _, each in left}))
        requests = {
            each.statement: await prepared(sessions[each.tls], cluster.keyspace, each)
            for each in {each.statement: each for _, each in left}.values()
        }
        rtt = RoundTrip(cluster)
        sentences = await _warmed([each for _, each in left], requests, rtt, cluster.servers, bounds, progress)
        for number, (repeat, each) in enumerate(left):
            progress(f"{each.operation} {each.level}, {_load_words(each)}", number, len(left))
            await rtt.become(each.rtt_ms)
            await asyncio.sleep(_PAUSE_S)
            seed = seed_of(run_name(stage, each, repeat))
            sample = await _sampled(each, requests[each.statement], bounds.duration_s, seed, cluster.servers)
            done(_row(cluster, stage, each, repeat, sample, sentences[each.statement]))
    finally:
        for session in sessions.values():
            await session.close()


def _load_words(load_: Load) -> str:
    return f"{load_.rate_per_s:,.0f}/s" if load_.clients is None else f"{load_.clients} clients"


class RoundTrip:
    """The round trip between data centres, changed only where it differs."""

    def __init__(self, cluster: RunningCluster) -> None:
        self._set, self._now = cluster.set_rtt, -1.0

    async def become(self, rtt_ms: float | None) -> None:
        """Change the round trip, and wait until messages on their way have arrived."""
        if self._set is not None and rtt_ms is not None and rtt_ms != self._now:
            self._set(rtt_ms)
            self._now = rtt_ms
            await asyncio.sleep(_RTT_SETTLES_S)


async def connected(cluster: RunningCluster, *, tls: bool) -> Any:
    """Connect the driver to the data centre of the clients."""
    import acsylla

    options: dict[str, Any] = {}
    if cluster.user is not None:
        options |= {"username": cluster.user, "password": cluster.password}
    if tls:
        if cluster.certificate is None:
            raise InputError("TLS is asked for, and no certificate of the nodes is known")
        text = cluster.certificate.read_text(encoding="ascii")
        options |= {"ssl_enabled": True, "ssl_trusted_cert": text}
    its = acsylla.create_cluster(
        list(cluster.addresses),
        port=cluster.port,
        load_balance_dc_aware=cluster.local_dc,
        token_aware_routing=True,
        coalesce_delay_us=0,
        request_timeout=12.0,
        log_level="critical",
        **options,
    )
    try:
        return await its.create_session()
    except Exception as error:  # of many classes
        raise InputError(f"no connection to {', '.join(cluster.addresses)}, port {cluster.port}: {error}") from None


def table_of(keyspace: str, row_bytes: int) -> str:
    """Return the table with rows of a size, which all data centres have."""
    return f"{keyspace}.live_{row_bytes}"


async def create_tables(session: Any, cluster: RunningCluster, sizes: Sequence[int]) -> None:
    """Create the tables, and write their rows."""
    import acsylla

    statements = [f"CREATE KEYSPACE IF NOT EXISTS {cluster.keyspace} WITH replication = {cluster.replication}"]
    statements += [
        f"CREATE TABLE IF NOT EXISTS {table_of(cluster.keyspace, size)} (id bigint PRIMARY KEY, value blob)"
        for size in sizes
    ]
    for text in statements:
        await session.execute(acsylla.create_statement(text, timeout=30.0))
    for size in sizes:
        write = await prepared(session, cluster.keyspace, Load("write", "QUORUM", size))
        for first in range(0, ROWS, _AT_ONCE):
            await asyncio.gather(*(_answered(write, number) for number in range(first, min(first + _AT_ONCE, ROWS))))


async def _answered(request: Request, number: int) -> None:
    """Make a request, again and again as long as nodes have not heard of its table."""
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            await request(number)
            return
        except Exception as error:  # of many classes, as long as nodes agree on the schema
            if time.monotonic() > deadline:
                raise InputError(f"a row cannot be written: {error}") from None
        await asyncio.sleep(_PAUSE_S)


async def prepared(session: Any, keyspace: str, load_: Load) -> Request:
    """Prepare a statement; keys come in a fixed random order, and a read must find its row."""
    import acsylla

    draw = random.Random(_SEED)  # noqa: S311  # keys of rows
    keys, value = draw.sample(range(ROWS), ROWS), draw.randbytes(load_.row_bytes)
    table = table_of(keyspace, load_.row_bytes)
    level, execute = acsylla.Consistency[load_.level], session.execute
    if load_.operation == "write":
        insert = await session.create_prepared(f"INSERT INTO {table} (id, value) VALUES (?, ?)")  # noqa: S608  # our table

        def write(number: int) -> Awaitable[Any]:
            answer: Awaitable[Any] = execute(insert.bind([keys[number % ROWS], value], consistency=level))
            return answer

        return write
    select = await session.create_prepared(f"SELECT value FROM {table} WHERE id = ?")  # noqa: S608  # our table

    async def read(number: int) -> Any:
        found = await execute(select.bind([keys[number % ROWS]], consistency=level))
        if found.count() != 1:
            raise InputError(f"row {keys[number % ROWS]} was not found")
        return found

    return read


async def _warmed(  # as its caller
    loads: Sequence[Load],
    requests: Mapping[Any, Request],
    rtt: RoundTrip,
    servers: Servers,
    bounds: Bounds,
    progress: Progress,
) -> dict[Any, str]:
    """Load every statement until its cost is steady; return what was seen of each."""
    clients = max(_WARM_CLIENTS, *(each.clients or 0 for each in loads))
    sentences: dict[Any, str] = {}
    for statement, own in {each.statement: each for each in reversed(loads)}.items():
        progress(f"warming {own.operation}s at {own.level} up until they are steady", 0, 1)
        await rtt.become(own.rtt_ms)

        async def window(seconds: float, own: Load = own) -> float:
            found = await load.closed(requests[own.statement], clients, seconds, _MOST_REQUESTS, servers)
            if not found.completed:
                raise InputError(f"no {own.operation} at {own.level} was answered: check the nodes, or the level")
            whole = sum(found.server_cpu_s) or float(found.latencies_s.sum())
            return whole / found.completed

        sentences[statement] = (await warm_up(window, _WINDOW_S, bounds.warm_up_s)).sentence
    return sentences


async def _sampled(load_: Load, request: Request, duration_s: float, seed: int, servers: Servers) -> Sample:
    first = seed % ROWS
    if load_.clients is not None:
        return await load.closed(request, load_.clients, duration_s, _MOST_REQUESTS, servers, first)
    starts = load.arrivals(load_.rate_per_s or 1.0, duration_s, _MOST_REQUESTS, seed)
    return await load.paced(request, starts, servers, first)


def _row(  # all that a row says
    cluster: RunningCluster, stage: str, load_: Load, repeat: int, sample: Sample, warm: str
) -> LoadTestRow:
    nodes = None
    if cluster.servers.nodes:
        share = 100 * sum(sample.server_cpu_s) / (len(sample.server_cpu_s) * sample.duration_s * cores())
        nodes = min(100.0, share)
    return LoadTestRow(
        run_id=run_name(stage, load_, repeat),
        repeat=repeat,
        duration_s=sample.duration_s,
        throughput_tps=sample.throughput_per_s,
        node_cpu_percent=nodes,
        client_cpu_percent=sample.client_percent,
        drops=0,
        errors=sample.errors,
        note="; ".join([*([cluster.note] if cluster.note else []), warm, *doubts(sample)]),
        **doubt_cells(sample),
        **cluster.row(load_),
        **latency_columns(sample),
    )
