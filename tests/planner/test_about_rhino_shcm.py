"""What is told beside a prediction of the Sh cache microservice: distance, doubts, and answers at every rate."""

import math
from typing import Any

import pytest
from capplan.systems.abouts import beyond_measured, reach_of

from capplan.planner.predict.predict import predict
from capplan.planner.predict.prediction import Prediction
from capplan.systems.rhino_shcm.observations import experiments
from capplan.systems.rhino_shcm.scenario import RhinoShcmScenario

PLACES: list[dict[str, Any]] = [
    {},
    {"cache": False},
    {"colocated": True},
    {"colocated": True, "cache": False},
    {"cass_nodes": 1},
    {"cass_nodes": 5, "colocated": True},
]


def answered(**layout: Any) -> Prediction:
    return predict(RhinoShcmScenario(**layout), engine="analytic")


@pytest.mark.parametrize(
    ("layout", "verdict", "words"),
    [
        ({}, "inside", "Every part of the layout"),
        ({"colocated": True}, "inside", "Every part of the layout"),
        ({"colocated": True, "cache": False}, "inside", "Every part of the layout"),
        ({"cache": False}, "near", "No caches with Cassandra apart"),
        ({"rf": 2}, "near", "2 replicas apart: measured only with 3"),
        ({"cass_nodes": 1}, "far", "1 Cassandra node apart: measured only with 3; 1 replica apart"),
        ({"cass_nodes": 5}, "far", "5 Cassandra nodes apart: measured only with 3"),
        ({"cass_nodes": 3, "colocated": True}, "near", "measured one or the other"),
    ],
)
def test_only_the_layouts_that_were_measured_are_inside(layout: dict[str, Any], verdict: str, words: str) -> None:
    found = reach_of(RhinoShcmScenario(**layout))

    assert found.verdict == verdict
    assert words in found.why


def test_every_load_test_is_inside_and_a_higher_load_is_not() -> None:
    for test in experiments():
        assert beyond_measured(test.scenario, float(test.scenario.offered_per_s())) == ()
    ((doublings, words),) = beyond_measured(RhinoShcmScenario(), 5040.0)
    assert doublings == pytest.approx(1.0)
    assert words == "5,040 requests per second: none measured above 2,520"


def test_a_load_above_the_measured_ones_widens_times_and_not_the_capacity() -> None:
    low, high = answered(tps=2520.0), answered(tps=3200.0)

    assert low.capacity_tps == high.capacity_tps
    assert (low.evidence.extrapolation, high.evidence.extrapolation) == ("inside", "near")
    p99 = [each.latency_ms["request"].p99 for each in (low, high)]
    widths = [math.log(band.high / band.low) for band in p99 if band is not None]
    assert widths[1] > widths[0]


@pytest.mark.parametrize("layout", PLACES, ids=str)
@pytest.mark.parametrize("share", [1e-3, 0.9, 0.99, 1.0, 1.02, 3.0])
def test_every_rate_has_an_answer(layout: dict[str, Any], share: float) -> None:
    capacity = answered(**layout).capacity_tps
    assert capacity is not None
    made = answered(**layout, tps=share * capacity.value)
    mean = made.latency_ms["request"].mean

    assert mean is not None
    assert share == 1.0 or math.isfinite(mean.value) == (share < 1.0)  # at the median capacity half of the draws are
    notes = " ".join(made.evidence.notes)
    assert ("No longest answer" in notes) or ("longest answer of a run of two hours" in notes and share < 1.02)
    made.to_json()


def test_near_saturation_the_compiled_engine_does_not_answer_from_the_beginning_of_a_queue() -> None:
    """Configuration A at 2,160 requests per second takes minutes to settle, and a second is simulated for an answer."""
    busy = RhinoShcmScenario(colocated=True, sps=1200.0)
    simulated, solved = (predict(busy, engine=engine) for engine in ("compiled", "analytic"))

    assert simulated.latency_ms == solved.latency_ms
    assert any("So near saturation" in note for note in simulated.evidence.notes)


@pytest.mark.parametrize("rate", [1200.0, 1800.0])
def test_both_engines_agree_where_a_queue_settles(rate: float) -> None:
    """Within 12 %: the closed form leaves the start out, a simulation has a part of its band for noise."""
    asked = RhinoShcmScenario(colocated=True, tps=rate)
    simulated, solved = (predict(asked, engine=engine).latency_ms["request"] for engine in ("compiled", "analytic"))

    for statistic in ("mean", "p90", "p99"):
        one, other = getattr(simulated, statistic), getattr(solved, statistic)
        assert abs(math.log(one.value / other.value)) < 0.12 + 2 * one.parts.simulation / one.value, statistic


def test_what_is_said_hangs_on_the_layout() -> None:
    def notes(**layout: Any) -> str:
        return " ".join(answered(**layout).evidence.notes)

    assert "survives its loss" in notes()
    assert "survives its loss" not in notes(cass_nodes=2)
    assert "no reason to switch caches off" in notes(cache=False)
    assert "no reason to switch caches off" not in notes()
    assert answered(cass_nodes=5).evidence.claims == ()
    assert "2,160 requests per second" in answered().evidence.claims[0]


@pytest.mark.parametrize(
    ("layout", "available"), [({}, True), ({"cass_nodes": 2}, False), ({"colocated": True}, False)]
)
def test_a_quorum_survives_a_node_of_three(layout: dict[str, Any], available: bool) -> None:
    (outage,) = answered(**layout).outages

    assert outage.lost == {"Cassandra node": 1}
    assert outage.available is available
