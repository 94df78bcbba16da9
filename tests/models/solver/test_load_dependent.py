"""One station whose speed depends on the number of requests inside: by hand, and against closed forms."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles.single_station import birth_death, machine_repair

from capplan.models.language.distribution import Exponential
from capplan.models.language.network import Network
from capplan.models.language.station import RateTable, Station
from capplan.models.language.step import Visit
from capplan.models.language.traffic import Open, RequestClass
from capplan.models.solver.analytic import Analysis
from capplan.models.solver.operating_point import capacity_per_s, solve
from capplan.models.solver.single_station import (
    busy_share,
    closed_throughputs_per_s,
    endless_speed,
    mean_number,
    mmc,
    speeds,
)

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
