"""`size` and `predict` count what nodes have besides CPU, and name what binds."""

import math
from pathlib import Path
from typing import Any

import pytest

from capplan.answers.verdict import DATA, NORMAL, RESOURCES
from capplan.layout.fitted_file import read_fitted
from capplan.models.language.scenario import changed
from capplan.planner.node_needs import limited, node_load, node_needs
from capplan.planner.predict.predict import predict
from capplan.planner.size.size import SizingQuestion, size
from capplan.planner.size.sizing import Sizing
from capplan.planner.sustained import Judged, read_conditions
from capplan.reports.node_needs import assumed_of_data
from capplan.simulator.workers import in_process
from capplan.systems.cassandra.scenario import CassandraScenario
from capplan.systems.registry import resolve

FITTED = read_fitted(Path(__file__).parent / "fitted" / "mixed.json")
STATED = CassandraScenario(tps=5000.0, read_fraction=0.8, row_bytes=500.0, keep=2 * 86_400.0, node_cores=8, busiest=1.0)
ENOUGH = {"disk_gib": 2000.0, "disk_iops": 1e6, "network_gbit": 25.0, "memory_gib": 256.0}


def sized(question: SizingQuestion | None = None, **fields: Any) -> Sizing:
    asked = question or SizingQuestion(sized={"cass_nodes": (3, 64)}, engine="analytic")
    with in_process() as workers:
        return size(changed(STATED, **{**ENOUGH, **fields}), asked, workers, FITTED)


@pytest.mark.parametrize(
    ("fields", "word", "name"),
    [
        ({"tps": 30_000.0}, NORMAL, None),
        ({"disk_gib": 20.0}, DATA, "disk space"),
        ({"disk_iops": 300.0, "cache_gib": 0.1}, "iops", "disk IOPS"),
        ({"network_gbit": 0.002}, "network", "network"),
        ({"memory_gib": 12.0, "heap": "8GiB", "keep": 40 * 86_400.0}, "memory", "memory"),
    ],
)
def test_the_resource_that_binds_is_named(fields: dict[str, Any], word: str, name: str | None) -> None:
    found = sized(**fields)
    assert found.chosen is not None
    assert found.situations == (NORMAL, *RESOURCES)
    tightest = min(found.chosen.safety, key=lambda each: each.held_tps)
    assert tightest.conditions == word
    assert name is None or tightest.bottleneck == name
    assert all(each.risk <= 0.1 for each in found.chosen.safety)
    (miss,) = found.near_misses
    assert miss.binding.conditions == word


def test_the_chosen_layout_is_one_that_predict_accepts_and_the_next_smaller_is_not() -> None:
    found = sized(disk_gib=20.0)
    assert found.chosen is not None
    layout = changed(STATED, **{**ENOUGH, **found.chosen.fields, "disk_gib": 20.0})
    enough = predict(layout, fitted=FITTED, engine="analytic").verdict
    smaller = changed(layout, cass_nodes=found.chosen.fields["cass_nodes"] - 1)
    short = predict(smaller, fitted=FITTED, engine="analytic").verdict
    assert enough is not None
    assert short is not None
    assert (enough.answer, short.answer) == ("yes", "uncertain")
    assert short.binding.situation == DATA


@pytest.mark.slow
def test_needs_grow_with_the_planned_rate_and_cells_share_them() -> None:
    grown = SizingQuestion(sized={"cass_nodes": (24, 24)}, growth_per_year=1.0, years=1, engine="analytic")
    cells = SizingQuestion(sized={"cass_nodes": (12, 12)}, cells=(2,), engine="analytic")
    plain = SizingQuestion(sized={"cass_nodes": (24, 24)}, engine="analytic")
    once, twice, halves = (sized(question).chosen for question in (plain, grown, cells))
    assert once is not None
    assert once.node is not None
    assert twice is not None
    assert twice.node is not None
    assert halves is not None
    assert halves.node is not None
    assert twice.node.data_gib.value == pytest.approx(2 * once.node.data_gib.value)
    assert halves.node.data_gib.value == pytest.approx(once.node.data_gib.value)


def test_nothing_is_said_where_nothing_is_stated() -> None:
    assert node_load(CassandraScenario(tps=5.0), 5.0, 1) is None
    assert not limited({})


@pytest.mark.parametrize(("data_gib", "held"), [(100.0, math.inf), (5000.0, 0.0)])
def test_stated_data_fit_at_any_rate_or_at_none(data_gib: float, held: float) -> None:
    load = node_load(changed(STATED, keep=None, data_gib=data_gib, disk_gib=2000.0), 5000.0, 1)
    assert load is not None
    (disk,) = limited({NORMAL: load})
    assert set(disk.times) == {held}


def test_a_limit_is_told_as_it_was_given() -> None:
    load = node_load(changed(STATED, disk_gib=1.7), 5000.0, 1)
    assert load is not None
    (disk,) = limited({NORMAL: load})
    assert "1.7 " in disk.limit


def test_defaults_of_kept_data_are_told_unless_they_are_given() -> None:
    usual, given = assumed_of_data(STATED.given()), assumed_of_data({**STATED.given(), "compaction": "LCS"})
    assert "STCS" in usual
    assert "STCS" not in given
    assert not assumed_of_data(CassandraScenario(tps=5.0).given())


def test_a_stated_compression_leaves_no_spread() -> None:
    load = node_load(changed(STATED, compression=0.5), 5000.0, 1)
    assert load is not None
    band = node_needs(load).data_gib
    assert band.low == band.value == band.high


@pytest.mark.slow
def test_how_uneven_the_load_is_is_a_condition_until_it_is_stated() -> None:
    found = sized(disk_gib=20.0, busiest=None, data_factor=1.0)
    (skew,) = found.conditions
    assert found.chosen is not None
    assert skew.option == "--busiest"
    assert skew.break_even == pytest.approx(found.chosen.held_tps / found.planned_tps, rel=0.02)
    assert skew.at_high is not None
    assert skew.at_high.machines["node"] > found.chosen.machines["node"]
    stated = sized(disk_gib=20.0, busiest=skew.expected_high, data_factor=1.0)
    assert stated.chosen is not None
    assert not stated.conditions
    assert stated.chosen.machines == skew.at_high.machines


def test_layouts_of_a_table_have_its_skew() -> None:
    assert not predict(CassandraScenario(tps=5000.0, node_cores=8), fitted=FITTED, engine="analytic").conditions


def test_a_prediction_holds_only_as_far_as_the_disks_of_the_busiest_node() -> None:
    layout = changed(STATED, cass_nodes=12, keep=20 * 86_400.0, compaction="TWCS:1d", disk_gib=900.0, busiest=None)
    verdict = predict(layout, fitted=FITTED, engine="analytic").verdict
    assert verdict is not None
    assert verdict.answer == "yes"
    (skew,) = (each for each in verdict.conditions if each.option == "--busiest")
    assert skew.break_even is not None
    for times, answer in ((0.97, "yes"), (1.03, "uncertain")):
        at = predict(changed(layout, busiest=times * skew.break_even), fitted=FITTED, engine="analytic").verdict
        assert at is not None
        assert at.answer == answer


@pytest.mark.parametrize(("lost", "share"), [((), 1 / 12), (("node",), 1 / 10), (("dc",), 1 / 6)])
def test_nodes_that_are_left_carry_the_reads_of_lost_ones(lost: tuple[str, ...], share: float) -> None:
    layout = changed(
        STATED, dcs=2, cass_nodes=6, data_gib=100.0, cache_gib=50.0, keep=None, consistency_read="LOCAL_ONE"
    )
    need = 2 * 4000 * share * 0.5
    answers = []
    for iops in (0.99 * need, 1.01 * need):
        case = resolve(changed(layout, disk_iops=iops), FITTED)
        verdict = Judged(case, read_conditions(lost, case.system, FITTED), 5000.0).verdict()
        answers.append(next(each.answer for each in verdict.situations if each.situation == "iops"))
    assert answers == ["no", "yes"]
