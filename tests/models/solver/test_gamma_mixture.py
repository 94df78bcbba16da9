"""Quantiles of gamma mixtures: exact for one component, consistent with the CDF for many, robust in extreme cases."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from capplan.models.language.units import FloatArray
from capplan.models.solver.random_times import GammaMixture

LEVELS = (0.5, 0.9, 0.95, 0.99, 0.999)


def below(mixture: GammaMixture, at: FloatArray) -> FloatArray:
    """Mass below `at` (levels, draws), from the definition."""
    shape = mixture.mean_s**2 / mixture.variance_s2
    scaled = at[..., None] * mixture.mean_s / mixture.variance_s2
    return np.asarray((mixture.weight * special.gammainc(shape, scaled)).sum(axis=-1))


@pytest.mark.parametrize("shape", [0.3, 1.0, 7.0, 300.0])
def test_one_part_is_its_own_quantile(shape: float) -> None:
    mixture = GammaMixture(np.ones((1, 1)), np.array([[2e-3]]), np.array([[4e-6 / shape]]))

    found = mixture.quantiles_s(LEVELS)[:, 0]

    assert found == pytest.approx(special.gammaincinv(shape, LEVELS) * 2e-3 / shape, rel=1e-6)


@given(
    st.lists(st.tuples(st.floats(0.01, 1.0), st.floats(1e-4, 1.0), st.floats(0.05, 3.0)), min_size=1, max_size=6).map(
        np.array
    )
)
def test_the_mixture_reaches_the_level_there(parts: FloatArray) -> None:
    weight, mean, deviation = parts.T[:, None, :]
    mixture = GammaMixture(weight / weight.sum(), mean, (mean * deviation) ** 2)

    found = mixture.quantiles_s(LEVELS)

    assert (below(mixture, found * (1 - 2e-6))[:, 0] <= LEVELS).all()
    assert (below(mixture, found * (1 + 2e-6))[:, 0] >= LEVELS).all()


def test_a_value_does_not_hang_on_what_else_is_asked_for() -> None:
    random = np.random.default_rng(7)
    weight = random.dirichlet(np.ones(5), size=8)
    mean = random.uniform(1e-3, 5e-3, (8, 5))
    together = GammaMixture(weight, mean, mean**2 / 20)

    found = together.quantiles_s(LEVELS)

    for row in range(8):
        alone = GammaMixture(weight[row, None], mean[row, None], mean[row, None] ** 2 / 20)
        for place, level in enumerate(LEVELS):
            assert alone.quantiles_s((level,))[0, 0] == pytest.approx(found[place, row], rel=1e-12)


def test_parts_that_take_no_time_or_for_ever() -> None:
    half = np.full((1, 2), 0.5)
    at_once = GammaMixture(half, np.array([[0.0, 1.0]]), np.array([[0.0, 1.0]]))
    never = GammaMixture(half, np.full((1, 2), np.inf), np.array([[1.0, 1.0]]))

    assert at_once.quantiles_s((0.75,))[0, 0] == pytest.approx(np.log(2), rel=1e-6)
    assert never.quantiles_s((0.5,))[0, 0] == np.inf
