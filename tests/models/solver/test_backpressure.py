"""Stations that push back, and sessions that end at a failure."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from capplan.models.language.distribution import Deterministic, Erlang, Exponential
from capplan.models.language.network import Network
from capplan.models.language.station import Pool, Station
from capplan.models.language.step import Acquire, CountdownLatch, ForkJoin, Group, Sequence, Signal, Step, Visit
from capplan.models.language.traffic import Open, RequestClass, Session
from capplan.models.solver.analytic import Analysis
from capplan.models.solver.failing_sessions import Chain, chains, sent, stations_held
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


def in_sessions(flow: Step, length: int = 4, rate_per_s: float = 1.0) -> Network:
    return Network(
        name="chain",
        stations=(Station("cpu", 2, "ps"), Station("disk", 1)),
        pools=(Pool("workers", 20, 5), Pool("buffer", 50)),
        classes=(RequestClass("ask", Acquire("workers", flow)),),
        sessions=(Session("talk", ("ask",) * length, (Exponential(0.01),) * (length - 1)),),
        traffic=Open(rate_per_s, {"talk": 1.0}),
    )


SERVED = Visit("cpu", Exponential(0.02), name="work")  # 100 per second
KEPT = Visit("disk", Deterministic(0.0125), name="store")  # 80 per second
BUFFERED = ForkJoin((Acquire("buffer", Sequence((SERVED, KEPT))),), 0)
WAITS = Sequence((Acquire("buffer", Sequence((SERVED, ForkJoin((), 0), KEPT))),))


def test_a_session_sends_one_request_after_another_until_one_fails() -> None:
    share, slope = sent((Chain(0.25, ("ask",) * 4),), np.array([0.0, 0.1, 1.0]))
    assert share == pytest.approx([1.0, (1 - 0.9**4) / 0.4, 0.25])
    up, down = (sent((Chain(0.25, ("ask",) * 4),), np.array([0.1 * (1 + step)]))[0] for step in (1e-6, -1e-6))
    assert slope[1] == pytest.approx(float(np.log(up / down)[0]) / 2e-6, rel=1e-6)


def test_requests_outside_sessions_are_chains_of_one() -> None:
    mixed = replace(in_sessions(SERVED), traffic=Open(1.0, {"talk": 0.5, "ask": 0.5}))
    assert chains(mixed) == (Chain(0.2, ("ask",) * 4), Chain(0.2, ("ask",)))


@pytest.mark.parametrize("rate_per_s", [120.0, 200.0, 400.0])
def test_beyond_capacity_the_drop_rate_is_that_of_the_requests_that_are_still_sent(rate_per_s: float) -> None:
    """With so few workers the requests of a session are dropped less often than those that arrive at random."""
    found = float(solve(Analysis(in_sessions(SERVED)), rate_per_s).drop_rate[0])
    run = simulate(in_sessions(SERVED, rate_per_s=rate_per_s), 2000.0, seed=1, warmup_s=10.0)
    assert found == pytest.approx(run.drop_rate(), abs=0.03)


@pytest.mark.parametrize("rate_per_s", [120.0, 300.0])
def test_sessions_that_share_nothing_fail_as_each_alone(rate_per_s: float) -> None:
    """Pools of 60 % and 40 % of the requests, each before processors of its own: the first drops more of its own."""
    alone = in_sessions(SERVED)
    both = Network(
        name="both",
        stations=tuple(replace(alone.stations[0], name=f"cpu {k}") for k in "ab"),
        pools=tuple(replace(alone.pools[0], name=f"workers {k}") for k in "ab"),
        classes=tuple(RequestClass(k, Acquire(f"workers {k}", replace(SERVED, station=f"cpu {k}"))) for k in "ab"),
        sessions=tuple(replace(alone.sessions[0], name=f"talk {k}", classes=(k,) * 4) for k in "ab"),
        traffic=Open(rate_per_s, {"talk a": 0.6, "talk b": 0.4}),
    )
    found, parts = solve(Analysis(both), rate_per_s), [solve(Analysis(alone), rate_per_s * k) for k in (0.6, 0.4)]

    total = sum(each.rate_per_s for each in parts)
    assert found.rate_per_s == pytest.approx(total)
    assert found.drop_rate == pytest.approx(sum(each.rate_per_s * each.drop_rate for each in parts) / total)
    for name, each in zip("ab", parts, strict=True):
        assert found.response_s(name) == pytest.approx(each.response_s("ask"))


def test_sessions_of_one_request_are_as_requests_alone() -> None:
    single, alone = (
        in_sessions(SERVED, 1),
        replace(in_sessions(SERVED), sessions=(), traffic=Open(1.0, {"ask": 1.0})),
    )
    assert solve(Analysis(single), 150.0).drop_rate == solve(Analysis(alone), 150.0).drop_rate


def test_a_visit_in_a_detached_branch_holds_no_unit() -> None:
    beside = Sequence((SERVED, ForkJoin((KEPT,), 0)))
    assert stations_held(Acquire("workers", beside)) == {"cpu"}
    assert stations_held(Acquire("workers", Sequence((SERVED, BUFFERED)))) == {"cpu", "disk"}


@pytest.mark.parametrize("rate_per_s", [100.0, 150.0])
def test_a_full_buffer_slows_the_workers_down_to_the_disk(rate_per_s: float) -> None:
    """The disk serves 80 per second. Its buffer takes 50; in 2000 s what fits into it does not count."""
    answered = Sequence((SERVED, KEPT))
    run = simulate(in_sessions(Acquire("buffer", answered), rate_per_s=rate_per_s), 2000.0, seed=1, warmup_s=10.0)
    point = solve(Analysis(in_sessions(Acquire("buffer", answered))), rate_per_s)
    completed = point.rate_per_s * (1 - point.drop_rate)
    assert completed == pytest.approx(run.throughput_per_s(), rel=0.02)
    assert point.drop_rate == pytest.approx(run.drop_rate(), abs=0.03)
