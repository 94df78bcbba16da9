"""Simulated latencies of draws: mixture of phases, effect of the budget, and runs that show nothing."""

import itertools
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from tests.simulator.histograms import histogram_of

from capplan.answers.results import STATISTICS, Latency
from capplan.layout.case import Case
from capplan.layout.ensemble import evenly_along
from capplan.layout.fitted_file import DRAWS
from capplan.layout.solution import Figures
from capplan.layout.uncertainty import ModelError, Uncertainty
from capplan.models.language.network import Network
from capplan.models.language.traffic import Open
from capplan.models.language.units import FloatArray
from capplan.planner.predict import simulated_latency as simulated
from capplan.planner.predict.predict import predict
from capplan.planner.predict.simulated_latency import (
    SimulatedLatency,
    SimulationSettings,
    simulated_latency,
)
from capplan.simulator.replications import DrawRun
from capplan.simulator.results.histogram import Histogram
from capplan.systems.openprovider.network import REPORTED
from capplan.systems.openprovider.scenario import OpenproviderScenario
from capplan.systems.registry import resolve

ONE_DC = OpenproviderScenario(dcs=1, data_factor=1.0)
QUANTILES = {"p50": np.log(2), "p90": np.log(10), "p95": np.log(20), "p99": np.log(100), "p999": np.log(1000)}
Asked = list[tuple[Network, Sequence[DrawRun]]]


@pytest.fixture(scope="module")
def figures() -> Figures:
    return case().solution.at(4000.0).steady  # which no run has


@cache
def case() -> Case[Any]:
    found = resolve(ONE_DC)
    errors = Uncertainty(ModelError(0.04), ModelError(0.05), 1)  # whatever the calibration says
    vars(found)["uncertainty"] = replace(errors, offset=found.layout.as_tested.offset)
    return found


def rates_of(system: Network) -> FloatArray:
    assert isinstance(system.traffic, Open)
    return np.asarray(system.traffic.rate_per_s)


@pytest.fixture
def pretending(monkeypatch: pytest.MonkeyPatch, figures: Figures) -> Asked:
    """Let runs have exponential latencies with 1.2 times the analytic mean of their draw, in both phases."""
    seen_runs: Asked = []
    numbers = itertools.count()

    def pretend(system: Network, runs: Sequence[DrawRun], _: object, **__: Any) -> list[dict[str, Histogram]]:
        seen_runs.append((system, runs))
        half = len(runs) // 2
        chosen = evenly_along(figures.point.response_s(*figures.point.request_shares), half)
        generator = np.random.default_rng(next(numbers))

        def seen(run: DrawRun, name: str) -> Histogram:
            count = round((run.duration_s - run.warmup_s) * rates_of(system)[run.draw])
            mean_s = 1.2 * figures.latency_s(name, "mean")[chosen[run.draw % half]]
            return histogram_of((generator.exponential(mean_s, count // 2) * 1e9).astype(np.int64))

        return [{name: seen(run, name) for name in REPORTED} for run in runs]

    monkeypatch.setattr(simulated, "simulate_draws", pretend)
    return seen_runs


def asked(figures: Figures, budget_s: float) -> SimulatedLatency:
    return simulated_latency(case(), figures, SimulationSettings(1, "compiled", budget_s))


def bands(latency: Latency) -> Iterator[tuple[str, Any]]:
    return ((statistic, getattr(latency, statistic)) for statistic in STATISTICS)


def test_each_draw_is_run_in_bursts_and_between_them(figures: Figures, pretending: Asked) -> None:
    asked(figures, 0.5)
    ((system, runs),) = pretending
    half = len(runs) // 2
    rates = rates_of(system)
    measured = np.array([run.duration_s - run.warmup_s for run in runs]) * rates

    assert half == 8  # 0.5 s less 4 ms for lowering, two threads, 14.3 visits of 200 ns: the root of 347,000 / 5,000
    assert rates[half:] == pytest.approx(4000.0)
    assert np.all(rates[:half] < 4000.0)
    assert measured[half:] / (measured[:half] + measured[half:]) == pytest.approx(0.25, rel=1e-3)
    assert len({run.replication for run in runs}) == len(runs)
    assert [run.draw for run in runs] == list(range(2 * half))
    assert all(run.warmup_s == 0.2 for run in runs)


@pytest.mark.usefixtures("pretending")
def test_more_budget_comes_nearer_with_a_narrower_part(figures: Figures) -> None:
    """The truth is known, and a part holds it in 9 of 10 cases: twice as wide in all but one of 100, and so on."""
    widths = []
    for budget_s in (0.1, 1.6, 25.6):
        found = asked(figures, budget_s)
        for name, latency in found.latency_ms.items():
            mean_ms = 1.2e3 * float(np.median(figures.latency_s(name, "mean")))
            for statistic, band in bands(latency):
                assert abs(band.value - mean_ms * QUANTILES.get(statistic, 1.0)) < 4 * band.parts.simulation
        widths.append(
            [band.parts.simulation / band.value for one in found.latency_ms.values() for _, band in bands(one)]
        )

    first, _, third = np.array(widths)
    assert np.all(third < first)
    assert np.all(third < 0.01)


@pytest.mark.usefixtures("pretending")
@pytest.mark.slow
def test_sixteen_times_the_budget_makes_the_part_a_quarter_as_wide(figures: Figures) -> None:
    """A scatter of five or more degrees of freedom is known to 32 %, so the mean ratio of eight pairs to 16 %."""
    ratios = []
    for _ in range(8):
        short, long = (asked(figures, budget_s).latency_ms["auth"].mean for budget_s in (0.8, 12.8))
        assert short is not None
        assert long is not None
        assert short.parts.simulation is not None
        assert long.parts.simulation is not None
        ratios.append(np.log(short.parts.simulation / long.parts.simulation))
    assert np.exp(np.mean(ratios)) == pytest.approx(4.0, rel=0.48)  # three standard errors


@pytest.mark.usefixtures("pretending")
def test_where_no_request_was_completed_there_is_no_figure(monkeypatch: pytest.MonkeyPatch, figures: Figures) -> None:
    pretend: Callable[..., Any] = simulated.__dict__["simulate_draws"]

    def without(*arguments: Any, **options: Any) -> list[dict[str, Histogram]]:
        seen = pretend(*arguments, **options)
        return [{**seen[0], "auth": histogram_of(np.zeros(0, dtype=np.int64))}, *seen[1:]]

    monkeypatch.setattr(simulated, "simulate_draws", without)
    found = asked(figures, 0.5)

    assert found.latency_ms["auth"] == Latency()
    assert None not in [band for _, band in bands(found.latency_ms["acct"])]


def test_beyond_capacity_the_warm_up_is_no_longer_than_what_is_measured(figures: Figures, pretending: Asked) -> None:
    asked(replace(figures, peak_rate=np.full(DRAWS, 8e5)), 0.5)
    ((_, runs),) = pretending

    assert all(run.duration_s >= 2 * run.warmup_s for run in runs)


def test_what_would_take_too_long_to_settle_is_solved(figures: Figures, pretending: Asked) -> None:
    found = asked(replace(figures, peak_rate=np.full(DRAWS, 1e8)), 2.0)

    assert not pretending
    assert all(band.parts.simulation is None for each in found.latency_ms.values() for _, band in bands(each))


def test_the_answer_does_not_hang_on_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    documents = []
    for processors in (1, 3):
        monkeypatch.setattr(os, "cpu_count", lambda count=processors: count)
        documents.append(json.dumps(predict(OpenproviderScenario(dcs=1, tps=3000.0), budget_s=0.02).to_json()))

    assert documents[0] == documents[1]
