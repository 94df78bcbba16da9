"""How well a fit of a user's load tests predicts rows that it has not seen: a refit without some rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from capplan.calibration.evidence.load_tests import LoadTestRow
from capplan.calibration.tables.backtest import CLOSE
from capplan.calibration.tables.fit_table import RowPrediction, TableSystem, fit_table, predict_table
from capplan.calibration.tables.rows import TableRow, rate_per_s, with_mix
from capplan.calibration.tables.scores import MODEL, BacktestRow, backtest_row, summary
from capplan.calibration.validation.simple_rules import IntervalEstimate
from capplan.models.language.parameter import defaults
from capplan.planner.proposal.proposal import BetterRule, UnseenFigures, UnseenRows
from capplan.planner.size.sizing import steady

_SHARE = 0.25  # of the loads of a single layout: the highest ones are left out
_FEWEST_LOADS = 3


@dataclass(frozen=True)
class Fold:
    """Rows that a refit leaves out, in words and by their places in the table."""

    words: str
    unseen: tuple[int, ...]


def fold_of(system: TableSystem[Any], rows: Sequence[LoadTestRow]) -> Fold | None:
    """Return what a refit leaves out: a layout, or else the highest loads; None if too little would be left.

    Of several layouts, it is the one with the highest throughput: a proposal asks for more than was tested. Of one
    layout, it is the quarter of its loads that is highest. One refit takes seconds, each further one as long.

    Parameters
    ----------
    system : TableSystem
        The system.
    rows : sequence of LoadTestRow
        The fitted rows.
    """
    read = system.read(rows)
    places: dict[Any, list[int]] = defaultdict(list)
    for place, row in enumerate(read):
        places[row.layout].append(place)
    if len(places) == 1:
        return _highest_loads(read)
    fastest = max(places, key=lambda layout: max(_speed(read[place]) for place in places[layout]))
    return Fold(f"the layout with the highest throughput ({_in_words(system, fastest)})", tuple(places[fastest]))


def _in_words(system: TableSystem[Any], layout: Any) -> str:
    return system.layout(layout, defaults(system.parameters))


def _highest_loads(rows: Sequence[TableRow]) -> Fold | None:
    loads = sorted({_load(row) for row in rows})
    if len(loads) < _FEWEST_LOADS:
        return None
    last = set(loads[-max(round(_SHARE * len(loads)), 1) :])
    words = f"the {len(last)} highest loads" if len(last) > 1 else "the highest load"
    return Fold(words, tuple(place for place, row in enumerate(rows) if _load(row) in last))


def _load(row: TableRow) -> tuple[str, int, float]:
    return row.load.kind, row.load.clients, row.load.rate_per_s


def _speed(row: TableRow) -> float:
    """Return the rate of a row; where none is known, how short its latencies are."""
    return rate_per_s(row) or 1 / max(min(row.measured.values(), default=1e9), 1e-9)


def predicted_unseen(
    system: TableSystem[Any], rows: Sequence[LoadTestRow], fold: Fold, seed: int
) -> tuple[BacktestRow, ...]:
    """Refit without the rows of a fold, and predict their figures.

    Parameters
    ----------
    system : TableSystem
        The system.
    rows : sequence of LoadTestRow
        The fitted rows.
    fold : Fold
        What to leave out.
    seed : int
        Seed of the refit's ensemble.
    """
    completed = with_mix(rows)
    trained = [row for place, row in enumerate(completed) if place not in fold.unseen]
    unseen = {str(place): replace(completed[place], run_id=str(place)) for place in fold.unseen}
    predicted = predict_table(system, fit_table(system, trained, seed=seed), tuple(unseen.values()))
    return tuple(
        backtest_row(unseen[str(each.run_id)], str(each.run_id), each, _estimate(each), trained)
        for each in predicted
        if each.measured
    )


def _estimate(figure: RowPrediction) -> IntervalEstimate:
    band = figure.predicted
    return IntervalEstimate(band.value, band.low, band.high)


def unseen_rows(fold: Fold | None, rows: Sequence[BacktestRow]) -> UnseenRows:
    """Return the scores of predictions without their rows; those that the other rows do not decide only count."""
    decided = [row for row in rows if row.identifiable]
    by_quantity: dict[str, list[BacktestRow]] = defaultdict(list)
    for row in decided:
        by_quantity[row.quantity].append(row)
    return UnseenRows(
        left_out="" if fold is None else fold.words,
        figures=tuple(_scored(name, each) for name, each in by_quantity.items()),
        undecided=len(rows) - len(decided),
        why_undecided=next((row.reason for row in rows if not row.identifiable), ""),
        better_rules=tuple(_better_rules(decided)),
    )


def _scored(quantity: str, rows: Sequence[BacktestRow]) -> UnseenFigures:
    errors = [abs(row.error) for row in rows]
    return UnseenFigures(
        quantity=quantity,
        figures=len(rows),
        median_error=steady(median(errors)),
        worst_error=steady(max(errors)),
        held=sum(row.predicted.low <= row.measured <= row.predicted.high for row in rows),
    )


def _better_rules(rows: Sequence[BacktestRow]) -> Iterator[BetterRule]:
    """Yield the simple rule that is best on a quantity, where it beats the model."""
    for quantity, scores in summary(rows).items():
        better = {
            name: (each.median_abs_error, each.capplan_median_abs_error)
            for name, each in scores.items()
            if name != MODEL and each.median_abs_error is not None and each.capplan_median_abs_error is not None
        }
        better = {name: (rule, own) for name, (rule, own) in better.items() if rule + CLOSE < own}
        if better:
            name = min(better, key=lambda each: better[each][0])
            rule, own = better[name]
            yield BetterRule(quantity, name, steady(rule), steady(own))
