"""Parameters of servers in front of Cassandra, with prior and source of each."""

from __future__ import annotations

from capplan.calibration.tables import priors as overhead
from capplan.calibration.tables.priors import exponent
from capplan.models.language.parameter import Parameter

PARAMETERS: tuple[Parameter, ...] = (
    Parameter(
        "delay_s",
        0.2e-3,
        "s",
        "fitted",
        1.0,
        "wide prior: network and client take 0.04 to 1 ms of a request, whatever the load",
    ),
    overhead.PARAMETER,
    Parameter("front_read_s", 0.1e-3, "s", "fitted", 1.0, "wide prior: a read takes a front node 0.02 to 0.5 ms"),
    Parameter("front_write_s", 0.15e-3, "s", "fitted", 1.0, "wide prior: a write takes a front node 0.03 to 0.8 ms"),
    Parameter("store_read_s", 0.1e-3, "s", "fitted", 1.0, "wide prior: a read takes its store node 0.02 to 0.5 ms"),
    Parameter("store_write_s", 0.2e-3, "s", "fitted", 1.0, "wide prior: a write takes its store node 0.04 to 1 ms"),
    Parameter(
        "copy_share", 0.7, "1", "prior", 0.5, "work on a write at each other copy, over that at the first: 0.3 to 1.6"
    ),
    Parameter(
        "commit_s",
        2e-3,
        "s",
        "fitted",
        1.2,
        "wide prior: a commit at a copy, which serves all writes that wait for it, takes 0.3 to 14 ms",
    ),
    Parameter(
        "append_s",
        20e-6,
        "s",
        "fitted",
        1.2,
        "wide prior: a write lengthens the commit of its batch by 3 to 140 us: to encode it, send it and append it to "
        "the log",
    ),
    Parameter(
        "unseen",
        3.0,
        "1",
        "fitted",
        1.0,
        "wide prior: time for which a request keeps a lane that no client waits for, over the time that one waits for",
    ),
    Parameter("store_unseen", 1.0, "1", "prior", 0.4, "that share at the store over that at the front"),
    exponent("core_exponent"),
    exponent("node_exponent"),
    Parameter(
        "rounds",
        4.0,
        "1",
        "prior",
        0.01,
        "times that a request takes a lane in each tier: the most probable one of 1, 2, 4, 8, 16 and 32",
    ),
)
