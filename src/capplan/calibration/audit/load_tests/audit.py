"""The audit of a load-test table: every finding, and a verdict about the saturation of every row."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from capplan.calibration.audit.load_tests.measured_row import MeasuredRow
from capplan.calibration.audit.load_tests.row_checks import Saturation, Verdict, row_findings, saturation
from capplan.calibration.audit.load_tests.rules import RULES, LoadTestFinding
from capplan.calibration.audit.load_tests.run_checks import run_findings
from capplan.calibration.audit.load_tests.series_checks import scatter, series_findings
from capplan.calibration.evidence.load_tests import LOAD_TESTS

SCHEMA = "capplan.load-test-audit/1"


@dataclass(frozen=True)
class RowVerdict:
    """What the audit says of one row.

    Attributes
    ----------
    line
        Number of the row, from 1.
    run_id
        That of the row.
    request_class
        That of the row.
    believed
        Whether no finding refuses a figure of the row.
    saturation
        `steady`, `backlogged`, `overloaded` or `unknown`.
    shortfall
        Share of the offered requests that was not completed.
    noise
        Share that chance, start and end of the run explain.
    """

    line: int
    run_id: str | None
    request_class: str | None
    believed: bool
    saturation: Verdict
    shortfall: float | None
    noise: float | None


@dataclass(frozen=True)
class LoadTestAudit:
    """The audit of a table.

    Attributes
    ----------
    findings
        Refused figures first, in the order of the rules and the rows.
    rows
        One for each row.
    loads
        Different loads.
    repeated
        Loads that were measured more than once.
    scatter
        Median range of the throughput of repeats, relative to their median.
    """

    findings: tuple[LoadTestFinding, ...]
    rows: tuple[RowVerdict, ...]
    loads: int
    repeated: int
    scatter: float | None

    @property
    def refused(self) -> tuple[LoadTestFinding, ...]:
        """The findings of figures that must not be believed."""
        return tuple(each for each in self.findings if each.severity == "refused")


def audit_load_tests(frame: pd.DataFrame) -> LoadTestAudit:
    """Audit a load-test table.

    Parameters
    ----------
    frame : pandas.DataFrame
        A table as `LOAD_TESTS.read` or `LOAD_TESTS.frame` returns it.

    Returns
    -------
    LoadTestAudit
    """
    rows = [MeasuredRow(line, row) for line, row in enumerate(LOAD_TESTS.rows(frame), start=1)]
    found = [finding for each in rows for finding in row_findings(each)]
    broken = {each.line for each in found if each.rule in ("impossible-value", "overflowed-counter")}
    sound = [each for each in rows if each.line not in broken]
    found += [*run_findings(sound), *series_findings(sound)]
    order = {name: place for place, name in enumerate(RULES)}
    found.sort(key=lambda each: (each.severity != "refused", order[each.rule], each.line))
    refused = {each.line for each in found if each.severity == "refused"}
    omitted = {each.run_id for each in found if each.rule == "coordinated-omission"}  # by every class of the run
    refused |= {each.line for each in rows if each.row.run_id in omitted and each.row.run_id is not None}
    loads, repeated, range_ = scatter(sound)
    verdicts = tuple(_verdict(each, each.line not in refused, each.line in broken) for each in rows)
    return LoadTestAudit(tuple(found), verdicts, loads, repeated, range_)


def _verdict(measured: MeasuredRow, believed: bool, broken: bool) -> RowVerdict:
    found = Saturation("unknown") if broken else saturation(measured)
    row = measured.row
    return RowVerdict(
        measured.line, row.run_id, row.request_class, believed, found.verdict, found.shortfall, found.noise
    )
