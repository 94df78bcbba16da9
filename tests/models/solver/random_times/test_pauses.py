"""Pauses of nodes: the delay of a station that pauses, and which nodes a statement needs."""

import numpy as np
import pytest

from capplan.models.cassandra.cluster import Cluster, needed_nodes
from capplan.models.language.distribution import Exponential
from capplan.models.language.network import Network
from capplan.models.language.station import Pauses, Station
from capplan.models.language.step import Visit
from capplan.models.language.traffic import Open, RequestClass
from capplan.models.solver.analytic import Analysis
from capplan.models.solver.operating_point import solve
from capplan.models.solver.random_times.pauses import RareDelay, pause_delay
from capplan.models.solver.stations.stalls import Stalls, wait_tail
from capplan.simulator.engine import simulate


def test_one_node_waits_as_an_mg1_queue_of_pauses() -> None:
    """With pauses of one kind the wait is 0 or exponential; the closed form for two equal kinds says the same."""
    share, mean_s, utilisation = 0.02, 0.05, np.array([0.5])
    found = pause_delay(share, mean_s, utilisation, 1)
    half = Stalls(share / mean_s / 2, mean_s)
    tail = wait_tail(utilisation, half, half)
    for time_s in (0.0, 0.05, 0.2):
        expected = float((tail.weight * np.exp(-tail.decay_per_s * time_s)).sum())
        assert float((found.chance * np.exp(-time_s / found.mean_s))[0]) == pytest.approx(expected, rel=1e-3)


def test_independent_nodes_delay_together() -> None:
    one, three = (pause_delay(0.02, 0.05, np.array([0.5]), nodes) for nodes in (1, 3))
    assert three.chance == pytest.approx(1 - (1 - one.chance) ** 3)


def test_sessions_that_wait_send_nothing_into_the_pause() -> None:
    alone, follows = (pause_delay(0.02, 0.05, np.array([0.5]), 1, rate) for rate in (0.0, 20.0))
    assert follows.chance == pytest.approx(alone.chance / 2)
    assert follows.mean_s == pytest.approx(alone.mean_s)


def network(*pauses: Pauses) -> Network:
    work = Visit("node", Exponential(1e-3), name="work")
    return Network("one", (Station("node", 1, pauses=pauses),), (RequestClass("ask", work),), Open(500.0, {"ask": 1.0}))


def test_percentiles_with_pauses_are_those_of_a_simulated_station() -> None:
    """Some 10,000 pauses: their percentiles have a standard error of about 2 %."""
    share, mean_s = 0.02, 0.05
    run = simulate(network(Pauses(Exponential(mean_s / share - mean_s), Exponential(mean_s))), 25_000.0, seed=1)
    point = solve(Analysis(network()), 500.0)
    delays = {"ask": pause_delay(share, mean_s, np.array([0.5]), 1)}
    for level in (0.99, 0.999):
        found = float(point.quantiles_s((level,), "ask", delays=delays)[0, 0])
        assert found == pytest.approx(run.latency_quantile_s(level), rel=0.1)


def test_without_a_chance_nothing_changes() -> None:
    point = solve(Analysis(network()), 500.0)
    never = {"ask": RareDelay(np.array([0.0]), np.array([1.0]))}
    assert point.quantiles_s((0.5, 0.99), "ask", delays=never) == pytest.approx(point.quantiles_s((0.5, 0.99), "ask"))


@pytest.mark.parametrize(
    ("level", "operation", "nodes", "expected"),
    [
        ("LOCAL_QUORUM", "read", 3, 1 + 0.9 * 1),  # the coordinator is one of the two replicas
        ("LOCAL_QUORUM", "read", 6, 1 + 0.9 * 1.5),
        ("LOCAL_ONE", "read", 3, 1.0),
        ("QUORUM", "write", 3, 1.0),  # five of nine: another replica answers
        ("EACH_QUORUM", "write", 3, 1.0),
        ("ALL", "write", 3, 9.0),
        ("ALL", "write", 6, 9.5),
    ],
)
def test_nodes_of_which_each_alone_delays_a_statement(level: str, operation: str, nodes: int, expected: float) -> None:
    cluster = Cluster((nodes,) * 3, (3,) * 3, 24, 1e-4, ((1e-3,) * 3,) * 3)
    assert needed_nodes(cluster, 0, level, operation) == pytest.approx(expected)
