"""A cluster that exists, from a TOML file: addresses, replicas, and how clients log in."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass as checked

from capplan.lab.collectors.cassandra import RunningCluster
from capplan.lab.layout import NATIVE_PORT
from capplan.models.errors import InputError
from capplan.models.language.construct import LANGUAGE
from capplan.models.language.document import read
from capplan.models.language.units import AtLeastOne
from capplan.models.read_file import read_file


@checked(frozen=True, config=LANGUAGE)
class DataCentre:
    """A data centre of a cluster that exists.

    Attributes
    ----------
    name
        Its name, as Cassandra knows it.
    nodes
        Addresses of its nodes.
    rf
        Replicas of a row there.

    Raises
    ------
    InputError
        If there are fewer nodes than replicas.
    """

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,100}$")]
    nodes: Annotated[tuple[Annotated[str, Field(pattern=r"^[A-Za-z0-9_.:-]{1,255}$")], ...], Field(min_length=1)]
    rf: AtLeastOne

    def __post_init__(self) -> None:
        if self.rf > len(self.nodes):
            raise InputError(
                f"rf = {self.rf} of data centre {self.name} needs as many nodes, and {len(self.nodes)} are named"
            )


@checked(frozen=True, config=LANGUAGE)
class Hosts:
    """A cluster that exists; clients connect to its first data centre.

    Attributes
    ----------
    dcs
        Its data centres.
    node_cores
        Cores (vCPU) of a node.
    version
        Release of Cassandra.
    rtt_ms
        Round trip between the data centres, ms.
    port
        Where nodes answer clients.
    user, password_file
        What clients log in with: the name, and a file with the password.
    certificate
        File with the certificate of the nodes (PEM), if clients use TLS.
    internode_tls
        Whether nodes use TLS among each other.
    keyspace
        A keyspace for the measurement; it is created, and left there.

    Raises
    ------
    InputError
        If two data centres have one name, the round trip between several is missing, or a user has no password.
    """

    dcs: Annotated[tuple[DataCentre, ...], Field(min_length=1)]
    node_cores: AtLeastOne
    version: Annotated[str, Field(max_length=100)] = "unknown"
    rtt_ms: Annotated[float | None, Field(ge=0, le=10_000)] = None
    port: AtLeastOne = NATIVE_PORT
    user: str | None = None
    password_file: str | None = None
    certificate: str | None = None
    internode_tls: bool = False
    keyspace: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,47}$")] = "capplan_live"

    def __post_init__(self) -> None:
        if len({dc.name for dc in self.dcs}) < len(self.dcs):
            raise InputError("two data centres have one name: give each its own")
        if (self.rtt_ms is None) != (len(self.dcs) == 1):
            rule = "rtt_ms is missing" if len(self.dcs) > 1 else "rtt_ms is between data centres, and there is one"
            raise InputError(f"{rule}: {'give the round trip' if len(self.dcs) > 1 else 'leave it out'}")
        if (self.user is None) != (self.password_file is None):
            raise InputError("user and password_file belong together: give both or none")

    def levels(self) -> tuple[str, ...]:
        """Return the levels that are measured: the nearest replica, then quorums where they wait for more."""
        found = ["LOCAL_ONE"]
        if self.dcs[0].rf > 1:
            found.append("LOCAL_QUORUM")
        if len(self.dcs) > 1:
            found += ["QUORUM", "EACH_QUORUM"]
        return tuple(found)

    def cluster(self) -> RunningCluster:
        """Return the cluster."""
        each = ", ".join(f"'{dc.name}': {dc.rf}" for dc in self.dcs)
        first = self.dcs[0]
        return RunningCluster(
            version=self.version,
            cass_nodes=tuple(len(dc.nodes) for dc in self.dcs),
            rf=tuple(dc.rf for dc in self.dcs),
            addresses=first.nodes,
            local_dc=first.name,
            replication=f"{{'class': 'NetworkTopologyStrategy', {each}}}",
            keyspace=self.keyspace,
            node_cores=float(self.node_cores),
            certificate=None if self.certificate is None else Path(self.certificate),
            user=self.user,
            password=_password(self.password_file),
            internode_tls=self.internode_tls,
            port=self.port,
        )


def _password(path: str | None) -> str | None:
    return None if path is None else read_file(Path(path)).strip()


def read_hosts(path: Path) -> Hosts:
    """Read a description of a cluster.

    Raises
    ------
    InputError
        If the file cannot be read or is no such description.
    """
    return read(Hosts, path)
