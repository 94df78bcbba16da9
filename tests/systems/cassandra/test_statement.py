"""A planner's statement: reads and writes per second, bytes of a row, how long rows are kept, the busiest node."""

from typing import Any

import numpy as np
import pytest

from capplan.errors import InputError
from capplan.models.language.parameter import Values, defaults
from capplan.models.language.scenario import with_units
from capplan.models.solver.analytic import Analysis
from capplan.systems.cassandra import SYSTEM
from capplan.systems.cassandra.network import network
from capplan.systems.cassandra.priors import PARAMETERS
from capplan.systems.cassandra.scenario import CassandraScenario, read_busiest

VALUES: Values = defaults(PARAMETERS)


def stated(**given: Any) -> CassandraScenario:
    """Return the scenario of a file with some keys."""
    return CassandraScenario(**with_units(CassandraScenario, given))


def test_reads_and_writes_are_a_rate_and_a_mix() -> None:
    layout = stated(reads="10k/s", writes=40_000, row="500B", keep="2d")
    assert (layout.tps, layout.read_fraction, layout.row_bytes, layout.keep) == (50_000, 0.2, 500, 172_800)
    assert stated(reads="3k").read_fraction == 1


@pytest.mark.parametrize(
    "given",
    [
        {"reads": "10k", "tps": 5},
        {"writes": "10k", "clients": 5},
        {"reads": "10k", "read_fraction": 0.5},
        {"row": "1kB", "row_bytes": 10},
        {"reads": 0, "writes": 0},
        {"reads": "-1"},
        {"reads": "many"},
        {"writes": True},
        {"keep": 0},
        {"row": "0B"},
        {"busiest": 0.9},
        {"busiest": "0.9"},
        {"compaction": "DTCS"},
        {"compression": 0},
        {"rf": 5, "cass_nodes": 3},
    ],
)
def test_what_contradicts_itself_or_is_nothing_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        stated(**given)


def test_the_busiest_node_is_a_ratio_or_follows_from_all_nodes() -> None:
    assert read_busiest("1.3") == 1.3
    assert read_busiest("60%/40%/50%") == pytest.approx(1.2)


def test_rows_kept_are_data_and_memory_is_the_cache() -> None:
    """10,000 writes a second of 500 bytes in two days are 804.66 GiB; three copies on 6 nodes, half as large."""
    layout = stated(writes="10k", reads="10k", row="500B", keep="2d", cass_nodes=6, compression="50%", memory_gib=64)
    node = layout.node_load(20_000.0)
    assert node is not None
    assert float(node.data_gib) == pytest.approx(10_000 * 500 * 172_800 / 2**30 * 3 / 6 * 0.5)
    assert float(node.cached(node.data_gib)) == pytest.approx(
        (64 - float(node.memory_gib(node.data_gib))) / 201.165, rel=1e-4
    )
    assert layout.cold_share() == pytest.approx(1 - float(node.cached(node.data_gib)))


def test_writes_go_to_all_replicas_and_reads_to_clients() -> None:
    """Of 3 nodes with RF 3, each write is sent to two more nodes: 1,000 writes of 1 kB are 3 Mbyte/s received."""
    node = stated(writes=1000, row="1kB", cass_nodes=3, network_gbit=1).node_load(1000.0)
    assert node is not None
    assert node.network_gbit == pytest.approx(3e6 * 8e-9 / 3)


def test_capacity_counts_the_busiest_node() -> None:
    plain, skewed = (
        float(np.median(Analysis(network(CassandraScenario(node_cores=16, busiest=busiest), VALUES, 1.0)).drift_per_s))
        for busiest in (None, 1.3)
    )
    assert plain / skewed == pytest.approx(1.3, rel=1e-9)


def test_a_busiest_node_as_busy_as_the_mean_changes_nothing() -> None:
    one, none = (network(CassandraScenario(busiest=busiest), VALUES, 1.0) for busiest in (1.0, None))
    assert one == none


def test_what_has_no_effect_is_said() -> None:
    assert stated(keep="2d").without_effect()
    assert not stated(keep="2d", writes=5).without_effect()
    assert SYSTEM.name == "cassandra"


def test_disk_reads_without_a_page_cache_are_refused() -> None:
    with pytest.raises(InputError):
        stated(disk_iops=100)
    for known in ({"cache_gib": 5}, {"memory_gib": 64}, {"cache_state": "cold"}):
        assert stated(disk_iops=100, **known).disk_iops == 100


def test_disk_reads_are_the_share_that_costs_cpu() -> None:
    for state in ("warm", "mixed", "cold"):
        layout = stated(reads="3k", row="1kB", data_gib=100, cache_gib=50, cache_state=state, disk_iops=1e6)
        node = layout.node_load(3000.0)
        assert node is not None
        assert node.needs()["iops"] == pytest.approx(2 * 3000 * 2 / 3 * layout.cold_share())


@pytest.mark.parametrize(
    ("fields", "idle"),
    [
        ({"disk_gib": 1, "tps": 5}, 1),
        ({"memory_gib": 64, "disk_iops": 5, "tps": 5}, 2),
        ({"network_gbit": 1}, 1),
        ({"compaction": "LCS", "compression": "50%", "tps": 5}, 2),
        ({"disk_gib": 1, "data_gib": 1, "memory_gib": 64}, 1),
        ({"disk_gib": 1, "data_gib": 1, "memory_gib": 64, "tps": 5}, 0),
        ({"disk_gib": 1, "keep": "1d", "network_gbit": 1, "writes": 5}, 0),
    ],
)
def test_a_limit_without_data_or_rate_is_named(fields: dict[str, Any], idle: int) -> None:
    layout = stated(**fields)
    assert len(layout.without_effect()) == idle
    node = layout.node_load(5.0)
    assert node is None or not idle or layout.tps is None or not node.limits


def test_a_page_cache_of_data_that_follow_from_no_rate_is_refused() -> None:
    layout = stated(keep="2d", memory_gib=64)
    with pytest.raises(InputError):
        layout.check_complete()
    for known in ({"data_gib": 5}, {"writes": 5}):
        stated(keep="2d", memory_gib=64, **known).check_complete()


def test_a_page_cache_larger_than_the_memory_beside_the_heap_is_refused() -> None:
    with pytest.raises(InputError):
        stated(memory_gib=64, cache_gib=60, data_gib=5)
    assert stated(memory_gib=64, cache_gib=56, data_gib=5).cache_gib == 56
