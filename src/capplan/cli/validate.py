"""`capplan validate`: compares every documented figure with the prediction, and leaves out every scenario in turn.

`capplan validate --live`: a real cluster, predicted before it is measured; each figure is shown and judged.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from capplan.calibration.validation.validation import Validation, Validations, goals_of_all, stages_of, validate
from capplan.cli.shell.messages import say
from capplan.cli.shell.progress import stages, working
from capplan.cli.shell.target import DEFAULT_TARGET, read_target
from capplan.cli.shell.terminal import Csv, Json, Screen, exit_unless, print_answer, refuse_both, write_json
from capplan.errors import InputError
from capplan.files import user_cache
from capplan.layout.fitted_file import Fitted
from capplan.systems.registry import documented_names, system

ALL = "all"


def validate_(
    target: Annotated[str, typer.Argument(help="A system, a fitted file (.json), or all.")] = DEFAULT_TARGET,
    refit: Annotated[bool, typer.Option("--refit", help="Repeat the refits even if they are up to date.")] = False,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--report",
            metavar="FOLDER",
            help="Write validation.md and validation.html there (with --live: live-validation.md and its "
            "tables); the folder is made if need be.",
        ),
    ] = None,
    live: Annotated[
        bool, typer.Option("--live", help="Start real nodes, calibrate, predict, measure and compare instead.")
    ] = False,
    quick: Annotated[bool, typer.Option("--quick", help="With --live: some minutes instead of an hour.")] = False,
    mechanism: Annotated[
        str | None, typer.Option(metavar="NAME", help="With --live: measure rows, levels, losses or heap instead.")
    ] = None,
    hosts: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="With --live: a TOML file that describes a cluster to measure instead."),
    ] = None,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """Compare a calibrated system with its evidence and with simple rules; exit 1 if a goal is missed.

    Each independent scenario is predicted by a fit without it. The refits of `calibrate` are used if code and evidence
    are still the same. Otherwise they are repeated, which takes minutes; an interrupted run resumes.

    With --live, the system is Cassandra on this machine: a few runs calibrate the model, predictions are written to a
    file with their hash, and only then are they measured. Exit 1 if a figure is off, or a kind of figure is biased.
    """
    refuse_both(as_json, as_csv)
    if folder is not None:
        _check_folder(folder)
    asked = {"--quick": quick, "--mechanism": mechanism is not None, "--hosts": hosts is not None}
    if not live and any(asked.values()):
        raise InputError(f"{next(filter(asked.get, asked))} is for a live validation: give --live, too")
    if mechanism is not None and (quick or hosts is not None):
        raise InputError("--mechanism is measured on a lab, at full length: leave --quick and --hosts out")
    if live:
        if target != DEFAULT_TARGET or refit or as_csv:
            raise InputError("--live has no target, no --refit and no --csv: leave them out, or leave --live out")
        run_live(quick=quick, mechanism=mechanism, hosts=hosts, report=folder, as_json=as_json)
        return
    reports = [_validated(fitted, refit) for fitted in _chosen(target)]
    if folder is not None:
        from capplan.reports.validation import write_report  # plotly is slow to import

        written = write_report(reports, folder)
        say(f"{written[0]} and {written[1].name}")
    if as_json:
        write_json(Validations(tuple(reports)).to_json())
    elif as_csv:
        _write_csv(reports)
    else:
        _show(reports)
    goals = goals_of_all(reports) if target == ALL else ()
    exit_unless(all(each.passed for each in reports) and all(goal.met for goal in goals))


def _check_folder(folder: Path) -> None:
    """Refuse an unsuitable folder before the minutes of computation that fill it."""
    existing = next(each for each in (folder, *folder.parents) if each.exists())
    if not existing.is_dir():
        raise InputError(f"--report {folder} cannot be a folder: {existing} is a file, give another path")
    if not os.access(existing, os.W_OK):
        raise InputError(
            f"--report {folder} cannot be written to: you may not write in {existing}, give another folder"
        )


def _chosen(target: str) -> list[Fitted]:
    if target == ALL:
        return [system(name).fitted() for name in documented_names()]
    chosen = read_target(target)
    if target.endswith(".toml"):
        name = chosen.scenario.system
        raise InputError(
            f"{target!r} is a scenario, and a system is validated as a whole, in the layouts of its load tests: give "
            f"{name}, a fitted file (.json) or all"
        )
    return [chosen.fitted or system(chosen.scenario.system).fitted()]


def _validated(fitted: Fitted, refit: bool) -> Validation:
    its = system(fitted.system)
    with stages(f"validating {its.name}", stages_of(its)) as progress:
        return validate(its, fitted, refit=refit, progress=progress)


def _write_csv(reports: Sequence[Validation]) -> None:
    import pandas as pd  # slow to import, as what shows Markdown

    frame = pd.concat([each.to_frame() for each in reports], ignore_index=True)
    frame.replace([math.inf, -math.inf], math.nan).to_csv(sys.stdout, index=False, lineterminator="\n")


def _show(reports: Sequence[Validation]) -> None:
    from capplan.reports.terminal_markdown import TerminalMarkdown
    from capplan.reports.validation import page

    Screen().print(TerminalMarkdown(page(reports, terminal=True)))


def run_live(*, quick: bool, mechanism: str | None, hosts: Path | None, report: Path | None, as_json: bool) -> None:
    """Run the protocol and print its verdicts.

    Raises
    ------
    typer.Exit
        With 1 if a figure is off or a kind of figure is biased.
    """
    from capplan.lab.packages import check_installed  # these are slow to import: they need a solver and a lab
    from capplan.planner.live import protocol, run
    from capplan.planner.live.clusters import Clusters, Existing, Labs, read_hosts
    from capplan.planner.live.folder import Folder

    check_installed()
    asked = protocol.protocol(mechanism, quick=quick)
    its = None if hosts is None else read_hosts(hosts)
    if its is not None:
        asked = protocol.for_hosts(its.levels(), its.rtt_ms, quick=quick, tls=its.certificate is not None)
    folder = Folder(user_cache() / "live" / asked.name)
    clusters: Clusters = Labs(folder) if its is None else Existing(its)
    with working() as progress:
        found = run.validate_live(asked, clusters, folder, progress, its)
    from capplan.reports.live import validation, write_page

    if report is not None:
        write_page(found, folder, report)
    print_answer(found, lambda: validation(found), as_json)
    folder.end()
    exit_unless(found.answer)
