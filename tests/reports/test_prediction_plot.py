"""Plots of predictions: what each panel shows, and that it agrees with the prediction."""

from functools import cache

import numpy as np
import plotly.graph_objects as go
import pytest
from tests.planner.predictions import offered_tps

from capplan.planner.predict.predict import Question, predict_case
from capplan.reports.figure import ASKED, LIMIT, NEUTRAL
from capplan.reports.prediction import Answer, plot
from capplan.systems.registry import resolve, scenario

SLO = ("acct.p99<20ms", "acct.p999<60ms")


@cache
def answer(name: str = "openprovider", tps: float | None = None, slo: tuple[str, ...] = (), **layout: float) -> Answer:
    case = resolve(scenario(name, tps=tps, slo=slo, **layout))
    found = predict_case(case, Question("analytic"))
    assert found.peak_tps is not None
    offered = offered_tps(found)
    return Answer(case.at(offered), offered, found.peak_tps, found.latency_ms, found.outages)


@cache
def drawn(
    name: str = "openprovider", tps: float | None = None, slo: tuple[str, ...] = (), **layout: float
) -> go.Figure:
    return plot(answer(name, tps, slo, **layout))


def curves(figure: go.Figure, axis: str) -> dict[str, go.Scatter]:
    return {each.name: each for each in figure.data if each.yaxis == axis and each.mode == "lines" and each.x[0]}


def shapes(figure: go.Figure, colour: str) -> list[go.layout.Shape]:
    return [each for each in figure.layout.shapes if each.line.color == colour]


@pytest.mark.parametrize(
    "name", [pytest.param("openprovider", marks=pytest.mark.slow), "rhino-shcm", "arion", "fedora4"]
)
def test_the_curve_passes_through_the_answer_and_bands_hold_it(name: str) -> None:
    """The answer is the analytic one here: between two solved loads, what is between is off by a few per cent."""
    its, figure = answer(name), drawn(name)
    for place, (request, latency) in enumerate(its.latency_ms.items(), start=1):
        mean = curves(figure, "y" if place == 1 else f"y{place}")["mean"]
        whole = zip(mean.x, mean.y, *zip(*mean.customdata, strict=True), strict=True)
        x, y, low, high = np.array([each for each in whole if None not in each]).T
        assert latency.mean is not None, request
        assert np.interp(its.offered_tps, x, y) == pytest.approx(latency.mean.value, rel=0.05)
        assert np.all(low <= y)
        assert np.all(y <= high)


@pytest.mark.slow
def test_capacity_asked_rate_and_objectives_are_where_the_answer_has_them() -> None:
    its, figure = answer(slo=SLO, tps=7000.0), drawn(slo=SLO, tps=7000.0)
    (dotted, *_), asked, limits = shapes(figure, NEUTRAL), shapes(figure, ASKED), shapes(figure, LIMIT)
    bands = [each for each in figure.layout.shapes if each.type == "rect"]

    assert dotted.x0 == dotted.x1 == its.capacity.value
    assert {(each.x0, each.x1) for each in bands} == {(its.capacity.low, its.capacity.high)}
    assert {each.x0 for each in asked} == {7000.0}
    assert len(asked) == len(its.latency_ms) + 1
    assert sorted(each.y0 for each in limits) == pytest.approx([20.0, 60.0])
    assert "p99.9" in curves(figure, "y2")
    assert "p99.9" not in curves(figure, "y")


@pytest.mark.slow
def test_a_layout_that_was_measured_shows_what_was_measured() -> None:
    figure = drawn(data_factor=1.0)  # production data were never measured
    measured = [each for each in figure.data if each.marker.symbol == "diamond-open" and each.x[0] is not None]

    assert {each.yaxis for each in measured} == {"y", "y2", "y3"}
