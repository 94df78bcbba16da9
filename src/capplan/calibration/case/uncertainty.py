"""90 % bands: the spread of the parameter draws combined with the model error.

The model error widens with the distance from the measured layouts, by a fixed share for each doubling of an axis. No
evidence shows how it grows, so this share is a guess (`System.widening`).
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
        Its length, seconds; a number or an array (draws,).
    model_error : ModelError
        Its own model error.
    """

    time_s: Number
    model_error: ModelError


NO_OFFSET = Offset(0.0, ModelError(0.0))


@dataclass(frozen=True)
class Uncertainty:
    """The model errors that widen bands beyond the spread of the parameters.

    Attributes
    ----------
    rate, time : ModelError
        Model errors of rates and of times.
    seed : int
        Seed of the pairing of parameter draws with model errors.
    by_class : mapping of ModelError
        Model errors of times of single request classes, where they are known.
    offset : Offset
        The part of every latency that the model error of times does not cover.
    """

    rate: ModelError
    time: ModelError
    seed: int
    by_class: Mapping[str, ModelError] = field(default_factory=dict)
    offset: Offset = NO_OFFSET

    def widened(self, rate: float = 1.0, times: Mapping[str, float] | None = None) -> Uncertainty:
        """Return a copy with wider model errors.

        Parameters
        ----------
        rate : float
            Factor of the model error of rates.
        times : mapping of float, optional
            Factors of the model errors of times, by reported request class; a time of no class, such as the number of
            busy servers, gets the largest.
        """
        if not times:
            return replace(self, rate=self.rate.times(rate))
        by_class = {name: self.by_class.get(name, self.time).times(factor) for name, factor in times.items()}
        time = self.time.times(max(times.values()))
        return replace(self, rate=self.rate.times(rate), time=time, by_class={**self.by_class, **by_class})

    def of_rate(self, draws: FloatArray) -> Band:
        """Return the band of a rate, or of a figure in proportion to one.

        Parameters
        ----------
        draws : array (draws,)
            The figure by parameter draw.
        """
        return self._band(draws, self.rate)

    def chance_of_less(self, draws: FloatArray, level: float) -> float:
        """Return the probability that a repeat of the load test measures a rate below `level`.

        Parameters
        ----------
        draws : array (draws,)
            The rate by parameter draw.
        level : float
            The level, in the unit of `draws`.
        """
        return float(np.mean(draws * self._noise(draws, self.rate) < level))

    def of_time(self, draws: FloatArray, name: str = "") -> Band:
        """Return the band of a latency.

        Parameters
        ----------
        draws : array (draws,)
            The latency by parameter draw, ms.
        name : str
            Its reported request class.

        Returns
        -------
        Band
            The band, ms.
        """
        value, low, high = (float(each) for each in self.spread_of_time(draws, name))
        if not np.all(np.isfinite(draws)):
            return Band(value, low, high)
        own, of_offset = self.by_class.get(name, self.time), self.offset.model_error
        if not of_offset.log_sd:
            return Band(value, low, high, Parts(parameter=_half_width(draws), model_error=own.half_width * value))
        offset = self._offset_ms(draws)
        rest = np.maximum(draws - offset, 0.0)
        error = np.hypot(own.half_width * np.median(rest), of_offset.half_width * np.median(offset))
        return Band(value, low, high, Parts(parameter=_half_width(draws), model_error=float(error)))

    def spread_of_time(self, draws: FloatArray, name: str = "") -> FloatArray:
        """Return the bands of many latencies of a request class.

        Parameters
        ----------
        draws : array (..., draws)
            The latencies by parameter draw, ms. If a latency is infinite at some draws, its value and both ends are
            quantiles of what a repeat of the load test would measure.
        name : str
            The reported request class.

        Returns
        -------
        array (3, ...)
            Value, low end and high end, ms.
        """
        rows = draws.reshape(-1, draws.shape[-1])
        bounded = np.isfinite(rows).all(axis=-1)
        bands = np.empty((3, len(rows)))
        bands[:, bounded] = self._spread_of_time(rows[bounded], name)
        if not bounded.all():
            repeated = rows[~bounded] * self._noise(rows, self.by_class.get(name, self.time))
            bands[:, ~bounded] = np.quantile(repeated, [0.5, LOW, HIGH], axis=-1, method="inverted_cdf")
        return bands.reshape(3, *draws.shape[:-1])

    def _spread_of_time(self, draws: FloatArray, name: str) -> FloatArray:
        own, of_offset = self.by_class.get(name, self.time), self.offset.model_error
        if not of_offset.log_sd:
            return self.spread(draws, own)
        offset = self._offset_ms(draws)
        rest = np.maximum(draws - offset, 0.0)
        return _ends(draws, rest * self._noise(draws, own) + offset * self._noise(draws, of_offset, 1))

    def _offset_ms(self, draws: FloatArray) -> FloatArray:
        return np.broadcast_to(np.asarray(self.offset.time_s) * 1e3, draws.shape)

    def of_share(self, draws: FloatArray) -> Band:
        """Return the band of a utilisation (draws,), which has the model error of rates and is at most 1."""
        return _at_most(self._band(draws, self.rate), 1.0)

    def of_busy(self, draws: FloatArray, servers: float) -> Band:
        """Return the band of a mean number of busy servers (draws,): model error of times, at most `servers`."""
        return _at_most(self._band(draws, self.time), servers)

    def _band(self, draws: FloatArray, model_error: ModelError) -> Band:
        value, low, high = (float(x) for x in self.spread(draws, model_error))
        parts = Parts(parameter=_half_width(draws), model_error=model_error.half_width * value)
        return Band(value, low, high, parts)

    def _noise(self, draws: FloatArray, model_error: ModelError, stream: int = 0) -> FloatArray:
        """Return one factor of a model error for each draw; each stream orders them differently."""
        count = draws.shape[-1]
        seed = [self.seed, stream] if stream else self.seed
        levels = (np.random.default_rng(seed).permutation(count) + 0.5) / count
        return np.exp(model_error.quantile(levels))

    def spread(self, draws: FloatArray, model_error: ModelError) -> FloatArray:
        """Return the bands of many figures.

        Parameters
        ----------
        draws : array (..., draws)
            The figures by parameter draw.
        model_error : ModelError
            Their model error, such as `rate` or `time`.

        Returns
        -------
        array (3, ...)
            Value, low end and high end.
        """
        return _ends(draws, draws * self._noise(draws, model_error))


def _ends(draws: FloatArray, repeated: FloatArray) -> FloatArray:
    """Return the medians of figures, and the ends of their bands from simulated repeats of the load test (3, ...)."""
    value = np.median(draws, axis=-1)
    low, high = np.quantile(repeated, [LOW, HIGH], axis=-1)
    return np.stack([value, np.minimum(low, value), np.maximum(high, value)])


def _half_width(draws: FloatArray) -> float:
    return float(np.subtract(*np.quantile(draws, [HIGH, LOW]))) / 2


def _at_most(band: Band, limit: float) -> Band:
    return Band(min(band.value, limit), min(band.low, limit), min(band.high, limit), band.parts)
