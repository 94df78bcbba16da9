"""The audit of a system by name."""

from __future__ import annotations

from importlib.resources import files

from capplan.calibration.audit.audit import AuditReport, audit_rows
from capplan.calibration.audit.checks import Checks, read_checks
from capplan.calibration.evidence.table import load


def audit(system: str) -> AuditReport:
    """Audit the evidence about a system: hold laws and the claims of its documents against every documented figure.

    Parameters
    ----------
    system : str
        Name of the system, such as `openprovider`.

    Returns
    -------
    AuditReport
        What the checks of the system find, each with a verdict and a sentence.

    Raises
    ------
    InputError
        If there is no evidence about `system`, or a row of it breaks a rule.
    """
    rows = load(system)
    return audit_rows(checks(system), rows)


def checks(system: str) -> Checks:
    """Return what is held against the evidence about a system, from the `audit.toml` in its folder.

    Raises
    ------
    InputError
        If the folder has no such file, or the file breaks a rule.
    """
    return read_checks(files("capplan.systems") / system.replace("-", "_"))
