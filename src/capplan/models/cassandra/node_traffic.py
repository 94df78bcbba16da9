"""Rows that the busiest node of a cluster reads and moves, by where clients, nodes and replicas are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from capplan.models.cassandra.consistency import need


@dataclass(frozen=True)
class NodeTraffic:
    """Reads and writes on the nodes of each data centre that are up.

    Attributes
    ----------
    reads_per_s, writes_per_s : float
        Rates over all data centres.
    shares : mapping of float
        Shares of the clients, by data centre that has some.
    nodes, replicas : sequence of int (dcs,)
        Nodes and replicas of each row in each data centre.
    down : sequence of int (dcs,)
        Nodes that are down.
    round_trips_s : sequence (dcs, dcs)
        Round trips between data centres.
    token_aware : bool
        Whether a coordinator has the row.
    """

    reads_per_s: float
    writes_per_s: float
    shares: Mapping[int, float]
    nodes: Sequence[int]
    replicas: Sequence[int]
    down: Sequence[int]
    round_trips_s: Sequence[Sequence[float]]
    token_aware: bool

    def rows_read_per_s(self, level: str) -> float:
        """Return the rows per second that a node reads where nodes read most."""
        asked = {dc: self._asked(level, dc) for dc in self.shares}
        return max(
            self.reads_per_s * sum(share * asked[dc][there] for dc, share in self.shares.items()) / up
            for there, up in self._up.items()
        )

    def rows_moved_per_s(self) -> float:
        """Return the rows per second that a node sends or receives, the larger of both, where nodes move most."""
        return max(max(self._sent_per_s(dc), self._received_per_s(dc)) / up for dc, up in self._up.items())

    @property
    def _up(self) -> dict[int, int]:
        """Nodes that are up, by data centre that has some."""
        return {
            dc: nodes - down for dc, (nodes, down) in enumerate(zip(self.nodes, self.down, strict=True)) if nodes > down
        }

    def _live(self, dc: int) -> float:
        """Return the replicas of a row that are up in a data centre, on average."""
        return self.replicas[dc] * self._up[dc] / self.nodes[dc] if dc in self._up else 0.0

    def _asked(self, level: str, local: int) -> list[float]:
        """Return the replicas of each data centre that a read asks, the nearest first where any may answer (dcs,)."""
        wanted, places = need(level, self.replicas, local), range(len(self.nodes))
        if not wanted.total:
            return [float(wanted.by_dc.get(dc, 0)) for dc in places]
        missing, asked = float(wanted.total), [0.0 for _ in places]
        for dc in sorted(places, key=lambda dc: (self.round_trips_s[local][dc], (dc - local) % len(places))):
            asked[dc] = min(missing, self._live(dc))
            missing -= asked[dc]
        return asked

    def _elsewhere(self, dc: int) -> float:
        """Return the share of requests whose coordinator does not have the row."""
        return 0.0 if self.token_aware else 1 - self.replicas[dc] / self.nodes[dc]

    def _received_per_s(self, dc: int) -> float:
        """Return what clients write, what replicas store, and what coordinators read from replicas."""
        share, elsewhere = self.shares.get(dc, 0.0), self._elsewhere(dc)
        to_replicas = self._live(dc) - share * (1 - elsewhere)
        return self.writes_per_s * (share + to_replicas) + self.reads_per_s * share * elsewhere

    def _sent_per_s(self, dc: int) -> float:
        """Return what clients read, and what coordinators send to replicas: once to a data centre, and on there."""
        share, elsewhere, live = self.shares.get(dc, 0.0), self._elsewhere(dc), self._live(dc)
        others = sum(self._live(other) > 0 for other in self._up if other != dc)
        to_replicas = share * (live - (1 - elsewhere) + others) + (1 - share) * max(live - 1, 0.0)
        return self.writes_per_s * to_replicas + self.reads_per_s * share * (1 + elsewhere)
