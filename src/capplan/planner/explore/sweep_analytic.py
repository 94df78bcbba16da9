"""Points of a sweep by the analytic solver: the figures and bands of `predict --engine analytic`, faster.

Capacity and the state of every rate are computed for representatives of the parameter draws (`representatives`), and
bands are formed as if every draw answered as the one that stands for it. Some rates at a time are solved as one array
(rates, draws): one by one, the calls of numpy took longer than what they compute.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from importlib.metadata import version

import numpy as np

from capplan.calibration.case.model_error import ModelError
from capplan.calibration.case.solution import Figures, Layout
from capplan.calibration.case.uncertainty import HIGH, LOW, Uncertainty, estimated
from capplan.calibration.fit.fitted_file import Fitted
from capplan.models.language.units import FloatArray
from capplan.models.results import STATISTICS, plain, rounded
from capplan.planner.explore.sweep_table import Row, band_columns, empty_row
from capplan.planner.predict.predict import objectives_of, rate_at
from capplan.planner.predict.representatives import Representatives, representatives
from capplan.systems.openprovider.network import REPORTED
from capplan.systems.openprovider.scenario import OpenproviderScenario

_NO_DROPS = 1e-9  # share of the requests: less is none
_AT_A_TIME = 10  # rates that are solved together: enough that numpy's own work counts, few enough for the caches


def analytic_rows(
    scenario: OpenproviderScenario, rates: tuple[str, tuple[float, ...]], fitted: Fitted | None, draws: int, seed: int
) -> Iterator[Row]:
    """Yield a row for each rate.

    Parameters
    ----------
    scenario
        The layout and the objectives that its capacity has to meet.
    rates
        `given` and peak rates, or another word and shares of the capacity.
    fitted
        The calibration to use; None is the system's own.
    draws
        How many draws stand for all.
    seed
        Seed of every random number.

    Raises
    ------
    InputError
        When an objective cannot be read, or the system is not calibrated.
    """
    solved = _Solved(scenario, fitted or load_fitted(scenario.system), draws, seed)
    kind, values = rates
    for start in range(0, len(values), _AT_A_TIME):
        some = values[start : start + _AT_A_TIME]
        offered = [value if kind == "given" else _of_capacity(value, solved.capacity[0]) for value in some]
        for row in solved.rows(offered):
            yield {**row, "offered_source": kind}


class _Solved:
    """A layout with its capacity."""

    def __init__(self, scenario: OpenproviderScenario, fitted: Fitted, draws: int, seed: int) -> None:
        self.few = _few(fitted, scenario.encryption, scenario.vpn, draws)
        self.layout = Layout(scenario, self.few.thinned(values_of(fitted, scenario)), folded=True)
        far = reach_of(scenario)
        self.uncertainty: Uncertainty = estimated(fitted, scenario, seed).widened(
            **far.factors(ABOUTS[scenario.system].widening)
        )
        capacity = self.uncertainty.spread(
            self._every(self.layout.capacity_with(objectives_of(scenario))), self.uncertainty.rate
        )
        bound = ABOUTS[scenario.system].bounded_by(scenario)
        if isinstance(bound, OpenproviderScenario):
            capacity = np.minimum(capacity, [np.inf, *[_Solved(bound, fitted, draws, seed).capacity[2]] * 2])
        self.capacity: tuple[float, ...] = tuple(float(each) for each in capacity)
        self.endless = float(np.median(self._every(self.layout.capacity)))  # above it some queue grows without end
        self.bottleneck, self.workers = self.layout.bottleneck, scenario.front_workers
        self.shared = {
            **empty_row(vars(scenario)),
            **_bands("capacity_tps", capacity),
            "bottleneck": self.bottleneck,
            "extrapolation": far.verdict,
            "engine": "analytic",
            "seed": seed,
            "version": version("capplan"),
        }

    def rows(self, offered: list[float]) -> Iterator[Row]:
        """Yield a row for each offered rate."""
        figures = self._at(offered)
        busy = self.uncertainty.spread(self._every(self._busy(figures)), self._busy_discrepancy())
        lost = self._every(figures.point.drop_rate)
        drop_rate = np.quantile(np.where(lost < _NO_DROPS, 0.0, lost), [0.5, LOW, HIGH], axis=-1)
        times = iter(self._times([rate for rate in offered if rate <= self.endless], figures))
        for place, rate in enumerate(offered):
            row = {
                **self.shared,
                "offered_tps": rate,
                "load": rounded(rate / self.capacity[0]) if self.capacity[0] > 0 else None,
            }
            row["carries"] = self.capacity[1] >= rate
            row |= _bands("bottleneck_utilisation", np.minimum(busy[:, place], 1.0))
            row |= _bands("drop_rate", drop_rate[:, place])
            yield row | (next(times) if rate <= self.endless else {})

    def _times(self, rates: list[float], figures: Figures) -> Iterator[Row]:
        """Yield the latencies at each of the rates, which may be fewer than those of the figures."""
        if not rates:
            return
        if len(rates) < len(figures.peak_rate):
            figures = self._at(rates)
        found = {
            name: self.uncertainty.spread(self._every(figures.latencies_s(name)) * 1e3, self.uncertainty.time)
            for name in REPORTED
        }
        for place in range(len(rates)):
            row: Row = {}
            for name, bands in found.items():
                for number, statistic in enumerate(STATISTICS):
                    row |= _bands(f"{name}_{statistic}_ms", bands[:, number, place])
            yield row

    def _at(self, rates: list[float]) -> Figures:
        return self.layout.at(np.array(rates)[:, None])

    def _load(self, rate: float) -> float | None:
        return float(rounded(rate / self.capacity[0])) if self.capacity[0] > 0 else None

    def _every(self, values: FloatArray) -> FloatArray:
        """Give each draw what its representative has; the last axis is draws."""
        return values[..., self.few.place]

    def _busy(self, figures: Figures) -> FloatArray:
        """Utilisation of what saturates first: of a kind of station, or of the workers."""
        if self.bottleneck in self.layout.resources:
            return figures.utilisation(self.bottleneck)
        if self.bottleneck == "workers":
            return figures.busy_workers() / self.workers
        return np.full(figures.peak_rate.shape, np.nan)  # threads of a pool inside: not modelled

    def _busy_discrepancy(self) -> ModelError:
        return self.uncertainty.time if self.bottleneck == "workers" else self.uncertainty.rate


def _of_capacity(share: float, capacity: float) -> float:
    """Return a share of the capacity in round numbers, which all of it does not exceed."""
    return min(rate_at(share, capacity), max(math.floor(capacity), 1.0)) if share <= 1 else rate_at(share, capacity)


@lru_cache(maxsize=8)
def _few(fitted: Fitted, encryption: str | None, vpn: str | None, draws: int) -> Representatives:
    """Choose the draws for all layouts with the same encrypted links: they have the same values."""
    return representatives(values_of(fitted, OpenproviderScenario(encryption=encryption, vpn=vpn)), draws)


def _bands(name: str, figures: FloatArray) -> Row:
    """Return the cells of a figure with a band, to the digits that it deserves; nan is an empty cell."""
    return {column: rounded(plain(float(figure))) for column, figure in zip(band_columns(name), figures, strict=True)}
