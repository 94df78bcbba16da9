"""Files of web tools, histograms and spreadsheets as users have them: several runs, times, units, separators, names."""

import base64
import gc
import struct
import tracemalloc
import zlib
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram

from capplan.errors import InputError
from capplan.evidence.import_files import import_files
from capplan.evidence.importers import jmeter
from capplan.evidence.importers.mapped_table import ColumnMap, parse_mapping, read_mapping
from capplan.evidence.load_test_row import LoadTestRow
from capplan.evidence.load_tests import LOAD_TESTS

FIELD, CORPUS = Path(__file__).parent / "field", Path(__file__).parents[1] / "fuzz" / "corpus"


def imported(path: Path, mapping: ColumnMap | None = None) -> tuple[list[LoadTestRow], str]:
    """Return the rows of a file, and its remarks."""
    found = import_files([path], mapping)
    return list(LOAD_TESTS.rows(found.load_tests)), "\n".join(found.files[0].remarks)


def written(folder: Path, text: str, name: str = "run.txt") -> Path:
    path = folder / name
    path.write_text(text, "utf-8")
    return path


def refusal(path: Path, mapping: ColumnMap | None = None) -> str:
    with pytest.raises(InputError) as error:
        import_files([path], mapping)
    return str(error.value)


# ---- wrk


def test_each_run_of_wrk_in_a_file_is_a_run() -> None:
    (few, many), _ = imported(FIELD / "wrk-several-runs-one-file.txt")

    assert (few.clients, few.throughput_tps, few.errors) == (8, 32_000, 0)
    assert (few.latency_mean_ms, few.latency_p99_ms, few.latency_max_ms) == (0.25, 0.6, 5)
    assert (many.clients, many.throughput_tps, many.errors) == (256, 80_000, 12)
    assert (many.latency_mean_ms, many.latency_p99_ms, many.latency_max_ms) == (3.2, 9.0, 45)
    assert few.run_id != many.run_id


def test_a_run_of_wrk_that_was_interrupted_before_another_is_named(tmp_path: Path) -> None:
    text = (FIELD / "wrk-several-runs-one-file.txt").read_text()

    assert "from line 5 on ends before" in refusal(written(tmp_path, text.replace("Requests/sec:  32000.00\n", "")))


def test_a_run_of_wrk_without_a_request_has_no_latency(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "Running 10s test @ http://a/\n  2 threads and 10 connections\n"
        "  Thread Stats   Avg      Stdev     Max   +/- Stdev\n    Latency     0.00us    0.00us   0.00us    -nan%\n"
        "    Req/Sec     0.00      0.00     0.00      -nan%\n  0 requests in 10.00s, 0.00B read\n"
        "  Socket errors: connect 10, read 0, write 0, timeout 0\nRequests/sec:      0.00\nTransfer/sec:       0.00B\n",
    )
    ((row,), _) = imported(path)

    assert (row.throughput_tps, row.latency_mean_ms, row.latency_max_ms, row.errors) == (0, None, None, 10)


def test_wrk2_is_known_by_a_run_that_is_too_short_to_calibrate(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "Running 10s test @ http://a/\n  2 threads and 10 connections\n"
        "  Thread Stats   Avg      Stdev     Max   +/- Stdev\n    Latency     2.00ms    1.00ms   9.00ms   90.00%\n"
        "    Req/Sec       -nan      -nan   0.00      0.00%\n  5000 requests in 10.00s, 1.00MB read\n"
        "Requests/sec:    500.00\nTransfer/sec:    100.00KB\n",
    )
    ((row,), _) = imported(path)

    assert (row.load_kind, row.throughput_tps, row.latency_mean_ms) == ("open", 500, 2)


def test_the_maximum_of_wrk2_is_that_of_its_percentiles(tmp_path: Path) -> None:
    """Its table has the exact one, and its histogram rounds up: a maximum below a percentile cannot be believed."""
    path = written(
        tmp_path,
        "Running 30s test @ http://a/\n  2 threads and 10 connections\n  Thread calibration: mean lat.: 2.000ms\n"
        "  Thread Stats   Avg      Stdev     Max   +/- Stdev\n    Latency     2.00ms    1.00ms   9.00ms   90.00%\n"
        "  Latency Distribution (HdrHistogram - Recorded Latency)\n 50.000%    1.90ms\n 99.900%    9.01ms\n"
        "100.000%    9.01ms\n  5000 requests in 30.00s, 1.00MB read\nRequests/sec:    500.00\n",
    )
    ((row,), _) = imported(path)

    assert (row.latency_p999_ms, row.latency_max_ms) == (9.01, 9.01)


# ---- JMeter


HEADER = "timeStamp,elapsed,label,responseCode,responseMessage,threadName,success,allThreads\n"


def jtl(*samples: tuple[float, int, str, int], header: str = HEADER) -> str:
    """Return a JTL of starts in s, latencies in ms, codes and threads."""
    lines = (
        f"{1_795_000_000_000 + round(1000 * start)},{ms},a,{code},m,T 1-1,{str(code == '200').lower()},{threads}"
        for start, ms, code, threads in samples
    )
    return header + "\n".join(lines) + "\n"


def test_a_jtl_may_have_any_separator(tmp_path: Path) -> None:
    pipes = (FIELD / "jtl-pipes.jtl").read_text()
    for separator in "|;\t:":
        text = pipes.replace("|", separator)
        ((row,), _) = imported(written(tmp_path, text, "run.jtl"))

        assert (row.latency_mean_ms, row.errors, row.request_class) == (46, 1, "/speakers/")
        assert row.throughput_tps == pytest.approx(3 / 2.056)


def test_a_jtl_may_be_xml() -> None:
    ((row,), _) = imported(FIELD / "jtl-xml.jtl")

    assert (row.latency_mean_ms, row.latency_max_ms, row.clients, row.errors) == (902.5, 1004, 5, 0)
    assert row.duration_s == pytest.approx(1.004)


def test_a_sample_of_xml_contains_its_parts(tmp_path: Path) -> None:
    text = (FIELD / "jtl-xml.jtl").read_text()
    part = '<httpSample t="1" ts="1685791090172" s="true" lb="part" rc="200"/><java.net.URL>http://a</java.net.URL>'
    nested = text.replace('na="5"/>', f'na="5">{part}</httpSample>')

    assert imported(written(tmp_path, nested, "jtl-xml.jtl"))[0] == imported(FIELD / "jtl-xml.jtl")[0]


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("</testResults>", "", "line 6: the XML ends"),
        ("</testResults>", "</testResults>\n<testResults></testResults>", "line 6: a second document begins"),
        (' t="801"', "", "attribute 't' (elapsed) is missing in sample 1"),
        (' t="801"', ' t="8s"', "elapsed has '8s' in sample 1"),
    ],
)
def test_damaged_xml_is_refused(old: str, new: str, sentence: str, tmp_path: Path) -> None:
    text = (FIELD / "jtl-xml.jtl").read_text().replace(old, new)

    assert sentence in refusal(written(tmp_path, text, "run.jtl"))


def test_a_jtl_without_a_header_has_the_default_columns() -> None:
    ((row,), remarks) = imported(CORPUS / "unnamed.jtl")

    assert (row.latency_mean_ms, row.errors, row.clients, row.request_class) == (20, 1, 4, "read")
    assert "no header" in remarks


def test_a_header_in_a_jtl_begins_another_run(tmp_path: Path) -> None:
    first = jtl(*((second, 10, "200", 8) for second in range(10)))
    second = jtl(*((100 + 2 * place, 30, "200", 4) for place in range(10)))
    (one, two), remarks = imported(written(tmp_path, first + second, "run.jtl"))

    assert [(each.run_id, each.clients, each.latency_mean_ms) for each in (one, two)] == [
        ("run-1", 8, 10),
        ("run-2", 4, 30),
    ]
    assert (one.duration_s, two.duration_s) == pytest.approx((9.01, 18.03))
    assert "line 12" in remarks


def test_threads_that_start_again_are_a_second_run(tmp_path: Path) -> None:
    """JMeter appends to a file that is there, without a header."""
    run = [(0.1 * place, 10, "200", min(1 + place, 8)) for place in range(100)]
    later = [(60 + start, ms, code, threads) for start, ms, code, threads in run]

    assert "line 102: after a time without requests" in refusal(written(tmp_path, jtl(*run, *later), "run.jtl"))


@pytest.mark.parametrize("most", [8, 16])
def test_a_short_time_between_two_runs_of_a_loop_is_enough(most: int, tmp_path: Path) -> None:
    """Threads end one after the other, and the next run has fewer, as many or more of them."""
    first = [(0.02 * place, 10, "200", min(8, 1000 - place)) for place in range(1000)]
    second = [(22 + 0.02 * place, 10, "200", most) for place in range(1000)]

    assert "line 1002: after a time without requests" in refusal(written(tmp_path, jtl(*first, *second), "run.jtl"))


def test_a_gap_of_hours_that_is_most_of_the_time_is_between_two_runs(tmp_path: Path) -> None:
    """The second run has more threads from its first line on: lines are in the order of ends."""
    first = [(0.1 * place, 10, "200", 8) for place in range(100)]
    second = [(90_000 + start, 20, "200", 16) for start, *_ in first]

    assert "line 102: after a time without requests" in refusal(written(tmp_path, jtl(*first, *second), "run.jtl"))


NESTED = """\
timeStamp,elapsed,label,responseCode,responseMessage,threadName,success,allThreads,IdleTime
1000,100,Cart,200,"Number of samples in transaction : 2, number of failing samples : 0",T 1-1,true,2,50
1000,30,GET /a,200,OK,T 1-1,true,2,0
1010,40,GET /b,200,OK,T 1-2,true,2,0
1080,70,GET /b,200,OK,T 1-1,true,2,0
1149,60,Cart,200,"Number of samples in transaction : 1, number of failing samples : 0",T 1-1,true,2,0
1149,60,GET /a,200,OK,T 1-1,true,2,0
1050,50,GET /b,302,Found,T 1-2,true,2,0
1050,20,GET /b-0,302,Found,T 1-2,true,2,0
1070,30,GET /b-1,200,OK,T 1-2,true,2,0
1100,10,GET /b-1,200,OK,T 1-3,true,2,0
1110,10,GET /b-1-2,200,OK,T 1-3,true,2,0
"""


@pytest.mark.parametrize("block_bytes", [2**20, 200])
def test_the_parts_of_a_sample_are_no_requests_beside_it(
    block_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parts stand behind their parent: redirects with its name and a number, or the samples of a transaction.

    What begins when another sample ends is no part of it, whatever its name.
    """
    monkeypatch.setattr(jmeter, "_BLOCK_BYTES", block_bytes)
    rows, remarks = imported(written(tmp_path, NESTED, "run.jtl"))
    found = {row.request_class: row for row in rows}

    assert found.keys() == {"all", "Cart", "GET /b", "GET /b-1", "GET /b-1-2"}
    assert found["all"].throughput_tps == pytest.approx(6 / 0.209)
    assert found["all"].latency_mean_ms == (100 + 60 + 40 + 50 + 10 + 10) / 6
    assert (found["GET /b"].latency_mean_ms, found["GET /b-1"].latency_max_ms) == (45, 10)
    assert "5 samples are parts" in remarks


def test_few_threads_around_a_time_without_requests_may_be_chance(tmp_path: Path) -> None:
    """An open load of one request in a second or two: threads come and go."""
    gaps = np.random.default_rng(5).exponential(1.5, 600)
    samples = [(start, 100, "200", 1 + place % 3) for place, start in enumerate(gaps.cumsum())]

    assert len(imported(written(tmp_path, jtl(*samples), "run.jtl"))[0]) == 1


def test_a_time_without_requests_is_named(tmp_path: Path) -> None:
    samples = [(0.1 * place + 60 * (place > 49), 10, "200", 8) for place in range(100)]
    ((row,), remarks) = imported(written(tmp_path, jtl(*samples), "run.jtl"))

    assert row.duration_s == pytest.approx(69.91)
    assert "60.1 s before line 52" in remarks


def test_lines_that_are_not_in_the_order_of_time_are_named(tmp_path: Path) -> None:
    samples = [(0.1 * place, 10, "200", 8) for place in range(100)]
    ((row,), remarks) = imported(written(tmp_path, jtl(*samples[50:], *samples[:50]), "run.jtl"))
    ((sorted_row,), nothing) = imported(written(tmp_path, jtl(*samples), "run.jtl"))

    assert row == sorted_row
    assert "line 52 is 9.9 s earlier" in remarks
    assert not nothing


def test_a_long_request_leaves_no_gap(tmp_path: Path) -> None:
    """A server that stands still has requests under way."""
    samples = [(0.1 * place + 10 * (place > 49), 10, "200", 8) for place in range(100)]
    samples[49] = (4.9, 10_200, "200", 8)

    assert "nothing was under way" not in imported(written(tmp_path, jtl(*samples), "run.jtl"))[1]


def test_what_was_answered_is_answered(tmp_path: Path) -> None:
    refused = "Non HTTP response code: java.net.ConnectException"
    samples = [(0, 10, "200", 2), (1, 20, "404", 2), (2, 1, refused, 2), (3, 30, "200", 2)]
    text = jtl(*samples) + "1795000004000,40,a,404,m,T 1-1,true,2\n"  # the test plan expects it
    ((row,), _) = imported(written(tmp_path, text, "run.jtl"))

    assert (row.latency_mean_ms, row.latency_p50_ms, row.errors) == (25, 20, 2)
    assert row.throughput_tps == pytest.approx(4 / 4.04)
    assert row.note
    assert "counted as failed: 1 with 404" in row.note
    assert "counted as good: 1 with 404" in row.note
    assert "not answered, and in neither rate nor latency: 1" in row.note


def test_a_jtl_without_an_answer_is_refused(tmp_path: Path) -> None:
    samples = [(0.1 * place, 1, "Non HTTP response code: java.net.ConnectException", 2) for place in range(5)]

    assert "no request of the run was answered" in refusal(written(tmp_path, jtl(*samples), "run.jtl"))


def test_the_times_of_a_jtl_may_be_written_out(tmp_path: Path) -> None:
    text = "timeStamp,elapsed,label,success\n2026/11/22 10:00:00.500,10,a,true\n2026/11/22 10:00:10.250,250,a,true\n"

    assert imported(written(tmp_path, text, "run.jtl"))[0][0].duration_s == pytest.approx(10)
    assert "timeStamp has '11.22.26'" in refusal(written(tmp_path, text.replace("2026/11/22 10:00:10.250", "11.22.26")))


def test_too_many_labels_become_one_class(tmp_path: Path) -> None:
    lines = "".join(f"{1000 * place},{place},/{place},true\n" for place in range(60))
    ((row,), remarks) = imported(written(tmp_path, f"timeStamp,elapsed,label,success\n{lines}", "run.jtl"))

    assert (row.request_class, row.latency_mean_ms, row.latency_max_ms) == ("all", 29.5, 59)
    assert "labels are too many" in remarks


def test_samples_that_are_counted_are_freed_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command collects garbage rarely: 340 MB of samples took 1.7 GB."""
    path = written(tmp_path, jtl(*((0.001 * place, place % 90, "200", 8) for place in range(30_000))), "run.jtl")
    monkeypatch.setattr(jmeter, "_BLOCK_BYTES", 2**15)
    import_files([path])  # what is imported once stays
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        import_files([path])
        assert tracemalloc.get_traced_memory()[1] < 2 * 2**20
    finally:
        tracemalloc.stop()
        gc.enable()


# ---- k6


def k6_point(time: str, value: float = 10.0, **tags: str) -> str:
    listed = ",".join(f'"{name}":"{each}"' for name, each in tags.items())
    data = f'{{"time":"{time}","value":{value},"tags":{{{listed}}}}}'
    return f'{{"metric":"http_req_duration","type":"Point","data":{data}}}\n'


K6_METRIC = '{"type":"Metric","data":{"name":"http_req_duration"},"metric":"http_req_duration"}\n'


def test_the_end_of_summer_time_is_no_step_of_time() -> None:
    ((row,), _) = imported(FIELD / "k6-clock-change.json")

    assert (row.duration_s, row.throughput_tps) == pytest.approx((20, 0.2))
    assert row.latency_mean_ms == 58.75


@pytest.mark.parametrize(
    ("first", "last"),
    [
        ("2026-01-01T00:00:45Z", "2026-01-01T00:00:45.5Z"),
        ("2026-01-01T01:00:45.25+01:00", "2026-01-01T00:00:45.750000001Z"),
        ("2026-01-01T00:00:45.123456789Z", "2025-12-31T18:30:45.623456789-05:30"),
    ],
)
def test_times_of_any_zone_and_fraction_are_compared_as_times(first: str, last: str, tmp_path: Path) -> None:
    for times in ((first, last), (last, first)):
        ((row,), _) = imported(written(tmp_path, K6_METRIC + "".join(map(k6_point, times)), "run.json"))
        assert row.duration_s == pytest.approx(0.5)


def test_each_description_of_a_metric_begins_a_run_of_k6(tmp_path: Path) -> None:
    runs = [
        K6_METRIC + "".join(k6_point(f"2026-01-01T00:0{run}:{s:02d}Z", 10.0 + run) for s in range(30)) for run in (1, 5)
    ]
    (one, two), remarks = imported(written(tmp_path, "".join(runs), "run.json"))

    assert [(each.duration_s, each.latency_mean_ms) for each in (one, two)] == [(29, 11), (29, 15)]
    assert "line 32" in remarks


def test_k6_tells_what_was_answered(tmp_path: Path) -> None:
    points = [
        k6_point("2026-01-01T00:00:01Z", 10, status="200", expected_response="true"),
        k6_point("2026-01-01T00:00:02Z", 20, status="404", expected_response="true"),
        k6_point("2026-01-01T00:00:03Z", 30, status="500", expected_response="false"),
        k6_point("2026-01-01T00:00:05Z", 0, status="0", expected_response="false"),
    ]
    ((row,), _) = imported(written(tmp_path, K6_METRIC + "".join(points), "run.json"))

    assert (row.latency_mean_ms, row.errors, row.throughput_tps) == (20, 2, 0.75)
    assert row.note == (
        "answered, in rate and latency, and counted as failed: 1 with 500; answered, in rate and latency, and counted "
        "as good: 1 with 404; not answered, and in neither rate nor latency: 1"
    )


def test_k6_as_csv(tmp_path: Path) -> None:
    (every, get, post), remarks = imported(CORPUS / "k6.csv")

    assert (every.request_class, every.duration_s, every.latency_mean_ms) == ("all", 4, 20)
    assert (every.throughput_tps, every.errors, every.clients) == (0.75, 2, 3)
    assert (get.request_class, get.latency_max_ms, get.errors) == ("http://a/x", 17.5, 1)
    assert (post.request_class, post.latency_mean_ms, post.errors) == ("http://a/y,z", 30, 1)
    assert "whole seconds" in remarks
    text = (CORPUS / "k6.csv").read_text()
    assert len(imported(written(tmp_path, text + text, "two.csv"))[0]) == 6
    assert "line 3 has 3 cells" in refusal(written(tmp_path, "\n".join([*text.splitlines()[:2], "vus,5,1"]), "cut.csv"))


@pytest.mark.parametrize("text", ["1795360500500", "1795360500500000", "1795360500500000000", "2026-11-22T15:15:00.5Z"])
def test_times_of_k6_as_csv_have_any_unit(text: str, tmp_path: Path) -> None:
    lines = ["metric_name,timestamp,metric_value", f"http_req_duration,{text},5", "http_req_duration,1795360510,5"]

    assert imported(written(tmp_path, "\n".join(lines), "k6.csv"))[0][0].duration_s == pytest.approx(9.5)


# ---- Locust


def test_the_statistics_of_locust() -> None:
    every, get, post = imported(CORPUS / "orders_stats.csv")[0]

    assert (every.run_id, every.request_class, every.throughput_tps, every.errors) == ("orders", "all", 40, 9)
    assert (every.latency_mean_ms, every.latency_p50_ms, every.latency_p999_ms, every.latency_max_ms) == (
        32.25,
        25,
        700,
        900,
    )
    assert (get.request_class, get.duration_s, get.latency_p99_ms) == ("GET /orders", 30, 120)
    assert (post.request_class, post.errors, post.note) == ("POST /orders", 0, None)


def test_the_history_of_locust_has_the_time_and_the_users() -> None:
    """Before and after the run its total stands still."""
    ((row,), _) = imported(CORPUS / "orders_stats_history.csv")

    assert (row.run_id, row.duration_s, row.throughput_tps, row.clients) == ("orders", 30, 40, 16)
    assert (row.latency_mean_ms, row.latency_p50_ms, row.latency_p99_ms, row.errors) == (32.25, 25, None, 9)


def test_both_files_of_locust_are_one_run() -> None:
    found = import_files(sorted(CORPUS.glob("orders_stats*.csv")))
    rows = {row.request_class: row for row in LOAD_TESTS.rows(found.load_tests)}

    assert rows.keys() == {"all", "GET /orders", "POST /orders"}
    assert (rows["all"].clients, rows["all"].latency_p99_ms) == (16, 180)


def test_two_runs_of_locust_in_a_file_are_refused(tmp_path: Path) -> None:
    stats, history = ((CORPUS / f"orders_stats{each}.csv").read_text() for each in ("", "_history"))

    assert "line 5: a second run begins" in refusal(written(tmp_path, stats + stats, "a.csv"))
    assert "line 8: a second run begins" in refusal(written(tmp_path, history + history, "b.csv"))
    appended = history + history.partition("\n")[2]
    assert "line 8: the time or the total goes back" in refusal(written(tmp_path, appended, "c.csv"))


def test_no_percentile_of_locust_is_above_its_maximum(tmp_path: Path) -> None:
    """Locust rounds percentiles to two digits, up or down."""
    text = (
        "Type,Name,Request Count,Failure Count,Median Response Time,Average Response Time,Min Response Time,"
        "Max Response Time,Requests/s,50%,99%,99.9%\n,Aggregated,100,0,180,200.0,10.0,489.4,10.0,180,470,490\n"
    )
    ((row,), _) = imported(written(tmp_path, text, "a_stats.csv"))

    assert (row.latency_p50_ms, row.latency_p99_ms, row.latency_p999_ms, row.latency_max_ms) == (180, 470, 489.4, 489.4)


def history(*lines: tuple[int, int, int, int]) -> str:
    """Return a history of times, users, requests in all, and the longest of the last ones in ms."""
    header = "Timestamp,User Count,Type,Name,Requests/s,100%,Total Request Count,Total Average Response Time\n"
    return header + "".join(f"{time},{users},,Aggregated,1.0,{ms},{total},5.0\n" for time, users, total, ms in lines)


def test_locust_may_count_again_when_all_users_are_there(tmp_path: Path) -> None:
    before = [(100 + second, 2 * second, 30 * second, 50) for second in range(6)]
    after = [(106 + second, 10, 8 + 20 * second, 50) for second in range(11)]
    ((row,), remarks) = imported(written(tmp_path, history(*before, *after), "a_stats_history.csv"))

    assert (row.duration_s, row.throughput_tps, row.clients) == (10, 20, 10)
    assert "line 8: Locust begins to count again" in remarks


def test_long_requests_of_locust_are_under_way(tmp_path: Path) -> None:
    """A history has the ends of requests only: those of 20 s begin before the first one has ended."""
    lines = [(100 + second, 4, 4 * (second // 20), 20_000 if second >= 20 else 0) for second in range(70)]
    ((row,), remarks) = imported(written(tmp_path, history(*lines), "a_stats_history.csv"))

    assert (row.duration_s, row.throughput_tps) == (60, 12 / 60)
    assert not remarks


# ---- HdrHistogram logs


def histogram(values: Iterable[float], highest: int = 10**11) -> HdrHistogram:
    found = HdrHistogram(1, highest, 3)
    for value in values:
        found.record_value(round(value))
    return found


def log(*intervals: tuple[str, float, str, HdrHistogram], about: str = "") -> str:
    """Return a log of tags, starts, longest latencies as they are shown, and histograms of a second."""
    lines = [f"Tag={tag},{start:.3f},1.000,{most},{each.encode().decode()}" for tag, start, most, each in intervals]
    return "\n".join([about, "#[Histogram log format version 1.3]", *lines, ""])


def test_raw_and_corrected_latencies_of_scylla_bench_are_one_class() -> None:
    ((row,), remarks) = imported(FIELD / "hdr-scylla-bench-raw-and-fixed.hlog")

    assert (row.request_class, row.duration_s, row.throughput_tps) == ("all", 2, 1000)
    assert row.latency_max_ms == pytest.approx(4.002, rel=1e-3)
    assert "'raw' is left out: it has the same requests as 'co-fixed'" in remarks


def test_the_stages_of_a_request_are_no_classes(tmp_path: Path) -> None:
    timers = {
        "cycles.servicetime": 2e6,
        "cycles.responsetime": 5e6,
        "cycles.waittime": 3e6,
        "bind": 1e4,
        "result": 1.9e6,
    }
    intervals = [(f"main.{name}", 0, "0", histogram([value] * 100)) for name, value in timers.items()]
    ((row,), remarks) = imported(written(tmp_path, log(*intervals, about="#[histograms for session a]"), "nb.hlog"))

    assert (row.request_class, row.throughput_tps) == ("main", 100)
    assert row.latency_mean_ms == pytest.approx(5, rel=1e-3)
    assert remarks.count("is left out") == 4


def test_reads_and_writes_of_scylla_bench_are_classes(tmp_path: Path) -> None:
    tags = [f"{kind}{end}" for kind in ("raw", "co-fixed") for end in ("", "-read", "-write")]
    intervals = [(tag, 0, "0", histogram([3e6] * (50 if tag.count("-") > tag.count("co-") else 100))) for tag in tags]
    rows, _ = imported(written(tmp_path, log(*intervals, about="#[latencies in ns]"), "sb.hlog"))

    assert [(row.request_class, row.throughput_tps) for row in rows] == [("all", 100), ("read", 50), ("write", 50)]


def test_classes_that_may_be_the_same_requests_are_named(tmp_path: Path) -> None:
    same = [("a", 0, "0", histogram([3e6] * 100)), ("b", 0, "0", histogram([4e6] * 100))]
    other = [("a", 0, "0", histogram([3e6] * 100)), ("b", 0, "0", histogram([4e6] * 90))]

    for intervals, named in ((same, True), (other, False)):
        rows, remarks = imported(written(tmp_path, log(*intervals, about="#[latencies in ns]"), "a.hlog"))
        assert len(rows) == 2
        assert ("count the same" in remarks) == named


def test_encoding_v1() -> None:
    """As HdrHistogram 2.1.4 writes it, which YCSB 0.17.0 has; its unit is not stated, and only one is possible."""
    ((row,), remarks) = imported(FIELD / "hdr-log-v1-of-hdrhistogram-2.1.4.hlog")

    assert (row.throughput_tps, row.duration_s) == (1000, 1)
    assert (row.latency_p50_ms, row.latency_max_ms) == pytest.approx((5.0, 10.0), rel=2e-3)
    assert "taken for us" in remarks


@pytest.mark.parametrize("word", [2, 4, 8])
@pytest.mark.parametrize("version", [0, 1])
def test_old_encodings_have_what_the_new_one_has(version: int, word: int, tmp_path: Path) -> None:
    made = histogram(np.random.default_rng(3).lognormal(15, 0.5, 2000))
    counts = np.frombuffer(made.counts, np.int64)
    payload = counts[: np.flatnonzero(counts)[-1] + 1].astype(f">u{word}").tobytes()
    bits = (word | 1) << 4
    header = (
        struct.pack(">iiqqq", 0x1C849308 | bits, 3, 1, 10**11, 2000)
        if version == 0
        else struct.pack(">iiiiqqd", 0x1C849301 | bits, len(payload), 0, 3, 1, 10**11, 1.0)
    )
    packed = zlib.compress(header + payload)
    text = base64.b64encode(struct.pack(">ii", (0x1C849309, 0x1C849302)[version] | bits, len(packed)) + packed).decode()
    about = "#[latencies in ns]\n"
    (old, new) = (
        imported(written(tmp_path, f"{about}0.000,2.000,1.000,{each}\n", "log.hlog"))[0]
        for each in (text, made.encode().decode())
    )

    assert old == new


@pytest.mark.parametrize(
    ("values", "shown", "mean_ms"),
    [
        ([2e6] * 100, "2.0", 2.0),  # ns, and milliseconds in the column
        ([2e3] * 100, "2.0", 2.0),  # us, and milliseconds in the column
        ([5e8] * 100, "500.0", 500.0),
    ],
)
def test_the_unit_follows_from_the_log(values: list[float], shown: str, mean_ms: float, tmp_path: Path) -> None:
    intervals = [("", second, shown, histogram(values)) for second in range(5)]
    ((row,), remarks) = imported(written(tmp_path, log(*intervals), "a.hlog"))

    assert row.latency_mean_ms == pytest.approx(mean_ms, rel=1e-3)
    assert "its unit is taken for" in remarks


def test_a_unit_that_nothing_shows_is_asked(tmp_path: Path) -> None:
    """A median of 50,000: 50 us on the machine itself, or 50 ms."""
    path = written(tmp_path, log(*(("", second, "0.05", histogram([5e4] * 100)) for second in range(9))), "a.hlog")

    assert "give it by --unit ns, us or ms" in refusal(path)
    for unit, mean_ms in (("ns", 0.05), ("us", 50), ("µs", 50)):
        assert imported(path, parse_mapping([], unit=unit))[0][0].latency_mean_ms == pytest.approx(mean_ms, rel=1e-3)
    with pytest.raises(InputError, match="'sec' is no unit"):
        parse_mapping([], unit="sec")


@pytest.mark.parametrize("comment", ["in us-east-1", "in use since 2024", "in msk1"])
def test_a_comment_that_names_no_unit_states_none(comment: str, tmp_path: Path) -> None:
    intervals = [("", second, "2.0", histogram([2e6] * 100)) for second in range(5)]
    ((row,), remarks) = imported(written(tmp_path, log(*intervals, about=f"#[run {comment}]"), "a.hlog"))

    assert row.latency_mean_ms == pytest.approx(2, rel=1e-3)
    assert "taken for ns" in remarks


@pytest.mark.parametrize(("unit", "mean_ms"), [("usec", 2000), ("Microseconds", 2000), ("nanos", 2), ("µs.", 2000)])
def test_a_comment_may_state_the_unit(unit: str, mean_ms: float, tmp_path: Path) -> None:
    text = log(("", 0, "2.0", histogram([2e6] * 100)), about=f"#[latencies in {unit}]")

    assert imported(written(tmp_path, text, "a.hlog"))[0][0].latency_mean_ms == pytest.approx(mean_ms, rel=1e-3)


def test_a_log_whose_tags_time_no_requests_says_so(tmp_path: Path) -> None:
    text = log(("main.phases", 0, "2.0", histogram([2e6] * 100)), about="#[latencies in ns]")

    assert "no tag that times requests, only 'main.phases'" in refusal(written(tmp_path, text, "a.hlog"))


def test_a_second_log_in_a_file_is_refused(tmp_path: Path) -> None:
    one = log(("", 0, "2.0", histogram([2e6])), about="#[latencies in ns]")

    assert "line 5: a second log begins" in refusal(written(tmp_path, one + one, "a.hlog"))
    lines = [f"{second}.000,1.000,2.0,{histogram([2e6] * 9).encode().decode()}\n" for second in range(3)]
    bare = written(tmp_path, "#[latencies in ns]\n" + "".join(lines + lines), "b.hlog")
    assert "line 5: the time goes back" in refusal(bare)


# ---- HdrHistogram percentiles


def test_the_percentiles_of_wrk2() -> None:
    ((row,), remarks) = imported(FIELD / "wrk2-hgrm-file.hgrm")

    assert (row.latency_p50_ms, row.latency_p99_ms, row.latency_mean_ms, row.latency_max_ms) == (
        1.405,
        3.001,
        1.47,
        10.632,
    )
    assert row.note == "99,424 requests"
    assert "taken for ms" in remarks


def test_the_percentiles_of_vegeta_state_their_unit() -> None:
    ((row,), remarks) = imported(CORPUS / "vegeta.hgrm")

    assert (row.latency_p50_ms, row.latency_p75_ms, row.latency_p999_ms, row.latency_max_ms) == (0.4, 0.6, 9, 12)
    assert "taken for" not in remarks


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_percentiles_with_any_end_of_line(end: str, tmp_path: Path) -> None:
    text = (FIELD / "wrk2-hgrm-file.hgrm").read_text()
    (tmp_path / "wrk2-hgrm-file.hgrm").write_bytes(text.replace("\n", end).encode())

    assert imported(tmp_path / "wrk2-hgrm-file.hgrm") == imported(FIELD / "wrk2-hgrm-file.hgrm")


def test_percentiles_in_a_unit_in_which_no_tool_records_are_refused(tmp_path: Path) -> None:
    text = (CORPUS / "vegeta.hgrm").read_text().replace("Value(ms)", "Value(s)")

    assert "unit 's' is no unit in which tools record" in refusal(written(tmp_path, text, "a.hgrm"))


def test_percentiles_as_csv_and_between_lines(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        '"Value","Percentile","TotalCount","1/(1-Percentile)"\n1.000,0.0,1,1.00\n3.000,0.5,50,2.00\n'
        "7.000,0.980,98,50.00\n9.000,1.000,100,Infinity\n",
        "a.hgrm",
    )
    ((row,), _) = imported(path)

    assert (row.latency_p50_ms, row.latency_p99_ms, row.latency_max_ms) == pytest.approx((3, 8, 9))


def test_percentiles_whose_unit_nothing_shows_are_refused(tmp_path: Path) -> None:
    """A median of 1,405 may be milliseconds of a queue, or microseconds."""
    text = (FIELD / "wrk2-hgrm-file.hgrm").read_text()
    large = (
        text.replace(" 1.405", "1405.0").replace("2.410", "2410.").replace("2.703", "2703.").replace("3.001", "3001.")
    )
    path = written(tmp_path, large.replace(" 6.430", "6430.0").replace("10.639", "10639."), "a.hgrm")

    assert "--unit" in refusal(path)
    assert imported(path, parse_mapping([], unit="us"))[0][0].latency_p50_ms == 1.405


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("2.410", "2,410", "line 6 must be a value"),
        ("2.410", "0.410", "percentiles that fall"),
        ("#[Mean", "       Value   Percentile   TotalCount 1/(1-Percentile)\n#[Mean", "line 11: a second distribution"),
    ],
)
def test_damaged_percentiles_are_refused(old: str, new: str, sentence: str, tmp_path: Path) -> None:
    text = (FIELD / "wrk2-hgrm-file.hgrm").read_text().replace(old, new)

    assert sentence in refusal(written(tmp_path, text, "a.hgrm"))


# ---- CSV of any origin


OWN = "test,nodes,threads,ops/s,mean_us,p99 (ms),zone\na,3,8,1500,2500,9.5,x\nb,3,16,2500,3500,12.5,y\n"


def test_a_german_spreadsheet() -> None:
    mapping = read_mapping(FIELD / "bench-german.toml")
    (first, second), remarks = imported(FIELD / "bench-german.csv", mapping)

    assert (first.run_id, first.throughput_tps, first.latency_p99_ms, first.clients) == ("r1", 1000.5, 12.5, 16)
    assert (second.latency_mean_ms, second.load_kind) == (3.5, "closed")
    assert "decimal comma" in remarks


def test_a_table_whose_numbers_have_two_readings_is_refused_until_commas_separate_its_cells(tmp_path: Path) -> None:
    text = "rate;p99\n900;12.345\n"
    by_name = parse_mapping([], by_name=True)

    assert "12.345 may be 12.345 or 12,345" in refusal(written(tmp_path, text, "own.csv"), by_name)
    ((row,), _) = imported(written(tmp_path, text.replace(";", ","), "own.csv"), by_name)
    assert row.latency_p99_ms == 12.345


def test_obvious_names_are_proposed_and_used_if_the_user_agrees(tmp_path: Path) -> None:
    path = written(tmp_path, OWN, "own.csv")
    sentence = refusal(path)
    pairs = (
        "test=run_id,nodes=cass_nodes,threads=clients,ops/s=throughput_tps,mean_us=latency_mean_ms:us,"
        "p99 (ms)=latency_p99_ms:ms"
    )

    assert "needs --map" in sentence
    assert pairs in sentence
    for mapping in (parse_mapping([], by_name=True), parse_mapping([pairs])):
        (first, _), remarks = imported(path, mapping)
        assert (first.run_id, first.cass_nodes, first.clients, first.throughput_tps) == ("a", 3, 8, 1500)
        assert (first.latency_mean_ms, first.latency_p99_ms) == (2.5, 9.5)
        assert pairs in remarks
        assert "'zone'" in remarks


def test_pairs_say_what_names_do_not(tmp_path: Path) -> None:
    path = written(tmp_path, OWN.replace("nodes", "machines").replace("mean_us", "mean"), "own.csv")
    (first, _), _ = imported(path, parse_mapping(["machines=cass_nodes,mean=latency_mean_ms:us"]))

    assert (first.cass_nodes, first.latency_mean_ms, first.throughput_tps) == (3, 2.5, 1500)
    assert "did you mean 'machines'?" in refusal(path, parse_mapping(["machine=cass_nodes"]))


@pytest.mark.parametrize(
    ("pair", "sentence"),
    [
        ("n=nodes", "did you mean 'cass_nodes'?"),
        ("n=threads", "did you mean 'clients'?"),
        ("n=latency_p99_m", "did you mean 'latency_p99_ms'?"),
        ("n=latency_p99_ms:lux", "has the unit 'lux'"),
    ],
)
def test_a_wrong_pair_is_refused(pair: str, sentence: str) -> None:
    with pytest.raises(InputError) as error:
        parse_mapping([pair])
    assert sentence in str(error.value)


def test_a_name_that_means_a_column_is_suggested_everywhere(tmp_path: Path) -> None:
    path = written(tmp_path, "clients,throughput_tps,nodes\n8,100,3\n", "table.csv")

    assert "did you mean 'cass_nodes'?" in refusal(path)
    with pytest.raises(InputError, match="did you mean 'cass_nodes'"):
        import_files([CORPUS / "orders_stats.csv"], constants={"nodes": "3"})


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("P99 latency [ms]", "latency_p99_ms"),
        ("latency p99.9 ms", "latency_p999_ms"),
        ("95th percentile (ms)", "latency_p95_ms"),
        ("Average latency (ms)", "latency_mean_ms"),
        ("median", "latency_p50_ms"),
        ("Throughput (ops/s)", "throughput_tps"),
        ("requests/sec", "throughput_tps"),
        ("Throughput (ops/sec)", "throughput_tps"),
        ("rate [rps]", "throughput_tps"),
        ("95%", "latency_p95_ms"),
        ("node CPU (%)", "node_cpu_percent"),
        ("replication factor", "rf"),
        ("duration (s)", "duration_s"),
    ],
)
def test_a_name_means_a_column(header: str, name: str, tmp_path: Path) -> None:
    other = "rate" if name != "throughput_tps" else "mean"
    path = written(tmp_path, f"{header},{other}\n5,7\n", "own.csv")
    ((row,), _) = imported(path, parse_mapping([], by_name=True))

    assert getattr(row, name) == 5


@pytest.mark.parametrize(
    "name", ["throughput (kops/s)", "rate (MB/s)", "throughput [ops/min]", "errors (%)", "error %"]
)
def test_a_figure_in_another_unit_is_not_taken(name: str, tmp_path: Path) -> None:
    path = written(tmp_path, f"{name},p99\n5,7\n", "own.csv")
    ((row,), remarks) = imported(path, parse_mapping([], by_name=True))

    assert (row.throughput_tps, row.errors, row.latency_p99_ms) == (None, None, 7)
    assert f"left out are the columns {name!r}" in remarks


@pytest.mark.parametrize(
    ("column", "unit", "p99_ms"), [("p99 (us)", "", 2.5), ("p99_us", "ns", 2.5), ("p99", "us", 2.5), ("p99", "", 2500)]
)
def test_a_pair_without_a_unit_has_that_of_the_header(column: str, unit: str, p99_ms: float, tmp_path: Path) -> None:
    path = written(tmp_path, f"{column},rate\n2500,7\n", "own.csv")
    ((row,), remarks) = imported(path, parse_mapping([f"{column}=latency_p99_ms"], unit=unit))

    assert row.latency_p99_ms == p99_ms
    assert f"{column}=latency_p99_ms" in remarks


def test_a_table_that_a_german_spreadsheet_has_saved(tmp_path: Path) -> None:
    path = written(tmp_path, "run_id;cass_nodes;throughput_tps;latency_p99_ms\na;3/3;1000,5;12,5\n", "table.csv")
    ((row,), remarks) = imported(path)

    assert (row.run_id, row.cass_nodes, row.throughput_tps, row.latency_p99_ms) == ("a", (3, 3), 1000.5, 12.5)
    assert "decimal comma" in remarks


def test_a_table_stays_a_table_if_names_are_taken(tmp_path: Path) -> None:
    path = written(tmp_path, "run_id,throughput_tps,latency_p99_ms\na,5,7\n", "table.csv")
    found = import_files([path], parse_mapping([], by_name=True))

    assert found.files[0].tool == "load-test table"
