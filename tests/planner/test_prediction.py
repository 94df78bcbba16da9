"""The contract of a prediction: its JSON is valid by the published schema and finite."""

import json
import math
from dataclasses import replace
from typing import Any

import jsonschema
import numpy as np
import pytest
from tests.planner.predictions import UNBOUNDED, offered, prediction

from capplan.answers.results import Band, Latency, Parts, plain
from capplan.planner.predict.prediction import COLUMNS, Prediction
from capplan.planner.simulate.simulation import Simulation

KEYS = list(Prediction.json_schema()["properties"])


def valid(document: dict[str, Any]) -> bool:
    return bool(jsonschema.Draft202012Validator(Prediction.json_schema()).is_valid(document))


def without_a_capacity() -> Prediction:
    ratios = {"native": Band(1.3, 1.1, 1.5)}
    return prediction(capacity=None, limits=(), offered=None, throughput_ratios=ratios, objectives=(), outages=())


@pytest.mark.parametrize(
    "whole", [Prediction.json_schema(), Simulation.json_schema()], ids=["prediction", "simulation"]
)
def test_every_part_of_the_schema_is_strict_and_described(whole: dict[str, Any]) -> None:
    jsonschema.Draft202012Validator.check_schema(whole)
    for part in (whole, *whole["$defs"].values()):
        assert part["additionalProperties"] is False
        assert part["required"] == list(part["properties"])
        assert part["description"]


@pytest.mark.parametrize("made", [prediction(), without_a_capacity(), prediction(latency_ms={})])
def test_json_is_valid_and_finite(made: Prediction) -> None:
    document = json.loads(json.dumps(made.to_json(), allow_nan=False))

    jsonschema.validate(document, Prediction.json_schema())
    assert list(document) == KEYS


@pytest.mark.parametrize(
    "change",
    [
        {"schema": "capplan.prediction/2"},
        {"extra": 1},
        {"verdict": "perhaps"},
        {"capacity": 17000.0},
        {"seed": 1.5},
        {"evidence": {"sources": []}},
    ],
)
def test_the_schema_refuses(change: dict[str, Any]) -> None:
    document = prediction().to_json()

    assert valid(document)
    assert not valid({**document, **change})


def test_the_schema_misses_a_key_that_is_left_out() -> None:
    document = prediction().to_json()
    for key in KEYS:
        assert not valid({name: value for name, value in document.items() if name != key})


def test_json_has_four_digits_and_null_for_what_is_not_modelled_or_unbounded() -> None:
    document = prediction(latency_ms={"auth": Latency(mean=UNBOUNDED)}).to_json()

    assert document["capacity"]["peak_tps"]["value"] == 17430.0
    assert document["capacity"]["peak_tps"]["parts"] == {"parameter": 5200.0, "model_error": None, "simulation": 41.0}
    assert document["latency_ms"]["auth"]["mean"]["value"] is None
    assert document["latency_ms"]["auth"]["mean"]["low"] == 30.0
    assert document["latency_ms"]["auth"]["p99"] is None


@pytest.mark.parametrize("figures", [(1.0, 2.0, 3.0), (3.0, 1.0, 2.0), (math.nan, 0.0, 1.0), (1.0, 0.0, math.nan)])
def test_a_band_holds_its_value(figures: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match="low <= value <= high"):
        Band(*figures)


@pytest.mark.parametrize("width", [-1.0, math.nan])
def test_a_half_width_is_not_negative(width: float) -> None:
    with pytest.raises(ValueError, match="half-width model_error"):
        Parts(model_error=width)


def test_plain_takes_scalars_of_numpy_and_nothing_it_does_not_know() -> None:
    assert plain({"rate": np.float64(7.5), "nodes": np.int64(3), "ok": np.bool_(True)}) == {
        "rate": 7.5,
        "nodes": 3,
        "ok": True,
    }
    with pytest.raises(TypeError, match="no form in JSON"):
        plain(object())


def test_a_frame_holds_every_figure_once() -> None:
    frame = prediction().to_frame()
    keyed = frame.set_index(["quantity", "request_class", "statistic"])
    case = "reads LOCAL_QUORUM, writes QUORUM; gap 0.5 ms, RTT 1.63 ms"

    assert list(frame.columns) == list(COLUMNS)
    assert keyed.index.is_unique
    rows = dict(zip(keyed.index, keyed.to_numpy().tolist(), strict=True))
    assert rows["latency", "auth", "mean"] == [4.02, 3.216, 6.432, "ms", ""]
    assert rows["capacity.peak", "", "maximum"] == [17430.0, 12010.0, 24020.0, "1/s", "extrapolated"]
    assert (frame.quantity == "latency").sum() == 2 * 6
    assert list(frame[frame.quantity == "outage.available"].value) == [1.0, 0.0, 1.0]
    assert rows["session_not_found", "", case] == [0.0016, 0.0005, 0.0035, "1", ""]


def test_a_frame_holds_the_months_of_growth() -> None:
    frame = replace(prediction(), lasts_months=Band(53.6, 45.0, 62.0)).to_frame()
    row = frame[frame.quantity == "lasts"]
    assert row[["value", "low", "high", "unit"]].to_numpy().tolist() == [[53.6, 45.0, 62.0, "months"]]


def test_a_given_rate_is_not_rounded() -> None:
    frame = prediction(offered=offered(12345.6, source="given")).to_frame()

    assert [tuple(row) for row in frame[frame.quantity == "offered.peak"].to_numpy()] == [
        ("offered.peak", "", "given", 12345.6, 12345.6, 12345.6, "1/s", "")
    ]
