"""How sharp and how right bands are in one number: the CRPS of backtests on published tables, beside simple rules.

Scores are of the logarithm of a figure, so 0.1 is about 10 %. A rule has no band. It is dressed with the errors that it
makes on all other tables, as a planner who knows them would do. Tables count equally, as figures of one table share a
cluster and a fit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Protocol

import numpy as np
import scoringrules
from scipy.stats import norm

from capplan.calibration.tables.backtest import USUAL
from capplan.calibration.tables.scores import MODEL, BacktestRow
from capplan.models.language.units import FloatArray
from capplan.planner.rule_names import RULES
from capplan.reports.backtest import in_words

LEVELS = (np.arange(99) + 0.5) / 99
FEWEST_ERRORS = 5
"""Errors on other tables with which a rule is dressed, at least."""
WANTED = 0.2
"""Skill over the hardest rule that is a target."""


@dataclass(frozen=True)
class Predicted:
    """An unseen figure of a table, with a finite prediction."""

    table: str
    row: BacktestRow


def of_tables(found: Mapping[str, Sequence[BacktestRow]]) -> list[Predicted]:
    """Return the figures with a finite prediction, from rows by table."""
    return [
        Predicted(table, row)
        for table, rows in found.items()
        for row in rows
        if row.measured > 0 and row.predicted.low > 0 and math.isfinite(row.predicted.high)
    ]


def crps(measured: float, quantiles: FloatArray) -> float:
    """Return the CRPS of the logarithm of a figure for a forecast by equally likely values."""
    return float(scoringrules.crps_ensemble(math.log(measured), np.log(quantiles), estimator="qd"))


class Band(Protocol):
    """A median with the ends of its 90 % band."""

    @property
    def value(self) -> float: ...  # noqa: D102  # the class says what it is
    @property
    def low(self) -> float: ...  # noqa: D102  # the class says what it is
    @property
    def high(self) -> float: ...  # noqa: D102  # the class says what it is


def quantiles(band: Band) -> FloatArray:
    """Return quantiles of a prediction: a lognormal distribution with a spread of its own on each side."""
    steps = norm.ppf(LEVELS) / norm.ppf(0.95)
    sides = np.where(steps > 0, math.log(band.high / band.value), math.log(band.value / band.low))
    return np.asarray(band.value * np.exp(steps * sides))


def dressed(rule: str, wanted: Predicted, figures: Sequence[Predicted]) -> FloatArray | None:
    """Return quantiles of a rule's estimate with its errors on the other tables; None if there are too few."""
    value = wanted.row.baselines[rule]
    errors = [
        each.row.measured / estimate
        for each in figures
        if each.table != wanted.table
        and each.row.quantity == wanted.row.quantity
        and (estimate := each.row.baselines[rule]) is not None
    ]
    if value is None or len(errors) < FEWEST_ERRORS:
        return None
    return np.asarray(value * np.quantile(errors, LEVELS))


@dataclass(frozen=True)
class Skill:
    """What capplan gains over a rule on the figures that both estimate: 1 is perfect, 0 equal, below 0 worse."""

    figures: int
    tables: int
    own: float
    rule: float

    @property
    def skill(self) -> float:
        """Return 1 minus the ratio of the scores."""
        return 1 - self.own / self.rule


def skills(figures: Sequence[Predicted], quantity: str) -> dict[str, Skill]:
    """Return the skill over each rule that has estimates of a quantity."""
    own = [each for each in figures if each.row.quantity == quantity]
    found = {}
    for rule in RULES:
        if rule == MODEL:
            continue
        pairs = [
            (each.table, crps(each.row.measured, quantiles(each.row.predicted)), crps(each.row.measured, other))
            for each in own
            if (other := dressed(rule, each, own)) is not None
        ]
        if pairs:
            tables = list(dict.fromkeys(table for table, _, _ in pairs))
            scores = [
                fmean(fmean(pair[place] for pair in pairs if pair[0] == table) for table in tables) for place in (1, 2)
            ]
            found[rule] = Skill(len(pairs), len(tables), *scores)
    return found


def best(found: Mapping[str, Skill], figures: int) -> str | None:
    """Return the rule that leaves the least skill, of those that estimate half of the figures."""
    usual = {rule: each for rule, each in found.items() if each.figures >= USUAL * figures}
    return min(usual, key=lambda rule: usual[rule].skill, default=None)


def page(found: Mapping[str, Sequence[BacktestRow]]) -> str:
    """Return the table of skills by quantity."""
    figures = of_tables(found)
    by_quantity = {
        quantity: skills(figures, quantity) for quantity in dict.fromkeys(each.row.quantity for each in figures)
    }
    return "\n".join(_lines(figures, by_quantity))


def _lines(figures: Sequence[Predicted], by_quantity: Mapping[str, Mapping[str, Skill]]) -> Iterator[str]:
    rules = [rule for rule in RULES if any(rule in each for each in by_quantity.values())]
    yield "| quantity | figures | CRPS | " + " | ".join(RULES[rule] for rule in rules) + " | hardest rule | over 0.2 |"
    yield "| --- | ---: | ---: |" + " ---: |" * len(rules) + " --- | --- |"
    for quantity, found in by_quantity.items():
        own = [each for each in figures if each.row.quantity == quantity]
        score = _mean_crps(own)
        hardest = best(found, len(own))
        cells = [f"{found[rule].skill:+.2f} ({found[rule].figures})" if rule in found else "-" for rule in rules]
        last = ("-", "-") if hardest is None else (RULES[hardest], "yes" if found[hardest].skill > WANTED else "**no**")
        yield f"| {' | '.join((in_words(quantity), str(len(own)), f'{score:.3f}', *cells, *last))} |"


def _mean_crps(figures: Sequence[Predicted]) -> float:
    tables = dict.fromkeys(each.table for each in figures)
    return fmean(
        fmean(crps(each.row.measured, quantiles(each.row.predicted)) for each in figures if each.table == table)
        for table in tables
    )
