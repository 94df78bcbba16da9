"""Every system is known to every stage: as a study that can be calibrated, and with what a prediction tells of it."""

import json
from typing import Any

import jsonschema
import pytest
from capplan.systems.abouts import ABOUTS, reach_of
from capplan.systems.studies import STUDIES

from capplan.calibration.case.solution import resource_of
from capplan.calibration.evidence.table import data_hash
from capplan.calibration.fit.fitted_file import load
from capplan.models.errors import InputError
from capplan.models.language.parameter import defaults
from capplan.planner.predict.predict import objectives_of, predict
from capplan.planner.predict.prediction import Prediction, prediction_schema
from capplan.systems.registry import SYSTEMS, scenario

EVERY = pytest.mark.parametrize("name", list(SYSTEMS))
ASKED: dict[str, dict[str, Any]] = {
    "openprovider": {"dcs": 1, "tps": 5000.0},
    "rhino-shcm": {"cass_nodes": 5, "sps": 1300.0},
    "fedora4": {"nodes": 6, "write_share": 0.05, "region": "asia"},
    "vcider": {"rf": 3, "column_bytes": 512},
    "arion": {"servers": 10, "clients": 10_000, "rps_per_client": 30.0},
}
WITH_RATES = [name for name, its in SYSTEMS.items() if its.ratios is None]


def test_every_stage_knows_every_system() -> None:
    assert list(SYSTEMS) == list(STUDIES) == list(ABOUTS)
    assert list(SYSTEMS) == list(ASKED)


@pytest.mark.parametrize("name", WITH_RATES)
def test_objectives_can_speak_of_the_stations_that_there_are_and_of_no_others(name: str) -> None:
    made = SYSTEMS[name].network(scenario(name), defaults(SYSTEMS[name].parameters), 1.0)
    for resource in {resource_of(station.name) for station in made.stations}:
        (objective,) = objectives_of(scenario(name, slo=(f"{resource}.utilisation<80%",)))
        assert objective.text == f"{resource}.utilisation<80%"
    with pytest.raises(InputError, match="tape"):
        objectives_of(scenario(name, slo=("tape.utilisation<80%",)))


def test_a_resource_or_class_that_a_layout_does_not_have_is_refused() -> None:
    with pytest.raises(InputError, match="cassandra"):
        objectives_of(scenario("rhino-shcm", colocated=True, slo=("cassandra.utilisation<50%",)))
    with pytest.raises(InputError, match="create"):
        objectives_of(scenario("fedora4", slo=("create.p99<20ms",)))


def test_an_objective_that_nothing_meets_leaves_no_capacity() -> None:
    made = predict(scenario("rhino-shcm", slo=("request.mean<1ms",)), engine="analytic")

    assert made.capacity_tps is not None
    assert made.capacity_tps.value == 0.0
    assert made.objectives[0].met is False


@EVERY
def test_every_measured_layout_is_inside(name: str) -> None:
    for test in STUDIES[name].experiments():
        found = reach_of(test.scenario)
        if not any(
            row.quantity == "latency" and row.layout.get("action") for row in test.rows
        ):  # writes alone: no rate
            assert found.verdict == "inside", (test.name, found.why)


@EVERY
def test_the_packaged_calibration_is_of_today_s_evidence_and_keeps_every_figure(name: str) -> None:
    fitted = load(name)
    compared = {row.id for test in STUDIES[name].experiments() for row in test.rows}

    assert fitted.data_hash == data_hash(name)
    assert {figure.id for figure in fitted.figures} == {figure.id for figure in fitted.left_out} == compared
    assert len(fitted.draws) >= 200
    assert len(set(fitted.draws)) > len(fitted.draws) / 2


@pytest.fixture(scope="module", params=WITH_RATES)
def prediction(request: pytest.FixtureRequest) -> Prediction:
    """Ask each system about a layout; the analytic engine, for speed."""
    return predict(scenario(request.param, **ASKED[request.param]), engine="analytic")


def test_every_answer_is_the_published_value(prediction: Prediction) -> None:
    document = json.loads(json.dumps(prediction.to_json()))
    jsonschema.validate(document, prediction_schema())

    assert document["capacity_tps"]["low"] < document["capacity_tps"]["value"] < document["capacity_tps"]["high"]
    assert document["evidence"]["sources"]
    assert document["latency_ms"]


def test_every_answer_names_its_bottleneck_and_orders_its_percentiles(prediction: Prediction) -> None:
    assert prediction.bottleneck in (*prediction.utilisation, "workers", "native-transport")
    for latency in prediction.latency_ms.values():
        percentiles = [latency.p50, latency.p90, latency.p95, latency.p99, latency.p999]
        values = [band.value for band in percentiles if band is not None]
        assert values == sorted(values)
        assert len(values) == 5


@pytest.mark.parametrize("name", [name for name in SYSTEMS if name not in WITH_RATES])
def test_a_system_of_ratios_has_bands_of_them_and_nothing_else(name: str) -> None:
    made = predict(scenario(name, **ASKED[name]))
    jsonschema.validate(json.loads(json.dumps(made.to_json())), prediction_schema())

    assert made.capacity_tps is None
    assert made.offered_tps is None
    assert not made.latency_ms
    assert made.throughput_ratio == next(iter(made.throughput_ratios.values()))
    for band in made.throughput_ratios.values():
        assert 0 < band.low < band.value < band.high
    assert made.evidence.sources
