"""The SimPy engine against queueing theory; error rates and samples as in `agreement`. Service times of about 1 s."""

import numpy as np
import pytest
from tests.oracles.order_statistics import kth_of_n_level, kth_of_n_mean_exponential
from tests.oracles.single_station import birth_death, machine_repair, mg1_mean_wait_s, mmck
from tests.simulator.agreement import assert_agrees, each, exp, replications

from capplan.models.language.distribution import Deterministic, Distribution, Erlang, Hyperexponential, Lognormal
from capplan.models.language.network import Network
from capplan.models.language.station import Pool, Station
from capplan.models.language.step import Acquire, Choice, Delay, ForkJoin, Sequence, Step, Visit
from capplan.models.language.traffic import Closed, Open, RequestClass, Session, Traffic
from capplan.models.solver.single_station import mmc
from capplan.simulator.results.tally import Status


def model(flow: Step, traffic: float | Traffic, *stations: Station, pools: tuple[Pool, ...] = ()) -> Network:
    if isinstance(traffic, float):
        traffic = Open(traffic, {"job": 1.0})
    return Network("theory", stations, (RequestClass("job", flow),), traffic, pools)


def queue(demand: Distribution, rate_per_s: float, servers: int = 1) -> Network:
    return model(Visit("server", demand), rate_per_s, Station("server", servers))


def test_mm1() -> None:
    runs = replications(queue(exp(1.0), 0.6), 12_000, 1_000)
    assert_agrees(each(runs, lambda run: run.latency_mean_s()), 1 / (1 - 0.6), detects=0.07)
    assert_agrees(each(runs, lambda run: run.stations["server"].utilisation), 0.6, detects=0.03)
    assert_agrees(each(runs, lambda run: run.stations["server"].mean_queue), 0.6**2 / 0.4, detects=0.12)
    # The response time is exponential.
    assert_agrees(each(runs, lambda run: run.latency_quantile_s(0.9)), np.log(10) / 0.4, detects=0.1)


def test_mmc() -> None:
    expected = mmc(3.0, 1.0, 4)
    runs = replications(queue(exp(1.0), 3.0, servers=4), 2_600, 200)
    assert_agrees(each(runs, lambda run: run.latency_mean_s()), float(expected.mean_response_s), detects=0.08)
    number = float(expected.mean_number)
    assert_agrees(each(runs, lambda run: run.stations["server"].mean_number), number, detects=0.08)


@pytest.mark.parametrize("limited_by", ["pool around a station", "pool with a queue limit around a delay"])
def test_mmck(limited_by: str) -> None:
    """M/M/3/5 both ways: five may be inside, or three units and two who wait."""
    if limited_by == "pool around a station":
        pool, station = Pool("limit", 5, queue_limit=0), Station("server", 3)
        network = model(Acquire("limit", Visit("server", exp(1.0))), 3.0, station, pools=(pool,))
    else:
        network = model(Acquire("limit", Delay(exp(1.0))), 3.0, pools=(Pool("limit", 3, queue_limit=2),))
    expected = mmck(3.0, 1.0, 3, 5)
    runs = replications(network, 2_000, 100)
    assert_agrees(each(runs, lambda run: run.drop_rate()), float(expected.blocking_probability), detects=0.06)
    assert_agrees(each(runs, lambda run: run.throughput_per_s()), float(expected.throughput_per_s), detects=0.02)
    assert_agrees(each(runs, lambda run: run.latency_mean_s()), float(expected.mean_response_s), detects=0.03)
    busy = 4 if limited_by == "pool around a station" else 2
    share = float(birth_death([3.0] * 5, [1, 2, 3, 3, 3])[busy])
    assert_agrees(each(runs, lambda run: float(run.pools["limit"].busy_share[busy])), share, detects=0.06)


@pytest.mark.parametrize(
    ("demand", "detects"),
    [
        (Deterministic(1.0), 0.08),
        (Erlang(1.0, 3), 0.1),
        (Lognormal(1.0, 1.5), 0.2),
        (Hyperexponential((0.8, 0.2), (0.5, 3.0)), 0.2),
    ],
    ids=["M/D/1", "M/E3/1", "M/LN/1", "M/H2/1"],
)
def test_mg1(demand: Distribution, detects: float) -> None:
    """The mean wait depends on the squared coefficient of variation of demands (Pollaczek-Khinchine)."""
    runs = replications(queue(demand, 0.6), 9_000, 500)
    wait_s = float(mg1_mean_wait_s(0.6, 1.0, demand.scv))
    assert_agrees(each(runs, lambda run: run.stations["server"].mean_wait_s), wait_s, detects)


def test_machine_repair() -> None:
    """Eight machines run 10 s in the mean, two repairmen need 2 s: the finite-source queue."""
    expected = machine_repair(8, 10.0, 2.0, 2)
    traffic = Closed(8, exp(10.0), {"job": 1.0})
    runs = replications(model(Visit("repair", exp(2.0)), traffic, Station("repair", 2)), 6_000, 200)
    assert_agrees(each(runs, lambda run: run.stations["repair"].mean_number), float(expected.mean_number), detects=0.05)
    assert_agrees(each(runs, lambda run: run.throughput_per_s()), float(expected.throughput_per_s), detects=0.03)
    assert_agrees(each(runs, lambda run: run.latency_mean_s()), float(expected.mean_response_s), detects=0.05)


def test_open_jackson_network() -> None:
    """A front, one of two stores, the front's peer: every station is M/M/c at its own flow (Jackson 1957)."""
    stores = Choice((0.3, 0.7), (Visit("small", exp(1.0)), Visit("large", exp(1.0))))
    flow = Sequence((Visit("front", exp(0.6)), stores, Visit("back", exp(0.4))))
    stations = (Station("front", 1), Station("small", 1), Station("large", 2), Station("back", 1))
    runs = replications(model(flow, 1.0, *stations), 4_000, 500)
    rates, services_s = [1.0, 0.3, 0.7, 1.0], [0.6, 1.0, 1.0, 0.4]
    expected = mmc(rates, services_s, [station.servers for station in stations]).mean_number
    for station, number in zip(stations, expected, strict=True):
        assert_agrees([run.stations[station.name].mean_number for run in runs], float(number), detects=0.15)
    assert_agrees(each(runs, lambda run: run.latency_mean_s()), float(expected.sum()), detects=0.06)


def test_tandem_sojourns_are_independent() -> None:
    """Burke and Reich: the times at two single servers in a row are independent exponentials."""
    flow = Sequence((Visit("one", exp(1.0)), Visit("two", exp(1.0))))
    runs = replications(model(flow, 0.5, Station("one", 1), Station("two", 1)), 9_500, 500)
    assert_agrees(each(runs, lambda run: run.latency_mean_s()), 4.0, detects=0.06)
    assert_agrees(each(runs, lambda run: float(np.mean(run.latencies_s() ** 2))), 4.0**2 + 2 * 4.0, detects=0.15)


def test_two_of_three_without_queueing() -> None:
    """A read waits for the slower of the two replicas that it contacts, a write for the second of three."""
    for contacted in (2, 3):
        runs = replications(model(ForkJoin(tuple(Delay(exp(1.0)) for _ in range(contacted)), 2), 1.0), 1_000, 0)
        mean_s, level = kth_of_n_mean_exponential(1.0, 2, contacted), kth_of_n_level(0.5, 2, contacted)
        assert_agrees(each(runs, lambda run: run.latency_mean_s()), float(mean_s), detects=0.04)
        median_s = float(exp(1.0).quantile(level))
        assert_agrees(each(runs, lambda run: run.latency_quantile_s(0.5)), median_s, detects=0.06)


def test_two_branch_fork_join_with_shared_arrivals() -> None:
    """Flatto and Hahn (1984): with two M/M/1 branches the mean response is (12 - rho) / 8 times that of one."""
    flow = ForkJoin((Visit("one", exp(1.0)), Visit("two", exp(1.0))), 2)
    runs = replications(model(flow, 0.6, Station("one", 1), Station("two", 1)), 8_000, 500)
    assert_agrees(each(runs, lambda run: run.latency_mean_s()), (12 - 0.6) / 8 / (1 - 0.6), 0.09)


def test_lightly_loaded_write_is_the_second_of_three() -> None:
    """At 1 % load the visits hardly wait: the response differs from that without queues by less than 1 %."""
    flow = ForkJoin(tuple(Visit(f"replica {n}", exp(1.0)) for n in range(3)), 2)
    runs = replications(model(flow, 0.01, *(Station(f"replica {n}", 1) for n in range(3))), 130_000, 0)
    # Each visit waits 0.01 services in the mean.
    mean_s = float(kth_of_n_mean_exponential(1.0, 2, 3)) + 0.005
    assert_agrees(each(runs, lambda run: run.latency_mean_s()), mean_s, detects=0.04)


def test_rate_counts_requests_of_sessions_and_classes() -> None:
    """4 requests/s of which half the arrivals are sessions of 3: 2 arrivals/s, so 3 + 1 requests/s."""
    classes = (RequestClass("login", Delay(exp(0.1))), RequestClass("work", Delay(exp(0.1))))
    talk = Session("talk", ("login", "work", "work"), (exp(1.0), exp(1.0)))
    traffic = Open(4.0, {"talk": 0.5, "login": 0.5})
    network = Network("mix", (), classes, traffic, sessions=(talk,))
    runs = replications(network, 900, 50)
    assert_agrees(each(runs, lambda run: run.throughput_per_s()), 4.0, detects=0.05)
    assert_agrees(each(runs, lambda run: run.throughput_per_s("work")), 2.0, detects=0.06)


def test_abandonment_loses_the_tail() -> None:
    """M/M/1 whose clients wait at most t: the share exp(-(1 - rho) t) gives up, and the work is done all the same."""
    network = Network(
        "patience",
        (Station("server", 1),),
        (RequestClass("job", Visit("server", exp(1.0)), timeout_s=3.0),),
        Open(0.5, {"job": 1.0}),
    )
    runs = replications(network, 6_000, 500)
    assert_agrees(each(runs, lambda run: run.drop_rate()), float(np.exp(-0.5 * 3.0)), detects=0.13)
    assert_agrees(each(runs, lambda run: run.stations["server"].utilisation), 0.5, detects=0.04)
    assert all(run.count(Status.TIMED_OUT) for run in runs)
