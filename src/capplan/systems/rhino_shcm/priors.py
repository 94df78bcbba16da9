"""Parameters of the Sh cache microservice, with prior and source of each."""

from __future__ import annotations

from capplan.models.language.parameter import Parameter

PARAMETERS: tuple[Parameter, ...] = (
    Parameter("application_s", 2e-3, "s", "fitted", 0.5, "wide prior: the JVM works 0.7 to 5 ms a request"),
    Parameter("uncached_excess", 0.3, "1", "fitted", 0.5, "wide prior: 0.1 to 0.8 more work of the JVM without caches"),
    Parameter("cassandra_s", 2e-3, "s", "fitted", 0.7, "wide prior: a replica works 0.5 to 8 ms a request"),
    Parameter("path_s", 4e-3, "s", "fitted", 0.5, "wide prior: unhindered response, 1.5 to 11 ms"),
    Parameter(
        "uncached_share", 0.7, "1", "fitted", 0.5, "wide prior: 0.25 to 1.9 of path and Cassandra's work, no cache"
    ),
    Parameter("short_stall_requests", 300.0, "1", "fitted", 1.0, "wide prior: 40 to 2,100 requests a short stall"),
    Parameter("short_stall_s", 10e-3, "s", "fitted", 0.7, "wide prior: young collections last 2.5 to 40 ms"),
    Parameter("long_stall_requests", 10_000.0, "1", "fitted", 1.0, "wide prior: 1,400 to 71,000 requests a long stall"),
    Parameter("long_stall_s", 100e-3, "s", "fitted", 0.7, "wide prior: longer collections last 25 to 400 ms"),
    Parameter("cassandra_stalls", 1.0, "1", "fitted", 0.7, "wide prior: Cassandra has 0.25 to 4 long stalls for one"),
    Parameter("path_scv", 0.045, "1", "guess", 0.0, "the middle of the latencies at the lowest load is this narrow"),
)
