"""Cassandra as the load generator sees it: the cluster, the driver, its statements, and the collectors for it.

A write or a read asks for one row of a fixed table by its key. What a request costs the nodes is the CPU beyond idling.

The pool of threads for clients is measured where each thread waits a round trip for a quorum: with two data centres far
apart, a write at QUORUM holds a thread for that time and needs little CPU. So the pool is full long before the cores
are, and more clients only wait for a thread. Throughput times the time that a request holds a thread is the number of
threads; what a thread loses between two requests is the hand-off.
"""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

import numpy as np

from capplan.evidence.load_test_row import LoadTestRow, all_in_first
from capplan.evidence.microbenchmarks import MicrobenchRow
from capplan.lab import cluster as lab_cluster
from capplan.lab import state
from capplan.lab.cluster import KEYSPACE, replication, session
from capplan.lab.collectors import load
from capplan.lab.collectors.collector import Collected, Progress, Settings
from capplan.lab.collectors.load import (
    Request,
    Run,
    Runner,
    Servers,
    Target,
    clock_note,
    doubted,
    doubts,
    figure,
    idle_cores,
    lateness_rows,
    load_cells,
    mean_row,
    per_request,
    quantum_row,
    rounded,
)
from capplan.lab.layout import NATIVE_PORT, Layout, Node, gc_log
from capplan.lab.processes import cores, machine
from capplan.lab.state import PROXY, State
from capplan.models.cassandra.cluster import NATIVE_TRANSPORT_THREADS
from capplan.models.cassandra.consistency import READ_LEVELS, WRITE_LEVELS
from capplan.models.errors import InputError, nearest

ROWS = 20_000
"""Rows of a collector's table, which are written over and over, so that the data does not grow."""
_AT_ONCE = 64  # writes of the rows that are read afterwards
_PATIENCE_S, _ASK_EVERY_S = 30.0, 0.2
_GENERATOR_RATES = (0.02, 0.1)  # at which lateness is measured, as shares of the ceiling
_GENERATOR_WARM_UP_S = 1.0
_EMPTY, _BATCHES = 10_000, 5
_POOL_CLIENTS = (16, 64, 192, 256)
_SHORTEST_RTT_S = 0.05  # below it the cores are the limit, not the threads
_FULL = 1.2  # clients for each thread, from which on the pool is full
_PAUSE = re.compile(r"\bPause .* ([\d.]+)ms$", re.MULTILINE)
_UPTIME = re.compile(r"^\[([\d.]+)s\]", re.MULTILINE)
_POOLS = {
    "active_tasks": "active",
    "pending_tasks": "pending",
    "completed_tasks": "completed",
    "blocked_tasks_all_time": "blocked",
    "active_tasks_limit": "limit",
}
_COUNTED = {
    "coordinator_read_latency": ("coordinator", "read"),
    "coordinator_write_latency": ("coordinator", "write"),
    "local_read_latency": ("replica", "read"),
    "local_write_latency": ("replica", "write"),
}

Operation = Literal["read", "write"]


@dataclass(frozen=True)
class Load:
    """The load of a run.

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
        """The key of the prepared statement for this load."""
        return self.operation, self.level, self.row_bytes, self.tls

    @property
    def name(self) -> str:
        """The name of this load among the loads of a cluster."""
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
        """Return the cells of a load-test row that are known before the run."""
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
            **load_cells(load_.clients, load_.rate_per_s),
            "request_class": load_.operation,
            "one_host": self.one_host,
            "source": self.source,
        }


def _same(counts: tuple[int, ...]) -> int | tuple[int, ...]:
    return counts[0] if len(set(counts)) == 1 else counts


def cluster_of(layout: Layout, running: State | None = None, killed: str | None = None) -> RunningCluster:
    """Return a lab as the load generator sees it.

    Parameters
    ----------
    layout : Layout
        What is asked for.
    running : State, optional
        The lab, if it runs: the CPU of its processes is measured.
    killed : str, optional
        A node that is down.
    """
    alive = {name: each for name, each in (running.alive if running else {}).items() if name != killed}
    nodes = tuple(each for name, each in alive.items() if name != PROXY)
    return RunningCluster(
        version=layout.release.release,
        cass_nodes=(layout.cass_nodes,) * layout.dcs,
        rf=(layout.rf,) * layout.dcs,
        addresses=tuple(each.address for each in layout.nodes if each.dc == 1 and each.name != killed),
        local_dc="dc1",
        replication=replication(layout),
        keyspace=KEYSPACE,
        node_cores=float(cores()),
        servers=Servers(nodes, tuple(each for name, each in alive.items() if name == PROXY)),
        one_host=True,
        set_rtt=(lambda rtt_ms: lab_cluster.set_rtt(rtt_ms / 1000)) if layout.delayed else None,
        certificate=lab_cluster.certificate() if layout.client_tls else None,
        internode_tls=layout.internode_tls,
    )


def running_lab() -> State:
    """Return the lab; all its nodes must be up.

    Raises
    ------
    InputError
        If there is none, or a node is down.
    """
    lab = state.needed()
    down = [each.name for each in lab.layout.nodes if each.name not in lab.alive]
    if down:
        raise InputError(f"node {down[0]} of the lab is down: start it with 'capplan lab start {down[0]}'")
    if lab.layout.delayed and PROXY not in lab.alive:
        raise InputError("the proxy between the data centres has ended: end the lab with 'capplan lab down'")
    if not lab.ready:
        raise InputError("the lab has not finished starting: end it with 'capplan lab down' and start it again")
    return lab


async def connected(cluster: RunningCluster, *, tls: bool = False) -> Any:
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


async def patiently(attempt: Callable[[], Awaitable[Any]], what: str) -> Any:
    """Repeat an attempt until the nodes know a new table.

    Raises
    ------
    InputError
        If it does not succeed in time.
    """
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return await attempt()
        except Exception as error:  # of many classes, as long as nodes agree on the schema
            if time.monotonic() > deadline:
                raise InputError(f"{what}: {error}") from None
        await asyncio.sleep(_ASK_EVERY_S)


async def create(driver: Any, *statements: str) -> None:
    """Create keyspaces or tables."""
    import acsylla

    for text in statements:
        await driver.execute(acsylla.create_statement(text, timeout=30.0))


@dataclass(frozen=True)
class Table:
    """A table of numbered rows with values of one size; every data centre stores its rows.

    Attributes
    ----------
    name : str
        Its name with its keyspace.
    row_bytes : int
        Bytes of a value.
    rows : int
        How many rows it has.
    """

    name: str
    row_bytes: int
    rows: int

    @property
    def creation(self) -> str:
        """The statement that creates it."""
        return f"CREATE TABLE IF NOT EXISTS {self.name} (id bigint PRIMARY KEY, value blob)"

    async def prepared(self, driver: Any, operation: Operation, level: str, seed: int) -> Request:
        """Prepare a statement; keys come in a random order that the seed fixes, and a read must find its row."""
        import acsylla

        draw, execute, rows = random.Random(seed), driver.execute, self.rows  # noqa: S311  # keys of rows
        keys, value, at = draw.sample(range(rows), rows), draw.randbytes(self.row_bytes), acsylla.Consistency[level]
        if operation == "write":
            insert = await driver.create_prepared(f"INSERT INTO {self.name} (id, value) VALUES (?, ?)")  # noqa: S608  # our table

            def write(number: int) -> Awaitable[Any]:
                answer: Awaitable[Any] = execute(insert.bind([keys[number % rows], value], consistency=at))
                return answer

            return write
        select = await driver.create_prepared(f"SELECT value FROM {self.name} WHERE id = ?")  # noqa: S608  # our table

        async def read(number: int) -> Any:
            found = await execute(select.bind([keys[number % rows]], consistency=at))
            if found.count() != 1:
                raise InputError(f"row {keys[number % rows]} was not found")
            return found

        return read

    async def fill(self, driver: Any, level: str, seed: int) -> None:
        """Write all rows."""
        write = await self.prepared(driver, "write", level, seed)

        async def written(number: int) -> None:
            await patiently(lambda: write(number), "a row cannot be written")

        for first in range(0, self.rows, _AT_ONCE):
            await asyncio.gather(*map(written, range(first, min(first + _AT_ONCE, self.rows))))


# -- writes and reads


def collect_writes(settings: Settings, progress: Progress) -> Collected:
    """Measure writes."""
    return collect_load("write", settings, progress)


def collect_reads(settings: Settings, progress: Progress) -> Collected:
    """Measure reads."""
    return collect_load("read", settings, progress)


def collect_load(operation: Operation, settings: Settings, progress: Progress, name: str = "") -> Collected:
    """Measure an operation: warm-up, closed runs, open runs.

    Raises
    ------
    InputError
        If no lab runs, or the level is none of the operation.
    """
    check_level(settings.level, operation)
    lab = running_lab()
    progress("preparing", 0, 1)
    return load.run(_collect(About(name or f"cassandra-{operation}", operation, lab, settings), progress))


def check_level(level: str, operation: str) -> None:
    """Check a consistency level.

    Raises
    ------
    InputError
        If there is none of that name for the operation.
    """
    known = READ_LEVELS if operation == "read" else WRITE_LEVELS
    if level not in known:
        raise InputError(f"--level {level!r} is not a consistency level of a {operation}{nearest(level, known)}")


async def _collect(about: About, progress: Progress) -> Collected:
    settings, operation = about.settings, about.operation
    driver = await connected(about.cluster)
    try:
        request = await _request(driver, operation, settings)
        unanswered = (
            f"no {operation} at {settings.level} was answered: check 'capplan lab status', or give another --level"
        )
        target = Target(request, about.cluster.servers, unanswered)
        idle = await idle_cores(target.servers)
        total = settings.repeats * (len(settings.clients) + len(settings.shares))
        runner = Runner(target, settings, progress, total)
        warm = (await runner.warm_up()).sentence
        for repeat in range(1, settings.repeats + 1):  # so that a drift of the machine affects all of them
            for clients in settings.clients:
                most = await runner.step(clients, repeat=repeat)
            for share in settings.shares:
                rate = rounded(share * most.sample.throughput_per_s)
                await runner.step(None, rate, settings.seed + len(runner.runs), repeat)
    finally:
        await driver.close()
    runs = runner.runs
    return Collected(
        tuple(about.row(each, warm) for each in runs),
        tuple(about.parts(runs, idle, warm)),
        tuple(each.timed(each.name) for each in runs),
        (warm, *doubted((each.name, each.sample) for each in runs)),
    )


async def _request(driver: Any, operation: Operation, settings: Settings) -> Request:
    """Prepare a collector's statement; for reads, write the rows first and check one of them."""
    table = Table(f"{KEYSPACE}.collected_{settings.row_bytes}", settings.row_bytes, ROWS)
    await create(driver, table.creation)
    if operation == "write":
        return await table.prepared(driver, operation, settings.level, settings.seed)
    await table.fill(driver, "ALL", settings.seed)
    read = await table.prepared(driver, operation, settings.level, settings.seed + 1)
    one = (await read(0)).first()
    if len(one.value) != settings.row_bytes:
        raise InputError(f"a row has {len(one.value)} bytes, and {settings.row_bytes} were written")
    return read


@dataclass(frozen=True)
class About:
    """Facts that all rows of a collection share."""

    name: str
    operation: Operation
    lab: State
    settings: Settings

    @property
    def cluster(self) -> RunningCluster:
        """The lab as the generator sees it."""
        return replace(cluster_of(self.lab.layout, self.lab), source=f"capplan collect {self.name}")

    def _run_id(self, run: Run) -> str:
        return f"{self.name}-{self.settings.level.lower()}-{self.settings.row_bytes}b-{run.name}"

    def row(self, run: Run, warm: str) -> LoadTestRow:
        """Return a run as a row of a load-test table."""
        asked, shared = self.settings, f"{cores()} cores shared by all nodes and the load generator"
        its = Load(self.operation, asked.level, asked.row_bytes, run.clients, run.offered_per_s)
        columns = self.cluster.row(replace(its, rtt_ms=1000 * self.lab.rtt_s))
        return run.row({**columns, "run_id": self._run_id(run)}, [shared, warm])

    def parts(self, runs: Sequence[Run], idle: float, warm: str) -> Iterator[MicrobenchRow]:
        """Yield the cost of an operation at each end and each load; the nodes use `idle` cores without load."""
        for run in runs:
            layout, how = self.lab.layout, f"closed, {run.clients} clients"
            if run.offered_per_s is not None:
                how = f"open, {run.offered_per_s:g} requests/s"
            where = f"{self.settings.level}, RF {layout.rf}, {layout.dcs} x {layout.cass_nodes} nodes"
            cells = {"version": layout.release.release, "samples": run.sample.completed, "run_id": self._run_id(run)}
            conditions = f"{how}, {where}, {self.settings.row_bytes} B rows"
            part = figure(self.name, "cassandra", self.operation, conditions=conditions, **cells)
            cost, said = per_request(run.sample, idle), "; ".join([clock_note(), warm, *doubts(run.sample)])
            less = f"all nodes together, less {1000 * idle:.0f} ms a second without load; {said}"
            yield mean_row(part, cost.servers, cost.error_s, component="nodes", quantity="cpu_time", note=less)
            generator = replace(part, component="load generator")
            yield mean_row(generator, cost.client, quantity="cpu_time", note=f"all of its threads; {said}")
            loop = f"the thread of its event loop; {said}"
            yield mean_row(generator, cost.thread, quantity="thread_time", note=loop)
            late = "from the intended start to the sending; it is part of the latency"
            yield from lateness_rows(part, run.sample, late)
        yield quantum_row(self.name)


# -- the load generator


def collect_client(settings: Settings, progress: Progress) -> Collected:
    """Measure the ceiling of the load generator, and with the driver if a lab runs."""
    progress("without a server", 0, 2)
    rows = load.run(_alone(settings))
    remarks = ["the generator alone makes requests that are answered at once"]
    if state.read() is None:
        remarks.append("no lab runs, so the driver was not measured: 'capplan lab up' starts one")
    else:
        progress("with the driver", 1, 2)
        rows += load.run(_with_driver(settings))
    return Collected(microbenchmarks=(*rows, quantum_row("client")), remarks=tuple(remarks))


async def _alone(settings: Settings) -> list[MicrobenchRow]:
    async def answered(number: int) -> None:
        del number
        await asyncio.sleep(0)

    count = min(settings.requests, _EMPTY)
    batches = [await load.paced(answered, np.zeros(count)) for _ in range(_BATCHES + 1)][1:]
    costs = [each.thread_cpu_s / each.completed for each in batches]
    conditions = f"{count:,} requests that are due at once and answered at once"
    rows = list(_ceiling(costs, costs, "no server", conditions, _BATCHES * count))
    for share in _GENERATOR_RATES:
        rate = share / fmean(costs)
        starts = load.arrivals(rate, settings.duration_s, settings.requests, settings.seed)
        found = await load.paced(answered, starts)
        conditions = f"open, {rate:.3g} requests/s, answered at once"
        part = _generator(f"no server, {rate:,.0f}/s", conditions, len(found.lateness_s))
        rows += lateness_rows(part, found, "from the intended start to the sending")
    return rows


async def _with_driver(settings: Settings) -> list[MicrobenchRow]:
    lab = running_lab()
    its, clients = cluster_of(lab.layout, lab), max(settings.clients)
    driver = await connected(its)
    request = await _request(driver, "write", replace(settings, level="LOCAL_ONE"))
    await load.closed(request, clients, _GENERATOR_WARM_UP_S, settings.requests)
    found = await load.closed(request, clients, settings.duration_s, settings.requests, its.servers)
    await driver.close()
    cost, conditions = per_request(found), f"closed, {clients} clients, acsylla, {settings.row_bytes} B rows"
    return list(_ceiling(cost.thread, cost.client, "write", conditions, found.completed))


def _generator(operation: str, conditions: str, samples: int) -> MicrobenchRow:
    cells = {"component": "load generator", "samples": samples, "conditions": conditions}
    return figure("client", "capplan", operation, **cells)


def _ceiling(
    threads: Sequence[float], all_threads: Sequence[float], operation: str, conditions: str, samples: int
) -> Iterator[MicrobenchRow]:
    """Yield the CPU time per request, and the rate at which the event loop's thread would be 100 % busy."""
    part = _generator(operation, conditions, samples)
    cost = mean_row(part, threads, quantity="thread_time")
    yield cost
    yield mean_row(part, all_threads, quantity="cpu_time")
    low, mean, high = cost.error_low or 0.0, cost.value or inf, cost.error_high or inf
    note = "requests per second at which its thread is always busy; a load test must stay below four fifths of it"
    limits: dict[str, Any] = {"value": 1 / mean, "error_low": 1 / high, "error_high": 1 / low if low > 0 else None}
    yield replace(cost, quantity="ceiling", unit="1/s", note=note, **limits)


# -- threads for clients


def collect_pool(settings: Settings, progress: Progress) -> Collected:
    """Measure a full pool of client threads.

    Raises
    ------
    InputError
        If no lab runs whose data centres are far enough apart.
    """
    lab = running_lab()
    if not lab.layout.delayed or lab.rtt_s < _SHORTEST_RTT_S:
        raise InputError(
            f"the pool fills up only if requests wait at least {1000 * _SHORTEST_RTT_S:g} ms for another data centre: "
            "use 'capplan lab up --dcs 2 --rtt 100ms'"
        )
    nodes = lab.layout.cass_nodes
    asked = replace(settings, level="QUORUM", clients=tuple(nodes * each for each in _POOL_CLIENTS), shares=())
    found = collect_load("write", asked, progress, "worker-pool")
    rows = tuple(pool_rows(found.load_tests, _threads(lab), lab.layout.release.release))
    return replace(found, microbenchmarks=(*rows, *found.microbenchmarks))


def _threads(lab: State) -> int:
    """Return the number of client threads of a node."""
    if not lab.layout.release.virtual_tables:
        return NATIVE_TRANSPORT_THREADS
    with session(lab.layout) as cql:
        pools = cql.execute("SELECT name, active_tasks_limit FROM system_views.thread_pools")
        return next(int(each.active_tasks_limit) for each in pools if each.name == "Native-Transport-Requests")


def pool_rows(runs: Sequence[LoadTestRow], threads: int, release: str) -> Iterator[MicrobenchRow]:
    """Yield the busy threads, and the throughput of a full pool beside its prediction.

    The run with the fewest clients is the first one, and all that the prediction uses: as many requests are under way
    as there are threads, each for as long as it took then (Little's law).

    Parameters
    ----------
    runs : sequence of LoadTestRow
        Closed runs at several numbers of clients, whose first is far from filling the pool.
    threads : int
        Threads of a node for clients.
    release : str
        Release of Cassandra.
    """
    fewest = min(each.clients or 0 for each in runs)
    held_s = [(each.latency_mean_ms or 0.0) / 1000 for each in runs if each.clients == fewest]
    full = [each for each in runs if (each.clients or 0) >= _FULL * threads * _nodes(each)]
    hold_s = sum(held_s) / len(held_s)
    conditions = f"writes at QUORUM that hold a thread for {1000 * hold_s:.3g} ms, at most {threads} threads a node"
    cells = {"component": "thread pool", "samples": len(full), "conditions": conditions}
    shared = figure("worker-pool", "cassandra", "Native-Transport-Requests", version=release, **cells)
    busy = [(each.throughput_tps or 0.0) * hold_s for each in full]
    note = "throughput of a full pool x latency with few clients"
    yield mean_row(shared, busy, least=-inf, quantity="threads", unit="1", note=note)
    throughput = replace(shared, quantity="throughput", statistic="mean", unit="1/s")
    note = f"threads / latency with {fewest} clients, before the pool was full"
    if full:
        yield replace(throughput, component="predicted", value=threads * _nodes(full[0]) / hold_s, note=note)
        done = [each.throughput_tps or 0.0 for each in full]
        yield mean_row(throughput, done, least=-inf, component="measured", unit="1/s")
    lost = [threads * _nodes(each) / (each.throughput_tps or 1.0) - hold_s for each in full]
    note = "threads / throughput of a full pool - latency with few clients"
    yield mean_row(shared, lost, least=-inf, quantity="hand-off", note=note)


def _nodes(row: LoadTestRow) -> int:
    """Return the number of coordinators: the nodes of the first data centre."""
    return row.cass_nodes if isinstance(row.cass_nodes, int) else (row.cass_nodes or (1,))[0]


# -- what nodes count


def collect_counts(settings: Settings, progress: Progress) -> Collected:
    """Read every node's counters since its start.

    Raises
    ------
    InputError
        If no lab runs.
    """
    del settings
    lab = running_lab()
    rows: list[MicrobenchRow] = []
    for done, node in enumerate(lab.layout.nodes):
        progress(f"asking {node.name}", done, len(lab.layout.nodes))
        rows += _pauses(lab, node)
        if lab.layout.release.virtual_tables:
            rows += _virtual_tables(lab, node)
    remarks = ["these figures are of each node since its start, so they are of all loads that it had"]
    if not lab.layout.release.virtual_tables:
        remarks.append(f"Cassandra {lab.layout.version} has no virtual tables: thread pools are not known")
    return Collected(microbenchmarks=tuple(rows), remarks=tuple(remarks))


def _counted(lab: State, node: Node, operation: str, **cells: Any) -> MicrobenchRow:
    its = {"run_id": f"coordinator-{node.name}", "host": f"{node.name} on {machine()}"}
    return figure("cassandra-coordinator", "cassandra", operation, version=lab.layout.release.release, **its, **cells)


def _virtual_tables(lab: State, node: Node) -> Iterator[MicrobenchRow]:
    """Yield counters of virtual tables, without their latencies: some versions print seconds in ms columns."""
    plain: dict[str, Any] = {"statistic": "constant", "unit": "1", "note": "virtual tables"}
    with session(lab.layout, node) as cql:
        for table, (component, operation) in _COUNTED.items():
            for counted in cql.execute(f"SELECT * FROM system_views.{table}"):  # noqa: S608  # a name of ours
                if counted.keyspace_name == KEYSPACE and counted.count:
                    where = f"table {KEYSPACE}.{counted.table_name}"
                    its = {"component": component, "value": float(counted.count), "conditions": where}
                    yield _counted(lab, node, operation, quantity="completed", **its, **plain)
        used = (each for each in cql.execute("SELECT * FROM system_views.thread_pools") if each.completed_tasks)
        for pool in used:
            for column, quantity in _POOLS.items():
                its = {"component": "thread pool", "value": float(getattr(pool, column))}
                yield _counted(lab, node, pool.name, quantity=quantity, **its, **plain)


def _pauses(lab: State, node: Node) -> Iterator[MicrobenchRow]:
    """Yield the pauses of the garbage collector."""
    log = gc_log(lab_cluster.folder_of(node))
    text = log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
    pauses = [float(found[1]) / 1000 for found in _PAUSE.finditer(text)]
    if not pauses:
        return
    up_s = max(float(found[1]) for found in _UPTIME.finditer(text))
    conditions = f"in {up_s:.0f} s, heap {lab.layout.heap_bytes / 2**20:.0f} MiB, serial collector"
    cells = {"component": "jvm", "quantity": "pause", "conditions": conditions, "note": "log of the garbage collector"}
    shared = _counted(lab, node, "gc", samples=len(pauses), **cells)
    yield mean_row(shared, pauses)
    yield replace(shared, statistic="maximum", value=max(pauses), unit="s")
    yield replace(shared, quantity="share of time", statistic="constant", value=sum(pauses) / up_s, unit="1")
