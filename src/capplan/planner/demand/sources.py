"""Where defaults of a demand come from: each has a source, or is a guess."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from capplan.planner.demand.uncertain import Between

GUESS = "guess"


@dataclass(frozen=True)
class Assumption:
    """An input that the file leaves out.

    Attributes
    ----------
    key
        Its place in the file, such as `busy_hour.interim_s`.
    value
        The default, as it would be written in the file.
    source
        Where it comes from; `guess` where it has no source.
    """

    key: str
    value: str
    source: str


INTERIM_S = 600.0
BOOT_SHARES = ((5.0, 15.0, 0.2), (15.0, 45.0, 0.5), (45.0, 90.0, 0.3))
"""From, to (s) and share of the devices that have booted in between."""
HEADROOM = {"STCS": 0.5, "LCS": 0.1}
"""Share of the disk that compaction needs free, by strategy."""
COMPRESSION = Between(0.25, 0.75)
USABLE = Between(0.9, 0.9)
BUSY_SHARE = Between(0.08, 0.15)

SOURCES = {
    "busy_hour.interim_s": "RFC 2869, section 5.16: an interval should not be below 600 s",
    "busy_hour.authentication_requests": "RFC 2865: one Access-Request for PAP or CHAP; EAP takes several (RFC 3579)",
    "busy_hour.lengths": GUESS,
    "busy_hour.share_of_day": GUESS,
    "reattach.share": GUESS,
    "reattach.window_s": GUESS,
    "reattach.boot": "openRadius load test report, aa1f32b: its power-outage case, one AAA test",
    "connections.within_s": GUESS,
    "data.rows": GUESS,
    "data.compaction": "Apache Cassandra documentation: STCS is the default compaction strategy",
    "data.headroom.STCS": "DataStax support FAQ on STCS: half of the disk in the worst case",
    "data.headroom.LCS": "J. Ellis, Leveled compaction in Apache Cassandra (2011): at most 10 % of obsolete rows",
    "data.compression": "DataStax documentation: 2x to 4x smaller (Cassandra 2.2), 25 to 33 % smaller (DSE 5.1)",
    "data.usable": "DataStax documentation of Cassandra 1.2, usable disk capacity: formatting takes 10 %",
}


def assumed(key: str, value: Any, variant: str = "") -> Assumption:
    """Return a default with its source."""
    return Assumption(key, str(value), SOURCES[f"{key}.{variant}" if variant else key])
