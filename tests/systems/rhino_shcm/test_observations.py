"""How the documented figures of `rhino-shcm` are predicted, and its answers at every rate."""

import math
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from capplan.evidence.table import PERCENTILES
from capplan.models.language.parameter import Values, defaults
from capplan.planner.predict.predict import predict
from capplan.planner.predict.prediction import Prediction
from capplan.systems.registry import system
from capplan.systems.rhino_shcm import observations
from capplan.systems.rhino_shcm.network import application_cores, network, saturation_per_s
from capplan.systems.rhino_shcm.observations import (
    LONGEST,
    REFERENCE,
    closed_s,
    load_at_latency,
    simulated_over_closed,
    simulated_s,
)
from capplan.systems.rhino_shcm.priors import PARAMETERS
from capplan.systems.rhino_shcm.scenario import RhinoShcmScenario

SHCM = system("rhino-shcm")
ITS = SHCM.observations
TESTS = ITS.load_tests()
T1, T2, T3, T5 = TESTS[0], TESTS[1], TESTS[2], TESTS[4]
SIMULATED_S = {"p50": 0.006, "p75": 0.025, "p90": 0.08, "p95": 0.14, "p99": 0.3, LONGEST: 0.8}


@pytest.fixture
def not_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take simulated latencies from a table: a test of what becomes of them need not wait for two-hour runs."""
    found = {name: np.array([value]) for name, value in SIMULATED_S.items()}
    monkeypatch.setattr(observations, "_at_reference", lambda *_: found)


@pytest.mark.usefixtures("not_simulated")
def test_at_the_reference_parameters_figures_are_the_simulated_ones() -> None:
    said = ITS.predicted([T2], REFERENCE)

    assert {row.statistic: float(said[row.id][0]) for row in T2.rows if row.quantity == "latency"} == pytest.approx(
        SIMULATED_S
    )
    cores = next(row for row in T2.rows if row.quantity == "cpu")
    assert float(said[cores.id][0]) == application_cores(T2.scenario, REFERENCE, 1980.0)


@pytest.mark.usefixtures("not_simulated")
def test_figures_move_with_the_closed_form() -> None:
    longer = {**REFERENCE, "long_stall_s": REFERENCE["long_stall_s"] * 1.1}
    for row in T2.rows:
        if row.quantity == "latency":
            moved = float(ITS.predicted([T2], longer)[row.id][0]) / SIMULATED_S[row.statistic]
            closed = [float(closed_s(T2.scenario, values, row.statistic, 1980.0)[0]) for values in (longer, REFERENCE)]
            assert moved == pytest.approx(closed[0] / closed[1])
            assert moved > 1


@pytest.mark.usefixtures("not_simulated")
def test_draws_beyond_capacity_have_latencies_far_from_any_documented_one() -> None:
    draws = {**REFERENCE, "cassandra_s": np.array([1.0, 2.0]) * REFERENCE["cassandra_s"]}
    assert float(np.asarray(saturation_per_s(T3.scenario, draws))[1]) < 2160

    said = ITS.predicted([T3], draws)
    for row in T3.rows:
        assert said[row.id].shape in ((1,), (2,))
        assert np.all(np.isfinite(said[row.id]))
        if row.statistic == "p90":
            assert said[row.id][1] > 10 * said[row.id][0]


@pytest.mark.parametrize("name", [pytest.param("long_stall_s", marks=pytest.mark.slow), "application_s"])
def test_simulated_figures_move_as_the_closed_form_does(name: str) -> None:
    """What carries the figures from the reference to other draws, held against simulations with common random numbers.

    Runs of 2,400 s: a percentile has an error of 6 to 8 %, of which common random numbers leave less than a fifth in a
    ratio. A closed form that did not move at all would be wrong by 0.12 to 0.36.
    """
    draws = {**REFERENCE, name: REFERENCE[name] * np.array([1.0, 1.1])}
    simulated = simulated_s(network(T1.scenario, draws, T1.scenario.offered_per_s()), 2400.0, 1)
    for level in ("p75", "p90", "p95", "p99"):
        closed = closed_s(T1.scenario, draws, level, T1.scenario.offered_per_s())
        assert simulated[level][1] / simulated[level][0] == pytest.approx(float(closed[1] / closed[0]), abs=0.05)


def test_simulated_figures_are_near_the_closed_form() -> None:
    """It leaves out Cassandra's replicas, which are worth 5 to 20 %; short runs scatter by 10 %."""
    simulated = simulated_s(network(T5.scenario, REFERENCE, T5.scenario.offered_per_s()), 400.0, 1)
    for level in PERCENTILES:
        ratio = float(simulated[level][0] / closed_s(T5.scenario, REFERENCE, level, T5.scenario.offered_per_s())[0])
        assert 0.8 < ratio < 1.5
    assert simulated[LONGEST][0] > simulated["p99"][0]


@pytest.mark.usefixtures("not_simulated")
def test_the_load_at_the_models_own_latency_is_the_load() -> None:
    values: Values = {**REFERENCE, "long_stall_s": REFERENCE["long_stall_s"] * 1.03}
    p90 = next(row for row in T2.rows if row.statistic == "p90")
    latency = simulated_over_closed(T2)["p90"] * float(closed_s(T2.scenario, values, "p90", 1700.0)[0])
    documented = type(p90)(**{**vars(p90), "value": latency})

    assert float(load_at_latency(T2, documented, values)[0]) == pytest.approx(1700.0, rel=1e-6)


@pytest.mark.usefixtures("not_simulated")
def test_the_load_of_a_test_is_compared_with_that_at_which_the_model_has_its_p90() -> None:
    said = ITS.predicted([T2], REFERENCE)
    p90 = next(row for row in T2.rows if row.statistic == "p90")
    again = simulated_over_closed(T2)["p90"] * float(closed_s(T2.scenario, REFERENCE, "p90", said["t2.rps"][0])[0])

    assert again == pytest.approx(p90.value, rel=1e-6)
    assert said["t2.rps"][0] > 1980.0  # 292 ms are more than the 80 ms of the table


def test_goals_are_root_mean_squares_of_log_errors() -> None:
    exact = {row.id: row.value for test in TESTS for row in test.rows}
    assert [(goal.value, goal.limit, goal.met) for goal in ITS.goals(exact)] == [
        (0.0, 0.15, True),
        (0.0, 0.35, True),
        (0.0, 0.35, True),
    ]
    twice = {name: 2 * value for name, value in exact.items()}
    assert [goal.value for goal in ITS.goals(twice)] == pytest.approx([np.log(2)] * 3)
    assert not any(goal.met for goal in ITS.goals(twice))


def test_the_search_starts_where_the_tests_are_simulated_and_that_is_no_prior() -> None:
    medians = defaults(PARAMETERS)

    assert {name: REFERENCE[name] for name in ITS.start} == dict(ITS.start)
    assert set(ITS.start) == {parameter.name for parameter in PARAMETERS if parameter.free}
    for parameter in PARAMETERS:
        if parameter.free:
            # Within the prior's 95 %, as a prior that is stated as a range must be.
            assert abs(np.log(ITS.start[parameter.name] / parameter.value)) < 1.96 * parameter.log_sd
    assert any(ITS.start[name] != medians[name] for name in ITS.start)


@pytest.mark.parametrize("name", ["T4", *(pytest.param(name, marks=pytest.mark.slow) for name in ("T5", "T6"))])
def test_the_packaged_figures_of_configuration_b_are_what_the_model_says(name: str) -> None:
    """Held against a simulation of 1,200 s at one value of each fitted parameter, 2 to 3 million requests.

    Such a run scatters by at most 3.3 % in these percentiles (eight seeds), and the one value of each parameter is at
    most 3.1 % away from the median of the draws. So 10 % fails a correct program less than once in forty for each
    figure (here the seed is fixed), and passes a figure that is 20 % off less than once in forty.
    """
    fitted = SHCM.fitted()
    test = next(each for each in TESTS if each.name == name)
    stored = {figure.id: figure.predicted for figure in fitted.figures}
    simulated = simulated_s(
        network(test.scenario, fitted.median_values(PARAMETERS), test.scenario.offered_per_s()), 1200.0, 1, seed=2026
    )
    for level in ("p50", "p75", "p90", "p95"):
        assert float(simulated[level][0]) == pytest.approx(stored[f"{name.lower()}.{level}"], rel=0.10), level


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


@pytest.mark.parametrize("colocated", [True, False])
def test_more_nodes_are_said_to_help_nobody_only_where_they_do_not(colocated: bool) -> None:
    """They take work from a server that has a node of its own."""
    found = predict(RhinoShcmScenario(cass_nodes=3, colocated=colocated, tps=1000.0), engine="analytic")
    assert found.capacity is not None
    more = [each.capacity_tps > 1.01 * found.capacity.peak_tps.value for each in found.one_more]
    assert any(more) is colocated
    assert any("do not raise" in each for each in found.evidence.cautions) is not colocated


@pytest.mark.parametrize(
    ("layout", "available"), [({}, True), ({"cass_nodes": 2}, False), ({"colocated": True}, False)]
)
def test_a_quorum_survives_a_node_of_three(layout: dict[str, Any], available: bool) -> None:
    (outage,) = answered(**layout).outages

    assert outage.lost == {"node": 1}
    assert outage.available is available
