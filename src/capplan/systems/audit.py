"""The audit of a system by name."""

from __future__ import annotations

from importlib.resources import files

from capplan.calibration.audit.audit import AuditReport, audit_rows
from capplan.calibration.audit.checks import Checks, read_checks
from capplan.calibration.evidence.table import load


def audit(system: str) -> AuditReport:
    """Audit the evidence about a system: check its documented figures against operational laws and its own claims.

    Parameters
    ----------
    system : str
        Name of the system, such as `openprovider`.

    Returns
    -------
    AuditReport
        What each check finds: expected and documented interval, a verdict, and the finding in words.

    Raises
    ------
    InputError
        If there is no evidence about `system`, or a row of it breaks a rule.
    """
    rows = load(system)
    return audit_rows(checks(system), rows)


def checks(system: str) -> Checks:
    """Return the checks of the evidence about a system, from the `audit.toml` in its folder.

    Raises
    ------
    InputError
        If the folder has no such file, or the file breaks a rule.
    """
    return read_checks(files("capplan.systems") / system.replace("-", "_"))
