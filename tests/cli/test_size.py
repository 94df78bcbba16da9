"""`capplan size`: exit codes, and the same answer wherever it is computed."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.systems.prior_draws import prior_draws

from capplan.cli.main import main
from capplan.evidence.load_test_row import LoadTestRow
from capplan.layout.fitted_file import write
from capplan.systems.cassandra import SYSTEM as CASSANDRA
from capplan.systems.registry import scenario
from capplan.systems.two_tier import SYSTEM as TWO_TIER

SMALL = ["size", "fedora4", "--tps", "200", "--nodes", "1..6", "--processes", "1"]


def test_an_impossible_target_ends_with_1_and_says_what_comes_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["size", "fedora4", "--tps", "90000", "--nodes", "1..3"]) == 1
    out = capsys.readouterr().out
    assert "Nearest" in out
    assert "Buy" not in out


@pytest.mark.slow
def test_processes_and_a_dask_cluster_give_the_same_answer(capsys: pytest.CaptureFixture[str]) -> None:
    command = [*SMALL[:-2], "--cells", "1..3", "--engine", "analytic", "--json"]
    answers = []
    for where in (["--processes", "1"], ["--processes", "2"], ["--dask", "local", "--processes", "2"]):
        assert main([*command, *where]) == 0
        answers.append(capsys.readouterr().out)
    assert answers[0] == answers[1] == answers[2]


def test_lists_say_how_many_data_centres_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["--rf", "3/3", "--cass-nodes", "3", "--tps", "500", "--engine", "analytic", "--processes", "1", "--json"]
    assert main(["size", *command]) == 0
    assert json.loads(capsys.readouterr().out)["chosen"]["fields"]["dcs"] == 2


@pytest.mark.parametrize("nodes", [pytest.param((), marks=pytest.mark.slow), ("--cass-nodes", "5..6")])
def test_more_replicas_than_default_nodes_find_their_layout(
    nodes: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["size", "--dcs", "1", "--rf", "5", "--tps", "1000", "--engine", "analytic", "--processes", "1", "--json"]
    assert main([*command, *nodes]) == 0
    assert json.loads(capsys.readouterr().out)["chosen"]["fields"]["cass_nodes"] == 5


ROW: dict[str, Any] = {"cass_nodes": 3, "node_cores": 4, "rf": 3, "read_fraction": 0.5}
ROW |= {"clients": 8, "load_kind": "closed", "throughput_tps": 1000.0}
SOLVED = ("--engine", "analytic", "--processes", "1", "--json")


def test_a_store_without_front_nodes_gets_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(prior_draws(TWO_TIER, [LoadTestRow(front_nodes=0, **ROW)]), tmp_path / "store.json")
    assert main(["size", str(tmp_path / "store.json"), "--tps", "500", *SOLVED]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["chosen"]["fields"]["front_nodes"] == 0
    assert answer["not_asked"] == ["node"]
    assert answer["single_points"] == []


def test_a_node_on_the_server_of_an_application_is_a_single_point(capsys: pytest.CaptureFixture[str]) -> None:
    """It is no machine of its own; and what is not searched is said as it was given."""
    assert main(["size", "rhino-shcm", "--colocated", "yes", "--tps", "500", "--cass-nodes", "1..2", *SOLVED]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["not_asked"] == answer["single_points"] == ["node"]
    layout = {**answer["scenario"], **answer["chosen"]["fields"]}
    assert scenario(layout.pop("system"), **layout).given()["rf"] == layout["cass_nodes"]


def test_several_data_centres_over_one_have_a_round_trip(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(prior_draws(CASSANDRA, [LoadTestRow(dcs=1, **ROW)]), tmp_path / "mine.json")
    several = ("--tps", "500", "--dcs", "1..2", "--rtt", "5ms", "--cass-nodes", "3..4")
    assert main(["size", str(tmp_path / "mine.json"), *several, *SOLVED]) == 0
    out, err = capsys.readouterr()
    answer = json.loads(out)
    assert "no effect" not in err
    assert answer["scenario"]["rtt"] == "5ms"
    assert answer["not_asked"] == ["node", "dc"]
