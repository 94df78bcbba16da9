"""`capplan sweep`: tables, files and plots; bad input is one sentence; an interrupted sweep resumes."""

import csv
import io
import json
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import capplan.cli.sweep as face
from capplan.cli.main import main
from capplan.cli.shell.scenario_command import flag
from capplan.planner.sweep import ENGINES, column_of, columns_of, layout_options, layouts_of, points_of
from capplan.systems.registry import scenario, system

ENDED = """
import os, sys
from capplan.cli import process
from capplan.planner import sweep

real, number = sweep.points_of, int(sys.argv.pop(1))

def ended(task, replication):
    if task.scenario.dcs == 2:
        os.kill(os.getpid(), number)
    return real(task, replication)

sweep.points_of = ended
process.run()
"""
COLUMNS = columns_of(system("openprovider"))
FAST = ["--draws", "2", "--processes", "1"]
QUICK = ["--dcs", "1..2", "--cass-nodes", "2,3", "--load", "50%,110%"]


def ran(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[str, str]:
    assert main(["sweep", *arguments]) == 0
    out, err = capsys.readouterr()
    return out, err


def table(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(ran(capsys, *arguments, *FAST, "--csv")[0])))


SIDES = {
    "openprovider": "dcs=2,3 cass_nodes=3,4 rf=2..3 front_nodes=1,2 front_workers=32,64 "
    "consistency_read=ONE,LOCAL_QUORUM consistency_write=QUORUM,ALL distance=50km,150km rtt=1ms..3ms:2ms "
    "proxy=no,yes ldap=yes,no data_factor=1..1.5:0.5 encryption=client,client+internode",
    "rhino-shcm": "cass_nodes=3,5 rf=1,3 colocated=yes,no cache=yes,no",
    "fedora4": "nodes=1,2 write_share=0%..5%:5% region=eu,asia",
    "arion": "servers=1,2 clients=100..200:100 stream_messages=1,10",
}


@pytest.mark.parametrize(
    ("shares", "refused"), [("100%", [False]), ("0%,100%", [True, False]), ("50%,0%", [False, True])]
)
def test_an_objective_is_about_the_traffic_of_the_swept_layouts(
    shares: str, refused: list[bool], capsys: pytest.CaptureFixture[str]
) -> None:
    rows = table(capsys, "fedora4", "--write-share", shares, "--slo", "create.p99<1s")
    assert [bool(row["refused"]) for row in rows] == refused


@pytest.mark.parametrize("name", SIDES)
@pytest.mark.slow
def test_each_field_of_a_layout_is_swept(capsys: pytest.CaptureFixture[str], name: str) -> None:
    options = layout_options(system(name).scenario)
    for field, _, values in (side.partition("=") for side in SIDES[name].split()):
        rows = table(capsys, name, flag(field), values)
        assert list(rows[0]) == list(columns_of(system(name)))
        assert len({row[column_of(field, options[field])] for row in rows}) == 2, field


def test_a_rate_option_of_each_system_is_an_axis(capsys: pytest.CaptureFixture[str]) -> None:
    for name, option, values in (
        ("rhino-shcm", "--sps", "100..200:100"),
        ("fedora4", "--tps", "100,200"),
        ("arion", "--rps-per-client", "1,2"),
    ):
        low, high = (float(row["offered_tps"]) for row in table(capsys, name, option, values))
        assert high == 2 * low


def test_a_layout_that_is_refused_has_the_fields_of_the_others() -> None:
    """One data centre has no round trip, and no column for it."""
    fine, refused = layouts_of(scenario("cassandra", cass_nodes=3), {"rf": (3, 9)})
    assert fine.scenario is not None
    assert refused.scenario is None
    assert "rtt" not in {**fine.scenario.given(), **refused.fields}
    _, several = layouts_of(scenario("cassandra", cass_nodes=3), {"dcs": (2,), "rf": (3, 9)})
    assert several.fields["rtt"] == "1ms"


def test_json_is_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    points = json.loads(ran(capsys, *QUICK, *FAST, "--json")[0])["points"]
    lines = table(capsys, *QUICK)

    assert len(points) == len(lines) == 8
    for point, line in zip(points, lines, strict=True):
        assert list(point) == list(COLUMNS)
        assert {
            name: "" if cell is None else str(cell) for name, cell in point.items() if not isinstance(cell, bool)
        } == {name: cell for name, cell in line.items() if not isinstance(point[name], bool)}


@pytest.mark.slow
def test_files_are_the_same_wherever_they_are_computed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(face, "FEW_TASKS", dict.fromkeys(ENGINES, 1))
    for name, how in {"one": ["--processes", "1"], "two": ["--processes", "2"], "dask": ["--dask", "local"]}.items():
        out, _ = ran(capsys, *QUICK, "--draws", "3", "--out", str(tmp_path / f"{name}.parquet"), *how)
        assert out == ""
    one = (tmp_path / "one.parquet").read_bytes()

    assert one == (tmp_path / "two.parquet").read_bytes() == (tmp_path / "dask.parquet").read_bytes()


def test_a_second_call_computes_nothing_again(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "table.csv"
    ran(capsys, *QUICK, *FAST, "--out", str(out))
    first = out.read_bytes()
    out.unlink()
    monkeypatch.setattr("capplan.planner.sweep.AnalyticPoints", None)  # calling it would fail
    ran(capsys, *QUICK, *FAST, "--out", str(out))

    assert out.read_bytes() == first


def test_an_interruption_leaves_what_is_finished(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, real, count = tmp_path / "table.csv", points_of, 0
    whole = tmp_path / "whole.csv"
    ran(capsys, *QUICK, *FAST, "--out", str(whole))

    def interrupted(task: object, replication: int) -> list[dict[str, object]]:
        nonlocal count
        count += 1
        if count > 1:
            raise KeyboardInterrupt
        return real(task, replication)  # type: ignore[arg-type]  # a task, whose type is the planner's affair

    monkeypatch.setattr("capplan.planner.sweep.points_of", interrupted)
    code = main(["sweep", *QUICK, *FAST, "--out", str(out)])
    kept = list(csv.DictReader(io.StringIO(out.read_text(encoding="utf-8"))))
    noted = capsys.readouterr().err
    before, count = whole.read_bytes(), 0
    assert main(["sweep", *QUICK, *FAST, "--seed", "2", "--out", str(whole)]) == 130
    assert "is as it was" in capsys.readouterr().err
    assert whole.read_bytes() == before
    monkeypatch.undo()
    ran(capsys, *QUICK, *FAST, "--out", str(out))

    assert code == 130
    assert "6 of 8" in noted
    assert [row["offered_tps"] != "" for row in kept if not row["refused"]] == [True, True]
    assert out.read_bytes() == whole.read_bytes()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGHUP")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT"])
@pytest.mark.slow
def test_a_signal_late_in_a_sweep_leaves_a_whole_table_as_it_was(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str
) -> None:
    out, arguments = tmp_path / "whole.parquet", ["--dcs", "1,2", "--load", "50%", *FAST, "--out"]
    ran(capsys, *arguments, str(out))
    before, number = out.read_bytes(), signal.Signals[name]
    program = [sys.executable, "-c", ENDED, str(int(number)), "sweep", "--seed", "2", *arguments, str(out)]
    ended = subprocess.run(program, timeout=120, check=False, capture_output=True, text=True)

    assert ended.returncode == 128 + number
    assert "1 of 2 points" in ended.stderr
    assert out.read_bytes() == before


def test_parquet_has_the_types_of_the_columns(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    ran(capsys, *QUICK, *FAST, "--out", str(tmp_path / "table.parquet"))
    schema = pq.read_schema(tmp_path / "table.parquet")

    assert {name: str(schema.field(name).type) for name in ("dcs", "answer", "risk", "acct_p99_ms")} == {
        "dcs": "int64",
        "answer": "string",
        "risk": "double",
        "acct_p99_ms": "double",
    }
    assert "string" in str(schema.field("refused").type)


def test_a_layout_without_something_that_is_swept_says_none(capsys: pytest.CaptureFixture[str]) -> None:
    printed, _ = ran(capsys, "openprovider", "--encryption", "client,none", "--engine", "analytic", *FAST)
    assert "none" in printed
    assert "None" not in printed
