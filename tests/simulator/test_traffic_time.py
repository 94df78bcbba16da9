"""Times of the traffic, by hand: the multiplier, traces, throttled clients, think times."""

import numpy as np
import pytest
from tests.simulator.small_networks import (
    MS,
    TIMED_OUT,
    ends_ms,
    hold,
    ms,
    seq,
    starts_ms,
    statuses,
    timeline,
    visit,
    wait,
)

from capplan.models.language.distribution import Deterministic
from capplan.models.language.network import Network
from capplan.models.language.station import Pool, Station
from capplan.models.language.step import Step
from capplan.models.language.traffic import (
    Bursty,
    Closed,
    Open,
    Poisson,
    RequestClass,
    Session,
    Throttled,
    Timeline,
    Trace,
    Traffic,
)
from capplan.simulator.reference.engine import simulate
from capplan.simulator.results.run import Run
from capplan.simulator.specification.clock import TICKS_PER_S
from capplan.simulator.specification.streams import root_key, source_key
from capplan.simulator.specification.timeline import (
    FOREVER,
    arrival_ticks,
    pacing_tick,
    segment_number,
    segments,
    tick_of,
    trace_ticks,
)

ALONE = {"ask": 1.0}
TWICE = timeline((1000, "scale_traffic", "*", 2.0), (3000, "scale_traffic", "*", 0.5))
KEY = source_key(root_key(7, 0), "traffic")
S = TICKS_PER_S


def run_of(traffic: Traffic, flow: Step, changes: Timeline = Timeline(), until_ms: float = 1000) -> Run:  # noqa: B008 # frozen
    made = Network("traffic", (Station("server", 1),), (RequestClass("ask", flow),), traffic, timeline=changes)
    return simulate(made, until_ms / 1000, seed=1)


def test_segments_of_a_mix() -> None:
    changes = timeline(
        (1000, "scale_traffic", "b", 3.0),
        (2000, "scale_traffic", "*", 2.0),
        (2000, "scale_traffic", "b", 2.0),
        (2000, "scale_traffic", "b", 1.0),
        (4000, "scale_traffic", "*", 1.0),
    )
    parts = segments({"a": 0.75, "b": 0.25}, changes)
    assert [part.start for part in parts] == [0, S, 2 * S, 4 * S]
    assert [part.end for part in parts] == [S, 2 * S, 4 * S, FOREVER]
    assert [part.multiplier for part in parts] == [1.0, 1.5, 2.0, 1.0]
    assert [part.operational_s for part in parts] == [0.0, 1.0, 2.5, 6.5]
    assert [part.shares for part in parts] == [(0.75, 0.25), (0.5, 0.5), (0.75, 0.25), (0.75, 0.25)]
    assert [segment_number(parts, tick) for tick in (0, S - 1, S, 4 * S - 1, 4 * S)] == [0, 0, 1, 2, 3]


def test_a_change_at_the_beginning_leaves_nothing_before_it() -> None:
    (part,) = segments(ALONE, timeline((0, "scale_traffic", "ask", 2.0)))
    assert (part.start, part.end, part.multiplier, part.shares) == (0, FOREVER, 2.0, (1.0,))


def test_the_multiplier_is_one_when_all_factors_are() -> None:
    tenths = dict.fromkeys("abcdefghij", 0.1)
    assert sum(tenths.values()) != 1
    assert [part.multiplier for part in segments(tenths, timeline((1, "scale_traffic", "a", 1.0)))] == [1.0, 1.0]


def test_operational_time() -> None:
    parts = segments(ALONE, TWICE)
    assert [tick_of(parts, time) / S for time in (0, 0.5, 1, 2, 5, 6)] == [0, 0.5, 1, 1.5, 3, 5]


def test_a_trace_is_stretched_to_its_rate() -> None:
    law = Trace((0.0, 1.0, 2.0, 4.0))
    steady = segments(ALONE, Timeline())
    assert trace_ticks(law, 1.0, steady) == [0, S, 2 * S, 4 * S]
    assert trace_ticks(law, 0.5, steady) == [0, 2 * S, 4 * S, 8 * S]
    assert trace_ticks(law, 1.0, segments(ALONE, TWICE)) == [0, S, S + S // 2, 2 * S + S // 2]
    assert trace_ticks(law, 0.0, steady) == []


def test_a_trace_is_played_once_and_sessions_count_as_their_requests() -> None:
    talk = Session("talk", ("ask", "ask"), (ms(1),))
    traffic = Open(4 * 2 / 0.004, {"talk": 1.0}, Trace((0.0, 0.001, 0.001, 0.004)))
    made = Network("trace", (), (RequestClass("ask", wait(5)),), traffic, sessions=(talk,))
    run = simulate(made, 1.0, seed=1)
    assert starts_ms(run) == [0, 1, 1, 4, 6, 7, 7, 10]
    assert list(run.requests.session) == [0, 1, 2, 3, 0, 1, 2, 3]


def test_poisson_arrivals_follow_the_multiplier() -> None:
    steady, always = segments(ALONE, Timeline()), segments(ALONE, timeline((0, "scale_traffic", "*", 2.0)))
    for law in (Poisson(), Bursty(3.0, 0.2, 0.5)):
        once, twice, scaled = (
            np.array([next(ticks) for _ in range(200)])
            for ticks in (
                arrival_ticks(KEY, 40.0, law, steady),
                arrival_ticks(KEY, 40.0, law, always),
                arrival_ticks(KEY, 40.0, law, segments(ALONE, TWICE)),
            )
        )
        assert (scaled[once <= S] == once[once <= S]).all()
        assert once[0] > twice[0]
        if isinstance(law, Poisson):  # its arrivals are at the same operational times, but for rounding
            parts = segments(ALONE, TWICE)
            assert [tick_of(parts, tick / S) for tick in once] == pytest.approx(list(scaled), abs=200)
            assert list(2 * twice) == pytest.approx(list(once), abs=400)


def test_arrivals_end_with_the_time() -> None:
    """A rate so small that hardly any arrival comes before the last tick: the integral stops there."""
    assert len(list(arrival_ticks(KEY, 1e-9, Poisson(), segments(ALONE, Timeline())))) < 20


def test_throttled_clients_start_on_their_beats_or_late() -> None:
    """Two clients at 100 requests a second: pacing ticks at 0, 20, 40, ... and at 10, 30, 50, ... ms."""
    run = run_of(Throttled(2, 100.0, ALONE), wait(5), until_ms=41)
    assert starts_ms(run) == [0, 10, 20, 30, 40]
    assert list(run.requests.session) == [0, 1, 0, 1, 0]
    slow = run_of(Throttled(2, 100.0, ALONE), wait(35), until_ms=81)
    assert starts_ms(slow) == [0, 10, 35, 45, 70, 80]
    assert [tick / MS for tick in slow.requests.intended_ticks] == [0, 10, 20, 30, 40, 50]
    assert slow.latency_mean_s("ask", "intended") == pytest.approx(np.mean([35, 35, 50, 50, 65, 65]) / 1000)
    assert slow.latency_mean_s("ask", "actual") == pytest.approx(0.035)


def test_a_session_of_a_throttled_client_has_one_beat() -> None:
    talk = Session("talk", ("ask", "ask"), (ms(1),))
    traffic = Throttled(1, 100.0, {"talk": 1.0})
    made = Network("beats", (), (RequestClass("ask", wait(12)),), traffic, sessions=(talk,))
    run = simulate(made, 0.050, seed=1)
    # Pacing ticks at 0, 20 and 40 ms; a session takes 25 ms.
    assert starts_ms(run) == [0, 13, 25, 38]
    assert [tick / MS for tick in run.requests.intended_ticks] == [0, 13, 20, 38]
    assert list(run.requests.position) == [0, 1, 2, 3]


def test_beats_follow_the_multiplier() -> None:
    changes = timeline((10, "scale_traffic", "*", 2.0))
    assert starts_ms(run_of(Throttled(2, 100.0, ALONE), wait(1), changes, until_ms=26)) == [0, 10, 15, 20, 25]
    assert pacing_tick(segments(ALONE, changes), 3, 1.0, 100.0) == 20 * MS


def test_a_client_that_gives_up_goes_on_with_its_next_beat() -> None:
    request = RequestClass("ask", visit(50), timeout_s=0.005)
    made = Network("beats", (Station("server", 1),), (request,), Throttled(1, 100.0, ALONE))
    run = simulate(made, 0.025, seed=1)
    assert (starts_ms(run), ends_ms(run)) == ([0, 10, 20], [5, 15, 25])
    assert statuses(run) == [TIMED_OUT] * 3


def test_thinking_takes_less_time_when_there_is_more_traffic() -> None:
    # It thinks from 0 to 4, from 5 to 9, and then, with the factor of 6 ms, from 10 to 12 and from 13 to 15.
    changes = timeline((6, "scale_traffic", "ask", 2.0))
    assert starts_ms(run_of(Closed(1, ms(4), ALONE), wait(1), changes, until_ms=16)) == [4, 9, 12, 15]


def test_scaled_thinking_rounds_halves_to_even() -> None:
    changes = timeline((0, "scale_traffic", "ask", 2.0))
    for ticks, scaled in ((1, 0), (3, 2), (5, 2), (7, 4)):
        run = run_of(Closed(1, Deterministic(ticks * 1e-9), ALONE), wait(1), changes, until_ms=0.5)
        assert list(run.requests.start_ticks) == [scaled]


def test_a_session_that_took_no_time_is_followed_by_a_tick() -> None:
    run = run_of(Closed(2, ms(0), ALONE), seq(), until_ms=5 / MS)
    assert list(run.requests.start_ticks) == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    dropped = Network(
        "drops", (), (RequestClass("ask", hold(hold(seq()))),), Closed(1, ms(0), ALONE), pools=(Pool("pool", 1, 0),)
    )
    assert list(simulate(dropped, 3e-9, seed=1).requests.start_ticks) == [0, 1, 2]
    talk = Session("talk", ("ask", "ask"), (Deterministic(1e-9),))
    made = Network("talk", (), (RequestClass("ask", seq()),), Closed(1, ms(0), {"talk": 1.0}), sessions=(talk,))
    assert list(simulate(made, 4e-9, seed=1).requests.start_ticks) == [0, 1, 1, 2, 2, 3, 3]


def test_sources_are_drawn_with_the_weights_of_their_time() -> None:
    classes = (RequestClass("a", wait(1)), RequestClass("b", wait(1)))
    mix = {"a": 0.5, "b": 0.5}
    changes = timeline((100, "scale_traffic", "a", 1e-12), (200, "scale_traffic", "b", 1e-12))
    # The factors make hardly any traffic from 200 ms on, so few paced requests and few of a trace come then.
    traffics: tuple[Traffic, ...] = (Open(1000.0, mix), Throttled(5, 1000.0, mix), Closed(5, ms(4), mix))
    for traffic in traffics:
        run = simulate(Network("mix", (), classes, traffic, timeline=changes), 0.199, seed=1)
        chosen, since = run.requests.request_class, run.requests.intended_ticks
        early, late = chosen[since < 100 * MS], chosen[since >= 112 * MS]
        assert 0.2 < early.mean() < 0.8
        assert late.size > 10
        assert (late == 1).all()
