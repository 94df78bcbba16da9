"""`capplan drift`: checks whether the claims of a saved answer still hold against new measurements."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from capplan.cli.shell.terminal import Json, exit_unless, print_answer
from capplan.evidence.import_files import import_files
from capplan.planner.drift import drift, read_answer
from capplan.reports.saved_answer import drift as described


def drift_(
    answer: Annotated[
        Path,
        typer.Argument(metavar="ANSWER", help="What predict, size or check printed with --json, or a proposal's JSON."),
    ],
    measured: Annotated[
        list[Path],
        typer.Argument(metavar="MEASURED", help="Load-test tables, or anything that 'capplan evidence import' reads."),
    ],
    as_json: Json = False,
) -> None:
    """Say which claims of a saved answer still hold.

    The capacity is tested by runs beyond it or near it, latencies by steady runs within 10 % of the answer's rate. Exit
    code 1 if a measurement is worse than the band of its claim.
    """
    saved = read_answer(answer)
    found = drift(saved, import_files(measured).load_tests)
    print_answer(found, lambda: described(found), as_json)
    exit_unless(found.answer)
