"""What a node stores, against sizing examples that vendors and authors published, worked by hand."""

from typing import Any

import numpy as np
import pytest

from capplan.errors import InputError
from capplan.models.cassandra.storage import GIB, NodeLoad, fullest, read_compaction
from capplan.systems.cassandra.scenario import CassandraScenario

DAY_S = 86_400.0


def load(**fields: Any) -> NodeLoad:
    usual: dict[str, Any] = {
        "data_gib": 100.0,
        "grows": True,
        "room": 0.5,
        "raw_bytes": 2.0,
        "row_bytes": 1000.0,
        "reads_per_s": 10.0,
    }
    usual |= {"network_gbit": 0.1, "heap_gib": 8.0, "cache_gib": None, "warm": 1.0, "limits": {}}
    return NodeLoad(**{**usual, **fields})


def test_disk_of_a_published_example_with_10_000_writes_per_second() -> None:
    """569 TB: "Understand the storage and compute requirements to handle a Cassandra workload", E&B Software.

    100 columns of 30 bytes and 23 of overhead, 23 of the row, 32 + 10 of its key, kept 30 days, RF 3, and half as much
    again for compaction.
    """
    row_bytes = 100 * (30 + 23) + 23 + 32 + 10
    layout = CassandraScenario(
        cass_nodes=100, rf=3, read_fraction=0.0, row_bytes=row_bytes, keep=30 * DAY_S, compression=1.0
    )
    node = layout.node_load(10_000.0)
    assert node is not None
    assert 100 * float(node.data_gib) * 1.5 / 1024 == pytest.approx(569, abs=0.5)


def test_memory_of_a_published_example_of_off_heap_components() -> None:
    """1 to 2 GB a billion partitions and 1 to 3 GB a terabyte: DataStax, Cassandra 2.1, off-heap components."""
    terabyte_gib = 1e12 / GIB
    node = load(data_gib=terabyte_gib, raw_bytes=2.0, row_bytes=2000.0)  # a billion rows
    beside_the_heap_bytes = (float(node.memory_gib(terabyte_gib)) - 8.0) * GIB
    assert beside_the_heap_bytes == pytest.approx(1.5e9 + 2e9)


def test_twcs_keeps_a_window_more_and_needs_one_free() -> None:
    hourly = read_compaction("twcs:1h")
    assert hourly.kept_s(48 * 3600.0) == 49 * 3600
    assert 49 / (1 - hourly.free(48 * 3600.0)) == pytest.approx(50)  # hours of rows on the disk, with the free window
    assert read_compaction("TWCS").kept_s(20.0) == 21.0


@pytest.mark.parametrize(
    ("text", "free"),
    [("STCS", 0.5), ("LCS", 0.1), ("UCS:L10", 0.1), ("UCS:L4", 0.25), ("UCS:N", 0.5), ("UCS:T4", 1 / 3)],
)
def test_free_disk_by_strategy(text: str, free: float) -> None:
    assert read_compaction(text).free(DAY_S) == pytest.approx(free)


@pytest.mark.parametrize("text", ["", "DTCS", "STCS:1h", "TWCS:0s", "TWCS:1", "UCS:L1", "UCS:4h"])
def test_another_strategy_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        read_compaction(text)


def test_the_fullest_data_centre_decides() -> None:
    assert fullest((6, 4, 0), (3, 3, 0)) == 0.75


def test_a_cache_half_as_large_as_the_data_leaves_half_of_the_reads_to_the_disk() -> None:
    node = load(cache_gib=50.0, reads_per_s=100.0)
    assert node.needs()["iops"] == pytest.approx(2 * 100 * 0.5)


def test_the_held_rate_is_where_the_need_is_the_limit() -> None:
    limits = {"disk": 500.0, "iops": 1000.0, "network": 0.3, "memory": 20.0}
    node = load(data_gib=np.array([80.0, 100.0]), limits=limits)
    for name, limit in limits.items():
        assert node.needs(node.held(name))[name] == pytest.approx(limit), name
    assert node.held("disk") == pytest.approx([3.125, 2.5])


def test_more_load_never_needs_less() -> None:
    node = load(limits={"memory": 32.0})
    for name in node.needs():
        needs = [float(node.needs(times)[name]) for times in (0.1, 0.5, 1.0, 2.0, 10.0)]
        assert needs == sorted(needs), name


def test_what_the_rate_does_not_change_holds_any_rate_or_none() -> None:
    for disk_gib, held in ((300.0, np.inf), (100.0, 0.0)):
        assert load(grows=False, limits={"disk": disk_gib}).held("disk") == held
