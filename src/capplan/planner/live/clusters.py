"""Where a live validation measures: labs, which it starts and ends, or a cluster that exists."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import Protocol

from capplan.lab import cluster as lab
from capplan.lab import state
from capplan.lab.collectors.cassandra import RunningCluster, cluster_of
from capplan.lab.collectors.collector import Progress
from capplan.lab.collectors.link import connect, echo_times_s
from capplan.lab.layout import ECHO_PORT, Layout
from capplan.planner.live.folder import Folder
from capplan.planner.live.hosts import Hosts
from capplan.planner.live.protocol import Stage

_ECHOES = 60
_ECHO = b"x" * 100


class Clusters(Protocol):
    """Where a validation measures."""

    def expected(self, stage: Stage) -> RunningCluster:
        """Return the cluster of a stage as the model sees it, before it runs."""

    def running(self, stage: Stage, progress: Progress) -> AbstractContextManager[RunningCluster]:
        """Return the cluster of a stage while it runs."""

    def round_trips_ms(self, stage: Stage, wanted: Iterable[float]) -> dict[float, float]:
        """Return measured round trips by those that are wanted, of the cluster that runs; empty if they are known."""


class Labs:
    """Labs on this machine, one at a time."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder

    def expected(self, stage: Stage) -> RunningCluster:
        """Return the lab of a stage, without its processes."""
        return cluster_of(stage.layout)

    @contextmanager
    def running(self, stage: Stage, progress: Progress) -> Iterator[RunningCluster]:
        """Start the lab of a stage, and end it however the block ends; one that an earlier run has left ends first.

        Raises
        ------
        InputError
            If another lab runs, or this one does not start.
        """
        found = state.read()
        if found is not None and (not found.alive or self._folder.started_lab(found.layout)):
            lab.down()
        self._folder.note_lab(stage.layout)
        lab.up(stage.layout, 0.0, progress)
        try:
            if stage.killed is not None:
                lab.kill(stage.killed)
            yield replace(cluster_of(stage.layout, state.needed(), stage.killed), note=_note(stage))
        finally:
            lab.down()
            self._folder.note_lab(None)

    def round_trips_ms(self, stage: Stage, wanted: Iterable[float]) -> dict[float, float]:
        """Return the median of echoes through the proxy of the lab that runs, for each round trip."""
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
    """Return what differs from a usual lab and no column of a table has."""
    usual = Layout().heap_bytes
    down = [f"{stage.killed} was down"] if stage.killed else []
    heap = [f"a heap of {stage.layout.heap_bytes >> 20} MiB"] if stage.layout.heap_bytes != usual else []
    return "; ".join(down + heap)


class Existing:
    """A cluster that exists: it is the same in every stage, and neither started nor ended."""

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

    def round_trips_ms(self, stage: Stage, wanted: Iterable[float]) -> dict[float, float]:
        """Return nothing: the round trip is the one that the file says."""
        del stage, wanted
        return {}
