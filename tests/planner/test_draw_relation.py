"""From a few simulated draws to all: exact without scatter, with the stated coverage otherwise."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.simulator.histograms import histogram_of

from capplan.layout.ensemble import evenly_along
from capplan.layout.solution import LEVELS
from capplan.layout.uncertainty import ModelError, Uncertainty
from capplan.models.language.units import FloatArray
from capplan.planner.predict.simulated_latency import DrawLatencies, Relation, extended_band, related, samples
from capplan.simulator.results.histogram import Histogram

NORMAL_95 = 1.6448536269514722
NOTHING = np.zeros(0)
ENSEMBLE = 5e-3 * np.exp(0.04 * np.random.default_rng(3).standard_normal(240))  # analytic figures, in seconds


def mean_related(analytic: FloatArray, simulated: FloatArray) -> Relation:
    return related(analytic, DrawLatencies(simulated, NOTHING.astype(np.int64), NOTHING, NOTHING), None)


def test_a_solver_that_is_wrong_in_proportion_is_put_right_exactly() -> None:
    relation = mean_related(ENSEMBLE[:8], 1.3 * ENSEMBLE[:8])

    assert relation.slope == pytest.approx(1.0)
    assert relation.at(ENSEMBLE) == pytest.approx(1.3 * ENSEMBLE)
    assert relation.half_width(float(ENSEMBLE[9])) == pytest.approx(0.0, abs=1e-12)
    assert relation.variance_ratio > 1e20


def test_a_slope_that_nothing_scatters_about_is_taken_as_it_is() -> None:
    relation = mean_related(ENSEMBLE[:8], 0.2 * ENSEMBLE[:8] ** 0.7)

    assert relation.slope == pytest.approx(0.7)
    assert relation.at(ENSEMBLE) == pytest.approx(0.2 * ENSEMBLE**0.7)


def test_by_hand() -> None:
    """Logs -1, 0, 1 and -1, 1, 0: slope 1/2 with scatter 3/2, which the prior of variance 1/4 draws to 1.

    Noise 3/2 over 1/4 is 6, so the data decide 2 / (2 + 6) of the slope: 1 - 1/4 * 1/2 = 7/8. Residuals -1/8, 1, -7/8
    have the sum of squares 57/32, over 3 - 1 - 1/4 degrees of freedom. The level is the mean of their exponentials.
    """
    relation = mean_related(np.exp([-1.0, 0.0, 1.0]), np.exp([-1.0, 1.0, 0.0]))
    one, two, three = np.exp([-1 / 8, 1, -7 / 8])
    without = np.log([(two + three) / 2, (one + three) / 2, (one + two) / 2])
    error2 = 2 / 3 * float(np.sum((without - without.mean()) ** 2)) * 2 / 1.75

    assert relation.slope == pytest.approx(7 / 8)
    assert relation.freedom == pytest.approx(1.75)
    assert relation.level == pytest.approx(np.log((one + two + three) / 3))
    assert relation.error_at_centre == pytest.approx(error2**0.5)
    assert relation.error_of_slope == pytest.approx((57 / 32 / 1.75 / 8) ** 0.5)
    assert relation.variance_ratio == pytest.approx(1 / 3 / error2)


def test_draws_that_are_all_alike_are_averaged() -> None:
    simulated = np.array([1.0, 1.1, 1.2, 1.3])
    relation = mean_related(np.full(4, 2.0), simulated)

    assert relation.at(np.full(2, 2.0)) == pytest.approx(simulated.mean())
    assert relation.error_at_centre == pytest.approx(simulated.std(ddof=1) / 2 / simulated.mean(), rel=0.01)
    assert relation.variance_ratio == pytest.approx(1.0, rel=0.02)


@given(st.floats(1e-3, 1e3), st.floats(1e-3, 1e3), st.integers(0, 2**32 - 1))
def test_units_do_not_matter(one: float, other: float, seed: int) -> None:
    noise = np.exp(0.05 * np.random.default_rng(seed).standard_normal(8))
    plain, scaled = (mean_related(a * ENSEMBLE[:8], b * ENSEMBLE[:8] * noise) for a, b in ((1.0, 1.0), (one, other)))

    assert scaled.at(one * ENSEMBLE) == pytest.approx(other * plain.at(ENSEMBLE))
    assert scaled.half_width(one * 5e-3) == pytest.approx(plain.half_width(5e-3), rel=1e-6)


@pytest.mark.parametrize("draws", [1, 6, 17, 240, 700])
def test_draws_are_chosen_evenly_along_their_order(draws: int) -> None:
    ranks = np.argsort(np.argsort(ENSEMBLE))[evenly_along(ENSEMBLE, draws)]

    assert np.all(np.abs((ranks + 0.5) / 240 - (np.arange(draws) + 0.5) / draws) <= 0.5 / 240 + 1e-12)
    counts = np.bincount(ranks, minlength=240)
    assert counts.max() - counts.min() <= 1


def noisy(generator: np.random.Generator, draws: int, slope: float, noise: float) -> tuple[Relation, FloatArray]:
    """Simulate some draws of an ensemble whose true figures are known; return the relation and the true figures."""
    chosen = evenly_along(ENSEMBLE, draws)
    truth = 1.2 * 5e-3 * (ENSEMBLE / 5e-3) ** slope
    return mean_related(ENSEMBLE[chosen], truth[chosen] * np.exp(noise * generator.standard_normal(draws))), truth


@pytest.mark.parametrize(
    ("draws", "slope", "noise"), [(6, 1.05, 0.1), (12, 0.9, 0.03), (12, 1.0, 0.004), (40, 1.3, 0.03)]
)
def test_the_simulation_part_alone_holds_the_true_median_in_90_percent(draws: int, slope: float, noise: float) -> None:
    """1,000 simulations: the share has a standard error of 0.95 %. Four of them, so a right one fails once in 16,000.

    The prior on the slope costs at most 1 % of coverage here; half as wide a band would hold the truth in 60 %.
    """
    generator, held = np.random.default_rng(11), 0
    for _ in range(1000):
        relation, truth = noisy(generator, draws, slope, noise)
        middle = float(np.median(ENSEMBLE))
        error = float(np.log(relation.at(np.array([middle]))[0] / np.median(truth)))
        held += abs(error) <= relation.half_width(middle)

    assert held / 1000 == pytest.approx(0.9, abs=4 * 0.0095 + 0.01)


@pytest.mark.parametrize(("draws", "noise"), [(6, 0.1), (12, 0.03)])
def test_the_whole_band_holds_what_a_load_test_would_measure_in_90_percent(draws: int, noise: float) -> None:
    """A repeat has one draw's true figure and a model error of 5 %. 1,000 experiments: standard error 0.95 %, four.

    Quadrature of a Student's t and normal parts is exact for normal ones only, and errs to the wide side: 1.5 %.
    """
    generator, held = np.random.default_rng(12), 0
    uncertainty = Uncertainty(rate=ModelError(0.04), time=ModelError(0.05), seed=1)
    for _ in range(1000):
        relation, truth = noisy(generator, draws, 1.05, noise)
        band = extended_band(relation, ENSEMBLE, uncertainty)
        measured = generator.choice(truth) * np.exp(0.05 * generator.standard_normal()) * 1e3
        held += band.low <= measured <= band.high

    assert held / 1000 == pytest.approx(0.9, abs=4 * 0.0095 + 0.015)


def test_the_parts_of_a_band_are_what_each_would_be_alone() -> None:
    relation, _ = noisy(np.random.default_rng(2), 12, 1.0, 0.03)
    band = extended_band(relation, ENSEMBLE, Uncertainty(rate=ModelError(0.04), time=ModelError(0.05), seed=1))
    figures = relation.at(ENSEMBLE) * 1e3

    assert band.value == pytest.approx(float(np.median(figures)))
    assert band.parts.parameter == pytest.approx(float(np.subtract(*np.quantile(figures, [0.95, 0.05]))) / 2)
    assert band.parts.model_error == pytest.approx(NORMAL_95 * 0.05 * band.value)
    assert band.parts.simulation == pytest.approx(
        band.value * np.sinh(relation.half_width(float(np.median(ENSEMBLE)))), rel=1e-3
    )
    without = Uncertainty(rate=ModelError(0.04), time=ModelError(0.05), seed=1).of_time(figures)
    assert band.low < without.low < band.value < without.high < band.high


def test_the_control_narrows_the_band_by_what_the_parameters_scatter() -> None:
    """Figures scatter by 4 % between draws and by 1 % between runs of one: the variance ratio is about 17.

    Evenly chosen draws scatter a little less than random ones, and of 12 noisy runs a variance is known to 45 % only,
    so the median of 400 ratios is taken: its error is below 5 %.
    """
    generator = np.random.default_rng(5)
    ratios = [noisy(generator, 12, 1.0, 0.01)[0].variance_ratio for _ in range(400)]
    chosen = np.log(ENSEMBLE[evenly_along(ENSEMBLE, 12)])

    assert np.median(ratios) == pytest.approx(1 + chosen.var(ddof=1) / 0.01**2, rel=0.15)


MS = 10**6


def milliseconds(*values: float) -> Histogram:
    return histogram_of((np.array(values) * MS).astype(np.int64))


def test_phases_are_weighted_by_their_shares_whatever_their_counts() -> None:
    """Nine tenths of the requests at 1 ms, a tenth at 3 ms."""
    seen = samples([[(0.9, milliseconds(*[1.0] * 10)), (0.1, milliseconds(*[3.0] * 1000))]] * 2)

    assert seen.figures(None) == pytest.approx([1.2e-3] * 2)
    assert seen.figures(0.4) == pytest.approx([1e-3] * 2, rel=0.004)
    assert seen.figures(0.999) == pytest.approx([3e-3] * 2, rel=0.004)


def test_percentiles_are_finer_than_the_bins_of_a_histogram() -> None:
    """Of even latencies; bins are 0.4 % wide."""
    seen = samples([[(1.0, histogram_of(np.arange(1, 10**6) * 10))]] * 2)

    for level in LEVELS.values():
        assert seen.figures(level) == pytest.approx([level * 1e-2] * 2, rel=1e-3)


def test_one_empty_phase_has_no_mean() -> None:
    seen = samples(
        [[(0.9, milliseconds(1.0)), (0.1, milliseconds())], [(0.9, milliseconds(1.0)), (0.1, milliseconds(1))]]
    )

    assert np.isnan(seen.mean_s).tolist() == [True, False]


def test_draws_with_nothing_have_no_percentile() -> None:
    assert np.isnan(samples([[(1.0, milliseconds())], [(1.0, milliseconds(1.0))]]).figures(0.5)).tolist() == [
        True,
        False,
    ]


@given(st.lists(st.floats(0.1, 100), min_size=3, max_size=6), st.sampled_from([None, 0.5, 0.99]))
def test_draws_that_differ_in_scale_only_are_one_when_pooled(scales: list[float], level: float | None) -> None:
    """Bins are 0.4 % wide, and fall elsewhere for each scale."""
    latencies = 1 + np.arange(2000) / 500
    seen = samples([[(1.0, milliseconds(*(latencies * scale)))] for scale in scales])
    expected = 1e-3 * float(latencies.mean() if level is None else np.quantile(latencies, level))
    figure, without = seen.pooled(np.array(scales), level)

    assert figure == pytest.approx(expected, rel=0.005)
    assert without == pytest.approx([expected] * len(scales), rel=0.005)


@pytest.mark.parametrize("level", [None, 0.5])
def test_each_draw_is_left_out_once(level: float | None) -> None:
    seen = samples([[(1.0, milliseconds(*[value] * 5))] for value in (1.0, 2.0, 9.0)])
    _, without = seen.pooled(np.ones(3), level)

    assert without == pytest.approx([5.5e-3, 5e-3, 1.5e-3], rel=0.01)


def test_pooled_percentiles_are_not_biased_by_short_clustered_runs() -> None:
    """One run in five is slow throughout (10 ms), the others are fast (1 ms).

    The 90th percentile of all is slow; the mean of the logarithms of the runs' own percentiles is not.
    """
    seen = samples([[(1.0, milliseconds(*[10.0 if run % 5 == 0 else 1.0] * 100))] for run in range(10)])

    assert seen.pooled(np.ones(10), 0.9)[0] == pytest.approx(10e-3, rel=0.01)
    assert np.exp(np.log(seen.figures(0.9)).mean()) < 2e-3
