"""`capplan calibrate` writes the fitted file, and the same file for the same seed."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import capplan.cli.calibrate as face
from capplan.calibration.fit.calibrate import stages_of
from capplan.cli.main import main
from capplan.evidence.load_test_row import LoadTestRow
from capplan.evidence.load_tests import LOAD_TESTS
from capplan.files import only_run
from capplan.layout.fitted_file import Fitted, read_fitted
from capplan.layout.system import System
from capplan.systems.registry import system

ROOT = Path(__file__).parents[2]
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


def test_a_second_fit_to_the_same_output_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, output = "docs/examples/own-measurements/three-rows.csv", tmp_path / "mine.json"
    with only_run(output):
        for command in (["cassandra", "--evidence", str(ROOT / table)], ["vcider", "--seed", "2"]):
            assert main(["calibrate", *command, "-o", str(output)]) == 2
            assert "another run" in capsys.readouterr().err
    assert not output.exists()


def test_rows_that_the_audit_refuses_are_fitted_when_that_is_asked_for(tmp_path: Path) -> None:
    row = LoadTestRow(run_id="one", cass_nodes=3, rf=3, read_fraction=0.0, clients=8, load_kind="closed")
    rows = [replace(row, throughput_tps=rate) for rate in (900.0, 950.0)]
    LOAD_TESTS.write(LOAD_TESTS.frame(rows), tmp_path / "twice.csv")
    asked = ["calibrate", "cassandra", "--evidence", str(tmp_path / "twice.csv"), "-o", str(tmp_path / "mine.json")]
    assert (main(asked), main([*asked, "--with-refused"])) == (2, 0)


def test_without_output_it_is_the_system_s_own_file(
    seeds: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(System, "fitted_path", property(lambda its: tmp_path / f"{its.name}.json"))

    assert main(["calibrate"]) == 0
    assert seeds == [1]
    assert read_fitted(tmp_path / "openprovider.json").seed == 1
    assert "openprovider.json" in capsys.readouterr().out


def test_the_rows_to_keep_differ_from_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Following each refusal in turn leaves rows of one workload."""
    table = Path(__file__).parents[1] / "published" / "load_tests" / "tidb_idc.csv"
    kept: list[str] = []
    for _ in range(2):
        train = ["--train", " and ".join(kept)] if kept else []
        asked = ["calibrate", "two-tier", "--evidence", str(table), *train, "-o", str(tmp_path / "x.json")]
        assert main(asked) == 2
        kept.append(capsys.readouterr().err.rstrip().removesuffix('"').rpartition('such as "')[2])
    assert [each.partition(" ")[0] for each in kept] == ["version", "request_class"]
