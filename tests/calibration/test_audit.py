"""The audit of openprovider: laws, register and readings, worked out by hand from the published tables."""

from dataclasses import replace

import pytest

from capplan.calibration.audit.audit import audit, audit_rows
from capplan.calibration.audit.finding import Finding, compare, shown
from capplan.calibration.evidence.interval import Interval
from capplan.calibration.evidence.table import Evidence, data_hash, load, select
from capplan.models.errors import InputError
from capplan.systems.openprovider.laws import laws, worker_gaps
from capplan.systems.openprovider.readings import readings

ROWS = load("openprovider")
REPORT = audit("openprovider")
FINDINGS = {finding.name: finding for finding in (*REPORT.laws, *REPORT.register, *REPORT.readings)}


def _changed(name: str, **columns: float) -> dict[str, Finding]:
    """Audit the evidence with one row changed."""
    rows: list[Evidence] = [replace(row, **columns) if row.id == name else row for row in ROWS]  # type: ignore[arg-type]  # columns of many types
    report = audit_rows("openprovider", rows)
    return {finding.name: finding for finding in (*report.laws, *report.register, *report.readings)}


@pytest.mark.parametrize(
    ("scenario", "by_little", "printed"),
    [
        ("TS1", "26.7", 32),  # 7000/s x (2.5 + 7 x 4) / 8 ms
        ("TS2", "15.8", 28),  # 3600/s x (3.5 + 7 x 4.5) / 8 ms
        ("TS3", "14.4", 20),  # 2500/s x (4 + 7 x 6) / 8 ms
        ("TS4", "10.1", 15),  # 1750/s x (4 + 7 x 6) / 8 ms
        ("TS4-LDAP", "13.6", 15),  # 1750/s x (13 + 7 x 7) / 8 ms
    ],
)
def test_busy_workers_exceed_littles_law_in_every_table(scenario: str, by_little: str, printed: float) -> None:
    finding = FINDINGS[f"little.{scenario.lower()}"]
    assert f"{finding.expected.value:.1f}" == by_little
    assert finding.documented is not None
    assert finding.documented.value == printed
    assert finding.verdict == "contradicted"
    assert by_little in finding.sentence


def test_littles_interval_is_the_product_of_the_roundings() -> None:
    # TS1: 6900 to 7100/s, 2.25 to 2.75 ms, 3.75 to 4.25 ms.
    expected = FINDINGS["little.ts1"].expected
    assert expected.low == pytest.approx(6900 * (2.25 + 7 * 3.75) / 8000)
    assert expected.high == pytest.approx(7100 * (2.75 + 7 * 4.25) / 8000)


@pytest.mark.parametrize(
    ("scenario", "ratio", "hold_ms"),
    [
        ("TS1", 32 / 26.6875, 32 / 7 - 3.8125),
        ("TS2", 28 / 15.75, 28 / 3.6 - 4.375),
        ("TS3", 20 / 14.375, 20 / 2.5 - 5.75),
        ("TS4", 15 / 10.0625, 15 / 1.75 - 5.75),
        ("TS4-LDAP", 15 / 13.5625, 15 / 1.75 - 7.75),
    ],
)
def test_the_gap_differs_by_scenario(scenario: str, ratio: float, hold_ms: float) -> None:
    (gap,) = (gap for gap in REPORT.worker_gaps if gap.scenario == scenario)
    assert gap.ratio.value == pytest.approx(ratio)
    assert gap.extra_hold_s.value * 1e3 == pytest.approx(hold_ms)
    assert gap.ratio.low <= gap.ratio.value <= gap.ratio.high


@pytest.mark.parametrize("name", ["little.one_factor", "little.one_hold", "little.one_workers"])
def test_no_constant_explains_the_workers_of_every_scenario(name: str) -> None:
    assert FINDINGS[name].verdict == "contradicted"


def test_a_constant_that_does_explain_them_is_found() -> None:
    rows = [
        replace(row, value=gap.expected.value, low=gap.expected.low, high=gap.expected.high)
        if row.quantity == "busy_workers" and row.use == "check" and row.scenario == gap.scenario
        else row
        for gap in REPORT.worker_gaps
        for row in select(ROWS, scenario=gap.scenario)
    ] + list(select(ROWS, scenario="all"))
    found = {finding.name: finding.verdict for finding in audit_rows("openprovider", rows).readings}
    assert found["little.one_factor"] != "contradicted"
    assert found["little.one_hold"] != "contradicted"
    assert found["little.one_workers"] != "contradicted"


@pytest.mark.parametrize(
    ("table", "expected", "verdict"),
    [
        ("ts1", 7000, "consistent"),
        ("ts1.proxy", 13125, "contradicted"),
        ("ts2.proxy", 13500, "contradicted"),
        ("ts3.proxy", 18750, "contradicted"),
        ("ts4.proxy", 19687.5, "contradicted"),
        ("ts4-ldap", 21000, "consistent"),  # 1 + 7/8 forwarded + 1/8 looked up = 2; 21500 is within the roundings
    ],
)
def test_forwarding_accounting_of_a_1_to_7_mix_makes_1_875_requests(table: str, expected: float, verdict: str) -> None:
    finding = FINDINGS[f"forced_flow.{table}"]
    assert finding.expected.value == expected
    assert finding.verdict == verdict


@pytest.mark.parametrize(
    ("name", "expected", "documented"),
    [
        ("claim.proxy_doubles", 1.875, 2),
        ("claim.ldap_rate", 1312.5, 500),
        ("claim.ldap_latency", 3.25, 2),
        ("claim.ldap_accounting", 0.006, 0.007),
        ("claim.ldap_workers", 3.5, 0),
        ("claim.growth", 10000 / 7200, 1.43),
        ("claim.latency_rise.ts3.auth", 0.0005, 0.003),
        ("claim.half_busy.ts4", 15 / 64, 0.5),
        ("claim.shared_out.ts2", 32 * 3600 / 7000, 28),
    ],
)
def test_the_register_of_contradictions(name: str, expected: float, documented: float) -> None:
    finding = FINDINGS[name]
    assert finding.expected.value == pytest.approx(expected, abs=1e-12)
    assert finding.documented is not None
    assert finding.documented.value == pytest.approx(documented, abs=1e-12)
    assert finding.verdict == "contradicted"
    assert finding in REPORT.contradictions


def test_43_percent_is_the_growth_over_ts1() -> None:
    assert "1.389 times TS2" in FINDINGS["claim.growth"].sentence
    assert "over TS1 it is 1.429" in FINDINGS["claim.growth"].sentence


def test_almost_twice_is_authorization_over_accounting() -> None:
    assert "1.86 [1.76, 1.96] times as long as accounting" in FINDINGS["claim.ldap_latency"].sentence


def test_ts1_and_ts2_cannot_be_told_apart_within_their_roundings() -> None:
    assert FINDINGS["claim.second_policing_node"].verdict == "rounding"


def test_a_session_of_46_ms_leaves_half_a_millisecond_a_request_of_the_documented_50() -> None:
    finding = FINDINGS["claim.flow_time"]
    assert finding.expected.value == pytest.approx(0.046)
    assert finding.verdict == "consistent"
    assert "46 ms [44, 48]" in finding.sentence
    assert "0.5 ms a request" in finding.sentence


def test_workers_of_ts3_and_ts4_do_follow_the_rate_per_node() -> None:
    assert FINDINGS["claim.shared_out.ts3"].verdict == "consistent"
    assert FINDINGS["claim.shared_out.ts4"].verdict == "consistent"
    assert "56 over all nodes against 32 in TS1" in FINDINGS["claim.shared_out.ts2"].sentence


def test_claims_without_a_measurement_stand_as_untested() -> None:
    untested = {finding.name for finding in REPORT.register if finding.verdict == "untested"}
    assert untested == {"claim.linear_scaling", "claim.production"}
    assert all((finding.documented is None) == (finding.verdict == "untested") for finding in FINDINGS.values())


def test_figures_that_no_law_refutes_are_said_to_be_consistent() -> None:
    for finding in REPORT.laws:
        if finding.name.split(".")[0] in ("utilisation", "monotone", "duplicate", "ownership"):
            assert finding.verdict == "consistent", finding.name


def test_accounting_may_wait_for_the_other_data_centre_and_authorization_does_not() -> None:
    # Light takes 1.0007 ms for 2 x 150 km; accounting rose by 1 to 2 ms, authorization by 0 to 1 ms.
    finding = FINDINGS["propagation.acct"]
    assert finding.expected.low == pytest.approx(0.0010007, abs=1e-7)
    assert {finding.verdict, FINDINGS["propagation.auth"].verdict} == {"consistent"}


@pytest.mark.parametrize("name", ["pause.always", "flow_time.ldap", "busy_in_total.ts3", "busy_in_total.ts4"])
def test_refuted_readings_are_no_contradictions_of_the_document(name: str) -> None:
    assert FINDINGS[name].verdict == "contradicted"
    assert FINDINGS[name] not in REPORT.contradictions


def test_rows_marked_contradictory_are_those_that_the_audit_refutes() -> None:
    marked = {row.id for row in ROWS if row.status == "contradictory" and row.use != "excluded"}
    assert marked == {name for finding in REPORT.contradictions for name in finding.rows if name in marked}
    assert all(marked.intersection(finding.rows) for finding in REPORT.contradictions)


def test_findings_name_rows_that_exist_and_speak_in_one_sentence() -> None:
    known = {row.id for row in ROWS}
    assert len(FINDINGS) == len(REPORT.laws) + len(REPORT.register) + len(REPORT.readings)
    for finding in FINDINGS.values():
        assert known.issuperset(finding.rows), finding.name
        assert finding.rows
        assert finding.sentence.endswith(".")
        assert "{" not in finding.sentence
        assert "\n" not in finding.sentence


@pytest.mark.parametrize(
    ("name", "columns", "finding", "verdict"),
    [
        ("ts1.busy_workers", {"value": 27.0, "low": 26.5, "high": 27.5}, "little.ts1", "consistent"),
        ("ts1.busy_workers", {"value": 29.0, "low": 28.5, "high": 29.5}, "little.ts1", "rounding"),
        (
            "ts1.proxy.outgoing",
            {"value": 13100.0, "low": 12900.0, "high": 13300.0},
            "forced_flow.ts1.proxy",
            "consistent",
        ),
        ("ts3.rate_growth", {"value": 1.39, "low": 1.385, "high": 1.395}, "claim.growth", "rounding"),
        ("ts4-ldap.rate_rise", {"value": 1300.0, "low": 1050.0, "high": 1550.0}, "claim.ldap_rate", "consistent"),
        (
            "ts4-ldap.acct_mean",
            {"value": 0.006, "low": 0.00575, "high": 0.00625},
            "claim.ldap_accounting",
            "consistent",
        ),
        ("ts2.auth_mean", {"value": 0.001, "low": 0.00075, "high": 0.00125}, "monotone.ts2.auth", "contradicted"),
        ("ts3.proxy.acct_mean", {"value": 0.007}, "duplicate.ts3.proxy", "contradicted"),
        ("all.front_workers", {"value": 8.0, "low": 8.0, "high": 8.0}, "utilisation.ts1", "contradicted"),
        ("all.rf", {"value": 2.0, "low": 2.0, "high": 2.0}, "ownership", "contradicted"),
        ("ts4.flow_time", {"value": 0.04, "low": 0.035, "high": 0.0435}, "claim.flow_time", "contradicted"),
        (
            "ts2.incoming",
            {"value": 8200.0, "low": 8100.0, "high": 8300.0},
            "claim.second_policing_node",
            "contradicted",
        ),
        ("ts3.incoming", {"value": 9000.0, "low": 8900.0, "high": 9100.0}, "objective.ts3", "contradicted"),
    ],
)
def test_a_changed_row_changes_the_verdict(name: str, columns: dict[str, float], finding: str, verdict: str) -> None:
    assert FINDINGS[finding].verdict != verdict
    assert _changed(name, **columns)[finding].verdict == verdict


def test_the_report_says_which_data_it_has_seen() -> None:
    assert REPORT.data_hash == data_hash("openprovider")
    assert audit("openprovider") == REPORT


def test_a_system_without_checks_is_refused_with_the_nearest() -> None:
    with pytest.raises(InputError, match="'openprovidr' is not a system that can be audited; did you mean 'openprovid"):
        audit_rows("openprovidr", ROWS)


def test_laws_that_lack_their_rows_are_skipped() -> None:
    rows = select(ROWS, quantity="latency")
    assert not worker_gaps(rows)
    assert {finding.name.split(".")[0] for finding in laws(rows)} == {"duplicate"}
    assert not readings(rows)


def test_without_the_mix_of_a_session_there_is_no_mean_time_to_audit() -> None:
    rows = [row for row in ROWS if row.quantity != "session_requests"]
    assert not worker_gaps(rows)
    assert not {finding.name.split(".")[0] for finding in laws(rows)} & {"little", "forced_flow"}


def test_intervals_are_printed_for_people() -> None:
    assert shown(Interval(0.004, 0.00375, 0.00425), "s") == "4 ms [3.75, 4.25]"
    assert shown(Interval(7000, 6900, 7100), "1/s") == "7000/s [6900, 7100]"
    assert shown(Interval(0.9, 0.9, float("inf")), "s") == "at least 900 ms"
    assert shown(Interval(0.9, float("-inf"), 0.9), "s") == "at most 900 ms"
    assert shown(Interval.exactly(1.875)) == "1.875"
    assert shown(Interval(9e9, 8.5e9, 10.2e9), "B") == "9 GB [8.5, 10.2]"
    assert shown(Interval(0.8379, 0.83785, 0.83795), "s") == "837.9 ms [837.85, 837.95]"


def test_nothing_documented_is_untested() -> None:
    finding = compare("x", "x", ROWS[:1], Interval.exactly(1.0), None, "Expected {expected}, documented {documented}.")
    assert (finding.verdict, finding.sentence) == ("untested", "Expected 1, documented nothing.")
