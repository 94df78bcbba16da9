"""`capplan systems`: what can be asked about."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from capplan.calibration.evidence.table import load, sources
from capplan.calibration.system import System
from capplan.cli.scenario_options import options_of
from capplan.cli.terminal import Csv, Json, Screen, refuse_both, write_csv, write_json
from capplan.systems.registry import SYSTEMS


def systems(as_json: Json = False, as_csv: Csv = False) -> None:
    """List the systems that capplan knows: what is modelled, on what evidence, and the options that lay them out."""
    refuse_both(as_json, as_csv)
    found = [
        {"name": each.name, "models": each.models, "options": _options(each), "evidence": _evidence(each.name)}
        for each in SYSTEMS.values()
    ]
    if as_json:
        write_json(found)
    elif as_csv:
        lines = [(each.name, each.models, " ".join(_options(each))) for each in SYSTEMS.values()]
        write_csv(("name", "models", "options"), lines)
    else:
        screen = Screen()
        for each in SYSTEMS.values():
            _show(each, screen)


def _options(system: System) -> dict[str, str]:
    """Return the options that lay a system out, with what they mean."""
    return options_of(system.scenario)


def _evidence(name: str) -> dict[str, object]:
    documents = [source.title for source in sources(name)]
    return {"figures": len(load(name)), "sources": documents}


def _show(system: System, screen: Screen) -> None:
    evidence = _evidence(system.name)
    screen.print(Text(system.name, style="bold"))
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="cyan", no_wrap=True)
    facts.add_column()
    facts.add_row("  models", system.models)
    facts.add_row("  evidence", f"{evidence['figures']} figures, see 'capplan evidence list {system.name}'")
    for source in sources(system.name):
        facts.add_row("  source", source.citation)
    for index, (option, about) in enumerate(_options(system).items()):
        line = Text.assemble((f"{option:<26}", "green"), about)
        facts.add_row("" if index else "  layout", line)
    screen.print(facts)
