"""Parameters of the gRPC master over Hazelcast, with prior and source of each."""

from __future__ import annotations

from capplan.models.language.parameter import Parameter

PARAMETERS: tuple[Parameter, ...] = (
    Parameter("service_s", 0.5e-3, "s", "fitted", 0.7, "wide prior: a lookup takes a master 0.15 to 1.6 ms"),
    Parameter(
        "network_s",
        0.1e-3,
        "s",
        "guess",
        0.5,
        "a round trip within a data centre, 0.04 to 0.23 ms: where the clients stood is not said",
    ),
    Parameter(
        "paced_per_s",
        150.0,
        "1/s",
        "prior",
        0.03,
        "about 150 requests per second of each client (evidence clients30.client_rps): 2 % of rounding and 2 % of "
        "repeating",
    ),
    Parameter(
        "message_share",
        0.1,
        "1",
        "guess",
        1.0,
        "work of a message of a long stream over that of a call: a record of a watch takes 2.5 %, much better than a "
        "call is at most half",
    ),
    Parameter("hazelcast_record_s", 10e-6, "s", "fitted", 1.0, "wide prior: Hazelcast streams a record in 2 to 50 us"),
    Parameter("master_record_s", 10e-6, "s", "fitted", 1.0, "wide prior: a master passes a record on in 2 to 50 us"),
)
"""Only the test of clients uses `paced_per_s`; only watches use the last two."""
