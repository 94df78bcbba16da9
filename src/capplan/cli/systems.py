"""`capplan systems`: what can be asked about."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from rich.table import Table
from rich.text import Text

from capplan.calibration.evidence_table import load, sources
from capplan.cli.terminal import Csv, Json, Screen, refuse_both, write_csv, write_json

# What the layout options of every system mean.
OPTIONS = {
    "--dcs": "data centres",
    "--cass-nodes": "Cassandra nodes per data centre",
    "--rf": "replicas per data centre",
    "--front-nodes": "front nodes per data centre",
    "--front-workers": "worker threads of a front node",
    "--consistency-read": "consistency level of reads",
    "--consistency-write": "consistency level of writes",
    "--rtt": "round trip between data centres, such as 3ms",
    "--distance-km": "distance between data centres, instead of --rtt",
    "--proxy/--no-proxy": "forward accounting to another server",
    "--ldap": "look each authorization up in LDAP",
    "--data-factor": "Cassandra's service times over those of the load test",
}


@dataclass(frozen=True)
class System:
    """A system that capplan knows: its name, what is modelled of it, the options that lay it out."""

    name: str
    models: str
    options: tuple[str, ...]


SYSTEMS = (
    System(
        "openprovider",
        "AAA (RADIUS) policy server on Cassandra 3.11: front nodes with a pool of workers, sessions of one "
        "authorization and seven accounting requests to any data centre, reads and mutations with local coordinators, "
        "round trips between data centres, accounting proxy, LDAP.",
        tuple(OPTIONS),
    ),
)


def systems(as_json: Json = False, as_csv: Csv = False) -> None:
    """List the systems that capplan knows: what is modelled, on what evidence, and the options that lay them out."""
    refuse_both(as_json, as_csv)
    found = [{**asdict(each), "evidence": _evidence(each.name)} for each in SYSTEMS]
    if as_json:
        write_json(found)
    elif as_csv:
        write_csv(("name", "models", "options"), [(each.name, each.models, " ".join(each.options)) for each in SYSTEMS])
    else:
        screen = Screen()
        for each in SYSTEMS:
            _show(each, screen)


def _evidence(name: str) -> dict[str, object]:
    documents = [source.title for source in sources() if name in source.systems]
    return {"figures": len(load(name)), "sources": documents}


def _show(system: System, screen: Screen) -> None:
    evidence = _evidence(system.name)
    screen.print(Text(system.name, style="bold"))
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="cyan", no_wrap=True)
    facts.add_column()
    facts.add_row("  models", system.models)
    facts.add_row("  evidence", f"{evidence['figures']} figures, see 'capplan evidence list {system.name}'")
    for source in sources():
        if system.name in source.systems:
            facts.add_row("  source", source.citation)
    for index, option in enumerate(system.options):
        line = Text.assemble((f"{option:<20}", "green"), OPTIONS[option])
        facts.add_row("" if index else "  layout", line)
    screen.print(facts)
