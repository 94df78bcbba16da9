"""The audit of a system, by name."""

from __future__ import annotations

from typing import Any

from capplan.calibration.audit.audit import AuditReport, audit_rows
from capplan.calibration.audit.checks import read_checks
from capplan.calibration.system import System
from capplan.systems.registry import system


def audit(target: str | System[Any]) -> AuditReport:
    """Check the documented figures of a system against operational laws and the documents' own claims.

    Parameters
    ----------
    target : str or System
        The system, or its name, such as `openprovider`.

    Returns
    -------
    AuditReport
        The result of each check: expected and documented interval, a verdict, and an explanation in words.

    Raises
    ------
    InputError
        If there is no such system, it has no evidence or no `audit.toml`, or one of these breaks a rule.
    """
    audited = system(target) if isinstance(target, str) else target
    return audit_rows(read_checks(audited.folder), audited.evidence)
