"""A saturated pool of threads: Cassandra's threads for clients, each of which waits a round trip for a quorum.

With two data centres far apart, a write at QUORUM holds a thread for a round trip and needs little CPU. So the pool is
full long before the cores are, and more clients only wait for a thread. Throughput times the time that a request holds
a thread is the number of threads; what a thread loses between two requests is the hand-off.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from capplan.calibration.evidence.load_tests import LoadTestRow
from capplan.calibration.evidence.microbenchmarks import MicrobenchRow
from capplan.lab.collectors.cassandra_load import collect_load, running_lab
from capplan.lab.collectors.cassandra_write import write_request
from capplan.lab.collectors.collector import Collected, Progress, Settings
from capplan.lab.collectors.measurement.exchanges import mean_interval
from capplan.lab.collectors.measurement.machine import machine
from capplan.lab.schema import session
from capplan.lab.state import State
from capplan.models.cassandra.cluster import NATIVE_TRANSPORT_THREADS
from capplan.models.errors import InputError

_CLIENTS = (16, 64, 192, 256)
_SHORTEST_RTT_S = 0.05  # below it the cores are the limit, not the threads
_FULL = 1.2  # clients for each thread, from which on the pool is full


def collect(settings: Settings, progress: Progress) -> Collected:
    """Measure the pool.

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
    asked = replace(settings, level="QUORUM", clients=tuple(nodes * each for each in _CLIENTS), shares=())
    found = collect_load("write", write_request, asked, progress, "worker-pool")
    threads = _threads(lab)
    rows = tuple(pool_rows(found.load_tests, threads, lab.layout.release.release))
    return replace(found, microbenchmarks=(*rows, *found.microbenchmarks))


def _threads(lab: State) -> int:
    """Return how many threads a node has for clients."""
    if not lab.layout.release.virtual_tables:
        return NATIVE_TRANSPORT_THREADS
    with session(lab.layout) as cql:
        pools = cql.execute("SELECT name, active_tasks_limit FROM system_views.thread_pools")
        return next(int(each.active_tasks_limit) for each in pools if each.name == "Native-Transport-Requests")


def pool_rows(runs: Sequence[LoadTestRow], threads: int, release: str) -> Iterator[MicrobenchRow]:
    """Yield the threads that were at work, the hand-off, and the throughput of a full pool beside its prediction.

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
    shared = MicrobenchRow(
        run_id="worker-pool",
        system="cassandra",
        version=release,
        host=machine(),
        component="thread pool",
        operation="Native-Transport-Requests",
        statistic="mean",
        samples=len(full),
        conditions=f"writes at QUORUM that hold a thread for {1000 * hold_s:.3g} ms, at most {threads} threads a node",
        source="capplan collect worker-pool",
    )
    busy, low, high = mean_interval([(each.throughput_tps or 0.0) * hold_s for each in full])
    note = "throughput of a full pool x latency with few clients"
    yield replace(shared, quantity="threads", value=busy, unit="1", error_low=low, error_high=high, note=note)
    throughput = replace(shared, quantity="throughput", unit="1/s")
    note = f"threads / latency with {fewest} clients, before the pool was full"
    if full:
        yield replace(throughput, component="predicted", value=threads * _nodes(full[0]) / hold_s, note=note)
        done, low, high = mean_interval([each.throughput_tps or 0.0 for each in full])
        yield replace(throughput, component="measured", value=done, error_low=low, error_high=high)
    nodes = [threads * _nodes(each) for each in full]
    lost = [count / (each.throughput_tps or 1.0) - hold_s for count, each in zip(nodes, full, strict=True)]
    mean, low, high = mean_interval(lost)
    note = "threads / throughput of a full pool - latency with few clients"
    yield replace(shared, quantity="hand-off", value=mean, unit="s", error_low=low, error_high=high, note=note)


def _nodes(row: LoadTestRow) -> int:
    """Return how many nodes coordinate: those of the first data centre."""
    return row.cass_nodes if isinstance(row.cass_nodes, int) else (row.cass_nodes or (1,))[0]
