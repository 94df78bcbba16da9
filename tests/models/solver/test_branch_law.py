"""The distribution of a time with a given mean and variance."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from capplan.models.solver.random_times import law_cdf, law_quantile

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
