"""The audit: laws and claims held against every documented figure before anyone believes it.

The intervals are those that the rounding of the printed figures allows; a verdict of `contradicted` means that no
reading of the roundings saves the figure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module

from capplan.calibration.audit.finding import Finding
from capplan.calibration.evidence.table import Evidence, load, rows_hash
from capplan.models.errors import InputError, nearest
from capplan.systems.openprovider.laws import WorkerGap, worker_gaps
from capplan.systems.studies import NAMES

Check = Callable[[Iterable[Evidence]], tuple[Finding, ...]]


@dataclass(frozen=True)
class Checks:
    """What is held against the evidence of one system: operational laws, the document's claims, open readings."""

    laws: Check
    register: Check
    readings: Check


def checks_of(system: str) -> Checks:
    """Return the checks of a system."""
    package = f"capplan.systems.{system.replace('-', '_')}"
    return Checks(
        import_module(f"{package}.laws").laws,
        import_module(f"{package}.claims").register,
        import_module(f"{package}.readings").readings,
    )


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
        One per experiment that counts its busy workers, which only openprovider's do.
    register : tuple of Finding
        What the document says about its own figures, or one of its tests about another, against the figures.
    readings : tuple of Finding
        Readings that the document leaves open, tried; a refuted one is no contradiction.
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


def audit(system: str) -> AuditReport:
    """Audit the evidence about `system`.

    Raises
    ------
    InputError
        If there is no evidence about `system`, nothing to hold against it, or a row breaks a rule.
    """
    return audit_rows(system, load(system))


def audit_rows(system: str, rows: Iterable[Evidence]) -> AuditReport:
    """Audit `rows` of evidence about `system`.

    Raises
    ------
    InputError
        If there is nothing to hold against the evidence about `system`.
    """
    if system not in NAMES:
        raise InputError(f"{system!r} is not a system that can be audited{nearest(system, NAMES)}")
    rows, checks = tuple(rows), checks_of(system)
    gaps = worker_gaps(rows) if system == "openprovider" else ()
    found = (check(rows) for check in (checks.laws, checks.register, checks.readings))
    laws, register, readings = found
    missing = tuple(row for row in rows if row.status == "missing")
    return AuditReport(system, rows_hash(rows), laws, gaps, register, readings, missing)
