"""The layout of `rhino-shcm` and the traffic on it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic.dataclasses import dataclass

from capplan.errors import InputError
from capplan.models.cassandra.encryption import check_encryption, check_reconnects
from capplan.models.language.construct import LANGUAGE
from capplan.models.language.scenario import LARGEST, Objectives, Option, Scenario, check_at_most, rate_option
from capplan.models.language.units import (
    AtLeastOne,
    Number,
    PositivePerSecond,
)
from capplan.systems.components.encryption_options import Encryption, Reconnects, Vpn

SESSION_REQUESTS = 1.8  # evidence all.session_requests
_USUAL_NODES = 3  # evidence b.cassandra_nodes
_USUAL_REPLICAS = 3  # evidence b.replication


@dataclass(frozen=True, config=LANGUAGE)
class RhinoShcmScenario(Scenario):
    """A layout of the `rhino-shcm` system and the traffic on it.

    Attributes
    ----------
    system
        Name of the system.
    cass_nodes
        Cassandra nodes; by default 3, or 1 if colocated.
    rf
        Replicas of each row; by default 3, or the number of nodes if there are fewer.
    colocated
        Whether one of the Cassandra nodes runs on the application's server.
    cache
        Whether the application caches rows.
    encryption
        Encrypted links: `client` (application to Cassandra), `internode` or `client+internode`; none by default.
    vpn
        Where links are encrypted: by each program with TLS in `user` space (the default), or by a VPN in the `kernel`.
    reconnects
        New TLS connections per statement on client links, 0 to 1; none by default, because drivers keep theirs.
    sps
        Offered sessions per second, of 1.8 requests each; instead of `tps`.
    tps
        Offered requests per second; by default 80 % of the capacity.
    slo
        Objectives, such as `request.p99<150ms`.

    Raises
    ------
    InputError
        If there are more replicas than nodes, or too many nodes, if links to encrypt do not exist, or if both sps and
        tps are given.
    """

    system: Literal["rhino-shcm"] = "rhino-shcm"
    cass_nodes: Annotated[AtLeastOne | None, Option("Cassandra nodes.", "Cassandra nodes")] = None
    rf: Annotated[AtLeastOne | None, Option("Replicas of each row.", "replicas")] = None
    colocated: Annotated[bool, Option("Run Cassandra on the application's server.", "colocated")] = False
    cache: Annotated[bool, Option("Use the application's caches.", "caches")] = True
    encryption: Encryption = None
    vpn: Vpn = None
    reconnects: Reconnects = None
    sps: Annotated[
        PositivePerSecond | None,
        rate_option("Offered sessions per second, instead of --tps.", "offered sessions per second", replaces="tps"),
    ] = None
    tps: Annotated[PositivePerSecond | None, rate_option("Offered requests per second.", replaces="sps")] = None
    slo: Annotated[Objectives, Option("Objective, such as 'request.p99<150ms'; may be repeated.", "objectives")] = ()

    def __post_init__(self) -> None:
        check_at_most(LARGEST, cass_nodes=self.nodes)
        if self.replicas > self.nodes:
            raise InputError(
                f"rf = {self.replicas} needs at least {self.replicas} Cassandra nodes and there are {self.nodes}: add "
                f"nodes, or lower rf to {self.nodes}"
            )
        object.__setattr__(self, "encryption", check_encryption(self.encryption, self.vpn, self.nodes))
        check_reconnects(self.reconnects, self.encryption, self.vpn)
        if self.sps is not None and self.tps is not None:
            raise InputError(
                f"sps = {self.sps:g} and tps = {self.tps:g} both give the offered rate, and sps is "
                f"{self.sps * SESSION_REQUESTS:g} requests per second: give one of them"
            )

    def offered_per_s(self) -> Number | None:
        """Return the offered rate, requests per second; None if none is given."""
        return self.tps if self.sps is None else self.sps * SESSION_REQUESTS

    @property
    def nodes(self) -> int:
        """Number of Cassandra nodes: as given, or as in the load tests."""
        return self.cass_nodes or (1 if self.colocated else _USUAL_NODES)

    @property
    def replicas(self) -> int:
        """Replicas of each row: as given, or as in the load tests, but at most the number of nodes."""
        return self.rf or min(_USUAL_REPLICAS, self.nodes)

    def cassandra_nodes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the numbers of Cassandra nodes and of replicas of each row, in one data centre."""
        return (self.nodes,), (self.replicas,)

    def given(self) -> dict[str, Any]:
        """Return the fields that are set, with the numbers of nodes and replicas in effect."""
        resolved = {**vars(self), "cass_nodes": self.nodes, "rf": self.replicas}
        return {name: value for name, value in resolved.items() if value is not None and value != ()}
