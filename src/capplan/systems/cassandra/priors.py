"""Parameters of a Cassandra cluster, with prior and source of each."""

from __future__ import annotations

from capplan.calibration.tables import node_cpu
from capplan.calibration.tables import priors as overhead
from capplan.calibration.tables.priors import exponent
from capplan.models.language.parameter import Parameter
from capplan.systems.components.pauses.parameters import PAUSES

PARAMETERS: tuple[Parameter, ...] = (
    Parameter(
        "delay_s",
        0.3e-3,
        "s",
        "fitted",
        0.7,
        "wide prior: network and client take 0.1 to 1.2 ms of a request, whatever the load",
    ),
    Parameter("coordinator_s", 0.15e-3, "s", "fitted", 0.8, "wide prior: coordinating a request takes 0.04 to 0.6 ms"),
    Parameter("mutation_s", 0.15e-3, "s", "fitted", 0.8, "wide prior: a mutation takes a replica 0.04 to 0.6 ms"),
    Parameter(
        "read_s", 0.25e-3, "s", "fitted", 0.8, "wide prior: a read takes a replica 0.07 to 1 ms with warm caches"
    ),
    Parameter(
        "unseen_work",
        3.0,
        "1",
        "fitted",
        1.0,
        "wide prior: time for which a request keeps a lane that no client waits for (GC, compaction, kernel, other "
        "threads), over the time that one waits for",
    ),
    Parameter(
        "replica_unseen",
        1.0,
        "1",
        "prior",
        0.4,
        "the same share at replicas over that at coordinators: flush and compaction are work of replicas",
    ),
    Parameter("message_share", 0.1, "1", "prior", 0.7, "a message between nodes, over the coordinator's work"),
    Parameter(
        "digest_share", 0.7, "1", "prior", 0.25, "a digest read over a read of data: it sends a hash instead of the row"
    ),
    Parameter(
        "kib_share", 0.05, "1", "prior", 1.0, "growth of a replica's and a coordinator's work with each KiB of a row"
    ),
    Parameter(
        "cold_s", 1.0e-3, "s", "prior", 0.8, "a read whose row is not in the page cache: 0.3 to 4 ms of a flash disk"
    ),
    Parameter(
        "wan_extra",
        1.0,
        "1",
        "prior",
        0.35,
        "what an answer from another data centre takes beyond the shortest round trip, an exponential time each way, "
        "its mean as a share of it: Nagle's algorithm holds a message until the one before is acknowledged, half a "
        "round trip in the mean of each way (docs/reference/another-data-centre.md)",
    ),
    Parameter("tls_factor", 1.0, "1", "prior", 0.8, "cost of TLS over the median of its prior"),
    Parameter(
        "generator_s", 0.1e-3, "s", "prior", 0.8, "the load generator's own work on a request, which is its ceiling"
    ),
    overhead.PARAMETER,
    Parameter(
        "variation",
        0.7,
        "1",
        "fitted",
        0.7,
        "wide prior: how much the speed of a full cluster varies in a run, as the standard deviation of its logarithm: "
        "flushes, compactions, neighbours",
    ),
    *PAUSES,
    exponent("node_exponent"),
    exponent("core_exponent"),
    Parameter("cluster_work", 1.0, "1", "prior", 0.0, "work of a cluster or version over that of the first"),
    Parameter("cluster_delay", 1.0, "1", "prior", 0.0, "the same of its delay"),
    Parameter(
        "contention",
        0.0,
        "1",
        "prior",
        0.0,
        "growth of all work with each client: none unless throughput fell in a row",
    ),
    Parameter(
        "wake_s",
        0.0,
        "s",
        "prior",
        0.0,
        "one host only: work of a request that finds all threads asleep. Requests under way share wake-ups: on a lab "
        "of 2 cores, work beyond the least fell as the inverse square root of 1 to 128 clients",
    ),
    Parameter(
        "exchange_s",
        0.0,
        "s",
        "prior",
        0.0,
        "one host only: the same of an exchange with another node, which wakes twice the threads of a request at both "
        "ends, each in another process: 0.4 ms of CPU with one request under way, 0.14 ms with 24",
    ),
    Parameter(
        "neighbour_s",
        0.0,
        "s",
        "prior",
        0.0,
        "one host only: work that each further node in use adds to a request. Cassandra's idle threads look for work "
        "before they sleep (SEPWorker), and so take cores from other nodes: 0.2 ms on a lab of 2 cores",
    ),
    *node_cpu.PARAMETERS,
)
