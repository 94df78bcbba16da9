"""Points of a sweep by the compiled engine: the analytic point, its latencies simulated to a precision.

Latencies are those of `predict`: draws of the ensemble are simulated and carried over to all of them. Here draws are
added, in rounds, until the simulation's part of the band is as narrow as was asked. What comes next is a function of
the results alone, so a point does not depend on where or beside what it is computed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np

from capplan.calibration.case.solution import Layout
from capplan.calibration.case.uncertainty import estimated
from capplan.calibration.fit.fitted_file import Fitted
from capplan.models.language.units import FloatArray
from capplan.models.results import STATISTICS, Band, Latency, plain, rounded
from capplan.planner.explore.sweep_table import Row, band_columns
from capplan.planner.predict.simulated_latency import (
    ChosenDraws,
    DrawPhases,
    RateSimulation,
    SimulationSettings,
    extended_to_all,
    mean_response_s,
)
from capplan.planner.simulate.precision_target import PrecisionTarget
from capplan.simulator.results.histogram import IntArray
from capplan.systems.openprovider.network import REPORTED
from capplan.systems.openprovider.scenario import OpenproviderScenario

REQUESTS = 20_000  # measured at each draw
FIRST_DRAWS = 8
FEWEST_MORE = 2  # draws of a further round
GROWTH = 3.0  # times as many draws from round to round, at most: the width itself is a guess
USUAL_LOAD = 0.8  # of the capacity, at which draws are put in order
MOST_DRAWS = 128  # beside saturation no number that anybody would wait for is enough


def simulated_rows(
    rows: Sequence[Row], scenario: OpenproviderScenario, fitted: Fitted | None, wish: PrecisionTarget, seed: int
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

    def __init__(self, scenario: OpenproviderScenario, fitted: Fitted, wish: PrecisionTarget, seed: int) -> None:
        self.wish, self.seed = wish, seed
        self.layout, self.drawn = _layout(scenario, fitted)
        wider = reach_of(scenario).factors(ABOUTS[scenario.system].widening)
        self.uncertainty = estimated(fitted, scenario, seed).widened(**wider)

    def columns(self, rate: float) -> Row:
        """Return the latencies at a rate, and how precise they are."""
        figures, phases = self.layout.at(rate), list[DrawPhases]()
        course = RateSimulation(
            self.drawn, figures.peak_rate, REQUESTS, SimulationSettings(self.seed, "compiled", threads=1)
        )
        width, wanted = math.inf, FIRST_DRAWS
        while wanted > len(phases):
            phases += course.run(range(len(phases), wanted))
            latency, _ = extended_to_all(phases, self.drawn.chosen[:wanted], figures, self.uncertainty)
            width = max(self._width(latency[name]) for name in self.wish.classes)
            wanted = self._wanted(width, wanted)
        return _columns(latency) | {"simulation": rounded(plain(width))}

    def _width(self, latency: Latency) -> float:
        """Return the simulation's part of the wanted statistic's band, as a share of the figure."""
        band: Band | None = getattr(latency, self.wish.statistic)
        if band is None or band.parts.simulation is None:
            return math.inf
        return band.parts.simulation / band.value

    def _wanted(self, width: float, there: int) -> int:
        """Return how many draws there shall be, as the width falls with the root of their number."""
        if width <= self.wish.relative:
            return there
        times = min((width / self.wish.relative) ** 2, GROWTH)
        return min(max(math.ceil(there * times), there + FEWEST_MORE), MOST_DRAWS)


def spread_out(order_by: FloatArray, count: int) -> IntArray:
    """Return the places of `count` draws so that the first few, and the first of any number, are even along the order.

    Those are the places of van der Corput's sequence (1935): 1/2, 1/4, 3/4, 1/8, ... of the way.
    """
    numbers = np.arange(1, count + 1)
    along = np.zeros(count)
    for bit in range(count.bit_length()):
        along += (numbers >> bit & 1) * 0.5 ** (bit + 1)
    places = (along * len(order_by)).astype(np.int64)
    return np.asarray(np.argsort(order_by, kind="stable")[places])


@lru_cache(maxsize=2)
def _layout(scenario: OpenproviderScenario, fitted: Fitted) -> tuple[Layout, ChosenDraws]:
    """Return a layout with all draws, and those that may be simulated; rates of a layout come one after another."""
    layout = Layout(scenario, values_of(fitted, scenario))
    busy = layout.at(USUAL_LOAD * float(np.median(layout.capacity)))
    return layout, ChosenDraws(scenario, values_of(fitted, scenario), spread_out(mean_response_s(busy), MOST_DRAWS))


def _columns(latency: dict[str, Latency]) -> Row:
    row: Row = {}
    for name, statistics in latency.items():
        for statistic in STATISTICS:
            band: Band | None = getattr(statistics, statistic)
            cells = (None,) * 3 if band is None else (band.value, band.low, band.high)
            columns = band_columns(f"{name}_{statistic}_ms")
            row |= {column: rounded(plain(cell)) for column, cell in zip(columns, cells, strict=True)}
    return row
