"""Data of a demand must fit on the disks of a sized layout."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from capplan.answers.verdict import DATA
from capplan.errors import InputError
from capplan.models.language.scenario import changed
from capplan.planner.demand.demand import Between, Data, Demand, read_demand
from capplan.planner.demand.forecast import disk_gib_per_node, volume, with_demand
from capplan.planner.node_needs import node_load
from capplan.planner.size.search import Family, SizingTarget, disks_of
from capplan.planner.size.size import SizingQuestion, size
from capplan.planner.size.sizing import Sizing
from capplan.simulator.workers import in_process
from capplan.systems.registry import scenario, system

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "demand.toml"


@pytest.fixture(scope="module")
def demand() -> Demand:
    return read_demand(EXAMPLE)


@cache
def sized(demand: Demand | None) -> Sizing:
    """Return the smallest layout on one data centre."""
    question = SizingQuestion(
        families={"dcs": (1,)}, sized={"cass_nodes": (3, 60), "front_nodes": (1, 1)}, engine="analytic", demand=demand
    )
    with in_process() as workers:
        return size(changed(scenario("openprovider"), tps=2000.0), question, workers)


def test_the_need_is_that_of_the_volume(demand: Demand) -> None:
    disks, layout = (
        disks_of(demand, 1, scenario("openprovider")),
        changed(scenario("openprovider"), dcs=2, cass_nodes=(6, 4), rf=3),
    )
    assert disks is not None
    assert demand.data is not None
    need = disks.need_gib(layout, 1)
    assert need is not None
    band = disk_gib_per_node(volume(demand, demand.data), (6, 4), (3, 3), demand.months)
    assert float(np.median(need)) == pytest.approx(band.value)
    assert disks.need_gib(layout, 5) == pytest.approx(need / 5)


@pytest.mark.slow
def test_a_disk_that_binds_decides_the_number_of_nodes(demand: Demand) -> None:
    plain, bound = sized(None), sized(demand)
    assert plain.chosen is not None
    assert bound.chosen is not None
    assert bound.chosen.machines["node"] > plain.chosen.machines["node"]
    assert bound.chosen.binding.conditions == DATA
    assert bound.situations[-1] == DATA
    assert bound.chosen.binding.risk <= 0.1
    (miss,) = bound.near_misses
    assert miss.binding.conditions == DATA
    assert miss.binding.risk > 0.1
    assert bound.chosen.disk_gib_per_node is not None
    assert bound.chosen.disk_gib_per_node <= 200  # of the example
    assert bound.chosen.months_of_data is not None
    assert bound.chosen.months_of_data.low >= demand.months * 0.9


def test_without_disks_any_data_fit_and_are_told(demand: Demand) -> None:
    assert demand.data is not None
    endless = sized(replace(demand, data=replace(demand.data, disk_gib=None)))
    plain = sized(None)
    assert endless.chosen is not None
    assert plain.chosen is not None
    assert endless.chosen.machines == plain.chosen.machines
    assert endless.chosen.disk_gib_per_node is not None
    assert endless.chosen.months_of_data is None
    assert plain.chosen.disk_gib_per_node is None


def test_the_disk_of_a_shape_counts_instead_of_that_of_the_demand(demand: Demand) -> None:
    base, fitted = scenario("openprovider"), system("openprovider").fitted()
    target = SizingTarget(base, fitted, (), 2000.0, 0.9, disks=disks_of(demand, 1, base))
    own, large = (Family({}, {}, disk_gib=each).disks_of(target) for each in (None, 5000.0))
    assert own is not None
    assert large is not None
    assert (own.disk_gib, large.disk_gib) == (200.0, 5000.0)


def test_growth_of_a_demand_says_for_how_long_the_rate_fits(demand: Demand) -> None:
    found = sized(demand)
    assert found.chosen is not None
    assert found.months_of_rate is not None
    today = 2000 / np.sqrt(1.15 * 1.3) ** 3
    months = 12 * np.log(found.chosen.held_tps / today) / np.log(np.sqrt(1.15 * 1.3))
    assert found.months_of_rate.value == pytest.approx(months, rel=0.02)
    assert found.months_of_rate.low < found.months_of_rate.value < found.months_of_rate.high


def test_reads_and_writes_have_one_model_of_their_data() -> None:
    """Of 100 GiB on a node, 0.8 x (1 - 0.25) of the disk may be taken."""
    exact = Between(0.5, 0.5)
    data = Data(
        row_bytes=Between(500.0, 500.0),
        retention_s=86_400.0,
        compression=exact,
        headroom=Between(0.25, 0.25),
        usable=Between(0.8, 0.8),
        disk_gib=300.0,
    )
    stated = Demand(writes=10_000.0, data=data)
    layout = with_demand(scenario("cassandra"), stated)
    disks, node = disks_of(stated, 1, layout), node_load(layout, 10_000.0, 1)
    assert disks is not None
    assert disks.volume is None
    assert node is not None
    assert node.limits == {"disk": 300.0}
    stored = 10_000 * 500 * 86_400 * 0.5 / 2**30
    assert float(np.median(node.needs()["disk"])) == pytest.approx(stored / 0.8 / 0.75)
    assert disk_gib_per_node(volume(stated, data), (3,), (3,)).value == pytest.approx(stored / 0.8 / 0.75)


def test_a_range_beside_reads_and_writes_is_refused() -> None:
    with pytest.raises(InputError):
        Demand(writes=5.0, data=Data(row_bytes=Between(1.0, 1.0), retention_s=5.0, compression=Between(0.2, 0.4)))
