"""Importers: every sample of a real tool agrees with the tool's own summary, to its printed precision."""

import gc
import json
import weakref
from functools import cache
from pathlib import Path

import pytest

from capplan.evidence.import_files import Import, import_files
from capplan.evidence.importers.hdr_log import decode
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

    assert (row.load_kind, row.clients, row.rf, row.row_bytes) == ("closed", 32, None, 500)
    assert (row.consistency_read, row.consistency_write, row.read_fraction) == ("ONE", "ONE", 0.5)
    assert row.duration_s == 12.9


@pytest.mark.parametrize(
    ("kind", "levels", "share", "rf"),
    [("write", (None, "ONE"), 0.0, 1), ("read", ("ONE", None), 1.0, None)],
    ids=["writes", "reads"],
)
def test_only_what_a_run_of_cassandra_stress_did_has_a_level_and_an_rf(
    kind: str, levels: tuple[str | None, str | None], share: float, rf: int | None, tmp_path: Path
) -> None:
    """Only writes create the keyspace; other runs print an RF that nothing has."""
    text = (SAMPLES / "cstress-write-closed.txt").read_text("utf-8").replace("Type: write", f"Type: {kind}")
    (tmp_path / "stress.txt").write_text(text, "utf-8")
    (row,) = LOAD_TESTS.rows(import_files([tmp_path / "stress.txt"]).load_tests)

    assert ((row.consistency_read, row.consistency_write), row.read_fraction) == (levels, share)
    assert row.rf == rf


def test_the_rf_of_a_run_of_cassandra_stress_that_creates_no_keyspace_may_be_given() -> None:
    given = import_files([SAMPLES / "cstress-mixed-closed.txt"], constants={"rf": "3"})

    assert {row.rf for row in LOAD_TESTS.rows(given.load_tests)} == {3}


def test_queries_of_a_profile_of_cassandra_stress_may_read_or_write(tmp_path: Path) -> None:
    text = (SAMPLES / "cstress-mixed-closed.txt").read_text().replace("Type: mixed", "Type: user")
    text = text.replace("{READ=1.0, WRITE=1.0}", "{insert=1.0, simple1=9.0}")
    (tmp_path / "user.txt").write_text(text.replace("READ", "simple1").replace("WRITE", "insert"))
    rows = {row.request_class: row for row in LOAD_TESTS.rows(import_files([tmp_path / "user.txt"]).load_tests)}

    assert rows.keys() == {"all", "simple1", "insert"}
    assert (rows["all"].read_fraction, rows["all"].row_bytes, rows["all"].rf) == (None, None, None)
    assert (rows["all"].consistency_read, rows["all"].consistency_write) == ("ONE", "ONE")


def test_a_rate_on_the_console_of_cassandra_stress_may_be_open_or_throttled() -> None:
    row = alone("cstress-mixed-fixed1500.txt")["all"]

    assert (row.load_kind, row.offered_tps) == (None, 1500)


def test_results_of_cassandra_stress_without_their_settings(tmp_path: Path) -> None:
    """As people paste them: what the settings say stays open, and the time is in whole seconds."""
    text = (SAMPLES / "cstress-mixed-closed.txt").read_text()
    (tmp_path / "pasted.txt").write_text(text[text.index("Results:") :])
    row = next(LOAD_TESTS.rows(import_files([tmp_path / "pasted.txt"]).load_tests))

    assert (row.throughput_tps, row.duration_s, row.clients, row.load_kind) == (3942, 12, None, None)


def test_results_of_cassandra_stress_3(tmp_path: Path) -> None:
    """Its names are in lower case, and units stand in brackets."""
    (tmp_path / "old.txt").write_text(
        "op rate                   : 11443 [WRITE:11443]\nlatency mean              : 4.9 [WRITE:4.9]\n"
        "total gc count            : 30\ntotal gc time (s)         : 2\navg gc time(ms)           : 60\n"
        "Total operation time      : 00:00:30\n"
    )
    (row,) = LOAD_TESTS.rows(import_files([tmp_path / "old.txt"]).load_tests)

    assert (row.request_class, row.throughput_tps, row.latency_mean_ms) == ("write", 11443, 4.9)
    assert row.note == "30 GC pauses, 2 s in all"


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


# what YCSB 0.17 prints of its workload F
YCSB_F = """\
Command line: -db site.ycsb.db.CassandraCQLClient -target 70000 -threads 840 -P workloads/workloadf -t
[OVERALL], RunTime(ms), 2863606
[OVERALL], Throughput(ops/sec), 69842.01038830062
[READ], Operations, 200000000
[READ], AverageLatency(us), 752.76909722
[READ], Return=OK, 200000000
[READ-MODIFY-WRITE], Operations, 100005807
[READ-MODIFY-WRITE], AverageLatency(us), 1239.7325867686864
[CLEANUP], Operations, 840
[UPDATE], Operations, 100005807
[UPDATE], AverageLatency(us), 484.8831648946146
[UPDATE], Return=OK, 100005807
"""


def ycsb(text: str, folder: Path) -> tuple[dict[str | None, LoadTestRow], tuple[str, ...]]:
    """Return the rows by class of a text of YCSB, and the remarks."""
    (folder / "ycsb.txt").write_text(text)
    found = import_files([folder / "ycsb.txt"])
    return {row.request_class: row for row in LOAD_TESTS.rows(found.load_tests)}, found.files[0].remarks


def test_a_read_modify_write_of_ycsb_is_a_read_and_an_update(tmp_path: Path) -> None:
    """YCSB counts it once, so that its rate and the target are those of fewer operations than requests."""
    found, remarks = ycsb(YCSB_F, tmp_path)

    assert found.keys() == {"all", "read", "update"}
    assert found["all"].throughput_tps == pytest.approx(300_005_807 / 2863.606)
    assert found["all"].read_fraction == pytest.approx(2 / 3, rel=1e-4)
    assert found["all"].offered_tps == pytest.approx(70_000 * 300_005_807 / 200_000_000)
    assert (found["all"].clients, found["all"].note) == (840, None)
    assert len(remarks) == 1
    assert "READ-MODIFY-WRITE is left out" in remarks[0]


@pytest.mark.parametrize(("printed", "wrong"), [(1000, False), (900, False), (1100, True), (800, True)])
def test_the_rate_of_ycsb_may_count_operations_that_failed(printed: int, wrong: bool, tmp_path: Path) -> None:
    text = (
        f"[OVERALL], RunTime(ms), 100000\n[OVERALL], Throughput(ops/sec), {printed}.0\n[READ], Operations, 90000\n"
        "[READ], Return=OK, 90000\n[READ], Return=ERROR, 10000\n[READ-FAILED], Operations, 10000\n"
    )
    found, remarks = ycsb(text, tmp_path)

    assert (found["read"].throughput_tps, found["read"].errors) == (900, 10_000)
    assert bool(remarks) == bool(found["read"].note) == wrong


@pytest.mark.parametrize(
    ("options", "clients"),
    [("-threads 8", 8), ("-p threadcount=64", 64), ("-P workloads/workloada", None), ("-p fieldcount=10", 1)],
)
def test_the_threads_of_ycsb_are_an_option_or_a_property(options: str, clients: int | None, tmp_path: Path) -> None:
    text = f"Command line: -db site.ycsb.BasicDB {options} -t\n[OVERALL], RunTime(ms), 1000\n[READ], Operations, 5\n"

    assert ycsb(text, tmp_path)[0]["read"].clients == clients


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


TABLE_OF_CASSANDRA_3 = """\
ks1/standard1 histograms
Percentile  SSTables     Write Latency      Read Latency    Partition Size        Cell Count
                              (micros)          (micros)           (bytes)
50%             1.00             20.50             61.21               258                 5
99%             4.00            105.78            454.83               258                 5
Max             5.00         315852.24         129557.75               258                 5

"""
PROXY_OF_CASSANDRA_2 = """\
proxy histograms
Percentile      Read Latency     Write Latency     Range Latency
                    (micros)          (micros)          (micros)
50%                   454.83            379.02              0.00
99%                  1955.67            785.94              0.00

"""


def test_the_header_of_nodetool_says_which_column_is_which(tmp_path: Path) -> None:
    """Versions before 4.0 and Scylla print the columns of a table in another order."""
    (tmp_path / "table.txt").write_text(TABLE_OF_CASSANDRA_3)
    (tmp_path / "proxy.txt").write_text(PROXY_OF_CASSANDRA_2)
    figures = import_files([tmp_path]).microbenchmarks.fillna({"operation": ""})
    values = figures.set_index(["run_id", "operation", "quantity", "statistic"])["value"]

    assert values["table", "read", "latency", "p50"] == pytest.approx(61.21e-6)
    assert values["table", "write", "latency", "maximum"] == pytest.approx(0.31585224)
    assert values["table", "", "sstables", "p50"] == 1
    assert (values["table", "partition", "size", "p99"], values["table", "cell", "count", "p99"]) == (258, 5)
    assert values["proxy", "write", "latency", "p99"] == pytest.approx(785.94e-6)


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
