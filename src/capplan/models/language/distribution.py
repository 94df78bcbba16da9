"""Distributions of random durations: their mean, squared coefficient of variation (SCV), quantile function and CDF.

All durations are sampled by inverse transform, so the quantile function defines a distribution for both engines.
Parameters may be arrays of parameter draws: the analytic solver broadcasts them as numpy does; the simulation engines
and files refuse them. A scale of 0 seconds is allowed and puts all mass at 0. The methods do not check that
probabilities are from 0 to 1.

References
----------
N. L. Johnson, S. Kotz and N. Balakrishnan, *Continuous Univariate Distributions*, vol. 1, 2nd ed., Wiley, 1994.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from functools import cached_property
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field
from pydantic.dataclasses import dataclass
from scipy import special

from capplan.errors import InputError
from capplan.models.language.construct import LANGUAGE, Construct
from capplan.models.language.units import (
    AtLeastOne,
    FloatArray,
    Number,
    Positive,
    Probability,
    Seconds,
    check_number,
    is_scalar,
    plain,
)

# The second moment of a Weibull distribution overflows double precision below this shape.
SMALLEST_WEIBULL_SHAPE = 0.02


@dataclass(frozen=True, config=LANGUAGE)
class Deterministic(Construct):
    """A constant duration.

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
        """Return the quantile at `probability`, in seconds."""
        return plain(self.value_s + 0.0 * np.asarray(probability))

    def cdf(self, value: Number) -> Number:
        """Return the probability of at most `value` seconds."""
        return plain(np.greater_equal(value, self.value_s))


@dataclass(frozen=True, config=LANGUAGE)
class Exponential(Construct):
    """Exponential distribution: memoryless, SCV 1.

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
        """Return the quantile at `probability`, in seconds."""
        return _times(self.mean_s, -special.log1p(-np.asarray(probability, dtype=np.float64)))

    def cdf(self, value: Number) -> Number:
        """Return the probability of at most `value` seconds."""
        return plain(-special.expm1(-_ratio(value, self.mean_s)))


@dataclass(frozen=True, config=LANGUAGE)
class Erlang(Construct):
    """Erlang distribution: the sum of independent exponential stages with equal means; SCV 1 / stages.

    Attributes
    ----------
    mean_s
        Mean of the sum, in seconds.
    stages
        Number of stages.
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
        """Return the quantile at `probability`, in seconds."""
        return _times(self.mean_s, special.gammaincinv(self.stages, probability) / self.stages)

    def cdf(self, value: Number) -> Number:
        """Return the probability of at most `value` seconds."""
        return plain(special.gammainc(self.stages, self.stages * _ratio(value, self.mean_s)))


@dataclass(frozen=True, config=LANGUAGE)
class Lognormal(Construct):
    """Lognormal distribution, given by its mean and SCV.

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
        """Return the quantile at `probability`, in seconds."""
        variance = special.log1p(self.shape_scv)  # of the logarithm
        return _times(self.mean_s, np.exp(np.sqrt(variance) * special.ndtri(probability) - variance / 2))

    def cdf(self, value: Number) -> Number:
        """Return the probability of at most `value` seconds."""
        variance = special.log1p(self.shape_scv)
        with np.errstate(divide="ignore"):  # log 0 is the right limit
            logarithm = np.log(_ratio(value, self.mean_s))
        return plain(special.ndtr((logarithm + variance / 2) / np.sqrt(variance)))


@dataclass(frozen=True, config=LANGUAGE)
class Weibull(Construct):
    """Weibull distribution: its tail is heavier than exponential for a shape below 1, and lighter above 1.

    Attributes
    ----------
    scale_s
        Scale, in seconds: 63.2 % of the mass lies below it.
    shape
        Shape; at least 0.02, because the SCV overflows below that.

    Raises
    ------
    InputError
        If the shape is below 0.02.
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
        """Return the quantile at `probability`, in seconds."""
        standard = -special.log1p(-np.asarray(probability, dtype=np.float64))
        return _times(self.scale_s, standard ** (1 / self.shape))

    def cdf(self, value: Number) -> Number:
        """Return the probability of at most `value` seconds."""
        with np.errstate(over="ignore"):  # an infinite power is the right limit
            return plain(-special.expm1(-(_ratio(value, self.scale_s) ** self.shape)))


@dataclass(frozen=True, config=LANGUAGE)
class Pareto(Construct):
    """Pareto distribution: a minimum and a power-law tail.

    Attributes
    ----------
    minimum_s
        Smallest duration, in seconds.
    shape
        Tail index; above 1, because the mean is infinite otherwise. The SCV is infinite up to 2.

    Raises
    ------
    InputError
        If the shape is 1 or less.
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
        """Squared coefficient of variation; infinite for a shape of at most 2."""
        shape = np.asarray(self.shape, dtype=np.float64)
        return plain(np.divide(1.0, shape * (shape - 2), out=np.full_like(shape, np.inf), where=shape > 2))

    def quantile(self, probability: Number) -> Number:
        """Return the quantile at `probability`, in seconds."""
        return _times(self.minimum_s, np.exp(-special.log1p(-np.asarray(probability, dtype=np.float64)) / self.shape))

    def cdf(self, value: Number) -> Number:
        """Return the probability of at most `value` seconds."""
        beyond = np.maximum(_ratio(value, self.minimum_s), 1.0)
        with np.errstate(divide="ignore"):
            return plain(-special.expm1(-self.shape * np.log(beyond)))


@dataclass(frozen=True, config=LANGUAGE)
class Empirical(Construct):
    """Measured quantiles at equally spaced probabilities from 0 to 1, with linear interpolation.

    Attributes
    ----------
    values_s
        At least two durations in seconds, in ascending order; two equal neighbours form an atom.

    Raises
    ------
    InputError
        If there are fewer than two values, they are not in ascending order, or one is an array.
    """

    values_s: tuple[Seconds, ...]
    kind: Literal["empirical"] = "empirical"

    def __post_init__(self) -> None:
        if len(self.values_s) < 2 or not all(map(is_scalar, self.values_s)):
            raise InputError("an empirical distribution needs at least two durations, each a single number")
        if np.any(np.diff(self._values) < 0):
            raise InputError("the durations of an empirical distribution must be in ascending order: sort them")

    @cached_property
    def _values(self) -> FloatArray:
        return np.asarray(self.values_s, dtype=np.float64)

    @property
    def mean(self) -> Number:
        """Mean, in seconds."""
        return float(np.mean((self._values[:-1] + self._values[1:]) / 2))

    @property
    def scv(self) -> Number:
        """Squared coefficient of variation; 0 if all mass lies at 0."""
        low, high = self._values[:-1], self._values[1:]
        mean = float(np.mean((low + high) / 2))
        # Central moments keep the digits of a narrow distribution.
        second = float(np.mean(((low - mean) ** 2 + (low - mean) * (high - mean) + (high - mean) ** 2) / 3))
        return second / mean**2 if mean else 0.0

    def quantile(self, probability: Number) -> Number:
        """Return the quantile at `probability`, in seconds."""
        return plain(np.interp(probability, np.linspace(0.0, 1.0, len(self._values)), self._values))

    def cdf(self, value: Number) -> Number:
        """Return the probability of at most `value` seconds."""
        values, last = self._values, len(self._values) - 1
        index = np.clip(np.searchsorted(values, value, side="right") - 1, 0, last - 1)
        step = values[index + 1] - values[index]
        within = np.divide(np.asarray(value) - values[index], step, out=np.zeros(np.shape(step)), where=step > 0)
        inside = (index + np.clip(within, 0.0, 1.0)) / last
        inside = np.where(np.less(value, values[0]), 0.0, inside)
        return plain(np.where(np.greater_equal(value, values[-1]), 1.0, inside))


@dataclass(frozen=True, config=LANGUAGE)
class Hyperexponential(Construct):
    """Mixture of exponential distributions; SCV at least 1.

    Attributes
    ----------
    probabilities
        Probability of each exponential; positive, with sum 1.
    means_s
        Mean of each exponential, in seconds.

    Raises
    ------
    InputError
        If the probabilities are not positive, do not add up to 1, or are not as many as the means.
    """

    probabilities: tuple[Probability, ...]
    means_s: tuple[Seconds, ...]
    kind: Literal["hyperexponential"] = "hyperexponential"

    def __post_init__(self) -> None:
        check_probabilities(self.probabilities, len(self.means_s))

    @cached_property
    def _mixture(self) -> Mixture:
        return Mixture(self.probabilities, tuple(Exponential(mean) for mean in self.means_s))

    @property
    def mean(self) -> Number:
        """Mean, in seconds."""
        return self._mixture.mean

    @property
    def scv(self) -> Number:
        """Squared coefficient of variation."""
        return self._mixture.scv

    def quantile(self, probability: Number) -> Number:
        """Return the quantile at `probability`, in seconds: the smallest double whose CDF reaches it."""
        return self._mixture.quantile(probability)

    def cdf(self, value: Number) -> Number:
        """Return the probability of at most `value` seconds."""
        return self._mixture.cdf(value)


@dataclass(frozen=True, config=LANGUAGE)
class Mixture(Construct):
    """Mixture of distributions: each duration comes from one of them, picked at random.

    Attributes
    ----------
    probabilities
        Probability of each distribution; positive, with sum 1.
    distributions
        The distributions; they may be mixtures themselves.

    Raises
    ------
    InputError
        If the probabilities are not positive, do not add up to 1, or are not as many as the distributions.
    """

    probabilities: tuple[Probability, ...]
    distributions: tuple[Distribution, ...]
    kind: Literal["mixture"] = "mixture"

    def __post_init__(self) -> None:
        check_probabilities(self.probabilities, len(self.distributions))

    def _weighted(self) -> list[tuple[Number, Distribution]]:
        return list(zip(self.probabilities, self.distributions, strict=True))

    @property
    def mean(self) -> Number:
        """Mean, in seconds."""
        return plain(sum(p * part.mean for p, part in self._weighted()))

    @property
    def scv(self) -> Number:
        """Squared coefficient of variation; 0 if all mass lies at 0."""
        mean = np.asarray(self.mean)
        terms = (p * (part.scv * np.square(part.mean) + np.square(part.mean - mean)) for p, part in self._weighted())
        # Variance within plus variance between, about the mean, keeps the digits of a narrow distribution.
        variance = np.asarray(sum(terms))
        return plain(np.divide(variance, mean**2, out=np.zeros(np.shape(variance)), where=mean > 0))

    def quantile(self, probability: Number) -> Number:
        """Return the quantile at `probability`, in seconds: the smallest double whose CDF reaches it.

        The quantile of a mixture lies between the smallest and the largest quantile of its components. Bisection
        between these evaluates the CDF about 60 times: fast for arrays, about a millisecond for a single number.
        """
        parts = [np.asarray(part.quantile(probability)) for part in self.distributions]
        wanted, *rest = np.broadcast_arrays(np.asarray(probability, dtype=np.float64), *parts, *self.probabilities)
        low, high = np.minimum.reduce(rest[: len(parts)]), np.maximum.reduce(rest[: len(parts)])
        inside = (wanted > 0) & (wanted < 1)
        bounds = (np.where(inside, bound, 0.0) for bound in (wanted, low, high))
        found = _smallest_reaching(self.cdf, *bounds)
        return plain(np.where(inside, found, np.where(wanted == 0, low, high)))

    def cdf(self, value: Number) -> Number:
        """Return the probability of at most `value` seconds."""
        # The probabilities add up to 1 within rounding only.
        return plain(np.minimum(sum(p * np.asarray(part.cdf(value)) for p, part in self._weighted()), 1.0))


Distribution = Annotated[
    Deterministic | Exponential | Erlang | Hyperexponential | Lognormal | Weibull | Pareto | Empirical | Mixture,
    Field(discriminator="kind"),
]


def check_probabilities(probabilities: tuple[Number, ...], count: int) -> None:
    """Check that there are `count` probabilities, at least one, with sum 1 in every parameter draw.

    Parameters
    ----------
    probabilities : tuple of float or array (draws,)
        Probability of each alternative.
    count : int
        Number of alternatives.

    Raises
    ------
    InputError
        If the number of probabilities or their sum is wrong.
    """
    if len(probabilities) != count or not count:
        raise InputError(f"{len(probabilities)} probabilities for {count} alternatives: give one for each")
    total = np.asarray(sum(probabilities))
    if np.any(np.abs(total - 1) > 1e-9):
        worst = float(total.flat[np.argmax(np.abs(total - 1))])
        raise InputError(f"probabilities with sum {worst:.10g} are not a distribution: their sum must be 1")


def scaled(distribution: Distribution, factor: Number) -> Distribution:
    """Multiply every duration of a distribution by a factor; its shape stays the same.

    Parameters
    ----------
    distribution : Distribution
        Any distribution of the language.
    factor : float or array (draws,)
        The factor; an array scales each parameter draw by its own.

    Returns
    -------
    Distribution
        Of the same kind.
    """
    if isinstance(distribution, Mixture):
        return replace(distribution, distributions=tuple(scaled(part, factor) for part in distribution.distributions))
    # Fields in seconds, and no others, have names that end in `_s`.
    names = [field.name for field in fields(distribution) if field.name.endswith("_s")]
    return replace(distribution, **{name: _multiplied(getattr(distribution, name), factor) for name in names})


def _multiplied(value: Any, factor: Number) -> Any:
    return tuple(part * factor for part in value) if isinstance(value, tuple) else value * factor


def _times(scale: Number, standard: Any) -> Number:
    """Multiply a standard quantile, which may be infinite, by the scale; a scale of 0 gives 0."""
    if isinstance(scale, float) and scale > 0:
        return plain(scale * standard)
    with np.errstate(invalid="ignore"):  # 0 * inf
        return plain(np.where(np.equal(scale, 0), 0.0, np.multiply(scale, standard)))


def _ratio(value: Number, scale: Number) -> FloatArray:
    """Divide `value` by `scale`: 0 for negative values, infinity for values from 0 on if the scale is 0."""
    values, scales = np.broadcast_arrays(np.asarray(value, dtype=np.float64), np.asarray(scale, dtype=np.float64))
    limit = np.where(values >= 0, np.inf, 0.0)
    np.divide(np.maximum(values, 0.0), scales, out=limit, where=scales > 0)
    return limit


def _smallest_reaching(
    cdf: Callable[[FloatArray], Number], probability: FloatArray, low: FloatArray, high: FloatArray
) -> FloatArray:
    """Return, for each element, the smallest double from `low` to `high` at which `cdf` reaches `probability`.

    The bisection works on bit patterns, which have the order of the non-negative doubles that they represent. It finds
    atoms exactly, returns the left end of a gap, and ends within 64 steps for any magnitudes.
    """
    left, right = low.view(np.int64) - 1, high.view(np.int64)
    while np.any(right - left > 1):
        middle = right - (right - left) // 2
        reached = np.asarray(cdf(middle.view(np.float64))) >= probability
        left, right = np.where(reached, left, middle), np.where(reached, middle, right)
    return right.view(np.float64)
