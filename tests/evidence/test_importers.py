"""Importers: every sample of a real tool agrees with the tool's own summary, to its printed precision."""

import gc
import json
import weakref
from functools import cache
from pathlib import Path

import pytest

from capplan.evidence.import_files import Import, import_files
from capplan.evidence.importers.database_load_generators import decode
from capplan.evidence.load_test_row import LoadTestRow
from capplan.evidence.load_tests import LOAD_TESTS

SAMPLES = Path(__file__).parents[1] / "samples"


@pytest.fixture(scope="module")
def folder() -> Import:
    """All samples, imported with one command."""
    return import_files([SAMPLES])


def rows(found: Import) -> dict[tuple[str | None, str | None], LoadTestRow]:
    return {(row.run_id, row.request_class): row for row in LOAD_TESTS.rows(found.load_tests)}


@cache
def alone(name: str) -> dict[str | None, LoadTestRow]:
    """One file without those beside it, by class."""
    return {row.request_class: row for row in LOAD_TESTS.rows(import_files([SAMPLES / name]).load_tests)}


def test_one_command_takes_every_output_and_reports_the_rest(folder: Import) -> None:
    taken = {Path(each.path).name for each in folder.files if each.tool}

    assert {each.name for each in SAMPLES.iterdir()} - taken == {"README.md"}
    assert not [each for each in folder.files if each.tool and not each.load_tests + each.microbenchmarks]


@pytest.mark.parametrize(
    ("name", "request_class", "rate", "latencies", "errors"),
    [
        ("cstress-mixed-closed.txt", "all", 3942, (7.5, 5.3, 20.7, 36.1, 75.0, 96.2), 0),
        ("cstress-mixed-closed.txt", "read", 1964, (7.6, 5.3, 20.9, 37.6, 76.0, 94.6), 0),
        ("cstress-mixed-closed.txt", "write", 1978, (7.4, 5.2, 20.3, 34.9, 74.0, 96.2), 0),
        ("cstress-write-closed.txt", "write", 6192, (4.9, 2.4, 17.5, 30.6, 87.3, 453.8), 0),
        ("cstress-mixed-fixed1500.txt", "all", 1397, (56.5, 1.1, 330.8, 356.0, 377.2, 394.5), 0),
    ],
)
def test_cassandra_stress_on_the_console(
    name: str, request_class: str, rate: float, latencies: tuple[float, ...], errors: int
) -> None:
    row = alone(name)[request_class]

    found = (row.latency_mean_ms, row.latency_p50_ms, row.latency_p95_ms)
    assert (*found, row.latency_p99_ms, row.latency_p999_ms, row.latency_max_ms) == latencies
    assert (row.throughput_tps, row.errors) == (rate, errors)


def test_settings_of_cassandra_stress() -> None:
    row = alone("cstress-mixed-closed.txt")["all"]

    assert (row.load_kind, row.clients, row.row_bytes) == ("closed", 32, 500)
    assert (row.consistency_read, row.consistency_write, row.read_fraction) == ("ONE", "ONE", 0.5)
    assert row.duration_s == 12.9


@pytest.mark.parametrize(
    ("kind", "levels", "share"), [("write", (None, "ONE"), 0.0), ("read", ("ONE", None), 1.0)], ids=["writes", "reads"]
)
def test_only_what_a_run_of_cassandra_stress_did_has_a_level(
    kind: str, levels: tuple[str | None, str | None], share: float, tmp_path: Path
) -> None:
    text = (SAMPLES / "cstress-write-closed.txt").read_text("utf-8").replace("Type: write", f"Type: {kind}")
    (tmp_path / "stress.txt").write_text(text, "utf-8")
    (row,) = LOAD_TESTS.rows(import_files([tmp_path / "stress.txt"]).load_tests)

    assert ((row.consistency_read, row.consistency_write), row.read_fraction) == (levels, share)
    assert row.rf == (1 if kind == "write" else None)  # reads find a keyspace, whatever the default of the option says


def test_names_of_queries_say_not_whether_they_read(tmp_path: Path) -> None:
    text = (SAMPLES / "cstress-mixed-closed.txt").read_text("utf-8").replace("Type: mixed", "Type: user")
    (tmp_path / "user.txt").write_text(text.replace("{READ=1.0, WRITE=1.0}", "{insert=1.0, simple1=9.0}"), "utf-8")
    for row in LOAD_TESTS.rows(import_files([tmp_path / "user.txt"]).load_tests):
        assert (row.read_fraction, row.consistency_read, row.consistency_write, row.rf) == (None, None, None, None)


def test_a_rate_on_the_console_of_cassandra_stress_may_be_open_or_throttled() -> None:
    row = alone("cstress-mixed-fixed1500.txt")["all"]

    assert (row.load_kind, row.offered_tps) == (None, 1500)


def test_results_of_cassandra_stress_without_their_settings(tmp_path: Path) -> None:
    """As people paste them: what the settings say stays open, and the time is in whole seconds."""
    text = (SAMPLES / "cstress-mixed-closed.txt").read_text()
    (tmp_path / "pasted.txt").write_text(text[text.index("Results:") :])
    row = next(LOAD_TESTS.rows(import_files([tmp_path / "pasted.txt"]).load_tests))

    assert (row.throughput_tps, row.duration_s, row.clients, row.load_kind) == (3942, 12, None, None)


def test_each_number_of_threads_of_cassandra_stress_is_a_run(tmp_path: Path) -> None:
    text = (SAMPLES / "cstress-write-closed.txt").read_text()
    settings, run = text[: text.index("Running ")], text[text.index("Running ") : text.index("END")]
    other = run.replace("with 32 threads", "with 64 threads").replace("6,192 op/s", "7,001 op/s")
    (tmp_path / "auto.txt").write_text(f"{settings.replace('Thread Count: 32', 'Thread Count: -')}{run}{other}END\n")
    rows = LOAD_TESTS.rows(import_files([tmp_path / "auto.txt"]).load_tests)

    assert [(row.run_id, row.clients, row.throughput_tps) for row in rows] == [
        ("auto-32-threads", 32, 6192),
        ("auto-64-threads", 64, 7001),
    ]


def test_the_histograms_of_cassandra_stress_agree_with_its_console() -> None:
    """Response times of all intervals, merged; the console prints one decimal, and a histogram is exact to 0.1 %."""
    printed, merged = alone("cstress-mixed-fixed1500.txt"), alone("cstress-mixed-fixed1500.hdr")
    columns = ("latency_mean_ms", "latency_p50_ms", "latency_p95_ms", "latency_p99_ms", "latency_max_ms")

    assert printed.keys() == merged.keys() == {"all", "read", "write"}
    for name, row in merged.items():
        for column in columns:
            value = getattr(printed[name], column)
            assert getattr(row, column) == pytest.approx(value, abs=0.0501 + 1e-3 * value), (name, column)
        assert row.throughput_tps == pytest.approx(printed[name].throughput_tps, abs=1)
        assert row.load_kind == "open"


def test_the_files_of_one_run_complement_each_other(folder: Import) -> None:
    row = rows(folder)["cstress-mixed-fixed1500", "all"]

    assert (row.load_kind, row.offered_tps, row.clients) == ("open", 1500, 64)
    assert row.latency_p99_ms == alone("cstress-mixed-fixed1500.hdr")["all"].latency_p99_ms
    assert row.source is not None
    assert {"cstress-mixed-fixed1500.hdr", "cstress-mixed-fixed1500.txt"} <= {
        each.partition(":")[0] for each in row.source.split("; ")
    }


def test_latte_as_json_agrees_with_what_it_printed() -> None:
    report, names = alone("latte-mixed-r3000.json"), ("p50", "p75", "p90", "p95", "p99", "p999", "max")
    printed = {
        "read": (1.929, 5.132, 12.722, 27.296, 82.706, 156.631, 207.618),
        "write": (1.802, 4.944, 12.329, 25.821, 74.056, 151.126, 160.039),
    }

    assert report.keys() == {"all", *printed}
    for name, values in printed.items():
        assert [getattr(report[name], f"latency_{each}_ms") for each in names] == pytest.approx(values, abs=5.1e-4)
    assert report["all"].throughput_tps == pytest.approx(2890, abs=0.5)
    assert report["all"].latency_mean_ms == pytest.approx(6.094, abs=5e-4)
    assert (report["all"].clients, report["all"].offered_tps, report["all"].errors) == (256, 3000, 0)
    assert report["all"].consistency_read == "LOCAL_QUORUM"
    assert report["all"].client_cpu_percent == pytest.approx(7.6, abs=0.05)


def test_an_interval_log_agrees_with_the_report_of_the_same_run() -> None:
    merged, report = alone("latte-mixed-r3000.hlog")["all"], alone("latte-mixed-r3000.json")["all"]

    for name in ("mean", "p50", "p95", "p99", "p999", "max"):
        column = f"latency_{name}_ms"
        assert getattr(merged, column) == pytest.approx(getattr(report, column), rel=2e-3), column


def test_a_queue_that_grows_while_latte_runs_is_noticed_in_whole_intervals(tmp_path: Path) -> None:
    report = json.loads((SAMPLES / "latte-mixed-r3000.json").read_text())
    for place, each in enumerate(report["result"]["log"]):
        each["mean_queue_len"] = 60.0 + 20 * place
    each.update(duration_s=0.3, mean_queue_len=1.0)  # the last interval is partial
    path = tmp_path / "report.json"
    path.write_text(json.dumps(report))
    (imported,) = import_files([path]).files

    assert "the queue grew from 80 to 200 requests during the run" in imported.remarks


def test_classes_of_latte_come_from_its_histograms() -> None:
    report = json.loads((SAMPLES / "latte-mixed-r3000.json").read_text())
    found = alone("latte-mixed-r3000.json")

    total = sum((found[name].throughput_tps or 0) for name in ("read", "write"))
    assert total == pytest.approx(report["result"]["cycle_count"] / report["result"]["elapsed_time_s"])


def test_ghz() -> None:
    row = alone("ghz-rps500.json")["say"]

    assert (row.load_kind, row.clients, row.offered_tps, row.errors) == ("open", 32, 500, 2)
    assert row.latency_mean_ms == pytest.approx(0.279485)
    assert (row.latency_p95_ms, row.latency_p99_ms, row.latency_max_ms) == pytest.approx((0.354609, 0.615749, 4.797049))
    assert row.throughput_tps == pytest.approx(499.748496)


def test_ycsb() -> None:
    found = alone("ycsb-mongodb-run.txt")

    assert found.keys() == {"all", "read", "insert"}
    assert found["read"].latency_mean_ms == pytest.approx(1.442589770952346)
    assert (found["read"].latency_p95_ms, found["read"].latency_p99_ms) == (4.123, 12.663)
    assert found["insert"].latency_max_ms == 1655.807
    assert found["all"].throughput_tps == pytest.approx(12478.400889752567)
    parts = [(found[name].throughput_tps or 0.0, found[name].latency_mean_ms or 0.0) for name in ("read", "insert")]
    assert found["all"].latency_mean_ms == pytest.approx(sum(n * mean for n, mean in parts) / sum(n for n, _ in parts))
    assert found["all"].latency_max_ms == 1655.807
    assert found["all"].latency_p99_ms is None  # cannot be had from percentiles of the classes
    assert (found["all"].clients, found["all"].load_kind, found["all"].offered_tps) == (50, "throttled", 25000)
    assert found["all"].row_bytes == 10 * 50


def test_an_overflowed_rate_of_ycsb_is_computed_again() -> None:
    good, overflowed = (alone(name)["all"] for name in ("ycsb-mongodb-run.txt", "ycsb-overflowed-throughput.txt"))

    assert overflowed.throughput_tps == good.throughput_tps
    assert overflowed.note
    assert good.note is None


YCSB_F = """Command line: -db site.ycsb.db.CassandraCQLClient -target 1000 -P workloads/workloadf -t
[OVERALL], RunTime(ms), 100000
[OVERALL], Throughput(ops/sec), 1000.0
[READ], Operations, 100000
[READ], AverageLatency(us), 800
[READ-MODIFY-WRITE], Operations, 50000
[READ-MODIFY-WRITE], AverageLatency(us), 1200
[UPDATE], Operations, 50000
[UPDATE], AverageLatency(us), 500
"""


def read_from(text: str, path: Path) -> tuple[dict[str | None, LoadTestRow], tuple[str, ...]]:
    """Return the rows of a text by class, and the remarks."""
    path.write_text(text, "utf-8")
    found = import_files([path])
    return {row.request_class: row for row in LOAD_TESTS.rows(found.load_tests)}, found.files[0].remarks


def test_a_read_and_an_update_that_ycsb_times_together_count_once(tmp_path: Path) -> None:
    rows, remarks = read_from(YCSB_F, tmp_path / "f.txt")

    assert rows.keys() == {"all", "read", "update"}
    assert (rows["all"].throughput_tps, rows["all"].offered_tps, rows["all"].latency_mean_ms) == (1500, 1500, 0.7)
    assert len(remarks) == 1
    assert "READ-MODIFY-WRITE is left out" in remarks[0]


@pytest.mark.parametrize(
    ("option", "clients"), [("-P w", None), ("-P w -p threadcount=64", 64), ("-threads 8 -P w", 8), ("-p a=b", 1)]
)
def test_threads_of_ycsb_are_one_only_where_no_file_may_say_more(
    option: str, clients: int | None, tmp_path: Path
) -> None:
    rows, _ = read_from(YCSB_F.replace("-P workloads/workloadf", option), tmp_path / "y.txt")
    assert rows["all"].clients == clients


def test_a_rate_of_ycsb_with_its_failures_is_not_wrong(tmp_path: Path) -> None:
    failing = "[OVERALL], RunTime(ms), 100000\n[OVERALL], Throughput(ops/sec), 1000.0\n[READ], Operations, 90000\n"
    rows, remarks = read_from(f"{failing}[READ-FAILED], Operations, 10000\n", tmp_path / "failed.txt")
    assert (rows["read"].throughput_tps, rows["read"].errors, remarks) == (900, 10_000, ())


WRK2 = """Running 30s test @ http://node0:8080
  2 threads and 100 connections
  Thread calibration: mean lat.: 0.489ms, rate sampling interval: 10ms
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   482.58us  192.65us   1.04ms   74.72%
  58000 requests in 29.0s, 39.31MB read
Requests/sec:   2000.00
"""


def test_what_calibrates_its_threads_is_wrk2(tmp_path: Path) -> None:
    rows, _ = read_from(WRK2, tmp_path / "w.txt")
    assert (rows["all"].load_kind, rows["all"].latency_max_ms, rows["all"].latency_p99_ms) == ("open", 1.04, None)


def test_a_column_of_the_99th_percentile_is_no_maximum(tmp_path: Path) -> None:
    listed = "  Latency Distribution (HdrHistogram - Recorded Latency)\n 50.000%  460.00us\n100.000%    8.45ms\n"
    text = WRK2.replace("  Max  ", "  99%  ").replace("  58000", f"{listed}  58000")
    rows, _ = read_from(text, tmp_path / "w.txt")
    assert (rows["all"].latency_p99_ms, rows["all"].latency_max_ms) == (1.04, 8.45)


def test_wrk() -> None:
    row = alone("wrk-closed.txt")["all"]

    assert (row.load_kind, row.errors) == ("closed", 0)
    assert row.throughput_tps is not None
    assert row.latency_p99_ms is not None


def test_jmeter_agrees_with_its_summary() -> None:
    """It printed: summary = 480 in 00:00:03 = 145.0/s Avg: 26 Min: 10 Max: 51 Err: 0 (0.00%)."""
    found = alone("jmeter-closed.jtl")

    assert found.keys() == {"all", "read, by key", "write"}
    assert found["all"].throughput_tps == pytest.approx(145.0 * 3.310 / 3.240, rel=4e-4)  # it counts 70 ms more
    assert int(found["all"].latency_mean_ms or 0) == 26
    assert (found["all"].latency_max_ms, found["all"].errors, found["all"].clients) == (51, 0, 4)


def test_transactions_of_jmeter_are_no_further_requests(tmp_path: Path) -> None:
    lines = ["timeStamp,elapsed,label,responseMessage,success"]
    for start in (1000, 1040):
        lines += [f"{start},10,GET /a,OK,true", f"{start + 10},30,GET /b,OK,true"]
        lines += [f'{start},40,Checkout,"Number of samples in transaction : 2, number of failing samples : 0",true']
    rows, remarks = read_from("\n".join(lines), tmp_path / "t.jtl")

    assert (rows["all"].throughput_tps, rows["all"].latency_mean_ms) == (50, 20)
    assert rows["Checkout"].latency_mean_ms == 40
    assert "2 samples are transactions" in remarks[0]


def test_the_points_of_k6_agree_with_its_summary() -> None:
    (points,) = alone("k6-overloaded-points.json").values()
    names = ("mean", "p50", "p75", "p90", "p95", "p99", "max")
    summary = (73.042309, 75.857853, 77.423056, 77.689117, 78.396703, 79.231197, 79.439820)

    assert [getattr(points, f"latency_{each}_ms") for each in names] == pytest.approx(summary, abs=1e-6)
    assert (points.drops, points.errors, points.clients, points.load_kind) == (48, 0, 1, "open")


def test_what_a_server_counts_is_no_load_test(folder: Import) -> None:
    figures = folder.microbenchmarks
    proxy = figures[figures["run_id"] == "nodetool-proxyhistograms"].set_index(["operation", "statistic"])["value"]
    table = figures[figures["run_id"] == "nodetool-tablehistograms"].set_index(["operation", "quantity", "statistic"])

    assert not folder.load_tests["run_id"].str.startswith("nodetool").any()
    assert (proxy["read", "p99"], proxy["write", "p95"]) == pytest.approx((4768e-6, 372e-6))
    assert table.loc[("write", "latency", "p99"), "value"] == pytest.approx(24e-6)
    stored = figures[figures["run_id"] == "nodetool-tablestats"].set_index("quantity")
    assert (stored["value"]["live data"], stored["value"]["partition size"]) == (46_012_344, 535)
    reads = stored[stored["operation"] == "read"].loc["latency"]
    assert (reads["value"], reads["samples"]) == (pytest.approx(106e-6), 445_604)
    text, report = (
        figures[figures["source"] == f"nodetool-tpstats.{ending}: nodetool tpstats"]
        .set_index(["operation", "quantity"])["value"]
        .sort_index()
        for ending in ("txt", "json")
    )
    assert text.equals(report)
    assert text["ReadStage", "completed"] == 60491
    facts = figures[figures["run_id"] == "nodetool-info"].set_index("quantity")["value"]
    assert (facts["data"], facts["uptime"]) == (pytest.approx(106.24 * 2**20), 431)
    pauses = figures[figures["run_id"] == "nodetool-gcstats"].set_index("statistic")["value"]
    assert (figures[figures["run_id"] == "nodetool-gcstats"]["conditions"] == "in 422.471 s").all()
    assert pauses["maximum"] == 0.430
    assert pauses["mean"] == pytest.approx(6.714 / 151)


def test_columns_of_a_node_are_read_by_their_names(tmp_path: Path) -> None:
    """Cassandra 3 prints them in another order than 5."""
    (tmp_path / "th.txt").write_text(
        "ks/t histograms\n"
        "Percentile  SSTables     Write Latency      Read Latency    Partition Size        Cell Count\n"
        "                              (micros)          (micros)           (bytes)\n"
        "50%             1.00             20.50             61.21               258                 5\n"
    )
    found = import_files([tmp_path / "th.txt"]).microbenchmarks
    values = {(row.operation, row.quantity): row.value for row in found.itertuples()}
    assert values["read", "latency"] == pytest.approx(61.21e-6)
    assert values["write", "latency"] == pytest.approx(20.5e-6)
    assert [row.value for row in found.itertuples() if row.quantity == "sstables"] == [1.0]


def test_an_exemplar_is_no_part_of_its_sample(tmp_path: Path) -> None:
    buckets = ('le="0.1"} 98', 'le="1"} 100', 'le="+Inf"} 100')
    lines = ["# TYPE foo_seconds histogram", *(f"foo_seconds_bucket{{{each}" for each in buckets)]
    lines += ["foo_seconds_sum 5", "foo_seconds_count 100"]
    exemplar = ' # {trace_id="KOO"} 0.067'
    percentiles = []
    for name, text in (("plain", lines), ("marked", [lines[0], lines[1] + exemplar, *lines[2:]])):
        (tmp_path / f"{name}.txt").write_text("\n".join(text))
        percentiles.append(import_files([tmp_path / f"{name}.txt"]).microbenchmarks["value"].tolist())
    assert percentiles[0] == percentiles[1]


def test_a_decoded_histogram_is_freed_at_once() -> None:
    """A log has thousands of histograms of 200 KB each: kept for the garbage collector, 100 MB took 2.5 GB."""
    lines = (SAMPLES / "latte-mixed-r3000.hlog").read_text().splitlines()
    histogram = decode(next(line for line in lines if "HISTFAAA" in line).rpartition(",")[2], "line 1")
    gc.disable()
    try:
        kept = weakref.ref(histogram)
        del histogram
        assert kept() is None
    finally:
        gc.enable()
