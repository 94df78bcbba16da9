"""`capplan proposal`: a sizing as a document for a customer."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from capplan.cli.shell.messages import say
from capplan.cli.shell.progress import stages
from capplan.cli.shell.scenario_command import flag, given, say_what_has_no_effect
from capplan.cli.shell.target import DEFAULT_TARGET, TargetText, read_target
from capplan.cli.shell.terminal import DEFAULT_CONFIDENCE, Confidence, NoTimeLimit, check_output
from capplan.cli.shell.workers import workers_for
from capplan.cli.size import (
    ENGINES,
    Cells,
    Engine,
    Growth,
    PriceList,
    Processes,
    Seed,
    ShapeList,
    Survive,
    Years,
    asked,
)
from capplan.errors import InputError
from capplan.files import replace_files
from capplan.planner.proposal.details import read_details
from capplan.planner.proposal.propose import STAGES, TASKS, NoLayoutError, ProposalQuestion, propose
from capplan.planner.size.size import families, largest
from capplan.planner.time_limits import check_sizing
from capplan.reports.proposal import ENDINGS, check_installed, render_proposal


def proposal_(
    ctx: typer.Context,
    target: TargetText = DEFAULT_TARGET,
    out: Annotated[
        list[Path] | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help="Write this .html, .pdf, .xlsx or .json file; may be repeated."
        ),
    ] = None,
    customer: Annotated[str | None, typer.Option(help="Name of the customer; needed, here or in --details.")] = None,
    details: Annotated[
        Path | None, typer.Option(help="Customer, project, author, date, currency and logo (.toml).")
    ] = None,
    survive: Survive = None,
    confidence: Confidence = DEFAULT_CONFIDENCE,
    growth: Growth = None,
    years: Years = None,
    prices: PriceList = None,
    shapes: ShapeList = None,
    cells: Cells = None,
    engine: Engine = ENGINES[0],
    seed: Seed = 1,
    processes: Processes = None,
    no_limits: NoTimeLimit = False,
) -> None:
    """Size a layout and write the answer as a proposal, which a customer can read, check and compute again.

    The options of the layout are those of `capplan size`. All files hold the same figures. The .json holds the whole
    question, too: `capplan verify` computes it again. Exit code 1 if no layout is safe enough, and nothing is written
    then.
    """
    if not out:
        raise InputError("a proposal is written to a file: add -o proposal.html, .pdf, .xlsx or .json")
    for path in out:
        check_output(path, ENDINGS)
        check_installed(path.suffix.lower())
    its_details, currency, logo = read_details(details, customer)
    chosen = read_target(target)
    base, question = asked(ctx, chosen, survive, confidence, growth, years, prices, engine, seed, shapes, cells)
    if currency not in ("", question.unit[0]):
        raise InputError(f"prices are in {question.unit[0]} and the details say {currency}: use one currency")
    words = "" if question.demand is not None else _command(ctx, target, its_details.customer)  # JSON has the demand
    asked_for = ProposalQuestion(its_details, base, question, chosen.fitted, words)
    chosen_from = families(base, question)
    if not no_limits:
        check_sizing(base, chosen_from, processes or os.cpu_count() or 1)
    tasks = max(TASKS, len(chosen_from))
    try:
        with stages("proposal", len(STAGES)) as stage, workers_for(tasks, processes, None) as workers:
            made = propose(asked_for, workers, stage)
    except NoLayoutError as error:
        say(f"{error}")
        raise typer.Exit(1) from None
    say_what_has_no_effect(largest(base, chosen_from))
    replace_files({path: render_proposal(made, path.suffix.lower(), logo) for path in out})
    for path in out:
        say(f"wrote {path}")


def _command(ctx: typer.Context, target: str, customer: str) -> str:
    """Return a command line with the given options that asks the same question."""
    own: Mapping[str, Any] = ctx.params
    words = ["capplan", "proposal", target, "--customer", customer]
    for name, text in given(ctx).items():
        if isinstance(text, bool):
            words.append(flag(name) if text else f"--no-{flag(name)[2:]}")
        else:
            words += [part for each in _each(text) for part in (flag(name), str(each))]
    for name in ("survive", "confidence", "growth", "years", "prices", "shapes", "cells", "engine", "seed"):
        value = own.get(name)
        if value is not None and (name, value) not in _USUAL:
            words += [part for each in _each(value) for part in (flag(name), _text(each))]
    return shlex.join([*words, "-o", "proposal.json"])


_USUAL = [("confidence", DEFAULT_CONFIDENCE), ("engine", ENGINES[0]), ("seed", 1)]


def _each(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, list | tuple) else (value,)


def _text(value: Any) -> str:
    if isinstance(value, Path):
        return value.name
    return f"{value:g}" if isinstance(value, float) else str(value)
