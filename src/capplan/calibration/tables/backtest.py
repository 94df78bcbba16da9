"""`backtest`: fit a system to some rows of a load-test table, and predict the others.

Every figure of the other rows stands beside its prediction with a band and beside what simple rules say that learn from
the same rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

import pandas as pd

from capplan.answers.verb_answer import VerbAnswer
from capplan.calibration.tables.fit_table import fit_table
from capplan.calibration.tables.identifiability import UNDETERMINED
from capplan.calibration.tables.row_predictions import RowPrediction, predict_table
from capplan.calibration.tables.scores import (
    MODEL,
    BacktestRow,
    TableScore,
    backtest_row,
    summary,
)
from capplan.errors import InputError
from capplan.evidence.load_test_row import LoadTestRow
from capplan.evidence.load_tests import LOAD_TESTS
from capplan.evidence.row_choice import chosen_rows
from capplan.grouped import grouped
from capplan.layout.table_components import Rows
from capplan.layout.table_rows import with_mix
from capplan.layout.table_system import TableSystem

USUAL = 0.5
"""Share of the figures that a rule must estimate to be called a rule for their quantity."""


@dataclass(frozen=True)
class Accuracy:
    """How well capplan predicted the figures of one quantity, beside the hardest simple rule.

    Attributes
    ----------
    figures
        Number of figures.
    median_abs_error
        Median absolute relative error; null if it is unbounded.
    bias
        Median ratio of predicted to measured figures: above 1 means too high; null if it is unbounded.
    bands_held
        Number of 90 % bands that contain what was measured.
    hardest_rule
        The simple rule with the smallest median error, of those that estimate half of the figures; null: there is none.
    rule_median_abs_error
        Its median absolute relative error, over the figures that it estimates.
    median_abs_error_beside
        That of capplan, over the same figures.
    """

    figures: int
    median_abs_error: float
    bias: float
    bands_held: int
    hardest_rule: str | None
    rule_median_abs_error: float | None
    median_abs_error_beside: float | None


@dataclass(frozen=True)
class Backtest(VerbAnswer):
    """Predictions of rows that a fit has not seen, and their scores.

    Attributes
    ----------
    system
        The system.
    table
        The table.
    train
        The expression that chose the rows to fit.
    trained_rows
        Rows that were fitted.
    unseen_rows
        Rows that were predicted.
    answer
        How good the predictions of each quantity were.
    remarks
        What the fitted rows do not determine, in sentences.
    assumed
        What rows do not state and the model takes for granted, in sentences.
    rows
        The scored figures.
    summary
        Scores of every figure by quantity, then of `capplan` and of each rule.
    identifiable_summary
        The same of the figures that the fitted rows determine.
    """

    SCHEMA = "capplan.backtest/3"
    UNBOUNDED = (
        *[("PredictedFigure", number) for number in ("value", "low", "high")],
        ("BacktestRow", "error"),
        ("Accuracy", "median_abs_error"),
        ("Accuracy", "bias"),
    )

    system: str
    table: str
    train: str
    trained_rows: int
    unseen_rows: int
    answer: Mapping[str, Accuracy]
    remarks: tuple[str, ...]
    assumed: tuple[str, ...]
    rows: tuple[BacktestRow, ...]
    summary: Mapping[str, Mapping[str, TableScore]]
    identifiable_summary: Mapping[str, Mapping[str, TableScore]]


def split_table(frame: pd.DataFrame, train: str) -> tuple[list[LoadTestRow], list[LoadTestRow]]:
    """Return the rows of a load-test table to fit, and the others, each with a `run_id` unique within its class.

    Parameters
    ----------
    frame : pandas.DataFrame
        The table, as `LOAD_TESTS.read` returns it.
    train : str
        An expression that keeps the rows to fit; see `row_choice`.

    Raises
    ------
    InputError
        If the expression cannot be read, or keeps no row or every row.
    """
    kept = chosen_rows(frame, train)
    if not kept.any():
        raise InputError(f"--train {train!r} keeps none of the {len(frame)} rows: there is nothing to fit")
    if kept.all():
        raise InputError(f"--train {train!r} keeps all {len(frame)} rows: leave some out, which are then predicted")
    rows = list(_told_apart(with_mix(list(LOAD_TESTS.rows(frame)))))  # each row is predicted alone, with its run's mix
    trained, unseen = ([row for row, own in zip(rows, kept, strict=True) if own == side] for side in (True, False))
    return trained, unseen


def _told_apart(rows: Sequence[LoadTestRow]) -> Iterator[LoadTestRow]:
    """Yield the rows under unique run names, so that repeats differ."""
    seen: Counter[tuple[str | None, str | None]] = Counter()
    for number, row in enumerate(rows, 1):
        key = row.run_id, row.request_class
        seen[key] += 1
        name = row.run_id or f"row {number}"
        yield replace(row, run_id=name if row.run_id is None or seen[key] == 1 else f"{name} ({seen[key]})")


def backtest(system: TableSystem[Any], frame: pd.DataFrame, train: str, *, table: str = "", seed: int = 1) -> Backtest:
    """Fit a system to some rows of a load-test table, and predict the others.

    Parameters
    ----------
    system : TableSystem
        The system.
    frame : pandas.DataFrame
        The table, as `LOAD_TESTS.read` returns it.
    train : str
        An expression that keeps the rows to fit, such as `rf in (1, 3)`.
    table : str
        Name of the table.
    seed : int
        Seed of the ensemble of parameters.

    Returns
    -------
    Backtest

    Raises
    ------
    InputError
        If the expression cannot be read, keeps no row or every row, a row lacks what the system needs, or no unseen row
        has a figure to compare with.
    """
    trained, unseen = split_table(frame, train)
    found = list(_predicted(system, trained, unseen, seed))
    rows = tuple(
        backtest_row(row, str(row.run_id), each, trained)
        for row, each in found
        if each.measured is not None and each.measured > 0
    )
    if not rows:
        raise InputError("no row that --train leaves out has a figure that can be predicted: fill its columns")
    scores = summary(rows)
    return Backtest(
        system=system.name,
        table=table,
        train=train,
        trained_rows=len(trained),
        unseen_rows=len(unseen),
        answer={
            quantity: accuracy(scores[quantity], own)
            for quantity, own in grouped(rows, lambda row: row.quantity).items()
        },
        remarks=tuple(remarks(rows)),
        assumed=system.component(Rows).unstated((*trained, *unseen)),
        rows=rows,
        summary=scores,
        identifiable_summary=summary(row for row in rows if row.identifiable),
    )


def _predicted(
    system: TableSystem[Any], trained: Sequence[LoadTestRow], unseen: Sequence[LoadTestRow], seed: int
) -> Iterator[tuple[LoadTestRow, RowPrediction]]:
    """Yield each unseen row's figures, predicted by a fit to the trained rows of the same group."""
    groups = grouped(unseen, system.component(Rows).group)
    known = grouped(trained, system.component(Rows).group)
    for name in groups:
        if name not in known:
            raise InputError(
                f"--train keeps no row of {name}, which its other rows say nothing of: keep some, or leave {name} out "
                "of the table"
            )
    for name, rows in groups.items():
        own = {(row.run_id, row.request_class): row for row in rows}
        fitted = fit_table(system, known[name], seed=seed)
        for row in own.values():
            for each in predict_table(system, fitted, [row]):
                yield row, each


def accuracy(scores: Mapping[str, TableScore], rows: Sequence[BacktestRow]) -> Accuracy:
    """Return how good the predictions of a quantity are, from the scores of capplan and the rules, and its figures."""
    usual = {
        name: (each.median_abs_error, each.capplan_median_abs_error)
        for name, each in scores.items()
        if name != MODEL and each.median_abs_error is not None and each.figures >= USUAL * len(rows)
    }
    rule = min(usual, key=lambda name: usual[name][0], default=None)
    error, beside = (None, None) if rule is None else usual[rule]
    return Accuracy(
        figures=len(rows),
        median_abs_error=median(abs(row.error) for row in rows),
        bias=median(row.predicted.value / row.measured for row in rows),
        bands_held=sum(row.predicted.low <= row.measured <= row.predicted.high for row in rows),
        hardest_rule=rule,
        rule_median_abs_error=error,
        median_abs_error_beside=beside,
    )


def remarks(rows: Sequence[BacktestRow]) -> Iterator[str]:
    """Yield what the fitted rows do not determine, and why, the commonest reason first."""
    by_reason = grouped((row for row in rows if not row.identifiable), lambda row: row.reason)
    for reason, own in sorted(by_reason.items(), key=lambda each: -len(each[1])):
        what = "the predicted ones" if len(own) == len(rows) else f"{len(own)} of {len(rows)} figures"
        yield f"The fitted rows do not determine {what}: {reason.removeprefix(UNDETERMINED)}."
