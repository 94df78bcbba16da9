"""`capplan calibrate` writes the fitted file, and the same file for the same seed."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import capplan.cli.calibrate as face
from capplan.calibration.fit.calibrate import stages_of
from capplan.cli.main import main
from capplan.layout.fitted_file import Fitted, read_fitted
from capplan.layout.system import System
from capplan.systems.registry import system

FITTED = system("openprovider").fitted()


@pytest.fixture
def seeds(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Seeds that the command passes on; nothing is computed."""
    found: list[int] = []

    def fake(its: System[Any], seed: int, progress: Callable[[str], None], output: Path) -> Fitted:
        assert its.name == "openprovider"
        assert output.suffix == ".json"
        found.append(seed)
        for stage in range(stages_of(its)):
            progress(f"stage {stage}")
        return replace(FITTED, seed=seed)

    monkeypatch.setattr(face, "calibrate", fake)
    return found


def test_it_writes_where_it_is_told(seeds: list[int], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = system("openprovider").fitted_path.read_bytes()
    path = tmp_path / "mine.json"

    assert main(["calibrate", "openprovider", "--seed", "5", "--output", str(path)]) == 0
    assert seeds == [5]
    assert read_fitted(path) == replace(FITTED, seed=5)
    assert system("openprovider").fitted_path.read_bytes() == before
    out, err = capsys.readouterr()
    assert err == ""  # progress is for terminals
    assert str(len(FITTED.draws)) in out
    assert all(name in out for name in FITTED.names)


def test_without_output_it_is_the_system_s_own_file(
    seeds: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(System, "fitted_path", property(lambda its: tmp_path / f"{its.name}.json"))

    assert main(["calibrate"]) == 0
    assert seeds == [1]
    assert read_fitted(tmp_path / "openprovider.json").seed == 1
    assert "openprovider.json" in capsys.readouterr().out
