"""Each simple rule is exact on data of its own form."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capplan.layout.baselines import BASELINES, affine, linear, persistence, universal_scalability

NODES = np.array([3.0, 4.0, 6.0, 9.0, 15.0])


def test_persistence_takes_the_nearest_layout() -> None:
    capacity = np.array([70.0, 72.0, 100.0, 105.0, 110.0])

    assert persistence(NODES, capacity, 9.0) == 105.0
    assert persistence(NODES, capacity, 8.0) == 105.0
    assert persistence(NODES, capacity, 5.0) == 72.0  # as near as 6: the smaller
    assert persistence(NODES, capacity, 100.0) == 110.0


def test_linear_is_exact_on_proportional_data() -> None:
    assert linear(NODES, 2400.0 * NODES, 12.0) == pytest.approx(28_800.0, rel=1e-12)


def test_linear_is_the_least_squares_line_through_the_origin() -> None:
    # Slope of (1, 1), (2, 3): (1 + 6) / (1 + 4).
    assert linear(np.array([1.0, 2.0]), np.array([1.0, 3.0]), 10.0) == pytest.approx(14.0, rel=1e-12)


def test_affine_is_exact_on_a_line() -> None:
    assert affine(NODES, 5000.0 + 600.0 * NODES, 30.0) == pytest.approx(23_000.0, rel=1e-9)


def test_affine_says_the_mean_where_there_is_no_slope() -> None:
    assert affine(np.array([3.0, 3.0]), np.array([7000.0, 7200.0]), 9.0) == 7100.0


def test_affine_takes_the_nearest_layout_where_its_line_is_below_zero() -> None:
    falling = np.array([300.0, 100.0, 50.0])

    assert affine(np.array([1.0, 2.0]), falling[:2], 4.0) == 100.0
    assert affine(np.array([1.0, 2.0]), falling[:2], 1.75) == pytest.approx(150.0)


@given(
    st.lists(st.tuples(st.floats(0.5, 100.0), st.floats(1e-3, 1e4)), min_size=2, max_size=6),
    st.floats(0.5, 100.0),
)
def test_every_rule_gives_a_figure_above_zero(layouts: list[tuple[float, float]], wanted: float) -> None:
    sizes, figures = np.array(layouts).T

    assert all(0 < rule(sizes, figures, wanted) < np.inf for rule in BASELINES.values())


@pytest.mark.parametrize(
    ("speed", "contention", "crosstalk"),
    [(1000.0, 0.05, 0.002), (2.5, 0.3, 0.0), (20.0, 0.0, 0.01), (7000.0, 0.0, 0.0)],
)
def test_usl_recovers_a_usl_curve(speed: float, contention: float, crosstalk: float) -> None:
    def curve(n: float) -> float:
        return float(speed * n / (1 + contention * (n - 1) + crosstalk * n * (n - 1)))

    nodes = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0])
    capacity = np.array([curve(n) for n in nodes])

    # Inside the data and at twice the largest; scipy stops at relative changes of 1e-8.
    assert universal_scalability(nodes, capacity, 12.0) == pytest.approx(curve(12.0), rel=1e-3)
    assert universal_scalability(nodes, capacity, 64.0) == pytest.approx(curve(64.0), rel=1e-2)
