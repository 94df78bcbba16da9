"""Points of a sweep by the compiled engine: the analytic point, its latencies simulated to a precision.

Latencies are those of `predict`: draws of the ensemble are simulated and carried over to all of them. Here the budget
grows, in rounds, until the simulation's part of the band is as narrow as was asked. What comes next is a function of
the results alone, so a point does not depend on where or beside what it is computed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache

from capplan.calibration.fitted_file import Fitted
from capplan.calibration.fitted_file import load as load_fitted
from capplan.calibration.openprovider_figures import experiments
from capplan.models.openprovider import REPORTED
from capplan.models.scenario import Scenario
from capplan.planner.extrapolation import reach
from capplan.planner.prediction import STATISTICS, Band, Latency, plain, rounded
from capplan.planner.simulated import Plan, simulated_latency
from capplan.planner.sweep_table import Row, band_columns
from capplan.planner.system_figures import Layout
from capplan.planner.uncertainty import estimated
from capplan.planner.wish import Wish

FIRST_BUDGET_S = 1.0  # of the nominal machine: the first round of a point
MOST_BUDGET_S = 16.0  # beside saturation no budget that anybody would wait for is enough
GROWTH = 6.0  # of a budget from round to round, at most: the width itself is a guess
SPARE = 1.2  # a budget is larger by so much than the last width calls for


def simulated_rows(
    rows: Sequence[Row], scenario: Scenario, fitted: Fitted | None, wish: Wish, seed: int
) -> Iterator[Row]:
    """Yield analytic rows of one layout with their latencies simulated; rows that have none stay without.

    Parameters
    ----------
    rows
        Analytic points of the layout.
    scenario
        The layout.
    fitted
        The calibration to use; None is the system's own.
    wish
        How precise the simulation shall be.
    seed
        Seed of every random number.
    """
    point = _Point(scenario, fitted or load_fitted(scenario.system), wish, seed)
    for row in rows:
        found = {"engine": "compiled"}
        if row[f"{next(iter(REPORTED))}_mean_ms"] is not None:
            found |= point.columns(row["offered_tps"])
        yield row | found


class _Point:
    """A layout whose latencies are simulated at one rate after another."""

    def __init__(self, scenario: Scenario, fitted: Fitted, wish: Wish, seed: int) -> None:
        self.scenario, self.wish, self.seed = scenario, wish, seed
        self.values = fitted.values()
        self.layout = _layout(scenario, fitted)
        self.uncertainty = estimated(fitted, reach(scenario, experiments()).distance, seed)

    def columns(self, rate: float) -> Row:
        """Return the latencies at a rate, and how precise they are."""
        figures = self.layout.at(rate)
        budget_s, width = FIRST_BUDGET_S, math.inf
        while True:
            plan = Plan(self.seed, "compiled", budget_s, threads=1)
            latency = simulated_latency(self.scenario, self.values, figures, self.uncertainty, plan).latency_ms
            width = max(self._width(latency[name]) for name in self.wish.classes)
            if width <= self.wish.relative or budget_s >= MOST_BUDGET_S:
                return _columns(latency) | {"simulation": rounded(plain(width))}
            budget_s = min(budget_s * self._times(width), MOST_BUDGET_S)

    def _width(self, latency: Latency) -> float:
        """Return the simulation's part of the wanted statistic's band, as a share of the figure."""
        band: Band | None = getattr(latency, self.wish.statistic)
        if band is None or band.parts.simulation is None:
            return math.inf
        return band.parts.simulation / band.value

    def _times(self, width: float) -> float:
        return min(max(SPARE * (width / self.wish.relative) ** 2, SPARE), GROWTH)


@lru_cache(maxsize=2)
def _layout(scenario: Scenario, fitted: Fitted) -> Layout:
    """Return a layout with all draws; rates of one layout come one after another."""
    return Layout(scenario, fitted.values())


def _columns(latency: dict[str, Latency]) -> Row:
    row: Row = {}
    for name, statistics in latency.items():
        for statistic in STATISTICS:
            band: Band | None = getattr(statistics, statistic)
            cells = (None,) * 3 if band is None else (band.value, band.low, band.high)
            columns = band_columns(f"{name}_{statistic}_ms")
            row |= {column: rounded(plain(cell)) for column, cell in zip(columns, cells, strict=True)}
    return row
