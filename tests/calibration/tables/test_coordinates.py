"""Coordinates of a fit: a shear that takes the unloaded time and the ceiling apart from the ratios of their parts."""

import numpy as np
import pytest

from capplan.calibration.tables.sampler import Coordinates
from capplan.models.language.parameter import defaults
from capplan.models.language.units import FloatArray
from capplan.models.solver.analytic import Analysis
from capplan.systems.cassandra import SYSTEM
from capplan.systems.cassandra.scenario import CassandraScenario

NAMES = ("delay_s", "coordinator_s", "mutation_s", "read_s", "unseen_work", "variation")
VALUES = {**defaults(SYSTEM.parameters), "generator_s": 1e-9}
"""All values, with a load generator that is never the limit."""
CENTRE = np.log([float(np.asarray(VALUES[name])) for name in NAMES])


@pytest.fixture(scope="module")
def map_() -> Coordinates:
    layout = CassandraScenario(cass_nodes=6)
    return Coordinates(
        NAMES, SYSTEM.times, SYSTEM.unseen, CENTRE, lambda values: SYSTEM.network(layout, values, 1.0), VALUES
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
