"""What an import makes of the rows of several files: what is merged, and what constants mean."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from capplan.errors import InputError
from capplan.evidence.import_files import import_files
from capplan.evidence.load_test_row import LoadTestRow
from capplan.evidence.load_tests import LOAD_TESTS

ROW = LoadTestRow(run_id="a", load_kind="open", throughput_tps=100.0, latency_mean_ms=5.0, request_class="all")


def table(path: Path, *rows: LoadTestRow) -> Path:
    LOAD_TESTS.write(LOAD_TESTS.frame(rows), path)
    return path


def imported(*paths: Path, **constants: str) -> list[LoadTestRow]:
    return list(LOAD_TESTS.rows(import_files(paths, constants=constants).load_tests))


@pytest.mark.parametrize("cells", [{"run_id": None}, {"repeat": None}, {"repeat": 1}])
def test_every_row_of_a_table_is_taken(cells: dict[str, Any], tmp_path: Path) -> None:
    rows = [replace(ROW, latency_mean_ms=mean, **cells) for mean in (5.0, 6.0)]
    assert [row.latency_mean_ms for row in imported(table(tmp_path / "t.csv", *rows))] == [5.0, 6.0]


def test_repeats_of_a_run_stay_apart(tmp_path: Path) -> None:
    rows = [replace(ROW, repeat=repeat, latency_mean_ms=4.0 + repeat) for repeat in (1, 2)]
    assert [(row.run_id, row.repeat, row.latency_mean_ms) for row in imported(table(tmp_path / "t.csv", *rows))] == [
        ("a", 1, 5.0),
        ("a", 2, 6.0),
    ]


def test_runs_of_one_name_in_two_tables_are_told_apart(tmp_path: Path) -> None:
    for day in ("monday", "tuesday"):
        table(tmp_path / f"{day}.csv", ROW, replace(ROW, run_id=day))
    assert [row.run_id for row in imported(tmp_path)] == ["monday/a", "monday", "tuesday/a", "tuesday"]


def test_a_class_has_its_share_of_the_rate_that_was_offered_to_a_run(tmp_path: Path) -> None:
    parts = [replace(ROW, request_class=name, throughput_tps=rate) for name, rate in (("read", 75.0), ("write", 25.0))]
    found = imported(table(tmp_path / "t.csv", ROW, *parts, replace(parts[0], run_id="b")), offered_tps="120")
    assert [(row.run_id, row.request_class, row.offered_tps) for row in found] == [
        ("a", "all", 120.0),
        ("a", "read", 90.0),
        ("a", "write", 30.0),
        ("b", "read", 120.0),
    ]


def test_constants_overwrite_nothing(tmp_path: Path) -> None:
    path = table(tmp_path / "t.csv", replace(ROW, note="cold", rf=3))
    (row,) = imported(path, note="second site")
    assert row.note == "cold; second site"
    with pytest.raises(InputError, match="rf is 2 by what was set, and 3 in"):
        imported(path, rf="2")


def test_two_outputs_of_a_tool_are_two_runs(tmp_path: Path) -> None:
    """Files whose names differ in the ending only complement each other: those of two clients must not."""
    text = (Path(__file__).parents[1] / "samples" / "wrk-closed.txt").read_text()
    for name in ("run.log", "run.txt"):
        (tmp_path / name).write_text(text)

    with pytest.raises(InputError, match="both would be run 'run': rename one"):
        imported(tmp_path / "run.log", tmp_path / "run.txt")
    found = import_files([tmp_path])
    assert [(Path(each.path).name, each.load_tests, bool(each.remarks)) for each in found.files] == [
        ("run.log", 1, False),
        ("run.txt", 0, True),
    ]
