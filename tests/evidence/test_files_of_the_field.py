"""Files as users have them: locales, several runs, prefixes, what a server answered, and tools that are not read."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from capplan.errors import InputError
from capplan.evidence.audit.audit import audit_load_tests
from capplan.evidence.import_files import import_files
from capplan.evidence.load_test_row import LATENCIES, LoadTestRow
from capplan.evidence.load_tests import LOAD_TESTS

FIELD, SAMPLES = Path(__file__).parent / "field", Path(__file__).parents[1] / "samples"
CORPUS = SAMPLES.parent / "fuzz" / "corpus"


def imported(path: Path) -> tuple[list[LoadTestRow], tuple[str, ...]]:
    """Return the rows of a file, and the remarks."""
    found = import_files([path])
    return list(LOAD_TESTS.rows(found.load_tests)), found.files[0].remarks


def written(folder: Path, text: str, name: str = "run.txt") -> Path:
    path = folder / name
    path.write_text(text, "utf-8")
    return path


def refusal(path: Path) -> str:
    with pytest.raises(InputError) as error:
        import_files([path])
    return str(error.value)


def figures(path: Path) -> dict[tuple[str, ...], float]:
    """Return the figures of a server by operation, quantity and statistic."""
    found = import_files([path]).microbenchmarks.fillna({"operation": ""})
    return dict(
        zip(zip(found["operation"], found["quantity"], found["statistic"], strict=True), found["value"], strict=True)
    )


# ---- the numbers of a locale


def of_classes(rows: list[LoadTestRow]) -> dict[str | None, tuple[float | None, ...]]:
    return {row.request_class: (row.throughput_tps, *(getattr(row, name) for name in LATENCIES)) for row in rows}


COMMAS = {
    "all": (5358, 2.8, 1.7, None, None, 9.5, 18.1, 31.4, 52.3),
    "events": (1790, 5.3, 3.8, None, None, 14.1, 23.5, 35.5, 52.3),
    "insert": (1780, 1.7, 1.1, None, None, 4.9, 10.4, 22.9, 46.8),
    "latest_event": (1789, 1.5, 1.0, None, None, 4.3, 9.8, 23.9, 43.8),
}


@pytest.mark.parametrize("between", [".", "\N{NO-BREAK SPACE}", "\N{NARROW NO-BREAK SPACE}", "\u2019"])
def test_cassandra_stress_with_a_decimal_comma(between: str, tmp_path: Path) -> None:
    """Germans write 5.358,7; others have another mark between thousands."""
    text = re.sub(r"(?<=\d)\.(?=\d{3})", between, (FIELD / "cstress-decimal-comma.txt").read_text("utf-8"))
    rows, remarks = imported(written(tmp_path, text))

    assert of_classes(rows) == COMMAS
    assert {(row.duration_s, row.clients, row.load_kind, row.errors) for row in rows} == {(15.7, 16, "closed", 0)}
    assert len(remarks) == 1
    assert "decimal comma" in remarks[0]
    assert audit_load_tests(LOAD_TESTS.frame(rows)).refused == ()


def test_an_interval_of_cassandra_stress_whose_numbers_fill_their_columns(tmp_path: Path) -> None:
    text = (FIELD / "cstress-decimal-comma.txt").read_text("utf-8")
    text = text.replace("    48,1,   15,7,", "123456,1,12345,7,")

    assert {row.duration_s for row in imported(written(tmp_path, text))[0]} == {12345.7}


def test_results_of_cassandra_stress_that_are_indented_inside_a_text(tmp_path: Path) -> None:
    text = (FIELD / "cstress-decimal-comma.txt").read_text("utf-8").replace(" op/s,", " \top/s,")
    results = text[text.index("Results:") : text.index("END")].replace("\n", "\n\t")
    rows, _ = imported(written(tmp_path, f"With four threads:\n\n\t{results}\nand with eight:\n\n\t{results}\n"))

    assert of_classes(rows[:4]) == of_classes(rows[4:]) == COMMAS
    assert [row.run_id for row in rows] == ["run-1"] * 4 + ["run-2"] * 4


def test_results_that_do_not_name_their_threads_are_not_those_of_the_run_before(tmp_path: Path) -> None:
    text = (SAMPLES / "cstress-write-closed.txt").read_text("utf-8")
    results = text[text.index("Results:") : text.index("END")]
    rows, _ = imported(written(tmp_path, text.replace("Thread Count: 32", "Thread Count: -") + results))

    assert [row.clients for row in rows] == [32, None]


def test_a_console_without_its_later_intervals_has_the_time_of_the_operation(tmp_path: Path) -> None:
    """Users cut long tables."""
    text = (SAMPLES / "cstress-write-closed.txt").read_text("utf-8")
    lines = text.splitlines(keepends=True)
    places = [place for place, line in enumerate(lines) if line.startswith("total,")]
    cut = "".join(lines[: places[1]] + lines[places[-1] + 1 :]).replace("00:00:", "00:10:")
    (whole,), _ = imported(written(tmp_path, text, "whole.txt"))
    (row,), _ = imported(written(tmp_path, cut, "cut.txt"))

    assert whole.duration_s is not None
    assert row.duration_s == 600 + int(whole.duration_s)


def test_results_of_cassandra_stress_in_one_locale_only(tmp_path: Path) -> None:
    text = (FIELD / "cstress-decimal-comma.txt").read_text("utf-8").replace("2,8 ms", "2.8 ms")

    assert "2.8 has a decimal point" in refusal(written(tmp_path, text))


def with_commas(text: str) -> str:
    return re.sub(r"(?<=\d)\.(?=\d)", ",", text)


@pytest.mark.parametrize("name", ["nodetool-proxyhistograms", "nodetool-tablehistograms", "nodetool-info"])
def test_nodetool_with_a_decimal_comma(name: str, tmp_path: Path) -> None:
    text = (SAMPLES / f"{name}.txt").read_text("utf-8")

    assert figures(written(tmp_path, with_commas(text))) == figures(SAMPLES / f"{name}.txt")


def test_compactions_in_other_units_with_a_decimal_comma(tmp_path: Path) -> None:
    text = (SAMPLES / "nodetool-compactionstats.txt").read_text("utf-8").replace("837499950", "7,25 GiB ")

    assert figures(written(tmp_path, text))["", "data compacted", "constant"] == 7.25 * 2**30


def test_a_number_of_a_tool_without_a_locale_has_no_decimal_comma(tmp_path: Path) -> None:
    """YCSB always prints a decimal point: 2,5 is nothing that it writes, and not 25."""
    text = "[OVERALL], RunTime(ms), 1000\n[READ], Operations, 5\n[READ], AverageLatency(us), 2,5\n"

    assert "line 3: '2,5' must be a number" in refusal(written(tmp_path, text))


# ---- several runs in one file


def test_cassandra_stress_finds_the_number_of_threads() -> None:
    rows, remarks = imported(FIELD / "cstress-auto-threads.txt")

    assert [(row.run_id, row.clients, row.throughput_tps, row.latency_mean_ms, row.duration_s) for row in rows] == [
        ("cstress-auto-threads-4-threads", 4, 14238, 0.3, 69),
        ("cstress-auto-threads-8-threads", 8, 18419, 0.4, 54),
        ("cstress-auto-threads-16-threads", 16, 23950, 0.6, 41),
    ]
    assert {row.load_kind for row in rows} == {"closed"}
    assert remarks == ()
    assert audit_load_tests(LOAD_TESTS.frame(rows)).refused == ()


def test_outputs_of_cassandra_stress_one_behind_the_other(tmp_path: Path) -> None:
    """Each has its settings; of two with as many threads, the second gets a number."""
    names = ("cstress-mixed-closed.txt", "cstress-mixed-fixed1500.txt", "cstress-write-closed.txt")
    rows, remarks = imported(written(tmp_path, "".join((SAMPLES / name).read_text("utf-8") for name in names)))
    alone = [row for name in names for row in imported(SAMPLES / name)[0]]

    assert [replace(row, run_id=None, source=None) for row in rows] == [
        replace(row, run_id=None, source=None) for row in alone
    ]
    assert list(dict.fromkeys(row.run_id for row in rows)) == ["run-32-threads", "run-64-threads", "run-32-threads-2"]
    assert remarks == ()


def test_an_interrupted_run_before_another_is_said(tmp_path: Path) -> None:
    text = (SAMPLES / "cstress-write-closed.txt").read_text("utf-8")
    cut = text[: text.index("Results:")]
    rows, remarks = imported(written(tmp_path, cut + text))

    assert of_classes(rows) == of_classes(imported(SAMPLES / "cstress-write-closed.txt")[0])
    assert remarks == (f"the run before line {cut.count(chr(10)) + 1} has no results: it was interrupted",)
    assert imported(written(tmp_path, text + cut))[1] == ("the last run has no results: it was interrupted",)


CQL_STRESS = """\
total ops ,    op/s,    mean,     med,     .95,     .99,    .999,     max,   time, errors
     20000,   10000,     1.0,     0.9,     1.5,     2.0,     3.0,     9.1,    2.0,      0

Results:
Op rate                   :    10000 op/s
Latency mean              :    1.0 ms
Latency 99th percentile   :    2.0 ms
Latency max               :    9.1 ms
Total operations          :      20000
Total errors              :      ERRORS
Total operation time      : 00:00:02
"""


def test_cql_stress_prints_no_classes(tmp_path: Path) -> None:
    (row,), _ = imported(written(tmp_path, CQL_STRESS.replace("ERRORS", "0")))

    assert (row.request_class, row.throughput_tps, row.latency_p99_ms, row.duration_s) == ("all", 10_000, 2.0, 2)
    assert "none was answered" in refusal(written(tmp_path, CQL_STRESS.replace("ERRORS", "20000")))


YCSB = """\
Command line: -db site.ycsb.db.CassandraCQLClient -threads 8 -p fieldcount=1 {}
[OVERALL], RunTime(ms), {}
[OVERALL], Throughput(ops/sec), {}
[{}], Operations, {}
[{}], AverageLatency(us), {}
"""


def test_a_load_and_a_run_of_ycsb(tmp_path: Path) -> None:
    load = YCSB.format("-load", 1000, 500.0, "INSERT", 500, "INSERT", 700.0)
    run = YCSB.format("-t", 2000, 900.0, "READ", 1800, "READ", 400.0)
    rows, remarks = imported(written(tmp_path, load + run))

    assert [(row.run_id, row.request_class, row.throughput_tps, row.latency_mean_ms) for row in rows] == [
        ("run-load", "insert", 500, 0.7),
        ("run-run", "read", 900, 0.4),
    ]
    assert remarks == ()
    begun = YCSB.partition("\n")[0].format("-t")
    assert imported(written(tmp_path, f"{load}{begun}\n"))[1] == (
        "a run without results is left out: it was interrupted",
    )


def test_figures_of_ycsb_without_command_lines_are_numbered(tmp_path: Path) -> None:
    text = "".join(YCSB.format("-t", 1000, rate, "READ", rate, "READ", 400.0).partition("\n")[2] for rate in (500, 600))

    assert [(row.run_id, row.throughput_tps) for row in imported(written(tmp_path, text))[0]] == [
        ("run-1", 500),
        ("run-2", 600),
    ]


# ---- answered is answered


def test_reads_of_absent_rows_are_answered_requests() -> None:
    rows, remarks = imported(FIELD / "ycsb-not-found-reads.txt")
    every, read, update = rows

    assert every.throughput_tps == pytest.approx(1_000_000 / 433.536)
    assert read.throughput_tps == pytest.approx((131_740 + 368_886) / 433.536)
    assert every.read_fraction == pytest.approx(0.500626)
    assert (every.errors, read.errors, update.errors) == (0, 0, 0)
    mean = (131_740 * 0.8351359571884014 + 368_886 * 0.8467396621178359) / 500_626
    assert read.latency_mean_ms == pytest.approx(mean)
    assert (read.latency_max_ms, read.latency_p99_ms) == (56.959, None)
    assert update.latency_p99_ms == 1.828
    assert read.note is not None
    assert "368,886 found no row (NOT_FOUND)" in read.note
    assert "percentiles of both together are not known" in read.note
    assert len(remarks) == 1


def absent(good: int, returned: str) -> str:
    return (
        f"[OVERALL], RunTime(ms), 1000\n[READ], Operations, {good}\n"
        f"[READ], AverageLatency(us), {400.0 if good else 'NaN'}\n{returned}"
    )


@pytest.mark.parametrize(
    ("text", "rate", "mean_ms", "errors"),
    [
        (absent(0, "[READ], Return=NOT_FOUND, 30\n[READ-FAILED], Operations, 30\n"
                   "[READ-FAILED], AverageLatency(us), 600.0\n"), 30, 0.6, 0),
        (absent(10, "[READ], Return=OK, 10\n[READ], Return=NOT_FOUND, 30\n[READ], Return=ERROR, 5\n"
                    "[READ-NOT_FOUND], Operations, 30\n[READ-NOT_FOUND], AverageLatency(us), 600.0\n"
                    "[READ-ERROR], Operations, 5\n[READ-ERROR], AverageLatency(us), 9000.0\n"), 40, 0.55, 5),
        (absent(10, "[READ], Return=OK, 10\n[READ], Return=NOT_FOUND, 30\n[READ], Return=ERROR, 5\n"
                    "[READ-FAILED], Operations, 35\n[READ-FAILED], AverageLatency(us), 9000.0\n"), 40, 0.4, 5),
        (absent(10, "[READ], Return=OK, 10\n[VERIFY], Operations, 10\n"
                    "[VERIFY], Return=UNEXPECTED_STATE, 10\n"), 10, 0.4, 0),
    ],
    ids=["every row is absent", "statuses are timed apart", "absent rows and failures are timed together", "verified"],
)  # fmt: skip
def test_what_failed_is_counted_apart(text: str, rate: float, mean_ms: float, errors: int, tmp_path: Path) -> None:
    (row,), _ = imported(written(tmp_path, text))

    assert (row.throughput_tps, row.errors) == (rate, errors)
    assert row.latency_mean_ms == pytest.approx(mean_ms)


def test_old_versions_of_ycsb_count_what_failed_with_the_others(tmp_path: Path) -> None:
    text = absent(491, "[READ], Return=0, 480\n[READ], Return=-1, 11\n")
    (row,), _ = imported(written(tmp_path, text))

    assert (row.throughput_tps, row.errors, row.latency_mean_ms) == (491, 11, 0.4)
    assert row.note == "the rate counts 11 failed requests, too"


def test_old_versions_of_ycsb_count_absent_rows_with_the_others(tmp_path: Path) -> None:
    text = absent(50, "[READ], Return=OK, 20\n[READ], Return=NOT_FOUND, 30\n")
    (row,), _ = imported(written(tmp_path, text))

    assert (row.throughput_tps, row.errors, row.latency_mean_ms) == (50, 0, 0.4)
    assert row.note == "of 50 answered requests 30 found no row (NOT_FOUND)"


def test_percentiles_of_ycsb_in_milliseconds_are_rounded_down(tmp_path: Path) -> None:
    """Less than a millisecond is no latency of 0 ms."""
    text = absent(50, "[READ], 95thPercentileLatency(ms), 0\n[READ], 99thPercentileLatency(ms), 2\n")
    (row,), (remark,) = imported(written(tmp_path, text))

    assert (row.latency_p95_ms, row.latency_p99_ms, row.latency_mean_ms) == (None, 2, 0.4)
    assert "rounded down" in remark


def test_figures_of_ycsb_may_stand_without_a_space(tmp_path: Path) -> None:
    text = absent(50, "[READ], Return=OK, 50\n")

    assert imported(written(tmp_path, text.replace(", ", ","), "a.txt"))[0][0].latency_mean_ms == 0.4
    assert imported(written(tmp_path, re.sub(r", (?=\d)", ",", text), "b.txt"))[0][0].throughput_tps == 50


@pytest.mark.parametrize("rate", ["0", "1,000"])
def test_a_run_without_an_answered_request_is_refused(rate: str, tmp_path: Path) -> None:
    """Its rate may count failed requests."""
    text = (FIELD / "cstress-all-failed.txt").read_text("utf-8").replace(" 0 op/s", f" {rate} op/s")

    assert "10,000 requests failed and none was answered" in refusal(written(tmp_path, text))


@pytest.mark.parametrize(("absent", "failed"), [(3, 9_997), (10_000, 0)])
def test_reads_of_cassandra_stress_that_found_no_row_were_answered(absent: int, failed: int, tmp_path: Path) -> None:
    """It counts them as errors, in its rate and its latencies, too."""
    text = (FIELD / "cstress-all-failed.txt").read_text("utf-8").replace(" 0 op/s", " 1,000 op/s")
    lines = "Operation x0 on key(s) [4e50]: Data returned was not validated\n" * absent
    (row,), _ = imported(written(tmp_path, text.replace("Results:", f"{lines}\nResults:")))

    assert (row.throughput_tps, row.errors) == (1000, failed)
    assert row.note is not None
    assert f"{absent:,} answered reads found no row" in row.note


def test_a_run_of_ycsb_without_an_answered_request_is_refused(tmp_path: Path) -> None:
    text = absent(0, "[READ], Return=ERROR, 30\n[READ-FAILED], Operations, 30\n")

    assert "no answered operation" in refusal(written(tmp_path, text))


def test_a_run_of_cassandra_stress_without_an_answer_beside_others_is_left_out(tmp_path: Path) -> None:
    failed = (FIELD / "cstress-all-failed.txt").read_text("utf-8")
    rows, remarks = imported(written(tmp_path, failed + (SAMPLES / "cstress-write-closed.txt").read_text("utf-8")))

    assert [row.run_id for row in rows] == ["run-32-threads"]
    assert "run 'run-50-threads' is left out" in remarks[0]


# ---- what stands before each line


COMPOSE = "\x1b[36mstress-1  | \x1b[0m"
PREFIXES: dict[str, Callable[[int, str], str]] = {
    "docker compose": lambda _, line: f"stress-1  | {line}",
    "docker compose in colour": lambda _, line: COMPOSE + line,
    "kubectl": lambda _, line: f"[pod/stress-7f9/stress] {line}",
    "times": lambda number, line: f"2026-11-30T10:00:{number % 60:02d}.123456789Z {line}",
    "names and times": lambda number, line: f"stress-1  | 2026-11-30T10:00:{number % 60:02d}.1Z {line}",
    "journalctl": lambda number, line: f"Nov 30 10:00:{number % 60:02d} node1 stress[812]: {line}",
    "journalctl with ISO times": lambda number, line: f"2026-11-30T10:00:{number % 60:02d}+0000 n1 stress[8]: {line}",
    "ts": lambda number, line: f"Nov 30 10:00:{number % 60:02d} {line}",
    "Jenkins": lambda number, line: f"[2026-11-30T10:00:{number % 60:02d}.1Z] {line}",
    "a name": lambda _, line: f"[loader-1] {line}",
    "a name with a colon": lambda _, line: f"loader1.example.com: {line}",
    "a mail": lambda _, line: f"> {line}".rstrip(),
    "an indentation": lambda _, line: f"    {line}".rstrip(),
}


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("name", ["cstress-mixed-closed.txt", "ycsb-mongodb-run.txt", "wrk-closed.txt"])
def test_what_stands_before_each_line_is_left_out(name: str, prefix: str, tmp_path: Path) -> None:
    lines = (SAMPLES / name).read_text("utf-8").splitlines()
    text = "\n".join(PREFIXES[prefix](number, line) for number, line in enumerate(lines))
    rows, remarks = imported(written(tmp_path, f"{text}\n", name))

    assert rows == imported(SAMPLES / name)[0]
    assert len(remarks) == (prefix != "an indentation") + len(imported(SAMPLES / name)[1])


def test_a_container_that_ends_is_said_without_a_prefix(tmp_path: Path) -> None:
    text = (FIELD / "cstress-docker-prefix.txt").read_text("utf-8")
    (row,), _ = imported(written(tmp_path, f"Attaching to stress-1\n{text}stress-1 exited with code 1\n"))

    assert (row.throughput_tps, row.errors, row.latency_mean_ms, row.latency_max_ms) == (50_602, 36, 2.0, 12_071.1)
    assert (row.duration_s, row.clients, row.request_class) == (2.0, 100, "write")
    assert row.note is not None
    assert "36 failed requests" in row.note


def test_lines_of_several_containers_are_not_mixed(tmp_path: Path) -> None:
    lines = (SAMPLES / "cstress-mixed-closed.txt").read_text("utf-8").splitlines()
    text = "\n".join(f"{'db-1' if number % 3 == 0 else 'stress-1'}  | {line}" for number, line in enumerate(lines))

    assert "lines of several sources (db-1, stress-1)" in refusal(written(tmp_path, text))


def test_times_of_a_table_are_cells(tmp_path: Path) -> None:
    rows = "".join(f"2026-11-30 10:00:{number:02d},{500 + number}\n" for number in range(20))

    assert "--yes takes its columns by their names" in refusal(written(tmp_path, f"time,rate\n{rows}", "table.csv"))


@pytest.mark.parametrize("log", [*sorted((SAMPLES.parent / "gc_logs").glob("*.log")), CORPUS / "cassandra-system.log"])
def test_a_record_of_pauses_is_named_with_what_it_is_for(log: Path) -> None:
    assert "--gc" in refusal(log)


def test_a_table_with_bars_is_no_log(tmp_path: Path) -> None:
    text = "rate | latency\n" + "".join(f"{number} | {number}\n" for number in range(20))

    assert "separated by '|'" in refusal(written(tmp_path, text, "table.txt"))


# ---- a refusal names the true cause


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("rate;p99\n1000,5;12,5\n", "semicolons"),
        ("rate|p99\n1000|12\n", "'|'"),
        ("rate\tp99\n1000\t12\n", "tabs"),
        ("1000,12.5,3\n2000,14.5,3\n", "has no header"),
        ("<!DOCTYPE html>\n<html></html>\n", "web page"),
        ('<?xml version="1.0"?>\n<report/>\n', "XML"),
        ('{"log":"Running WRITE\\n","stream":"stdout"}\n', "docker logs NAME"),
    ],
)
def test_a_file_of_another_form_is_named(text: str, cause: str, tmp_path: Path) -> None:
    sentence = refusal(written(tmp_path, text, "results.log"))

    assert cause in sentence
    assert not re.search("damaged|cut off", sentence)


def test_text_in_utf_16(tmp_path: Path) -> None:
    """PowerShell writes it, with its mark or without."""
    text = (SAMPLES / "cstress-write-closed.txt").read_text("utf-8")
    (tmp_path / "cstress-write-closed.txt").write_text(text, "utf-16")
    (tmp_path / "unmarked.txt").write_text(text, "utf-16-le")

    assert imported(tmp_path / "cstress-write-closed.txt")[0] == imported(SAMPLES / "cstress-write-closed.txt")[0]
    assert "UTF-16 without its mark" in refusal(tmp_path / "unmarked.txt")


def test_a_jtl_in_utf_16_says_so(tmp_path: Path) -> None:
    (tmp_path / "run.jtl").write_text((SAMPLES / "jmeter-closed.jtl").read_text("utf-8"), "utf-16")

    assert "UTF-16" in refusal(tmp_path / "run.jtl")


@pytest.mark.parametrize(
    ("end", "cause"),
    [('{"a": 1}\n', "something follows the JSON object"), ("", "the file is cut off")],
    ids=["a second report", "cut off"],
)
def test_json_that_goes_on_or_ends_early(end: str, cause: str, tmp_path: Path) -> None:
    text = (SAMPLES / "ghz-rps500.json").read_text("utf-8")

    assert cause in refusal(written(tmp_path, text + end if end else text[:-20], "run.json"))


@pytest.mark.parametrize(
    ("text", "tool", "instead"),
    [
        ("time  ops/s    rows/s   errors\n1s    100   100\n", "scylla-bench", "-hdr-latency-file"),
        ("INFO [main] NBCLI - io.nosqlbench.cli starts\n", "NoSQLBench", "--log-histograms"),
        ("   Writes          Reads          Deletes       Errors\n  Count  Latency (p99)\n", "easy-stress", "--csv"),
        ("READ   - Takes(s): 10.0, Count: 12, OPS: 1.2, Avg(us): 22\n", "go-ycsb", "--map"),
        ("Requests      [total, rate, throughput]  10, 5.00, 5.00\n", "vegeta", "hdrplot"),
        ('{"latencies":{"total":12,"mean":3}}\n', "vegeta", "hdrplot"),
        ('{"attack":"","seq":0,"code":200}\n', "vegeta", "hdrplot"),
        ("response-time,DNS+dialup,DNS\n0.1,0.0,0.0\n", "hey", "--map"),
        ("Percentage served,Time in ms\n0,0.3\n", "ab", "--map"),
        ("t,count,max,mean,min,stddev,p50\n1,2,3,4,5,6,7\n", "NoSQLBench", "--log-histograms"),
        ("\nSummary:\n  Total:\t10.0 secs\n  Slowest:\t0.2 secs\n", "hey", "--map"),
        ("Summary:\n  Success rate:\t100.00%\n", "oha", "--map"),
        ("This is ApacheBench, Version 2.3\n", "ab", "--map"),
        ("Fortio 1.60.3 running at 10 queries per second, 8->8 procs, for 5s\n", "fortio", "--map"),
        ('{"RunType": "HTTP", "DurationHistogram": {"Count": 12}}\n', "fortio", "--map"),
        ('{"requests": 12, "requests_per_sec": 3.5, "latency": {"mean": 2.0}}\n', "wrk", "--latency"),
        ("total_number_of_tables: 2\nks:\n  tables:\n", "nodetool", "-F json"),
        ("     http_req_duration..........: avg=5ms\n", "k6", "--out json"),
        ("total,interval_op_rate,interval_key_rate,latency,95th\n28,2,2,1.4,2.5\n", "cassandra-stress of", "--map"),
        ("INFO  [main] 2026-11-20 09:00:00,757  Config.java:102 - Loading\n", "a log of Cassandra", "--gc FILE"),
        ("ALL STATS\n=====\nType         Ops/sec     Hits/sec\n", "memtier_benchmark", "--map"),
        ("number of transactions actually processed: 12\ntps = 1.2\n", "pgbench", "--map"),
        ("summary =    480 in 00:00:03 =  145.0/s Avg:    26\n", "JMeter", "-l FILE"),
    ],
)
def test_a_tool_that_is_not_read_is_named_with_what_to_save(text: str, tool: str, instead: str, tmp_path: Path) -> None:
    sentence = refusal(written(tmp_path, text))

    assert tool in sentence
    assert instead in sentence
    assert "--yes" not in sentence


def test_a_folder_imports_what_it_can(tmp_path: Path) -> None:
    """Every refusal of a file that is given by its name is a line of the report of its folder."""
    written(tmp_path, (FIELD / "cstress-all-failed.txt").read_text("utf-8"), "failed.txt")
    written(tmp_path, "This is ApacheBench, Version 2.3\n", "ab.txt")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1")
    written(tmp_path, (FIELD / "tlp-stress-1.0.csv").read_text("utf-8"), "tlp.csv")
    found = import_files([tmp_path])

    assert [(Path(each.path).name, bool(each.tool), bool(each.remarks)) for each in found.files] == [
        ("ab.txt", False, True),
        ("broken.parquet", False, True),
        ("failed.txt", False, True),
        ("tlp.csv", True, True),
    ]
    assert set(found.load_tests["run_id"]) == {"tlp"}


# ---- cassandra-easy-stress and tlp-stress


def test_the_counts_of_tlp_stress_begin_before_its_run() -> None:
    """In the minute between its lines 960,000 mutations and 240,000 reads; the 85 s before were for populating."""
    rows, remarks = imported(FIELD / "tlp-stress-1.0.csv")

    assert [(row.request_class, row.throughput_tps, row.latency_p99_ms) for row in rows] == [
        ("all", 20_000, None),
        ("write", 16_000, 6.117892),
        ("read", 4_000, 5.5),
    ]
    assert {(row.duration_s, row.clients, row.load_kind, row.read_fraction) for row in rows} == {
        (60, 400, "throttled", 0.2)
    }
    assert [(row.offered_tps, row.errors) for row in rows] == [(20_000, 0), (None, None), (None, None)]
    assert "between the first line and the last" in remarks[0]


def test_a_single_line_of_tlp_stress_counts_from_the_beginning(tmp_path: Path) -> None:
    text = "".join((FIELD / "tlp-stress-1.0.csv").read_text("utf-8").splitlines(keepends=True)[:-1])
    rows, remarks = imported(written(tmp_path, text.replace("tlp-stress", "cassandra-easy-stress"), "run.csv"))

    assert rows[1].throughput_tps == pytest.approx(63_430 / 85)
    assert "with the time of populating" in remarks[0]


def test_two_runs_of_tlp_stress_are_not_mixed(tmp_path: Path) -> None:
    text = (FIELD / "tlp-stress-1.0.csv").read_text("utf-8").rstrip() + "\n"
    figures = text[text.index("2021-11-09T20:02") :]

    assert "line 7: a second run begins" in refusal(written(tmp_path, text + text, "run.csv"))
    assert "line 7: the elapsed time falls" in refusal(written(tmp_path, text + figures, "run.csv"))


def test_a_line_of_tlp_stress_that_is_cut_off(tmp_path: Path) -> None:
    text = (FIELD / "tlp-stress-1.0.csv").read_text("utf-8")

    assert "line 6 has 12 cells, not 13" in refusal(written(tmp_path, text.rstrip().rpartition(",")[0], "run.csv"))


def test_every_request_of_cassandra_easy_stress(tmp_path: Path) -> None:
    """Of two in three seconds one request fails, and is in no latency."""
    lengths_ms = np.random.default_rng(3).gamma(2.0, 1.5, 3000).round(3)
    frame = pd.DataFrame(
        {
            "operation": np.where(np.arange(3000) % 3, "Mutation", "Select"),
            "success": np.arange(3000) != 7,
            "failure_reason": "",
            "request_start_time_ms": 1_700_000_000_000 + np.arange(3000),
            "request_duration_ns": (lengths_ms * 1e6).round().astype(int),
        }
    )
    frame.to_parquet(tmp_path / "rawlog.parquet")
    rows, _ = imported(tmp_path / "rawlog.parquet")
    good = lengths_ms

    assert [(row.request_class, row.errors) for row in rows] == [("all", 1), ("read", 0), ("write", 1)]
    assert rows[1].latency_mean_ms == pytest.approx(good[::3].mean())
    assert rows[0].latency_max_ms == pytest.approx(np.delete(good, 7).max())
    assert rows[0].throughput_tps == pytest.approx(1000, rel=0.02)

    frame["success"] = False
    frame.to_parquet(tmp_path / "rawlog.parquet")
    assert "no request of the run was answered" in refusal(tmp_path / "rawlog.parquet")


# ---- nodetool


def test_a_table_without_sstables_has_latencies() -> None:
    found = figures(FIELD / "nodetool-cfhistograms-no-sstables.txt")

    assert found["read", "latency", "p50"] == pytest.approx(35.43e-6)
    assert found["write", "latency", "p99"] == pytest.approx(20.5e-6)
    assert not any(quantity in ("size", "count") for _, quantity, _ in found)


TABLESTATS = """\
Total number of tables: 37
----------------
Keyspace : shop
\tRead Count: 5000
\tRead Latency: 1.2344 ms
\tWrite Count: 300
\tWrite Latency: 0.0525 ms
\tPending Flushes: 0
\t\tTable: baskets
\t\tSSTable count: 2
\t\tSpace used (live): 11534336
\t\tSSTable Compression Ratio: 0.4127
\t\tLocal read count: 5000
\t\tLocal read latency: 1.234 ms
\t\tLocal write count: 300
\t\tLocal write latency: 0.052 ms
\t\tBloom filter false positives: 0
\t\tBloom filter false ratio: 0.00000
\t\tCompacted partition mean bytes: 1131

\t\tTable: orders
\t\tSpace used (live): 0
\t\tLocal read count: 0
\t\tLocal read latency: NaN ms
\t\tLocal write count: 0
\t\tLocal write latency: NaN ms
\t\tBloom filter false ratio: 0.00000
\t\tCompacted partition mean bytes: 0

----------------
"""
OLD = TABLESTATS.replace("Keyspace :", "Keyspace:").replace(" ms\n", " ms.\n").replace("Table:", "Column Family:")
OLD = OLD.replace("Space used (live)", "Space used (live), bytes").replace("partition mean bytes", "row mean size")
LOCAL = re.sub(r"((?:Local|Bloom filter false ratio).*\d)\.(\d)", r"\1,\2", TABLESTATS)
HUMAN = TABLESTATS.replace("11534336", "11 MiB")
SORTED = re.sub(r"Keyspace.*?(?=\t\tTable)", "", TABLESTATS, flags=re.DOTALL).replace("Table: ", "Table: shop.")


@pytest.mark.parametrize("text", [TABLESTATS, OLD, LOCAL, HUMAN, SORTED], ids=["4.1", "2.0", "locale", "-H", "sorted"])
def test_tablestats_as_text(text: str, tmp_path: Path) -> None:
    found = import_files([written(tmp_path, text)]).microbenchmarks
    baskets = found[found["conditions"] == "table shop/baskets"]
    values = {(row.operation, row.quantity): row.value for row in baskets.fillna({"operation": ""}).itertuples()}

    assert values == {
        ("read", "latency"): pytest.approx(1.234e-3),
        ("write", "latency"): pytest.approx(0.052e-3),
        ("", "live data"): 11_534_336,
        ("", "partition size"): 1131,
    }
    assert list(baskets["samples"].dropna()) == [5000, 300]
    assert set(found[found["conditions"] == "table shop/orders"]["quantity"]) == {"live data", "partition size"}


@pytest.mark.parametrize(
    "name",
    [
        *("nodetool-proxyhistograms.txt", "nodetool-tablehistograms.txt", "nodetool-tpstats.txt", "nodetool-info.txt"),
        *("nodetool-netstats.txt", "nodetool-compactionstats.txt", "nodetool-status-2dc.txt"),
    ],
)
def test_two_outputs_of_nodetool_are_not_mixed(name: str, tmp_path: Path) -> None:
    text = (SAMPLES / name).read_text("utf-8")
    last = "nodetool-tpstats.txt" if name == "nodetool-info.txt" else "nodetool-info.txt"

    assert figures(written(tmp_path, f"$ nodetool\n\n{text}")) == figures(SAMPLES / name)
    assert "a second output begins" in refusal(written(tmp_path, text + text))
    assert "a second output begins" in refusal(written(tmp_path, text + (SAMPLES / last).read_text("utf-8")))


def test_histograms_of_cassandra_2_0_are_named(tmp_path: Path) -> None:
    text = "ks/t histograms\n\nSSTables per Read\n1 sstables: 35\n\nWrite Latency (microseconds)\n149 us: 31\n"

    assert "of Cassandra 2.0" in refusal(written(tmp_path, text))


def test_two_outputs_of_tablestats_are_not_mixed(tmp_path: Path) -> None:
    assert "line 39" in refusal(written(tmp_path, TABLESTATS + TABLESTATS))


def test_two_scrapes_are_not_mixed(tmp_path: Path) -> None:
    scrape = '# TYPE t_seconds histogram\nt_seconds_bucket{le="1"} 3\nt_seconds_bucket{le="+Inf"} 4\nt_seconds_sum 3\n'
    scrape += "t_seconds_count 4\n"

    assert figures(written(tmp_path, scrape))["", "latency", "mean"] == 0.75
    assert "line 7: a second scrape begins" in refusal(written(tmp_path, scrape + scrape))


DSE_POOLS = """\
Pool Name              Active      Pending (w/Backpressure)   Delayed      Completed   Blocked  All time blocked
GossipStage                 1                       2 (N/A)       N/A          16405         0                 3
TPC/all/WRITE_LOCAL         0                     N/A (N/A)         7           1416       N/A               N/A

Message type            Dropped                  Latency waiting in queue (micros)
                                              50%               95%               99%               Max
MUTATION                      4              0.00            917.50           8388.61         671088.64
HINT                          0               N/A               N/A               N/A               N/A
"""


def test_tpstats_of_datastax_enterprise_has_other_columns(tmp_path: Path) -> None:
    found = figures(written(tmp_path, DSE_POOLS, "tpstats.txt"))

    assert {(name, what): value for (name, what, *_), value in found.items()} == {
        ("GossipStage", "active"): 1,
        ("GossipStage", "pending"): 2,
        ("GossipStage", "completed"): 16_405,
        ("GossipStage", "blocked"): 3,
        ("TPC/all/WRITE_LOCAL", "active"): 0,
        ("TPC/all/WRITE_LOCAL", "completed"): 1_416,
        ("MUTATION", "dropped"): 4,
    }
    short = DSE_POOLS.replace("          16405         0                 3", "")
    assert "line 2 has 4 cells, not 7" in refusal(written(tmp_path, short, "short.txt"))
