"""Pauses from the records of collectors and tools, compared with sums that the tests find on their own."""

import math
import re
import statistics
import tempfile
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fuzz.rules import time_limit

from capplan.errors import InputError
from capplan.evidence.importers.pause_records import read_pauses
from capplan.models.cassandra.pauses import ReportedPauses, parse_pauses

LOGS = Path(__file__).parents[1] / "gc_logs"
SAMPLES = Path(__file__).parents[1] / "samples"
GCSTATS = SAMPLES / "nodetool-gcstats.txt"
FIELD, CORPUS = Path(__file__).parent / "field", Path(__file__).parents[1] / "fuzz" / "corpus"
ALL = [
    *sorted(path for path in LOGS.iterdir() if path.suffix != ".md"),
    *(GCSTATS, FIELD / "gc-cms-scavenge-before-remark.log", CORPUS / "cassandra-system.log"),
]
HEADER = (
    "       Interval (ms) Max GC Elapsed (ms)Total GC Elapsed (ms)Stdev GC Elapsed (ms)"
    "   GC Reclaimed (MB)         Collections      Direct Memory Bytes\n"
)

NS = (r"Safepoint .*Total: +(\d+) ns", 1e-9)
STOPPED = (r"stopped: (\d+\.\d+) seconds", 1.0)
PAUSES = (r"GC\(\d+\) (?:[YyOo]: )?Pause .* (\d+\.\d+)ms$", 1e-3)
SHAPES = {
    "cassandra-5.0-serial.log": ("Serial", NS),
    "cms-jdk11.log": ("CMS", STOPPED),
    "g1-jdk11-uptime.log": ("G1", PAUSES),
    "g1-jdk17-time.log": ("G1", PAUSES),
    "g1-jdk17.log": ("G1", NS),
    "parallel-jdk17.log": ("Parallel", PAUSES),
    "serial-jdk17.log": ("Serial", PAUSES),
    "shenandoah-jdk17.log": ("Shenandoah", PAUSES),
    "shenandoah-jdk25.log": ("Shenandoah", NS),
    "zgc-jdk11.log": ("ZGC", STOPPED),
    "zgc-jdk21.log": ("ZGC", PAUSES),
    "zgc-jdk25.log": ("ZGC", NS),
}


def read(tmp_path: Path, text: str) -> tuple[ReportedPauses, str]:
    """Read a text as a file, and return its pauses and remarks."""
    path = tmp_path / "record.txt"
    path.write_text(text)
    found, remarks = read_pauses(path)
    return found, "\n".join(remarks)


def refusal(path: Path) -> str:
    """Return why a file is refused; empty if it is not, and then it has possible pauses."""
    sentence = ""
    try:
        found, _ = read_pauses(path)
    except InputError as error:
        sentence = str(error)
    else:
        assert 0 < found.share <= 0.5
        assert 0 < found.mean_s < math.inf
        assert found.sd_s is None or 0 <= found.sd_s < math.inf
        assert parse_pauses(str(found)).count == found.count
    assert not sentence or str(path) in sentence
    assert "\n" not in sentence
    return sentence


def figures(found: ReportedPauses) -> object:
    """Return all figures of pauses, to compare with numbers but for rounding."""
    return (found.share, found.mean_s, found.sd_s, found.count, found.rate_per_s)


def seconds_of_day(line: str) -> float | None:
    """Return the time of a line of a unified log in seconds."""
    if found := re.match(r"\[.*?T(\d\d):(\d\d):(\d\d\.\d+)", line):
        return int(found[1]) * 3600 + int(found[2]) * 60 + float(found[3])
    found = re.match(r"\[(\d+\.\d+)s\]", line)
    return float(found[1]) if found else None


@pytest.mark.parametrize("name", SHAPES)
def test_a_real_log_gives_the_sum_of_its_stops(name: str) -> None:
    text = (LOGS / name).read_text()
    collector, (pattern, unit) = SHAPES[name]
    lengths = [float(each) * unit for each in re.findall(pattern, text, re.MULTILINE)]
    times = [time for line in text.splitlines() if (time := seconds_of_day(line)) is not None]

    found, remarks = read_pauses(LOGS / name)

    assert len(lengths) > 5
    assert found.count == len(lengths)
    assert found.mean_s == pytest.approx(statistics.fmean(lengths))
    assert found.sd_s == pytest.approx(statistics.stdev(lengths))
    assert found.share == pytest.approx(math.fsum(lengths) / (times[-1] - times[0]), rel=0.01)
    assert found.rate_per_s is None
    assert collector in remarks[0]


def test_every_real_log_is_tested() -> None:
    assert {path.name for path in LOGS.glob("*.log")} == set(SHAPES)


def test_a_stop_and_its_collection_are_counted_once(tmp_path: Path) -> None:
    found, remarks = read(
        tmp_path,
        "[0.000s][info][gc] Using G1\n"
        "[10.000s][info][gc] GC(0) Pause Young (Normal) (G1 Evacuation Pause) 100M->20M(256M) 3.000ms\n"
        '[10.000s][info][safepoint] Safepoint "G1CollectForAllocation", Time since last: 9000000000 ns, '
        "Reaching safepoint: 900000 ns, At safepoint: 3100000 ns, Total: 4000000 ns\n"
        '[100.000s][info][safepoint] Safepoint "Cleanup", Time since last: 90 ns, Total: 2000000 ns\n',
    )

    assert figures(found) == pytest.approx((6e-5, 3e-3, math.sqrt(2) / 1e3, 2, None))
    assert "Only 2 pauses" in remarks


def test_a_full_collection_inside_a_young_one_is_no_pause_of_its_own(tmp_path: Path) -> None:
    """CMS of JDK 11 reports the full collection first; the young one, which contains it, has the number before."""
    lines = (LOGS / "cms-jdk11.log").read_text().splitlines(keepends=True)
    pauses = [line for line in lines if "Pause" in line and line.rstrip().endswith("ms")]
    numbers = [int(re.findall(r"GC\((\d+)\)", line)[0]) for line in pauses]
    inside = {place for place, (one, two) in enumerate(pairwise(numbers)) if "Full" in pauses[place] and two == one - 1}
    lengths = [
        float(re.findall(r"([\d.]+)ms$", line)[0]) / 1e3 for place, line in enumerate(pauses) if place not in inside
    ]

    found, remarks = read(tmp_path, "".join(line for line in lines if "safepoint" not in line))

    assert len(inside) == 1
    assert found.count == len(lengths)
    assert found.mean_s == pytest.approx(statistics.fmean(lengths))
    assert "no safepoint lines" in remarks


@pytest.mark.parametrize(
    "stamps",
    [
        ("[0.500s]", "[2.500s]", "[10.500s]"),
        ("[500ms][info][gc] ", "[2500ms][info][gc] ", "[10500ms][info][gc] "),
        ("[500000000ns]", "[2500000000ns]", "[10500000000ns]"),
        ("[2026-11-24T10:00:00.500+0000]", "[2026-11-24T10:00:02.500+0000]", "[2026-11-24T10:00:10.500+0000]"),
        ("[2026-11-24T10:00:00.500Z][info]", "[2026-11-24T11:00:02.500+0100]", "[2026-11-24T10:00:10.500+0000]"),
        ("[2026-11-24T10:00:00.000+0000][0.5s]", "[2026-11-24T09:00:00.000+0000][2.5s]", "[2026][7][10.5s]"),
    ],
)
def test_any_decoration_with_a_time_gives_the_span(stamps: tuple[str, str, str], tmp_path: Path) -> None:
    found, _ = read(
        tmp_path,
        f"{stamps[0]}Using Serial\n"
        f"{stamps[1]}GC(0) Pause Young (Allocation Failure) 17M->4M(61M) 100.000ms\n"
        f"{stamps[2]}GC(1) Pause Full (Allocation Failure) 17M->4M(61M) 300.000ms\n",
    )

    assert found.share == pytest.approx(0.04)
    assert found.count == 2
    assert found.mean_s == pytest.approx(0.2)


def test_a_stop_that_began_before_the_first_line_is_in_the_span(tmp_path: Path) -> None:
    found, _ = read(
        tmp_path,
        "[7.000s] GC(8) Pause Young (Normal) 1M->1M(2M) 1000.000ms\n"
        "[16.000s] GC(9) Pause Remark 1M->1M(2M) 1000.000ms\n",
    )

    assert found.share == pytest.approx(0.2)


def test_the_pauses_of_generational_zgc_count_and_its_cycles_and_stalls_do_not(tmp_path: Path) -> None:
    found, remarks = read(
        tmp_path,
        "[0.000s] Using The Z Garbage Collector\n"
        "[0.100s] GC(0) Y: Pause Mark Start (Major) 0.016ms\n"
        "[0.200s] GC(0) O: Concurrent Mark 90.000ms\n"
        "[0.300s] GC(0) o: Pause Mark End 0.014ms\n"
        "[0.400s] Allocation Stall (main) 18.548ms\n"
        "[1.000s]      Young Pause: Pause Mark End        0.010 / 0.061         0.010 / 0.061       ms\n",
    )

    assert found.count == 2
    assert found.share == pytest.approx(30e-6)
    assert "Allocation stalls are left out (1)" in remarks


JDK8_G1 = """\
CommandLine flags: -XX:+PrintGC -XX:+PrintGCDateStamps -XX:+PrintGCDetails -XX:+PrintGCTimeStamps -XX:+UseG1GC
2014-10-21T22:20:48.000+0200: 0.000: [GC pause (G1 Evacuation Pause) (young), 0.0256000 secs]
   [Parallel Time: 3.6 ms, GC Workers: 4]
 [Times: user=0.03 sys=0.03, real=0.02 secs]
2014-10-21T22:20:49.000+0200: 1.000: [GC pause (G1 Evacuation Pause) (young) (initial-mark)
Desired survivor size 524288 bytes, new threshold 15 (max 15)
 1.001: [G1Ergonomics (Concurrent Cycles) initiate concurrent cycle, reason: requested]
, 0.0144000 secs]
   [Other: 0.3 ms]
 [Times: user=0.03 sys=0.03, real=0.02 secs]
2014-10-21T22:20:50.000+0200: 2.000: [GC concurrent-root-region-scan-start]
2014-10-21T22:20:50.000+0200: 2.000: [GC concurrent-mark-end, 0.9011728 secs]
2014-10-21T22:20:51.000+0200: 3.000: [GC remark 3.000: [GC ref-proc, 0.0000700 secs], 0.0010000 secs]
 [Times: user=0.00 sys=0.00, real=0.00 secs]
2014-10-21T22:20:52.000+0200: 4.000: [GC cleanup 75M->25M(103M), 0.0050000 secs]
2014-10-21T22:20:58.000+0200: 10.000: [Full GC (Allocation Failure)  9M->8M(10M), 0.0540000 secs]
2014-10-21T22:21:08.000+0200: 20.000: [GC concurrent-mark-start]
"""
JDK8_CMS = """\
0,000: [GC (Allocation Failure) 0,001: [ParNew: 42995K->4706K(43008K), 0,0317664 secs] 78525K->78471K(138624K), \
0,0400000 secs] [Times: user=0,05 sys=0,06, real=0,03 secs]
1,000: [GC (CMS Initial Mark) [1 CMS-initial-mark: 73765K(95616K)] 78715K(138624K), 0,0010000 secs] [Times: user=0,00]
1,100: [CMS-concurrent-mark: 0,009/0,009 secs] [Times: user=0,02 sys=0,00, real=0,01 secs]
2,000: [GC (CMS Final Remark) [YG occupancy: 24286 K (43008 K)]2,001: [Rescan (parallel) , 0,0004158 secs]2,002: \
[weak refs processing, 0,0000188 secs][1 CMS-remark: 73765K(95616K)] 98052K(138624K), 0,0090000 secs] [Times: user=0,0]
3,000: [Full GC (Allocation Failure) 3,000: [CMS3,001: [CMS-concurrent-mark: 0,009/0,009 secs] [Times: user=0,02 secs]
 (concurrent mode failure): 100K->90K(200K), 0,1200000 secs] 200K->90K(300K), 0,1500000 secs] [Times: user=0,15 secs]
10,000: [CMS-concurrent-reset-start]
"""
JDK8_PARALLEL = """\
2015-07-13T20:53:00.000+0200: [GC (Allocation Failure)
Desired survivor size 4194304 bytes, new threshold 7 (max 15)
[PSYoungGen: 24571K->4081K(28672K)] 24571K->22186K(94208K), 0.0200000 secs] [Times: user=0.02 sys=0.02, real=0.02 secs]
12.357: [GC concurrent-x: a line with another clock
2015-07-13T20:53:08.000+0200: #1: [Full GC (Ergonomics) [PSYoungGen: 7K->6K(7K)] 9K->6K(10K), 0.0600000 secs]
2015-07-13T20:53:10.000+0200: 9.1: something
"""
JDK8_SHENANDOAH = """\
CommandLine flags: -XX:+PrintGC -XX:+PrintGCDateStamps -XX:+PrintGCTimeStamps -XX:+UseShenandoahGC
2022-08-17T16:20:00.000+0800: 0.000: [Concurrent reset, 0.333 ms]
2022-08-17T16:20:05.000+0800: 5.000: [Pause Init Mark (process weakrefs), start]
2022-08-17T16:20:05.000+0800: 5.000: [Pause Init Mark (process weakrefs), 20.000 ms]
2022-08-17T16:20:10.000+0800: 10.000: [Pause Final Mark, 40.000 ms]
"""
JDK8_STOPPED = """\
2014-04-09T15:27:20.000+0200: 0.000: Application time: 0.0000930 seconds
2014-04-09T15:27:23.456+0200: 5.000: [GC (Allocation Failure) [PSYoungGen: 4K->4K(4K)] 7K->7K(13K), 0.0318639 secs]
2014-04-09T15:27:23.486+0200: 5.036: Total time for which application threads were stopped: 0.0360000 seconds, \
Stopping threads took: 0.0001058 seconds
2014-04-09T15:27:30.000+0200: 10.000: Total time for which application threads were stopped: 0.0040000 seconds
"""


@pytest.mark.parametrize(
    ("text", "collector", "lengths", "span_s"),
    [
        (JDK8_G1, "G1", [0.0256, 0.0144, 0.001, 0.005, 0.054], 20.0),
        (JDK8_CMS, "CMS", [0.04, 0.001, 0.009, 0.15], 10.0),
        (JDK8_PARALLEL, "Parallel", [0.02, 0.06], 10.0),
        (JDK8_STOPPED, "Parallel", [0.036, 0.004], 10.0),
        (JDK8_SHENANDOAH, "Shenandoah", [0.02, 0.04], 10.0),
    ],
)
def test_logs_of_jdk_8(text: str, collector: str, lengths: list[float], span_s: float, tmp_path: Path) -> None:
    found, remarks = read(tmp_path, text)

    assert found.count == len(lengths)
    assert found.mean_s == pytest.approx(statistics.fmean(lengths))
    assert found.sd_s == pytest.approx(statistics.stdev(lengths))
    assert found.share == pytest.approx(math.fsum(lengths) / span_s)
    assert collector in remarks


SCAVENGED = FIELD / "gc-cms-scavenge-before-remark.log"


def test_a_remark_of_cms_contains_the_young_collection_before_it() -> None:
    found, remarks = read_pauses(SCAVENGED)

    assert found.count == 3
    assert found.mean_s * 3 == pytest.approx(0.0201 + 0.0236219 + 0.0215244)
    assert found.share == pytest.approx(0.0652 / 12.6, rel=0.01)
    assert not [each for each in remarks if "cut" in each]


def test_a_young_collection_inside_a_remark_may_be_on_a_line_of_its_own(tmp_path: Path) -> None:
    """As with -XX:+PrintHeapAtGC, whose addresses have one bracket."""
    heap = " par new generation   total 245760K, used 1K [0x00000006c0000000, 0x00000006d0000000, 0x00000006d0000000)\n"
    text = SCAVENGED.read_text().replace(
        "]2016-04-14T22:30:13", f"]{{Heap before GC invocations=1:\n{heap}2016-04-14T22:30:13"
    )

    found, _ = read(tmp_path, text)

    assert found.count == 3
    assert found.mean_s == pytest.approx((0.0201 + 0.0236219 + 0.0215244) / 3)


def test_a_collection_of_jdk_8_whose_end_is_cut_counts_with_what_is_there(tmp_path: Path) -> None:
    lines = SCAVENGED.read_text().splitlines(keepends=True)

    found, remarks = read(tmp_path, "".join([*lines[:2], *lines[3:]]))

    assert found.mean_s * 3 == pytest.approx(0.0201 + 0.0090755 + 0.0215244)
    assert "Lines are cut (1)" in remarks


def test_a_collection_may_begin_behind_another_line(tmp_path: Path) -> None:
    collection = "5.000: [GC (Allocation Failure) 5.0: [ParNew: 9K->1K(9K), 0.01 secs] 9K->1K(9K), 0.02 secs]"
    cut = f"4.000: [CMS-concurrent-preclean-start]{collection}\n"

    found, _ = read(tmp_path, JDK8_CMS.replace("10,000: ", f"{cut}10,000: "))

    assert found.count == 5
    assert found.share == pytest.approx(0.22 / 10)


def test_the_lines_of_gcinspector_are_a_censored_record() -> None:
    found, remarks = read_pauses(CORPUS / "cassandra-system.log")

    assert figures(found) == pytest.approx((2.4 / 1200, 0.6, 0.6, 4, None))
    assert "only stops above 200 ms" in " ".join(remarks)
    assert "ZGC Major Cycles" in " ".join(remarks)


@pytest.mark.parametrize(("threshold", "above"), [("50ms", "50 ms"), ("1s", "1000 ms")])
def test_the_threshold_of_gcinspector_may_be_another(threshold: str, above: str, tmp_path: Path) -> None:
    text = (CORPUS / "cassandra-system.log").read_text()
    text = text.replace("gc_log_threshold_in_ms=200", f"gc_log_threshold={threshold}")

    assert f"only stops above {above}" in read(tmp_path, text)[1]


def test_a_system_log_without_a_stop_is_refused(tmp_path: Path) -> None:
    lines = (CORPUS / "cassandra-system.log").read_text().splitlines(keepends=True)
    text = "".join(line for line in lines if "GCInspector" not in line)
    (tmp_path / "system.log").write_text(text)

    assert "none was longer than 200 ms" in refusal(tmp_path / "system.log")


def test_lines_of_datastax_enterprise_have_two_spaces_before_the_source(tmp_path: Path) -> None:
    text = (CORPUS / "cassandra-system.log").read_text()
    spaced = text.replace(" GCInspector.java", "  GCInspector.java")

    assert spaced != text
    assert read(tmp_path, spaced) == read(tmp_path, text)


def test_a_log_of_milliseconds_says_that_it_is_too_short(tmp_path: Path) -> None:
    (tmp_path / "gc.log").write_text("[0.100s] GC(0) Pause Young (Normal) 1M->1M(2M) 4.000ms\n[0.101s] end\n")

    sentence = refusal(tmp_path / "gc.log")
    assert "covers 0.005 s and has pauses of 0.004 s" in sentence
    assert "over a longer time" in sentence


def log_of(stops: list[tuple[int, int]], end_s: int) -> str:
    """Return a log of stops, each with its end in seconds and its length in milliseconds."""
    lines = (f"[{end}.000s] GC(0) Pause Young (Normal) 1M->1M(2M) {length}.000ms" for end, length in stops)
    return "\n".join(["[0.000s] Using G1", *lines, f"[{end_s}.000s] end"])


def test_a_long_log_gives_its_busiest_hour(tmp_path: Path) -> None:
    calm = [(at, 10) for at in range(100, 4 * 3600, 100)]
    busy = [(at, 90) for at in range(7250, 7250 + 3600, 100)]

    found, remarks = read(tmp_path, log_of(sorted(calm + busy), 4 * 3600))

    assert found.count == 72
    assert found.share == pytest.approx(1e-3)
    assert found.mean_s == pytest.approx(0.05)
    assert "busiest hour" in remarks
    assert "over 4 h" in remarks


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.integers(1, 12_000), st.integers(1, 900)), min_size=1, max_size=30, unique_by=lambda x: x[0])
)
def test_no_hour_has_more_time_in_stops_than_the_busiest(stops: list[tuple[int, int]]) -> None:
    begins_ms = [1000 * end - length for end, length in stops]
    most = max(
        sum(length for begin, (_, length) in zip(begins_ms, stops, strict=True) if 0 <= begin - first < 3_600_000)
        for first in (*begins_ms, 12_000_000 - 3_600_000)
        if first <= 12_000_000 - 3_600_000
    )
    with tempfile.TemporaryDirectory() as folder:
        found, _ = read(Path(folder), log_of(sorted(stops), 12_000))

    assert found.share == pytest.approx(most / 3_600_000)


def test_a_restart_continues_the_span(tmp_path: Path) -> None:
    one = "[0.000s] Using G1\n[5.000s] GC(0) Pause Young 1M->1M(2M) 10.000ms\n[10.000s] end\n"

    found, remarks = read(tmp_path, one * 2)

    assert found.count == 2
    assert found.share == pytest.approx(1e-3)
    assert "goes back" in remarks


def test_gcstats_gives_what_the_tool_counted() -> None:
    found, remarks = read_pauses(GCSTATS)

    assert figures(found) == pytest.approx((6714 / 422471, 6.714 / 151, 0.055, 151, None))
    assert "7.04 min" in remarks[0]


def test_intervals_of_gcstats_are_added(tmp_path: Path) -> None:
    """Pauses of 10, 30, 30 and 50 ms, in two calls."""
    rows = ("1000 30 40 10 9 2 7", "3000 50 80 10 9 2 7")

    found, _ = read(tmp_path, HEADER + rows[0] + "\n" + HEADER + rows[1] + "\n")

    deviation_s = statistics.pstdev([10, 30, 30, 50]) / 1e3
    assert figures(found) == pytest.approx((0.03, 0.03, deviation_s, 4, None))


def test_a_deviation_that_cannot_be_squared_is_left_out(tmp_path: Path) -> None:
    found, _ = read(tmp_path, HEADER + "1000 30 40 -1e308 9 2 7\n")

    assert figures(found) == pytest.approx((0.04, 0.02, None, 2, None))


@pytest.mark.parametrize("row", ["1000 1030 1040 10 9 2 7", "1000 50 40 10 9 2 7"])
def test_a_pause_longer_than_its_interval_or_than_all_pauses_is_refused(tmp_path: Path, row: str) -> None:
    with pytest.raises(InputError, match="take them again"):
        read(tmp_path, HEADER + row + "\n")


def test_gcstats_as_json(tmp_path: Path) -> None:
    found, _ = read(
        tmp_path,
        '{"interval_ms": 10000.0, "max_gc_elapsed_ms": 30.0, "total_gc_elapsed_ms": 60.0, "stdev_gc_elapsed_ms": 2.5,'
        ' "gc_reclaimed_mb": 1.0, "collections": 6.0, "direct_memory_bytes": 5}',
    )

    assert figures(found) == pytest.approx((0.006, 0.01, 0.0025, 6, None))


def test_stress_gives_its_summary_and_the_rate() -> None:
    path = LOGS / "cassandra-stress.txt"
    text = path.read_text()
    seconds = [[float(cell) for cell in line.split(",")[1:]] for line in text.splitlines() if line.startswith("total,")]

    found, _ = read_pauses(path)

    assert found.count == 36 == sum(each[13] for each in seconds)
    assert found.mean_s * 36 * 1e3 == pytest.approx(sum(each[15] for each in seconds), rel=0.002)
    assert found.share == pytest.approx(sum(each[15] for each in seconds) / 1e3 / seconds[-1][10], rel=0.002)
    assert found.sd_s == pytest.approx(0.0334)
    assert found.rate_per_s == 4772


RUN = """\
total,  300000, 11443, 11443, 11443, 4.9, 3.0, 12.0, 38.3, 145.1, 674.8, 30.0, 0.05163, 0, 1, 60, 60, 0, 0
Results:
Op rate                   :   11,443 op/s  [WRITE: 11,443 op/s]
Total GC count            : 30
Total GC memory           : 5.677 GiB
Total GC time             :    1.8 seconds
Avg GC time               :   60.0 ms
StdDev GC time            :   20.0 ms
Total operation time      : 00:00:30
"""
HOSTS = "Datacenter: dc1; Host: /127.0.0.1:9042; Rack: r1\nDatacenter: dc1; Host: /127.0.0.2:9042; Rack: r1\n"


@pytest.mark.parametrize(
    ("before", "share", "rate", "remark"),
    [
        ("  Is White List: false\n" + HOSTS, 0.03, 11443 / 2, "2 nodes"),
        ("  Is White List: true\n" + HOSTS, 0.06, 11443, "divide share and rate"),
        ("", 0.06, 11443, "divide share and rate"),
    ],
)
def test_stress_adds_the_pauses_of_its_nodes(
    before: str, share: float, rate: float, remark: str, tmp_path: Path
) -> None:
    """The rate is that of one node, as the share is."""
    found, remarks = read(tmp_path, before + RUN)

    assert figures(found) == pytest.approx((share, 0.06, 0.02, 30, rate))
    assert remark in remarks


def test_stress_of_cassandra_3(tmp_path: Path) -> None:
    old = (
        "op rate                   : 11443 [WRITE:11443]\ntotal gc count            : 30\n"
        "total gc time (s)         : 2\n"
        "avg gc time(ms)           : 60\nstdev gc time(ms)         : 20\nTotal operation time      : 00:00:30\n"
    )

    found, _ = read(tmp_path, RUN.partition("\n")[0] + "\n" + old)

    assert figures(found) == pytest.approx((0.06, 0.06, 0.02, 30, 11443))


def test_of_several_runs_the_fastest_counts(tmp_path: Path) -> None:
    found, remarks = read(tmp_path, RUN.replace("11,443", "4,000") + RUN + RUN.replace("11,443", "9,000"))

    assert found.rate_per_s == 11443
    assert "Of 3 runs" in remarks


@pytest.mark.parametrize("name", ["jmx-g1.prom", "jmx-g1.om", "jmx-zgc.prom"])
def test_a_scrape_without_the_age_of_the_process_is_refused(name: str) -> None:
    assert "--gc 0.6%@" in refusal(LOGS / name)
    assert "missing" in refusal(LOGS / name)


METRICS = """\
# TYPE jvm_gc_collection_seconds summary
jvm_gc_collection_seconds_count{gc="ZGC Minor Cycles",} 75.0 TIME
jvm_gc_collection_seconds_sum{gc="ZGC Minor Cycles",} 36.358 TIME
jvm_gc_collection_seconds_count{gc="ZGC Minor Pauses",} 230.0 TIME
jvm_gc_collection_seconds_sum{gc="ZGC Minor Pauses",} 0.23 TIME
jvm_gc_collection_seconds_count{gc="ZGC Major Pauses",} 20.0 TIME
jvm_gc_collection_seconds_sum{gc="ZGC Major Pauses",} 0.02 TIME
process_start_time_seconds 1.7950E9 TIME
"""


@pytest.mark.parametrize("time", ["1795001000000", "1795001000.0", "1795001000"])
def test_metrics_count_pauses_and_no_cycles(time: str, tmp_path: Path) -> None:
    found, remarks = read(tmp_path, METRICS.replace("TIME", time))

    assert figures(found) == pytest.approx((0.25 / 1000, 1e-3, None, 250, None))
    assert "Left out are ZGC Minor Cycles" in remarks


def test_metrics_of_micrometer(tmp_path: Path) -> None:
    labels = '{action="end of minor GC",cause="G1 Evacuation Pause",gc="G1 Young Generation",}'

    found, _ = read(
        tmp_path,
        f"# TYPE jvm_gc_pause_seconds summary\njvm_gc_pause_seconds_count{labels} 10.0\n"
        f"jvm_gc_pause_seconds_sum{labels} 0.5\njvm_gc_pause_seconds_max{labels} 0.1\nprocess_uptime_seconds 100.0\n",
    )

    assert figures(found) == pytest.approx((0.005, 0.05, None, 10, None))


PREFIXES = ("cassandra-1  | {}", "[pod/cassandra-0/cassandra] {}", "2026-11-30T10:00:00.123456789Z {}", "    {}")


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize(
    "record", [*sorted(LOGS.glob("*.log")), CORPUS / "cassandra-system.log"], ids=lambda each: each.name
)
def test_what_stands_before_each_line_of_a_record_is_left_out(record: Path, prefix: str, tmp_path: Path) -> None:
    """As `docker compose logs` and `kubectl logs` show it."""
    text = record.read_text()

    assert read(tmp_path, "".join(f"{prefix.format(line)}\n" for line in text.splitlines())) == read(tmp_path, text)


def test_two_scrapes_of_a_jvm_are_refused(tmp_path: Path) -> None:
    text = METRICS.replace("TIME", "1795001000")
    (tmp_path / "metrics.txt").write_text(text + text)

    assert "a second scrape begins" in refusal(tmp_path / "metrics.txt")


def test_metrics_of_several_processes_are_refused(tmp_path: Path) -> None:
    text = METRICS.replace("TIME", "1795001000") + 'process_start_time_seconds{instance="b"} 1.7950E9\n'
    (tmp_path / "metrics.txt").write_text(text)

    assert "2 processes" in refusal(tmp_path / "metrics.txt")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "is empty"),
        (b"\x00\x01\x02", "is binary"),
        (b"\x1f\x8b\x08\x00", "unpack it first"),
        (b"a letter\n", "is no record of pauses"),
        (b"[0.003s][info][gc] Using G1\n", "has no line of a stop"),
        (b"[info][gc] GC(0) Pause Young (Normal) 1M->1M(2M) 3.2ms\n" * 9, "has stops without times"),
        (b"[1.0s] GC(0) Pause Young (Normal) 1M->1M(2M) 3.2ms\n", "at most half"),
        (HEADER.encode(), "has no line of figures"),
        (HEADER.encode() + b"  422471   430   67", "line 2 has 3 figures"),
        (HEADER.encode() + b"  422471   430   NaN 0 0 x 0", "line 2: 'x' must be a number"),
        (HEADER.encode() + b"  422471   0   0 NaN 0 0 0", "counts no pause"),
        (HEADER.encode() + b"  0   430   6714 55 0 151 0", "covers 0 s"),
        (RUN.partition("Total op")[0].encode(), "counts no pause"),
        (RUN.replace("count            : 30", "count            : 0").encode(), "over JMX"),
        (METRICS.replace("TIME", "").encode(), "times are missing"),
        (METRICS.replace("_start", "_end").encode(), "process_start_time_seconds or process_uptime_seconds is missing"),
    ],
)  # fmt: skip
def test_the_sentence_says_what_is_wrong(content: bytes, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "record"
    path.write_bytes(content)

    assert sentence in refusal(path)


@settings(max_examples=100)
@given(st.sampled_from(ALL), st.data())
def test_a_record_that_is_cut_off_is_refused_or_read(sample: Path, data: st.DataObject) -> None:
    content = sample.read_bytes()
    start, end = sorted(data.draw(st.integers(0, len(content))) for _ in range(2))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / sample.name
        path.write_bytes(content[start * data.draw(st.booleans()) : end])
        refusal(path)


@settings(max_examples=150)
@given(st.sampled_from(ALL), st.data())
def test_a_record_with_any_bytes_is_refused_or_read(sample: Path, data: st.DataObject) -> None:
    content = bytearray(sample.read_bytes())
    for place in data.draw(st.lists(st.integers(0, len(content) - 1), min_size=1, max_size=20)):
        content[place] = data.draw(st.integers(0, 255) | st.sampled_from(b"0123456789.,-eE[]"))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / sample.name
        path.write_bytes(bytes(content))
        refusal(path)


@pytest.mark.parametrize("part", ["GC(1) Pause Young ", 'Safepoint "a", Total: 1 ', "threads were stopped: 1.0 second"])
def test_lines_that_repeat_what_begins_a_stop_are_read_in_time(part: str, tmp_path: Path) -> None:
    path = tmp_path / "gc.log"
    path.write_text(("[1.000s][info][gc] " + part * 150 + "\n") * 1500, encoding="utf-8")
    with time_limit(), pytest.raises(InputError, match="no line of a stop"):  # the square of a line took half a minute
        read_pauses(path)
