"""Lanes in the analytic solver and in the language: closed forms, exact oracles, and what is refused."""

from collections.abc import Sequence as Several

import numpy as np
import pytest
from tests.oracles.shortest_queue import mean_response

from capplan.errors import InputError
from capplan.models.language.distribution import Distribution, Erlang, Exponential
from capplan.models.language.network import Network
from capplan.models.language.station import Assignment, Differs, Pool, RateTable, Station
from capplan.models.language.step import Acquire, ForkJoin, Pick, Visit
from capplan.models.language.traffic import Open, RequestClass
from capplan.models.solver.analytic import Analysis
from capplan.models.solver.operating_point import OperatingPoint, solve
from capplan.models.solver.single_station import mgm_mean_wait_s, mmc

LOADS = (0.3, 0.5, 0.7, 0.8, 0.9)


def solved(station: Station, loads: Several[float], demand: Distribution | None = None) -> OperatingPoint:
    """Solve one station at utilisations, with services of 1 s."""
    flow = Visit(station.name, demand or Exponential(1.0))
    network = Network("lanes", (station,), (RequestClass("ask", flow),), Open(1.0, {"ask": 1.0}))
    return solve(Analysis(network), station.servers * np.array(loads)[:, None])


def means_s(assignment: Assignment, servers: int, **more: object) -> list[float]:
    station = Station("server", servers, assignment=assignment, **more)  # type: ignore[arg-type] # fields of many types
    return [float(mean) for mean in solved(station, LOADS).response_s("ask")[:, 0]]


@pytest.mark.parametrize("discipline", ["fcfs", "ps"])
@pytest.mark.parametrize("servers", [1, 4, 24])
def test_random_lanes_are_m_m_1(discipline: str, servers: int) -> None:
    exact = mmc(np.array(LOADS), 1.0, 1).mean_response_s
    assert means_s("random", servers, discipline=discipline) == pytest.approx(exact)


def test_random_lanes_are_m_g_1() -> None:
    found = solved(Station("server", 6, assignment="random"), LOADS, Erlang(1.0, 4)).response_s("ask")[:, 0]
    assert found == pytest.approx(1 + mgm_mean_wait_s(np.array(LOADS), 1.0, 1, 0.25))


@pytest.mark.parametrize("discipline", ["fcfs", "ps"])
@pytest.mark.parametrize("servers", [2, 4, 16, 64])
def test_lanes_in_turn_are_near_erlang_arrivals(discipline: str, servers: int) -> None:
    """E_n/M/1, whose root gives the exact mean (Kleinrock 1975, 6.4): never shorter, and at most 3.4 % longer."""
    sigma = np.full(len(LOADS), 0.5)
    for _ in range(2000):
        sigma = (servers * np.array(LOADS) / (servers * np.array(LOADS) + 1 - sigma)) ** servers
    error = np.array(means_s("round_robin", servers, discipline=discipline)) * (1 - sigma) - 1
    assert np.all((error > 0) & (error < 0.034))


@pytest.mark.slow
@pytest.mark.parametrize("discipline", ["fcfs", "ps"])
@pytest.mark.parametrize("servers", [2, 3, 4])
def test_least_loaded_lanes_are_within_1_percent_of_the_shortest_queue(discipline: str, servers: int) -> None:
    exact = [mean_response(servers, load) for load in LOADS[:4]]
    assert means_s("least_loaded", servers, discipline=discipline)[:4] == pytest.approx(exact, rel=0.01)


@pytest.mark.parametrize("servers", [2, 8, 64])
def test_the_more_a_lane_knows_the_shorter_the_response(servers: int) -> None:
    order: tuple[Assignment, ...] = ("pooled", "least_loaded", "round_robin", "random")
    pooled, least_loaded, round_robin, random = (np.array(means_s(each, servers)) for each in order)
    assert np.all((pooled <= least_loaded) & (least_loaded < round_robin) & (round_robin < random))


def test_one_lane_is_one_server() -> None:
    for assignment in ("random", "round_robin", "least_loaded"):
        assert means_s(assignment, 1) == pytest.approx(means_s("pooled", 1))


def test_the_variance_of_sharing_one_server_is_exact_for_exponential_services() -> None:
    """(2 + rho) / (2 - rho) times the squared mean (Coffman, Muntz and Trotter 1970)."""
    for station in (Station("server", 1, "ps"), Station("server", 8, "ps", assignment="random")):
        (state,) = solved(station, LOADS).states
        mean, variance = state.mean_s["ask"][..., 0], state.variance_s2["ask"][..., 0]
        assert variance / mean**2 == pytest.approx((2 + np.array(LOADS)[:, None]) / (2 - np.array(LOADS)[:, None]))


def test_capacity_and_work_do_not_depend_on_the_assignment() -> None:
    for assignment in ("pooled", "random", "round_robin", "least_loaded"):
        station = Station("server", 4, assignment=assignment, count=3, exceptions=(Differs(1, servers=2),))
        flow = Pick("here", "server", "random", Visit("server", Exponential(1.0), member="here"))
        network = Network("lanes", (station,), (RequestClass("ask", flow),), Open(1.0, {"ask": 1.0}))
        assert Analysis(network).drift_per_s == pytest.approx(6.0)  # the first member is full


def test_members_with_lanes_of_another_speed_and_number() -> None:
    exceptions = (Differs(1, servers=2), Differs(2, speed=0.8))
    station = Station("server", 4, "ps", count=4, exceptions=exceptions, assignment="random")
    flow = Pick("here", "server", "random", Visit("server", Exponential(1.0), member="here"))
    network = Network("lanes", (station,), (RequestClass("ask", flow),), Open(4 * 1.6, {"ask": 1.0}))
    exact = (1 / (1 - 0.8) + 1 / (0.8 - 0.4) + 2 / (1 - 0.4)) / 4
    assert solve(Analysis(network), 4 * 1.6).response_s("ask") == pytest.approx(exact)


def test_several_speeds_depend_on_all_requests_and_need_one_queue() -> None:
    with pytest.raises(InputError, match="assignment 'pooled'"):
        Station("server", 2, rate=RateTable((1.0, 0.5)), assignment="random")


def test_a_pool_that_never_fills_changes_no_response_over_lanes() -> None:
    both = ForkJoin((Visit("a", Exponential(1.0)), Visit("b", Exponential(1.0))), 2)
    stations = tuple(Station(name, 4, "ps", assignment="random") for name in ("a", "b"))
    found = []
    for flow, pools in ((both, ()), (Acquire("threads", both), (Pool("threads", 500),))):
        made = Network("lanes", stations, (RequestClass("job", flow),), Open(2.8, {"job": 1.0}), pools=pools)
        point = solve(Analysis(made), 2.8)
        found.append((float(point.response_s("job")[0]), float(point.quantile_s(0.99, "job")[0])))
    (mean_s, p99_s), (inside_s, inside_p99_s) = found
    assert inside_s == pytest.approx(mean_s, rel=0.005)
    assert inside_p99_s == pytest.approx(p99_s, rel=0.1)
