"""The audit: laws and claims held against every documented figure before anyone believes it.

The intervals are those that the rounding of the printed figures allows; a verdict of `contradicted` means that no
reading of the roundings saves the figure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from capplan.calibration import (
    arion_claims,
    arion_laws,
    arion_readings,
    fedora4_claims,
    fedora4_laws,
    fedora4_readings,
    openprovider_claims,
    openprovider_laws,
    openprovider_readings,
    rhino_shcm_claims,
    rhino_shcm_laws,
    rhino_shcm_readings,
    vcider_claims,
    vcider_laws,
    vcider_readings,
)
from capplan.calibration.evidence_table import Evidence, load, rows_hash
from capplan.calibration.finding import Finding
from capplan.calibration.openprovider_laws import WorkerGap, worker_gaps
from capplan.models.errors import InputError, nearest

Check = Callable[[Iterable[Evidence]], tuple[Finding, ...]]


@dataclass(frozen=True)
class Checks:
    """What is held against the evidence of one system: operational laws, the document's claims, open readings."""

    laws: Check
    register: Check
    readings: Check


CHECKS = {
    "openprovider": Checks(openprovider_laws.laws, openprovider_claims.register, openprovider_readings.readings),
    "rhino-shcm": Checks(rhino_shcm_laws.laws, rhino_shcm_claims.register, rhino_shcm_readings.readings),
    "fedora4": Checks(fedora4_laws.laws, fedora4_claims.register, fedora4_readings.readings),
    "vcider": Checks(vcider_laws.laws, vcider_claims.register, vcider_readings.readings),
    "arion": Checks(arion_laws.laws, arion_claims.register, arion_readings.readings),
}


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
    if system not in CHECKS:
        raise InputError(f"{system!r} is not a system that can be audited{nearest(system, CHECKS)}")
    rows, checks = tuple(rows), CHECKS[system]
    gaps = worker_gaps(rows) if system == "openprovider" else ()
    found = (check(rows) for check in (checks.laws, checks.register, checks.readings))
    laws, register, readings = found
    missing = tuple(row for row in rows if row.status == "missing")
    return AuditReport(system, rows_hash(rows), laws, gaps, register, readings, missing)
