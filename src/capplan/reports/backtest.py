"""A backtest for people: errors of capplan beside those of simple rules, and what the rows leave undetermined."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from capplan.calibration.tables.backtest import Backtest
from capplan.calibration.tables.scores import MODEL, BacktestRow, TableScore
from capplan.models.grouped import grouped
from capplan.models.number_words import significant
from capplan.planner.rule_names import RULES
from capplan.reports.document import Block, Fact, Line, Paragraph, Table, more, table, title
from capplan.reports.numbers import error

_WORST = 3  # figures that the screen shows
_Scores = Mapping[str, Mapping[str, TableScore]]


def describe(found: Backtest) -> Iterator[Block]:
    """Yield the description of a backtest."""
    decided = bool(found.identifiable_summary)
    scores = found.identifiable_summary or found.summary
    rows = f"{found.trained_rows} rows fitted, {found.unseen_rows} predicted"
    yield title(f"{found.system} on {found.table or 'a table'}, {found.train}: {rows}")
    yield Line()
    yield Fact("Answer", "yes: no simple rule is better, and the bands hold" if found.answer else "no")
    for reason in found.reasons:
        yield Paragraph(_plain(reason), indent=13)
    for sentence in found.assumed:
        yield Fact("Assumed", sentence)
    yield Line()
    which = "of figures that the fitted rows decide" if decided else "of figures that the fitted rows do not decide"
    yield Line(f"Median absolute error (worst) {which}", "bold")
    yield _errors(scores)
    yield Line()
    parts = [
        f"{in_words(quantity)}: {error(own.coverage)} hold, high/low {own.high_over_low:.2f}"
        for quantity, by_name in scores.items()
        if (own := by_name[MODEL]).coverage is not None and own.high_over_low is not None
    ]
    yield Fact("90 % bands", "; ".join(parts))
    known = sorted((row for row in found.rows if row.identifiable or not decided), key=lambda row: -abs(row.error))
    for number, row in enumerate(known[:_WORST]):
        yield Fact("Worst" if not number else "", _figure(row))
    yield from _undecided(found)
    yield Line()
    yield more(["--json"])


def _plain(reason: str) -> str:
    """Return a reason in which columns and rules have the names of the table below it."""
    quantity, colon, rest = reason.partition(": ")
    if not colon:
        return reason
    for name, words in RULES.items():
        rest = rest.replace(f"the rule {name} ", f"{words} ")
    return f"{in_words(quantity)}: {rest}"


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


def _undecided(found: Backtest) -> Iterator[Block]:
    by_reason = grouped((row for row in found.rows if not row.identifiable), lambda row: row.reason)
    for reason, rows in list(by_reason.items())[:_WORST]:
        runs = len({row.run_id for row in rows})
        yield Fact("Undecided", f"{len(rows)} figures of {runs} {'run' if runs == 1 else 'runs'}: {reason}")
    if len(by_reason) > _WORST:
        yield Paragraph(f"and {len(by_reason) - _WORST} more reasons (--json has them)", indent=13)
