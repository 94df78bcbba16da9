"""The contract of a prediction: its JSON is valid by the published schema, finite, and has nothing else."""

import csv
import io
import json
import math
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from tests.planner.predictions import UNBOUNDED, prediction

from capplan.planner.predict.prediction import Band, Latency, Parts, Prediction, plain, prediction_schema
from capplan.planner.predict.prediction import Row, lost_in_words, rows, to_csv

ROOT = Path(__file__).parents[2]
# docs/reference/prediction.schema.json and everybody's scripts rest on these names.
KEYS = [
    *("schema", "scenario", "capacity_tps", "bottleneck", "offered_tps", "offered_source", "latency_ms"),
    *("utilisation", "busy_workers", "throughput_ratio", "throughput_ratios", "outages", "session_not_found"),
    *("objectives", "evidence", "engine", "seed", "version"),
]


def valid(document: dict[str, Any]) -> bool:
    return bool(jsonschema.Draft202012Validator(prediction_schema()).is_valid(document))


def without_a_capacity() -> Prediction:
    return prediction(
        capacity_tps=None, bottleneck=None, offered_tps=None, throughput_ratio=Band(1.3, 1.1, 1.5), objectives=()
    )


def test_the_published_schema_is_up_to_date() -> None:
    script = runpy.run_path(str(ROOT / "docs" / "generate" / "prediction_schema.py"))
    for path, text in script["generated"]().items():
        message = f"{path} is stale: uv run python docs/generate/prediction_schema.py"
        assert path.read_text(encoding="utf-8") == text, message


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(prediction_schema())


def test_every_part_of_the_schema_is_strict_and_described() -> None:
    whole = prediction_schema()
    for part in (whole, *whole["$defs"].values()):
        assert part["additionalProperties"] is False
        assert part["required"] == list(part["properties"])
        assert part["description"]


@pytest.mark.parametrize("made", [prediction(), without_a_capacity(), prediction(latency_ms={})])
def test_json_is_valid_and_finite(made: Prediction) -> None:
    document = json.loads(json.dumps(made.to_json(), allow_nan=False))

    jsonschema.validate(document, prediction_schema())
    assert list(document) == KEYS


@pytest.mark.parametrize(
    "change",
    [
        {"schema": "capplan.prediction/2"},
        {"extra": 1},
        {"offered_source": "guessed"},
        {"capacity_tps": 17000.0},
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

    assert document["capacity_tps"]["value"] == 17430.0
    assert document["capacity_tps"]["parts"] == {"parameter": 5200.0, "discrepancy": None, "simulation": 41.0}
    assert document["latency_ms"]["auth"]["mean"]["value"] is None
    assert document["latency_ms"]["auth"]["mean"]["low"] == 30.0
    assert document["latency_ms"]["auth"]["p99"] is None


@pytest.mark.parametrize("figures", [(1.0, 2.0, 3.0), (3.0, 1.0, 2.0), (math.nan, 0.0, 1.0), (1.0, 0.0, math.nan)])
def test_a_band_holds_its_value(figures: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match="low <= value <= high"):
        Band(*figures)


@pytest.mark.parametrize("width", [-1.0, math.nan])
def test_a_half_width_is_not_negative(width: float) -> None:
    with pytest.raises(ValueError, match="half-width discrepancy"):
        Parts(discrepancy=width)


def test_plain_takes_scalars_of_numpy_and_nothing_it_does_not_know() -> None:
    assert plain({"rate": np.float64(7.5), "nodes": np.int64(3), "ok": np.bool_(True)}) == {
        "rate": 7.5,
        "nodes": 3,
        "ok": True,
    }
    with pytest.raises(TypeError, match="no form in JSON"):
        plain(object())


def test_rows_hold_every_figure_once() -> None:
    found = rows(prediction())

    assert len({(row.quantity, row.request_class, row.statistic) for row in found}) == len(found)
    assert Row("latency", "auth", "mean", 4.02, 3.216, 6.432, "ms") in found
    assert sum(row.quantity == "latency" for row in found) == 2 * 6
    assert [row.value for row in found if row.quantity == "outage.available"] == [1.0, 0.0, 1.0, 1.0]
    case = "reads LOCAL_QUORUM, writes QUORUM; gap 0.5 ms, RTT 1.63 ms"
    assert Row("session_not_found", "", case, 0.0016, 0.0005, 0.0035, "1") in found


def test_csv_is_the_rows_and_a_given_rate_is_not_rounded() -> None:
    text = to_csv(prediction(offered_source="given", offered_tps=12345.6))
    lines = list(csv.reader(io.StringIO(text)))

    assert lines[0] == ["quantity", "request_class", "statistic", "value", "low", "high", "unit"]
    assert ["offered", "", "given", "12345.6", "12345.6", "12345.6", "1/s"] in lines


@pytest.mark.parametrize(
    ("lost", "words"),
    [
        ({"dc": 1}, "1 DC"),
        ({"dc": 2}, "2 DCs"),
        ({"node": 1}, "1 node per DC"),
        ({"dc": 1, "node": 2}, "1 DC and 2 nodes per DC"),
        ({}, "nothing"),
    ],
)
def test_outages_in_words(lost: dict[str, int], words: str) -> None:
    assert lost_in_words(lost) == words


def test_importing_it_is_cheap() -> None:
    command = "import sys, capplan.planner.predict.prediction; print(*sys.modules, sep='\\n')"
    result = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True)

    assert {"numpy", "pydantic", "rich", "scipy"} & set(result.stdout.split()) == set()
