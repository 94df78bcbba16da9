"""The sampler of a table's fit: its coordinates, its emulator, and draws from posteriors that are known exactly."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ks_1samp, norm

from capplan.calibration.fit.posterior import Ensemble, Maximum, maximum
from capplan.calibration.tables.sampler import Coordinates, Emulator, Known, ensemble, flattened, smoothed
from capplan.layout.table_components import Search
from capplan.models.language.parameter import defaults
from capplan.models.language.units import FloatArray
from capplan.models.solver.analytic import Analysis
from capplan.systems.cassandra import SYSTEM
from capplan.systems.cassandra.scenario import CassandraScenario

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

    @property
    def room(self) -> FloatArray:
        return 4 * self.spread

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

    @property
    def room(self) -> FloatArray:
        return 4 * self.spread

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


@pytest.mark.parametrize("seed", range(2))
def test_a_normal_posterior_has_its_mean_and_covariance(seed: int) -> None:
    best, found = drawn(Linear(), seed)
    root = np.linalg.cholesky(np.linalg.inv(best.covariance))
    white = (found.log_points - best.log_point) @ root
    size = size_of(found)
    assert np.all(np.abs(white.mean(axis=0)) < SURE / math.sqrt(size))
    assert np.all(np.abs((white**2).mean(axis=0) - 1) < SURE * math.sqrt(2 / size))
    assert abs(float((white[:, 0] * white[:, 1]).mean())) < SURE / math.sqrt(size)


@pytest.mark.parametrize("seed", range(2))
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


@pytest.mark.parametrize("seed", range(2))
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


NAMES = ("delay_s", "coordinator_s", "mutation_s", "read_s", "unseen_work", "variation")
VALUES = {**defaults(SYSTEM.parameters), "generator_s": 1e-9}
"""All values, with a load generator that is never the limit."""
CENTRE = np.log([float(np.asarray(VALUES[name])) for name in NAMES])


@pytest.fixture(scope="module")
def map_() -> Coordinates:
    layout = CassandraScenario(cass_nodes=6)
    return Coordinates(
        NAMES,
        SYSTEM.component(Search).times,
        SYSTEM.component(Search).unseen,
        CENTRE,
        lambda values: SYSTEM.network(layout, values, 1.0),
        VALUES,
    )


def analysed(map_: Coordinates, points: FloatArray) -> Analysis:
    """Return the analysis of the network at coordinates."""
    logs = map_.logs(points)
    return Analysis(map_.build({**VALUES, **{name: np.exp(logs[:, at]) for at, name in enumerate(NAMES)}}))


def points_about(count: int, spread: float = 1.0, seed: int = 1) -> FloatArray:
    return CENTRE + spread * np.random.default_rng(seed).standard_normal((count, len(NAMES)))


def test_the_centre_stays_where_it_is(map_: Coordinates) -> None:
    np.testing.assert_allclose(map_.logs(CENTRE[None])[0], CENTRE, rtol=1e-12)


def test_the_map_back_undoes_the_map(map_: Coordinates) -> None:
    logs = points_about(64)
    np.testing.assert_allclose(map_.logs(map_.points(logs)), logs, rtol=1e-9)


def test_densities_stay_the_same(map_: Coordinates) -> None:
    """The Jacobian is 1 everywhere, by central differences."""
    step = 1e-5 * np.eye(len(NAMES))
    for point in points_about(8):
        slopes = (map_.logs(point + step) - map_.logs(point - step)) / 2e-5
        assert np.linalg.det(slopes) == pytest.approx(1.0, abs=1e-5)


def test_ratios_leave_the_unloaded_time_and_the_ceiling(map_: Coordinates) -> None:
    """Times of 0.3 to 3 times their medians, with the same mean coordinate: the fixed time of hops is what differs.

    In the logarithms of the parts they would differ by a factor of two and more.
    """
    points = points_about(64)
    points[:, 4:] = CENTRE[4:]
    points[:, :4] += (CENTRE[:4] - points[:, :4]).mean(axis=1)[:, None]
    points[:, 4] += 4.0  # unseen work is nearly all of it
    found = analysed(map_, points)
    unloaded, ceiling = found.averaged(found.unloaded), found.drift_per_s
    assert float(unloaded.max() / unloaded.min()) < 1.25
    assert float(ceiling.max() / ceiling.min()) < 1.25
    values = {name: np.exp(points[:, at]) for at, name in enumerate(NAMES)}
    plain = Analysis(map_.build({**VALUES, **values}))
    spread = plain.averaged(plain.unloaded)
    assert float(spread.max() / spread.min()) > 2.0


def test_without_names_the_map_does_nothing() -> None:
    plain = Coordinates(NAMES, (), "", CENTRE, lambda values: SYSTEM.network(CassandraScenario(), values, 1.0), VALUES)
    points = points_about(4)
    np.testing.assert_array_equal(plain.logs(points), points)
    np.testing.assert_array_equal(plain.points(points), points)


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
