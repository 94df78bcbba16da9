"""Every rule of the language has an example that violates it, and nothing valid is refused."""

import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from tests.strategies import networks

from capplan.errors import InputError
from capplan.models.language.distribution import Deterministic, Exponential
from capplan.models.language.network import Network
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
    walk,
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

# What is wrong, and the words of the message that identify it: places, values and suggestions.
REFUSED: list[tuple[Callable[[], object], tuple[str, ...]]] = [
    (lambda: network(Visit("dusk", LAW)), ("station 'dusk'", "'disk'")),
    (lambda: network(Acquire("worker", VISIT)), ("pool 'worker'", "'workers'")),
    (lambda: network(stations=(Station("disk", 1, host="machina"),)), ("host 'machina'", "'machine'")),
    (lambda: network(sessions=(Session("s", ("reed",), ()),)), ("request class 'reed'", "'read'")),
    (lambda: network(traffic=Open(1, {"bath": 1})), ("'bath'", "'both'")),
    (lambda: network(A), ("'a'",)),
    (lambda: latch((Group("b", 1),), A), ("'a'", "b")),
    (lambda: latch((Group("a", 1),), Batch(2, 1, A)), ("'a'",)),
    (lambda: network(stations=(Station("disk", 1), Station("disk", 2))), ("station", "'disk'")),
    (lambda: network(pools=(Pool("workers", 1), Pool("workers", 2))), ("pool", "'workers'")),
    (lambda: network(hosts=(Host("machine", 1), Host("machine", 2))), ("host", "'machine'")),
    (lambda: network(hosts=(Host("machine", 1), Host("disk", 2))), ("station or host", "'disk'")),
    (lambda: network(classes=(RequestClass("read", VISIT),) * 2), ("request class", "'read'")),
    (lambda: network(sessions=(Session("read", ("read",), ()),)), ("session", "'read'")),
    (lambda: latch(TWO, A), ("'a'", "2", "1")),
    (lambda: latch(TWO, Choice((0.5, 0.5), (A, A))), ("'a'", "2", "1")),
    (lambda: latch(TWO, Route("random", (A, A))), ("'a'", "2", "1")),
    (lambda: latch((*TWO, Group("b", 1)), Sequence((A, B))), ("'a'", "2", "1")),
    # The inner latch takes the signals of its own group.
    (lambda: latch((Group("a", 1),), CountdownLatch((Group("a", 1),), A)), ("'a'", "1", "0")),
    (lambda: network(timeline=Timeline((Event(1, "down", "dask"),))), ("'dask'", "'disk'")),
    (lambda: network(timeline=Timeline((Event(1, "scale_delay", "wire", 2),))), ("delay 'wire'",)),
    (lambda: network(timeline=Timeline((Event(1, "scale_traffic", "wread", 2),))), ("'wread'", "'read'")),
    (lambda: Timeline(cold_start_s=1), ("cold_start_s", "cold_speed")),
    (lambda: Timeline(cold_speed=0.5), ("cold_speed = 0.5", "cold_start_s")),
    (lambda: network(wrong=1), ("unknown key 'wrong'",)),
    (lambda: Event(1, "down", "disk", 2), ("'down'", "factor")),
    (lambda: Event(1, "stop", "disk"), ("action = 'stop'", "'down'", "'scale_traffic'")),  # type: ignore[arg-type]  # wrong on purpose
    (lambda: ForkJoin((VISIT,), 2), ("needed = 2", "1")),
    (lambda: CountdownLatch((), VISIT), ("group",)),
    (lambda: CountdownLatch((Group("a", 1),), A, 2), ("needed = 2", "1")),
    (lambda: CountdownLatch((Group("a", 1),), A, 0), ("needed: 0",)),
    (lambda: CountdownLatch((Group("a", 1), Group("a", 2)), A), ("groups", "same name")),
    (lambda: Choice((1.0,), (VISIT, VISIT)), ("1 probabilities", "2")),
    (lambda: Choice((0.5, 0.6), (VISIT, VISIT)), ("1.1",)),
    (lambda: Route("random", ()), ("targets = ()",)),
    (lambda: Route("first", (VISIT,), weights=(1,)), ("first", "weights", "random")),
    (lambda: Route("random", (VISIT, VISIT), weights=(1,)), ("1 weights for 2 targets",)),
    (lambda: Route("random", (VISIT, VISIT), weights=(0, 0)), ("all 0",)),
    (lambda: Route("nearest", (VISIT,)), ("policy = 'nearest'", "'round_robin'", "'random'")),  # type: ignore[arg-type]  # wrong on purpose
    (lambda: Hedge(VISIT, -1, VISIT), ("after_s: -1",)),
    (lambda: Batch(0, 1, VISIT), ("max_size: 0",)),
    (lambda: Visit("disk", 0.5), ("demand = 0.5", "table")),  # type: ignore[arg-type]  # wrong on purpose
    (lambda: Visit("", LAW), ("station = ''",)),
    (lambda: Station("disk", 0), ("servers: 0",)),
    (lambda: Station("disk", True), ("servers: True",)),
    (lambda: Station("disk", 1, "lifo"), ("discipline = 'lifo'", "'fcfs'", "'ps'")),  # type: ignore[arg-type]  # wrong on purpose
    (lambda: Station("disk", 1, "ps", expiry_s=1), ("expiry_s", "'disk'", "'fcfs'")),
    (lambda: Station("disk", 1, pauses=(Pauses(LAW, LAW),) * 2), ("'disk'", "name")),
    (lambda: RateTable(()), ("speeds = ()",)),
    (lambda: RateTable((1.0, 0.0)), ("speeds[1]: 0", "above 0")),
    (lambda: Pauses(Deterministic(0), LAW), ("every", "mean 0")),
    (lambda: Background(Deterministic(0), LAW, 0.5), ("every", "mean 0")),
    (lambda: Background(LAW, LAW, 1.5), ("share: 1.5", "at most 1")),
    (lambda: Pool("workers", 0), ("size: 0",)),
    (lambda: Pool("workers", 1, -1), ("queue_limit: -1", "at least 0")),
    (lambda: Host("machine", 0), ("cores: 0",)),
    (lambda: Retry(1, 0), ("attempts = 1", "2")),
    (lambda: RequestClass("read", VISIT, 0), ("timeout_s: 0", "above 0")),
    (lambda: Session("s", ("read", "write"), ()), ("0 gaps", "2 requests")),
    (lambda: Session("s", (), ()), ("classes = ()",)),
    (lambda: Open(1, {}), ("mix {}", "1")),
    (lambda: Open(1, {"read": 0.5}), ("mix {'read': 0.5}", "1")),
    (lambda: Open(1, {"read": -0.5, "write": 1.5}), ("mix.read: -0.5", "above 0")),
    (lambda: Open(float("nan"), {"read": 1}), ("rate_per_s: nan",)),
    (lambda: Closed(0, LAW, {"read": 1}), ("clients: 0",)),
    (lambda: Closed(1, LAW, {"read": 0.9}), ("mix {'read': 0.9}",)),
    (lambda: Throttled(1, 0, {"read": 1}), ("rate_per_s: 0", "above 0")),
    (lambda: Throttled(1, 1, {"read": 0.9}), ("mix {'read': 0.9}",)),
    (lambda: Bursty(0.5, 0.1, 1), ("0.5", "burst_ratio", "at least 1")),
    (lambda: Bursty(1, 1, 1), ("burst_fraction = 1",)),
    (lambda: Bursty(4, 0.5, 1), ("burst_ratio", "burst_fraction", "2")),
    (lambda: Bursty(np.array([1.0, 3.0]), 0.5, 1), ("burst_ratio", "burst_fraction", "1.5")),
    (lambda: Bursty(2, 0.5, 0), ("burst_length_s: 0", "above 0")),
    (lambda: Trace(()), ("trace",)),
    (lambda: Trace((0, 0)), ("trace", "above 0")),
    (lambda: Trace((2, 1)), ("trace", "sort")),
]


@pytest.mark.parametrize(("make", "words"), REFUSED, ids=range(len(REFUSED)))
def test_refused_in_one_sentence(make: Callable[[], object], words: tuple[str, ...]) -> None:
    with pytest.raises(InputError) as caught:
        make()
    sentence = str(caught.value)
    assert [word for word in words if word not in sentence] == []
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


def test_replacing_a_part_checks_again() -> None:
    assert replace(network(), name="other").name == "other"
    with pytest.raises(InputError, match="pool 'workers' does not exist"):
        replace(network(Acquire("workers", VISIT)), pools=())


@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])
@given(networks())
def test_walk_meets_every_step_once(made: Network) -> None:
    for request in made.classes:
        met = list(walk(request.flow))
        assert len(met) == 1 + sum(len(children(step)) for step in met)


@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])
@given(networks())
def test_networks_travel_between_processes(made: Network) -> None:
    assert pickle.loads(pickle.dumps(made)) == made
