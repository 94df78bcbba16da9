"""`what_if`: a layout's capacity and latencies, fast enough to follow a slider.

Capacity, verdict and losses are those of `predict --engine analytic`; with objectives, losses take some seconds. One
latency is followed along the load by a few representative draws, with ends of bands within some per cent.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import pandas as pd

from capplan.answers.objective import Metric, parse
from capplan.answers.results import Band
from capplan.answers.verdict import NORMAL, Verdict
from capplan.errors import InputError
from capplan.layout.case import Case
from capplan.layout.components import Ratios
from capplan.layout.fitted_file import Fitted
from capplan.layout.notes import Notes
from capplan.layout.situations import Losses
from capplan.layout.system import System
from capplan.models.language.scenario import Scenario, changed
from capplan.planner.conditions import verdict_of
from capplan.planner.predict.capacity import capacity_of, default_rate
from capplan.planner.predict.losses import Whole, outages
from capplan.planner.sustained import Conditions, Judged
from capplan.planner.sweep import rate_fields
from capplan.systems.registry import resolve, system

FEW_DRAWS = 16
LOADS = (0.05, 0.2, 0.4, 0.6, 0.7, 0.8, 0.88, 0.94, 0.98)
"""Loads of the curve, as shares of the capacity."""


@lru_cache(maxsize=16)  # a new rate or objective asks about the same layout
def _solved(scenario: Scenario, fitted: Fitted, draws: int | None, seed: int) -> Case[Any]:
    """Return a layout with what depends neither on the rate nor on the objectives; with all draws for None."""
    case = replace(resolve(scenario, fitted, seed), draws=draws)
    _ = case.solution.capacity, case.uncertainty  # a case keeps its results at a new rate
    return case


@lru_cache(maxsize=16)
def _curve(case: Case[Any], metric: Metric) -> pd.DataFrame:
    """Return a latency against the rate; see `WhatIf.curve`."""
    rates = case.uncertainty.of_rate(case.solution.capacity).value * np.array(LOADS)
    draws_ms = case.solution.at(rates[:, None]).latency_s(metric.subject, metric.statistic) * 1e3
    rows = []
    for rate, draws in zip(rates, draws_ms, strict=True):
        uncertainty = case.at(float(rate)).uncertainty
        value, low, high = uncertainty.spread_of_times(draws[None], metric.subject, (metric.statistic,))
        rows.append((float(rate), float(value[0]), float(low[0]), float(high[0])))
    return pd.DataFrame(rows, columns=["rate_tps", "value_ms", "low_ms", "high_ms"])


@dataclass(frozen=True)
class WhatIf:
    """A solved layout.

    Attributes
    ----------
    few : Case
        The layout with its calibration, by a few draws.
    case : Case
        The same with its objectives, at the offered rate.
    metric : Metric
        The latency that is followed.
    asked : Case
        The case with all draws of the parameters, as it was asked about.
    whole : Case
        The same at the offered rate.
    """

    few: Case[Any]
    case: Case[Any]
    metric: Metric
    asked: Case[Any]
    whole: Case[Any]

    @property
    def offered_tps(self) -> float:
        """Offered peak rate, requests per second over all data centres."""
        return float(self.case.offered_per_s or 0.0)

    @cached_property
    def layout(self) -> str:
        """The layout in words."""
        its = self.case.system
        return its.layout(self.case.scenario, its.values(self.case.fitted, self.case.scenario))

    @cached_property
    def capacity(self) -> Band:
        """Highest peak rate with the objectives met, requests per second, by all draws."""
        return capacity_of(self.asked)

    @property
    def bottleneck(self) -> str:
        """The resource that limits the capacity, in words."""
        return self.case.system.component(Notes).resource_name(self.case.scenario, self.case.solution.bottleneck)

    @cached_property
    def verdict(self) -> Verdict | None:
        """The verdict of `predict`, by all draws; None if neither a rate nor an objective was given."""
        given = self.whole.given_per_s is not None
        if not given and not self.whole.objectives:
            return None
        return verdict_of(Judged(self.whole, (Conditions(NORMAL),), self.offered_tps, given=given))

    @property
    def curve(self) -> pd.DataFrame:
        """The latency against the rate: `rate_tps`, `value_ms`, `low_ms`, `high_ms`."""
        return _curve(self.few, self.metric)

    @cached_property
    def latency(self) -> Band:
        """The latency at the offered rate, ms; infinite beyond the capacity."""
        figures = self.case.solution.at(self.offered_tps)
        draws_ms = figures.latency_s(self.metric.subject, self.metric.statistic) * 1e3
        return self.case.uncertainty.of_time(draws_ms, self.metric.subject, self.metric.statistic)

    @cached_property
    def losses(self) -> pd.DataFrame:
        """What is left after each loss: `lost`, `levels`, `capacity_tps`, `low_tps`, `high_tps`, `risk`."""
        whole = Whole(self.whole, self.whole.solution.at(self.offered_tps), {}, at_capacity=self.asked)
        left = outages(whole) if self.whole.system.component(Losses).kinds else ()
        bands = [each.capacity_tps or Band.exactly(0.0) for each in left]
        return pd.DataFrame(
            {
                "lost": [each.name for each in left],
                "levels": [each.assumed for each in left],
                "capacity_tps": [each.value for each in bands],
                "low_tps": [each.low for each in bands],
                "high_tps": [each.high for each in bands],
                "risk": [each.risk for each in left],
            }
        )

    def limits_ms(self) -> Iterator[float]:
        """Yield the limits of the objectives about the latency, ms."""
        for objective in self.case.objectives:
            for each in objective.comparisons():
                if each.metric == self.metric:
                    yield from (1e3 * bound for bound in each.bounds)


def what_if(
    scenario: Scenario, latency: str = "", *, fitted: Fitted | None = None, draws: int = FEW_DRAWS, seed: int = 1
) -> WhatIf:
    """Solve a layout quickly.

    Parameters
    ----------
    scenario : Scenario
        The layout; without a rate it is asked about at 80 % of its capacity.
    latency : str
        The latency to follow, such as `acct.p99`; by default the p99 of the last request class.
    fitted : Fitted, optional
        The calibration; the packaged one by default.
    draws : int
        Representative draws of the parameters to solve.
    seed : int
        Seed of the pairing of draws with model errors.

    Returns
    -------
    WhatIf
        Its figures are computed when they are asked for.

    Raises
    ------
    InputError
        If the system has ratios only, clients are closed, or the latency is not one of its.
    """
    its: System[Any] = system(scenario.system)
    its.component(Ratios).refuse(f"{its.name} has no rates: its documents have ratios of throughput only")
    if getattr(scenario, "clients", None) is not None:
        raise InputError("what_if follows a rate, and closed clients have none: give tps instead, or ask predict")
    layout = changed(scenario, slo=(), **dict.fromkeys(rate_fields(type(scenario))))
    few = _solved(layout, its.fitted() if fitted is None else fitted, draws, seed)
    case = few.asked(scenario)
    classes = case.system.classes(scenario)
    text = latency or f"{classes[-1]}.p99"
    (metric,) = parse(f"{text}<1s", classes, case.solution.resources).metrics()
    asked = _solved(layout, case.fitted, None, seed).asked(scenario)
    rate = asked.given_per_s or default_rate(asked)
    return WhatIf(few, case.at(rate), metric, asked, asked.at(rate))
