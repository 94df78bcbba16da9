"""A backtest for people: errors of capplan beside those of simple rules, and what the fitted rows do not determine."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from capplan.answers.number_words import significant
from capplan.calibration.tables.backtest import Accuracy, Backtest
from capplan.calibration.tables.scores import MODEL, BacktestRow, TableScore
from capplan.planner.rule_names import RULES
from capplan.reports.document import Block, Break, Column, Fact, Heading, Table, more, table
from capplan.reports.numbers import error

_WORST = 3  # figures, and remarks, that the screen shows


def describe(found: Backtest) -> Iterator[Block]:
    """Yield the description of a backtest."""
    rows = f"{found.trained_rows} rows fitted, {found.unseen_rows} predicted"
    yield Heading(f"{found.system} on {found.table or 'a table'}, {found.train}: {rows}", 1)
    yield Heading("Answer: how good the predictions are, beside the hardest simple rule")
    yield accuracies(found.answer, widths={name: each[MODEL].high_over_low for name, each in found.summary.items()})
    yield Break()
    for remark in found.remarks[:_WORST]:
        yield Fact("Remark", remark)
    if len(found.remarks) > _WORST:
        yield Fact("", f"and {len(found.remarks) - _WORST} more (--json has them)")
    for sentence in found.assumed:
        yield Fact("Assumed", sentence)
    for number, row in enumerate(sorted(found.rows, key=lambda row: -abs(row.error))[:_WORST]):
        yield Fact("Worst" if not number else "", _figure(row))
    yield Heading("Median absolute error (worst)")
    scores = found.summary.values()
    rules = [name for name in RULES if any(each[name].figures for each in scores if name in each)]
    errors = ([RULES[name], *(error_cell(each[name]) for each in scores)] for name in rules)
    yield table(["", *map(in_words, found.summary)], errors)
    yield Break()
    yield more(["--json"])


def accuracies(
    answer: Mapping[str, Accuracy], name: str = "", widths: Mapping[str, float | None] = MappingProxyType({})
) -> Table:
    """Return a row per quantity: how good its predictions are, beside the hardest simple rule.

    Parameters
    ----------
    answer : mapping of Accuracy
        The scores by quantity.
    name : str
        Name of the table.
    widths : mapping of float
        The high over the low end of the quantity's bands, if they are wanted.
    """
    wide = ["high/low"] * bool(widths)
    rows = (
        [
            in_words(quantity),
            str(its.figures),
            error(its.median_abs_error),
            f"{its.bias:.2f}" if math.isfinite(its.bias) else "unbounded",
            f"{its.bands_held} of {its.figures}",
            *("-" if (width := widths[quantity]) is None else f"{width:.2f}" for _ in wide),
            _hardest_rule(its),
        ]
        for quantity, its in answer.items()
    )
    return table(("", "figures", "error", "bias", "bands held", *wide, Column("hardest rule", 4)), rows, name)


def _hardest_rule(its: Accuracy) -> str:
    if its.hardest_rule is None or its.rule_median_abs_error is None:
        return "-"
    words = f"{RULES[its.hardest_rule]} {error(its.rule_median_abs_error)}"
    if its.median_abs_error_beside in (None, its.median_abs_error):
        return words
    return f"{words} (capplan {error(its.median_abs_error_beside)})"


def in_words(quantity: str) -> str:
    """Return a table column in words: `throughput`, `p99`."""
    return quantity.removeprefix("latency_").removesuffix("_ms").removesuffix("_tps").replace("_percent", "")


def error_cell(score: TableScore) -> str:
    """Return the median and the worst error of figures: `3.1 % (12 %)`."""
    if score.median_abs_error is None or score.worst_abs_error is None:
        return "-"
    return f"{error(score.median_abs_error)} ({error(score.worst_abs_error)})"


def _figure(row: BacktestRow) -> str:
    value, low, high = (significant(each) for each in (row.predicted.value, row.predicted.low, row.predicted.high))
    return (
        f"{row.run_id}: {in_words(row.quantity)} {value} ({low} to {high}), measured {significant(row.measured)}: "
        f"{100 * row.error:+.0f} %"
    )
