"""From parameter draws to 90 % bands: what the parameters leave open, and what the model gets wrong at its best.

The discrepancy is estimated from the scenarios that were left out of a refit: the root mean square of the logarithmic
errors there, of rates and of times. It is widened with the distance from the measured layouts, by as much again for
each doubling of an axis: no evidence says how it grows, so that factor is a guess.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from capplan.calibration.fitted_file import Fitted
from capplan.calibration.studies import study
from capplan.models.quantity import FloatArray, Number
from capplan.models.scenario import Scenario
from capplan.planner.prediction import Band, Parts

LOW, HIGH = 0.05, 0.95
_NORMAL_95 = 1.6448536269514722  # 95th percentile of the standard normal law


class Apart(NamedTuple):
    """A part of every latency that the discrepancy of times is not about, such as a round trip.

    Attributes
    ----------
    time_s : number
        How long it is, seconds; may be an array over draws.
    log_sd : float
        Standard deviation of its logarithm from repeat to repeat.
    """

    time_s: Number
    log_sd: float


NOTHING_APART = Apart(0.0, 0.0)


@dataclass(frozen=True)
class Uncertainty:
    """How wide bands are beside the parameters.

    Attributes
    ----------
    rate, time : float
        Standard deviation of the logarithm of the discrepancy of rates and of times.
    by_class : mapping of float
        That of times of a request class, where it is known apart.
    apart : Apart
        The part of every latency that the discrepancy of times is not about.
    seed : int
        Seed of the pairing of parameter draws with discrepancies.
    """

    rate: float
    time: float
    seed: int
    by_class: Mapping[str, float] = field(default_factory=dict)
    apart: Apart = NOTHING_APART

    def of_rate(self, draws: FloatArray) -> Band:
        """Return the band of a rate, or of anything in proportion to it."""
        return self._band(draws, self.rate)

    def of_time(self, draws: FloatArray, name: str = "") -> Band:
        """Return the band of a latency, in ms; `name` is its request class."""
        log_sd = self.by_class.get(name, self.time)
        if self.apart.log_sd:
            whole, apart = float(np.median(draws)), float(np.median(self.apart.time_s)) * 1e3
            log_sd = float(np.hypot(log_sd * max(whole - apart, 0.0), self.apart.log_sd * apart)) / whole
        return self._band(draws, log_sd)

    def of_share(self, draws: FloatArray) -> Band:
        """Return the band of a utilisation: as uncertain as the rate at which it reaches one."""
        return _at_most(self._band(draws, self.rate), 1.0)

    def of_busy(self, draws: FloatArray, servers: float) -> Band:
        """Return the band of a mean number of busy servers: as uncertain as the times, and never above `servers`."""
        return _at_most(self._band(draws, self.time), servers)

    def _band(self, draws: FloatArray, log_sd: float) -> Band:
        value, low, high = (float(x) for x in self.spread(draws, log_sd))
        parameter = float(np.subtract(*np.quantile(draws, [HIGH, LOW]))) / 2
        parts = Parts(parameter=parameter, discrepancy=_NORMAL_95 * log_sd * value)
        return Band(value, low, high, parts)

    def spread(self, draws: FloatArray, log_sd: float) -> FloatArray:
        """Return value, low and high end (3, ...) of the bands of many figures (..., draws).

        Parameters
        ----------
        draws
            The figures, by parameter draw.
        log_sd
            Standard deviation of the logarithm of their discrepancy: `rate` or `time`.
        """
        count = draws.shape[-1]
        levels = (np.random.default_rng(self.seed).permutation(count) + 0.5) / count
        repeated = draws * np.exp(log_sd * _normal_quantile(levels))
        value = np.median(draws, axis=-1)
        low, high = np.quantile(repeated, [LOW, HIGH], axis=-1)
        return np.stack([value, np.minimum(low, value), np.maximum(high, value)])


def _at_most(band: Band, limit: float) -> Band:
    return Band(min(band.value, limit), min(band.low, limit), min(band.high, limit), band.parts)


def _normal_quantile(levels: FloatArray) -> FloatArray:
    from scipy.special import ndtri

    return np.asarray(ndtri(levels))


def estimated(fitted: Fitted, scenario: Scenario, distance: float, seed: int) -> Uncertainty:
    """Estimate the discrepancy for a scenario, at a distance (doublings) from the measured layouts."""
    its, widened = study(fitted.system), 1 + distance
    rows = {row.id: row for test in its.experiments() for row in test.rows}
    rates: list[float] = []
    times: dict[str, list[float]] = {}
    for figure in fitted.left_out:
        row = rows[figure.id]
        error = widened * float(np.log(figure.predicted / figure.documented))
        if its.kind_of(row) == "rate":
            rates.append(error)
        elif its.kind_of(row) == "time":
            times.setdefault(its.group_of(row), []).append(error)
    groups = {name: its.group(scenario, name) for name in its.system.reported}
    by_class = {name: _spread(times[group]) for name, group in groups.items() if group in times}
    return Uncertainty(_spread(rates), _spread([each for group in times.values() for each in group]), seed, by_class)


def _spread(errors: Sequence[float]) -> float:
    return float(np.sqrt(np.mean(np.square(errors))))
