"""`capplan validate --live`: a real cluster, predicted before it is measured; each figure is shown and judged."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import typer
from rich.console import Console

from capplan.cli.shell.progress import working
from capplan.cli.shell.terminal import Screen, write_json
from capplan.cli.views.lines import columns, paragraph, put
from capplan.lab.packages import check_installed
from capplan.models.user_cache import user_cache
from capplan.planner.live import answer, protocol, run
from capplan.planner.live.answer import LiveFigure, LiveValidation
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
        from capplan.planner.live.page import write_page  # plotly is slow to import

        write_page(found, folder, report)
    if as_json:
        write_json(found.to_json())
    else:
        render(found, Screen())
    folder.end()
    if not found.answer:
        raise typer.Exit(1)


def render(found: LiveValidation, console: Console) -> None:
    """Print the figures of each cluster, why some are not judged, and what all rests on."""
    for cluster, group in groupby(found.figures, key=lambda each: each.cluster):
        figures = list(group)
        put(console, cluster[0].upper() + cluster[1:], "bold")
        _figures(figures, console)
        for sentence in [*answer.round_trips(figures), *answer.sessions(figures), *answer.reasons(figures)]:
            paragraph(console, sentence, hanging=2)
        put(console)
    paragraph(console, answer.LEGEND)
    put(console)
    _rest(found, console)


def _figures(figures: Sequence[LiveFigure], console: Console) -> None:
    """Print a table, with a line before the figures of each statement; a list where it is too wide."""
    lines = columns([_TITLE, *map(answer.cells, figures)])
    if max(map(len, lines)) > console.width:
        for each in figures:
            load, quantity, predicted, measured, error, verdict = answer.cells(each)
            put(console, f"{answer.statement(each)}, {load}, {quantity}")
            put(console, f"    predicted {predicted}, measured {measured or '-'}, error {error or '-'}: {verdict}")
        return
    put(console, lines[0], "bold")
    last = ""
    for each, line in zip(figures, lines[1:], strict=True):
        if (said := answer.statement(each)) != last:
            put(console, said, "cyan")
            last = said
        put(console, line)


def _rest(found: LiveValidation, console: Console) -> None:
    parts = [f"{found.count(verdict)} {verdict}" for verdict in answer.VERDICTS]
    paragraph(console, f"{len(found.figures)} figures: {', '.join(parts)}.")
    paragraph(
        console,
        f"Fitted to {found.fitted_runs} runs. Left out, as the load generator was the bottleneck: "
        f"{found.left_out_runs}. Disturbed by other processes: {found.disturbed_runs}.",
        hanging=2,
    )
    if found.audit:
        paragraph(console, f"Audit of the fitted runs: {', '.join(found.audit)}.", hanging=2)
    put(console, f"Predicted at {found.predicted_at}, measured from {found.measured_from}.")
    put(console, f"Predictions: {found.predictions}")
    put(console, f"SHA-256: {found.sha256}")
