"""The audit of arion: laws, register and readings, worked out by hand from the published text."""

from dataclasses import replace

import pytest

from capplan.calibration.audit.audit import audit, audit_rows
from capplan.calibration.audit.finding import Finding
from capplan.calibration.evidence.table import Evidence, by_id, data_hash, load, select
from capplan.systems.arion.readings import at_once, rate_at_s

ROWS = load("arion")
REPORT = audit("arion")
FINDINGS = {finding.name: finding for finding in (*REPORT.laws, *REPORT.register, *REPORT.readings)}


def _changed(name: str, **columns: float) -> dict[str, Finding]:
    """Audit the evidence with one row changed."""
    rows: list[Evidence] = [replace(row, **columns) if row.id == name else row for row in ROWS]  # type: ignore[arg-type]  # columns of many types
    report = audit_rows("arion", rows)
    return {finding.name: finding for finding in (*report.laws, *report.register, *report.readings)}


def test_what_is_contradicted_and_what_only_rounding_saves() -> None:
    found = {
        verdict: {name for name, each in FINDINGS.items() if each.verdict == verdict}
        for verdict in ("contradicted", "rounding", "untested")
    }
    assert found == {
        "contradicted": {
            "claim.insert",  # 100,000 rules, 1,000,000 requests
            "claim.clients30",  # 30 x 150/s are 4,500/s, not 40,000/s
            "claim.clients300",  # at most 300 clients for 1.0 ms, 1,000 with 0.6 ms
            "closed.clients300",
            "closed.clients1000.r30000",
            "at_once.cores",
        },
        "rounding": {"at_once", "station", "misprint.clients30"},
        "untested": {
            "claim.servers10",
            "picture.vpc.rate_ratio",
            "picture.vpc.time_ratio",
            "picture.peak.droop",
            "picture.peak.time_growth",
            "picture.clients.growth",
            "picture.streaming.gain",
            "closed.past_peak",
            "watch.bytes",
        },
    }


@pytest.mark.parametrize(
    ("name", "expected", "documented"),
    [
        ("rates.clients", 300_000, 300_000),  # 10,000 x 30/s
        ("rates.servers", 30_000, 30_000),  # 300,000/s over ten servers
        ("little.clients300", 300, 40),  # 40,000/s x 1.0 ms
        ("little.clients1000.r30000", 1000, 18),  # 30,000/s x 0.6 ms
        ("claim.instances", 3, 3),
        ("claim.insert", 100_000, 1_000_000),
        ("claim.clients30", 40_000, 4500),
        ("closed.clients300", 7.5e-3, 1.0e-3),  # 300 / 40,000/s
        ("closed.clients1000.r30000", 1 / 30, 0.6e-3),
        ("closed.clients30", 0.8e-3, 0.75e-3),  # 30 / 40,000/s
        ("throttled.in_flight", 30, 40),
        ("at_once", 24, 30),  # 40,000/s x 0.6 ms
        ("at_once.cores", 96, 24),
        ("misprint.clients30", 45_000, 40_000),  # 300 x 150/s
        ("watch.record", 25e-6, 12e-6),  # 1 / 40,000/s; 1.2 s / 100,000
    ],
)
def test_what_is_expected_and_what_the_document_has(name: str, expected: float, documented: float) -> None:
    finding = FINDINGS[name]
    assert finding.expected.value == pytest.approx(expected)
    assert finding.documented is not None
    assert finding.documented.value == pytest.approx(documented)


def test_calls_under_way_below_and_at_the_peak_are_told() -> None:
    assert (
        "0.6 ms at 30000/s keeps 18 calls under way, 1.0 ms at 40000/s 40" in FINDINGS["throttled.in_flight"].sentence
    )


def test_ten_servers_are_a_claim_that_needs_300_000_per_s_of_hazelcast() -> None:
    finding = FINDINGS["claim.servers10"]
    assert finding.documented is None
    assert finding.expected.value == 400_000
    assert "Hazelcast would have to serve 300000/s." in finding.sentence


def test_past_the_peak_a_thousand_clients_with_one_call_each_would_take_25_ms() -> None:
    assert FINDINGS["closed.past_peak"].expected.value == pytest.approx(0.025)


def test_a_record_is_5_us_without_the_master_12_us_through_it_and_60_bytes_if_6m_are_bytes() -> None:
    assert "takes 5 us without the master and 12 us through it" in FINDINGS["watch.record"].sentence
    assert FINDINGS["watch.bytes"].expected.value == pytest.approx(60)


def test_an_m_m_1_station_takes_twice_its_service_at_half_its_load() -> None:
    assert rate_at_s(2e-3, 1, 1e-3) == pytest.approx(500)
    assert rate_at_s(10e-3, 1, 1e-3) == pytest.approx(900, rel=1e-4)


def test_24_servers_of_0_6_ms_take_1_ms_within_5_percent_of_their_limit() -> None:
    expected = FINDINGS["station"].expected
    assert round(at_once(by_id(ROWS)).value.value) == 24
    # Erlang's C is below one, so the load lies above that of c mu - X = 1 / 0.4 ms, and below the limit of 40,000/s.
    assert 40_000 - 2500 < expected.value < 40_000
    assert expected.low < expected.value < expected.high


def test_every_law_is_kept() -> None:
    assert {finding.verdict for finding in REPORT.laws} == {"consistent"}
    assert len(REPORT.laws) == 4 + 2 + 2 + 1 + 2 + 1


def test_rows_marked_contradictory_are_those_that_the_audit_refutes() -> None:
    marked = {row.id for row in ROWS if row.status == "contradictory"}
    assert marked == {name for finding in REPORT.contradictions for name in finding.rows if name in marked}
    assert all(marked.intersection(finding.rows) for finding in REPORT.contradictions)


def test_nothing_that_is_fitted_is_contradictory() -> None:
    assert not {row.id for row in select(ROWS, use="fit")} & {row.id for row in select(ROWS, status="contradictory")}


def test_findings_name_rows_that_exist_and_speak_in_one_sentence() -> None:
    known = {row.id for row in ROWS}
    assert len(FINDINGS) == len(REPORT.laws) + len(REPORT.register) + len(REPORT.readings)
    for finding in FINDINGS.values():
        assert finding.rows
        assert known.issuperset(finding.rows), finding.name
        assert finding.sentence.endswith(".")
        assert "{" not in finding.sentence
        assert "\n" not in finding.sentence


@pytest.mark.parametrize(
    ("name", "columns", "finding", "verdict"),
    [
        ("all.instances", {"value": 7.0, "low": 7.0, "high": 7.0}, "claim.instances", "contradicted"),
        ("write.records", {"value": 1e6, "low": 1e6, "high": 1e6}, "claim.insert", "consistent"),
        ("unary.responses", {"value": 1e5, "low": 1e5, "high": 1e5}, "balance.unary", "contradicted"),
        ("servers10.offered", {"value": 3e6, "low": 3e6, "high": 3e6}, "rates.clients", "contradicted"),
        ("clients300.mean", {"value": 7.5e-3, "low": 7.45e-3, "high": 7.55e-3}, "closed.clients300", "consistent"),
        ("clients300.mean", {"value": 20e-3, "low": 19e-3, "high": 21e-3}, "little.clients300", "contradicted"),
        ("clients300.mean", {"value": 0.4e-3, "low": 0.35e-3, "high": 0.45e-3}, "monotone.time", "contradicted"),
        ("clients300.limit", {"value": 1000.0, "low": 950.0, "high": 1050.0}, "claim.clients300", "consistent"),
        ("clients30.client_rps", {"value": 1333.0, "low": 1300.0, "high": 1400.0}, "claim.clients30", "consistent"),
        ("peak.clients", {"value": 60.0, "low": 55.0, "high": 65.0}, "closed.clients30", "contradicted"),
        ("peak.clients", {"value": 60.0, "low": 55.0, "high": 65.0}, "throttled.in_flight", "contradicted"),
        ("peak.clients", {"value": 60.0, "low": 55.0, "high": 65.0}, "at_once", "contradicted"),
        ("peak.rps", {"value": 60_000.0, "low": 55_000.0, "high": 65_000.0}, "peak.same", "contradicted"),
        ("peak.rps", {"value": 90_000.0, "low": 85_000.0, "high": 95_000.0}, "peak.within", "contradicted"),
        ("watch.master", {"value": 0.3, "low": 0.25, "high": 0.35}, "added_work.watch", "contradicted"),
        ("watch.master", {"value": 12.0, "low": 11.5, "high": 12.5}, "watch.record", "contradicted"),
        ("servers10.client_limit", {"value": 60.0, "low": 55.0, "high": 65.0}, "claim.client_limit", "contradicted"),
    ],
)
def test_a_changed_row_changes_the_verdict(name: str, columns: dict[str, float], finding: str, verdict: str) -> None:
    assert FINDINGS[finding].verdict != verdict
    assert _changed(name, **columns)[finding].verdict == verdict


def test_the_report_says_which_data_it_has_seen() -> None:
    assert REPORT.data_hash == data_hash("arion")
    assert REPORT.missing == select(ROWS, status="missing")
