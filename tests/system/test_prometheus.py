"""Debian's Prometheus on loopback, with a history of two instances: histograms are merged, and broken ones refused."""

import json
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from capplan.cli.main import main
from capplan.errors import InputError
from capplan.evidence.import_files import import_files
from capplan.evidence.load_tests import LOAD_TESTS

pytestmark = pytest.mark.system

START = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=3)
RUN_S, STEP_S = 600, 15
BOUNDS = ("0.001", "0.01", "0.1", "+Inf")
PER_STEP = {"a": (30, 140, 149, 150), "b": (0, 15, 140, 150)}  # cumulative counts of 15 s, on two instances
MEAN_S = 0.025


def history() -> str:
    """Samples with their times: `api` is sound, `flat` has one count in every bucket, `uncounted` has no `_count`."""
    flat = (150, 150, 150, 150)
    lines: dict[str, list[str]] = {"api_seconds": [], "flat_seconds": [], "uncounted_seconds": []}
    for step in range(RUN_S // STEP_S + 1):
        time = int(START.timestamp()) + STEP_S * step
        for instance, counts in PER_STEP.items():
            for name, cumulative in zip(lines, (counts, flat, counts), strict=True):
                for bound, count in zip(BOUNDS, cumulative, strict=True):
                    label = f'{{instance="{instance}",le="{bound}"}}'
                    lines[name].append(f"{name}_bucket{label} {step * count} {time}")
                lines[name].append(f'{name}_sum{{instance="{instance}"}} {step * 150 * MEAN_S} {time}')
                if name != "uncounted_seconds":
                    lines[name].append(f'{name}_count{{instance="{instance}"}} {step * 150} {time}')
    text = "".join(f"# TYPE {name} histogram\n" + "\n".join(sorted(rows)) + "\n" for name, rows in lines.items())
    return f"{text}# EOF\n"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with that history."""
    folder = tmp_path_factory.mktemp("prometheus")
    tool, server = shutil.which("promtool"), shutil.which("prometheus")
    assert tool is not None, "the Debian package prometheus is missing"
    assert server is not None, "the Debian package prometheus is missing"
    (folder / "history.txt").write_text(history())
    (folder / "prometheus.yml").write_text("global: {}\n")
    data = str(folder / "data")
    made = [tool, "tsdb", "create-blocks-from", "openmetrics", str(folder / "history.txt"), data]
    subprocess.run(made, check=True, capture_output=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = [f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={data}"]
    options.append(f"--web.listen-address=127.0.0.1:{port}")
    with subprocess.Popen([server, *options], stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        assert any("Server is ready" in line for line in running.stderr)
        yield f"http://127.0.0.1:{port}"
        running.terminate()
        running.stderr.read()


def question(folder: Path, url: str, metric: str = "api_seconds", columns: str = "") -> Path:
    path = folder / "runs.toml"
    end = START + timedelta(seconds=RUN_S)
    path.write_text(
        f'[prometheus]\nurl = "{url}"\n[histogram]\nmetric = "{metric}"\nunit = "s"\n[columns]\n{columns}\n'
        f'[[runs]]\nstart = {START.isoformat()}\nend = {end.isoformat()}\nrun_id = "r20"\noffered_tps = 20\n'
    )
    return path


def test_a_run_has_the_merged_histogram_of_all_instances(url: str, tmp_path: Path) -> None:
    """Of 300 requests a step 155 take up to 10 ms: the median lies 120 of 125 into the bucket from 1 to 10 ms."""
    (row,) = LOAD_TESTS.rows(import_files([question(tmp_path, url)]).load_tests)

    assert (row.run_id, row.offered_tps, row.duration_s) == ("r20", 20, RUN_S)
    assert row.throughput_tps == pytest.approx(20, rel=0.03)  # extrapolated to the ends of the window
    assert row.latency_mean_ms == pytest.approx(25.0, rel=1e-6)
    assert row.latency_p50_ms == pytest.approx(1 + 9 * 120 / 125, rel=1e-6)
    assert row.latency_p95_ms == pytest.approx(10 + 90 * (285 - 155) / (289 - 155), rel=1e-6)


def test_the_highest_bucket_counts_where_no_counter_does(url: str, tmp_path: Path) -> None:
    (row,) = LOAD_TESTS.rows(import_files([question(tmp_path, url, "uncounted_seconds")]).load_tests)
    (same,) = LOAD_TESTS.rows(import_files([question(tmp_path, url)]).load_tests)

    assert (row.throughput_tps, row.latency_p95_ms) == (same.throughput_tps, same.latency_p95_ms)


def test_a_flat_histogram_is_refused_and_its_mean_kept(url: str, tmp_path: Path) -> None:
    found = import_files([question(tmp_path, url, "flat_seconds")])
    (row,) = LOAD_TESTS.rows(found.load_tests)

    assert "refused" in found.files[0].remarks[0]
    assert (row.latency_p50_ms, row.latency_p99_ms) == (None, None)
    assert row.latency_mean_ms == pytest.approx(25.0, rel=1e-6)


def test_other_columns_are_queries(url: str, tmp_path: Path) -> None:
    path = question(tmp_path, url, columns="errors = 'sum(increase(api_seconds_count[$run])) * 0'")
    (row,) = LOAD_TESTS.rows(import_files([path]).load_tests)

    assert row.errors == 0


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ("errors = 'sum('", "is refused by"),
        ("errors = 'api_seconds_count offset 2h'", "series: use sum"),
        ("eror = '1'", "did you mean 'errors'"),
    ],
)
def test_a_bad_query_is_refused_in_one_sentence(columns: str, sentence: str, url: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=sentence):
        import_files([question(tmp_path, url, columns=columns)])


def test_a_long_time_is_cut_into_intervals_and_some_are_left_out(url: str, tmp_path: Path) -> None:
    """The history ends after ten minutes, so the last two of six intervals of two and a half minutes have no requests.

    The counters grow for as long as it lasts, so a query that asks how far they are picks an interval.
    """
    path = question(tmp_path, url)
    end, later = (START + timedelta(seconds=each) for each in (RUN_S, 1.5 * RUN_S))
    early = "sum(api_seconds_count) < bool 40 * 151"
    cut = path.read_text().replace(f"end = {end.isoformat()}", f'end = {later.isoformat()}\nevery = "150s"')
    path.write_text(cut.replace("[[runs]]", f"[drop]\n\"too early\" = '{early}'\n[[runs]]"))
    found = import_files([path])
    rows = list(LOAD_TESTS.rows(found.load_tests))

    assert [row.duration_s for row in rows] == [150.0] * len(rows)
    assert all(row.throughput_tps == pytest.approx(20.0, rel=0.11) for row in rows)
    assert str(rows[0].run_id).startswith("r20 ")
    assert any("too early" in each and "no requests" in each for each in found.files[0].remarks)


def test_drift_asks_the_server(url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    band = {"value": 20.0, "low": 15.0, "high": 24.0}
    answer = {"schema": "capplan.prediction/5", "system": "api", "layout": "2 instances", "scenario": {}}
    claims = {"offered": {"peak_tps": 20}, "latency_ms": {"read": {"mean": band}}}
    path, asked = tmp_path / "answer.json", question(tmp_path, url)
    path.write_text(json.dumps(answer | claims))
    asked.write_text(asked.read_text() + 'request_class = "read"\n')

    assert main(["drift", str(path), str(asked)]) == 1
    assert re.search(r"WORSE +read\.mean", capsys.readouterr().out)
