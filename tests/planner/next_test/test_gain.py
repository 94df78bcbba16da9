"""What a test tells of a figure, against closed forms of normal distributions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from capplan.planner.measured import variance_lost
from capplan.planner.next_test import Normal, chance_of_change, factor

NEAR = pytest.approx


def independent(count: int) -> np.ndarray:
    """Return draws (count, 512) with mean 0, variance 1 and no covariance, exactly."""
    drawn = np.random.default_rng(1).standard_normal((512, count))
    orthogonal, _ = np.linalg.qr(drawn - drawn.mean(axis=0))
    return np.asarray(orthogonal.T * math.sqrt(512))


def test_a_measurement_of_the_asked_figure_itself_leaves_its_scatter() -> None:
    (asked,) = 0.3 * independent(1)
    after = 0.3**2 - variance_lost(asked, asked[None], np.array([0.05]))
    assert after == NEAR(1 / (1 / 0.3**2 + 1 / 0.05**2))  # precisions add


def test_two_independent_measurements_add_their_precisions() -> None:
    (asked,) = 0.3 * independent(1)
    after = 0.3**2 - variance_lost(asked, np.stack([asked, asked]), np.array([0.05, 0.1]))
    assert after == NEAR(1 / (1 / 0.3**2 + 1 / 0.05**2 + 1 / 0.1**2))


def test_what_has_nothing_to_do_with_the_figure_tells_nothing() -> None:
    asked, other = independent(2)
    assert variance_lost(asked, other[None], np.array([0.1])) == NEAR(0.0, abs=1e-12)


def test_a_sum_tells_of_a_part_as_its_correlation_says() -> None:
    one, other = independent(2)
    assert variance_lost(one, (one + other)[None], np.array([0.0])) == NEAR(0.5)


def test_no_test_removes_more_than_the_variance() -> None:
    asked = independent(1)[0]
    assert variance_lost(asked, np.stack([asked, 2 * asked]), np.zeros(2)) <= 1


def test_the_band_of_a_repeat_is_that_of_a_normal_distribution() -> None:
    assert factor(0.03, 0.04) == NEAR(math.exp(norm.ppf(0.95) * 0.05))


def test_a_decision_changes_as_often_as_in_a_simulation() -> None:
    """Of 200,000 tests, the share that changes the answer is within 0.005: 4.5 standard errors."""
    now, limit, noise, scatter = Normal(0.1, 0.2), 0.0, 0.1, 0.05
    random = np.random.default_rng(2)
    truth = now.mean + now.sd * random.standard_normal(200_000)
    measured = truth + noise * random.standard_normal(200_000)
    weight = now.sd**2 / (now.sd**2 + noise**2)
    mean = now.mean + weight * (measured - now.mean)
    after = math.hypot(now.sd * math.sqrt(1 - weight), scatter)
    yes = mean - limit >= norm.ppf(0.95) * after
    lost = now.sd**2 * weight
    assert not now.mean - limit >= norm.ppf(0.95) * math.hypot(now.sd, scatter)
    assert chance_of_change(now, limit, lost, scatter, 0.95) == NEAR(yes.mean(), abs=0.005)


def test_a_test_that_tells_nothing_changes_nothing() -> None:
    assert chance_of_change(Normal(0.1, 0.2), 0.0, 0.0, 0.05, 0.95) == 0
