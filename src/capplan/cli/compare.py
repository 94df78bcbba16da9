"""`capplan compare`: how two layouts differ, figure by figure, under common random numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from capplan.cli.shell.messages import say
from capplan.cli.shell.progress import counting
from capplan.cli.shell.scenario_command import HELP, say_what_has_no_effect, with_demand_of
from capplan.cli.shell.target import Target, read_target
from capplan.cli.shell.terminal import Json, LatencyEngine, NoSolvingLimit, chosen_engine, print_answer
from capplan.errors import InputError
from capplan.layout.fitted_file import Fitted
from capplan.planner.compare import compare
from capplan.planner.sustained import JudgingEngine
from capplan.planner.time_limits import check_layouts
from capplan.reports.comparison import describe
from capplan.reports.population import rests
from capplan.systems.registry import read_calibration

ENGINES: tuple[JudgingEngine, ...] = ("compiled", "analytic")


def compare_(
    first: Annotated[str, typer.Argument(help="A layout: a scenario (.toml), a fitted file (.json) or a system.")],
    second: Annotated[
        str, typer.Argument(help="A second layout of the same system: a scenario (.toml) or a fitted file (.json).")
    ],
    engine: LatencyEngine = ENGINES[0],
    demand: Annotated[Path | None, typer.Option(metavar="FILE", help=HELP)] = None,
    calibration: Annotated[
        Path | None, typer.Option("--fitted", metavar="FILE", help="Fitted file (.json) for two scenarios.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of every random number.")] = 1,
    no_limits: NoSolvingLimit = False,
    as_json: Json = False,
) -> None:
    """Compare two layouts of a system at one rate: differences with their 90 % intervals.

    The figures are those of `capplan predict`. Both layouts have the same parameter draws and random numbers; model
    errors of rates are partly common. The rate is that of the first scenario, else of the second, else 80 % of the
    lower capacity. A fitted file beside a scenario is the calibration of both.
    """
    one, other, fitted = _layouts(first, second, calibration)
    if not no_limits:
        check_layouts((one.scenario, other.scenario))
    with counting("simulating both layouts"):
        found = compare(
            with_demand_of(demand, one.scenario),
            with_demand_of(demand, other.scenario),
            fitted=fitted,
            engine=chosen_engine(engine, ENGINES, "does not compare"),
            seed=seed,
        )
    say_what_has_no_effect((one.scenario, other.scenario))
    rates = [each.scenario.offered_per_s() for each in (one, other)]
    if demand is None and None not in rates and rates[0] != rates[1]:
        say(f"the rate of {second} is ignored: both layouts are compared at the rate of {first}")
    print_answer(found, lambda: (*rests(one.scenario, fitted), *describe(found)), as_json)


def _layouts(first: str, second: str, calibration: Path | None) -> tuple[Target, Target, Fitted | None]:
    """Return both layouts and their common calibration: from the option, from a fitted file, or the system's own."""
    one, other = read_target(first), read_target(second)
    given = None if calibration is None else read_calibration(calibration)
    known = [each for each in (given, one.fitted, other.fitted) if each is not None]
    if any(each != known[0] for each in known):
        raise InputError(f"{first} and {second} have different calibrations: compare scenarios of one fitted file")
    fitted = known[0] if known else None
    for name, each in ((first, one), (second, other)):
        if fitted is not None and each.scenario.system != fitted.system:
            raise InputError(f"{name} is a layout of {each.scenario.system}, and the calibration is of {fitted.system}")
    return one, other, fitted
