"""Importers of formats that no sample is there for: files made of known requests, against numpy."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram

from capplan.errors import InputError
from capplan.evidence.import_files import import_files
from capplan.evidence.importers.mapped_table import read_mapping
from capplan.evidence.load_test_row import PERCENTILES, LoadTestRow
from capplan.evidence.load_tests import LOAD_TESTS

REQUESTS = np.random.default_rng(7).lognormal(1.0, 0.8, 20_000)  # latencies, ms


def only(path: Path) -> LoadTestRow:
    (row,) = LOAD_TESTS.rows(import_files([path]).load_tests)
    return row


def test_merged_intervals_have_the_percentiles_of_all_requests(tmp_path: Path) -> None:
    """Intervals of very different latency: an average of their percentiles would be far off."""
    slow = np.sort(REQUESTS)
    lines = ["#[Histogram log format version 1.3]", '"StartTimestamp","Interval_Length","Interval_Max","..."']
    for number, part in enumerate(np.array_split(slow, 20)):
        histogram = HdrHistogram(1, 10**10 if number % 2 else 10**11, 3)
        for value in part:
            histogram.record_value(round(value * 1e6))
        lines.append(f"{number}.0,1.0,0.0,{histogram.encode().decode()}")
    path = tmp_path / "run.hlog"
    path.write_text("\n".join(lines))
    row = only(path)

    expected = np.quantile(REQUESTS, list(PERCENTILES.values()), method="inverted_cdf")
    assert [getattr(row, name) for name in PERCENTILES] == pytest.approx(expected, rel=2e-3)
    assert row.latency_mean_ms == pytest.approx(REQUESTS.mean(), rel=2e-3)
    assert row.latency_max_ms == pytest.approx(REQUESTS.max(), rel=2e-3)
    assert (row.throughput_tps, row.duration_s) == (1000, 20)


def test_a_log_of_ycsb_counts_microseconds(tmp_path: Path) -> None:
    histogram = HdrHistogram(1, 10**9, 3)
    histogram.record_value(2000, 100)
    path = tmp_path / "READ.hdr"
    path.write_text(
        f"#[Logging for: READ]\n#[Histogram log format version 1.2]\n0,10,1,{histogram.encode().decode()}\n"
    )

    assert only(path).latency_p50_ms == pytest.approx(2.0, rel=1e-3)
    assert only(path).request_class == "read"


def test_jmeter_has_every_sample(tmp_path: Path) -> None:
    milliseconds = np.ceil(REQUESTS).astype(int)
    header = "timeStamp,elapsed,label,responseCode,responseMessage,threadName,success,allThreads"
    lines = []
    for place, value in enumerate(milliseconds):
        label, success = '"GET a"' if place % 4 else '"POST, b"', "true" if place % 100 else "false"
        lines.append(f"{1_700_000_000_000 + 5 * place},{value},{label},200,OK,t 1,{success},8")
    path = tmp_path / "run.jtl"
    path.write_text("\n".join([header, *lines]) + "\n")
    found = {row.request_class: row for row in LOAD_TESTS.rows(import_files([path]).load_tests)}

    assert found.keys() == {"all", "GET a", "POST, b"}
    expected = np.quantile(milliseconds, list(PERCENTILES.values()), method="inverted_cdf")
    assert [getattr(found["all"], name) for name in PERCENTILES] == list(expected)
    assert found["all"].latency_mean_ms == pytest.approx(milliseconds.mean())
    assert (found["all"].clients, found["all"].errors) == (8, 200)
    assert found["POST, b"].latency_max_ms == milliseconds[::4].max()
    duration_s = found["all"].duration_s
    assert duration_s == pytest.approx(100, abs=0.1)
    assert found["all"].throughput_tps == pytest.approx(len(milliseconds) / (duration_s or 0))


JMETER_TRANSACTIONS = """\
timeStamp,elapsed,label,responseCode,responseMessage,threadName,dataType,success,failureMessage,bytes,sentBytes,\
grpThreads,allThreads,URL,Latency,IdleTime,Connect
1000,10,GET /a,200,OK,TG 1-1,text,true,,1,1,2,2,http://x/a,9,0,1
1005,10,GET /a,200,OK,TG 1-2,text,true,,1,1,2,2,http://x/a,9,0,1
1010,30,GET /b,200,OK,TG 1-1,text,true,,1,1,2,2,http://x/b,9,0,1
1000,40,Checkout,200,MESSAGE,TG 1-1,,true,,2,2,2,2,null,18,0,2
1015,30,GET /b,200,OK,TG 1-2,text,true,,1,1,2,2,http://x/b,9,0,1
1005,40,Checkout,200,MESSAGE,TG 1-2,,true,,2,2,2,2,null,18,0,2
1050,40,Search,200,MESSAGE,TG 1-1,,true,,2,2,2,2,null,18,0,2
1060,40,Search,200,MESSAGE,TG 1-2,,true,,2,2,2,2,null,18,0,2
"""


def test_a_transaction_of_jmeter_is_no_request_beside_its_own(tmp_path: Path) -> None:
    """The samples of Search are not in the file: its controller generates a parent sample."""
    path = tmp_path / "run.jtl"
    message = '"Number of samples in transaction : 2, number of failing samples : 0"'
    path.write_text(JMETER_TRANSACTIONS.replace("MESSAGE", message))
    found = import_files([path])
    rows = {(row.run_id, row.request_class): row for row in LOAD_TESTS.rows(found.load_tests)}
    requests, transactions = rows["run", "all"], rows["run-transactions", "Checkout"]

    assert {name for run, name in rows if run == "run"} == {"all", "GET /a", "GET /b", "Search"}
    assert requests.throughput_tps == pytest.approx(6 / 0.1)
    assert requests.latency_mean_ms == pytest.approx((10 + 10 + 30 + 30 + 40 + 40) / 6)
    assert transactions.throughput_tps == pytest.approx(2 / 0.1)
    assert transactions.latency_mean_ms == 40
    assert "run-transactions" in found.files[0].remarks[0]


def test_jmeter_counts_a_run_that_only_fails(tmp_path: Path) -> None:
    path = tmp_path / "run.jtl"
    path.write_text("timeStamp,elapsed,label,success\n" + "".join(f"{5 * n},3,GET,false\n" for n in range(40)))

    assert only(path).errors == 40


def test_k6_has_every_point(tmp_path: Path) -> None:
    points = [{"type": "Metric", "data": {"type": "trend"}, "metric": "http_req_duration"}]
    for place, value in enumerate(REQUESTS[:2000]):
        time = f"2026-01-01T00:00:{place // 100:02d}.{place % 100:02d}1234567Z"
        data = {"time": time, "value": value, "tags": {"name": "http://a/", "status": "200"}}
        points.append({"type": "Point", "metric": "http_req_duration", "data": data})
        points.append({"type": "Point", "metric": "http_req_failed", "data": {"time": time, "value": int(place < 3)}})
    points.append({"type": "Point", "metric": "dropped_iterations", "data": {"time": time, "value": 17, "tags": None}})
    points.append({"type": "Point", "metric": "vus_max", "data": {"time": time, "value": 9, "tags": None}})
    path = tmp_path / "run.json"
    path.write_text("\n".join(json.dumps(point) for point in points))
    row = only(path)

    expected = np.quantile(REQUESTS[:2000], list(PERCENTILES.values()))  # k6 interpolates
    assert [getattr(row, name) for name in PERCENTILES] == pytest.approx(expected)
    assert (row.request_class, row.errors, row.drops, row.clients, row.load_kind) == ("http://a/", 3, 17, 9, "open")
    assert row.duration_s == pytest.approx(19.99)


def test_wrk2_counts_from_the_intended_start(tmp_path: Path) -> None:
    path = tmp_path / "run.txt"
    path.write_text(
        "Running 1m test @ http://a/\n  1 threads and 64 connections\n"
        "  Thread Stats   Avg      Stdev     Max   +/- Stdev\n    Latency     1.44ms  706.00us  12.92ms   68.59%\n"
        "  Latency Distribution (HdrHistogram - Recorded Latency)\n 50.000%    1.37ms\n 99.900%    5.72ms\n"
        "  Latency Distribution (HdrHistogram - Uncorrected Latency (without delayed starts))\n"
        " 50.000%    0.37ms\n 99.900%    0.72ms\n"
        "  119996 requests in 1.00m, 7.67MB read\n  Non-2xx or 3xx responses: 12\nRequests/sec:   1999.94\n"
    )
    row = only(path)

    assert (row.load_kind, row.latency_p50_ms, row.latency_p999_ms) == ("open", 1.37, 5.72)
    assert (row.latency_mean_ms, row.latency_max_ms, row.duration_s, row.errors) == (1.44, 12.92, 60, 12)


def test_wrk2_without_a_list_of_latencies_is_open_load_too(tmp_path: Path) -> None:
    path = tmp_path / "run.txt"
    path.write_text(
        "Running 30s test @ http://a/\n  2 threads and 100 connections\n"
        "  Thread calibration: mean lat.: 4588.131ms, rate sampling interval: 16277ms\n"
        "  Thread calibration: mean lat.: 4647.927ms, rate sampling interval: 16285ms\n"
        "  Thread Stats   Avg      Stdev     Max   +/- Stdev\n    Latency    16.49s     4.98s   27.34s    63.90%\n"
        "    Req/Sec   106.50      1.50   108.00    100.00%\n"
        "  6471 requests in 30.03s, 39.31MB read\n  Socket errors: connect 0, read 0, write 0, timeout 60\n"
        "Requests/sec:    215.51\nTransfer/sec:      1.31MB\n"
    )
    row = only(path)

    assert (row.load_kind, row.source, row.errors) == ("open", "run.txt: wrk2", 60)
    assert (row.latency_mean_ms, row.latency_max_ms, row.latency_p99_ms) == (16_490, 27_340, None)


@pytest.mark.parametrize(
    ("listed", "largest"),
    [
        ("  Latency Distribution (HdrHistogram - Recorded Latency)\n 99.000%    1.04ms\n100.000%    8.45ms\n", 8.45),
        ("", None),
    ],
)
def test_the_third_latency_of_a_fork_of_wrk2_is_no_maximum(listed: str, largest: float | None, tmp_path: Path) -> None:
    path = tmp_path / "run.txt"
    path.write_text(
        "Running 30s test @ http://a/\n  2 threads and 100 connections\n"
        "  Thread calibration: mean lat.: 0.489ms, rate sampling interval: 10ms\n"
        "  Thread Stats   Avg      Stdev     99%   +/- Stdev\n    Latency   482.58us  192.65us   1.04ms   74.72%\n"
        f"{listed}  58000 requests in 29.0s, 39.31MB read\nRequests/sec:   2000.00\n"
    )
    row = only(path)

    assert (row.latency_p99_ms, row.latency_max_ms) == (1.04, largest)


def test_gatling(tmp_path: Path) -> None:
    def total(value: float) -> dict[str, object]:
        return {"total": value, "ok": value, "ko": 0}

    names = ("minResponseTime", "maxResponseTime", "meanResponseTime", "standardDeviation")
    stats = {"name": "All", "numberOfRequests": {"total": 300, "ok": 297, "ko": 3}}
    stats |= {name: total(10.0 * place) for place, name in enumerate(names)}
    stats |= {f"percentiles{place}": total(5.0 * place) for place in range(1, 5)}
    path = tmp_path / "global_stats.json"
    path.write_text(json.dumps({**stats, "meanNumberOfRequestsPerSecond": total(30.0)}))
    row = only(path)

    assert (row.latency_p50_ms, row.latency_p75_ms, row.latency_p95_ms, row.latency_p99_ms) == (5, 10, 15, 20)
    assert (row.throughput_tps, row.duration_s, row.errors) == (30, 10, 3)


METRICS = """# HELP api_seconds Latency
# TYPE api_seconds histogram
api_seconds_bucket{op="read",le="0.001"} 10
api_seconds_bucket{op="read",le="0.01"} 90
api_seconds_bucket{op="read",le="0.1"} 100
api_seconds_bucket{op="read",le="+Inf"} 100
api_seconds_sum{op="read"} 0.7
api_seconds_count{op="read"} 100
# EOF
"""


def test_a_histogram_of_openmetrics_is_of_a_server(tmp_path: Path) -> None:
    """By linear interpolation: half of 100 lie 40 of 80 into the bucket from 1 to 10 ms."""
    path = tmp_path / "metrics.txt"
    path.write_text(METRICS)
    found = import_files([path])
    figures = found.microbenchmarks.set_index("statistic")["value"]

    assert len(found.load_tests) == 0
    assert figures["mean"] == pytest.approx(0.007)
    assert figures["p50"] == pytest.approx(0.001 + 0.009 * 40 / 80)
    assert figures["p95"] == pytest.approx(0.01 + 0.09 * 5 / 10)


def test_each_call_of_gcstats_is_an_interval(tmp_path: Path) -> None:
    header = (
        "Interval (ms) Max GC Elapsed (ms)Total GC Elapsed (ms)Stdev GC Elapsed (ms) GC Reclaimed (MB) Collections\n"
    )
    (tmp_path / "calls.txt").write_text(f"{header} 1000 30 40 10 9 2 7\n{header} 3000 50 80 10 9 2 7\n")
    (tmp_path / "one.json").write_text(
        '{"interval_ms": 3000.0, "max_gc_elapsed_ms": 50.0, "total_gc_elapsed_ms": 80.0, "stdev_gc_elapsed_ms": 10.0,'
        ' "collections": 2.0}'
    )
    figures = import_files([tmp_path]).microbenchmarks
    longest = figures[figures["statistic"] == "maximum"].set_index(["run_id", "conditions"])["value"]

    assert longest.to_dict() == {("calls", "in 1 s"): 0.03, ("calls", "in 3 s"): 0.05, ("one", "in 3 s"): 0.05}


def test_an_exemplar_is_no_label(tmp_path: Path) -> None:
    """OpenMetrics puts one behind the value of a bucket, and any label may have a brace in its value."""
    path = tmp_path / "metrics.txt"
    plain = METRICS.replace('op="read"', 'op="/{id}"')
    path.write_text(plain)
    expected = import_files([path]).microbenchmarks
    path.write_text(plain.replace("} 90\n", '} 90 # {trace_id="KOO5S4vxi0o"} 0.0067 1520879607.789\n'))

    assert set(expected["conditions"]) == {"op=/{id}"}
    assert import_files([path]).microbenchmarks.equals(expected)


@pytest.mark.parametrize(
    ("counts", "total", "reason"),
    [
        ((7, 14, 21, 28), 0.7, "the same count in every bucket"),
        ((0, 0, 100, 100), 0.0001, "a mean of 1e-06 outside"),
        ((100, 100, 100.00000001, 100.00000001), 5.0, "a mean of 0.05 outside"),  # a rounding is no observation
        ((10, 90, 80, 100), 0.7, "cumulative counts that fall"),
    ],
)
def test_a_broken_histogram_is_refused(counts: tuple[float, ...], total: float, reason: str, tmp_path: Path) -> None:
    text = METRICS
    for bound, old, new in zip(("0.001", "0.01", "0.1", "+Inf"), (10, 90, 100, 100), counts, strict=True):
        text = text.replace(f'le="{bound}"}} {old}', f'le="{bound}"}} {new}')
    text = text.replace('_count{op="read"} 100', f'_count{{op="read"}} {counts[-1]}').replace(" 0.7", f" {total}")
    path = tmp_path / "metrics.txt"
    path.write_text(text)
    other = tmp_path / "log.txt"
    other.write_text("[OVERALL], RunTime(ms), 1000\n[READ], Operations, 5\n")
    report = {Path(each.path).name: each for each in import_files([path, other]).files}["metrics.txt"]

    assert report.microbenchmarks == 0
    assert reason in report.remarks[0]


QUESTION = """[prometheus]
url = "http://127.0.0.1:9"
[histogram]
metric = "api_seconds"
unit = "s"
[[runs]]
start = 2026-01-01T00:00:00Z
end = 2026-01-01T00:10:00Z
"""


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("", "", "http://127.0.0.1:9 does not answer as Prometheus does"),
        ("http:", "file:", "it must be an address"),
        ("[histogram]", "[histograms]", "did you mean 'histogram'?"),
        ("api_seconds", "api seconds", "it must be the name of a histogram"),
        ('"s"', '"sec"', "unit is 'sec'"),
        ("[[runs]]", "[[run]]", "did you mean 'runs'?"),
        ("00:10:00Z", "00:00:00Z", "ends before it starts"),
        ("00:10:00Z", "00:10:00", "with a time zone"),
        ("00:10:00Z", '00:10:00Z\nevery = "1h"', "must be whole seconds that cut its time"),
        ("00:10:00Z", '00:10:00Z\nevery = "1us"', "must be whole seconds that cut its time"),
        ("00:10:00Z", '00:10:00Z\nevery = "4m"', "equal intervals"),
        ("[histogram]", "[drop]\na = 5\n[histogram]", "must be a table of queries"),
        ("00:10:00Z", '00:10:00Z\nevery = "soon"', "run 1: 'soon'"),
    ],
)
def test_a_wrong_question_to_prometheus_is_refused(old: str, new: str, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "runs.toml"
    path.write_text(QUESTION.replace(old, new, 1) if old else QUESTION)

    with pytest.raises(InputError) as refused:
        import_files([path])
    assert sentence in str(refused.value)
    assert str(path) in str(refused.value)


MAP = """[columns]
run_id = "test"
throughput_tps = "ops/s"
latency_p99_ms = { column = "p99", unit = "us" }
data_gib = { column = "MB", unit = "MB" }
clients = "threads"
[constants]
system = "orders"
cass_nodes = "6/6/3"
"""


def test_a_csv_of_any_origin_by_a_mapping(tmp_path: Path) -> None:
    (tmp_path / "map.toml").write_text(MAP)
    path = tmp_path / "results.csv"
    path.write_text('test,ops/s,p99,threads,MB,ignored\na,"1,500",2500,8,1073.741824,x\nb,,,16,,\n')
    found = import_files([path], read_mapping(tmp_path / "map.toml"))
    first, second = LOAD_TESTS.rows(found.load_tests)

    assert (first.run_id, first.throughput_tps, first.latency_p99_ms, first.clients) == ("a", 1500, 2.5, 8)
    assert first.data_gib == pytest.approx(1.0)
    assert (first.system, first.cass_nodes, second.throughput_tps) == ("orders", (6, 6, 3), None)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("throughput_tps", "throughput_tp", "did you mean 'throughput_tps'?"),
        ('"us"', '"usec"', "latency_p99_ms has the unit 'usec'"),
        ("[columns]", "[colums]", "table 'colums' is unknown; did you mean 'columns'?"),
        ('"ops/s"', '"op/s"', "has no column 'op/s', for throughput_tps; did you mean 'ops/s'?"),
        ('"6/6/3"', '"six"', "column 'cass_nodes' has 'six'"),
    ],
)
def test_a_wrong_mapping_is_refused(old: str, new: str, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "map.toml").write_text(MAP.replace(old, new))
    path = tmp_path / "results.csv"
    path.write_text("test,ops/s,p99,threads,MB\na,1500,2500,8,1\n")

    with pytest.raises(InputError) as refused:
        import_files([path], read_mapping(tmp_path / "map.toml"))
    assert sentence in str(refused.value)


def test_a_cell_that_is_no_number_is_refused_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "map.toml").write_text(MAP)
    path = tmp_path / "results.csv"
    path.write_text("test,ops/s,p99,threads,MB\na,1500,2500,8,1\nb,1500,2.5ms,8,1\n")

    with pytest.raises(InputError, match=r"line 3: '2\.5ms' must be a number"):
        import_files([path], read_mapping(tmp_path / "map.toml"))


def test_constants_fill_in_what_no_tool_knows_and_overwrite_nothing(tmp_path: Path) -> None:
    path = tmp_path / "run.txt"
    path.write_text("[OVERALL], RunTime(ms), 1000\n[READ], Operations, 5\n")
    (row,) = LOAD_TESTS.rows(import_files([path], constants={"cass_nodes": "3", "cache_state": "warm"}).load_tests)

    assert (row.cass_nodes, row.cache_state) == (3, "warm")
    with pytest.raises(InputError, match=r"read_fraction is 0\.5 by what was set, and 1\.0 in run"):
        import_files([path], constants={"read_fraction": "0.5"})
    with pytest.raises(InputError, match="did you mean 'cass_nodes'"):
        import_files([path], constants={"cas_nodes": "3"})


def test_runs_of_one_name_in_two_folders_are_two_runs(tmp_path: Path) -> None:
    for folder in ("monday", "friday"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "run.txt").write_text("[OVERALL], RunTime(ms), 1000\n[READ], Operations, 5\n")

    assert sorted(import_files([tmp_path]).load_tests["run_id"]) == ["friday/run", "monday/run"]


def test_a_table_is_imported_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    rows = [LoadTestRow(run_id="a", request_class="read", throughput_tps=3.0, source="by hand", note="cold")]
    LOAD_TESTS.write(LOAD_TESTS.frame(rows), path)

    assert list(LOAD_TESTS.rows(import_files([path]).load_tests)) == rows


def test_ycsb_without_its_command_line_says_nothing_of_the_clients(tmp_path: Path) -> None:
    path = tmp_path / "run.txt"
    path.write_text("[OVERALL], RunTime(ms), 1000\n[READ], Operations, 5\n[READ], Return=0, 3\n[READ], Return=-1, 2\n")
    row = only(path)

    assert (row.clients, row.load_kind, row.errors, row.throughput_tps) == (None, None, 2, 5)


def test_the_class_of_a_spreadsheet_may_be_a_constant(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("rate\n5\n")
    (tmp_path / "map.toml").write_text('[columns]\nthroughput_tps = "rate"\n[constants]\nrequest_class = "write"\n')
    (tmp_path / "plain.toml").write_text('[columns]\nthroughput_tps = "rate"\n')
    plain = read_mapping(tmp_path / "plain.toml")

    def classes(*arguments: Any) -> list[str]:
        return list(import_files([tmp_path / "a.csv"], *arguments).load_tests["request_class"])

    assert classes(read_mapping(tmp_path / "map.toml")) == ["write"]
    assert classes(plain, {"request_class": "read"}) == ["read"]
    assert classes(plain) == ["all"]
