"""Lanes: what each assignment does, worked out by hand, and what queueing theory says of many requests.

Error rates and samples as in `agreement`.
"""

import pytest
from tests.oracles.shortest_queue import mean_response
from tests.simulator.agreement import assert_agrees, each, exp, replications
from tests.simulator.same_path import assert_same
from tests.simulator.small_networks import MS, arrivals, ms, seq, visit

from capplan.models.language.distribution import Deterministic
from capplan.models.language.network import Network
from capplan.models.language.station import Assignment, Background, Host, Pauses, Station
from capplan.models.language.step import Pick, Step, Visit
from capplan.models.language.traffic import Closed, Open, RequestClass
from capplan.models.solver.single_station import mmc
from capplan.simulator.compiled import engine as compiled
from capplan.simulator.reference import engine as reference
from capplan.simulator.results.run import Run

ONE_TWO_THREE = (1.0, 2.0, 3.0)


def run(flow: Step, station: Station, at_ms: tuple[float, ...] = ONE_TWO_THREE, *hosts: Host) -> Run:
    """Run both engines, which must agree."""
    network = Network("lanes", (station,), (RequestClass("ask", flow),), arrivals(at_ms), hosts=hosts)
    plain = reference.simulate(network, 0.1, seed=1)
    assert_same(plain, compiled.simulate(network, 0.1, seed=1, trace=True))
    return plain


def ends(found: Run) -> list[float]:
    return [tick / MS for tick in found.requests.end_ticks.tolist()]


@pytest.mark.parametrize(
    ("assignment", "expected"),
    [
        # Long visits take lanes 1, 2 and again 1, and the short ones 2, 1 and 2: that of the second waits until 21.
        ("round_robin", [13, 22, 22]),
        # At 11 each lane has one visit, so the first request's short one takes lane 1, behind the third's long one.
        ("least_loaded", [22, 13, 22]),
        # One queue: the short visits take the first free server.
        ("pooled", [13, 14, 22]),
    ],
)
def test_requests_stay_in_their_lane(assignment: Assignment, expected: list[float]) -> None:
    found = run(seq(visit(10), visit(1)), Station("server", 2, assignment=assignment))
    assert ends(found) == expected


def test_requests_share_their_lane_only() -> None:
    # The third shares lane 1 with the first, which has 8 of 10 ms left; the second has lane 2 to itself.
    found = run(visit(10), Station("server", 2, "ps", assignment="least_loaded"))
    assert ends(found) == [19, 12, 21]


def test_lanes_pause_together_and_the_pause_counts_once() -> None:
    # All stand still from 5 to 8 ms and from 13 to 16 ms.
    pauses = (Pauses(Deterministic(0.005), Deterministic(0.003)),)
    found = run(visit(10), Station("server", 2, pauses=pauses, assignment="round_robin"), (1.0, 2.0))
    assert ends(found) == [17, 18]
    assert found.stations["server"].paused_share == pytest.approx(0.36)


def test_background_work_slows_all_lanes() -> None:
    # From 4 to 8 ms at half speed: both lose 2 ms.
    slowed = (Background(Deterministic(0.004), Deterministic(0.004), 0.5),)
    found = run(visit(5), Station("server", 2, background=slowed, assignment="round_robin"), (1.0, 2.0))
    assert ends(found) == [8, 9]


def test_lanes_share_the_cores_of_their_host() -> None:
    # From 2 ms on two busy lanes share one core.
    station = Station("server", 2, host="machine", assignment="round_robin")
    assert ends(run(visit(2), station, (1.0, 2.0), Host("machine", 1))) == [4, 5]


def test_the_report_of_a_station_sums_up_its_lanes() -> None:
    report = run(visit(10), Station("server", 2, assignment="round_robin")).stations["server"]
    assert report.visits == 3
    assert report.servers == 2
    assert report.utilisation == pytest.approx(30 / 200)
    assert report.mean_queue == pytest.approx(8 / 100)


def test_random_lanes_are_keyed_by_the_step_and_not_by_the_layout() -> None:
    times_ms = tuple(float(time) for time in range(1, 21))
    alone = run(Visit("server", ms(10), "work"), Station("server", 4, assignment="random"), times_ms)
    member = Pick("here", "server", "first", Visit("server", ms(10), "work", "here"))
    assert ends(run(member, Station("server", 4, assignment="random", count=2), times_ms)) == ends(alone)


def theory(servers: int, load: float, assignment: Assignment, discipline: str = "fcfs", count: int = 20) -> list[Run]:
    station = Station("node", servers, discipline, assignment=assignment)  # type: ignore[arg-type]  # parametrized as text
    traffic = Open(servers * load, {"job": 1.0})
    network = Network("theory", (station,), (RequestClass("job", Visit("node", exp(1.0))),), traffic)
    return replications(network, 40_000 / servers, 1_000 / servers, count=count)


@pytest.mark.parametrize("discipline", ["fcfs", "ps"])
def test_random_lanes_are_queues_with_one_server(discipline: str) -> None:
    """A Poisson stream that is split at random is Poisson in every part."""
    runs = theory(4, 0.6, "random", discipline)
    assert_agrees(each(runs, lambda run: run.latency_mean_s()), float(mmc(0.6, 1.0, 1).mean_response_s), detects=0.05)


@pytest.mark.parametrize("discipline", ["fcfs", "ps"])
@pytest.mark.parametrize("servers", [pytest.param(2, marks=pytest.mark.slow), 8])
def test_lanes_in_turn_have_erlang_arrivals(servers: int, discipline: str) -> None:
    """E_n/M/1: of exponential services, the mean number does not depend on the discipline (Kleinrock 1975, 6.4)."""
    load, sigma = 0.7, 0.5
    for _ in range(200):
        sigma = (servers * load / (servers * load + 1 - sigma)) ** servers
    runs = theory(servers, load, "round_robin", discipline)
    assert_agrees(each(runs, lambda run: run.latency_mean_s()), 1 / (1 - sigma), detects=0.05)


@pytest.mark.parametrize("discipline", ["fcfs", "ps"])
@pytest.mark.parametrize("servers", [pytest.param(2, marks=pytest.mark.slow), 3])
def test_the_least_loaded_lane_is_the_shortest_queue(servers: int, discipline: str) -> None:
    runs = theory(servers, 0.7, "least_loaded", discipline)
    expected = mean_response(servers, 0.7)
    assert expected > float(mmc(servers * 0.7, 1.0, servers).mean_response_s)  # Winston 1977
    assert_agrees(each(runs, lambda run: run.latency_mean_s()), expected, detects=0.05)


def test_closed_clients_in_lanes_leave_some_lanes_idle() -> None:
    """Two clients without think time in two random lanes: one is idle half of the time, so 1.5 are busy."""
    station = Station("node", 2, assignment="random")
    traffic = Closed(2, Deterministic(0.0), {"job": 1.0})
    network = Network("closed", (station,), (RequestClass("job", Visit("node", exp(1.0))),), traffic)
    runs = replications(network, 2_000, 100)
    # Both in one lane: one leaves at rate 1 and moves to the other lane with probability 1/2. One in each lane: one
    # leaves at rate 2, and joins the other with probability 1/2. So p = P(together): p / 2 = (1 - p).
    assert_agrees(each(runs, lambda run: run.stations["node"].utilisation), (2 - 2 / 3) / 2, detects=0.03)
