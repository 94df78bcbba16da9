"""Fitting: the likelihood of a rounded figure, and the maximum and ensemble of a problem solved by hand."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from capplan.calibration.fit import posterior as module
from capplan.calibration.fit.posterior import (
    Maximum,
    Problem,
    Scatter,
    best_of,
    deviance_residual,
    log_likelihood,
    maximum,
    rows_to_fit,
)
from capplan.evidence.table import Evidence, by_id
from capplan.models.language.parameter import Parameter, Values
from capplan.models.language.units import FloatArray
from capplan.systems.openprovider.observations import REPEATABILITY
from capplan.systems.registry import system

ROWS = by_id(system("openprovider").evidence)
RATE, TIME = ROWS["ts4.incoming"], ROWS["ts4.acct_mean"]

# A figure that is proportional to one parameter and has an interval far narrower than a repeat's scatter is a normal
# observation of it. In logarithms, with a prior N(log 10000, 0.02) and a figure 10500 (1 +- 0.0025), the posterior is
# normal, up to the second order of 0.0025: precisions add up.
PRIOR, PRIOR_SD = 10_000.0, 0.02
EXACT = replace(RATE, low=RATE.value * (1 - 1e-6), high=RATE.value * (1 + 1e-6))


def scatter_of(row: Evidence) -> Scatter:
    return Scatter(REPEATABILITY[row.quantity])


def proportional(values: Values) -> dict[str, FloatArray]:
    return {EXACT.id: np.asarray(values["speed_per_s"])}


def parameter(name: str, log_sd: float, value: float = PRIOR) -> Parameter:
    return Parameter(name, value, "1/s", "fitted", log_sd, "made up for this test")


TOY = Problem((parameter("speed_per_s", PRIOR_SD), parameter("held_per_s", 0.0)), (EXACT,), proportional, scatter_of)


@pytest.fixture(scope="module")
def best() -> Maximum:
    return maximum(TOY)


@pytest.mark.parametrize("row", [RATE, TIME], ids=lambda row: row.id)
@pytest.mark.parametrize("ratio", [0.5, 0.9, 0.97, 0.999, 1.0, 1.001, 1.03, 1.1, 2.0])
def test_the_likelihood_is_the_normal_probability_of_the_interval(row: Evidence, ratio: float) -> None:
    value = row.value * ratio
    law = stats.norm(loc=value, scale=scatter_of(row).relative_sd * row.value)
    # On the side of the tail, where the difference of two probabilities keeps its digits.
    below = law.cdf(row.high) - law.cdf(row.low)
    above = law.sf(row.low) - law.sf(row.high)
    expected = max(below, above)

    said = float(log_likelihood(row, np.asarray(value), scatter_of(row)))
    if expected > 0:
        assert said == pytest.approx(float(np.log(expected)), rel=1e-9)
    else:
        # Beyond the smallest double only the logarithm of the tail is left: its nearer end dominates.
        nearer = law.logcdf(row.high) if row.high < value else law.logsf(row.low)
        assert said == pytest.approx(float(nearer), rel=1e-6)


def test_the_likelihood_is_symmetric_about_a_figure_in_the_middle_of_its_interval() -> None:
    for away in (10.0, 200.0, 3000.0):
        up = log_likelihood(RATE, np.asarray(RATE.value + away), scatter_of(RATE))
        down = log_likelihood(RATE, np.asarray(RATE.value - away), scatter_of(RATE))
        assert float(up) == pytest.approx(float(down), rel=1e-12)


def test_the_deviance_residual_is_zero_at_the_figure_and_has_the_sign_of_the_error() -> None:
    values = TIME.value * np.array([0.8, 0.95, 1.0, 1.05, 1.2])
    said = deviance_residual(TIME, values, scatter_of(TIME))

    assert said[2] == 0
    assert np.all(np.diff(said) > 0)
    lost = log_likelihood(TIME, np.asarray(TIME.value), scatter_of(TIME)) - log_likelihood(
        TIME, values, scatter_of(TIME)
    )
    np.testing.assert_allclose(said**2, 2 * lost, rtol=1e-12)


def test_the_deviance_residual_of_a_figure_without_rounding_is_the_standardised_error() -> None:
    for sigmas in (-6.0, -1.0, 0.5, 3.0):
        value = EXACT.value * (1 + sigmas * REPEATABILITY["incoming_rate"])
        assert float(deviance_residual(EXACT, np.asarray(value), scatter_of(EXACT))) == pytest.approx(sigmas, rel=1e-4)


def test_only_free_parameters_are_moved() -> None:
    said = TOY.residuals(np.log([[PRIOR]]))

    assert TOY.centre.tolist() == [np.log(PRIOR)]
    assert TOY.spread.tolist() == [PRIOR_SD]
    assert said.shape == (1, 2)
    assert said[0, 1] == 0


def test_draws_in_chunks_are_the_same_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    points = np.log(PRIOR) + np.linspace(-0.1, 0.1, 11)[:, None]
    whole = TOY.residuals(points)
    monkeypatch.setattr(module, "_CHUNK", 3)

    assert np.array_equal(TOY.residuals(points), whole)


def test_the_maximum_is_the_mean_weighted_by_precision(best: Maximum) -> None:
    data_sd = REPEATABILITY["incoming_rate"]
    precisions = np.array([1 / PRIOR_SD**2, 1 / data_sd**2])
    expected = precisions @ np.log([PRIOR, EXACT.value]) / precisions.sum()
    apart = np.log(EXACT.value / PRIOR)

    # The figure is normal in its value, not in its logarithm: 0.4 % of the distance is the second order.
    assert float(best.log_point[0]) == pytest.approx(expected, abs=0.004 * apart)
    assert best.deviance == pytest.approx(apart**2 / (PRIOR_SD**2 + data_sd**2), rel=0.01)
    assert 0 < best.data_deviance < best.deviance


def test_the_maximum_does_not_hang_on_where_it_starts(best: Maximum) -> None:
    other = maximum(TOY, np.array([np.log(10_700.0)]))

    assert float(other.log_point[0]) == pytest.approx(float(best.log_point[0]), abs=1e-5)


class TwoValleys:
    """A deviance with minima near -1 and near 1, of which the second is the lower one."""

    centre, spread = np.zeros(1), np.ones(1)

    def residuals(self, log_points: FloatArray) -> FloatArray:
        return np.concatenate([5 * (log_points**2 - 1), log_points - 1], axis=-1)


@pytest.mark.parametrize("starts", [(-2.0,), (-2.0, 0.5, -0.5), (3.0, 1.0, 0.7, -1.0, 0.1)])
def test_the_best_of_several_searches_is_the_best_of_each_alone(starts: tuple[float, ...]) -> None:
    points = [np.array([start]) for start in starts]
    alone = min((maximum(TwoValleys(), point) for point in points), key=lambda each: each.deviance)

    assert best_of(TwoValleys(), points, 60).log_point.tolist() == alone.log_point.tolist()


def test_an_error_of_the_model_ends_all_searches() -> None:
    class Failing(TwoValleys):
        def residuals(self, log_points: FloatArray) -> FloatArray:
            raise ValueError(f"no prediction at {len(log_points)} points")

    with pytest.raises(ValueError, match="no prediction"):
        best_of(Failing(), [np.zeros(1), np.ones(1)], 60)


def test_effective_parameters_count_what_the_figures_decide(best: Maximum) -> None:
    data_sd = REPEATABILITY["incoming_rate"]

    assert best.effective_parameters == pytest.approx(PRIOR_SD**2 / (PRIOR_SD**2 + data_sd**2), rel=0.01)


def test_a_parameter_that_no_figure_speaks_of_does_not_count(best: Maximum) -> None:
    problem = Problem((TOY.parameters[0], parameter("idle_per_s", 0.3)), TOY.rows, proportional, scatter_of)
    found = maximum(problem)

    assert found.effective_parameters == pytest.approx(best.effective_parameters, abs=1e-3)
    assert float(found.log_point[1]) == pytest.approx(np.log(PRIOR), abs=1e-6)


def test_without_any_figure_the_prior_is_the_posterior() -> None:
    found = maximum(Problem(TOY.parameters, (), lambda _: {}, scatter_of))

    assert found.log_point.tolist() == [np.log(PRIOR)]
    assert found.covariance[0, 0] == pytest.approx(PRIOR_SD**2)
    assert (found.deviance, found.data_deviance, found.effective_parameters) == (0, 0, 0)


def test_rows_that_are_only_checked_are_not_fitted() -> None:
    chosen = rows_to_fit([RATE, ROWS["ts4.busy_workers"], TIME])

    assert chosen == (RATE, TIME)


@pytest.mark.parametrize("ratio", [0.4, 0.9, 1.0, 1.3, 3.0])
def test_a_logarithm_that_scatters_has_the_normal_probability_of_the_interval(ratio: float) -> None:
    scatter, value = Scatter(0.3, logarithmic=True), TIME.value * ratio
    law = stats.norm(loc=np.log(value), scale=0.3)
    expected = law.cdf(np.log(TIME.high)) - law.cdf(np.log(TIME.low))

    assert float(log_likelihood(TIME, np.asarray(value), scatter)) == pytest.approx(float(np.log(expected)), rel=1e-9)


def test_where_the_logarithm_scatters_half_is_as_far_off_as_twice() -> None:
    scatter = Scatter(0.1, logarithmic=True)
    half, twice = (deviance_residual(EXACT, np.asarray(EXACT.value * ratio), scatter) for ratio in (0.5, 2.0))

    assert float(half) == pytest.approx(-float(twice), rel=1e-4)
    assert float(twice) == pytest.approx(np.log(2) / 0.1, rel=1e-4)
