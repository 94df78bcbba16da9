"""What the busiest node of a layout needs besides CPU: disk, memory, reads from disk, network, time to rebuild it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from capplan.answers.results import Band
from capplan.answers.verdict import DATA, NORMAL, JudgedSituation, answer
from capplan.layout.components import NodeLimits
from capplan.models.cassandra.storage import NodeLoad
from capplan.models.language.scenario import Scenario
from capplan.models.language.units import FloatArray, Number
from capplan.planner.demand.demand import COMPRESSION, DRAWS, band_of
from capplan.systems.registry import system

_COMPRESSION = 5  # number of an uncertain input: that of compression in a demand
_WHOLE = 100  # from here on, sizes are shown without decimals
_IN_WORDS: Mapping[str, tuple[str, str]] = {
    "disk": ("disk space", "disk of {} GiB"),
    "iops": ("disk IOPS", "disk of {} reads per second"),
    "network": ("network", "network of {} Gbit/s"),
    "memory": ("memory", "memory of {} GiB"),
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
        Share of reads that the page cache has; null where nobody says its size: as in the load tests.
    disk_reads_per_s
        Reads from disk per second of rows that are not there; null like that share.
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
    disk_reads_per_s: Band | None
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


def node_load(scenario: Scenario, rate_per_s: float, seed: int, down: Sequence[int] = ()) -> NodeLoad | None:
    """Return what the busiest node stores and moves, over draws of compression; None if nobody says anything of it.

    `down` are the nodes of each data centre that are lost.
    """
    drawn = COMPRESSION.draws(seed, _COMPRESSION, 1.0)
    of: Any = system(scenario.system).component(NodeLimits).of
    found: NodeLoad | None = of(scenario, rate_per_s, drawn, down)
    return found


def node_needs(load: NodeLoad) -> NodeNeeds:
    """Return the needs of a node with their bands."""
    needs = load.needs()
    return NodeNeeds(
        data_gib=_band(load.data_gib),
        disk_gib=_band(needs["disk"]),
        cached_share=_band(load.cached(load.data_gib)) if load.reads_are_known else None,
        disk_reads_per_s=_band(needs["iops"]) if load.reads_are_known else None,
        memory_gib=_band(needs["memory"]),
        network_gbit=load.network_gbit,
        rebuild_s=_band(load.rebuilt_s),
    )


def _band(draws: Number) -> Band:
    return band_of(np.broadcast_to(draws, DRAWS))


def limited(loads: Mapping[str, NodeLoad]) -> list[Limited]:
    """Return the resources of a node whose size is given, each under the conditions that need most of it.

    Parameters
    ----------
    loads : mapping
        What the busiest node stores and moves, by the word of the conditions.
    """
    names = next(iter(loads.values())).limits if loads else ()
    return [_limited(name, loads) for name in names]


def _limited(name: str, loads: Mapping[str, NodeLoad]) -> Limited:
    word, load = max(loads.items(), key=lambda item: float(np.max(item[1].needs()[name])))
    what, size = _IN_WORDS[name]
    return Limited(
        conditions=DATA if name == "disk" else name,
        name=what,
        limit=size.format(_given(load.limits[name])) + ("" if word == NORMAL else f" after loss of {word}"),
        risk=_risk(load, name),
        times=np.broadcast_to(load.held(name), DRAWS),
    )


def _given(size: float) -> str:
    return f"{size:,.0f}" if size >= _WHOLE else f"{size:g}"


def _risk(load: NodeLoad, name: str) -> float:
    return float(np.mean(load.needs()[name] > np.asarray(load.limits[name])))


def risk_of(loads: Mapping[str, NodeLoad]) -> float:
    """Return the highest probability that a node needs more of something than it has."""
    return max((_risk(load, name) for load in loads.values() for name in load.limits), default=0.0)


def judged_limits(loads: Mapping[str, NodeLoad], confidence: float) -> list[JudgedSituation]:
    """Return the verdict on each resource of a node whose size is given."""
    return [
        JudgedSituation(
            situation=each.conditions, answer=answer(each.risk, confidence), risk=each.risk, limit=f"a {each.limit}"
        )
        for each in limited(loads)
    ]
