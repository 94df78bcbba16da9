"""What the SimPy engine does not run yet is refused by name, before anything has run."""

from dataclasses import replace

import numpy as np
import pytest

from capplan.models.distribution import Deterministic, Exponential
from capplan.models.errors import InputError, RefusedError
from capplan.models.network import Network
from capplan.models.station import Background, Host, Pauses, RateTable, Station
from capplan.models.step import Batch, Delay, Hedge, Visit
from capplan.models.traffic import Event, Open, RequestClass, Retry, Throttled, Timeline, Trace
from capplan.simulator.reference import simulate

SECOND = Deterministic(1.0)
STEP = Visit("server", SECOND)
PLAIN = Network(
    "plain",
    (Station("server", 1),),
    (RequestClass("ask", STEP),),
    Open(1.0, {"ask": 1.0}),
    hosts=(Host("machine", 2),),
)


def with_station(**more: object) -> Network:
    return replace(PLAIN, stations=(Station("server", 1, **more),))  # type: ignore[arg-type]  # fields of many types


def with_class(**more: object) -> Network:
    return replace(PLAIN, classes=(RequestClass(**{"name": "ask", "flow": STEP, **more}),))  # type: ignore[arg-type]  # fields of many types


REFUSED = {
    "load-dependent rate of station 'server'": with_station(rate=RateTable((1.0, 0.9))),
    "expiry of station 'server'": with_station(expiry_s=1.0),
    "pauses of station 'server'": with_station(pauses=(Pauses(SECOND, SECOND),)),
    "background work of station 'server'": with_station(background=(Background(SECOND, SECOND, 0.5),)),
    "host 'machine' of station 'server'": with_station(host="machine"),
    "retries of request class 'ask'": with_class(retry=Retry(2, 0.1)),
    "step hedge in the flow of request class 'ask'": with_class(flow=Hedge(STEP, 1.0, STEP)),
    "step batch in the flow of request class 'ask'": with_class(flow=Batch(2, 1.0, STEP)),
    "throttled traffic": replace(PLAIN, traffic=Throttled(1, 1.0, {"ask": 1.0})),
    "arrivals from a trace": replace(PLAIN, traffic=Open(1.0, {"ask": 1.0}, Trace((0.5, 1.0)))),
    "events of a timeline": replace(PLAIN, timeline=Timeline((Event(1.0, "down", "server"),))),
    "mean_s holds 3 parameter draws": with_class(flow=Delay(Exponential(np.array([1.0, 2.0, 3.0])))),
    "rate_per_s holds 2 parameter draws": replace(PLAIN, traffic=Open(np.array([1.0, 2.0]), {"ask": 1.0})),
}


@pytest.mark.parametrize("message", REFUSED)
def test_refused_by_name(message: str) -> None:
    with pytest.raises(RefusedError) as refusal:
        simulate(REFUSED[message], 1.0, seed=1)
    assert message in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    "wrong",
    [
        {"duration_s": 0},
        {"duration_s": 1, "warmup_s": 1},
        {"duration_s": 1, "warmup_s": -1},
        {"duration_s": 1, "seed": -1},
    ],
)
def test_senseless_run(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError):
        simulate(PLAIN, **{"seed": 1, **wrong})  # type: ignore[arg-type]  # fields of many types


def test_unknown_class_is_an_error_with_the_nearest() -> None:
    with pytest.raises(InputError, match="did you mean 'ask'"):
        simulate(PLAIN, 1.0, seed=1).latency_mean_s("aks")
