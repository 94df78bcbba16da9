"""Counts of the engines: requests, stations and pools, as worked out by hand."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.simulator.small_networks import hold, ms, network, seq, visit, wait

from capplan.models.language.distribution import Exponential, Hyperexponential
from capplan.models.language.network import Network
from capplan.models.language.station import Pauses, Pool, Station
from capplan.models.language.step import Acquire, Visit
from capplan.models.language.traffic import (
    Closed,
    Event,
    Open,
    RequestClass,
    Retry,
    Session,
    Throttled,
    Timeline,
    Traffic,
)
from capplan.simulator.compiled import engine as compiled
from capplan.simulator.reference import engine as reference
from capplan.simulator.results.run import Mark, Run, report
from capplan.simulator.results.tally import intervals, tally_of_requests
from capplan.simulator.specification.clock import to_ticks

Engine = Callable[[Network, float, float, int], Run]


def in_simpy(system: Network, duration_s: float, warmup_s: float, seed: int) -> Run:
    return reference.simulate(system, duration_s, seed=seed, warmup_s=warmup_s)


def in_compiled_code(system: Network, duration_s: float, warmup_s: float, seed: int) -> Run:
    return compiled.simulate(system, duration_s, seed=seed, warmup_s=warmup_s, trace=True)


ENGINES = pytest.mark.parametrize("engine", [in_simpy, in_compiled_code])


@ENGINES
def test_a_station_by_hand(engine: Engine) -> None:
    """Both clients come at 1 ms. One is served up to 5, the other up to 9; the first comes back at 6, the other at 10.

    The server is busy from 1 ms on; from 1 to 5 and from 6 to 9 someone waits. Of the visits that join before 10 ms,
    the second waits 4 ms, the third 3 ms.
    """
    station = engine(network(visit(4), clients=2), 0.010, 0.0, 1).stations["server"]
    assert (station.utilisation, station.mean_queue, station.mean_number) == pytest.approx((0.9, 0.7, 1.6))
    assert (station.visits, station.drops, station.paused_share) == (3, 0, 0)
    assert (station.mean_wait_s, station.mean_response_s) == pytest.approx((0.007 / 3, 0.019 / 3))


@ENGINES
def test_over_time_by_hand(engine: Engine) -> None:
    """The same two clients; a warm-up of 2 ms is cut into 24 intervals, the window of 8 ms into 96."""
    run = engine(network(visit(4), clients=2), 0.010, 0.002, 1)
    series = run.series
    begins_ms = 1000 * series.boundaries_s[:-1] + 0.01
    waits = ((begins_ms > 1) & (begins_ms < 5)) | ((begins_ms > 6) & (begins_ms < 9))
    length_s = np.diff(series.boundaries_s)
    # Times of service are cut where intervals are, to a tick of some 83,333.
    assert series.station_utilisation[:, 0] == pytest.approx((begins_ms > 1).astype(float), abs=2e-5)
    assert series.station_queue[:, 0] == pytest.approx(waits.astype(float), abs=2e-5)
    assert (length_s * series.offered_per_s[:, 0]).round(9).nonzero()[0].size == 2  # at 1 and at 6 ms
    completed = np.round(length_s * series.throughput_per_s[:, 0], 9)
    assert completed.sum() == 2
    assert series.latency_mean_s[completed > 0, 0] == pytest.approx([0.004, 0.008])
    assert np.isnan(series.latency_mean_s[completed == 0, 0]).all()
    assert (run.report().started, run.report().completions) == (1, 2)


@ENGINES
def test_a_pool_by_hand(engine: Engine) -> None:
    """Three clients want one unit for 2 ms at 1 ms; one gets it, one waits 2 ms, one finds the queue full.

    The dropped one comes back at 2 ms and finds it full again, comes at 3 ms, when the unit has been handed over, and
    waits.
    """
    system = network(hold(wait(2)), clients=3, pool=Pool("pool", 1, 1))
    pool = engine(system, 0.004, 0.0, 1).pools["pool"]
    assert (pool.taken, pool.drops) == (2, 2)
    assert pool.busy_share.tolist() == [0.25, 0.75]
    assert (pool.mean_busy, pool.mean_queue) == pytest.approx((0.75, (2 + 1) / 4))
    assert (pool.mean_wait_s, pool.mean_hold_s) == pytest.approx((0.001, 0.002))


@ENGINES
def test_pauses_and_events_by_hand(engine: Engine) -> None:
    """Pauses from 2 to 3, from 5 to 6 and from 8 to 9 ms."""
    plain = network(visit(1))
    station = Station("server", 1, pauses=(Pauses(ms(2), ms(1), name="gc"),))
    timeline = Timeline((Event(0.004, "speed", "server", 2.0),))
    run = engine(
        Network("paused", (station,), plain.classes, plain.traffic, plain.pools, timeline=timeline), 0.0095, 0.0, 1
    )
    assert run.stations["server"].paused_share == pytest.approx(3 / 9.5)
    assert run.marks[:4] == (
        Mark(0.002, 0.003, "pause", "server: gc"),
        Mark(0.004, 0.004, "speed", "server"),
        Mark(0.005, 0.006, "pause", "server: gc"),
        Mark(0.008, 0.009, "pause", "server: gc"),
    )


def assert_counted(run: Run, system: Network) -> None:
    """The plain reading of the requests gives the same reports and series."""
    warmup, end = to_ticks(run.warmup_s), to_ticks(run.duration_s)
    tally = tally_of_requests(run.requests, system, intervals(warmup, end))
    expected = report(system, tally, warmup, seed=run.seed, replication=run.replication, events=run.events)
    for name, found in run.reports.items():
        wanted = expected.reports[name]
        for column in ("started", "completed", "dropped", "timed_out", "retries", "completions"):
            assert getattr(found, column) == getattr(wanted, column), (name, column)
        assert (found.response_ticks, found.number_ticks) == (wanted.response_ticks, wanted.number_ticks)
        for one, other in ((found.intended, wanted.intended), (found.actual, wanted.actual)):
            assert np.array_equal(one.counts, other.counts)
            assert (one.total_ticks, one.largest_ticks) == (other.total_ticks, other.largest_ticks)
    for column in ("boundaries_s", "offered_per_s", "throughput_per_s", "drops_per_s", "latency_mean_s"):
        assert np.array_equal(getattr(run.series, column), getattr(expected.series, column), equal_nan=True)


def busy_system(traffic: Traffic, timeout_s: float | None, retry: Retry | None) -> Network:
    read = Acquire("threads", seq(Visit("disk", Exponential(0.004)), wait(1)))
    return Network(
        "busy",
        (Station("disk", 2),),
        (
            RequestClass("read", read, timeout_s, retry),
            RequestClass("write", Visit("disk", Hyperexponential((0.9, 0.1), (0.001, 0.02)))),
        ),
        traffic,
        pools=(Pool("threads", 3, 2),),
        sessions=(Session("talk", ("read", "write", "read"), (ms(1), Exponential(0.002))),),
    )


MIX = {"talk": 0.4, "write": 0.6}
TRAFFIC = st.one_of(
    st.builds(Open, st.floats(50, 900), st.just(MIX)),
    st.builds(Closed, st.integers(1, 12), st.just(Exponential(0.005)), st.just(MIX)),
    st.builds(Throttled, st.integers(1, 12), st.floats(50, 900), st.just(MIX)),
)
SYSTEMS = st.builds(
    busy_system,
    TRAFFIC,
    st.none() | st.floats(0.001, 0.05),
    st.none() | st.builds(Retry, st.integers(2, 4), st.floats(0.0, 0.01), st.floats(1.0, 3.0)),
)


@settings(max_examples=40)
@given(SYSTEMS, st.integers(0, 2**32), st.sampled_from([0.0, 0.1, 0.499]))
def test_compiled_code_counts_what_its_requests_say(system: Network, seed: int, warmup_s: float) -> None:
    assert_counted(in_compiled_code(system, 0.5, warmup_s, seed), system)


@settings(max_examples=10)
@given(SYSTEMS, st.integers(0, 2**32))
def test_keeping_requests_changes_nothing(system: Network, seed: int) -> None:
    kept = compiled.simulate(system, 0.2, seed=seed, trace=True)
    lean = compiled.simulate(system, 0.2, seed=seed)
    assert lean.trace is None
    assert np.array_equal(kept.report().intended.counts, lean.report().intended.counts)
    assert repr(kept.stations) == repr(lean.stations)  # nan is not equal to itself
