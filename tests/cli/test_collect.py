"""`capplan collect` and `capplan lab`: what is asked for wrongly is refused in one sentence before anything starts."""

import json
from pathlib import Path

import pytest

from capplan.cli.main import main
from capplan.lab.collectors.collector import COLLECTORS


@pytest.fixture(autouse=True)
def no_lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAPPLAN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    code = main(arguments)
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    lines = [line for line in err.splitlines() if not line.endswith("at work ...")]
    assert len(lines) == 1
    return lines[0]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["collect", "rttt"], "'rtt'"),
        (["collect", "rtt"], "-o rtt.parquet"),
        (["collect", "rtt", "-o", "rtt.txt"], ".parquet"),
        (["collect", "rtt", "-o", "rtt.csv", "--level", "QUORUM"], "--level"),
        (["collect", "rtt", "-o", "rtt.csv"], "capplan lab up"),
        (["collect", "cassandra-write", "-o", "w.csv", "--level", "QUORM"], "QUORUM"),
        (["collect", "cassandra-write", "-o", "w.csv", "--duration", "1h"], "--duration"),
        (["collect", "cassandra-write", "-o", "w.csv", "--clients", "0"], "--clients"),
        (["collect", "cassandra-write", "-o", "w.csv", "--rates", "300%"], "--rates"),
        (["lab", "status"], "capplan lab up"),
        (["lab", "kill", "dc1-1"], "capplan lab up"),
        (["lab", "rtt", "20ms"], "capplan lab up"),
        (["lab", "rtt", "11s"], "10 s"),
        (["lab", "up", "--rtt", "20ms"], "--dcs 2"),
        (["lab", "up", "--rf", "2"], "--rf 2"),
        (["lab", "up", "--heap", "1M"], "--heap"),
        (["lab", "up", "--version", "2.2"], "5.0"),
    ],
)
def test_what_cannot_be_done_is_refused_with_the_next_step(
    arguments: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert named in refused(capsys, *arguments)


def test_the_collectors_are_listed_with_their_parameter(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["collect", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)

    assert list(listed) == list(COLLECTORS)
    assert all(each["parameter"] for each in listed.values())


def test_down_without_a_lab_does_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "down"]) == 0
    assert "0 processes" in capsys.readouterr().out
