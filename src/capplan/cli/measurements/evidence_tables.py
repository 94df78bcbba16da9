"""What `capplan evidence` does with load tests, of users and of documents: import, audit, plot, schema.

Its imports are slow.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import typer
from pandas import DataFrame

from capplan.cli.shell.progress import counting
from capplan.cli.shell.terminal import (
    TABLE_ENDINGS,
    Screen,
    check_output,
    check_plot,
    write_csv,
    write_frame,
    write_json,
)
from capplan.evidence.audit.finding import Finding
from capplan.evidence.import_files import SCHEMA as IMPORT_SCHEMA
from capplan.evidence.import_files import ImportReport, import_files
from capplan.evidence.importers.mapped_table import read_mapping
from capplan.evidence.load_tests import LOAD_TESTS, load_tests_schema
from capplan.evidence.microbenchmarks import MICROBENCHMARKS, microbench_schema
from capplan.evidence.table import Evidence
from capplan.models.errors import InputError, nearest
from capplan.planner.audit import audit, is_table
from capplan.reports import evidence
from capplan.reports.screen import show
from capplan.systems.registry import names, system

_INTERVALS = ("expected", "documented")
AUDITED = (
    *(field.name for field in fields(Finding) if field.name not in (*_INTERVALS, "figures")),
    *(f"{name}{end}" for name in _INTERVALS for end in ("", "_low", "_high")),
    "figures",
)
SCHEMAS = {"load-tests": load_tests_schema, "microbench": microbench_schema}
REFUSED = 1  # exit code: a figure must not be believed


def print_audit(target: str, as_json: bool, as_csv: bool) -> None:
    """Print the audit of a table or of a documented system.

    Raises
    ------
    typer.Exit
        With 1 if something must not be believed.
    """
    found = audit(target)
    if as_json:
        write_json(found.to_json())
    elif as_csv:
        write_csv(AUDITED, [_cells(each) for each in found.findings])
    else:
        show((evidence.audit if is_table(target) else evidence.documents)(found), Screen())
    if found.refused:
        raise typer.Exit(REFUSED)


def _cells(finding: Finding) -> list[Any]:
    """Return a finding as a row of CSV."""
    cells = {**vars(finding), "figures": " ".join(finding.figures)}
    for name in _INTERVALS:
        interval = cells.pop(name)
        for end, number in (("", "value"), ("_low", "low"), ("_high", "high")):
            cells[f"{name}{end}"] = getattr(interval, number, None)
    return [cells[name] for name in AUDITED]


def import_tables(
    files: Sequence[Path], out: Path | None, map_: Path | None, set_: Sequence[str], as_json: bool
) -> None:
    """Import files, write the tables, and print what was taken from where."""
    if as_json and out is None:
        raise InputError("--json prints the report of an import: say by -o where the table goes")
    check_output(out, TABLE_ENDINGS)
    mapping, constants = None if map_ is None else read_mapping(map_), _constants(set_)
    sources, documented = _sources(files)
    with counting("importing files") as progress:
        found = import_files(sources, mapping, constants, progress, documented)
    if out is None:
        show(evidence.imported(found, {}), Screen(stderr=True))
        write_frame(found.load_tests)
        return
    written = write_tables(found.load_tests, found.microbenchmarks, out)
    if as_json:
        paths = {name: str(path) for name, path in written.items()}
        report = ImportReport(paths.get("load_tests"), paths.get("microbenchmarks"), found.files)
        write_json({"schema": IMPORT_SCHEMA, **vars(report)})
    else:
        show(evidence.imported(found, written), Screen())


def _sources(files: Sequence[Path]) -> tuple[list[Path], dict[str, tuple[Evidence, ...]]]:
    """Return the files, and the documented figures of the systems among what was given."""
    systems = [str(each) for each in files if str(each) in names() and not each.exists()]
    return [each for each in files if str(each) not in systems], {name: system(name).evidence for name in systems}


def write_tables(load_tests: DataFrame, microbenchmarks: DataFrame, out: Path) -> Mapping[str, Path]:
    """Write the tables that have rows, and return their paths."""
    beside = out.with_name(f"{out.stem}.microbench{out.suffix}")
    written: dict[str, Path] = {}
    if len(load_tests):
        LOAD_TESTS.write(load_tests, out)
        written["load_tests"] = out
    if len(microbenchmarks):
        MICROBENCHMARKS.write(microbenchmarks, beside)
        written["microbenchmarks"] = beside
    return written


def _constants(options: Sequence[str]) -> dict[str, str]:
    """Read `name=value` pairs, separated by commas; a value may hold commas that no name follows."""
    found: dict[str, str] = {}
    for pair in (pair for option in options for pair in re.split(r",(?=\s*[a-z_0-9]+\s*=)", option)):
        name, equals, value = pair.partition("=")
        if not equals or not value.strip():
            raise InputError(f"--set {pair.strip()!r} must be name=value, such as cass_nodes=3")
        if name.strip() in found:
            raise InputError(f"--set gives {name.strip()!r} twice: give it once")
        found[name.strip()] = value.strip()
    return found


def plot_table(table: Path, plot_file: Path, statistic: str) -> None:
    """Write the plot of a table, and print its path."""
    check_plot(plot_file)
    if statistic and statistic not in evidence.STATISTICS:
        raise InputError(f"--statistic {statistic!r} is unknown{nearest(statistic, evidence.STATISTICS)}")
    evidence.write_plot(LOAD_TESTS.read(table), table.name, plot_file, statistic or None)
    sys.stdout.write(f"{plot_file}\n")


def print_schema(table: str) -> None:
    """Print the JSON schema of a table."""
    if table not in SCHEMAS:
        raise InputError(f"{table!r} is not a table{nearest(table, SCHEMAS)}")
    write_json(SCHEMAS[table]())
