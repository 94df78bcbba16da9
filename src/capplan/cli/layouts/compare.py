"""`capplan compare`: how two layouts differ, figure by figure, under common random numbers."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from capplan.calibration.fit.fitted_file import Fitted
from capplan.cli.shell.demand_option import HELP
from capplan.cli.shell.engines import chosen_engine
from capplan.cli.shell.progress import counting
from capplan.cli.shell.scenario_command import say_what_has_no_effect, with_demand_of
from capplan.cli.shell.target import Target, read_target
from capplan.cli.shell.terminal import PLOT_HELP, Json, NoSolvingLimit, Screen, check_plot, write_json
from capplan.cli.views.lines import fact, paragraph, put, table
from capplan.models.errors import InputError
from capplan.models.number_words import rate, share, significant
from capplan.planner.explore.compare import CompareEngine, Comparison, Difference, Driver, Interval, compare
from capplan.planner.work import check_layouts
from capplan.systems.registry import read_calibration

ENGINES: tuple[CompareEngine, ...] = ("compiled", "analytic")
_FEW_DRIVERS = 6
_NONE = 0.002  # of a figure: a smaller difference is none


def compare_(
    first: Annotated[str, typer.Argument(help="A layout: a scenario (.toml), a fitted file (.json) or a system.")],
    second: Annotated[
        str, typer.Argument(help="A second layout of the same system: a scenario (.toml) or a fitted file (.json).")
    ],
    engine: Annotated[
        str, typer.Option(metavar="NAME", help="What latencies come from: compiled or analytic.")
    ] = ENGINES[0],
    drivers: Annotated[
        bool, typer.Option("--drivers", help="Show which parameters drive the difference (needs SALib), too.")
    ] = False,
    demand: Annotated[Path | None, typer.Option(metavar="FILE", help=HELP)] = None,
    calibration: Annotated[
        Path | None, typer.Option("--fitted", metavar="FILE", help="Fitted file (.json) for two scenarios.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of every random number.")] = 1,
    plot: Annotated[Path | None, typer.Option(help=PLOT_HELP)] = None,
    no_limits: NoSolvingLimit = False,
    as_json: Json = False,
) -> None:
    """Compare two layouts of a system at one rate: differences with their 90 % intervals.

    The figures are those of `capplan predict`. Both layouts have the same parameter draws and random numbers; model
    errors of rates are partly common. The rate is that of the first scenario, else of the second, else 80 % of the
    lower capacity. A fitted file beside a scenario is the calibration of both.
    """
    check_plot(plot)
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
            drivers=drivers or plot is not None,
        )
    if plot is not None:
        from capplan.planner.reports.comparison_plot import write_plot  # plotly is slow to import

        write_plot(found, plot)
    say_what_has_no_effect((one.scenario, other.scenario))
    if as_json:
        write_json(found.to_json())
    else:
        _show(found, Screen(), drivers)


def _layouts(first: str, second: str, calibration: Path | None) -> tuple[Target, Target, Fitted | None]:
    """Return both layouts and their common calibration: that of a fitted file, the option's, or the system's own."""
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


def _show(found: Comparison, console: Console, drivers: bool) -> None:
    paragraph(console, f"{found.system}, two layouts at {rate(found.offered_tps)} TPS peak", style="bold")
    put(console)
    for label, words in zip(("First", "Second"), found.layouts, strict=True):
        fact(console, label, words)
    fact(console, "Changed", ", ".join(found.changed) or "nothing")
    for label, name, verdict in zip(("Answer", ""), ("first", "second"), found.verdicts, strict=False):
        fact(console, label, f"{name} {verdict.in_words()}")
    put(console)
    rows = [
        [each.figure, *(_words(one, each) for one in (each.first, each.second)), _gap(each)]
        for each in found.differences
    ]
    table(console, ["Figure", "first", "second", "second - first"], rows, lambda stacked: _stacked(rows, stacked))
    if drivers:
        _drivers(found, console)
    more = [] if drivers else ["--drivers"]
    put(console)
    paragraph(console, f"More: {', '.join([*more, '--plot FILE', '--json'])}", hanging=6, style="dim")


def _stacked(rows: list[list[str]], console: Console) -> None:
    for name, first, second, gap in rows:
        paragraph(console, f"{name}: first {first}, second {second}, second - first {gap}", hanging=2)


def _words(interval: Interval, difference: Difference) -> str:
    return _number(interval.value, difference.unit)


def _number(value: float, unit: str) -> str:
    if not math.isfinite(value):
        return "unbounded"
    if unit == "1/s":
        return f"{rate(value)} TPS"
    return share(value) if unit == "1" else f"{significant(value)} ms"


def _gap(each: Difference) -> str:
    """Return a difference with its interval, signed; `none` where it is below what matters."""
    gap, base = each.difference, abs(each.first.value)
    if not any(math.isfinite(value) for value in (gap.value, gap.low, gap.high)):
        return "unbounded"
    if max(abs(gap.low), abs(gap.high)) <= _NONE * base:
        return "none"
    value, low, high = (_signed(one, each.unit, _step(gap)) for one in (gap.value, gap.low, gap.high))
    return f"{value} ({low} to {high})"


def _step(gap: Interval) -> float:
    """Return the last digit to show of a difference: the second one of its larger end."""
    ends = [abs(end) for end in (gap.value, gap.low, gap.high) if math.isfinite(end)]
    return 10.0 ** (math.floor(math.log10(max(*ends, 1e-12))) - 1)


def _signed(value: float, unit: str, step: float) -> str:
    if not math.isfinite(value):
        return f"{'+' if value > 0 else '-'}unbounded"
    factor = 100 if unit == "1" else 1
    last = max(-math.floor(math.log10(step * factor) + 1e-9), 0)
    rounded = round(value / step) * step * factor
    return f"{rounded:+,.{last}f}{' %' if unit == '1' else ''}"


def _drivers(found: Comparison, console: Console) -> None:
    put(console)
    driven = next(each for each in found.differences if each.figure == found.driven)
    if not found.drivers:
        paragraph(console, f"No parameter moves the difference of {found.driven}.")
        return
    rows = [_driver(each, driven) for each in found.drivers[:_FEW_DRIVERS]]
    title = [f"What drives {found.driven}", "variance", "difference where it is low, high"]
    table(console, title, rows, lambda stacked: _listed(rows, stacked))


def _listed(rows: list[list[str]], console: Console) -> None:
    for row in rows:
        paragraph(console, "  ".join(row), hanging=2)


def _driver(each: Driver, driven: Difference) -> list[str]:
    step = _step(driven.difference)
    low, high = (_signed(value, driven.unit, step) for value in (each.low, each.high))
    return [each.parameter, share(each.share), f"{low}, {high}"]
