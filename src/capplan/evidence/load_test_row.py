"""A row of a load-test table: what was tested, how it was loaded, and what was measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from capplan.models.language.per_dc import PerDcOrNone, SharesByDc

ALL = "all"
"""The request class of a row about all requests of a run together."""
Level = Literal["ONE", "LOCAL_ONE", "TWO", "THREE", "LOCAL_QUORUM", "EACH_QUORUM", "QUORUM", "ALL"]
PERCENTILES = {
    "latency_p50_ms": 0.5,
    "latency_p75_ms": 0.75,
    "latency_p90_ms": 0.9,
    "latency_p95_ms": 0.95,
    "latency_p99_ms": 0.99,
    "latency_p999_ms": 0.999,
}
"""The columns of percentiles, as shares of the requests, in order."""
LATENCIES = ("latency_mean_ms", *PERCENTILES, "latency_max_ms")


def all_in_first(dcs: int) -> tuple[float, ...] | None:
    """Return client shares with all clients in the first of several data centres, as in a lab."""
    return (1.0, *(0.0,) * (dcs - 1)) if dcs > 1 else None


@dataclass(frozen=True, kw_only=True)
class LoadTestRow:
    """One request class of one run of a load test; None where nothing is known.

    Attributes
    ----------
    run_id
        Name of the run; its request classes share it.
    repeat
        Number of the repeat, where a layout was measured more than once at the same load.
    system
        What was tested.
    version
        Version of what was tested.
    dcs
        Data centres.
    cass_nodes
        Cassandra nodes per data centre: one number, or one for each such as `6/6/3`.
    node_cores
        Cores of a Cassandra node.
    rf
        Replicas of a row per data centre.
    front_nodes
        Nodes in front of Cassandra per data centre.
    front_cores
        Cores of a front node.
    consistency_read
        Consistency level of reads.
    consistency_write
        Consistency level of writes.
    token_aware
        Whether the driver sends a request to a replica of its row.
    read_fraction
        Reads as a share of all requests of the run, between 0 and 1.
    row_bytes
        Bytes of a row's values.
    data_gib
        Data on each node, GiB.
    cache_state
        `warm` or `cold`.
    encryption_client
        Whether clients connect by TLS.
    encryption_internode
        Whether nodes connect by TLS.
    rtt_ms
        Round trip between data centres, ms.
    inter_dc_tcp_nodelay
        Whether nodes send messages to other data centres at once, as the setting of `cassandra.yaml` says; there it is
        false.
    client_share
        Share of the clients of each data centre, such as `100%/0%`.
    load_kind
        `open`: requests come whatever happens, latency counts from the intended start. `closed`: clients wait for their
        answers. `throttled`: closed clients that are paced to a rate.
    clients
        Clients of the run, such as threads, or the most requests that it has under way at once.
    think_time_ms
        Mean time between an answer and the client's next request, ms.
    offered_tps
        Requests of this class that were meant to be sent, per second.
    duration_s
        Time in which requests were counted, s.
    request_class
        What was asked, such as `read`; `all` for every request of the run.
    throughput_tps
        Completed requests of this class per second.
    latency_mean_ms
        Mean latency, ms.
    latency_p50_ms
        Latency that half of the requests do not exceed, ms.
    latency_p75_ms
        75th percentile, ms.
    latency_p90_ms
        90th percentile, ms.
    latency_p95_ms
        95th percentile, ms.
    latency_p99_ms
        99th percentile, ms.
    latency_p999_ms
        99.9th percentile, ms.
    latency_max_ms
        Longest latency, ms.
    front_cpu_percent
        Mean CPU of the front nodes, per cent of a whole node.
    node_cpu_percent
        Mean CPU of the Cassandra nodes, per cent of a whole node.
    client_cpu_percent
        Mean CPU of the load generator, per cent of what it may use.
    drops
        Requests that were turned away or never sent.
    errors
        Requests that failed.
    one_host
        Whether all nodes shared the cores of one machine, as in a lab; missing: they did not.
    gc
        Garbage-collection pauses of a Cassandra node, as its share of the time and their mean length, such as
        `0.6%@45ms`. `sd=`, `n=` and `rate=` may follow: standard deviation, number, and the operations that clients
        sent per second and node, with which the share grows.
    generator_added_ms
        What the load generator itself adds to a latency, median, ms.
    generator_limited
        Whether the load generator, and not what was tested, limited the figures: they are not to be believed.
    disturbed
        Whether other processes used much of the machine's CPU.
    source
        The file, and the tool that wrote it.
    note
        What else a reader must know.
    """

    run_id: str | None = None
    repeat: int | None = None
    system: str | None = None
    version: str | None = None
    dcs: int | None = None
    cass_nodes: PerDcOrNone | None = None
    node_cores: float | None = None
    rf: PerDcOrNone | None = None
    front_nodes: PerDcOrNone | None = None
    front_cores: float | None = None
    consistency_read: Level | None = None
    consistency_write: Level | None = None
    token_aware: bool | None = None
    read_fraction: float | None = None
    row_bytes: float | None = None
    data_gib: float | None = None
    cache_state: Literal["warm", "cold"] | None = None
    encryption_client: bool | None = None
    encryption_internode: bool | None = None
    rtt_ms: float | None = None
    inter_dc_tcp_nodelay: bool | None = None
    client_share: SharesByDc | None = None
    load_kind: Literal["open", "closed", "throttled"] | None = None
    clients: int | None = None
    think_time_ms: float | None = None
    offered_tps: float | None = None
    duration_s: float | None = None
    request_class: str | None = None
    throughput_tps: float | None = None
    latency_mean_ms: float | None = None
    latency_p50_ms: float | None = None
    latency_p75_ms: float | None = None
    latency_p90_ms: float | None = None
    latency_p95_ms: float | None = None
    latency_p99_ms: float | None = None
    latency_p999_ms: float | None = None
    latency_max_ms: float | None = None
    front_cpu_percent: float | None = None
    node_cpu_percent: float | None = None
    client_cpu_percent: float | None = None
    drops: int | None = None
    errors: int | None = None
    one_host: bool | None = None
    gc: str | None = None
    generator_added_ms: float | None = None
    generator_limited: bool | None = None
    disturbed: bool | None = None
    source: str | None = None
    note: str | None = None
