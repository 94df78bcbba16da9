"""Functions at many points by interpolation, against the functions themselves."""

import numpy as np
import pytest

from capplan.models.language.units import FloatArray
from capplan.models.solver.random_times.interpolation import ACCURACY, evaluated


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


def test_arguments_that_vary_through_zero_are_evaluated_themselves() -> None:
    at = points(1) - points(1).min()
    np.testing.assert_array_equal(evaluated(Counted(), at), Counted()(at))
