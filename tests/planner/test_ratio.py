"""Predictions of systems that are documented as ratios only: a ratio to each reference, and nothing absolute."""

import json
from functools import cache
from typing import Any

import jsonschema
import pytest
from capplan.systems.abouts import ABOUTS

from capplan.calibration.fit.fitted_file import load
from capplan.planner.predict.predict import predict
from capplan.planner.predict.prediction import Prediction, prediction_schema
from capplan.planner.predict.ratio import predicted_ratio
from capplan.planner.predict.rows import to_csv
from capplan.systems.openprovider.network import SYSTEM
from capplan.systems.registry import scenario
from capplan.systems.vcider.network import ratio
from capplan.systems.vcider.scenario import VciderScenario

REFERENCES = {
    "client+internode": "native, client+internode encryption",
    "internode": "native, internode encryption",
    "none": "native, no encryption",
}


@cache
def asked(encryption: str = "client+internode", rf: int = 3) -> Prediction:
    return predict(scenario("vcider", rf=rf, column_bytes=512, encryption=encryption))


@pytest.mark.parametrize("encryption", list(REFERENCES))
def test_json_is_valid_by_the_published_schema(encryption: str) -> None:
    document = json.loads(json.dumps(asked(encryption).to_json(), allow_nan=False))

    jsonschema.Draft202012Validator(prediction_schema()).validate(document)
    assert document["throughput_ratio"] == document["throughput_ratios"][REFERENCES[encryption]]
    assert set(document["throughput_ratio"]["parts"]) == {"parameter", "discrepancy", "simulation"}
    assert document["throughput_ratio"]["parts"]["simulation"] is None


def test_nothing_absolute_is_said() -> None:
    made = asked()

    assert (made.capacity_tps, made.bottleneck, made.offered_tps) == (None, None, None)
    assert (made.latency_ms, made.utilisation, made.busy_workers, made.outages) == ({}, {}, {}, ())
    assert made.engine == "analytic"


@pytest.mark.parametrize("encryption", list(REFERENCES))
def test_the_reference_that_was_asked_for_comes_first(encryption: str) -> None:
    ratios = asked(encryption).throughput_ratios

    assert set(ratios) == set(REFERENCES.values())
    assert next(iter(ratios)) == REFERENCES[encryption]
    assert asked(encryption).throughput_ratio == ratios[REFERENCES[encryption]]


@pytest.mark.parametrize("encryption", list(REFERENCES))
def test_a_band_is_that_of_a_rate_around_the_median_of_the_draws(encryption: str) -> None:
    layout, fitted = VciderScenario(rf=3, column_bytes=512), load("vcider")
    draws = ratio(layout, fitted.values(), encryption)
    band = asked().throughput_ratios[REFERENCES[encryption]]

    ordered = sorted(draws)
    assert len(draws) == len(fitted.draws)
    assert ordered[len(draws) // 2 - 1] <= band.value <= ordered[len(draws) // 2]
    assert band.low < ordered[len(draws) // 20]
    assert band.high > ordered[-len(draws) // 20]


def test_a_row_for_each_ratio() -> None:
    header, *rows = to_csv(asked()).splitlines()

    assert header == "quantity,request_class,statistic,value,low,high,unit"
    assert rows[0].startswith("throughput_ratio,,mean,")
    assert len(rows) == 1 + len(REFERENCES)
    for name in REFERENCES.values():
        assert sum(name in row for row in rows) == 1


def test_a_system_with_rates_and_times_is_no_ratio() -> None:
    nobody: Any = None  # refused before anything is asked of it

    with pytest.raises(ValueError, match="openprovider is documented with rates and times, not as ratios"):
        predicted_ratio(SYSTEM, ABOUTS["openprovider"], nobody, nobody)
