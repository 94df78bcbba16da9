"""Timelines by hand: down and up, detection, cold starts, speeds, delays, routes."""

import pytest
from tests.simulator.small_networks import (
    COMPLETED,
    DROPPED,
    MS,
    UNFINISHED,
    Timed,
    arrivals,
    arriving,
    ends_ms,
    hold,
    ms,
    seq,
    statuses,
    timeline,
    visit,
    wait,
)

from capplan.models.language.distribution import Deterministic
from capplan.models.language.network import Network
from capplan.models.language.station import Host, Pauses, Station
from capplan.models.language.step import Delay, ForkJoin, Hedge, Route, Step
from capplan.models.language.traffic import Closed, RequestClass, Session, Timeline
from capplan.simulator.reference.engine import simulate
from capplan.simulator.specification.streams import name_key, request_key, root_key, source_key, uniform

DOWN_3_TO_6 = ((3, "down", "server"), (6, "up", "server"))


def test_what_is_there_stands_still_and_newcomers_queue() -> None:
    run = arriving([(1, visit(4)), (4, visit(1))], timeline=timeline(*DOWN_3_TO_6))
    assert ends_ms(run) == [8, 9]
    # A visit takes a free server also while the station is stopped; without demand that takes no time.
    assert ends_ms(arriving([(4, visit(1)), (5, visit(0))], timeline=timeline(*DOWN_3_TO_6))) == [7, 7]
    assert ends_ms(arriving([(5, visit(0))], timeline=timeline(*DOWN_3_TO_6))) == [5]
    shared = arriving([(1, visit(4)), (4, visit(0))], Station("server", 1, "ps"), timeline=timeline(*DOWN_3_TO_6))
    assert ends_ms(shared) == [8, 4]


def test_visits_are_refused_where_a_station_is_known_to_be_down() -> None:
    # Down at 3, known at 4, up at 6: at each of these ticks the change comes before what starts.
    flows: list[Timed] = [(time, visit(1)) for time in (2, 3, 3.5, 4, 5, 6)]
    run = arriving(flows, Station("server", 3), timeline=timeline(*DOWN_3_TO_6, detection=1))
    assert statuses(run) == [COMPLETED, COMPLETED, COMPLETED, DROPPED, DROPPED, COMPLETED]
    assert ends_ms(run) == [3, 7, 7, 4, 5, 7]
    assert run.stations["server"].drops == 2
    assert run.stations["server"].visits == 4


def test_a_known_outage_refuses_visits_without_demand_too() -> None:
    run = arriving([(5, visit(0))], timeline=timeline(*DOWN_3_TO_6, detection=1))
    assert (ends_ms(run), statuses(run)) == ([5], [DROPPED])


def test_an_outage_that_is_over_is_not_detected() -> None:
    # Down from 1 to 2, and again from 2.5 on: that is known at 4.5 ms, not at 3.
    changes = timeline((1, "down", "server"), (2, "up", "server"), (2.5, "down", "server"), detection=2)
    run = arriving([(4, visit(1)), (5, visit(1))], timeline=changes)
    assert (ends_ms(run), statuses(run)) == ([-1 / MS, 5], [UNFINISHED, DROPPED])


def test_detection_at_once_comes_before_the_next_event_of_that_tick() -> None:
    down, up = (3, "down", "server"), (3, "up", "server")
    assert statuses(arriving([(3, visit(1))], timeline=timeline(down, detection=0))) == [DROPPED]
    assert ends_ms(arriving([(3, visit(1))], timeline=timeline(down, up, detection=0))) == [4]


def test_a_place_that_is_up_or_down_already_stays_so() -> None:
    cold = {"cold_start": 4, "cold_speed": 0.5}
    assert ends_ms(arriving([(1, visit(2))], timeline=timeline((1, "up", "server"), **cold))) == [3]
    # The second `down` does not put off what is known of the first.
    twice = timeline((1, "down", "server"), (2, "down", "server"), (9, "up", "server"), detection=2)
    assert statuses(arriving([(2.5, visit(1)), (3.5, visit(1))], timeline=twice)) == [COMPLETED, DROPPED]


def test_a_cold_place_is_slow() -> None:
    # Cold from 6 to 8 ms: half a visit is done by then.
    cold = {"cold_start": 2, "cold_speed": 0.5}
    assert ends_ms(arriving([(7, visit(4))], timeline=timeline(*DOWN_3_TO_6, **cold))) == [11.5]


def test_a_place_that_goes_down_again_starts_cold_anew() -> None:
    # Up at 6, down at 7, up at 8: cold until 12, and the end of the first cold start at 10 means nothing.
    changes = ((3, "down", "server"), (6, "up", "server"), (7, "down", "server"), (8, "up", "server"))
    run = arriving([(6, visit(4))], timeline=timeline(*changes, cold_start=4, cold_speed=0.5))
    assert ends_ms(run) == [12 + 1.5]


def test_the_last_speed_holds() -> None:
    # Two done by 3 ms, six by 5, the last two at half speed; of two events at one time the later in the list counts.
    changes = timeline((3, "speed", "server", 2.0), (5, "speed", "server", 4.0), (5, "speed", "server", 0.5))
    assert ends_ms(arriving([(1, visit(8))], timeline=changes)) == [9]
    shuffled = timeline((5, "speed", "server", 0.5), (3, "speed", "server", 2.0))
    assert ends_ms(arriving([(1, visit(8))], timeline=shuffled)) == [9]


def test_a_host_and_its_stations_multiply() -> None:
    station, host = Station("server", 1, host="machine"), (Host("machine", 1),)
    changes = timeline((3, "speed", "server", 0.5), (5, "speed", "machine", 0.5))
    assert ends_ms(arriving([(1, visit(4))], station, hosts=host, timeline=changes)) == [9]  # 2, then 1, then 1
    changes = timeline((3, "down", "machine"), (6, "up", "machine"), cold_start=2, cold_speed=0.5)
    assert ends_ms(arriving([(1, visit(4))], station, hosts=host, timeline=changes)) == [9]  # 2, none, 1, then 1
    # Both are down: it goes on when both are up.
    changes = timeline((3, "down", "machine"), (4, "down", "server"), (6, "up", "machine"), (7, "up", "server"))
    assert ends_ms(arriving([(1, visit(4))], station, hosts=host, timeline=changes)) == [9]


def test_stations_of_a_known_outage_of_their_host_refuse() -> None:
    station = Station("server", 2, host="machine")
    changes = timeline((3, "down", "machine"), (6, "up", "machine"), detection=1)
    run = arriving([(3.5, visit(1)), (4, visit(1))], station, hosts=(Host("machine", 1),), timeline=changes)
    assert (ends_ms(run), statuses(run)) == ([7, 4], [COMPLETED, DROPPED])


def test_a_station_that_is_down_leaves_the_cores_to_others() -> None:
    stations = (Station("a", 1, host="machine"), Station("b", 1, host="machine"))
    flows: list[Timed] = [(1, visit(4, "a")), (1, visit(4, "b"))]
    changes = timeline((3, "down", "a"), (5, "up", "a"))
    # Half each until 3 (1 done), b alone until 5 (3 done), half each until 7 (b is done), a alone.
    assert ends_ms(arriving(flows, *stations, hosts=(Host("machine", 1),), timeline=changes)) == [9, 7]


def test_a_run_ends_with_what_stands_still_for_good() -> None:
    resting = Station("server", 1, pauses=(Pauses(ms(3), ms(2)),))
    run = arriving([(1, visit(4))], resting, timeline=timeline((2, "down", "server")), until_ms=20)
    assert statuses(run) == [UNFINISHED]
    assert run.stations["server"].utilisation == pytest.approx(19 / 20)


def test_a_delay_takes_the_factor_that_holds_when_it_starts() -> None:
    flows: list[Timed] = [(1, wait(4, "wire")), (3, seq(wait(2), wait(4, "wire"))), (3, wait(4, "wire"))]
    changes = timeline((3, "scale_delay", "wire", 1.5), (5, "scale_delay", "wire", 0.5))
    # At 5 ms the change comes before the end of the other delay, so the second has the last factor already.
    assert ends_ms(arriving(flows, timeline=changes)) == [5, 7, 9]


def test_scaled_delays_round_halves_to_even() -> None:
    flows: list[Timed] = [(1, Delay(Deterministic(ticks * 1e-9), "wire")) for ticks in (1, 3, 5, 7)]
    run = arriving(flows, timeline=timeline((0, "scale_delay", "wire", 0.5)))
    assert list(run.requests.end_ticks - MS) == [0, 2, 2, 4]


AB = (Station("a", 9), Station("b", 9), Station("c", 9))
A_DOWN = timeline((2, "down", "a"), (20, "up", "a"), detection=1)


def took_ms(flow: Step, *times_ms: float, changes: Timeline = A_DOWN) -> list[float]:
    """Return how long requests that arrive at these times take."""
    request, traffic = RequestClass("ask", flow), arrivals(times_ms)
    run = simulate(Network("routes", AB, (request,), traffic, timeline=changes), 1.0, seed=1)
    assert DROPPED not in statuses(run)
    return [took / MS for took in run.requests.end_ticks - run.requests.start_ticks]


TARGETS = (visit(1, "a"), visit(2, "b"), visit(3, "c"))


def test_round_robin_takes_in_turn_those_that_are_not_known_to_be_down() -> None:
    # Known to be down from 3 ms on. Request k, from 0, takes number k modulo 3 of all, or k modulo 2 of b and c.
    assert took_ms(Route("round_robin", TARGETS), 1, 3, 4, 5, 6, 7, 20, 21) == [1, 3, 2, 3, 2, 3, 1, 2]


def test_those_who_come_before_it_is_known_go_to_a_place_that_is_down() -> None:
    assert took_ms(Route("round_robin", TARGETS), 2.5) == [20 + 1 - 2.5]


def test_random_takes_each_of_the_others_with_equal_probability() -> None:
    """The number that decides is the same: its third of all targets, or its half of those that are left."""
    source = source_key(root_key(1, 0), "source", "ask")
    drawn = [uniform(request_key(source, number, 0), name_key("step", "/0")) for number in range(16)]
    flow, times = Route("random", TARGETS), range(3, 19)
    assert took_ms(flow, *times, changes=Timeline()) == [1 + int(3 * number) for number in drawn]
    assert took_ms(flow, *times) == [2 + int(2 * number) for number in drawn]
    assert {int(2 * number) for number in drawn} == {0, 1}


def test_random_by_weight_takes_the_others_in_proportion_and_a_standby_when_no_other_is_left() -> None:
    source = source_key(root_key(1, 0), "source", "ask")
    drawn = [uniform(request_key(source, number, 0), name_key("step", "/0")) for number in range(16)]
    times = range(3, 19)
    by_weight = Route("random", TARGETS, weights=(1, 2, 1))
    whole = [1 if 4 * number < 1 else 2 if 4 * number < 3 else 3 for number in drawn]
    assert took_ms(by_weight, *times, changes=Timeline()) == whole
    assert set(whole) == {1, 2, 3}
    assert took_ms(by_weight, *times) == [2 if 3 * number < 2 else 3 for number in drawn]
    assert took_ms(Route("random", TARGETS, weights=(2, 1, 0)), *times) == [2] * 16
    standbys = Route("random", TARGETS, weights=(1, 0, 0))
    assert took_ms(standbys, *times, changes=Timeline()) == [1] * 16
    assert took_ms(standbys, *times) == [2 + int(2 * number) for number in drawn]


def test_token_aware_takes_the_next_one() -> None:
    """The last target's next one is the first, and what goes elsewhere anyway goes there still."""
    flow, times = Route("token_aware", TARGETS), range(3, 19)
    before = took_ms(flow, *times, changes=Timeline())
    assert {1, 2, 3} == set(before)
    assert took_ms(flow, *times) == [2 if took == 1 else took for took in before]
    c_down = timeline((2, "down", "c"), detection=1)
    assert took_ms(flow, *times, changes=c_down) == [1 if took == 3 else took for took in before]


def test_first_takes_the_first_of_the_others() -> None:
    assert took_ms(Route("first", TARGETS), 1, 3, 19, 20) == [1, 2, 2, 1]


def test_least_loaded_and_latency_ranked_pick_among_the_others() -> None:
    assert took_ms(Route("least_loaded", TARGETS), 3, 3, 3, 20) == [2, 3, 2, 1]
    # Each is tried once before; a is the fastest, but known to be down.
    assert took_ms(Route("latency_ranked", TARGETS), 0.1, 1.2, 3.3, 7, 21) == [1, 2, 3, 2, 1]


def test_when_all_are_known_to_be_down_the_policy_picks_as_ever() -> None:
    changes = timeline((2, "down", "a"), (2, "down", "b"), detection=1)
    flow = Route("round_robin", (visit(1, "a"), visit(1, "b")))
    run = arriving([(3, flow), (4, flow)], *AB, timeline=changes)
    assert statuses(run) == [DROPPED, DROPPED]


@pytest.mark.parametrize(
    "way",
    [
        seq(wait(0), seq(), visit(1, "a"), wait(0)),
        ForkJoin((visit(1, "a"), visit(1, "a")), 1),
        Hedge(visit(1, "a"), 0.5, visit(1, "a")),
        Route("random", (visit(1, "a"), seq(visit(1, "a"), visit(0, "b")))),
    ],
    ids=["sequence", "fork-join", "hedge", "route"],
)
def test_the_way_into_a_target_counts(way: Step) -> None:
    assert took_ms(Route("round_robin", (way, visit(2, "b"))), 1, 3, 5, 7) == [1, 2, 2, 2]


def test_a_target_whose_way_in_is_up_is_taken() -> None:
    way = seq(visit(1, "b"), ForkJoin((visit(1, "a"),), 0))
    assert took_ms(Route("round_robin", (way, visit(2, "b"))), 3, 5, 7) == [1, 2, 1]


def test_a_sticky_session_picks_anew_and_remembers_that() -> None:
    flow = Route("round_robin", (visit(1, "a"), visit(2, "b")), name="dc")
    talk = Session("talk", ("ask",) * 4, (ms(3), ms(3), ms(16)), route="sticky")
    made = Network(
        "sticky",
        AB,
        (RequestClass("ask", flow),),
        Closed(1, ms(1), {"talk": 1.0}),
        sessions=(talk,),
        timeline=A_DOWN,
    )
    # It starts at 1, 5, 10 and 28 ms; a is up again from 20 ms on, but the session stays with b.
    run = simulate(made, 0.029, seed=1)
    assert [took / MS for took in run.requests.end_ticks - run.requests.start_ticks] == [1, 2, 2, 2]


def test_a_drop_at_a_station_gives_back_what_is_held() -> None:
    changes = timeline((0.5, "down", "server"), detection=0)
    run = arriving([(1, hold(visit(1)))] * 2, timeline=changes)
    assert (ends_ms(run), statuses(run)) == ([1, 1], [DROPPED, DROPPED])
    assert (run.stations["server"].drops, run.pools["pool"].drops) == (2, 0)
