"""Stations, pools and hosts with a count: their members, what may refer to them, and what is refused."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from capplan.errors import InputError
from capplan.models.language.distribution import Exponential
from capplan.models.language.network import Network
from capplan.models.language.station import Differs, Host, Pool, RateTable, Station
from capplan.models.language.step import (
    Acquire,
    Batch,
    CountdownLatch,
    FanOut,
    ForkJoin,
    Group,
    If,
    Pick,
    ReplicaSet,
    Sequence,
    Signal,
    Step,
    Visit,
)
from capplan.models.language.traffic import Event, Open, RequestClass, Timeline

LAW = Exponential(0.001)
NOTHING = Sequence(())
A = Signal("a")


def network(flow: Step = NOTHING, **others: Any) -> Network:
    given: dict[str, Any] = {
        "stations": (Station("node", 2, count=3), Station("edge", 1, count=2), Station("disk", 1)),
        "classes": (RequestClass("read", flow),),
        "traffic": Open(10, {"read": 1}),
        "pools": (Pool("threads", 2, count=3), Pool("workers", 2)),
    }
    return Network("cluster", **{**given, **others})


def at(member: str | None, station: str = "node") -> Visit:
    return Visit(station, LAW, member=member)


def picked(step: Step, among: str = "node", member: str = "here") -> Pick:
    return Pick(member, among, "random", step)


def replicas(step: Step, size: int = 2, among: str = "node", first: str | None = None) -> ReplicaSet:
    return ReplicaSet("replicas", among, size, step, first=first)


def over(step: Step, needed: int = 1, contacted: int | None = None, name: str = "replicas") -> FanOut:
    return FanOut(name, "replica", step, needed, contacted)


def latch(step: Step, needed: int = 2) -> CountdownLatch:
    return CountdownLatch((Group("a", needed),), step)


def stations(*stations: Station, hosts: tuple[Host, ...] = ()) -> Network:
    return network(stations=stations, hosts=hosts)


def down(target: str) -> Network:
    hosts = (Host("machine", 2, count=3),)
    return network(hosts=hosts, timeline=Timeline((Event(1, "down", target),)))


SLOW = Differs(2, speed=0.5)

# What is wrong, and the words of the message that identify it: places, values, limits and suggestions.
REFUSED: list[tuple[Callable[[], object], tuple[str, ...]]] = [
    (lambda: Station("node", 1, count=0), ("count: 0", "1")),
    (lambda: Pool("threads", 1, count=-1), ("count: -1", "1")),
    (lambda: Host("machine", 1, count=0), ("count: 0", "1")),
    (lambda: Station("node", 1, exceptions=(SLOW,)), ("'node'", "count")),
    (lambda: Station("node", 1, count=1, exceptions=(SLOW,)), ("member 2", "'node'", "1 to 1")),
    (lambda: Station("node", 1, count=3, exceptions=(SLOW, Differs(2, 4))), ("'node'", "two exceptions")),
    (lambda: Station("node", 1, count=1, exceptions=(Differs(1, down=True),)), ("'node'", "down", "one up")),
    (lambda: Differs(0), ("member: 0", "1")),
    (lambda: Differs(1, servers=0), ("servers: 0", "1")),
    (lambda: Differs(1, speed=0), ("speed: 0", "above 0")),
    (lambda: stations(Station("node", 1, count=3), Station("node/2", 1)), ("station or host", "'node/2'", "'node'")),
    (
        lambda: stations(Station("node", 1, count=3), hosts=(Host("node/3", 1),)),
        ("station or host", "'node/3'", "'node'"),
    ),
    (lambda: network(pools=(Pool("threads", 1, count=2), Pool("threads/1", 1))), ("pool", "'threads/1'", "'threads'")),
    (
        lambda: stations(Station("node", 1, host="machine", count=3), hosts=(Host("machine", 1, count=2),)),
        ("'node'", "3", "'machine'", "2"),
    ),
    (
        lambda: stations(Station("disk", 1, host="machine"), hosts=(Host("machine", 1, count=2),)),
        ("'disk'", "no members", "'machine'", "2"),
    ),
    (lambda: network(pools=(Pool("node", 1, count=2),)), ("'node'", "3", "pool", "2")),
    (lambda: network(pools=(Pool("disk", 1, count=2),)), ("'disk'", "no members", "pool", "2")),
    (lambda: down("node/4"), ("'node/4'", "'node/1' to 'node/3'")),
    (lambda: down("node/0"), ("'node/0'", "'node/1' to 'node/3'")),
    (lambda: down("node/02"), ("'node/02'", "'node/1' to 'node/3'")),
    (lambda: down("disk/1"), ("'disk/1'", "'disk'")),
    (lambda: down("machine/4"), ("'machine/4'", "'machine/1' to 'machine/3'")),
    # References to members.
    (lambda: network(at(None)), ("'node'", "3 members", "member")),
    (lambda: network(Acquire("threads", NOTHING)), ("'threads'", "3 members", "member")),
    (lambda: network(at("here")), ("'here'", "not bound", "pick, replica_set or fan_out")),
    (lambda: network(picked(at("hre"))), ("'hre'", "'here'")),
    (lambda: network(Acquire("threads", NOTHING, member="here")), ("'here'", "not bound")),
    (lambda: network(Sequence((picked(NOTHING), at("here")))), ("'here'", "not bound")),
    (lambda: network(picked(at("here", "disk"))), ("'disk'", "no members", "'here'")),
    (lambda: network(picked(Acquire("workers", NOTHING, member="here"))), ("'workers'", "no members", "'here'")),
    (lambda: network(picked(at("here", "edge"))), ("'here'", "3 members", "'edge'", "2")),
    (lambda: network(picked(Acquire("threads", NOTHING, member="here"), "edge")), ("'here'", "2", "'threads'", "3")),
    (lambda: network(replicas(at("replicas"))), ("'replicas'", "set")),
    (lambda: network(picked(Batch(2, 1, at("here")))), ("'here'", "not bound")),
    # Picks.
    (lambda: network(picked(NOTHING, "nodes")), ("'nodes'", "'node'")),
    (lambda: network(picked(NOTHING, "disk")), ("'disk'", "no members", "count", "edge, node, threads")),
    (lambda: network(picked(NOTHING, "workers")), ("'workers'", "no members", "count")),
    (lambda: network(picked(picked(NOTHING, "here"))), ("'here'", "bound member", "edge, node, threads")),
    (lambda: network(Pick("here", "node", "nearest", NOTHING)), ("policy = 'nearest'", "'first'")),  # type: ignore[arg-type]  # wrong on purpose
    (lambda: network(picked(NOTHING, "node", "")), ("member = ''",)),
    # Replica sets.
    (lambda: network(replicas(NOTHING, 4)), ("size = 4", "3")),
    (lambda: network(replicas(NOTHING, 0)), ("size: 0", "1")),
    (lambda: network(replicas(NOTHING, among="disk")), ("'disk'", "no members", "count")),
    (lambda: network(replicas(replicas(NOTHING, among="replicas"))), ("'replicas'", "bound set", "node")),
    (lambda: network(replicas(NOTHING, first="here")), ("'here'", "not bound")),
    (lambda: network(replicas(replicas(NOTHING, first="replicas"))), ("'replicas'", "3 members", "'node'")),
    (lambda: network(picked(replicas(NOTHING, first="here"), "edge")), ("'here'", "3 members", "'node'")),
    (lambda: ReplicaSet("replicas", "node", 2, NOTHING, "hash"), ("placement = 'hash'", "'ring'", "'random'")),  # type: ignore[arg-type]  # wrong on purpose
    # Fan-outs.
    (lambda: network(over(NOTHING)), ("'replicas'", "not bound")),
    (lambda: network(picked(over(NOTHING, name="here"))), ("'here'", "member", "set")),
    (lambda: network(replicas(over(NOTHING, 3))), ("needed = 3", "2")),
    (lambda: network(replicas(over(NOTHING, 1, 3))), ("contacted = 3", "2")),
    (lambda: over(NOTHING, 2, 1), ("needed = 2", "1")),
    (lambda: over(NOTHING, 1, 0), ("contacted: 0", "1")),
    (lambda: network(replicas(Sequence((over(NOTHING), at("replica"))))), ("'replica'", "not bound")),
    # Comparisons.
    (lambda: network(If("here", "there", NOTHING, NOTHING)), ("'here'", "not bound")),
    (lambda: network(picked(If("here", "there", NOTHING, NOTHING))), ("'there'", "not bound")),
    (lambda: network(replicas(If("replicas", "replicas", NOTHING, NOTHING))), ("'replicas'", "set", "member")),
    (
        lambda: network(picked(picked(If("here", "there", NOTHING, NOTHING), "edge", "there"))),
        ("'here'", "3 members", "'there'", "2"),
    ),
    # Countdown latches that cannot open.
    (lambda: network(replicas(latch(over(A, 0), 3))), ("'a'", "3", "2")),
    (lambda: network(replicas(latch(over(A, 0, 1)))), ("'a'", "2", "1")),
    (lambda: network(picked(latch(If("here", "here", A, A)))), ("'a'", "2", "1")),
]


@pytest.mark.parametrize(("make", "words"), REFUSED, ids=range(len(REFUSED)))
def test_refused_in_one_sentence(make: Callable[[], object], words: tuple[str, ...]) -> None:
    with pytest.raises(InputError) as caught:
        make()
    sentence = str(caught.value)
    assert [word for word in words if word not in sentence] == []
    assert "\n" not in sentence


def test_members_have_numbered_names() -> None:
    made = network(hosts=(Host("machine", 4, count=2),))
    assert [each.name for each in made.each_station] == ["node/1", "node/2", "node/3", "edge/1", "edge/2", "disk"]
    assert [each.name for each in made.each_pool] == ["threads/1", "threads/2", "threads/3", "workers"]
    assert [each.name for each in made.each_host] == ["machine/1", "machine/2"]
    counts = [each.count for each in made.each_station] + [each.count for each in made.each_pool]
    assert set(counts) == {None}


def test_members_are_what_the_group_is() -> None:
    group = Station("node", 2, "ps", RateTable((1, 0.5)), host="machine", count=2)
    alone = [Station(name, 2, "ps", RateTable((1, 0.5)), host="machine") for name in ("node/1", "node/2")]
    assert list(group.members) == alone
    assert Pool("threads", 3, 7, count=1).members == (Pool("threads/1", 3, 7),)
    assert Host("machine", 3, count=1).members == (Host("machine/1", 3),)


def test_a_group_of_one_has_a_member_and_a_station_without_count_is_its_own() -> None:
    assert [each.name for each in Station("node", 1, count=1).members] == ["node/1"]
    assert Station("node", 1).members == (Station("node", 1),)


def test_exceptions_change_servers_and_speed_of_their_member() -> None:
    group = Station(
        "node", 2, count=4, exceptions=(Differs(2, servers=5), Differs(3, speed=0.5), Differs(4, down=True))
    )
    plain, wide, slow, away = group.members
    assert (plain, away) == (Station("node/1", 2), Station("node/4", 2))
    assert wide == Station("node/2", 5)
    assert slow == Station("node/3", 2, rate=RateTable((0.5,)))
    assert group.down == {3}


def test_the_speed_of_an_exception_multiplies_the_rate_table() -> None:
    group = Station("node", 1, rate=RateTable((1.0, 0.8)), count=2, exceptions=(SLOW,))
    assert group.members[1].rate == RateTable((0.5, 0.4))


def test_the_speed_of_an_exception_may_be_draws_of_a_parameter() -> None:
    draws = np.array([0.5, 0.75])
    rate = Station("node", 1, count=2, exceptions=(Differs(2, speed=draws),)).members[1].rate
    assert rate is not None
    np.testing.assert_array_equal(rate.speeds[0], draws)


def test_stations_with_the_count_of_their_host_have_a_member_on_each() -> None:
    made = stations(Station("node", 1, host="machine", count=2), hosts=(Host("machine", 4, count=2),))
    assert [each.host for each in made.each_station] == ["machine/1", "machine/2"]
    shared = stations(Station("node", 1, host="machine", count=2), hosts=(Host("machine", 4),))
    assert [each.host for each in shared.each_station] == ["machine", "machine"]


def test_events_may_name_a_group_or_a_member() -> None:
    for target in ("node", "node/1", "node/3", "machine", "machine/3", "disk"):
        assert down(target).timeline.events[0].target == target


def test_a_number_behind_a_slash_is_a_name_like_any_other_without_a_count() -> None:
    made = stations(Station("node", 1), Station("node/2", 1), Station("edge", 1, count=2), Station("edge/02", 1))
    assert [each.name for each in made.each_station][:2] == ["node", "node/2"]


def test_a_member_stands_for_that_of_any_station_or_pool_with_as_many() -> None:
    stations_ = (Station("node", 1, count=3), Station("store", 1, count=3))
    flow = picked(Acquire("threads", Sequence((at("here"), at("here", "store"))), member="here"), "threads")
    assert network(flow, stations=stations_).classes[0].flow is flow


def test_an_inner_name_hides_an_outer_one() -> None:
    network(picked(picked(at("here", "edge"), "edge")))
    network(replicas(picked(at("replicas"), member="replicas")))
    network(picked(ReplicaSet("here", "node", 2, FanOut("here", "here", at("here"), 1))))


def test_a_set_hides_a_station_of_its_name_from_picks() -> None:
    network(ReplicaSet("edge", "node", 2, picked(at("here"), "edge")))


def test_latches_count_the_signals_of_all_branches_of_a_fan_out() -> None:
    network(replicas(latch(over(A, 0), 2)))
    network(replicas(latch(Sequence((over(A, 0, 1), over(A, 0, 1))), 2)))
    network(replicas(latch(over(Sequence((A, A)), 0), 4)))
    network(replicas(latch(over(If("replica", "replicas", Sequence((A, A)), A), 0), 4)))


def test_a_step_may_stand_in_several_scopes() -> None:
    step = at("here")
    network(ForkJoin((picked(step), replicas(FanOut("replicas", "here", step, 1))), 2))
    with pytest.raises(InputError, match="'edge'"):
        network(ForkJoin((picked(Visit("node", LAW, member="here")), picked(at("here", "edge"))), 2))
