"""The audit: laws and claims held against every documented figure before anyone believes it.

The intervals are those that the rounding of the printed figures allows; a verdict of `contradicted` means that no
reading of the roundings saves the figure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from capplan.calibration.contradictions import register
from capplan.calibration.evidence_table import Evidence, load, rows_hash
from capplan.calibration.finding import Finding
from capplan.calibration.laws import LAWS, WorkerGap, worker_gaps
from capplan.calibration.readings import READINGS


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
        One per experiment that counts its busy workers.
    register : tuple of Finding
        What the document says about its own figures against the figures.
    readings : tuple of Finding
        Readings that the document leaves open, tried; a refuted one is no contradiction.
    """

    system: str
    data_hash: str
    laws: tuple[Finding, ...]
    worker_gaps: tuple[WorkerGap, ...]
    register: tuple[Finding, ...]
    readings: tuple[Finding, ...]

    @property
    def contradictions(self) -> tuple[Finding, ...]:
        """The findings, of laws and register alike, whose verdict is `contradicted`."""
        return tuple(finding for finding in (*self.laws, *self.register) if finding.verdict == "contradicted")


def audit(system: str) -> AuditReport:
    """Audit the evidence about `system`.

    Raises
    ------
    InputError
        If there is no evidence about `system`, or a row breaks a rule.
    """
    return audit_rows(system, load(system))


def audit_rows(system: str, rows: Iterable[Evidence]) -> AuditReport:
    """Audit `rows` of evidence about `system`."""
    rows = tuple(rows)
    laws = tuple(finding for law in LAWS for finding in law(rows))
    readings = tuple(finding for reading in READINGS for finding in reading(rows))
    return AuditReport(system, rows_hash(rows), laws, worker_gaps(rows), register(system, rows), readings)
