"""The capacity under an objective, the objective's verdict and the latency table say the same."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from capplan.answers.results import Band
from capplan.layout.case import Case
from capplan.models.language.scenario import changed
from capplan.models.language.units import FloatArray
from capplan.planner.predict.capacity import SHARES, capacity_of, sustained_rate
from capplan.planner.predict.predict import predict
from capplan.planner.predict.simulated_latency import solved_latency
from capplan.planner.size.size import SizingQuestion, size
from capplan.systems.openprovider.scenario import OpenproviderScenario
from capplan.systems.registry import resolve, scenario

LIMITED = [
    pytest.param("p99", 0.6, marks=pytest.mark.slow),
    ("p99", 0.9),
    pytest.param("mean", 0.95, marks=pytest.mark.slow),
]
"""A statistic of `acct`, and the share of the capacity at which the objective holds just so."""


def case(slo: str | None = None) -> Case[Any]:
    return resolve(
        OpenproviderScenario(dcs=3, cass_nodes=3, data_factor=1.0, slo=() if slo is None else (slo,)), None, 1
    )


def solved(statistic: str, rate_per_s: float) -> Band:
    plain = case().at(rate_per_s)
    found = getattr(solved_latency(plain.solution.at(rate_per_s), plain.uncertainty)["acct"], statistic)
    assert isinstance(found, Band)
    return found


@cache
def without_objective() -> float:
    return capacity_of(case()).value


@cache
def limit_ms(statistic: str, share: float) -> float:
    """Return what the statistic is, by the solver, at a share of the capacity without objectives."""
    return round(solved(statistic, share * without_objective()).value, 3)


@pytest.mark.parametrize(("statistic", "share"), LIMITED)
def test_at_the_capacity_the_limiting_figure_is_at_its_limit(statistic: str, share: float) -> None:
    limit = limit_ms(statistic, share)
    capacity = capacity_of(case(f"acct.{statistic}<{limit}ms"))
    assert capacity.value == pytest.approx(share * without_objective(), rel=0.02)

    band = solved(statistic, capacity.value)
    assert band.value == pytest.approx(limit, rel=0.01)
    assert capacity.low == 0 or band.low < limit < band.high


@pytest.mark.parametrize("client_share", [None, pytest.param((0.7, 0.3), marks=pytest.mark.slow)])
def test_a_draw_sustains_the_rate_at_which_its_figure_crosses_the_limit(client_share: tuple[float, ...] | None) -> None:
    """As if every draw was solved at all rates, also where data centres differ."""
    asked = OpenproviderScenario(dcs=2, cass_nodes=3, client_share=client_share, slo=("acct.p99<100ms",))
    its = replace(resolve(asked, None, 1), draws=32)
    found = sustained_rate(its.solution, its.uncertainty, its.objectives).predicted / its.solution.capacity
    logs = np.log(its.solution.at_shares(SHARES[:, None]).latency_s("acct", "p99") / 0.1)
    once = np.all(np.diff(np.sign(logs), axis=0) >= 0, axis=0) & (logs[0] < 0)  # each crosses the limit once
    crossing = [_crossing(each) for each in logs[:, once].T]
    assert np.mean(once) > 0.9
    assert 0 < np.mean(np.array(crossing) < 1) < 1
    assert found[once] == pytest.approx(crossing, abs=1e-4)
    limited = (found > 0) & (found < 1)  # one of the crossings where there are several
    there = [np.interp(share, SHARES, each) for share, each in zip(found[limited], logs[:, limited].T, strict=True)]
    assert there == pytest.approx(np.zeros(len(there)), abs=1e-3)


def _crossing(logs: FloatArray) -> float:
    """Return the share at which logarithms at `SHARES` reach 0; 1 if they do not."""
    if logs[-1] <= 0:
        return 1.0
    place = int(np.argmax(logs > 0))
    return float(np.interp(0.0, logs[place - 1 : place + 1], SHARES[place - 1 : place + 1]))


@pytest.mark.trust
def test_the_verdict_of_simulated_latencies_agrees_with_the_capacity() -> None:
    """At the capacity the limiting figure is at its limit, within the error of the simulation."""
    limit = limit_ms("p99", 0.9)
    asked = OpenproviderScenario(dcs=3, cass_nodes=3, data_factor=1.0, slo=(f"acct.p99<{limit}ms",))
    made = predict(asked)
    assert made.peak_tps is not None
    assert made.objectives[0].risk is not None
    assert made.objectives[0].risk < 0.5  # at 80 % of the capacity

    band = predict(changed(asked, tps=made.peak_tps.value)).latency_ms["acct"].p99
    assert band is not None
    assert band.value == pytest.approx(limit, abs=max(0.01 * limit, band.parts.simulation or 0.0))


@pytest.mark.slow
def test_the_band_of_the_capacity_has_the_error_of_the_latency() -> None:
    """Where the band of an idle system's latency includes the limit, some capacity remains possible."""
    idle = solved("mean", 20.0)
    for limit, carries in ((0.97 * idle.low, False), (1.03 * idle.low, True)):
        capacity = capacity_of(case(f"acct.mean<{limit:.4f}ms"))
        assert capacity.value == capacity.low == 0
        assert (capacity.high > 0) == carries


@pytest.mark.parametrize("confidence", [0.6, 0.9, 0.95, 0.99])
def test_an_objective_never_raises_the_sustained_rate(confidence: float) -> None:
    def held_tps(*slo: str) -> float:
        asked = changed(scenario("fedora4"), tps=300.0, slo=slo)
        question = SizingQuestion(confidence=confidence, survive=(), sized={"nodes": (3, 3)}, engine="analytic")
        chosen = size(asked, question).chosen
        assert chosen is not None
        return chosen.held_tps

    assert 0.99 * held_tps() < held_tps("read.p99<10s") <= held_tps()
