"""Predictions for `rhino-shcm`: answers at every rate, both engines, and the notes."""

import math
from functools import lru_cache
from typing import Any

import pytest

from capplan.planner.predict.predict import predict
from capplan.planner.predict.prediction import Prediction
from capplan.systems.rhino_shcm.scenario import RhinoShcmScenario

PLACES: list[dict[str, Any]] = [
    {},
    {"colocated": True, "cache": False},
    {"cass_nodes": 5, "colocated": True},
]


@lru_cache
def answered(**layout: Any) -> Prediction:
    return predict(RhinoShcmScenario(**layout), engine="analytic")


def test_a_load_above_the_measured_ones_widens_times_and_not_the_capacity() -> None:
    low, high = answered(tps=2520.0), answered(tps=3200.0)

    assert low.peak_tps == high.peak_tps
    assert (low.evidence.basis, high.evidence.basis) == ("measured", "extrapolated")
    p99 = [each.latency_ms["request"].p99 for each in (low, high)]
    widths = [math.log(band.high / band.low) for band in p99 if band is not None]
    assert widths[1] > widths[0]


@pytest.mark.parametrize("layout", PLACES, ids=str)
@pytest.mark.parametrize("share", [1e-3, 0.99, 1.0, 1.02, 3.0])
def test_every_rate_has_an_answer(layout: dict[str, Any], share: float) -> None:
    capacity = answered(**layout).peak_tps
    assert capacity is not None
    made = answered(**layout, tps=share * capacity.value)
    mean = made.latency_ms["request"].mean

    assert mean is not None
    assert share == 1.0 or math.isfinite(mean.value) == (share < 1.0)  # at the median capacity half of the draws are
    made.to_json()


def test_near_saturation_the_compiled_engine_does_not_answer_from_the_beginning_of_a_queue() -> None:
    """Configuration A at 2,160 requests per second takes minutes to settle, and a second is simulated for an answer."""
    busy = RhinoShcmScenario(colocated=True, sps=1200.0)
    simulated, solved = (predict(busy, engine=engine) for engine in ("compiled", "analytic"))

    assert simulated.latency_ms == solved.latency_ms


@pytest.mark.parametrize("rate", [1200.0, 1800.0])
@pytest.mark.slow
def test_both_engines_agree_where_a_queue_settles(rate: float) -> None:
    """Within 12 %: the closed form leaves the start out, a simulation has a part of its band for noise."""
    asked = RhinoShcmScenario(colocated=True, tps=rate)
    simulated, solved = (predict(asked, engine=engine).latency_ms["request"] for engine in ("compiled", "analytic"))

    for statistic in ("mean", "p90", "p99"):
        one, other = getattr(simulated, statistic), getattr(solved, statistic)
        assert abs(math.log(one.value / other.value)) < 0.12 + 2 * one.parts.simulation / one.value, statistic


def test_the_documented_rate_is_claimed_of_the_documented_layout_only() -> None:
    assert "2,160" in answered().evidence.claims[0]  # evidence t5.sustained_rate
    assert answered(cass_nodes=5).evidence.claims == ()


@pytest.mark.parametrize(
    ("layout", "available"), [({}, True), ({"cass_nodes": 2}, False), ({"colocated": True}, False)]
)
def test_a_quorum_survives_a_node_of_three(layout: dict[str, Any], available: bool) -> None:
    (outage,) = answered(**layout).outages

    assert outage.lost == {"node": 1}
    assert outage.available is available
