"""Networks with parts that do nothing: classes without traffic, units held for no time, visits of no time."""

from dataclasses import replace
from typing import Literal

import numpy as np
import pytest

from capplan.errors import RefusedError
from capplan.models.language.distribution import Deterministic, Distribution, Exponential, Mixture, Pareto, scaled
from capplan.models.language.network import Network
from capplan.models.language.station import Assignment, Pool, RateTable, Station
from capplan.models.language.step import (
    Acquire,
    Choice,
    CountdownLatch,
    Delay,
    ForkJoin,
    Group,
    Sequence,
    Signal,
    Step,
    Visit,
)
from capplan.models.language.traffic import Closed, Open, RequestClass, Throttled, Traffic
from capplan.models.language.units import FloatArray
from capplan.models.solver.analytic import Analysis
from capplan.models.solver.closed_clients import solve_clients
from capplan.models.solver.operating_point import capacity_per_s, solve

TENTH_S = Exponential(0.1)
CPU, DISK = Station("cpu", 2, "ps"), Station("disk", 1, "fcfs")
WORK = Sequence((Delay(Exponential(0.05)), Visit("cpu", TENTH_S)))
CLOSED = Closed(8, Deterministic(0.0), {"read": 1.0})


def network(
    flow: Step, traffic: Traffic = CLOSED, *others: Step, stations: tuple[Station, ...] = (CPU, DISK)
) -> Network:
    """Compose a network of reads, and of classes that the traffic may not have."""
    classes = (RequestClass("read", flow), *(RequestClass(f"other{at}", each) for at, each in enumerate(others)))
    return Network("it", stations, classes, traffic, (Pool("workers", 2, 3), Pool("idle", 1)))


def figures(its: Network) -> FloatArray:
    """Return the rate, the mean and the 99th percentile of reads."""
    analysis = Analysis(its)
    traffic = its.traffic
    point = solve(analysis, float(traffic.rate_per_s)) if isinstance(traffic, Open) else solve_clients(analysis)
    return np.array(
        [each.ravel()[0] for each in (point.rate_per_s, point.response_s("read"), point.quantile_s(0.99, "read"))]
    )


TRAFFICS = [CLOSED, Throttled(8, 5.0, {"read": 1.0}), Open(12.0, {"read": 1.0})]


@pytest.mark.parametrize("traffic", TRAFFICS)
def test_a_class_without_traffic_changes_nothing(traffic: Traffic) -> None:
    """Neither its pool, nor that the solver knows nothing of its times."""
    other = Acquire("workers", Visit("disk", Pareto(0.1, 1.5)))
    assert figures(network(WORK, traffic, other)) == pytest.approx(figures(network(WORK, traffic)))


@pytest.mark.parametrize("traffic", TRAFFICS)
def test_a_unit_that_is_held_for_no_time_limits_nothing(traffic: Traffic) -> None:
    at_once = CountdownLatch((Group("done", 1),), ForkJoin((Signal("done"),), 0))
    free = Sequence((Acquire("idle", at_once), WORK))
    assert figures(network(free, traffic)) == pytest.approx(figures(network(WORK, traffic)))
    some = Choice((0.5, 0.5), (free, WORK))
    assert figures(network(some, traffic)) == pytest.approx(figures(network(WORK, traffic)))


@pytest.mark.parametrize("traffic", TRAFFICS)
def test_a_visit_that_takes_no_time_is_none(traffic: Traffic) -> None:
    nothing = Sequence((Acquire("workers", Sequence((Visit("disk", Deterministic(0.0)), WORK))),))
    assert figures(network(nothing, traffic)) == pytest.approx(figures(network(Acquire("workers", WORK), traffic)))


@pytest.mark.parametrize("traffic", TRAFFICS)
@pytest.mark.parametrize("assignment", ["pooled", "random", "round_robin", "least_loaded"])
@pytest.mark.parametrize("discipline", ["ps", "fcfs"])
@pytest.mark.parametrize("speed", [0.3, 6.0])
def test_a_constant_speed_is_another_service_time(
    traffic: Traffic, assignment: Assignment, discipline: Literal["fcfs", "ps"], speed: float
) -> None:
    """Also without queueing: a request that is alone at a slow station takes longer there."""
    cpu = Station("cpu", 2, discipline, assignment=assignment)

    def at(own: Station, service: Distribution) -> FloatArray:
        return figures(
            network(Sequence((Delay(Exponential(0.05)), Visit("cpu", service))), traffic, stations=(own, DISK))
        )

    service = Exponential(0.1 * speed)
    found = at(replace(cpu, rate=RateTable((speed,))), service)
    assert found == pytest.approx(at(cpu, scaled(service, 1 / speed)))


def test_a_table_of_speeds_counts_from_its_first() -> None:
    """Half the speeds and half the work are the same."""

    def at(*speeds: float, work_s: float) -> FloatArray:
        cpu = replace(CPU, rate=RateTable(speeds))
        return figures(network(Visit("cpu", Exponential(work_s)), stations=(cpu, DISK)))

    assert at(1.0, 1.0, 0.8, work_s=0.1) == pytest.approx(at(0.5, 0.5, 0.4, work_s=0.05))


@pytest.mark.parametrize("heavy", [Pareto(0.01, 1.5), Mixture((0.9, 0.1), (TENTH_S, Pareto(0.01, 2.0)))])
def test_times_of_infinite_variance_are_refused(heavy: Distribution) -> None:
    """In any visit, even one that nothing waits for, and in delays."""
    for flow in (
        Visit("cpu", heavy),
        Sequence((WORK, ForkJoin((Visit("disk", heavy),), 0))),
        Sequence((WORK, Delay(heavy))),
    ):
        with pytest.raises(RefusedError, match="infinite variance"):
            figures(network(flow))


def test_requests_that_are_answered_at_once_are_refused() -> None:
    """A race with an immediate signal: the other's work delays nobody, but for rounding."""
    race = ForkJoin((Visit("cpu", TENTH_S), CountdownLatch((Group("a", 1),), ForkJoin((Signal("a"),), 1))), 1)
    with pytest.raises(RefusedError, match="requests wait for"):
        figures(network(race))


@pytest.mark.parametrize("clients", [1, 8, 64])
def test_stations_that_nobody_waits_for_are_left_out_of_what_clients_reach(clients: int) -> None:
    """Alike or not, and in any order: the answers are those without the work that is left behind elsewhere."""
    beside = Visit("disk", Exponential(0.1))
    for station in (DISK, replace(CPU, name="disk")):
        for stations in ((CPU, station), (station, CPU)):
            traffic = replace(CLOSED, clients=clients)
            left = network(Sequence((ForkJoin((beside,), 0), WORK)), traffic, stations=stations)
            assert figures(left) == pytest.approx(figures(network(WORK, traffic)), rel=2e-3)


def test_clients_outrun_a_station_that_a_race_does_without() -> None:
    """The disk could do 10 races a second, and the delay beside it wins them all: 8 clients do 80 a second."""
    race = ForkJoin((Visit("disk", TENTH_S), Delay(Deterministic(0.1))), 1)
    wide = replace(CPU, servers=64)
    flow = Sequence((Visit("cpu", Exponential(1e-3)), race))
    rate = figures(network(flow, stations=(wide, DISK)))[0]
    assert (
        float(capacity_per_s(Analysis(network(flow, Open(1.0, {"read": 1.0}), stations=(wide, DISK))), 0.01)[0]) <= 10.1
    )
    assert 78 < rate < 90


def test_work_beside_a_pool_counts_where_only_some_requests_pass_it() -> None:
    """Half of the requests take 0.02 s more in a pool that hardly queues; the solver is 11 % off, and was 50 %."""
    passed = Sequence((Acquire("workers", Visit("disk", Exponential(0.02))), WORK))
    traffic = Open(2.0, {"read": 1.0})
    means = [figures(network(flow, traffic))[1] for flow in (WORK, Choice((0.5, 0.5), (passed, WORK)))]
    assert means[0] < means[1] < 1.2 * means[0]
