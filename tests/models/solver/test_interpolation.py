"""Functions at many points by interpolation, against the functions themselves."""

import numpy as np
import pytest
from scipy.interpolate import PchipInterpolator

from capplan.models.language.units import FloatArray
from capplan.models.solver.interpolation import ACCURACY, evaluated, evaluated_apart, monotone_cubic


class Counted:
    """A smooth function of three arguments, with the number of points at which it was evaluated."""

    def __init__(self) -> None:
        self.points = 0

    def __call__(self, points: FloatArray) -> FloatArray:
        self.points += points.shape[1]
        return np.stack([np.sqrt(points[0] + points[1] ** 2), np.exp(-points[2]) + points[0]])


def points(dimensions: int, count: int = 2000) -> FloatArray:
    """Points whose logarithms lie in a space of some dimensions."""
    rng = np.random.default_rng(7)
    return np.asarray(np.exp(rng.uniform(-1, 1, (3, dimensions)) @ rng.uniform(-1, 1, (dimensions, count))))


@pytest.mark.parametrize("dimensions", [0, 1, 2])
def test_few_dimensions_need_few_evaluations(dimensions: int) -> None:
    function, at = Counted(), points(dimensions)
    np.testing.assert_allclose(evaluated(function, at), Counted()(at), rtol=10 * ACCURACY)
    assert function.points < 400


@pytest.mark.parametrize("count", [1, 2, 20])
def test_few_points_are_evaluated_themselves(count: int) -> None:
    at = points(2, count)
    np.testing.assert_array_equal(evaluated(Counted(), at), Counted()(at))


def test_a_function_that_is_not_smooth_is_evaluated_itself() -> None:
    at = points(1)

    def bent(points: FloatArray) -> FloatArray:
        return np.asarray(np.maximum(points[:1], 1.0))

    np.testing.assert_array_equal(evaluated(bent, at), bent(at))


def test_a_function_with_a_bend_is_smooth_on_each_side_of_it() -> None:
    at, seen = points(1), 0

    def bent(points: FloatArray) -> FloatArray:
        nonlocal seen
        seen += points.shape[1]
        return np.asarray(np.maximum(points[:1], 1.0) ** 2)

    found = evaluated_apart(bent, at, at[:1] < 1)
    np.testing.assert_allclose(found, np.maximum(at[:1], 1.0) ** 2, rtol=10 * ACCURACY)
    assert seen < at.shape[1] / 5


def test_arguments_that_vary_through_zero_are_evaluated_themselves() -> None:
    at = points(1) - points(1).min()
    np.testing.assert_array_equal(evaluated(Counted(), at), Counted()(at))


def test_a_narrow_fourth_dimension_costs_little() -> None:
    """A tensor product would have 16 nodes along the first axis and five along the others: 2000."""
    rng = np.random.default_rng(3)
    at = np.exp(rng.uniform(-0.05, 0.05, (4, 4)) @ rng.uniform(-1, 1, (4, 4000)))
    at[0] *= np.exp(rng.uniform(-2, 2, 4000))
    seen = 0

    def function(points: FloatArray) -> FloatArray:
        nonlocal seen
        seen += points.shape[1]
        return np.asarray(np.sqrt(points[:1] + points[1:2] ** 2) + points[2:3] / (1 + points[3:]))

    found = evaluated(function, at)
    assert seen < 1000
    np.testing.assert_allclose(found, function(at), rtol=10 * ACCURACY)


@pytest.mark.parametrize("seed", range(20))
def test_monotone_cubics_are_those_of_scipy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    nodes = np.cumsum(rng.uniform(0.1, 1, 3 + seed % 6))
    values = np.round(rng.normal(size=(len(nodes), 5)), 1 + seed % 2)  # so that some are equal
    at = np.concatenate([nodes, rng.uniform(nodes[0], nodes[-1], 50)])
    np.testing.assert_allclose(monotone_cubic(nodes, values, at), PchipInterpolator(nodes, values)(at), atol=1e-12)
