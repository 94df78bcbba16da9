"""Answers to random questions about all systems do not contradict themselves, and move in the right directions.

The default is 4 questions; the tests marked `slow` ask 20. `just trust` asks 500: the environment variable
CAPPLAN_TRUST_QUESTIONS replaces the 20. A seed decides the questions, so a check that holds today fails only after a
change. Figures of the analytic solver come with the error that is stated beside each check.
"""

from __future__ import annotations

import io
import math
import os
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from tests.planner.random_questions import Question, few_draws, question

from capplan.answers.results import STATISTICS, Band
from capplan.answers.verdict import answer
from capplan.errors import InputError
from capplan.layout.case import Case
from capplan.layout.components import Ratios
from capplan.models.language.scenario import Scenario, changed
from capplan.planner.predict.predict import PredictionEngine, predict
from capplan.planner.predict.prediction import Prediction
from capplan.reports.prediction import MORE, describe
from capplan.reports.screen import show
from capplan.systems.registry import system

QUESTIONS = int(os.environ.get("CAPPLAN_TRUST_QUESTIONS", "20"))
USUAL = 4
COMPILED = 13  # each so-manieth question is simulated
DRAWS = 64
SOLVED = 0.02  # error of a capacity of the solver: of fixed points, and of chains on a grid
END, MEDIAN = 0.05, 0.5  # risk at an end of a band, and at its value
CHANCE = 0.1  # in the share of the draws on one side of a median
AT_THE_LIMIT = 0.02  # of a rate: figures between two solved rates are interpolated

EVERY = pytest.mark.parametrize(
    "number",
    [n if n < USUAL else pytest.param(n, marks=pytest.mark.slow) for n in range(QUESTIONS)],
    scope="module",  # the checks of a question follow one another, and share its answer
)


@lru_cache(maxsize=4)
def answered(number: int) -> Prediction:
    asked = question(number)
    fitted = system(asked.name).fitted()
    thinned = replace(fitted, draws=fitted.draws[:: len(fitted.draws) // DRAWS])
    engine: PredictionEngine = "compiled" if number % COMPILED == 3 else "analytic"
    return predict(asked.scenario, engine=engine, fitted=thinned, budget_s=0.05)


@EVERY
def test_no_time_is_shorter_than_the_wire(number: int) -> None:
    """A write at QUORUM waits for another of several data centres that hold equally many replicas."""
    asked = question(number).layout
    if asked.system != "openprovider" or asked.dcs < 2 or asked.consistency_write not in ("QUORUM", "EACH_QUORUM"):  # type: ignore[attr-defined]  # fields of openprovider
        return
    wire_ms = 1e3 * min(cell for row in asked.given_rtt_s() for cell in row if cell)  # type: ignore[attr-defined]  # fields of openprovider
    for outage in ({}, *(each.latency_ms for each in answered(number).outages if not each.lowered)):
        for name, latency in (outage or answered(number).latency_ms).items():
            for statistic in STATISTICS if name == "acct" else ():
                assert getattr(latency, statistic).low >= wire_ms * (1 - 1e-9)


@EVERY
def test_the_verdict_is_that_of_the_highest_risk(number: int) -> None:
    found = answered(number)
    given = found.offered is not None and found.offered.source == "given"
    if found.verdict is None:
        assert not given
        assert not found.objectives
        return
    risks = [each.risk for each in found.objectives if each.risk is not None]
    risks += [] if found.offered is None else [found.offered.overload_risk]

    assert found.verdict.risk >= max(risks) - 1e-9
    assert found.verdict.risk <= sum(risks) + CHANCE
    assert found.verdict.answer == answer(found.verdict.risk)
    assert all(each.risk is not None and each.answer == answer(each.risk) for each in found.objectives)


@EVERY
def test_the_rate_is_carried_where_it_is_below_the_capacity(number: int) -> None:
    """The median of the capacities is also where the probability of overload is a half; 0.1 for chance in its noise."""
    found = answered(number)
    if found.offered is None or found.capacity is None:
        return
    peak, overload, offered = found.capacity.peak_tps, found.capacity.overload_tps, found.offered
    assert peak.value <= overload.value * (1 + 1e-9)
    if offered.peak_tps <= overload.low:
        assert offered.overload_risk <= END + 0.05
    if offered.peak_tps >= overload.high:
        assert offered.overload_risk >= 1 - END - 0.05
    if offered.peak_tps <= overload.value * (1 - AT_THE_LIMIT):
        assert offered.overload_risk <= MEDIAN + CHANCE
        assert offered.throughput_tps.value == pytest.approx(offered.mean_tps, rel=0.01)
    if offered.peak_tps >= overload.value * (1 + AT_THE_LIMIT):
        assert offered.overload_risk >= MEDIAN - CHANCE
        assert offered.throughput_tps.value < offered.mean_tps
    assert offered.throughput_tps.high <= offered.mean_tps * (1 + 1e-9)


@EVERY
def test_objectives_are_met_exactly_up_to_the_capacity(number: int) -> None:
    """The capacity is the highest rate at which they are met; the table is at the offered one."""
    found = answered(number)
    if found.offered is None or found.capacity is None:
        return
    its = [each.risk or 0.0 for each in found.objectives if "capacity" not in each.text]
    rate, capacity = found.offered.peak_tps, found.capacity.peak_tps.value
    if its and rate <= capacity * (1 - AT_THE_LIMIT):
        assert max(its) <= MEDIAN + CHANCE
    if its and rate >= capacity * (1 + AT_THE_LIMIT) and capacity < found.capacity.overload_tps.value:
        assert max(its) >= MEDIAN - CHANCE
    for each in found.objectives:
        for comparison in each.comparisons:
            name, _, statistic = comparison.metric.partition(".")
            if name == "capacity":
                assert comparison.value is not None
                assert comparison.value.value == capacity
            elif statistic in STATISTICS:
                assert ends(comparison.value) == pytest.approx(
                    ends(getattr(found.latency_ms[name], statistic)), rel=1e-9
                )
            elif statistic == "utilisation":
                assert ends(comparison.value) == pytest.approx(ends(found.utilisation[name]), rel=1e-9)


def ends(band: Band | None) -> list[float]:
    assert band is not None
    return [band.low, band.value, band.high]


@EVERY
@pytest.mark.parametrize("columns", [60, 80])
def test_the_screen_fits_and_says_the_answer(number: int, columns: int) -> None:
    found, screen = answered(number), io.StringIO()
    show(describe(found, MORE), Console(file=screen, width=columns, markup=False, highlight=False))
    lines = screen.getvalue().splitlines()

    assert max(map(len, lines)) <= columns
    assert not [line for line in lines if line != line.rstrip()]
    said = [line.removeprefix("Answer       ") for line in lines if line.startswith("Answer ")]
    assert [line.split()[0] for line in said] == ([] if found.verdict is None else [found.verdict.answer])
    assert "nan" not in screen.getvalue()


def work_of_a_node_s(case: Case[Any]) -> float:
    """Return the work of a mean request at one of the nodes, in seconds: what a data centre more may raise."""
    analysis = case.solution.analysis
    return work_s(case) / sum(analysis.members[name] for name in analysis.demands)


def grown(asked: Question) -> Iterator[tuple[str, Scenario]]:
    """Yield the layouts with one more of something that carries load."""
    layout = asked.layout
    for field, more in {
        "cass_nodes": 1, "nodes": 1, "front_nodes": 1, "dcs": 1, "servers": 1, "front_workers": 16
    }.items():  # fmt: skip
        value = getattr(layout, field, None)
        if isinstance(value, int) and not (field == "dcs" and isinstance(getattr(layout, "cass_nodes", 1), tuple)):
            try:
                changes = {field: value + more}
                if field == "dcs" and value == 1:
                    changes["rtt"] = "1ms"  # type: ignore[assignment]  # of any type
                yield field, changed(layout, **changes)
            except InputError:
                continue


@EVERY
def test_more_machines_carry_no_less(number: int) -> None:
    """A data centre more brings replicas of its own, so the quorum of all of them may ask more of each node."""
    asked = question(number)
    if system(asked.name).component(Ratios).of is not None:
        return
    for field, layout in grown(asked):
        try:
            more = few_draws(layout)
            capacity = float(np.median(more.solution.capacity))
        except InputError:
            continue
        if field != "dcs" or work_of_a_node_s(more) <= work_of_a_node_s(asked.few):
            assert capacity >= asked.capacity * (1 - SOLVED), (field, str(asked))


def work_s(case: Case[Any]) -> float:
    """Return the work of a mean request at all stations together, in seconds."""
    analysis = case.solution.analysis
    return sum(float(np.median(each.mean_s)) * analysis.members[name] for name, each in analysis.demands.items())


@EVERY
def test_more_replicas_carry_no_more_unless_a_request_takes_less_work(number: int) -> None:
    asked = question(number)
    rf = getattr(asked.layout, "rf", None)
    if system(asked.name).component(Ratios).of is not None or not isinstance(rf, int):
        return
    try:
        more = few_draws(changed(asked.layout, rf=rf + 1))
        capacity = float(np.median(more.solution.capacity))
    except InputError:
        return
    waits = asked.few.solution.bottleneck == "workers"  # and a replica at hand frees them sooner
    if work_s(more) >= work_s(asked.few) and not waits:
        assert capacity <= asked.capacity * (1 + SOLVED), str(asked)


@EVERY
def test_latency_rises_with_the_load(number: int) -> None:
    """Percentiles of the solver are approximations: their error may differ by 2 % from one load to the next."""
    asked = question(number)
    if system(asked.name).component(Ratios).of is not None:
        return
    figures = asked.few.solution.at_shares(np.array([0.1, 0.3, 0.5, 0.7, 0.85])[:, None])
    for name in figures.asked:
        times = np.median(figures.latencies_s(name), axis=-1)
        assert np.all(np.diff(times[0]) >= -1e-3 * times[0][:-1]), (name, "mean", str(asked))
        assert np.all(np.diff(times[1:], axis=1) >= -0.02 * times[1:, :-1]), (name, str(asked))


@EVERY
def test_latency_rises_with_the_round_trip(number: int) -> None:
    asked = question(number)
    if asked.name != "openprovider" or asked.layout.dcs < 2:  # type: ignore[attr-defined]  # fields of openprovider
        return
    longer = f"{3e3 * max(cell for row in asked.layout.given_rtt_s() for cell in row):.6g}ms"  # type: ignore[attr-defined]  # fields of openprovider
    far = few_draws(changed(asked.layout, rtt=longer))
    rate = 0.5 * min(asked.capacity, float(np.median(far.solution.capacity)))
    near_figures, far_figures = asked.few.solution.at(rate), far.solution.at(rate)
    for name in near_figures.asked:
        near_s, far_s = (np.median(each.latencies_s(name), axis=-1) for each in (near_figures, far_figures))
        assert np.all(far_s >= near_s * (1 - 1e-3)), (name, str(asked))
        assert math.isfinite(float(near_s[0]))
