"""Parameters of the AAA policy server, with prior and source of each."""

from __future__ import annotations

from capplan.models.language.parameter import Parameter
from capplan.systems.components.pauses.parameters import PAUSES

PARAMETERS: tuple[Parameter, ...] = (
    Parameter("replica_read_s", 1.1e-3, "s", "fitted", 1.0, "wide prior: a read of one replica takes 0.1 to 10 ms"),
    Parameter("mutation_s", 0.85e-3, "s", "fitted", 1.0, "wide prior: a mutation takes 0.1 to 5 ms"),
    Parameter("unseen_work", 1.2, "1", "fitted", 0.7, "wide prior: GC, compaction and kernel work beside the visible"),
    Parameter("storage_s", 1.2e-4, "s", "fitted", 0.5, "wide prior: commit log, flush and compaction of one mutation"),
    Parameter("burst_excess", 0.12, "1", "fitted", 0.5, "the document calls its rates peaks of a bursty traffic"),
    Parameter("ldap_s", 8.0e-3, "s", "fitted", 0.5, "wide prior: an LDAP search in another network, 3 to 20 ms"),
    Parameter("route_excess", 0.2, "1", "prior", 0.5, "fibre routes are 1.1 to 1.5 times the straight line"),
    Parameter("coordinator_s", 0.2e-3, "s", "guess", 0.3, "parsing and coordinating one statement"),
    Parameter(
        "message_share",
        0.03,
        "1",
        "guess",
        1.0,
        "a message between nodes at each of them, as a share of a mutation: 0.5 to 15 %; netty alone takes 0.4 us",
    ),
    Parameter(
        "profile_excess", 0.15, "1", "guess", 0.5, "extra cost of reading a session row that holds the LDAP profile"
    ),
    *PAUSES,
    Parameter("front_s", 0.1e-3, "s", "guess", 0.0, "a RADIUS server's own work on one message"),
    Parameter("lan_s", 0.1e-3, "s", "guess", 0.0, "one way between two machines of a data centre"),
    Parameter(
        "queue_limit",
        4.0,
        "1",
        "guess",
        0.0,
        "messages that may wait for a worker; the document drops when all workers are busy",
    ),
    Parameter("burst_fraction", 0.05, "1", "guess", 0.0, "share of the time at the peak rate: the busiest 5 %"),
    Parameter("burst_length_s", 1.0, "s", "guess", 0.0, "mean length of a burst: seconds, as rates are counted"),
    Parameter("gap_s", 0.5e-3, "s", "documented", 0.0, "evidence all.flow_time: eight messages in 50 ms"),
)
