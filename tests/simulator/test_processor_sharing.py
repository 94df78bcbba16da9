"""Processor sharing by hand, and tick by tick in exact fractions. Requests start at 1 ms."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.simulator.small_networks import MS, ends_ms, hold, ms, network, once, seq, statuses, visit, wait

from capplan.models.language.distribution import Deterministic
from capplan.models.language.network import Network
from capplan.models.language.station import Pool, Station
from capplan.models.language.step import ForkJoin, Route, Step, Visit
from capplan.models.language.traffic import Closed, RequestClass
from capplan.simulator.reference.engine import simulate
from capplan.simulator.reference.events import (
    EventKind,
    OrderedEnvironment,
    OrderedEvent,
    OrderedProcess,
    ProcessGenerator,
    request_rank,
    step_rank,
)
from capplan.simulator.reference.stations import ProcessorSharingStation, StationRecord, Window
from capplan.simulator.results.run import Run
from capplan.simulator.results.tally import Status, intervals


def shared(*flows: Step, servers: int = 1) -> Run:
    """Let client n do the n-th flow, once; the station shares its servers."""
    return once(Route("round_robin", flows), clients=len(flows), servers=servers, discipline="ps")


def test_ties_go_by_request_not_by_what_was_attained() -> None:
    """All in ticks: request 1 lacks nothing 10 ticks after its start, request 0 a third of a tick later."""
    server = [Visit("server", Deterministic(ticks / 1e9)) for ticks in (9, 10, 1, 1)]
    first = seq(wait(2 / MS), server[0])
    # Requests 1 to 3 have 4/3 after two ticks, and two of them leave. 9 ticks later request 0 has 9, request 1 10 1/3.
    flow = seq(Route("round_robin", (first, *server[1:])), Visit("next", ms(5)))
    request, traffic = RequestClass("ask", flow), Closed(4, ms(1), {"ask": 1.0})
    stations = (Station("server", 2, "ps"), Station("next", 1))
    run = simulate(Network("ties", stations, (request,), traffic), 0.0011, seed=1)
    # The next station serves requests 2 and 3 until 11 ms; 0 and 1 join it at one tick, in the order of their numbers.
    assert list(run.requests.end_ticks - MS) == [15 * MS + 2, 20 * MS + 2, 5 * MS + 2, 10 * MS + 2]


def test_ties_within_a_request_go_by_step() -> None:
    # Both branches leave the shared server at 5 ms; the first of them takes the unit, the second is dropped.
    fork = ForkJoin((seq(visit(2), hold(wait(1))), seq(visit(2), hold(wait(7)))), 1)
    run = once(fork, discipline="ps", pool=Pool("pool", 1, queue_limit=0))
    assert (ends_ms(run), statuses(run)) == ([6], [Status.COMPLETED])


def test_looks_are_not_counted_as_events() -> None:
    run = shared(visit(4), seq(wait(1), visit(4)), seq(wait(2), visit(1)))
    assert run.events == 3 + 2 + 3  # starts, delays, services


def test_report_of_several_servers_and_a_warm_up() -> None:
    # Three visits of 4 ms to two servers from 1 to 7 ms, again from 8 ms on; the window is from 5 to 10 ms.
    run = simulate(network(visit(4), clients=3, servers=2, discipline="ps"), 0.010, seed=1, warmup_s=0.005)
    report = run.stations["server"]
    assert report.visits == 3
    assert report.utilisation == pytest.approx(4 / 5)
    assert report.mean_number == pytest.approx(3 * 4 / 5)
    assert report.mean_queue == pytest.approx(1 * 4 / 5)
    assert report.mean_wait_s == pytest.approx(0.002)
    assert report.mean_response_s == pytest.approx(0.006)


def engine_ends(joins: list[tuple[int, int]], servers: int) -> list[int]:
    """Return the ticks at which visits (joining tick, demand) end at a station of the engine."""
    env = OrderedEnvironment()
    record = StationRecord(Window(intervals(0, 100)))
    station = ProcessorSharingStation(Station("server", servers, "ps"), 0, env, record, None)
    ends = [-1] * len(joins)

    def client(number: int, tick: int, demand: int) -> ProcessGenerator:
        yield OrderedEvent(env).at(tick, request_rank(number) + step_rank(EventKind.START, 0))
        yield station.visit(demand, request_rank(number) + step_rank(EventKind.SERVICE, 0))
        ends[number] = env.tick

    for number, (tick, demand) in enumerate(joins):
        OrderedProcess(env, client(number, tick, demand))
    env.run_all()
    return ends


def fraction_ends(joins: list[tuple[int, int]], servers: int) -> list[int]:
    """Return the same by taking from every visit inside, one tick after another, its share of the servers."""
    ends = [tick if demand == 0 else -1 for tick, demand in joins]
    missing = [Fraction(demand) for _, demand in joins]
    tick = 0
    while -1 in ends:
        inside = [n for n, (joined, _) in enumerate(joins) if joined <= tick and ends[n] < 0]
        tick += 1
        for n in inside:
            missing[n] -= Fraction(min(servers, len(inside)), len(inside))
            if missing[n] <= 0:
                ends[n] = tick
    return ends


@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 12)), min_size=1, max_size=12),
    st.integers(1, 5),
)
def test_every_end_is_the_first_tick_at_which_the_demand_is_attained(
    joins: list[tuple[int, int]], servers: int
) -> None:
    assert engine_ends(joins, servers) == fraction_ends(joins, servers)
