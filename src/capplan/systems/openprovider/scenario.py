"""The layout of `openprovider` and the traffic on it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from capplan.models.cassandra.consistency import check_level, need
from capplan.models.cassandra.encryption import check_encryption, check_reconnects
from capplan.models.errors import InputError
from capplan.models.language.construct import LANGUAGE
from capplan.models.language.scenario import LARGEST, Option, Scenario
from capplan.models.language.units import (
    AtLeastOne,
    PositivePerSecond,
    check_number,
    parse_duration_s,
    parse_length_m,
    parse_rate_per_s,
    parse_share,
)


def _kilometres(text: str) -> str:
    return f"{parse_length_m(text) / 1000:g}km"


def _factor(text: str) -> float:
    try:
        return float(check_number(float(text), "data factor", above=0.0))
    except (ValueError, OverflowError):
        raise InputError(f"{text!r} is not a data factor: give a number such as 2.5") from None


LARGEST_POOL = 4096  # worker threads of a policing node


@dataclass(frozen=True, config=LANGUAGE)
class OpenproviderScenario(Scenario):
    """A layout of the `openprovider` system and the traffic on it.

    Attributes
    ----------
    system
        Name of the system.
    dcs
        Active data centres.
    cass_nodes
        Cassandra nodes in each data centre.
    rf
        Replicas of each row in each data centre; at most as many as nodes.
    front_nodes
        Policing nodes in each data centre.
    front_workers
        Worker threads of each policing node.
    consistency_read
        Consistency level of reads.
    consistency_write
        Consistency level of writes.
    distance
        Straight-line distance between any two data centres (`150km`).
    rtt
        Round trip between data centres instead of `distance`: one duration, or a matrix of them.
    proxy
        Whether each accounting request is forwarded to another server.
    ldap
        Whether each authorization queries an LDAP server.
    data_factor
        Service times of Cassandra relative to the load test, which had young data; in production they are 2 to 3 times
        as long.
    encryption
        Encrypted links: `client` (policing nodes to Cassandra), `internode` or `client+internode`; none by default.
    vpn
        Where links are encrypted: by each program with TLS in `user` space (the default), or by a VPN in the `kernel`.
    reconnects
        New TLS connections per statement on client links, 0 to 1; none by default, because drivers keep theirs.
    tps
        Offered peak rate over all data centres, requests per second; 80 % of the capacity by default.
    slo
        Objectives, such as `acct.p99<20ms`.

    Raises
    ------
    InputError
        If a field is out of range, there are fewer nodes than replicas, a consistency level cannot be met, or `rtt`
        does not match the data centres.
    """

    system: Literal["openprovider"] = "openprovider"
    dcs: Annotated[AtLeastOne, Option("Data centres.", "data centres", measured=True)] = 3
    cass_nodes: Annotated[
        AtLeastOne, Option("Cassandra nodes per data centre.", "Cassandra nodes per data centre", measured=True)
    ] = 3
    rf: Annotated[AtLeastOne, Option("Replicas per data centre.", "replicas per data centre", measured=True)] = 3
    front_nodes: Annotated[
        AtLeastOne, Option("Policing nodes per data centre.", "policing nodes per data centre", measured=True)
    ] = 2
    front_workers: Annotated[
        AtLeastOne, Option("Worker threads of a policing node.", "workers per policing node", measured=True)
    ] = 64
    consistency_read: Annotated[str, Option("Consistency level of reads.", "consistency of reads", "LEVEL")] = (
        "LOCAL_QUORUM"
    )
    consistency_write: Annotated[str, Option("Consistency level of writes.", "consistency of writes", "LEVEL")] = (
        "QUORUM"
    )
    distance: Annotated[
        str,
        Option(
            "Distance between data centres instead of --rtt, such as 150; a calibrated factor accounts for fibre "
            "routes.",
            "distance, km",
            "KM",
            unit="km",
            name="distance_km",
            read=_kilometres,
            replaces=("rtt",),
        ),
    ] = "150km"
    rtt: Annotated[
        str | tuple[tuple[str, ...], ...] | None,
        Option("Round-trip time between data centres, such as 3ms.", "round trip, ms", "TIME", unit="ms"),
    ] = None
    proxy: Annotated[bool, Option("Forward accounting requests to another server.", "accounting proxy")] = False
    ldap: Annotated[bool, Option("Query LDAP on each authorization.", "LDAP")] = False
    data_factor: Annotated[
        float,
        Field(gt=0, le=100),
        Option(
            "Cassandra service times relative to the test, such as 2.5.",
            "times the test's service times",
            "X",
            read=_factor,
            measured=True,
        ),
    ] = 1.0
    encryption: Annotated[
        str | None, Option("Links to encrypt: client, internode or client+internode.", "encrypted links", "LINKS")
    ] = None
    vpn: Annotated[
        str | None, Option("Where to encrypt them: user (TLS) or kernel (a VPN).", "encryption in", "WHERE")
    ] = None
    reconnects: Annotated[
        float | None,
        Field(ge=0, le=1),
        Option(
            "New TLS connections per statement, such as 0.01.",
            "TLS connections per statement",
            "X",
            read=parse_share,
        ),
    ] = None
    tps: Annotated[
        PositivePerSecond | None,
        Option("Offered peak rate over all data centres.", "offered rate, TPS", "RATE", read=parse_rate_per_s),
    ] = None
    slo: Annotated[tuple[str, ...], Option("Objective, such as 'acct.p99<20ms'; may be repeated.", "objectives")] = ()

    def __post_init__(self) -> None:
        for name in ("dcs", "cass_nodes", "front_nodes"):
            if getattr(self, name) > LARGEST:
                raise InputError(f"{name} = {getattr(self, name)} is more than the {LARGEST} that capplan sizes")
        if self.front_workers > LARGEST_POOL:
            raise InputError(f"front_workers = {self.front_workers} is more than the {LARGEST_POOL} that capplan sizes")
        if self.rf > self.cass_nodes:
            raise InputError(
                f"rf = {self.rf} needs at least {self.rf} Cassandra nodes in each data centre and there are "
                f"{self.cass_nodes}: add nodes, or lower rf to {self.cass_nodes}"
            )
        object.__setattr__(self, "consistency_read", check_level(self.consistency_read, "read"))
        object.__setattr__(self, "consistency_write", check_level(self.consistency_write, "write"))
        for level in (self.consistency_read, self.consistency_write):
            need(level, [self.rf] * self.dcs, 0)
        self.distance_m()
        self.given_rtt_s()
        links = check_encryption(self.encryption, self.vpn, self.dcs * self.cass_nodes)
        object.__setattr__(self, "encryption", links)
        check_reconnects(self.reconnects, self.encryption, self.vpn)

    def given(self) -> dict[str, Any]:
        """Return the fields that are set; of distance and round trip, only the one in effect."""
        return {name: value for name, value in super().given().items() if self.rtt is None or name != "distance"}

    def distance_m(self) -> float:
        """Return the distance between data centres, metres."""
        distance = parse_length_m(self.distance)
        if not 0 <= distance <= 2.1e7:
            raise InputError(f"distance {self.distance!r} is not between two places on Earth: give 0 to 20,000 km")
        return distance

    def given_rtt_s(self) -> tuple[tuple[float, ...], ...] | None:
        """Return the given round trips between data centres, seconds (dcs, dcs); None if `distance` determines them."""
        if self.rtt is None:
            return None
        if isinstance(self.rtt, str):
            seconds = _round_trip(self.rtt)
            return tuple(tuple(0.0 if a == b else seconds for b in range(self.dcs)) for a in range(self.dcs))
        if len(self.rtt) != self.dcs:
            raise InputError(
                f"rtt has {len(self.rtt)} rows and there are {self.dcs} data centres: give one row for each"
            )
        for number, row in enumerate(self.rtt, 1):
            if len(row) != self.dcs:
                raise InputError(
                    f"row {number} of rtt has {len(row)} round trips and there are {self.dcs} data centres: "
                    "give one for each, 0 for the data centre itself"
                )
        matrix = tuple(tuple(_round_trip(cell) for cell in row) for row in self.rtt)
        if any(abs(matrix[a][b] - matrix[b][a]) > 1e-12 for a in range(self.dcs) for b in range(self.dcs)):
            raise InputError("rtt must be the same in both directions: a round trip has no direction")
        return matrix


def _round_trip(text: str) -> float:
    seconds = parse_duration_s(text, "ms")
    if not 0 <= seconds <= 10:
        raise InputError(f"rtt {text!r} is not a round trip between data centres: give 0 to 10s")
    return seconds
