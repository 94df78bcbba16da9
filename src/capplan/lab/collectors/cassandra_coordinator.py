"""What the nodes count of their own work: virtual tables, and the log of the garbage collector."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from capplan.calibration.evidence.microbenchmarks import MicrobenchRow
from capplan.lab import cluster
from capplan.lab.collectors.cassandra_load import running_lab
from capplan.lab.collectors.collector import Collected, Progress, Settings
from capplan.lab.collectors.measurement.exchanges import mean_interval
from capplan.lab.collectors.measurement.machine import machine
from capplan.lab.layout import Node
from capplan.lab.node_files import gc_log
from capplan.lab.schema import KEYSPACE, session
from capplan.lab.state import State

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


def collect(settings: Settings, progress: Progress) -> Collected:
    """Ask every node what it has counted since its start.

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


def _shared(lab: State, node: Node) -> MicrobenchRow:
    return MicrobenchRow(
        run_id=f"coordinator-{node.name}",
        system="cassandra",
        version=lab.layout.release.release,
        host=f"{node.name} on {machine()}",
        source="capplan collect cassandra-coordinator",
    )


def _virtual_tables(lab: State, node: Node) -> Iterator[MicrobenchRow]:
    """Yield counts. Latencies of these tables are left out: some versions print seconds in columns of milliseconds."""
    plain = replace(_shared(lab, node), statistic="constant", note="virtual tables")
    with session(lab.layout, node) as cql:
        for table, (component, operation) in _COUNTED.items():
            for counted in cql.execute(f"SELECT * FROM system_views.{table}"):  # noqa: S608  # a name of ours
                if counted.keyspace_name == KEYSPACE and counted.count:
                    yield replace(
                        plain,
                        component=component,
                        operation=operation,
                        quantity="completed",
                        value=float(counted.count),
                        unit="1",
                        conditions=f"table {KEYSPACE}.{counted.table_name}",
                    )
        used = (each for each in cql.execute("SELECT * FROM system_views.thread_pools") if each.completed_tasks)
        for pool in used:
            for column, quantity in _POOLS.items():
                yield replace(
                    plain,
                    component="thread pool",
                    operation=pool.name,
                    quantity=quantity,
                    value=float(getattr(pool, column)),
                    unit="1",
                )


def _pauses(lab: State, node: Node) -> Iterator[MicrobenchRow]:
    """Yield the pauses of the garbage collector."""
    log = gc_log(cluster.folder_of(node))
    text = log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
    pauses = [float(found[1]) / 1000 for found in _PAUSE.finditer(text)]
    if not pauses:
        return
    up_s = max(float(found[1]) for found in _UPTIME.finditer(text))
    shared = replace(
        _shared(lab, node),
        component="jvm",
        operation="gc",
        quantity="pause",
        unit="s",
        samples=len(pauses),
        conditions=f"in {up_s:.0f} s, heap {lab.layout.heap_bytes / 2**20:.0f} MiB, serial collector",
        note="log of the garbage collector",
    )
    mean, low, high = mean_interval(pauses)
    yield replace(shared, statistic="mean", value=mean, error_low=max(low, 0.0), error_high=high)
    yield replace(shared, statistic="maximum", value=max(pauses))
    yield replace(shared, quantity="share of time", statistic="constant", value=sum(pauses) / up_s, unit="1")
