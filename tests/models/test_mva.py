"""Queueing networks against enumeration of their product form, closed forms of one station, and operational laws."""

from collections.abc import Callable, Iterator
from fractions import Fraction
from math import factorial, inf, prod
from typing import cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capplan.models.errors import InputError
from capplan.models.solver.mva import (
    ClosedNetwork,
    bard_schweitzer,
    closed_load_dependent,
    closed_multi_server,
    exact_mva,
    exact_mva_multiclass,
    jackson,
)
from capplan.models.solver.single_station import machine_repair, mmc

DEMANDS = st.lists(st.floats(0.01, 5.0), min_size=1, max_size=4)
THINK = st.floats(0.0, 20.0)


def placements(requests: int, places: int) -> Iterator[tuple[int, ...]]:
    """All ways to place like requests."""
    if places == 1:
        yield (requests,)
        return
    for here in range(requests + 1):
        for rest in placements(requests - here, places - 1):
            yield (here, *rest)


def enumerate_states(
    demand: list[Fraction], rates: list[list[Fraction]], think: Fraction, population: int
) -> tuple[float, list[float]]:
    """Throughput and mean numbers of one class, from every state's product-form weight, in rational arithmetic."""

    def weight(state: tuple[int, ...]) -> Fraction:
        stations = [d**n / prod(r[:n], start=Fraction(1)) for d, r, n in zip(demand, rates, state, strict=False)]
        return prod(stations, start=think ** state[-1] / factorial(state[-1]))

    def total(requests: int) -> Fraction:
        return sum((weight(state) for state in placements(requests, len(demand) + 1)), Fraction(0))

    states = list(placements(population, len(demand) + 1))
    numbers = [
        sum((state[k] * weight(state) for state in states), Fraction(0)) / total(population) for k in range(len(demand))
    ]
    return float(total(population - 1) / total(population)), [float(number) for number in numbers]


def assert_little(network: ClosedNetwork, population: float, think: float) -> None:
    """Nobody is lost: the requests at the stations and the clients that think make up the population."""
    inside = network.mean_number.sum(axis=-1) + network.throughput_per_s * think
    np.testing.assert_allclose(inside, population, rtol=1e-8)
    np.testing.assert_allclose(
        network.throughput_per_s * network.response_s, network.mean_number.sum(axis=-1), rtol=1e-8
    )


LAZOWSKA = [Fraction(605, 1000), Fraction(21, 10), Fraction(135, 100)]


@pytest.mark.parametrize("population", [1, 2, 3, 6])
def test_the_example_of_lazowska_chapter_six(population: int) -> None:
    """CPU 0.605 s, disks 2.1 s and 1.35 s, 15 s think time; at three clients the book prints X = 0.152 per second."""
    ones = [[Fraction(1)] * population] * 3
    throughput, numbers = enumerate_states(LAZOWSKA, ones, Fraction(15), population)
    for solve in (exact_mva, lambda d, n, z: closed_multi_server(d, 1, n, z)):
        network = solve([float(d) for d in LAZOWSKA], population, 15.0)
        assert float(network.throughput_per_s) == pytest.approx(throughput, rel=1e-12)
        np.testing.assert_allclose(network.mean_number, numbers, rtol=1e-11)
    if population == 3:
        assert round(throughput, 3) == 0.152


@pytest.mark.parametrize("think", ["0", "1/2", "9"])
def test_load_dependent_stations_equal_enumeration(think: str) -> None:
    """Two servers, a station that droops past its peak, a delay, and a plain server."""
    population = 6
    rates = [
        [Fraction(min(n, 2)) for n in range(1, population + 1)],
        [Fraction(n * 10, 10 + n * n) for n in range(1, population + 1)],
        [Fraction(n) for n in range(1, population + 1)],
        [Fraction(1)] * population,
    ]
    demand = [Fraction(3, 2), Fraction(1, 2), Fraction(2), Fraction(0)]
    throughput, numbers = enumerate_states(demand, rates, Fraction(think), population)
    speeds = [[float(r) for r in row] for row in rates]
    network = closed_load_dependent([float(d) for d in demand], speeds, population, float(Fraction(think)))
    assert float(network.throughput_per_s) == pytest.approx(throughput, rel=1e-12)
    np.testing.assert_allclose(network.mean_number, numbers, rtol=1e-11, atol=1e-200)


def test_delay_marks_equal_enumeration() -> None:
    rates = [[Fraction(1)] * 4, [Fraction(n) for n in range(1, 5)]]
    throughput, numbers = enumerate_states([Fraction(1), Fraction(3)], rates, Fraction(1), 4)
    network = exact_mva([1.0, 3.0], 4, 1.0, delay=[False, True])
    assert float(network.throughput_per_s) == pytest.approx(throughput, rel=1e-12)
    np.testing.assert_allclose(network.mean_number, numbers, rtol=1e-12)


def test_two_classes_equal_enumeration() -> None:
    """Multinomial weights at each queue, Poisson ones in thought; counted state by state."""
    demand, think, population = np.array([[1.0, 0.4], [0.3, 2.0]]), np.array([1.5, 0.5]), (3, 2)

    def weight(a: tuple[int, ...], b: tuple[int, ...]) -> float:
        queues = [
            factorial(a[k] + b[k]) * demand[0, k] ** a[k] * demand[1, k] ** b[k] / factorial(a[k]) / factorial(b[k])
            for k in range(2)
        ]
        return float(prod(queues) * think[0] ** a[2] / factorial(a[2]) * think[1] ** b[2] / factorial(b[2]))

    def total(first: int, second: int) -> float:
        return sum(weight(a, b) for a in placements(first, 3) for b in placements(second, 3))

    network = exact_mva_multiclass(demand, population, think)
    exact = [total(2, 2) / total(3, 2), total(3, 1) / total(3, 2)]
    np.testing.assert_allclose(network.throughput_per_s, exact, rtol=1e-12)
    pairs = [(weight(a, b), a) for a in placements(3, 3) for b in placements(2, 3)]
    first = [sum(w * a[k] for w, a in pairs) / total(3, 2) for k in range(2)]
    np.testing.assert_allclose(network.mean_number[0], first, rtol=1e-12)


@given(DEMANDS, THINK, st.integers(1, 6), st.integers(1, 6))
def test_like_classes_add_up_to_one_class(demand: list[float], think: float, first: int, second: int) -> None:
    split = exact_mva_multiclass([demand, demand], (first, second), think)
    whole = exact_mva(demand, first + second, think)
    assert float(split.throughput_per_s.sum()) == pytest.approx(float(whole.throughput_per_s), rel=1e-10)
    np.testing.assert_allclose(split.mean_number.sum(axis=0), whole.mean_number, rtol=1e-9)


def test_an_empty_class_changes_nothing() -> None:
    network = exact_mva_multiclass([[1.0, 0.5], [3.0, 3.0]], (4, 0), 1.0)
    assert float(network.throughput_per_s[0]) == pytest.approx(float(exact_mva([1.0, 0.5], 4, 1.0).throughput_per_s))
    assert network.throughput_per_s[1] == 0.0
    assert exact_mva([1.0, 0.5], 0).throughput_per_s == 0.0
    assert closed_multi_server([1.0, 0.5], 2, 0).mean_number.sum() == 0.0


@given(DEMANDS, THINK, st.integers(1, 60))
def test_exact_analysis_lies_within_the_asymptotic_bounds(demand: list[float], think: float, population: int) -> None:
    """Lazowska et al. 1984, section 5.2; Little's law; one more client never lowers throughput."""
    network = exact_mva(demand, population, think)
    total, throughput = sum(demand), float(network.throughput_per_s)
    assert throughput <= min(1 / max(demand), population / (total + think)) * (1 + 1e-12)
    assert throughput >= population / (population * total + think) * (1 - 1e-12)
    assert throughput <= float(exact_mva(demand, population + 1, think).throughput_per_s) * (1 + 1e-12)
    assert_little(network, population, think)


@given(DEMANDS, THINK, st.integers(1, 60), st.integers(1, 16))
def test_more_servers_never_hurt(demand: list[float], think: float, population: int, servers: int) -> None:
    network = closed_multi_server(demand, servers, population, think)
    wider = closed_multi_server(demand, servers + 1, population, think)
    assert float(wider.throughput_per_s) >= float(network.throughput_per_s) * (1 - 1e-10)
    assert_little(network, population, think)


@pytest.mark.parametrize(("population", "servers"), [(1, 4), (50, 8), (300, 3), (5000, 64)])
def test_one_station_is_the_machine_repair_model(population: int, servers: int) -> None:
    network, exact = (
        closed_multi_server([0.7], [servers], population, 5.0),
        machine_repair(population, 5.0, 0.7, servers),
    )
    assert float(network.throughput_per_s) == pytest.approx(float(exact.throughput_per_s), rel=1e-10)
    assert float(network.mean_number[0]) == pytest.approx(float(exact.mean_number), rel=1e-10)


def test_saturation_keeps_all_digits() -> None:
    """Where load-dependent mean value analysis loses them: a thousand clients on sixteen servers and a fast one."""
    demand, population = [1.0, 0.01], 1000
    network = closed_multi_server(demand, [16, 1], population, 2.0)
    assert float(network.throughput_per_s) == pytest.approx(16.0, rel=1e-12)
    assert float(network.mean_number[1]) == pytest.approx(0.16 / 0.84, rel=1e-9)  # an open M/M/1 fed at 16 per second
    single = exact_mva([0.1, 0.1, 0.3], 300)
    np.testing.assert_allclose(closed_multi_server([0.1, 0.1, 0.3], 1, 300).mean_number, single.mean_number, rtol=1e-11)


def test_a_station_that_collapses_under_load_needs_the_logarithms() -> None:
    """One station and thought are a birth-death chain: here with two far-apart likely states."""
    population, think = 1000, 150.0
    speed = np.concatenate([np.linspace(1.0, 10.0, 20), np.ones(population - 20)])
    steps = np.log((population - np.arange(population)) / think / speed)
    weights = np.concatenate([[0.0], np.cumsum(steps)])
    shares = np.exp(weights - weights.max())
    mean = float(shares @ np.arange(population + 1) / shares.sum())
    network = closed_load_dependent([1.0], speed, population, think)
    assert float(network.mean_number[0]) == pytest.approx(mean, rel=1e-9)
    assert float(network.throughput_per_s) == pytest.approx((population - mean) / think, rel=1e-8)
    split = closed_load_dependent([1.0, 50.0], np.stack([speed, np.arange(1.0, population + 1)]), population, 100.0)
    assert float(split.throughput_per_s) == pytest.approx(float(network.throughput_per_s), rel=1e-9)


def test_draws_are_solved_one_by_one() -> None:
    demand, think = np.array([[1.0, 0.2], [0.5, 2.0], [0.3, 0.3]]), np.array([0.0, 3.0, 50.0])
    together = closed_multi_server(demand, [4, 1], 12, think), exact_mva(demand, 12, think)
    approximate = bard_schweitzer(demand[:, None, :], [12], think[:, None], [4, 1])
    for row in range(3):
        alone = closed_multi_server(demand[row], [4, 1], 12, think[row]), exact_mva(demand[row], 12, think[row])
        for many, one in zip(together, alone, strict=True):
            np.testing.assert_allclose(many.mean_number[row], one.mean_number, rtol=1e-12)
        single = bard_schweitzer(demand[row][None], [12], think[row], [4, 1])
        np.testing.assert_allclose(approximate.throughput_per_s[row], single.throughput_per_s, rtol=1e-8)


@given(st.lists(st.floats(0.01, 5.0), min_size=3, max_size=3), THINK, st.integers(1, 500), st.integers(1, 8))
def test_bard_schweitzer_is_exact_for_one_request_and_keeps_little(
    demand: list[float], think: float, population: int, servers: int
) -> None:
    alone = bard_schweitzer([demand], [1], think, servers)
    assert float(alone.throughput_per_s[0]) == pytest.approx(1 / (sum(demand) + think), rel=1e-9)
    network = bard_schweitzer([demand], [population], think, servers)
    assert_little(network, population, think)
    bound = min(servers / max(demand), population / (sum(demand) + think))
    assert float(network.throughput_per_s[0]) <= bound * (1 + 1e-6)


def test_bard_schweitzer_errs_no_more_than_documented() -> None:
    """Two hundred random networks of two classes: throughput within 15 %, half of them within 4 %."""
    random, errors = np.random.default_rng(1984), []
    for _ in range(200):
        demand, think = random.random((2, 3)) * random.choice([0.1, 1.0], size=(2, 3)), random.random(2) * 3
        population = [int(count) for count in random.integers(1, 15, 2)]
        exact, rough = exact_mva_multiclass(demand, population, think), bard_schweitzer(demand, population, think)
        errors.append(float(np.abs(rough.throughput_per_s / exact.throughput_per_s - 1).max()))
    assert 0.01 < np.median(errors) < 0.04
    assert 0.05 < max(errors) < 0.15


def test_seidmann_errs_no_more_than_documented() -> None:
    """Three hundred random networks with up to 16 servers a station: throughput within 10 %, response within 25 %."""
    random, rates, responses = np.random.default_rng(1987), [], []
    for _ in range(300):
        demand, think, servers = random.random(3), random.random() * 10, random.choice([1, 2, 4, 8, 16], 3)
        clients = int(random.integers(1, 80))
        exact = closed_multi_server(demand, servers, clients, think)
        rough = bard_schweitzer([demand], [clients], think, servers)
        rates.append(abs(float(rough.throughput_per_s[0] / exact.throughput_per_s) - 1))
        responses.append(abs(float(rough.response_s[0] / exact.response_s) - 1))
    assert 0.03 < max(rates) < 0.10
    assert 0.10 < max(responses) < 0.25
    assert np.median(responses) < 0.03


def test_bard_schweitzer_delay_stations_hold_no_queue() -> None:
    network = bard_schweitzer([[1.0, 4.0]], [20], 1.0, servers=[1, 3], delay=[False, True])
    assert float(network.station_response_s[0, 1]) == 4.0
    folded = bard_schweitzer([[1.0]], [20], 5.0)
    assert float(network.throughput_per_s[0]) == pytest.approx(float(folded.throughput_per_s[0]), rel=1e-8)


def test_jackson_with_feedback() -> None:
    """One M/M/1 whose output returns with probability 1/4: rate 4/3; then a tandem into two servers."""
    network = jackson([0.6, 0.0], [[0.25, 0.75], [0.0, 0.0]], [1.0, 2.0], [1, 2])
    np.testing.assert_allclose(network.arrival_rate_per_s, [0.8, 0.6], rtol=1e-13)
    np.testing.assert_allclose(network.utilisation, [0.8, 0.6], rtol=1e-13)
    np.testing.assert_allclose(network.mean_number, [4.0, float(mmc(0.6, 2.0, 2).mean_number)], rtol=1e-12)
    assert float(network.response_s) == pytest.approx((4.0 + float(mmc(0.6, 2.0, 2).mean_number)) / 0.6, rel=1e-12)


@given(st.lists(st.floats(0.0, 1.0), min_size=9, max_size=9), st.lists(st.floats(0.1, 2.0), min_size=3, max_size=3))
def test_jackson_balances_flows(cells: list[float], external: list[float]) -> None:
    routing = np.reshape(cells, (3, 3)) * 0.3
    network = jackson(external, routing, [0.01, 0.02, 0.03], 2)
    leaving = network.arrival_rate_per_s * (1 - routing.sum(axis=1))
    assert float(leaving.sum()) == pytest.approx(sum(external), rel=1e-10)


def test_jackson_overload_stays_where_it_is() -> None:
    network = jackson(np.array([[0.5, 0.5], [2.0, 0.5]]), np.zeros((2, 2)), [1.0, 1.0])
    np.testing.assert_allclose(network.mean_number, [[1.0, 1.0], [inf, 1.0]], rtol=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: exact_mva([-1.0], 3), "-1 is not a demand in seconds"),
        (lambda: bard_schweitzer([[1.0]], [2], servers=2.5), "2.5 is not a number of servers: it must be a whole"),
        (lambda: exact_mva([1.0], cast("int", [1, 2])), "a population of shape"),
        (lambda: exact_mva([0.0], 3), "0 is not a cycle time"),
        (lambda: exact_mva([1.0, 2.0], 3, delay=[True]), "1 delay marks do not fit 2 stations"),
        (
            lambda: exact_mva_multiclass([[1.0], [1.0]], (2000, 2000)),
            "over a million combinations: use bard_schweitzer",
        ),
        (lambda: exact_mva_multiclass([1.0], (2,)), "lack an axis"),
        (lambda: bard_schweitzer([[1.0]], [1, 2]), "do not fit 1 classes"),
        (lambda: closed_load_dependent([1.0], [[1.0, 2.0]], 3), "2 rates do not cover a population of 3"),
        (lambda: closed_load_dependent([0.0], [[1.0, 2.0]], 2), "0 is not a cycle time"),
        (lambda: closed_load_dependent([1.0], [[1.0, 0.0]], 2), "0 is not a rate: it must be above 0"),
        (lambda: jackson([1.0], [[1.0]], [1.0]), "let every path leave"),
        (lambda: jackson([1.0, 1.0], [[0.9, 0.9], [0.0, 0.0]], [1.0, 1.0]), "1.8 is not a sum of routing prob"),
        (lambda: jackson([1.0, 1.0], [[0.5]], [1.0, 1.0]), "make it square"),
    ],
)
def test_bad_arguments_are_named_with_their_rule(call: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()
