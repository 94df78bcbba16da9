"""Sessions that end at a failure send fewer requests, and stations that hold units of pools push back."""

from dataclasses import replace

import numpy as np
import pytest

from capplan.models.language.distribution import Deterministic, Exponential
from capplan.models.language.network import Network
from capplan.models.language.station import Pool, Station
from capplan.models.language.step import Acquire, ForkJoin, Sequence, Step, Visit
from capplan.models.language.traffic import Open, RequestClass, Session
from capplan.models.solver.analytic import Analysis
from capplan.models.solver.failing_sessions import Chain, chains, sent, stations_held
from capplan.models.solver.operating_point import drop_rate, solve
from capplan.simulator.engine import simulate


def network(flow: Step, length: int = 4, rate_per_s: float = 1.0) -> Network:
    return Network(
        name="chain",
        stations=(Station("cpu", 2, "ps"), Station("disk", 1)),
        pools=(Pool("workers", 20, 5), Pool("buffer", 50)),
        classes=(RequestClass("ask", Acquire("workers", flow)),),
        sessions=(Session("talk", ("ask",) * length, (Exponential(0.01),) * (length - 1)),),
        traffic=Open(rate_per_s, {"talk": 1.0}),
    )


WORK = Visit("cpu", Exponential(0.02), name="work")  # 100 per second
STORED = Visit("disk", Deterministic(0.0125), name="store")  # 80 per second
BUFFERED = ForkJoin((Acquire("buffer", Sequence((WORK, STORED))),), 0)
WAITS = Sequence((Acquire("buffer", Sequence((WORK, ForkJoin((), 0), STORED))),))


def test_a_session_sends_one_request_after_another_until_one_fails() -> None:
    share, slope = sent((Chain(0.25, ("ask",) * 4),), np.array([0.0, 0.1, 1.0]))
    assert share == pytest.approx([1.0, (1 - 0.9**4) / 0.4, 0.25])
    up, down = (sent((Chain(0.25, ("ask",) * 4),), np.array([0.1 * (1 + step)]))[0] for step in (1e-6, -1e-6))
    assert slope[1] == pytest.approx(float(np.log(up / down)[0]) / 2e-6, rel=1e-6)


def test_requests_outside_sessions_are_chains_of_one() -> None:
    mixed = replace(network(WORK), traffic=Open(1.0, {"talk": 0.5, "ask": 0.5}))
    assert chains(mixed) == (Chain(0.2, ("ask",) * 4), Chain(0.2, ("ask",)))


@pytest.mark.parametrize("rate_per_s", [120.0, 200.0, 400.0])
def test_beyond_capacity_the_drop_rate_is_that_of_the_requests_that_are_still_sent(rate_per_s: float) -> None:
    """With so few workers the requests of a session are dropped less often than those that arrive at random."""
    found = float(drop_rate(Analysis(network(WORK)), np.array([rate_per_s]))[0])
    run = simulate(network(WORK, rate_per_s=rate_per_s), 2000.0, seed=1, warmup_s=10.0)
    assert found == pytest.approx(run.drop_rate(), abs=0.03)


def test_sessions_of_one_request_are_as_requests_alone() -> None:
    rate = np.array([150.0])
    single, alone = network(WORK, 1), replace(network(WORK), sessions=(), traffic=Open(1.0, {"ask": 1.0}))
    assert drop_rate(Analysis(single), rate) == drop_rate(Analysis(alone), rate)


def test_a_visit_in_a_detached_branch_holds_no_unit() -> None:
    beside = Sequence((WORK, ForkJoin((STORED,), 0)))
    assert stations_held(Acquire("workers", beside)) == {"cpu"}
    assert stations_held(Acquire("workers", Sequence((WORK, BUFFERED)))) == {"cpu", "disk"}


@pytest.mark.parametrize("rate_per_s", [100.0, 150.0])
def test_a_full_buffer_slows_the_workers_down_to_the_disk(rate_per_s: float) -> None:
    """The disk serves 80 per second. Its buffer takes 50; in 2000 s what fits into it does not count."""
    answered = Sequence((WORK, STORED))
    run = simulate(network(Acquire("buffer", answered), rate_per_s=rate_per_s), 2000.0, seed=1, warmup_s=10.0)
    point = solve(Analysis(network(Acquire("buffer", answered))), rate_per_s)
    completed = point.rate_per_s * (1 - point.drop_rate)
    assert completed == pytest.approx(run.throughput_per_s(), rel=0.02)
    assert point.drop_rate == pytest.approx(run.drop_rate(), abs=0.03)
