"""`capplan evidence`: imports load tests; lists, audits and exports measured and documented figures."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer
from pandas import DataFrame

from capplan.cli.shell.groups import Commands, hint
from capplan.cli.shell.progress import counting
from capplan.cli.shell.terminal import (
    PLOT_HELP,
    TABLE_ENDINGS,
    Csv,
    Json,
    Screen,
    TableFile,
    check_output,
    check_plot,
    exit_unless,
    print_answer,
    print_rows,
    refuse_both,
    write_frame,
    write_json,
)
from capplan.errors import InputError, look_up, one_of
from capplan.evidence.audit.finding import Finding
from capplan.evidence.import_files import ImportReport, import_files
from capplan.evidence.importers.mapped_table import parse_mapping
from capplan.evidence.load_tests import LOAD_TESTS
from capplan.evidence.microbenchmarks import MICROBENCHMARKS
from capplan.evidence.table import DocumentedFigures, Evidence, by_id, layout_text
from capplan.planner.audit import audit, is_table
from capplan.planner.data_factor import data_factor
from capplan.reports import evidence
from capplan.reports import figure as look
from capplan.reports.screen import show as display
from capplan.systems.registry import DEFAULT, names, system

COLUMNS = tuple(field.name for field in fields(Evidence))

System = Annotated[str, typer.Argument(metavar="SYSTEM", help="The system whose evidence is meant.")]
Id = Annotated[str, typer.Argument(metavar="ID", help="The id of a row, as 'capplan evidence list' prints it.")]

Table = Annotated[Path, typer.Argument(metavar="TABLE", help="A load-test table, .csv or .parquet.")]

evidence_ = typer.Typer(
    cls=Commands,
    rich_markup_mode=None,
    add_completion=False,
    help="Import and audit load tests; list, show and audit the documented figures.",
)


@evidence_.command("list")
def list_(target: System = DEFAULT, as_json: Json = False, as_csv: Csv = False) -> None:
    """List every documented figure.

    With its rounding, what is known of it, and what it is used for.
    """
    refuse_both(as_json, as_csv)
    its = system(target)
    rows = its.evidence
    print_rows(
        DocumentedFigures(tuple(rows), tuple(its.sources)).to_json(),
        (COLUMNS, map(_cells, rows)),
        lambda: evidence.rows(rows),
        as_json,
        as_csv,
    )


@evidence_.command()
def show(
    row: Id,
    target: Annotated[
        str | None, typer.Argument(metavar="SYSTEM", help="Needed where two systems have the id.")
    ] = None,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """Show one documented figure and its source.

    Its system may stand before or after its id.
    """
    refuse_both(as_json, as_csv)
    found = _find(*((target, row) if row in names() and target else (row, target)))
    source = next(each for each in system(found.system).sources if each.id == found.source)
    print_rows(
        DocumentedFigures((found,), (source,)).to_json(),
        (COLUMNS, [_cells(found)]),
        lambda: evidence.one_row(found, source),
        as_json,
        as_csv,
    )


def _find(row: str, target: str | None) -> Evidence:
    """Return the row with an id, from any system if none is given.

    Raises
    ------
    InputError
        When no system has it, or more than one.
    """
    tables = {name: by_id(system(name).evidence) for name in ([target] if target else names())}
    found = {name: known[row] for name, known in tables.items() if row in known}
    if not found:
        ids = {each for known in tables.values() for each in known}
        close = hint(row, ids, f"capplan evidence list {target or 'SYSTEM'}")
        raise InputError(f"{row!r} is not the id of a row of evidence{close}")
    if len(found) > 1:
        raise InputError(f"{row!r} is the id of rows of {' and '.join(found)}: name the system after it")
    return next(iter(found.values()))


@evidence_.command("audit")
def audit_(
    target: Annotated[
        str, typer.Argument(metavar="TABLE|SYSTEM", help="A load-test table (.csv, .parquet), or a documented system.")
    ] = DEFAULT,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """Say what must not be believed in a table, or in documents.

    Exit code 1 if something must not be believed.
    """
    refuse_both(as_json, as_csv)
    found = audit(target)
    described = evidence.audit if is_table(target) else evidence.documents
    cells = map(_finding_cells, found.findings)
    print_rows(found.to_json(), (AUDITED, cells), lambda: described(found), as_json, as_csv)
    exit_unless(not found.refused)


@evidence_.command("import")
def import_(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE|SYSTEM...", help="Outputs of load generators, folders of them, documented systems."
        ),
    ],
    out: TableFile = None,
    map_: Annotated[
        list[str] | None,
        typer.Option(
            "--map",
            metavar="FILE|COLUMN=NAME,...",
            help="What the columns of a CSV are: a .toml file, or pairs such as nodes=cass_nodes.",
            show_default=False,
        ),
    ] = None,
    by_name: Annotated[
        bool, typer.Option("--yes", help="Take the columns of a CSV by their names, as a refusal proposes.")
    ] = False,
    unit: Annotated[
        str, typer.Option(help="Unit of latencies in files that do not state it: ns, us or ms.", show_default=False)
    ] = "",
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE,...",
            help="Columns that no tool knows, such as cass_nodes=3,rf=3.",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Import outputs of load generators, and documented load tests, into one table."""
    if as_json and out is None:
        raise InputError("--json prints the report of an import: say by -o where the table goes")
    check_output(out, TABLE_ENDINGS)
    mapping, constants = parse_mapping(map_ or [], by_name=by_name, unit=unit), _constants(set_ or [])
    sources, documented = _sources(files)
    with counting("importing files") as progress:
        found = import_files(sources, mapping, constants, progress, documented)
    if out is None:
        display(evidence.imported(found, {}), Screen(stderr=True))
        write_frame(found.load_tests)
        return
    written = write_tables(found.load_tests, found.microbenchmarks, out)
    paths = {name: str(path) for name, path in written.items()}
    answer = ImportReport(paths.get("load_tests"), paths.get("microbenchmarks"), found.files)
    print_answer(answer, lambda: evidence.imported(found, written), as_json)


@evidence_.command("data-factor")
def data_factor_(
    table: Table,
    fresh: Annotated[str, typer.Option(metavar="EXPR", help="Rows on fresh data, such as 'data_gib < 50'.")],
    aged: Annotated[str, typer.Option(metavar="EXPR", help="Rows on aged data.")],
    as_json: Json = False,
) -> None:
    """Say how much more CPU per request takes on aged data: the factor that --data-factor states.

    The table needs node_cpu_percent. Fresh runs must fill the nodes; aged ones must, too, or have a fresh run's rate.
    """
    found = data_factor(LOAD_TESTS.read(table), fresh, aged)
    print_answer(found, lambda: evidence.data_factor(found, table.name), as_json)


@evidence_.command()
def plot(
    table: Table,
    plot_file: Annotated[Path, typer.Option("--plot", help=PLOT_HELP)],
    statistic: Annotated[
        str, typer.Option("--statistic", help="The latency to draw: mean, p50, p75, p90, p95, p99, p999 or max.")
    ] = "",
) -> None:
    """Draw latency against throughput, one line for each series.

    A series is a layout and a request class.
    """
    check_plot(plot_file)
    if statistic:
        one_of(evidence.STATISTICS, statistic, f"--statistic {statistic!r} is unknown")
    frame, name = LOAD_TESTS.read(table), table.name
    look.write(plot_file, f"{name}: load tests", lambda page: evidence.plot(frame, name, statistic or None, page))
    sys.stdout.write(f"{plot_file}\n")


@evidence_.command()
def schema(
    table: Annotated[
        str, typer.Argument(metavar="TABLE", help="load-tests, or microbench for measurements of one part.")
    ] = "load-tests",
) -> None:
    """Print the JSON schema of a table of measurements."""
    write_json(look_up(SCHEMAS, table, f"{table!r} is not a table")())


def _cells(row: Evidence) -> list[Any]:
    return [layout_text(row.layout) if name == "layout" else getattr(row, name) for name in COLUMNS]


_INTERVALS = ("expected", "documented")
AUDITED = (
    *(field.name for field in fields(Finding) if field.name not in (*_INTERVALS, "figures")),
    *(f"{name}{end}" for name in _INTERVALS for end in ("", "_low", "_high")),
    "figures",
)
SCHEMAS = {"load-tests": LOAD_TESTS.json_schema, "microbench": MICROBENCHMARKS.json_schema}


def _finding_cells(finding: Finding) -> list[Any]:
    """Return a finding as a row of CSV."""
    cells = {**vars(finding), "figures": " ".join(finding.figures)}
    for name in _INTERVALS:
        interval = cells.pop(name)
        for end, number in (("", "value"), ("_low", "low"), ("_high", "high")):
            cells[f"{name}{end}"] = getattr(interval, number, None)
    return [cells[name] for name in AUDITED]


def _sources(files: Sequence[Path]) -> tuple[list[Path], dict[str, tuple[Evidence, ...]]]:
    """Split the arguments into files and systems; return the files, and the documented figures of the systems."""
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
    """Read comma-separated `name=value` pairs; a comma belongs to the value unless a name follows it."""
    found: dict[str, str] = {}
    for pair in (pair for option in options for pair in re.split(r",(?=\s*[a-z_0-9]+\s*=)", option)):
        name, equals, value = pair.partition("=")
        if not equals or not value.strip():
            raise InputError(f"--set {pair.strip()!r} must be name=value, such as cass_nodes=3")
        if name.strip() in found:
            raise InputError(f"--set gives {name.strip()!r} twice: give it once")
        found[name.strip()] = value.strip()
    return found
