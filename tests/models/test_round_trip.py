"""Time on the wire between data centres."""

import numpy as np
import pytest
from scipy.constants import speed_of_light

from capplan.models.cassandra.cluster import FIBRE_SPEED_M_PER_S, round_trip_s


def test_light_in_fibre_takes_five_microseconds_a_kilometre() -> None:
    """The rule of thumb of every network engineer: 4.9 µs/km one way, so 150 km are 1.47 ms there and back."""
    assert pytest.approx(speed_of_light / 1.468, rel=1e-12) == FIBRE_SPEED_M_PER_S
    assert pytest.approx(4.897e-6, rel=1e-3) == 1000 / FIBRE_SPEED_M_PER_S
    assert round_trip_s(150_000, 1.0) == pytest.approx(1.469e-3, rel=1e-3)


def test_the_route_is_longer_than_the_straight_line() -> None:
    np.testing.assert_allclose(
        round_trip_s(150_000, np.array([1.0, 1.2, 2.0])), round_trip_s(150_000, 1.0) * np.array([1.0, 1.2, 2.0])
    )
    assert round_trip_s(0.0, 1.2) == 0.0
