"""`capplan evidence import`, `audit`, `plot` and `schema` for users' own load tests."""

import json
from pathlib import Path

import jsonschema
import pandas as pd
import pytest

from capplan.cli.main import main
from capplan.evidence.audit.audit import Audit
from capplan.evidence.import_files import ImportReport
from capplan.evidence.load_tests import LOAD_TESTS

SAMPLES = Path(__file__).parents[1] / "samples"
CLOSED, THROTTLED = SAMPLES / "cstress-mixed-closed.txt", SAMPLES / "ycsb-mongodb-run.txt"


@pytest.fixture(autouse=True)
def _eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main([str(each) for each in arguments])
    out, err = capsys.readouterr()
    return code, out, err


def test_a_folder_becomes_one_table_with_a_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "table.csv"
    code, out, err = run(capsys, "evidence", "import", SAMPLES, "-o", table, "--set", "node_cores=2,cache_state=warm")

    assert (code, err) == (0, "")
    assert max(map(len, out.replace(str(tmp_path), "").splitlines())) <= 80
    assert all(path.name in out for path in SAMPLES.iterdir())
    found = LOAD_TESTS.read(table)
    assert set(found["node_cores"]) == {2.0}
    assert set(found["cache_state"]) == {"warm"}
    assert {path.name for path in tmp_path.iterdir()} == {"table.csv", "table.microbench.csv"}


def test_the_report_for_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "table.parquet"
    code, out, _ = run(capsys, "evidence", "import", CLOSED, "-o", table, "--json")
    report = json.loads(out)

    assert code == 0
    assert (report["load_tests"], report["microbenchmarks"]) == (str(table), None)
    jsonschema.validate(report, ImportReport.json_schema())
    assert report["files"][0]["load_tests"] == 3
    assert len(pd.read_parquet(table)) == 3


def test_without_a_file_the_table_is_data_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "evidence", "import", CLOSED)

    assert code == 0
    assert out.splitlines()[0].startswith("run_id,repeat,system")
    assert len(out.splitlines()) == 4
    assert "cassandra-stress" in err


@pytest.mark.parametrize(("file", "code"), [(CLOSED, 0), (THROTTLED, 1)])
def test_the_audit_exits_with_1_if_something_must_not_be_believed(
    file: Path, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "table.csv"
    run(capsys, "evidence", "import", file, "-o", table)

    for arguments in ((), ("--json",), ("--csv",)):
        found, out, err = run(capsys, "evidence", "audit", table, *arguments)
        assert (found, err) == (code, "")
        assert max(map(len, out.splitlines())) <= 80 or arguments
    report = json.loads(run(capsys, "evidence", "audit", table, "--json")[1])
    jsonschema.validate(report, Audit.json_schema())
    assert [row["believed"] for row in report["rows"]] == [code == 0] * 3


def test_documents_and_files_become_one_table_with_one_audit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "table.csv"
    code, out, _ = run(capsys, "evidence", "import", "rhino-shcm", CLOSED, "-o", table)

    assert code == 0
    assert "documents" in out
    assert len(LOAD_TESTS.read(table)) == 7 + 3
    assert run(capsys, "evidence", "audit", table)[0] == 0
    code, out, _ = run(capsys, "evidence", "audit", "rhino-shcm")
    assert code == 1
    assert "7 rows of 7 runs" in out
    assert "Register of contradictions" in out


def test_the_plot_of_one_series(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, picture = tmp_path / "table.csv", tmp_path / "plot.html"
    rows = "".join(f"r{each},closed,{each},{100 * each},{each}.0,all\n" for each in (1, 2))
    table.write_text(f"run_id,load_kind,clients,throughput_tps,latency_mean_ms,request_class\n{rows}")
    assert run(capsys, "evidence", "plot", table, "--plot", picture)[0] == 0
    assert "r2" in picture.read_text()


def test_the_plot_has_a_line_for_each_class(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, picture = tmp_path / "table.csv", tmp_path / "plot.html"
    run(capsys, "evidence", "import", SAMPLES / "cstress-mixed-fixed1500.hdr", CLOSED, "-o", table)
    code, out, _ = run(capsys, "evidence", "plot", table, "--plot", picture)

    assert (code, out) == (0, f"{picture}\n")
    assert "read, open" in picture.read_text()
    assert run(capsys, "evidence", "plot", table, "--plot", picture, "--statistic", "p999")[0] == 0


def test_a_csv_is_taken_by_its_names_if_the_user_agrees(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own, table = tmp_path / "own.csv", tmp_path / "table.csv"
    own.write_text("nodes,threads,ops,mean,p99\n3,8,1000,2,9\n")
    refused, _, err = run(capsys, "evidence", "import", own, "-o", table)
    agreed, out, _ = run(capsys, "evidence", "import", own, "-o", table, "--yes", "--unit", "us")
    by_name = LOAD_TESTS.read(table)
    paired, _, _ = run(
        capsys, "evidence", "import", own, "-o", table, "--map", "nodes=cass_nodes,mean=latency_mean_ms:us"
    )

    assert (refused, agreed, paired) == (2, 0, 0)
    assert "nodes=cass_nodes,threads=clients" in err
    assert "nodes=cass_nodes" in out
    assert (by_name["latency_mean_ms"][0], by_name["latency_p99_ms"][0], by_name["clients"][0]) == (0.002, 0.009, 8)
    assert LOAD_TESTS.read(table)["latency_mean_ms"][0] == 0.002


def test_the_unit_of_a_histogram_is_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, table = tmp_path / "a.hgrm", tmp_path / "table.csv"
    path.write_text("Value Percentile TotalCount 1/(1-Percentile)\n1400.0 0.5 50 2.0\n1500.0 1.0 100 inf\n")

    assert run(capsys, "evidence", "import", path, "-o", table)[0] == 2
    assert run(capsys, "evidence", "import", path, "-o", table, "--unit", "us")[0] == 0
    assert LOAD_TESTS.read(table)["latency_p50_ms"][0] == 1.4
