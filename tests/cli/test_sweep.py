"""`capplan sweep`: tables, files and plots; what is wrong is one sentence; what was interrupted goes on."""

import csv
import io
import json
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import capplan.cli.sweep as face
from capplan.cli.main import main
from capplan.planner.explore.sweep import ENGINES, rows_of_task
from capplan.planner.explore.sweep_table import COLUMNS

DYING = """
import os, signal, sys
from pathlib import Path
from capplan.cli.main import main
from capplan.planner.explore import sweep

real, log, left = sweep.rows_of_task, Path(sys.argv[1]), [None] * int(sys.argv[2])

def dying(task, replication):
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
    left.pop()
    with log.open("a") as notes:
        notes.write(str(task.scenario.dcs))
    return real(task, replication)

sweep.rows_of_task = dying
sys.exit(main(sys.argv[3:]))
"""
QUICK = ["--dcs", "1..2", "--cass-nodes", "2,3", "--load", "50%,110%"]


def ran(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[str, str]:
    assert main(["sweep", *arguments]) == 0
    out, err = capsys.readouterr()
    return out, err


def refused(capsys: pytest.CaptureFixture[str], arguments: Sequence[str]) -> str:
    code = main(["sweep", *arguments])
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert err.startswith("capplan: ")
    assert err.count("\n") == 1
    return err


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["--dcs", "5..1"], ["--dcs: '5..1' goes down"]),
        (["--cass-nodes", "3..12:0"], ["--cass-nodes", "step"]),
        (["--tps", "1000..2000"], ["--tps: '1000..2000' has no step"]),
        (["--tps", "0"], ["--tps", "above 0"]),
        (["--load", "80"], ["--load: '80' is not a share"]),
        (["--tps", "100", "--load", "80%"], ["--tps and --load exclude each other"]),
        (["--rtt", "1ms", "--distance-km", "5"], ["--rtt and --distance-km exclude each other"]),
        (["--proxy", "maybe"], ["--proxy: 'maybe'"]),
        (["--engine", "analytical"], ["'analytical'", "did you mean 'analytic'"]),
        (["--slo", "acct.p99<banana"], ["'banana' is not a duration"]),
        (["--dcs", "1..64", "--cass-nodes", "3..64", "--rf", "1..64"], ["253,952 layouts"]),
        (["--tps", "1..100000:1", "--dcs", "1..2"], ["200,000 points"]),
        (["--cass-nodes", "1,2"], ["all 2 points are refused", "rf = 3 needs at least 3"]),
        (["--out", "table.txt"], ["'table.txt' does not end in .csv or .parquet"]),
        (["--out", "table"], ["'table' does not end", ".csv, .parquet"]),
        (["--out", "nowhere/table.csv"], ["there is no folder nowhere"]),
        (["--plot", "nowhere/plot.html"], ["there is no folder nowhere"]),
        (["--json", "--csv"], ["exclude each other"]),
        (["--dask", "tcp://127.0.0.1:1", "--processes", "2"], ["--processes", "a cluster has its own workers"]),
        (["nosystem"], ["'nosystem' is no system"]),
    ],
)
def test_what_is_wrong_is_one_sentence(
    capsys: pytest.CaptureFixture[str], arguments: Sequence[str], parts: Sequence[str]
) -> None:
    sentence = refused(capsys, arguments)

    for part in parts:
        assert part in sentence


def test_a_table_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    out, err = ran(capsys, *QUICK)
    lines = out.splitlines()

    assert err == ""
    assert lines[0].split()[:5] == ["DCs", "nodes", "TPS", "evidence", "carried"]
    assert [line.split()[:2] for line in lines[2:10:2]] == [["1", "3"], ["1", "3"], ["2", "3"], ["2", "3"]]
    assert [line.split()[3:5] for line in lines[2:10:2]] == [["inside", "yes"], ["inside", "no"]] * 2
    assert [line.count("(") for line in lines[2:10]] == [0, 3, 0, 1] * 2  # bands below, where they have no room beside
    assert " ".join(out.split()).count("refused: rf = 3 needs at least 3") == 1
    assert "Beyond capacity no latency is given" in out
    assert "Latencies are those of the analytic solver" in out
    assert max(map(len, lines)) <= 80


def test_a_table_that_is_wider_than_the_screen_is_not_cut(capsys: pytest.CaptureFixture[str]) -> None:
    sides = ["--dcs", "1,2", "--rtt", "1ms,3ms", "--front-nodes", "2,3", "--consistency-write", "QUORUM,LOCAL_QUORUM"]
    out, _ = ran(capsys, *sides, "--draws", "3", "--processes", "1")

    assert "…" not in out
    assert len(out.splitlines()) == 2 + 2 * 16 + 5


def test_encrypted_layouts_are_labelled(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--encryption", "client,client+internode", "--vpn", "kernel", "--draws", "2", "--processes", "1"]
    out, _ = ran(capsys, *arguments)
    plain, _ = ran(capsys, "--draws", "2", "--processes", "1")

    assert [line.split()[0] for line in out.splitlines()[2:6:2]] == ["client", "client+internode"]
    assert "a guess" in out
    assert "ncrypt" not in plain


def test_each_side_of_a_layout_is_swept(capsys: pytest.CaptureFixture[str]) -> None:
    sides = {
        "dcs": "2,3",
        "cass-nodes": "3,4",
        "rf": "2..3",
        "front-nodes": "1,2",
        "front-workers": "32,64",
        "consistency-read": "ONE,LOCAL_QUORUM",
        "consistency-write": "QUORUM,ALL",
        "rtt": "1ms..3ms:2ms",
        "proxy": "no,yes",
        "ldap": "yes,no",
        "data-factor": "1..1.5:0.5",
        "encryption": "client,client+internode",
        "vpn": "user,kernel",
    }
    for name, values in sides.items():
        column = "rtt_ms" if name == "rtt" else name.replace("-", "_")
        needed = ["--encryption", "internode"] if name == "vpn" else []
        out, _ = ran(capsys, f"--{name}", values, *needed, "--csv", "--draws", "2", "--processes", "1")
        rows = list(csv.DictReader(io.StringIO(out)))
        assert list(rows[0]) == list(COLUMNS)
        assert len({row[column] for row in rows}) == 2, name


def test_json_is_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(ran(capsys, *QUICK, "--json")[0])
    lines = list(csv.DictReader(io.StringIO(ran(capsys, *QUICK, "--csv")[0])))

    assert found["schema"] == "capplan.sweep/1"
    assert len(found["points"]) == len(lines) == 8
    for point, line in zip(found["points"], lines, strict=True):
        assert list(point) == list(COLUMNS)
        assert {
            name: "" if cell is None else str(cell) for name, cell in point.items() if not isinstance(cell, bool)
        } == {name: cell for name, cell in line.items() if not isinstance(point[name], bool)}


def test_files_and_plots_are_the_same_with_any_number_of_processes(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(face, "FEW_TASKS", dict.fromkeys(ENGINES, 1))
    for name, how in {"one": ["--processes", "1"], "two": ["--processes", "2"], "dask": ["--dask", "local"]}.items():
        files = ["--out", str(tmp_path / f"{name}.parquet")]
        out, err = ran(capsys, *QUICK, *files, *how)
        assert out == ""
        assert err == f"capplan: 8 points, 4 of them refused: {tmp_path / name}.parquet\n"
    one = (tmp_path / "one.parquet").read_bytes()

    assert one == (tmp_path / "two.parquet").read_bytes() == (tmp_path / "dask.parquet").read_bytes()


def test_simulated_points_are_the_same_bytes_with_any_number_of_processes(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    points = ("--dcs", "1", "--load", "40%,80%,130%", "--engine", "compiled", "--precision", "p99<9%")
    for count in ("1", "2"):
        ran(capsys, *points, "--out", str(tmp_path / f"{count}.csv"), "--processes", count)
    one = (tmp_path / "1.csv").read_bytes()

    assert one == (tmp_path / "2.csv").read_bytes()
    assert one.count(b"compiled") == 3


def test_a_precision_is_for_simulated_latencies(capsys: pytest.CaptureFixture[str]) -> None:
    assert "add --engine compiled" in refused(capsys, ["--precision", "p99<2%"])
    sentence = refused(capsys, ["--engine", "compiled", "--precision", "acc.p99<2%"])
    assert "'acc'" in sentence
    assert "did you mean 'acct'" in sentence


def test_a_second_call_computes_nothing_again(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "table.csv"
    ran(capsys, *QUICK, "--out", str(out))
    first = out.read_bytes()
    out.unlink()
    monkeypatch.setattr("capplan.planner.explore.sweep.analytic_rows", None)  # calling it would fail
    ran(capsys, *QUICK, "--out", str(out))

    assert out.read_bytes() == first


def test_an_interruption_leaves_what_is_finished(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, real, count = tmp_path / "table.csv", rows_of_task, 0
    whole = tmp_path / "whole.csv"
    ran(capsys, *QUICK, "--out", str(whole), "--processes", "1")

    def interrupted(task: object, replication: int) -> list[dict[str, object]]:
        nonlocal count
        count += 1
        if count > 1:
            raise KeyboardInterrupt
        return real(task, replication)  # type: ignore[arg-type]  # a task, whose type is the planner's affair

    monkeypatch.setattr("capplan.planner.explore.sweep.rows_of_task", interrupted)
    code = main(["sweep", *QUICK, "--out", str(out), "--processes", "1"])
    kept = list(csv.DictReader(io.StringIO(out.read_text(encoding="utf-8"))))
    said = capsys.readouterr().err
    monkeypatch.undo()
    ran(capsys, *QUICK, "--out", str(out), "--processes", "1")

    assert code == 130
    assert (
        said
        == f"capplan: interrupted after 6 of 8 points; they are in {out}, and the same command goes on from there\n"
    )
    assert [row["offered_tps"] != "" for row in kept if not row["refused"]] == [True, True]
    assert out.read_bytes() == whole.read_bytes()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
def test_kill_9_costs_only_what_was_not_finished(tmp_path: Path) -> None:
    arguments = ["--dcs", "1..5", "--load", "10%..100%:10%", "--processes", "1", "--draws", "5", "--out"]

    def call(out: str, last: int) -> int:
        """Sweep in a process that notes each layout it computes and kills itself instead of computing more."""
        program = [sys.executable, "-c", DYING, str(tmp_path / f"{out}.log"), str(last), "sweep", *arguments]
        return subprocess.run([*program, str(tmp_path / out)], timeout=120, check=False, capture_output=True).returncode

    assert call("whole.csv", 5) == 0
    assert call("killed.csv", 2) == -signal.SIGKILL
    assert not (tmp_path / "killed.csv").exists()
    assert call("killed.csv", 5) == 0
    assert (tmp_path / "killed.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    assert (tmp_path / "killed.csv.log").read_text() == "12345"


def test_the_plot_holds_lines_bands_and_capacities(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    page = tmp_path / "plot.html"
    ran(capsys, *QUICK, "--plot", str(page))
    text = page.read_text(encoding="utf-8")

    assert "<title>openprovider: sweep</title>" in text
    assert re.search(r"acct p99 \[ms\]", text)
    assert "offered peak rate" in text


def test_parquet_has_the_types_of_the_columns(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    ran(capsys, *QUICK, "--out", str(tmp_path / "table.parquet"))
    schema = pq.read_schema(tmp_path / "table.parquet")

    assert {name: str(schema.field(name).type) for name in ("dcs", "carries", "acct_p99_ms", "refused")} == {
        "dcs": "int64",
        "carries": "bool",
        "acct_p99_ms": "double",
        "refused": "string",
    }
