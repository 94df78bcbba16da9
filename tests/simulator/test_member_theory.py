"""Stations with a count against queueing theory, and against the same networks written out node by node.

Error rates and samples as in `agreement`. Service times of about 1 s.
"""

import pytest
from tests.oracles.order_statistics import kth_of_n_mean_exponential
from tests.oracles.single_station import mmck
from tests.simulator.agreement import assert_agrees, each, exp, replications

from capplan.models.language.network import Network
from capplan.models.language.station import Differs, Pool, Station
from capplan.models.language.step import (
    Acquire,
    Delay,
    FanOut,
    Pick,
    ReplicaSet,
    RoutePolicy,
    Step,
    Visit,
)
from capplan.models.language.traffic import Open, RequestClass
from capplan.models.solver.single_station import mmc


def model(flow: Step, rate_per_s: float, *stations: Station, pools: tuple[Pool, ...] = ()) -> Network:
    return Network("theory", stations, (RequestClass("job", flow),), Open(rate_per_s, {"job": 1.0}), pools)


def at(member: str, mean_s: float = 1.0, station: str = "node") -> Visit:
    return Visit(station, exp(mean_s), member=member)


def pick(step: Step, policy: RoutePolicy = "random") -> Pick:
    return Pick("here", "node", policy, step)


def test_members_picked_at_random_are_queues_of_their_own() -> None:
    """A Poisson stream that is split at random is Poisson in every part: M/M/2, six times."""
    expected = mmc(1.2, 1.0, 2)
    runs = replications(model(pick(at("here")), 6 * 1.2, Station("node", 2, count=6)), 1_500, 100)
    assert_agrees(each(runs, lambda run: run.latency_mean_s()), float(expected.mean_response_s), detects=0.05)
    for name in ("node/1", "node/6"):
        assert_agrees([run.stations[name].utilisation for run in runs], 0.6, detects=0.05)
        assert_agrees([run.stations[name].mean_number for run in runs], float(expected.mean_number), detects=0.15)


def test_members_that_differ_are_queues_of_different_capacity() -> None:
    exceptions = (Differs(2, speed=0.8), Differs(3, servers=2), Differs(4, down=True))
    network = model(pick(at("here")), 3 * 0.4, Station("node", 1, count=4, exceptions=exceptions))
    runs = replications(network, 9_000, 500)
    for name, service_s, servers in (("node/1", 1.0, 1), ("node/2", 1.25, 1), ("node/3", 1.0, 2)):
        number = float(mmc(0.4, service_s, servers).mean_number)
        assert_agrees([run.stations[name].mean_number for run in runs], number, detects=0.2)
        # Servers are busy 0.4 visits per second times the service time.
        utilisation = 0.4 * service_s / servers
        assert_agrees([run.stations[name].utilisation for run in runs], utilisation, detects=0.05)


def test_members_of_a_pool_are_loss_systems_of_their_own() -> None:
    """Erlang's loss formula holds for each of the members."""
    network = model(
        Pick("here", "threads", "random", Acquire("threads", Delay(exp(1.0)), member="here")),
        4 * 2.0,
        pools=(Pool("threads", 3, queue_limit=0, count=4),),
    )
    expected = mmck(2.0, 1.0, 3, 3)
    runs = replications(network, 1_500, 100)
    assert_agrees(each(runs, lambda run: run.drop_rate()), float(expected.blocking_probability), detects=0.06)
    carried = float(expected.throughput_per_s)
    assert_agrees([run.pools["threads/2"].mean_busy for run in runs], carried, detects=0.05)


@pytest.mark.parametrize("placement", ["ring", "random"])
def test_two_of_three_replicas_without_queueing(placement: str) -> None:
    """The second of three exponential branches, or the slower of two that are contacted (Renyi 1953)."""
    for contacted in (2, 3):
        ask = FanOut("row", "one", at("one"), 2, contacted)
        flow = ReplicaSet("row", "node", 3, ask, placement)  # type: ignore[arg-type]  # one of both
        runs = replications(model(flow, 1.0, Station("node", 1_000, count=7)), 1_000, 0)
        mean_s = float(kth_of_n_mean_exponential(1.0, 2, contacted))
        assert_agrees(each(runs, lambda run: run.latency_mean_s()), mean_s, detects=0.04)


def test_two_replicas_of_two_are_a_fork_join_with_shared_arrivals() -> None:
    """Flatto and Hahn (1984), as for two stations written out."""
    flow = ReplicaSet("row", "node", 2, FanOut("row", "one", at("one"), 2))
    runs = replications(model(flow, 0.6, Station("node", 1, count=2)), 8_000, 500)
    assert_agrees(each(runs, lambda run: run.latency_mean_s()), (12 - 0.6) / 8 / (1 - 0.6), 0.09)


@pytest.mark.parametrize("placement", ["ring", "random"])
def test_replicas_load_all_members_alike(placement: str) -> None:
    """Of eight members each has three eighths of the visits (utilisation law)."""
    ask = FanOut("row", "one", at("one"), 1)
    flow = ReplicaSet("row", "node", 3, ask, placement)  # type: ignore[arg-type]  # one of both
    runs = replications(model(flow, 1.0, Station("node", 1, count=8)), 8_000, 200)
    for number in range(1, 9):
        assert_agrees([run.stations[f"node/{number}"].utilisation for run in runs], 3 / 8, detects=0.05)
