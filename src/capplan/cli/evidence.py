"""`capplan evidence`: the documented figures, one of them, and what the audit makes of them."""

from __future__ import annotations

from dataclasses import fields
from typing import Annotated, Any

import typer

from capplan.calibration.audit.audit import AuditReport
from capplan.calibration.evidence.table import Evidence, by_id, layout_text
from capplan.cli.groups import Commands, hint
from capplan.cli.terminal import Csv, Json, Screen, refuse_both, write_csv, write_json
from capplan.cli.views import evidence as view
from capplan.models.errors import InputError
from capplan.systems.audit import audit
from capplan.systems.registry import DEFAULT, names, system

COLUMNS = tuple(field.name for field in fields(Evidence))
FINDING = ("part", "name", "law", "verdict", "unit", "expected_low", "expected_high", "documented", "sentence", "rows")

System = Annotated[str, typer.Argument(metavar="SYSTEM", help="The system whose evidence is meant.")]
Id = Annotated[str, typer.Argument(metavar="ID", help="The id of a row, as 'capplan evidence list' prints it.")]

app = typer.Typer(
    cls=Commands,
    rich_markup_mode=None,
    add_completion=False,
    help="List, show and audit the documented figures behind the answers.",
)


@app.command("list")
def list_(target: System = DEFAULT, as_json: Json = False, as_csv: Csv = False) -> None:
    """List every documented figure with its rounding, what is known of it, and what it is used for."""
    refuse_both(as_json, as_csv)
    rows = system(target).evidence
    if as_json:
        write_json(rows)
    elif as_csv:
        write_csv(COLUMNS, [_cells(row) for row in rows])
    else:
        view.rows(rows, Screen())


@app.command()
def show(
    row: Id,
    target: Annotated[
        str | None, typer.Argument(metavar="SYSTEM", help="Needed where two systems have the id.")
    ] = None,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """Show one documented figure with every field, and its source; its system may stand before or after its id."""
    refuse_both(as_json, as_csv)
    found = _find(*((target, row) if row in names() and target else (row, target)))
    source = next(each for each in system(found.system).sources if each.id == found.source)
    if as_json:
        write_json({"row": found, "source": source})
    elif as_csv:
        write_csv(COLUMNS, [_cells(found)])
    else:
        view.row(found, source, Screen())


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
def audit_(target: System = DEFAULT, as_json: Json = False, as_csv: Csv = False) -> None:
    """Check the figures against operational laws and the document's own claims, and list the contradictions."""
    refuse_both(as_json, as_csv)
    report = audit(target)
    if as_json:
        write_json(report)
    elif as_csv:
        write_csv(FINDING, _findings(report))
    else:
        view.report(report, Screen())


def _cells(row: Evidence) -> list[Any]:
    return [layout_text(row.layout) if name == "layout" else getattr(row, name) for name in COLUMNS]


def _findings(report: AuditReport) -> list[list[Any]]:
    parts = {"law": report.laws, "register": report.register, "reading": report.readings}
    return [
        [
            part,
            each.name,
            each.law,
            each.verdict,
            each.unit,
            each.expected.low,
            each.expected.high,
            each.documented.value if each.documented else None,
            each.sentence,
            " ".join(each.rows),
        ]
        for part, findings in parts.items()
        for each in findings
    ]
