"""`capplan demand`: the load that subscribers put on a service, and how long a layout can serve it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from capplan.cli.shell.scenario_command import flag, with_options
from capplan.cli.shell.target import DEFAULT_TARGET, read_target
from capplan.cli.shell.terminal import Json, exit_unless, print_answer
from capplan.errors import InputError
from capplan.models.language.scenario import Scenario, options_of
from capplan.planner.demand.demand import read_demand
from capplan.planner.demand.forecast import forecast, layout_of
from capplan.reports.demand import describe


def demand_(
    file: Annotated[Path, typer.Argument(help="Subscribers, their sessions and their data (.toml).")],
    layout: Annotated[
        str | None, typer.Argument(help="A layout to meet it: a system, a scenario (.toml) or a fitted file (.json).")
    ] = None,
    dcs: Annotated[str | None, typer.Option(metavar="N", help="Data centres of the layout.")] = None,
    cass_nodes: Annotated[
        str | None, typer.Option(metavar="N", help="Cassandra nodes per data centre, such as 6 or 6/6/3.")
    ] = None,
    rf: Annotated[str | None, typer.Option(metavar="N", help="Replicas per data centre, such as 3 or 3/3/2.")] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show where each assumption comes from, too.")] = False,
    as_json: Json = False,
) -> None:
    """Turn subscribers into rates by request class, a re-attach storm, and data on disk.

    With a layout or one of its options, say until when rate and data fit. Exit code 1 unless they fit at the planned
    time with a risk of at most 10 %.
    """
    asked = read_demand(file)
    options = {"dcs": dcs, "cass_nodes": cass_nodes, "rf": rf}
    texts = {name: text for name, text in options.items() if text is not None}
    met = None
    if layout is not None or texts:
        chosen = read_target(layout or DEFAULT_TARGET)
        met = layout_of(asked, _scenario(chosen.scenario, texts), chosen.fitted)
    found = forecast(asked, met)
    print_answer(found, lambda: describe(found, file.name, explain), as_json)
    exit_unless(found.answer == "yes")


def _scenario(scenario: Scenario, texts: dict[str, Any]) -> Scenario:
    known = options_of(type(scenario))
    for name in texts:
        if name not in known:
            raise InputError(f"{flag(name)} is not an option of {scenario.system}: give a scenario file of it instead")
    return with_options(scenario, texts)
