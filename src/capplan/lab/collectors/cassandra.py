"""Cassandra as the load generator sees it: the cluster, the driver, its statements, and the collectors for it.

A write or a read asks for one row of a fixed table by its key. What a request costs the nodes is the CPU beyond idling.

The pool of threads for clients is measured where each thread waits a round trip for a quorum: with two data centres far
apart, a write at QUORUM holds a thread for that time and needs little CPU. So the pool is full long before the cores
are, and more clients only wait for a thread. Throughput times the time that a request holds a thread is the number of
threads; what a thread loses between two requests is the hand-off.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from math import inf
from pathlib import Path
from typing import Any, Literal, TypeVar

from capplan.errors import InputError
from capplan.evidence.load_test_row import LoadTestRow, all_in_first
from capplan.evidence.microbenchmarks import MicrobenchRow
from capplan.lab import cluster as lab_cluster
from capplan.lab import state
from capplan.lab.cluster import KEYSPACE, replication, session
from capplan.lab.collectors import cql, load
from capplan.lab.collectors.collector import Collected, Progress, Settings
from capplan.lab.collectors.cql import (
    Asked,
    Connection,
    CqlTarget,
    FailedError,
    Flow,
    FlowOf,
    Loop,
    Statement,
    answering_at_once,
)
from capplan.lab.collectors.load import (
    PerRequest,
    Run,
    Runner,
    Sample,
    Servers,
    clock_note,
    doubted,
    doubts,
    figure,
    idle_cores,
    load_cells,
    mean_row,
    pause,
    per_request,
    quantiles,
    quantum_row,
    rounded,
)
from capplan.lab.layout import NATIVE_PORT, Layout, Node, gc_log
from capplan.lab.processes import cores, machine, node_cores
from capplan.lab.state import PROXY, State
from capplan.models.cassandra.cluster import NATIVE_TRANSPORT_THREADS
from capplan.models.cassandra.pauses import recorded

ROWS = 20_000
"""Rows of a collector's table, which are written over and over, so that the data does not grow."""
_FILLED_S = 600.0  # at most, over long round trips
_AT_ONCE = 64  # writes of the rows that are read afterwards
_PATIENCE_S, _ASK_EVERY_S = 30.0, 0.2
_GENERATOR_SHARES = (0.02, 0.1, 0.3, 0.6)  # of what clients complete, at which the generator is measured
_ADDED = "from the intended start to the sending, and from the arrival of the answer to its reading"
_ONE_CORE = "the generator shares its core with the server, so this shows nothing of either"
_POOL_CLIENTS = (16, 64, 192, 256)
_SHORTEST_RTT_S = 0.05  # below it the cores are the limit, not the threads
_FULL = 1.2  # clients for each thread, from which on the pool is full
_PAUSE = re.compile(r"^\[(?P<time>[^\]]+)\].*\bPause .* (?P<ms>[\d.]+)ms$", re.MULTILINE)
_UPTIME = re.compile(r"^\[[^\]]+\]\[([\d.]+)s\]", re.MULTILINE)
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

T = TypeVar("T")
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
        parts = [self.operation, self.level.lower(), f"{self.row_bytes}b", *(["tls"] if self.tls else [])]
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
    replication : str
        Replication of a keyspace, as CQL.
    keyspace : str
        The keyspace, which is created if need be.
    node_cores : float
        Cores of a node, or of the machine if all share it.
    servers : Servers
        Processes of the nodes on this machine, whose CPU is measured.
    one_host : bool
        Whether all nodes share the cores of one machine.
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
    inter_dc_tcp_nodelay : bool or None
        Whether nodes send messages to other data centres at once; None if there are none.
    port : int
        Where nodes answer clients.
    note : str
        What rows say of the cluster that no column has, such as a node that is down.
    gc_logs : tuple of Path
        Garbage-collection logs of the nodes, where they are on this machine.
    """

    version: str
    cass_nodes: tuple[int, ...]
    rf: tuple[int, ...]
    addresses: tuple[str, ...]
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
    inter_dc_tcp_nodelay: bool | None = None
    port: int = NATIVE_PORT
    note: str = ""
    gc_logs: tuple[Path, ...] = ()

    def pauses(self, sample: Sample) -> str | None:
        """Return how the nodes paused during a run; None if their logs are elsewhere."""
        if not self.gc_logs:
            return None
        span = sample.began_s, sample.began_s + sample.duration_s
        lengths = [each for log in self.gc_logs for each in pauses_s(log, *span)]
        count = len(self.gc_logs)
        return str(recorded(lengths, count * sample.duration_s, sample.throughput_per_s / count))

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
            "inter_dc_tcp_nodelay": self.inter_dc_tcp_nodelay,
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
        replication=replication(layout),
        keyspace=KEYSPACE,
        node_cores=float(len(node_cores())),
        servers=Servers(nodes, tuple(each for name, each in alive.items() if name == PROXY)),
        one_host=True,
        set_rtt=(lambda rtt_ms: lab_cluster.set_rtt(rtt_ms / 1000)) if layout.delayed else None,
        certificate=lab_cluster.certificate() if layout.client_tls else None,
        internode_tls=layout.internode_tls,
        # Nodes of a lab send at once, and their proxy acknowledges at once, whatever the round trip.
        inter_dc_tcp_nodelay=True if layout.delayed else None,
        gc_logs=tuple(gc_log(lab_cluster.folder_of(each)) for each in layout.nodes if each.name in alive),
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


class Client:
    """Connections to the nodes of the data centre of the clients.

    Parameters
    ----------
    cluster : RunningCluster
        The cluster.
    tls : bool
        Whether they use TLS.

    Raises
    ------
    InputError
        If a node does not answer, or no certificate is known.
    """

    def __init__(self, cluster: RunningCluster, *, tls: bool = False) -> None:
        if tls and cluster.certificate is None:
            raise InputError("TLS is asked for, and no certificate of the nodes is known")
        certificate = cluster.certificate.read_text(encoding="ascii") if tls and cluster.certificate else None
        login = None if cluster.user is None else (cluster.user, cluster.password or "")
        self._driver = partial(lab_cluster.driver, cluster.addresses[0], cluster.port, login, certificate)
        self._keyspace = cluster.keyspace
        with ExitStack() as opened:
            own = (Connection(each, cluster.port, login, certificate) for each in cluster.addresses)
            self.connections = [opened.enter_context(closing(each)) for each in own]
            self._opened = opened.pop_all()
        self.loop = Loop(self.connections, cluster.servers)

    def close(self) -> None:
        """Close them."""
        self._opened.close()

    def create(self, *statements: str) -> None:
        """Create keyspaces or tables, and wait until the nodes agree on them."""
        with self._driver() as session_:
            for text in statements:
                session_.execute(text, timeout=30.0)

    def replicas(self, keys: Sequence[int]) -> list[list[Connection]]:
        """Return the connections to the replicas of each key; all of them if none is connected."""
        if len(self.connections) == 1:
            return [self.connections] * len(keys)
        by_address = {each.socket.getpeername()[0]: each for each in self.connections}
        with self._driver() as session_:
            known = session_.cluster.metadata
            hosts = [known.get_replicas(self._keyspace, each.to_bytes(8, "big", signed=True)) for each in keys]
        return [[by_address[at.address] for at in own if at.address in by_address] or self.connections for own in hosts]

    def prepared(self, text: str, level: str, *values: bytes, of: type[Statement] = Statement) -> Statement:
        """Prepare a statement; retry until all nodes know its table."""
        return patiently(lambda: of(self.connections, text, level, *values), "a statement cannot be prepared")


def patiently(attempt: Callable[[], T], what: str) -> T:
    """Repeat an attempt until it succeeds.

    Raises
    ------
    InputError
        If it does not in time.
    """
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return attempt()
        except FailedError as error:
            if time.monotonic() > deadline:
                raise InputError(f"{what}: {error}") from None
        time.sleep(_ASK_EVERY_S)


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

    def insertion(self, client: Client, level: str, seed: int) -> Statement:
        """Prepare the writing of a row with a value that the seed fixes."""
        value = random.Random(seed).randbytes(self.row_bytes)  # noqa: S311  # of rows
        return client.prepared(f"INSERT INTO {self.name} (id, value) VALUES (?, ?)", level, value)  # noqa: S608  # our table

    def selection(self, client: Client, level: str) -> Statement:
        """Prepare the reading of a row."""
        return client.prepared(f"SELECT value FROM {self.name} WHERE id = ?", level)  # noqa: S608  # our table

    def requests(self, client: Client, operation: Operation, level: str, seed: int) -> FlowOf:
        """Prepare requests, each to a replica of its row; keys come in a random order that the seed fixes.

        A read whose row is not found fails.
        """
        keys = random.Random(seed).sample(range(self.rows), self.rows)  # noqa: S311  # keys of rows
        at, rows = client.replicas(keys), self.rows
        chosen = self.insertion(client, level, seed) if operation == "write" else self.selection(client, level)

        def ask(number: int) -> Flow:
            turn, place = divmod(number, rows)
            yield Asked(at[place][(turn + place) % len(at[place])], chosen, keys[place], needs_row=True)

        return ask

    def fill(self, client: Client, level: str, seed: int) -> None:
        """Write all rows.

        Raises
        ------
        InputError
            If nodes refuse some for long.
        """
        write, left = self.requests(client, "write", level, seed), set(range(self.rows))

        def written(numbers: Iterator[int]) -> Flow:
            for number in numbers:
                with suppress(FailedError):
                    yield from write(number)
                    left.discard(number)

        def attempt() -> None:
            numbers = iter(sorted(left))
            client.loop.run(((0.0, written(numbers)) for _ in range(_AT_ONCE)), _FILLED_S)
            if left:
                raise FailedError("nodes refuse to write")

        patiently(attempt, "rows cannot be written")


# -- writes and reads


def collect_load(operation: Operation, settings: Settings, progress: Progress, name: str = "") -> Collected:
    """Measure an operation: warm-up, closed runs, open runs.

    Raises
    ------
    InputError
        If no lab runs.
    """
    lab = running_lab()
    progress("preparing", 0, 1)
    return load.run(_collect(About(name or f"cassandra-{operation}", operation, lab, settings), progress))


collect_writes = partial(collect_load, "write")
collect_reads = partial(collect_load, "read")


async def _collect(about: About, progress: Progress) -> Collected:
    settings, operation = about.settings, about.operation
    unanswered = f"no {operation} at {settings.level} was answered: check 'capplan lab status', or give another --level"
    with closing(Client(about.cluster)) as client:
        flow = collected_requests(client, operation, settings, filled=operation == "read")
        target = CqlTarget(about.cluster.servers, unanswered, flow=flow, loop=client.loop)
        total = settings.repeats * (len(settings.clients) + len(settings.shares))
        runner = Runner(target, settings, progress, total)
        warm = (await runner.warm_up()).sentence
        await pause()
        idle = await idle_cores(target.servers)  # a node that has just started still compiles
        for repeat in range(1, settings.repeats + 1):  # so that a drift of the machine affects all of them
            for clients in settings.clients:
                most = await runner.step(clients, repeat=repeat)
            for share in settings.shares:
                rate = rounded(share * most.sample.throughput_per_s)
                await runner.step(None, rate, settings.seed + len(runner.runs), repeat)
    runs = runner.runs
    return Collected(
        tuple(about.row(each, warm) for each in runs),
        tuple(about.parts(runs, idle, warm)),
        tuple(each.timed(each.name) for each in runs),
        (warm, *doubted((each.name, each.sample) for each in runs)),
    )


def collected_requests(client: Client, operation: Operation, settings: Settings, *, filled: bool) -> FlowOf:
    """Prepare a collector's requests; if asked, write the rows first."""
    table = Table(f"{KEYSPACE}.collected_{settings.row_bytes}", settings.row_bytes, ROWS)
    client.create(table.creation)
    if filled:
        table.fill(client, "ALL", settings.seed)
    return table.requests(client, operation, settings.level, settings.seed)


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
        asked, shared = self.settings, f"{len(node_cores())} of {cores()} cores for all nodes"
        its = Load(self.operation, asked.level, asked.row_bytes, run.clients, run.offered_per_s)
        cluster = self.cluster
        columns = {**cluster.row(replace(its, rtt_ms=1000 * self.lab.rtt_s)), "gc": cluster.pauses(run.sample)}
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
            yield mean_row(generator, cost.thread, quantity="thread_time", note=said)
            if run.sample.added_s is not None:
                yield replace(generator, quantity="added", statistic="p50", unit="s", value=run.sample.added_s)
        yield quantum_row(self.name)


# -- the load generator


def collect_client(settings: Settings, progress: Progress) -> Collected:
    """Measure what the load generator itself adds, at servers that answer at once."""
    rows = list[MicrobenchRow]()
    with answering_at_once() as port:
        connection = Connection("127.0.0.1", port)
        with closing(connection):
            loop, statement = Loop([connection]), Statement([connection], "SELECT", "ONE")

            def ask(number: int) -> Flow:
                yield Asked(connection, statement, number)

            clients = max(settings.clients)
            most = loop.run(cql.closed(ask, clients, settings.duration_s, settings.requests), settings.duration_s)
            rows += _ceiling(per_request(most), f"closed, {clients} clients, answered at once", most.completed)
            for done, share in enumerate(_GENERATOR_SHARES):
                rate = rounded(share * most.throughput_per_s)
                progress(f"{rate:,.0f} requests/s", done, len(_GENERATOR_SHARES))
                starts = load.arrivals(rate, settings.duration_s, settings.requests, settings.seed + done)
                found = loop.run(cql.paced(ask, starts), settings.duration_s, paced=True)
                part = _generator(f"{rate:,.0f}/s", f"open, {rate:.3g} requests/s, answered at once", found.completed)
                added = replace(part, quantity="added", statistic="p50", unit="s", value=found.added_s)
                rows.append(replace(added, note=_ADDED))
                whole = "with the network of this machine and the server that answers at once"
                took: Any = {"quantity": "latency", "unit": "s", "note": whole}
                rows += [replace(part, statistic=name, value=at, **took) for name, at in quantiles(found.latencies_s)]
    return Collected(
        microbenchmarks=(*rows, quantum_row("client")),
        remarks=("a server on another core answers each request at once" if cores() > 1 else _ONE_CORE,),
    )


def _generator(operation: str, conditions: str, samples: int) -> MicrobenchRow:
    cells = {"component": "load generator", "samples": samples, "conditions": conditions}
    return figure("client", "capplan", operation, **cells)


def _ceiling(cost: PerRequest, conditions: str, samples: int) -> Iterator[MicrobenchRow]:
    """Yield the time of the generator for a request, and the rate at which it would always be busy."""
    part = _generator("any", conditions, samples)
    mean = mean_row(part, cost.thread, quantity="thread_time")
    yield mean
    low, value, high = mean.error_low or 0.0, mean.value or inf, mean.error_high or inf
    note = "requests per second at which it is always busy; a load test must stay below four fifths of it"
    limits: dict[str, Any] = {"value": 1 / value, "error_low": 1 / high, "error_high": 1 / low if low > 0 else None}
    yield replace(mean, quantity="ceiling", unit="1/s", note=note, **limits)


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


def pauses_s(log: Path, began_s: float = 0.0, ended_s: float = inf) -> list[float]:
    """Return the length of each pause that a node's log has in a span of time, seconds since 1970."""
    text = log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
    return [
        float(line["ms"]) / 1000
        for line in _PAUSE.finditer(text)
        if began_s <= datetime.fromisoformat(line["time"]).timestamp() < ended_s
    ]


def _pauses(lab: State, node: Node) -> Iterator[MicrobenchRow]:
    """Yield the pauses of the garbage collector."""
    log = gc_log(lab_cluster.folder_of(node))
    pauses = pauses_s(log)
    if not pauses:
        return
    up_s = max(float(found[1]) for found in _UPTIME.finditer(log.read_text(encoding="utf-8", errors="replace")))
    conditions = f"in {up_s:.0f} s, heap {lab.layout.heap_bytes / 2**20:.0f} MiB, {lab.layout.collector}"
    cells = {"component": "jvm", "quantity": "pause", "conditions": conditions, "note": "log of the garbage collector"}
    shared = _counted(lab, node, "gc", samples=len(pauses), **cells)
    yield mean_row(shared, pauses)
    yield replace(shared, statistic="maximum", value=max(pauses), unit="s")
    yield replace(shared, quantity="share of time", statistic="constant", value=sum(pauses) / up_s, unit="1")
