"""Random times, their laws and mixtures, and the k-th of them: exact sums, closed forms, brute force and fine grids."""

from collections.abc import Callable
from itertools import combinations, pairwise, product
from math import comb, factorial, prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special
from tests.oracles.order_statistics import kth_of_n_mean_exponential

from capplan.errors import InputError
from capplan.models.language.units import FloatArray
from capplan.models.solver.random_times import (
    NOW,
    GammaMixture,
    RandomTime,
    kth_of,
    kth_of_n_cdf,
    kth_of_n_mean,
    kth_of_n_third,
    kth_of_n_variance,
    law_cdf,
    law_quantile,
    mixture,
    quantiles_of_groups_s,
    queue_wait,
    rare_wait,
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
def test_sums_add_floors_and_cumulants(one: RandomTime, other: RandomTime) -> None:
    total = one + other
    assert (total.floor, total.mean) == (one.floor + other.floor, one.mean + other.mean)
    assert (total.variance, total.third_s3) == (one.variance + other.variance, one.third_s3 + other.third_s3)
    assert total.total == pytest.approx(one.total + other.total, rel=1e-12)


def test_stretching_scales_cumulants_by_their_powers() -> None:
    assert RandomTime(1.0, 2.0, 3.0, 4.0).stretched(2.0) == RandomTime(2.0, 4.0, 12.0, 32.0)


def test_the_wait_in_m_m_m_is_exponential_for_those_who_wait() -> None:
    wait = queue_wait(0.25 * 3.0, 3.0, 0.5, 1.0)
    assert wait.variance == pytest.approx(0.25 * 18 - 0.75**2)
    assert wait.third_s3 == pytest.approx(rare_wait(wait.mean, wait.variance).third_s3)


@pytest.mark.parametrize("scv", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("load", [0.2, 0.7, 0.95])
def test_the_wait_in_m_g_1_has_the_moments_of_takacs(load: float, scv: float) -> None:
    second, third, fourth = 1 + scv, (1 + scv) * (1 + 2 * scv), (1 + scv) * (1 + 2 * scv) * (1 + 3 * scv)
    rate = load / (1 - load)
    first = rate * second / 2
    square = rate * (second * first + third / 3)
    cube = rate * (1.5 * second * square + third * first + fourth / 4)
    wait = queue_wait(first, first / load, 1.0, scv)
    assert wait.variance == pytest.approx(square - first**2)
    assert wait.third_s3 == pytest.approx(cube - 3 * first * square + 2 * first**3)


@given(TIMES)
def test_the_third_cumulant_is_that_of_the_law(time: RandomTime) -> None:
    """Of quantiles at many levels, below which the tail is known to be exponential or lighter."""
    levels = 1 - np.logspace(0, -14, 20_001)[1:]
    edges = np.concatenate([[0.0], levels])
    values = np.asarray(time.quantile((edges[1:] + edges[:-1]) / 2)) - time.total
    assert float(np.diff(edges) @ values**3) == pytest.approx(float(time.third_s3), rel=0.03)


def test_the_third_cumulants_of_known_laws() -> None:
    assert exponential(3.0).third_s3 == pytest.approx(2 * 27)
    assert RandomTime(5.0, 2.0, 1.0).third_s3 == pytest.approx(1.0)  # Erlang of four: 2 x 4 x 0.5 cubed
    wait = rare_wait(0.25 * 3.0, 0.25 * 18 - 0.75**2)  # of a quarter of the requests, 3 s on average
    assert wait.third_s3 == pytest.approx(0.25 * 6 * 27 - 3 * 0.75 * 0.25 * 18 + 2 * 0.75**3)
    both = mixture((0.25, 0.75), (exponential(3.0), NOW))
    assert both.third_s3 == pytest.approx(wait.third_s3)


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
        assert kth.third_s3 == pytest.approx(float(kth_of_n_third(2.0, 0.5, needed, branches)), rel=1e-12)
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
    assert fastest.third_s3 == pytest.approx(2 * mean_s**3, rel=1e-4)


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


SHARES = st.floats(min_value=0.0, max_value=1.0)


@given(st.lists(SHARES, min_size=1, max_size=7), st.data())
def test_unlike_branches_equal_enumeration(shares: list[float], data: st.DataObject) -> None:
    k = data.draw(st.integers(1, len(shares)))
    exact = sum(
        prod(p if done else 1 - p for p, done in zip(shares, outcome, strict=True))
        for outcome in product([0, 1], repeat=len(shares))
        if sum(outcome) >= k
    )
    assert float(kth_of_n_cdf(shares, k)) == pytest.approx(exact, abs=1e-12)


@given(SHARES, st.integers(1, 30), st.data())
def test_like_branches_equal_the_binomial_sum(share: float, n: int, data: st.DataObject) -> None:
    k = data.draw(st.integers(1, n))
    exact = sum(comb(n, i) * share**i * (1 - share) ** (n - i) for i in range(k, n + 1))
    assert float(kth_of_n_cdf(np.full(n, share), k)) == pytest.approx(exact, abs=1e-12)


def test_branches_lie_along_the_last_axis() -> None:
    values = np.array([[0.2, 0.4, 0.9], [0.5, 0.5, 0.5]])
    result = kth_of_n_cdf(values, 2)
    assert result.shape == (2,)
    assert float(result[0]) == pytest.approx(0.2 * 0.4 + 0.2 * 0.9 + 0.4 * 0.9 - 2 * 0.2 * 0.4 * 0.9, rel=1e-13)
    assert float(result[1]) == pytest.approx(0.5, rel=1e-13)


@pytest.mark.parametrize(("k", "n"), [(1, 1), (1, 3), (2, 3), (3, 3), (5, 9), (60, 200), (200, 200)])
def test_gamma_of_scv_one_is_exponential(k: int, n: int) -> None:
    variance, third = (sum(factor / i**power for i in range(n - k + 1, n + 1)) for power, factor in ((2, 1), (3, 2)))
    exact = float(kth_of_n_mean_exponential(2.0, k, n))
    assert float(kth_of_n_mean(2.0, 1.0, k, n)) == pytest.approx(exact, abs=1e-8)
    assert float(kth_of_n_variance(2.0, 1.0, k, n)) == pytest.approx(4 * variance, abs=1e-8)
    assert float(kth_of_n_third(2.0, 1.0, k, n)) == pytest.approx(8 * third, abs=1e-6)


@pytest.mark.parametrize("stages", [1, 2, 3, 5])
def test_slower_of_two_erlangs_in_closed_form(stages: int) -> None:
    """E[min] of two Erlang(m, m): the area under the squared Poisson tail, a finite sum of factorials."""
    tail = [(1 / factorial(i), i) for i in range(stages)]
    least = sum(a * b * factorial(i + j) / 2 ** (i + j + 1) for a, i in tail for b, j in tail) / stages
    assert float(kth_of_n_mean(1.0, 1 / stages, 1, 2)) == pytest.approx(least, rel=1e-9)
    assert float(kth_of_n_mean(1.0, 1 / stages, 2, 2)) == pytest.approx(2 - least, rel=1e-9)


@pytest.mark.parametrize("scv", [0.003, 0.05, 0.3, 1.7, 6.0, 40.0])
@pytest.mark.parametrize(("k", "n"), [(2, 3), (3, 3), (5, 9)])
def test_any_law_equals_the_area_under_its_tail(scv: float, k: int, n: int) -> None:
    """E[X] = integral of P(X > t), E[X²] = integral of 2 t P(X > t), on t = exp(y): no table, no quantile."""
    y = np.linspace(-60.0 if scv > 1 else -5.0, 9.0, 200_001)
    time = np.exp(y)
    first = (1 + np.sqrt(max(scv - 1, 0) / (scv + 1))) / 2  # of two exponential times with balanced means
    mixed = first * np.exp(-2 * first * time) + (1 - first) * np.exp(-2 * (1 - first) * time)
    tail = special.betainc(n - k + 1, k, mixed if scv > 1 else special.gammaincc(1 / scv, time / scv))
    mean = np.trapezoid(tail * time, y) + (0 if scv > 1 else time[0])
    second = np.trapezoid(2 * time * tail * time, y) + (0 if scv > 1 else time[0] ** 2)
    assert float(kth_of_n_mean(1.0, scv, k, n)) == pytest.approx(mean, rel=1e-6)
    assert float(kth_of_n_variance(1.0, scv, k, n)) == pytest.approx(second - mean**2, rel=1e-5)
    cube = np.trapezoid(3 * time**2 * tail * time, y) + (0 if scv > 1 else time[0] ** 3)
    third = cube - 3 * mean * second + 2 * mean**3
    assert float(kth_of_n_third(1.0, scv, k, n)) == pytest.approx(third, rel=1e-4, abs=1e-6)


def test_deterministic_branches_finish_together_and_small_scv_is_smooth() -> None:
    """For small c the law is nearly normal: the slower of two is later by c / sqrt(pi)."""
    assert float(kth_of_n_mean(3.0, 0.0, 3, 3)) == 3.0
    assert float(kth_of_n_variance(3.0, 0.0, 3, 3)) == 0.0
    spread = np.array([1e-3, 1e-5, 1e-7])
    slope = (np.asarray(kth_of_n_mean(1.0, spread**2, 2, 2)) - 1) / spread
    np.testing.assert_allclose(slope, 1 / np.sqrt(np.pi), rtol=1e-6)


@given(st.floats(0.0, 100.0), st.integers(1, 12))
@pytest.mark.slow
def test_order_statistics_share_out_the_total(scv: float, n: int) -> None:
    means = [float(kth_of_n_mean(1.0, scv, k, n)) for k in range(1, n + 1)]
    assert sum(means) == pytest.approx(n, rel=1e-7)
    assert all(early <= late + 1e-8 for early, late in pairwise(means))
    assert float(kth_of_n_variance(1.0, scv, 1, 1)) == pytest.approx(scv, rel=1e-7)


def test_draws_broadcast() -> None:
    means, spreads = np.array([[1.0], [2.0]]), np.array([0.0, 0.5, 1.0])
    assert kth_of_n_mean(means, spreads, 2, 3).shape == (2, 3)
    assert kth_of_n_mean(means, spreads, 2, 3)[1, 2] == pytest.approx(5 / 3, rel=1e-9)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: kth_of_n_mean(1.0, 1.0, 4, 3), "4 of 3 branches cannot be needed"),
        (lambda: kth_of_n_mean(1.0, 1.0, 0, 3), "0 is not a number of branches needed"),
        (lambda: kth_of_n_cdf([0.5, 1.5], 1), "1.5 is not a probability"),
        (lambda: kth_of_n_cdf([0.5, 0.5], 3), "3 of 2 branches cannot be needed"),
        (lambda: kth_of_n_mean(1.0, 101.0, 2, 3), "101 is not a squared coefficient"),
        (lambda: kth_of_n_mean(1.0, 1.0, 2, 500), "500 is not a number of branches"),
        (lambda: kth_of_n_variance(1.0, -1.0, 2, 3), "-1 is not a squared coefficient of variation"),
    ],
)
def test_bad_arguments_are_named_with_their_rule(call: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


LEVELS = (0.5, 0.9, 0.95, 0.99, 0.999)


def later_gammas(weight: FloatArray, start: FloatArray, mean: FloatArray, variance: FloatArray) -> GammaMixture:
    """Mixture of gamma distributions, each from its start on."""
    return GammaMixture(weight, start + mean, variance, 2 * variance**2 / mean)


@pytest.mark.parametrize("start", [0.0, 5e-3])
@pytest.mark.parametrize("shape", [1.0, 7.0, 300.0])
def test_one_part_is_its_own_quantile(shape: float, start: float) -> None:
    one = (np.array([[each]]) for each in (1.0, start, 2e-3, 4e-6 / shape))

    found = later_gammas(*one).quantiles_s(LEVELS)[:, 0]

    assert found == pytest.approx(start + special.gammaincinv(shape, LEVELS) * 2e-3 / shape, rel=1e-6)


@pytest.mark.parametrize(("share", "slow"), [(0.2, 3.0), (0.05, 9.55), (0.01, 30.0)])
def test_two_exponential_phases_are_their_own_quantiles(share: float, slow: float) -> None:
    quick = (1 - share * slow) / (1 - share)
    second, third = (factor * (share * slow**n + (1 - share) * quick**n) for n, factor in ((2, 2), (3, 6)))
    part = (np.array([[each]]) for each in (1.0, 1.0, second - 1, third - 3 * second + 2))

    found = GammaMixture(*part).quantiles_s(LEVELS)[:, 0]

    beyond = share * np.exp(-found / slow) + (1 - share) * np.exp(-found / quick)
    assert 1 - beyond == pytest.approx(np.array(LEVELS), rel=1e-6)


@given(
    st.lists(
        st.tuples(st.floats(0.01, 1.0), st.floats(0.0, 1.0), st.floats(1e-4, 1.0), st.floats(0.05, 1.0)),
        min_size=1,
        max_size=6,
    ).map(np.array)
)
def test_the_mixture_reaches_the_level_there(parts: FloatArray) -> None:
    weight, start, mean, deviation = parts.T[:, None, :]
    variance = (mean * deviation) ** 2
    weight = weight / weight.sum()

    found = later_gammas(weight, start, mean, variance).quantiles_s(LEVELS)

    def below(at: FloatArray) -> FloatArray:
        scaled = np.maximum(at[..., None] - start, 0.0) * mean / variance
        return np.asarray((weight * special.gammainc(mean**2 / variance, scaled)).sum(axis=-1))[:, 0]

    assert (below(found * (1 - 2e-6)) <= LEVELS).all()
    assert (below(found * (1 + 2e-6)) >= LEVELS).all()


def test_a_value_does_not_hang_on_what_else_is_asked_for() -> None:
    random = np.random.default_rng(7)
    weight = random.dirichlet(np.ones(5), size=8)
    mean = random.uniform(1e-3, 5e-3, (8, 5))
    start = random.uniform(0.0, 5e-3, (8, 5))
    together = later_gammas(weight, start, mean, mean**2 / 20)

    found = together.quantiles_s(LEVELS)

    for row in range(8):
        alone = later_gammas(*(each[row, None] for each in (weight, start, mean, mean**2 / 20)))
        for place, level in enumerate(LEVELS):
            assert alone.quantiles_s((level,))[0, 0] == pytest.approx(found[place, row], rel=1e-12)


def test_parts_that_take_no_time_or_for_ever() -> None:
    half, none = np.full((1, 2), 0.5), np.zeros((1, 2))
    at_once = GammaMixture(half, np.array([[0.0, 1.0]]), np.array([[0.0, 1.0]]), np.array([[0.0, 2.0]]))
    never = GammaMixture(half, np.full((1, 2), np.inf), np.array([[1.0, 1.0]]), none)

    some = GammaMixture(half, np.array([[1.0, np.inf]]), np.array([[1.0, 1.0]]), np.array([[2.0, 1.0]]))
    two = (np.array([[1.0, 4.0, np.inf]]), np.array([[1.0, 16.0, 1.0]]), np.array([[2.0, 128.0, 1.0]]))
    time = GammaMixture(np.full((1, 3), 1 / 3), *two).quantiles_s((0.4,))[0, 0]

    assert at_once.quantiles_s((0.75,))[0, 0] == pytest.approx(np.log(2), rel=1e-6)
    assert some.quantiles_s((0.25, 0.4, 0.6))[:, 0] == pytest.approx([np.log(2), np.log(5), np.inf], rel=1e-6)
    assert (2 - np.exp(-time) - np.exp(-time / 4)) / 3 == pytest.approx(0.4, rel=1e-6)
    assert never.quantiles_s((0.5,))[0, 0] == np.inf


def test_hundreds_of_groups_have_the_quantiles_of_all_their_parts() -> None:
    random = np.random.default_rng(3)
    groups, draws, size = 300, 5, 3
    start, mean = random.uniform(0.0, 2e-3, (draws, groups * size)), random.uniform(1e-3, 9e-3, (draws, groups * size))
    alike = random.random((draws, groups)).repeat(size, axis=-1) < 0.5  # such groups are merged, differently by draw
    start, mean = np.where(alike, 1e-3, start), np.where(alike, 4e-3, mean)
    every = (np.full(start.shape, 1 / start.shape[-1]), start, mean, mean**2 / 4)
    each = [later_gammas(*(value[:, n * size : (n + 1) * size] for value in every)) for n in range(groups)]

    assert quantiles_of_groups_s(each, LEVELS) == pytest.approx(later_gammas(*every).quantiles_s(LEVELS), rel=1e-4)


SCVS = st.floats(min_value=0.01, max_value=50.0)


@given(SCVS)
def test_it_has_the_mean_and_variance_that_it_is_given(scv: float) -> None:
    time = np.exp(np.linspace(-30.0, 9.0, 200_001))
    left = 1 - law_cdf(np.asarray(1 / scv), time)
    assert np.trapezoid(left, time) == pytest.approx(1.0, rel=1e-4)
    assert np.trapezoid(2 * time * left, time) == pytest.approx(1 + scv, rel=1e-4)


@given(SCVS, st.floats(min_value=0.001, max_value=0.999))
def test_the_quantile_inverts_it(scv: float, level: float) -> None:
    shape = np.asarray(1 / scv)
    found = law_quantile(shape, np.asarray(level), np.asarray(1 - level))
    assert law_cdf(shape, found) == pytest.approx(level, rel=1e-9)


def test_both_kinds_are_exponential_in_between() -> None:
    time = np.array([0.1, 1.0, 5.0])
    for shape in (1 - 1e-12, 1.0, 1 + 1e-12):
        assert law_cdf(np.asarray(shape), time) == pytest.approx(1 - np.exp(-time), rel=1e-5)


def test_draws_of_both_kinds_give_what_each_gives_alone() -> None:
    shapes, time = np.array([0.2, 1.0, 3.0]), np.array([0.5, 0.5, 0.5])
    both = law_cdf(shapes, time)
    assert both[2] == pytest.approx(special.gammainc(3.0, 1.5), rel=1e-12)
    assert both == pytest.approx([float(law_cdf(np.asarray(shape), np.asarray(0.5))) for shape in shapes], rel=1e-12)


@given(st.floats(0.05, 20.0), st.floats(-1.0, 8.0))
def test_quantiles_keep_mean_and_variance_whatever_the_third_cumulant(scv: float, skewness: float) -> None:
    """Also where no law has that skewness, as of a choice between two constants."""
    part = (np.array([[each]]) for each in (1.0, 1.0, scv, skewness * scv**1.5))
    levels = 1 - np.logspace(0, -12, 4001)[1:]
    edges = np.concatenate([[0.0], levels])

    values = GammaMixture(*part).quantiles_s(((edges[1:] + edges[:-1]) / 2).tolist())[:, 0]

    assert float(np.diff(edges) @ values) == pytest.approx(1.0, rel=0.02)
    assert float(np.diff(edges) @ (values - 1) ** 2) == pytest.approx(scv, rel=0.05)


def test_percentiles_rise_where_a_part_is_all_but_certain_and_skewed() -> None:
    weight, mean = np.array([[0.9, 0.1]]), np.array([[2e-3, 2.9e-3]])
    mixture = GammaMixture(weight, mean, np.array([[1.9e-12, 2.3e-6]]), np.array([[4.7e-15, 8.9e-9]]))

    found = mixture.quantiles_s((0.1, *LEVELS))[:, 0]

    assert list(found) == sorted(found)
    assert found[1] == pytest.approx(2e-3, rel=2e-3)
