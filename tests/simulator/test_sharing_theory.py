"""Processor sharing against queueing theory; error rates and samples as in `agreement`. Service times of about 1 s."""

import numpy as np
import pytest
from tests.oracles.single_station import machine_repair, mm1_ps_response_s
from tests.simulator.agreement import assert_agrees, each, exp, replications

from capplan.models.language.distribution import Deterministic, Distribution, Hyperexponential
from capplan.models.language.network import Network
from capplan.models.language.station import Station
from capplan.models.language.step import Visit
from capplan.models.language.traffic import Closed, Open, RequestClass, Traffic
from capplan.models.solver.single_station import mmc
from capplan.simulator.results.run import Run
from capplan.simulator.specification.clock import to_seconds
from capplan.simulator.specification.sampling import tick_sampler
from capplan.simulator.specification.streams import name_key, request_key, root_key, source_key, uniform

VARIED = Hyperexponential((0.8, 0.2), (0.5, 3.0))  # mean 1, squared coefficient of variation 3


def sharing(demand: Distribution, traffic: Traffic, servers: int = 1) -> Network:
    request = RequestClass("job", Visit("server", demand, name="serve"))
    return Network("sharing", (Station("server", servers, "ps"),), (request,), traffic)


def arrivals(rate_per_s: float) -> Open:
    return Open(rate_per_s, {"job": 1.0})


def demands_s(run: Run, demand: Distribution) -> np.ndarray:
    """Return the demand of every measured request, drawn again, since a draw is a function of its key."""
    source, draw = source_key(root_key(run.seed, run.replication), "source", "job"), name_key("step", "/serve")
    ticks = tick_sampler(demand)
    units = run.requests.session[run.measured()]
    return np.array([to_seconds(ticks(uniform(request_key(source, int(unit), 0), draw))) for unit in units])


def test_mm1_and_its_conditional_slowdown() -> None:
    """A request of d seconds takes d / (1 - rho) in the mean, however short or long it is (Kleinrock 1976, 4.4)."""
    runs = replications(sharing(exp(1.0), arrivals(0.6)), 6_000, 500)
    mean_s, variance = (float(figure) for figure in mm1_ps_response_s(0.6, 1.0))
    assert_agrees(each(runs, lambda run: run.latency_mean_s()), mean_s, detects=0.08)
    assert_agrees(each(runs, lambda run: float(np.mean(run.latencies_s() ** 2))), variance + mean_s**2, detects=0.28)
    assert_agrees(each(runs, lambda run: run.stations["server"].utilisation), 0.6, detects=0.04)
    assert_agrees(each(runs, lambda run: run.stations["server"].mean_number), 0.6 * mean_s, detects=0.09)
    drawn = [(demands_s(run, exp(1.0)), run.latencies_s()) for run in runs]
    for shortest_s, longest_s in ((0.0, 0.1), (0.1, 0.7), (0.7, 2.0), (2.0, 100.0)):
        means = [float((took / d)[(d >= shortest_s) & (d < longest_s)].mean()) for d, took in drawn]
        assert_agrees(means, mean_s, detects=0.1)


@pytest.mark.parametrize(
    ("demand", "detects"), [(Deterministic(1.0), 0.05), (VARIED, 0.12)], ids=["M/D/1-PS", "M/H2/1-PS"]
)
def test_the_mean_response_depends_on_the_mean_demand_only(demand: Distribution, detects: float) -> None:
    """First come, first served, these differ by a factor of 2."""
    runs = replications(sharing(demand, arrivals(0.5)), 7_000, 500)
    assert_agrees(each(runs, lambda run: run.latency_mean_s()), float(mm1_ps_response_s(0.5, 1.0)[0]), detects)


@pytest.mark.parametrize(("demand", "duration_s"), [(exp(1.0), 1_600), (VARIED, 2_000)], ids=["M/M/4-PS", "M/H2/4-PS"])
def test_several_servers_answer_as_fast_as_first_come_first_served(demand: Distribution, duration_s: float) -> None:
    """In the mean, M/M/m-PS is M/M/m, whatever the distribution of demands."""
    runs = replications(sharing(demand, arrivals(3.0), servers=4), duration_s, 200)
    expected = mmc(3.0, 1.0, 4)
    assert_agrees(each(runs, lambda run: run.latency_mean_s()), float(expected.mean_response_s), detects=0.15)
    assert_agrees(each(runs, lambda run: run.stations["server"].utilisation), 0.75, detects=0.08)
    mean_wait_s = float(expected.mean_wait_s)
    assert_agrees(each(runs, lambda run: run.stations["server"].mean_wait_s), mean_wait_s, detects=0.4)


def test_clients_who_share_two_servers() -> None:
    """Eight clients think 10 s in the mean and need 2 s: the finite-source queue, for any demands."""
    demand = Hyperexponential((0.9, 0.1), (1.0, 11.0))
    runs = replications(sharing(demand, Closed(8, exp(10.0), {"job": 1.0}), servers=2), 5_000, 500)
    expected = machine_repair(8, 10.0, 2.0, 2)
    assert_agrees(each(runs, lambda run: run.latency_mean_s()), float(expected.mean_response_s), detects=0.1)
    assert_agrees(each(runs, lambda run: run.throughput_per_s()), float(expected.throughput_per_s), detects=0.05)
    number = float(expected.mean_number)
    assert_agrees(each(runs, lambda run: run.stations["server"].mean_number), number, detects=0.08)
