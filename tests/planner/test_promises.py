"""What percentiles can be promised, and whether guessed pauses decide it."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from tests.systems.prior_draws import prior_draws

from capplan.evidence.load_test_row import LoadTestRow
from capplan.models.language.scenario import changed
from capplan.planner.predict.predict import PredictionEngine, predict
from capplan.planner.predict.prediction import Prediction
from capplan.planner.predict.promises import Promise
from capplan.systems.cassandra import SYSTEM
from capplan.systems.registry import scenario


@cache
def promised(
    confidence: float = 0.9, engine: PredictionEngine = "analytic", **fields: Any
) -> tuple[Prediction, dict[str, Promise]]:
    layout = scenario("openprovider", dcs=3, cass_nodes=6, tps=5000.0, **fields)
    found = predict(layout, engine=engine, confidence=confidence, budget_s=0.1)
    return found, {each.metric: each for each in found.promises}


def test_without_a_measurement_pauses_decide_high_percentiles() -> None:
    _, guessed = promised()

    assert set(guessed) == {"auth.p99", "auth.p99.9", "acct.p99", "acct.p99.9"}
    for each in guessed.values():
        assert each.promise_ms > each.promise_without_pauses_ms > each.without_pauses_ms
        assert each.decided_by_pauses == (each.promise_without_pauses_ms < 0.75 * each.promise_ms)
    assert guessed["auth.p99.9"].decided_by_pauses
    assert guessed["auth.p99.9"].without_pauses_ms < 0.2 * guessed["auth.p99.9"].promise_ms


@pytest.mark.parametrize("engine", ["analytic", "compiled"])
def test_a_promise_lies_between_the_median_and_the_end_of_the_band(engine: PredictionEngine) -> None:
    found, _ = promised(engine=engine)

    for each in found.promises:
        name, _, statistic = each.metric.partition(".")
        band = getattr(found.latency_ms[name], statistic.replace(".", ""))
        assert band.value < each.promise_ms < band.high


def test_nodes_that_never_pause_leave_nothing_to_decide() -> None:
    prediction, promises = promised(gc="none")

    assert not any(each.decided_by_pauses for each in promises.values())
    assert all(each.promise_ms == pytest.approx(each.promise_without_pauses_ms) for each in promises.values())
    assert not prediction.tails_guessed


def test_a_speed_that_varies_is_no_pause() -> None:
    """A fitted cluster's speed varies during a run, which widens percentiles with pauses and without."""
    row = LoadTestRow(cass_nodes=6, rf=3, read_fraction=0.0, clients=8, load_kind="closed", throughput_tps=1000.0)
    fitted = prior_draws(SYSTEM, [row])
    cluster = changed(SYSTEM.usual_scenario(fitted), gc="none")
    for engine in ("analytic", "compiled"):
        (p99, p999) = predict(cluster, engine=engine, fitted=fitted, budget_s=0.1).promises
        for each in (p99, p999):
            assert each.promise_without_pauses_ms == pytest.approx(each.promise_ms, rel=0.01)


def test_a_node_of_the_user_narrows_the_promise() -> None:
    """0.1 % of the time in pauses of 20 ms: less than the guess allows for."""
    _, guessed = promised()
    measured, promises = promised(gc="0.1%@20ms sd=8ms n=5000")

    assert promises["acct.p99.9"].promise_ms < 0.5 * guessed["acct.p99.9"].promise_ms
    assert not measured.tails_guessed


def test_a_promise_at_95_percent_is_the_upper_end_of_the_band() -> None:
    """Of 512 draws in order, the band ends between the two that a promise at 94.9 and at 95.1 % takes."""
    prediction = promised(0.95)[0]
    lower, nearly, above = (promised(confidence)[1] for confidence in (0.8, 0.949, 0.951))

    for name in ("auth", "acct"):
        band = prediction.latency_ms[name].p99
        assert band is not None
        nearest = [each[f"{name}.p99"].promise_ms for each in (nearly, above)]
        assert nearest[0] <= band.high * (1 + 1e-9)
        assert band.high <= nearest[1] * (1 + 1e-9)
        assert lower[f"{name}.p99"].promise_ms < nearest[0]


def test_systems_whose_nodes_do_not_pause_promise_nothing() -> None:
    assert not predict(scenario("fedora4", tps=50.0), engine="analytic").promises
