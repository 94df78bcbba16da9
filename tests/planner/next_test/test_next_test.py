"""Which load test tells most, for a two-tier system whose rows end far below its ceiling."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from tests.systems.two_tier.two_tier_tables import layout, measured

from capplan.calibration.tables.fit_table import fit_table
from capplan.cli.main import main
from capplan.errors import InputError
from capplan.layout.fitted_file import Fitted, write
from capplan.layout.table_rows import cells_of, rows_of
from capplan.planner.next_test import Hours, NextTest, next_test, parse_candidates
from capplan.systems.registry import resolve
from capplan.systems.two_tier import SYSTEM
from capplan.systems.two_tier.scenario import TwoTierScenario

ASKED = {"front_nodes": 2, "front_cores": 8, "node_cores": 8, "read_fraction": 1.0, "clients": 2000}


@pytest.fixture(scope="module")
def fitted() -> Fitted:
    """A fit to three rows at low load."""
    return fit_table(SYSTEM, measured([layout(clients=each) for each in (2, 16, 64)]))


def ranked(fitted: Fitted, *texts: str, **asked: object) -> NextTest:
    """Return the ranked tests for a question."""
    scenario = TwoTierScenario(**{**ASKED, **asked})  # type: ignore[arg-type]  # fields by name
    return next_test(resolve(scenario, fitted), parse_candidates(texts, TwoTierScenario))


def test_a_rate_is_shown_as_rates_are(fitted: Fitted) -> None:
    assert ranked(fitted, "tps=60k", clients=None, tps=100.0).tests[0].words == "tps 60,000"


@pytest.mark.slow
def test_a_test_nearer_to_the_asked_load_tells_more_of_it(fitted: Fitted) -> None:
    found = ranked(fitted, "clients=4,256,2000")
    assert [each.changes["clients"] for each in found.tests] == [2000, 256, 4]
    assert found.answer
    assert all(0 <= each.narrowing <= 1 for each in found.tests)
    best = found.tests[0]
    assert best.narrowing > 0.5  # the asked run itself leaves little but the scatter
    assert found.figure.low < best.low_after < best.high_after < found.figure.high


def test_a_layout_that_no_row_has_costs_its_setup(fitted: Fitted) -> None:
    scenario = TwoTierScenario(**ASKED)  # type: ignore[arg-type]  # fields by name
    tests = parse_candidates(["front_nodes=2,4 clients=512"], TwoTierScenario)
    found = next_test(resolve(scenario, fitted), tests, hours=Hours(run=1.0, setup=3.0))
    by_nodes = {each.changes["front_nodes"]: each for each in found.tests}
    assert (by_nodes[2].hours, by_nodes[2].new_layout) == (1.0, False)
    assert (by_nodes[4].hours, by_nodes[4].new_layout) == (4.0, True)
    assert by_nodes[4].narrowing_per_hour == pytest.approx(by_nodes[4].narrowing / 4)


def test_rows_of_reads_and_of_writes_are_of_the_layout_with_both(fitted: Fitted) -> None:
    parts = [
        replace(row, run_id=f"run {at}", request_class=name, read_fraction=None, throughput_tps=100.0)
        for at, row in enumerate(rows_of(fitted))
        for name in ("read", "write")
    ]
    assert fitted.table is not None
    known = replace(fitted, table=replace(fitted.table, rows=tuple(map(cells_of, parts))))
    assert not ranked(known, "clients=512", read_fraction=0.5).tests[0].new_layout


def test_an_objective_ranks_tests_by_another_answer(fitted: Fitted) -> None:
    usual = ranked(fitted, "clients=512", clients=None, tps=1000.0).figure.value
    found = ranked(fitted, "clients=4,2000", clients=None, tps=1000.0, slo=(f"capacity>{usual:.0f}",))
    assert found.rank == "decision"
    assert found.figure.name == "capacity"
    assert found.figure.chance_met == pytest.approx(0.5, abs=0.1)
    chances = [each.chance_of_change or 0.0 for each in found.tests]
    assert chances == sorted(chances, reverse=True)
    assert found.tests[0].changes["clients"] == 2000


def test_a_rate_far_below_the_ceiling_does_not_measure_it(fitted: Fitted) -> None:
    ceiling = ranked(fitted, "clients=512", clients=None, tps=1000.0).figure.value
    little, much = (
        ranked(fitted, f"tps={share * ceiling:.0f}", clients=None, tps=1000.0).tests[0].narrowing
        for share in (0.01, 1.5)
    )
    assert little < 0.5 * much


def test_a_candidate_that_cannot_be_tested_is_left_out_with_the_reason(fitted: Fitted) -> None:
    found = ranked(fitted, "rf=3,9 clients=64")
    assert len(found.tests) == 1
    assert "rf = 9" in found.refused[0]


@pytest.mark.parametrize(
    ("texts", "named"),
    [
        (["clients"], "no value"),
        (["clinets=4"], "'clients'"),
        (["clients=4 clients=8"], "twice"),
        (["clients=4 tps=100"], "exclude"),
        (["clients=many"], "whole number"),
        ([" "], "empty"),
        (["clients=1..1000"], "200"),
    ],
)
def test_candidates_that_cannot_be_read_are_refused(texts: list[str], named: str) -> None:
    with pytest.raises(InputError, match=named):
        parse_candidates(texts, TwoTierScenario)


def test_candidates_are_all_combinations_each_once() -> None:
    found = parse_candidates(["rf=1,3 clients=8", "rf=3 clients=8,16"], TwoTierScenario)
    assert [(each["rf"], each["clients"]) for each in found] == [(1, 8), (3, 8), (3, 16)]


def test_the_command_answers_by_its_schema(fitted: Fitted, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.json"
    write(fitted, path)
    options = ["--front-nodes", "2", "--front-cores", "8", "--node-cores", "8", "--read-fraction", "100%"]
    arguments = ["next-test", str(path), *options, "--clients", "2000", "--candidates", "clients=64,512"]
    assert main([*arguments, "--json"]) == 0
    jsonschema.validate(json.loads(capsys.readouterr().out), NextTest.json_schema())
    assert main(arguments) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80
    assert main(arguments[:-2]) == 2
    assert "--candidates" in capsys.readouterr().err
