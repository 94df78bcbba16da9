"""The audit: operational laws and the claims of the documents, checked against every documented figure.

The intervals are those that the rounding of the printed figures allows. A verdict of `contradicted` means that no
rounding explains the difference.

References
----------
.. [1] P. J. Denning and J. P. Buzen, "The operational analysis of queueing network models", ACM Computing Surveys
   10(3), 1978: operational laws hold for every system that is observed for long enough, whatever its distributions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from capplan.calibration.audit.checks import Check, Checks, Entry, WorkerCheck
from capplan.calibration.audit.expression import Figure, Group, Names, figure, fill
from capplan.calibration.audit.finding import Finding, Verdict, judge, shown
from capplan.calibration.audit.laws import RULES
from capplan.calibration.evidence.interval import Interval
from capplan.calibration.evidence.table import Evidence, by_id, rows_hash
from capplan.models.errors import InputError


@dataclass(frozen=True)
class WorkerGap:
    """Busy workers: what Little's law gives, what is documented, and what would close the gap.

    Attributes
    ----------
    rows : tuple of str
        Ids of the rows used.
    expected, documented : Interval
        Busy workers by Little's law from the peak rate and the mean times, and as printed.
    ratio : Interval
        Documented over expected.
    extra_hold_s : Interval
        Seconds that a request would have to hold its worker beyond its processing time.
    extra_workers : Interval
        WorkerCheck that would have to be busy with something else.
    """

    scenario: str
    rows: tuple[str, ...]
    expected: Interval
    documented: Interval
    ratio: Interval
    extra_hold_s: Interval
    extra_workers: Interval


@dataclass(frozen=True)
class AuditReport:
    """Everything that the audit of one system finds.

    Attributes
    ----------
    data_hash : str
        SHA-256 of the rows that were audited.
    laws : tuple of Finding
        Operational laws against the figures.
    worker_gaps : tuple of WorkerGap
        One per experiment whose document counts busy workers.
    register : tuple of Finding
        What the document says about its own figures, or one of its tests about another, against the figures.
    readings : tuple of Finding
        Readings that the document leaves open; a refuted reading is no contradiction in the document.
    missing : tuple of Evidence
        What the document refers to and its text does not have, such as the figures of a picture.
    """

    system: str
    data_hash: str
    laws: tuple[Finding, ...]
    worker_gaps: tuple[WorkerGap, ...]
    register: tuple[Finding, ...]
    readings: tuple[Finding, ...]
    missing: tuple[Evidence, ...]

    @property
    def contradictions(self) -> tuple[Finding, ...]:
        """The findings, of laws and register alike, whose verdict is `contradicted`."""
        return tuple(finding for finding in (*self.laws, *self.register) if finding.verdict == "contradicted")


def audit_rows(checks: Checks, rows: Iterable[Evidence]) -> AuditReport:
    """Check rows of evidence about one system.

    Parameters
    ----------
    checks : Checks
        Laws, claims and readings, from `read_checks`.
    rows : iterable of Evidence
        The rows; every row that a check names must be among them.

    Returns
    -------
    AuditReport
        A finding for each check, in the order of the checks.

    Raises
    ------
    InputError
        If there are no rows, or a check cannot be computed from them.
    """
    rows = tuple(rows)
    if not rows:
        raise InputError("there are no rows of evidence to audit")
    scope = Names(by_id(rows), functions=checks.functions or {})
    laws, register, readings = (
        tuple(apply(check, scope) for check in part) for part in (checks.laws, checks.claims, checks.readings)
    )
    gaps = tuple(_worker_gap(each, scope) for each in checks.workers)
    missing = tuple(row for row in rows if row.status == "missing")
    return AuditReport(rows[0].system, rows_hash(rows), laws, gaps, register, readings, missing)


def apply(check: Check, scope: Names) -> Finding:
    """Apply one check to the rows of `scope`.

    Raises
    ------
    InputError
        If the check cannot be computed from them.
    """
    try:
        return _found(check, replace(scope, let=check.let))
    except InputError as error:
        raise InputError(f"check {check.name!r}: {error}") from None


def _found(check: Check, scope: Names) -> Finding:
    scope = _with_series(check, scope)
    expected = figure(check.expected or RULES[check.rule][1], scope)
    documented = figure(check.documented or "second", scope) if check.documented or check.rule else None
    verdict: Verdict = "untested" if documented is None else judge(expected.interval, documented.interval)
    words = {
        "expected": replace(expected, text=shown(expected.interval, check.unit)),
        "documented": replace(documented, text=shown(documented.interval, check.unit)) if documented else Figure(0.0),
    }
    used = [*(scope.rows[name] for name in check.cites), *expected.rows, *(documented.rows if documented else ())]
    return Finding(
        name=check.name,
        law=check.law,
        rows=tuple(dict.fromkeys(row.id for row in used)),
        expected=expected.interval,
        documented=documented.interval if documented else None,
        unit=check.unit,
        verdict=verdict,
        sentence=fill(check.sentence, replace(scope, values={**scope.values, **words})),
    )


def _with_series(check: Check, scope: Names) -> Names:
    """Add the series of a check to the names that its expressions know, and what its rule picks from it."""
    if not check.series:
        return scope
    series = [_entry(each, replace(scope, let=each.let)) for each in check.series]
    values: dict[str, Figure | Group] = {"series": tuple(series)}
    if check.rule:
        values["first"], values["second"] = RULES[check.rule][0](series)
    return replace(scope, values=values)


def _entry(entry: Entry, scope: Names) -> Figure:
    return replace(figure(entry.value, scope), text=fill(entry.label, scope))


def _worker_gap(workers: WorkerCheck, scope: Names) -> WorkerGap:
    """Compare busy workers with Little's law, N = X R."""
    rate, time, busy = (
        figure(text, replace(scope, let=workers.let)) for text in (workers.rate, workers.time, workers.busy)
    )
    expected = rate.interval * time.interval
    return WorkerGap(
        scenario=workers.scenario,
        rows=tuple(dict.fromkeys(row.id for each in (rate, time, busy) for row in each.rows)),
        expected=expected,
        documented=busy.interval,
        ratio=busy.interval / expected,
        extra_hold_s=busy.interval / rate.interval - time.interval,
        extra_workers=busy.interval - expected,
    )
