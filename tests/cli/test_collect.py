"""`capplan collect` and `capplan lab`: what is asked for wrongly is refused in one sentence before anything starts."""

from pathlib import Path

import pytest

from capplan.cli.main import main


@pytest.fixture(autouse=True)
def no_lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAPPLAN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


def test_down_without_a_lab_does_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "down"]) == 0
    assert "0 processes" in capsys.readouterr().out
