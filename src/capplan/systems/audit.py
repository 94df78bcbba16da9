"""The audit of a system by name."""

from __future__ import annotations

from typing import Any

from capplan.calibration.audit.audit import AuditReport, audit_rows
from capplan.calibration.audit.checks import read_checks
from capplan.calibration.system import System
from capplan.systems.registry import system


def audit(target: str | System[Any]) -> AuditReport:
    """Audit the evidence about a system: check its documented figures against operational laws and its own claims.

    Parameters
    ----------
    target : str or System
        The system, or its name, such as `openprovider`.

    Returns
    -------
    AuditReport
        What each check finds: expected and documented interval, a verdict, and the finding in words.

    Raises
    ------
    InputError
        If there is no such system, it has no evidence or no `audit.toml`, or one of these breaks a rule.
    """
    its = system(target) if isinstance(target, str) else target
    return audit_rows(read_checks(its.folder), its.evidence)
