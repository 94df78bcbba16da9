"""Stations whose speed changes, by hand: rate tables, expiry, pauses, background work, hosts."""

import pytest
from tests.simulator.small_networks import (
    COMPLETED,
    DROPPED,
    MS,
    Timed,
    arriving,
    ends_ms,
    hold,
    ms,
    seq,
    statuses,
    visit,
    wait,
)

from capplan.models.language.distribution import Deterministic
from capplan.models.language.network import Network
from capplan.models.language.station import Background, Host, Pauses, RateTable, Station
from capplan.models.language.step import ForkJoin, Visit
from capplan.models.language.traffic import Open, RequestClass, Trace
from capplan.simulator.reference.engine import simulate

SLOWER = RateTable((1.0, 0.5))
PATIENT = Station("server", 1, expiry_s=1.0)  # processor sharing's mechanism at a constant speed


def paused(every_ms: float = 3, length_ms: float = 2, name: str = "pause") -> Pauses:
    return Pauses(ms(every_ms), ms(length_ms), name)


def working(share: float, every_ms: float = 3, length_ms: float = 2, name: str = "background") -> Background:
    return Background(ms(every_ms), ms(length_ms), share, name)


def test_the_rate_counts_those_who_wait() -> None:
    # From 1 to 3 ms alone (2 of 4 done), then at half speed until 7; the second has full speed again.
    assert ends_ms(arriving([(1, visit(4)), (3, visit(4))], Station("server", 1, rate=SLOWER))) == [7, 11]


def test_the_last_rate_holds_beyond_the_table() -> None:
    run = arriving([(1, visit(3))] * 3, Station("server", 3, rate=SLOWER))
    assert ends_ms(run) == [7, 7, 7]


def test_shared_servers_are_slowed_by_the_rate_too() -> None:
    assert ends_ms(arriving([(1, visit(4))] * 2, Station("server", 1, "ps", rate=SLOWER))) == [17, 17]


def test_rates_of_thirds_are_exact_and_fast_ones_are_fast() -> None:
    for rate, end in ((1 / 3, 1 + 9), (2 / 3, 1 + 4.5), (2.0, 1 + 1.5), (1000.0, 1 + 3 / 512)):
        run = arriving([(1, visit(3))], Station("server", 1, rate=RateTable((rate,))))
        assert list(run.requests.end_ticks) == [-int(-end * MS // 1)]


def test_the_slowest_speed_is_a_part_a_tick() -> None:
    # A visit of a tick at the speed 1e-30 takes lcm(1..28) ticks of one part each.
    run = arriving([(1, visit(1 / MS))], Station("server", 1, rate=RateTable((1e-30,))))
    assert list(run.requests.end_ticks) == [MS + 80_313_433_200]


def test_work_that_has_waited_too_long_is_dropped_at_its_turn() -> None:
    station = Station("server", 1, expiry_s=0.003)
    # The turn of all comes at 6 ms: they have waited 5, exactly 3, and 2 ms.
    run = arriving([(1, visit(5)), (1, visit(5)), (3, visit(1)), (4, visit(1))], station)
    assert ends_ms(run) == [6, 6, 7, 8]
    assert statuses(run) == [COMPLETED, DROPPED, COMPLETED, COMPLETED]
    report = run.stations["server"]
    assert (report.visits, report.drops) == (3, 1)
    assert report.mean_queue == pytest.approx((5 + 3 + 3) / 1000)
    assert report.mean_wait_s == pytest.approx((0 + 3 + 3) / 3 / 1000)


def test_an_expired_visit_is_gone_before_the_served_one_goes_on() -> None:
    # Both events are at 6 ms; the drop gives back the unit that the served request then takes.
    flows: list[Timed] = [(1, seq(visit(5), hold(wait(1)))), (1, hold(visit(5)))]
    run = arriving(flows, Station("server", 1, expiry_s=0.003))
    assert (ends_ms(run), statuses(run)) == ([7, 6], [COMPLETED, DROPPED])


def test_waiting_visits_without_demand_leave_the_server_free() -> None:
    assert ends_ms(arriving([(1, visit(5)), (1, visit(0)), (2, visit(2))], PATIENT)) == [6, 6, 8]
    assert ends_ms(arriving([(1, visit(0)), (1, visit(0)), (1, visit(2))], PATIENT)) == [1, 1, 3]


def test_elastic_and_rigid_stations_agree_when_nothing_changes() -> None:
    flows: list[Timed] = [
        (1, seq(visit(2), visit(3))),
        (1, visit(2)),
        (2, visit(0)),
        (2.5, seq(visit(4), visit(1))),
        (3, visit(1)),
    ]
    rigid = Station("server", 2)
    elastic = Station("server", 2, expiry_s=1.0)
    one, other = (arriving(flows, station) for station in (rigid, elastic))
    assert ends_ms(one) == ends_ms(other) == [6, 3, 3, 8, 7]
    assert one.stations == other.stations


def test_servers_stand_still_in_a_pause_and_go_on_where_they_were() -> None:
    # Pauses from 3 to 5 and from 8 to 10 ms.
    station = Station("server", 1, pauses=(paused(),))
    run = arriving([(1, visit(4))], station, until_ms=10)
    assert ends_ms(run) == [7]
    report = run.stations["server"]
    assert report.utilisation == pytest.approx(0.6)
    assert report.paused_share == pytest.approx(0.4)
    # Who joins meanwhile takes the free server; without demand it is served at once.
    assert ends_ms(arriving([(3, visit(1)), (4, visit(1)), (4.5, visit(0))], station)) == [6, 7, 7]
    assert ends_ms(arriving([(4, visit(0))], station)) == [4]
    assert ends_ms(arriving([(1, visit(4))], Station("server", 1, "ps", pauses=(paused(),)))) == [7]


def test_any_of_several_pauses_stops_the_servers() -> None:
    # From 3 to 5, 8 to 10, ... and from 4 to 6, 10 to 12, ...
    station = Station("server", 1, pauses=(paused(), paused(4, 2, "other")))
    assert ends_ms(arriving([(1, visit(4)), (1, visit(1))], station)) == [8, 13]


def test_pauses_are_at_least_a_tick_apart() -> None:
    """In ticks: between no time at all, a tick passes, so every second tick is a pause."""
    station = Station("server", 1, pauses=(Pauses(Deterministic(1e-10), Deterministic(1e-9)),))
    request = RequestClass("ask", Visit("server", Deterministic(3e-9)))
    traffic = Open(1 / 10e-9, {"ask": 1.0}, Trace((10e-9,)))
    run = simulate(Network("ticks", (station,), (request,), traffic), 1e-7, seed=1)
    assert list(run.requests.end_ticks) == [15]  # it works from 10 to 11, 12 to 13 and 14 to 15


def test_background_work_takes_its_share() -> None:
    # From 3 to 5 ms at half speed: 2 + 1 + 1.
    assert ends_ms(arriving([(1, visit(4))], Station("server", 1, background=(working(0.5),)))) == [6]
    # Two of them, from 3 to 5 and from 4 to 6: 2 + 0.75 + 0.5 + 0.25 until 6 ms (all that is left of 1 is 0.25).
    both = (working(0.25), working(0.5, 4, 2, "other"))
    assert ends_ms(arriving([(1, visit(4))], Station("server", 1, background=both))) == [1 + 5 + 0.25 + 0.25]


def test_background_work_that_takes_all_stops_the_servers() -> None:
    too_much = (working(0.7), working(0.7, name="other"))
    for work in ((working(1.0),), too_much):
        run = arriving([(1, visit(4))], Station("server", 1, background=work), until_ms=2)
        assert ends_ms(run) == [7]  # long after the traffic has ended: its processes go on for it


def test_a_process_may_be_over_within_its_tick() -> None:
    assert ends_ms(arriving([(1, visit(4))], Station("server", 1, pauses=(paused(1, 0),)))) == [5]


A, B = Station("a", 1, host="machine"), Station("b", 1, host="machine")


def test_stations_share_the_cores_of_their_host() -> None:
    both = [(1.0, visit(4, "a")), (1.0, visit(4, "b"))]
    assert ends_ms(arriving(both, A, B, hosts=(Host("machine", 1),))) == [9, 9]
    assert ends_ms(arriving(both, A, B, hosts=(Host("machine", 2),))) == [5, 5]
    apart = [(1.0, visit(4, "a")), (1.0, visit(2, "b"))]
    assert ends_ms(arriving(apart, A, B, hosts=(Host("machine", 1),))) == [7, 5]


def test_shared_servers_on_a_host() -> None:
    # Three share two servers, and these share one core: a third each.
    station = Station("a", 2, "ps", host="machine")
    assert ends_ms(arriving([(1, visit(2, "a"))] * 3, station, hosts=(Host("machine", 1),))) == [7, 7, 7]


def test_those_who_wait_take_no_core() -> None:
    # Of the two visits at `a` one waits: the core is shared by two.
    flows = [(1.0, visit(2, "a")), (1.0, visit(2, "a")), (1.0, visit(2, "b"))]
    assert ends_ms(arriving(flows, A, B, hosts=(Host("machine", 1),))) == [5, 7, 5]


def test_a_station_that_pauses_leaves_the_cores_to_others() -> None:
    # Half each until 3 ms (1 done), b alone until 5 (3 done), half each until 7 (b is done, a has 2), then a alone
    # with another pause from 8 to 10.
    resting = Station("a", 1, host="machine", pauses=(paused(3, 2),))
    flows = [(1.0, visit(4, "a")), (1.0, visit(4, "b"))]
    assert ends_ms(arriving(flows, resting, B, hosts=(Host("machine", 1),), until_ms=2)) == [11, 7]


def test_looks_of_two_stations_of_a_host_at_one_tick() -> None:
    # Both end at 5 ms at half speed; the next ones begin at that tick, at half speed again.
    flows = [(1.0, seq(visit(2, "a"), visit(1, "b"))), (1.0, seq(visit(2, "b"), visit(1, "a")))]
    assert ends_ms(arriving(flows, A, B, hosts=(Host("machine", 1),))) == [7, 7]


def test_branches_at_an_elastic_station_end_in_the_order_of_their_steps() -> None:
    fork = ForkJoin((seq(visit(2), hold(wait(1))), seq(visit(2), hold(wait(7)))), 1)
    run = arriving([(1, fork)], Station("server", 2, expiry_s=1.0))
    assert (ends_ms(run), statuses(run)) == ([4], [COMPLETED])


def test_pauses_and_background_work_are_marked_until_the_end_of_the_traffic() -> None:
    station = Station("server", 1, pauses=(paused(3, 2),), background=(working(0.5, 9, 5),))
    run = arriving([(1, visit(20))], station, until_ms=15)
    marks = [(round(mark.start_s * 1000), round(mark.end_s * 1000), mark.kind) for mark in run.marks]
    assert marks == [(3, 5, "pause"), (8, 10, "pause"), (9, 14, "background"), (13, 15, "pause")]
    assert {mark.name for mark in run.marks} == {"server: pause", "server: background"}


def test_a_look_that_has_become_wrong_does_not_keep_a_run_going() -> None:
    # At 3 ms the end seems to be two seconds away, and the work would come and go until then.
    run = arriving([(1, visit(4))], Station("server", 1, background=(working(0.999),)), until_ms=2)
    assert list(run.requests.end_ticks) == [7 * MS - 2000 + 1]  # a tick late: the speed is rounded down to a part
    assert run.events < 10
