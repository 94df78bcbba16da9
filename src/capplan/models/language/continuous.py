"""Laws of random durations with one formula each; see `capplan.models.language.distribution` for mixtures and the union.

Each law knows its mean (seconds), its squared coefficient of variation (SCV), its quantile function and its
distribution function `cdf`. Parameters may be arrays of parameter draws: everything broadcasts as numpy does. A scale
of 0 seconds is allowed and puts all mass at 0. Probabilities are from 0 to 1 (not checked).

The formulas are textbook ones: Johnson, Kotz and Balakrishnan, *Continuous Univariate Distributions*, vol. 1, 1994.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal

import numpy as np
from pydantic.dataclasses import dataclass
from scipy import special

from capplan.models.errors import InputError
from capplan.models.language.construct import LANGUAGE, Construct
from capplan.models.language.units import (
    AtLeastOne,
    FloatArray,
    Number,
    Positive,
    Seconds,
    check_number,
    is_scalar,
    plain,
)

# Below this shape a Weibull law's second moment is beyond double precision.
SMALLEST_WEIBULL_SHAPE = 0.02


def times(scale: Number, standard: Any) -> Number:
    """Return `scale` times the quantile of a law of scale 1, which may be infinite: 0 where the scale is 0."""
    if isinstance(scale, float) and scale > 0:
        return plain(scale * standard)
    with np.errstate(invalid="ignore"):  # 0 * inf
        return plain(np.where(np.equal(scale, 0), 0.0, np.multiply(scale, standard)))


def ratio(value: Number, scale: Number) -> FloatArray:
    """Return `value` / `scale`, 0 below 0; with a scale of 0, infinity from 0 on (all mass lies at 0)."""
    values, scales = np.broadcast_arrays(np.asarray(value, dtype=np.float64), np.asarray(scale, dtype=np.float64))
    limit = np.where(values >= 0, np.inf, 0.0)
    np.divide(np.maximum(values, 0.0), scales, out=limit, where=scales > 0)
    return limit


@dataclass(frozen=True, config=LANGUAGE)
class Deterministic(Construct):
    """Always the same duration.

    Attributes
    ----------
    value_s
        The duration, in seconds.
    """

    value_s: Seconds
    kind: Literal["deterministic"] = "deterministic"

    @property
    def mean(self) -> Number:
        """Mean, in seconds."""
        return self.value_s

    @property
    def scv(self) -> Number:
        """Squared coefficient of variation."""
        return 0.0

    def quantile(self, probability: Number) -> Number:
        """Value below which `probability` of the mass lies, in seconds."""
        return plain(self.value_s + 0.0 * np.asarray(probability))

    def cdf(self, value: Number) -> Number:
        """Probability of at most `value` seconds."""
        return plain(np.greater_equal(value, self.value_s))


@dataclass(frozen=True, config=LANGUAGE)
class Exponential(Construct):
    """Exponential law: memoryless, SCV 1.

    Attributes
    ----------
    mean_s
        Mean, in seconds.
    """

    mean_s: Seconds
    kind: Literal["exponential"] = "exponential"

    @property
    def mean(self) -> Number:
        """Mean, in seconds."""
        return self.mean_s

    @property
    def scv(self) -> Number:
        """Squared coefficient of variation."""
        return 1.0

    def quantile(self, probability: Number) -> Number:
        """Value below which `probability` of the mass lies, in seconds."""
        return times(self.mean_s, -special.log1p(-np.asarray(probability, dtype=np.float64)))

    def cdf(self, value: Number) -> Number:
        """Probability of at most `value` seconds."""
        return plain(-special.expm1(-ratio(value, self.mean_s)))


@dataclass(frozen=True, config=LANGUAGE)
class Erlang(Construct):
    """Sum of independent exponentials; SCV 1 / stages.

    Attributes
    ----------
    mean_s
        Mean of the sum, in seconds.
    stages
        Number of exponentials.
    """

    mean_s: Seconds
    stages: AtLeastOne
    kind: Literal["erlang"] = "erlang"

    @property
    def mean(self) -> Number:
        """Mean, in seconds."""
        return self.mean_s

    @property
    def scv(self) -> Number:
        """Squared coefficient of variation."""
        return 1.0 / self.stages

    def quantile(self, probability: Number) -> Number:
        """Value below which `probability` of the mass lies, in seconds."""
        return times(self.mean_s, special.gammaincinv(self.stages, probability) / self.stages)

    def cdf(self, value: Number) -> Number:
        """Probability of at most `value` seconds."""
        return plain(special.gammainc(self.stages, self.stages * ratio(value, self.mean_s)))


@dataclass(frozen=True, config=LANGUAGE)
class Lognormal(Construct):
    """Lognormal law, given by its mean and SCV.

    Attributes
    ----------
    mean_s
        Mean, in seconds.
    shape_scv
        Squared coefficient of variation; positive.
    """

    mean_s: Seconds
    shape_scv: Positive
    kind: Literal["lognormal"] = "lognormal"

    @property
    def mean(self) -> Number:
        """Mean, in seconds."""
        return self.mean_s

    @property
    def scv(self) -> Number:
        """Squared coefficient of variation."""
        return self.shape_scv

    def quantile(self, probability: Number) -> Number:
        """Value below which `probability` of the mass lies, in seconds."""
        variance = special.log1p(self.shape_scv)  # of the logarithm
        return times(self.mean_s, np.exp(np.sqrt(variance) * special.ndtri(probability) - variance / 2))

    def cdf(self, value: Number) -> Number:
        """Probability of at most `value` seconds."""
        variance = special.log1p(self.shape_scv)
        with np.errstate(divide="ignore"):  # log 0 is the right limit
            logarithm = np.log(ratio(value, self.mean_s))
        return plain(special.ndtr((logarithm + variance / 2) / np.sqrt(variance)))


@dataclass(frozen=True, config=LANGUAGE)
class Weibull(Construct):
    """Weibull law: heavier than exponential for a shape below 1, lighter above.

    Attributes
    ----------
    scale_s
        Scale, in seconds: 63.2 % of the mass lies below it.
    shape
        Shape; at least 0.02, below which the SCV overflows.

    Raises
    ------
    InputError
        When the shape is below 0.02.
    """

    scale_s: Seconds
    shape: Positive
    kind: Literal["weibull"] = "weibull"

    def __post_init__(self) -> None:
        check_number(self.shape, "Weibull shape", at_least=SMALLEST_WEIBULL_SHAPE)

    @property
    def mean(self) -> Number:
        """Mean, in seconds."""
        return plain(self.scale_s * special.gamma(1 + 1 / self.shape))

    @property
    def scv(self) -> Number:
        """Squared coefficient of variation."""
        return plain(special.expm1(special.gammaln(1 + 2 / self.shape) - 2 * special.gammaln(1 + 1 / self.shape)))

    def quantile(self, probability: Number) -> Number:
        """Value below which `probability` of the mass lies, in seconds."""
        standard = -special.log1p(-np.asarray(probability, dtype=np.float64))
        return times(self.scale_s, standard ** (1 / self.shape))

    def cdf(self, value: Number) -> Number:
        """Probability of at most `value` seconds."""
        with np.errstate(over="ignore"):  # an infinite power is the right limit
            return plain(-special.expm1(-(ratio(value, self.scale_s) ** self.shape)))


@dataclass(frozen=True, config=LANGUAGE)
class Pareto(Construct):
    """Pareto law: at least a minimum, then a power tail.

    Attributes
    ----------
    minimum_s
        Smallest duration, in seconds.
    shape
        Tail index; above 1, as the mean is infinite otherwise. The SCV is infinite up to 2.

    Raises
    ------
    InputError
        When the shape is 1 or less.
    """

    minimum_s: Seconds
    shape: Positive
    kind: Literal["pareto"] = "pareto"

    def __post_init__(self) -> None:
        check_number(self.shape, "Pareto shape with a finite mean", above=1.0)

    @property
    def mean(self) -> Number:
        """Mean, in seconds."""
        return plain(self.minimum_s * self.shape / (self.shape - 1))

    @property
    def scv(self) -> Number:
        """Squared coefficient of variation; infinite for shape <= 2."""
        shape = np.asarray(self.shape, dtype=np.float64)
        return plain(np.divide(1.0, shape * (shape - 2), out=np.full_like(shape, np.inf), where=shape > 2))

    def quantile(self, probability: Number) -> Number:
        """Value below which `probability` of the mass lies, in seconds."""
        return times(self.minimum_s, np.exp(-special.log1p(-np.asarray(probability, dtype=np.float64)) / self.shape))

    def cdf(self, value: Number) -> Number:
        """Probability of at most `value` seconds."""
        beyond = np.maximum(ratio(value, self.minimum_s), 1.0)
        with np.errstate(divide="ignore"):
            return plain(-special.expm1(-self.shape * np.log(beyond)))


@dataclass(frozen=True, config=LANGUAGE)
class Empirical(Construct):
    """Measured quantiles at equally spaced probabilities from 0 to 1, linear between them.

    Attributes
    ----------
    values_s
        At least two durations in seconds, none below the one before it; equal neighbours are an atom.

    Raises
    ------
    InputError
        When there are fewer than two values, or they fall somewhere, or one is an array.
    """

    values_s: tuple[Seconds, ...]
    kind: Literal["empirical"] = "empirical"

    def __post_init__(self) -> None:
        if len(self.values_s) < 2 or not all(map(is_scalar, self.values_s)):
            raise InputError("an empirical law needs at least two durations, each one number")
        if np.any(np.diff(self._values) < 0):
            raise InputError("the durations of an empirical law must never fall: sort them")

    @cached_property
    def _values(self) -> FloatArray:
        return np.asarray(self.values_s, dtype=np.float64)

    @property
    def mean(self) -> Number:
        """Mean, in seconds."""
        return float(np.mean((self._values[:-1] + self._values[1:]) / 2))

    @property
    def scv(self) -> Number:
        """Squared coefficient of variation; 0 when all mass lies at 0."""
        low, high = self._values[:-1], self._values[1:]
        mean = float(np.mean((low + high) / 2))
        # About the mean, so that a narrow law keeps its digits.
        second = float(np.mean(((low - mean) ** 2 + (low - mean) * (high - mean) + (high - mean) ** 2) / 3))
        return second / mean**2 if mean else 0.0

    def quantile(self, probability: Number) -> Number:
        """Value below which `probability` of the mass lies, in seconds."""
        return plain(np.interp(probability, np.linspace(0.0, 1.0, len(self._values)), self._values))

    def cdf(self, value: Number) -> Number:
        """Probability of at most `value` seconds."""
        values, last = self._values, len(self._values) - 1
        index = np.clip(np.searchsorted(values, value, side="right") - 1, 0, last - 1)
        step = values[index + 1] - values[index]
        within = np.divide(np.asarray(value) - values[index], step, out=np.zeros(np.shape(step)), where=step > 0)
        inside = (index + np.clip(within, 0.0, 1.0)) / last
        inside = np.where(np.less(value, values[0]), 0.0, inside)
        return plain(np.where(np.greater_equal(value, values[-1]), 1.0, inside))
