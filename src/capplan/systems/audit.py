"""The audit of a system, by name."""

from __future__ import annotations

from typing import Any

from capplan.calibration.audit.audit import Audit, audit_documents
from capplan.calibration.audit.checks import read_checks
from capplan.calibration.system import System
from capplan.systems.registry import system


def audit(target: str | System[Any]) -> Audit:
    """Audit the documents about a system: their load tests, and their figures against laws and their own claims.

    Parameters
    ----------
    target : str or System
        The system, or its name, such as `openprovider`.

    Returns
    -------
    Audit
        Each finding with the figures that it speaks of; one for each check, whether it refutes something or not.

    Raises
    ------
    InputError
        If there is no such system, it has no evidence or no `audit.toml`, or one of these breaks a rule.
    """
    audited = system(target) if isinstance(target, str) else target
    return audit_documents(read_checks(audited.folder), audited.evidence)
