"""The flow-equivalent server against machine repair, M/M/c/K and Little's law."""

import numpy as np
import pytest
from tests.oracles.single_station import machine_repair, mmck

from capplan.models.solver.flow_equivalent import (
    FlowEquivalent,
    closed_throughput_per_s,
    flow_equivalent,
    rows_interpolated,
)


@pytest.mark.parametrize(
    ("busy_s", "idle_s", "servers"), [(1.0, 4.0, 1), (2.0, 10.0, 2), (0.5, 0.1, 3), (1.0, 3.0, 24)]
)
def test_whole_servers_are_machine_repair(busy_s: float, idle_s: float, servers: int) -> None:
    population = np.array([1.0, 2.0, 5.0, 8.0, 30.0])
    found = closed_throughput_per_s(population, np.array([busy_s]), np.array([idle_s]), np.array([servers / busy_s]))
    expected = [machine_repair(int(count), idle_s, busy_s, servers).throughput_per_s for count in population]
    np.testing.assert_allclose(found[0], expected, rtol=1e-10)


def test_throughput_between_whole_servers_rises_with_them_and_with_the_population() -> None:
    population = np.arange(1.0, 40.0)
    servers = np.array([2.0, 2.3, 2.9, 3.0])
    found = closed_throughput_per_s(population, np.ones(4), np.full(4, 5.0), servers)
    assert np.all(np.diff(found, axis=-1) > 0)
    assert np.all(np.diff(found, axis=0) >= -1e-12)
    assert np.all(np.diff(found[:, -1]) > 0.05)
    assert np.all(found < servers[:, None])
    np.testing.assert_allclose(found[:, 0], 1 / 6, rtol=1e-12)  # alone: no queueing


@pytest.mark.parametrize(("servers", "places", "rate_per_s"), [(3, 5, 3.0), (4, 4, 2.0), (8, 30, 9.0)])
def test_chances_are_those_of_mmck(servers: int, places: int, rate_per_s: float) -> None:
    throughput = np.minimum(np.arange(1.0, places + 1), servers)[None, :]
    chance = FlowEquivalent(throughput, places).chances(np.array([rate_per_s]))[0]
    expected = mmck(rate_per_s, 1.0, servers, places)
    assert chance.sum() == pytest.approx(1.0, rel=1e-12)
    assert chance[-1] == pytest.approx(float(expected.blocking_probability), rel=1e-9)
    assert chance @ np.arange(places + 1) == pytest.approx(float(expected.mean_number), rel=1e-9)


def test_a_pool_around_a_delay_is_erlangs_loss_system() -> None:
    """All time is spent where nothing queues: M/G/c/c with c the pool's size, and its queue beside it."""
    server = flow_equivalent(np.array([1e-6]), np.array([1.0]), np.array([1e9]), 5, 2)
    expected = mmck(4.0, 1.0 + 1e-6, 5, 7)
    assert server.chances(np.array([4.0]))[0, -1] == pytest.approx(float(expected.blocking_probability), rel=1e-5)


def test_flow_balance_and_littles_law() -> None:
    busy, idle, saturation = np.array([1.0, 0.2]), np.array([2.0, 1.0]), np.array([4.0, 10.0])
    server = flow_equivalent(busy, idle, saturation, 12, 3)
    rate = np.array([3.5, 9.0])
    chance = server.chances(rate)
    assert (chance.shape, server.places) == ((2, 16), 15)
    done = (chance[:, 1:] * server.throughput_per_s).sum(axis=-1)
    np.testing.assert_allclose(done, rate * (1 - chance[:, -1]), rtol=1e-10)
    number = chance @ np.arange(16)
    assert np.all(number / done > busy + idle)  # Little's law: nobody is faster than alone
    assert np.all(done < saturation)
    # Beyond the pool the rate no longer grows.
    np.testing.assert_array_equal(
        server.throughput_per_s[:, 12:], np.repeat(server.throughput_per_s[:, 11:12], 3, axis=1)
    )


def test_throughput_at_many_populations_is_close_to_the_exact_one() -> None:
    """48 populations are solved and the rest interpolated: the error is 1.1 % at the knee of a pool of 384."""
    given = np.array([0.012]), np.array([0.002]), np.array([24 / 0.012])
    server = flow_equivalent(*given, 384, 0)
    exact = closed_throughput_per_s(np.arange(1.0, 385.0), *given)
    assert np.max(np.abs(server.throughput_per_s / exact - 1)) < 0.012


def test_a_pool_of_one() -> None:
    server = flow_equivalent(np.array([1.0]), np.array([1.0]), np.array([1.0]), 1, 0)
    np.testing.assert_allclose(server.chances(np.array([0.5]))[0], [0.5, 0.5], rtol=1e-9)


def test_rows_are_interpolated_linearly_and_extrapolated() -> None:
    values = np.array([[0.0, 10.0, 30.0], [1.0, 3.0, 8.0]])
    found = rows_interpolated(np.array([0.5, 2.0, 4.0]), np.array([0.0, 1.0, 3.0]), values)
    np.testing.assert_allclose(found, [[5.0, 20.0, 40.0], [2.0, 5.5, 10.5]])
