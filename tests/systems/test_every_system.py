"""What every system has: its contract, its packaged calibration, its answers."""

import csv
import json
import runpy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from tests.systems.prior_draws import prior_values

from capplan.calibration.fit.stages import refit_code
from capplan.errors import InputError
from capplan.layout.components import Ratios
from capplan.layout.solution import kind_of
from capplan.layout.system import System
from capplan.models.language.parameter import defaults
from capplan.models.language.scenario import Scenario, changed, fields_of, options_of
from capplan.models.language.step import walk
from capplan.models.language.traffic import Open
from capplan.models.solver.analytic import Analysis
from capplan.models.solver.operating_point import solve
from capplan.planner.predict.predict import predict
from capplan.planner.predict.prediction import Prediction
from capplan.systems.registry import documented_names, documented_systems, names, resolve, scenario, system

COMPARED = Path(__file__).parent / "compared"
GENERATOR = Path(__file__).parents[2] / "docs" / "generate" / "comparison_snapshots.py"
EVERY = pytest.mark.parametrize("its", documented_systems(), ids=documented_names())
WITH_RATES = [each for each in documented_systems() if each.component(Ratios).of is None]
RATED = pytest.mark.parametrize("its", WITH_RATES, ids=[each.name for each in WITH_RATES])
ASKED: Mapping[str, dict[str, Any]] = {
    "openprovider": {"dcs": 1, "tps": 5000.0},
    "rhino-shcm": {"cass_nodes": 5, "sps": 1300.0},
    "fedora4": {"nodes": 6, "write_share": 0.05, "region": "asia"},
    "vcider": {"rf": 3, "column_bytes": 512},
    "arion": {"servers": 10, "clients": 10_000, "rps_per_client": 30.0},
}


def test_the_five_documented_systems_are_found() -> None:
    assert names()[0] == "openprovider"  # the default
    assert {"openprovider", "rhino-shcm", "fedora4", "vcider", "arion"} <= set(names())


@EVERY
def test_the_packaged_calibration_is_of_the_code_of_today(its: System[Any]) -> None:
    assert its.fitted().code == refit_code(its)


@EVERY
def test_a_system_stands_under_its_name_and_has_a_scenario(its: System[Any]) -> None:
    assert system(its.name) is its
    assert scenario(its.name) == its.scenario()
    assert scenario(its.name).system == its.name
    assert its.summary


@EVERY
def test_every_field_that_lays_it_out_is_an_option_with_help_and_a_label(its: System[Any]) -> None:
    kind: type[Scenario] = its.scenario
    options = options_of(kind)

    assert {"tps", "slo"} <= set(options) <= set(fields_of(kind))
    assert all(option.help and option.label for option in options.values())


@EVERY
def test_a_scenario_has_a_rate_and_objectives_or_refuses_them(its: System[Any]) -> None:
    if its.component(Ratios).of is None:
        assert changed(its.scenario(), tps=123.0, slo=("capacity>1",)).tps == 123.0
        return
    for field in ({"tps": 123.0}, {"slo": ("capacity>1",)}):
        with pytest.raises(InputError):
            changed(its.scenario(), **field)


@EVERY
def test_the_network_is_of_the_system_at_the_offered_rate(its: System[Any]) -> None:
    made = its.network(its.scenario(), defaults(its.parameters), 300.0)
    known = {request.name for request in made.classes}

    assert made.name == its.name
    assert isinstance(made.traffic, Open)
    assert its.classes(its.scenario())
    assert all(set(its.reported[name]) <= known for name in its.classes(its.scenario()))


@EVERY
def test_every_parameter_has_a_source_and_fitted_ones_are_free(its: System[Any]) -> None:
    assert len({each.name for each in its.parameters}) == len(its.parameters)
    for each in its.parameters:
        assert each.source.strip()
        assert each.value > 0
        assert each.free or each.kind != "fitted"


@EVERY
def test_every_fitted_figure_is_compared_once_and_in_its_fold(its: System[Any]) -> None:
    tests = its.observations.load_tests()
    compared = [row.id for test in tests for row in test.rows]

    assert len(compared) == len(set(compared))
    assert {row.id for row in its.evidence if row.use == "fit"} <= set(compared)
    assert all(row.fold == test.fold for test in tests for row in test.rows)


@EVERY
def test_figures_are_compared_as_the_reviewed_snapshot_says(its: System[Any]) -> None:
    """Experiment, fold, layout, kind, goal, family and scatter of every figure."""
    script = runpy.run_path(str(GENERATOR))
    with (COMPARED / f"{its.name}.csv").open(encoding="utf-8", newline="") as file:
        assert list(csv.reader(file)) == [list(script["COLUMNS"]), *script["snapshot"](its)]


@EVERY
def test_what_the_document_leaves_open_is_carried_into_every_experiment(its: System[Any]) -> None:
    for choice in its.observations.choices:
        for test in its.observations.load_tests(choice):
            assert choice.items() <= vars(test.scenario).items()


def spread_out(its: System[Any], asked: Scenario) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return two draws of every free parameter together, and each of them alone."""
    free, usual = {each.name for each in its.parameters if each.free}, prior_values(its, asked)
    alone = [{name: value * (factor if name in free else 1) for name, value in usual.items()} for factor in (0.9, 1.2)]
    return {name: np.array([each[name] for each in alone]) if name in free else usual[name] for name in usual}, alone


@EVERY
def test_draws_are_solved_as_each_alone(its: System[Any]) -> None:
    asked = scenario(its.name, **ASKED[its.name])
    several, alone = spread_out(its, asked)
    whole, parts = ([Analysis(its.network(asked, values, 1.0)) for values in each] for each in ([several], alone))
    rate = 0.6 * float(whole[0].saturation_per_s.min())
    together = solve(whole[0], rate)
    for draw, part in enumerate(parts):
        point = solve(part, rate)
        assert whole[0].drift_per_s[draw] == pytest.approx(part.drift_per_s[0], rel=1e-9)
        for name in part.flows:
            assert together.response_s(name)[draw] == pytest.approx(point.response_s(name)[0], rel=1e-6)
            assert together.quantile_s(0.99, name)[draw] == pytest.approx(point.quantile_s(0.99, name)[0], rel=1e-5)


@pytest.mark.parametrize("name", sorted({*documented_names()} - {"rhino-shcm"}))  # whose figures take long simulations
def test_figures_are_predicted_by_draw_as_each_alone(name: str) -> None:
    its = system(name)
    tests = its.observations.load_tests()[::4]
    several, alone = spread_out(its, tests[0].scenario)
    together = its.observations.predicted(tests, several)
    assert together.keys() == {row.id for test in tests for row in test.rows}
    for draw, values in enumerate(alone):
        for row, figure in its.observations.predicted(tests, values).items():
            assert 0 < figure[0] < np.inf
            assert np.broadcast_to(together[row], 2)[draw] == pytest.approx(figure[0], rel=1e-6), row


@pytest.mark.parametrize(
    ("name", "few", "many"),
    [
        ("arion", {"servers": 2, "clients": 31}, {"servers": 64, "clients": 992}),
        ("arion", {"servers": 2, "clients": 2000}, {"servers": 64, "clients": 64_000}),
        ("fedora4", {"nodes": 2, "write_share": 0.05}, {"nodes": 64, "write_share": 0.05}),
        ("openprovider", {}, {"cass_nodes": 64, "front_nodes": 64}),
        ("rhino-shcm", {"cass_nodes": 3}, {"cass_nodes": 64}),
        (
            "rhino-shcm",
            {"cass_nodes": 3, "colocated": True, "encryption": "client+internode"},
            {"cass_nodes": 64, "colocated": True, "encryption": "client+internode"},
        ),
    ],
    ids=str,
)
def test_the_steps_of_a_request_do_not_grow_with_the_machines(name: str, few: Any, many: Any) -> None:
    def steps(fields: Any) -> int:
        asked, its = scenario(name, **fields), system(name)
        made = its.network(asked, prior_values(its, asked), 1.0)
        return sum(1 for request in made.classes for _ in walk(request.flow))

    assert steps(few) == steps(many)


@EVERY
def test_every_row_names_a_known_source(its: System[Any]) -> None:
    known = {source.id for source in its.sources}

    assert known
    assert {row.source for row in its.evidence} <= known


@EVERY
def test_the_packaged_calibration_is_of_today_s_evidence_and_keeps_every_figure(its: System[Any]) -> None:
    fitted = its.fitted()
    compared = {row.id for test in its.observations.load_tests() for row in test.rows}

    assert fitted.data_hash == its.data_hash
    assert {figure.id for figure in fitted.figures} == {figure.id for figure in fitted.left_out} == compared
    assert len(fitted.draws) >= 200
    assert len(set(fitted.draws)) > len(fitted.draws) / 2  # an ensemble, not one point over and over


@EVERY
def test_a_case_keeps_what_was_solved_when_its_rate_is_set(its: System[Any]) -> None:
    case = resolve(its.scenario())
    solution, values = case.solution, case.values

    assert case.system is its
    assert case.at(100.0).solution is solution
    assert case.at(100.0).values is values
    assert case.at(100.0).offered_per_s == 100.0
    assert case.changed(case.scenario) == case


@EVERY
def test_every_measured_layout_is_inside_the_measured_range(its: System[Any]) -> None:
    for test in its.observations.load_tests():
        writes_alone = any(row.quantity == "latency" and row.layout.get("action") for row in test.rows)
        if not writes_alone:  # of such a mix no rate was measured
            assert its.extrapolation(test.scenario).doublings == 0, test.name


@pytest.mark.parametrize(
    ("name", "layout", "doublings"),
    [
        ("rhino-shcm", {"colocated": True}, 0.0),
        ("rhino-shcm", {"colocated": True, "cache": False}, 0.0),
        ("rhino-shcm", {"cache": False}, None),
        ("rhino-shcm", {"rf": 2}, None),
        ("rhino-shcm", {"cass_nodes": 5}, None),
        ("rhino-shcm", {"cass_nodes": 3, "colocated": True}, None),
        ("fedora4", {"nodes": 1}, 0.0),
        ("fedora4", {"nodes": 4, "write_share": 0.05, "region": "asia"}, 0.0),
        ("fedora4", {"nodes": 8}, 1.0),
        ("fedora4", {"nodes": 2, "write_share": 0.07}, None),
        ("vcider", {"rf": 3, "column_bytes": 32}, 0.0),
        ("vcider", {"rf": 2, "encryption": "none"}, 0.0),
        ("vcider", {"rf": 4}, 0.415),
        ("vcider", {"column_bytes": 512}, 1.0),
        ("vcider", {"column_bytes": 16}, 1.0),
        ("vcider", {"virtual_encrypts": "all"}, 1.0),
        ("arion", {"clients": 30}, 0.0),
        ("arion", {"clients": 25}, 0.263),
        ("arion", {"clients": 1}, 4.907),
        ("arion", {"servers": 2, "clients": 3}, None),
        ("arion", {"clients": 2000}, 1.0),
        ("arion", {"stream_messages": 1000}, None),
    ],
    ids=str,
)
def test_how_far_a_layout_is_outside_the_measured_ones(
    name: str, layout: dict[str, Any], doublings: float | None
) -> None:
    """None: outside, by a distance that is a guess."""
    far = system(name).extrapolation(scenario(name, **layout))

    assert (far.basis == "extrapolated") is (doublings != 0)
    assert far.doublings > 0 if doublings is None else far.doublings == pytest.approx(doublings, abs=1e-3)


@RATED
def test_objectives_may_name_the_stations_that_there_are_and_no_others(its: System[Any]) -> None:
    made = its.network(its.scenario(), defaults(its.parameters), 1.0)
    for resource in {kind_of(station.name) for station in made.stations}:
        (objective,) = resolve(scenario(its.name, slo=(f"{resource}.utilisation<80%",))).objectives
        assert objective.text == f"{resource}.utilisation<80%"
    with pytest.raises(InputError, match="tape"):
        _ = resolve(scenario(its.name, slo=("tape.utilisation<80%",))).objectives


@pytest.mark.parametrize(
    ("name", "layout", "unknown"),
    [
        ("rhino-shcm", {"colocated": True, "slo": ("cassandra.utilisation<50%",)}, "cassandra"),
        ("fedora4", {"slo": ("create.p99<20ms",)}, "create"),
    ],
)
def test_an_objective_on_what_the_layout_does_not_have_is_refused(
    name: str, layout: dict[str, Any], unknown: str
) -> None:
    with pytest.raises(InputError, match=unknown):
        _ = resolve(scenario(name, **layout)).objectives


def test_an_objective_that_nothing_meets_leaves_no_capacity() -> None:
    made = predict(scenario("rhino-shcm", slo=("request.mean<1ms",)), engine="analytic")

    assert made.peak_tps is not None
    assert made.peak_tps.value == 0.0
    assert made.objectives[0].answer == "no"


@pytest.fixture(scope="module", params=[each.name for each in WITH_RATES])
def prediction(request: pytest.FixtureRequest) -> Prediction:
    """Ask each system about a layout; the analytic engine, for speed."""
    return predict(scenario(request.param, **ASKED[request.param]), engine="analytic")


def test_every_answer_follows_the_published_schema(prediction: Prediction) -> None:
    document = json.loads(json.dumps(prediction.to_json()))
    jsonschema.validate(document, Prediction.json_schema())

    assert (
        document["capacity"]["peak_tps"]["low"]
        < document["capacity"]["peak_tps"]["value"]
        < document["capacity"]["peak_tps"]["high"]
    )
    assert document["evidence"]["sources"]
    assert document["latency_ms"]


def test_every_answer_names_its_bottleneck_and_orders_its_percentiles(prediction: Prediction) -> None:
    assert prediction.bottleneck in (*prediction.utilisation, "workers", "native-transport")
    for latency in prediction.latency_ms.values():
        percentiles = [latency.p50, latency.p90, latency.p95, latency.p99, latency.p999]
        values = [band.value for band in percentiles if band is not None]
        assert values == sorted(values)
        assert len(values) == 5


def test_a_system_of_ratios_has_bands_of_them_and_nothing_else() -> None:
    made = predict(scenario("vcider", **ASKED["vcider"]))
    jsonschema.validate(json.loads(json.dumps(made.to_json())), Prediction.json_schema())

    assert made.peak_tps is None
    assert made.offered is None
    assert not made.latency_ms
    for band in made.throughput_ratios.values():
        assert 0 < band.low < band.value < band.high
    assert made.evidence.sources
