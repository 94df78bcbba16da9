"""The audit of rhino-shcm: laws, register and readings, worked out by hand from the published tables."""

from dataclasses import replace
from math import log

import pytest

from capplan.calibration.audit.audit import audit, audit_rows
from capplan.calibration.audit.finding import Finding
from capplan.calibration.evidence.table import Evidence, by_id, data_hash, load
from capplan.systems.rhino_shcm.laws import cpu_demand, load_tests, mean_bounds_s

ROWS = load("rhino-shcm")
REPORT = audit("rhino-shcm")
FINDINGS = {finding.name: finding for finding in (*REPORT.laws, *REPORT.register, *REPORT.readings)}


def _changed(name: str, **columns: float) -> dict[str, Finding]:
    """Audit the evidence with one row changed."""
    rows: list[Evidence] = [replace(row, **columns) if row.id == name else row for row in ROWS]  # type: ignore[arg-type]  # columns of many types
    report = audit_rows("rhino-shcm", rows)
    return {finding.name: finding for finding in (*report.laws, *report.register, *report.readings)}


def test_what_is_contradicted_and_what_only_rounding_saves() -> None:
    found = {
        verdict: {name for name, each in FINDINGS.items() if each.verdict == verdict}
        for verdict in ("contradicted", "rounding", "untested")
    }
    assert found == {
        "contradicted": {
            "monotone.b.maximum",  # 837.9 ms at 1000/s, 367.2 ms at 1200/s
            "own_servers.1000.maximum",  # 757 ms with Cassandra on the same server, 837.9 ms without
            "cache.p50",  # 6 ms with caches, 2.8 ms without
            "cache.p99",  # 264 ms with caches, 235 ms without
            "cache.maximum",  # 757 ms with caches, 717 ms without
            "cpu_demand.t4",  # 3.0 cores of 1800/s, 3.2 cores of 2160/s
            "tail.b",
            "cpu_demand.one.b",
            "cpu_demand.one.cached",
        },
        "rounding": {
            "monotone.b.p50",  # 4.3 ms at 1000/s, 4.2 ms at 1200/s
            "claim.cpu_around",  # around 300 % is 320 % in the table
            "cpu_demand.t2",
            "cpu_demand.t5",
            "cpu_demand.one.a",
        },
        "untested": {"claim.reasonable", "claim.satisfactory", "claim.acceptable", "claim.disk_same"},
    }


@pytest.mark.parametrize(
    ("law", "checks"),
    [
        ("forced_flow", 7),
        ("ordered", 7 * 5),
        ("monotone", 2 * 6),
        ("utilisation", 7),
        ("little", 7),
        ("servers", 3),
        ("own_servers", 2 * 6),
    ],
)
def test_every_test_is_held_against_every_law(law: str, checks: int) -> None:
    assert len([finding for finding in REPORT.laws if finding.name.split(".")[0] == law]) == checks


def test_requests_are_1_8_times_sessions() -> None:
    # 1000, 1100, 1200, 1000, 1200, 1400 and 1000 sessions/s.
    expected = [1800, 1980, 2160, 1800, 2160, 2520, 1800]
    assert [FINDINGS[f"forced_flow.t{test}"].expected.value for test in range(1, 8)] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("test", "demand_ms"),
    [
        ("T1", 280 / 180),
        ("T2", 310 / 198),
        ("T3", 330 / 216),
        ("T4", 300 / 180),
        ("T5", 320 / 216),
        ("T6", 380 / 252),
        ("T7", 360 / 180),
    ],
)
def test_processor_time_of_a_request(test: str, demand_ms: float) -> None:
    demand = cpu_demand(load_tests(by_id(ROWS))[test])
    assert demand.value * 1e3 == pytest.approx(demand_ms)
    assert demand.low < demand.value < demand.high


def test_the_mean_lies_between_the_sums_of_its_percentiles() -> None:
    # Test 4: 50 % at most 4.3 ms, 25 % from there to 5.2, 15 % to 15.6, 5 % to 37.1, 4 % to 119, 1 % to 837.9 ms.
    bounds = mean_bounds_s(load_tests(by_id(ROWS))["T4"])
    low = 0.25 * 4.25 + 0.15 * 5.15 + 0.05 * 15.55 + 0.04 * 37.05 + 0.01 * 118.5
    high = 0.5 * 4.35 + 0.25 * 5.25 + 0.15 * 15.65 + 0.05 * 37.15 + 0.04 * 119.5 + 0.01 * 837.95
    assert (bounds.low * 1e3, bounds.high * 1e3) == pytest.approx((low, high))
    assert "allow 9 to 38 requests inside" in FINDINGS["little.t4"].sentence


def test_the_tail_of_a_grows_as_one_over_what_is_left_of_2214_per_s() -> None:
    # Mean between p90 and p99: (264 - 58.8) / ln 10 and (655 - 292) / ln 10 ms at 1800 and 1980/s.
    one, two, three = (ms / log(10) for ms in (264 - 58.8, 655 - 292, 2810 - 1190))
    finding = FINDINGS["tail.a"]
    assert finding.documented is not None
    assert finding.expected.value * 1e3 == pytest.approx(1 / (2 / two - 1 / one))
    assert finding.documented.value * 1e3 == pytest.approx(three)
    assert finding.verdict == "consistent"
    capacity = 1800 + 180 * (1 / one) / (1 / one - 1 / two)
    assert f"a capacity of {capacity:.0f}/s" in finding.sentence
    assert f"{capacity:.0f}" == "2214"


def test_9_gb_are_a_commit_log_of_8_gb_and_1_gb_of_data() -> None:
    finding = FINDINGS["claim.disk"]
    assert finding.verdict == "consistent"
    assert finding.expected.low == 8e9
    assert "leaves 1 GB" in finding.sentence


def test_around_300_percent_is_the_figure_of_test_4() -> None:
    finding = FINDINGS["claim.cpu_around"]
    assert finding.documented is not None
    assert (finding.expected.value, finding.documented.value) == pytest.approx((3.2, 3.0))
    assert finding.sentence.endswith("its table has 320 %, 3.2 [3.15, 3.25], and 300 % for test 4.")


def test_rows_marked_contradictory_are_named_by_a_contradiction() -> None:
    marked = {row.id for row in ROWS if row.status == "contradictory"}
    assert marked == {"t4.maximum"}
    assert marked <= {name for finding in REPORT.contradictions for name in finding.rows}


def test_findings_name_rows_that_exist_and_speak_in_sentences() -> None:
    known = {row.id for row in ROWS}
    assert len(FINDINGS) == len(REPORT.laws) + len(REPORT.register) + len(REPORT.readings)
    for finding in FINDINGS.values():
        assert known.issuperset(finding.rows), finding.name
        assert finding.rows
        assert finding.sentence.endswith(".")
        assert "{" not in finding.sentence


@pytest.mark.parametrize(
    ("name", "columns", "finding", "verdict"),
    [
        ("t1.rps", {"value": 1900.0, "low": 1895.0, "high": 1905.0}, "forced_flow.t1", "contradicted"),
        ("t2.p75", {"value": 0.01, "low": 0.01, "high": 0.01}, "ordered.t2.p75", "contradicted"),
        ("t2.p95", {"value": 0.1, "low": 0.1, "high": 0.1}, "monotone.a.p95", "contradicted"),
        ("t4.maximum", {"value": 0.3, "low": 0.3, "high": 0.3}, "monotone.b.maximum", "consistent"),
        ("t6.cpu", {"value": 9.0, "low": 8.5, "high": 9.5}, "utilisation.t6", "contradicted"),
        ("t4.cpu", {"value": 40.0, "low": 39.5, "high": 40.5}, "little.t4", "contradicted"),
        ("b.servers", {"value": 5.0, "low": 5.0, "high": 5.0}, "servers.b", "contradicted"),
        ("t7.p50", {"value": 0.007, "low": 0.007, "high": 0.007}, "cache.p50", "consistent"),
        ("t7.cpu", {"value": 2.0, "low": 1.95, "high": 2.05}, "cache.cpu", "contradicted"),
        ("t5.p90", {"value": 1.5, "low": 1.5, "high": 1.5}, "own_servers.1200.p90", "contradicted"),
        ("all.disk_maximum", {"value": 6e9, "low": 5.5e9, "high": 6.5e9}, "claim.disk", "contradicted"),
        ("t5.sustained_rate", {"value": 3000.0, "low": 2995.0, "high": 3005.0}, "claim.sustained", "contradicted"),
        ("t6.rate_repeated", {"value": 2500.0, "low": 2495.0, "high": 2505.0}, "duplicate.t6", "contradicted"),
        ("t3.p99", {"value": 2.4, "low": 2.395, "high": 2.405}, "tail.a", "contradicted"),
    ],
)
def test_a_changed_row_changes_the_verdict(name: str, columns: dict[str, float], finding: str, verdict: str) -> None:
    assert FINDINGS[finding].verdict != verdict
    assert _changed(name, **columns)[finding].verdict == verdict


def test_a_tail_that_would_be_past_saturation_has_no_bound() -> None:
    # With test 2 as slow as test 3 the line is zero before test 3's load.
    finding = _changed("t2.p99", value=2.0, low=2.0, high=2.0)["tail.a"]
    assert finding.expected.low == float("inf")
    assert finding.verdict == "contradicted"


def test_the_report_says_which_data_it_has_seen_and_counts_no_workers() -> None:
    assert REPORT.data_hash == data_hash("rhino-shcm")
    assert REPORT.worker_gaps == ()
