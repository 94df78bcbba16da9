"""90 % bands: the spread of the parameter draws, combined with the model error.

Three ways to choose a few draws from an ensemble of parameters, one for each use.

- `representatives` is for figures of the solver. They are functions of the parameters, so it is enough to solve a few
  draws, one near each draw of the ensemble. Every draw then gets the figure of its representative; bands use all draws.
- `evenly_along` is for simulated figures, which are noisy and expensive. Simulate draws that are spread evenly along a
  figure known for every draw, and regress on that figure.
- `thinned` is for secondary figures, which need only a small ensemble. It takes every n-th draw; their order is random.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from capplan.answers.results import STATISTICS, Band, Parts
from capplan.evidence.table import Evidence
from capplan.layout.extrapolation import RATE
from capplan.layout.fitted_file import Fitted
from capplan.layout.observations import Kind, Observations
from capplan.models.language.units import FloatArray, Number

HIGH_LEVEL = 0.95  # the upper end of a 90 % band
CORRELATIONS: Mapping[Kind, float] = {"rate": 0.6, "time": 0.0}
"""Correlation of the errors of two layouts, beyond the parameters that both share.

It is one less a ratio: the mean square of the difference of both logarithmic errors, without the variance of that
difference over parameter draws, over the sum of both model errors' variances. Rates: 0.27, 0.40, 0.73 and 0.77 in four
systems with 420 pairs of figures; times: -0.07, -0.04 and 0.11 in three with 99 pairs.
"""


class ModelError(NamedTuple):
    """Distribution of a model's errors where it was not fitted.

    Attributes
    ----------
    log_sd : float
        Root mean square of the logarithmic errors.
    scenarios : float
        Number of independent scenarios behind them: the degrees of freedom of Student's t. Infinite: a normal
        distribution.
    correlation : float
        Correlation of the errors of two layouts.
    """

    log_sd: float
    scenarios: float = math.inf
    correlation: float = 0.0

    def quantile(self, levels: FloatArray | float) -> FloatArray:
        """Return quantiles of the logarithm of the ratio of a repeat's measurement to the prediction.

        Parameters
        ----------
        levels : float or array
            Levels between 0 and 1.

        Returns
        -------
        array
            Quantiles, in the shape of `levels`.
        """
        from scipy.special import ndtri, stdtrit

        standard = stdtrit(self.scenarios, levels) if math.isfinite(self.scenarios) else ndtri(levels)
        return np.asarray(self.log_sd * standard)

    @property
    def half_width(self) -> float:
        """Half the width of the 90 % band of this logarithm."""
        return float(self.quantile(HIGH_LEVEL))

    def times(self, factor: float, common: float = 1.0) -> ModelError:
        """Return a model error `factor` times as wide; the part shared with another layout widens by `common` at most.

        What only one layout adds is independent of the error of the other; what both share, both have alike.
        """
        return self._replace(log_sd=self.log_sd * factor, correlation=(self.correlation + common**2 - 1) / factor**2)


class ModelErrors(NamedTuple):
    """The model errors of a system.

    Attributes
    ----------
    rate, time : ModelError
        The model errors of all rates and of all times.
    by_group : mapping of ModelError
        The model errors of times by group.
    """

    rate: ModelError
    time: ModelError
    by_group: Mapping[str, ModelError]

    def of(self, observations: Observations[Any], row: Evidence) -> ModelError:
        """Return the model error of a documented figure; a time whose group has no errors gets that of all times."""
        if error_kind(observations, row) == "rate":
            return self.rate
        return self.by_group.get(observations.group_of(row), self.time)


def error_kind(observations: Observations[Any], row: Evidence) -> Kind:
    """Return whether a figure has the model error of rates or of times; its unit decides if `kind_of` returns None."""
    return observations.kind_of(row) or ("time" if row.unit == "s" else "rate")


class _Error(NamedTuple):
    kind: str
    group: str
    fold: str
    size: float


def model_errors(observations: Observations[Any], fitted: Fitted, unseen: str | None = None) -> ModelErrors:
    """Estimate the model errors of a system.

    Parameters
    ----------
    observations : Observations
        The observations of the system.
    fitted : Fitted
        Its calibration.
    unseen : str, optional
        The independent scenario that is to be scored. The estimates then depend on it neither through its error nor
        through a fit (nested leave-one-out). By default all scenarios count.

    Returns
    -------
    ModelErrors
        The estimates; `log_sd` is not a number where there are no errors.
    """
    rows = {row.id: row for test in observations.load_tests() for row in test.rows}
    if unseen is None:
        predictions = [(figure.id, figure.predicted) for figure in fitted.left_out]
    else:
        predictions = [(figure.id, figure.predicted) for figure in fitted.nested if figure.without == unseen]
    errors = [
        _error(observations, rows[name], predicted)
        for name, predicted in predictions
        if observations.kind_of(rows[name]) is not None
    ]
    times = [error for error in errors if error.kind == "time"]
    groups = dict.fromkeys(error.group for error in times)
    by_group = {name: _of("time", (error for error in times if error.group == name)) for name in groups}
    return ModelErrors(_of("rate", (each for each in errors if each.kind == "rate")), _of("time", times), by_group)


def _error(observations: Observations[Any], row: Evidence, predicted: float) -> _Error:
    size = float(np.log(predicted / row.value))
    return _Error(str(observations.kind_of(row)), observations.group_of(row), row.fold, size)


def _of(kind: Kind, errors: Iterable[_Error]) -> ModelError:
    counted = list(errors)
    if not counted:
        return ModelError(math.nan)
    return ModelError(_root_mean_square(counted), float(len({error.fold for error in counted})), CORRELATIONS[kind])


def _root_mean_square(errors: Iterable[_Error]) -> float:
    return float(np.sqrt(np.mean([error.size**2 for error in errors])))


LOW, HIGH = 1 - HIGH_LEVEL, HIGH_LEVEL


class Offset(NamedTuple):
    """The part of latencies that is exempt from the model error of times, such as a round trip.

    Attributes
    ----------
    time_s : mapping of mappings of number
        Its length in seconds, a number or an array (draws,), by reported request class and then by statistic.
    model_error : ModelError
        Its own model error.
    """

    time_s: Mapping[str, Mapping[str, Number]]
    model_error: ModelError


NO_OFFSET = Offset({}, ModelError(0.0))


@dataclass(frozen=True)
class Uncertainty:
    """Model errors that widen bands beyond the spread of the parameters.

    Attributes
    ----------
    rate, time : ModelError
        Model errors of rates and of times.
    seed : int
        Seed of the pairing of parameter draws with model errors.
    by_class : mapping of ModelError
        Model errors of times of single request classes, where they are known.
    offset : Offset
        The part of latencies that the model error of times does not cover.
    layout : int or None
        Number of the layout, where it is compared with another: the same number has the same model errors, another
        number errors that are correlated as was measured. None: it is compared with none.
    """

    rate: ModelError
    time: ModelError
    seed: int
    by_class: Mapping[str, ModelError] = field(default_factory=dict)
    offset: Offset = NO_OFFSET
    layout: int | None = None

    def widened(
        self,
        rate: float = 1.0,
        times: Mapping[str, float] | None = None,
        common: Mapping[str, float] = MappingProxyType({}),
    ) -> Uncertainty:
        """Return a copy with wider model errors.

        Parameters
        ----------
        rate : float
            Factor of the model error of rates.
        times : mapping of float, optional
            Factors of the model errors of times, by reported request class; a time of no class, such as the number of
            busy servers, gets the largest.
        common : mapping of float
            The factors for what another layout shares, by request class or `RATE`; 1 by default.
        """
        wider = self.rate.times(rate, common.get(RATE, 1.0))
        if not times:
            return replace(self, rate=wider)
        by_class = {
            name: self.by_class.get(name, self.time).times(factor, common.get(name, 1.0))
            for name, factor in times.items()
        }
        time = self.time.times(max(times.values()))
        return replace(self, rate=wider, time=time, by_class={**self.by_class, **by_class})

    def of_rate(self, draws: FloatArray) -> Band:
        """Return the band of a rate or of a figure proportional to a rate.

        Parameters
        ----------
        draws : array (draws,)
            The figure by parameter draw.
        """
        return _band(draws, self.repeated_rate(draws), self.rate)

    def chance_of_less(self, draws: FloatArray, level: float) -> float:
        """Return the probability that a repeat of the load test measures a rate below `level`.

        Parameters
        ----------
        draws : array (draws,)
            The rate by parameter draw.
        level : float
            The level, in the unit of `draws`.
        """
        return float(np.mean(self.repeated_rate(draws) < level))

    def of_time(self, draws: FloatArray, name: str = "", statistic: str = "mean") -> Band:
        """Return the band of a latency.

        Parameters
        ----------
        draws : array (draws,)
            The latency by parameter draw, ms.
        name : str
            Its reported request class.
        statistic : str
            `mean`, or which percentile it is, such as `p99`.

        Returns
        -------
        Band
            The band, ms.
        """
        value, low, high = (float(each) for each in self.spread_of_times(draws[None], name, (statistic,))[:, 0])
        if not np.all(np.isfinite(draws)):
            return Band(value, low, high)
        offset = self._offset_ms(draws, name, statistic)
        rest = np.median(draws - offset) * self.by_class.get(name, self.time).half_width
        error = float(np.hypot(rest, np.median(offset) * self.offset.model_error.half_width))
        return Band(value, low, high, Parts(parameter=half_width(draws), model_error=error))

    def spread_of_times(self, draws: FloatArray, name: str, statistics: Sequence[str] = STATISTICS) -> FloatArray:
        """Return the bands of latencies of a request class.

        Parameters
        ----------
        draws : array (statistics, draws)
            The latencies by parameter draw, ms; infinite where a queue grows without bound.
        name : str
            The reported request class.
        statistics : sequence of str
            The statistics of the rows.

        Returns
        -------
        array (3, statistics)
            Value, low end and high end, ms.
        """
        repeated = np.stack([self.repeated_time(row, name, each) for row, each in zip(draws, statistics, strict=True)])
        bounded = np.isfinite(draws).all(axis=-1)
        bands = np.empty((3, len(draws)))
        bands[:, bounded] = ends(draws[bounded], repeated[bounded])
        if not bounded.all():
            value = np.quantile(draws[~bounded], 0.5, axis=-1, method="inverted_cdf")
            low, high = np.quantile(repeated[~bounded], [LOW, HIGH], axis=-1, method="inverted_cdf")
            bands[:, ~bounded] = np.stack([value, np.minimum(low, value), np.maximum(high, value)])
        return bands

    def repeated_time(self, draws: FloatArray, name: str, statistic: str) -> FloatArray:
        """Return simulated repeats of a latency, by parameter draw.

        Parameters
        ----------
        draws : array (draws,)
            The latency by parameter draw, ms.
        name, statistic : str
            The reported request class, and `mean` or which percentile it is.
        """
        offset = self._offset_ms(draws, name, statistic)
        rest = (draws - offset) * self._noise(draws, self.by_class.get(name, self.time))
        return rest + offset * self._noise(draws, self.offset.model_error, _OF_OFFSETS)

    def repeated_rate(self, draws: FloatArray) -> FloatArray:
        """Return simulated repeats of a rate, by parameter draw; its model error is independent of that of times."""
        return draws * self._noise(draws, self.rate, _OF_RATES)

    def _offset_ms(self, draws: FloatArray, name: str, statistic: str) -> FloatArray:
        """Return the offset of a latency, capped at the latency."""
        offset = np.asarray(self.offset.time_s.get(name, {}).get(statistic, 0.0)) * 1e3
        return np.minimum(np.broadcast_to(offset, draws.shape), draws)

    def of_share(self, draws: FloatArray) -> Band:
        """Return the band of a utilisation (draws,): model error of rates, capped at 1."""
        return _at_most(_band(draws, self.repeated_rate(draws), self.rate), 1.0)

    def of_busy(self, draws: FloatArray, servers: float) -> Band:
        """Return the band of a mean number of busy servers (draws,): model error of times, capped at `servers`."""
        return _at_most(_band(draws, self.repeated_number(draws), self.time), servers)

    def repeated_number(self, draws: FloatArray) -> FloatArray:
        """Return simulated repeats of a mean number of busy servers or requests, by parameter draw."""
        return draws * self._noise(draws, self.time)

    def _noise(self, draws: FloatArray, model_error: ModelError, stream: int = 0) -> FloatArray:
        """Return one model-error factor per draw; each stream has its own order."""
        count = draws.shape[-1]
        levels = _levels(count, [self.seed, stream] if stream else self.seed)
        if self.layout is not None:
            levels = _correlated(levels, _levels(count, [self.seed, stream, self.layout]), model_error.correlation)
        return np.exp(model_error.quantile(levels))


_OF_OFFSETS, _OF_RATES = 1, 2  # streams beside that of times


def _levels(count: int, seed: int | Sequence[int]) -> FloatArray:
    """Return evenly spaced levels between 0 and 1 in random order (count,)."""
    return np.asarray((np.random.default_rng(seed).permutation(count) + 0.5) / count)


def _correlated(common: FloatArray, own: FloatArray, correlation: float) -> FloatArray:
    """Return levels that correlate with those of other layouts through a Gaussian copula (draws,)."""
    from scipy.special import ndtri  # slow to import

    mixed = correlation**0.5 * ndtri(common) + (1 - correlation) ** 0.5 * ndtri(own)
    return np.asarray((np.argsort(np.argsort(mixed)) + 0.5) / len(mixed))


def _band(draws: FloatArray, repeated: FloatArray, model_error: ModelError) -> Band:
    value, low, high = (float(x) for x in ends(draws, repeated))
    return Band(value, low, high, Parts(parameter=half_width(draws), model_error=model_error.half_width * value))


def ends(draws: FloatArray, repeated: FloatArray) -> FloatArray:
    """Return the medians of figures and the ends of their bands from simulated repeats of the load test (3, ...)."""
    value = np.median(draws, axis=-1)
    low, high = np.quantile(repeated, [LOW, HIGH], axis=-1)
    return np.stack([value, np.minimum(low, value), np.maximum(high, value)])


def half_width(draws: FloatArray) -> float:
    """Return half the width of the central band of draws, in their unit."""
    return float(np.subtract(*np.quantile(draws, [HIGH, LOW]))) / 2


def _at_most(band: Band, limit: float) -> Band:
    return Band(min(band.value, limit), min(band.low, limit), min(band.high, limit), band.parts)
