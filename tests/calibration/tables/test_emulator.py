"""The emulator of a posterior: exact for quadratic residuals, cautious elsewhere; and flattened weights."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capplan.calibration.tables.sampler import Emulator, Known, flattened
from capplan.models.language.units import FloatArray

POWER = 0.85  # of the posterior: the emulated one is wider


@dataclass(frozen=True)
class Posterior:
    """Residuals of two parameters."""

    of: Callable[[FloatArray, FloatArray], list[FloatArray]]

    def residuals(self, points: FloatArray) -> FloatArray:
        return np.stack(self.of(points[:, 0], points[:, 1]), axis=1)


QUADRATIC = Posterior(lambda x, y: [3 * (x + y**2 / 4 - 1), y - x * y / 5, x, y])
WAVY = Posterior(lambda x, y: [3 * (x + np.sin(9 * y)), x, y])


def known(problem: Posterior) -> Known:
    points = np.random.default_rng(1).standard_normal((400, 2))
    return Known(points, problem.residuals(points))


def test_quadratic_residuals_are_emulated_exactly_but_for_the_power() -> None:
    found = known(QUADRATIC)
    near = found.points[found.log_posterior > -6]
    expected = POWER * -(QUADRATIC.residuals(near) ** 2).sum(axis=1) / 2
    assert Emulator(found).log_posterior(near) == pytest.approx(expected, rel=2e-3, abs=2e-3)


def test_what_polynomials_cannot_follow_makes_the_posterior_wider() -> None:
    """The residual that waves has a standard deviation of 3 that is not explained, and hardly counts."""
    found = known(WAVY)
    at = np.array([[1.0, 0.0], [-1.0, 0.0]])
    emulated, true = Emulator(found).log_posterior(at), -(WAVY.residuals(at) ** 2).sum(axis=1) / 2
    assert np.all(emulated > 0.4 * true)


def test_points_that_are_far_from_the_known_ones_are_impossible() -> None:
    assert Emulator(known(QUADRATIC)).log_posterior(np.array([[50.0, 0.0]]))[0] == -np.inf


def test_draws_have_the_emulated_mean_and_spread() -> None:
    """Of residuals that are the parameters: normal, with 1 / 0.85 of the variance; 4.5 standard errors of 1024 draws.

    The walks start at points of about this law and take 120 steps, so their ends are as good as independent.
    """
    found = known(Posterior(lambda x, y: [x, y]))
    drawn = Emulator(found).drawn(1024, np.random.default_rng(2))
    assert np.all(np.abs(drawn.mean(axis=0)) < 4.5 * np.sqrt(1 / POWER / 1024))
    assert drawn.var(axis=0) * POWER == pytest.approx(1, abs=4.5 * np.sqrt(2 / 1024))


@given(st.lists(st.floats(-1e4, 1e4), min_size=4, max_size=40), st.floats(0.1, 0.9))
def test_flattened_weights_count_for_enough_points_and_keep_their_order(logs: list[float], share: float) -> None:
    log_weight, least = np.array(logs), share * len(logs)
    weight = flattened(log_weight, least)
    assert weight.sum() == pytest.approx(1)
    assert 1 / (weight**2).sum() >= least
    assert np.all(np.diff(weight[np.argsort(log_weight)]) >= -1e-15)


def test_weights_that_suffice_are_kept() -> None:
    assert flattened(np.log([1.0, 2.0, 1.0]), 2.0) == pytest.approx([0.25, 0.5, 0.25])


def test_a_weight_that_is_no_number_is_refused() -> None:
    with pytest.raises(ValueError, match="not a number"):
        flattened(np.array([0.0, np.nan]), 1.0)
