"""Throughput with a constant number of requests inside: machine repair, and product-form networks."""

import numpy as np
import pytest
from scipy import special
from tests.oracles.single_station import machine_repair

from capplan.models.language.units import FloatArray
from capplan.models.solver.closed_throughput import (
    machine_repair_per_s,
    rate_logits,
    rows_interpolated,
    throughput_per_s,
)
from capplan.models.solver.single_station import erlang_c

Stations = list[tuple[float, int]]  # demand in seconds and number of servers of each


def by_convolution(delay_s: float, stations: Stations, most: int) -> FloatArray:
    """Return the exact throughput with 1 .. most requests inside (Buzen's convolution)."""
    unit_s, inside = max(demand / servers for demand, servers in stations), np.arange(most + 1.0)
    logs = inside * np.log(delay_s / unit_s) - special.gammaln(inside + 1)
    for demand, servers in stations:
        own = inside * np.log(demand / unit_s) - np.cumsum(np.log(np.clip(inside, 1, servers)))
        logs = np.array([float(special.logsumexp(logs[: n + 1] + own[: n + 1][::-1])) for n in range(most + 1)])
    return np.asarray(np.exp(logs[:-1] - logs[1:]) / unit_s)


def from_open_response(delay_s: float, stations: Stations, most: int) -> FloatArray:
    """Return the throughput that follows from the response of the open network."""
    alone = delay_s + sum(demand for demand, _ in stations)
    saturation = np.array([min(servers / demand for demand, servers in stations)])
    logit = rate_logits(saturation * alone, most)
    rate = saturation * special.expit(logit)[:, None]
    response = np.full_like(rate, delay_s)
    for demand, servers in stations:
        response += demand * (1 + erlang_c(servers, rate * demand) / (servers - rate * demand))
    found = throughput_per_s(np.arange(1.0, most + 1), logit, saturation, response, np.array([alone]))
    return np.asarray(found[0])


@pytest.mark.parametrize(
    ("delay_s", "stations", "most", "tolerance"),
    [
        (1.0, [(1 / 6, 8)] * 6, 400, 0.001),
        (1.0, [(1 / 3, 24)] * 3 + [(0.1, 16)], 400, 0.001),
        (1.0, [(1 / 3, 1)] * 3, 60, 0.002),
        (0.5, [(0.5, 4)] * 2, 40, 0.004),
        (0.3, [(1.0, 1)], 30, 0.02),
        (1.0, [(1.0, 4)], 30, 0.015),
        (0.012, [(0.012, 24)], 384, 0.01),
    ],
)
def test_the_open_response_gives_the_closed_throughput(
    delay_s: float, stations: Stations, most: int, tolerance: float
) -> None:
    found, exact = from_open_response(delay_s, stations, most), by_convolution(delay_s, stations, most)
    assert np.max(np.abs(found / exact - 1)) < tolerance


@pytest.mark.parametrize(
    ("busy_s", "idle_s", "servers"), [(1.0, 4.0, 1), (2.0, 10.0, 2), (0.5, 0.1, 3), (1.0, 3.0, 24)]
)
def test_one_station_and_a_delay_are_machine_repair(busy_s: float, idle_s: float, servers: int) -> None:
    population = np.array([1.0, 2.0, 5.0, 8.0, 30.0])
    found = machine_repair_per_s(population, np.array([busy_s]), np.array([idle_s]), servers)
    expected = [machine_repair(int(count), idle_s, busy_s, servers).throughput_per_s for count in population]
    np.testing.assert_allclose(found[0], expected, rtol=1e-10)


def test_throughput_at_many_populations_is_close_to_the_exact_one() -> None:
    """48 populations are solved and the rest interpolated: the error is 1.1 % at the knee of a pool of 384."""
    population = np.arange(1.0, 385.0)
    found = machine_repair_per_s(population, np.array([0.012]), np.array([0.002]), 24)
    exact = [machine_repair(int(count), 0.002, 0.012, 24).throughput_per_s for count in population]
    assert np.max(np.abs(found / exact - 1)) < 0.012


def test_rows_are_interpolated_linearly_and_extrapolated() -> None:
    values = np.array([[0.0, 10.0, 30.0], [1.0, 3.0, 8.0]])
    found = rows_interpolated(np.array([0.5, 2.0, 4.0]), np.array([0.0, 1.0, 3.0]), values)
    np.testing.assert_allclose(found, [[5.0, 20.0, 40.0], [2.0, 5.5, 10.5]])


@pytest.mark.parametrize("late", [3e-8, 3e-7, 3e-6, 1e-4])
def test_a_response_that_is_finite_until_saturation_keeps_the_throughput_near_that_of_open_traffic(late: float) -> None:
    """Quorums that do without a station until it is nearly saturated: the number inside rises at the last moment."""
    logit, population = rate_logits(np.array([50.0]), 4000), np.arange(1.0, 301)
    share = special.expit(logit)[:, None]
    response = 1 + 0.5 * share**8 + late / (1 - share) ** 1.2
    found = throughput_per_s(population, logit, np.array([50.0]), response, np.array([1.0]))[0]
    beside = np.interp(population, (50 * share * response)[:, 0], 50 * share[:, 0])

    assert found[0] == 1.0
    assert np.all(np.abs(np.log(found / beside)) < 1.2 / np.sqrt(population))
