"""`capplan systems`: the known systems."""

from __future__ import annotations

from capplan.cli.shell.scenario_command import described_options
from capplan.cli.shell.terminal import Csv, Json, print_rows, refuse_both
from capplan.reports.systems import describe
from capplan.systems.registry import KnownSystem, KnownSystems, every_system


def systems_(as_json: Json = False, as_csv: Csv = False) -> None:
    """List the known systems: what is modelled, on what evidence, and their layout options."""
    refuse_both(as_json, as_csv)
    known = tuple(
        KnownSystem(
            name=each.name,
            models=each.summary,
            options=described_options(each.scenario),
            figures=len(each.evidence),
            sources=tuple(source.title for source in each.sources),
        )
        for each in every_system()
    )
    print_rows(
        KnownSystems(known).to_json(),
        (("name", "models", "options"), ((each.name, each.models, " ".join(each.options)) for each in known)),
        lambda: (block for each in every_system() for block in describe(each, described_options(each.scenario))),
        as_json,
        as_csv,
    )
