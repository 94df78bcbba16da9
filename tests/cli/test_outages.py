"""`capplan outages`: one screen, JSON, exit codes, and one sentence for bad input."""

import json
from pathlib import Path

import pytest

from capplan.cli.main import main
from capplan.cli.outages import read_times

EXAMPLE = str(Path(__file__).parents[2] / "docs" / "examples" / "retries-that-stay.toml")
QUICK = ["--replications", "2", "--at", "20s", "--for", "20s", "--after", "20s", "--processes", "1"]
SMALL = ["outages", "fedora4", "--nodes", "3", "--tps", "100", "--engine", "analytic", *QUICK]


@pytest.mark.parametrize("columns", [60, 80, 140])
def test_the_screen_fits_and_ends_lines_without_blanks(
    columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert main(SMALL) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 40
    assert all(len(line) <= columns and line == line.rstrip() for line in lines)
    assert {"Back", "Clients"} <= {line.split("  ")[0] for line in lines}


def test_a_loss_that_is_not_back_to_normal_ends_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["outages", EXAMPLE, *QUICK]) == 1
    assert "not within" in capsys.readouterr().out


def test_a_table_of_recoveries_names_what_is_safe(capsys: pytest.CaptureFixture[str]) -> None:
    quick = ["--trigger", "10s", "--attempts", "1..2", "--horizon", "200s", "--replications", "2"]
    assert main(["outages", EXAMPLE, *quick]) == 0
    out = capsys.readouterr().out
    assert "yes 2/2" in out
    assert "no 0/2" in out
    assert "may stay down" in out


def test_json_has_the_schema_of_outages(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "capplan.outages/2"
    assert found["transients"][0]["replications"] == 2


def test_a_range_of_times_has_one_and_three_of_each_power_of_ten() -> None:
    assert read_times("1s..60s") == (1.0, 3.0, 10.0, 30.0, 60.0)
    assert read_times("500ms,20s") == (0.5, 20.0)


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (["--attempts", "1..5"], "add --trigger"),
        (["--attempts", "0"], "there is at least the first"),
        (["--trigger", "60s..1s"], "goes down"),
        (["--surge", "3"], "add --trigger"),
        (["--horizon", "60s"], "add --trigger"),
        (["--cold", "30s"], "--cold 30s: give a time and a relative speed"),
        (["--backoff", "1s*fast"], "is no factor above 0"),
        (["--at", "1s"], "--at"),
        (["--within", "0"], "tolerance"),
        (["--lose", "nod"], "did you mean 'node'?"),
        (["--engine", "simpy"], "does not predict outages"),
        (["--budget", "0s"], "budget"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(
    arguments: list[str], found: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["outages", "fedora4", "--tps", "100", "--engine", "analytic", *arguments]) == 2
    error = capsys.readouterr().err
    assert found in error
    assert len(error.strip().splitlines()) == 1
