"""`capplan collect` and `capplan lab`: what is asked for wrongly is refused in one sentence before anything starts."""

from pathlib import Path

import pytest

from capplan.cli.collect import read_settings
from capplan.cli.main import main


@pytest.fixture(autouse=True)
def no_lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAPPLAN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


def test_down_without_a_lab_does_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "down"]) == 0
    assert "0 processes" in capsys.readouterr().out


@pytest.mark.parametrize(("text", "size"), [("100", 100), ("1KiB", 1024), ("\x1f8", 8), (" 8 B ", 8)])
def test_a_row_has_a_size_in_bytes_or_with_a_unit(text: str, size: int) -> None:
    assert read_settings({"row_bytes": text}).row_bytes == size
