"""Instance shapes and cells: what they change in a layout, and what a file of shapes must say."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.planner.sizings import sized

from capplan.errors import InputError
from capplan.models.language.scenario import changed
from capplan.planner.size.machines import (
    Shape,
    combinations,
    fields_of,
    machine_types,
    read_shapes,
    shapes_given,
)
from capplan.planner.size.size import SizingQuestion
from capplan.systems.registry import resolve, scenario, system

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "shapes.toml"


@pytest.mark.parametrize(("cores", "vcpus", "counted"), [(8, 16, 16), (8, None, 16), (8, 8, 12), (16, 16, 25)])
def test_cores_are_counted_as_in_the_load_tests(cores: int, vcpus: int | None, counted: int) -> None:
    assert Shape(cores, 1.0, vcpus).load_test_cores == counted


def test_a_shape_decides_cores_and_their_speed() -> None:
    its = system("openprovider")
    shapes = read_shapes(EXAMPLE, its)
    chosen = {"node": "i4i-8xlarge", "front": "c6i-8xlarge"}
    assert chosen in combinations(shapes)
    assert fields_of(shapes, chosen, its) == {
        "node_cores": 32,
        "node_speed": pytest.approx(3.5 / 2.9),
        "front_cores": 32,
        "front_speed": pytest.approx(3.5 / 2.9),
    }


@pytest.mark.parametrize(("name", "field"), [("openprovider", "node"), ("fedora4", "node")])
def test_cores_and_speed_raise_the_capacity_in_proportion_where_cores_limit_it(name: str, field: str) -> None:
    fields = {"front_nodes": 8, "front_workers": 512} if name == "openprovider" else {}
    plain = changed(scenario(name), **fields)
    usual = getattr(plain, f"{field}_cores")

    def cores_per_s(layout: Any) -> float:
        """Return the rate that saturates the cores."""
        its = system(name)
        analysis = its.solution(layout, its.median_values(its.fitted(), layout)).analysis
        station = next(each for each in analysis.demands if each.split("/")[0] in ("cassandra", "repository"))
        return float(np.median(1 / analysis.load(station)))

    more = changed(plain, **{f"{field}_cores": 2 * usual})
    faster = changed(plain, **{f"{field}_speed": 2.0})
    assert cores_per_s(more) == pytest.approx(2 * cores_per_s(plain), rel=1e-9)
    assert cores_per_s(faster) == pytest.approx(2 * cores_per_s(plain), rel=1e-9)


def test_other_cores_are_an_extrapolation() -> None:
    for fields in ({"node_cores": 48}, {"node_speed": 1.5}, {"front_cores": 16}):
        case = resolve(changed(scenario("openprovider"), **fields))
        assert case.extrapolation.basis == "extrapolated", fields


@pytest.mark.slow
def test_the_cheapest_shape_is_chosen_and_named() -> None:
    its = system("openprovider")
    question = SizingQuestion(
        shapes=read_shapes(EXAMPLE, its),
        families={"dcs": (1,)},
        sized={"cass_nodes": (3, 9), "front_nodes": (1, 1)},
        engine="analytic",
    )
    answer = sized("openprovider", question, tps=4000.0)
    assert answer.chosen is not None
    assert answer.currency == "EUR"
    node = answer.chosen.shapes["node"]
    prices = {name: each.price for name, each in read_shapes(EXAMPLE, its).shapes["node"].items()}
    assert answer.chosen.cost == answer.chosen.machines["node"] * (prices[node] or 0.0) + 8100
    assert all(answer.chosen.cost <= each.cost for each in answer.alternatives)


def test_cells_share_the_rate_and_multiply_the_machines() -> None:
    question = SizingQuestion(cells=(1,), engine="analytic")
    one = sized("fedora4", question, tps=300.0)
    ten = sized("fedora4", SizingQuestion(cells=(10,), engine="analytic"), tps=3000.0)
    assert one.chosen is not None
    assert ten.chosen is not None
    assert ten.chosen.machines == {"node": 10 * one.chosen.machines["node"]}
    assert ten.chosen.cost == 10 * one.chosen.cost
    assert ten.chosen.held_tps == pytest.approx(10 * one.chosen.held_tps)
    assert ten.chosen.binding.risk == one.chosen.binding.risk


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[shapes.nodes.a]\ncores = 4\nprice = 1.0", "did you mean 'node'?"),
        ("[shapes.node.a]\ncores = 4\nprice = 1.0", r"no shape of front \(RADIUS server\)"),
        ("[shapes.node.a]\ncores = 4\nvcpus = 6\nprice = 1.0", "vcpus = 6 of 4 cores"),
        ("[shapes.node.a]\ncores = 4\nprice = -1.0", "at least 0"),
        ("[shapes.node.a]\ncores = 4\ncost = 1.0", "did you mean"),
        (
            "[shapes.node.a]\ncores = 4\nclock_ghz = 3.0\nprice = 1.0\n[shapes.front.b]\ncores = 4\nprice = 1.0",
            "clock_ghz of a has nothing to be compared with",
        ),
    ],
)
def test_a_file_of_shapes_with_an_error_is_refused(tmp_path: Path, text: str, found: str) -> None:
    path = tmp_path / "shapes.toml"
    path.write_text(f'currency = "EUR"\nperiod = "year"\n{text}\n', encoding="utf-8")
    with pytest.raises(InputError, match=found):
        read_shapes(path, system("openprovider"))


def test_machines_whose_cores_are_not_modelled_have_no_shapes(tmp_path: Path) -> None:
    path = tmp_path / "shapes.toml"
    path.write_text('currency = "EUR"\nperiod = "year"\n[shapes.master.a]\ncores = 4\nprice = 1.0\n', encoding="utf-8")
    with pytest.raises(InputError, match="use --prices"):
        read_shapes(path, system("arion"))


def test_a_machine_type_by_name_has_public_facts_and_no_price() -> None:
    assert len(machine_types()) == 10
    its = system("cassandra")
    shapes = shapes_given("i4i.4xlarge, m6i.4xlarge", its)
    assert not shapes.priced
    assert fields_of(shapes, {"node": "i4i.4xlarge"}, its) == {
        "node_cores": 16,
        "memory_gib": 128,
        "disk_gib": pytest.approx(3750e9 / 2**30),
        "disk_iops": 400_000,
        "network_gbit": 9.375,
    }
    assert fields_of(shapes, {"node": "m6i.4xlarge"}, its) == {
        "node_cores": 16,
        "memory_gib": 64,
        "network_gbit": 6.25,
    }


def test_a_price_of_a_machine_type_is_the_users(tmp_path: Path) -> None:
    path = tmp_path / "shapes.toml"
    head = 'currency = "USD"\nperiod = "hour"\n'
    path.write_text(f'{head}[shapes.node."i4i.4xlarge"]\nprice = 1.5\ndisk_gib = 100\n', encoding="utf-8")
    shapes = read_shapes(path, system("cassandra"))
    assert (shapes.shapes["node"]["i4i.4xlarge"].cores, shapes.shapes["node"]["i4i.4xlarge"].disk_gib) == (8, 100)
    prices = shapes.prices({"node": "i4i.4xlarge"})
    assert (prices.currency, prices.period, prices.each) == ("USD", "hour", {"node": 1.5})


@pytest.mark.parametrize(
    ("head", "name", "more", "found"),
    [
        ('currency = "EUR"\n', "i4i.4xlarge", "price = 1.0", "period"),
        ('period = "hour"\n', "i4i.4xlarge", "price = 1.0", "currency"),
        (
            'currency = "EUR"\nperiod = "hour"\n',
            "i4i.5xlarge",
            "price = 1.0",
            "i4i.4xlarge, i4i.2xlarge and m6i.4xlarge",
        ),
        ('currency = "EUR"\nperiod = "hour"\n', "i4i.4xlarge", "price = 1.0\nclock_ghz = 3", "clock"),
        (
            'currency = "EUR"\nperiod = "hour"\n',
            "i4i.4xlarge",
            'price = 1.0\n[shapes.node."m6i.4xlarge"]',
            "m6i.4xlarge .node. has no price",
        ),
    ],
)
def test_what_a_file_of_machine_types_lacks_is_said(
    tmp_path: Path, head: str, name: str, more: str, found: str
) -> None:
    path = tmp_path / "shapes.toml"
    path.write_text(f'{head}[shapes.node."{name}"]\n{more}\n', encoding="utf-8")
    with pytest.raises(InputError, match=found):
        read_shapes(path, system("cassandra"))
