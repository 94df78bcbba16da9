"""The audit of vcider: averages, register and readings, worked out by hand from the published tables."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from capplan.calibration.audit.audit import audit, audit_rows
from capplan.calibration.audit.finding import Finding
from capplan.calibration.evidence.table import Evidence, by_id, data_hash, load
from capplan.systems.vcider.readings import column_effect, encryption_cost, mean_of, scatter

ROWS = load("vcider")
BY_ID = by_id(ROWS)
REPORT = audit("vcider")
FINDINGS = {finding.name: finding for finding in (*REPORT.laws, *REPORT.register, *REPORT.readings)}

WIDTHS = (32, 64, 128, 192, 256)
# The published cells, in %, over native: none, internode, both encrypted.
CELLS = {
    "r1": [(-8.2, 0.8, -2.3, -2.3, -6.7), (-0.7, -5.0, 1.9, 5.4, 4.7), (63.8, 55.4, 60.0, 53.9, 61.7)],
    "r3": [(-4.5, -4.7, -5.8, -4.5, -1.5), (3.8, 3.9, 6.1, 8.3, 4.0), (31.5, 29.6, 31.4, 27.3, 29.9)],
}
REFERENCES = ("none", "internode", "both")


def _changed(name: str, **columns: float) -> dict[str, Finding]:
    """Audit the evidence with one row changed."""
    rows: list[Evidence] = [replace(row, **columns) if row.id == name else row for row in ROWS]  # type: ignore[arg-type]  # columns of many types
    report = audit_rows("vcider", rows)
    return {finding.name: finding for finding in (*report.laws, *report.register, *report.readings)}


def test_what_is_contradicted_and_what_only_rounding_saves() -> None:
    found = {
        verdict: {name for name, each in FINDINGS.items() if each.verdict == verdict}
        for verdict in ("contradicted", "rounding", "untested")
    }
    assert found == {
        "contradicted": {
            "claim.slower.cells",  # +0.8 % at 64 bytes, R1
            "claim.node_only.cells",  # -0.7 and -5.0 % at 32 and 64 bytes, R1
            "claim.gain_grows.both",  # +59 to +30 %
            "claim.kernel.r1.internode",  # +1.3 % over encryption in user space
            "claim.kernel.r3.internode",  # +5.2 %
            "scatter.one",
            "runs.shared.r1",
            "runs.shared.r3",
            "change.internode",
            "change.both",
        },
        "rounding": {"average.r3.both"},  # 29.94 % printed as 30 %
        "untested": {"claim.regions", "claim.variability"},
    }


@pytest.mark.parametrize(
    ("average", "mean", "printed"),
    [
        ("r1.none", -18.7 / 5, -3.7),
        ("r1.both", 294.8 / 5, 59),
        ("r1.internode", 6.3 / 5, 1.3),
        ("r3.none", -21.0 / 5, -4.2),
        ("r3.both", 149.7 / 5, 30),
        ("r3.internode", 26.1 / 5, 5.2),
    ],
)
def test_averages_follow_from_the_cells(average: str, mean: float, printed: float) -> None:
    finding = FINDINGS[f"average.{average}"]
    assert finding.expected.value == pytest.approx(1 + mean / 100)
    assert finding.expected.high - finding.expected.low == pytest.approx(0.001)  # as wide as a cell's rounding
    assert finding.documented is not None
    assert finding.documented.value == pytest.approx(1 + printed / 100)


def test_the_gain_over_encrypted_native_shrinks_with_r3_and_over_node_encryption_it_grows() -> None:
    shrinks, grows = FINDINGS["claim.gain_grows.both"], FINDINGS["claim.gain_grows.internode"]
    assert shrinks.documented is not None
    assert grows.documented is not None
    assert (shrinks.documented.value, grows.documented.value) == pytest.approx((-0.29, 0.039))
    assert (shrinks.verdict, grows.verdict) == ("contradicted", "consistent")


def test_the_gain_is_the_clients_encryption_mostly() -> None:
    one, three = (FINDINGS[f"claim.client_mostly.{factor}"].documented for factor in ("r1", "r3"))
    assert one is not None
    assert three is not None
    assert (one.value, three.value) == pytest.approx((1 - 1.3 / 59, 1 - 5.2 / 30))


@pytest.mark.parametrize(("factor", "points"), [("r1", 4.04), ("r3", 1.77)])
def test_a_cell_repeats_within_4_points_with_r1_and_2_with_r3(factor: str, points: float) -> None:
    found = scatter(BY_ID, factor)
    squares = sum(np.var(row, ddof=1) for row in CELLS[factor]) / 3
    assert found.deviation * 100 == pytest.approx(float(squares) ** 0.5)
    assert found.deviation * 100 == pytest.approx(points, abs=0.005)
    assert found.freedom == 12
    assert found.interval.low < found.deviation < found.interval.high
    tails = stats.chi2(12).cdf([12 * (found.deviation / end) ** 2 for end in (found.interval.low, found.interval.high)])
    assert tails == pytest.approx([0.95, 0.05])


@pytest.mark.parametrize("factor", CELLS)
def test_slopes_over_the_column_width_are_those_of_least_squares(factor: str) -> None:
    found = scatter(BY_ID, factor, line=True)
    fits = [stats.linregress(WIDTHS, np.array(row) / 100) for row in CELLS[factor]]
    assert found.slopes == pytest.approx([fit.slope for fit in fits])
    # Three lines of three degrees of freedom each, pooled.
    assert found.slope_error**2 == pytest.approx(float(np.mean([fit.stderr**2 for fit in fits])))
    assert found.freedom == 9
    assert {FINDINGS[f"slope.{factor}.{reference}"].verdict for reference in REFERENCES} == {"consistent"}


@pytest.mark.parametrize("factor", CELLS)
def test_a_line_leaves_as_much_as_a_constant(factor: str) -> None:
    assert scatter(BY_ID, factor, line=True).deviation == pytest.approx(scatter(BY_ID, factor).deviation, rel=0.02)


def test_r1_scatters_more_than_r3_by_more_than_chance() -> None:
    ratio = scatter(BY_ID, "r1").deviation ** 2 / scatter(BY_ID, "r3").deviation ** 2
    assert stats.f(12, 12).sf(ratio) < 0.01
    assert FINDINGS["scatter.one"].verdict == "contradicted"


@pytest.mark.parametrize("factor", CELLS)
def test_what_cells_of_a_column_share_is_a_two_way_analysis_of_variance(factor: str) -> None:
    table = np.array(CELLS[factor]) / 100
    rows, columns = table.mean(axis=1, keepdims=True), table.mean(axis=0, keepdims=True)
    left = table - rows - columns + table.mean()
    between = 3 * float(((columns - table.mean()) ** 2).sum()) / 4
    found, above, below = column_effect(BY_ID, factor)
    assert (above, below) == (4, 8)
    assert found == pytest.approx(between / (float((left**2).sum()) / 8))


def test_a_run_that_all_comparisons_share_is_told_from_runs_of_their_own() -> None:
    # A common up and down of three points over the columns, on top of the published cells.
    common = dict(zip(WIDTHS, (0.03, -0.03, 0.03, -0.03, 0.0), strict=True))
    rows = [
        replace(row, value=row.value + common[int(row.layout["column_bytes"])]) if row.use == "fit" else row
        for row in ROWS
    ]
    found = {finding.name: finding.verdict for finding in audit_rows("vcider", rows).readings}
    assert found["runs.shared.r3"] == "consistent"
    assert found["runs.independent.r3"] == "contradicted"


def test_the_interval_of_a_mean_is_students() -> None:
    mean = mean_of(BY_ID, "r1", "none")
    width = stats.t(12).ppf(0.95) * scatter(BY_ID, "r1").deviation / 5**0.5
    assert (mean.value, mean.high - mean.value) == pytest.approx((1 - 0.187 / 5, width))


def test_what_encryption_costs_a_native_operation() -> None:
    # By the means of the cells: (1.5896 - 1.0126) / 0.9626 and (1.2994 - 1.0522) / 0.958 of a plain operation.
    costs = [encryption_cost(BY_ID, factor, "both").value for factor in ("r1", "r3")]
    assert costs == pytest.approx([0.577 / 0.9626, 0.2472 / 0.958])
    documented = FINDINGS["cost.client"].documented
    assert documented is not None
    assert documented.value == pytest.approx(costs[0] / costs[1])
    node = [encryption_cost(BY_ID, factor, "internode").value for factor in ("r1", "r3")]
    assert node == pytest.approx([1.0126 / 0.9626 - 1, 1.0522 / 0.958 - 1])
    assert FINDINGS["cost.node"].expected.value == pytest.approx(3 * node[0] * costs[1] / costs[0])


def test_rows_marked_contradictory_are_those_that_the_audit_refutes() -> None:
    marked = {row.id for row in ROWS if row.status == "contradictory"}
    assert marked == {name for finding in REPORT.contradictions for name in finding.rows if name in marked}
    assert all(marked.intersection(finding.rows) for finding in REPORT.contradictions)


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
        ("r1.none.average", {"value": 0.96, "low": 0.9595, "high": 0.9605}, "average.r1.none", "contradicted"),
        ("r1.none.c64", {"value": 0.98, "low": 0.9795, "high": 0.9805}, "claim.slower.cells", "consistent"),
        ("r1.none.average", {"value": 1.02, "low": 1.0195, "high": 1.0205}, "claim.slower.r1", "contradicted"),
        ("r3.internode.average", {"value": 0.98, "low": 0.9795, "high": 0.9805}, "claim.node_only.r3", "contradicted"),
        ("r3.both.average", {"value": 1.7, "low": 1.695, "high": 1.705}, "claim.gain_grows.both", "consistent"),
        ("r3.both.average", {"value": 1.7, "low": 1.695, "high": 1.705}, "duplicate.r3", "contradicted"),
        ("r3.none.average", {"value": 0.98, "low": 0.9795, "high": 0.9805}, "claim.loss_grows", "contradicted"),
        (
            "r1.internode.average",
            {"value": 1.2, "low": 1.1995, "high": 1.2005},
            "claim.kernel.r1.internode",
            "consistent",
        ),
        (
            "r1.internode.average",
            {"value": 0.95, "low": 0.9495, "high": 0.9505},
            "added_work.r1.internode",
            "contradicted",
        ),
        (
            "r1.internode.average",
            {"value": 1.4, "low": 1.3995, "high": 1.4005},
            "claim.client_mostly.r1",
            "contradicted",
        ),
        ("r3.none.c256", {"value": 1.1, "low": 1.0995, "high": 1.1005}, "scatter.one", "consistent"),
    ],
)
def test_a_changed_row_changes_the_verdict(name: str, columns: dict[str, float], finding: str, verdict: str) -> None:
    assert FINDINGS[finding].verdict != verdict
    assert _changed(name, **columns)[finding].verdict == verdict


def test_a_column_width_that_matters_is_seen() -> None:
    # Ten points more for each doubling of the width, over native without encryption with R3.
    rows = [
        replace(row, value=row.value + 0.1 * np.log2(int(row.layout["column_bytes"]) / 32))
        if row.id.startswith("r3.none.c")
        else row
        for row in ROWS
    ]
    found = {finding.name: finding.verdict for finding in audit_rows("vcider", rows).readings}
    assert found["slope.r3.none"] == "contradicted"


def test_the_report_says_which_data_it_has_seen_and_what_is_missing() -> None:
    assert REPORT.data_hash == data_hash("vcider")
    assert [row.id for row in REPORT.missing] == ["all.attachment", "all.analysis"]
