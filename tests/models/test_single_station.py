"""Single stations against textbook values, brute-force chains and the laws of queues."""

from collections.abc import Callable
from fractions import Fraction
from math import exp, factorial, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capplan.models.errors import InputError
from capplan.models.language.units import FloatArray
from capplan.models.solver.single_station import (
    birth_death,
    gigm_mean_wait_allen_cunneen_s,
    gigm_mean_wait_kimura_s,
    machine_repair,
    md1_wait_quantile_s,
    md1_wait_tail,
    mg1_mean_wait_s,
    mm1_ps_response_s,
    mmc,
    mmck,
)

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
    wait = station.wait_quantile_s(level)
    expected = min(1 - level, float(station.waiting_probability))
    assert float(station.wait_tail(wait)) == pytest.approx(expected, rel=1e-9)


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
    assert np.isinf(mg1_mean_wait_s(1, 1, 0))
    assert np.isinf(mm1_ps_response_s(1, 1)[1])
    assert np.isinf(md1_wait_quantile_s(1, 1, 0.1))
    assert md1_wait_tail(1.5, 1.0, 100.0) == 1.0


def test_idle_station_never_waits() -> None:
    station = mmc(0.0, 2.0, 3)
    for figure in (station.mean_wait_s, station.mean_number, station.wait_quantile_s(0.99)):
        assert figure == 0.0
    assert float(station.response_quantile_s(0.5)) == pytest.approx(2 * log(2), rel=1e-12)
    assert float(md1_wait_quantile_s(0.0, 1.0, 0.99)) == 0.0
    assert gigm_mean_wait_kimura_s(0.0, 1.0, 4, 1.0, 0.5) == 0.0


@given(LOADS, SERVERS)
def test_more_servers_and_less_load_never_hurt(load: float, servers: int) -> None:
    base = mmc(load * servers, 1.0, servers)
    assert mmc(load * servers, 1.0, servers + 1).mean_wait_s <= base.mean_wait_s
    assert mmc(0.9 * load * servers, 1.0, servers).mean_wait_s <= base.mean_wait_s
    assert mmc(load * servers, 1.0, servers + 1).response_quantile_s(0.99) <= base.response_quantile_s(0.99) * (
        1 + 1e-12
    )


def exact_mmck(load: Fraction, servers: int, capacity: int) -> tuple[float, float]:
    """Loss and mean number by the defining product, state by state."""
    weights = [Fraction(1)]
    for n in range(1, capacity + 1):
        weights.append(weights[-1] * load / min(n, servers))
    total = sum(weights)
    return float(weights[-1] / total), float(sum(n * weight for n, weight in enumerate(weights)) / total)


@pytest.mark.parametrize(("load", "servers", "capacity"), [("1", 1, 5), ("9/2", 4, 12), ("30", 32, 64), ("3", 5, 5)])
def test_mmck_equals_the_defining_sum(load: str, servers: int, capacity: int) -> None:
    loss, number = exact_mmck(Fraction(load), servers, capacity)
    station = mmck(float(Fraction(load)) / 0.25, 0.25, servers, capacity)
    assert float(station.blocking_probability) == pytest.approx(loss, rel=1e-11)
    assert float(station.mean_number) == pytest.approx(number, rel=1e-11)
    assert float(station.throughput_per_s) == pytest.approx((1 - loss) * 4 * float(Fraction(load)), rel=1e-11)


def test_mmck_broadcasts_over_capacity_and_tends_to_mmc() -> None:
    station = mmck(0.9 * 8, 1.0, 8, [8, 40, 4000])
    assert station.blocking_probability.shape == (3,)
    for column, capacity in enumerate([8, 40, 4000]):
        alone = mmck(0.9 * 8, 1.0, 8, capacity)
        assert station.mean_number[column] == pytest.approx(float(alone.mean_number), rel=1e-12)
    assert station.blocking_probability[2] < 1e-150
    assert station.mean_response_s[2] == pytest.approx(float(mmc(0.9 * 8, 1.0, 8).mean_response_s), rel=1e-10)
    flooded = mmck(1e4, 1.0, 10, 3000)
    assert float(flooded.throughput_per_s) == pytest.approx(10.0, rel=1e-12)
    assert float(flooded.mean_response_s) == pytest.approx(300.0, rel=1e-3)


@given(LOADS, st.integers(1, 12), st.integers(0, 30))
def test_mmck_obeys_flow_balance(load: float, servers: int, room: int) -> None:
    station = mmck(load * servers, 1.0, servers, servers + room)
    offered = load * servers
    assert float(station.throughput_per_s) == pytest.approx(
        offered * (1 - float(station.blocking_probability)), rel=1e-9
    )
    assert float(station.utilisation) <= 1
    assert mmck(offered, 1.0, servers, servers + room + 1).blocking_probability < station.blocking_probability


def test_birth_death_solves_any_chain() -> None:
    births, deaths = np.array([3.0, 0.5, 7.0]), np.array([1.0, 2.0, 4.0])
    generator = np.diag(births, 1) + np.diag(deaths, -1)
    generator -= np.diag(generator.sum(axis=1))
    np.testing.assert_allclose(birth_death(births, deaths), stationary(generator), rtol=1e-12)
    np.testing.assert_allclose(birth_death([[1.0, 0.0, 5.0]], deaths), [[0.5, 0.5, 0.0, 0.0]], rtol=1e-14)


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
    assert float(station.mean_number) == pytest.approx(mean, rel=1e-12)
    assert float(station.throughput_per_s) == pytest.approx((population - mean) / 3.0, rel=1e-12)


@given(st.integers(1, 200), st.floats(0.1, 50.0), st.integers(1, 20))
def test_machine_repair_obeys_the_response_time_law_and_its_bounds(population: int, think: float, servers: int) -> None:
    station = machine_repair(population, think, 1.0, servers)
    response = population / float(station.throughput_per_s) - think
    assert float(station.mean_response_s) == pytest.approx(response, rel=1e-8)
    assert float(station.throughput_per_s) <= min(servers, population / (think + 1.0)) * (1 + 1e-12)


def test_pollaczek_khinchine_and_the_limits_of_the_approximations() -> None:
    assert mg1_mean_wait_s(0.5, 1.0, 0.0) == 0.5
    assert mg1_mean_wait_s(0.8, 2.0, 1.0) == np.inf
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


def exact_md1_tail(load: Fraction, time: Fraction) -> float:
    """Erlang's sum with its alternating part in rational arithmetic: e^(rho j) by a long Taylor series."""

    def power(x: Fraction) -> Fraction:
        term, total = Fraction(1), Fraction(1)
        for n in range(1, 90):
            term = term * x / n
            total += term
        return total

    steps = [load * (time - j) for j in range(int(time) + 1)]
    return float(1 - (1 - load) * sum((-x) ** j / factorial(j) * power(x) for j, x in enumerate(steps)))


@pytest.mark.parametrize("load", ["1/10", "1/2", "9/10", "99/100"])
@pytest.mark.parametrize("time", ["0", "1/2", "1", "7/3", "59/10", "6", "37/5", "12"])
def test_md1_tail_equals_erlangs_sum_in_rational_arithmetic(load: str, time: str) -> None:
    exact = exact_md1_tail(Fraction(load), Fraction(time))
    assert float(md1_wait_tail(float(Fraction(load)), 1.0, float(Fraction(time)))) == pytest.approx(exact, abs=1e-12)


def test_md1_tail_integrates_to_pollaczek_khinchine() -> None:
    time = np.linspace(0.0, 300.0, 300_001)
    area = np.trapezoid(md1_wait_tail(0.45, 2.0, time), time)
    assert area == pytest.approx(float(mg1_mean_wait_s(0.45, 2.0, 0.0)), rel=1e-6)


@given(LOADS, st.floats(0.0, 0.99999), st.floats(0.01, 10.0))
def test_md1_quantile_inverts_the_tail(load: float, level: float, service: float) -> None:
    quantile = md1_wait_quantile_s(load / service, service, level)
    expected = min(1 - level, load)
    assert float(md1_wait_tail(load / service, service, quantile)) == pytest.approx(expected, abs=1e-9)


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
    assert float(mean) == pytest.approx(arrivals @ first, rel=1e-9)
    assert float(variance) == pytest.approx(arrivals @ second - (arrivals @ first) ** 2, rel=1e-9)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mmc(1.0, 0.0, 1), "0 is not a service time in seconds: it must be above 0"),
        (lambda: mmc(-1.0, 1.0, 1), "-1 is not a rate of arrivals per second"),
        (lambda: mmc(1.0, 1.0, 1.5), "1.5 is not a number of servers: it must be a whole number"),
        (lambda: mmc(1.0, 1.0, 2).wait_quantile_s(1.0), "1 is not a quantile level: it must be below 1"),
        (lambda: mmck(1.0, 1.0, 4, 3), "3 is not a capacity: it must be at least the servers"),
        (lambda: birth_death([1.0], [0.0]), "0 is not a rate of deaths per second"),
        (lambda: machine_repair(0, 1.0, 1.0, 1), "0 is not a population"),
        (lambda: mg1_mean_wait_s(1.0, 1.0, -0.1), "-0.1 is not a squared coefficient of variation"),
    ],
)
def test_bad_arguments_are_named_with_their_rule(call: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()
