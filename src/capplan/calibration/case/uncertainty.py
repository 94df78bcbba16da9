"""From parameter draws to 90 % bands: what the parameters leave open, and what the model gets wrong at its best.

The model error is widened with the distance from the measured layouts, by as much again for each doubling of an axis:
no evidence says how it grows, so that factor is a guess.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from capplan.calibration.case.model_error import HIGH_LEVEL, ModelError
from capplan.models.language.units import FloatArray, Number
from capplan.models.results import Band, Parts

LOW, HIGH = 1 - HIGH_LEVEL, HIGH_LEVEL


class Offset(NamedTuple):
    """A part of every latency that the model error of times does not cover, such as a round trip.

    Attributes
    ----------
    time_s : number
        How long it is, seconds; may be an array over draws.
    model_error : ModelError
        How far its logarithm is off from repeat to repeat.
    """

    time_s: Number
    model_error: ModelError


NO_OFFSET = Offset(0.0, ModelError(0.0))


@dataclass(frozen=True)
class Uncertainty:
    """How wide bands are beside the parameters.

    Attributes
    ----------
    rate, time : ModelError
        That of rates and of times.
    by_class : mapping of ModelError
        That of times of a request class, where it is known apart.
    offset : Offset
        The part of every latency that the model error of times does not cover.
    seed : int
        Seed of the pairing of parameter draws with model errors.
    """

    rate: ModelError
    time: ModelError
    seed: int
    by_class: Mapping[str, ModelError] = field(default_factory=dict)
    offset: Offset = NO_OFFSET

    def widened(self, rate: float = 1.0, time: float = 1.0) -> Uncertainty:
        """Return it with the model errors of rates and of times so many times as wide."""
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
        value, low, high = (float(each) for each in self.spread_of_time(draws, name))
        if not np.all(np.isfinite(draws)):
            return Band(value, low, high)
        own, its = self.by_class.get(name, self.time), self.offset.model_error
        if not its.log_sd:
            return Band(value, low, high, Parts(parameter=_half_width(draws), model_error=own.half_width * value))
        offset = self._offset_ms(draws)
        rest = np.maximum(draws - offset, 0.0)
        error = np.hypot(own.half_width * np.median(rest), its.half_width * np.median(offset))
        return Band(value, low, high, Parts(parameter=_half_width(draws), model_error=float(error)))

    def spread_of_time(self, draws: FloatArray, name: str = "") -> FloatArray:
        """Return value, low and high end (3, ...) of the bands of latencies (..., draws) of a request class, in ms.

        Where a latency is unbounded at some draws, all three are quantiles of what a repeat measures.
        """
        rows = draws.reshape(-1, draws.shape[-1])
        bounded = np.isfinite(rows).all(axis=-1)
        found = np.empty((3, len(rows)))
        found[:, bounded] = self._spread_of_time(rows[bounded], name)
        if not bounded.all():
            repeated = rows[~bounded] * self._noise(rows, self.by_class.get(name, self.time))
            found[:, ~bounded] = np.quantile(repeated, [0.5, LOW, HIGH], axis=-1, method="inverted_cdf")
        return found.reshape(3, *draws.shape[:-1])

    def _spread_of_time(self, draws: FloatArray, name: str) -> FloatArray:
        own, its = self.by_class.get(name, self.time), self.offset.model_error
        if not its.log_sd:
            return self.spread(draws, own)
        offset = self._offset_ms(draws)
        rest = np.maximum(draws - offset, 0.0)
        return _ends(draws, rest * self._noise(draws, own) + offset * self._noise(draws, its, 1))

    def _offset_ms(self, draws: FloatArray) -> FloatArray:
        return np.broadcast_to(np.asarray(self.offset.time_s) * 1e3, draws.shape)

    def of_share(self, draws: FloatArray) -> Band:
        """Return the band of a utilisation: as uncertain as the rate at which it reaches one."""
        return _at_most(self._band(draws, self.rate), 1.0)

    def of_busy(self, draws: FloatArray, servers: float) -> Band:
        """Return the band of a mean number of busy servers: as uncertain as the times, and never above `servers`."""
        return _at_most(self._band(draws, self.time), servers)

    def _band(self, draws: FloatArray, model_error: ModelError) -> Band:
        value, low, high = (float(x) for x in self.spread(draws, model_error))
        parts = Parts(parameter=_half_width(draws), model_error=model_error.half_width * value)
        return Band(value, low, high, parts)

    def _noise(self, draws: FloatArray, model_error: ModelError, stream: int = 0) -> FloatArray:
        """Return the factors of a model error, one for each draw, in an order of their own for each stream."""
        count = draws.shape[-1]
        seed = [self.seed, stream] if stream else self.seed
        levels = (np.random.default_rng(seed).permutation(count) + 0.5) / count
        return np.exp(model_error.quantile(levels))

    def spread(self, draws: FloatArray, model_error: ModelError) -> FloatArray:
        """Return value, low and high end (3, ...) of the bands of many figures (..., draws).

        Parameters
        ----------
        draws
            The figures, by parameter draw.
        model_error
            Their model error: `rate` or `time`.
        """
        return _ends(draws, draws * self._noise(draws, model_error))


def _ends(draws: FloatArray, repeated: FloatArray) -> FloatArray:
    """Return medians of figures, and the ends of their bands from what repeats of the load test would measure."""
    value = np.median(draws, axis=-1)
    low, high = np.quantile(repeated, [LOW, HIGH], axis=-1)
    return np.stack([value, np.minimum(low, value), np.maximum(high, value)])


def _half_width(draws: FloatArray) -> float:
    return float(np.subtract(*np.quantile(draws, [HIGH, LOW]))) / 2


def _at_most(band: Band, limit: float) -> Band:
    return Band(min(band.value, limit), min(band.low, limit), min(band.high, limit), band.parts)
