"""The flow-equivalent server against M/M/c/K, flow balance and Little's law, and its grid against every state."""

import numpy as np
import pytest
from tests.oracles.single_station import mmck

from capplan.models.language.units import FloatArray
from capplan.models.solver.pools import FlowEquivalent, grid_weights, state_grid


@pytest.mark.parametrize(("servers", "places", "rate_per_s"), [(3, 5, 3.0), (4, 4, 2.0), (8, 30, 9.0)])
def test_chances_are_those_of_mmck(servers: int, places: int, rate_per_s: float) -> None:
    throughput = np.minimum(np.arange(1.0, places + 1), servers)[None, :]
    chance = FlowEquivalent(np.arange(places + 1.0), throughput, places).chances(np.array([rate_per_s]))[0]
    expected = mmck(rate_per_s, 1.0, servers, places)
    assert chance.sum() == pytest.approx(1.0, rel=1e-12)
    assert chance[-1] == pytest.approx(float(expected.blocking_probability), rel=1e-9)
    assert chance @ np.arange(places + 1) == pytest.approx(float(expected.mean_number), rel=1e-9)


def knee(number: FloatArray, pool: int) -> FloatArray:
    """Return a throughput that rises to 90 % of the pool's size."""
    inside = np.minimum(number, pool) / (0.9 * pool)
    return np.asarray(0.9 * pool * inside / (1 + inside**6) ** (1 / 6))


@pytest.mark.parametrize(("pool", "queue"), [(400, 0), (600, 60), (1200, 300), (19_200, 0), (20_000, 1000)])
@pytest.mark.parametrize("load", [0.05, 0.8, 0.95, 0.99, 1.02, 1.5])
def test_a_grid_of_states_gives_the_figures_of_all_states(pool: int, queue: int, load: float) -> None:
    every, some = np.arange(pool + queue + 1.0), state_grid(pool, pool + queue)
    full, grid = (FlowEquivalent(states, knee(states[1:], pool)[None], pool) for states in (every, some))
    rate = np.array([load * 0.9 * pool])
    expected, found = full.chances(rate)[0], grid.chances(rate)[0]
    assert found @ some == pytest.approx(expected @ every, rel=2e-3)
    assert found[-1] == pytest.approx(expected[-1], rel=0.01, abs=1e-9)
    done = (found[1:] * grid.throughput_per_s[0]).sum()
    assert done == pytest.approx(float(rate[0]) * (1 - found[-1]), rel=2e-3)


def test_a_grid_counts_every_state_once() -> None:
    for pool, places in ((100, 120), (300, 300), (5000, 5001), (19_200, 25_000)):
        states = state_grid(pool, places)
        weight = grid_weights(states)
        assert (states[0], states[-1], len(states) <= 1000) == (0, places, True)
        assert pool in states
        assert weight.sum() == pytest.approx(places + 1)
        assert weight @ states == pytest.approx(places * (places + 1) / 2)
    np.testing.assert_array_equal(grid_weights(np.arange(7.0)), np.ones(7))


def test_the_slope_of_the_drop_rate_is_its_derivative() -> None:
    states = state_grid(400, 450)
    server = FlowEquivalent(states, knee(states[1:], 400)[None], 400)
    rate, first = 350.0, np.array([0])
    (below, _), (above, _) = (server.blocking(np.array([rate * ratio]), first) for ratio in (0.9999, 1.0001))
    slope = server.blocking(np.array([rate]), first)[1]
    assert float(slope[0]) == pytest.approx(float((above - below)[0]) / np.log(1.0001 / 0.9999), rel=1e-3)
