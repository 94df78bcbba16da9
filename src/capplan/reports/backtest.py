"""A backtest for people: errors of capplan beside those of simple rules, and what the fitted rows do not determine."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from capplan.calibration.tables.backtest import Accuracy, Backtest
from capplan.calibration.tables.scores import MODEL, BacktestRow, TableScore
from capplan.models.number_words import significant
from capplan.planner.rule_names import RULES
from capplan.reports.document import Block, Fact, Line, Paragraph, Table, more, table, title
from capplan.reports.numbers import error

_WORST = 3  # figures, and remarks, that the screen shows
_Scores = Mapping[str, Mapping[str, TableScore]]


def describe(found: Backtest) -> Iterator[Block]:
    """Yield the description of a backtest."""
    rows = f"{found.trained_rows} rows fitted, {found.unseen_rows} predicted"
    yield title(f"{found.system} on {found.table or 'a table'}, {found.train}: {rows}")
    yield Line()
    yield Line("Answer: how good the predictions are, beside the hardest simple rule", "bold")
    yield _answer(found)
    yield Line()
    for remark in found.remarks[:_WORST]:
        yield Fact("Remark", remark)
    if len(found.remarks) > _WORST:
        yield Paragraph(f"and {len(found.remarks) - _WORST} more (--json has them)", indent=13)
    for sentence in found.assumed:
        yield Fact("Assumed", sentence)
    for number, row in enumerate(sorted(found.rows, key=lambda row: -abs(row.error))[:_WORST]):
        yield Fact("Worst" if not number else "", _figure(row))
    yield Line()
    yield Line("Median absolute error (worst)", "bold")
    yield _errors(found.summary)
    yield Line()
    yield more(["--json"])


def _answer(found: Backtest) -> Table:
    """Return one row per quantity."""
    heads = ("", "figures", "error", "bias", "bands held", "high/low", "hardest rule")
    return table(heads, [_accuracy(quantity, its, found.summary) for quantity, its in found.answer.items()])


def _accuracy(quantity: str, its: Accuracy, scores: _Scores) -> list[str]:
    width, rule = scores[quantity][MODEL].high_over_low, "-"
    if its.hardest_rule is not None and its.rule_median_abs_error is not None:
        rule = f"{RULES[its.hardest_rule]} {error(its.rule_median_abs_error)}"
        if its.median_abs_error_beside != its.median_abs_error and its.median_abs_error_beside is not None:
            rule += f" (capplan {error(its.median_abs_error_beside)})"
    return [
        in_words(quantity),
        str(its.figures),
        error(its.median_abs_error),
        f"{its.bias:.2f}" if math.isfinite(its.bias) else "unbounded",
        f"{its.bands_held} of {its.figures}",
        "-" if width is None else f"{width:.2f}",
        rule,
    ]


def _errors(scores: _Scores) -> Table:
    """Return one row per quantity; if that is too wide one row per rule, and if still too wide only medians."""
    names = [name for name in RULES if any(each[name].figures for each in scores.values() if name in each)]
    rows = [
        [in_words(quantity), str(by_name[MODEL].figures), *(error_cell(by_name[name]) for name in names)]
        for quantity, by_name in scores.items()
    ]
    heads = ["", *map(in_words, scores)]
    with_worst = [[RULES[name], *(error_cell(each[name]) for each in scores.values())] for name in names]
    medians = [[RULES[name], *(error_cell(each[name], worst=False) for each in scores.values())] for name in names]
    by_rule = table(heads, with_worst, [table(heads, medians)])
    return table(["", "figures", *(RULES[name] for name in names)], rows, [by_rule])


def in_words(quantity: str) -> str:
    """Return a table column in words: `throughput`, `p99`."""
    return quantity.removeprefix("latency_").removesuffix("_ms").removesuffix("_tps").replace("_percent", "")


def error_cell(score: TableScore, worst: bool = True) -> str:
    """Return the median and the worst error of figures: `3.1 % (12 %)`."""
    if score.median_abs_error is None or (worst and score.worst_abs_error is None):
        return "-"
    beside = f" ({error(score.worst_abs_error)})" if worst and score.worst_abs_error is not None else ""
    return f"{error(score.median_abs_error)}{beside}"


def _figure(row: BacktestRow) -> str:
    value, low, high = (significant(each) for each in (row.predicted.value, row.predicted.low, row.predicted.high))
    return (
        f"{row.run_id}: {in_words(row.quantity)} {value} ({low} to {high}), measured {significant(row.measured)}: "
        f"{100 * row.error:+.0f} %"
    )
