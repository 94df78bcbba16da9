"""Random times against exact sums, order statistics, closed forms for exponentials, and brute-force sampling."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles.order_statistics import kth_of_n_mean_exponential

from capplan.models.solver.random_times import (
    NOW,
    RandomTime,
    kth_of,
    kth_of_n_cdf,
    kth_of_n_mean,
    kth_of_n_variance,
    mixture,
)

TIMES = st.builds(
    lambda floor, mean, scv: RandomTime(floor, mean, scv * mean**2),
    st.floats(min_value=0.0, max_value=10.0),
    st.floats(min_value=0.01, max_value=10.0),
    st.floats(min_value=0.01, max_value=2.0),
)


def certain(seconds: float) -> RandomTime:
    return RandomTime(seconds, 0.0, 0.0)


def exponential(mean_s: float) -> RandomTime:
    return RandomTime(0.0, mean_s, mean_s**2)


def sampled(times: list[RandomTime], needed: int, count: int = 200_000) -> tuple[float, float]:
    """Mean and variance of the k-th of independent times, by brute force."""
    rng = np.random.default_rng(20261121)
    columns = [np.asarray(time.quantile(rng.random(count))) for time in times]
    kth = np.sort(np.stack(columns), axis=0)[needed - 1]
    return float(kth.mean()), float(kth.var())


@given(TIMES, TIMES)
def test_sums_add_floors_means_and_variances(one: RandomTime, other: RandomTime) -> None:
    total = one + other
    assert (total.floor, total.mean) == (one.floor + other.floor, one.mean + other.mean)
    assert total.variance == one.variance + other.variance
    assert total.total == pytest.approx(one.total + other.total, rel=1e-12)


def test_stretching_scales_the_variance_by_the_square() -> None:
    assert RandomTime(1.0, 2.0, 3.0).stretched(2.0) == RandomTime(2.0, 4.0, 12.0)


@given(TIMES, st.floats(min_value=0.001, max_value=0.999))
def test_the_quantile_inverts_the_distribution(time: RandomTime, level: float) -> None:
    assert float(time.cdf(np.asarray(time.quantile(level)))) == pytest.approx(level, rel=1e-4)


def test_the_law_of_an_exponential_time_above_a_floor() -> None:
    late = RandomTime(2.0, 3.0, 9.0)
    np.testing.assert_allclose(late.cdf(np.array([1.0, 2.0, 5.0])), [0.0, 0.0, 1 - np.exp(-1)], atol=1e-12)
    assert late.quantile(0.5) == pytest.approx(2 + 3 * np.log(2), rel=1e-12)


@pytest.mark.parametrize("scv", [1e-4, 1e-7, 1e-12, 0.0])
def test_a_nearly_certain_time_has_its_mass_at_its_mean(scv: float) -> None:
    """The shape of the gamma law is bounded; its scale must follow the bound."""
    time = RandomTime(1.0, 2.0, 4.0 * scv)
    np.testing.assert_allclose(time.cdf(np.array([2.8, 3.2])), [0.0, 1.0], atol=1e-9)
    assert time.quantile(0.99) == pytest.approx(3.0, rel=0.02)


def test_like_branches_are_the_order_statistics_above_the_floor() -> None:
    for needed, branches in [(1, 3), (2, 3), (5, 9)]:
        kth = kth_of([RandomTime(4.0, 2.0, 2.0)] * branches, needed)
        assert kth.floor == 4.0
        assert kth.mean == pytest.approx(float(kth_of_n_mean(2.0, 0.5, needed, branches)), rel=1e-12)
        assert kth.variance == pytest.approx(float(kth_of_n_variance(2.0, 0.5, needed, branches)), rel=1e-12)
    two_of_three = kth_of([exponential(6.0)] * 3, 2)
    assert two_of_three.mean == pytest.approx(float(kth_of_n_mean_exponential(6.0, 2, 3)), rel=1e-5)


def slowest_exponential(means_s: list[float]) -> float:
    """E[max] by inclusion and exclusion."""
    sizes = range(1, len(means_s) + 1)
    return sum((-1.0) ** (k + 1) / sum(1 / m for m in some) for k in sizes for some in combinations(means_s, k))


@pytest.mark.parametrize("means_s", [[1.0, 2.0], [1.0, 2.0, 5.0], [0.1, 1.0, 1.0, 10.0]])
def test_unlike_exponentials_in_closed_form(means_s: list[float]) -> None:
    times = [exponential(mean_s) for mean_s in means_s]
    assert kth_of(times, len(times)).total == pytest.approx(slowest_exponential(means_s), rel=1e-6)
    fastest = kth_of(times, 1)
    mean_s = 1 / sum(1 / m for m in means_s)
    assert fastest.total == pytest.approx(mean_s, rel=1e-6)
    assert fastest.variance == pytest.approx(mean_s**2, rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("times", "needed"),
    [
        ([RandomTime(0, 1.0, 0.5)] * 3 + [RandomTime(2.0, 1.0, 0.5)] * 6, 5),
        ([RandomTime(0, 0.001, 1e-7)] * 3 + [RandomTime(0.01, 0.001, 1e-7)] * 6, 5),  # the far ones decide
        ([RandomTime(0, 1.0, 1.0), RandomTime(0.2, 1.0, 2.0)], 1),
        ([RandomTime(0, 1.0, 0.3), RandomTime(0.5, 2.0, 1.0), RandomTime(3.0, 0.1, 0.01)], 2),
    ],
    ids=["5 of 9", "5 of 9, far apart", "1 of 2", "2 of 3"],
)
def test_unlike_branches_against_sampling(times: list[RandomTime], needed: int) -> None:
    """200,000 samples: standard errors are below 0.4 % of the mean and 1 % of the variance."""
    mean_s, variance = sampled(times, needed)
    found = kth_of(times, needed)
    assert found.total == pytest.approx(mean_s, rel=0.012)
    assert found.variance == pytest.approx(variance, rel=0.03)
    assert found.floor == sorted(time.floor for time in times)[needed - 1]


@given(TIMES, TIMES, st.integers(min_value=1, max_value=3))
def test_parallel_branches_of_two_kinds_against_a_fine_grid(one: RandomTime, other: RandomTime, needed: int) -> None:
    found, times = kth_of([one, other, other], needed), (one, other, other)
    ends = [float(time.total + 60 * np.sqrt(time.variance)) for time in times]
    levels = np.linspace(0.0, 1.0, 20_001) ** 3  # many where distributions begin
    grid = np.unique([float(time.floor) + (max(ends) - float(time.floor)) * levels for time in times])
    left = 1 - kth_of_n_cdf(np.stack([time.cdf(grid) for time in times], axis=-1), needed)
    assert found.total == pytest.approx(grid[0] + np.trapezoid(left, grid), rel=1e-4)
    second = grid[0] ** 2 + np.trapezoid(2 * grid * left, grid)
    assert found.variance + found.total**2 == pytest.approx(second, rel=1e-4)


def test_many_draws_give_what_each_gives_alone() -> None:
    """Thousands of draws that differ in two ways are interpolated."""
    rng = np.random.default_rng(3)
    mean_s, far_s = np.exp(rng.uniform(-1, 1, 3000)), rng.uniform(0.8, 1.2, 3000)
    every = [RandomTime(0.0, mean_s, mean_s**2 / 2)] * 3 + [RandomTime(far_s, mean_s, mean_s**2 / 2)] * 6
    together = kth_of(every, 5)
    for draw in range(0, 3000, 271):
        near, far = (RandomTime(floor, mean_s[draw], mean_s[draw] ** 2 / 2) for floor in (0.0, far_s[draw]))
        alone = kth_of([near] * 3 + [far] * 6, 5)
        assert np.asarray(together.total)[draw] == pytest.approx(alone.total, rel=1e-6)
        assert np.asarray(together.variance)[draw] == pytest.approx(alone.variance, rel=1e-6)


def test_certain_branches_finish_in_order() -> None:
    times = [certain(3.0), certain(1.0), certain(2.0)]
    for needed, seconds in [(1, 1.0), (2, 2.0), (3, 3.0)]:
        found = kth_of(times, needed)
        assert found.total == pytest.approx(seconds, rel=1e-8)
        assert found.variance == pytest.approx(0.0, abs=1e-8)
    assert kth_of([certain(1.0)] * 3, 2).total == 1.0
    assert kth_of([exponential(1.0), certain(50.0)], 2).total == pytest.approx(50.0, rel=1e-6)


def test_none_needed_is_at_once_and_one_branch_is_itself() -> None:
    assert kth_of([exponential(1.0)] * 2, 0) is NOW
    only = exponential(1.0)
    assert kth_of([only], 1) is only


def test_a_mixture_has_the_moments_of_its_parts() -> None:
    mixed = mixture((0.25, 0.75), (RandomTime(1.0, 1.0, 0.5), RandomTime(2.0, 4.0, 3.0)))
    assert mixed.floor == 1.0
    assert mixed.total == pytest.approx(0.25 * 2 + 0.75 * 6, rel=1e-12)
    assert mixed.variance == pytest.approx(0.25 * (0.5 + 4) + 0.75 * (3 + 36) - 5.0**2, rel=1e-12)
    same = RandomTime(1.0, 1.0, 0.5)
    assert mixture((0.5, 0.5), (same, RandomTime(1.0, 1.0, 0.5))) is same


def test_draws_give_what_each_gives_alone() -> None:
    means, floors = np.array([0.5, 1.0, 4.0]), np.array([0.0, 1.0, 2.0])
    variance = np.array([0.1, 1.0, 2.0])
    times = [RandomTime(0.0, means, variance), RandomTime(floors, 1.0, 0.5), certain(1.5)]
    for needed in (1, 2, 3):
        together = kth_of(times, needed)
        for draw in range(3):
            alone = kth_of(
                [RandomTime(0.0, means[draw], variance[draw]), RandomTime(floors[draw], 1.0, 0.5), certain(1.5)], needed
            )
            assert np.shape(together.mean) == (3,)
            for part in ("floor", "mean", "variance"):
                one = np.broadcast_to(getattr(together, part), 3)[draw]
                assert one == pytest.approx(getattr(alone, part), rel=1e-9, abs=1e-12)
    np.testing.assert_allclose(
        RandomTime(0.0, means[:, None], means[:, None] ** 2).cdf(np.array([1.0, 2.0])),
        1 - np.exp(-np.array([[1.0, 2.0]]) / means[:, None]),
    )
