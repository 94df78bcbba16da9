"""The oracles against exact rational arithmetic and brute force."""

from fractions import Fraction
from math import factorial

import numpy as np
import pytest
from tests.oracles.order_statistics import kth_of_n_level, kth_of_n_mean_exponential
from tests.oracles.single_station import birth_death, machine_repair, mm1_ps_response_s, mmck


def test_birth_death_solves_any_chain() -> None:
    births, deaths = np.array([3.0, 0.5, 7.0]), np.array([1.0, 2.0, 4.0])
    generator = np.diag(births, 1) + np.diag(deaths, -1)
    generator -= np.diag(generator.sum(axis=1))
    np.testing.assert_allclose(birth_death(births, deaths) @ generator, 0.0, atol=1e-15)
    np.testing.assert_allclose(birth_death([1.0, 0.0, 5.0], deaths), [0.5, 0.5, 0.0, 0.0], rtol=1e-14)


@pytest.mark.parametrize(("load", "servers", "capacity"), [("1", 1, 5), ("9/2", 4, 12), ("30", 32, 64), ("3", 5, 5)])
def test_mmck_equals_the_defining_sum(load: str, servers: int, capacity: int) -> None:
    weights = [Fraction(1)]
    for n in range(1, capacity + 1):
        weights.append(weights[-1] * Fraction(load) / min(n, servers))
    blocking = float(weights[-1] / sum(weights))
    number = float(sum(n * weight for n, weight in enumerate(weights)) / sum(weights))
    station = mmck(float(Fraction(load)) / 0.25, 0.25, servers, capacity)
    assert station.blocking_probability == pytest.approx(blocking, rel=1e-11)
    assert station.mean_number == pytest.approx(number, rel=1e-11)
    assert station.throughput_per_s == pytest.approx((1 - blocking) * 4 * float(Fraction(load)), rel=1e-11)


def test_machine_repair_equals_the_defining_sum() -> None:
    """Five clients, Z = 3, s = 1, two servers: binomial weights up to two busy, then the geometric part."""
    population, ratio, servers = 5, Fraction(1, 3), 2
    weights = [
        Fraction(factorial(population), factorial(population - n))
        * ratio**n
        / (factorial(n) if n <= servers else factorial(servers) * servers ** (n - servers))
        for n in range(population + 1)
    ]
    mean = float(sum(n * w for n, w in enumerate(weights)) / sum(weights))
    station = machine_repair(population, 3.0, 1.0, servers)
    assert station.mean_number == pytest.approx(mean, rel=1e-12)
    assert station.throughput_per_s == pytest.approx((population - mean) / 3.0, rel=1e-12)


def test_processor_sharing_moments_equal_a_linear_system() -> None:
    """M/M/1-PS by brute force: first and second moment of a tagged request's stay, given n others on arrival."""
    load, states = 0.6, 200
    n = np.arange(states)
    down = n / (n + 1)
    up = np.where(n < states - 1, load, 0.0)
    transient = np.diag(up[:-1], 1) + np.diag(down[1:], -1) - np.diag(up + down + 1 / (n + 1))
    first = np.linalg.solve(-transient, np.ones(states))
    second = np.linalg.solve(-transient, 2 * first)
    arrivals = (1 - load) * load**n
    mean, variance = mm1_ps_response_s(load, 1.0)
    assert mean == pytest.approx(arrivals @ first, rel=1e-9)
    assert variance == pytest.approx(arrivals @ second - (arrivals @ first) ** 2, rel=1e-9)


def test_order_statistics_in_closed_form() -> None:
    assert kth_of_n_mean_exponential(6.0, 2, 3) == pytest.approx(5.0, rel=1e-13)  # 6 (1/3 + 1/2)
    share = kth_of_n_level(0.99, 2, 3)
    assert 3 * share**2 - 2 * share**3 == pytest.approx(0.99, rel=1e-12)
    assert kth_of_n_level(0.99, 3, 3) == pytest.approx(0.99 ** (1 / 3), rel=1e-12)
