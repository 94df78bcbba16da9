"""What the errors of a fit say of the scatter of a repeat, against linear fits of random figures."""

import numpy as np
import pytest

from capplan.calibration.tables.errors import expected_squares, learnt_scatter
from capplan.calibration.tables.rows import MEAN, QUANTITIES, THROUGHPUT
from capplan.models.language.units import FloatArray

FITS, SURE = 4000, 4.5  # repeats; standard errors that a right program exceeds in 7 of a million
FIGURES, FREE = 14, 4
P99 = "latency_p99_ms"
COLUMNS = [THROUGHPUT] * 3 + [MEAN] * 3 + [P99] * 8
ASSUMED = {name: 0.05 if name in QUANTITIES[:3] else 0.2 for name in QUANTITIES}


def problem(random: np.random.Generator) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return the scatter, the covariance of all errors, slopes and the precision of the priors.

    Rates and means are exact, so that parameters follow them; all percentiles share an error.
    """
    own_sd = np.array([0.05] * 6 + [0.2] * 8)
    shared = np.where(own_sd > 0.1, 0.1, 0.0)
    covariance = np.diag(own_sd**2) + shared[:, None] * shared
    return own_sd, covariance, random.standard_normal((FIGURES, FREE)), np.diag([1.0, 4.0, 1.0, 0.25])


def errors_of_fits(scale: float = 1.0) -> tuple[FloatArray, tuple[FloatArray, ...]]:
    """Return the errors of fits (fits, figures) of parameters from the priors, with `scale` times the own scatter."""
    random = np.random.default_rng(1)
    own_sd, covariance, slopes, precision = known = problem(random)
    true = random.standard_normal((FITS, FREE)) / np.sqrt(np.diag(precision))
    scattered = covariance + (scale**2 - 1) * np.diag(own_sd**2)
    noise = random.standard_normal((FITS, FIGURES)) @ np.linalg.cholesky(scattered).T
    figures = true @ slopes.T + noise
    weighted = np.linalg.solve(covariance, slopes)
    found = np.linalg.solve(weighted.T @ slopes + precision, weighted.T @ figures.T).T
    return figures - found @ slopes.T, known


def test_errors_of_linear_fits_have_the_expected_squares() -> None:
    errors, (own_sd, covariance, slopes, precision) = errors_of_fits()
    squares = (own_sd * np.linalg.solve(covariance, errors.T).T) ** 2
    error = squares.std(axis=0) / np.sqrt(FITS)
    expected = expected_squares(own_sd, covariance, slopes, precision)
    assert np.all(np.abs(squares.mean(axis=0) - expected) < SURE * error)
    assert expected[:6].mean() < 0.6  # parameters follow the exact figures
    assert expected[6:].mean() > 0.8


def test_figures_that_no_parameter_moves_keep_all_of_their_scatter() -> None:
    own_sd, _, slopes, precision = problem(np.random.default_rng(1))
    assert expected_squares(own_sd, np.diag(own_sd**2), 0 * slopes, precision) == pytest.approx(1.0)


def learnt(errors: FloatArray, known: tuple[FloatArray, ...]) -> dict[str, float]:
    """Return the learnt scatter over the assumed one, by column."""
    own_sd, covariance, slopes, precision = known
    found = learnt_scatter(COLUMNS[: len(own_sd)], errors, own_sd, covariance, slopes, precision, ASSUMED)
    return {name: value / ASSUMED[name] for name, value in found.items()}


def test_right_scatter_is_kept_on_average() -> None:
    """Of rates and means as of percentiles, although the parameters follow the former."""
    errors, known = errors_of_fits()
    variance = np.array([[found[THROUGHPUT], found[P99]] for found in (learnt(each, known) for each in errors)]) ** 2
    assert np.all(np.abs(variance.mean(axis=0) - 1) < SURE * variance.std(axis=0) / np.sqrt(FITS))


@pytest.mark.parametrize("scale", [0.5, 2.0])
def test_another_scatter_is_learnt_in_part(scale: float) -> None:
    errors, known = errors_of_fits(scale)
    factor = np.median([learnt(each, known)[P99] for each in errors[:200]])
    assert min(scale, 1) < factor < max(scale, 1)


def test_columns_without_figures_keep_what_is_assumed() -> None:
    errors, (own_sd, covariance, slopes, precision) = errors_of_fits()
    found = learnt(9 * errors[0][:6], (own_sd[:6], covariance[:6, :6], slopes[:6], precision))
    assert found[THROUGHPUT] == found[MEAN] > 1
    assert found[P99] == 1
