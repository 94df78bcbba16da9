"""Sweeps with the compiled engine: precise enough, near theory and `predict`."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capplan.planner.explore.sweep import Rates, Sweep, experiment, layouts
from capplan.planner.explore.sweep_compiled import MOST_DRAWS, spread_out
from capplan.planner.explore.sweep_table import Row, band_columns
from capplan.planner.predict.predict import predict
from capplan.planner.predict.prediction import STATISTICS
from capplan.planner.simulate.precision_target import Wish, read_wish
from capplan.simulator.experiments.experiment import perform
from capplan.simulator.experiments.workers import in_process
from capplan.systems.openprovider.network import REPORTED
from capplan.systems.openprovider.scenario import OpenproviderScenario

TIMES = [column for name in REPORTED for each in STATISTICS for column in band_columns(f"{name}_{each}_ms")]
ONE_DC = OpenproviderScenario(dcs=1)


def wished(text: str) -> Wish:
    return read_wish(text, tuple(REPORTED), tuple(REPORTED))


def sweep(*loads: float, wish: str = "p99<5%", **fields: object) -> Sweep:
    return Sweep(layouts(ONE_DC, [fields]), Rates("load", loads), engine="compiled", wish=wished(wish))


def rows_of(swept: Sweep) -> list[Row]:
    with in_process() as used:
        return swept.rows({case.key: rows for case, (rows,) in perform(experiment(), swept.cases(), used)})


def test_only_latencies_are_simulated() -> None:
    """At half of the capacity the solver's percentiles are within 7 % (docs/reference/accuracy.md)."""
    swept = sweep(0.5)
    (simulated,), (analytic,) = rows_of(swept), rows_of(replace(swept, engine="analytic"))

    assert 0 < simulated["simulation"] <= 0.05
    assert (simulated["engine"], analytic["engine"], analytic["simulation"]) == ("compiled", "analytic", None)
    same = set(simulated) - {*TIMES, "simulation", "engine"}
    assert {name: simulated[name] for name in same} == {name: analytic[name] for name in same}
    for column in TIMES:
        assert simulated[column] == pytest.approx(analytic[column], rel=0.2 if "p999" in column else 0.1), column


def test_medians_are_those_of_predict() -> None:
    """Both scatter by what they say: three times the larger of 90 % half-widths is five standard errors."""
    (row,) = rows_of(sweep(0.8))
    prediction = predict(replace(ONE_DC, tps=row["offered_tps"]))

    for name, latency in prediction.latency_ms.items():
        for statistic in ("mean", "p99"):
            band = getattr(latency, statistic)
            width = max(band.parts.simulation / band.value, row["simulation"])
            assert row[f"{name}_{statistic}_ms"] == pytest.approx(band.value, rel=3 * width)


def test_a_finer_wish_is_met() -> None:
    coarse, fine = (rows_of(sweep(0.8, wish=text))[0]["simulation"] for text in ("auth.p99<9%", "auth.p99<1%"))

    assert fine <= 0.01 < coarse <= 0.09


def test_beyond_capacity_nothing_is_simulated() -> None:
    (row,) = rows_of(sweep(1.2))

    assert {row[column] for column in (*TIMES, "simulation")} == {None}
    assert row["engine"] == "compiled"
    assert row["drop_rate"] > 0


def test_points_are_cases_of_their_own() -> None:
    swept = sweep(0.3, 0.5, 0.7)

    assert len(swept.cases()) == 3
    assert len({case.key for case in swept.cases()} | {case.key for case in sweep(0.3, wish="p99<4%").cases()}) == 4


@given(st.integers(1, MOST_DRAWS), st.integers(20, 500))
def test_the_first_of_the_draws_are_even(count: int, draws: int) -> None:
    """No gap between neighbours, nor at an end, is wider than twice the mean and a place."""
    order_by = np.random.default_rng(draws).permutation(draws).astype(float)
    ranks = np.sort(order_by[spread_out(order_by, MOST_DRAWS)[:count]])

    assert np.max(np.diff(np.concatenate([[0], ranks, [draws]]))) <= 2 * draws / (count + 1) + 1
