"""Laws of random durations: each knows its mean, squared coefficient of variation (SCV) and quantile function.

Every law is sampled by inverse transform, so a law *is* its quantile function; the parameters may be arrays of
parameter draws (the analytic solver broadcasts them; the simulation engines refuse them).
"""

from __future__ import annotations

import math
from typing import Annotated, Literal

import numpy as np
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass
from scipy import special

from capplan.models.errors import InputError
from capplan.models.quantity import FloatArray, NonNegative, Number, Positive, Seconds

LANGUAGE = ConfigDict(extra="forbid", arbitrary_types_allowed=True)


@dataclass(frozen=True, config=LANGUAGE)
class Deterministic:
    """Always `value_s` seconds."""

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
        return self.value_s + 0.0 * probability


@dataclass(frozen=True, config=LANGUAGE)
class Exponential:
    """Exponential law with mean `mean_s` seconds."""

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
        return -self.mean_s * np.log1p(-np.asarray(probability))


@dataclass(frozen=True, config=LANGUAGE)
class Erlang:
    """Sum of `stages` independent exponentials, mean `mean_s` seconds; SCV 1/stages."""

    mean_s: Seconds
    stages: Annotated[int, Field(ge=1)]
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
        return self.mean_s / self.stages * special.gammaincinv(self.stages, probability)


@dataclass(frozen=True, config=LANGUAGE)
class Lognormal:
    """Lognormal law given by its mean `mean_s` seconds and its SCV `shape_scv`."""

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
        variance = np.log1p(self.shape_scv)
        return self.mean_s * np.exp(-variance / 2 + np.sqrt(variance) * special.ndtri(probability))


@dataclass(frozen=True, config=LANGUAGE)
class Weibull:
    """Weibull law with scale `scale_s` seconds and shape `shape` (below 1: heavier than exponential)."""

    scale_s: Seconds
    shape: Positive
    kind: Literal["weibull"] = "weibull"

    @property
    def mean(self) -> Number:
        """Mean, in seconds."""
        return self.scale_s * special.gamma(1 + 1 / self.shape)

    @property
    def scv(self) -> Number:
        """Squared coefficient of variation."""
        return special.gamma(1 + 2 / self.shape) / special.gamma(1 + 1 / self.shape) ** 2 - 1

    def quantile(self, probability: Number) -> Number:
        """Value below which `probability` of the mass lies, in seconds."""
        return self.scale_s * (-np.log1p(-np.asarray(probability))) ** (1 / self.shape)


@dataclass(frozen=True, config=LANGUAGE)
class Pareto:
    """Pareto law: at least `minimum_s` seconds, tail index `shape` (mean needs shape > 1, SCV shape > 2)."""

    minimum_s: Seconds
    shape: Positive
    kind: Literal["pareto"] = "pareto"

    @property
    def mean(self) -> Number:
        """Mean, in seconds; infinite for shape <= 1."""
        shape = np.asarray(self.shape, dtype=float)
        ratio = np.divide(shape, shape - 1, out=np.full_like(shape, np.inf), where=shape > 1)
        return self.minimum_s * (float(ratio) if ratio.ndim == 0 else ratio)

    @property
    def scv(self) -> Number:
        """Squared coefficient of variation; infinite for shape <= 2."""
        shape = np.asarray(self.shape, dtype=float)
        value = np.divide(1.0, shape * (shape - 2), out=np.full_like(shape, np.inf), where=shape > 2)
        return float(value) if value.ndim == 0 else value

    def quantile(self, probability: Number) -> Number:
        """Value below which `probability` of the mass lies, in seconds."""
        return self.minimum_s * (1 - np.asarray(probability)) ** (-1 / np.asarray(self.shape))


@dataclass(frozen=True, config=LANGUAGE)
class Empirical:
    """Measured quantiles: `values_s` (rising, seconds) at equally spaced probabilities from 0 to 1, linear between."""

    values_s: tuple[float, ...]
    kind: Literal["empirical"] = "empirical"

    def __post_init__(self) -> None:
        rising = all(low <= high for low, high in zip(self.values_s, self.values_s[1:], strict=False))
        if len(self.values_s) < 2 or not rising or self.values_s[0] < 0:
            raise InputError("an empirical law needs at least two rising values that are not negative")

    @property
    def mean(self) -> Number:
        """Mean, in seconds."""
        values = np.asarray(self.values_s)
        return float(np.mean((values[:-1] + values[1:]) / 2))

    @property
    def scv(self) -> Number:
        """Squared coefficient of variation."""
        low, high = np.asarray(self.values_s)[:-1], np.asarray(self.values_s)[1:]
        second = float(np.mean((low**2 + low * high + high**2) / 3))
        return second / self.mean**2 - 1 if self.mean else 0.0

    def quantile(self, probability: Number) -> Number:
        """Value below which `probability` of the mass lies, in seconds."""
        grid = np.linspace(0.0, 1.0, len(self.values_s))
        return np.interp(probability, grid, self.values_s)


@dataclass(frozen=True, config=LANGUAGE)
class Hyperexponential:
    """Exponential with mean `means_s[i]` seconds, with probability `probabilities[i]`; SCV at least 1."""

    probabilities: tuple[float, ...]
    means_s: tuple[float, ...]
    kind: Literal["hyperexponential"] = "hyperexponential"

    def __post_init__(self) -> None:
        check_probabilities(self.probabilities, len(self.means_s))

    @property
    def mean(self) -> Number:
        """Mean, in seconds."""
        return float(np.dot(self.probabilities, self.means_s))

    @property
    def scv(self) -> Number:
        """Squared coefficient of variation."""
        return 2 * float(np.dot(self.probabilities, np.square(self.means_s))) / float(self.mean) ** 2 - 1

    def quantile(self, probability: Number) -> Number:
        """Value below which `probability` of the mass lies, in seconds."""
        laws = tuple(Exponential(mean) for mean in self.means_s)
        return Mixture(self.probabilities, laws).quantile(probability)


@dataclass(frozen=True, config=LANGUAGE)
class Mixture:
    """One of several laws, drawn with the given probabilities."""

    probabilities: tuple[float, ...]
    laws: tuple[Distribution, ...]
    kind: Literal["mixture"] = "mixture"

    def __post_init__(self) -> None:
        check_probabilities(self.probabilities, len(self.laws))

    @property
    def mean(self) -> Number:
        """Mean, in seconds."""
        return sum((p * law.mean for p, law in zip(self.probabilities, self.laws, strict=True)), 0.0)

    @property
    def scv(self) -> Number:
        """Squared coefficient of variation."""
        pairs = zip(self.probabilities, self.laws, strict=True)
        second = sum((p * (law.scv + 1) * law.mean**2 for p, law in pairs), 0.0)
        return second / self.mean**2 - 1

    def quantile(self, probability: Number) -> Number:
        """Value below which `probability` of the mass lies, in seconds.

        The component is chosen by the leading part of `probability` and the rest of it is the quantile within that
        component. This is a rearrangement of the mixture: the law of `quantile(U)` is right, but it does not rise
        with `probability` across components.
        """
        uniform = np.asarray(probability, dtype=float)
        edges = np.concatenate([[0.0], np.cumsum(self.probabilities)])
        chosen = np.clip(np.searchsorted(edges, uniform, side="right") - 1, 0, len(self.laws) - 1)
        within = (uniform - edges[chosen]) / np.asarray(self.probabilities)[chosen]
        within = np.clip(within, 0.0, math.nextafter(1.0, 0.0))
        values = np.choose(chosen, [np.asarray(law.quantile(within), dtype=float) for law in self.laws])
        return float(values) if values.ndim == 0 else values


def check_probabilities(probabilities: tuple[float, ...], count: int) -> None:
    """Check that there are `count` probabilities, each positive, with sum one."""
    if len(probabilities) != count:
        raise InputError(f"{len(probabilities)} probabilities for {count} alternatives: give one for each")
    if any(not p > 0 for p in probabilities) or abs(sum(probabilities) - 1) > 1e-9:
        raise InputError(f"probabilities {list(probabilities)} must be positive and have sum 1")


Distribution = Annotated[
    Deterministic | Exponential | Erlang | Hyperexponential | Lognormal | Weibull | Pareto | Empirical | Mixture,
    Field(discriminator="kind"),
]


def scaled(law: Distribution, factor: float) -> Distribution:
    """Return the same law with every duration multiplied by `factor`."""
    match law:
        case Deterministic():
            return Deterministic(law.value_s * factor)
        case Exponential():
            return Exponential(law.mean_s * factor)
        case Erlang():
            return Erlang(law.mean_s * factor, law.stages)
        case Lognormal():
            return Lognormal(law.mean_s * factor, law.shape_scv)
        case Weibull():
            return Weibull(law.scale_s * factor, law.shape)
        case Pareto():
            return Pareto(law.minimum_s * factor, law.shape)
        case Empirical():
            return Empirical(tuple(value * factor for value in law.values_s))
        case Hyperexponential():
            return Hyperexponential(law.probabilities, tuple(mean * factor for mean in law.means_s))
        case Mixture():
            return Mixture(law.probabilities, tuple(scaled(part, factor) for part in law.laws))
