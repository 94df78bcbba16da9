"""From parameter draws to 90 % bands: what the parameters leave open, and what the model gets wrong at its best.

The discrepancy is widened with the distance from the measured layouts, by as much again for each doubling of an axis:
no evidence says how it grows, so that factor is a guess.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from capplan.calibration.case.model_error import HIGH_LEVEL, Discrepancy, discrepancies
from capplan.calibration.fit.fitted_file import Fitted
from capplan.models.language.scenario import Scenario
from capplan.models.language.units import FloatArray, Number
from capplan.planner.predict.prediction import Band, Parts
from capplan.systems.studies import study

LOW, HIGH = 1 - HIGH_LEVEL, HIGH_LEVEL


class Apart(NamedTuple):
    """A part of every latency that the discrepancy of times is not about, such as a round trip.

    Attributes
    ----------
    time_s : number
        How long it is, seconds; may be an array over draws.
    discrepancy : Discrepancy
        How far its logarithm is off from repeat to repeat.
    """

    time_s: Number
    discrepancy: Discrepancy


NOTHING_APART = Apart(0.0, Discrepancy(0.0))


@dataclass(frozen=True)
class Uncertainty:
    """How wide bands are beside the parameters.

    Attributes
    ----------
    rate, time : Discrepancy
        That of rates and of times.
    by_class : mapping of Discrepancy
        That of times of a request class, where it is known apart.
    apart : Apart
        The part of every latency that the discrepancy of times is not about.
    seed : int
        Seed of the pairing of parameter draws with discrepancies.
    """

    rate: Discrepancy
    time: Discrepancy
    seed: int
    by_class: Mapping[str, Discrepancy] = field(default_factory=dict)
    apart: Apart = NOTHING_APART

    def widened(self, rate: float = 1.0, time: float = 1.0) -> Uncertainty:
        """Return it with the discrepancies of rates and of times so many times as wide."""
        by_class = {name: each.times(time) for name, each in self.by_class.items()}
        return replace(self, rate=self.rate.times(rate), time=self.time.times(time), by_class=by_class)

    def of_rate(self, draws: FloatArray) -> Band:
        """Return the band of a rate, or of anything in proportion to it."""
        return self._band(draws, self.rate)

    def chance_of_less(self, draws: FloatArray, level: float) -> float:
        """Return how likely a repeat of the load test measures a rate below `level`."""
        return float(np.mean(draws * self._noise(draws, self.rate) < level))

    def of_time(self, draws: FloatArray, name: str = "") -> Band:
        """Return the band of a latency, in ms; `name` is its request class."""
        own = self.by_class.get(name, self.time)
        if not np.all(np.isfinite(draws)):
            return _unbounded(draws * self._noise(draws, own))
        if not self.apart.discrepancy.log_sd:
            return self._band(draws, own)
        apart = np.broadcast_to(np.asarray(self.apart.time_s) * 1e3, draws.shape)
        rest = np.maximum(draws - apart, 0.0)
        repeated = rest * self._noise(draws, own) + apart * self._noise(draws, self.apart.discrepancy, 1)
        value = float(np.median(draws))
        low, high = (float(each) for each in np.quantile(repeated, [LOW, HIGH]))
        spread = np.hypot(own.half_width * np.median(rest), self.apart.discrepancy.half_width * np.median(apart))
        parts = Parts(parameter=_half_width(draws), discrepancy=float(spread))
        return Band(value, min(low, value), max(high, value), parts)

    def of_share(self, draws: FloatArray) -> Band:
        """Return the band of a utilisation: as uncertain as the rate at which it reaches one."""
        return _at_most(self._band(draws, self.rate), 1.0)

    def of_busy(self, draws: FloatArray, servers: float) -> Band:
        """Return the band of a mean number of busy servers: as uncertain as the times, and never above `servers`."""
        return _at_most(self._band(draws, self.time), servers)

    def _band(self, draws: FloatArray, discrepancy: Discrepancy) -> Band:
        value, low, high = (float(x) for x in self.spread(draws, discrepancy))
        parts = Parts(parameter=_half_width(draws), discrepancy=discrepancy.half_width * value)
        return Band(value, low, high, parts)

    def _noise(self, draws: FloatArray, discrepancy: Discrepancy, stream: int = 0) -> FloatArray:
        """Return the factors of a discrepancy, one for each draw, in an order of their own for each stream."""
        count = draws.shape[-1]
        seed = [self.seed, stream] if stream else self.seed
        levels = (np.random.default_rng(seed).permutation(count) + 0.5) / count
        return np.exp(discrepancy.quantile(levels))

    def spread(self, draws: FloatArray, discrepancy: Discrepancy) -> FloatArray:
        """Return value, low and high end (3, ...) of the bands of many figures (..., draws).

        Parameters
        ----------
        draws
            The figures, by parameter draw.
        discrepancy
            Their discrepancy: `rate` or `time`.
        """
        repeated = draws * self._noise(draws, discrepancy)
        value = np.median(draws, axis=-1)
        low, high = np.quantile(repeated, [LOW, HIGH], axis=-1)
        return np.stack([value, np.minimum(low, value), np.maximum(high, value)])


def _unbounded(repeated: FloatArray) -> Band:
    """Return the band of a figure that nothing bounds with some draws: no arithmetic with infinity."""
    low, value, high = (float(np.quantile(repeated, level, method="inverted_cdf")) for level in (LOW, 0.5, HIGH))
    return Band(value, low, high)


def _half_width(draws: FloatArray) -> float:
    return float(np.subtract(*np.quantile(draws, [HIGH, LOW]))) / 2


def _at_most(band: Band, limit: float) -> Band:
    return Band(min(band.value, limit), min(band.low, limit), min(band.high, limit), band.parts)


def estimated(fitted: Fitted, scenario: Scenario, seed: int) -> Uncertainty:
    """Estimate the discrepancy for a scenario among the measured layouts."""
    its, known = study(fitted.system), discrepancies(fitted)
    groups = {name: its.group(scenario, name) for name in its.system.reported}
    by_class = {name: known.by_group[group] for name, group in groups.items() if group in known.by_group}
    return Uncertainty(known.rate, known.time, seed, by_class)
