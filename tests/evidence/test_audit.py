"""The audits of the documented systems: a reviewed snapshot, figures worked out by hand, and planted contradictions."""

import csv
import math
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest

import capplan
from capplan.errors import InputError
from capplan.evidence.audit.audit import Audit
from capplan.evidence.audit.checks import Checks, Figures
from capplan.evidence.audit.finding import Finding, shown
from capplan.evidence.interval import Interval
from capplan.evidence.table import by_id
from capplan.systems import registry

SNAPSHOTS = Path(__file__).parent / "audits"
REPORTS = {system: capplan.audit(system) for system in registry.documented_names()}


def all_findings(report: Audit) -> dict[str, Finding]:
    """Return every finding of a report by name."""
    return {each.rule: each for each in (*report.laws, *report.claims, *report.readings)}


def numbers(interval: Interval | None) -> list[float]:
    """Return an interval as a snapshot has it."""
    return [] if interval is None else [interval.value, interval.low, interval.high]


@pytest.mark.parametrize("system", registry.documented_names())
def test_findings_are_those_of_the_reviewed_snapshot(system: str) -> None:
    with (SNAPSHOTS / f"{system}.csv").open(encoding="utf-8", newline="") as file:
        _, *rows = csv.reader(file)
    found = all_findings(REPORTS[system])
    assert [row[1:4] for row in rows] == [[each.rule, each.verdict, each.unit] for each in found.values()]
    for row, each in zip(rows, found.values(), strict=True):
        reviewed = [float(cell) for cell in row[4:] if cell]
        assert numbers(each.expected) + numbers(each.documented) == pytest.approx(reviewed, rel=1e-8), each.rule


@pytest.mark.parametrize(
    ("system", "name", "expected", "documented"),
    [
        # Little's law: the rate of a front node times the mean of one authorization and seven accountings.
        ("openprovider", "little.ts1", 7000 * (2.5 + 7 * 4) / 8000, 32),
        ("openprovider", "little.ts2", 3600 * (3.5 + 7 * 4.5) / 8000, 28),
        ("openprovider", "little.ts3", 2500 * (4 + 7 * 6) / 8000, 20),
        ("openprovider", "little.ts4", 1750 * (4 + 7 * 6) / 8000, 15),
        ("openprovider", "little.ts4-ldap", 1750 * (13 + 7 * 7) / 8000, 15),
        ("openprovider", "forced_flow.ts4.proxy", 10500 * (1 + 7 / 8), 21000),
        ("openprovider", "forced_flow.ts4-ldap", 10500 * (1 + 7 / 8 + 1 / 8), 21500),
        ("openprovider", "claim.ldap_rate", 10500 / 8, 500),
        ("openprovider", "claim.growth", 10000 / 7200, 1.43),
        ("openprovider", "claim.shared_out.ts2", 32 * 3600 / 7000, 28),
        ("openprovider", "claim.flow_time", 4e-3 + 7 * 6e-3, 50e-3),
        ("rhino-shcm", "forced_flow.t6", 1400 * 1.8, 2520),
        ("rhino-shcm", "cpu_demand.t4", 3.2 / 2160, 3.0 / 1800),
        ("rhino-shcm", "claim.disk", 8e9, 9e9),
        # An exponential tail from the 90th to the 99th percentile; its reciprocal is a line over equal steps of load.
        (
            "rhino-shcm",
            "tail.a",
            1e-3 / math.log(10) / (2 / (655 - 292) - 1 / (264 - 58.8)),
            1e-3 / math.log(10) * (2810 - 1190),
        ),
        ("fedora4", "little.throttled.n1.r1000", 100, 1000 / 60 * 0.038),
        ("fedora4", "claim.users_at_once", 100, 10000 / 60 * 0.023),
        ("fedora4", "claim.linear.read.n4", 4, 810 / 525),
        ("fedora4", "claim.writes_same", 1, 39 / 24),
        ("fedora4", "client.round_trip", 16e-3, 18e-3),
        # From the runs of 1000 and 10000 requests, one of 3000 keeps (1/3 - 1/10) / (1 - 1/10) of the excess.
        ("fedora4", "run_cost.n3.r3000", 23e-3 + 15e-3 * 7 / 27, 27e-3),
        ("fedora4", "write_cost.same", 4 / 780 - 4 / 810, 2 / 590 - 2 / 650),
        ("vcider", "average.r1.none", 1 - 0.187 / 5, 1 - 0.037),
        ("vcider", "claim.gain_grows.both", None, 1.30 - 1.59),
        ("vcider", "claim.client_mostly.r1", None, 1 - 1.3 / 59),
        ("vcider", "cost.client", 2, (0.577 / 0.9626) / (0.2472 / 0.958)),
        ("arion", "rates.clients", 300_000, 300_000),
        ("arion", "claim.clients30", 40_000, 30 * 150),
        ("arion", "closed.clients300", 300 / 40_000, 1e-3),
        ("arion", "at_once", 40_000 * 0.6e-3, 30),
        ("arion", "watch.record", 1 / 40_000, 1.2 / 100_000),
    ],
)
def test_what_is_expected_and_what_the_document_has_as_worked_out_by_hand(
    system: str, name: str, expected: float | None, documented: float
) -> None:
    finding = all_findings(REPORTS[system])[name]
    assert finding.documented is not None
    assert finding.expected is not None
    assert finding.documented.value == pytest.approx(documented)
    if expected is not None:
        assert finding.expected.value == pytest.approx(expected)


def test_littles_interval_is_the_product_of_the_roundings() -> None:
    # TS1: 6900 to 7100/s, 2.25 to 2.75 ms, 3.75 to 4.25 ms.
    expected = all_findings(REPORTS["openprovider"])["little.ts1"].expected
    assert expected is not None
    assert expected.low == pytest.approx(6900 * (2.25 + 7 * 3.75) / 8000)
    assert expected.high == pytest.approx(7100 * (2.75 + 7 * 4.25) / 8000)


def with_row(system: str, name: str, row: str, figure: float) -> Finding:
    """Return what a check finds when a row has another figure, without a rounding."""
    rows = [
        replace(each, low=figure, value=figure, high=figure) if each.id == row else each
        for each in registry.system(system).evidence
    ]
    checks: Checks = import_module(f"capplan.systems.{system.replace('-', '_')}.audit").checks
    return next(each for each in checks(Figures(rows)) if each.rule == name)


@pytest.mark.parametrize("system", registry.documented_names())
def test_a_planted_contradiction_is_found_and_what_is_expected_is_not_accused(system: str) -> None:
    rows = by_id(registry.system(system).evidence)
    planted = 0
    for name, finding in all_findings(REPORTS[system]).items():
        row, expected = finding.figures[-1], finding.expected
        assert expected is not None
        if rows[row].interval != finding.documented:
            continue  # computed from several rows
        width = max(abs(bound) for bound in (expected.low, expected.high) if math.isfinite(bound))
        wrong = expected.high + width if math.isfinite(expected.high) else 0.95 * expected.low
        found = [with_row(system, name, row, figure) for figure in (wrong, expected.value)]
        if any((each.expected, each.figures) != (expected, finding.figures) for each in found):
            continue  # what is expected depends on the row, too
        assert [each.verdict for each in found] == ["contradicted", "consistent"], name
        planted += 1
    assert planted > len(all_findings(REPORTS[system])) / 4


@pytest.mark.parametrize("system", registry.documented_names())
def test_findings_name_rows_that_exist_and_end_as_sentences(system: str) -> None:
    report, known = REPORTS[system], {row.id for row in registry.system(system).evidence}
    found = all_findings(report)
    assert len(found) == len(report.laws) + len(report.claims) + len(report.readings)
    for finding in found.values():
        assert finding.figures
        assert known.issuperset(finding.figures), finding.rule
        assert finding.sentence.endswith(".")
        assert not set(finding.sentence) & set("{}\n")
        assert (finding.documented is None) == (finding.verdict == "untested")


@pytest.mark.parametrize("system", registry.documented_names())
def test_rows_marked_contradictory_are_named_by_a_contradiction(system: str) -> None:
    marked = {
        row.id for row in registry.system(system).evidence if row.status == "contradictory" and row.use != "excluded"
    }
    assert marked <= {name for finding in REPORTS[system].refused for name in finding.figures}


@pytest.mark.parametrize("system", registry.documented_names())
def test_a_refuted_reading_is_no_contradiction_of_the_document(system: str) -> None:
    report = REPORTS[system]
    assert not set(report.readings) & set(report.refused)
    assert {each.verdict for each in report.refused} <= {"contradicted"}


def test_a_system_without_evidence_is_refused() -> None:
    with pytest.raises(InputError, match="'openprovider'"):
        capplan.audit("openprovidr")


def test_intervals_are_printed_for_people() -> None:
    assert shown(Interval(0.004, 0.00375, 0.00425), "s") == "4 ms [3.75, 4.25]"
    assert shown(Interval(7000, 6900, 7100), "1/s") == "7000/s [6900, 7100]"
    assert shown(Interval(0.9, 0.9, float("inf")), "s") == "at least 900 ms"
    assert shown(Interval(1.0, 1.0, float("inf")), "s") == "at least 1000 ms"
    assert shown(Interval(0.9, float("-inf"), 0.9), "s") == "at most 900 ms"
    assert shown(Interval.exactly(1.875)) == "1.875"
    assert shown(Interval(9e9, 8.5e9, 10.2e9), "B") == "9 GB [8.5, 10.2]"
    assert shown(Interval(0.8379, 0.83785, 0.83795), "s") == "837.9 ms [837.85, 837.95]"
