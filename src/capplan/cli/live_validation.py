"""`capplan validate --live`: a real cluster, predicted before it is measured; each figure is shown and judged."""

from __future__ import annotations

from pathlib import Path

import typer

from capplan.cli.shell.progress import working
from capplan.cli.shell.terminal import Screen, write_json
from capplan.lab.packages import check_installed
from capplan.models.files import user_cache
from capplan.planner.live import protocol, run
from capplan.planner.live.clusters import Clusters, Existing, Labs, read_hosts
from capplan.planner.live.folder import Folder

_TITLE = ("load", "quantity", "predicted (band)", "measured", "error", "right")


def run_live(*, quick: bool, hosts: Path | None, report: Path | None, as_json: bool) -> None:
    """Run the protocol and print its verdicts.

    Raises
    ------
    typer.Exit
        With 1 if a figure is off.
    """
    check_installed()
    asked = protocol.QUICK if quick else protocol.FULL
    if hosts is None:
        folder = Folder(user_cache() / "live" / asked.name)
        clusters: Clusters = Labs(folder)
        where = "a lab"
    else:
        its = read_hosts(hosts)
        asked = protocol.for_hosts(its.levels(), its.rtt_ms, quick=quick)
        folder = Folder(user_cache() / "live" / asked.name)
        clusters, where = Existing(its), ", ".join(its.cluster().addresses)
    with working() as progress:
        found = run.validate_live(asked, clusters, folder, progress, where)
    if report is not None:
        from capplan.reports.live import write_page  # plotly is slow to import

        write_page(found, folder, report)
    if as_json:
        write_json(found.to_json())
    else:
        from capplan.reports.live import validation
        from capplan.reports.screen import show

        show(validation(found), Screen())
    folder.end()
    if not found.answer:
        raise typer.Exit(1)
