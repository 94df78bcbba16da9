"""The capacity under an objective, the objective's verdict and the latency table say the same."""

import pytest

from capplan.models.results import Band
from capplan.planner.predict.predict import PredictionEngine, predict
from capplan.systems.openprovider.scenario import OpenproviderScenario

LIMITS_MS = (7.9, 8.5, 9.2)  # from hardly more than idle to the bend near saturation


def asked(limit_ms: float, rate_per_s: float | None = None) -> OpenproviderScenario:
    return OpenproviderScenario(dcs=3, cass_nodes=3, slo=(f"acct.p99<{limit_ms}ms",), tps=rate_per_s)


def p99(scenario: OpenproviderScenario, engine: PredictionEngine) -> Band:
    found = predict(scenario, engine=engine).latency_ms["acct"].p99
    assert found is not None
    return found


@pytest.mark.parametrize("limit_ms", LIMITS_MS)
@pytest.mark.parametrize("engine", ["analytic", "compiled"])
def test_at_the_capacity_the_limiting_figure_is_at_its_limit(engine: PredictionEngine, limit_ms: float) -> None:
    capacity = predict(asked(limit_ms), engine=engine).peak_tps
    assert capacity is not None
    assert 0 < capacity.value < 10_400  # without the objective

    band = p99(asked(limit_ms, capacity.value), engine)
    assert band.value == pytest.approx(limit_ms, abs=max(0.01 * limit_ms, band.parts.simulation or 0.0))
    assert capacity.low == 0 or band.low < limit_ms < band.high


@pytest.mark.parametrize("limit_ms", LIMITS_MS)
def test_the_verdict_agrees_with_the_capacity(limit_ms: float) -> None:
    capacity = predict(asked(limit_ms)).peak_tps
    assert capacity is not None

    for share in (0.5, 0.8, 0.9):
        (verdict,) = predict(asked(limit_ms, share * capacity.value)).objectives
        assert verdict.met
    (beyond,) = predict(asked(limit_ms, 1.15 * capacity.value)).objectives
    assert not beyond.met


def test_the_band_of_the_capacity_has_the_error_of_the_latency() -> None:
    """Where the band of an idle system's latency includes the limit, so does that of the capacity include nothing."""
    idle = p99(asked(10.0, 100.0), "analytic")
    for limit_ms, carries in ((0.9 * idle.low, False), (1.1 * idle.low, True)):
        capacity = predict(asked(limit_ms), engine="analytic").peak_tps
        assert capacity is not None
        assert capacity.value == capacity.low == 0
        assert (capacity.high > 0) == carries
