"""What a node stores and moves, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from capplan.answers.number_words import significant
from capplan.answers.results import Band
from capplan.models.cassandra.storage import COMPRESSION
from capplan.models.language.scenario import Scenario
from capplan.planner.node_needs import NodeNeeds, node_load, node_needs
from capplan.reports.numbers import ends

_HOUR_S = 3600.0
_LITTLE = 0.001  # of the data, or of the disk reads that are worth a word


def of_node(scenario: Scenario, seed: int) -> str:
    """Return what a layout's busiest node needs at its rate; empty if nothing is said of data kept or of machines."""
    rate_per_s = scenario.offered_per_s()
    load = None if rate_per_s is None else node_load(scenario, float(np.max(rate_per_s)), seed)
    if load is None or not (load.grows or load.limits):
        return ""
    return node_in_words(node_needs(load))


def node_in_words(needs: NodeNeeds) -> str:
    """Return what the busiest node needs besides CPU: data, disk, page cache, network, and the time to rebuild it."""
    words = [f"network {significant(needs.network_gbit)} Gbit/s"]
    if needs.data_gib.high > _LITTLE:
        rebuilt = needs.rebuild_s
        hours = Band(rebuilt.value / _HOUR_S, rebuilt.low / _HOUR_S, rebuilt.high / _HOUR_S)
        words = [
            f"{_banded(needs.data_gib)} GiB of data on {_banded(needs.disk_gib)} GiB of disk",
            _cached(needs),
            *words,
            f"memory {significant(needs.memory_gib.value)} GiB beside the page cache",
            f"rebuilt from one node in {_banded(hours)} h",
        ]
    return "; ".join(words)


def assumed_of_data(scenario: Mapping[str, Any]) -> str:
    """Return what data that follow from the time rows are kept take for granted; empty where none do."""
    if scenario.get("keep") is None or scenario.get("data_gib") is not None:
        return ""
    low, high = (f"{100 * end:g}" for end in COMPRESSION)
    defaults = {"compaction": "STCS (--compaction)", "compression": f"compression to {low} to {high} % (--compression)"}
    words = [text for name, text in defaults.items() if scenario.get(name) is None]
    return "; ".join([*words, "the rates are those of the whole day", "no gc_grace_seconds beyond --keep"])


def _cached(needs: NodeNeeds) -> str:
    if needs.cached_share is None or needs.disk_reads_per_s is None:
        return "page cache as tested (--memory-gib)"
    share = "all" if needs.cached_share.low >= 1 else f"{100 * needs.cached_share.value:.0f} %"
    return f"{share} of it in the page cache, {_banded(needs.disk_reads_per_s)} disk reads/s"


def _banded(figure: Band) -> str:
    return f"{significant(figure.value)} {ends(figure)}".strip()
