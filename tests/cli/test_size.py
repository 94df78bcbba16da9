"""`capplan size`: one screen, JSON, exit codes, and one sentence for bad input."""

import json

import pytest

from capplan.cli.main import main

SMALL = ["size", "fedora4", "--tps", "200", "--nodes", "1..6", "--processes", "1"]


def test_the_screen_names_the_layout_its_situations_and_the_next_smaller_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main([*SMALL, "--survive", "node,node+cold", "--growth", "30%/y", "--years", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 25
    assert all(len(line) <= 80 and line == line.rstrip() for line in lines)
    labels = [line.split("  ")[0] for line in lines]
    assert {"Buy", "Machines", "Binding", "Saturates", "Headroom", "Situation", "Other layouts", "Guessed"} <= {*labels}


@pytest.mark.parametrize("columns", [60, 80, 140])
def test_no_width_loses_a_value(
    columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert main([*SMALL, "--survive", "node,node+cold"]) == 0
    out = capsys.readouterr().out
    assert all(len(line) <= columns for line in out.splitlines())
    assert out.count("TPS") >= 5


def test_an_impossible_target_ends_with_1_and_says_what_comes_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["size", "fedora4", "--tps", "90000", "--nodes", "1..3"]) == 1
    out = capsys.readouterr().out
    assert "Nearest" in out
    assert "Buy" not in out


def test_json_has_what_the_screen_has(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "capplan.sizing/1"
    assert found["chosen"]["safe"]
    assert found["layouts"] == 6


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (["--survive", "nod"], "did you mean 'node'?"),
        (["--growth", "30"], "--growth 30: give a share per year"),
        (["--growth", "huge/y"], "--growth huge/y: give a share per year"),
        (["--years", "3"], "--years 3 has no effect without --growth"),
        (["--confidence", "120%"], "120%"),
        (["--engine", "simpy"], "engine 'simpy' does not size"),
        (["--tps", "100..200:50"], "a layout is sized for one rate"),
        (["--prices", "nowhere.toml"], "nowhere.toml"),
        (["--nodes", "3..1"], "--nodes"),
    ],
)
def test_bad_input_is_one_sentence(arguments: list[str], found: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL, *arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith("capplan: ")
    assert error.count("\n") == 1
    assert found in error


@pytest.mark.slow
def test_processes_and_a_dask_cluster_give_the_same_answer(capsys: pytest.CaptureFixture[str]) -> None:
    command = [*SMALL[:-2], "--cells", "1..3", "--engine", "analytic", "--json"]
    answers = []
    for where in (["--processes", "1"], ["--processes", "2"], ["--dask", "local", "--processes", "2"]):
        assert main([*command, *where]) == 0
        answers.append(capsys.readouterr().out)
    assert answers[0] == answers[1] == answers[2]
