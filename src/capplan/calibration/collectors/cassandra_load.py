"""Load on the lab's Cassandra, shared by the collectors of reads and writes: closed runs, then open ones."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from capplan.calibration.collectors.collector import Collected, Progress, Settings, Timed
from capplan.calibration.collectors.measurement import load
from capplan.calibration.collectors.measurement.exchanges import mean_interval
from capplan.calibration.collectors.measurement.load import PARTS, Sample, Servers
from capplan.calibration.collectors.measurement.machine import cores, cpu_error_s, cpu_quantum_s, machine, quantum_row
from capplan.calibration.collectors.measurement.steadiness import WarmUp, warm_up
from capplan.calibration.evidence.importers.importer import of_samples
from capplan.calibration.evidence.load_test_row import all_in_first
from capplan.calibration.evidence.load_tests import PERCENTILES, LoadTestRow
from capplan.calibration.evidence.microbenchmarks import MicrobenchRow
from capplan.calibration.lab import state
from capplan.calibration.lab.layout import NATIVE_PORT
from capplan.calibration.lab.processes import cpu_s
from capplan.calibration.lab.schema import KEYSPACE, session
from capplan.calibration.lab.state import PROXY, State
from capplan.models.cassandra.consistency import READ_LEVELS, WRITE_LEVELS
from capplan.models.errors import InputError, nearest

ROWS = 20_000
"""Rows of the table, which are written over and over, so that the data does not grow."""
TABLE = "collected"
BUSY_PERCENT = 80.0
"""CPU of the generator's thread above which it may delay its own requests."""
LATE = 0.2
"""Share of the median latency that the generator itself may add to an open run by sending late."""
OTHERS = 0.1
"""Share of all cores that other processes may use."""
_DOUBTS = {
    "generator_limited": "the load generator was the bottleneck: do not fit this run",
    "disturbed": "other processes used more than a tenth of the CPU: repeat on a quiet machine",
}
_BEHIND = 10  # requests beyond a percentile that is stated
_IDLE_S = 1.5
_WINDOW_S = 1.0
_PAUSE_S = 0.3  # between runs, so that what one leaves is not in the next


@dataclass(frozen=True)
class Target:
    """The lab as a collector sees it.

    Attributes
    ----------
    lab : State
        Its state.
    session : acsylla.Session
        The driver that loads.
    servers : Servers
        Its processes.
    """

    lab: State
    session: Any
    servers: Servers


Prepare = Callable[[Target, Settings], Awaitable[load.Request]]
"""Prepares the statement of a collector; returns what makes a request of it."""


def running_lab() -> State:
    """Return the lab, all of whose nodes must be up.

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


def servers_of(lab: State) -> Servers:
    """Return the processes of a lab."""
    nodes = tuple(process for name, process in lab.processes.items() if name != PROXY)
    return Servers(nodes, tuple(process for name, process in lab.processes.items() if name == PROXY))


async def connect(lab: State) -> Any:
    """Connect the driver that loads to the first data centre of the lab."""
    import acsylla

    local = [each.address for each in lab.layout.nodes if each.dc == 1]
    cluster = acsylla.create_cluster(
        local,
        port=NATIVE_PORT,
        load_balance_dc_aware="dc1",
        token_aware_routing=True,
        coalesce_delay_us=0,
        request_timeout=12.0,
        log_level="critical",
    )
    return await cluster.create_session(keyspace=KEYSPACE)


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


def create_table(lab: State, row_bytes: int) -> None:
    """Create the table, and write its rows if they are not there."""
    with session(lab.layout) as cql:
        cql.execute(f"CREATE TABLE IF NOT EXISTS {KEYSPACE}.{TABLE}_{row_bytes} (id bigint PRIMARY KEY, value blob)")


def collect_load(operation: str, prepare: Prepare, settings: Settings, progress: Progress, name: str = "") -> Collected:
    """Measure an operation: warm up, closed runs, open runs.

    Raises
    ------
    InputError
        If no lab runs, or the level is none of the operation.
    """
    check_level(settings.level, operation)
    lab = running_lab()
    progress("preparing", 0, 1)
    create_table(lab, settings.row_bytes)
    subject = Subject(name or f"cassandra-{operation}", operation, prepare)
    return load.run(_collect(lab, subject, settings, progress))


@dataclass(frozen=True)
class Subject:
    """What is measured: the name of its collector, the operation, and what prepares it."""

    name: str
    operation: str
    prepare: Prepare


@dataclass(frozen=True)
class Run:
    """One run: what was asked, and what came."""

    name: str
    clients: int | None
    offered_per_s: float | None
    repeat: int
    sample: Sample


async def _collect(lab: State, subject: Subject, settings: Settings, progress: Progress) -> Collected:
    cql = await connect(lab)
    target = Target(lab, cql, servers_of(lab))
    request = await subject.prepare(target, settings)
    idle = await idle_cores(target.servers)
    most = max(settings.clients)

    async def window(seconds: float) -> float:
        progress("warming up until the speed is steady", 0, 1)
        found = await load.closed(request, most, seconds, settings.requests, target.servers)
        _refuse_failures(found, subject.operation, settings.level)
        return sum(found.server_cpu_s) / found.completed

    warm = await warm_up(window, _WINDOW_S, settings.warm_up_s)
    runs = await _runs(request, target, settings, progress)
    await cql.close()
    about = About(lab, subject, settings, warm, idle)
    rows = tuple(about.row(each) for each in runs)
    remarks = [warm.sentence]
    for doubt in dict.fromkeys(doubt for each in runs for doubt in doubts(each.sample)):
        names = [each.name for each in runs if doubt in doubts(each.sample)]
        remarks.append(f"{doubt} ({', '.join(names)})")
    stamps = tuple(
        Timed(each.name, each.sample.began_s, each.sample.began_s + each.sample.duration_s, each.sample.histogram())
        for each in runs
    )
    return Collected(rows, tuple(about.parts(runs)), stamps, tuple(remarks))


async def _runs(request: load.Request, target: Target, settings: Settings, progress: Progress) -> list[Run]:
    """Make all runs, repeat by repeat, so that a drift of the machine is in all of them."""
    total = settings.repeats * (len(settings.clients) + len(settings.shares))
    found: list[Run] = []
    for repeat in range(1, settings.repeats + 1):
        ceiling = 0.0
        for clients in settings.clients:
            progress(f"{clients} closed clients", len(found), total)
            await pause()
            sample = await load.closed(
                request, clients, settings.duration_s, settings.requests, target.servers, _first(found)
            )
            ceiling = sample.throughput_per_s
            found.append(Run(f"closed-{clients}-{repeat}", clients, None, repeat, sample))
        for share in settings.shares:
            rate = float(f"{share * ceiling:.3g}")
            progress(f"{rate:,.0f} requests/s", len(found), total)
            await pause()
            starts = load.arrivals(rate, settings.duration_s, settings.requests, settings.seed + len(found))
            sample = await load.paced(request, starts, target.servers, _first(found))
            found.append(Run(f"open-{rate:.0f}-{repeat}", None, rate, repeat, sample))
    return found


def _first(runs: Sequence[Run]) -> int:
    return sum(each.sample.completed for each in runs)


async def pause() -> None:
    """Wait until the last run has ended at the servers, too."""
    import asyncio

    await asyncio.sleep(_PAUSE_S)


async def idle_cores(servers: Servers) -> float:
    """Return how many cores the servers use without load."""
    import asyncio

    before, began = sum(map(cpu_s, servers.nodes)), time.perf_counter()
    await asyncio.sleep(_IDLE_S)
    return (sum(map(cpu_s, servers.nodes)) - before) / (time.perf_counter() - began)


def doubts(sample: Sample) -> list[str]:
    """Return in words why a run should not be fitted."""
    return [_DOUBTS[name] for name, doubted in doubt_cells(sample).items() if doubted]


def doubt_cells(sample: Sample) -> dict[str, Any]:
    """Return the columns of a load-test row that tell whether the run can be believed."""
    late = float(np.median(sample.lateness_s)) if len(sample.lateness_s) else 0.0
    behind = bool(sample.completed and late > LATE * np.median(sample.latencies_s))
    return {
        "generator_limited": sample.client_percent >= BUSY_PERCENT or behind,
        "disturbed": sample.others_cores > OTHERS * cores(),
    }


def _refuse_failures(found: Sample, operation: str, level: str) -> None:
    if found.completed == 0:
        raise InputError(f"no {operation} at {level} was answered: check 'capplan lab status', or give another --level")


@dataclass(frozen=True)
class About:
    """What all rows of a collection share."""

    lab: State
    subject: Subject
    settings: Settings
    warm: WarmUp
    idle_cores: float

    @property
    def name(self) -> str:
        """Name of the collector."""
        return self.subject.name

    @property
    def source(self) -> str:
        """What wrote the rows."""
        return f"capplan collect {self.name}"

    def run_id(self, run: Run) -> str:
        """Return the name of a run among all collections."""
        return f"{self.name}-{self.settings.level.lower()}-{self.settings.row_bytes}b-{run.name}"

    def row(self, run: Run) -> LoadTestRow:
        """Return a run as a row of a load-test table."""
        sample, layout = run.sample, self.lab.layout
        nodes_percent = 100 * sum(sample.server_cpu_s) / (len(sample.server_cpu_s) * sample.duration_s * cores())
        reads = self.subject.operation == "read"
        notes = [f"{cores()} cores shared by all nodes and the load generator", self.warm.sentence]
        notes += doubts(sample)
        return LoadTestRow(
            run_id=self.run_id(run),
            repeat=run.repeat,
            system="cassandra",
            version=layout.release.release,
            dcs=layout.dcs,
            cass_nodes=layout.cass_nodes,
            node_cores=float(cores()),
            rf=layout.rf,
            consistency_read=self.settings.level if reads else None,  # type: ignore[arg-type]  # checked
            consistency_write=None if reads else self.settings.level,  # type: ignore[arg-type]  # checked
            token_aware=True,
            read_fraction=1.0 if reads else 0.0,
            row_bytes=float(self.settings.row_bytes),
            cache_state="warm",
            encryption_client=False,
            encryption_internode=layout.internode_tls,
            rtt_ms=1000 * self.lab.rtt_s if layout.dcs > 1 else None,
            client_share=all_in_first(layout.dcs),
            load_kind="closed" if run.offered_per_s is None else "open",
            clients=run.clients,
            think_time_ms=None if run.clients is None else 0.0,
            offered_tps=run.offered_per_s,
            duration_s=sample.duration_s,
            request_class=self.subject.operation,
            throughput_tps=sample.throughput_per_s,
            node_cpu_percent=min(100.0, nodes_percent),
            client_cpu_percent=sample.client_percent,
            drops=0,
            errors=sample.errors,
            one_host=True,
            source=self.source,
            note="; ".join(notes),
            **doubt_cells(sample),
            **latency_columns(sample),
        )

    def parts(self, runs: Sequence[Run]) -> list[MicrobenchRow]:
        """Return what an operation costs at each end, at each load."""
        return [*(row for each in runs for row in self._costs(each)), quantum_row(self.name)]

    def _costs(self, run: Run) -> Iterator[MicrobenchRow]:
        sample, idle = run.sample, f"less {1000 * self.idle_cores:.0f} ms a second without load"
        idle_s = self.idle_cores * sample.duration_s / PARTS
        whole = sample.parts_with_requests
        servers = [(each.server_cpu_s - idle_s) / each.completed for each in whole]
        threads = [each.thread_cpu_s / each.completed for each in whole]
        clients = [each.client_cpu_s / each.completed for each in whole]
        error_s = PARTS * cpu_error_s() / sample.completed
        yield self._mean(run, "nodes", "cpu_time", servers, error_s, f"all nodes together, {idle}")
        yield self._mean(run, "load generator", "cpu_time", clients, 0.0, "all of its threads")
        yield self._mean(run, "load generator", "thread_time", threads, 0.0, "the thread of its event loop")
        for statistic, share in (("p50", 0.5), ("p99", 0.99)):
            if len(sample.lateness_s):
                late = float(np.quantile(sample.lateness_s, share))
                yield replace(
                    self._part(run, "load generator", "lateness"),
                    statistic=statistic,  # type: ignore[arg-type]  # a word of the Literal
                    value=late,
                    note="from the intended start to the sending; it is part of the latency",
                )

    def _part(self, run: Run, component: str, quantity: str) -> MicrobenchRow:
        layout, load_ = self.lab.layout, f"closed, {run.clients} clients"
        if run.offered_per_s is not None:
            load_ = f"open, {run.offered_per_s:g} requests/s"
        return MicrobenchRow(
            run_id=self.run_id(run),
            system="cassandra",
            version=layout.release.release,
            host=machine(),
            component=component,
            operation=self.subject.operation,
            quantity=quantity,
            unit="s",
            samples=run.sample.completed,
            conditions=(
                f"{load_}, {self.settings.level}, RF {layout.rf}, {layout.dcs} x {layout.cass_nodes} nodes, "
                f"{self.settings.row_bytes} B rows"
            ),
            source=self.source,
        )

    def _mean(
        self, run: Run, component: str, quantity: str, values: Sequence[float], error_s: float, note: str
    ) -> MicrobenchRow:
        """Return a mean; its interval has the scatter of the run's parts and the step of the CPU clock."""
        mean, low, high = mean_interval(values, error_s)
        said = [note, f"step of the CPU clock {1000 * cpu_quantum_s():.2g} ms", self.warm.sentence, *doubts(run.sample)]
        return replace(
            self._part(run, component, quantity),
            statistic="mean",
            value=mean,
            error_low=max(0.0, low),
            error_high=high,
            note="; ".join(said),
        )


def latency_columns(sample: Sample) -> dict[str, Any]:
    """Return the columns of latencies, without percentiles that rest on a few requests."""
    found = of_samples(1000 * sample.latencies_s)
    rest = {name for name, share in PERCENTILES.items() if sample.completed * (1 - share) < _BEHIND}
    return {name: value for name, value in found.items() if name not in rest}
