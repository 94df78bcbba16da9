"""`capplan demand` and `--demand`: one screen, JSON, exit codes, and one sentence for what contradicts itself."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.planner.predictions import prediction

from capplan.cli import predict as predict_command
from capplan.cli.main import main
from capplan.models.language.scenario import Scenario
from capplan.planner.predict.prediction import Prediction
from capplan.systems.registry import scenario

ROOT = Path(__file__).parents[2]
EXAMPLE = str(ROOT / "docs" / "examples" / "demand.toml")
SMALL = """
subscribers = 900_000
[busy_hour]
sessions = 1
length_s = "30min"
interim_updates = 5
[data]
row_bytes = 1000
retention_s = "24h"
disk_gib = 1000
"""


@pytest.fixture
def small(tmp_path: Path) -> str:
    """A demand of 250 sessions, 2,000 requests a second."""
    path = tmp_path / "small.toml"
    path.write_text(SMALL, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("columns", [60, 80, 140])
def test_the_answer_fits_the_screen(
    columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert main(["demand", EXAMPLE]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= columns and line == line.rstrip() for line in lines)
    assert columns < 80 or len(lines) <= 25


def test_json_has_what_the_screen_has(small: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demand", small, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "capplan.demand/1"
    assert found["busy_hour"]["total_per_s"] == 2000
    assert found["layout"] is None


def test_a_layout_says_until_when_it_fits(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demand", EXAMPLE, "--cass-nodes", "3", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [each["what"] for each in found["fits"]] == ["rate", "disk"]
    assert not found["answer"]
    assert found["layout"]["cass_nodes"] == [3, 3, 3]


def test_a_demand_sets_rate_mix_and_reconnects_of_a_prediction(
    small: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Scenario] = []

    def predicted(chosen: Scenario, **_: Any) -> Prediction:
        asked.append(chosen)
        return replace(prediction(), objectives=(), verdict=None)

    monkeypatch.setattr(predict_command, "predict", predicted)
    assert main(["predict", "--demand", small]) == 0
    assert [line for line in capsys.readouterr().out.splitlines() if line.startswith("Data ")]
    assert main(["predict", "--demand", EXAMPLE, "--encryption", "client", "--json"]) == 0
    assert '"Data' not in capsys.readouterr().out
    first, second = asked
    assert first == scenario("openprovider", tps_mean=2000.0, mix="auth=1,acct=7")
    assert second.given().keys() >= {"tps_mean", "mix", "reconnects", "encryption"}


@pytest.mark.parametrize(
    "words",
    [
        ["simulate", "--duration", "1s"],
        ["sweep", "--cass-nodes", "3,4", "--draws", "4", "--processes", "1"],
        ["compare", "openprovider", "openprovider", "--engine", "analytic"],
        ["simulate", "rhino-shcm", "--duration", "1s"],
    ],
)
def test_a_demand_is_taken_wherever_a_rate_is(words: list[str], small: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words, "--demand", small]) == 0
    told = capsys.readouterr()
    assert told.out
    assert ("the mix of requests" in told.err) is ("rhino-shcm" in words)


def test_a_demand_sets_the_rate_of_a_check(small: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "objectives.toml"
    path.write_text("tps = 90000\ncass_nodes = 6\n", encoding="utf-8")
    words = ["check", str(path), "--engine", "analytic", "--json"]
    assert main(words) == 1
    assert main([*words, "--demand", small]) == 0
    assert '"tps_mean": 2000' in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["predict", "--tps", "3000"], "--tps exclude each other"),
        (["predict", "--tps-mean", "3000"], "--tps-mean exclude each other"),
        (["predict", "--mix", "auth=1,acct=3"], "--mix exclude each other"),
        (["simulate", "--tps", "3000"], "--tps exclude each other"),
        (["sweep", "--load", "80%"], "--load exclude each other"),
        (["predict", "rhino-shcm", "--sps", "1000"], "--sps exclude each other"),
        (["predict", "docs/examples/cluster-of-twelve.toml"], "is a network"),
        (["simulate", "docs/examples/cluster-of-twelve.toml"], "is a network"),
    ],
)
def test_what_contradicts_a_demand_is_refused(
    words: list[str], said: str, small: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert main([*words, "--demand", small]) == 2
    told = capsys.readouterr()
    assert said in told.err
    assert told.err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["demand", EXAMPLE, "fedora4"], "fedora4 has no Cassandra nodes"),
        (["demand", EXAMPLE, "rhino-shcm", "--dcs", "3"], "--dcs is not an option of rhino-shcm"),
        (["demand", "nowhere.toml"], "nowhere.toml"),
        (["predict", "fedora4", "--mix", "auth=1,acct=7"], "--write-share instead"),
        (["predict", "arion", "--mix", "auth=1,acct=7"], "--mix is an option of openprovider"),
        (["simulate", "docs/examples/cluster-of-twelve.toml", "--mix", "read=1"], "the target is a network"),
    ],
)
def test_bad_input_gets_one_sentence(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert main(words) == 2
    told = capsys.readouterr()
    assert said in told.err
    assert told.err.count("\n") == 1


def test_a_sweep_takes_several_mixes(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["sweep", "--mix", "auth=1,acct=3;auth=1,acct=7", "--tps", "2000", "--draws", "4", "--processes", "1"]
    assert main([*words, "--csv"]) == 0
    header, *rows = capsys.readouterr().out.splitlines()
    assert "mix" in header.split(",")
    assert len(rows) == 2
