"""Where a live validation measures: labs, which it starts and ends, or a cluster that exists."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Protocol

from pydantic import Field
from pydantic.dataclasses import dataclass as checked

from capplan.errors import InputError
from capplan.files import read_file
from capplan.lab import cluster as lab
from capplan.lab import state
from capplan.lab.collectors.cassandra import RunningCluster, cluster_of
from capplan.lab.collectors.collector import Progress
from capplan.lab.collectors.link import connect, echo_times_s
from capplan.lab.layout import ECHO_PORT, NATIVE_PORT, Layout
from capplan.models.language.construct import LANGUAGE
from capplan.models.language.document import read
from capplan.models.language.units import AtLeastOne
from capplan.planner.live.folder import Folder
from capplan.planner.live.protocol import Stage

_ECHOES = 60
_ECHO = b"x" * 100


class Clusters(Protocol):
    """The clusters on which a validation measures."""

    def expected(self, stage: Stage) -> RunningCluster:
        """Return the cluster of a stage as the model sees it, before it runs."""

    def running(self, stage: Stage, progress: Progress) -> AbstractContextManager[RunningCluster]:
        """Return the cluster of a stage while it runs."""

    def close(self) -> None:
        """End what was started."""

    def round_trips_ms(self, stage: Stage, wanted: Iterable[float]) -> dict[float, float]:
        """Return the running cluster's measured round trips, keyed by the requested ones; empty if they are known."""


class Labs:
    """Labs on this machine, one at a time."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder

    def expected(self, stage: Stage) -> RunningCluster:
        """Return the lab of a stage, without its processes."""
        return cluster_of(stage.layout)

    def close(self) -> None:
        """End the lab that runs, if it is one of this validation."""
        found = state.read()
        if found is not None and self._folder.started_lab(found.layout):
            lab.down()
            self._folder.note_lab(None)

    @contextmanager
    def running(self, stage: Stage, progress: Progress) -> Iterator[RunningCluster]:
        """Start a stage's lab; it stays for the next stage, which ends it unless it needs the same one.

        Raises
        ------
        InputError
            If another lab runs, or this one does not start.
        """
        if not self._runs(stage):
            found = state.read()
            if found is not None and (not found.alive or self._folder.started_lab(found.layout)):
                lab.down()
            self._folder.note_lab(stage.layout)
            try:
                lab.up(stage.layout, 0.0, progress)
            except BaseException:
                self._folder.note_lab(None)  # `up` has ended what it started, and another lab is not ours
                raise
        if stage.killed is not None:
            lab.kill(stage.killed)
        yield replace(cluster_of(stage.layout, state.needed(), stage.killed), note=_note(stage))

    def _runs(self, stage: Stage) -> bool:
        """Whether the lab that runs is what a stage needs: of this validation, with its layout, and complete."""
        found = state.read()
        if found is None or found.layout != stage.layout or not self._folder.started_lab(found.layout):
            return False
        return lab.status().complete and all(each.up for each in lab.status().nodes)

    def round_trips_ms(self, stage: Stage, wanted: Iterable[float]) -> dict[float, float]:
        """Return the median echo time through the running lab's proxy for each round trip."""
        if not stage.layout.delayed:
            return {}
        found = {}
        for asked in wanted:
            lab.set_rtt(asked / 1000)
            far = next(each for each in stage.layout.nodes if each.dc == 2)
            with connect(far.broadcast, ECHO_PORT) as connection:
                echo_times_s(connection, _ECHO, 5)
                times = sorted(echo_times_s(connection, _ECHO, _ECHOES))
            found[asked] = 1000 * times[len(times) // 2]
        return found


def _note(stage: Stage) -> str:
    """Return the differences from a default lab that no column of a table shows."""
    usual = Layout().heap_bytes
    down = [f"{stage.killed} was down"] if stage.killed else []
    heap = [f"a heap of {stage.layout.heap_bytes >> 20} MiB"] if stage.layout.heap_bytes != usual else []
    return "; ".join(down + heap)


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
    inter_dc_tcp_nodelay
        What the `cassandra.yaml` of the nodes says; there it is false.
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
    inter_dc_tcp_nodelay: bool = False
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
        return RunningCluster(
            version=self.version,
            cass_nodes=tuple(len(dc.nodes) for dc in self.dcs),
            rf=tuple(dc.rf for dc in self.dcs),
            addresses=self.dcs[0].nodes,
            replication=f"{{'class': 'NetworkTopologyStrategy', {each}}}",
            keyspace=self.keyspace,
            node_cores=float(self.node_cores),
            certificate=None if self.certificate is None else Path(self.certificate),
            user=self.user,
            password=None if self.password_file is None else read_file(Path(self.password_file)).strip(),
            internode_tls=self.internode_tls,
            inter_dc_tcp_nodelay=self.inter_dc_tcp_nodelay if len(self.dcs) > 1 else None,
            port=self.port,
        )


def read_hosts(path: Path) -> Hosts:
    """Read a description of a cluster.

    Raises
    ------
    InputError
        If the file cannot be read or is no such description.
    """
    return read(Hosts, path)


class Existing:
    """An existing cluster: the same in every stage, neither started nor stopped."""

    def __init__(self, hosts: Hosts) -> None:
        self._cluster = hosts.cluster()

    def expected(self, stage: Stage) -> RunningCluster:
        """Return the cluster."""
        del stage
        return self._cluster

    def running(self, stage: Stage, progress: Progress) -> AbstractContextManager[RunningCluster]:
        """Return the cluster."""
        del stage, progress
        return nullcontext(self._cluster)

    def close(self) -> None:
        """End nothing."""

    def round_trips_ms(self, stage: Stage, wanted: Iterable[float]) -> dict[float, float]:
        """Return nothing: the file states the round trip."""
        del stage, wanted
        return {}
