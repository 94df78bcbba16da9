"""In a lasting overload of a station that requests do not wait for, those that need its buffer wait for room there."""

from functools import cache

import numpy as np
import pytest

from capplan.models.language.distribution import Deterministic, Erlang
from capplan.models.language.network import Network
from capplan.models.language.station import Pool, Station
from capplan.models.language.step import Acquire, CountdownLatch, ForkJoin, Group, Sequence, Signal, Step, Visit
from capplan.models.language.traffic import Open, RequestClass
from capplan.models.solver.analytic import Analysis
from capplan.models.solver.operating_point import OperatingPoint, solve
from capplan.simulator.engine import simulate
from capplan.simulator.results.run import Run

WORK = Visit("cpu", Erlang(0.01, 2), name="work")  # 400 per second
STORED = Visit("disk", Deterministic(0.01), name="store")  # 100 per second
ANSWER = Signal("answered")


def written(work: Step) -> Step:
    """Return a write that is answered before it is stored, and holds its place in the buffer until then."""
    kept = Acquire("buffer", Sequence((work, ANSWER, STORED)))
    return CountdownLatch((Group("answered", 1),), ForkJoin((kept,), 0), name="write")


def network(rate_per_s: float) -> Network:
    return Network(
        name="read and write",
        stations=(Station("cpu", 4, "ps"), Station("disk", 1)),
        pools=(Pool("workers", 40, 4), Pool("buffer", 200)),
        classes=(
            RequestClass("read", Acquire("workers", WORK)),
            RequestClass("write", Acquire("workers", written(WORK))),
        ),
        traffic=Open(rate_per_s, {"read": 0.5, "write": 0.5}),
    )


@cache
def both(rate_per_s: float) -> tuple[OperatingPoint, Run]:
    """Solve and simulate; the buffer is full after 20 s at most."""
    solved = solve(Analysis(network(rate_per_s)), rate_per_s)
    return solved, simulate(network(rate_per_s), 2030.0, seed=1, warmup_s=30.0)


RATES = pytest.mark.parametrize("rate_per_s", [220.0, 260.0, 320.0])


@RATES
def test_as_many_requests_are_dropped_as_the_station_cannot_take(rate_per_s: float) -> None:
    """The disk takes half of the requests: 200 per second in all. Counts of some 50,000 writes vary by 0.5 %."""
    point, run = both(rate_per_s)
    assert float(point.drop_rate[0]) == pytest.approx(1 - 200 / rate_per_s, abs=1e-3)
    assert run.drop_rate() == pytest.approx(1 - 200 / rate_per_s, abs=0.01)


@RATES
@pytest.mark.parametrize("name", ["read", "write"])
def test_only_requests_that_need_the_buffer_wait_for_room(rate_per_s: float, name: str) -> None:
    """The solver is within 10 % of the simulation, or 1 ms: a read that waits for a worker is short."""
    point, run = both(rate_per_s)
    assert float(point.response_s(name)[0]) == pytest.approx(run.latency_mean_s(name), rel=0.1, abs=1e-3)


@RATES
def test_percentiles_follow(rate_per_s: float) -> None:
    point, run = both(rate_per_s)
    for level in (0.5, 0.99):
        assert float(point.quantile_s(level, "write")[0]) == pytest.approx(
            run.latency_quantile_s(level, "write"), rel=0.2
        )


def test_below_capacity_nobody_waits_for_room() -> None:
    point, run = both(180.0)
    assert float(point.drop_rate[0]) < 1e-6
    assert float(point.response_s("write")[0]) == pytest.approx(run.latency_mean_s("write"), rel=0.02)


def test_latencies_do_not_fall_when_more_is_offered_in_an_overload() -> None:
    rates = np.array([[210.0], [230.0], [280.0], [350.0], [500.0]])
    times = solve(Analysis(network(1.0)), rates).response_s("write")[:, 0]
    assert np.all(np.diff(times) > -1e-9)
