"""`capplan sweep`: many layouts at many rates, as a table and as a picture of latency against load."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from capplan.cli.progress import counting
from capplan.cli.scenario_options import refuse_both_distances
from capplan.cli.sweep_view import render
from capplan.cli.target import DEFAULT_TARGET, TargetText, read_target
from capplan.cli.terminal import Csv, Json, Screen, check_output, refuse_both, write_json
from capplan.models.errors import InputError, nearest
from capplan.models.language.scenario import Scenario
from capplan.planner.explore.ranges import (
    DISTANCE,
    FACTOR,
    MOST_POINTS,
    RATE,
    ROUND_TRIP,
    SHARE,
    WHOLE,
    WORDS,
    YES_OR_NO,
    Kind,
    parse_values,
)
from capplan.planner.explore.sweep import (
    DEFAULT_DRAWS,
    DEFAULT_WISH,
    ENGINES,
    Rates,
    Sweep,
    SweepEngine,
    experiment,
    layouts,
)
from capplan.planner.explore.sweep_table import SCHEMA, Row, check_ending, csv_text, write_table
from capplan.planner.simulate.precision_target import Wish, read_wish
from capplan.simulator.experiments import workers as pools
from capplan.simulator.experiments.dask_cluster import dask
from capplan.systems.openprovider.network import REPORTED
from capplan.systems.openprovider.scenario import OpenproviderScenario

INTERRUPTED = 130
FEW_TASKS: dict[SweepEngine, int] = {"analytic": 6, "compiled": 2}  # fewer end before a second process has started
KINDS: dict[str, Kind] = {
    **dict.fromkeys(("dcs", "cass_nodes", "rf", "front_nodes", "front_workers"), WHOLE),
    **dict.fromkeys(("consistency_read", "consistency_write", "encryption", "vpn"), WORDS),
    **{"rtt": ROUND_TRIP, "distance_km": DISTANCE, "proxy": YES_OR_NO, "ldap": YES_OR_NO, "data_factor": FACTOR},
}
DEFAULT_RATES = Rates("default", (0.8,))


def _option(metavar: str, about: str) -> Any:
    return typer.Option(metavar=metavar, help=about)


def sweep_(
    target: TargetText = DEFAULT_TARGET,
    dcs: Annotated[str | None, _option("RANGE", "Data centres: 3, 1..5, 1,2,4.")] = None,
    cass_nodes: Annotated[str | None, _option("RANGE", "Cassandra nodes per data centre: 3..12:3.")] = None,
    rf: Annotated[str | None, _option("RANGE", "Replicas per data centre.")] = None,
    front_nodes: Annotated[str | None, _option("RANGE", "Policing nodes per data centre.")] = None,
    front_workers: Annotated[str | None, _option("RANGE", "Worker threads of a policing node.")] = None,
    consistency_read: Annotated[str | None, _option("LEVELS", "Consistency levels of reads.")] = None,
    consistency_write: Annotated[str | None, _option("LEVELS", "Consistency levels of writes: QUORUM,ALL.")] = None,
    rtt: Annotated[str | None, _option("TIMES", "Round trips between data centres: 1ms..9ms:2ms.")] = None,
    distance_km: Annotated[str | None, _option("RANGE", "Distances instead of --rtt: 50..250:100.")] = None,
    proxy: Annotated[str | None, _option("YES,NO", "Forward accounting requests.")] = None,
    ldap: Annotated[str | None, _option("YES,NO", "Ask LDAP on each authorization.")] = None,
    data_factor: Annotated[str | None, _option("RANGE", "Cassandra's times over the test's: 1..3:0.5.")] = None,
    encryption: Annotated[str | None, _option("LINKS", "Encrypted: client, internode, client+internode.")] = None,
    vpn: Annotated[str | None, _option("WHERE", "Encryption in user space or in the kernel: user,kernel.")] = None,
    tps: Annotated[str | None, _option("RATES", "Offered peak rates: 2000..20000:2000.")] = None,
    load: Annotated[str | None, _option("SHARES", "Shares of each layout's capacity instead of --tps.")] = None,
    slo: Annotated[list[str] | None, _option("TEXT", "Objective that a capacity has to meet.")] = None,
    engine: Annotated[str, _option("NAME", "analytic, or compiled: latencies simulated to a precision.")] = ENGINES[0],
    precision: Annotated[
        str | None,
        _option("TEXT", "Of simulated latencies: 'p99<2%' of each class, or 'acct.mean<1%'."),
    ] = None,
    draws: Annotated[int, typer.Option(min=1, help="Parameter draws that stand for all; all is slow.")] = DEFAULT_DRAWS,
    seed: Annotated[int, typer.Option(min=0, help="Seed of every random number.")] = 1,
    processes: Annotated[int | None, typer.Option(min=1, help="Layouts at a time; all processors.")] = None,
    cluster: Annotated[str | None, typer.Option("--dask", metavar="ADDRESS", help="local, or tcp://host:port.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write the table to this .csv or .parquet file.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Write a plot to this HTML file.")] = None,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """Predict many layouts of openprovider at many rates: one row a point, and a plot of latency against load.

    Without --tps and --load each layout is looked at 80 % of its capacity. With --out a sweep that was interrupted
    goes on where it was.
    """
    arguments = locals()
    given = {name: arguments[name] for name in (*KINDS, "tps", "slo") if arguments[name] is not None}
    refuse_both(as_json, as_csv)
    if out is not None:
        check_ending(out)
    for path in filter(None, (out, plot)):
        check_output(path)
    if cluster is not None and processes is not None and cluster != "local":
        raise InputError("--processes is for --dask local and without --dask: a cluster has its own workers")
    sweep = _sweep(target, given, load, (_engine(engine), draws, seed))
    sweep = replace(sweep, wish=_wish(precision, sweep.engine))
    rows = _performed(sweep, (processes, cluster), out)
    _refuse_nothing(rows)
    if plot is not None:
        from capplan.planner.reports.sweep_plot import write_plot  # plotly takes longer to import than a short sweep

        write_plot(rows, target, plot)
    _show(rows, (tuple(given), out), as_json, as_csv)
    missed = [row for row in rows if (row["simulation"] or 0.0) > sweep.wish.relative]
    if missed:
        sys.stderr.write(
            f"capplan: {len(missed):,} of {len(rows):,} points are less precise than {sweep.wish.text}, the worst "
            f"{max(row['simulation'] for row in missed):.1%}: near capacity it takes more than is simulated\n"
        )
        raise typer.Exit(1)


def _engine(name: str) -> SweepEngine:
    for known in ENGINES:
        if name == known:
            return known
    raise InputError(f"engine {name!r} does not sweep{nearest(name, ENGINES)}")


def _wish(text: str | None, engine: SweepEngine) -> Wish:
    if text is None:
        return DEFAULT_WISH
    if engine == "analytic":
        raise InputError(f"--precision {text} is for simulated latencies: add --engine compiled, or leave it out")
    return read_wish(text, tuple(REPORTED), tuple(REPORTED))


def _sweep(target: str, given: Mapping[str, Any], load: str | None, how: tuple[SweepEngine, int, int]) -> Sweep:
    chosen, (engine, draws, seed) = read_target(target), how
    refuse_both_distances(given)
    axes = {name: _values(name, text, KINDS[name]) for name, text in given.items() if name in KINDS}
    count = 1
    for values in axes.values():
        count *= len(values)
    if count > MOST_POINTS:
        raise InputError(f"{count:,} layouts are too many: a sweep has at most {MOST_POINTS:,} points, leave some out")
    base = _with_objectives(chosen.scenario, given.get("slo"))
    combinations = [_fields(dict(zip(axes, values, strict=True))) for values in itertools.product(*axes.values())]
    rates = _rates(given.get("tps"), load, chosen.scenario)
    return Sweep(layouts(base, combinations), rates, chosen.fitted, draws, engine, seed)


def _values(name: str, text: str, kind: Kind) -> tuple[Any, ...]:
    try:
        return parse_values(text, kind)
    except InputError as error:
        raise InputError(f"--{name.replace('_', '-')}: {error}") from None


def _fields(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields of a scenario from values of options."""
    fields = dict(values)
    if "distance_km" in fields:
        fields |= {"distance": fields.pop("distance_km"), "rtt": None}
    return fields


def _with_objectives(scenario: Scenario, slo: list[str] | None) -> OpenproviderScenario:
    from capplan.planner.predict.predict import objectives_of

    if not isinstance(scenario, OpenproviderScenario):
        raise InputError(
            f"{scenario.system} cannot be swept yet: ask `capplan predict {scenario.system}` for each layout"
        )
    changed = scenario if slo is None else replace(scenario, slo=tuple(slo))
    objectives_of(changed)  # now, and not once a layout
    return changed


def _rates(tps: str | None, load: str | None, scenario: Scenario) -> Rates:
    if tps is not None and load is not None:
        raise InputError("--tps and --load exclude each other: give rates, or shares of each layout's capacity")
    if load is not None:
        return Rates("load", _values("load", load, SHARE))
    if tps is not None:
        rates = _values("tps", tps, RATE)
        if min(rates) <= 0:
            raise InputError(f"--tps: {min(rates):g} is not a rate of a sweep: it must be above 0")
        return Rates("given", rates)
    return DEFAULT_RATES if scenario.tps is None else Rates("given", (float(np.max(scenario.tps)),))


def _performed(sweep: Sweep, where: tuple[int | None, str | None], out: Path | None) -> list[Row]:
    """Compute the rows; when interrupted, write those that are there and end."""
    found: dict[str, list[Row]] = {}
    try:
        _perform(sweep, where, out, found)
    except KeyboardInterrupt:
        rows = sweep.rows(found)
        if out is not None and rows:
            write_table(rows, out)
        kept = "without --out none is kept"
        if out is not None:
            kept = (f"they are in {out}, and " if rows else "") + "the same command goes on from there"
        sys.stderr.write(f"capplan: interrupted after {len(rows):,} of {sweep.points:,} points; {kept}\n")
        raise typer.Exit(INTERRUPTED) from None
    rows = sweep.rows(found)
    if out is not None:
        write_table(rows, out)
    return rows


def _perform(sweep: Sweep, where: tuple[int | None, str | None], out: Path | None, found: dict[str, list[Row]]) -> None:
    from capplan.simulator.experiments.experiment import perform

    cases = sweep.cases()
    with ExitStack() as stack:
        store = None
        if out is not None:
            from capplan.simulator.experiments.store import open_store

            store = stack.enter_context(open_store(out.with_name(f"{out.name}.runs")))
        tell = stack.enter_context(counting("sweeping layouts"))
        workers = stack.enter_context(_workers(len(cases), FEW_TASKS[sweep.engine], *where))
        for case, (rows,) in perform(
            experiment(),
            cases,
            workers,
            store=store,
            progress=lambda each: tell(each.finished, each.configurations),
        ):
            found[case.key] = rows


def _workers(tasks: int, few: int, processes: int | None, cluster: str | None) -> AbstractContextManager[pools.Workers]:
    count = processes or os.cpu_count() or 1
    if cluster is not None:
        return dask(cluster, count)
    if count == 1 or tasks < few:
        return pools.in_process()
    return pools.processes(min(count, tasks))


def _refuse_nothing(rows: list[Row]) -> None:
    """Refuse a sweep without a single answer."""
    refused = [row["refused"] for row in rows if row["refused"] is not None]
    if len(refused) == len(rows):
        raise InputError(f"all {len(rows):,} points are refused; the first: {refused[0]}")


def _show(rows: list[Row], what: tuple[tuple[str, ...], Path | None], as_json: bool, as_csv: bool) -> None:
    swept, out = what
    if as_json:
        write_json({"schema": SCHEMA, "points": rows})
    elif as_csv:
        sys.stdout.write(csv_text(rows))
    elif out is None:
        render(rows, swept, Screen())
    else:
        refused = sum(row["refused"] is not None for row in rows)
        told = f", {refused:,} of them refused" if refused else ""
        sys.stderr.write(f"capplan: {len(rows):,} points{told}: {out}\n")
