"""`capplan validate --live`: a real cluster, predicted before it is measured."""

from __future__ import annotations

from pathlib import Path

import typer

from capplan.cli.shell.progress import working
from capplan.cli.shell.terminal import Screen, write_json
from capplan.models.errors import InputError
from capplan.models.user_cache import user_cache


def run_live(*, quick: bool, hosts: Path | None, report: Path | None, as_json: bool) -> None:
    """Run the protocol and print its verdicts.

    Raises
    ------
    typer.Exit
        With 1 if a figure is off.
    """
    from capplan.calibration.lab.packages import check_installed
    from capplan.planner.live.clusters import Clusters, Existing, Labs
    from capplan.planner.live.folder import Folder
    from capplan.planner.live.protocol import FULL, QUICK, for_hosts
    from capplan.planner.live.run import validate_live

    check_installed()
    protocol = QUICK if quick else FULL
    if hosts is None:
        folder = Folder(user_cache() / "live" / protocol.name)
        clusters: Clusters = Labs(folder)
        where = "a lab"
    else:
        from capplan.planner.live.hosts import read_hosts

        its = read_hosts(hosts)
        protocol = for_hosts(its.levels(), its.rtt_ms, quick=quick)
        folder = Folder(user_cache() / "live" / protocol.name)
        clusters, where = Existing(its), ", ".join(its.cluster().addresses)
    with working() as progress:
        found = validate_live(protocol, clusters, folder, progress, where)
    if report is not None:
        from capplan.planner.live.page import write_page  # plotly is slow to import

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


def check_options(*, live: bool, quick: bool, hosts: Path | None) -> None:
    """Refuse options that only a live validation has.

    Raises
    ------
    InputError
        If one is given without `--live`.
    """
    if not live and (quick or hosts is not None):
        option = "--quick" if quick else "--hosts"
        raise InputError(f"{option} is for a live validation: give --live, too")
