"""Pauses and background work in the analytic solver: closed forms where there are any, else simulation."""

from dataclasses import replace

import numpy as np
import pytest

from capplan.models.analytic import Analysis
from capplan.models.distribution import Deterministic, Distribution, Exponential, Lognormal
from capplan.models.interruptions import interruption_wait, mean_speed
from capplan.models.network import Network
from capplan.models.operating_point import LARGEST_LOSS, capacity_per_s, solve
from capplan.models.station import Background, Host, Pauses, Station
from capplan.models.step import Sequence, Visit
from capplan.models.traffic import Open, RequestClass
from capplan.simulator.draws import DrawRun, simulate_draws

SERVICE_S, EVERY_S, LENGTH_S = 0.004, 1.0, 0.06
SERVICE = Exponential(SERVICE_S)
PAUSES = Pauses(Exponential(EVERY_S), Exponential(LENGTH_S))


def network(rate_per_s: float, station: Station, law: Distribution = SERVICE) -> Network:
    return Network("one", (station,), (RequestClass("r", Visit(station.name, law)),), Open(rate_per_s, {"r": 1.0}))


def mean_response_s(made: Network) -> float:
    assert isinstance(made.traffic, Open)
    return float(solve(Analysis(made), made.traffic.rate_per_s).response_s("r")[0])


def paused_queue_s(rate_per_s: float, second_moment_s2: float) -> float:
    """Mean response of an M/G/1 queue whose server is interrupted (Avi-Itzhak and Naor 1963, model A).

    A service takes a completion time C, with E[C] = E[S] (1 + n E[L]) and
    E[C^2] = E[S^2] (1 + n E[L])^2 + E[S] n E[L^2] when pauses begin at rate n; who comes to an idle server may find
    it paused.
    """
    onset, longer = 1 / EVERY_S, 1 + LENGTH_S / EVERY_S
    length2 = 2 * LENGTH_S**2
    completion2 = second_moment_s2 * longer**2 + SERVICE_S * onset * length2
    busy = rate_per_s * SERVICE_S * longer
    found_paused = onset * length2 / 2 / longer
    return SERVICE_S * longer + rate_per_s * completion2 / 2 / (1 - busy) + found_paused


@pytest.mark.parametrize("rate_per_s", [0.01, 60.0, 150.0, 225.0])
@pytest.mark.parametrize("exponential", [True, False])
def test_one_server_with_pauses_is_exact(rate_per_s: float, exponential: bool) -> None:
    law: Distribution = Exponential(SERVICE_S) if exponential else Deterministic(SERVICE_S)
    expected = paused_queue_s(rate_per_s, (1 + exponential) * SERVICE_S**2)

    assert mean_response_s(network(rate_per_s, Station("s", 1, pauses=(PAUSES,)), law)) == pytest.approx(expected)


def test_shared_server_with_pauses_is_that_of_exponential_services() -> None:
    """The number in an M/M/1 queue has the same law in whatever order it is served."""
    shared = network(150.0, Station("s", 1, "ps", pauses=(PAUSES,)), Deterministic(SERVICE_S))

    assert mean_response_s(shared) == pytest.approx(paused_queue_s(150.0, 2 * SERVICE_S**2))


def test_the_mean_speed_is_what_is_left() -> None:
    halved = Background(Deterministic(3.0), Deterministic(1.0), 0.5)
    rare = Pauses(Deterministic(9.0), Deterministic(1.0), name="other")

    assert mean_speed(Station("s", 1)) == 1
    assert mean_speed(Station("s", 1, pauses=(PAUSES, rare))) == pytest.approx(0.9 / 1.06)
    assert mean_speed(Station("s", 1, background=(halved,))) == pytest.approx(1 - 0.25 * 0.5)


def test_capacity_is_what_pauses_and_the_host_leave() -> None:
    paused = Station("s", 4, "ps", pauses=(PAUSES,))
    bound = 4 / SERVICE_S / 1.06

    assert float(np.max(capacity_per_s(Analysis(network(1.0, paused)), LARGEST_LOSS))) == pytest.approx(bound, rel=1e-5)
    two = replace(
        network(1.0, Station("s", 4, "ps")),
        stations=(Station("s", 4, "ps", host="h"), Station("t", 4, "ps", host="h")),
        classes=(RequestClass("r", Sequence((Visit("s", Exponential(0.004)), Visit("t", Exponential(0.006))))),),
        hosts=(Host("h", 4),),
    )
    assert float(np.max(capacity_per_s(Analysis(two), LARGEST_LOSS))) == pytest.approx(400.0, rel=1e-5)
    assert Analysis(two).load("t") == pytest.approx(1 / 400)


def test_what_takes_less_than_is_left_makes_nobody_wait() -> None:
    half = Background(Exponential(9.0), Exponential(1.0), 0.5)
    station = Station("s", 1, background=(half,))

    assert float(np.max(interruption_wait(station, np.array([0.49])).mean)) == 0
    assert float(np.max(interruption_wait(station, np.array([0.6])).mean)) > 0


@pytest.mark.parametrize("law", [Exponential(0.05), Lognormal(0.05, 2.0)])
@pytest.mark.parametrize(("servers", "load"), [(1, 0.5), (4, 0.8)])
def test_against_simulation(law: Distribution, servers: int, load: float) -> None:
    """Several servers are an approximation; here within 8 %.

    Sixteen runs of 500 s; the half-width of six standard errors is added, so that a correct solver fails once in a
    billion and one that is a third off is found.
    """
    station = Station("s", servers, "ps", pauses=(Pauses(Exponential(2.0), law),))
    made = network(load * servers / SERVICE_S, station)
    runs = [DrawRun(0, number, 505.0, 5.0) for number in range(16)]
    means = np.array(simulate_draws(made, runs, lambda run: run.report("r").intended.mean_s, seed=1))
    error = 6 * float(means.std(ddof=1)) / 4

    assert error < 0.25 * means.mean()
    assert mean_response_s(made) == pytest.approx(float(means.mean()), abs=0.08 * float(means.mean()) + error)
