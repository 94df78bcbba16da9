"""Runs several loads in turn on one cluster, repeat by repeat, so that a drift of the machine affects all of them."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from capplan.evidence.load_test_row import LoadTestRow
from capplan.lab.collectors import load
from capplan.lab.collectors.cassandra import Client, Load, RunningCluster, Table
from capplan.lab.collectors.collector import Progress
from capplan.lab.collectors.cql import CqlTarget
from capplan.lab.collectors.load import Run, pause

ROWS = 5000
"""Rows of each table, which are written over and over, so that the data does not grow."""
_MOST_REQUESTS = 10_000_000
_WARM_CLIENTS = 24  # at least
_RTT_SETTLES_S = 1.0
_SEED = 1


@dataclass(frozen=True)
class Bounds:
    """The length and the number of runs.

    Attributes
    ----------
    duration_s : float
        Time of a run.
    repeats : int
        How often each load is measured.
    warm_up_s : float
        Most time to wait until the speed is steady, for each statement at each level.
    """

    duration_s: float = 30.0
    repeats: int = 5
    warm_up_s: float = 150.0


class Named(Protocol):
    """A load of a run: of requests, or of sessions."""

    @property
    def name(self) -> str:
        """The name of this load among the loads of a cluster."""


L = TypeVar("L", bound=Named)


def run_name(stage: str, load_: Named, repeat: int) -> str:
    """Return the name of a run."""
    return f"{stage}-{load_.name}-{repeat}"


def runs_left(stage: str, loads: Sequence[L], bounds: Bounds, finished: Container[str]) -> list[tuple[int, L]]:
    """Return the runs that are not finished, repeat by repeat: the number of the repeat, and the load."""
    runs = [(repeat, each) for repeat in range(1, bounds.repeats + 1) for each in loads]
    return [(repeat, each) for repeat, each in runs if run_name(stage, each, repeat) not in finished]


def seed_of(run: str) -> int:
    """Return the seed of a run from its name: the same after an interruption, different for each repeat."""
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
    """Measure loads in turn with the requested repeats; skip runs that are finished.

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
    left = runs_left(stage, loads, bounds, finished)
    if not left:
        return

    async def measured() -> None:
        with ExitStack() as opened:
            used = dict.fromkeys(each.tls for _, each in left)
            by_tls = {tls: opened.enter_context(closing(Client(cluster, tls=tls))) for tls in used}
            progress("writing rows", 0, 1)
            create_tables(by_tls[left[0][1].tls], cluster, sorted({each.row_bytes for _, each in left}))
            rtt, targets, warm = RoundTrip(cluster), dict[Any, CqlTarget](), dict[Any, str]()
            clients = max(_WARM_CLIENTS, *(each.clients or 0 for _, each in left))
            for statement, own in {each.statement: each for _, each in reversed(left)}.items():
                client = by_tls[own.tls]
                targets[statement] = CqlTarget(
                    cluster.servers,
                    f"no {own.operation} at {own.level} was answered: check the nodes, or the level",
                    flow=table_of(cluster, own.row_bytes).requests(client, own.operation, own.level, _SEED),
                    loop=client.loop,
                )
                progress(f"warming {own.operation}s at {own.level} up until they are steady", 0, 1)
                await rtt.become(own.rtt_ms)
                found = await targets[statement].warmed_up(clients, _MOST_REQUESTS, bounds.warm_up_s)
                warm[statement] = found.sentence
            for number, (repeat, each) in enumerate(left):
                how = f"{each.rate_per_s:,.0f}/s" if each.clients is None else f"{each.clients} clients"
                progress(f"{each.operation} {each.level}, {how}", number, len(left))
                await rtt.become(each.rtt_ms)
                await pause()
                name = run_name(stage, each, repeat)
                seed, target = seed_of(name), targets[each.statement]
                asked = each.clients, each.rate_per_s, bounds.duration_s, _MOST_REQUESTS
                sample = target.answered(await target.sampled(*asked, seed, seed % ROWS))
                run = Run(name, each.clients, each.rate_per_s, repeat, sample)
                notes = [note for note in (cluster.note, warm[each.statement]) if note]
                done(run.row({**cluster.row(each), "gc": cluster.pauses(sample)}, notes))

    load.run(measured())


def table_of(cluster: RunningCluster, row_bytes: int) -> Table:
    """Return the table with rows of a size; every data centre stores its rows."""
    return Table(f"{cluster.keyspace}.live_{row_bytes}", row_bytes, ROWS)


def create_tables(client: Client, cluster: RunningCluster, sizes: Sequence[int]) -> None:
    """Create the keyspace and the tables, and write their rows."""
    tables = [table_of(cluster, size) for size in sizes]
    keyspace = f"CREATE KEYSPACE IF NOT EXISTS {cluster.keyspace} WITH replication = {cluster.replication}"
    client.create(keyspace, *(each.creation for each in tables))
    for each in tables:
        each.fill(client, "QUORUM", _SEED)


class RoundTrip:
    """The round trip between data centres; changes it only if the new value differs."""

    def __init__(self, cluster: RunningCluster) -> None:
        self._set, self._now = cluster.set_rtt, -1.0

    async def become(self, rtt_ms: float | None) -> None:
        """Change the round trip, and wait until messages in flight have arrived."""
        if self._set is not None and rtt_ms is not None and rtt_ms != self._now:
            self._set(rtt_ms)
            self._now = rtt_ms
            await asyncio.sleep(_RTT_SETTLES_S)
