"""The work of coordinators, replicas and forwarders, counted and timed by hand on small clusters."""

from collections import Counter
from dataclasses import replace

import pytest

from capplan.models.cassandra.cluster import Cluster, Costs, node_name, pools, statement, stations
from capplan.models.cassandra.consistency import WRITE_LEVELS
from capplan.models.errors import InputError, RefusedError
from capplan.models.language.distribution import Deterministic
from capplan.models.language.network import Network
from capplan.models.language.step import Choice, CountdownLatch, ForkJoin, Route, Sequence, Step, Visit, walk
from capplan.models.language.traffic import Closed, RequestClass
from capplan.models.solver.flow_analysis import DemandReader
from capplan.simulator.reference.engine import simulate

LAN_S, WAN_S = 0.001, 0.020
TINY = Costs(1e-12, 1e-12, 1e-12, 0.0, 1e-12)  # below one tick: all that is left is the way
COUNTED = Costs(coordinator=1.0, read=1.0, mutation=1.0, unseen=0.0, storage=1.0)


def cluster(*nodes: int, rf: int = 3, down: tuple[str, ...] = (), wan_s: float = WAN_S) -> Cluster:
    way = tuple(tuple(0.0 if a == b else wan_s for b in range(len(nodes))) for a in range(len(nodes)))
    return Cluster(nodes, (rf,) * len(nodes), 8, LAN_S, way, frozenset(down))


def visits(where: Cluster, level: str, operation: str, dc: int = 0) -> dict[str, float]:
    """Mean visits of each node by a statement, the unseen work (of no length) and the coordination left out."""
    work = DemandReader().of(statement(where, COUNTED, dc, level, operation))
    coordinators = 1 / len(where.living(dc))
    local = set(where.living(dc))
    return {
        name: float(each.mean_s) - (coordinators if name in local else 0.0)
        for name, each in work.items()
        if name.startswith("cassandra/")
    }


def by_dc(found: dict[str, float]) -> dict[str, object]:
    total: Counter[str] = Counter()
    for name, count in found.items():
        total[name.split("/")[1]] += count  # type: ignore[assignment]  # counters add floats as well
    return {dc: pytest.approx(count) for dc, count in total.items() if count > 1e-9}


@pytest.mark.parametrize(
    ("level", "rf", "contacted"),
    [
        ("ONE", 3, {"dc1": 1 + 0.1 * 2}),  # with the read-repair chance, all local ones
        ("LOCAL_ONE", 3, {"dc1": 1 + 0.1 * 2}),
        ("TWO", 3, {"dc1": 2.1}),
        ("THREE", 3, {"dc1": 3}),
        ("LOCAL_QUORUM", 3, {"dc1": 2.1}),
        ("LOCAL_QUORUM", 5, {"dc1": 3 + 0.1 * 2}),
        ("LOCAL_QUORUM", 1, {"dc1": 1}),
        ("QUORUM", 3, {"dc1": 3, "dc2": 2}),  # 5 of 9, the nearest first
        ("QUORUM", 1, {"dc1": 1, "dc2": 1}),
        ("ALL", 3, {"dc1": 3, "dc2": 3, "dc3": 3}),
    ],
)
def test_a_read_contacts_as_many_replicas_as_its_level_needs(level: str, rf: int, contacted: dict[str, float]) -> None:
    assert by_dc(visits(cluster(5, 5, 5, rf=rf), level, "read")) == contacted


def test_reads_of_another_data_centre_spread_over_its_nodes_and_over_the_data_centres() -> None:
    where = cluster(3, 3, 3)
    total: Counter[str] = Counter()
    for dc in range(3):
        found = visits(where, "QUORUM", "read", dc)
        remote = {name: count for name, count in found.items() if name.startswith(f"cassandra/dc{(dc + 1) % 3 + 1}/")}
        assert list(remote.values()) == pytest.approx([2 / 3] * 3)
        total.update(found)
    assert list(total.values()) == pytest.approx([5 / 3] * 9)


def test_the_nearest_data_centre_is_asked_first() -> None:
    way = ((0.0, 0.03, 0.01), (0.03, 0.0, 0.02), (0.01, 0.02, 0.0))
    where = replace(cluster(3, 3, 3), wan_s=way)
    assert by_dc(visits(where, "QUORUM", "read")) == {"dc1": 3, "dc3": 2}


@pytest.mark.parametrize("level", WRITE_LEVELS)
@pytest.mark.parametrize("nodes", [3, 5])
def test_a_write_goes_once_to_every_replica_whatever_its_level(level: str, nodes: int) -> None:
    found = visits(cluster(nodes, nodes, nodes), level, "write")
    assert found == pytest.approx({node_name(dc, node): 3 / nodes for dc in range(3) for node in range(nodes)})


def test_each_write_branch_reaches_each_replica_exactly_once() -> None:
    """Not only in the mean: in each range and for each coordinator."""
    flow = statement(cluster(4, 4), COUNTED, 0, "QUORUM", "write")
    latches = [step for step in walk(flow) if isinstance(step, CountdownLatch)]
    assert len(latches) == 4 * 4
    for each in latches:
        replicas = Counter(
            step.station
            for step in walk(each)
            if isinstance(step, Visit) and step.name == step.station.replace("/", "-")
        )
        assert set(replicas.values()) == {1}
        assert Counter(name.split("/")[1] for name in replicas) == {"dc1": 3, "dc2": 3}


@pytest.mark.parametrize(
    ("level", "groups"),
    [
        ("ONE", {"all": 1}),
        ("THREE", {"all": 3}),
        ("QUORUM", {"all": 5}),
        ("ALL", {"all": 9}),
        ("LOCAL_ONE", {"dc2": 1}),
        ("LOCAL_QUORUM", {"dc2": 2}),
        ("EACH_QUORUM", {"dc1": 2, "dc2": 2, "dc3": 2}),
    ],
)
def test_a_write_waits_for_the_answers_of_its_level(level: str, groups: dict[str, int]) -> None:
    flow = statement(cluster(3, 3, 3), COUNTED, 1, level, "write")
    for latch in (step for step in walk(flow) if isinstance(step, CountdownLatch)):
        assert {group.name: group.needed for group in latch.groups} == groups


def test_one_forwarder_takes_a_write_to_each_other_data_centre() -> None:
    """One WAN hop to each; the forwarder works without a further hop, its two peers after one in their LAN."""
    forwarders: Counter[str] = Counter()
    flow = statement(cluster(3, 3, 3), COUNTED, 0, "QUORUM", "write")
    for latch in (step for step in walk(flow) if isinstance(step, CountdownLatch)):
        assert isinstance(latch.step, ForkJoin)
        far = [step for step in latch.step.branches if step.name.startswith("to-")]
        assert [step.name for step in far] == ["to-dc2", "to-dc3"]
        for step in far:
            assert isinstance(step, Sequence)
            away, spread = step.steps
            assert getattr(away, "duration", None) == Deterministic(WAN_S)
            assert isinstance(spread, ForkJoin)
            assert spread.needed == 0
            first = [branch.steps[0] for branch in spread.branches if isinstance(branch, Sequence)]
            assert [isinstance(begin, Visit) for begin in first] == [True, False, False]
            forwarders[first[0].station] += 1  # type: ignore[union-attr]  # a visit, as just asserted
    assert forwarders == {node_name(dc, node): 1 for dc in (1, 2) for node in range(3)}


def test_replica_sets_follow_the_ring() -> None:
    where = cluster(5)
    sets = [where.replicas(0, first) for first in range(5)]
    assert sets[4] == (node_name(0, 4), node_name(0, 0), node_name(0, 1))
    assert Counter(name for names in sets for name in names) == {node_name(0, node): 3 for node in range(5)}


def test_data_centres_of_unlike_size_share_their_ranges_evenly() -> None:
    found = visits(cluster(3, 5), "ALL", "write")
    expected = {node_name(0, node): 1.0 for node in range(3)} | {node_name(1, node): 3 / 5 for node in range(5)}
    assert found == pytest.approx(expected)


def test_a_node_that_is_down_gets_nothing_and_is_still_counted() -> None:
    where = cluster(3, 3, down=(node_name(0, 1),))
    assert node_name(0, 1) not in {each.name for each in stations(where)}
    assert len(pools(where)) == 5
    assert by_dc(visits(where, "LOCAL_QUORUM", "write")) == {"dc1": 2, "dc2": 3}
    assert where.need("ALL", 0).total == 6
    with pytest.raises(InputError, match="ALL cannot be met"):
        statement(where, COUNTED, 0, "ALL", "write")


def test_ranges_that_lost_their_quorum_are_an_error_that_names_the_data_centre() -> None:
    where = cluster(5, 5, down=(node_name(1, 0), node_name(1, 1)))
    with pytest.raises(InputError, match=r"EACH_QUORUM cannot be met .* data centre 2"):
        statement(where, COUNTED, 0, "EACH_QUORUM", "write")
    with pytest.raises(InputError, match="LOCAL_QUORUM cannot be met"):
        statement(where, COUNTED, 1, "LOCAL_QUORUM", "read")
    assert by_dc(visits(where, "LOCAL_QUORUM", "write")) == {"dc1": 3, "dc2": 3 * 3 / 5}


def test_a_range_without_replica_in_another_data_centre_is_not_forwarded() -> None:
    where = cluster(2, 2, rf=1, down=(node_name(1, 0),))
    assert by_dc(visits(where, "LOCAL_ONE", "write")) == {"dc1": 1, "dc2": 0.5}


def test_other_operations_and_levels_are_refused_by_name() -> None:
    with pytest.raises(RefusedError, match="'batch' is refused"):
        statement(cluster(3), COUNTED, 0, "ONE", "batch")
    with pytest.raises(RefusedError, match="'SERIAL' is refused"):
        statement(cluster(3), COUNTED, 0, "SERIAL", "read")
    with pytest.raises(RefusedError, match=r"EACH_QUORUM.* are refused"):
        statement(cluster(3), COUNTED, 0, "EACH_QUORUM", "read")


def latencies_s(where: Cluster, level: str, operation: str, costs: Costs = TINY) -> set[float]:
    """Latencies of a few statements that a single client asks for, in whole microseconds."""
    flow = statement(where, costs, 0, level, operation)
    network = Network(
        "small",
        stations(where),
        (RequestClass("ask", flow),),
        Closed(1, Deterministic(1.0), {"ask": 1.0}),
        pools=pools(where),
    )
    return {round(float(each), 6) for each in simulate(network, 12.0, seed=1).latencies_s()}


CLIENT_S = 2 * LAN_S  # from the client to its coordinator and back


@pytest.mark.parametrize(
    ("level", "operation", "expected_s"),
    [
        ("LOCAL_ONE", "read", CLIENT_S),  # nodes = RF: the coordinator has the row
        ("LOCAL_ONE", "write", CLIENT_S),
        ("LOCAL_QUORUM", "read", CLIENT_S + 2 * LAN_S),  # no round trip over the WAN
        ("LOCAL_QUORUM", "write", CLIENT_S + 2 * LAN_S),
        ("QUORUM", "read", CLIENT_S + 2 * WAN_S),  # 3 near and 2 far: one round trip over the WAN
        ("QUORUM", "write", CLIENT_S + 2 * WAN_S),  # 3 near and the 2 forwarders
        ("EACH_QUORUM", "write", CLIENT_S + 2 * WAN_S + LAN_S),  # a peer of each forwarder, one hop later
        ("ALL", "write", CLIENT_S + 2 * WAN_S + LAN_S),
        ("ALL", "read", CLIENT_S + 2 * WAN_S),  # reads are sent to each replica directly
        ("THREE", "write", CLIENT_S + 2 * LAN_S),
    ],
)
def test_an_empty_cluster_answers_after_the_way_alone(level: str, operation: str, expected_s: float) -> None:
    assert latencies_s(cluster(3, 3, 3), level, operation) == {round(expected_s, 6)}


def test_a_coordinator_without_the_row_is_one_hop_further_away() -> None:
    """Six nodes, RF 3: half of the coordinators are replicas; LOCAL_QUORUM waits a hop for either."""
    assert latencies_s(cluster(6), "LOCAL_ONE", "read") == {CLIENT_S, CLIENT_S + 2 * LAN_S}
    assert latencies_s(cluster(6), "LOCAL_QUORUM", "read") == {CLIENT_S + 2 * LAN_S}


def test_a_lost_node_makes_quorum_wait_for_a_further_peer() -> None:
    """2 near + 3 + 3: the fifth answer is a forwarder's peer, a hop after the forwarders."""
    where = cluster(3, 3, 3, down=(node_name(0, 2),))
    assert latencies_s(where, "QUORUM", "write") == {round(CLIENT_S + 2 * WAN_S + LAN_S, 6)}


def test_work_on_the_way_is_waited_for_and_other_work_is_not() -> None:
    """The coordinator's 5 s and the mutation's are in the answer; the unseen 500 s and the storage's are not."""
    where = cluster(1, rf=1)
    flow = statement(where, Costs(5.0, 5.0, 5.0, 100.0, 500.0), 0, "ONE", "write")
    network = Network(
        "small",
        stations(where),
        (RequestClass("ask", flow),),
        Closed(1, Deterministic(1e6), {"ask": 1.0}),
        pools(where),
    )
    mean_s = simulate(network, 60.5e6, seed=3).latency_mean_s()
    assert mean_s == pytest.approx(10.0, rel=0.3)  # 60 sums of two Erlang-2 times: standard error 6.5 %


def test_steps_that_several_ranges_share_are_built_once() -> None:
    flow: Step = statement(cluster(6, 6), COUNTED, 0, "QUORUM", "write")
    assert isinstance(flow, Route)
    objects = [step for step in walk(flow) if isinstance(step, (ForkJoin, Choice, Visit))]
    assert len({id(step) for step in objects}) < len(objects) / 2
