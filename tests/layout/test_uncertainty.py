"""Bands: parameters and model error are combined as independent, and widen with the distance from measured layouts."""

import math

import numpy as np
import pytest

from capplan.layout.uncertainty import ModelError, Offset, Uncertainty
from capplan.systems.registry import scenario, system

OPENPROVIDER = system("openprovider")
FITTED, ASKED = OPENPROVIDER.fitted(), scenario("openprovider")
NORMAL_95 = 1.6448536269514722


def lognormal_draws(log_sd: float, count: int = 4000) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return 1000.0 * np.exp(log_sd * np.random.default_rng(5).standard_normal(count))


def test_a_band_is_the_90_percent_of_parameters_and_model_error_together() -> None:
    band = Uncertainty(rate=ModelError(0.04), time=ModelError(0.1), seed=1).of_rate(lognormal_draws(0.03))

    # Independent normal errors in the logarithm: 3 % and 4 % make 5 %. The 5th percentile of 4000 draws has a standard
    # error of 0.033 of a standard deviation: four of them.
    for edge, sign in ((band.low, -1), (band.high, 1)):
        assert math.log(edge / 1000.0) == pytest.approx(sign * NORMAL_95 * 0.05, abs=4 * 0.033 * 0.05)
    assert band.value == pytest.approx(1000.0, rel=0.003)


def test_the_parts_are_what_each_would_be_alone() -> None:
    draws = lognormal_draws(0.03)
    band = Uncertainty(rate=ModelError(0.04), time=ModelError(0.1), seed=1).of_rate(draws)

    assert band.parts.parameter == pytest.approx(float(np.quantile(draws, 0.95) - np.quantile(draws, 0.05)) / 2)
    assert band.parts.model_error == pytest.approx(NORMAL_95 * 0.04 * band.value)
    assert band.parts.simulation is None


def test_draws_that_agree_leave_the_model_error() -> None:
    band = Uncertainty(rate=ModelError(0.04), time=ModelError(0.1), seed=1).of_time(np.full(2000, 5.0))

    assert band.value == 5.0
    assert band.high == pytest.approx(5.0 * math.exp(NORMAL_95 * 0.1), rel=1e-3)
    assert band.low == pytest.approx(5.0 * math.exp(-NORMAL_95 * 0.1), rel=1e-3)
    assert band.parts.parameter == 0


def test_a_utilisation_never_passes_one() -> None:
    band = Uncertainty(rate=ModelError(0.1), time=ModelError(0.1), seed=1).of_share(np.full(100, 0.97))

    assert band.low < band.value == 0.97
    assert band.high == 1.0


def test_no_more_servers_are_busy_than_there_are() -> None:
    band = Uncertainty(rate=ModelError(0.1), time=ModelError(0.1), seed=1).of_busy(np.full(100, 60.0), 64)

    assert 45 < band.low < band.value == 60.0
    assert band.high == 64


def test_a_capacity_of_zero_is_zero() -> None:
    band = Uncertainty(rate=ModelError(0.1), time=ModelError(0.1), seed=1).of_rate(np.zeros(50))

    assert (band.low, band.value, band.high) == (0, 0, 0)


def test_the_seed_pairs_draws_with_model_errors() -> None:
    draws = lognormal_draws(0.03, 200)
    first, again, other = (Uncertainty(ModelError(0.04), ModelError(0.1), seed).of_rate(draws) for seed in (1, 1, 2))

    assert first == again
    assert first != other
    assert first.value == other.value


def test_model_errors_widen_by_their_factors_and_keep_their_scenarios() -> None:
    near = OPENPROVIDER.uncertainty(FITTED, ASKED, 1)
    far = near.widened(3.0, {"auth": 1.5, "acct": 2.0})

    assert near.rate.log_sd > 0
    assert near.time.log_sd > 0
    assert far.rate.log_sd == pytest.approx(3 * near.rate.log_sd)
    assert far.by_class["auth"].log_sd == pytest.approx(1.5 * near.time.log_sd)
    assert far.time.log_sd == pytest.approx(2 * near.time.log_sd)  # of no class: the largest factor
    assert (far.rate.scenarios, far.time.scenarios) == (near.rate.scenarios, near.time.scenarios)


def test_times_of_a_class_widen_from_their_own_model_error() -> None:
    known = Uncertainty(ModelError(0.1), ModelError(0.2, 4), 1, {"read": ModelError(0.3, 2)}).widened(
        1.0, {"read": 2.0}
    )

    assert known.rate == ModelError(0.1)
    assert known.time == ModelError(0.4, 4)
    assert known.by_class == {"read": ModelError(0.6, 2)}


def test_few_scenarios_make_a_band_of_student() -> None:
    """Draws that agree: the band is Student's t with two degrees of freedom, whose 95th percentile is 2.92."""
    band = Uncertainty(ModelError(0.04, 2), ModelError(0.1), 1).of_rate(np.full(4000, 100.0))

    assert band.high == pytest.approx(100 * math.exp(2.919986 * 0.04), rel=1e-3)
    assert band.low == pytest.approx(100 * math.exp(-2.919986 * 0.04), rel=1e-3)
    assert band.parts.model_error == pytest.approx(2.919986 * 0.04 * 100)


def test_the_packaged_model_error_covers_what_was_missed() -> None:
    """The model error comes from the left-out errors, not from the residuals of the fit, which are smaller."""
    residuals = [math.log(f.predicted / f.documented) for f in FITTED.figures if f.id.endswith(".incoming")]

    assert OPENPROVIDER.uncertainty(FITTED, ASKED, 1).rate.log_sd > float(np.sqrt(np.mean(np.square(residuals))))


def test_an_offset_bounds_a_band_from_below() -> None:
    """A round trip of 100 ms that is known to 1 % does not become 70 ms because the rest is not known at all."""
    known = Uncertainty(ModelError(0.1), ModelError(1.0), 1, offset=Offset({"far": {"p50": 0.1}}, ModelError(0.01)))
    band = known.of_time(np.full(240, 110.0), "far", "p50")

    assert band.value == 110.0
    assert 100.0 < band.low < 103.0  # the rest, 10 ms, as little as 2 ms, and the round trip 98 ms or so
    assert 130.0 < band.high < 170.0  # the rest as much as 52 ms


def test_what_nothing_bounds_has_a_band_without_an_end() -> None:
    half = np.where(np.arange(240) < 200, 50.0, np.inf)
    band = Uncertainty(ModelError(0.1), ModelError(0.2), 1).of_time(half)

    assert math.isfinite(band.value)
    assert band.high == math.inf
    assert (band.parts.parameter, band.parts.model_error) == (None, None)
