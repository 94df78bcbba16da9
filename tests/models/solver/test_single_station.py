"""Single stations against textbook values, brute-force chains and the laws of queues."""

from collections.abc import Callable
from math import exp, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles.single_station import mg1_mean_wait_s, mmck

from capplan.models.errors import InputError
from capplan.models.language.units import FloatArray
from capplan.models.solver.single_station import gigm_mean_wait_allen_cunneen_s, gigm_mean_wait_kimura_s, mmc

LOADS = st.floats(min_value=0.01, max_value=0.99)
SERVERS = st.integers(min_value=1, max_value=60)


def mdc_mean_wait(load: float, servers: int) -> float:
    """M/D/c with service 1, by brute force: the number inside, seen once a service time, is a Markov chain."""
    states, rate = 400, load * servers
    poisson = np.exp(np.cumsum(np.log([1.0, *(rate / np.arange(1, states + 1))])) - rate)
    chain = np.zeros((states + 1, states + 1))
    for n in range(states + 1):
        left = max(n - servers, 0)
        chain[n, left:] = poisson[: states + 1 - left]
        chain[n, -1] += 1 - chain[n].sum()
    return float(stationary(chain - np.eye(states + 1)) @ np.arange(states + 1)) / rate - 1


def stationary(generator: FloatArray) -> FloatArray:
    """Solve for the probabilities that `generator` leaves as they are."""
    equations = np.vstack([generator.T[:-1], np.ones(len(generator))])
    return np.asarray(np.linalg.solve(equations, np.eye(len(generator))[-1]))


def test_mmc_equals_the_textbook_cases() -> None:
    """M/M/1 at 1/2: W = 2s, L = 1. M/M/2 at 3/4: C = 9/14, Lq = 27/14 (exact fractions)."""
    single, double = mmc(0.5, 1.0, 1), mmc(1.5, 1.0, 2)
    assert float(single.mean_response_s) == pytest.approx(2.0, rel=1e-14)
    assert float(single.mean_number) == pytest.approx(1.0, rel=1e-14)
    assert float(double.waiting_probability) == pytest.approx(9 / 14, rel=1e-14)
    assert float(double.mean_wait_s) == pytest.approx(27 / 14 / 1.5, rel=1e-14)
    assert float(double.utilisation) == 0.75


def test_mm1_response_is_exponential() -> None:
    np.testing.assert_allclose(
        mmc(0.8, 1.0, 1).response_quantile_s([0.5, 0.9, 0.999]), [5 * log(2), 5 * log(10), 5 * log(1000)], rtol=1e-12
    )
    assert float(mmc(0.8, 1.0, 1).wait_quantile_s(0.9)) == pytest.approx(5 * log(8), rel=1e-12)


@given(LOADS, SERVERS, st.floats(min_value=0.0, max_value=0.9999))
def test_quantiles_invert_tails(load: float, servers: int, level: float) -> None:
    station = mmc(load * servers, 1.0, servers)
    assert float(station.response_tail(station.response_quantile_s(level))) == pytest.approx(1 - level, rel=1e-9)


@pytest.mark.parametrize(("servers", "load"), [(1, 0.9), (2, 0.5), (2, 0.5 + 1e-12), (8, 0.95)])
def test_mean_response_is_the_area_under_its_tail(servers: int, load: float) -> None:
    """(2, 0.5) is the point where the two exponential rates of the tail coincide."""
    station = mmc(load * servers, 1.0, servers)
    time = np.linspace(0.0, 400.0, 400_001)
    assert np.trapezoid(station.response_tail(time), time) == pytest.approx(float(station.mean_response_s), rel=1e-6)


def test_overload_waits_for_ever() -> None:
    station = mmc([0.5, 1.0, 2.0], 1.0, 1)
    for figure in (station.mean_wait_s, station.mean_number, station.response_quantile_s(0.5)):
        np.testing.assert_array_equal(np.isinf(figure), [False, True, True])
    np.testing.assert_allclose(station.response_tail(3.0)[1:], 1.0, rtol=1e-15)
    assert np.isinf(gigm_mean_wait_allen_cunneen_s(3, 1, 2, 0, 0))
    assert np.isinf(gigm_mean_wait_kimura_s(3, 1, 2, 0.5, 0.5))


def test_idle_station_never_waits() -> None:
    station = mmc(0.0, 2.0, 3)
    for figure in (station.mean_wait_s, station.mean_number, station.wait_quantile_s(0.99)):
        assert figure == 0.0
    assert float(station.response_quantile_s(0.5)) == pytest.approx(2 * log(2), rel=1e-12)
    assert gigm_mean_wait_kimura_s(0.0, 1.0, 4, 1.0, 0.5) == 0.0


@given(LOADS, SERVERS)
def test_more_servers_and_less_load_never_hurt(load: float, servers: int) -> None:
    base = mmc(load * servers, 1.0, servers)
    assert mmc(load * servers, 1.0, servers + 1).mean_wait_s <= base.mean_wait_s
    assert mmc(0.9 * load * servers, 1.0, servers).mean_wait_s <= base.mean_wait_s
    assert mmc(load * servers, 1.0, servers + 1).response_quantile_s(0.99) <= base.response_quantile_s(0.99) * (
        1 + 1e-12
    )


def test_a_finite_queue_with_much_room_tends_to_mmc() -> None:
    station = mmck(0.9 * 8, 1.0, 8, 4000)
    assert station.mean_response_s == pytest.approx(float(mmc(0.9 * 8, 1.0, 8).mean_response_s), rel=1e-10)


def test_the_exact_cases_of_the_approximations() -> None:
    for load, scv in [(0.3, 0.0), (0.7, 0.5), (0.9, 4.0)]:
        exact = float(mg1_mean_wait_s(load, 1.0, scv))
        assert float(gigm_mean_wait_allen_cunneen_s(load, 1.0, 1, 1.0, scv)) == pytest.approx(exact, rel=1e-12)
        assert float(gigm_mean_wait_kimura_s(load, 1.0, 1, 1.0, scv)) == pytest.approx(exact, rel=1e-12)
    waits = mmc(7.0, 1.0, 8).mean_wait_s
    assert float(gigm_mean_wait_kimura_s(7.0, 1.0, 8, 1.0, 1.0)) == pytest.approx(float(waits), rel=1e-12)
    assert gigm_mean_wait_kimura_s(7.0, 1.0, 8, 0.0, 0.0) == 0.0


@given(st.integers(1, 64), st.floats(0.0, 4.0), st.floats(0.0, 4.0))
def test_both_approximations_meet_in_heavy_traffic(servers: int, arrival_scv: float, service_scv: float) -> None:
    """The heavy-traffic limit (Koellerstroem 1974): (ca² + cs²)/2 times the M/M/m wait."""
    load = 1 - 1e-7
    scale = float(mmc(load * servers, 1.0, servers).mean_wait_s) * (arrival_scv + service_scv) / 2
    for formula in (gigm_mean_wait_allen_cunneen_s, gigm_mean_wait_kimura_s):
        wait = float(formula(load * servers, 1.0, servers, arrival_scv, service_scv))
        assert wait == pytest.approx(scale, rel=1e-4)


@pytest.mark.parametrize(("load", "servers"), [(0.5, 2), (0.7, 2), (0.7, 8), (0.7, 16), (0.9, 8), (0.9, 16)])
def test_kimura_is_within_two_percent_of_brute_force_for_fixed_service_from_seventy_percent_load(
    load: float, servers: int
) -> None:
    exact = mdc_mean_wait(load, servers)
    kimura = float(gigm_mean_wait_kimura_s(load * servers, 1.0, servers, 1.0, 0.0))
    allen_cunneen = float(gigm_mean_wait_allen_cunneen_s(load * servers, 1.0, servers, 1.0, 0.0))
    assert kimura == pytest.approx(exact, rel=0.02)
    assert abs(kimura - exact) < abs(allen_cunneen - exact)


@pytest.mark.parametrize("load", [0.5, 0.7, 0.9])
def test_kimura_meets_the_exact_d_m_1_wait(load: float) -> None:
    """D/M/1: W = sigma s / (1 - sigma), sigma = exp(-(1 - sigma) / rho) (Kleinrock 1975, section 6.3)."""
    sigma = 0.5
    for _ in range(2000):
        sigma = exp(-(1 - sigma) / load)
    assert float(gigm_mean_wait_kimura_s(load, 1.0, 1, 0.0, 1.0)) == pytest.approx(sigma / (1 - sigma), rel=0.01)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mmc(1.0, 0.0, 1), "0 is not a service time in seconds"),
        (lambda: mmc(-1.0, 1.0, 1), "-1 is not a rate of arrivals per second"),
        (lambda: mmc(1.0, 1.0, 1.5), "1.5 is not a number of servers"),
        (lambda: mmc(1.0, 1.0, 2).wait_quantile_s(1.0), "1 is not a quantile level"),
    ],
)
def test_bad_arguments_are_named_with_their_rule(call: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()
