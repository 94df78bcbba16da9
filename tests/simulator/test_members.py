"""Stations, pools and hosts with a count, and the steps that pick members: worked out by hand, in both engines."""

from collections.abc import Sequence as Several
from dataclasses import replace
from typing import Literal

import pytest
from tests.simulator.agreement import exp
from tests.simulator.same_path import assert_same
from tests.simulator.small_networks import COMPLETED, DROPPED, MS, arrivals, ends_ms, ms, seq, statuses, timeline, wait
from tests.strategies import POLICIES

from capplan.models.language.distribution import Distribution
from capplan.models.language.network import Network
from capplan.models.language.station import Background, Differs, Host, Pauses, Pool, Station
from capplan.models.language.step import (
    Acquire,
    CountdownLatch,
    FanOut,
    ForkJoin,
    Group,
    If,
    Pick,
    ReplicaSet,
    Route,
    RoutePolicy,
    Signal,
    Step,
    Visit,
)
from capplan.models.language.traffic import Closed, Open, RequestClass, Session, Timeline
from capplan.simulator.compiled import engine as compiled
from capplan.simulator.reference import engine as reference
from capplan.simulator.results.run import Run
from capplan.simulator.specification.sampling import tick_sampler
from capplan.simulator.specification.streams import (
    fold,
    name_key,
    replicas,
    replicas_key,
    request_key,
    root_key,
    source_key,
    uniform,
)

# A visit of 1 ms takes 1, 2 or 4 ms: how long it takes tells which member it was.
SPEEDS = (Differs(2, speed=0.5), Differs(3, speed=0.25))
NODES = Station("node", 9, count=3, exceptions=SPEEDS)
NUMBERS = {1: 1, 2: 2, 4: 3}
NO_CHANGE = Timeline()


def case(
    *flows: Step,
    times_ms: Several[float] = (1,),
    stations: Several[Station] = (NODES,),
    pools: Several[Pool] = (),
    hosts: Several[Host] = (),
    session: Session | None = None,
    changes: Timeline = NO_CHANGE,
    until_ms: float = 1000,
) -> Run:
    """Run requests that arrive at these times, or sessions of them; both engines must give the same run."""
    names = ("ask", "tell")
    asked = "ask" if session is None else session.name
    traffic = arrivals(times_ms, asked)
    if session is not None:
        traffic = Open(float(traffic.rate_per_s) * len(session.classes), traffic.mix, traffic.arrivals)
    made = Network(
        "members",
        tuple(stations),
        tuple(RequestClass(name, flow) for name, flow in zip(names, flows, strict=False)),
        traffic,
        tuple(pools),
        tuple(hosts),
        () if session is None else (session,),
        changes,
    )
    plain = reference.simulate(made, until_ms / 1000, seed=1)
    assert_same(plain, compiled.simulate(made, until_ms / 1000, seed=1, trace=True))
    return plain


def took_ms(run: Run) -> list[float]:
    return [float(took) / MS for took in run.requests.end_ticks - run.requests.start_ticks]


def numbers(run: Run) -> list[int]:
    """Return the member that each request has visited."""
    return [NUMBERS[round(took)] for took in took_ms(run)]


def at(member: str, demand: Distribution | float = 1, station: str = "node", name: str = "") -> Visit:
    return Visit(station, ms(demand) if isinstance(demand, int | float) else demand, name, member)


def pick(policy: RoutePolicy, step: Step | None = None, among: str = "node", member: str = "here") -> Pick:
    return Pick(member, among, policy, step or at(member), "pick")


def test_a_visit_that_nobody_waits_for_may_be_to_another_member() -> None:
    """It follows a visit to another member of the same group, which shares its processor."""
    both = seq(at("here"), ForkJoin((at("there", 3),), 0))
    flow = pick("round_robin", Pick("there", "node", "random", both, "another"))
    found = case(flow, times_ms=range(1, 60), stations=(replace(NODES, discipline="ps", servers=1),))
    assert len(set(took_ms(found))) > 3


def key(number: int, place: int = 0, source: str = "ask") -> int:
    """Return the key of a request, by the number of its arrival and its place in the session."""
    return request_key(source_key(root_key(1, 0), "source", source), number, place)


ROW = name_key("step", "/pick")


TALK = ("ask", "ask", "ask")
GAPS = (ms(10), ms(10))


def test_sticky_sessions_remember_the_member_for_steps_of_one_name() -> None:
    """The name of the step decides, not the class."""
    talk = Session("talk", ("ask", "tell", "tell"), GAPS, "sticky")
    assert numbers(case(pick("first"), pick("round_robin"), session=talk)) == [1, 1, 1]
    other = Pick("here", "node", "random", at("here"), "another pick")
    random = 1 + int(3 * uniform(key(0, 1, "talk"), name_key("step", "/another pick")))
    assert random != 1
    assert numbers(case(pick("first"), other, session=talk)) == [1, random, random]


def test_a_sticky_pick_from_a_set_holds_while_the_member_is_in_the_set() -> None:
    """The set of the session's row is the same for all its requests."""
    flow = ReplicaSet("row", "node", 2, pick("round_robin", among="row"))
    talk = Session("talk", TALK, GAPS, "sticky")
    run = case(flow, session=talk, times_ms=(1, 2))
    first, second = (row(number, 3, 2, "talk") for number in (0, 1))
    visited = list(zip(run.requests.session.tolist(), numbers(run), strict=True))
    assert sorted(visited) == [(0, first[0])] * 3 + [(1, second[1])] * 3
    assert first[0] != second[1]


DOWN = Station("node", 9, count=3, exceptions=(Differs(1, down=True), *SPEEDS))


def test_a_member_that_is_down_from_the_start_is_left_out() -> None:
    assert numbers(case(pick("round_robin"), times_ms=range(1, 6), stations=(DOWN,))) == [2, 3, 2, 3, 2]
    assert numbers(case(pick("first"), stations=(DOWN,))) == [2]
    expected = [2 + int(2 * uniform(key(number), ROW)) for number in range(8)]
    assert numbers(case(pick("random"), times_ms=range(1, 9), stations=(DOWN,))) == expected
    owners = [1 + int(3 * uniform(key(number), 0)) for number in range(8)]
    run = case(pick("token_aware"), times_ms=range(1, 9), stations=(DOWN,))
    assert numbers(run) == [max(owner, 2) for owner in owners]


def test_the_owner_after_the_last_member_is_the_first() -> None:
    stations = (Station("node", 9, count=3, exceptions=(Differs(2, speed=0.5), Differs(3, speed=0.25, down=True))),)
    owners = [1 + int(3 * uniform(key(number), 0)) for number in range(20)]
    run = case(pick("token_aware"), times_ms=range(1, 21), stations=stations)
    assert numbers(run) == [1 if owner == 3 else owner for owner in owners]


def test_a_visit_to_a_member_that_is_down_from_the_start_is_dropped() -> None:
    stations = (DOWN, Station("store", 9, count=3))
    # The pick is from another station, which knows nothing of the outage.
    assert statuses(case(pick("first", among="store"), stations=stations)) == [DROPPED]


def test_the_timeline_brings_up_a_member_that_was_down_from_the_start() -> None:
    changes = timeline((3, "up", "node/1"), cold_start=2, cold_speed=0.5)
    # Cold from 3 to 5 ms: half a visit is done by 4 ms, and all of it by 5 ms.
    run = case(pick("first"), times_ms=(1, 3, 5), stations=(DOWN,), changes=changes)
    assert took_ms(run) == [2, 2, 1]


def test_an_event_of_the_group_is_one_of_all_its_members() -> None:
    changes = timeline((3, "down", "node"), (6, "up", "node"), detection=1)
    run = case(pick("round_robin"), times_ms=(1, 2.5, 3, 4, 5, 6), changes=changes)
    assert statuses(run) == [COMPLETED, COMPLETED, COMPLETED, DROPPED, DROPPED, COMPLETED]
    # The second has done a quarter of its visit to the second member; the third visits the third member.
    assert took_ms(run)[:3] == [1, 2 + 3, 3 + 4]
    speeds = timeline((1, "speed", "node", 2.0), (1, "speed", "node/2", 1.0))
    assert took_ms(case(pick("round_robin"), times_ms=(2, 2, 2), changes=speeds)) == [0.5, 2, 2]


def test_an_exception_may_have_more_servers() -> None:
    stations = (Station("node", 1, count=2, exceptions=(Differs(2, servers=2),)),)
    run = case(pick("round_robin", at("here", 5)), times_ms=(1, 1, 1, 1), stations=stations)
    assert ends_ms(run) == [6, 6, 11, 6]
    assert [run.stations[f"node/{number}"].servers for number in (1, 2)] == [1, 2]


def test_pauses_and_background_work_of_members_are_independent() -> None:
    """Each member has random numbers keyed by its own name, as a station of that name would."""
    pauses, work = (Pauses(exp(0.01), exp(0.002)),), (Background(exp(0.02), exp(0.01), 0.5),)
    group = (Station("node", 1, pauses=pauses, background=work, count=2),)
    alone = tuple(Station(f"node/{number}", 1, pauses=pauses, background=work) for number in (1, 2))
    times = range(1, 200)
    together = case(pick("round_robin"), times_ms=times, stations=group)
    apart = case(Route("round_robin", tuple(Visit(each.name, ms(1)) for each in alone)), times_ms=times, stations=alone)
    assert took_ms(together) == took_ms(apart)
    assert together.marks == apart.marks
    assert len({mark.kind for mark in together.marks}) == 2


THREADS = Pool("threads", 1, queue_limit=0, count=3)


def test_members_of_a_pool_have_units_of_their_own() -> None:
    flow = pick("round_robin", Acquire("threads", wait(5), member="here"), "threads")
    run = case(flow, times_ms=(1, 2, 3, 4, 6.5), pools=(THREADS,))
    assert statuses(run) == [COMPLETED, COMPLETED, COMPLETED, DROPPED, DROPPED]
    assert [run.pools[f"threads/{number}"].taken for number in (1, 2, 3)] == [1, 1, 1]
    assert [run.pools[f"threads/{number}"].drops for number in (1, 2, 3)] == [1, 1, 0]


def test_one_pick_serves_a_station_and_a_pool() -> None:
    flow = pick("round_robin", Acquire("threads", at("here"), member="here"))
    assert numbers(case(flow, times_ms=(1, 1, 1), pools=(THREADS,))) == [1, 2, 3]


def test_stations_with_the_count_of_their_host_share_its_cores_one_by_one() -> None:
    stations = (Station("node", 1, host="machine", count=2), Station("store", 1, host="machine", count=2))
    flow = pick("round_robin", ForkJoin((at("here", 2), at("here", 2, "store")), 2))
    run = case(flow, times_ms=(1, 2), stations=stations, hosts=(Host("machine", 1, count=2),))
    assert took_ms(run) == [4, 4]  # two servers on one core each
    shared = case(flow, times_ms=(1, 2), stations=stations, hosts=(Host("machine", 2),))
    # Alone until 2 ms; four servers on two cores then, until 4 ms.
    assert took_ms(shared) == [3, 3]


def test_a_machine_that_goes_down_takes_its_members_with_it() -> None:
    stations = (Station("node", 1, host="machine", count=2),)
    changes = timeline((2, "down", "machine/1"), (9, "up", "machine/1"), detection=1)
    hosts = (Host("machine", 1, count=2),)
    run = case(pick("first"), times_ms=(1.5, 4), stations=stations, hosts=hosts, changes=changes)
    assert took_ms(run) == [8, 1]
    everything = timeline((2, "speed", "machine", 0.5))
    assert took_ms(case(pick("round_robin"), times_ms=(3, 3), stations=stations, hosts=hosts, changes=everything)) == [
        2,
        2,
    ]


def row(
    number: int, count: int, size: int, source: str = "ask", placement: Literal["ring", "random"] = "random"
) -> list[int]:
    """Return the replicas of the row of an arrival, from 1, by the specification of the draws."""
    found = replicas(key(number, 0, source), replicas_key("node"), count, size, placement)
    return [member + 1 for member in found]


@pytest.mark.parametrize("placement", ["ring", "random"])
def test_all_requests_of_a_session_find_the_replicas_of_its_row(placement: Literal["ring", "random"]) -> None:
    flow = ReplicaSet("row", "node", 2, pick("round_robin", among="row"), placement)
    talk = Session("talk", ("ask", "tell", "ask", "tell"), (ms(10),) * 3)
    for number in range(5):
        times = [100.0 * (turn + 1) for turn in range(number + 1)]
        run = case(flow, flow, session=talk, times_ms=times)
        assert numbers(run)[-4:] == [member for member in row(number, 3, 2, "talk", placement) for _ in range(2)]


def test_a_ring_continues_with_the_members_that_follow() -> None:
    flow = ReplicaSet("row", "node", 3, pick("first", among="row"), "ring")
    assert numbers(case(flow, times_ms=range(1, 21))) == [1 + int(3 * uniform(key(n), 0)) for n in range(20)]


def test_replicas_that_are_known_to_be_down_are_left_out() -> None:
    flow = ReplicaSet("row", "node", 2, pick("first", among="row"))
    changes = timeline((2, "down", "node/1"), detection=1)
    rows = [row(number, 3, 2) for number in range(20)]
    run = case(flow, times_ms=range(3, 23), changes=changes)
    assert numbers(run) == [next(member for member in mine if member != 1) for mine in rows]
    assert numbers(case(flow, times_ms=range(3, 23), stations=(DOWN,))) == numbers(run)


def test_a_pick_from_a_set_without_members_drops_the_request() -> None:
    flow = ReplicaSet("row", "node", 1, pick("first", among="row"))
    run = case(flow, times_ms=range(1, 21), stations=(DOWN,))
    expected = [DROPPED if row(number, 3, 1) == [1] else COMPLETED for number in range(20)]
    assert {*expected} == {DROPPED, COMPLETED}
    assert statuses(run) == expected


def test_first_puts_the_coordinator_in_front_if_it_is_a_replica() -> None:
    inner = ReplicaSet("row", "node", 2, Pick("one", "row", "first", at("one")), first="here")
    run = case(pick("round_robin", inner), times_ms=range(1, 21))
    rows, coordinators = [row(number, 3, 2) for number in range(20)], [1 + number % 3 for number in range(20)]
    expected = [mine if mine in found else found[0] for mine, found in zip(coordinators, rows, strict=True)]
    assert expected != [found[0] for found in rows]
    assert numbers(run) == expected


def over(step: Step, needed: int, contacted: int | None = None) -> FanOut:
    return FanOut("row", "replica", step, needed, contacted, "ask them")


def everyone(step: Step, size: int = 3, placement: Literal["ring", "random"] = "ring") -> ReplicaSet:
    return ReplicaSet("row", "node", size, step, placement)


@pytest.mark.parametrize(("needed", "took"), [(0, 0), (1, 1), (2, 2), (3, 4)])
def test_a_fan_out_goes_on_when_enough_branches_are_done(needed: int, took: float) -> None:
    run = case(everyone(over(at("replica"), needed)))
    assert took_ms(run) == [took]
    assert [run.stations[f"node/{number}"].visits for number in (1, 2, 3)] == [1, 1, 1]


def test_only_the_first_members_of_the_set_are_contacted() -> None:
    run = case(everyone(over(at("replica"), 1, contacted=1)), times_ms=range(1, 21))
    assert numbers(run) == [row(number, 3, 3, placement="ring")[0] for number in range(20)]
    two = case(everyone(over(at("replica"), 2, contacted=2)), times_ms=range(1, 21))
    assert numbers(two) == [max(row(number, 3, 3, placement="ring")[:2]) for number in range(20)]


def test_contacted_counts_members_that_are_up() -> None:
    """Another replica takes the place of one that is known to be down."""
    run = case(everyone(over(at("replica"), 1, contacted=1)), times_ms=range(1, 21), stations=(DOWN,))
    rows = [row(number, 3, 3, placement="ring") for number in range(20)]
    assert numbers(run) == [next(member for member in mine if member != 1) for mine in rows]


def test_nothing_starts_when_fewer_members_are_up_than_are_needed() -> None:
    run = case(seq(wait(1), everyone(over(at("replica"), 3))), stations=(DOWN,))
    assert (ends_ms(run), statuses(run)) == ([2], [DROPPED])
    assert sum(station.visits for station in run.stations.values()) == 0
    assert took_ms(case(everyone(over(at("replica"), 2)), stations=(DOWN,))) == [4]


def test_a_drop_in_a_branch_is_one_of_the_join() -> None:
    full = Acquire("threads", Acquire("threads", wait(1), member="replica"), member="replica")  # finds its unit taken
    one_full = If("replica", "here", full, at("replica"))
    for needed, ended, status in ((2, 5, COMPLETED), (3, 1, DROPPED)):
        run = case(pick("first", everyone(over(one_full, needed))), pools=(THREADS,))
        assert (ends_ms(run), statuses(run)) == ([ended], [status])


def test_branches_may_signal_a_countdown_latch() -> None:
    step = over(seq(at("replica"), Signal("answers")), 0)
    latch = CountdownLatch((Group("answers", 2),), everyone(step))
    assert took_ms(case(latch)) == [2]
    short = CountdownLatch((Group("answers", 3),), everyone(step))
    run = case(short, stations=(DOWN,))
    assert (ends_ms(run), statuses(run)) == ([5], [DROPPED])  # when the last branch has ended


def test_branches_of_a_fan_out_may_have_latches_of_their_own() -> None:
    inner = CountdownLatch((Group("own", 1),), ForkJoin((seq(at("replica"), Signal("own"), Signal("answers")),), 0))
    flow = CountdownLatch((Group("answers", 2),), everyone(over(inner, 1)))
    assert took_ms(case(flow)) == [2]


def test_if_compares_members_and_asks_whether_one_is_in_a_set() -> None:
    same = everyone(over(If("replica", "here", seq(), wait(8)), 1))
    assert took_ms(case(pick("first", same))) == [0]
    other = everyone(over(If("replica", "here", wait(8), seq()), 3))
    assert took_ms(case(pick("first", other))) == [8]
    within = pick("round_robin", everyone(If("here", "row", wait(1), wait(2)), 2, "random"))
    expected = [1 if 1 + number % 3 in row(number, 3, 2) else 2 for number in range(20)]
    assert set(expected) == {1, 2}
    assert took_ms(case(within, times_ms=range(1, 21))) == expected


def test_a_hidden_name_is_bound_again_behind_the_step_that_hides_it() -> None:
    inner = Pick("here", "node", "round_robin", at("here"), "inner")
    flow = pick("first", seq(inner, at("here"), inner, at("here")))
    # Each of the inner picks takes turns of its own.
    assert took_ms(case(flow, times_ms=(1, 20, 40))) == [1 + 1 + 1 + 1, 2 + 1 + 2 + 1, 4 + 1 + 4 + 1]
    branch = everyone(seq(FanOut("row", "here", at("here"), 3), at("here")))
    assert took_ms(case(pick("first", branch))) == [4 + 1]
    set_hidden = everyone(Pick("row", "row", "first", at("row")))
    assert numbers(case(set_hidden, times_ms=range(1, 9))) == [
        row(number, 3, 3, placement="ring")[0] for number in range(8)
    ]


def test_a_station_is_itself_again_where_a_set_of_its_name_is_hidden() -> None:
    inner = Pick("node", "node", "first", Pick("here", "node", "first", at("here")))
    flow = ReplicaSet("node", "node", 2, inner)
    assert numbers(case(flow, times_ms=range(1, 9))) == [1] * 8


def test_branches_that_are_done_at_one_tick_continue_in_the_order_of_the_set() -> None:
    stations = (Station("node", 9, count=3), Station("disk", 1))
    demand = seq(at("replica"), If("replica", "here", Visit("disk", ms(8)), Visit("disk", ms(1))))
    run = case(pick("first", everyone(over(demand, 1))), times_ms=range(1, 2000, 100), stations=stations, until_ms=3000)
    # The first of the ring has the disk first: for 8 ms if it is the first member.
    first = [row(number, 3, 3, placement="ring")[0] for number in range(20)]
    assert took_ms(run) == [9 if member == 1 else 2 for member in first]


def test_a_route_avoids_targets_whose_members_are_all_down() -> None:
    changes = timeline((2, "down", "node"), detection=1)
    stations = (NODES, Station("spare", 1))
    for target in (pick("first"), everyone(over(at("replica"), 1))):
        flow = Route("first", (seq(target, wait(0)), Visit("spare", ms(3))))
        assert took_ms(case(flow, times_ms=(1, 5), stations=stations, changes=changes)) == [1, 3]
    one_down = timeline((2, "down", "node/1"), detection=1)
    flow = Route("first", (pick("first"), Visit("spare", ms(3))))
    assert numbers(case(flow, times_ms=(1, 5), stations=stations, changes=one_down)) == [1, 2]


def test_a_target_that_picks_from_a_pool_is_down_when_its_first_station_is() -> None:
    stations, changes = (Station("disk", 1), Station("spare", 1)), timeline((2, "down", "disk"), detection=1)
    inner = pick("first", Visit("disk", ms(1)), "threads")
    flow = Route("first", (inner, Visit("spare", ms(3))))
    assert took_ms(case(flow, times_ms=(1, 5), stations=stations, pools=(THREADS,), changes=changes)) == [1, 3]


def drawn_ticks(request: int, name: str, mean_s: float) -> int:
    return tick_sampler(exp(mean_s))(uniform(request, name_key("step", name)))


@pytest.mark.parametrize("count", [3, 48])
def test_draws_of_a_pick_do_not_depend_on_the_member(count: int) -> None:
    stations = (Station("node", 9, count=count),)
    run = case(pick("round_robin", at("here", exp(0.001), name="work")), times_ms=range(1, 9), stations=stations)
    took = run.requests.end_ticks - run.requests.start_ticks
    assert took.tolist() == [drawn_ticks(key(number), "/pick/work", 0.001) for number in range(8)]


def test_each_branch_of_a_fan_out_has_draws_of_its_own_by_the_number_of_its_member() -> None:
    stations = (Station("node", 9, count=3),)
    run = case(everyone(over(at("replica", exp(0.001), name="work"), 3)), times_ms=range(1, 9), stations=stations)
    took = run.requests.end_ticks - run.requests.start_ticks
    branches = [[fold(key(number), member) for member in range(3)] for number in range(8)]
    assert took.tolist() == [max(drawn_ticks(each, "/ask them/work", 0.001) for each in keys) for keys in branches]


def test_draws_of_nested_fan_outs_are_keyed_by_both_members() -> None:
    stations = (Station("node", 9, count=2),)
    inner = FanOut("row", "other", at("other", exp(0.001), name="work"), 2, name="inner")
    run = case(everyone(over(inner, 2), 2), times_ms=range(1, 9), stations=stations)
    took = run.requests.end_ticks - run.requests.start_ticks
    keys = [[fold(fold(key(number), one), other) for one in range(2) for other in range(2)] for number in range(8)]
    assert took.tolist() == [max(drawn_ticks(each, "/ask them/inner/work", 0.001) for each in mine) for mine in keys]


def plain_nodes(count: int) -> tuple[Station, ...]:
    return tuple(Station(f"node/{number}", 1) for number in range(1, count + 1))


OUTAGE = timeline((30, "down", "node/2"), (70, "up", "node/2"), detection=3, cold_start=5, cold_speed=0.5)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("way", ["independent", "sticky"])
@pytest.mark.parametrize("changes", [NO_CHANGE, OUTAGE], ids=["no change", "outage"])
def test_a_pick_is_a_route_over_stations_written_out(
    policy: RoutePolicy, way: Literal["independent", "sticky"], changes: Timeline
) -> None:
    """Whatever the policy, with queues, in sessions and in an outage."""
    talk = Session("talk", TALK, GAPS, way)
    apart = Route(policy, tuple(Visit(each.name, ms(2.5)) for each in plain_nodes(3)), "pick")
    runs = [
        case(flow, times_ms=[1 + 2.1 * turn for turn in range(60)], stations=stations, session=talk, changes=changes)
        for flow, stations in (
            (apart, plain_nodes(3)),
            (pick(policy, at("here", 2.5)), (Station("node", 1, count=3),)),
        )
    ]
    assert took_ms(runs[0]) == took_ms(runs[1])
    assert statuses(runs[0]) == statuses(runs[1])
    assert repr(runs[0].stations) == repr(runs[1].stations)  # without visits, times are not numbers


def test_replicas_on_a_ring_are_forks_written_out_for_each_token_range() -> None:
    times = [1 + 0.7 * turn for turn in range(200)]
    forks = [
        ForkJoin(tuple(Visit(f"node/{1 + (owner + place) % 4}", ms(1.5)) for place in range(3)), 2)
        for owner in range(4)
    ]
    apart = case(Route("token_aware", tuple(forks)), times_ms=times, stations=plain_nodes(4))
    together = case(everyone(over(at("replica", 1.5), 2)), times_ms=times, stations=(Station("node", 1, count=4),))
    assert took_ms(together) == took_ms(apart)
    assert together.stations == apart.stations


def test_closed_clients_spread_over_members() -> None:
    made = Network(
        "closed",
        (Station("node", 1, count=4),),
        (RequestClass("ask", pick("least_loaded", at("here", 5))),),
        Closed(4, ms(1), {"ask": 1.0}),
    )
    run = reference.simulate(made, 0.600, seed=1)
    assert took_ms(run) == [5] * 400
