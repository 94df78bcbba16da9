"""`capplan size`: exit codes, and the same answer wherever it is computed."""

import json

import pytest

from capplan.cli.main import main

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
