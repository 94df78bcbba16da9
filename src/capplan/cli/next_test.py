"""`capplan next-test`: which load test or measurement comes next."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from capplan.cli.shell.scenario_command import given, with_options
from capplan.cli.shell.target import DEFAULT_TARGET, TargetText, read_target
from capplan.cli.shell.terminal import Json, NoSolvingLimit, exit_unless, naming, print_answer
from capplan.errors import InputError, one_of
from capplan.models.language.units import parse_duration_s
from capplan.reports.next_test import describe
from capplan.systems.registry import resolve

_RANKS = ("band", "decision")
_HOUR_S = 3600


def next_test_(
    ctx: typer.Context,
    target: TargetText = DEFAULT_TARGET,
    candidates: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEXT", help="Tests to choose from, such as 'rf=3,5 clients=128,512'; needed, may be repeated."
        ),
    ] = None,
    figure: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Figure to narrow: capacity, throughput, or a latency such as read.p99."),
    ] = None,
    rank: Annotated[
        str | None, typer.Option(metavar="NAME", help="Rank tests by band or by decision, both per hour.")
    ] = None,
    run: Annotated[str, typer.Option(metavar="TIME", help="Duration of a run.")] = "30min",
    setup: Annotated[str, typer.Option(metavar="TIME", help="Time to set up a layout that was not tested.")] = "4h",
    seed: Annotated[int, typer.Option(min=0, help="Seed of every random number.")] = 1,
    no_limits: NoSolvingLimit = False,
    as_json: Json = False,
) -> None:
    """Say which load test to run next: by how much each narrows a figure's band, or may change the decision.

    The options of the layout say whose figure is asked for; the candidates differ from it. Measurements on a running
    node are ranked with them. With --slo, the probability of another answer ranks. Exit code 1 if no test helps.
    """
    from capplan.planner.next_test import Hours, next_test, parse_candidates  # slow to import: it needs a solver
    from capplan.planner.time_limits import check_layout

    chosen = read_target(target)
    scenario = with_options(chosen.scenario, given(ctx))
    if not no_limits:
        check_layout(scenario)
    if not candidates:
        raise InputError("--candidates is missing: say which tests you could run, such as 'clients=128,512'")
    found = next_test(
        resolve(scenario, chosen.fitted, seed),
        parse_candidates(candidates, type(scenario)),
        figure=figure,
        hours=Hours(_hours("--run", run, 0.0), _hours("--setup", setup)),
        rank=_rank(rank),
    )
    print_answer(found, lambda: describe(found), as_json)
    exit_unless(found.answer)


def _hours(option: str, text: str, above: float = -1.0) -> float:
    with naming(option):
        seconds = parse_duration_s(text, "min")
    if not above < seconds < 1e9:
        raise InputError(f"{option} {text}: give a time {'above' if above == 0 else 'of at least'} 0, such as 30min")
    return seconds / _HOUR_S


def _rank(name: str | None) -> Any:
    if name is not None:
        one_of(_RANKS, name, f"--rank {name!r} ranks no tests")
    return name
