"""`capplan evidence`: documented figures, users' load tests, and what the audits make of both."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer

from capplan.cli.shell.groups import Commands, hint
from capplan.cli.shell.terminal import (
    PLOT_HELP,
    Csv,
    Json,
    Screen,
    refuse_both,
    write_csv,
    write_json,
)
from capplan.evidence.table import Evidence, by_id, layout_text
from capplan.models.errors import InputError
from capplan.reports import evidence
from capplan.reports.screen import show as display
from capplan.systems.registry import DEFAULT, names, system

COLUMNS = tuple(field.name for field in fields(Evidence))

System = Annotated[str, typer.Argument(metavar="SYSTEM", help="The system whose evidence is meant.")]
Id = Annotated[str, typer.Argument(metavar="ID", help="The id of a row, as 'capplan evidence list' prints it.")]

Table = Annotated[Path, typer.Argument(metavar="TABLE", help="A load-test table, .csv or .parquet.")]

app = typer.Typer(
    cls=Commands,
    rich_markup_mode=None,
    add_completion=False,
    help="Import and audit load tests; list, show and audit the documented figures.",
)


@app.command("list")
def list_(target: System = DEFAULT, as_json: Json = False, as_csv: Csv = False) -> None:
    """List every documented figure.

    With its rounding, what is known of it, and what it is used for.
    """
    refuse_both(as_json, as_csv)
    rows = system(target).evidence
    if as_json:
        write_json(rows)
    elif as_csv:
        write_csv(COLUMNS, [_cells(row) for row in rows])
    else:
        display(evidence.rows(rows), Screen())


@app.command()
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
    if as_json:
        write_json({"row": found, "source": source})
    elif as_csv:
        write_csv(COLUMNS, [_cells(found)])
    else:
        display(evidence.one_row(found, source), Screen())


def _find(row: str, target: str | None) -> Evidence:
    """Return the row of an id, of any system when none is given.

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


@app.command("audit")
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
    from capplan.cli.measurements.evidence_tables import print_audit  # slow to import

    refuse_both(as_json, as_csv)
    print_audit(target, as_json, as_csv)


@app.command("import")
def import_(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE|SYSTEM...", help="Outputs of load generators, folders of them, documented systems."
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Write the table to this .csv or .parquet file.", show_default=False),
    ] = None,
    map_: Annotated[
        Path | None,
        typer.Option("--map", help="A .toml file that says what the columns of a CSV are.", show_default=False),
    ] = None,
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
    from capplan.cli.measurements.evidence_tables import import_tables  # slow to import

    import_tables(files, out, map_, set_ or [], as_json)


@app.command()
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
    from capplan.cli.measurements.evidence_tables import plot_table  # slow to import

    plot_table(table, plot_file, statistic)


@app.command()
def schema(
    table: Annotated[
        str, typer.Argument(metavar="TABLE", help="load-tests, or microbench for measurements of one part.")
    ] = "load-tests",
) -> None:
    """Print the JSON schema of a table of measurements."""
    from capplan.cli.measurements.evidence_tables import print_schema  # slow to import

    print_schema(table)


def _cells(row: Evidence) -> list[Any]:
    return [layout_text(row.layout) if name == "layout" else getattr(row, name) for name in COLUMNS]
