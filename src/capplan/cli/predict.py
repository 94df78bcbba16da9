"""`capplan predict`: what a layout carries, how fast it answers, how sure that is."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from capplan.cli.prediction_view import render
from capplan.cli.target import Target, read_target
from capplan.cli.terminal import Csv, Json, Screen, refuse_both, write_json
from capplan.models.errors import InputError, nearest
from capplan.models.quantity import check_number, parse_length_m, parse_rate_per_s
from capplan.models.scenario import Scenario, changed
from capplan.planner.predict import Engine, predict
from capplan.planner.prediction import Prediction
from capplan.planner.prediction_rows import to_csv

ENGINES: tuple[Engine, ...] = ("analytic", "simpy")


def predict_(
    target: Annotated[
        str, typer.Argument(help="A system, a scenario (.toml) or a fitted file (.json).")
    ] = "openprovider",
    dcs: Annotated[int | None, typer.Option(help="Data centres.")] = None,
    cass_nodes: Annotated[int | None, typer.Option(help="Cassandra nodes per data centre.")] = None,
    rf: Annotated[int | None, typer.Option(help="Replicas per data centre.")] = None,
    front_nodes: Annotated[int | None, typer.Option(help="Policing nodes per data centre.")] = None,
    front_workers: Annotated[int | None, typer.Option(help="Worker threads of a policing node.")] = None,
    consistency_read: Annotated[str | None, typer.Option(metavar="LEVEL", help="Consistency level of reads.")] = None,
    consistency_write: Annotated[str | None, typer.Option(metavar="LEVEL", help="Consistency level of writes.")] = None,
    rtt: Annotated[str | None, typer.Option(metavar="TIME", help="Round trip between data centres: 3ms.")] = None,
    distance_km: Annotated[
        str | None, typer.Option(metavar="KM", help="Distance instead of --rtt; fibre, 1.2 x longer.")
    ] = None,
    proxy: Annotated[bool | None, typer.Option("--proxy/--no-proxy", help="Forward accounting requests.")] = None,
    ldap: Annotated[bool | None, typer.Option("--ldap/--no-ldap", help="Ask LDAP on each authorization.")] = None,
    data_factor: Annotated[
        str | None, typer.Option(metavar="X", help="Cassandra's times over the test's: 2.5.")
    ] = None,
    tps: Annotated[str | None, typer.Option(metavar="RATE", help="Offered peak rate over all data centres.")] = None,
    slo: Annotated[list[str] | None, typer.Option(metavar="TEXT", help="Objective, such as 'acct.p99<20ms'.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of every random number.")] = 1,
    engine: Annotated[
        str, typer.Option(metavar="NAME", help="analytic, or simpy to simulate the latencies.")
    ] = "analytic",
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """Predict what a layout carries, how fast it answers and how sure that is; exit 1 if an objective is not met.

    Node counts are per data centre, rates and capacities are totals over all data centres.
    """
    refuse_both(as_json, as_csv)
    if rtt is not None and distance_km is not None:
        raise InputError("--rtt and --distance-km exclude each other: give the one that you know")
    chosen = read_target(target)
    given: dict[str, Any] = {
        "dcs": dcs,
        "cass_nodes": cass_nodes,
        "rf": rf,
        "front_nodes": front_nodes,
        "front_workers": front_workers,
        "consistency_read": consistency_read,
        "consistency_write": consistency_write,
        "rtt": rtt,
        "distance": None if distance_km is None else f"{parse_length_m(distance_km) / 1000:g}km",
        "proxy": proxy,
        "ldap": ldap,
        "data_factor": None if data_factor is None else _factor(data_factor),
        "tps": None if tps is None else parse_rate_per_s(tps),
        "slo": None if slo is None else tuple(slo),
    }
    prediction = predict(_merged(chosen, given), seed=seed, engine=_engine(engine), fitted=chosen.fitted)
    _show(prediction, as_json, as_csv)
    if any(objective.met is False for objective in prediction.objectives):
        raise typer.Exit(1)


def _merged(chosen: Target, given: dict[str, Any]) -> Scenario:
    """Return the target's scenario with the options that were given."""
    fields = {name: value for name, value in given.items() if value is not None}
    if "distance" in fields:
        fields["rtt"] = None
    try:
        return changed(chosen.scenario, **fields)
    except InputError as error:  # on the command line nobody wrote a Scenario
        raise InputError(str(error).removeprefix("Scenario: ")) from None


def _factor(text: str) -> float:
    try:
        return float(check_number(float(text), "data factor", above=0.0))
    except (ValueError, OverflowError):
        raise InputError(f"{text!r} is not a data factor: give a number such as 2.5") from None


def _engine(name: str) -> Engine:
    for known in ENGINES:
        if name == known:
            return known
    raise InputError(f"engine {name!r} does not exist{nearest(name, ENGINES)}")


def _show(prediction: Prediction, as_json: bool, as_csv: bool) -> None:
    if as_json:
        write_json(prediction.to_json())
    elif as_csv:
        sys.stdout.write(to_csv(prediction))
    else:
        render(prediction, Screen())
