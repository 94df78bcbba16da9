"""Order statistics against exact values, brute-force enumeration and identities."""

from collections.abc import Callable
from itertools import pairwise, product
from math import comb, exp, factorial, prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special
from tests.oracles.order_statistics import kth_of_n_mean_exponential

from capplan.models.errors import InputError
from capplan.models.solver.random_times import (
    kth_of_n_cdf,
    kth_of_n_mean,
    kth_of_n_variance,
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
    variance = sum(1 / i**2 for i in range(n - k + 1, n + 1))
    exact = float(kth_of_n_mean_exponential(2.0, k, n))
    assert float(kth_of_n_mean(2.0, 1.0, k, n)) == pytest.approx(exact, abs=1e-8)
    assert float(kth_of_n_variance(2.0, 1.0, k, n)) == pytest.approx(4 * variance, abs=1e-8)


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


def test_cdf_and_mean_agree_for_unlike_exponentials() -> None:
    """Slower of two exponentials with rates 1 and 3: 1 + 1/3 - 1/4."""
    time = np.linspace(0.0, 40.0, 400_001)
    done = kth_of_n_cdf(np.stack([1 - np.exp(-time), 1 - np.exp(-3 * time)], axis=-1), 2)
    assert np.trapezoid(1 - done, time) == pytest.approx(1 + 1 / 3 - 1 / 4, rel=1e-7)
    assert float(kth_of_n_cdf([1 - exp(-1), 1 - exp(-3)], 1)) == pytest.approx(1 - exp(-4), rel=1e-12)


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
