"""`capplan systems`: the known systems."""

from __future__ import annotations

from typing import Any

from rich.table import Column, Table
from rich.text import Text

from capplan.cli.shell.scenario_command import described_options
from capplan.cli.shell.terminal import Csv, Json, Screen, refuse_both, write_csv, write_json
from capplan.layout.system import System
from capplan.systems.registry import KnownSystem, KnownSystems, every_system


def systems_(as_json: Json = False, as_csv: Csv = False) -> None:
    """List the known systems: what is modelled, on what evidence, and their layout options."""
    refuse_both(as_json, as_csv)
    if as_json:
        known = [
            KnownSystem(
                name=each.name,
                models=each.summary,
                options=described_options(each.scenario),
                figures=len(each.evidence),
                sources=tuple(source.title for source in each.sources),
            )
            for each in every_system()
        ]
        write_json(KnownSystems(tuple(known)).to_json())
    elif as_csv:
        lines = [(each.name, each.summary, " ".join(described_options(each.scenario))) for each in every_system()]
        write_csv(("name", "models", "options"), lines)
    else:
        screen = Screen()
        for each in every_system():
            _show(each, screen)


def _show(system: System[Any], screen: Screen) -> None:
    screen.print(Text(system.name, style="bold"))
    facts = Table.grid(Column(style="cyan", no_wrap=True), Column(), padding=(0, 2))
    options = Table.grid(Column(style="green", no_wrap=True), Column(), padding=(0, 2))
    for option, meaning in described_options(system.scenario).items():
        options.add_row(option, meaning)
    facts.add_row("  models", system.summary)
    facts.add_row("  evidence", f"{len(system.evidence)} figures, see 'capplan evidence list {system.name}'")
    for source in system.sources:
        facts.add_row("  source", source.citation)
    facts.add_row("  layout", options)
    screen.print(facts)
