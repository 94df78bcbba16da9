"""Single stations: Erlang's formulas, load-dependent servers, stalls and lanes of work, against exact oracles."""

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from math import factorial, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special
from tests.oracles.single_station import birth_death, machine_repair, mg1_mean_wait_s, mmck
from tests.simulator.agreement import assert_agrees

from capplan.errors import InputError
from capplan.models.language.distribution import Deterministic, Exponential, Mixture
from capplan.models.language.network import Network
from capplan.models.language.station import RateTable, Station
from capplan.models.language.step import Visit
from capplan.models.language.traffic import Open, RequestClass
from capplan.models.language.units import FloatArray
from capplan.models.solver.analytic import Analysis
from capplan.models.solver.operating_point import capacity_per_s, solve
from capplan.models.solver.pools import FlowEquivalent, grid_weights, state_grid
from capplan.models.solver.single_station import (
    Stalls,
    busy_share,
    closed_throughputs_per_s,
    endless_speed,
    erlang_b,
    erlang_c,
    longest_wait_s,
    mean_number,
    mgm_mean_wait_s,
    mmc,
    relaxation_s,
    response_quantile_s,
    response_tail,
    speeds,
    wait_tail,
)
from capplan.simulator.compiled.engine import simulate

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
    assert np.isinf(mgm_mean_wait_s(3, 1, 2, 0.5))


def test_idle_station_never_waits() -> None:
    station = mmc(0.0, 2.0, 3)
    for figure in (station.mean_wait_s, station.mean_number, station.wait_quantile_s(0.99)):
        assert figure == 0.0
    assert float(station.response_quantile_s(0.5)) == pytest.approx(2 * log(2), rel=1e-12)
    assert mgm_mean_wait_s(0.0, 1.0, 4, 0.5) == 0.0


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


def test_the_exact_cases_of_the_approximation() -> None:
    for load, scv in [(0.3, 0.0), (0.7, 0.5), (0.9, 4.0)]:
        exact = float(mg1_mean_wait_s(load, 1.0, scv))
        assert float(mgm_mean_wait_s(load, 1.0, 1, scv)) == pytest.approx(exact, rel=1e-12)
    waits = mmc(7.0, 1.0, 8).mean_wait_s
    assert float(mgm_mean_wait_s(7.0, 1.0, 8, 1.0)) == pytest.approx(float(waits), rel=1e-12)


@given(st.integers(1, 64), st.floats(0.0, 4.0))
def test_waits_meet_those_of_heavy_traffic(servers: int, scv: float) -> None:
    """The heavy-traffic limit (Koellerstroem 1974): (1 + cs²)/2 times the M/M/m wait."""
    load = 1 - 1e-7
    scale = float(mmc(load * servers, 1.0, servers).mean_wait_s) * (1 + scv) / 2
    assert float(mgm_mean_wait_s(load * servers, 1.0, servers, scv)) == pytest.approx(scale, rel=1e-4)


@pytest.mark.parametrize(("load", "servers"), [(0.5, 2), (0.7, 2), (0.7, 8), (0.7, 16), (0.9, 8), (0.9, 16)])
def test_waits_are_within_two_percent_of_brute_force_for_fixed_service_from_seventy_percent_load(
    load: float, servers: int
) -> None:
    """And closer than half the wait of M/M/m (Allen & Cunneen)."""
    exact, half = mdc_mean_wait(load, servers), float(mmc(load * servers, 1.0, servers).mean_wait_s) / 2
    found = float(mgm_mean_wait_s(load * servers, 1.0, servers, 0.0))
    assert found == pytest.approx(exact, rel=0.02)
    assert abs(found - exact) < abs(half - exact)


OFFERED = st.floats(min_value=0.5, max_value=120.0)
COUNTS = st.integers(min_value=1, max_value=120)


def exact_b(servers: int, load: Fraction) -> Fraction:
    terms = [load**n / factorial(n) for n in range(servers + 1)]
    return terms[-1] / sum(terms)


def exact_c(servers: int, load: Fraction) -> Fraction:
    last = load**servers / factorial(servers) * servers / (servers - load)
    return last / (sum(load**n / factorial(n) for n in range(servers)) + last)


@pytest.mark.parametrize(
    ("servers", "load", "blocking"),
    [(1, 0.0101, 0.01), (5, 1.36, 0.01), (10, 4.46, 0.01), (20, 12.0, 0.01), (50, 37.9, 0.01), (100, 84.1, 0.01)],
)
def test_erlang_b_table_of_one_percent_loads(servers: int, load: float, blocking: float) -> None:
    """The classical Erlang B table gives the load to three digits: half a unit of the last digit brackets 1 %."""
    half_digit = 0.5 * 10.0 ** (np.floor(np.log10(load)) - 2)
    assert erlang_b(servers, load - half_digit) < blocking < erlang_b(servers, load + half_digit)


@pytest.mark.parametrize(("servers", "load"), [(1, "1/2"), (2, "3/2"), (10, "893/200"), (64, "60"), (150, "1491/10")])
def test_b_and_c_equal_their_defining_sums_in_rational_arithmetic(servers: int, load: str) -> None:
    exact = Fraction(load)
    assert erlang_b(servers, float(exact)) == pytest.approx(float(exact_b(servers, exact)), rel=1e-12)
    assert erlang_c(servers, float(exact)) == pytest.approx(float(exact_c(servers, exact)), rel=1e-11)


def test_thousands_of_servers_near_saturation() -> None:
    term, total = Decimal(1), Decimal(0)  # 28 digits, outwards from the last term of the defining sum
    for n in range(5000, -1, -1):
        total, term = total + term, term * n / 4999
    assert erlang_b(5000, 4999.0) == pytest.approx(float(1 / total), rel=1e-12)
    assert 0.98 < float(erlang_c(5000, 4999.0)) < 1.0
    assert erlang_b(5000, 1e9) == pytest.approx(1 - 5000 / 1e9, rel=1e-9)
    assert erlang_b(5000, 1.0) == 0.0  # below the smallest float: 1/5000!


def test_waiting_is_certain_from_full_load_on_and_never_without_load() -> None:
    np.testing.assert_array_equal(erlang_c([3, 3, 3, 3], [3.0, 3.5, 1e6, 0.0]), [1.0, 1.0, 1.0, 0.0])
    assert float(erlang_c(8, 8 * (1 - 1e-12))) == pytest.approx(1.0, abs=1e-11)
    assert erlang_b(0, 2.0) == 1.0


def test_arguments_broadcast_element_by_element() -> None:
    servers, load = np.array([[1], [7], [40]]), np.array([0.5, 6.0, 39.0])
    table = erlang_b(servers, load)
    assert table.shape == (3, 3)
    for row in range(3):
        for column in range(3):
            assert table[row, column] == float(erlang_b(int(servers[row, 0]), float(load[column])))


@given(COUNTS, OFFERED)
def test_more_servers_never_hurt_and_waiting_is_likelier_than_loss(servers: int, load: float) -> None:
    assert erlang_b(servers + 1, load) < erlang_b(servers, load)
    assert erlang_c(servers + 1, load) <= erlang_c(servers, load)
    assert erlang_b(servers, load) <= erlang_c(servers, load) <= 1


@given(COUNTS, OFFERED, st.floats(min_value=1.001, max_value=2.0))
def test_more_load_never_helps(servers: int, load: float, factor: float) -> None:
    assert erlang_b(servers, load * factor) > erlang_b(servers, load)
    assert erlang_c(servers, load * factor) >= erlang_c(servers, load)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mmc(1.0, 0.0, 1), "0 is not a service time in seconds"),
        (lambda: mmc(-1.0, 1.0, 1), "-1 is not a rate of arrivals per second"),
        (lambda: mmc(1.0, 1.0, 1.5), "1.5 is not a number of servers"),
        (lambda: mmc(1.0, 1.0, 2).wait_quantile_s(1.0), "1 is not a quantile level"),
        (lambda: erlang_b(2.5, 1.0), "2.5 is not a number of servers"),
        (lambda: erlang_b(-1, 1.0), "-1 is not a number of servers"),
        (lambda: erlang_c(0, 1.0), "0 is not a number of servers"),
        (lambda: erlang_b(2, [1.0, -3.0]), "-3 is not a load"),
        (lambda: erlang_b(2, np.nan), "nan is not a load"),
        (lambda: erlang_b(2, np.inf), "inf is not a load"),
        (lambda: erlang_b("two", 1.0), "'two' is not a number of servers"),
    ],
)
def test_bad_arguments_are_named_with_their_rule(call: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


PLAIN = Station("server", 4)
DROOPING = Station("server", 2, rate=RateTable((1.0, 1.0, 0.8, 0.5)))


def test_the_speed_of_all_servers_by_hand() -> None:
    assert speeds(PLAIN).tolist() == [[1.0, 2.0, 3.0, 4.0]]
    assert speeds(DROOPING).tolist() == [[1.0, 2.0, 1.6, 1.0]]
    assert speeds(Station("server", 3, rate=RateTable((1.0, 0.5)))).tolist() == [[1.0, 1.0, 1.5]]
    assert endless_speed(PLAIN) == 4.0
    assert endless_speed(DROOPING) == 1.0


def test_speeds_may_differ_by_draw() -> None:
    table = RateTable((1.0, np.array([1.0, 0.5])))

    assert speeds(Station("server", 2, rate=table)).tolist() == [[1.0, 2.0], [1.0, 1.0]]


def test_servers_that_nothing_slows_down_are_busy_as_often_as_they_are_asked_for() -> None:
    assert busy_share(np.array([0.4, 2.0, 3.9, 4.0, 9.0]), PLAIN) == pytest.approx([0.1, 0.5, 0.975, 1.0, 1.0])


def test_slowed_servers_are_busy_longer_by_hand() -> None:
    """Work 0.5 and speeds 1, 2, 1.6, 1, 1 ...: weights 1, 1/2, 1/8, 5/128, then halves of the one before."""
    weights = np.array([1.0, 1 / 2, 1 / 8, 5 / 128, *(5 / 128 * 0.5**n for n in range(1, 60))])
    busy = (weights[1] / 2 + weights[2:].sum()) / weights.sum()

    assert busy_share(np.array([0.5]), DROOPING) == pytest.approx([busy])


@given(st.floats(0.01, 0.99))
def test_busy_servers_lie_between_the_shares_of_the_highest_and_the_lowest_speed(work: float) -> None:
    assert work / 2 <= busy_share(np.array([work]), DROOPING)[0] <= work / endless_speed(DROOPING)


def test_the_mean_number_by_hand() -> None:
    """Work 0.5, speeds 1 and then 2 for ever: weights 1, 1/2, 1/8, 1/32 ..., which is M/M/2."""
    weights = np.array([1.0, 0.5, *(0.5 * 0.25**n for n in range(1, 40))])
    mean = float(weights @ np.arange(len(weights)) / weights.sum())

    assert mean_number(np.array([0.5]), np.array([[1.0, 2.0]])) == pytest.approx([mean], rel=1e-12)


@given(work=st.floats(0.01, 3.9))
def test_constant_speeds_are_the_queue_with_many_servers(work: float) -> None:
    known = mmc(work, 1.0, 4)

    assert mean_number(np.array([work]), speeds(PLAIN))[0] == pytest.approx(float(known.mean_number), rel=1e-9)


def test_a_queue_that_never_drains_is_endless() -> None:
    """The station works at 2 with two inside, but at 1 with many: 1.2 is drained only as long as the queue is short."""
    assert mean_number(np.array([1.0, 1.2]), speeds(DROOPING)).tolist() == [np.inf, np.inf]
    assert mean_number(np.array([0.9]), speeds(DROOPING))[0] < np.inf


@given(work=st.floats(0.05, 0.9), more=st.floats(1.001, 1.1))
def test_more_work_makes_more_requests(work: float, more: float) -> None:
    few, many = mean_number(np.array([work, work * more]), speeds(DROOPING))

    assert few < many


@pytest.mark.parametrize("clients", [1, 2, 5, 40])
def test_clients_of_a_constant_station_are_the_machine_repair_model(clients: int) -> None:
    found = closed_throughputs_per_s(np.array([0.5]), speeds(PLAIN), np.array([2.0]), [clients])

    assert found[0, 0] == pytest.approx(float(machine_repair(clients, 2.0, 0.5, 4).throughput_per_s), rel=1e-12)


@pytest.mark.parametrize("clients", [1, 3, 8])
def test_clients_of_a_drooping_station_are_a_birth_death_chain(clients: int) -> None:
    done = np.pad(speeds(DROOPING)[0], (0, 8), mode="edge")[:clients] / 0.5
    chance = birth_death(np.arange(clients, 0, -1) / 0.3, done)

    found = closed_throughputs_per_s(np.array([0.5]), speeds(DROOPING), np.array([0.3]), [clients])
    assert found[0, 0] == pytest.approx(float(chance[1:] @ done), rel=1e-9)


def test_thousands_of_clients_of_a_fast_station_do_not_overflow() -> None:
    found = closed_throughputs_per_s(np.array([1e-6]), speeds(PLAIN), np.array([1.0]), [1, 5000])

    assert found[0] == pytest.approx([1 / 1.000001, 5000 / 1.000001], rel=1e-9)


def test_the_analytic_solver_takes_a_station_whose_speed_depends_on_its_requests() -> None:
    """Exponential service, in order of arrival: the mean is exact, and the capacity is what always drains."""
    network = Network(
        name="one",
        stations=(DROOPING,),
        classes=(RequestClass("job", Visit("server", Exponential(0.1))),),
        traffic=Open(1.0, {"job": 1.0}),
    )
    analysis = Analysis(network)

    assert capacity_per_s(analysis, 1e-3) == pytest.approx([10.0])
    expected = mean_number(np.array([0.8]), speeds(DROOPING)) / 8.0
    assert solve(analysis, 8.0).response_s("job") == pytest.approx(expected, rel=1e-9)
    assert np.isinf(solve(analysis, 11.0).response_s("job")).all()


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


@pytest.mark.parametrize("peakedness", [0.6, 1.0, 1.8])
@pytest.mark.parametrize("load", [0.95, 1.02, 1.5])
def test_a_grid_of_states_drops_as_all_states_do(load: float, peakedness: float) -> None:
    pool, queue = 1200, 300
    rates = []
    for states in (np.arange(pool + queue + 1.0), state_grid(pool, pool + queue)):
        server = FlowEquivalent(states, knee(states[1:], pool)[None], pool, peakedness)
        rates.append(server.drop_rate(server.chances(np.array([load * 0.9 * pool])))[0])
    assert rates[1] == pytest.approx(rates[0], rel=0.01, abs=1e-9)


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


TIMES_S = np.array([0.0, 0.01, 0.1, 0.5])


def tail_at(wait: tuple[np.ndarray, np.ndarray], time_s: float) -> float:
    weight, decay = wait
    return float((weight * np.exp(-decay * time_s)).sum())


@pytest.mark.parametrize("other", [Stalls(0.0, 0.02), Stalls(0.0, 0.05)])
def test_stalls_of_one_kind_are_an_mm1_queue(other: Stalls) -> None:
    rate, mean = 8.0, 0.05
    for wait in (wait_tail(0.0, Stalls(rate, mean), other), wait_tail(0.0, other, Stalls(rate, mean))):
        expected = [rate * mean * np.exp(-(1 / mean - rate) * time) for time in TIMES_S]
        assert [tail_at(wait, time) for time in TIMES_S] == pytest.approx(expected, rel=5e-4)


def test_two_kinds_of_one_length_are_one_kind() -> None:
    wait = wait_tail(0.2, Stalls(5.0, 0.03), Stalls(3.0, 0.03))
    one = wait_tail(0.2, Stalls(8.0, 0.03), Stalls(0.0, 1.0))

    assert [tail_at(wait, time) for time in TIMES_S] == pytest.approx(
        [tail_at(one, time) for time in TIMES_S], rel=1e-4
    )


def test_the_mean_wait_is_pollaczek_and_khinchines() -> None:
    short, long, drained = Stalls(9.0, 0.012), Stalls(0.5, 0.07), 0.6
    weight, decay = wait_tail(drained, short, long)
    law = Mixture((9 / 9.5, 0.5 / 9.5), (Exponential(0.012), Exponential(0.07)))

    # The work ahead falls at 1 - drained; by its own clock, in which it falls at 1, stalls come that much more often.
    expected = float(mg1_mean_wait_s(9.5 / (1 - drained), law.mean, law.scv))
    assert float((weight / decay).sum()) == pytest.approx(expected, rel=1e-9)


def test_draws_are_independent_of_one_another() -> None:
    both = wait_tail(np.array([0.1, 0.6]), Stalls(9.0, 0.012), Stalls(np.array([0.5, 0.7]), 0.07))
    second = wait_tail(0.6, Stalls(9.0, 0.012), Stalls(0.7, 0.07))

    assert np.allclose(np.stack(both)[..., 1:], np.stack(second))
    levels = response_quantile_s(both, 0.004, 0.05, 0.99)
    assert levels.shape == (2,)
    assert levels[1] == pytest.approx(float(response_quantile_s(second, 0.004, 0.05, 0.99)[0]))


def test_the_sum_with_the_path_is_the_integral() -> None:
    wait, mean, scv = wait_tail(0.5, Stalls(10.0, 0.012), Stalls(0.5, 0.07)), 0.004, 0.05
    path = np.linspace(0, 0.03, 20001)
    density = path ** (1 / scv - 1) * np.exp(-path / (mean * scv))
    density /= np.trapezoid(density, path)
    for time in (0.003, 0.005, 0.02, 0.2):
        above = np.where(path > time, 1.0, [tail_at(wait, max(time - each, 0.0)) for each in path])
        expected = float(np.trapezoid(density * above, path))
        assert float(response_tail(wait, mean, scv, np.array(time))[0]) == pytest.approx(expected, rel=5e-4)


def test_without_stalls_the_response_is_the_path() -> None:
    wait = wait_tail(0.3, Stalls(1e-12, 0.012), Stalls(1e-12, 0.07))

    median = 0.004 * 0.05 * special.gammaincinv(20.0, 0.5)
    assert float(response_quantile_s(wait, 0.004, 0.05, 0.5)[0]) == pytest.approx(median, rel=1e-6)


@pytest.mark.parametrize("level", [0.01, 0.5, 0.9, 0.99, 1 - 1e-6])
def test_a_quantile_is_where_the_tail_says(level: float) -> None:
    wait = wait_tail(0.7, Stalls(9.0, 0.012), Stalls(0.6, 0.07))

    time = response_quantile_s(wait, 0.004, 0.05, level)
    assert float(response_tail(wait, 0.004, 0.05, time)[0]) == pytest.approx(1 - level, rel=1e-5)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_more_of_anything_never_shortens_a_response(level: float) -> None:
    """Small services, rates and lengths of stalls, and the path."""
    usual = np.array([0.4, 9.0, 0.012, 0.5, 0.07, 0.004])

    def response(numbers: np.ndarray) -> float:
        drained, often, short, seldom, long, path = numbers
        wait = wait_tail(drained, Stalls(often, short), Stalls(seldom, long))
        return float(response_quantile_s(wait, path, 0.05, level)[0])

    longer = [response(usual * np.where(np.arange(6) == place, 1.05, 1.0)) for place in range(6)]
    assert min(longer) > response(usual)


def test_a_server_without_a_steady_state_is_refused() -> None:
    with pytest.raises(InputError, match=r"1\.05"):
        wait_tail(0.8, Stalls(10.0, 0.015), Stalls(2.0, 0.05))


def test_a_path_with_a_longer_tail_than_the_wait_is_refused() -> None:
    wait = wait_tail(0.1, Stalls(1.0, 0.001), Stalls(1.0, 0.002))
    with pytest.raises(InputError, match="tail"):
        response_tail(wait, 1.0, 1.0, np.array(0.5))


@pytest.mark.slow
def test_the_compiled_engine_waits_as_long() -> None:
    """The share of requests that wait longer than 20 and 50 ms, where stalls take 10 % and services 50 % of the time.

    Two comparisons, each with the error rates of `agreement`. Services are short (0.25 ms), so that they are a drain.
    """
    rate, drained, short, long = 2000.0, 0.5, 0.012, 0.07
    chance_short, chance_long = 1 / 400, 1 / 3500
    small = Deterministic(drained / rate / (1 - chance_short - chance_long))
    service = Mixture(
        (1 - chance_short - chance_long, chance_short, chance_long), (small, Exponential(short), Exponential(long))
    )
    network = Network(
        name="stalling",
        stations=(Station("server", 1),),
        classes=(RequestClass("request", Visit("server", service)),),
        traffic=Open(rate, {"request": 1.0}),
    )
    runs = [simulate(network, 300.0, seed=11, replication=number, warmup_s=2.0) for number in range(40)]
    wait = wait_tail(drained, Stalls(rate * chance_short, short), Stalls(rate * chance_long, long))
    for time in (0.02, 0.05):
        longer = []
        for run in runs:
            ends, shares = run.report("request").intended.cdf()
            longer.append(1 - float(np.interp(time, ends, shares)))
        assert_agrees(longer, tail_at(wait, time), detects=0.2)


SHORT, LONG = Stalls(9.0, 0.012), Stalls(0.5, 0.07)
STALLED = 9.0 * 0.012 + 0.5 * 0.07  # of the time


def longest_waits_s(left: float, horizon_s: float, runs: int) -> np.ndarray:
    """Return the longest wait of each run, by Lindley's recursion over the stalls: the wait just after each."""
    random, rate = np.random.default_rng(1), SHORT.rate_per_s + LONG.rate_per_s
    wait, longest = np.zeros(runs), np.zeros(runs)
    for _ in range(int(horizon_s * rate)):
        mean = np.where(random.random(runs) < SHORT.rate_per_s / rate, SHORT.mean_s, LONG.mean_s)
        wait = np.maximum(wait - left * random.exponential(1 / rate, runs), 0.0) + random.exponential(1.0, runs) * mean
        longest = np.maximum(longest, wait)
    return longest


@pytest.mark.parametrize("busy", [0.4, 0.9])
def test_the_longest_wait_is_that_of_lindleys_recursion(busy: float) -> None:
    """The median of 400 maxima has a standard error of 0.07 of their scale; counting crossings for clumps is 0.5 off.

    Five standard errors: a correct formula fails one seed in a million; a tenth of the scale is left to its limit.
    """
    left = STALLED / busy
    wait = wait_tail(1 - left, SHORT, LONG)
    scale = 1 / float(wait.decay_per_s.min())
    said, seen = float(longest_wait_s(wait, left, 1500.0)[0]), longest_waits_s(left, 1500.0, 400)

    assert abs(said - float(np.median(seen))) < (5 * 0.072 + 0.1) * scale


def test_the_relaxation_time_grows_as_the_square_towards_saturation() -> None:
    times = [relaxation_s(wait_tail(1 - STALLED / busy, SHORT, LONG), STALLED / busy) for busy in (0.98, 0.99, 0.995)]

    ratios = [float(later[0] / earlier[0]) for earlier, later in pairwise(times)]
    assert ratios == pytest.approx([4.0, 4.0], rel=0.05)
