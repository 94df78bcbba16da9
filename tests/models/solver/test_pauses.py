"""Pauses of nodes: the delay of a station that pauses, and which nodes a statement needs."""

from dataclasses import replace

import numpy as np
import pytest

from capplan.models.cassandra.cluster import Cluster, needed_nodes
from capplan.models.language.distribution import Exponential
from capplan.models.language.network import Network
from capplan.models.language.station import Pauses, Station
from capplan.models.language.step import Pick, Visit
from capplan.models.language.traffic import Open, RequestClass, Session
from capplan.models.solver.analytic import Analysis
from capplan.models.solver.operating_point import solve
from capplan.models.solver.pauses import RareDelay, pause_delays, sent_in_pauses
from capplan.models.solver.single_station import Stalls, wait_tail
from capplan.simulator.compiled.engine import simulate


def test_one_node_waits_as_an_mg1_queue_of_pauses() -> None:
    """With pauses of one kind the wait is 0 or exponential; the closed form for two equal kinds says the same."""
    share, mean_s, utilisation = 0.02, 0.05, np.array([0.5])
    found, after = pause_delays(share, mean_s, utilisation, 1)
    half = Stalls(share / mean_s / 2, mean_s)
    tail = wait_tail(utilisation, half, half)
    for time_s in (0.0, 0.05, 0.2):
        expected = float((tail.weight * np.exp(-tail.decay_per_s * time_s)).sum())
        assert float((found.chance * np.exp(-time_s / found.mean_s))[0]) == pytest.approx(expected, rel=1e-3)
    assert after.chance == pytest.approx(0.0)


def test_no_queue_builds_up_if_nothing_else_is_sent() -> None:
    in_pause, after = pause_delays(1e-6, 0.05, np.array([0.5]), 1, work=0.0)
    assert in_pause.chance == pytest.approx(1e-6)
    assert in_pause.mean_s == pytest.approx(0.05, rel=1e-5)
    assert after.chance == pytest.approx(0.0)


@pytest.mark.parametrize("work", [0.0, 0.3, 0.7, 1.0])
def test_the_mean_wait_follows_from_the_work_in_pauses(work: float) -> None:
    """The wait falls from the length l of a pause to a l in it, and to 0 at the rate 1 - u after it."""
    share, mean_s, busy = 1e-9, 0.05, 0.6
    queued, square = busy * work, 2 * mean_s**2
    expected = share / mean_s * ((1 + queued) / 2 * square + queued**2 * square / 2 / (1 - busy))
    found = sum(
        float((each.chance * each.mean_s)[0]) for each in pause_delays(share, mean_s, np.array([busy]), 1, work)
    )
    assert found == pytest.approx(expected, rel=1e-6)


def test_independent_nodes_delay_together() -> None:
    (one, _), (three, _) = (pause_delays(0.02, 0.05, np.array([0.5]), nodes) for nodes in (1, 3))
    assert three.chance == pytest.approx(1 - (1 - one.chance) ** 3)


@pytest.mark.parametrize(("share", "busy", "work"), [(0.5, 0.99, 1.0), (0.05, 0.999999, 0.2), (0.9, 0.1, 0.0)])
def test_no_more_than_all_requests_are_delayed(share: float, busy: float, work: float) -> None:
    found = pause_delays(share, 0.05, np.array([busy]), 9, work)
    assert 0 < sum(float(each.chance[0]) for each in found) < 1
    assert all(np.isfinite(each.mean_s).all() for each in found)


def test_sessions_that_wait_send_nothing_into_the_pause() -> None:
    assert sent_in_pauses((1.0, 1.0, 1.0), 0.0, 0.05) == pytest.approx((1.0, 0.0, 0.0))
    assert sent_in_pauses((1.0, 1.0, 1.0), 0.05, 0.05) == pytest.approx((1.0, 0.5, 0.5))
    assert sent_in_pauses((0.5, 0.5, 0.5), 0.0, 0.05) == pytest.approx((1.0, 0.5, 0.25))
    assert sent_in_pauses((0.0, 0.0), 0.0, 0.05) == pytest.approx((1.0, 1.0))


def network(*pauses: Pauses) -> Network:
    work = Visit("node", Exponential(1e-3), name="work")
    return Network("one", (Station("node", 1, pauses=pauses),), (RequestClass("ask", work),), Open(500.0, {"ask": 1.0}))


@pytest.mark.slow
def test_percentiles_with_pauses_are_those_of_a_simulated_station() -> None:
    """Some 10,000 pauses: their percentiles have a standard error of about 2 %."""
    share, mean_s = 0.02, 0.05
    run = simulate(network(Pauses(Exponential(mean_s / share - mean_s), Exponential(mean_s))), 25_000.0, seed=1)
    point = solve(Analysis(network()), 500.0)
    delays = {"ask": pause_delays(share, mean_s, np.array([0.5]), 1)}
    for level in (0.99, 0.999):
        found = float(point.quantiles_s((level,), "ask", delays=delays)[0, 0])
        assert found == pytest.approx(run.latency_quantile_s(level), rel=0.1)


def test_percentiles_of_sessions_that_wait_for_paused_nodes() -> None:
    """2,400 pauses: p99.9 has a standard error of 2 %, and the formula is 3 % off. M/G/1 would be 16 % too long."""
    share, mean_s, rate, duration_s = 0.02, 0.02, 3000.0, 800.0
    pauses = Pauses(Exponential(mean_s / share - mean_s), Exponential(mean_s))
    work, names = (
        Pick("one", "node", "random", Visit("node", Exponential(1e-3), member="one")),
        ("first", *("next",) * 7),
    )
    classes, traffic = tuple(RequestClass(name, work) for name in set(names)), Open(rate, {"session": 1.0})
    sessions = (Session("session", names, (Exponential(5e-4),) * 7),)
    nodes = Station("node", 2, count=3)
    plain = Network("sessions", (nodes,), classes, traffic, sessions=sessions)
    run = simulate(replace(plain, stations=(replace(nodes, pauses=(pauses,)),)), duration_s, seed=1)
    analysis = Analysis(plain)
    sent = sent_in_pauses((1 / 3,) * 8, float(analysis.averaged(analysis.unloaded)[0]) + 5e-4, mean_s)
    inflow, busy = sum(sent) / 8, np.array([rate * 1e-3 / 6])
    for name, shares in (("first", sent[:1]), ("next", sent[1:])):
        delays = {name: pause_delays(share, mean_s, busy, 1, inflow, sent=sum(shares) / len(shares))}
        found = float(solve(analysis, rate).quantiles_s((0.999,), name, delays=delays)[0, 0])
        assert found == pytest.approx(run.report(name).latency("actual").quantile_s(0.999), rel=0.1)


def test_without_a_chance_nothing_changes() -> None:
    point = solve(Analysis(network()), 500.0)
    never = {"ask": (RareDelay(np.array([0.0]), np.array([1.0])),)}
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
