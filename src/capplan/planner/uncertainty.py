"""From parameter draws to 90 % bands: what the parameters leave open, and what the model gets wrong at its best.

The discrepancy is estimated from the scenarios that were left out of a refit: the root mean square of the logarithmic
errors there, of rates and of times. It is widened with the distance from the measured layouts, by as much again for
each doubling of an axis: no evidence says how it grows, so that factor is a guess.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
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

    def widened(self, rate: float = 1.0, time: float = 1.0) -> Uncertainty:
        """Return it with the discrepancies of rates and of times so many times as wide."""
        by_class = {name: each * time for name, each in self.by_class.items()}
        return replace(self, rate=self.rate * rate, time=self.time * time, by_class=by_class)

    def of_rate(self, draws: FloatArray) -> Band:
        """Return the band of a rate, or of anything in proportion to it."""
        return self._band(draws, self.rate)

    def of_time(self, draws: FloatArray, name: str = "") -> Band:
        """Return the band of a latency, in ms; `name` is its request class."""
        log_sd = self.by_class.get(name, self.time)
        if not np.all(np.isfinite(draws)):
            return _unbounded(draws * self._noise(draws, log_sd))
        if not self.apart.log_sd:
            return self._band(draws, log_sd)
        apart = np.broadcast_to(np.asarray(self.apart.time_s) * 1e3, draws.shape)
        own = np.maximum(draws - apart, 0.0)
        repeated = own * self._noise(draws, log_sd) + apart * self._noise(draws, self.apart.log_sd, 1)
        value = float(np.median(draws))
        low, high = (float(each) for each in np.quantile(repeated, [LOW, HIGH]))
        spread = np.hypot(log_sd * np.median(own), self.apart.log_sd * np.median(apart))
        parts = Parts(parameter=_half_width(draws), discrepancy=_NORMAL_95 * float(spread))
        return Band(value, min(low, value), max(high, value), parts)

    def of_share(self, draws: FloatArray) -> Band:
        """Return the band of a utilisation: as uncertain as the rate at which it reaches one."""
        return _at_most(self._band(draws, self.rate), 1.0)

    def of_busy(self, draws: FloatArray, servers: float) -> Band:
        """Return the band of a mean number of busy servers: as uncertain as the times, and never above `servers`."""
        return _at_most(self._band(draws, self.time), servers)

    def _band(self, draws: FloatArray, log_sd: float) -> Band:
        value, low, high = (float(x) for x in self.spread(draws, log_sd))
        parts = Parts(parameter=_half_width(draws), discrepancy=_NORMAL_95 * log_sd * value)
        return Band(value, low, high, parts)

    def _noise(self, draws: FloatArray, log_sd: float, stream: int = 0) -> FloatArray:
        """Return factors of a lognormal discrepancy, one for each draw, in an order of their own for each stream."""
        count = draws.shape[-1]
        seed = [self.seed, stream] if stream else self.seed
        levels = (np.random.default_rng(seed).permutation(count) + 0.5) / count
        return np.exp(log_sd * _normal_quantile(levels))

    def spread(self, draws: FloatArray, log_sd: float) -> FloatArray:
        """Return value, low and high end (3, ...) of the bands of many figures (..., draws).

        Parameters
        ----------
        draws
            The figures, by parameter draw.
        log_sd
            Standard deviation of the logarithm of their discrepancy: `rate` or `time`.
        """
        repeated = draws * self._noise(draws, log_sd)
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
    return float(np.sqrt(np.mean(np.square(errors)))) if errors else 0.0
