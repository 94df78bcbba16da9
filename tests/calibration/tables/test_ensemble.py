"""The ensemble of a table's fit: draws from posteriors that are known exactly or by quadrature.

Bounds are `SURE` standard errors, so that a correct program is outside of one in 7 of a million seeds; a distance of
Kolmogorov and Smirnov is exceeded with a probability of 1e-5 at most.
"""

import math
from dataclasses import dataclass, field

import numpy as np
import pytest
from scipy.stats import ks_1samp, norm

from capplan.calibration.fit.posterior import Ensemble, Maximum, maximum
from capplan.calibration.tables.sampler import ensemble, smoothed
from capplan.models.language.units import FloatArray

SURE = 4.5
DRAWS, ROUNDS, PROPOSALS = 512, 7, 256


@dataclass(frozen=True)
class Linear:
    """Figures that are sums of two parameters with standard normal priors: the posterior is normal."""

    slopes: FloatArray = field(default_factory=lambda: np.array([[1.0, 1.0], [1.0, 0.5], [0.0, 0.3]]))
    logs: FloatArray = field(default_factory=lambda: np.array([1.0, 0.4, -0.2]))
    sd: FloatArray = field(default_factory=lambda: np.array([0.1, 0.2, 0.5]))

    @property
    def centre(self) -> FloatArray:
        return np.zeros(2)

    @property
    def spread(self) -> FloatArray:
        return np.ones(2)

    def prior_draws(self, count: int) -> FloatArray:
        return np.random.default_rng(0).standard_normal((count, 2))

    def predicted(self, points: FloatArray) -> FloatArray:
        return np.asarray(points @ self.slopes.T)

    def residuals(self, points: FloatArray) -> FloatArray:
        return np.concatenate([(self.predicted(points) - self.logs) / self.sd, points], axis=-1)

    def log_posterior(self, points: FloatArray) -> FloatArray:
        return np.asarray(-(self.residuals(points) ** 2).sum(axis=-1) / 2)


@dataclass(frozen=True)
class Shell(Linear):
    """One figure, which is the sum of two times: which of them has most of it is open."""

    logs: FloatArray = field(default_factory=lambda: np.array([1.5]))
    sd: FloatArray = field(default_factory=lambda: np.array([0.05]))

    def predicted(self, points: FloatArray) -> FloatArray:
        return np.logaddexp(points[:, :1], points[:, 1:])


@dataclass(frozen=True)
class Bent:
    """Six figures of twelve parameters: the posterior of bent coordinates is normal, that of the parameters is not.

    Each coordinate is a parameter and a term that grows from none to the parameter before it. So its Jacobian is 1,
    and the law of the coordinates is known. The bends add up from one parameter to the next.
    """

    free: int = 12
    slopes: FloatArray = field(default_factory=lambda: np.random.default_rng(0).standard_normal((6, 12)))
    logs: FloatArray = field(default_factory=lambda: np.array([1.0, -2.0, 0.5, 3.0, 0.0, -1.0]))
    sd: float = 0.3

    @property
    def centre(self) -> FloatArray:
        return np.zeros(self.free)

    @property
    def spread(self) -> FloatArray:
        return np.ones(self.free)

    def bent(self, points: FloatArray) -> FloatArray:
        found = points.copy()
        found[:, 1:] += np.logaddexp(0.0, points[:, :-1])
        return found

    def prior_draws(self, count: int) -> FloatArray:
        found = np.random.default_rng(0).standard_normal((count, self.free))
        for at in range(1, self.free):
            found[:, at] -= np.logaddexp(0.0, found[:, at - 1])
        return found

    def residuals(self, points: FloatArray) -> FloatArray:
        bent = self.bent(points)
        return np.concatenate([(bent @ self.slopes.T - self.logs) / self.sd, bent], axis=-1)

    def whitened(self, points: FloatArray) -> FloatArray:
        """Return independent standard normal variables (draws, free), if the points are draws of the posterior."""
        precision = np.eye(self.free) + self.slopes.T @ self.slopes / self.sd**2
        mean = np.linalg.solve(precision, self.slopes.T @ self.logs / self.sd**2)
        return np.asarray((self.bent(points) - mean) @ np.linalg.cholesky(precision))


def drawn(problem: Linear | Bent, seed: int = 1) -> tuple[Maximum, Ensemble]:
    best = maximum(problem)
    return best, ensemble(problem, best, DRAWS, ROUNDS, PROPOSALS, seed)


def size_of(found: Ensemble) -> float:
    """Return what the draws are worth: resampling adds its noise to that of the proposals."""
    return 1 / (1 / found.effective_size + 1 / DRAWS)


@pytest.mark.parametrize("seed", range(4))
def test_a_normal_posterior_has_its_mean_and_covariance(seed: int) -> None:
    best, found = drawn(Linear(), seed)
    root = np.linalg.cholesky(np.linalg.inv(best.covariance))
    white = (found.log_points - best.log_point) @ root
    size = size_of(found)
    assert np.all(np.abs(white.mean(axis=0)) < SURE / math.sqrt(size))
    assert np.all(np.abs((white**2).mean(axis=0) - 1) < SURE * math.sqrt(2 / size))
    assert abs(float((white[:, 0] * white[:, 1]).mean())) < SURE / math.sqrt(size)


@pytest.mark.parametrize("seed", range(4))
def test_a_thin_curved_shell_is_covered_from_end_to_end(seed: int) -> None:
    """The curvature at the maximum describes its middle alone; the law of one time is known by quadrature."""
    problem = Shell()
    _, found = drawn(problem, seed)
    axis = np.linspace(-6.0, 2.5, 1701)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    density = np.exp(problem.log_posterior(grid)).reshape(len(axis), -1).sum(axis=1)
    law = np.cumsum(density) / density.sum()
    distance = ks_1samp(found.log_points[:, 0], lambda x: np.interp(x, axis, law)).statistic
    assert distance < math.sqrt(math.log(2 / 1e-5) / (2 * size_of(found)))


@pytest.mark.parametrize("seed", range(4))
def test_twelve_bent_parameters_have_their_law(seed: int) -> None:
    problem = Bent()
    _, found = drawn(problem, seed)
    white, size = problem.whitened(found.log_points), size_of(found)
    assert np.all(np.abs(white.mean(axis=0)) < SURE / math.sqrt(size))
    assert np.all(np.abs((white**2).mean(axis=0) - 1) < SURE * math.sqrt(2 / size))
    for column in white.T:
        assert ks_1samp(column, norm.cdf).statistic < math.sqrt(math.log(2 / 1e-5) / (2 * size))


def test_the_smoother_reaches_both_ends_of_a_shell() -> None:
    """Its points lie about the shell, and on either side of its middle."""
    points = smoothed(Shell(), np.random.default_rng(1)).points[-128:]
    ratio = points[:, 0] - points[:, 1]
    assert float(np.quantile(ratio, 0.1)) < -0.8
    assert float(np.quantile(ratio, 0.9)) > 0.8
    assert abs(float(np.median(Shell().predicted(points))) - 1.5) < 0.1


def test_the_same_seed_gives_the_same_draws() -> None:
    again = [drawn(Shell(), 3)[1].log_points for _ in range(2)]
    np.testing.assert_array_equal(again[0], again[1])
