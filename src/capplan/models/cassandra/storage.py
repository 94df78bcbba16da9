"""What a Cassandra node stores and moves: data on disk by compaction strategy, memory, reads from disk, and network."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from capplan.errors import InputError
from capplan.models.language.units import FloatArray, Number, parse_duration_s

GIB = 2.0**30
USABLE = 0.9
"""Share of a disk that is left after formatting.

References
----------
DataStax documentation of Cassandra 1.2, usable disk capacity: formatting takes 10 %.
"""
STCS_HEADROOM, LCS_HEADROOM = 0.5, 0.1
"""Share of the disk that compaction needs free.

References
----------
DataStax support FAQ on STCS: half of the disk in the worst case. J. Ellis, "Leveled compaction in Apache Cassandra"
(2011): at most 10 % of obsolete rows with a fanout of 10.
"""
COMPRESSION = (0.25, 0.75)
"""Size on disk over uncompressed size, 5th and 95th percentile.

References
----------
DataStax documentation: 2 to 4 times smaller (Cassandra 2.2), 25 to 33 % smaller (DSE 5.1).
"""
WINDOWS = 20
"""Windows in which TWCS keeps data by default: the fewest of 20 to 30 (Apache Cassandra documentation, TWCS)."""
UCS_HEADROOM = 1 / 3
"""Share of the disk that tiered levels of UCS need free: two compactions at once, each of a quarter of the data.

References
----------
Apache Cassandra documentation, UCS: `base_shard_count` is 4, and larger nodes have more shards; cassandra.yaml:
two concurrent compactors with one data directory.
"""
_STRATEGY = re.compile(r"(STCS|LCS|TWCS|UCS)(?::(\S+))?", re.IGNORECASE)
_SCALING = re.compile(r"([TL])(\d{1,3})|N", re.IGNORECASE)


class Compaction(NamedTuple):
    """A compaction strategy.

    Attributes
    ----------
    text : str
        As it is given: `STCS`, `TWCS:1h`, `UCS:L10`.
    headroom : float
        Share of the disk that it needs free; TWCS needs a window instead.
    window_s : float or None
        Window of TWCS; None where it follows from the time that rows are kept.
    """

    text: str
    headroom: float
    window_s: float | None = None

    @property
    def windowed(self) -> bool:
        """Whether rows are dropped by whole windows."""
        return self.text.startswith("TWCS")

    def kept_s(self, keep_s: float) -> float:
        """Return how long rows stay on disk: TWCS drops a window when its last row has expired."""
        return keep_s + self._window_s(keep_s)

    def free(self, keep_s: float | None = None) -> float:
        """Return the share of a formatted disk that it needs free; TWCS compacts the rows of one window at a time."""
        if not self.windowed or not keep_s:
            return self.headroom
        window_s = self._window_s(keep_s)
        return window_s / (keep_s + 2 * window_s)

    def _window_s(self, keep_s: float) -> float:
        if not self.windowed:
            return 0.0
        return keep_s / WINDOWS if self.window_s is None else self.window_s


def read_compaction(text: str) -> Compaction:
    """Read a compaction strategy: `STCS`, `LCS`, `TWCS`, or with its window `TWCS:1h`, `UCS`, or scaled, `UCS:L10`.

    Raises
    ------
    InputError
        If it is none of them.
    """
    found = _STRATEGY.fullmatch(text.strip())
    if found is None:
        raise InputError(f"{text!r} is no compaction strategy: give STCS, LCS, TWCS, TWCS:1h, UCS or UCS:L10")
    name, more = found[1].upper(), found[2]
    if name == "TWCS":
        window_s = None if more is None else parse_duration_s(more)
        if window_s is not None and not 0 < window_s < float("inf"):
            raise InputError(f"{text!r} has no window: give one such as TWCS:1h, or TWCS for a twentieth of --keep")
        return Compaction("TWCS" if more is None else f"TWCS:{more}", 1 / (WINDOWS + 2), window_s)
    if more is None:
        return Compaction(name, {"STCS": STCS_HEADROOM, "LCS": LCS_HEADROOM, "UCS": UCS_HEADROOM}[name])
    scaling = _SCALING.fullmatch(more)
    fanout = 2 if scaling is None or scaling[2] is None else int(scaling[2])
    if name != "UCS" or scaling is None or fanout < 2:
        raise InputError(
            f"{text!r} is no compaction strategy: only TWCS has a window and UCS a scaling, such as UCS:L10"
        )
    return Compaction(f"UCS:{more.upper()}", UCS_HEADROOM if more[0] in "Tt" else 1 / fanout)


def fullest(nodes_by_dc: Sequence[int], rf_by_dc: Sequence[int]) -> float:
    """Return the share of one copy of the data that a node of the fullest data centre stores."""
    return max(rf / nodes for nodes, rf in zip(nodes_by_dc, rf_by_dc, strict=True) if nodes)


FILTER_BYTES, OFFSETS_SHARE = 1.5, 0.002
"""Memory beside the heap: Bloom filters, bytes a partition, and compression offsets over the compressed data.

References
----------
DataStax documentation of Cassandra 2.1, off-heap components: 1 to 2 GB per billion partitions, and 1 to 3 GB per
terabyte compressed. Each row is taken for a partition, the worst case.
"""
MOST_HEAP_GIB, HEAP_SHARE = 8.0, 0.25
"""Heap where none is given: a quarter of the memory, 8 GiB at most (cassandra-env.sh of Cassandra 3 and 4)."""
READS_OF_A_MISS = 2
"""Reads from disk of a row that no cache has: of the index and of the data, in the one SSTable that has the row."""
STREAM_BYTES_PER_S = 24 * 2.0**20
"""Bytes per second that a node sends to one that is rebuilt: `stream_throughput_outbound` of cassandra.yaml."""
_HALVINGS, _TIMES = 60, (1e-6, 1e6)


@dataclass(frozen=True, eq=False)
class NodeLoad:
    """What the busiest node of a layout stores and moves, and what its machine has for it.

    Attributes
    ----------
    data_gib : number
        Data on its disk, GiB.
    grows : bool
        Whether the data grow with the rate.
    room : float
        Share of the disk that they may fill.
    raw_bytes : number
        The same data in memory, before compression, over the data on disk.
    row_bytes : float
        Bytes of a row.
    reads_per_s : float
        Rows that it reads per second.
    network_gbit : float
        What it sends or receives, the larger of both, Gbit/s.
    heap_gib : float
        Its heap.
    cache_gib : float or None
        Its page cache, if that is given.
    warm : float
        Share of reads that find the page cache warm.
    limits : mapping
        What its machine has, by the words of `needs`; what is not given is missing.
    """

    data_gib: Number
    grows: bool
    room: float
    raw_bytes: Number
    row_bytes: float
    reads_per_s: float
    network_gbit: float
    heap_gib: float
    cache_gib: float | None
    warm: float
    limits: Mapping[str, float]

    def memory_gib(self, data_gib: Number) -> Number:
        """Return the memory that Cassandra itself takes of so many data: heap, Bloom filters, compression offsets."""
        rows = data_gib * GIB * self.raw_bytes / self.row_bytes
        return self.heap_gib + FILTER_BYTES * rows / GIB + OFFSETS_SHARE * data_gib

    @property
    def reads_are_known(self) -> bool:
        """Whether anybody says which reads go to disk."""
        return self.cache_gib is not None or "memory" in self.limits or self.warm < 1

    def covered(self, data_gib: Number) -> Number:
        """Return the share of the data that the page cache holds; all where nobody says its size."""
        if self.cache_gib is None and "memory" not in self.limits:
            return 1.0
        cache = self.limits["memory"] - self.memory_gib(data_gib) if self.cache_gib is None else self.cache_gib
        return np.clip(cache / data_gib, 0.0, 1.0)

    def cached(self, data_gib: Number) -> Number:
        """Return the share of reads that the page cache has, once it is as warm as it becomes."""
        return self.warm * self.covered(data_gib)

    def needs(self, times: Number = 1.0) -> dict[str, Number]:
        """Return what the node needs at so many times the rate: disk and memory, GiB; disk reads; network, Gbit/s."""
        data = self.data_gib * times if self.grows else self.data_gib
        return {
            "disk": data / self.room,
            "iops": READS_OF_A_MISS * self.reads_per_s * times * (1 - self.cached(data)),
            "network": self.network_gbit * times,
            "memory": self.memory_gib(data),
        }

    def held(self, name: str) -> FloatArray:
        """Return how many times the rate the machine can do in one respect; infinite or 0 where it is no matter."""
        need: Callable[[FloatArray], Number] = lambda times: self.needs(times)[name]  # noqa: E731  # asked twice
        low, high = (np.full(np.shape(self.data_gib), end) for end in _TIMES)
        most, least = (np.asarray(need(each)) <= self.limits[name] for each in (high, low))
        for _ in range(_HALVINGS):
            middle = np.sqrt(low * high)
            fits = np.asarray(need(middle)) <= self.limits[name]
            low, high = np.where(fits, middle, low), np.where(fits, high, middle)
        return np.where(most, np.inf, np.where(least, low, 0.0))

    @property
    def rebuilt_s(self) -> Number:
        """Seconds in which one node sends the data to a new one; several are faster."""
        return self.data_gib * GIB / STREAM_BYTES_PER_S
