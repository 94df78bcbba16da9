"""`capplan sweep`: a grid of layouts at many rates, as a table and as a plot."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from capplan.cli.shell.messages import say
from capplan.cli.shell.progress import counting
from capplan.cli.shell.scenario_command import (
    flag,
    given,
    replaced_fields,
    say_what_has_no_effect,
    values_given,
    with_options,
)
from capplan.cli.shell.target import DEFAULT_TARGET, TargetText, read_target
from capplan.cli.shell.terminal import (
    PLOT_HELP,
    TABLE_ENDINGS,
    Csv,
    Json,
    NoTimeLimit,
    Screen,
    check_output,
    check_plot,
    chosen_engine,
    refuse_both,
    write_json,
)
from capplan.cli.shell.workers import check_workers, workers_for
from capplan.errors import InputError
from capplan.models.language.scenario import Scenario, changed
from capplan.planner.ranges import LOAD, value_type
from capplan.planner.sweep import (
    CLIENTS,
    DEFAULT_DRAWS,
    DEFAULT_PRECISION,
    DEFAULT_RATES,
    ENGINES,
    OfferedRates,
    Sweep,
    SweepEngine,
    SweepPoint,
    SweepTable,
    check_objectives,
    csv_text,
    experiment,
    layouts_of,
    precision_target,
    rate_fields,
    write_table,
)
from capplan.reports import figure as look
from capplan.reports.population import rests
from capplan.reports.screen import show
from capplan.reports.sweep import describe
from capplan.reports.sweep import plot as drawn
from capplan.simulator.experiment import open_store, perform
from capplan.systems.registry import system

INTERRUPTED = 130
FEW_TASKS: dict[SweepEngine, int] = {"analytic": 6, "compiled": 2}  # fewer end before a second process has started


def sweep_(
    ctx: typer.Context,
    target: TargetText = DEFAULT_TARGET,
    load: Annotated[
        str | None, typer.Option(metavar="SHARES", help="Shares of each layout's capacity, instead of a rate.")
    ] = None,
    engine: Annotated[
        str, typer.Option(metavar="NAME", help="analytic, or compiled: latencies simulated to a precision.")
    ] = ENGINES[0],
    precision: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help=f"Of simulated latencies: '{DEFAULT_PRECISION}' of each class, or of one, such as 'acct.mean<1%'.",
        ),
    ] = None,
    draws: Annotated[
        int, typer.Option(min=1, help="How many parameter draws to solve; each stands for its neighbours.")
    ] = DEFAULT_DRAWS,
    seed: Annotated[int, typer.Option(min=0, help="Seed of every random number.")] = 1,
    processes: Annotated[int | None, typer.Option(min=1, help="Layouts at a time; all processors.")] = None,
    dask: Annotated[str | None, typer.Option("--dask", metavar="ADDRESS", help="local, or tcp://host:port.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write the table to this .csv or .parquet file.")
    ] = None,
    no_limits: NoTimeLimit = False,
    plot: Annotated[Path | None, typer.Option(help=PLOT_HELP)] = None,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """Predict many layouts at many rates: one row per point, and a plot of latency against load.

    Options of the layout are those of the target and take lists and ranges: 1,2,4 or 3..12:3 or 1ms..9ms:2ms. Without
    a rate and --load, each layout is predicted at 80 % of its capacity. With --out, an interrupted sweep resumes.
    """
    refuse_both(as_json, as_csv)
    check_output(out, TABLE_ENDINGS)
    check_plot(plot)
    check_workers(processes, dask)
    texts = given(ctx)
    sweep = _sweep(target, texts, load, chosen_engine(engine, ENGINES, "does not sweep"), precision, draws, seed)
    if plot is not None and sweep.rates.field == CLIENTS:
        raise InputError(
            f"--plot {plot} draws latency against an offered rate, and closed clients have none: give --tps instead of "
            "--clients, or leave the plot out"
        )
    if dask is None and not no_limits:
        from capplan.planner.time_limits import check_sweep  # slow to import

        check_sweep(sweep, processes or os.cpu_count() or 1)
    points = _performed(sweep, (processes, dask), out)
    refused = [point["refused"] for point in points if point["refused"] is not None]
    if len(refused) == len(points):
        raise InputError(f"all {len(points):,} points are refused; the first: {refused[0]}")
    rate = {sweep.rates.field: sweep.rates.values[0]} if sweep.rates.source == "given" else {}
    say_what_has_no_effect(changed(each.scenario, **rate) for each in sweep.layouts if each.scenario is not None)
    if plot is not None:
        slo = next((layout.scenario.slo for layout in sweep.layouts if layout.scenario is not None), ())
        its = system(sweep.system)
        look.write(plot, f"{target}: sweep", lambda page: drawn(points, its, target, slo, page))
    _show(points, sweep, out, as_json, as_csv)
    _check_precision(points, sweep)


def _sweep(
    target: str,
    texts: Mapping[str, Any],
    load: str | None,
    engine: SweepEngine,
    precision: str | None,
    draws: int,
    seed: int,
) -> Sweep:
    chosen = read_target(target)
    kind, its = type(chosen.scenario), system(chosen.scenario.system)
    replaced_fields(kind, texts)
    objectives = {name: text for name, text in texts.items() if name == "slo"}
    base = with_options(chosen.scenario, objectives)
    rates = _rates(texts, load, base)
    axes = {name: text for name, text in texts.items() if name not in {*rate_fields(kind), "slo"}}
    values = {name: values_given(name, text, value_type(kind, name)) for name, text in axes.items()}
    layouts, aim = layouts_of(base, values), None
    if precision is not None:
        if engine == "analytic":
            raise InputError(f"--precision {precision} is for simulated latencies: add --engine compiled, or drop it")
        aim = precision_target(precision, its)
    sweep = Sweep(its.name, layouts, rates, chosen.fitted, draws, engine, seed, aim)
    check_objectives(layouts, chosen.fitted)
    return sweep


def _rates(texts: Mapping[str, Any], load: str | None, base: Scenario) -> OfferedRates:
    """Return the rates from the options, or those of the target."""
    kind = type(base)
    field = next((name for name in rate_fields(kind) if name in texts), None)
    if load is not None:
        if field is not None:
            raise InputError(f"{flag(field)} and --load exclude each other: give rates, or shares of each capacity")
        return OfferedRates("load", values_given("load", load, LOAD))
    if field is not None:
        values = values_given(field, texts[field], value_type(kind, field))
        if min(values) <= 0:
            raise InputError(f"{flag(field)}: {min(values):g} is not a rate of a sweep: it must be above 0")
        return OfferedRates("given", values, field)
    own = {name: value for name in rate_fields(kind) if (value := getattr(base, name)) is not None}
    return OfferedRates("given", (float(np.max(next(iter(own.values())))),), next(iter(own))) if own else DEFAULT_RATES


def _performed(sweep: Sweep, where: tuple[int | None, str | None], out: Path | None) -> list[SweepPoint]:
    """Compute the points; if interrupted, write those computed so far, unless there is an earlier table, and end."""
    found: dict[str, list[SweepPoint]] = {}
    try:
        _perform(sweep, where, out, found)
    except KeyboardInterrupt:
        points, kept = sweep.table(found), "without --out none is kept"
        if out is not None:
            kept = "the same command resumes from there"
            if out.exists():  # an earlier table, which may be whole
                kept = f"{out} is as it was, and {kept}"
            elif points:
                write_table(points, sweep.columns, out)
                kept = f"they are in {out}, and {kept}"
        say(f"interrupted after {len(points):,} of {sweep.points:,} points; {kept}")
        raise typer.Exit(INTERRUPTED) from None
    points = sweep.table(found)
    if out is not None:
        write_table(points, sweep.columns, out)
    return points


def _perform(
    sweep: Sweep, where: tuple[int | None, str | None], out: Path | None, found: dict[str, list[SweepPoint]]
) -> None:
    tasks = sweep.configurations()
    with ExitStack() as stack:
        store = None if out is None else stack.enter_context(open_store(out.with_name(f"{out.name}.runs")))
        tell = stack.enter_context(counting("sweeping layouts"))
        workers = stack.enter_context(workers_for(len(tasks), *where, few=FEW_TASKS[sweep.engine]))
        for task, (points,) in perform(
            experiment(), tasks, workers, store=store, progress=lambda each: tell(each.finished, each.configurations)
        ):
            found[task.key] = points


def _show(points: list[SweepPoint], sweep: Sweep, out: Path | None, as_json: bool, as_csv: bool) -> None:
    if as_json:
        write_json(SweepTable(tuple(points)).to_json())
    elif as_csv:
        sys.stdout.write(csv_text(points, sweep.columns))
    elif out is None:
        first = next(each.scenario for each in sweep.layouts if each.scenario is not None)
        show((*rests(first, sweep.fitted), *describe(points, system(sweep.system))), Screen())
    else:
        refused = sum(point["refused"] is not None for point in points)
        note = f", {refused:,} of them refused" if refused else ""
        say(f"{len(points):,} points{note}: {out}")


def _check_precision(points: list[SweepPoint], sweep: Sweep) -> None:
    """End with exit code 1 if some simulated points miss the required precision."""
    if sweep.engine == "analytic":
        return
    target = sweep.precision or precision_target(DEFAULT_PRECISION, system(sweep.system))
    missed = [point["simulation"] for point in points if (point["simulation"] or 0.0) > target.relative]
    if missed:
        say(
            f"{len(missed):,} of {len(points):,} points are less precise than {target.text}, the worst "
            f"{max(missed):.1%}: near capacity it takes more than is simulated"
        )
        raise typer.Exit(1)
