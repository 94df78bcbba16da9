"""`capplan drift`: whether the claims of a saved answer still hold, by measurements of today."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from capplan.calibration.evidence.import_files import import_files
from capplan.cli.shell.terminal import Json, Screen, write_json
from capplan.cli.views.lines import paragraph, put
from capplan.planner.drift.drift import Drift, drift, read_answer

_MARKS = {"worse": "WORSE", "better": "better", "held": "held", "untested": "untested"}


def drift_(
    answer: Annotated[Path, typer.Argument(metavar="ANSWER", help="What 'capplan predict --json' printed.")],
    measured: Annotated[
        list[Path],
        typer.Argument(
            metavar="MEASURED...", help="Load-test tables, or anything that 'capplan evidence import' reads."
        ),
    ],
    as_json: Json = False,
) -> None:
    """Say which claims of a saved answer still hold.

    The capacity is tested by runs beyond it or near it, latencies by steady runs within 10 % of the answer's rate. Exit
    code 1 if a measurement is worse than the band of its claim.
    """
    found = drift(read_answer(answer), import_files(measured).load_tests)
    if as_json:
        write_json(found.to_json())
    else:
        _show(found)
    if not found.answer:
        raise typer.Exit(1)


def _show(found: Drift) -> None:
    console = Screen()
    paragraph(console, f"{found.system}: {found.layout}", style="bold")
    put(console)
    tested = [each for each in found.claims if each.status != "untested"]
    for each in sorted(tested, key=lambda each: list(_MARKS).index(each.status)):
        paragraph(console, f"{_MARKS[each.status]:<7} {each.sentence}", hanging=8)
    put(console)
    worse = sum(each.status == "worse" for each in tested)
    paragraph(
        console,
        f"{worse} of {len(tested)} tested claims {'is' if worse == 1 else 'are'} worse than the answer says; "
        f"{len(found.claims) - len(tested)} untested.",
    )
    for count, why in (
        (found.rows_refused, "refused by the audit"),
        (found.rows_of_other_layouts, "of another layout"),
    ):
        if count:
            paragraph(console, f"{count} {'row' if count == 1 else 'rows'} {why}, and left out.")
