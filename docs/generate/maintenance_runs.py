"""Measure what compaction, repair and the replay of hints cost nodes, for docs/reference/maintenance.md.

Run on a quiet machine with two cores and a Java for nodetool: `uv run --extra lab just maintenance [NAME ...]`, with
names of `STUDIES`. It starts a lab for each and ends it.

Each open run is made without and with the work, in turn. Compaction and repair are of a table of known size that no
request touches, so what requests see is the CPU and the disk that they share with it. For hints, a node is stopped as
a long pause would stop it (SIGSTOP) while the others write, and goes on with warm code.
"""

from __future__ import annotations

import argparse
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from subprocess import Popen
from typing import Any, NamedTuple

from capplan.cli.evidence import write_tables
from capplan.errors import InputError
from capplan.evidence.load_test_row import LoadTestRow
from capplan.evidence.load_tests import LOAD_TESTS
from capplan.evidence.microbenchmarks import MICROBENCHMARKS
from capplan.lab import cluster as lab_cluster
from capplan.lab import processes
from capplan.lab.cluster import KEYSPACE, nodetool
from capplan.lab.collectors import load
from capplan.lab.collectors.cassandra import (
    Client,
    Load,
    Operation,
    RunningCluster,
    Table,
    cluster_of,
    collected_requests,
    running_lab,
)
from capplan.lab.collectors.collector import Collected, Progress, Settings
from capplan.lab.collectors.cql import CqlTarget
from capplan.lab.collectors.load import Run, Sample, figure, mean_row, pause, rounded
from capplan.lab.layout import Layout
from capplan.lab.packages import java_of_tools
from capplan.lab.processes import cpu_s
from capplan.lab.state import State

_TABLE, _ROW_BYTES = f"{KEYSPACE}.maintained", 1024
_ROWS = {"compaction": 768 << 10, "repair": 256 << 10}  # nodes that share a core write slowly
# Random values hardly compress; without automatic compactions the table stays as it is between two runs.
_OPTIONS = (
    " WITH compression = {'enabled': false} AND compaction = {'class': 'SizeTieredCompactionStrategy', "
    "'enabled': false}"
)
_POLL_S, _BEGINS_S, _ENDS_S = 0.1, 120.0, 600.0
_DOWN_S = 300.0
_HINTS = "HintsDispatcher"


@dataclass(frozen=True)
class _Lab:
    """A lab under load.

    Attributes
    ----------
    name : str
        The work.
    state : State
        The lab.
    cluster : RunningCluster
        The nodes that requests go to, and the processes of all.
    client : Client
        Connections of the generator.
    target : CqlTarget
        The requests.
    settings : Settings
        How long, and which loads.
    progress : function
        Receives what is done.
    operation : str
        What the requests do.
    rows : list of LoadTestRow
        The runs so far.
    warm : list of str
        What the warm-up said.
    """

    name: str
    state: State
    cluster: RunningCluster
    client: Client
    target: CqlTarget
    settings: Settings
    progress: Progress
    operation: Operation
    rows: list[LoadTestRow] = field(default_factory=list)
    warm: list[str] = field(default_factory=list)

    async def capacity_per_s(self) -> float:
        """Warm up, and return the throughput of the most clients."""
        asked = self.settings
        self.progress("warming up until the speed is steady", 0, 1)
        self.warm.append((await self.target.warmed_up(max(asked.clients), asked.requests, asked.warm_up_s)).sentence)
        most = await self.target.sampled(max(asked.clients), None, asked.duration_s, asked.requests, 0)
        return most.throughput_per_s

    async def run(self, rate_per_s: float, repeat: int, which: str, seconds: float | None = None) -> Sample:
        """Make an open run, and keep its row."""
        await pause()
        asked, seed = self.settings, self.settings.seed + len(self.rows)
        sample = await self.target.sampled(None, rate_per_s, seconds or asked.duration_s, asked.requests, seed)
        name = f"{self.name}-{which}-open-{rate_per_s:.0f}-{repeat}"
        its = Load(self.operation, asked.level, asked.row_bytes, None, rate_per_s, rtt_ms=1000 * self.state.rtt_s)
        cells = {**self.cluster.row(its), "gc": self.cluster.pauses(sample)}
        run = Run(name, None, rate_per_s, repeat, self.target.answered(sample))
        self.rows.append(run.row(cells, [which, *self.warm]))
        return sample


@contextmanager
def _loaded(
    name: str, operation: Operation, settings: Settings, progress: Progress, away: str | None = None
) -> Iterator[_Lab]:
    """Connect to the lab, but for a node that will be away."""
    lab = running_lab()
    servers = cluster_of(lab.layout, lab).servers
    cluster = replace(cluster_of(lab.layout, lab, away), servers=servers, source="docs/generate/maintenance_runs.py")
    with closing(Client(cluster)) as client:
        flow = collected_requests(client, operation, settings, filled=True)
        unanswered = f"no {operation} at {settings.level} was answered: check 'capplan lab status'"
        target = CqlTarget(servers, unanswered, flow=flow, loop=client.loop)
        yield _Lab(name, lab, cluster, client, target, settings, progress, operation)


class _Pools:
    """The thread pools of the nodes, as Cassandra's virtual tables count their tasks."""

    def __init__(self, lab: State, opened: ExitStack, without: str = "") -> None:
        asked = [each for each in lab.layout.nodes if each.name != without]
        self._sessions = [opened.enter_context(lab_cluster.session(lab.layout, each)) for each in asked]

    def active(self, pool: str) -> bool:
        """Whether a pool has a task on some node."""
        query = "SELECT name, active_tasks FROM system_views.thread_pools"
        rows = (row for each in self._sessions for row in each.execute(query))
        return any(row.name.startswith(pool) and row.active_tasks for row in rows)

    def until(self, pool: str, active: bool, seconds: float, ended: Callable[[], bool] = lambda: False) -> None:
        """Wait until a pool is active, or is not.

        Raises
        ------
        InputError
            If it takes too long.
        """
        deadline = time.monotonic() + seconds
        while self.active(pool) != active and not ended():
            if time.monotonic() > deadline:
                raise InputError(f"{pool} of the nodes did not {'begin' if active else 'end'} in {seconds:g} s: repeat")
            time.sleep(_POLL_S)


# -- compaction and repair


def collect_compaction(settings: Settings, progress: Progress) -> Collected:
    """Measure a compaction of a table on one node.

    Raises
    ------
    InputError
        If no lab runs, or it does not compact.
    """
    return load.run(_by_nodetool("compaction", "CompactionExecutor", ("compact",), settings, progress))


def collect_repair(settings: Settings, progress: Progress) -> Collected:
    """Measure a full repair of a table whose replicas agree: each reads all its rows and compares hashes.

    Raises
    ------
    InputError
        If no lab runs, or it does not repair.
    """
    return load.run(_by_nodetool("repair", "ValidationExecutor", ("repair", "-full"), settings, progress))


async def _by_nodetool(
    name: str, pool: str, words: tuple[str, ...], settings: Settings, progress: Progress
) -> Collected:
    java_of_tools()  # before anything is written
    with ExitStack() as opened:
        lab = opened.enter_context(_loaded(name, "read", settings, progress))
        layout, pools = lab.state.layout, _Pools(lab.state, opened)
        progress(f"writing {_mib(name):.0f} MiB", 0, 1)
        table = Table(_TABLE, _ROW_BYTES, _ROWS[name])
        lab.client.create(f"DROP TABLE IF EXISTS {_TABLE}", table.creation + _OPTIONS)
        table.fill(lab.client, "ALL", settings.seed)
        for node in layout.nodes:
            with nodetool(node, "flush", KEYSPACE):
                pass

        @contextmanager
        def working() -> Iterator[Popen[bytes]]:
            with nodetool(layout.nodes[0], *words, *_TABLE.split(".")) as process:
                pools.until(pool, True, _BEGINS_S, lambda: process.poll() is not None)
                yield process

        copies = layout.rf if name == "repair" else layout.rf / layout.cass_nodes
        alone = [_alone(lab, working) for _ in range(settings.repeats + 1)][1:]  # Java compiles the first
        return await _compared(lab, working, await lab.capacity_per_s(), alone, copies)


def _mib(name: str) -> float:
    """Return the size of the table."""
    return _ROW_BYTES * _ROWS[name] / 2**20


def _alone(lab: _Lab, working: Callable[[], AbstractContextManager[Popen[bytes]]]) -> tuple[float, float]:
    """Return the CPU time of the nodes, idling included, and the time of the work with nodetool, without load."""
    lab.progress(f"{lab.name} without load", 0, 1)
    nodes = lab.cluster.servers.nodes
    before, began = sum(map(cpu_s, nodes)), time.perf_counter()
    with working():
        pass
    return sum(map(cpu_s, nodes)) - before, time.perf_counter() - began


async def _compared(
    lab: _Lab,
    working: Callable[[], AbstractContextManager[Popen[bytes]]],
    capacity_per_s: float,
    alone: list[tuple[float, float]],
    copies: float,
) -> Collected:
    """Return each load without and with the work, and what the work costs."""
    short = []
    for repeat in range(1, lab.settings.repeats + 1):
        for share in lab.settings.shares:
            rate = rounded(share * capacity_per_s)
            lab.progress(f"{rate:,.0f} requests/s without and with {lab.name}", repeat - 1, lab.settings.repeats)
            await lab.run(rate, repeat, "without")
            with working() as process:
                await lab.run(rate, repeat, "with")
                if process.poll() is not None:
                    short.append(lab.rows[-1].run_id)
    amount = _mib(lab.name) * copies
    what = f"{amount:.0f} MiB of rows of {_ROW_BYTES:,} B, not compressed"
    part = figure(lab.name, "cassandra", lab.name, component="nodes", **_cells(lab, what))
    cpu = mean_row(part, [each[0] / amount for each in alone], quantity="cpu_time", note="per MiB, without load")
    note = "of the whole work and of nodetool, without load"
    took = mean_row(part, [each[1] for each in alone], quantity="latency", note=note)
    remarks = [f"{lab.name} ended before the run did: {', '.join(map(str, short))}"] if short else []
    return Collected(tuple(lab.rows), (cpu, took), remarks=tuple(remarks))


def _cells(lab: _Lab, amount: str) -> dict[str, Any]:
    layout = lab.state.layout
    where = f"{layout.dcs} x {layout.cass_nodes} nodes, RF {layout.rf}"
    return {"version": layout.release.release, "samples": lab.settings.repeats, "conditions": f"{amount}, {where}"}


# -- hints


def collect_hints(settings: Settings, progress: Progress) -> Collected:
    """Measure writes while a node is down, and while the others replay their hints to it.

    Raises
    ------
    InputError
        If no lab runs, or writes cannot be answered without a node.
    """
    return load.run(_hints(settings, progress))


async def _hints(settings: Settings, progress: Progress) -> Collected:
    away = running_lab().layout.nodes[-1].name
    with ExitStack() as opened:
        lab = opened.enter_context(_loaded("hints", "write", settings, progress, away))
        pools, capacity = _Pools(lab.state, opened, away), await lab.capacity_per_s()
        rates = [rounded(share * capacity) for share in settings.shares]
        replays = [await _replay(lab, pools, away, rates, repeat) for repeat in range(1, settings.repeats + 1)]
    counts = [each.writes for each in replays]
    what = f"{fmean(counts):,.0f} writes of {settings.row_bytes} B"
    part = figure("hints", "cassandra", "hints", component="nodes", **_cells(lab, what))
    speed = [each.writes / each.took_s for each in replays]
    row = mean_row(part, speed, quantity="throughput", unit="1/s", note="hints replayed per second, under load")
    if any(each.ended_early for each in replays):
        remark = "hints were replayed before the last run ended: ask for shorter runs"
        return Collected(tuple(lab.rows), remarks=(remark,))
    return Collected(tuple(lab.rows), (row,))


class _Replay(NamedTuple):
    """The hints of one loss, how long their replay took, and whether it ended before the runs beside it."""

    writes: int
    took_s: float
    ended_early: bool


async def _replay(lab: _Lab, pools: _Pools, away: str, rates: Sequence[float], repeat: int) -> _Replay:
    process = lab.state.processes[away]
    for rate in rates:
        await lab.run(rate, repeat, "without")
    processes.send(process, signal.SIGSTOP)
    try:
        lab.progress(f"{rates[0]:,.0f} writes/s for {_DOWN_S:.0f} s without {away}", repeat - 1, lab.settings.repeats)
        down = await lab.run(rates[0], repeat, "down", _DOWN_S)
    finally:
        processes.send(process, signal.SIGCONT)
    pools.until(_HINTS, True, _BEGINS_S)
    began = time.perf_counter()
    for rate in rates:
        await lab.run(rate, repeat, "with")
    ended_early = not pools.active(_HINTS)
    pools.until(_HINTS, False, _ENDS_S)
    return _Replay(down.completed, time.perf_counter() - began, ended_early)


# -- all of them


@dataclass(frozen=True)
class Study:
    """What is measured, and on which lab, whose nodes hold all rows where replicas matter."""

    measure: Callable[[Settings, Progress], Collected]
    layout: Layout
    settings: Settings


SHARES = (0.2, 0.5)
STUDIES = {
    "compaction": Study(collect_compaction, Layout(), Settings(10.0, shares=SHARES, repeats=3)),
    "repair": Study(collect_repair, Layout(cass_nodes=2, rf=2), Settings(5.0, shares=SHARES, repeats=3)),
    "hints": Study(collect_hints, Layout(cass_nodes=2, rf=2), Settings(20.0, shares=SHARES)),
}
FOLDER = Path(__file__).resolve().parents[1] / "reference" / "maintenance"


def measured(study: Study, table: Path) -> None:
    """Measure on a lab of its own, and write what was found to a table and one beside it."""

    def say(what: str, *_: int) -> None:
        print(what, flush=True)

    lab_cluster.up(study.layout, 0.0, say)
    try:
        found = study.measure(study.settings, say)
    finally:
        lab_cluster.down()
    write_tables(LOAD_TESTS.frame(found.load_tests), MICROBENCHMARKS.frame(found.microbenchmarks), table)
    for remark in found.remarks:
        say(remark)


def main() -> None:
    """Measure what is asked for, or all."""
    parser = argparse.ArgumentParser(description="Measure what maintenance costs nodes.")
    parser.add_argument("names", nargs="*", default=[*STUDIES], help=f"of {', '.join(STUDIES)}; all if left out")
    for name in parser.parse_args().names:
        measured(STUDIES[name], FOLDER / f"{name}.csv")


if __name__ == "__main__":
    main()
