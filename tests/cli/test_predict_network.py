"""`capplan predict mine.toml`: the screen, JSON and CSV of a network, and what is refused."""

import json
from pathlib import Path

import pytest
from tests.cli.commands import CLOSED, NETWORK, answered

QUICK = ["--budget", "100ms"]


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text(NETWORK, encoding="utf-8")
    Path("closed.toml").write_text(CLOSED, encoding="utf-8")
    return "mine.toml"


def test_the_rate_and_objectives_decide_the_exit_code(mine: str, capsys: pytest.CaptureFixture[str]) -> None:
    answered(capsys, "predict", mine, *QUICK, "--slo", "read.p99<1s")
    answered(capsys, "predict", mine, *QUICK, "--slo", "read.p99<1ms", code=1)
    answered(capsys, "predict", mine, *QUICK, "--tps", "3k", code=1)


def test_engines_print_the_same_figures(mine: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The budget is so small that both simulate the fewest requests."""
    del mine
    compiled, simpy = (
        json.loads(answered(capsys, "predict", "closed.toml", "--budget", "1ms", "--engine", name, "--json"))
        for name in ("compiled", "simpy")
    )
    assert compiled["latency_ms"] == simpy["latency_ms"]
