"""Points of a sweep by the analytic solver: what `predict --engine analytic` says, also with fewer solved draws.

Several rates are solved together as one array (rates, draws): one by one, numpy's calls take longer than what they
compute.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np

from capplan.calibration.case.solution import Figures
from capplan.calibration.case.uncertainty import HIGH, LOW
from capplan.calibration.system import Case
from capplan.models.language.units import FloatArray
from capplan.models.results import STATISTICS, Band, rounded
from capplan.models.verdict import NORMAL
from capplan.planner.explore.sweep_table import SweepPoint, band_cells, layout_point
from capplan.planner.predict.capacity import capacity_of
from capplan.planner.predict.sustained_rate import Relations
from capplan.planner.situations.conditions import Conditions
from capplan.planner.situations.judged import Judged
from capplan.planner.situations.sustained import NONE

_NO_DROPS = 1e-9  # share of the requests: less is none
_TOGETHER = 10  # rates that are solved together: enough that numpy's own work counts, few enough for the caches


class AnalyticPoints:
    """A solved layout, at any offered rate.

    Parameters
    ----------
    case : Case
        The layout; how many draws it solves decides how long a point takes.
    capacity : Band, optional
        Its capacity, requests per second, where it is simulated; by default as solved.

    Raises
    ------
    InputError
        When an objective cannot be read.
    """

    def __init__(self, case: Case[Any], capacity: Band | None = None) -> None:
        self.case = case
        self.capacity = capacity or capacity_of(case)
        self.shared = {
            **layout_point(case.system, case.scenario.given()),
            **band_cells("capacity_tps", (self.capacity.value, self.capacity.low, self.capacity.high)),
            "bottleneck": case.solution.bottleneck,
            "engine": "analytic",
            "seed": case.seed,
            "version": version("capplan"),
        }

    def at(self, offered: Sequence[float]) -> Iterator[SweepPoint]:
        """Yield a point for each offered peak rate, requests per second."""
        for start in range(0, len(offered), _TOGETHER):
            yield from self._together(offered[start : start + _TOGETHER])

    def _together(self, offered: Sequence[float]) -> Iterator[SweepPoint]:
        figures = self._figures(offered)
        busy, drops = self._busy(figures), figures.drop_rate
        drop_rate = np.quantile(np.where(drops < _NO_DROPS, 0.0, drops), [0.5, LOW, HIGH], axis=-1)
        done = np.quantile(figures.throughput_per_s, [0.5, LOW, HIGH], axis=-1)
        times = self._latencies(offered, figures)
        for place, rate in enumerate(offered):
            yield {
                **self.shared,
                "offered_tps": rate,
                "load": rounded(rate / self.capacity.value) if self.capacity.value > 0 else None,
                **verdict_cells(self.case, rate),
                **band_cells("bottleneck_utilisation", busy[:, place]),
                **band_cells("throughput_tps", done[:, place]),
                **band_cells("drop_rate", drop_rate[:, place]),
                "basis": self.case.at(rate).extrapolation.basis,
                **next(times),
            }

    def _latencies(self, offered: Sequence[float], figures: Figures) -> Iterator[SweepPoint]:
        """Yield the latencies at the rates of the figures."""
        milliseconds = {name: figures.latencies_s(name) * 1e3 for name in figures.asked}
        for place, rate in enumerate(offered):
            uncertainty = self.case.at(rate).uncertainty
            cells: SweepPoint = {}
            for name, draws in milliseconds.items():
                bands = uncertainty.spread_of_times(draws[:, place], name)
                bands[:, 1:] = np.maximum.accumulate(bands[:, 1:], axis=1)  # percentiles in order, as in `predict`
                for number, statistic in enumerate(STATISTICS):
                    cells |= band_cells(f"{name}_{statistic}_ms", bands[:, number])
            yield cells

    def _figures(self, offered: Sequence[float]) -> Figures:
        return self.case.solution.at(np.array(offered)[:, None])

    def _busy(self, figures: Figures) -> FloatArray:
        """Return the band (3, rates) of how busy the bottleneck is: a kind of station, or the workers."""
        case, uncertainty = self.case, self.case.uncertainty
        if case.solution.bottleneck in case.solution.resources:
            return np.minimum(uncertainty.spread(figures.utilisation(case.solution.bottleneck), uncertainty.rate), 1.0)
        units = next(iter(case.system.workers(case.scenario).values()), None)
        if case.solution.bottleneck != "workers" or units is None:
            return np.full((3, len(figures.peak_rate)), np.nan)  # threads of a pool inside: not modelled
        return np.minimum(uncertainty.spread(figures.busy_workers() / np.max(units), uncertainty.time), 1.0)


def verdict_cells(case: Case[Any], rate: float, relations: Relations = NONE) -> SweepPoint:
    """Return the cells of the verdict at a peak rate; `relations` are simulated over analytic latencies there."""
    judged = Judged(case, (Conditions(NORMAL),), rate)
    judged.relations[NORMAL] = relations
    found = judged.verdict()
    return {"answer": found.answer, "risk": rounded(found.risk)}
