"""`capplan backtest`: how well a system predicts the rows of a load-test table that it was not fitted to."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from capplan.calibration.tables.backtest import backtest
from capplan.cli.shell.terminal import Json, WithRefused, print_answer
from capplan.evidence.audit.audit import check_believed
from capplan.evidence.load_tests import LOAD_TESTS
from capplan.reports.backtest import describe
from capplan.systems.registry import table_system


def backtest_(
    system: Annotated[str, typer.Argument(metavar="SYSTEM", help="A system that is fitted to load-test tables.")],
    table: Annotated[Path, typer.Argument(metavar="TABLE", help="A load-test table (.csv or .parquet).")],
    train: Annotated[
        str, typer.Option(metavar="EXPRESSION", help="Rows to fit, such as 'rf in (1, 3) and clients <= 256'.")
    ],
    with_refused: WithRefused = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the parameter draws.")] = 1,
    as_json: Json = False,
) -> None:
    """Fit a system to the rows that --train keeps, and predict the others.

    The answer is how good the predictions were: their error, their bias and the bands that held, beside the best of
    the simple rules that learn from the same rows.
    """
    its = table_system(system)
    frame = LOAD_TESTS.read(table)
    if not with_refused:
        check_believed(frame, table.name)
    found = backtest(its, frame, train, table=table.name, seed=seed)
    print_answer(found, lambda: describe(found), as_json)
