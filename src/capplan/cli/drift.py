"""`capplan drift`: checks whether the claims of a saved answer still hold against new measurements."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from pandas import DataFrame, concat

from capplan.cli.shell.terminal import Json, print_answer
from capplan.evidence.import_files import import_files
from capplan.evidence.importers.server_metrics import recent
from capplan.evidence.load_tests import LOAD_TESTS
from capplan.models.errors import InputError
from capplan.models.language.units import parse_duration_s
from capplan.planner.drift import drift, read_answer
from capplan.reports.saved_answer import drift as described


def drift_(
    answer: Annotated[
        Path,
        typer.Argument(metavar="ANSWER", help="What predict, size or check printed with --json, or a proposal's JSON."),
    ],
    measured: Annotated[
        list[Path] | None,
        typer.Argument(metavar="MEASURED", help="Load-test tables, or anything that 'capplan evidence import' reads."),
    ] = None,
    prometheus: Annotated[
        str, typer.Option("--prometheus", metavar="URL", help="Take measurements from this Prometheus server, too.")
    ] = "",
    histogram: Annotated[
        list[str] | None,
        typer.Option(
            "--histogram",
            metavar="[CLASS=]METRIC",
            help='Histogram of latencies there, such as read=api_seconds{job="api"}; the only one by default.',
            show_default=False,
        ),
    ] = None,
    last: Annotated[str, typer.Option("--last", metavar="TIME", help="How far back to ask the server.")] = "1h",
    as_json: Json = False,
) -> None:
    """Say which claims of a saved answer still hold.

    The capacity is tested by runs beyond it or near it, latencies by steady runs within 10 % of the answer's rate. Exit
    code 1 if a measurement is worse than the band of its claim.
    """
    saved = read_answer(answer)
    found = drift(saved, _measured(measured or [], prometheus, histogram or [], last))
    print_answer(found, lambda: described(found), as_json)
    if not found.answer:
        raise typer.Exit(1)


def _measured(files: Sequence[Path], url: str, histograms: Sequence[str], last: str) -> DataFrame:
    """Return the measurements, from files or from a server.

    Raises
    ------
    InputError
        If neither is given, or a part of it is wrong.
    """
    if histograms and not url:
        raise InputError("--histogram is of a server: name it by --prometheus")
    if not files and not url:
        raise InputError("nothing was measured: give a load-test table, or a server by --prometheus")
    rows = () if not url else recent(url, histograms, datetime.now(UTC), parse_duration_s(last))
    tables = [LOAD_TESTS.frame(rows)] if rows else []
    if files:
        tables.append(import_files(files).load_tests)
    return concat(tables, ignore_index=True)
