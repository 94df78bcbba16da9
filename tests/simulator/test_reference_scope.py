"""The SimPy engine refuses invalid runs, and constructs that it cannot run by name, before the run starts."""

from dataclasses import replace

import numpy as np
import pytest

from capplan.models.errors import InputError, RefusedError
from capplan.models.language.distribution import Deterministic, Exponential
from capplan.models.language.network import Network
from capplan.models.language.station import Station
from capplan.models.language.step import Delay, Sequence, Visit
from capplan.models.language.traffic import Open, RequestClass
from capplan.simulator.reference.engine import simulate
from capplan.simulator.specification import network_facts

PLAIN = Network(
    "plain",
    (Station("server", 1),),
    (RequestClass("ask", Visit("server", Deterministic(1.0))),),
    Open(1.0, {"ask": 1.0}),
)
DRAWS = RequestClass("ask", Delay(Exponential(np.array([1.0, 2.0, 3.0]))))

REFUSED = {
    "mean_s": replace(PLAIN, classes=(DRAWS,)),
    "rate_per_s": replace(PLAIN, traffic=Open(np.array([1.0, 2.0]), {"ask": 1.0})),
}


@pytest.mark.parametrize("field", REFUSED)
def test_refused_by_name(field: str) -> None:
    with pytest.raises(RefusedError) as refusal:
        simulate(REFUSED[field], 1.0, seed=1)
    assert field in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_flow_that_is_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network_facts, "MOST_STEPS", 3)
    flow = Sequence((Delay(Deterministic(1.0)),) * 3)
    with pytest.raises(RefusedError, match="4"):
        simulate(replace(PLAIN, classes=(RequestClass("ask", flow),)), 1.0, seed=1)


@pytest.mark.parametrize(
    "wrong",
    [
        {"duration_s": 0},
        {"duration_s": 1, "warmup_s": 1},
        {"duration_s": 1e-12},
        {"duration_s": float("nan")},
        {"duration_s": 1, "warmup_s": -1},
        {"duration_s": 1, "seed": -1},
        {"duration_s": 1, "max_requests": 0},
    ],
)
def test_senseless_run(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError):
        simulate(PLAIN, **{"seed": 1, **wrong})  # type: ignore[arg-type]  # fields of many types
