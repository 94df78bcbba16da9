"""Priors that few sources give: Student's t on the logarithm, with the band of a normal prior."""

import numpy as np
import pytest
from scipy import stats

from capplan.calibration.fit.student_priors import quantiles, residuals, room

FREEDOM = np.array([3.0, 7.0, 29.0, np.inf])
STANDARD = np.linspace(-8, 8, 33)[:, None] * np.ones(4)


def test_residuals_are_the_densities_of_students_t() -> None:
    """Half a squared residual is what the logarithm of the density loses from the median on."""
    scale = stats.norm.ppf(0.95) / stats.t.ppf(0.95, FREEDOM[:3])
    expected = stats.t.logpdf(0, FREEDOM[:3], scale=scale) - stats.t.logpdf(STANDARD[:, :3], FREEDOM[:3], scale=scale)
    found = residuals(STANDARD, FREEDOM)
    np.testing.assert_allclose(found[:, :3] ** 2 / 2, expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(found[:, 3], STANDARD[:, 3])
    np.testing.assert_array_equal(np.sign(found), np.sign(STANDARD))


def test_bands_are_those_of_normal_priors_and_tails_are_longer() -> None:
    levels = np.array([0.001, 0.05, 0.5, 0.95, 0.999])[:, None] * np.ones(4)
    found, normal = quantiles(levels, FREEDOM), stats.norm.ppf(levels)
    np.testing.assert_allclose(found[1:4], normal[1:4], atol=1e-9)
    assert (np.diff(found[4]) < 0).all()  # fewer sources, longer tails
    np.testing.assert_allclose(found[:, 3], normal[:, 3])


def test_a_search_may_go_to_where_all_priors_are_as_improbable() -> None:
    np.testing.assert_allclose(residuals(room(FREEDOM), FREEDOM), 4.0)


def test_rows_that_show_a_value_far_from_the_sources_move_the_fit_there() -> None:
    """Between a figure and a prior five standard deviations apart, the most probable value is near the figure.

    A normal prior of the same band, with a figure half as certain as it, would keep a fifth of the distance.
    """
    grid = np.linspace(0, 6, 6001)
    data = ((grid - 5) / 0.5) ** 2
    kept = {
        freedom: 5 - grid[np.argmin(data + residuals(grid[:, None], np.array([freedom]))[:, 0] ** 2)]
        for freedom in (7.0, np.inf)
    }
    assert kept[np.inf] == pytest.approx(1.0, abs=0.01)
    assert kept[7.0] < 0.5
