"""Parameters of the Fedora repository cluster, with prior and source of each."""

from __future__ import annotations

from capplan.models.language.parameter import Parameter

PARAMETERS: tuple[Parameter, ...] = (
    Parameter("read_s", 4e-3, "s", "fitted", 1.0, "wide prior: a read takes a core 1 to 20 ms"),
    Parameter("send_s", 0.5e-3, "s", "fitted", 1.0, "wide prior: announcing a request to all peers, 0.1 to 3 ms"),
    Parameter("peer_s", 1.5e-3, "s", "fitted", 1.0, "wide prior: handling what a peer announces, 0.3 to 10 ms"),
    Parameter("write_s", 10e-3, "s", "fitted", 1.0, "wide prior: a write takes a core 2 to 50 ms more than a read"),
    Parameter("delete_wait_s", 50e-3, "s", "fitted", 1.0, "wide prior: a delete's wait on up to three nodes"),
    Parameter("delete_wait_four_s", 150e-3, "s", "fitted", 1.0, "wide prior: the same on four nodes"),
    Parameter(
        "delete_wait_beyond",
        1.0,
        "1",
        "guess",
        0.7,
        "that wait on five nodes and more over that on four: nobody measured it, a third to three times",
    ),
    Parameter("rtt_us_east_s", 0.5e-3, "s", "prior", 0.4, "a round trip within a region, load balancer included"),
    Parameter("rtt_us_west_s", 80e-3, "s", "fitted", 0.5, "wide prior: a round trip over 4,000 km"),
    Parameter("rtt_asia_s", 250e-3, "s", "fitted", 0.5, "wide prior: a round trip over 11,000 km and more"),
    Parameter("rtt_eu_s", 100e-3, "s", "fitted", 0.5, "wide prior: a round trip over 6,000 km"),
    Parameter("rtt_campus_s", 16e-3, "s", "fitted", 0.5, "wide prior: from the testers' campus, a few hundred km away"),
    Parameter("first_request_s", 0.15, "s", "fitted", 1.0, "wide prior: what a test user's first request takes more"),
)
"""Only the document's throttled test uses the last two."""
