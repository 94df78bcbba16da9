"""What the busiest node of a layout needs besides CPU: disk, memory, reads from disk, network, time to rebuild it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from capplan.answers.results import Band
from capplan.answers.verdict import DATA, JudgedSituation, answer
from capplan.layout.components import NodeLimits
from capplan.models.cassandra.storage import NodeLoad
from capplan.models.language.scenario import Scenario
from capplan.models.language.units import FloatArray, Number
from capplan.planner.demand.demand import COMPRESSION, DRAWS, band_of
from capplan.systems.registry import system

_COMPRESSION = 5  # number of an uncertain input: that of compression in a demand
_IN_WORDS: Mapping[str, tuple[str, str]] = {
    "disk": ("disk space", "disk of {:,.0f} GiB"),
    "iops": ("disk IOPS", "disk of {:,.0f} reads per second"),
    "network": ("network", "network of {:g} Gbit/s"),
    "memory": ("memory", "memory of {:g} GiB"),
}


@dataclass(frozen=True, kw_only=True)
class NodeNeeds:
    """What the busiest node of a layout needs besides CPU, with the spread of how well data compress.

    Attributes
    ----------
    data_gib
        Data on its disk, GiB.
    disk_gib
        Disk for them, with what compaction and formatting take, GiB.
    cached_share
        Share of the data in the page cache; null where no memory is given: as in the load tests.
    disk_reads_per_s
        Reads from disk per second of rows that are not there.
    memory_gib
        Memory of Cassandra itself, GiB: heap, Bloom filters, compression offsets.
    network_gbit
        Rows that it sends or receives, Gbit/s.
    rebuild_s
        Time in which one node streams the data to a new one, seconds.
    """

    data_gib: Band
    disk_gib: Band
    cached_share: Band | None
    disk_reads_per_s: Band
    memory_gib: Band
    network_gbit: float
    rebuild_s: Band


@dataclass(frozen=True, eq=False)
class Limited:
    """A resource of a node whose size is given.

    Attributes
    ----------
    conditions : str
        Its word, of `RESOURCES`.
    name, limit : str
        Its name and its size, in words.
    risk : float
        Probability that the busiest node needs more.
    times : array (draws,)
        How many times the rate it is enough for.
    """

    conditions: str
    name: str
    limit: str
    risk: float
    times: FloatArray


def node_load(scenario: Scenario, rate_per_s: float, seed: int) -> NodeLoad | None:
    """Return what the busiest node stores and moves, over draws of compression; None if nobody says anything of it."""
    drawn = COMPRESSION.draws(seed, _COMPRESSION, 1.0)
    of: Any = system(scenario.system).component(NodeLimits).of
    found: NodeLoad | None = of(scenario, rate_per_s, drawn)
    return found


def node_needs(load: NodeLoad) -> NodeNeeds:
    """Return the needs of a node with their bands."""
    needs = load.needs()
    return NodeNeeds(
        data_gib=_band(load.data_gib),
        disk_gib=_band(needs["disk"]),
        cached_share=_band(load.cached(load.data_gib)) if load.cache_is_given else None,
        disk_reads_per_s=_band(needs["iops"]),
        memory_gib=_band(needs["memory"]),
        network_gbit=load.network_gbit,
        rebuild_s=_band(load.rebuilt_s),
    )


def _band(draws: Number) -> Band:
    return band_of(np.broadcast_to(draws, DRAWS))


def limited(load: NodeLoad | None) -> list[Limited]:
    """Return the resources of a node whose size is given."""
    if load is None:
        return []
    needs = load.needs()
    return [
        Limited(
            conditions=DATA if name == "disk" else name,
            name=_IN_WORDS[name][0],
            limit=_IN_WORDS[name][1].format(limit),
            risk=float(np.mean(needs[name] > np.asarray(limit))),
            times=np.broadcast_to(load.held(name), DRAWS),
        )
        for name, limit in load.limits.items()
    ]


def risk_of(load: NodeLoad | None) -> float:
    """Return the highest probability that a node needs more of something than it has."""
    if load is None:
        return 0.0
    needs = load.needs()
    return max((float(np.mean(needs[name] > np.asarray(limit))) for name, limit in load.limits.items()), default=0.0)


def judged_limits(load: NodeLoad | None, confidence: float) -> list[JudgedSituation]:
    """Return the verdict on each resource of a node whose size is given."""
    return [
        JudgedSituation(
            situation=each.conditions, answer=answer(each.risk, confidence), risk=each.risk, limit=f"a {each.limit}"
        )
        for each in limited(load)
    ]
