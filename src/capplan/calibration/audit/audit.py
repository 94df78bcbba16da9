"""The audit: laws and claims held against every documented figure before anyone believes it.

The intervals are those that the rounding of the printed figures allows; a verdict of `contradicted` means that no
reading of the roundings saves the figure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from capplan.calibration.audit.finding import Finding
from capplan.calibration.evidence.table import Evidence, rows_hash
from capplan.calibration.system import System
from capplan.systems.openprovider.laws import WorkerGap, worker_gaps

Check = Callable[[Iterable[Evidence]], tuple[Finding, ...]]


@dataclass(frozen=True)
class Checks:
    """What is held against the evidence of one system: operational laws, the document's claims, open readings."""

    laws: Check
    register: Check
    readings: Check


def checks_of(system: System[Any]) -> Checks:
    """Return the checks of a system."""
    package = type(system).__module__
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


def audit(system: System[Any]) -> AuditReport:
    """Audit the evidence about a system.

    Raises
    ------
    InputError
        If a row breaks a rule.
    """
    return audit_rows(system, system.evidence)


def audit_rows(system: System[Any], rows: Iterable[Evidence]) -> AuditReport:
    """Audit `rows` of evidence about a system."""
    rows, checks = tuple(rows), checks_of(system)
    gaps = worker_gaps(rows) if system.name == "openprovider" else ()
    laws, register, readings = (check(rows) for check in (checks.laws, checks.register, checks.readings))
    missing = tuple(row for row in rows if row.status == "missing")
    return AuditReport(system.name, rows_hash(rows), laws, gaps, register, readings, missing)
