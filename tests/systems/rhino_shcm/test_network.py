"""The network of `rhino-shcm`: its layout, exact cases at light load, its loads by hand, and its laws."""

import numpy as np
import pytest

from capplan.errors import InputError
from capplan.models.language.parameter import Values, defaults
from capplan.models.language.scenario import changed
from capplan.models.solver.analytic import Analysis
from capplan.models.solver.operating_point import capacity_per_s as analytic_capacity_per_s
from capplan.simulator.compiled.engine import simulate
from capplan.systems.rhino_shcm.network import CORES, network, response_s, saturation_per_s
from capplan.systems.rhino_shcm.priors import PARAMETERS
from capplan.systems.rhino_shcm.scenario import RhinoShcmScenario

VALUES: Values = defaults(PARAMETERS)
CALM: Values = {**VALUES, "short_stall_requests": 1e12, "long_stall_requests": 1e12, "path_scv": 1e-12}
A, B = RhinoShcmScenario(colocated=True), RhinoShcmScenario()
C = RhinoShcmScenario(colocated=True, cache=False)
LAYOUTS = (A, B, C, RhinoShcmScenario(cass_nodes=5), RhinoShcmScenario(cass_nodes=5, colocated=True))


# --- scenario


def test_what_is_left_out_is_the_documented_layout() -> None:
    assert (B.nodes, B.replicas, B.cache) == (3, 3, True)
    assert (A.nodes, A.replicas) == (1, 1)
    assert (RhinoShcmScenario(cass_nodes=2).replicas, RhinoShcmScenario(cass_nodes=5).replicas) == (2, 3)


def test_defaults_are_shown_and_may_still_be_changed() -> None:
    asked = RhinoShcmScenario(sps=1000.0)

    assert (asked.given()["cass_nodes"], asked.given()["rf"], asked.given()["sps"]) == (3, 3, 1000.0)
    assert changed(asked, colocated=True).given()["cass_nodes"] == 1
    assert "slo" not in asked.given()


def test_sessions_are_1_8_requests() -> None:
    assert RhinoShcmScenario(sps=1300.0).offered_per_s() == pytest.approx(2340.0)
    assert RhinoShcmScenario(tps=2000.0).offered_per_s() == 2000.0
    assert RhinoShcmScenario().offered_per_s() is None
    in_minutes = RhinoShcmScenario(sps="60/min")  # type: ignore[arg-type]  # text with a unit
    assert in_minutes.offered_per_s() == pytest.approx(1.8)


def test_a_scenario_with_sessions_can_be_changed() -> None:
    scenario = RhinoShcmScenario(sps=1300.0, cass_nodes=5)

    assert RhinoShcmScenario(**vars(scenario)) == scenario
    assert changed(scenario, sps=1000.0).offered_per_s() == pytest.approx(1800.0)
    assert changed(scenario, sps=None, tps=900.0).offered_per_s() == 900.0


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"rf": 4}, "rf = 4"),
        ({"cass_nodes": 65}, "cass_nodes = 65"),
        ({"sps": 1000.0, "tps": 2000.0}, "1800 requests per second"),
        ({"cass_node": 3}, "'cass_nodes'"),
    ],
)
def test_bad_layouts_are_one_sentence(fields: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        RhinoShcmScenario(**fields)  # type: ignore[arg-type]  # wrong on purpose


# --- exact cases at light load


@pytest.mark.parametrize(
    ("scenario", "server_core_s", "node_core_s", "path_s"),
    [
        (A, 1.55e-3 + 1.47e-3, 0.0, 4.1e-3),
        (B, 1.55e-3, 1.47e-3, 4.1e-3),
        (C, 1.55e-3 * 1.29 + 1.47e-3 * 0.63, 0.0, 4.1e-3 * 0.63),
        (RhinoShcmScenario(cass_nodes=5), 1.55e-3, 1.47e-3, 4.1e-3),
        (RhinoShcmScenario(cache=False), 1.55e-3 * 1.29, 1.47e-3 * 0.63, 4.1e-3 * 0.63),
    ],
)
def test_without_stalls_a_lone_request_takes_its_services_and_its_path(
    scenario: RhinoShcmScenario, server_core_s: float, node_core_s: float, path_s: float
) -> None:
    values = {
        **CALM,
        "application_s": 1.55e-3,
        "uncached_excess": 0.29,
        "cassandra_s": 1.47e-3,
        "path_s": 4.1e-3,
        "uncached_share": 0.63,
    }
    run = simulate(network(scenario, values, 0.1), 100.0, seed=1, trace=True)

    assert run.latencies_s("request") == pytest.approx((server_core_s + node_core_s) / CORES + path_s, abs=1e-7)


def test_one_colocated_node_of_several_does_its_part_on_the_applications_server() -> None:
    """Three of five nodes have a row, so three fifths of the requests ask it."""
    mixed = Analysis(network(RhinoShcmScenario(cass_nodes=5, colocated=True), CALM, 1.0))
    expected = float(VALUES["application_s"]) + 0.6 * float(VALUES["cassandra_s"])

    assert float(mixed.load("server")[0]) == pytest.approx(expected / CORES)
    assert float(mixed.load("cassandra/1")[0]) == pytest.approx(0.0, abs=1e-9)
    assert mixed.members == {"server": 1, "cassandra": 4, "cassandra/1": 1}


# --- loads


@pytest.mark.parametrize("scenario", LAYOUTS)
def test_capacity_is_where_the_server_works_or_stalls_all_the_time(scenario: RhinoShcmScenario) -> None:
    analytic = float(analytic_capacity_per_s(Analysis(network(scenario, VALUES, 1.0)), 1e-3)[0])

    assert float(saturation_per_s(scenario, VALUES)) == pytest.approx(analytic, rel=1e-9)


@pytest.mark.parametrize("nodes", [3, 4, 7])
def test_each_node_has_its_share_of_the_replicas(nodes: int) -> None:
    analysis = Analysis(network(RhinoShcmScenario(cass_nodes=nodes), CALM, 1.0))

    assert analysis.members == {"server": 1, "cassandra": nodes}
    assert analysis.load("cassandra") == pytest.approx(3 / nodes * float(VALUES["cassandra_s"]) / CORES)


# --- laws


@pytest.mark.parametrize("scenario", LAYOUTS)
@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_responses_rise_with_load(scenario: RhinoShcmScenario, level: float) -> None:
    rates = np.linspace(0.1, 0.95, 12) * saturation_per_s(scenario, VALUES)

    assert np.all(np.diff(np.concatenate([response_s(scenario, VALUES, rate, level) for rate in rates])) > 0)


def test_colocation_costs_capacity_and_more_replicas_on_the_server_cost_more() -> None:
    rising = [
        RhinoShcmScenario(colocated=True),
        RhinoShcmScenario(colocated=True, cass_nodes=3, rf=1),
        RhinoShcmScenario(),
    ]
    capacities = [float(saturation_per_s(scenario, VALUES)) for scenario in rising]

    assert capacities == sorted(capacities)
    assert float(saturation_per_s(RhinoShcmScenario(cass_nodes=64), VALUES)) == capacities[-1]


@pytest.mark.parametrize("name", [parameter.name for parameter in PARAMETERS if parameter.name.endswith("_s")])
def test_no_cost_shortens_a_response(name: str) -> None:
    dearer = {**VALUES, name: VALUES[name] * 1.05}

    assert response_s(A, dearer, 1800.0, 0.9) > response_s(A, VALUES, 1800.0, 0.9)
