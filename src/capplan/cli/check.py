"""`capplan check`: judges the objectives in a file in every situation; for pull requests."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from capplan.cli.shell.progress import counting
from capplan.cli.shell.scenario_command import HELP, say_what_has_no_effect, with_demand_of
from capplan.cli.shell.terminal import (
    Json,
    LatencyEngine,
    NoSolvingLimit,
    check_output,
    chosen_engine,
    exit_by,
    print_answer,
)
from capplan.files import replace_file
from capplan.planner.check import check, read_specification
from capplan.planner.sustained import JudgingEngine
from capplan.planner.time_limits import check_layout
from capplan.reports.check import describe
from capplan.reports.population import rests
from capplan.systems.registry import read_calibration

ENGINES: tuple[JudgingEngine, ...] = ("compiled", "analytic")


def check_(
    file: Annotated[Path, typer.Argument(help="A scenario (.toml) with objectives and a table [check].")],
    engine: LatencyEngine = ENGINES[0],
    seed: Annotated[int, typer.Option(min=0, help="Seed of every random number.")] = 1,
    demand: Annotated[Path | None, typer.Option(metavar="FILE", help=HELP)] = None,
    junit: Annotated[Path | None, typer.Option(help="Write the verdicts to this JUnit file (.xml), too.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print what fails, and nothing else.")] = False,
    no_limits: NoSolvingLimit = False,
    as_json: Json = False,
) -> None:
    """Check that a layout meets its objectives in every situation, with a stated confidence.

    The file has the keys of a scenario, and below [check] what to survive = ["dc", "node+compaction"] and with which
    confidence = "90%". Exit code 1 unless the answer is yes.
    """
    check_output(junit, (".xml",))
    wanted = chosen_engine(engine, ENGINES, "does not check")
    with counting("checking situations"):
        asked = read_specification(file)
        if not no_limits:
            check_layout(asked.scenario, asked.situations)
        found = check(replace(asked, scenario=with_demand_of(demand, asked.scenario)), engine=wanted, seed=seed)
    if junit is not None:
        replace_file(junit, found.to_junit())
    say_what_has_no_effect([asked.scenario])
    fitted = None if asked.fitted is None else read_calibration(asked.fitted)
    first = () if quiet or as_json else tuple(rests(asked.scenario, fitted))
    print_answer(found, lambda: (*first, *describe(found, quiet)), as_json)
    sys.stdout.flush()
    exit_by(found.verdict.answer)
