"""`capplan verify`: recomputes a proposal and names the figures that differ."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from capplan.cli.shell.messages import say
from capplan.cli.shell.progress import stages
from capplan.cli.shell.terminal import Json, exit_unless, print_answer
from capplan.cli.shell.workers import workers_for
from capplan.cli.size import Processes
from capplan.errors import InputError
from capplan.layout.table_system import TableSystem, table_of
from capplan.planner.proposal.propose import STAGES, TASKS, NoLayoutError
from capplan.planner.proposal.verify import question_of, read_proposal, verify
from capplan.planner.size.size import families
from capplan.reports.saved_answer import verification
from capplan.systems.registry import read_calibration, system


def verify_(
    file: Annotated[Path, typer.Argument(help="The .json that `capplan proposal` wrote.")],
    fitted: Annotated[
        Path | None, typer.Option(help="The fitted file (.json) it was made with; the system's own by default.")
    ] = None,
    processes: Processes = None,
    as_json: Json = False,
) -> None:
    """Compute a proposal again, and name the figures that differ.

    Exit code 1 if the file was edited, if the version, evidence or parameters differ, or if a figure differs by more
    than 0.2 %.
    """
    content = read_proposal(file)
    calibration = None if fitted is None else read_calibration(str(fitted))
    question = question_of(content)  # refuse what cannot be read before a process starts
    table = table_of(system(question.base.system))
    if calibration is None and table is not None and not _is_of_its_own(table, content):
        raise InputError(f"{file} was made with a fitted file: add it, such as --fitted mine.json")
    tasks = max(TASKS, len(families(question.base, question.sizing)))
    try:
        with stages("verifying", len(STAGES)) as stage, workers_for(tasks, processes, None) as workers:
            found = verify(content, workers, calibration, stage)
    except NoLayoutError as error:
        say(f"the proposal has no layout any more: {error}")
        raise typer.Exit(1) from None
    print_answer(found, lambda: verification(found, file), as_json)
    exit_unless(found.verified)


def _is_of_its_own(table: TableSystem[Any], content: Mapping[str, Any]) -> bool:
    """Whether a proposal was made with the calibration that comes with its system."""
    stated = content.get("provenance")
    evidence = stated.get("evidence") if isinstance(stated, Mapping) else None
    return table.fitted_path.is_file() and evidence == table.fitted().data_hash
