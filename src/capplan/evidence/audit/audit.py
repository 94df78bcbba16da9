"""The audit of load tests and documents: every finding, and a saturation verdict for every row.

The load tests that documents print go through the same rules as those of users. Documents are also checked against
operational laws and against their own claims.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from capplan.answers.verb_answer import VerbAnswer
from capplan.errors import InputError
from capplan.evidence.audit.checks import Checks, Figures
from capplan.evidence.audit.finding import Finding
from capplan.evidence.audit.load_tests import (
    RULES,
    MeasuredRow,
    Saturation,
    Steadiness,
    row_findings,
    run_findings,
    saturation,
    scatter,
    series_findings,
)
from capplan.evidence.documented_runs import documented_runs
from capplan.evidence.load_tests import LOAD_TESTS
from capplan.evidence.table import Evidence, rows_hash


@dataclass(frozen=True)
class RowVerdict:
    """The audit's result for one row of a load-test table.

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
    saturation: Steadiness
    shortfall: float | None
    noise: float | None


@dataclass(frozen=True)
class Missing:
    """A figure that documents refer to but whose value their text does not contain, such as one in a picture.

    Attributes
    ----------
    id
        Of its row of evidence.
    quantity
        What kind of thing it is in, such as `chart`.
    text
        What it shows.
    locator
        Where the documents refer to it.
    """

    id: str
    quantity: str
    text: str
    locator: str


@dataclass(frozen=True, kw_only=True)
class Audit(VerbAnswer):
    """The audit of a load-test table, or of the documents about a system.

    Attributes
    ----------
    subject
        Name of the table or of the system.
    findings
        Those of load tests first, refused figures before cautions; then laws, claims and readings in their order.
    rows
        One for each row of the load-test table.
    loads
        Different loads.
    repeated
        Loads that were measured more than once.
    scatter
        Median range of the throughput of repeats, relative to their median.
    missing
        What documents refer to and their text does not have.
    data_hash
        SHA-256 of the documented figures; null for a table.
    """

    SCHEMA = "capplan.audit/2"
    UNBOUNDED = tuple(("Interval", number) for number in ("value", "low", "high"))

    subject: str
    findings: tuple[Finding, ...]
    rows: tuple[RowVerdict, ...]
    loads: int
    repeated: int
    scatter: float | None
    missing: tuple[Missing, ...] = ()
    data_hash: str | None = None

    @property
    def refused(self) -> tuple[Finding, ...]:
        """The findings about figures that must not be believed."""
        return tuple(each for each in self.findings if each.severity == "refused")

    @property
    def of_load_tests(self) -> tuple[Finding, ...]:
        """The findings of the rules for load-test tables."""
        return tuple(each for each in self.findings if each.part == "load test")

    @property
    def laws(self) -> tuple[Finding, ...]:
        """Operational laws checked against documented figures."""
        return tuple(each for each in self.findings if each.part == "law")

    @property
    def claims(self) -> tuple[Finding, ...]:
        """Claims of documents about their own figures, or of one test about another, checked against the figures."""
        return tuple(each for each in self.findings if each.part == "claim")

    @property
    def readings(self) -> tuple[Finding, ...]:
        """Interpretations that documents leave open; a refuted one is not a contradiction in the documents."""
        return tuple(each for each in self.findings if each.part == "reading")


def audit_load_tests(frame: pd.DataFrame, subject: str = "table") -> Audit:
    """Audit a load-test table.

    Parameters
    ----------
    frame : pandas.DataFrame
        A table as `LOAD_TESTS.read` or `LOAD_TESTS.frame` returns it.
    subject : str
        Name of the table.

    Returns
    -------
    Audit
    """
    rows = [MeasuredRow(line, row) for line, row in enumerate(LOAD_TESTS.rows(frame), start=1)]
    return Audit(subject=subject, **_of_load_tests(rows))


def check_believed(frame: pd.DataFrame, subject: str) -> None:
    """Refuse rows with figures that must not be believed.

    Parameters
    ----------
    frame : pandas.DataFrame
        Rows of a load-test table.
    subject : str
        Name of the table.

    Raises
    ------
    InputError
        Names the first of these rows with the rule that it breaks, and says how to leave it out.
    """
    refused = audit_load_tests(frame).refused
    if not refused:
        return
    first, lines = refused[0], {each.line for each in refused}
    run = first.run_id
    others = "" if len(lines) == 1 else f" and {len(lines) - 1} more"
    leave_out = "leave it out" if run is None else f'leave it out (--train "run_id != {run!r}")'
    raise InputError(
        f"{subject}: the audit refuses {f'row {first.line}' if run is None else f'run {run!r}'}{others} "
        f"({first.rule}): correct what `capplan evidence audit` shows, {leave_out}, or add --with-refused"
    )


def audit_documents(checks: Checks, evidence: Iterable[Evidence]) -> Audit:
    """Audit one system's documented figures and the load tests among them.

    Parameters
    ----------
    checks : function
        Yields laws, claims and readings, each in its order: `checks` of the system's module `audit`.
    evidence : iterable of Evidence
        The figures; every figure that a check names must be among them.

    Returns
    -------
    Audit
        With a finding for each check, whether it refutes something or not.

    Raises
    ------
    InputError
        If there are no figures, or one that a check names is missing.
    """
    figures = tuple(evidence)
    if not figures:
        raise InputError("there are no rows of evidence to audit")
    of_rows = _of_load_tests(
        [
            MeasuredRow(line, each.row, each.rounding, each.figures)
            for line, each in enumerate(documented_runs(figures), start=1)
        ]
    )
    checked = checks(Figures(figures))
    return Audit(
        subject=figures[0].system,
        **{**of_rows, "findings": (*of_rows["findings"], *checked)},
        missing=tuple(
            Missing(each.id, each.quantity, each.text, each.locator) for each in figures if each.status == "missing"
        ),
        data_hash=rows_hash(figures),
    )


def _of_load_tests(rows: Sequence[MeasuredRow]) -> Mapping[str, Any]:
    """Return the findings of the load-test rules in a table, as fields of `Audit`."""
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
    return {"findings": tuple(found), "rows": verdicts, "loads": loads, "repeated": repeated, "scatter": range_}


def _verdict(measured: MeasuredRow, believed: bool, broken: bool) -> RowVerdict:
    found = Saturation("unknown") if broken else saturation(measured)
    row = measured.row
    return RowVerdict(
        measured.line, row.run_id, row.request_class, believed, found.verdict, found.shortfall, found.noise
    )
