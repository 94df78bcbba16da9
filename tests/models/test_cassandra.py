"""The work of coordinators, replicas and forwarders, counted and timed by hand on small clusters."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from tests.models.clusters import LAN_S, WAN_S, cluster

from capplan.errors import InputError, RefusedError
from capplan.models.cassandra.cluster import Cluster, Costs, pools, statement, stations
from capplan.models.cassandra.consistency import CONSISTENCY_LEVELS
from capplan.models.language.distribution import Deterministic
from capplan.models.language.network import Network
from capplan.models.language.step import (
    Step,
    walk,
)
from capplan.models.language.traffic import Closed, Open, RequestClass
from capplan.models.solver.analytic import Analysis
from capplan.simulator.reference.engine import simulate

TINY = Costs(1e-12, 1e-12, 1e-12, 0.0, 1e-12)  # below one tick: all that is left is the way
COUNTED = Costs(coordinator=1.0, read=1.0, mutation=1.0, unseen=0.0, storage=1.0)


def system(where: Cluster, flow: Step, traffic: Open | Closed) -> Network:
    return Network("small", stations(where), (RequestClass("ask", flow),), traffic, pools=pools(where))


def work(where: Cluster, level: str, operation: str, dc: int = 0) -> dict[str, float]:
    """Mean visits of each live node by a statement, by data centre; the unseen work (of no length) left out."""
    flow = statement(where, COUNTED, dc, level, operation)
    demands = Analysis(system(where, flow, Open(1.0, {"ask": 1.0}))).demands
    found = {name: float(np.ravel(each.mean_s)[0]) for name, each in demands.items()}
    coordinated = {f"cassandra/dc{dc + 1}": 1 / where.alive[dc]}
    return {
        name.removeprefix("cassandra/"): seconds - coordinated.get(name, 0.0)
        for name, seconds in found.items()
        if name.startswith("cassandra/")
    }


def by_dc(where: Cluster, level: str, operation: str, dc: int = 0) -> dict[str, object]:
    """Mean visits of all nodes of each data centre, if there are any."""
    counts = {f"dc{each + 1}": count for each, count in enumerate(where.alive)}
    found = {name: each * counts[name] for name, each in work(where, level, operation, dc).items()}
    return {name: pytest.approx(count) for name, count in found.items() if count > 1e-9}


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
    assert by_dc(cluster(5, 5, 5, rf=rf), level, "read") == contacted


def test_reads_of_another_data_centre_spread_over_the_data_centres() -> None:
    where = cluster(3, 3, 3)
    total: Counter[str] = Counter()
    for dc in range(3):
        found = work(where, "QUORUM", "read", dc)
        assert found[f"dc{(dc + 1) % 3 + 1}"] == pytest.approx(2 / 3)
        total.update(found)
    assert list(total.values()) == pytest.approx([5 / 3] * 3)


def test_the_nearest_data_centre_is_asked_first() -> None:
    way = ((0.0, 0.03, 0.01), (0.03, 0.0, 0.02), (0.01, 0.02, 0.0))
    where = replace(cluster(3, 3, 3), wan_s=way)
    assert by_dc(where, "QUORUM", "read") == {"dc1": 3, "dc3": 2}


@pytest.mark.parametrize("level", CONSISTENCY_LEVELS)
@pytest.mark.parametrize("nodes", [3, 5])
def test_a_write_goes_once_to_every_replica_whatever_its_level(level: str, nodes: int) -> None:
    found = work(cluster(nodes, nodes, nodes), level, "write")
    assert found == pytest.approx({f"dc{dc}": 3 / nodes for dc in (1, 2, 3)})


def test_each_write_reaches_each_replica_exactly_once() -> None:
    """Not only in the mean: when all nodes own all rows, every node stores every write."""
    where = cluster(3, 3)
    traffic = Closed(1, Deterministic(1.0), {"ask": 1.0})
    run = simulate(system(where, statement(where, TINY, 0, "QUORUM", "write"), traffic), 12.5, seed=1)
    visits = {name: each.visits for name, each in run.stations.items() if name.startswith("cassandra-storage/")}
    assert len(visits) == 6
    assert set(visits.values()) == {int(run.measured().sum())}


def test_a_read_at_each_quorum_reads_a_quorum_in_every_data_centre_and_waits_for_all() -> None:
    """CASSANDRA-9602: reads at EACH_QUORUM since Cassandra 3.0."""
    found = work(cluster(5, 4, 3), "EACH_QUORUM", "read")
    assert found == pytest.approx({"dc1": 2 / 5, "dc2": 2 / 4, "dc3": 2 / 3})
    where, traffic = cluster(5, 4), Closed(1, Deterministic(1.0), {"ask": 1.0})
    run = simulate(system(where, statement(where, TINY, 0, "EACH_QUORUM", "read"), traffic), 20.0, seed=1)
    assert run.latency_quantile_s(0.01) >= 2 * WAN_S


def test_data_centres_of_unlike_size_share_their_rows_evenly() -> None:
    assert work(cluster(3, 5), "ALL", "write") == pytest.approx({"dc1": 1.0, "dc2": 3 / 5})


def test_data_centres_may_have_unlike_numbers_of_replicas() -> None:
    where = replace(cluster(4, 6), rf=(1, 3))
    assert by_dc(where, "QUORUM", "write") == {"dc1": 1, "dc2": 3}
    assert by_dc(where, "QUORUM", "read") == {"dc1": 1, "dc2": 2}  # 3 of 4
    assert by_dc(where, "QUORUM", "read", 1) == {"dc2": 3}


def test_a_node_that_is_down_gets_nothing_and_is_still_counted() -> None:
    where = cluster(3, 3, down=(1, 0))
    assert [sorted(each.down) for each in stations(where)] == [[0], [], [0], []]
    assert by_dc(where, "LOCAL_QUORUM", "write") == {"dc1": 2, "dc2": 3}
    assert where.need("ALL", 0).total == 6
    with pytest.raises(InputError, match="ALL cannot be met"):
        statement(where, COUNTED, 0, "ALL", "write")


def test_a_data_centre_without_live_nodes_gets_nothing() -> None:
    where = cluster(3, 3, 3, down=(0, 0, 3))
    names = [each.name for each in stations(where)] + [each.name for each in pools(where)]
    assert not {name for name in names if "dc3" in name}
    assert by_dc(where, "QUORUM", "write") == {"dc1": 3, "dc2": 3}
    assert by_dc(where, "QUORUM", "read", 1) == {"dc2": 3, "dc1": 2}


def test_rows_that_may_have_lost_their_quorum_are_an_error_that_names_the_data_centre() -> None:
    where = cluster(5, 5, down=(0, 2))
    with pytest.raises(InputError, match=r"EACH_QUORUM cannot be met .* data centre 2"):
        statement(where, COUNTED, 0, "EACH_QUORUM", "write")
    with pytest.raises(InputError, match="LOCAL_QUORUM cannot be met"):
        statement(where, COUNTED, 1, "LOCAL_QUORUM", "read")
    assert by_dc(where, "LOCAL_QUORUM", "write") == {"dc1": 3, "dc2": 3 * 3 / 5}


def test_a_row_without_replica_in_another_data_centre_is_not_forwarded() -> None:
    where = cluster(2, 2, rf=1, down=(0, 1))
    assert by_dc(where, "LOCAL_ONE", "write") == {"dc1": 1, "dc2": 0.5}


@pytest.mark.parametrize(
    ("down", "contacted"), [((1, 0, 0), {"dc1": 2, "dc2": 3}), ((1, 1, 0), {"dc1": 2, "dc2": 2, "dc3": 1})]
)
def test_a_read_over_data_centres_asks_elsewhere_for_each_replica_that_is_down(
    down: tuple[int, ...], contacted: dict[str, float]
) -> None:
    """Five of nine must answer: what the near data centres have lost comes from the next ones."""
    where = cluster(3, 3, 3, down=down)

    assert by_dc(where, "QUORUM", "read") == contacted
    assert latencies_s(where, "QUORUM", "read") == {round(CLIENT_S + 2 * WAN_S, 6)}


@pytest.mark.parametrize("operation", ["read", "write"])
@pytest.mark.parametrize(
    ("level", "down"),
    [
        *((level, (0, 0, 0)) for level in CONSISTENCY_LEVELS),
        *((level, (0, 1, 1)) for level in CONSISTENCY_LEVELS[:-1]),
        *((level, (1, 0, 0)) for level in ("ONE", "TWO", "LOCAL_ONE", "LOCAL_QUORUM", "EACH_QUORUM")),
    ],
)
def test_as_many_nodes_take_part_as_have_work(level: str, operation: str, down: tuple[int, ...]) -> None:
    """Data centres of unlike size. With nodes down ALL cannot be met.

    Where the near one has a node down, reads that leave it ask for the row that has lost the most, so for more.
    """
    where = cluster(4, 5, 6, down=down)
    counted = sum(
        each * where.alive[int(dc.removeprefix("dc")) - 1] for dc, each in work(where, level, operation).items()
    )

    assert where.taking_part(0, level, operation) == pytest.approx(counted)


MESSAGES_ONLY = Costs(coordinator=0.0, read=0.0, mutation=0.0, unseen=0.0, storage=0.0, message=1.0)


def sent(where: Cluster, level: str, operation: str) -> float:
    """Messages between nodes for a statement: half of the work that they are at both of their ends."""
    flow = statement(where, MESSAGES_ONLY, 0, level, operation)
    demands = Analysis(system(where, flow, Open(1.0, {"ask": 1.0}))).demands
    alive = {f"cassandra/dc{dc + 1}": count for dc, count in enumerate(where.alive)}
    return sum(float(np.ravel(each.mean_s)[0]) * alive[name] for name, each in demands.items() if name in alive) / 2


@pytest.mark.parametrize(
    ("level", "operation", "down", "messages"),
    [
        ("LOCAL_ONE", "read", (0, 0), 2 * (1 - 3 / 4 + 0.1 * 2)),  # a request and an answer for each replica elsewhere
        ("LOCAL_QUORUM", "read", (0, 0), 2 * (2 - 3 / 4 + 0.1)),  # and in a tenth of the reads for all local ones
        ("LOCAL_QUORUM", "read", (1, 0), 2 * (2 - 3 / 4 + 0.1 / 4)),  # a quarter of the rows have three that are up
        ("QUORUM", "read", (0, 0), 2 * (4 - 3 / 4)),
        ("EACH_QUORUM", "read", (0, 0), 2 * (4 - 3 / 4)),
        (
            "ONE",
            "write",
            (0, 0),
            2 * (3 - 3 / 4) + 1 + 2 + 3,
        ),  # one to a forwarder, two to its peers, and three answers
        ("ALL", "write", (0, 0), 2 * (3 - 3 / 4) + 1 + 2 + 3),  # as many whatever the level
        ("QUORUM", "write", (1, 0), 2 * (9 / 4 - 3 / 4) + 1 + 2 + 3),  # no message to a node that is down
        ("QUORUM", "write", (0, 1), 2 * (3 - 3 / 4) + 1 + 5 / 4 + 9 / 4),  # nor is one forwarded to it
    ],
)
def test_each_message_costs_its_sender_and_its_receiver(
    level: str, operation: str, down: tuple[int, int], messages: float
) -> None:
    assert sent(cluster(4, 4, down=down), level, operation) == pytest.approx(messages)


def test_a_read_at_each_quorum_repairs_nothing_and_sends_no_message_for_it() -> None:
    """Three of five replicas here and the one elsewhere, though two more are near."""
    where = replace(cluster(6, 6), rf=(5, 1))

    assert by_dc(where, "EACH_QUORUM", "read") == {"dc1": 3, "dc2": 1}
    assert sent(where, "EACH_QUORUM", "read") == pytest.approx(2 * (4 - 5 / 6))


def test_other_operations_and_levels_are_refused_by_name() -> None:
    with pytest.raises(RefusedError, match="'batch' is refused"):
        statement(cluster(3), COUNTED, 0, "ONE", "batch")
    with pytest.raises(RefusedError, match="'SERIAL' is refused"):
        statement(cluster(3), COUNTED, 0, "SERIAL", "read")


def latencies_s(where: Cluster, level: str, operation: str, costs: Costs = TINY) -> set[float]:
    """Latencies of a few statements that a single client asks for, in whole microseconds."""
    flow = statement(where, costs, 0, level, operation)
    network = system(where, flow, Closed(1, Deterministic(1.0), {"ask": 1.0}))
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
    where = cluster(3, 3, 3, down=(1, 0, 0))
    assert latencies_s(where, "QUORUM", "write") == {round(CLIENT_S + 2 * WAN_S + LAN_S, 6)}


def test_work_on_the_way_is_waited_for_and_other_work_is_not() -> None:
    """The coordinator's 5 s and the mutation's are in the answer; the unseen 500 s and the storage's are not."""
    where = cluster(1, rf=1)
    flow = statement(where, Costs(5.0, 5.0, 5.0, 100.0, 500.0), 0, "ONE", "write")
    network = system(where, flow, Closed(1, Deterministic(1e6), {"ask": 1.0}))
    mean_s = simulate(network, 60.5e6, seed=3).latency_mean_s()
    assert mean_s == pytest.approx(10.0, rel=0.3)  # 60 sums of two Erlang-2 times: standard error 6.5 %


@pytest.mark.parametrize(("level", "operation"), [("QUORUM", "read"), ("LOCAL_ONE", "read"), ("QUORUM", "write")])
def test_the_steps_do_not_grow_with_the_nodes(level: str, operation: str) -> None:
    few, many = (statement(cluster(n, n, n), COUNTED, 0, level, operation) for n in (3, 3000))
    assert list(map(type, walk(few))) == list(map(type, walk(many)))


def test_the_steps_of_a_write_grow_with_the_data_centres() -> None:
    """By as many for each that is added; with a statement in each, by their square."""
    steps = [sum(1 for _ in walk(statement(cluster(*(3,) * dcs), COUNTED, 0, "ONE", "write"))) for dcs in (1, 2, 3, 10)]
    each = steps[1] - steps[0]
    assert steps == [steps[0] + each * (dcs - 1) for dcs in (1, 2, 3, 10)]


def test_a_read_at_each_quorum_involves_no_node_beside_those_that_must_answer() -> None:
    where = replace(cluster(6, 6), rf=(5, 1), read_repair=0.1)
    assert where.taking_part(0, "EACH_QUORUM", "read") == 3 + 1
