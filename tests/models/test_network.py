"""Every rule of the language has an example that breaks it, and nothing valid is refused."""

import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from tests.strategies import networks

from capplan.models.errors import InputError
from capplan.models.language.distribution import Deterministic, Exponential
from capplan.models.language.network import Network, walk
from capplan.models.language.station import Background, Host, Pauses, Pool, RateTable, Station
from capplan.models.language.step import (
    Acquire,
    Batch,
    Choice,
    CountdownLatch,
    Delay,
    ForkJoin,
    Group,
    Hedge,
    Route,
    Sequence,
    Signal,
    Step,
    Visit,
    children,
)
from capplan.models.language.traffic import (
    Bursty,
    Closed,
    Event,
    Open,
    RequestClass,
    Retry,
    Session,
    Throttled,
    Timeline,
    Trace,
)

LAW = Exponential(0.001)
VISIT = Visit("disk", LAW)
ALL_STEPS = Sequence(
    (
        VISIT,
        Delay(LAW, "wire"),
        Acquire("workers", ForkJoin((VISIT, VISIT), 1)),
        CountdownLatch((Group("a", 1), Group("b", 2)), ForkJoin((Signal("a"), VISIT), 0), needed=1),
        Hedge(VISIT, 0.01, VISIT),
        Choice((0.5, 0.5), (VISIT, Sequence(()))),
        Route("random", (VISIT, VISIT)),
        Batch(2, 0.01, VISIT),
    )
)


def network(flow: Step = VISIT, **others: Any) -> Network:
    given_: dict[str, Any] = {
        "stations": (Station("disk", 1, host="machine"),),
        "classes": (RequestClass("read", flow), RequestClass("write", VISIT)),
        "traffic": Open(10, {"read": 1}),
        "pools": (Pool("workers", 2),),
        "hosts": (Host("machine", 4),),
        "sessions": (Session("both", ("read", "write"), (LAW,)),),
    }
    return Network("test", **{**given_, **others})


def latch(groups: tuple[Group, ...], step: Step, needed: int | None = None) -> Network:
    return network(CountdownLatch(groups, step, needed))


A, B = Signal("a"), Signal("b")
TWO = (Group("a", 2),)

REFUSED: list[tuple[Callable[[], object], str]] = [
    (lambda: network(Visit("dusk", LAW)), "station 'dusk' does not exist; did you mean 'disk'?"),
    (lambda: network(Acquire("worker", VISIT)), "pool 'worker' does not exist; did you mean 'workers'?"),
    (lambda: network(stations=(Station("disk", 1, host="machina"),)), "host 'machina' does not exist; did you mean"),
    (
        lambda: network(sessions=(Session("s", ("reed",), ()),)),
        "request class 'reed' does not exist; did you mean 'read'?",
    ),
    (
        lambda: network(traffic=Open(1, {"bath": 1})),
        "request class or session 'bath' does not exist; did you mean 'both'?",
    ),
    (lambda: network(A), "group of a countdown latch 'a' does not exist"),
    (lambda: latch((Group("b", 1),), A), "group of a countdown latch 'a' does not exist; known: b"),
    (lambda: latch((Group("a", 1),), Batch(2, 1, A)), "group of a countdown latch 'a' does not exist"),
    (lambda: network(stations=(Station("disk", 1), Station("disk", 2))), "two of the station names are 'disk'"),
    (lambda: network(pools=(Pool("workers", 1), Pool("workers", 2))), "two of the pool names are 'workers'"),
    (lambda: network(hosts=(Host("machine", 1), Host("machine", 2))), "two of the host names are 'machine'"),
    (lambda: network(hosts=(Host("machine", 1), Host("disk", 2))), "two of the station or host names are 'disk'"),
    (lambda: network(classes=(RequestClass("read", VISIT),) * 2), "two of the request class names are 'read'"),
    (
        lambda: network(sessions=(Session("read", ("read",), ()),)),
        "two of the request class or session names are 'read'",
    ),
    (
        lambda: latch(TWO, A),
        "a latch can never open: its group 'a' needs 2 signals and the step inside gives at most 1",
    ),
    (lambda: latch(TWO, Choice((0.5, 0.5), (A, A))), "a latch can never open: its group 'a' needs 2 signals"),
    (lambda: latch(TWO, Route("random", (A, A))), "a latch can never open: its group 'a' needs 2 signals"),
    (lambda: latch((*TWO, Group("b", 1)), Sequence((A, B))), "a latch can never open: its group 'a' needs 2"),
    # The inner latch takes the signals of its own group.
    (
        lambda: latch((Group("a", 1),), CountdownLatch((Group("a", 1),), A)),
        "a latch can never open: its group 'a' needs 1",
    ),
    (
        lambda: network(timeline=Timeline((Event(1, "down", "dask"),))),
        "station or host 'dask' does not exist; did you mean",
    ),
    (lambda: network(timeline=Timeline((Event(1, "scale_delay", "wire", 2),))), "delay 'wire' does not exist"),
    (lambda: network(timeline=Timeline((Event(1, "scale_traffic", "wread", 2),))), "traffic of 'wread' does not exist"),
    (lambda: Timeline(cold_start_s=1), "cold_start_s without a cold_speed below 1 slows nothing"),
    (lambda: Timeline(cold_speed=0.5), "cold_speed = 0.5 needs a cold_start_s above 0"),
    (lambda: network().station("dusk"), "station 'dusk' does not exist; did you mean 'disk'?"),
    (lambda: network(wrong=1), "unknown key 'wrong'"),
    (lambda: Event(1, "down", "disk", 2), "action 'down' takes no factor"),
    (
        lambda: Event(1, "stop", "disk"),  # type: ignore[arg-type]  # wrong on purpose
        "action = 'stop' must be 'down', 'up', 'speed', 'scale_delay' or 'scale_traffic'",
    ),
    (lambda: ForkJoin((VISIT,), 2), "needed = 2 of 1 branches: at most all can be needed"),
    (lambda: CountdownLatch((), VISIT), "a latch without groups waits for nothing"),
    (lambda: CountdownLatch((Group("a", 1),), A, 2), "needed = 2 of 1 groups: at most all can be needed"),
    (lambda: CountdownLatch((Group("a", 1),), A, 0), "needed: 0 is not a positive whole number"),
    (lambda: CountdownLatch((Group("a", 1), Group("a", 2)), A), "two groups of a latch have the same name"),
    (lambda: Choice((1.0,), (VISIT, VISIT)), "1 probabilities for 2 alternatives"),
    (lambda: Choice((0.5, 0.6), (VISIT, VISIT)), "probabilities with sum 1.1 are not a distribution"),
    (lambda: Route("random", ()), "targets = () must have at least 1 item"),
    (lambda: Route("nearest", (VISIT,)), "policy = 'nearest' must be 'round_robin', 'random'"),  # type: ignore[arg-type]  # wrong on purpose
    (lambda: Hedge(VISIT, -1, VISIT), "after_s: -1 is not a duration in seconds"),
    (lambda: Batch(0, 1, VISIT), "max_size: 0 is not a positive whole number"),
    (lambda: Visit("disk", 0.5), "demand = 0.5 must be a table of keys and values"),  # type: ignore[arg-type]  # wrong on purpose
    (lambda: Visit("", LAW), "station = '' must have at least 1 character"),
    (lambda: Station("disk", 0), "servers: 0 is not a positive whole number"),
    (lambda: Station("disk", True), "servers: True is not a positive whole number"),
    (lambda: Station("disk", 1, "lifo"), "discipline = 'lifo' must be 'fcfs' or 'ps'"),  # type: ignore[arg-type]  # wrong on purpose
    (lambda: Station("disk", 1, "ps", expiry_s=1), "expiry_s of station 'disk' needs discipline 'fcfs'"),
    (
        lambda: Station("disk", 1, pauses=(Pauses(LAW, LAW),) * 2),
        "two pauses or background processes of station 'disk'",
    ),
    (lambda: RateTable(()), "speeds = () must have at least 1 item"),
    (lambda: RateTable((1.0, 0.0)), "speeds[1]: 0 is not a positive number: it must be above 0"),
    (lambda: Pauses(Deterministic(0), LAW), "every has mean 0, which would repeat without end"),
    (lambda: Background(Deterministic(0), LAW, 0.5), "every has mean 0, which would repeat without end"),
    (lambda: Background(LAW, LAW, 1.5), "share: 1.5 is not a share: it must be at most 1"),
    (lambda: Pool("workers", 0), "size: 0 is not a positive whole number"),
    (lambda: Pool("workers", 1, -1), "queue_limit: -1 is not a whole number: it must be at least 0"),
    (lambda: Host("machine", 0), "cores: 0 is not a positive whole number"),
    (lambda: Retry(1, 0), "attempts = 1 never retries"),
    (lambda: RequestClass("read", VISIT, 0), "timeout_s: 0 is not a duration in seconds: it must be above 0"),
    (lambda: Session("s", ("read", "write"), ()), "0 gaps for 2 requests: give one between each two"),
    (lambda: Session("s", (), ()), "classes = () must have at least 1 item"),
    (lambda: Open(1, {}), "the shares of the traffic mix {} must have sum 1"),
    (lambda: Open(1, {"read": 0.5}), "the shares of the traffic mix {'read': 0.5} must have sum 1"),
    (lambda: Open(1, {"read": -0.5, "write": 1.5}), "mix.read: -0.5 is not a share: it must be above 0"),
    (lambda: Open(float("nan"), {"read": 1}), "rate_per_s: nan is not a rate per second"),
    (lambda: Closed(0, LAW, {"read": 1}), "clients: 0 is not a positive whole number"),
    (lambda: Closed(1, LAW, {"read": 0.9}), "the shares of the traffic mix {'read': 0.9} must have sum 1"),
    (lambda: Throttled(1, 0, {"read": 1}), "rate_per_s: 0 is not a rate per second: it must be above 0"),
    (lambda: Throttled(1, 1, {"read": 0.9}), "the shares of the traffic mix {'read': 0.9} must have sum 1"),
    (lambda: Bursty(0.5, 0.1, 1), "0.5 is not a burst_ratio: it must be at least 1"),
    (lambda: Bursty(1, 1, 1), "burst_fraction = 1 leaves no quiet time"),
    (lambda: Bursty(4, 0.5, 1), "burst_ratio times burst_fraction is 2, so that bursts alone exceed the mean rate"),
    (lambda: Bursty(np.array([1.0, 3.0]), 0.5, 1), "burst_ratio times burst_fraction is 1.5"),
    (lambda: Bursty(2, 0.5, 0), "burst_length_s: 0 is not a duration in seconds: it must be above 0"),
    (lambda: Trace(()), "a trace needs times of arrival"),
    (lambda: Trace((0, 0)), "a trace needs times of arrival, each one number, the last above 0"),
    (lambda: Trace((2, 1)), "the times of a trace must never fall"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED, ids=[message[:50] for _, message in REFUSED])
def test_refused_in_one_sentence(make: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError) as caught:
        make()
    sentence = str(caught.value)
    assert message in sentence
    assert "\n" not in sentence
    assert "pydantic" not in sentence


def test_all_steps_are_accepted_together() -> None:
    flow = ALL_STEPS
    assert network(flow).classes[0].flow is flow


def test_a_latch_may_need_only_the_groups_that_can_fill() -> None:
    latch((Group("a", 1), Group("b", 1)), A, needed=1)


def test_signals_of_all_branches_of_a_fork_and_a_hedge_count() -> None:
    latch(TWO, ForkJoin((A, A), 0))
    latch(TWO, Hedge(A, 1, A))


def test_a_signal_reaches_an_outer_latch_past_an_inner_one() -> None:
    latch((Group("a", 1),), CountdownLatch((Group("b", 1),), Sequence((A, B))))


def test_the_mix_may_name_sessions_and_events_all_that_exists() -> None:
    events = (
        Event(1, "down", "machine"),
        Event(2, "up", "machine"),
        Event(3, "speed", "disk", 0.5),
        Event(4, "scale_delay", "wire", 2),
        Event(5, "scale_traffic", "*", 2),
        Event(6, "scale_traffic", "both", 2),
    )
    made = network(Delay(LAW, "wire"), traffic=Open(10, {"both": 1}), timeline=Timeline(events))
    assert made.timeline.events == events


def test_networks_are_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        network().name = "other"  # type: ignore[misc]  # wrong on purpose


def test_replacing_a_part_checks_again() -> None:
    assert replace(network(), name="other").name == "other"
    with pytest.raises(InputError, match="pool 'workers' does not exist"):
        replace(network(Acquire("workers", VISIT)), pools=())


def test_walk_visits_parents_first_and_every_child() -> None:
    kinds = [step.kind for step in walk(ALL_STEPS)]
    assert kinds[:6] == ["sequence", "visit", "delay", "acquire", "fork_join", "visit"]
    assert len(kinds) == 22


@given(networks())
def test_walk_meets_every_step_once(made: Network) -> None:
    for request in made.classes:
        met = list(walk(request.flow))
        assert len(met) == 1 + sum(len(children(step)) for step in met)


@given(networks())
def test_networks_travel_between_processes(made: Network) -> None:
    assert pickle.loads(pickle.dumps(made)) == made


def test_parameter_draws_are_carried_through_a_network() -> None:
    draws = np.array([0.001, 0.002])
    made = network(Visit("disk", Exponential(draws)))
    demand = next(step for step in walk(made.classes[0].flow) if isinstance(step, Visit)).demand
    np.testing.assert_array_equal(demand.mean, draws)
