"""Sweeps with the compiled engine reach the precision, and agree with theory and `predict`."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from tests.planner.test_sweep import computed, given, load, sweep

from capplan.answers.results import rounded
from capplan.layout.components import Pauses
from capplan.models.language.scenario import Scenario, changed
from capplan.planner import sweep as sweep_compiled
from capplan.planner import sweep as sweep_module
from capplan.planner.predict.predict import predict
from capplan.planner.sweep import Sweep, band_columns, latency_columns, precision_target
from capplan.systems.registry import scenario, system

ITS, ONE_DC = system("openprovider"), scenario(dcs=1)
TIMES = [column for name in latency_columns(ITS) for column in band_columns(name)]


def simulated(*loads: float, precision: str = "p99<5%", base: Scenario = ONE_DC) -> Sweep:
    return sweep(base, load(*loads), engine="compiled", precision=precision_target(precision, ITS))


@pytest.fixture
def without_pauses(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    kept = (sweep_compiled.__dict__["_drawn"], sweep_module.__dict__["_solved"])
    monkeypatch.setattr(type(ITS), "components", tuple(each for each in ITS.components if not isinstance(each, Pauses)))
    for each in kept:
        each.cache_clear()
    yield
    for each in kept:
        each.cache_clear()


@pytest.mark.usefixtures("without_pauses")
def test_only_latencies_are_simulated() -> None:
    """At half of the capacity the solver's percentiles are within 7 % (docs/reference/accuracy.md).

    Pauses are left out: both take them from the solver, but the analytic sweep for fewer draws, and a high percentile
    grows tenfold from the draws that it does not reach to those that it does.
    """
    swept = simulated(0.5)
    (point,), (analytic,) = computed(swept), computed(replace(swept, engine="analytic"))

    assert 0 < point["simulation"] <= 0.05
    assert (point["engine"], analytic["engine"], analytic["simulation"]) == ("compiled", "analytic", None)
    same = set(point) - {*TIMES, "simulation", "engine"}
    assert {name: point[name] for name in same} == {name: analytic[name] for name in same}
    for column in TIMES:
        assert point[column] == pytest.approx(analytic[column], rel=0.2 if "p999" in column else 0.1), column


@pytest.mark.slow
def test_medians_are_those_of_predict() -> None:
    """Both scatter by what they say: three times the larger of 90 % half-widths is five standard errors."""
    (point,) = computed(simulated(0.8))
    prediction = predict(changed(ONE_DC, tps=point["offered_tps"]))

    for name, latency in prediction.latency_ms.items():
        for statistic in ("mean", "p99"):
            band = getattr(latency, statistic)
            width = max(band.parts.simulation / band.value, point["simulation"])
            assert point[f"{name}_{statistic}_ms"] == pytest.approx(band.value, rel=3 * width)


@pytest.mark.slow
def test_a_finer_target_is_met() -> None:
    """Of accounting: most of the p99 of authorizations are pauses, which no run has to find.

    Of fresh data: the factor of production data makes draws differ so much that the most draws there are reach 2.4 %.
    """
    fresh = scenario(dcs=1, data_factor=1.0)
    coarse, fine = (
        computed(simulated(0.8, precision=text, base=fresh))[0]["simulation"] for text in ("acct.p99<9%", "acct.p99<2%")
    )

    assert fine <= 0.02 < coarse <= 0.09


@pytest.mark.parametrize("slo", [(), pytest.param(("acct.p99<9ms",), marks=pytest.mark.slow)])
def test_the_capacity_and_latencies_beyond_it_are_those_of_predict(slo: tuple[str, ...]) -> None:
    """Requests are dropped beyond the capacity, so both simulate; each scatters by what it says."""
    base = scenario(dcs=1, slo=slo)
    target = precision_target("acct.mean<9%", ITS)
    (point,) = computed(sweep(base, given(9000.0), engine="compiled", precision=target))
    prediction = predict(changed(base, tps=9000.0))

    assert point["drop_rate"] > 0
    assert prediction.peak_tps is not None
    assert point["capacity_tps"] == rounded(prediction.peak_tps.value)
    for name, latency in prediction.latency_ms.items():
        for statistic in ("mean", "p50"):
            band = getattr(latency, statistic)
            width = max(band.parts.simulation / band.value, point["simulation"])
            assert point[f"{name}_{statistic}_ms"] == pytest.approx(band.value, rel=3 * width)


def test_the_closed_form_stays_where_no_run_settles() -> None:
    """With 20,000 requests a draw, arion's million clients have not settled at their load."""
    base = scenario("rhino-shcm", tps=None)
    (point,) = computed(
        sweep(base, load(0.999), engine="compiled", precision=precision_target("p99<9%", system(base.system)))
    )

    assert point["request_p99_ms"] > 0
    assert point["simulation"] is None


def test_points_are_tasks_of_their_own() -> None:
    swept = simulated(0.3, 0.5, 0.7)
    others = simulated(0.3, precision="p99<4%")

    assert len({task.key for task in (*swept.configurations(), *others.configurations())}) == 4
