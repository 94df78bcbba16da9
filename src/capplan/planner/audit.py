"""`audit`: what must not be believed in a load-test table, or in a system's documents."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd

from capplan.errors import InputError
from capplan.evidence.audit.audit import Audit, audit_documents, audit_load_tests
from capplan.evidence.audit.checks import Checks
from capplan.evidence.load_tests import LOAD_TESTS
from capplan.evidence.typed_table import PARQUET
from capplan.layout.system import System
from capplan.layout.table_system import table_of
from capplan.systems.registry import names, system

_TABLES = (".csv", PARQUET)


def audit(target: str | Path | pd.DataFrame | System[Any]) -> Audit:
    """Audit a load-test table or a system's documents.

    Parameters
    ----------
    target : str, Path, pandas.DataFrame or System
        A table: its file (`.csv` or `.parquet`) or its data frame, as `capplan evidence import` makes it. Or a
        documented system: itself or its name, such as `openprovider`.

    Returns
    -------
    Audit
        Each finding with what it means and what to do; of documents also each check of their figures, whether it
        refutes something or not.

    Raises
    ------
    InputError
        If there is no such table or system, the table breaks a rule, or the system lacks evidence or a module `audit`.
    """
    if isinstance(target, pd.DataFrame):
        return audit_load_tests(target)
    if isinstance(target, System) and table_of(target) is not None:
        raise InputError(f"{target.name} has no documents: it is fitted to your load tests, so audit their table")
    if isinstance(target, System):
        figures = target.evidence
        return audit_documents(_checks(target), figures)
    if is_table(target):
        return audit_load_tests(LOAD_TESTS.read(target), Path(target).name)
    return audit(system(str(target)))


def _checks(system: System[Any]) -> Checks:
    """Return the checks of a system: the function `checks` of the module `audit` in its package."""
    name = f"{sys.modules[type(system).__module__].__package__}.audit"
    if find_spec(name) is None:
        raise InputError(f"system {system.name!r} has no module {name}: its evidence cannot be audited")
    checks: Checks = import_module(name).checks
    return checks


def is_table(target: str | Path) -> bool:
    """Return whether a name is that of a file rather than of a documented system."""
    path = Path(target)
    return str(target) not in names() and (path.suffix.lower() in _TABLES or path.exists())
