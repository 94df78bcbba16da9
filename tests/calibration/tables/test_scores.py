"""Scores of a backtest against their closed forms."""

import math

import pytest

from capplan.calibration.tables.scores import BacktestRow, PredictedFigure, summary

NEAR = pytest.approx


def figure(measured: float, value: float, factor: float, linear: float | None = None) -> BacktestRow:
    """Return a scored figure with a band of `value / factor` to `value * factor`."""
    band = PredictedFigure(value, value / factor, value * factor)
    return BacktestRow(
        "run", None, "throughput_tps", measured, band, value / measured - 1, {"linear": linear}, {}, True, ""
    )


def test_scores_follow_their_definitions() -> None:
    rows = [
        figure(100.0, value, 1.25, linear) for value, linear in ((101, 110.0), (98, None), (96, 90.0), (130, 150.0))
    ]
    own, linear = summary(rows)["throughput_tps"]["capplan"], summary(rows)["throughput_tps"]["linear"]
    assert own.median_abs_error == NEAR(0.03)
    assert own.worst_abs_error == NEAR(0.3)
    assert own.p90_abs_error == NEAR(0.04 + 0.7 * 0.26)
    assert own.coverage == 0.75
    assert own.high_over_low == NEAR(1.25**2)
    missed = math.log(130 / 1.25 / 100)  # of one figure, below its band
    assert own.interval_score == NEAR(2 * math.log(1.25) + 20 * missed / 4)
    assert linear.median_abs_error == NEAR(0.1)
    assert (linear.figures, linear.coverage) == (3, None)
    assert linear.capplan_median_abs_error == NEAR(0.04)


def test_an_unbounded_prediction_counts_as_infinitely_wrong() -> None:
    own = summary([figure(100.0, math.inf, 1.0), figure(100.0, 100.0, 1.1), figure(100.0, 120.0, 1.1)])
    assert own["throughput_tps"]["capplan"].worst_abs_error == math.inf
    assert own["throughput_tps"]["capplan"].median_abs_error == NEAR(0.2)


def test_a_rule_without_any_estimate_has_no_score() -> None:
    none = summary([figure(100.0, 100.0, 1.1)])["throughput_tps"]["linear"]
    assert (none.figures, none.median_abs_error, none.capplan_median_abs_error) == (0, None, None)
