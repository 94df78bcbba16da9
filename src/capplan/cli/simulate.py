"""`capplan simulate`: run a layout or a network request by request."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from capplan.cli.shell.messages import say
from capplan.cli.shell.progress import simulating
from capplan.cli.shell.scenario_command import given, say_what_has_no_effect, with_options
from capplan.cli.shell.target import DEFAULT_TARGET, TargetOrNetworkText, read_target_or_network
from capplan.cli.shell.terminal import (
    PLOT_HELP,
    TABLE_ENDINGS,
    Csv,
    Json,
    NoLimits,
    check_output,
    check_plot,
    exit_unless,
    naming,
    print_answer,
    refuse_both,
    seconds,
)
from capplan.errors import InputError, look_up
from capplan.models.language.network import Network
from capplan.models.language.scenario import Scenario
from capplan.models.language.units import parse_rate_per_s
from capplan.planner.simulate.simulate import (
    MOST_REPLICATIONS,
    Design,
    Subject,
    design_of,
    observed,
    of_network,
    of_scenario,
    summed_up,
)
from capplan.planner.simulate.simulation import Horizon
from capplan.planner.time_limits import check_layout
from capplan.reports import figure as look
from capplan.reports.simulation import describe
from capplan.reports.simulation import plot as drawn
from capplan.simulator.effort import check_work
from capplan.simulator.engine import check_engine
from capplan.simulator.replications import ReplicationPlan
from capplan.simulator.sample import Observation, Sample

HORIZONS: dict[str, Horizon] = {"steady": "steady", "finite": "finite"}
INTERRUPTED = 130


def simulate_(
    ctx: typer.Context,
    target: TargetOrNetworkText = DEFAULT_TARGET,
    tps: Annotated[
        str | None, typer.Option(metavar="RATE", help="Offered peak rate over all DCs; for a network, its mean rate.")
    ] = None,
    duration: Annotated[str, typer.Option(metavar="TIME", help="Duration of the traffic, such as 60s or 15m.")] = "60s",
    warmup: Annotated[
        str | None, typer.Option(metavar="TIME", help="Warm-up to discard; detected (MSER) when not given.")
    ] = None,
    horizon: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Estimate the steady state (steady), or means over the whole run from an empty start (finite).",
        ),
    ] = None,
    replications: Annotated[
        int | None, typer.Option(min=1, help="Independent runs (1); with --precision, their maximum (200).")
    ] = None,
    precision: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT", help="Run until each class ('p99<2%') or one ('acct.mean<1%') has this relative precision."
        ),
    ] = None,
    engine: Annotated[str, typer.Option(metavar="NAME", help="compiled, or simpy as a cross-check.")] = "compiled",
    seed: Annotated[int, typer.Option(min=0, help="Seed of every random number.")] = 1,
    processes: Annotated[
        int | None, typer.Option(min=1, help="Replications to run in parallel; all processors when not given.")
    ] = None,
    trace: Annotated[Path | None, typer.Option(help="Write every request to this .parquet or .csv file.")] = None,
    plot: Annotated[Path | None, typer.Option(help=PLOT_HELP)] = None,
    no_limits: NoLimits = False,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """Simulate a layout or a network with one set of parameters, request by request.

    Node counts are per data centre, rates are totals over all data centres. Both engines print the same figures.
    """
    refuse_both(as_json, as_csv)
    check_output(trace, TABLE_ENDINGS)
    check_plot(plot)
    subject, layouts = _subject(target, given(ctx), tps, no_limits)
    design = design_of(subject, _horizon(horizon), warmup is not None, precision)
    most = replications or (1 if precision is None else MOST_REPLICATIONS)
    plan = ReplicationPlan(subject.network, *_times(duration, warmup), seed, most, check_engine(engine))
    if not no_limits:
        check_work(plan)
    seen = _run(plan, design, subject, processes or os.cpu_count() or 1, trace)
    simulation = summed_up(target, subject, plan, design, seen)
    say_what_has_no_effect(layouts)
    if any(each.slo for each in layouts):
        say("a simulation judges no objectives: `capplan predict` does")
    if plot is not None:
        look.write(plot, target, lambda page: drawn(Sample(tuple(seen), design.horizon), simulation, page))
    print_answer(simulation, lambda: describe(simulation), as_json, as_csv)
    exit_unless(simulation.precision is None or simulation.precision.reached)


def _horizon(name: str | None) -> Horizon | None:
    return None if name is None else look_up(HORIZONS, name, f"--horizon {name} does not exist")


def _subject(
    target: str, layout: Mapping[str, Any], tps: str | None, no_limits: bool
) -> tuple[Subject, tuple[Scenario, ...]]:
    """Return what to simulate, and its layout if it has one."""
    chosen = read_target_or_network(target)
    if isinstance(chosen, Network):
        with naming("--tps"):
            mean_tps = None if tps is None else parse_rate_per_s(tps)
        return of_network(chosen, mean_tps), ()
    options = layout if tps is None else {**layout, "tps": tps}
    scenario = with_options(chosen.scenario, options)
    if not no_limits:
        check_layout(scenario)
    return of_scenario(scenario, chosen.fitted), (scenario,)


def _times(duration: str, warmup: str | None) -> tuple[float, float]:
    """Return the duration of the traffic and the minimum warm-up, in seconds."""
    lasts = seconds("--duration", duration, above=0.0)
    left_out = 0.0 if warmup is None else seconds("--warmup", warmup)
    if left_out >= lasts:
        raise InputError(f"--warmup {warmup} is not shorter than --duration {duration}: nothing is left to measure")
    return lasts, left_out


def _run(
    plan: ReplicationPlan, design: Design, subject: Subject, processes: int, trace: Path | None
) -> list[Observation]:
    try:
        with ExitStack() as stack:
            write = None
            if trace is not None:
                from capplan.simulator.results.tally import (
                    TraceWriter,  # pyarrow takes longer to import than a short run
                )

                write = stack.enter_context(TraceWriter(trace, plan.network, plan.seed)).write
            tell = stack.enter_context(simulating(plan))
            return observed(plan, design, reported=subject.reported, processes=processes, progress=tell, write=write)
    except KeyboardInterrupt:
        say("interrupted, nothing written")
        raise typer.Exit(INTERRUPTED) from None
