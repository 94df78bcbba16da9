"""Cases that random networks rarely reach: both engines must give the same run, request by request."""

from dataclasses import replace

import pytest
from tests.simulator.same_path import assert_same
from tests.simulator.small_networks import ms, visit, wait

from capplan.models.language.distribution import Exponential
from capplan.models.language.network import Network
from capplan.models.language.station import Background, Host, Pauses, Pool, RateTable, Station
from capplan.models.language.step import (
    Acquire,
    CountdownLatch,
    Delay,
    ForkJoin,
    Group,
    Route,
    Sequence,
    Signal,
    Step,
    Visit,
)
from capplan.models.language.traffic import Event, Open, Poisson, RequestClass, Retry, Session, Timeline, Trace
from capplan.simulator.compiled import engine as compiled
from capplan.simulator.reference import engine as reference

A, B = Station("a", 1, "ps"), Station("b", 1, "ps")
TWICE = Trace((0.0, 1.0))


def network(
    flow: Step, rate_per_s: float, *stations: Station, arrivals: Trace | Poisson = TWICE, **more: object
) -> Network:
    request = RequestClass("ask", flow)
    traffic = Open(rate_per_s, {"ask": 1.0}, arrivals)
    return Network("case", stations, (request,), traffic, **more)  # type: ignore[arg-type] # fields of many types


def compare(case: Network, duration_s: float = 2.0, warmup_s: float = 0.0) -> None:
    plain = reference.simulate(case, duration_s, seed=5, warmup_s=warmup_s)
    fast = compiled.simulate(case, duration_s, seed=5, warmup_s=warmup_s, trace=True)
    assert len(plain.requests.status) > 1
    assert_same(plain, fast)


def seconds(mean_s: float) -> Exponential:
    return Exponential(mean_s)


@pytest.mark.parametrize(
    ("then", "event"),
    [
        (wait(1, "late"), Event(0.002, "scale_delay", "late", 3.0)),
        (visit(1, "b"), Event(0.002, "down", "b")),
    ],
)
def test_a_change_of_the_timeline_comes_before_a_visit_that_ends_at_its_tick(then: Step, event: Event) -> None:
    compare(network(Sequence((visit(2, "a"), then)), 100.0, A, B, timeline=Timeline((event,))))


def test_a_change_at_the_end_of_the_traffic_stops_visits_that_nobody_waits_for() -> None:
    outage = Timeline((Event(1.0, "down", "b"),))
    compare(network(ForkJoin((Visit("b", seconds(0.1)),), 0), 50.0, A, B, arrivals=Poisson(), timeline=outage), 1.0)


def test_a_visit_that_nobody_waits_for_queues_behind_those_who_came_first() -> None:
    queue = Station("a", 1, expiry_s=1.0)
    flow = Sequence((visit(2, "a"), ForkJoin((visit(1, "a"),), 0)))
    compare(network(flow, 400.0, queue, arrivals=Poisson()))


def test_a_sticky_session_picks_anew_when_all_its_targets_are_down() -> None:
    targets = (Sequence((wait(100), visit(1, "a"))), Sequence((wait(100), visit(10, "b"))))
    outage = [Event(0.3, "down", "a"), Event(0.3, "down", "b"), Event(0.45, "up", "a"), Event(0.45, "up", "b")]
    session = Session("talk", ("ask",) * 6, (ms(50),) * 5, "sticky")
    case = network(Route("round_robin", targets), 300.0, A, B, timeline=Timeline(tuple(outage)), sessions=(session,))
    compare(replace(case, traffic=Open(300.0, {"talk": 1.0})), 1.0)


@pytest.mark.parametrize("flow", [Delay(seconds(1.0)), Acquire("pool", Delay(seconds(1.0)))])
def test_thousands_under_way_without_a_station(flow: Step) -> None:
    compare(network(flow, 3000.0, arrivals=Poisson(), pools=(Pool("pool", 3),)), 1.0)


@pytest.mark.parametrize(
    "station",
    [
        Station("a", 2, "ps"),
        Station("a", 2),
        Station("a", 2, expiry_s=0.5),
        Station("a", 4, "ps", RateTable((1.0, 1.0, 0.5, 0.9))),
        Station("a", 2, "ps", pauses=(Pauses(seconds(0.1), seconds(0.05)),), host="machine"),
        Station("a", 2, background=(Background(seconds(0.2), seconds(0.1), 0.4),), host="machine"),
    ],
    ids=["ps", "fcfs", "expiry", "rate", "pauses", "background"],
)
def test_overload_makes_room(station: Station) -> None:
    """Thousands inside, and all of them out again: arrays grow, and a list of services becomes a heap and back."""
    flow = Sequence((Visit("a", seconds(0.004)), ForkJoin((Visit("b", seconds(0.001)), wait(1)), 1)))
    case = network(flow, 2500.0, station, B, arrivals=Poisson(), hosts=(Host("machine", 1),))
    compare(case, 0.8, warmup_s=0.2)


def test_a_request_that_never_ends_is_one_of_its_own_class() -> None:
    """The second request of a session holds the only unit and waits for another one."""
    classes = (RequestClass("ask", wait(2)), RequestClass("stuck", Acquire("pool", Acquire("pool", wait(1)))))
    session = Session("talk", ("ask", "stuck"), (ms(5),))
    traffic = Open(100.0, {"talk": 1.0})
    compare(Network("case", (A,), classes, traffic, pools=(Pool("pool", 1),), sessions=(session,)), 1.0)


def test_a_signal_after_a_visit_that_follows_a_wait() -> None:
    signalling = ForkJoin((Sequence((visit(2, "a"), Signal("done"))),), 0)
    flow = Sequence((visit(1, "b"), wait(1), CountdownLatch((Group("done", 1),), signalling), wait(1)))
    compare(network(flow, 300.0, A, B, arrivals=Poisson()))


def test_overload_with_timeouts_retries_and_an_outage() -> None:
    request = RequestClass("ask", Visit("a", seconds(0.003)), timeout_s=0.05, retry=Retry(3, 0.01, 2.0))
    outage = Timeline((Event(0.3, "down", "a"), Event(0.6, "up", "a")), detection_s=0.1)
    case = network(request.flow, 1500.0, A, arrivals=Poisson(), timeline=outage)
    compare(replace(case, classes=(request,)), 1.0)


def test_more_lengths_of_waits_than_have_lists() -> None:
    branches = tuple(Sequence((wait(length), wait(25 - length))) for length in range(25))
    compare(network(ForkJoin(branches, 13), 200.0, arrivals=Poisson()), 1.0)


@pytest.mark.parametrize("factor", [1e-9, 700.0, 1.2e8])
def test_speeds_beyond_the_limits_are_cut(factor: float) -> None:
    event = Event(0.5, "speed", "a", factor)
    compare(network(visit(2, "a"), 100.0, A, arrivals=Poisson(), timeline=Timeline((event,))), 1.0)


def test_sums_do_not_overflow() -> None:
    """Some 50,000 wait for half an hour on average: 10**17 ticks, a hundred times."""
    many = Trace(tuple(i * 1e-3 for i in range(1, 3001)))
    case = network(visit(3_600_000, "a"), 1000.0, Station("a", 1), arrivals=many)
    run = compiled.simulate(case, 10_000.0, seed=1)
    compare(case, 10_000.0)  # sums of latencies stop at 2**63 - 1 ticks
    assert run.stations["a"].mean_wait_s == pytest.approx(3600 * 2999 / 2, rel=1e-3)


def test_a_network_with_another_rate_is_not_lowered_again() -> None:
    case = network(visit(2, "a"), 100.0, A, arrivals=Poisson())
    lowered = compiled.lowered(case)
    faster = replace(case, traffic=Open(300.0, {"ask": 1.0}))
    assert compiled.lowered(faster).base.code is lowered.base.code
    compare(faster)
    other = replace(case, stations=(Station("a", 2, "ps"),))
    assert compiled.lowered(other).base.code is not lowered.base.code


KEPT = Acquire("buffer", visit(3, "disk"))
TAKES = Acquire("buffer", wait(1))
SIGNALLED = CountdownLatch((Group("late", 1),), ForkJoin((Sequence((wait(3), Signal("late"))),), 0))


@pytest.mark.parametrize(
    ("flow", "drops"),
    [
        (Sequence((ForkJoin((KEPT,), 0), visit(3, "a"), TAKES)), 0),
        (ForkJoin((Sequence((visit(3, "a"), TAKES)), KEPT), 0), 2),
        (Sequence((ForkJoin((KEPT,), 0), SIGNALLED, TAKES)), 0),
    ],
)
def test_a_unit_that_a_visit_keeps_comes_back_in_the_order_of_events(flow: Step, drops: int) -> None:
    """All happens at one tick: the step before takes the unit too late, those behind it and their followers do not."""
    case = network(flow, 50.0, A, Station("disk", 1), pools=(Pool("buffer", 1, 0),))
    compare(case)
    assert compiled.simulate(case, 2.0, seed=5).pools["buffer"].drops == drops


@pytest.mark.parametrize("weights", [(1.0, 2.0), (3.0, 0.0), (0.0, 1.0)])
def test_weights_share_the_targets_and_those_of_one_that_is_down_go_to_the_other(weights: tuple[float, ...]) -> None:
    route = Route("random", (visit(1, "a"), visit(1, "b")), weights=weights)
    outage = Timeline((Event(0.5, "down", "b"), Event(1.0, "up", "b"), Event(1.2, "down", "a"), Event(1.6, "up", "a")))
    compare(network(route, 200.0, A, B, arrivals=Poisson(), timeline=outage))
