"""The scorer: how far predictions are from what was measured, and how many bands hold.

It takes figures (`Scored`) wherever they come from: rows of a table that a fit has not seen, and what simple rules say
of them. Live runs share its relative error.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from capplan.calibration.tables.rules import table_estimates
from capplan.calibration.validation.simple_rules import IntervalEstimate
from capplan.evidence.load_test_row import LoadTestRow
from capplan.models.results import Band

if TYPE_CHECKING:
    from capplan.calibration.tables.fit_table import RowPrediction  # slow to import: it needs a solver

MODEL = "capplan"


def relative_error(value: float, measured: float) -> float:
    """Return the signed relative error of an estimate."""
    return value / measured - 1


@dataclass(frozen=True)
class Scored:
    """An estimate beside what was measured.

    Attributes
    ----------
    measured, value : float
        The measured figure, above zero, and the estimate.
    band : tuple of float or None
        Ends of its 90 % band; None: it has none.
    """

    measured: float
    value: float
    band: tuple[float, float] | None = None

    @property
    def error(self) -> float:
        """Signed relative error."""
        return relative_error(self.value, self.measured)


@dataclass(frozen=True)
class PredictedFigure:
    """A prediction and its 90 % band, in the unit of the column; null where it is unbounded.

    Attributes
    ----------
    value
        The median.
    low
        The 5th percentile of what a repeat would measure.
    high
        The 95th percentile.
    """

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class BacktestRow:
    """One figure of a row that the fit has not seen.

    Attributes
    ----------
    run_id
        Name of the run.
    request_class
        Its request class; null if the table has none.
    quantity
        Column of the table, such as `throughput_tps` or `latency_p99_ms`.
    measured
        What was measured, in the unit of the column.
    predicted
        What capplan predicts.
    error
        Signed relative error of the prediction; null if the prediction is unbounded.
    baselines
        What each simple rule says, in the unit of the column; null if it has no answer.
    baseline_reasons
        Why rules have no answer.
    identifiable
        Whether the trained rows decide the figure.
    reason
        Why they do not, and which row would; empty if they do.
    """

    run_id: str
    request_class: str | None
    quantity: str
    measured: float
    predicted: PredictedFigure
    error: float
    baselines: Mapping[str, float | None]
    baseline_reasons: Mapping[str, str]
    identifiable: bool
    reason: str


@dataclass(frozen=True)
class TableScore:
    """How well capplan or a rule predicts figures of one quantity.

    Attributes
    ----------
    figures
        Number of figures with an estimate.
    median_abs_error
        Median absolute relative error.
    p90_abs_error
        90th percentile of the absolute relative errors.
    worst_abs_error
        Largest absolute relative error; null if an estimate is unbounded.
    coverage
        Share of the figures inside the 90 % band; null for rules, which have no band.
    interval_score
        Mean interval score of the bands in the logarithm (Gneiting and Raftery 2007, equation 43): the width, plus
        twenty times the distance by which the band misses the figure; null for rules.
    high_over_low
        Median ratio of the ends of the band; null for rules.
    capplan_median_abs_error
        Median absolute relative error of capplan on the figures that the rule has an estimate of.
    """

    figures: int
    median_abs_error: float | None
    p90_abs_error: float | None
    worst_abs_error: float | None
    coverage: float | None
    interval_score: float | None
    high_over_low: float | None
    capplan_median_abs_error: float | None


Summary = Mapping[str, Mapping[str, TableScore]]


def backtest_row(
    row: LoadTestRow, run_id: str, figure: RowPrediction, band: IntervalEstimate | Band, trained: Sequence[LoadTestRow]
) -> BacktestRow:
    """Return one scored figure, with the estimates of simple rules beside it.

    Parameters
    ----------
    row : LoadTestRow
        The row, which the fit has not seen.
    run_id : str
        Name of the run, or of the line if it has none.
    figure : RowPrediction
        The prediction; it has a measured figure above zero.
    band : IntervalEstimate or Band
        Its median and band.
    trained : sequence of LoadTestRow
        The rows that the fit has seen.
    """
    measured = figure.measured
    if measured is None or not measured > 0:
        raise ValueError(f"{figure.quantity} of {run_id} is {measured}: it has nothing to be scored by")
    rules = table_estimates(row, figure.quantity, trained)
    return BacktestRow(
        run_id=run_id,
        request_class=row.request_class,
        quantity=figure.quantity,
        measured=measured,
        predicted=PredictedFigure(band.value, band.low, band.high),
        error=relative_error(band.value, measured),
        baselines={name: each.value for name, each in rules.items()},
        baseline_reasons={name: each.reason for name, each in rules.items() if each.reason},
        identifiable=figure.identifiable,
        reason=figure.reason,
    )


def summary(rows: Iterable[BacktestRow]) -> Summary:
    """Score capplan and each rule on every quantity.

    Parameters
    ----------
    rows : iterable of BacktestRow
        The scored figures.

    Returns
    -------
    mapping of mappings of TableScore
        By quantity, then `capplan` and the rules.
    """
    by_quantity: dict[str, list[BacktestRow]] = {}
    for row in rows:
        by_quantity.setdefault(row.quantity, []).append(row)
    found: dict[str, dict[str, TableScore]] = {}
    for name, each in by_quantity.items():
        own = [_own(row) for row in each]
        found[name] = {MODEL: score(own, own), **{rule: _of_rule(rule, each) for rule in each[0].baselines}}
    return found


def _own(row: BacktestRow) -> Scored:
    return Scored(row.measured, row.predicted.value, (row.predicted.low, row.predicted.high))


def _of_rule(rule: str, rows: Sequence[BacktestRow]) -> TableScore:
    known = [(Scored(row.measured, value), row) for row in rows if (value := row.baselines[rule]) is not None]
    return score([figure for figure, _ in known], [_own(row) for _, row in known])


def score(figures: Sequence[Scored], beside: Sequence[Scored]) -> TableScore:
    """Score estimates of some figures.

    Parameters
    ----------
    figures : sequence of Scored
        The estimates; all have a band or none has.
    beside : sequence of Scored
        What capplan says of the same figures.
    """
    bands = [(IntervalEstimate(each.value, *each.band), each.measured) for each in figures if each.band is not None]
    finite = [(band, at) for band, at in bands if math.isfinite(band.high) and band.low > 0]
    return TableScore(
        len(figures),
        *_errors([abs(each.error) for each in figures]),
        coverage=float(np.mean([band.holds(at) for band, at in bands])) if bands else None,
        interval_score=float(np.mean([band.interval_score(at) for band, at in finite])) if finite else None,
        high_over_low=median(band.high / band.low for band, _ in finite) if finite else None,
        capplan_median_abs_error=median(abs(each.error) for each in beside) if beside else None,
    )


def _errors(errors: Sequence[float]) -> tuple[float | None, float | None, float | None]:
    """Return median, 90th percentile and largest of absolute errors; None if there are none."""
    if not errors:
        return None, None, None
    ordered = sorted(errors)
    place = 0.9 * (len(ordered) - 1)
    below, above = ordered[math.floor(place)], ordered[math.ceil(place)]
    ninety = below if below == above else below + (place - math.floor(place)) * (above - below)
    return median(ordered), ninety, ordered[-1]
