"""An estimate with its band, and its interval score by hand (Gneiting and Raftery 2007, eq. 43, in the logarithm)."""

import math

import numpy as np
import pytest
from scipy import stats

from capplan.calibration.validation.backtest import IntervalEstimate

BAND = IntervalEstimate(2.0, 1.0, math.e)  # one wide in the logarithm


@pytest.mark.parametrize(
    ("documented", "score"),
    [
        (math.exp(0.5), 1.0),  # inside: its width
        (1.0, 1.0),
        (math.e, 1.0),
        (math.exp(-0.1), 1.0 + 20 * 0.1),  # a tenth below
        (math.exp(1.2), 1.0 + 20 * 0.2),  # a fifth above
    ],
)
def test_the_interval_score_is_the_width_and_twenty_times_what_it_misses_by(documented: float, score: float) -> None:
    assert BAND.interval_score(documented) == pytest.approx(score)


def test_a_band_of_no_width_is_scored_by_its_error_alone() -> None:
    exact = IntervalEstimate(100.0, 100.0, 100.0)

    assert exact.interval_score(100.0) == 0
    assert exact.interval_score(110.0) == pytest.approx(20 * math.log(1.1))
    assert exact.half_width() == 0


def test_a_band_without_an_end_is_as_bad_as_can_be() -> None:
    assert IntervalEstimate(1.0, 0.5, math.inf).interval_score(1.0) == math.inf


def test_a_band_that_is_not_there_has_no_score_and_holds_nothing() -> None:
    missing = IntervalEstimate(1.0, math.nan, math.nan)

    assert math.isnan(missing.interval_score(1.0))
    assert math.isnan(missing.half_width())
    assert not missing.holds(1.0)


def test_half_the_width_is_a_share_of_the_figure() -> None:
    assert IntervalEstimate(200.0, 150.0, 300.0).half_width() == pytest.approx(0.375)


@pytest.mark.parametrize(("documented", "held"), [(0.99, False), (1.0, True), (2.0, True), (math.e, True), (3, False)])
def test_the_ends_belong_to_the_band(documented: float, held: bool) -> None:
    assert BAND.holds(documented) is held


@pytest.mark.parametrize("factor", [0.6, 0.8, 1.25, 2.0])
def test_the_true_quantiles_score_best(factor: float) -> None:
    """The score is proper: with logarithms that are standard normal, by quadrature over the middles of 4001 levels."""
    outcomes = np.exp(stats.norm.ppf((np.arange(4001) + 0.5) / 4001))
    end = stats.norm.ppf(0.95)

    def mean(width: float) -> float:
        band = IntervalEstimate(1.0, math.exp(-width), math.exp(width))
        return float(np.mean([band.interval_score(float(each)) for each in outcomes]))

    assert mean(end) < mean(factor * end)
