"""`capplan backtest`: how well a system predicts the rows of a load-test table that it was not fitted to."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from capplan.calibration.evidence.load_tests import LOAD_TESTS
from capplan.calibration.tables.backtest import Backtest, Displacement, backtest
from capplan.calibration.tables.scores import MODEL, BacktestRow, TableScore
from capplan.cli.shell.terminal import PLOT_HELP, Json, Screen, check_plot, write_json
from capplan.cli.views.lines import columns, fact, paragraph, put
from capplan.models.number_words import significant
from capplan.planner.rule_names import RULES
from capplan.systems.registry import table_system

_WORST = 3  # figures that the screen shows
_LEAST = 5e-5  # errors below are those of floating-point numbers


def backtest_(
    system: Annotated[str, typer.Argument(metavar="SYSTEM", help="A system that is fitted to load-test tables.")],
    table: Annotated[Path, typer.Argument(metavar="TABLE", help="A load-test table (.csv or .parquet).")],
    train: Annotated[
        str, typer.Option(metavar="EXPRESSION", help="Rows to fit, such as 'rf in (1, 3) and clients <= 256'.")
    ],
    displace: Annotated[
        bool, typer.Option("--displace", help="Refit with other priors, and say which predictions move.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the parameter draws.")] = 1,
    plot: Annotated[Path | None, typer.Option(help=PLOT_HELP)] = None,
    as_json: Json = False,
) -> None:
    """Fit a system to the rows that --train keeps, and predict the others.

    Each prediction stands beside those of simple rules that learn from the same rows. Exit code 1 if a rule is better
    on some quantity, the bands hold less than 80 % of ten figures or more, or the fitted rows decide no figure.
    """
    check_plot(plot)
    its = table_system(system)
    frame = LOAD_TESTS.read(table)
    found = backtest(its, frame, train, table=table.name, seed=seed, displace=displace)
    if plot is not None:
        from capplan.planner.reports.backtest_plot import write_plot  # plotly is slow to import

        write_plot(found, plot)
    if as_json:
        write_json(found.to_json())
    else:
        render(found, Screen())
    if not found.answer:
        raise typer.Exit(1)


def render(found: Backtest, console: Console) -> None:
    """Print a backtest on one screen."""
    rows = f"{found.trained_rows} rows fitted, {found.unseen_rows} predicted"
    paragraph(console, f"{found.system} on {found.table or 'a table'}, {found.train}: {rows}", style="bold")
    put(console)
    fact(console, "Answer", _answer(found))
    for reason in found.reasons:
        paragraph(console, _plain(reason), indent=13)
    for sentence in found.assumed:
        fact(console, "Assumed", sentence)
    put(console)
    decided = found.identifiable_summary
    _errors(decided or found.summary, bool(decided), console)
    _bands(decided or found.summary, console)
    _worst(found, bool(decided), console)
    _undecided(found, console)
    if found.displacement is not None:
        _displacement(found.displacement, console)
    put(console)
    paragraph(console, "More: --displace, --plot FILE, --json", hanging=6, style="dim")


def _answer(found: Backtest) -> str:
    if found.answer:
        return "yes: no simple rule is better, and the bands hold"
    return "no"


def _plain(reason: str) -> str:
    """Return a reason with the words of the table below it for columns and rules."""
    quantity, colon, rest = reason.partition(": ")
    if not colon:
        return reason
    for name, words in RULES.items():
        rest = rest.replace(f"the rule {name} ", f"{words} ")
    return f"{in_words(quantity)}: {rest}"


def _errors(scores: Mapping[str, Mapping[str, TableScore]], decided: bool, console: Console) -> None:
    which = "of figures that the fitted rows decide" if decided else "of figures that the fitted rows do not decide"
    put(console, f"Median absolute error (worst) {which}", style="bold")
    names = [name for name in RULES if any(each[name].figures for each in scores.values() if name in each)]
    lines = [["", "figures", *(RULES[name] for name in names)]]
    lines += [
        [in_words(quantity), str(by_name[MODEL].figures), *(error_cell(by_name[name]) for name in names)]
        for quantity, by_name in scores.items()
    ]
    printed = columns(lines)
    for cell in (error_cell, _median):  # too wide: a line for each rule instead, in the end without the worst errors
        if max(map(len, printed)) > console.width:
            lines = [["", *(in_words(quantity) for quantity in scores)]]
            lines += [[RULES[name], *(cell(by_name[name]) for by_name in scores.values())] for name in names]
            printed = columns(lines)
    for line in printed:
        put(console, line)


def in_words(quantity: str) -> str:
    """Return a column of the table in words: `throughput`, `p99`."""
    return quantity.removeprefix("latency_").removesuffix("_ms").removesuffix("_tps").replace("_percent", "")


def _median(score: TableScore) -> str:
    return "-" if score.median_abs_error is None else percent(score.median_abs_error)


def error_cell(score: TableScore) -> str:
    """Return the median error of figures, and the worst: `3.1 % (12 %)`."""
    if score.median_abs_error is None or score.worst_abs_error is None:
        return "-"
    return f"{percent(score.median_abs_error)} ({percent(score.worst_abs_error)})"


def percent(error: float) -> str:
    """Return an absolute error in per cent: `3.1 %`, `unbounded`."""
    error = error if error >= _LEAST else 0.0
    return (
        f"{100 * error:.2g} %" if error < 0.995 else (f"{100 * error:.0f} %" if math.isfinite(error) else "unbounded")
    )


def _bands(scores: Mapping[str, Mapping[str, TableScore]], console: Console) -> None:
    put(console)
    parts = [
        f"{in_words(quantity)}: {percent(own.coverage)} hold, high/low {own.high_over_low:.2f}"
        for quantity, by_name in scores.items()
        if (own := by_name[MODEL]).coverage is not None and own.high_over_low is not None
    ]
    fact(console, "90 % bands", "; ".join(parts))


def _worst(found: Backtest, decided: bool, console: Console) -> None:
    known = sorted((row for row in found.rows if row.identifiable or not decided), key=lambda row: -abs(row.error))
    for number, row in enumerate(known[:_WORST]):
        fact(console, "Worst" if not number else "", _figure(row))


def _figure(row: BacktestRow) -> str:
    value, low, high = (significant(each) for each in (row.predicted.value, row.predicted.low, row.predicted.high))
    return (
        f"{row.run_id}: {in_words(row.quantity)} {value} ({low} to {high}), measured {significant(row.measured)}: "
        f"{100 * row.error:+.0f} %"
    )


def _undecided(found: Backtest, console: Console) -> None:
    by_reason: dict[str, list[BacktestRow]] = {}
    for row in found.rows:
        if not row.identifiable:
            by_reason.setdefault(row.reason, []).append(row)
    for reason, rows in list(by_reason.items())[:_WORST]:
        runs = len({row.run_id for row in rows})
        fact(console, "Undecided", f"{len(rows)} figures of {runs} {'run' if runs == 1 else 'runs'}: {reason}")
    if len(by_reason) > _WORST:
        paragraph(console, f"and {len(by_reason) - _WORST} more reasons (--json has them)", indent=13)


def _displacement(found: Displacement, console: Console) -> None:
    if found.median_move is None or found.worst_move is None:
        return
    put(console)
    fact(
        console,
        "Priors",
        f"moved by a standard deviation, {found.fits} fits: {found.moved} of {found.figures} figures move by more than "
        f"5 %, the median by {percent(found.median_move)}, the most by {percent(found.worst_move)}",
    )
    for each in found.most_moved[:_WORST]:
        move = f"{100 * each.low:+.0f} to {100 * each.high:+.0f} %"
        paragraph(console, f"{each.run_id}: {in_words(each.quantity)} {move}", indent=13)
