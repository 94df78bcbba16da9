"""The audit of fedora4: laws, register and readings, worked out by hand from the published tables."""

from dataclasses import replace

import pytest

from capplan.calibration.audit.audit import audit, audit_rows
from capplan.calibration.audit.finding import Finding
from capplan.calibration.evidence.table import Evidence, data_hash, load

ROWS = load("fedora4")
REPORT = audit("fedora4")
FINDINGS = {finding.name: finding for finding in (*REPORT.laws, *REPORT.register, *REPORT.readings)}


def _changed(name: str, **columns: float) -> dict[str, Finding]:
    """Audit the evidence with one row changed."""
    rows: list[Evidence] = [replace(row, **columns) if row.id == name else row for row in ROWS]  # type: ignore[arg-type]  # columns of many types
    report = audit_rows("fedora4", rows)
    return {finding.name: finding for finding in (*report.laws, *report.register, *report.readings)}


def _names(findings: tuple[Finding, ...], verdict: str) -> set[str]:
    return {finding.name for finding in findings if finding.verdict == verdict}


def test_laws_that_the_figures_break() -> None:
    assert _names(REPORT.laws, "contradicted") == {
        "monotone.throttled.n1",  # 38 ms at the fewest requests, 21 ms at the most
        "monotone.throttled.n3",  # 38 and 23 ms
        "monotone.throttled.n4",  # 38 and 21 ms
        "monotone.region.us-west",  # 88 ms at 300/s, 86 ms at 600/s
        "monotone.region.asia",  # 284 ms at 100/s, 271.5 ms at 1000/s
        "monotone.region.eu",  # 113 ms at 100/s, 107 ms at 600/s
        "capacity.region.r1000",  # 1000/s beside a capacity of 810/s
        "added_work.n3.delete",  # 66 ms alone, 61 ms beside reads
    }
    assert _names(REPORT.laws, "rounding") == {"added_work.n4.read_create"}  # 5 ms alone, 4 ms beside creates


def test_register_of_contradictions() -> None:
    assert _names(REPORT.register, "contradicted") == {
        *(f"claim.linear.{kind}.n{nodes}" for kind in ("read", "mixed") for nodes in (2, 3, 4)),
        *(f"claim.writes_free.n{nodes}" for nodes in (1, 2, 3, 4)),
        "claim.writes_same",
        "claim.same.n3.r3000",  # 27 ms against 21 ms
        "claim.same.n3.r6000",  # 24 ms against 21 ms
        "claim.same.n4.r3000",  # 26 ms against 21 ms
        "claim.users_at_once",
        "claim.read_time.beside_creates.n3",  # 7 ms on 3 nodes, 4 ms on 1
        *(f"objectives.read_time.n{nodes}" for nodes in (1, 3, 4)),
        "claim.write_time.alone.create.n4",  # 21 ms on 3 nodes, 13 ms on 4
        "claim.write_time.mixed.create.n4",  # 29 and 14 ms
        "claim.write_time.mixed.delete.n3",  # 63 ms on 1 node, 61 ms on 3
        "claim.three_nodes",
    }
    assert _names(REPORT.register, "rounding") == {
        "claim.same.n3.r10000",  # 23 ms against 21 ms
        "claim.same.n4.r6000",
        *(f"claim.read_time.{name}.n{nodes}" for name in ("alone", "beside_deletes") for nodes in (3, 4)),  # 5 and 4 ms
    }
    assert _names(REPORT.register, "untested") == {"claim.balance"}


def test_readings_that_the_figures_bear_out_and_refute() -> None:
    refuted = _names(REPORT.readings, "contradicted")
    assert refuted == {
        "run_cost.n1.r3000",
        "run_cost.n1.r6000",
        "region.flat.us-west",
        "region.flat.asia",
        "region.flat.eu",
        "straight_line.node_time.read",
        "straight_line.node_time.mixed",
        "write_cost.replicas",
    }
    assert not {finding.name for finding in REPORT.contradictions} & refuted


@pytest.mark.parametrize(
    ("name", "ratio"),
    [
        ("claim.linear.read.n2", 650 / 525),
        ("claim.linear.read.n3", 725 / 525),
        ("claim.linear.read.n4", 810 / 525),
        ("claim.linear.mixed.n2", 590 / 480),
        ("claim.linear.mixed.n3", 680 / 480),
        ("claim.linear.mixed.n4", 780 / 480),
    ],
)
def test_linear_is_1_54_times_on_four_nodes(name: str, ratio: float) -> None:
    finding = FINDINGS[name]
    assert finding.expected.value == float(name[-1])
    assert finding.documented is not None
    assert finding.documented.value == pytest.approx(ratio)


def test_100_users_have_0_6_to_3_8_requests_under_way() -> None:
    # 1000 / 60 s x 38 ms to 10000 / 60 s x 23 ms.
    finding = FINDINGS["claim.users_at_once"]
    assert finding.documented is not None
    assert finding.documented.value == pytest.approx(10000 / 60 * 0.023)
    assert "between 0.63 and 3.83 [" in finding.sentence
    least = FINDINGS["little.throttled.n1.r1000"].documented
    assert least is not None
    assert least.value == pytest.approx(1000 / 60 * 0.038)
    assert len([each for each in REPORT.laws if each.name.startswith("little.")]) == 12


@pytest.mark.parametrize(("nodes", "less"), [(1, 45), (2, 60), (3, 45), (4, 30)])
def test_writes_cost_30_to_60_requests_per_second(nodes: int, less: int) -> None:
    assert f" {less}/s less" in FINDINGS[f"claim.writes_free.n{nodes}"].sentence


@pytest.mark.parametrize(("nodes", "beside", "throttled"), [(1, 4, 21), (3, 5, 23), (4, 5, 21)])
def test_reads_take_4_to_5_ms_in_one_objective_and_21_ms_in_another(nodes: int, beside: int, throttled: int) -> None:
    finding = FINDINGS[f"objectives.read_time.n{nodes}"]
    assert finding.documented is not None
    assert (finding.expected.value * 1e3, finding.documented.value * 1e3) == pytest.approx((beside, throttled))


def test_writes_at_capacity_grow_from_24_to_39_per_s() -> None:
    sentence = FINDINGS["claim.writes_same"].sentence
    assert "24/s [23.8, 24.2]" in sentence
    assert "39/s [38.8, 39.2]" in sentence


@pytest.mark.parametrize(
    ("nodes", "requests", "expected_ms"),
    [
        # From the runs of 1000 and 10000: 3000 keeps (1/3 - 1/10) / (1 - 1/10) = 7/27 of the excess, 6000 2/27.
        (1, 3000, 21 + 17 * 7 / 27),
        (3, 3000, 23 + 15 * 7 / 27),
        (4, 3000, 21 + 17 * 7 / 27),
        (1, 6000, 21 + 17 * 2 / 27),
        (3, 6000, 23 + 15 * 2 / 27),
        (4, 6000, 21 + 17 * 2 / 27),
    ],
)
def test_a_fixed_cost_of_each_run_explains_the_clusters_alone(nodes: int, requests: int, expected_ms: float) -> None:
    finding = FINDINGS[f"run_cost.n{nodes}.r{requests}"]
    assert finding.expected.value * 1e3 == pytest.approx(expected_ms)
    assert (finding.verdict == "contradicted") == (nodes == 1)


def test_first_requests_of_users_would_take_170_to_190_ms_longer_on_clusters() -> None:
    # 15 ms and 17 ms over 0.9 of a run of 1000 requests by 100 users.
    finding = FINDINGS["run_cost.clusters"]
    assert finding.documented is not None
    assert (finding.expected.value, finding.documented.value) == pytest.approx((0.015 / 0.09, 0.017 / 0.09))
    assert finding.verdict == "rounding"


def test_a_client_one_round_trip_of_16_to_18_ms_away_explains_objective_3() -> None:
    finding = FINDINGS["client.round_trip"]
    assert finding.documented is not None
    assert (finding.expected.value * 1e3, finding.documented.value * 1e3) == pytest.approx((16, 18))
    assert finding.verdict == "rounding"


def test_capacities_of_clusters_lie_on_a_straight_line() -> None:
    for kind, middle in (("read", (650 + 810) / 2), ("mixed", (590 + 780) / 2)):
        finding = FINDINGS[f"straight_line.capacity.{kind}"]
        assert finding.expected.value == middle
        assert finding.verdict == "consistent"


def test_5_percent_writes_cost_about_a_quarter_of_a_millisecond_at_any_size() -> None:
    finding = FINDINGS["write_cost.same"]
    assert finding.documented is not None
    assert finding.expected.value == pytest.approx(4 / 780 - 4 / 810)
    assert finding.documented.value == pytest.approx(2 / 590 - 2 / 650)
    assert finding.verdict == "rounding"
    assert finding.documented.low < 0.24e-3 < finding.expected.high


def test_rows_marked_contradictory_are_named_by_a_contradiction() -> None:
    marked = {row.id for row in ROWS if row.status == "contradictory"}
    assert marked <= {name for finding in REPORT.contradictions for name in finding.rows}
    assert marked == {
        "throttled.users_at_once",
        "throttled.same",
        "capacity.linear",
        "capacity.writes_free",
        "capacity.writes_same",
        "region.r1000.offered",
        *(f"region.{region}.r1000.mean" for region in ("us-east", "us-west", "asia", "eu")),
        "mixed.nodes",
        "all.read_time_by_nodes",
        "all.write_time_by_nodes",
    }


def test_findings_name_rows_that_exist_and_speak_in_one_sentence() -> None:
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
        ("throttled.users", {"value": 3.0, "low": 3.0, "high": 3.0}, "little.throttled.n1.r10000", "contradicted"),
        (
            "capacity.n3.read",
            {"value": 600.0, "low": 595.0, "high": 605.0},
            "monotone.capacity.n3.read",
            "contradicted",
        ),
        ("capacity.n2.mixed", {"value": 700.0, "low": 695.0, "high": 705.0}, "monotone.writes.n2", "contradicted"),
        ("region.r600.offered", {"value": 900.0, "low": 900.0, "high": 900.0}, "capacity.region.r600", "contradicted"),
        (
            "region.us-east.r600.mean",
            {"value": 0.003, "low": 0.0025, "high": 0.0035},
            "monotone.region.us-east",
            "contradicted",
        ),
        ("mixed.write_share", {"value": 0.06, "low": 0.06, "high": 0.06}, "shares", "contradicted"),
        ("capacity.n4.read", {"value": 2100.0, "low": 2095.0, "high": 2105.0}, "claim.linear.read.n4", "consistent"),
        ("capacity.n4.mixed", {"value": 810.0, "low": 805.0, "high": 815.0}, "claim.writes_free.n4", "consistent"),
        (
            "capacity.n1.mixed",
            {"value": 400.0, "low": 395.0, "high": 405.0},
            "claim.reduced_a_little.n1",
            "contradicted",
        ),
        ("capacity.writes_same", {"value": 1.6, "low": 1.5, "high": 1.7}, "claim.writes_same", "consistent"),
        (
            "throttled.n3.r6000.mean",
            {"value": 0.022, "low": 0.0215, "high": 0.0225},
            "claim.same.n3.r6000",
            "consistent",
        ),
        ("alone.n1.read", {"value": 0.021, "low": 0.0205, "high": 0.0215}, "objectives.read_time.n1", "consistent"),
        ("alone.n3.read", {"value": 0.006, "low": 0.0055, "high": 0.0065}, "claim.read_time.alone.n3", "contradicted"),
        (
            "alone.n4.create",
            {"value": 0.025, "low": 0.0245, "high": 0.0255},
            "claim.write_time.alone.create.n4",
            "consistent",
        ),
        ("mixed.nodes", {"value": 4.0, "low": 4.0, "high": 4.0}, "claim.three_nodes", "consistent"),
        ("capacity.n1.read", {"value": 500.0, "low": 490.0, "high": 510.0}, "duplicate.single", "contradicted"),
        (
            "capacity.n3.mixed",
            {"value": 720.0, "low": 715.0, "high": 725.0},
            "straight_line.capacity.mixed",
            "contradicted",
        ),
        ("alone.n1.read", {"value": 0.008, "low": 0.0075, "high": 0.0085}, "cores.single", "contradicted"),
    ],
)
def test_a_changed_row_changes_the_verdict(name: str, columns: dict[str, float], finding: str, verdict: str) -> None:
    assert FINDINGS[finding].verdict != verdict
    assert _changed(name, **columns)[finding].verdict == verdict


def test_the_report_says_which_data_it_has_seen_and_counts_no_workers() -> None:
    assert REPORT.data_hash == data_hash("fedora4")
    assert REPORT.worker_gaps == ()
